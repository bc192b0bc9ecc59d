"""Senses of a word: clusters of its uses, and how well each layer separates given senses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from embedtopics._utils.checks import checked_count, checked_level, optional_count, resolve_seed
from embedtopics.corpus._texts import is_missing
from embedtopics.decisions import Decision, counted
from embedtopics.errors import InputError
from embedtopics.evaluation._bootstrap import bounded_interval, resampled_sums
from embedtopics.evaluation._label_probes import silhouettes, widths_of
from embedtopics.probing._layers import (
    Layers,
    blocks,
    layer_numbers,
    lengths_of,
    one_blas_thread,
    open_space,
)
from embedtopics.probing.results import HiddenStates
from embedtopics.probing.words._uses import (
    by_text,
    numbered,
    rows_of_word,
    use_at,
    word_key,
)
from embedtopics.probing.words.results import (
    SenseCount,
    SenseScore,
    SenseSeparation,
    WordSenses,
    WordUse,
)
from embedtopics.protocols import BoolArray, Float64Array, Int32Array, Int64Array, RandomState

MOST_BRANCHES = 60
"""Most branches that a tree is cut into, to find large ones beside single uses."""
MOST_STEPS = 50
RESAMPLED_SHARE = 0.8
"""Of the texts, in each resample."""
MEASURES = ("1-NN accuracy", "centroid accuracy", "silhouette")
MAJORITY = "majority"
QUERIES_AT_ONCE = 1024


@dataclass(frozen=True, eq=False)
class _Cuts:
    """Clusters and their mean silhouettes by how many there are; numbers without are left out."""

    labels: Mapping[int, Int32Array]
    widths: Mapping[int, float]

    def best(self, numbers: Iterable[int]) -> int:
        """Return the number with the largest silhouette, of equals the least; 1 without any."""
        able = [k for k in numbers if k in self.widths]
        return max(able, key=lambda k: (self.widths[k], -k)) if able else 1


def _cut(vectors: Float64Array, most: int, min_size: int) -> _Cuts:
    """Cluster unit vectors into 2 to `most` clusters of at least `min_size`, from one tree."""
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
        assigned = _spherical_k_means(vectors, [branch == one for one in large.tolist()])
        if np.bincount(assigned, minlength=len(large)).min() < min_size:
            continue
        labels[len(large)] = assigned
        widths[len(large)] = _mean_silhouette(vectors, assigned)
        if len(tried) == most - 1:
            break
    return _Cuts(labels, widths)


def _nearest_center(vectors: Float64Array, centers: Float64Array) -> Int32Array:
    """Return the center with the largest cosine; of equal ones the first."""
    return np.asarray((vectors @ centers.T).argmax(axis=1), dtype=np.int32)


def _spherical_k_means(vectors: Float64Array, members: list[BoolArray]) -> Int32Array:
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
    """Return the mean of `embedtopics.evaluation.silhouettes`, without its slow thread limit."""
    belongs = np.eye(int(labels.max()) + 1)[labels]
    sums = vectors @ (belongs.T @ vectors).T
    return float(widths_of(sums, np.einsum("ij,ij->i", vectors, vectors), labels).mean())


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
    random_state: RandomState = 0,
) -> WordSenses:
    """Cluster the uses of a word, and test whether there is more than one cluster.

    For every number of senses from 2 to `max_senses`, uses are clustered by cosine: Ward's tree is
    cut where as many branches of at least `min_size` uses appear, then spherical k-means starts
    from them. The number with the largest mean silhouette is chosen, if it exceeds that of single
    clouds: normal clouds with the mean and the covariance of the uses, normalized, are clustered
    in the same way, and p is the share of them whose best silhouette is as large (as the test of
    Liu et al. 2008, "Statistical significance of clustering for high-dimension, low-sample size
    data", on the silhouette). Otherwise all uses are one sense.

    A rare sense beside a frequent one is not found, and uses of a single sense separate too where
    a word is also used in lists or set phrases. `counts` shows how often each number is chosen
    when a fifth of the texts is left out, and `stability` how often each cluster is recovered
    (Hennig 2007, "Cluster-wise assessment of cluster stability").

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
    rows_of_uses = rows_of_word(states, word)
    rows = rows_of_uses[by_text(states, rows_of_uses)]
    uses = tuple(use_at(states, row) for row in rows.tolist())
    space = open_space(states, layer)
    vectors = space.unit(rows)
    drawn, decisions = _drawn(uses, max_uses, seed)
    most = max_senses if n_senses is None else n_senses
    settings = _Settings(most, min_size, alpha, n_clouds, n_resamples, seed)
    texts = numbered([states.texts[uses[i].text] for i in drawn.tolist()])
    choice = _choose(vectors[drawn], texts, settings, n_senses)
    if n_senses is not None and n_senses > 1 and choice.labels is None:
        expected = f"fewer than that for {len(drawn)} distinct uses of {word!r}"
        raise InputError("n_senses", expected, n_senses, "or lower min_size")
    if choice.labels is None and len(drawn) < 2 * min_size:
        message = f"{len(drawn)} distinct uses are too few for two clusters of {min_size}."
        decisions.append(Decision("probing", "too_few_uses", len(drawn), message))
    labels, centers, order = _labelled(vectors, drawn, choice.labels)
    widths = np.full(len(rows), np.nan)
    if len(centers) > 1 and len(np.unique(labels)) > 1:
        widths = silhouettes(vectors, labels)  # type: ignore[arg-type]
    return WordSenses(
        word=word_key(word.strip()),
        layer=space.layer,
        encoder=states.encoder,
        uses=uses,
        labels=labels,
        similarities=np.einsum("ij,ij->i", vectors, centers[labels]),
        silhouettes=widths,
        centers=centers.astype(np.float32),
        counts=choice.counts,
        p=choice.p,
        stability=choice.stability[order],
        chosen=n_senses is None,
        decisions=(*states.decisions, *decisions),
    )


class _Settings(NamedTuple):
    most: int
    min_size: int
    alpha: float
    n_clouds: int
    n_resamples: int
    seed: int


class _Choice(NamedTuple):
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
    message = f"of {len(uses)} uses repeat a sentence and were not clustered again."
    decisions = counted("probing", "equal_sentences", len(uses) - len(drawn), message)
    if len(drawn) > max_uses:
        message = f"{max_uses} of {len(drawn)} uses were drawn and clustered, the others assigned."
        decisions.append(Decision("probing", "uses_drawn", max_uses, message))
        sample = np.random.default_rng(seed).choice(len(drawn), max_uses, replace=False)
        drawn = drawn[np.sort(sample)]
    return drawn, decisions


def _choose(
    vectors: Float64Array, texts: Int64Array, settings: _Settings, required: int | None
) -> _Choice:
    if settings.most < 2:
        return _Choice(None, (), float("nan"), np.full(1, np.nan))
    with one_blas_thread():
        observed = _cut(vectors, settings.most, settings.min_size)
        clouds = _clouds(vectors, settings)
        numbers = range(2, settings.most + 1)
        if required is not None:
            numbers = range(required, required + 1)
        by_chance = [max(one.widths.get(k, -np.inf) for k in numbers) for one in clouds]

        def p_of(cuts: _Cuts, number: int) -> float:
            width = cuts.widths.get(number, -np.inf)
            return (1 + sum(chance >= width for chance in by_chance)) / (1 + len(by_chance))

        best = observed.best(numbers)
        p = p_of(observed, best)
        n_senses = 1 if required is None and p > settings.alpha else best
        resamples = _resample(texts, settings)
        resampled = [
            _cut(vectors[places], settings.most, settings.min_size) for places in resamples
        ]
    numbers_there = [one.best(numbers) for one in resampled]
    chosen_there = [
        number if p_of(one, number) <= settings.alpha else 1
        for one, number in zip(resampled, numbers_there, strict=True)
    ]
    counts = _counts(observed, clouds, chosen_there, settings.most)
    if n_senses == 1:
        return _Choice(
            None, counts, p if len(observed.widths) else float("nan"), np.full(1, np.nan)
        )
    labels = observed.labels[n_senses]
    return _Choice(labels, counts, p, _stability(labels, n_senses, resamples, resampled))


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
    cuts = []
    for number in range(settings.n_clouds):
        rng = np.random.default_rng([settings.seed, 1, number])
        cloud = np.empty((n, len(spread) + 1))
        cloud[:, :-1] = inside + rng.standard_normal((n, len(spread))) * spread
        cloud[:, -1] = outside
        cloud /= lengths_of(cloud)[:, None]
        cuts.append(_cut(cloud, settings.most, settings.min_size))
    return cuts


def _resample(texts: Int64Array, settings: _Settings) -> list[Int64Array]:
    """Return the uses in some of the texts, several times."""
    n_texts = int(texts.max()) + 1
    size = max(1, round(RESAMPLED_SHARE * n_texts))
    samples = []
    for number in range(settings.n_resamples):
        rng = np.random.default_rng([settings.seed, 2, number])
        samples.append(np.flatnonzero(np.isin(texts, rng.choice(n_texts, size, replace=False))))
    return samples


def _counts(
    observed: _Cuts, clouds: list[_Cuts], numbers: list[int], most: int
) -> tuple[SenseCount, ...]:
    counts, nan = [], float("nan")
    for k in range(1, most + 1):
        chance = [one.widths[k] for one in clouds if k in one.widths]
        by_chance = float(np.mean(chance)) if chance else nan
        share = numbers.count(k) / len(numbers) if numbers else nan
        counts.append(SenseCount(k, observed.widths.get(k, nan), by_chance, share))
    return tuple(counts)


def _stability(
    labels: Int32Array, n_senses: int, resamples: list[Int64Array], resampled: list[_Cuts]
) -> Float64Array:
    """Return for each cluster the mean of its largest Jaccard coefficient in resamples."""
    overlaps = np.full((len(resamples), n_senses), np.nan)
    for row, (places, cuts) in enumerate(zip(resamples, resampled, strict=True)):
        # Without such clusters, all uses are one.
        there = cuts.labels.get(n_senses, np.zeros(len(places), dtype=np.int32))
        for sense in range(n_senses):
            mine = labels[places] == sense
            if mine.any():
                overlaps[row, sense] = max(
                    (mine & (there == other)).sum() / (mine | (there == other)).sum()
                    for other in range(int(there.max()) + 1)
                )
    sums, n_defined = np.nansum(overlaps, axis=0), (~np.isnan(overlaps)).sum(axis=0)
    return np.where(n_defined > 0, sums / np.maximum(n_defined, 1), np.nan)


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


def sense_separation(
    states: HiddenStates,
    word: str,
    labels: Sequence[str],
    *,
    layers: Layers = "all",
    n_resamples: int = 1000,
    random_state: RandomState = 0,
) -> SenseSeparation:
    """Measure, layer by layer, how well uses of a word with known senses are separated.

    Each use is assigned the sense of the nearest other use of the word ("1-NN accuracy"), and the
    sense whose centroid is nearest ("centroid accuracy"); uses in its own text, or in a text of the
    same wording, are left out of both. The silhouette is that of the senses, by cosine. "majority"
    is the share of the most frequent sense, the least that a layer should reach.

    Parameters
    ----------
    states : HiddenStates
        Of words or tokens.
    word : str
    labels : sequence of str
        The sense of each use; those without, "", None or NaN, are left out.
    layers : int, sequence of int, "all" or "last N"
    n_resamples : int
        Of the intervals, over texts; neighbors are those of all texts.
    random_state : int, Generator or None

    Returns
    -------
    SenseSeparation

    Raises
    ------
    InputError
        If labels and uses do not fit, or the word has no two senses in several texts.

    References
    ----------
    Loureiro et al. (2021), "Analysis and evaluation of language models for word sense
    disambiguation", sections 4 and 5. Rousseeuw (1987), "Silhouettes".
    """
    checked_count(n_resamples, "n_resamples")
    rows = rows_of_word(states, word)
    if isinstance(labels, (str, bytes)) or len(labels) != len(rows):
        raise InputError("labels", f"a sense for each of the {len(rows)} uses", labels)
    senses = np.array(["" if is_missing(label) else str(label) for label in labels])
    labelled = np.flatnonzero(senses != "")
    message = f"of {len(rows)} uses without a sense were left out."
    decisions = counted("probing", "uses_left_out", len(rows) - len(labelled), message)
    order = labelled[by_text(states, rows[labelled])]
    uses, names = rows[order], np.unique(senses[order])
    classes = np.searchsorted(names, senses[order])
    texts = numbered([states.texts[text] for text in states.of_text[uses]])
    if len(names) < 2 or texts.max() < 1:
        raise InputError("labels", "of two senses or more, in at least two texts")
    numbers = layer_numbers(layers, states.layers)
    columns = [(classes == np.bincount(classes).argmax()).astype(np.float64)]
    with one_blas_thread():
        for number in numbers:
            vectors = open_space(states, number).unit(uses)
            columns.append((classes[_nearest_elsewhere(vectors, texts)] == classes).astype(float))
            columns.append((_nearest_centroid(vectors, classes, texts) == classes).astype(float))
            columns.append(silhouettes(vectors, classes))
    drawn = _resampled_means(
        np.stack(columns, axis=1), texts, n_resamples, resolve_seed(random_state)
    )
    measures: list[tuple[int | None, str]] = [(None, MAJORITY)]
    measures += [(number, measure) for number in numbers for measure in MEASURES]
    least = np.array([-1.0 if measure == "silhouette" else 0.0 for _, measure in measures])
    n_texts = int(texts.max()) + 1
    low, high = bounded_interval(drawn[0], drawn[1:], n_texts, bounds=(least, 1.0))
    return SenseSeparation(
        encoder=states.encoder,
        word=word_key(word.strip()),
        n_senses=len(names),
        rows=tuple(
            SenseScore(*one, float(drawn[0, i]), float(low[i]), float(high[i]), len(uses))
            for i, one in enumerate(measures)
        ),
        decisions=(*states.decisions, *decisions),
    )


def _nearest_elsewhere(vectors: Float64Array, texts: npt.NDArray[Any]) -> Int64Array:
    """Return the place of the nearest use in another text; of equal ones the first."""
    nearest = np.empty(len(vectors), dtype=np.int64)
    for part in blocks(len(vectors), QUERIES_AT_ONCE):
        cosines = vectors[part] @ vectors.T
        cosines[texts[part][:, None] == texts] = -np.inf
        nearest[part] = cosines.argmax(axis=1)
    return nearest


def _nearest_centroid(
    vectors: Float64Array, classes: npt.NDArray[Any], texts: npt.NDArray[Any]
) -> Int64Array:
    """Return the class whose mean, without the uses in the same text, is nearest."""
    n_classes = int(classes.max()) + 1
    sums = np.array([vectors[classes == c].sum(axis=0) for c in range(n_classes)])
    sizes = np.bincount(classes, minlength=n_classes)
    order = np.argsort(texts, kind="stable")
    starts = np.searchsorted(texts[order], np.arange(int(texts.max()) + 2))
    predicted = np.empty(len(vectors), dtype=np.int64)
    for begin, end in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        in_text = order[begin:end]
        others, left = sums.copy(), sizes.copy()
        for use in in_text.tolist():
            others[classes[use]] -= vectors[use]
            left[classes[use]] -= 1
        cosines = np.einsum("ij,kj->ik", vectors[in_text], others) / lengths_of(others)
        predicted[in_text] = np.where(left > 0, cosines, -np.inf).argmax(axis=1)
    return predicted


def _resampled_means(
    figures: Float64Array, texts: npt.NDArray[Any], n_resamples: int, seed: int
) -> Float64Array:
    """Return the means, and then those over resampled texts, shape (1 + n_resamples, n)."""
    n_texts = int(texts.max()) + 1
    columns = np.zeros((n_texts, figures.shape[1] + 1))
    np.add.at(columns, texts, np.column_stack([figures, np.ones(len(figures))]))
    sums = np.concatenate([columns.sum(axis=0)[None], resampled_sums(columns, n_resamples, seed)])
    return np.asarray(sums[:, :-1] / sums[:, -1:])
