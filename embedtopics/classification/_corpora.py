"""Classify every text of a corpus."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from embedtopics.classification._classifier import TextClassifier, check_classifier
from embedtopics.classification._heads import threshold_for
from embedtopics.corpus._corpus import as_corpus
from embedtopics.corpus._texts import TEXT

if TYPE_CHECKING:
    import pandas as pd


def classify(
    classifier: TextClassifier, corpus: Any, *, max_error: float | None = None
) -> pd.DataFrame:
    """Predict the class of every text of a corpus.

    `embedtopics batch classify` does so for files that are larger than memory.

    Parameters
    ----------
    classifier : TextClassifier
        A fitted classifier.
    corpus : Corpus, or any input of `Corpus`
    max_error : float, optional
        Largest share of errors, as in `TextClassifier.predict`; less confident rows get no label.

    Returns
    -------
    DataFrame
        Columns row, id, label, confidence, and the probability of each class. Rows without text
        have no label.

    Examples
    --------
    >>> import embedtopics as et
    >>> texts = ["ripe plums", "late trains", "sweet pears", "slow trains"]
    >>> labels = ["fruit", "rail", "fruit", "rail"]
    >>> classifier = et.TextClassifier("tfidf").fit(texts, labels)
    >>> corpus = ["plums in a jar", "", "slow trains again"]
    >>> et.classification.classify(classifier, corpus)[["row", "label"]]
       row  label
    0    0  fruit
    1    1   <NA>
    2    2   rail
    """
    import pandas as pd

    check_classifier(classifier, "et.classification.classify(classifier, corpus)")
    threshold = -np.inf
    if max_error is not None:
        threshold = threshold_for(max_error, classifier.risk_coverage())
    read = as_corpus(corpus)
    rows = np.flatnonzero(read.status == TEXT)
    chances = classifier.predict_proba([read.texts[row] for row in rows.tolist()])
    names, is_multilabel = classifier.classes_.tolist(), classifier.head == "multilabel"
    labels: list[Any] = [None] * len(read)
    for row, of_row in zip(rows.tolist(), chances, strict=True):
        if is_multilabel:
            labels[row] = [name for name, p in zip(names, of_row, strict=True) if p >= 0.5]
        elif of_row.max() >= threshold:
            labels[row] = names[int(of_row.argmax())]
    columns = np.full((len(read), len(names)), np.nan, dtype=np.float32)
    columns[rows] = chances
    # An explicit type: a part without any label must have the same one.
    dtypes = {"i": "Int64", "U": "string", "b": "boolean"}
    kind = "O" if is_multilabel else classifier.classes_.dtype.kind
    table = {
        "row": np.arange(len(read)),
        "id": read.ids,
        "label": pd.Series(labels, dtype=dtypes.get(kind, object)),
        "confidence": columns.max(axis=1),
    }
    return pd.DataFrame(table | {f"p_{name}": columns[:, i] for i, name in enumerate(names)})
