import numpy as np
import pandas as pd

from embedtopics.comparison._compare import given_groups
from embedtopics.comparison._vectors import Log
from embedtopics.corpus import Corpus


def grouped(texts, labels):
    corpus = Corpus.of(list(texts))
    log = Log()
    groups = given_groups(log, labels, corpus)
    documents = corpus.distinct()
    by_text = {
        corpus.texts[row]: (groups.names[g] if g >= 0 else None)
        for row, g in zip(documents.first_rows.tolist(), groups.of_document.tolist(), strict=True)
    }
    return by_text, groups, {d.name: d.value for d in log.decisions}


def test_labels_of_rows_become_labels_of_documents():
    texts = ["a", "b", "a", "c", None, "a", "d", "b"]
    labels = ["x", "y", "z", "y", "w", "x", None, "w"]
    by_text, groups, told = grouped(texts, labels)
    # "a" is x twice and z once; "b" is y and w alike; the row without text counts for nothing.
    assert by_text == {"a": "x", "b": "w", "c": "y", "d": None}
    assert groups.names == ("w", "x", "y")  # all of one text: by name
    assert told == {"conflicting_labels": 2, "unlabelled": 1}


def test_how_labels_are_read():
    # The largest group comes first.
    assert grouped("abcdef", ["b", "b", "b", "a", "a", "c"])[1].names == ("b", "a", "c")
    for missing in (None, float("nan"), pd.NA, pd.NaT, "", "  "):
        by_text, *_ = grouped("abc", pd.Series(["x", "y", missing], dtype=object))
        assert by_text["c"] is None
    assert set(grouped("abcd", np.array([1.0, 2.0, np.nan, 2.5]))[1].names) == {"1", "2", "2.5"}
    assert set(grouped("abc", np.array([True, False, True]))[1].names) == {"True", "False"}
