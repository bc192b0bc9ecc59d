"""Names of BERTopic, scikit-learn, sentence-transformers and txtai, and what to use here instead.

The tables of docs/coming_from.md have the calls with their arguments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

OF_A_RESULT = {
    "get_topics": "et.topics.terms(result)",
    "get_topic": "et.topics.terms(result)",
    "get_topic_info": "et.topics.table(result)",
    "get_topic_freq": "et.topics.table(result)",
    "get_document_info": "et.topics.documents(result)",
    "get_representative_docs": "et.topics.sample_documents(result, topic)",
    "get_topic_tree": "et.topics.tree_text(et.topics.hierarchy(result))",
    "set_topic_labels": "et.topics.rename(result, names)",
    "topic_labels_": "[topic.label for topic in result.topics]",
    "generate_topic_labels": "et.topics.make_labels(result)",
    "update_topics": "et.topics.update_terms(result)",
    "merge_topics": "et.topics.merge(result, topics)",
    "delete_topics": "et.topics.remove(result, topics)",
    "reduce_topics": "et.topics.reduce(result, n_topics)",
    "reduce_outliers": "et.topics.reassign(result)",
    "topics_over_time": "et.topics.over_time(result)",
    "topics_per_class": "et.topics.by_group(result, column)",
    "hierarchical_topics": "et.topics.hierarchy(result)",
    "approximate_distribution": "et.topics.mixtures(result)",
    "find_topics": "et.topics.find(result, query)",
    "merge_models": "et.topics.combine(results)",
    "partial_fit": "et.topics.extend(result, texts)",
    "push_to_hf_hub": "et.topics.push_to_hub(result, repo_id)",
    "visualize_topics": "et.plots.map(result)",
    "visualize_documents": "et.plots.map(result)",
    "visualize_document_datamap": "et.report.write_explorer(result, path)",
    "visualize_hierarchical_documents": "et.report.write_explorer(result, path, levels=results)",
    "visualize_hierarchy": "et.plots.hierarchy(et.topics.hierarchy(result))",
    "visualize_heatmap": "et.plots.similarity(et.topics.hierarchy(result, by='embeddings'))",
    "visualize_barchart": "et.plots.terms(result)",
    "visualize_term_rank": "et.topics.terms(result, n_terms=10)",
    "visualize_topics_over_time": "et.plots.over_time(et.topics.over_time(result))",
    "visualize_topics_per_class": "et.plots.by_group(et.topics.by_group(result, column))",
    "visualize_distribution": "et.plots.mixture(result, et.topics.token_topics(result, 0))",
    "visualize_approximate_distribution": "et.plots.mixture(result, token_topics)",
    "topics_": "model.labels_ or result.labels",
    "topic_sizes_": "et.topics.table(result)",
    "probabilities_": "et.topics.mixtures(result)",
    "c_tf_idf_": "result.topic_terms",
    "components_": "result.topic_terms",
    "score": "et.topics.report_card(result)",
}
"""Of models and results; `result` is `model.result_`."""

OF_AN_ENCODER = {
    "get_sentence_embedding_dimension": "encoder.dimensions",
    "max_seq_length": "encoder.max_length",
    "tokenize": "encoder.count_tokens(texts), or et.pretraining.tokenizer_report(texts)",
    "encode_multi_process": "encoder.encode(texts), which uses all cores",
    "similarity": "the product of vectors of encode(texts, normalize_embeddings=True)",
    "save_pretrained": "et.SentenceEncoder(folder), which reads the folder that training wrote",
}
OF_AN_INDEX = {
    "upsert": "index.add(data, update=True)",
    "delete": "index.remove(ids)",
    "count": "len(index)",
    "query": "index.search(queries)",
    "index": "et.SearchIndex.build(data)",
}
OF_A_MODULE = OF_A_RESULT | {
    "BERTopic": "et.TopicModel",
    "SentenceTransformer": "et.SentenceEncoder",
    "Embeddings": "et.SearchIndex",
    "CrossEncoder": "et.classification.fit_pair_scorer, or search(..., reranker=)",
}

ARGUMENTS = {
    "nr_topics": "called `n_topics`",
    "n_clusters": "called `n_topics`",
    "min_topic_size": "called `min_cluster_size`",
    "embedding_model": "called `encoder`",
    "umap_model": "called `reducer`",
    "hdbscan_model": "called `clusterer`",
    "ctfidf_model": "called `weighting`, such as et.ClassTfidf()",
    "vectorizer_model": "given as `ngram_range`, `stop_words` and `min_df`",
    "representation_model": "left out; use et.topics.keywords and with_keywords after the fit",
    "seed_topic_list": "given as constraints=et.SeedWords(lists)",
    "zeroshot_topic_list": "given as constraints=et.ZeroShot(names)",
    "zeroshot_min_similarity": "given in et.ZeroShot(names, min_similarity=...)",
    "top_n_words": "called `n_terms`, in et.topics.terms",
    "n_gram_range": "called `ngram_range`",
    "language": "called `languages`",
    "calculate_probabilities": "left out; use model.transform or et.topics.mixtures",
    "low_memory": "left out: memory is bounded",
    "verbose": "called `show_progress`",
    "model_name_or_path": "called `name`",
    "truncate_dim": "called `dimensions`",
    "max_seq_length": "called `max_length`",
    "convert_to_numpy": "left out: encode returns NumPy arrays, or tensors by convert_to_tensor",
    "output_value": "left out; et.probing.hidden_states has vectors of words",
    "backend": "called `runtime`",
    "cache_folder": "left out; set EMBEDTOPICS_CACHE",
    "top_k": "called `k`",
}
"""What an argument of theirs must be, to be read after "must be"."""


class OtherNames:
    """Base of classes that know what another library calls things; each has its `_elsewhere`."""

    _elsewhere = OF_A_RESULT

    if not TYPE_CHECKING:  # or type checkers would take any name

        def __getattr__(self, name: str) -> Any:
            """Say what to use; of names that are ours, raise once more what a property raised."""
            if name in type(self)._elsewhere:
                kind = type(self).__name__
                raise AttributeError(f"{kind} has no {name}; use {type(self)._elsewhere[name]}")
            return object.__getattribute__(self, name)
