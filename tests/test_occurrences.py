"""Where terms stand, against looking at every place."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from embedtopics._utils.occurrences import find_occurrences, index_terms

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
