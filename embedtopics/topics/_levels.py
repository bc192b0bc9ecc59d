"""The numbers of topics into which a result can be cut, with the evidence for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pandas as pd

from embedtopics._utils.checks import checked_count, resolve_seed
from embedtopics._utils.fitted import FittedTopics, result_of
from embedtopics.protocols import Int32Array, RandomState
from embedtopics.topics._clusters import ClusterTree, NotEnoughTopics, Resolution
from embedtopics.topics._resolution import (
    adjusted_rand,
    clusters_of,
    recipe_of,
    recut,
    replicate_at,
    side_by_side,
)
from embedtopics.topics.results import TopicResult


def levels(
    result: FittedTopics,
    n_replicates: int = 0,
    *,
    random_state: RandomState = 0,
    show_progress: bool | None = None,
) -> pd.DataFrame:
    """Tabulate the numbers of topics into which a result can be cut, with the evidence for each.

    The suggested number is the smallest one with 96 % of the largest word gain, but at most the
    largest one with a neighbor share of 0.7. `recluster` cuts the result there, or at another
    number, which may serve a question better.

    Parameters
    ----------
    result : TopicResult or fitted TopicModel
        A result with a density hierarchy; replicates need the default reducer and clusterer.
    n_replicates : int
        Random halves of the documents, clustered again at each number of topics, for the column
        recurrence; 6 are enough for a comparison. Fewer topics recur more often.
    random_state : int, numpy.random.Generator or None
        Source of the random halves.
    show_progress : bool or None
        None shows progress in a terminal or a notebook.

    Returns
    -------
    pandas.DataFrame
        Ascending numbers from 2 on, each about a fifth larger; no rows if the documents form no two
        groups. Constraints are not applied. Columns n_topics; word_gain (how much better the topic
        of a text predicts its words than the corpus does, in nats a word); neighbor_share (share of
        the five nearest neighbors of a text that are in its topic); recurrence (mean adjusted Rand
        index with the topics of the random halves; NaN without them); examples (names of the
        largest topic and of a topic of medium size, a list); and suggested.

    Raises
    ------
    InputError
        If the result has no density hierarchy, has other stages than replicates need, or a
        parameter is invalid.

    References
    ----------
    Lange et al. (2004), "Stability-based validation of clustering solutions".

    Examples
    --------
    >>> import embedtopics as et
    >>> model = et.TopicModel("tfidf").fit(et.Corpus("embedtopics:demo"))
    >>> table = et.topics.levels(model)
    >>> list(table.columns[:4])
    ['n_topics', 'word_gain', 'neighbor_share', 'recurrence']
    >>> table.loc[table["suggested"], "n_topics"].tolist() == [model.result_.n_topics]
    True
    """
    result = result_of(result)
    n_replicates = checked_count(n_replicates, "n_replicates", 0)
    seed = resolve_seed(random_state)
    clusters = clusters_of(result)
    scored = clusters.levels
    numbers = [level.n_topics for level in scored]
    if not numbers:
        n_replicates = 0
    replicates = _replicates(result, numbers, n_replicates, seed, show_progress)
    recurrence: npt.NDArray[np.float64] = np.full(len(numbers), np.nan)
    examples: list[list[str]] = [[] for _ in numbers]
    for place, n_topics in enumerate(numbers):
        cut = _cut(result, clusters, n_topics)
        if cut is None:  # of the clusters, some are uninformative
            continue
        examples[place] = [cut.topics[i].name for i in sorted({0, cut.n_topics // 2})]
        if replicates:
            labels = cut.clustering.labels
            same = [adjusted_rand(labels, of_half[place]) for of_half in replicates]
            recurrence[place] = np.mean(same)

    return pd.DataFrame(
        {
            "n_topics": numbers,
            "word_gain": [level.word_gain for level in scored],
            "neighbor_share": [level.neighbor_share for level in scored],
            "recurrence": recurrence,
            "examples": examples,
            "suggested": np.array(numbers) == clusters.number("auto"),
        }
    )


def _replicates(
    result: TopicResult, numbers: Sequence[int], n: int, seed: int, show_progress: bool | None
) -> list[list[Int32Array]]:
    """Find the topics of random halves at each number, n lists of (n_documents,) arrays."""
    if n == 0:
        return []
    recipe = replace(recipe_of(result), coverage=1.0)
    resolutions = [Resolution(n_topics) for n_topics in numbers]

    def make(number: int) -> list[Int32Array]:
        return list(replicate_at(recipe, np.random.default_rng([seed, number]), resolutions))

    return side_by_side(make, n, "levels", show_progress)


def _cut(result: TopicResult, clusters: ClusterTree, n_topics: int) -> TopicResult | None:
    """Return the result at a number of topics, with all documents; None if it is not reached."""
    try:
        return recut(result, clusters, n_topics, coverage=1.0)
    except NotEnoughTopics:
        return None
