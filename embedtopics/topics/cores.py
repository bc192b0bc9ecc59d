"""The dense cores of topics at one resolution, cut from a hierarchy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from embedtopics._checks import is_count
from embedtopics.clustering import (
    labels_at,
    merge_nearest,
    named_min_cluster_size,
    topics_by_min_cluster_size,
)
from embedtopics.errors import InputError
from embedtopics.protocols import Int32Array, Int64Array
from embedtopics.results import NOISE, Clustering, SpanningTree

__all__ = ["Cores", "NotEnoughTopics", "Resolution", "choose_cores"]

NAMES = ("auto", "fine", "coarse")


@dataclass(frozen=True)
class Resolution:
    """How fine the topics shall be.

    Parameters
    ----------
    n_topics : {"auto", "fine", "coarse"} or int
    min_cluster_size : "auto" or int
        Fewest texts in the core of a topic; goes with `n_topics` "auto" only.
    """

    n_topics: int | str = "auto"
    min_cluster_size: int | str = "auto"

    def __post_init__(self) -> None:
        """Refuse what cannot be met."""
        n_topics, size = self.n_topics, self.min_cluster_size
        if n_topics not in NAMES and not is_count(n_topics, 1):
            raise InputError(
                f'n_topics must be "auto", "fine", "coarse" or an integer from 1 up; '
                f"got {n_topics!r}"
            )
        if size != "auto" and not is_count(size, 2):
            raise InputError(
                f'min_cluster_size must be "auto" or an integer from 2 up; got {size!r}'
            )
        if size != "auto" and n_topics != "auto":
            raise InputError(
                "n_topics and min_cluster_size both say how fine the topics shall be; give one"
            )


@dataclass(frozen=True, eq=False)
class Cores:
    """Dense cores of topics at one resolution.

    Parameters
    ----------
    clustering : Clustering
    is_subject : bool ndarray of shape (n_cores,)
        Those that are about something.
    min_cluster_size : int or None
        Fewest texts in a core before any were merged; None where a clusterer does not tell.
    """

    clustering: Clustering
    is_subject: npt.NDArray[np.bool_]
    min_cluster_size: int | None

    @property
    def n_subjects(self) -> int:
        """Number of cores that are about something."""
        return int(self.is_subject.sum())


class NotEnoughTopics(InputError):
    """Raised where a hierarchy does not hold as many topics as are wanted.

    Parameters
    ----------
    best : Cores
        Of the cuts, the one with the most topics.
    wanted : int
    """

    def __init__(self, best: Cores, wanted: int) -> None:
        super().__init__(
            f"n_topics must be at most {best.n_subjects} here; got {wanted}: these texts have no "
            "more groups of two or more that set themselves apart"
        )
        self.best = best


def choose_cores(
    tree: SpanningTree,
    weights: Int64Array,
    resolution: Resolution,
    without: Callable[[Int32Array, int], npt.NDArray[np.bool_]],
) -> Cores:
    """Cut the dense cores of topics from a hierarchy.

    A number of topics is met by the coarsest cut that has as many cores with a subject, or more;
    of these the nearest are merged, as they meet in the hierarchy, until the number is right.

    Parameters
    ----------
    tree : SpanningTree
    weights : int64 ndarray of shape (n_documents,)
    resolution : Resolution
    without : callable
        Tells of labels and their number which clusters have no subject.

    Returns
    -------
    Cores

    Raises
    ------
    NotEnoughTopics
        Where the hierarchy does not hold as many topics as are wanted.
    """
    n_by_size = topics_by_min_cluster_size(tree, weights)
    if isinstance(resolution.n_topics, str):
        size = resolution.min_cluster_size
        if isinstance(size, str):
            size = _named_size(resolution.n_topics, n_by_size, int(weights.sum()))
        return _cut(tree, weights, size, without)
    wanted = int(resolution.n_topics)
    sizes = _sizes_with(min(wanted, int(n_by_size.max())), n_by_size)
    best: Cores | None = None
    for size in sizes or [_named_size("auto", n_by_size, int(weights.sum()))]:
        cores = _cut(tree, weights, size, without)
        if cores.n_subjects >= wanted:
            return _merged(tree, cores, wanted)
        if best is None or cores.n_subjects > best.n_subjects:
            best = cores
    assert best is not None  # there is always a size to try
    raise NotEnoughTopics(best, wanted)


def _named_size(name: str, n_by_size: Int64Array, n_rows: int) -> int:
    """Return the size of a named resolution; a smaller one where that leaves less than two."""
    size = named_min_cluster_size(name, n_rows)
    if size < len(n_by_size) and n_by_size[size] >= 2:
        return size
    finest = named_min_cluster_size("fine", n_rows)
    enough = np.flatnonzero(n_by_size[: size + 1] >= 2)
    return int(enough[-1]) if len(enough) and enough[-1] >= finest else size


def _sizes_with(n_topics: int, n_by_size: Int64Array) -> list[int]:
    """Return the smallest sizes that leave so many topics, coarsest first, one for each number.

    The number falls as the size grows; of the sizes that leave as many, the largest is taken.
    """
    n_topics = max(n_topics, 2)
    sizes = np.flatnonzero(n_by_size >= n_topics)
    is_last = np.diff(n_by_size[sizes], append=0) != 0
    return [int(size) for size in sizes[is_last][::-1]]


def _cut(
    tree: SpanningTree,
    weights: Int64Array,
    size: int,
    without: Callable[[Int32Array, int], npt.NDArray[np.bool_]],
) -> Cores:
    cut = labels_at(tree, size, weights, method="leaf", allow_one_place=True)
    return Cores(cut, ~without(cut.labels, len(cut.persistence)), size)


def _merged(tree: SpanningTree, cores: Cores, wanted: int) -> Cores:
    """Merge the nearest cores with a subject; the others stay as they are."""
    cut = cores.clustering
    number = np.append(np.where(cores.is_subject, np.arange(len(cores.is_subject)), NOISE), NOISE)
    kept = number[cut.labels].astype(np.int32)
    merged = np.where(kept == NOISE, cut.labels, merge_nearest(tree, kept, wanted))
    old, labels = np.unique(merged, return_inverse=True)
    labels = labels - int(NOISE in old)
    old = old[old != NOISE]
    n_parts = np.bincount(merged[merged != NOISE], minlength=len(cut.persistence))[old]
    n_before = np.bincount(cut.labels[cut.labels != NOISE], minlength=len(cut.persistence))[old]
    # Of a merged cluster the hierarchy knows no persistence: it is no cluster there.
    persistence = np.where(n_parts == n_before, cut.persistence[old], np.nan)
    clustering = Clustering(labels.astype(np.int32), cut.strengths, persistence)
    return Cores(clustering, cores.is_subject[old], cores.min_cluster_size)
