"""Labels in every usual spelling, scores on their scale; what is neither is named."""

import numpy as np
import pytest

from embedtopics.training import read_examples
from tests.training.rows import NLI, ORDER, refused, told


def test_the_names_of_a_data_set_are_the_order_of_its_numbers():
    datasets = pytest.importorskip("datasets")
    features = datasets.Features(
        premise=datasets.Value("string"),
        hypothesis=datasets.Value("string"),
        label=datasets.ClassLabel(names=["contradiction", "entailment", "neutral"]),
    )
    rows = {"premise": ["a", "b", "c"], "hypothesis": ["d", "e", "f"], "label": [0, 1, -1]}
    read = read_examples(datasets.Dataset.from_dict(rows, features=features), "nli")
    assert [read.names[label] for label in read.labels] == ["contradiction", "entailment"]
    assert told(read)["no_gold_label"] == 1


def test_labels_are_read_in_every_usual_spelling():
    spelled = ["Entailment", "ENTAILED ", "e", "Neutral", "n", "contradictory", "contradicts", "C"]
    read = read_examples([("a", f"b{i}", label) for i, label in enumerate(spelled)], "nli")
    assert read.labels.tolist() == [0, 0, 0, 1, 1, 2, 2, 2]
    assert told(read)["label_spellings"] == 8


def test_other_labels_are_listed_with_counts_and_rows():
    rows = [("a", "b", label) for label in ("entailment", "not_entailment", "not_entailment", None)]
    assert refused(rows, "nli") == "label"


def test_many_other_labels_are_cut_short():
    assert refused([("a", "b", f"label {i}") for i in range(50)], "nli") == "label"


@pytest.mark.parametrize(
    "numbers", [[0, 1, 2], ["0", "1", "2"], [np.int32(0), np.int64(1), 2.0], ["0 ", " 1", "2"]]
)
def test_numbers_need_an_order(numbers):
    rows = [("a", "b", number) for number in numbers]
    assert refused(rows, "nli") == "label"
    read = read_examples(rows, "nli", label_order=("contradiction", "entailment", "neutral"))
    assert [read.names[label] for label in read.labels] == [
        "contradiction",
        "entailment",
        "neutral",
    ]


@pytest.mark.parametrize(
    "order",
    ["entailment", ("entailment", "neutral"), (*ORDER, "neutral"), ("a", "b", "c"), (0, 1, 2)],
)
def test_an_order_that_is_none_is_refused(order):
    assert refused([("a", "b", 0), ("a", "c", 1)], "nli", label_order=order) == "label_order"


@pytest.mark.parametrize("number", [3, -2, 0.5, float("inf"), "4"])
def test_numbers_outside_the_order_are_refused(number):
    assert (
        refused([("a", "b", 0), ("a", "c", 1), ("d", "e", number)], "nli", label_order=ORDER)
        == "label"
    )


def test_pairs_without_gold_label_are_left_out_and_counted():
    read = read_examples([*NLI, ("x", "y", "-"), ("x", "z", "-")], "nli")
    assert len(read) == 3 and told(read)["no_gold_label"] == 2


@pytest.mark.parametrize(
    ("rows", "kind"),
    [
        ([("a", "b", "neutral"), ("c", "d", "Neutral")], "nli"),
        ([("a", "b", "neutral"), ("c", "d", "-")], "nli"),
        ([("a", "b", 1), ("c", "d", True)], "binary"),
        ([("a", "b", 0.5), ("c", "d", 0.5)], "graded"),
    ],
)
def test_labels_that_are_all_the_same_are_refused(rows, kind):
    assert refused(rows, kind) == "label"


def test_labels_that_are_all_the_same_once_rows_are_dropped_are_refused():
    rows = [("a", "b", "neutral"), ("", "d", "entailment"), ("e", "f", "neutral")]
    assert refused(rows, "nli", drop_invalid=True) == "label"


def test_an_absent_class_is_told():
    read = read_examples([NLI[0], NLI[2]], "nli")
    assert told(read)["absent_label"] == "neutral" and read.labels.tolist() == [0, 2]


@pytest.mark.parametrize("nothing", ["", None, float("nan")])
def test_a_missing_label_is_named_or_dropped(nothing):
    rows = [*NLI, ("x", "y", nothing)]
    assert refused(rows, "nli") == "drop_invalid"
    assert len(read_examples(rows, "nli", drop_invalid=True)) == 3


def test_scores_are_brought_to_the_scale_from_0_to_1():
    rows = [("a", "b", 1), ("c", "d", "3"), ("e", "f", np.float32(5))]
    assert read_examples(rows, "graded", scale=(1, 5)).labels.tolist() == [0.0, 0.5, 1.0]
    inside = [("a", "b", 0.25), ("c", "d", 1.0)]
    assert read_examples(inside, "graded").labels.tolist() == [0.25, 1.0]


def test_scores_outside_their_scale_are_named():
    rows = [("a", "b", 1), ("c", "d", 4.5), ("e", "f", 0.5)]
    assert refused(rows, "graded") == "scale"
    assert refused(rows, "graded", scale=(0, 4)) == "scale"
    assert refused(rows, "graded", scale=(1, 5)) == "scale"


@pytest.mark.parametrize("score", [float("inf"), float("-inf")])
def test_infinite_scores_are_outside(score):
    assert refused([("a", "b", 1), ("c", "d", score)], "graded", scale=(0, 5)) == "scale"


def test_missing_scores_are_named_or_dropped():
    rows = [("a", "b", 1.0), ("c", "d", float("nan")), ("e", "f", None), ("g", "h", 0.0)]
    assert refused(rows, "graded") == "drop_invalid"
    assert read_examples(rows, "graded", drop_invalid=True).rows.tolist() == [0, 3]


@pytest.mark.parametrize("score", ["3,5", "high", True, [1]])
def test_what_is_no_score_is_named(score):
    assert refused([("a", "b", 1), ("c", "d", score)], "graded", scale=(0, 5)) == "label"


@pytest.mark.parametrize(
    "scale", [5, (5, 0), (0,), (0, float("inf")), (0, float("nan")), "05", (1, 1)]
)
def test_a_scale_that_is_none_is_refused(scale):
    assert refused([("a", "b", 1), ("c", "d", 0)], "graded", scale=scale) == "scale"


def test_options_of_other_kinds_are_refused():
    assert refused(NLI, "nli", scale=(0, 5)) == "scale"
    assert refused([("a", "b")], "pairs", label_order=ORDER) == "label_order"


def test_binary_labels():
    rows = [
        ("a", "b", 0),
        ("c", "d", "1"),
        ("e", "f", True),
        ("g", "h", np.int64(0)),
        ("i", "j", 1.0),
    ]
    assert read_examples(rows, "binary").labels.tolist() == [0, 1, 1, 0, 1]
    assert refused([("a", "b", 0), ("c", "d", 2)], "binary") == "label"
