"""Checks of what a caller gave; where terms stand, against looking at every place."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedtopics._utils.checks import checked_count, checked_level, checked_share, optional_count
from embedtopics._utils.occurrences import find_occurrences, index_terms
from embedtopics.errors import InputError

NO_NUMBERS = (True, np.True_, "1", None, 1j, [1], Fraction(1, 2), float("nan"), np.nan)


@pytest.mark.parametrize("value", [1, 7, np.int64(7), np.uint8(7), 2**70])
def test_counts_become_integers_of_python(value):
    assert checked_count(value, "n") == value and type(checked_count(value, "n")) is int
    assert type(optional_count(value, "n")) is int


@pytest.mark.parametrize("value", [*NO_NUMBERS, 0, -1, 1.0, np.float64(2)])
def test_what_is_no_count_is_named(value):
    with pytest.raises(InputError, match=r"^n must be an integer from 1 up; got "):
        checked_count(value, "n")
    if value is not None:
        with pytest.raises(InputError, match=r"^n must be an integer from 1 up or None; got "):
            optional_count(value, "n")


def test_the_least_is_allowed():
    assert checked_count(0, "n", 0) == 0 and optional_count(None, "n") is None
    with pytest.raises(InputError, match="from 2 up; got 1"):
        checked_count(1, "n", 2)


@pytest.mark.parametrize("value", [0.5, np.float32(0.5)])
def test_shares_and_levels_become_floats(value):
    assert checked_share(value, "x") == checked_level(value) == 0.5
    assert type(checked_share(value, "x")) is type(checked_level(value)) is float


def test_shares_hold_their_ends_and_levels_do_not():
    assert [checked_share(v, "x") for v in (0, 1)] == [0.0, 1.0]
    for value in (0, 1, 0.0, 1.0):
        with pytest.raises(InputError, match=r"^alpha must be between 0 and 1; got "):
            checked_level(value, "alpha")


@pytest.mark.parametrize("value", [*NO_NUMBERS, -0.1, 1.1, float("inf")])
def test_what_is_no_share_is_named(value):
    with pytest.raises(InputError, match=r"^x must be a number from 0 to 1; got "):
        checked_share(value, "x")
    with pytest.raises(InputError, match="must be between 0 and 1; got "):
        checked_level(value)


WORDS = ("a", "b", "c", "d")
terms = st.lists(
    st.lists(st.sampled_from([*WORDS, "unknown"]), min_size=1, max_size=3).map(" ".join),
    unique=True, max_size=8,
)  # fmt: skip
documents = st.lists(st.lists(st.integers(-1, 3), max_size=6), max_size=4)


@given(terms, documents)
def test_every_place_of_every_term_is_found(terms, documents):
    ids = np.array([i for document in documents for i in document], dtype=np.int32)
    offsets = np.cumsum([0, *map(len, documents)])
    found = find_occurrences(index_terms(terms, WORDS), ids, offsets, edges_only=False)
    expected = []
    for begin, end in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
        stream = [WORDS[i] if i >= 0 else "?" for i in ids[begin:end].tolist()]
        for place in range(len(stream)):
            for n in (1, 2, 3):
                term = " ".join(stream[place : place + n])
                if place + n <= len(stream) and term in terms:
                    expected.append((begin + place, terms.index(term), begin + place + n))
    begins = np.repeat(np.arange(len(ids)), np.diff(found.first)).tolist()
    assert list(zip(begins, found.terms.tolist(), found.ends.tolist(), strict=True)) == expected
    np.testing.assert_array_equal(found.offsets, offsets)
    np.testing.assert_array_equal(found.tokens, np.arange(len(ids)))
