"""The parts of units, and the alignment of labels with rows."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embedtopics.probing.probes._units import DEV, TEST, TRAIN, label_of_each_unit, label_units
from embedtopics.probing.results import ProbeTask
from tests.factories import refuses
from tests.probing.made import random_states
from tests.probing.probes.problems import tagged_states

TEXTS = ["a b c", "d e", "a B  c", "f g h i", "j k", "l m n", "o p", "q r s"]


def units_of(states, tags, parts=None, seed=0):
    if parts is not None:
        labels = tuple(tuple(map(str, of_text)) for of_text in tags)
        tags = ProbeTask("t", "word", states.texts, labels, tuple(parts))
    return label_units(states, tags, seed)


def tags_of(texts):
    return [["XY"[i % 2] for i, _ in enumerate(text.split())] for text in texts]


def told(units):
    return {one.name: one for one in units.decisions}


def test_labels_by_text_by_unit_and_as_a_task():
    states = random_states(TEXTS)
    nested = tags_of(TEXTS)
    flat = [label for own in nested for label in own]
    task = ProbeTask("mine", "word", tuple(" ".join(t.split(" ")) for t in TEXTS),
                     tuple(map(tuple, nested)))  # fmt: skip
    for tags in (nested, flat, np.array(flat), task):
        assert label_of_each_unit(states, tags) == flat
    units = label_units(states, task, 0)
    assert units.name == "mine" and sorted(units.rows.tolist()) == list(range(len(flat)))
    numbers = [[len(label) for label in own] for own in nested]
    assert set(label_of_each_unit(states, numbers)) == {"1"}


def test_words_without_label_or_vector_are_left_out_and_counted():
    states = random_states(TEXTS, missing=[1, 4])
    tags = [label for own in tags_of(TEXTS) for label in own]
    tags[0], tags[4], tags[7], tags[8] = pd.NA, None, float("nan"), ""
    units = units_of(states, tags)
    assert sorted(units.rows.tolist()) == [i for i in range(22) if i not in (0, 1, 4, 7, 8)]
    assert told(units)["unlabelled"].value == 4
    assert told(units)["missing_words"].value == 1  # row 4 has neither


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.integers(0, 12), min_size=8, max_size=40).filter(lambda own: len(set(own)) > 6),
    st.integers(0, 5),
    st.randoms(use_true_random=False),
)
def test_equal_sentences_are_in_one_part_whatever_the_order_of_the_texts(numbers, seed, rng):
    texts = [f"Text {n} of {'many ' * (n % 3)}words" for n in numbers]
    units = units_of(random_states(texts), tags_of(texts), seed=seed)
    of_text = np.repeat(np.arange(len(texts)), [len(t.split()) for t in texts])

    def parts_by_text(units, texts, of_text):
        found = {}
        for row, part in zip(units.rows, units.part, strict=True):
            found.setdefault(texts[of_text[row]], set()).add(int(part))
        return found

    first = parts_by_text(units, texts, of_text)
    assert all(len(parts) == 1 for parts in first.values())
    assert {part for parts in first.values() for part in parts} == {TRAIN, DEV, TEST}
    order = rng.sample(range(len(texts)), len(texts))
    shuffled = [texts[i] for i in order]
    other = units_of(random_states(shuffled), tags_of(shuffled), seed=seed)
    of_text = np.repeat(np.arange(len(texts)), [len(t.split()) for t in shuffled])
    assert parts_by_text(other, shuffled, of_text) == first
    assert other.types == units.types and (other.target == units.target).all()


def test_white_space_and_case_make_no_other_sentence():
    units = units_of(random_states(TEXTS), tags_of(TEXTS))
    groups = [set(units.group[np.isin(units.rows, rows)].tolist())
              for rows in ([0, 1, 2], [5, 6, 7])]  # fmt: skip
    assert groups[0] == groups[1] and len(groups[0]) == 1


def test_shares_are_met_to_a_sentence():
    states, tags = tagged_states(n_texts=200)
    units = units_of(states, tags)
    assert np.mean(units.part == TEST) == pytest.approx(0.2, abs=0.005)
    assert np.mean(units.part == DEV) == pytest.approx(0.1, abs=0.005)
    assert f"{len(units.of(TEST))} for the test" in told(units)["parts"].message


def test_parts_of_the_caller_are_kept_and_overlaps_are_reported():
    states = random_states(TEXTS)
    parts = ["train", "train", "test", "dev", "train", "train", "test", "train"]
    units = units_of(states, tags_of(TEXTS), parts)
    assert sorted(units.rows[units.of(TEST)].tolist()) == [5, 6, 7, 17, 18]
    assert sorted(units.rows[units.of(DEV)].tolist()) == [8, 9, 10, 11]
    assert told(units)["test_in_train"].value == 3


def test_a_missing_dev_part_is_taken_from_train():
    states, tags = tagged_states(n_texts=40)
    parts = ["test"] * 10 + ["train"] * 30
    units = units_of(states, tags, parts)
    assert set(states.of_text[units.rows[units.of(TEST)]].tolist()) == set(range(10))
    assert len(units.of(DEV)) == told(units)["dev_from_train"].value
    for missing in ("train", "test"):
        with refuses("parts"):
            units_of(states, tags, ["dev" if part == missing else part for part in parts])


def test_classes_that_cannot_be_learned_are_reported():
    texts = [f"{word} b c" for word in "nopqrstuvw"]
    tags = [["X", "Y", "X"] for _ in texts]
    tags[3][0] = "once"
    tags[5][1] = tags[6][1] = "new"
    parts = ["train"] * 4 + ["dev"] + ["test"] * 5
    units = units_of(random_states(texts), tags, parts)
    assert units.classes == ("X", "Y", "new", "once")
    assert told(units)["single_examples"].value == ["once"]
    assert told(units)["unseen_classes"].value == ["new"]
    assert "2 of 15 test words" in told(units)["unseen_classes"].message
    assert told(units)["few_sentences"].value == 5


def test_labels_and_parts_that_do_not_fit_are_refused():
    tags = tags_of(TEXTS)
    flat = [one for own in tags for one in own]
    for changed, row in [
        (tags[:-1], None), ([*tags[:3], tags[3][:-1], *tags[4:]], 3), (flat[:-1], None),
        ([*tags[:3], "X", *tags[4:]], None), ([0.5] * len(flat), 0), (["X"] * len(flat), None),
        ([""] * len(flat), None),
    ]:  # fmt: skip
        with refuses("labels", row=row):
            units_of(random_states(TEXTS), changed)
    for parts in (["train"] * 7, ["train"] * 7 + ["valid"]):
        with refuses("parts"):
            units_of(random_states(TEXTS), tags, parts)


def test_too_few_sentences_are_refused():
    with refuses("labels"):
        units_of(random_states(["a b", "a b", "c d"]), tags_of(["a b", "a b", "c d"]))
    texts = ["a b", "c d", "e f"]
    parts = ["train", "dev", "test"]
    with refuses("labels"):
        units_of(random_states(texts), [["X", "X"], ["X", "Y"], ["Y", "Y"]], parts)


def test_tasks_on_other_units_or_texts_are_refused():
    states = random_states(TEXTS)
    labels = tuple(map(tuple, tags_of(TEXTS)))
    for unit, texts in (("text", TEXTS), ("word", TEXTS[:-1]), ("word", [*TEXTS[:-1], "z"])):
        with refuses("states"):
            label_of_each_unit(states, ProbeTask("t", unit, tuple(texts), labels))
