"""The topic model, and the questions that a fitted result answers."""

from embedtopics._utils.public import attach

MOVED = {
    "adopt": "et.topics.extend(result, corpus, adopt=True).result",
    "TopicModel": "et.TopicModel",
    "at_resolution": "et.topics.recluster",
    "inspect_corpus": "et.topics.inspect",
    "keywords": "et.topics.with_keywords",
    "load_result": "et.TopicResult.load",
    "reassign": "et.topics.reduce_outliers",
    "reduce": "et.topics.merge(result, n_topics=12)",
    "report_card": "et.topics.evaluate",
    "save_result": "result.save(folder)",
    "score_labels": "et.topics.with_name_scores",
    "suggest_resolution": "et.topics.levels(result, n_replicates=6)",
    "token_topics": "et.topics.mixture",
    "top_words": "et.topics.terms(result, n_terms=10, single_words=True)",
    "tree_text": "et.topics.hierarchy(result).to_text",
    "validation_sheets": "et.annotation.validation_sheets",
    "without_texts": "result.save(folder, texts=False)",
}
"""Former public names, and what to use now."""

__getattr__, __dir__, __all__ = attach(__name__, __file__, MOVED)
