from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedtopics.errors import InputError
from embedtopics.retrieval.dense._exact import merge_nearest


@given(
    lists=st.lists(
        st.lists(st.tuples(st.sampled_from([0.1, 0.5, 0.9]), st.integers(0, 20)), max_size=6),
        min_size=1,
        max_size=4,
    ),
    k=st.integers(1, 12),
)
def test_equals_sorting_all_of_them(lists, k):
    found, expected = [], []
    for segment, entries in enumerate(lists):
        entries = sorted({row: near for near, row in entries}.items(), key=lambda e: (-e[1], e[0]))
        near = np.full((1, 6), -np.inf, dtype=np.float32)
        rows = np.full((1, 6), -1, dtype=np.int64)
        for place, (row, similarity) in enumerate(entries):
            near[0, place], rows[0, place] = similarity, row
            expected.append((-np.float32(similarity), segment, row))
        found.append((near, rows))
    near, segments, rows = merge_nearest(found, k)
    expected = sorted(expected)[:k]
    n = len(expected)
    assert list(zip(-near[0, :n], segments[0, :n], rows[0, :n], strict=True)) == expected
    assert near.shape == segments.shape == rows.shape == (1, k)
    assert (rows[0, n:] == -1).all() and (segments[0, n:] == -1).all()
    assert (near[0, n:] == -np.inf).all()
    assert (near.dtype, segments.dtype, rows.dtype) == (np.float32, np.int64, np.int64)


def test_lists_of_different_lengths_and_the_default_k():
    short = np.array([[0.5]], dtype=np.float32), np.array([[4]])
    long = np.array([[0.7, 0.5, 0.1]], dtype=np.float32), np.array([[8, 2, 1]])
    near, segments, rows = merge_nearest([short, long])
    assert rows.tolist() == [[8, 4, 2]] and segments.tolist() == [[1, 0, 1]]
    np.testing.assert_array_equal(near, np.array([[0.7, 0.5, 0.5]], dtype=np.float32))


def test_what_does_not_belong_together_is_refused():
    one = np.zeros((1, 2), dtype=np.float32), np.zeros((1, 2), dtype=np.int64)
    two = np.zeros((2, 2), dtype=np.float32), np.zeros((2, 2), dtype=np.int64)
    with pytest.raises(InputError, match="at least one segment"):
        merge_nearest([])
    with pytest.raises(InputError, match="segment 1 has"):
        merge_nearest([one, two])
