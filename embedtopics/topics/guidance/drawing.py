"""Groups in the layout: ties inside them, and looser ties between them."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from embedtopics.neighbors import build_graph
from embedtopics.protocols import FloatArray, Int32Array, Int64Array
from embedtopics.results import Guide

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

__all__ = ["draw_together", "groups_of_places", "part_groups", "tie_groups"]

UNKNOWN_DISTANCE = 1.0
FAR_DISTANCE = 2.5
"""Distances between classes of umap-learn: that of an unknown class, and that of another at no
weight."""

SMALL_GROUP = 128
"""Documents of a group up to which all pairs are compared here: there may be thousands of such
groups, for each of which a search would wait for its threads."""


def draw_together(
    fuzzy: csr_matrix, embeddings: FloatArray, guide: Guide | None, groups: Int32Array, k: int
) -> csr_matrix:
    """Return the fuzzy graph of a layout as a guide wants it; without a guide, as it is.

    Parameters
    ----------
    fuzzy : csr_matrix of float32, shape (n, n)
    embeddings : float32 ndarray of shape (n, n_dimensions)
        Unit vectors of what is laid out.
    guide : Guide or None
    groups : int32 ndarray of shape (n,)
        Groups of what is laid out; -1 where there is none.
    k : int
        Ties of each document to others of its group.
    """
    if guide is None:
        return fuzzy
    if guide.tie:
        fuzzy = tie_groups(fuzzy, embeddings, groups, guide.tie, k)
    if guide.part:
        fuzzy = part_groups(fuzzy, groups, guide.part)
    return fuzzy


def tie_groups(
    fuzzy: csr_matrix, embeddings: FloatArray, groups: Int32Array, weight: float, k: int
) -> csr_matrix:
    """Unite a fuzzy graph with ties of one weight to the nearest others of each group.

    Ties that fell with the distance, as those of the layout do, would hold together what is
    together already, and leave the scattered where they are.

    Parameters
    ----------
    fuzzy : csr_matrix of float32, shape (n, n)
    embeddings : float32 ndarray of shape (n, n_dimensions)
    groups : int32 ndarray of shape (n,)
    weight : float
        0 to 1.
    k : int

    Returns
    -------
    csr_matrix of float32, shape (n, n)
        Weights a + w - a·w of the ties a of all where one of two is among the k nearest of its
        group to the other; elsewhere as they were.
    """
    from scipy.sparse import csr_matrix

    rows, columns = [], []
    by_group = np.argsort(groups, kind="stable")
    begins = np.searchsorted(groups[by_group], np.arange(int(groups.max(initial=-1)) + 2))
    for begin, end in pairwise(begins.tolist()):
        ties = _nearest_others(by_group[begin:end], embeddings, k)
        rows.append(ties[0])
        columns.append(ties[1])
    if not any(map(len, rows)):
        return fuzzy
    ends = (np.concatenate(rows), np.concatenate(columns))
    weights = np.full(len(ends[0]), weight, dtype=np.float32)
    directed = csr_matrix((weights, ends), shape=fuzzy.shape)
    tied = directed.maximum(directed.T)
    return _tidy(fuzzy + tied - fuzzy.multiply(tied))


def _nearest_others(
    members: Int64Array, embeddings: FloatArray, k: int
) -> tuple[Int64Array, Int64Array]:
    """Return each document of a group, as often as it has neighbours there, and these."""
    if len(members) > SMALL_GROUP:
        near = build_graph(embeddings[members], k).indices
    else:
        vectors = embeddings[members]
        similarities = np.einsum("id,jd->ij", vectors, vectors)
        np.fill_diagonal(similarities, -np.inf)
        others = min(k, len(members) - 1)
        near = np.argsort(-similarities, axis=1, kind="stable")[:, :others].astype(np.int32)
    return np.repeat(members, near.shape[1]), members[near.ravel()]


def part_groups(fuzzy: csr_matrix, groups: Int32Array, weight: float) -> csr_matrix:
    """Loosen the ties between groups, as umap-learn's categorical intersection does.

    Parameters
    ----------
    fuzzy : csr_matrix of float32, shape (n, n)
    groups : int32 ndarray of shape (n,)
        -1 where unknown.
    weight : float
        0 to 1; at 1 there are no ties between groups.

    Returns
    -------
    csr_matrix of float32, shape (n, n)
        Each document's strongest tie is certain again.
    """
    from scipy.sparse import csr_matrix, diags_array

    far = np.inf if weight >= 1 else FAR_DISTANCE / (1.0 - weight)
    ties = fuzzy.tocoo()
    one, other = groups[ties.row], groups[ties.col]
    factors = np.where(one == other, 1.0, np.exp(-far))
    factors[(one < 0) | (other < 0)] = np.exp(-UNKNOWN_DISTANCE)
    loosened = csr_matrix((ties.data * factors, (ties.row, ties.col)), shape=fuzzy.shape)
    strongest = loosened.max(axis=1).toarray().ravel()
    scales = np.divide(1.0, strongest, out=np.zeros_like(strongest), where=strongest > 0)
    directed = csr_matrix(diags_array(scales) @ loosened)
    transposed = directed.T.tocsr()
    return _tidy(directed + transposed - directed.multiply(transposed))


def _tidy(united: csr_matrix) -> csr_matrix:
    from scipy.sparse import csr_matrix

    tidy = csr_matrix(united, dtype=np.float32)
    tidy.eliminate_zeros()
    tidy.sort_indices()
    return tidy


def groups_of_places(groups: Int32Array, of_document: Int64Array, n_places: int) -> Int32Array:
    """Return the group of documents that share a vector: the one that they have, if only one.

    Parameters
    ----------
    groups : int32 ndarray of shape (n_documents,)
    of_document : int64 ndarray of shape (n_documents,)
        Place of each document.
    n_places : int

    Returns
    -------
    int32 ndarray of shape (n_places,)
        -1 where there is none, or several.
    """
    known = groups >= 0
    largest = np.full(n_places, -1, dtype=np.int32)
    np.maximum.at(largest, of_document[known], groups[known])
    smallest = np.full(n_places, np.iinfo(np.int32).max, dtype=np.int32)
    np.minimum.at(smallest, of_document[known], groups[known])
    return np.where(largest == smallest, largest, -1).astype(np.int32)
