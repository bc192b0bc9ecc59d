"""Collections of few texts that many people repeat: answers of a survey, filled-in templates.

Twelve answers of forty people each have no dense groups of different texts, and the graph of twelve
vectors is so complete that smoothing over it moves all of them to one place. In such a collection
each text, or vector, that at least five rows share is a group of its own, and the coordinates are
the principal components themselves.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from embedtopics.clustering._partition import (
    MOST_MICRO_CLUSTERS,
    cluster_means,
    merged,
    ward_merges,
)
from embedtopics.clustering._resolution import FEW, FEWEST, place_numbers
from embedtopics.clustering.results import NOISE, Clustering
from embedtopics.protocols import BoolArray, FloatArray, Int64Array
from embedtopics.topics._support import MOST

FEW_TEXTS = 4 * FEW
"""Repeated texts below which each may be a topic. With as many distinct texts or more, a dense
group has at least ten of them, see `automatic_min_cluster_size`."""

MOSTLY_REPEATED = 0.8
"""Smallest share of the rows that repeated texts hold in such a collection. In fifteen corpora of
news, titles, tweets, questions, debates and amendments, texts of five rows or more hold at most
0.043."""

MOST_COMPONENTS = 256
"""Components of such a collection: with one less than it has vectors, their distances are exact."""

SEPARATE = 2.0
"""Ratio of the heights of two merges of Ward's tree from which the groups between them are clearly
separate. Three sets of templates with one word that varies have 3.1, 78 and 98; eight sets of short
answers in five languages have 1.0 to 1.4, by TF-IDF and by all-MiniLM-L6-v2."""


def is_repetitive(n_rows: Int64Array) -> bool:
    """Return whether a few vectors, repeated by `n_rows` (n_vectors,), are nearly all there is."""
    is_repeated = n_rows >= FEWEST
    n_repeated = int(is_repeated.sum())
    return bool(
        2 <= n_repeated < FEW_TEXTS
        and n_rows[is_repeated].sum() >= MOSTLY_REPEATED * max(1, n_rows.sum())
    )


def texts_to_learn(texts: Sequence[str], weights: Int64Array) -> Sequence[str]:
    """Return the texts from which an encoder learns, (n_documents,) or more.

    An encoder that leaves out what is in one text alone would know no word of an answer that forty
    people gave. So repeated texts of a repetitive collection are there twice.
    """
    if not is_repetitive(weights):
        return texts
    return [*texts, *(texts[i] for i in np.flatnonzero(weights > 1).tolist())]


def repeated_groups(
    coordinates: FloatArray, weights: Int64Array, min_size: int = FEWEST
) -> Clustering | None:
    """Return the texts that at least `min_size` rows repeat as clusters, the largest first.

    Texts of clearly separate groups, such as a template with each of six months, are one cluster.
    None stands for a collection that is not repetitive. Shapes: `coordinates` (n_documents,
    n_components), `weights` (n_documents,), the rows of each document; 0 for documents that are in
    no group.
    """
    place = place_numbers(coordinates)
    n_rows = np.bincount(place, weights).astype(np.int64)
    if not is_repetitive(n_rows):
        return None
    group_of_place = np.where(n_rows >= FEWEST, np.cumsum(n_rows >= FEWEST) - 1, NOISE)
    separate = separate_groups(coordinates, weights, group_of_place[place])
    labels = group_of_place[place] if separate is None else separate
    return _by_size(np.where(weights > 0, labels, NOISE), weights, min_size)


def groups_of_many(coordinates: FloatArray, weights: Int64Array) -> Clustering | None:
    """Return clearly separate groups of texts, if repeated texts are nearly all there is.

    Shapes as in `repeated_groups`, which is for few texts.
    """
    place = place_numbers(coordinates)
    n_rows = np.bincount(place, weights)
    is_repeated = n_rows >= FEWEST
    if n_rows[is_repeated].sum() < MOSTLY_REPEATED * max(1, n_rows.sum()):
        return None
    group_of_place = np.where(is_repeated, np.cumsum(is_repeated) - 1, NOISE)
    groups = separate_groups(coordinates, weights, group_of_place[place])
    return None if groups is None else _by_size(groups, weights, FEWEST)


def separate_groups(
    coordinates: FloatArray, weights: Int64Array, labels: Int64Array
) -> Int64Array | None:
    """Merge clusters, by Ward's tree, into groups that are clearly separate, (n_documents,).

    None if there are none. `labels` (n_documents,) number the clusters; -1 stands for none.
    """
    inside = labels >= 0
    n_clusters = int(labels.max(initial=-1)) + 1
    if not 3 <= n_clusters <= MOST_MICRO_CLUSTERS:
        return None
    means, sizes = cluster_means(coordinates[inside], weights[inside], labels[inside])
    merges, increases = ward_merges(means, sizes)
    heights = np.sqrt(np.maximum.accumulate(increases))

    # The next merge after the last one within groups is the first one between them.
    numbers = np.arange(2, min(n_clusters, MOST + 1))
    ratios = heights[n_clusters - numbers] / np.maximum(heights[n_clusters - numbers - 1], 1e-12)
    if ratios.max() < SEPARATE:
        return None
    group = merged(np.arange(n_clusters), merges, int(numbers[ratios.argmax()]))
    return np.where(inside, np.append(group, NOISE)[labels], NOISE)


def _by_size(labels: Int64Array, weights: Int64Array, min_size: int) -> Clustering:
    """Return the clusters of at least `min_size` rows, the largest first."""
    n_rows = np.bincount(labels[labels >= 0], weights[labels >= 0])
    order = np.argsort(-n_rows, kind="stable")
    order = order[n_rows[order] >= min_size]
    number = np.full(len(n_rows) + 1, NOISE, dtype=np.int32)  # the last for none
    number[order] = np.arange(len(order), dtype=np.int32)
    new_labels = number[labels]
    is_inside = (new_labels != NOISE).astype(np.float32)
    return Clustering(new_labels, is_inside, np.full(len(order), np.nan))


def none_uninformative(_: object, n_clusters: int) -> BoolArray:
    """Return that no cluster is uninformative, (n_clusters,): one text has no second half."""
    return np.zeros(n_clusters, dtype=np.bool_)
