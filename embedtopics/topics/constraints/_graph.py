"""The fuzzy graph with constraints applied: ties inside groups, and looser ones between them."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from embedtopics.neighbors._graph import build_graph
from embedtopics.protocols import FloatArray, Int32Array, Int64Array
from embedtopics.topics.results import TopicConstraints

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


UNKNOWN_DISTANCE = 1.0
FAR_DISTANCE = 2.5
"""Distances between classes of umap-learn: that of an unknown class, and that of another at no
weight."""

SMALL_GROUP = 128
"""Documents of a group up to which all pairs are compared here: there may be thousands of such
groups, for each of which a search would wait for its threads."""


def constrained_graph(
    fuzzy: csr_matrix,
    embeddings: FloatArray,
    constraints: TopicConstraints,
    groups: Int32Array,
    k: int,
) -> csr_matrix:
    """Return the fuzzy graph of a layout with the constraints applied.

    Shapes: `fuzzy` (n, n), `embeddings` (n, n_dimensions), `groups` (n,).
    """
    if constraints.tie:
        fuzzy = tie_groups(fuzzy, embeddings, groups, constraints.tie, k)
    if constraints.part:
        fuzzy = part_groups(fuzzy, groups, constraints.part)
    return fuzzy


def tie_groups(
    fuzzy: csr_matrix, embeddings: FloatArray, groups: Int32Array, weight: float, k: int
) -> csr_matrix:
    """Unite a fuzzy graph with ties of one weight to the nearest others of each group.

    Ties that fell with the distance, as those of the layout do, would hold together what is
    together already, and leave scattered documents where they are.

    Shapes: `fuzzy` (n, n), `embeddings` (n, n_dimensions), `groups` (n,) -> (n, n).
    """
    from scipy.sparse import csr_matrix

    rows, columns = [], []
    by_group = np.argsort(groups, kind="stable")
    begins = np.searchsorted(groups[by_group], np.arange(int(groups.max(initial=-1)) + 2))
    for begin, end in pairwise(begins.tolist()):
        members = by_group[begin:end]
        near = _nearest_others(members, embeddings, k)
        rows.append(np.repeat(members, near.shape[1]))
        columns.append(members[near.ravel()])
    if not any(map(len, rows)):
        return fuzzy
    ends = (np.concatenate(rows), np.concatenate(columns))
    weights = np.full(len(ends[0]), weight, dtype=np.float32)
    directed = csr_matrix((weights, ends), shape=fuzzy.shape)
    tied = directed.maximum(directed.T)
    return _tidy(fuzzy + tied - fuzzy.multiply(tied))


def _nearest_others(members: Int64Array, embeddings: FloatArray, k: int) -> Int32Array:
    """Return the nearest others of each document of a group, by their positions in it."""
    if len(members) > SMALL_GROUP:
        return build_graph(embeddings[members], k).indices
    vectors = embeddings[members]
    similarities = np.einsum("id,jd->ij", vectors, vectors)
    np.fill_diagonal(similarities, -np.inf)
    others = min(k, len(members) - 1)
    return np.argsort(-similarities, axis=1, kind="stable")[:, :others].astype(np.int32)


def part_groups(fuzzy: csr_matrix, groups: Int32Array, weight: float) -> csr_matrix:
    """Loosen the ties between groups, as umap-learn's categorical intersection does.

    Shapes: `fuzzy` (n, n), `groups` (n,) -> (n, n).
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


def groups_of_vectors(groups: Int32Array, of_document: Int64Array, n_vectors: int) -> Int32Array:
    """Return the group of documents that share a vector: the one that they have, if only one.

    Shapes: `groups, of_document` (n_documents,) -> (n_vectors,).
    """
    known = groups >= 0
    largest = np.full(n_vectors, -1, dtype=np.int32)
    np.maximum.at(largest, of_document[known], groups[known])
    smallest = np.full(n_vectors, np.iinfo(np.int32).max, dtype=np.int32)
    np.minimum.at(smallest, of_document[known], groups[known])
    return np.where(largest == smallest, largest, -1).astype(np.int32)
