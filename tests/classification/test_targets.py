"""Labels in the forms people have them in, and those that nothing can be learned from."""

import numpy as np
import pandas as pd
import pytest

from embedtopics import TextClassifier
from embedtopics.classification import evaluate, label_conflicts, suspicious_labels
from embedtopics.classification._heads import grouped_folds, near_duplicates
from embedtopics.classification._targets import read_targets
from tests.factories import each, refuses


@pytest.mark.parametrize(
    ("y", "classes", "codes"),
    [
        (["b", "a", None, "b"], ["a", "b"], [1, 0, -1, 1]),
        ([3, 1, 1], [1, 3], [1, 0, 0]),
        (pd.Series([2.0, np.nan, 5.0]), [2, 5], [0, -1, 1]),
        (pd.Series(["x", pd.NA, "y"], dtype="string"), ["x", "y"], [0, -1, 1]),
        (np.array([True, False]), [False, True], [1, 0]),
        (pd.Categorical(["lo", "hi"]), ["hi", "lo"], [1, 0]),
    ],
)
def test_labels_are_numbered_in_the_order_of_their_classes(y, classes, codes):
    found = read_targets(y, "softmax")
    assert found.classes.tolist() == classes and found.codes.tolist() == codes
    assert found.has_label.tolist() == [code >= 0 for code in codes]


def test_the_order_of_ordered_classes_is_the_given_one():
    found = read_targets(["low", "high", "middle"], "ordinal", ["low", "middle", "high"])
    assert found.codes.tolist() == [0, 2, 1]


def test_the_error_about_an_unknown_class_lists_the_classes_as_plain_values():
    with refuses("y", row=1) as error:
        read_targets([3, 2], "softmax", np.array([1, 3]), learned=True)
    assert "one of the classes [1, 3]" in str(error.value)


@pytest.mark.parametrize(
    "y",
    [
        [["a", "c"], [], None, ["c"]],
        pd.DataFrame({"a": [1, 0, np.nan, 0], "c": [1, 0, np.nan, 1]}),
    ],
)
def test_several_labels_are_lists_or_a_table(y):
    found = read_targets(y, "multilabel")
    assert found.classes.tolist() == ["a", "c"]
    assert found.codes.tolist() == [[1, 1], [0, 0], [0, 0], [0, 1]]
    assert found.has_label.tolist() == [True, True, False, True]


def test_blank_labels_and_markers_are_no_classes():
    found = read_targets(["no", " ", "yes", "n/a", "\u00a0", "yes"], "softmax")

    assert found.classes.tolist() == ["no", "yes"]
    assert found.codes.tolist() == [0, -1, 1, -1, -1, 1]
    assert [note.value for note in found.notes] == [3]


def test_spellings_of_one_label_are_one_class():
    found = read_targets(
        ["Orléans", "Orle\u0301ans", " Orléans", "New  York", "New York"], "softmax"
    )

    assert found.classes.tolist() == ["New York", "Orléans"]


@pytest.mark.parametrize(
    ("classes", "y", "codes"),
    [
        (["0101", "202"], [202, "0101", 202.0], [1, 0, 1]),
        ([5, 11], ["11", "5"], [1, 0]),
        ([False, True], ["True", "False"], [1, 0]),
    ],
)
def test_labels_have_the_type_that_was_learned(classes, y, codes):
    found = read_targets(y, "softmax", np.array(classes), learned=True)

    assert found.codes.tolist() == codes
    assert found.notes[-1].name == "types_of_labels"


def test_a_code_that_was_not_learned_is_refused():
    with refuses("y", row=1):
        read_targets(["11", "05"], "softmax", [5, 11], learned=True)


def test_the_score_counts_labels_of_another_type():
    texts = [f"plum pear {i}" for i in range(8)] + [f"train rail {i}" for i in range(8)]
    model = TextClassifier("tfidf").fit(texts, ["0101"] * 8 + ["202"] * 8)

    assert model.score(texts, ["0101"] * 8 + [202] * 8) == 1.0
    assert model.score(texts[7:9], ["202", " "]) == 0.0
    assert model.score(texts[7:9], ["202", "202"], sample_weight=[1, 3]) == 0.75


def test_a_score_of_no_labels_is_refused():
    texts = ["ripe plums", "late trains", "sweet pears", "slow trains"]
    model = TextClassifier("tfidf").fit(texts, ["fruit", "rail", "fruit", "rail"])

    with refuses("y"):
        model.score(texts, [None, "", "NA", np.nan])


TEXTS = [f"text {i}" for i in range(8)]


@pytest.mark.parametrize(
    ("y", "row"),
    [
        (["a"] * 8, None),
        (["a", "a", "a", "a", "a", "a", "a", "b"], 7),
        ([0, 1, 0.5, 1, 0, 1, 0, 1], 2),
        (["a", "b", ["a", "b"], "a", "b", "a", "b", "a"], 2),
        (["a", "b", "a", 7, "b", "a", "b", "a"], 3),
        ([None] * 8, None),
        (["a", "b"], None),
        ("abababab", None),
        (np.zeros((8, 2)), None),
    ],
)
def test_labels_that_nothing_can_be_learned_from_are_refused(y, row):
    with refuses("y", row=row):
        TextClassifier("tfidf").fit(TEXTS, y)


def test_a_column_of_ids_is_no_label():
    texts = [f"text {i}" for i in range(8_000)]
    with refuses("y") as caught:
        TextClassifier("tfidf").fit(texts, [f"id{i // 2}" for i in range(8_000)])
    assert "4,000 different labels" in str(caught.value)


def test_empty_texts_with_a_label_are_refused():
    with refuses("texts", row=4):
        TextClassifier("tfidf").fit([*TEXTS[:4], " ", *TEXTS[5:]], list("abababab"))


def test_texts_with_contradicting_labels_are_left_out_and_named():
    y = list("abababab")
    repeated = [*TEXTS[:5], "text  0", *TEXTS[6:]]

    model = TextClassifier("tfidf").fit(repeated, y)

    note = next(one for one in model.decisions_ if one.name == "label_conflicts")
    assert note.value == [0, 5]
    assert "rows 0 and 5" in note.message and "label_conflicts(" in note.message
    without = [row for row in range(8) if row not in (0, 5)]
    alone = TextClassifier("tfidf").fit([repeated[row] for row in without], [y[r] for r in without])
    assert np.array_equal(model.predict_proba(repeated), alone.predict_proba(repeated))
    report = evaluate(model, (repeated, y), (repeated, y))
    assert report.n == 6 and any(one.name == "label_conflicts" for one in report.decisions)
    assert len(suspicious_labels(model, repeated, y)) <= 6


def test_copies_with_one_label_and_texts_without_a_label_are_no_contradictions():
    texts = [*TEXTS, "text 0", "text 1", TEXTS[2]]
    model = TextClassifier("tfidf").fit(texts, [*"abababab", "a", None, "a"])
    assert not any(one.name == "label_conflicts" for one in model.decisions_)
    assert len(model.training_keys_) == 10


def test_several_labels_contradict_if_their_sets_differ():
    y = [["a"], ["b"], ["a", "b"], ["b"], ["a"], ["b"], ["a"], ["b"], ["a"], ["b", "a"]]
    texts = [*TEXTS, "text 0", "text 2"]
    both = TextClassifier("tfidf", head="multilabel")
    assert not any(one.name == "label_conflicts" for one in both.fit(texts, y).decisions_)
    y[8] = ["b"]
    note = next(one for one in both.fit(texts, y).decisions_ if one.name == "label_conflicts")
    assert note.value == [0, 8]


def test_a_class_of_contradicting_rows_alone_is_refused():
    texts = [*TEXTS, "text 0", "text 1"]
    with refuses("y"):
        TextClassifier("tfidf").fit(texts, [*"abababab", "c", "c"])


def test_contradictions_are_listed():
    y = list("abababab")
    repeated = [*TEXTS[:5], "text  0", *TEXTS[6:]]
    table = label_conflicts(repeated, y)
    assert table.to_dict("records") == [
        {"text": "text 0", "label": "a", "n_rows": 1, "rows": [0]},
        {"text": "text 0", "label": "b", "n_rows": 1, "rows": [5]},
    ]


@pytest.mark.parametrize(
    ("name", "value"),
    each(method=["svm"], head=["linear"], calibration=["platt"], class_weight=["fair"],
         classes=[["a", "b", "b"]], settings=[{"epochs": 2}]),
)  # fmt: skip
def test_bad_parameters_are_refused(name, value):
    with refuses(name):
        TextClassifier(**{"encoder": "tfidf", name: value}).fit(TEXTS, list("abababab"))
    for at_fault, parameters in (("classes", {"head": "ordinal"}), ("y", {"classes": ["a"]})):
        with refuses(at_fault):
            TextClassifier("tfidf", **parameters).fit(TEXTS, list("abababab"))


def test_copies_are_one_group_and_never_split():
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(60, 8)).astype(np.float32)
    vectors[30:40] = vectors[:10] + 1e-3
    texts = [f"text {i}" for i in range(60)]
    texts[50:55] = [f"text  {i}" for i in range(20, 25)]
    groups = near_duplicates(texts, vectors)
    assert (groups[30:40] == groups[:10]).all() and (groups[50:55] == groups[20:25]).all()
    assert len(np.unique(groups)) == 45
    folds = grouped_folds(rng.integers(0, 2, 60), groups, 5, 0)
    assert all(len(set(folds[groups == group])) == 1 for group in np.unique(groups))
