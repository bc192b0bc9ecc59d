"""Held-out examples share no text with those that are learned from, or that is counted."""

import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embedtopics.errors import InputError
from embedtopics.training import Examples, overlap, read_examples, train_test_split
from embedtopics.training._split import refuse_overlap, require_size
from tests.factories import refuses

WORDS = st.sampled_from("a b c d e f g h i j k l m n o p q r s t".split())
PAIRS = st.lists(st.tuples(WORDS, WORDS), min_size=2, max_size=25)


def make(rows, kind="pairs"):
    labels = {"nli": np.arange(len(rows)) % 3, "graded": np.linspace(0, 1, len(rows))}.get(kind)
    names = ("entailment", "neutral", "contradiction") if kind == "nli" else ()
    columns = tuple(zip(*rows, strict=True))
    return Examples(kind, columns, labels, np.arange(len(rows)), names, "made")


def chains(n, size=2):
    return make([(f"{group} {i}", f"{group} {i + 1}") for group in range(n) for i in range(size)])


def keys(examples):
    return {" ".join(text.split()).casefold() for column in examples.columns for text in column}


@settings(deadline=None)
@given(PAIRS, st.integers(0, 5), st.floats(0.1, 0.9))
def test_no_text_is_on_both_sides(rows, seed, share):
    examples = make([(f" {a.upper()}", f"{b}\t") for a, b in rows])
    try:
        train, held = train_test_split(examples, share, min_size=1, random_state=seed)
    except InputError:
        graph = networkx.Graph(list(rows))
        smallest = min(
            sum(row[0] in part for row in rows) for part in networkx.connected_components(graph)
        )
        # Refused only where no group is small enough.
        assert smallest > min(round(share * len(rows)), len(rows) - 1)
        return
    assert not keys(train) & keys(held)
    assert sorted([*train.rows, *held.rows]) == list(range(len(rows)))
    assert 1 <= len(held) <= round(share * len(rows)) and len(train)


@settings(deadline=None)
@given(PAIRS, st.integers(0, 5), st.randoms())
def test_the_same_examples_are_held_out_in_whatever_order_they_come(rows, seed, random):
    shuffled = list(rows)
    random.shuffle(shuffled)
    found = []
    for given_rows in (rows, shuffled):
        try:
            found.append(
                train_test_split(make(given_rows), 0.5, min_size=1, random_state=seed)[
                    1
                ].fingerprint
            )
        except InputError:
            found.append(None)
    assert found[0] == found[1]


def test_the_share_is_reached_and_told():
    examples = chains(500)
    train, held = train_test_split(examples, 0.1, random_state=3)
    assert len(held) == 100
    for side in (train, held):
        assert side.decisions[-1].name == "held_out_share" and side.decisions[-1].value == 0.1
        assert "500 groups" in side.decisions[-1].message
        assert "largest of 2." in side.decisions[-1].message
    assert (np.diff(train.rows) > 0).all() and (np.diff(held.rows) > 0).all()


def test_seeds_differ_and_every_group_has_its_turn():
    examples = chains(100)
    held = [
        frozenset(train_test_split(examples, 0.3, random_state=seed)[1].rows.tolist())
        for seed in range(40)
    ]
    assert len(set(held)) == 40
    counts = np.bincount([row for rows in held for row in rows], minlength=200)
    # 40 draws with a chance of 0.3: outside of this range once in ten thousand times a group.
    assert counts.min() >= 2 and counts.max() <= 25


def test_too_few_held_out_are_refused():
    with refuses("test_size"):
        train_test_split(chains(15), 0.1)
    assert len(train_test_split(chains(15), 0.1, min_size=2)[1]) == 2


RING = [(str(i), str(i + 1)) for i in range(100)]
STAR = [("ab"[i % 2], "cd"[i % 2], "x") for i in range(100)]


@pytest.mark.parametrize(
    ("examples", "options", "parameter"),
    [
        (make(RING), {"test_size": 0.3}, "test_size"),  # all hang together
        (make(STAR, "triplets"), {"test_size": 0.3}, "test_size"),
        *(
            (chains(30), {"test_size": s}, "test_size")
            for s in (0, 1, -0.1, 1.5, np.nan, "a tenth", True)
        ),
        (chains(30), {"test_size": 0.5, "random_state": -1}, "random_state"),
        (chains(30), {"test_size": 0.5, "min_size": 0}, "min_size"),
        (chains(30).take([]), {"test_size": 0.5}, "test_size"),
    ],
)
def test_what_cannot_be_split_is_refused(examples, options, parameter):
    with refuses(parameter):
        train_test_split(examples, **options)


def test_a_handful_of_held_out_examples_is_refused():
    require_size(chains(10))
    require_size(chains(1), min_size=2)
    with refuses("validation"):
        require_size(chains(1))


FEW_WORDS = st.sampled_from("a b c d e f g".split())
FEW_PAIRS = st.lists(st.tuples(FEW_WORDS, FEW_WORDS), min_size=1, max_size=10)
KINDS = st.sampled_from(["nli", "graded", "pairs"])


@settings(deadline=None)
@given(FEW_PAIRS, KINDS, FEW_PAIRS, KINDS)
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


def test_a_triplet_is_its_pairs():
    train = make([("a", "b", "n"), ("c", "d", "m")], "triplets")
    test = make([("n", "a"), ("b", "n"), ("c", "d")])
    assert overlap(train, test).repeated.tolist() == [0, 2]
    assert overlap(train, test).known.tolist() == [0, 1, 2]


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
def test_published_splits_of_stsb_share_pairs_and_of_lingnli_none(data_folder):
    parts = [read_examples(data_folder / "stsb" / f"en_{part}.jsonl.gz", "graded", scale=(0, 5))
             for part in ("train", "test")]  # fmt: skip
    with refuses("held-out"):
        refuse_overlap(*parts)
    parts = [read_examples(data_folder / "lingnli" / f"{part}.jsonl.gz", "nli")
             for part in ("train", "val")]  # fmt: skip
    refuse_overlap(*parts)
