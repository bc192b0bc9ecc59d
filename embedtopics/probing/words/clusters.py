"""Clusters of the uses of a word, and whether they are more than one cloud would show."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from embedtopics._checks import checked_count, checked_level, optional_count
from embedtopics.errors import InputError
from embedtopics.evaluation import silhouettes
from embedtopics.probing.spaces import open_space
from embedtopics.probing.words.cutting import Cuts, cut, nearest_center
from embedtopics.probing.words.finding import numbered, rows_of_word, use_at, word_key
from embedtopics.protocols import Int64Array
from embedtopics.results import Decision, HiddenStates, SenseCount, WordSenses, WordUse

__all__ = ["senses"]

Float64Array = npt.NDArray[np.float64]
Int32Array = npt.NDArray[np.int32]

KEPT_SHARE = 0.8
"""Of the texts, in each resample."""


def senses(
    states: HiddenStates,
    word: str,
    *,
    layer: int = -1,
    n_senses: int | None = None,
    max_senses: int = 8,
    min_size: int = 5,
    max_uses: int = 500,
    alpha: float = 0.05,
    n_clouds: int = 99,
    n_resamples: int = 50,
    adjust: str = "none",
    match_case: bool = False,
    seed: int = 0,
) -> WordSenses:
    """Cluster the uses of a word, and say whether there is more than one cluster.

    For every number of senses from 2 to `max_senses`, uses are clustered by cosine: Ward's tree is
    cut where so many branches of at least `min_size` uses appear, and every use then moves to the
    nearest centre until none moves. The number with the largest mean silhouette is chosen, if that
    silhouette is more than single clouds show: normal clouds with the mean and the covariance of
    the uses, set to length one, are clustered in the same way, and p is the share of them whose
    best silhouette is as large (as the test of Liu et al. 2008, "Statistical significance of
    clustering for high-dimension, low-sample size data", on the silhouette). Else all uses are one
    sense: clusters that any long cloud can be cut into are none.

    The question is whether the uses are one cloud, not whether the word has one sense. Of nouns in
    an encyclopaedia, frequent and distinct senses come out (the fruit and the company of "apple"),
    a rare one beside a frequent one does not (the banks of a river), and uses of a single sense
    part as well where a word also stands in lists or in set phrases: then the silhouette is seldom
    far above `by_chance`.

    How sure the number is, `counts` shows: how often each is chosen when a fifth of the texts is
    left out, against the same clouds. How sure each cluster is, `stability` shows (Hennig 2007,
    "Cluster-wise assessment of cluster stability"). Read the
    examples before a cluster is called a sense.

    Parameters
    ----------
    states : HiddenStates
    word : str
    layer : int
    n_senses : int, optional
        None chooses it.
    max_senses, min_size : int
        Most clusters, and fewest uses in one.
    max_uses : int
        With more, clusters are made from so many drawn at random, and the others join the nearest.
    alpha : float
        Largest p for more than one sense.
    n_clouds, n_resamples : int
        `n_resamples` may be 0.
    adjust : {"none", "center", "standardize"}
    match_case : bool
    seed : int

    Returns
    -------
    WordSenses

    Raises
    ------
    InputError
        If the word does not occur, or its uses do not make as many clusters as were asked for.
    """
    _check(n_senses, max_senses, min_size, max_uses, alpha, n_clouds, n_resamples)
    rows = rows_of_word(states, word, match_case)
    rows = np.array(sorted(
        rows.tolist(), key=lambda r: (states.texts[states.of_text[r]], states.position[r], r)
    ))  # fmt: skip
    uses = tuple(use_at(states, row) for row in rows.tolist())
    space = open_space(states, layer, adjust)
    vectors = space.unit(rows)
    drawn, decisions = _drawn(uses, max_uses, seed)
    most = max_senses if n_senses is None else n_senses
    settings = _Settings(most, min_size, alpha, n_clouds, n_resamples, seed)
    texts = numbered([states.texts[uses[i].text] for i in drawn.tolist()])
    found = _choose(vectors[drawn], texts, settings, n_senses)
    if n_senses is not None and n_senses > 1 and found.labels is None:
        raise InputError(
            f"expected {n_senses} clusters of at least {min_size} uses; the {len(drawn)} different "
            f"uses of {word!r} do not make them: ask for fewer, or lower min_size"
        )
    if found.labels is None and len(drawn) < 2 * min_size:
        decisions.append(Decision(
            "probing", "too_few_uses", len(drawn),
            f"{len(drawn)} different uses are too few to look for two clusters of {min_size}.",
        ))  # fmt: skip
    labels, centers, order = _labelled(vectors, drawn, found.labels)
    widths = np.full(len(rows), np.nan)
    if len(centers) > 1 and len(np.unique(labels)) > 1:
        widths = silhouettes(vectors, labels)  # type: ignore[arg-type]
    return WordSenses(
        word_key(word.strip(), match_case), space.layer, states.encoder, adjust, uses, labels,
        np.einsum("ij,ij->i", vectors, centers[labels]), widths, centers.astype(np.float32),
        found.counts, found.p, found.stability[order], n_senses is None,
        (*states.decisions, *decisions),
    )  # fmt: skip


@dataclass(frozen=True)
class _Settings:
    most: int
    min_size: int
    alpha: float
    n_clouds: int
    n_resamples: int
    seed: int


@dataclass(frozen=True, eq=False)
class _Choice:
    """Labels of the uses drawn, or None for one sense; and how sure that is."""

    labels: Int32Array | None
    counts: tuple[SenseCount, ...]
    p: float
    stability: Float64Array


def _check(
    n_senses: int | None, max_senses: int, min_size: int, max_uses: int, alpha: float,
    n_clouds: int, n_resamples: int,
) -> None:  # fmt: skip
    optional_count(n_senses, "n_senses")
    checked_count(max_senses, "max_senses", 2)
    checked_count(min_size, "min_size", 2)
    checked_count(max_uses, "max_uses", 2 * min_size)
    checked_level(alpha, "alpha")
    checked_count(n_clouds, "n_clouds")
    checked_count(n_resamples, "n_resamples", 0)
    if n_senses is None and 1 / (n_clouds + 1) > alpha:
        raise InputError(
            f"with {n_clouds} clouds no p can be {alpha} or less: take {int(np.ceil(1 / alpha))} "
            "or more, or a larger alpha"
        )


def _drawn(
    uses: tuple[WordUse, ...], max_uses: int, seed: int
) -> tuple[Int64Array, list[Decision]]:
    """Return the uses that clusters are made from: one of each wording, and not too many."""
    first: dict[tuple[str, int], int] = {}
    for place, use in enumerate(uses):
        first.setdefault((use.sentence, use.start), place)
    drawn = np.array(list(first.values()), dtype=np.int64)
    decisions = []
    if len(drawn) < len(uses):
        copies = len(uses) - len(drawn)
        decisions.append(Decision(
            "probing", "equal_sentences", copies,
            f"{copies} of {len(uses)} uses stand in a sentence of the same wording as another; "
            "clusters are made from one of each.",
        ))  # fmt: skip
    if len(drawn) > max_uses:
        decisions.append(Decision(
            "probing", "uses_drawn", max_uses,
            f"Clusters are made from {max_uses} of {len(drawn)} uses, drawn at random; the others "
            "join the nearest.",
        ))  # fmt: skip
        chosen = np.random.default_rng(seed).choice(len(drawn), max_uses, replace=False)
        drawn = drawn[np.sort(chosen)]
    return drawn, decisions


def _choose(
    vectors: Float64Array, texts: Int64Array, settings: _Settings, given: int | None
) -> _Choice:
    """Return the clusters of the best number, or of the number given."""
    from threadpoolctl import threadpool_limits

    if settings.most < 2:
        return _Choice(None, (), float("nan"), np.full(1, np.nan))
    # On one thread: the order in which BLAS sums depends on how many it has.
    with threadpool_limits(limits=1, user_api="blas"):
        own = cut(vectors, settings.most, settings.min_size)
        clouds = _clouds(vectors, settings)
        numbers = range(2, settings.most + 1)
        if given is not None:
            numbers = range(given, given + 1)
        by_chance = [max(one.widths.get(k, -np.inf) for k in numbers) for one in clouds]
        best = own.best(numbers)
        width = own.widths.get(best, -np.inf)
        p = (1 + sum(chance >= width for chance in by_chance)) / (1 + len(by_chance))
        if best == 1 or (given is None and p > settings.alpha):
            chosen = 1
        else:
            chosen = best
        kept, resampled = _resampled(vectors, texts, settings)
    chosen_there = []
    for one in resampled:
        number = one.best(numbers)
        as_large = sum(chance >= one.widths.get(number, -np.inf) for chance in by_chance)
        is_more = (1 + as_large) / (1 + len(by_chance)) <= settings.alpha
        chosen_there.append(number if is_more else 1)
    counts = _counts(own, clouds, chosen_there, settings.most)
    if chosen == 1:
        return _Choice(None, counts, p if len(own.widths) else float("nan"), np.full(1, np.nan))
    labels = own.labels[chosen]
    return _Choice(labels, counts, p, _stability(labels, chosen, kept, resampled))


def _clouds(vectors: Float64Array, settings: _Settings) -> list[Cuts]:
    """Cluster single normal clouds with the mean and covariance of the vectors."""
    n = len(vectors)
    if n < 2 * settings.min_size:
        return []
    mean = vectors.mean(axis=0)
    _, singular, axes = np.linalg.svd(vectors - mean, full_matrices=False)
    spread = singular / np.sqrt(n - 1)
    # In the axes of the covariance, with one more for what of the mean lies outside them.
    inside = axes @ mean
    outside = np.sqrt(max(0.0, float(mean @ mean) - float(inside @ inside)))
    found = []
    for number in range(settings.n_clouds):
        rng = np.random.default_rng([settings.seed, 1, number])
        cloud = np.empty((n, len(spread) + 1))
        cloud[:, :-1] = inside + rng.standard_normal((n, len(spread))) * spread
        cloud[:, -1] = outside
        lengths = np.sqrt(np.einsum("ij,ij->i", cloud, cloud))
        cloud /= np.where(lengths > 0, lengths, 1.0)[:, None]
        found.append(cut(cloud, settings.most, settings.min_size))
    return found


def _resampled(
    vectors: Float64Array, texts: Int64Array, settings: _Settings
) -> tuple[list[Int64Array], list[Cuts]]:
    """Cluster the uses in some of the texts, several times."""
    n_texts = int(texts.max()) + 1
    kept, found = [], []
    for number in range(settings.n_resamples):
        rng = np.random.default_rng([settings.seed, 2, number])
        size = max(1, round(KEPT_SHARE * n_texts))
        chosen = rng.choice(n_texts, size, replace=False)
        places = np.flatnonzero(np.isin(texts, chosen))
        kept.append(places)
        found.append(cut(vectors[places], settings.most, settings.min_size))
    return kept, found


def _counts(own: Cuts, clouds: list[Cuts], chosen: list[int], most: int) -> tuple[SenseCount, ...]:
    found = []
    for k in range(1, most + 1):
        chance = [one.widths[k] for one in clouds if k in one.widths]
        found.append(
            SenseCount(
                k, own.widths.get(k, float("nan")),
                float(np.mean(chance)) if chance else float("nan"),
                chosen.count(k) / len(chosen) if chosen else float("nan"),
            )
        )  # fmt: skip
    return tuple(found)


def _stability(
    labels: Int32Array, n_senses: int, kept: list[Int64Array], resampled: list[Cuts]
) -> Float64Array:
    """Return for each cluster the mean of its largest Jaccard coefficient in resamples."""
    found = np.full((len(kept), n_senses), np.nan)
    for row, (places, cuts) in enumerate(zip(kept, resampled, strict=True)):
        # Where there are no such clusters, all uses are one.
        there = cuts.labels.get(n_senses, np.zeros(len(places), dtype=np.int32))
        for sense in range(n_senses):
            mine = labels[places] == sense
            if mine.any():
                found[row, sense] = max(
                    (mine & (there == other)).sum() / (mine | (there == other)).sum()
                    for other in range(int(there.max()) + 1)
                )
    sums, known = np.nansum(found, axis=0), (~np.isnan(found)).sum(axis=0)
    return np.where(known > 0, sums / np.maximum(known, 1), np.nan)


def _labelled(
    vectors: Float64Array, drawn: Int64Array, labels: Int32Array | None
) -> tuple[Int32Array, Float64Array, Int64Array]:
    """Return labels of all uses, the largest sense first, the centres, and their former numbers."""
    if labels is None:
        labels = np.zeros(len(drawn), dtype=np.int32)
    n = int(labels.max()) + 1
    sums = np.array([vectors[drawn[labels == sense]].sum(axis=0) for sense in range(n)])
    lengths = np.sqrt(np.einsum("ij,ij->i", sums, sums))
    centers = sums / np.where(lengths > 0, lengths, 1.0)[:, None]
    every = nearest_center(vectors, centers)
    # Those that clusters were made from keep theirs.
    every[drawn] = labels
    sizes = np.bincount(every, minlength=n)
    order = np.argsort(-sizes, kind="stable")
    renumbered = np.empty(n, dtype=np.int32)
    renumbered[order] = np.arange(n)
    return renumbered[every], centers[order], order
