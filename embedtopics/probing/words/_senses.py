"""Senses of a word: clusters of its uses, and the separation of labelled senses by layer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from embedtopics._utils.checks import checked_count, optional_count, resolve_seed
from embedtopics.corpus._texts import is_missing
from embedtopics.decisions import Decision, counted
from embedtopics.errors import InputError
from embedtopics.evaluation._bootstrap import bounded_interval, resampled_sums
from embedtopics.evaluation._labels import silhouettes, widths_of
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
    SenseScore,
    SenseSeparation,
    WordSenses,
    WordUse,
)
from embedtopics.protocols import BoolArray, Float64Array, Int32Array, Int64Array, RandomState

MOST_BRANCHES = 60
"""Most branches of a tree: large ones are found among branches of single uses."""
MOST_STEPS = 50
ALPHA = 0.05
"""Largest p for more than one sense."""
MOST_USES = 500
"""Uses that are clustered: Ward's tree needs their distances."""
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
        available = [k for k in numbers if k in self.widths]
        return max(available, key=lambda k: (self.widths[k], -k)) if available else 1


def _cut(vectors: Float64Array, most: int, min_size: int) -> _Cuts:
    """Cluster unit vectors into 2 to `most` clusters of at least `min_size`, from one tree."""
    from scipy.cluster.hierarchy import fcluster, linkage

    n = len(vectors)
    if n < 2 * min_size or most < 2:
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
    n_clouds: int = 99,
    random_state: RandomState = 0,
) -> WordSenses:
    """Cluster the uses of a word, and test whether there is more than one cluster.

    For every number of senses from 2 to `max_senses`, uses are clustered by cosine: Ward's tree is
    cut into as many branches of at least `min_size` uses, and spherical k-means starts from them.
    The number with the largest mean silhouette is chosen if that silhouette exceeds those of
    single clouds. A cloud is drawn from the normal distribution with the mean and the covariance
    of the uses, normalized and clustered in the same way; p is the share of clouds whose best
    silhouette is as large (after Liu et al. 2008, "Statistical significance of clustering for
    high-dimension, low-sample size data"). If p exceeds 0.05, all uses are one sense.

    The test does not find a rare sense next to a frequent one. Uses of a single sense also
    separate if the word occurs in lists or set phrases. Of more than 500 uses a random sample is
    clustered, and the others are assigned to the nearest cluster.

    Parameters
    ----------
    states : HiddenStates
    word : str
        Case is ignored.
    layer : int
        Negative numbers count from the last.
    n_senses : int, optional
        None chooses it.
    max_senses, min_size : int
        Most clusters, and fewest uses in one.
    n_clouds : int
        At least 19 for a p of 0.05.
    random_state : int, Generator or None

    Returns
    -------
    WordSenses

    Raises
    ------
    InputError
        If the word does not occur, or its uses do not form `n_senses` clusters.
    """
    optional_count(n_senses, "n_senses")
    checked_count(max_senses, "max_senses", 2)
    checked_count(min_size, "min_size", 2)
    if n_senses is None:
        checked_count(n_clouds, "n_clouds", int(np.ceil(1 / ALPHA)) - 1)
    seed = resolve_seed(random_state)
    rows_of_uses = rows_of_word(states, word)
    rows = rows_of_uses[by_text(states, rows_of_uses)]
    uses = tuple(use_at(states, row) for row in rows.tolist())
    space = open_space(states, layer)
    vectors = space.unit(rows)
    drawn, decisions = _drawn(uses, seed)
    most = max_senses if n_senses is None else n_senses
    with one_blas_thread():
        observed = _cut(vectors[drawn], most, min_size)
        clouds = _clouds(vectors[drawn], most, min_size, n_clouds, seed)
    numbers = range(2, most + 1) if n_senses is None else [n_senses]
    best, p = observed.best(numbers), float("nan")
    if observed.widths:
        width = observed.widths.get(best, -np.inf)
        widths_by_chance = [max(one.widths.get(k, -np.inf) for k in numbers) for one in clouds]
        p = (1 + sum(one >= width for one in widths_by_chance)) / (1 + len(clouds))
    if best == 1 and n_senses not in (None, 1):
        expected = f"fewer than that for {len(drawn)} distinct uses of {word!r}"
        raise InputError("n_senses", expected, n_senses, "or lower min_size")
    if best > 1 and n_senses is None and p > ALPHA:
        best = 1
    if best == 1 and len(drawn) < 2 * min_size:
        message = f"{len(drawn)} distinct uses are too few for two clusters of {min_size}."
        decisions.append(Decision("probing", "too_few_uses", len(drawn), message))
    labels, centers = _labelled(vectors, drawn, observed.labels[best] if best > 1 else None)
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
        p=p,
        chosen=n_senses is None,
        decisions=(*states.decisions, *decisions),
    )


def _drawn(uses: tuple[WordUse, ...], seed: int) -> tuple[Int64Array, list[Decision]]:
    """Return the uses that are clustered: one of each wording, at most `MOST_USES`."""
    first: dict[tuple[str, int], int] = {}
    for place, use in enumerate(uses):
        first.setdefault((use.sentence, use.start), place)
    drawn = np.array(list(first.values()), dtype=np.int64)
    message = f"of {len(uses)} uses repeat a sentence and were not clustered again."
    decisions = counted("probing", "equal_sentences", len(uses) - len(drawn), message)
    if len(drawn) > MOST_USES:
        message = f"{MOST_USES} of {len(drawn)} uses were drawn and clustered, the others assigned."
        decisions.append(Decision("probing", "uses_drawn", MOST_USES, message))
        sample = np.random.default_rng(seed).choice(len(drawn), MOST_USES, replace=False)
        drawn = drawn[np.sort(sample)]
    return drawn, decisions


def _clouds(
    vectors: Float64Array, most: int, min_size: int, n_clouds: int, seed: int
) -> list[_Cuts]:
    """Cluster single normal clouds with the mean and covariance of the vectors."""
    n = len(vectors)
    if n < 2 * min_size or most < 2:
        return []
    mean = vectors.mean(axis=0)
    _, singular, axes = np.linalg.svd(vectors - mean, full_matrices=False)
    spread = singular / np.sqrt(n - 1)
    # In the axes of the covariance, with one more for what of the mean lies outside them.
    inside = axes @ mean
    outside = np.sqrt(max(0.0, float(mean @ mean) - float(inside @ inside)))
    cuts = []
    for number in range(n_clouds):
        rng = np.random.default_rng([seed, 1, number])
        cloud = np.empty((n, len(spread) + 1))
        cloud[:, :-1] = inside + rng.standard_normal((n, len(spread))) * spread
        cloud[:, -1] = outside
        cloud /= lengths_of(cloud)[:, None]
        cuts.append(_cut(cloud, most, min_size))
    return cuts


def _labelled(
    vectors: Float64Array, drawn: Int64Array, labels: Int32Array | None
) -> tuple[Int32Array, Float64Array]:
    """Return the labels of all uses, the largest sense first, and the centers."""
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
    return renumbered[every], centers[order]


def sense_separation(
    states: HiddenStates,
    word: str,
    labels: Sequence[str],
    *,
    layers: Layers = "all",
    n_resamples: int = 1000,
    random_state: RandomState = 0,
) -> SenseSeparation:
    """Measure how well each layer separates labelled senses of a word.

    "1-NN accuracy" assigns each use the sense of the nearest other use of the word, and "centroid
    accuracy" the sense with the nearest centroid; both exclude uses in the same text and in texts
    with the same wording. "silhouette" is the mean silhouette of the senses by cosine. "majority"
    is the share of the most frequent sense, a baseline for the accuracies.

    Parameters
    ----------
    states : HiddenStates
        States of words or tokens.
    word : str
    labels : sequence of str
        The sense of each use in order; uses with "", None or NaN are left out.
    layers : int, sequence of int, "all" or "last N"
    n_resamples : int
        For the intervals, over texts; the neighbors stay the same.
    random_state : int, Generator or None

    Returns
    -------
    SenseSeparation

    Raises
    ------
    InputError
        If labels and uses do not match, or there are not two senses in at least two texts.

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
