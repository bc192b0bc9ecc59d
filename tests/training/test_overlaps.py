"""What two sets have in common, against counting by hand."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embedtopics.training import Examples, overlap, read_examples
from embedtopics.training._split import refuse_overlap
from tests.factories import refuses

WORDS = st.sampled_from("a b c d e f g".split())
PAIRS = st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=10)
KINDS = st.sampled_from(["nli", "graded", "pairs"])


def make(rows, kind="pairs"):
    labels = {"nli": np.arange(len(rows)) % 3, "graded": np.linspace(0, 1, len(rows))}.get(kind)
    names = ("entailment", "neutral", "contradiction") if kind == "nli" else ()
    columns = tuple(zip(*rows, strict=True))
    return Examples(kind, columns, labels, np.arange(len(rows)), names, "made")


@settings(deadline=None)
@given(PAIRS, KINDS, PAIRS, KINDS)
def test_overlap_is_what_comparing_every_two_examples_gives(first, kind, second, other_kind):
    train, test = make(first, kind), make([(f"{a} ", b.upper()) for a, b in second], other_kind)
    found = overlap(train, test)
    directed = kind == other_kind == "nli"

    def same(one, other):
        return one == other or (not directed and one == other[::-1])

    known = {text for row in first for text in row}
    expected = [i for i, row in enumerate(second) if any(same(row, other) for other in first)]
    assert found.repeated.tolist() == expected
    assert found.known.tolist() == [i for i, row in enumerate(second) if set(row) <= known]
    assert found.touched.tolist() == [i for i, row in enumerate(second) if set(row) & known]
    assert found.n_shared_texts == len(known & {text for row in second for text in row})
    assert (found.n_train, found.n_test) == (len(first), len(second))


@settings(deadline=None)
@given(PAIRS, KINDS, PAIRS, KINDS)
def test_what_is_shared_is_the_same_from_both_ends(first, kind, second, other_kind):
    one, other = make(first, kind), make(second, other_kind)
    there, back = overlap(one, other), overlap(other, one)
    assert there.n_shared_examples == back.n_shared_examples
    assert there.n_shared_texts == back.n_shared_texts


@settings(deadline=None)
@given(PAIRS, KINDS, PAIRS, KINDS)
def test_nothing_is_shared_with_what_is_left(first, kind, second, other_kind):
    train, test = make(first, kind), make(second, other_kind)
    found = overlap(test, train)
    for texts, gone in ((True, found.touched), (False, found.repeated)):
        if len(gone) == len(train):
            with refuses("held_out"):
                train.without(test, texts=texts)
            continue
        left = train.without(test, texts=texts)
        assert left.rows.tolist() == sorted(set(range(len(train))) - set(gone.tolist()))
        assert left.decisions[-1].value == len(gone)
        again = overlap(left, test)
        assert not again.n_shared_examples and not (texts and again.n_shared_texts)


def test_a_triplet_is_its_pairs():
    train = make([("a", "b", "n"), ("c", "d", "m")], "triplets")
    test = make([("n", "a"), ("b", "n"), ("c", "d")])
    assert overlap(train, test).repeated.tolist() == [0, 2]
    assert overlap(train, test).known.tolist() == [0, 1, 2]


def test_texts_are_compared_one_by_one():
    train = Examples("texts", (("a", "b"),), None, np.arange(2))
    assert overlap(
        train, Examples("texts", (("B ", "c"),), None, np.arange(2))
    ).repeated.tolist() == [0]
    # A text that is read without a label gives no pair away.
    found = overlap(train, make([("a", "b")]))
    assert not len(found.repeated) and found.known.tolist() == [0]


def test_several_test_sets_are_left_out_at_once():
    train = make([("a", "b"), ("c", "d"), ("e", "f")])
    assert train.without(make([("a", "x")]), make([("y", "D")]), texts=True).rows.tolist() == [2]
    assert train.without(texts=True).rows.tolist() == [0, 1, 2]


def test_examples_in_both_are_refused_with_their_rows():
    train = make([("a", "b"), ("c", "d")])
    test = make([("x", "y"), ("B", "a "), ("c", "x"), ("d", "c")])
    with refuses("test"):
        refuse_overlap(train, test, what="test")
    (allowed,) = refuse_overlap(train, test, allow=True)
    assert (allowed.name, allowed.value) == ("overlap_allowed", 2)
    assert allowed.message == (
        "Of 4 held-out examples, 2 (50.0%) occur in the training set, 2 (50.0%) have all their "
        "texts there and 3 (75.0%) at least one."
    )


def test_shared_texts_are_told_and_no_overlap_says_nothing():
    train = make([("a", "b")])
    (shared,) = refuse_overlap(train, make([("a", "c"), ("d", "e")]))
    assert (shared.name, shared.value) == ("shared_texts", 1)
    assert refuse_overlap(train, make([("x", "y")])) == ()


@pytest.mark.benchmark_data
def test_half_of_the_test_pairs_of_sick_have_both_sentences_in_its_training_set(data_folder):
    table = pd.read_json(data_folder / "sick" / "sick.jsonl.gz", lines=True)
    train, test = (
        read_examples(table[table["split"] == part], "graded", scale=(1, 5))
        for part in ("train", "test")
    )
    found = overlap(train, test)
    assert round(len(found.known) / len(test), 2) == 0.51
    assert len(test) == 4_927 and 0.97 < len(found.touched) / len(test) < 0.98


@pytest.mark.benchmark_data
def test_published_splits_of_stsb_share_pairs_and_of_lingnli_none(data_folder):
    parts = [read_examples(data_folder / "stsb" / f"en_{part}.jsonl.gz", "graded", scale=(0, 5))
             for part in ("train", "test")]  # fmt: skip
    with refuses("held-out"):
        refuse_overlap(*parts)
    refuse_overlap(parts[0].without(parts[1]), parts[1])
    parts = [read_examples(data_folder / "lingnli" / f"{part}.jsonl.gz", "nli")
             for part in ("train", "val")]  # fmt: skip
    refuse_overlap(*parts)
