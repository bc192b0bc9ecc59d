"""Checks of what a caller gave; where terms stand, against looking at every place."""

from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedtopics._utils.checks import checked_between, checked_count, optional_count
from embedtopics.topics.reading._mixtures import find_occurrences, index_terms
from tests.factories import refuses

NO_NUMBERS = (True, np.True_, "1", 1j, [1], Fraction(1, 2), float("nan"), np.nan)


CHECKS = {
    checked_count: ([1, 7, np.int64(7), np.uint8(7), 2**70], [0, -1, 1.0, np.float64(2), None]),
    optional_count: ([1, np.int64(7), None], [0, -1, 1.0]),
    partial(checked_between, low=0, high=1, closed=True): (
        [0, 0.5, np.float32(0.5), 1], [-0.1, 1.1, float("inf"), None],
    ),
    partial(checked_between, low=0, high=1): ([0.5, np.float32(0.5)], [0, 1, -0.1, 1.1, None]),
}  # fmt: skip


@pytest.mark.parametrize("check", CHECKS)
def test_numbers_become_those_of_python_and_what_is_none_is_named(check):
    allowed, refused = CHECKS[check]
    made = int if check in (checked_count, optional_count) else float
    for value in allowed:
        found = check(value, "x")
        assert found == value and (type(found) is made or value is None)
    for value in (*NO_NUMBERS, *refused):
        with refuses("x"):
            check(value, "x")


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
    found = find_occurrences(index_terms(terms, WORDS), ids, offsets)
    expected = []
    for begin, end in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
        stream = [WORDS[i] if i >= 0 else "?" for i in ids[begin:end].tolist()]
        for place in range(len(stream)):
            for n in (1, 2, 3):
                term = " ".join(stream[place : place + n])
                if place + n <= len(stream) and term in terms:
                    expected.append((begin + place, terms.index(term), begin + place + n))
    begins = np.repeat(found.tokens, np.diff(found.first))
    ends = found.tokens[found.ends - 1] + 1
    assert list(zip(begins, found.terms, ends, strict=True)) == expected
    known = [term for term in terms if "unknown" not in term]
    edges = {word for term in known for word in (term.split()[0], term.split()[-1])}
    assert found.tokens.tolist() == [i for i, n in enumerate(ids) if n >= 0 and WORDS[n] in edges]
    assert found.offsets.tolist() == np.searchsorted(found.tokens, offsets).tolist()
