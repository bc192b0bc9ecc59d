"""Keywords that users of other libraries pass, and what to pass instead.

`names_keywords` decorates a public function or constructor. Where Python refuses a call because of
its arguments, the TypeError also names the keyword to pass, or the parameters that there are.
"""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Mapping
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

TEXT_COLUMN = 'pass text="column", the column of the texts'
COLUMNS: Mapping[str, str] = {
    name: TEXT_COLUMN
    for name in (
        "text_column", "text_col", "column", "text_field", "content", "content_column", "text_key",
    )
} | {
    "id_column": 'pass id="column"',
    "date": 'pass time="column"',
    "date_column": 'pass time="column"',
    "dates": 'pass time="column"',
    "time_column": 'pass time="column"',
    "timestamps": 'pass time="column"',
    "group_column": 'pass group="column"',
    "category": 'pass group="column"',
    "n_rows": "pass limit=1000",
    "nrows": "pass limit=1000",
}  # fmt: skip
"""Keywords of readers of tables."""

TRAIN = 'call et.training.fit(encoder, examples, kind="pairs", out="tuned", settings={"epochs": 1})'

SEED_WORDS = 'pass constraints=et.topics.SeedWords([["bread", "oven"], ["chess", "rook"]])'
ZERO_SHOT = 'pass constraints=et.topics.ZeroShot(["river floods", "chess"])'
WORD_OPTIONS = 'pass stop_words=["the", "a"], ngram_range=(1, 2), min_df=2'

KEYWORDS: Mapping[str, Mapping[str, str]] = {
    "TopicModel": {
        "ctfidf_model": "pass weighting=et.topics.ClassTfidf()",
        "calculate_probabilities": "leave it out, and call model.transform(texts) after the fit",
        "cluster_model": 'pass clusterer="kmeans", or an object with fit_predict',
        "embedding_model": "pass encoder=, by name or as an object",
        "embeddings": "pass embeddings= to fit",
        "hdbscan_model": "pass clusterer=, an object with fit_predict",
        "language": 'pass languages=["en"]; encoder="multilingual-e5-small" reads 94 languages',
        "min_topic_size": "pass min_cluster_size=",
        "model_name": "pass encoder=",
        "n_clusters": "pass n_topics=",
        "n_components_topics": "pass n_topics=",
        "n_gram_range": "pass ngram_range=",
        "nr_topics": "pass n_topics=",
        "num_topics": "pass n_topics=",
        "representation_model": "call et.topics.with_keywords(model) after the fit",
        "seed": "pass random_state=",
        "seed_topic_list": SEED_WORDS,
        "top_n_words": "call et.topics.terms(model, n_terms=10) after the fit",
        "umap_model": "pass reducer=, an object with fit_transform",
        "vectorizer_model": WORD_OPTIONS,
        "verbose": "pass show_progress=True",
        "y": "pass constraints=et.topics.PartialLabels(y)",
        "zeroshot_min_similarity": ZERO_SHOT,
        "zeroshot_topic_list": ZERO_SHOT,
    },
    "SentenceEncoder": {
        "cache_folder": "set the variable EMBEDTOPICS_CACHE, or HF_HOME for checkpoints",
        "dim": "pass truncate_dim=",
        "dimensions": "pass truncate_dim=",
        "max_length": "pass max_seq_length=",
        "model_name_or_path": "pass the name first: SentenceEncoder(name)",
        "modules": "pass the folder of the saved modules first: SentenceEncoder(folder)",
        "runtime": "pass backend=",
    },
    "TextClassifier": {
        **dict.fromkeys(
            ("classifier", "estimator", "model", "clf"),
            'the default method="frozen" fits a logistic regression on the vectors; pass '
            "class_weight= or calibration=",
        ),
        "embedding_model": "pass encoder=",
        "epochs": 'pass settings={"epochs": 1} with method="fine_tune"',
        "labels": "pass the labels to fit(X, y)",
        "learning_rate": 'pass settings={"learning_rate": 2e-5} with method="fine_tune"',
        "model_name": "pass encoder=",
        "training": 'pass settings={"epochs": 1}',
    },
    "Corpus": {**COLUMNS, "docs": "pass the texts first: Corpus(texts)"},
    "SearchIndex.build": {
        **COLUMNS,
        "embedding_model": "pass encoder=",
        "folder": "pass the folder second: SearchIndex.build(corpus, folder)",
        "model": "pass encoder=",
        "path": "pass the folder second: SearchIndex.build(corpus, folder)",
    },
    "SearchIndex.add": {**COLUMNS},
    "SearchIndex.search": {
        "filter": "pass where=\"source == 'press'\"",
        "filters": "pass where=\"source == 'press'\"",
        "limit": "pass k=",
        "n": "pass k=",
        "n_results": "pass k=",
        "query": "pass the query first: search(query)",
        "size": "pass k=",
        "top_k": "pass k=",
        "topn": "pass k=",
        "weights": "pass weight=",
    },
    "BaseEncoder.encode": {
        "layers": "call et.probing.hidden_states(encoder, texts, layers=[4])",
        "output_hidden_states": "call et.probing.hidden_states(encoder, texts, layers=[4])",
    },
    "BaseEncoder.fit": dict.fromkeys(
        (
            "batch_size", "epochs", "evaluator", "loss", "optimizer_params", "output_path", "steps",
            "steps_per_epoch", "train_objectives", "warmup_steps",
        ),
        TRAIN,
    ),
}  # fmt: skip
"""By function, what to pass for a keyword of another library."""


def names_keywords(function: Callable[P, T]) -> Callable[P, T]:
    """Let the TypeError of a refused call say what to pass instead."""

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return function(*args, **kwargs)
        except TypeError as error:
            advice = _advice(function, args, kwargs)
            if not advice:  # the arguments are right, and the error comes from inside
                raise
            raise TypeError(f"{error}; {advice}") from None

    return call


def _advice(
    function: Callable[..., object], args: tuple[object, ...], kwargs: Mapping[str, object]
) -> str:
    """Return what to pass where a function cannot take the arguments; "" where it can."""
    signature = inspect.signature(function)
    try:
        signature.bind(*args, **kwargs)
    except TypeError:
        pass
    else:
        return ""

    hints = KEYWORDS.get(function.__qualname__.removesuffix(".__init__"), {})
    names = [name for name in signature.parameters if name != "self"]
    for keyword in kwargs:
        if keyword in names:
            continue
        if keyword in hints:
            return hints[keyword]
        similar = difflib.get_close_matches(keyword, names, 1)
        if similar:
            return f"did you mean {similar[0]}?"
    return f"it takes {', '.join(names)}"
