"""Loops over windows of words, compiled by Numba."""

from typing import Any

import numba
import numpy as np

from embedtopics._utils.compiling import compiled
from embedtopics.protocols import Float64Array, Int32Array, Int64Array

DOCUMENTS_AT_ONCE = 16
"""Documents of a block, which share one array of counts."""


def _readonly(dtype: Any) -> Any:
    """Return the type of a contiguous, read-only vector."""
    return numba.types.Array(dtype, 1, "C", readonly=True)


ARGUMENTS = (
    _readonly(numba.int64), _readonly(numba.int64), _readonly(numba.int32), _readonly(numba.int64),
    _readonly(numba.float64), _readonly(numba.int64), _readonly(numba.int32),
    _readonly(numba.float64),
    numba.int64, numba.float64, numba.float64[:, ::1],
)  # fmt: skip


@numba.njit(inline="always")
def _compare(
    begin: int, end: int, first: Int64Array, terms: Int32Array, ends: Int64Array,
    factors: Float64Array, rows: Int64Array, topics: Int32Array,
    loadings: Float64Array, counts: Int32Array, products: Float64Array,
) -> float:  # fmt: skip
    """Fill `products` with the products of a window and each topic, and return its length."""
    products[:] = 0.0
    squares = 0.0
    for o in range(first[begin], first[end]):
        if ends[o] <= end:
            counts[terms[o]] += 1
    for o in range(first[begin], first[end]):
        term = terms[o]
        count = counts[term]
        if ends[o] > end or count == 0:
            continue
        counts[term] = 0
        weight = float(count) * factors[term]
        squares += weight * weight
        for entry in range(rows[term], rows[term + 1]):
            products[topics[entry]] += weight * loadings[entry]
    return np.sqrt(squares) if squares > 0.0 else 1.0


@numba.njit(inline="always")
def _credit_terms(
    begin: int, end: int, first: Int64Array, terms: Int32Array, ends: Int64Array,
    factors: Float64Array, rows: Int64Array, topics: Int32Array,
    loadings: Float64Array, products: Float64Array, length: float,
    least: float, sums: Float64Array,
) -> None:  # fmt: skip
    """Add to each place of a window what its terms contribute to the cosines that count."""
    for place in range(begin, end):
        for o in range(first[place], first[place + 1]):
            if ends[o] > end:
                continue
            term = terms[o]
            weight = factors[term] / length
            n_places = ends[o] - place
            for entry in range(rows[term], rows[term + 1]):
                if products[topics[entry]] >= least * length:
                    for inside in range(place, ends[o]):
                        sums[inside, topics[entry]] += weight * loadings[entry] / n_places


@compiled(numba.void(*ARGUMENTS), parallel=True, nogil=True)
def add_to_documents(
    offsets: Int64Array, first: Int64Array, terms: Int32Array, ends: Int64Array,
    factors: Float64Array, rows: Int64Array, topics: Int32Array, loadings: Float64Array,
    window: int, least: float, sums: Float64Array,
) -> None:  # fmt: skip
    """Add up for each document the similarities of its windows with each topic."""
    n_documents = len(offsets) - 1
    n_blocks = (n_documents + DOCUMENTS_AT_ONCE - 1) // DOCUMENTS_AT_ONCE
    for block in numba.prange(n_blocks):
        counts = np.zeros(len(factors), dtype=np.int32)
        products = np.empty(sums.shape[1])
        last = min((block + 1) * DOCUMENTS_AT_ONCE, n_documents)
        for document in range(block * DOCUMENTS_AT_ONCE, last):
            begin, end = offsets[document], offsets[document + 1]
            for left in range(begin, max(end - window, begin) + 1):
                length = _compare(
                    left, min(left + window, end), first, terms, ends, factors,
                    rows, topics, loadings, counts, products,
                )  # fmt: skip
                for topic in range(len(products)):
                    if products[topic] >= least * length:
                        sums[document, topic] += products[topic] / length


@compiled(numba.void(*ARGUMENTS), nogil=True)
def add_to_words(
    offsets: Int64Array, first: Int64Array, terms: Int32Array, ends: Int64Array,
    factors: Float64Array, rows: Int64Array, topics: Int32Array, loadings: Float64Array,
    window: int, least: float, sums: Float64Array,
) -> None:  # fmt: skip
    """As `add_to_documents`, but what the terms of each word contribute, (n_words, n_topics)."""
    counts = np.zeros(len(factors), dtype=np.int32)
    products = np.empty(sums.shape[1])
    for document in range(len(offsets) - 1):
        begin, end = offsets[document], offsets[document + 1]
        for left in range(begin, max(end - window, begin) + 1):
            right = min(left + window, end)
            length = _compare(
                left, right, first, terms, ends, factors,
                rows, topics, loadings, counts, products,
            )  # fmt: skip
            _credit_terms(
                left, right, first, terms, ends, factors,
                rows, topics, loadings, products, length, least, sums,
            )  # fmt: skip
