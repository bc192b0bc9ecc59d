import numpy as np
import pandas as pd

from embedtopics.comparison._compare import given_groups, scored_classes
from embedtopics.comparison._vectors import Log
from embedtopics.corpus import Corpus
from tests.factories import refuses


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


def test_a_column_of_the_corpus_and_bad_labels():
    frame = pd.DataFrame({"text": list("abc"), "party": ["l", "r", "l"]})
    corpus = Corpus.from_frame(frame, text="text")
    groups = given_groups(Log(), "party", corpus)
    assert groups.grouped_by == 'label "party"' and groups.names == ("l", "r")
    for bad in ("prty", ["x", "y"], ["x", "x", None]):
        with refuses("labels"):
            given_groups(Log(), bad, corpus)


def test_classes_of_one_document_are_left_out_and_told():
    _, groups, _ = grouped("abcdef", ["x", "x", "y", "y", "z", None])
    log = Log()
    classes = scored_classes(log, groups)
    z = groups.names.index("z")
    expected = np.where(groups.of_document == z, -1, groups.of_document)
    np.testing.assert_array_equal(classes, expected)
    assert [(d.name, d.value) for d in log.decisions] == [("single_labels", ["z"])]
    _, singles, _ = grouped("abc", ["x", "x", "y"])
    with refuses("labels"):
        scored_classes(Log(), singles)
