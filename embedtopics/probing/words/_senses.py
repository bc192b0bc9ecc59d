"""Clusters of the uses of a word, tested against the clusters of single normal clouds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from embedtopics._utils.checks import checked_count, checked_level, optional_count, resolve_seed
from embedtopics.corpus.results import Decision
from embedtopics.errors import InputError
from embedtopics.evaluation._label_probes import silhouettes
from embedtopics.probing._layers import lengths_of, one_blas_thread, open_space
from embedtopics.probing.results import HiddenStates
from embedtopics.probing.words._uses import numbered, rows_of_word, use_at, word_key
from embedtopics.probing.words.results import SenseCount, WordSenses, WordUse
from embedtopics.protocols import Float64Array, Int32Array, Int64Array, RandomState

# Clusters of unit vectors for every number of clusters, from one tree.

MOST_BRANCHES = 60
"""Most branches that a tree is cut into, to find large ones beside single uses."""

MOST_STEPS = 50


@dataclass(frozen=True, eq=False)
class _Cuts:
    """Clusters, and their mean silhouettes, by how many there are; numbers without are left out.

    Shapes: `labels` (n,).
    """

    labels: Mapping[int, Int32Array]
    widths: Mapping[int, float]

    def best(self, numbers: Iterable[int]) -> int:
        """Return the number with the largest silhouette, of equals the least; 1 without any."""
        able = [k for k in numbers if k in self.widths]
        return max(able, key=lambda k: (self.widths[k], -k)) if able else 1


def _cut(vectors: Float64Array, most: int, min_size: int) -> _Cuts:
    """Cluster unit vectors into 2 to `most` clusters of at least `min_size`."""
    from scipy.cluster.hierarchy import fcluster, linkage

    n = len(vectors)
    if n < 2 * min_size:
        return _Cuts({}, {})
    squared = np.maximum(2 - 2 * (vectors @ vectors.T), 0.0)
    distances = np.sqrt(squared[np.triu_indices(n, k=1)])
    tree = linkage(distances, method="ward")
    labels: dict[int, Int32Array] = {}
    widths: dict[int, float] = {}
    tried: set[int] = set()
    for n_branches in range(2, min(n, MOST_BRANCHES) + 1):
        branch = fcluster(tree, n_branches, "maxclust")
        large = np.flatnonzero(np.bincount(branch) >= min_size)
        if len(large) < 2 or len(large) > most or len(large) in tried:
            continue
        tried.add(len(large))
        found = _spherical_k_means(vectors, [branch == one for one in large.tolist()])
        if np.bincount(found, minlength=len(large)).min() < min_size:
            continue
        labels[len(large)] = found
        widths[len(large)] = _mean_silhouette(vectors, found)
        if len(tried) == most - 1:
            break
    return _Cuts(labels, widths)


def _nearest_center(vectors: Float64Array, centers: Float64Array) -> Int32Array:
    """Return the center with the largest cosine; of equal ones the first."""
    return np.asarray((vectors @ centers.T).argmax(axis=1), dtype=np.int32)


def _spherical_k_means(vectors: Float64Array, members: list[npt.NDArray[np.bool_]]) -> Int32Array:
    """Assign every vector to the nearest center, until none moves."""
    labels = np.full(len(vectors), -1, dtype=np.int32)
    for _ in range(MOST_STEPS):
        sums = np.array([vectors[inside].sum(axis=0) for inside in members])
        moved = _nearest_center(vectors, sums / lengths_of(sums)[:, None])
        if (moved == labels).all():
            break
        labels = moved
        members = [labels == one for one in range(len(members))]
    return labels


def _mean_silhouette(vectors: Float64Array, labels: Int32Array) -> float:
    """Return the mean of `embedtopics.evaluation.silhouettes`, without its thread limit.

    Setting that at each call takes longer than all the sums.
    """
    belongs = np.eye(int(labels.max()) + 1)[labels]
    sizes = belongs.sum(axis=0)
    sums = vectors @ (belongs.T @ vectors).T
    between = 1 - sums / sizes
    own = np.arange(len(labels)), labels
    alone = np.einsum("ij,ij->i", vectors, vectors)
    within = 1 - (sums[own] - alone) / (sizes[labels] - 1)
    between[own] = np.inf
    nearest = between.min(axis=1)
    largest = np.maximum(within, nearest)
    widths = np.zeros(len(labels))
    np.divide(nearest - within, largest, out=widths, where=largest > 0)
    return float(widths.mean())


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
    random_state: RandomState = 0,
) -> WordSenses:
    """Cluster the uses of a word, and test whether there is more than one cluster.

    For every number of senses from 2 to `max_senses`, uses are clustered by cosine: Ward's tree is
    cut where as many branches of at least `min_size` uses appear, then spherical k-means starts
    from them. The number with the largest mean silhouette is chosen, if that silhouette exceeds
    those of single clouds: normal clouds with the mean and the covariance of the uses, normalized,
    are clustered in the same way, and p is the share of them whose best silhouette is as large (as
    the test of Liu et al. 2008, "Statistical significance of clustering for high-dimension,
    low-sample size data", on the silhouette). Otherwise all uses are one sense.

    The test is whether the uses are one cloud, not whether the word has one sense: a rare sense
    beside a frequent one is not found, and uses of a single sense separate too where a word is
    also used in lists or set phrases. `counts` shows how often each number is chosen when a fifth
    of the texts is left out, and `stability` how often each cluster is recovered (Hennig 2007,
    "Cluster-wise assessment of cluster stability").

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
        With more, a random sample is clustered, and the others are assigned to the nearest cluster.
    alpha : float
        Largest p for more than one sense.
    n_clouds, n_resamples : int
        `n_resamples` may be 0.
    adjust : {"none", "center", "standardize"}
    match_case : bool
    random_state : int, Generator or None

    Returns
    -------
    WordSenses

    Raises
    ------
    InputError
        If the word does not occur, or its uses do not form as many clusters as requested.
    """
    optional_count(n_senses, "n_senses")
    checked_count(max_senses, "max_senses", 2)
    checked_count(min_size, "min_size", 2)
    checked_count(max_uses, "max_uses", 2 * min_size)
    checked_level(alpha, "alpha")
    checked_count(n_clouds, "n_clouds")
    checked_count(n_resamples, "n_resamples", 0)
    if n_senses is None and 1 / (n_clouds + 1) > alpha:
        least = int(np.ceil(1 / alpha))
        raise InputError("n_clouds", f"{least} or more, for a p of {alpha} or less", n_clouds)
    seed = resolve_seed(random_state)
    found_rows = rows_of_word(states, word, match_case).tolist()
    found_rows.sort(key=lambda r: (states.texts[states.of_text[r]], states.position[r], r))
    rows = np.array(found_rows)
    uses = tuple(use_at(states, row) for row in rows.tolist())
    space = open_space(states, layer, adjust)
    vectors = space.unit(rows)
    drawn, decisions = _drawn(uses, max_uses, seed)
    most = max_senses if n_senses is None else n_senses
    settings = _Settings(most, min_size, alpha, n_clouds, n_resamples, seed)
    texts = numbered([states.texts[uses[i].text] for i in drawn.tolist()])
    found = _choose(vectors[drawn], texts, settings, n_senses)
    if n_senses is not None and n_senses > 1 and found.labels is None:
        expected = f"fewer than that for {len(drawn)} distinct uses of {word!r}"
        raise InputError("n_senses", expected, n_senses, "or lower min_size")
    if found.labels is None and len(drawn) < 2 * min_size:
        message = f"{len(drawn)} distinct uses are too few for two clusters of {min_size}."
        decisions.append(Decision("probing", "too_few_uses", len(drawn), message))
    labels, centers, order = _labelled(vectors, drawn, found.labels)
    widths = np.full(len(rows), np.nan)
    if len(centers) > 1 and len(np.unique(labels)) > 1:
        widths = silhouettes(vectors, labels)  # type: ignore[arg-type]
    return WordSenses(
        word_key(word.strip(), match_case),
        space.layer,
        states.encoder,
        adjust,
        uses,
        labels,
        np.einsum("ij,ij->i", vectors, centers[labels]),
        widths,
        centers.astype(np.float32),
        found.counts,
        found.p,
        found.stability[order],
        n_senses is None,
        (*states.decisions, *decisions),
    )


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
    """Labels of the sampled uses, or None for one sense, with their counts, p and stability."""

    labels: Int32Array | None
    counts: tuple[SenseCount, ...]
    p: float
    stability: Float64Array


def _drawn(
    uses: tuple[WordUse, ...], max_uses: int, seed: int
) -> tuple[Int64Array, list[Decision]]:
    """Return the uses that are clustered: one of each wording, at most `max_uses`."""
    first: dict[tuple[str, int], int] = {}
    for place, use in enumerate(uses):
        first.setdefault((use.sentence, use.start), place)
    drawn = np.array(list(first.values()), dtype=np.int64)
    decisions = []
    if len(drawn) < len(uses):
        copies = len(uses) - len(drawn)
        message = f"{copies} of {len(uses)} uses repeat a sentence and were not clustered again."
        decisions.append(Decision("probing", "equal_sentences", copies, message))
    if len(drawn) > max_uses:
        message = (
            f"{max_uses} of {len(drawn)} uses, drawn at random, were clustered; the others were "
            "assigned to the nearest cluster."
        )
        decisions.append(Decision("probing", "uses_drawn", max_uses, message))
        chosen = np.random.default_rng(seed).choice(len(drawn), max_uses, replace=False)
        drawn = drawn[np.sort(chosen)]
    return drawn, decisions


def _choose(
    vectors: Float64Array, texts: Int64Array, settings: _Settings, given: int | None
) -> _Choice:
    """Return the clusters of the best number, or of the number given."""
    if settings.most < 2:
        return _Choice(None, (), float("nan"), np.full(1, np.nan))
    with one_blas_thread():
        own = _cut(vectors, settings.most, settings.min_size)
        clouds = _clouds(vectors, settings)
        numbers = range(2, settings.most + 1)
        if given is not None:
            numbers = range(given, given + 1)
        by_chance = [max(one.widths.get(k, -np.inf) for k in numbers) for one in clouds]
        best = own.best(numbers)
        width = own.widths.get(best, -np.inf)
        p = (1 + sum(chance >= width for chance in by_chance)) / (1 + len(by_chance))
        chosen = 1 if given is None and p > settings.alpha else best
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


def _clouds(vectors: Float64Array, settings: _Settings) -> list[_Cuts]:
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
        cloud /= lengths_of(cloud)[:, None]
        found.append(_cut(cloud, settings.most, settings.min_size))
    return found


def _resampled(
    vectors: Float64Array, texts: Int64Array, settings: _Settings
) -> tuple[list[Int64Array], list[_Cuts]]:
    """Cluster the uses in some of the texts, several times."""
    n_texts = int(texts.max()) + 1
    kept, found = [], []
    for number in range(settings.n_resamples):
        rng = np.random.default_rng([settings.seed, 2, number])
        size = max(1, round(KEPT_SHARE * n_texts))
        chosen = rng.choice(n_texts, size, replace=False)
        places = np.flatnonzero(np.isin(texts, chosen))
        kept.append(places)
        found.append(_cut(vectors[places], settings.most, settings.min_size))
    return kept, found


def _counts(
    own: _Cuts, clouds: list[_Cuts], chosen: list[int], most: int
) -> tuple[SenseCount, ...]:
    found, nan = [], float("nan")
    for k in range(1, most + 1):
        chance = [one.widths[k] for one in clouds if k in one.widths]
        by_chance = float(np.mean(chance)) if chance else nan
        share = chosen.count(k) / len(chosen) if chosen else nan
        found.append(SenseCount(k, own.widths.get(k, nan), by_chance, share))
    return tuple(found)


def _stability(
    labels: Int32Array, n_senses: int, kept: list[Int64Array], resampled: list[_Cuts]
) -> Float64Array:
    """Return for each cluster the mean of its largest Jaccard coefficient in resamples."""
    found = np.full((len(kept), n_senses), np.nan)
    for row, (places, cuts) in enumerate(zip(kept, resampled, strict=True)):
        # Without such clusters, all uses are one.
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
    """Return labels of all uses, the largest sense first, the centers, and their old numbers."""
    if labels is None:
        labels = np.zeros(len(drawn), dtype=np.int32)
    n = int(labels.max()) + 1
    sums = np.array([vectors[drawn[labels == sense]].sum(axis=0) for sense in range(n)])
    centers = sums / lengths_of(sums)[:, None]
    every = _nearest_center(vectors, centers)
    # Those that were clustered keep their labels.
    every[drawn] = labels
    sizes = np.bincount(every, minlength=n)
    order = np.argsort(-sizes, kind="stable")
    renumbered = np.empty(n, dtype=np.int32)
    renumbered[order] = np.arange(n)
    return renumbered[every], centers[order], order
