"""How far the topics come back when the documents and the layout are drawn anew."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from itertools import combinations

import numpy as np
import numpy.typing as npt

from embedtopics._background import side_by_side
from embedtopics._checks import checked_count
from embedtopics._progress import progress_bar
from embedtopics._randomness import resolve_seed
from embedtopics.protocols import Int32Array, Int64Array, RandomState
from embedtopics.results import NOISE, Stability, TopicResult
from embedtopics.topics._replicates import NOT_HELD, recipe_of, replicate

__all__ = ["best_matches", "compare", "stability", "with_stability"]

Float64Array = npt.NDArray[np.float64]

INTERVAL = (0.05, 0.95)


def stability(
    result: TopicResult,
    n_replicates: int = 20,
    *,
    random_state: RandomState = 0,
    show_progress: bool | None = None,
) -> Stability:
    """Measure how far the topics of a result come back in replicates.

    A replicate is a random half of the documents, laid out and clustered from the start as the
    whole was, its topics half as large at the least. Its neighbours come from the stored graph;
    positions and topics of the fit are not used. So a topic that owes itself to the random
    numbers of a layout, or to a few documents, does not come back.

    Parameters
    ----------
    result : TopicResult
        Of the default layout and clusterer.
    n_replicates : int
        At least 1; an interval needs some twenty.
    random_state : int, numpy.random.Generator or None
        The same integer gives the same figures, bit for bit.
    show_progress : bool or None
        None shows progress where a terminal or a notebook listens.

    Returns
    -------
    Stability

    Raises
    ------
    InputError
        Where the result comes from another reducer or clusterer, or a parameter is bad.

    Notes
    -----
    Where the documents have two or three dimensions only, parts of an even spread come back to
    some degree, as any two maps cut into regions agree to some degree.

    References
    ----------
    Hennig (2007), "Cluster-wise assessment of cluster stability" (best Jaccard overlap in random
    subsets); Shao and Wu (1989), "A general theory for jackknife variance estimation" (why half);
    Hubert and Arabie (1985), "Comparing partitions" (the adjusted Rand index).
    """
    checked_count(n_replicates, "n_replicates")
    seed = resolve_seed(random_state)
    recipe = recipe_of(result)
    with progress_bar(
        total=n_replicates, unit="replicate", description="stability", show=show_progress
    ) as bar:
        replicates = []
        for found in side_by_side(
            lambda number: replicate(recipe, np.random.default_rng([seed, number])), n_replicates
        ):
            replicates.append(found)
            bar.update()
    return compare(result.clustering.labels, replicates, result.documents.weights, seed)


def with_stability(
    result: TopicResult,
    n_replicates: int = 20,
    *,
    random_state: RandomState = 0,
    show_progress: bool | None = None,
) -> TopicResult:
    """Return a result that knows how stable its topics are; see `stability`.

    Parameters
    ----------
    result : TopicResult
    n_replicates : int
    random_state : int, numpy.random.Generator or None
    show_progress : bool or None

    Returns
    -------
    TopicResult
        The same but for its `stability`, which tables, plots and the report show.
    """
    measured = stability(
        result, n_replicates, random_state=random_state, show_progress=show_progress
    )
    return dataclasses.replace(result, stability=measured)


def compare(
    labels: Int32Array, replicates: Sequence[Int32Array], weights: Int64Array, seed: int = 0
) -> Stability:
    """Compare topics with those of replicates, however these were made.

    Parameters
    ----------
    labels : int32 ndarray of shape (n_documents,)
        The topics in question; noise is -1.
    replicates : sequence of int32 ndarray of shape (n_documents,)
        Topics in each replicate; -1 for noise, -2 for documents that it does not hold.
    weights : int64 ndarray of shape (n_documents,)
        Rows that share each document; they count in the overlap of topics.
    seed : int
        Of the random deal behind the chance level.

    Returns
    -------
    Stability
    """
    n_topics = int(labels.max(initial=NOISE)) + 1
    overlaps = np.empty((len(replicates), n_topics))
    by_chance = np.empty((len(replicates), n_topics))
    n_held = np.zeros(len(labels), dtype=np.int64)
    n_agreeing = np.zeros(len(labels), dtype=np.int64)
    for number, found in enumerate(replicates):
        held = np.flatnonzero(found != NOT_HELD)
        of_whole, of_part, weight = labels[held], found[held], weights[held]
        overlaps[number], match = best_matches(of_whole, of_part, weight, n_topics)
        rng = np.random.default_rng([seed, number, len(held)])
        by_chance[number], _ = best_matches(of_whole, rng.permutation(of_part), weight, n_topics)
        n_held[held] += 1
        n_agreeing[held] += of_part == np.append(match, NOISE)[of_whole]
    agreement = np.full(len(labels), np.nan, dtype=np.float32)
    np.divide(n_agreeing, n_held, out=agreement, where=n_held > 0, casting="unsafe")
    low, high = _interval(overlaps)
    pairs = [_adjusted_rand(one, other) for one, other in combinations(replicates, 2)]
    return Stability(
        recurrence=_mean(overlaps),
        low=low,
        high=high,
        agreement=agreement,
        adjusted_rand=np.array(pairs, dtype=np.float64),
        n_replicates=len(replicates),
        chance=_mean(by_chance),
    )


def best_matches(
    labels: Int32Array, found: Int32Array, weights: Int64Array, n_topics: int
) -> tuple[Float64Array, Int64Array]:
    """Return each topic's best Jaccard overlap with a found topic, and which that is.

    The overlap is NaN where no document of the topic is there; the match is -2 where no found
    topic shares a document with it.
    """
    n_found = int(found.max(initial=NOISE)) + 1
    # Noise is -1 and thus the last row and the last column.
    table = np.zeros((n_topics + 1, n_found + 1))
    np.add.at(table, (labels, found), weights)
    size, found_size = table[:n_topics].sum(axis=1), table[:, :n_found].sum(axis=0)
    shared = table[:n_topics, :n_found]
    union = size[:, None] + found_size - shared
    jaccard = np.zeros((n_topics, n_found + 1))  # one column more, so that there is a largest
    np.divide(shared, union, out=jaccard[:, :n_found], where=shared > 0)
    best = jaccard.max(axis=1)
    match = np.where(best > 0, jaccard.argmax(axis=1), NOT_HELD)
    return np.where(size > 0, best, np.nan), match.astype(np.int64)


def _adjusted_rand(one: Int32Array, other: Int32Array) -> float:
    """Return the adjusted Rand index where both hold a document that one of them has in a topic.

    Noise counts as a class. Where neither found a topic, nothing came back: 0.
    """
    from sklearn.metrics import adjusted_rand_score

    compared = (one != NOT_HELD) & (other != NOT_HELD) & ((one != NOISE) | (other != NOISE))
    return float(adjusted_rand_score(one[compared], other[compared])) if compared.any() else 0.0


def _mean(overlaps: Float64Array) -> Float64Array:
    """Return the mean of each column without its NaN; NaN where there is nothing else."""
    known = ~np.isnan(overlaps)
    n_known = known.sum(axis=0)
    mean = np.full(overlaps.shape[1], np.nan)
    np.divide(np.where(known, overlaps, 0.0).sum(axis=0), n_known, out=mean, where=n_known > 0)
    return mean


def _interval(overlaps: Float64Array) -> tuple[Float64Array, Float64Array]:
    """Return, for each column, the interval in which the next value falls nine times in ten.

    The quantiles of Weibull: of those by linear interpolation between twenty values, the next
    value would fall outside twice as often.
    """
    bounds = np.full((2, overlaps.shape[1]), np.nan)
    for topic, column in enumerate(overlaps.T):
        known = column[~np.isnan(column)]
        if len(known):
            bounds[:, topic] = np.quantile(known, INTERVAL, method="weibull")
    return bounds[0], bounds[1]
