"""Examples: columns of one length, part of them, and a fingerprint."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embedtopics.results import Decision
from embedtopics.training import Examples, read_examples
from tests.factories import refuses


def graded(rows):
    firsts, seconds, scores = zip(*rows, strict=True)
    return Examples("graded", (firsts, seconds), np.array(scores), np.arange(len(rows)))


ROWS = st.lists(
    st.tuples(st.text(max_size=5), st.text(max_size=5), st.floats(0, 1)), min_size=1, max_size=12
)


@pytest.mark.parametrize(
    ("kind", "columns", "labels", "n_rows", "parameter"),
    [
        ("nil", (("a",),), None, 1, "kind"),
        ("texts", (("a", "b"), ("c",)), None, 2, "columns"),
        ("texts", (("a", "b"),), None, 1, "columns"),
        ("texts", (("a", "b"),), np.zeros(1), 2, "columns"),
        ("texts", (), None, 0, "columns"),
        ("nli", (("a",),), None, 1, "columns"),
        ("pairs", (("a",),) * 3, None, 1, "columns"),
        ("triplets", (("a",),) * 2, None, 1, "columns"),
        ("texts", (("a",),) * 2, None, 1, "columns"),
    ],
)
def test_columns_that_do_not_fit_are_refused(kind, columns, labels, n_rows, parameter):
    with refuses(parameter):
        Examples(kind, columns, labels, np.arange(n_rows))


NAMES = ("entailment", "neutral", "contradiction")


@pytest.mark.parametrize(
    ("kind", "labels", "names"),
    [
        ("nli", None, NAMES),
        ("nli", [0, 3], NAMES),
        ("nli", [0, 3], ()),
        ("graded", [0.5, 5.0], ()),
        ("graded", ["a", "b"], ()),
        ("pairs", [1, 1], ()),
        ("labelled", [[1.0], [float("inf")]], ()),
    ],
)
def test_labels_that_would_mean_something_else_are_refused(kind, labels, names):
    values = None if labels is None else np.array(labels)
    columns = (("a", "b"), ("c", "d"))[: 1 if kind == "labelled" else 2]
    with refuses("labels"):
        Examples(kind, columns, values, np.arange(2), names)


def test_what_is_taken_keeps_its_rows_labels_and_account():
    made = Examples(
        "nli", (("a", "b", "c"), ("x", "y", "z")), np.array([2, 0, 1]), np.array([4, 7, 9]),
        ("entailment", "neutral", "contradiction"), "a.csv", (Decision("training", "k", 1, "m"),),
    )  # fmt: skip
    taken = made.take([2, 0])
    assert taken.columns == (("c", "a"), ("z", "x"))
    assert taken.labels.tolist() == [1, 2] and taken.rows.tolist() == [9, 4]
    assert (taken.names, taken.source, taken.decisions) == (made.names, "a.csv", made.decisions)
    assert len(taken) == 2 and len(made) == 3
    assert len(made.take([])) == 0 and made.take([]).columns == ((), ())


@settings(deadline=None)
@given(ROWS, st.randoms())
def test_the_fingerprint_does_not_depend_on_order(rows, random):
    order = list(range(len(rows)))
    random.shuffle(order)
    assert graded(rows).fingerprint == graded(rows).take(order).fingerprint


@settings(deadline=None)
@given(ROWS, ROWS)
def test_the_fingerprint_tells_examples_apart(rows, others):
    same = sorted(map(repr, rows)) == sorted(map(repr, others))
    assert (graded(rows).fingerprint == graded(others).fingerprint) == same


@pytest.mark.parametrize(
    ("kind", "rows"),
    [
        ("nli", [("a", "b", "entailment"), ("c", "d", "neutral")]),
        ("graded", [("a", "b", 0.25), ("c", "d", 1.0)]),
        ("classed", [("a", "b", 0), ("c", "d", 1)]),
        ("pairs", [("a", "b"), ("c", "d")]),
        ("triplets", [("a", "b", "c", "d"), ("e", "f", "g", "h")]),
        ("texts", ["a", "b"]),
    ],
)
def test_a_table_of_examples_is_read_as_the_same_examples(kind, rows):
    examples = read_examples(rows, kind)
    table = examples.take([1, 0]).to_frame()
    assert table.index.tolist() == [1, 0] and table.index.name == "row"
    assert read_examples(table, kind).fingerprint == examples.fingerprint


def test_labels_of_a_classifier_have_a_column_for_each_class():
    numbers = np.array([[0.0, 1.0], [1.0, 0.0]], np.float32)
    examples = Examples("labelled", (("a", "b"),), numbers, np.arange(2), ("no", "yes"))
    assert examples.to_frame().columns.tolist() == ["text", "no", "yes"]
    assert examples.to_frame()["yes"].tolist() == [1, 0]


def test_pairs_with_classes_are_zeros_and_ones():
    rows = [("a", "b", True), ("c", "d", "0"), ("e", "f", 1.0)]
    read = read_examples(rows, "classed")
    assert read.labels.tolist() == [1, 0, 1] and read.labels.dtype == np.int64
    assert len(read_examples([*rows, ("g", "h", None)], "classed", drop_invalid=True)) == 3
    with refuses("label") as caught:
        read_examples([*rows[:2], ("e", "f", 0.5)], "classed")
    assert 'kind "graded"' in str(caught.value)
    with refuses("examples"):
        read_examples([*rows, ("g", "h", None)], "classed")
    with refuses("label"):
        read_examples([("a", "b", 1), ("c", "d", 1)], "classed")
