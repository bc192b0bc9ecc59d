"""Held-out examples share no text with those that are learned from."""

import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embedtopics.errors import InputError
from embedtopics.training import Examples, read_examples, split
from embedtopics.training._split import require_size
from tests.factories import refuses

WORDS = st.sampled_from("a b c d e f g h i j k l m n o p q r s t".split())
PAIRS = st.lists(st.tuples(WORDS, WORDS), min_size=2, max_size=25)


def pairs(rows):
    firsts, seconds = zip(*rows, strict=True)
    return Examples("pairs", (firsts, seconds), None, np.arange(len(rows)))


def chains(n, size=2):
    return pairs([(f"{group} {i}", f"{group} {i + 1}") for group in range(n) for i in range(size)])


def keys(examples):
    return {" ".join(text.split()).casefold() for column in examples.columns for text in column}


@settings(deadline=None)
@given(PAIRS, st.integers(0, 5), st.floats(0.1, 0.9))
def test_no_text_is_on_both_sides(rows, seed, share):
    examples = pairs([(f" {a.upper()}", f"{b}\t") for a, b in rows])
    try:
        train, held = split(examples, share, seed, least=1)
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
            found.append(split(pairs(given_rows), 0.5, seed, least=1)[1].fingerprint)
        except InputError:
            found.append(None)
    assert found[0] == found[1]


def test_the_share_is_reached_and_told():
    examples = chains(500)
    train, held = split(examples, 0.1, 3)
    assert len(held) == 100
    for side in (train, held):
        assert side.decisions[-1].name == "held_out_share" and side.decisions[-1].value == 0.1
        assert "500 groups" in side.decisions[-1].message
        assert "largest of 2." in side.decisions[-1].message
    assert (np.diff(train.rows) > 0).all() and (np.diff(held.rows) > 0).all()


def test_seeds_differ_and_every_group_has_its_turn():
    examples = chains(100)
    held = [frozenset(split(examples, 0.3, seed)[1].rows.tolist()) for seed in range(40)]
    assert len(set(held)) == 40
    counts = np.bincount([row for rows in held for row in rows], minlength=200)
    # 40 draws with a chance of 0.3: outside of this range once in ten thousand times a group.
    assert counts.min() >= 2 and counts.max() <= 25


def test_large_groups_are_held_out_as_often_as_small_ones():
    examples = pairs([(f"g{g}", f"g{g} {i}") for g in range(300) for i in range(1 + 2 * (g % 2))])
    share_of_large = []
    for seed in range(20):
        groups = set(split(examples, 0.5, seed)[1].columns[0])
        share_of_large.append(np.mean([int(group[1:]) % 2 for group in groups]))
    assert abs(np.mean(share_of_large) - 0.5) < 0.04  # four standard errors


def test_labels_stay_with_their_texts():
    rows = [(f"a{i}", f"b{i}", i / 99) for i in range(100)]
    for side in split(read_examples(rows, "graded"), 0.3):
        assert side.columns[0] == tuple(f"a{row}" for row in side.rows)
        np.testing.assert_allclose(side.labels, side.rows / 99)


def test_examples_that_all_hang_together_cannot_be_split():
    ring = pairs([(str(i), str(i + 1)) for i in range(100)])
    with refuses("share"):
        split(ring, 0.3)
    star = Examples("triplets", (tuple("ab" * 50), tuple("cd" * 50), ("x",) * 100), None,
                    np.arange(100))  # fmt: skip
    with refuses("share"):
        split(star, 0.3)


def test_too_few_held_out_are_refused_with_how_uncertain_they_would_be():
    with refuses("share") as caught:
        split(chains(15), 0.1)
    # Wilson's interval of 1 of 2, worked out by hand: 0.5 -+ 1.96 sqrt(z2/16 + 1/8) / (1 + z2/2).
    assert "9% to 91% on 2 examples" in str(caught.value)
    assert len(split(chains(15), 0.1, least=2)[1]) == 2


@pytest.mark.parametrize("share", [0, 1, -0.1, 1.5, float("nan"), "a tenth", True])
def test_a_share_that_is_none_is_refused(share):
    with refuses("share"):
        split(chains(30), share)


def test_bad_seeds_and_sizes_are_refused():
    with refuses("random_state"):
        split(chains(30), 0.5, -1)
    with refuses("least"):
        split(chains(30), 0.5, least=0)
    with refuses("share"):
        split(chains(30).take([]), 0.5)


def test_a_handful_of_examples_is_refused():
    require_size(chains(10))
    require_size(chains(1), least=2)
    with refuses("validation"):
        require_size(chains(1))


@pytest.mark.benchmark_data
def test_published_sets_are_split_without_a_text_in_common(data_folder):
    examples = read_examples(data_folder / "lingnli" / "train.jsonl.gz", "nli")
    train, held = split(examples, 0.1, 1)
    assert not keys(train) & keys(held) and abs(len(held) / len(examples) - 0.1) < 0.001
    balance = np.bincount(held.labels) / len(held)
    assert abs(balance - 1 / 3).max() < 0.02
