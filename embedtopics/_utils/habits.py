"""Attributes that users of other libraries ask for, and the calls to make instead.

`Habits` is a mixin whose ``__getattr__`` only raises: an AttributeError with a hint from the tables
of this module, else from the public names of `embedtopics.topics` and `embedtopics.plots`, else
with Python's own sentence. The tables are one for each kind of object. In a hint the object has the
name of its kind (model, result, corpus, index, encoder), so that a user can copy the call.
"""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

EDIT = "it returns a new result; the model does not change"
MEANS = "call et.topics.find(model, query); it compares with the mean vectors of the topics"
PAGE = 'call et.report.write_report(model, "report.html")'
MIXTURE = "call et.plots.mixture(et.topics.mixture(model, 0))"

TOPICS: Mapping[str, str] = {
    # Methods of BERTopic.
    "approximate_distribution": "call et.topics.mixtures(model); the words of a row are in "
    "et.topics.mixture(model, 0)",
    "delete_topics": f"call et.topics.remove(model, [0]); {EDIT}",
    "find_topics": "call et.topics.find(model, query)",
    "generate_topic_labels": 'call et.topics.table(model, n_terms=2)["terms"].str.join(", ")',
    "get_document_info": "call et.topics.documents(model)",
    "get_representative_docs": "call et.topics.sample_documents(model, 0)",
    "get_topic": 'call et.topics.terms(model).query("topic == 0")',
    "get_topic_freq": 'call et.topics.table(model)[["topic", "size"]]',
    "get_topic_info": "call et.topics.table(model)",
    "get_topic_tree": "call et.topics.hierarchy(model).to_text()",
    "get_topics": "call et.topics.terms(model)",
    "hierarchical_topics": "call et.topics.hierarchy(model)",
    "merge_models": f"call et.topics.extend(model, texts, adopt=True).result; {EDIT}",
    "merge_topics": f"call et.topics.merge(model, [0, 1]); {EDIT}",
    "partial_fit": f"call et.topics.extend(model, texts).result; {EDIT}",
    "push_to_hf_hub": 'call model.save("study", texts=False); then upload the folder',
    "reduce_outliers": f"call et.topics.reduce_outliers(model); {EDIT}",
    "reduce_topics": f"call et.topics.merge(model, n_topics=2); {EDIT}",
    "set_topic_labels": f'call et.topics.rename(model, {{0: "Floods"}}); {EDIT}',
    "topics_over_time": "call et.topics.over_time(model)",
    "topics_per_class": "call et.topics.by_group(model)",
    "update_topics": f"call et.topics.update_terms(model); {EDIT}",
    "visualize_approximate_distribution": MIXTURE,
    "visualize_barchart": "call et.plots.terms(model)",
    "visualize_distribution": MIXTURE,
    "visualize_document_datamap": PAGE,
    "visualize_documents": "call et.plots.map(model)",
    "visualize_heatmap": "call et.plots.hierarchy(et.topics.hierarchy(model))",
    "visualize_hierarchical_documents": PAGE,
    "visualize_hierarchy": "call et.plots.hierarchy(et.topics.hierarchy(model))",
    "visualize_term_rank": "call et.topics.terms(model)",
    "visualize_topics": "call et.plots.map(model)",
    "visualize_topics_over_time": "call et.plots.over_time(et.topics.over_time(model))",
    "visualize_topics_per_class": "call et.plots.by_group(et.topics.by_group(model))",
    # Attributes of a fitted BERTopic.
    "custom_labels_": 'call et.topics.table(model)["name"]',
    "representative_docs_": "call et.topics.sample_documents(model, 0)",
    "representative_images_": "call et.topics.sample_documents(model, 0); there are texts alone",
    "topic_aspects_": "call et.topics.terms(model)",
    "topic_embeddings_": MEANS,
    "topic_labels_": 'call et.topics.table(model)["name"]',
    "topic_mapper_": "call et.topics.history(model)",
    "topic_representations_": "call et.topics.terms(model)",
    "topic_sizes_": 'call et.topics.table(model)[["topic", "size"]]',
    "vectorizer_model": f"call et.topics.update_terms(model); {EDIT}",
    "representation_model": f"call et.topics.with_keywords(model); {EDIT}",
    "top_n_words": "call et.topics.terms(model, n_terms=10)",
    # Estimators of scikit-learn, and gensim's models of topics.
    "cluster_centers_": MEANS,
    "components_": "call et.topics.terms(model)",
    "get_topic_terms": "call et.topics.terms(model)",
    "inertia_": "call et.topics.evaluate(model)",
    "inverse_transform": "call et.topics.terms(model)",
    "print_topics": "call et.topics.table(model)",
    "score": "call et.topics.evaluate(model)",
    "show_topics": "call et.topics.table(model)",
    "top_topics": "call et.topics.evaluate(model)",
    # What draws or writes an object in other libraries.
    "plot": "call et.plots.map(model)",
    "show": "call et.plots.map(model)",
    "to_csv": 'call et.topics.export(model, "topics.csv")',
    "to_excel": 'call et.topics.export(model, "topics.xlsx")',
    "to_html": PAGE,
}
"""What a model and a result have in common; a result is called result in its hints."""

MODEL: Mapping[str, str] = {
    **TOPICS,
    "c_tf_idf_": "it is model.result_.topic_terms",
    "calculate_probabilities": "call model.transform(texts)",
    "clusters_": "it is model.labels_",
    "ctfidf_model": "it is model.weighting",
    "decision_function": "call model.transform(texts)",
    "embedding_model": "it is model.encoder",
    "embeddings_": "it is model.result_.embeddings",
    "feature_names_in_": "call model.get_feature_names_out(); it gives the names of the topics",
    "get_document_topics": "call model.transform(texts)",
    "hdbscan_model": "it is model.clusterer",
    "language": "it is model.languages",
    "min_topic_size": "it is model.min_cluster_size",
    "n_clusters": "it is model.n_topics; after the fit model.result_.n_topics",
    "n_clusters_": "it is model.result_.n_topics",
    "n_topics_": "it is model.result_.n_topics",
    "nr_topics": "it is model.n_topics; after the fit model.result_.n_topics",
    "predict_log_proba": "call model.transform(texts)",
    "predict_proba": "call model.transform(texts)",
    "probabilities_": "call model.transform(texts)",
    "seed_topic_list": "it is model.constraints",
    "topics_": "it is model.labels_",
    "umap_model": "it is model.reducer",
    "verbose": "it is model.show_progress",
    "zeroshot_topic_list": "it is model.constraints",
}

RESULT: Mapping[str, str] = {
    **{name: re.sub(r"\bmodel\b", "result", hint) for name, hint in TOPICS.items()},
    "c_tf_idf_": "it is result.topic_terms",
    "fit": "call et.TopicModel().fit(result.corpus)",
    "fit_predict": "call et.TopicModel().fit_predict(result.corpus)",
    "fit_transform": "call et.TopicModel().fit_transform(result.corpus)",
    "get_document_topics": "call et.topics.assign(result, texts)",
    "labels_": "it is result.labels",
    "n_clusters": "it is result.n_topics",
    "n_topics_": "it is result.n_topics",
    "nr_topics": "it is result.n_topics",
    "predict": "call et.topics.assign(result, texts)",
    "predict_proba": "call et.topics.assign(result, texts)",
    "probabilities_": "it is result.memberships",
    "topics_": "it is result.labels",
    "transform": "call et.topics.assign(result, texts)",
}

CORPUS: Mapping[str, str] = {
    # pandas, whose other attributes the frame of a corpus has.
    "apply": "call et.Corpus([text.lower() for text in corpus.texts])",
    "columns": "it is corpus.metadata.columns",
    "data": "call corpus.to_frame()",
    "df": "call corpus.to_frame()",
    "dropna": "call corpus[corpus.status == 0]; rows without text stay in place, in no topic",
    "drop_duplicates": "call corpus.distinct(); repeated texts count as rows of one document",
    "filter": "call corpus[mask]",
    "frame": "call corpus.to_frame()",
    "head": "call corpus[:10].to_frame()",
    "iloc": "call corpus.take([0, 1])",
    "loc": "call corpus[mask]",
    "map": "call et.Corpus([text.lower() for text in corpus.texts])",
    "query": "call corpus[mask]",
    "sample": 'call et.Corpus(corpus.to_frame().sample(2), text="text", id="id")',
    "shape": "call len(corpus); the columns are corpus.metadata.columns",
    "size": "call len(corpus)",
    "tail": "call corpus[-10:].to_frame()",
    "to_pandas": "call corpus.to_frame()",
    "values": "it is corpus.texts",
    # Other corpora.
    "docs": "it is corpus.texts",
    "documents": "it is corpus.texts",
    "labels": "it is corpus.group; another column is in corpus.metadata",
    "notes": "it is corpus.decisions",
    "save": 'call corpus.to_frame().to_parquet("corpus.parquet")',
    "sents": "call corpus.passages()",
    "split": "call corpus.passages()",
    "text": "it is corpus.texts",
    # What is made of a corpus.
    "embeddings": "call et.SentenceEncoder().encode(list(corpus.texts))",
    "encode": "call et.SentenceEncoder().encode(list(corpus.texts))",
    "fit": "call et.TopicModel().fit(corpus)",
    "search": 'call et.SearchIndex.build(corpus).search("a query")',
    "topics": "call et.TopicModel().fit(corpus)",
    "train_test_split": "call et.training.train_test_split(examples); of rows, take corpus[mask]",
}

INDEX: Mapping[str, str] = {
    # faiss.
    "add_with_ids": "call index.add(texts)",
    "d": "it is index.encoder.dimensions",
    "is_trained": "call index.add(texts); an index needs no training",
    "ntotal": "call len(index)",
    "range_search": 'call index.search("a query", k=100)',
    "reconstruct": "call index.encoder.encode(texts)",
    "remove_ids": "call index.remove(ids)",
    "train": "call index.add(texts); an index needs no training",
    "write_index": 'call index.save("texts.index")',
    # txtai.
    "batchsearch": 'call index.search(["one query", "another query"])',
    "batchtransform": "call index.encoder.encode(texts)",
    "close": "call index.compact(); every change is on disk when its call returns",
    "count": "call len(index)",
    "delete": "call index.remove(ids)",
    "explain": 'call index.search("a query").to_frame()',
    "graph": "call et.TopicModel().fit(corpus)",
    "index": "call index.add(texts)",
    "info": "it is index.settings",
    "similarity": 'call index.search("a query")',
    "transform": "call index.encoder.encode(texts)",
    "upsert": "call index.add(texts, update=True)",
    # Former methods.
    "topics": "call index.attach_topics(model)",
    "update": "call index.add(texts, update=True)",
    # Whoosh.
    "add_document": "call index.add(texts)",
    "add_documents": "call index.add(texts)",
    "commit": "call index.compact(); every change is on disk when its call returns",
    "delete_by_term": "call index.remove(ids)",
    "doc_count": "call len(index)",
    "doc_count_all": "call len(index)",
    "documents": "call list(index)",
    "is_empty": "call len(index)",
    "optimize": "call index.compact()",
    "reader": 'call index.search("a query")',
    "schema": "it is index.columns",
    "searcher": 'call index.search("a query")',
    "update_document": "call index.add(texts, update=True)",
    "writer": "call index.add(texts)",
    # Vector stores, scikit-learn and pandas.
    "add_texts": "call index.add(texts)",
    "as_retriever": 'call index.search("a query")',
    "fit": 'call et.SearchIndex.build(texts, "texts.index")',
    "head": "call [*index][:10]",
    "kneighbors": 'call index.search("a query", k=10)',
    "query": 'call index.search("a query")',
    "shape": "call len(index)",
    "similarity_search": 'call index.search("a query", k=10)',
    "similarity_search_with_score": 'call index.search("a query", k=10)',
}

TRAIN = 'call et.training.fit(encoder, examples, kind="pairs", out="tuned")'
MODULES = "call et.encoders.to_sentence_transformer(encoder)"
MANY = 'call et.batch.embed(encoder, "texts/*.parquet", "vectors")'

ENCODER: Mapping[str, str] = {
    # sentence-transformers.
    "encode_multi_process": MANY,
    "evaluate": "call et.comparison.evaluate_encoders(encoder, examples)",
    "get_max_seq_length": "it is encoder.max_seq_length",
    "get_sentence_features": "call encoder.encode(texts)",
    "half": 'call et.SentenceEncoder(encoder.name, precision="float16")',
    "old_fit": TRAIN,
    "preprocess": "it is encoder.tokenizer",
    "push_to_hub": 'call encoder.save("folder"); then upload the folder',
    "save_to_hub": 'call encoder.save("folder"); then upload the folder',
    "start_multi_process_pool": MANY,
    "stop_multi_process_pool": MANY,
    "tokenize": "it is encoder.tokenizer",
    "truncate_dim": "it is encoder.dimensions",
    # Modules of torch.
    "bfloat16": 'call et.SentenceEncoder(encoder.name, precision="float32")',
    "compile": "call encoder.encode(texts); it needs no compiling",
    "cpu": 'call encoder.to("cpu")',
    "cuda": 'call encoder.to("cuda")',
    "eval": f"{TRAIN}; an encoder has no training mode",
    "float": 'call et.SentenceEncoder(encoder.name, precision="float32")',
    "forward": "call encoder.encode(texts)",
    "load_state_dict": 'call et.SentenceEncoder("folder")',
    "modules": MODULES,
    "named_parameters": MODULES,
    "parameters": MODULES,
    "state_dict": MODULES,
    "train": f"{TRAIN}; an encoder has no training mode",
    "zero_grad": TRAIN,
    # scikit-learn, gensim and others.
    "embed": "call encoder.encode(texts)",
    "get_vector": 'call encoder.encode("word")',
    "most_similar": 'call et.SearchIndex.build(texts, encoder=encoder).search("word")',
    "predict": "call encoder.encode(texts)",
    "wv": 'call encoder.encode("word")',
}

HINTS: Mapping[str, Mapping[str, str]] = {
    "model": MODEL,
    "result": RESULT,
    "corpus": CORPUS,
    "index": INDEX,
    "encoder": ENCODER,
}

MEASURED = "et.inference.Measurement.from_classifier(classifier, texts, gold)"
SHARES = f"call et.inference.shares({MEASURED}, by)"
EXAMPLES = 'et.training.read_examples(pairs, "pairs")'
NAMES: Mapping[str, str] = {
    # sentence-transformers.
    "BinaryClassificationEvaluator": "call et.comparison.evaluate_encoders([encoder], "
    'et.training.read_examples(rows, "classed"))',
    "CosineSimilarityLoss": TRAIN.replace("pairs", "graded"),
    "CrossEncoder": 'call index.search("a query", reranker=reranker)',
    "EmbeddingSimilarityEvaluator": "call et.comparison.evaluate_encoders([encoder], "
    'et.training.read_examples(rows, "graded"))',
    "InformationRetrievalEvaluator": "call et.comparison.evaluate_encoders([encoder], examples)",
    "InputExample": f"call {EXAMPLES}",
    "MultipleNegativesRankingLoss": TRAIN,
    "SentenceTransformer": "it is et.SentenceEncoder",
    "SentenceTransformerTrainer": TRAIN,
    "SentenceTransformerTrainingArguments": "it is et.training.TrainingSettings",
    "TripletLoss": TRAIN.replace("pairs", "triplets"),
    "community_detection": "call et.TopicModel(encoder).fit_predict(texts)",
    "cos_sim": "call encoder.similarity(vectors, vectors)",
    "finetune": TRAIN,
    "fine_tune": TRAIN,
    "paraphrase_mining": "call et.SearchIndex.build(texts).duplicates(0.8)",
    "semantic_search": 'call et.SearchIndex.build(texts).search("a query", 5)',
    "train": TRAIN,
    # BERTopic and KeyBERT.
    "BERTopic": "it is et.TopicModel",
    "ClassTfidfTransformer": "it is et.topics.ClassTfidf",
    "KeyBERTInspired": 'call et.topics.with_keywords(model, "embedding")',
    "MaximalMarginalRelevance": 'call et.topics.with_keywords(model, "diverse", diversity=0.3)',
    "barchart": "call et.plots.terms(model)",
    "documents_map": "call et.plots.map(model)",
    "heatmap": "call et.plots.hierarchy(et.topics.hierarchy(model))",
    "scatter": "call et.plots.map(model)",
    "topics": "call et.plots.map(model)",
    # scikit-learn and gensim.
    "CoherenceModel": "call et.evaluation.coherence(model)",
    "HDBSCAN": "it is et.topics.DensityClusterer",
    "adjusted_rand_score": "call et.evaluation.evaluate_clustering(labels_true, labels_pred)",
    "classification_report": "call et.classification.evaluate(classifier, test, train)",
    "cohen_kappa_score": "call et.evaluation.krippendorff_alpha(ratings)",
    "silhouette_score": "call et.topics.evaluate(model)",
    # Shares that are corrected for errors of labels.
    "correct_shares": SHARES,
    "corrected_shares": SHARES,
    "estimate_shares": SHARES,
    "prevalence": SHARES,
}
"""Names of functions and classes that users look for in a namespace of this package."""

FIGURES: Mapping[str, str] = {
    "forest": "et.plots.forest(et.topics.effects({result}, formula))",
}
"""Figures of what a function of topics returns, beside those with the name of the function."""

FORMER_CONSTRUCTORS: Mapping[str, str] = {
    "from_file": 'call et.Corpus("articles.csv", text="body")',
    "from_pretrained": "call et.SentenceEncoder(name)",
    "of": "call et.Corpus(texts)",
    "of_fields": "call et.Corpus(texts)",
    "read_csv": 'call et.Corpus("articles.csv", text="body")',
}
"""Constructors that a class had, or has in other libraries."""

ANSWERS = {"model": "model", "result": "result", "corpus": "et.TopicModel().fit(corpus)"}
"""What stands for the result of a function of topics or plots, by the kind of object."""


class NamesCalls(type):
    """A class that names the call to make where a public attribute of the class is missing."""

    if not TYPE_CHECKING:

        def __getattr__(cls, name: str) -> Any:
            """Raise an AttributeError with the call to make, or Python's own."""
            hint = FORMER_CONSTRUCTORS.get(name, "")
            if not hint and not name.startswith("_"):
                hint = HINTS.get(getattr(cls, "_kind", ""), {}).get(name, "")
            message = f"type object {cls.__name__!r} has no attribute {name!r}"
            if hint:
                message += f"; {hint}"
            raise AttributeError(message, name=name, obj=cls)


class Habits(metaclass=NamesCalls):
    """An object that names the call to make where a public attribute is missing."""

    _kind: ClassVar[str]
    """Name of the object in hints: a key of `HINTS`."""

    if not TYPE_CHECKING:  # checkers of types shall still find attributes that are missing

        def __getattr__(self, name: str) -> Any:
            """Raise an AttributeError with the call to make, or Python's own."""
            if name.startswith("_"):
                raise _missing(self, name)

            # A property that raised is asked again: what it raised is what the user shall read.
            if hasattr(type(self), name):
                return object.__getattribute__(self, name)

            is_fitted = getattr(type(self), "__sklearn_is_fitted__", None)
            if name.endswith("_") and is_fitted is not None and not is_fitted(self):
                from sklearn.exceptions import NotFittedError

                message = f"this {type(self).__name__} is not fitted yet; call fit(texts) first"
                raise NotFittedError(message)

            hint = self._hint(name)
            if not hint:
                raise _missing(self, name)
            message = f"{type(self).__name__} has no attribute {name!r}; {hint}"
            raise AttributeError(message, name=name)

    def _hint(self, name: str) -> str:
        """Return what to do instead; "" if there is no advice."""
        hint = HINTS[self._kind].get(name, "") or hint_of_frame(name, self._kind)
        return hint or hint_of_functions(name, self._kind)


def _missing(value: Any, name: str) -> AttributeError:
    """Return Python's own error, with which a traceback suggests similar names."""
    message = f"{type(value).__name__!r} object has no attribute {name!r}"
    return AttributeError(message, name=name, obj=value)


def hint_of_frame(name: str, kind: str) -> str:
    """Return where the frame of a corpus has an attribute of pandas; "" if it has none."""
    if kind != "corpus":
        return ""
    import pandas as pd

    return f"it is corpus.to_frame().{name}" if hasattr(pd.DataFrame, name) else ""


def hint_of_functions(name: str, kind: str) -> str:
    """Return the call of a public function of topics or plots; "" if there is none."""
    if kind not in ANSWERS:
        return ""
    import embedtopics

    if name in FIGURES:
        return f"call {FIGURES[name].format(result=ANSWERS[kind])}"
    for subpackage in ("topics", "plots"):
        module = getattr(embedtopics, subpackage)
        function = getattr(module, name) if name in module.__all__ else None
        if inspect.isfunction(function):
            signature = inspect.signature(function)
            call = f"call et.{subpackage}.{name}({_arguments(signature, kind)})"
            is_edit = signature.return_annotation == "TopicResult"
            return f"{call}; {EDIT.replace('model', kind)}" if is_edit else call
    return ""


def _arguments(signature: inspect.Signature, kind: str) -> str:
    """Return the arguments that a function needs, with the object in its place.

    The object is what a parameter of its kind takes, and what `result` takes if it can stand for a
    result. Other arguments have the names of their parameters.
    """
    needed = [
        parameter.name
        for parameter in signature.parameters.values()
        if parameter.default is parameter.empty
    ]
    places = {"result": ANSWERS[kind], kind: kind}
    return ", ".join(places.get(name, name) for name in needed)


def hint_of_name(package: str, name: str) -> str:
    """Return what to do where a namespace lacks a public name; "" if there is no advice."""
    import embedtopics

    hint = NAMES.get(name, "")
    if package == "embedtopics.plots":
        hint = TOPICS.get(f"visualize_{name}", "") or hint
    hint = hint or TOPICS.get(name, "")
    if hint:
        return hint
    namespaces = [one for one in dir(embedtopics) if hasattr(getattr(embedtopics, one), "__path__")]
    for namespace in namespaces:
        if name in getattr(embedtopics, namespace).__all__:
            return f"it is et.{namespace}.{name}"
    listed = dir(getattr(embedtopics, package.rpartition(".")[2], embedtopics))
    similar = difflib.get_close_matches(name, listed, 1)
    place = package.replace("embedtopics", "et", 1)
    return f"did you mean {place}.{similar[0]}?" if similar else ""
