"""Strategies: which text is worth a label most, from the vectors and what the model thinks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from embedtopics._utils.checks import checked_choice, checked_count
from embedtopics.errors import InputError
from embedtopics.neighbors._graph import nearest
from embedtopics.protocols import Float64Array, FloatArray, Int64Array

MEASURES = ("margin", "entropy")


@dataclass(frozen=True, eq=False)
class Pool:
    """What a strategy sees.

    Parameters
    ----------
    vectors : float32 ndarray of shape (n_texts, n_dimensions)
        Of length 1.
    candidates : int64 ndarray of shape (n_candidates,)
        Rows of the texts that may be picked.
    labelled : int64 ndarray of shape (n_labelled,)
        Rows of the texts with a label that the model may learn from.
    codes : int64 ndarray of shape (n_labelled,) or (n_labelled, n_classes)
    probabilities : float64 ndarray of shape (n_texts, n_classes) or None
        None before there is a model.
    seed : int
    """

    vectors: FloatArray
    candidates: Int64Array
    labelled: Int64Array
    codes: Int64Array
    probabilities: Float64Array | None
    seed: int = 0

    @property
    def n_per_class(self) -> Int64Array:
        """Labelled texts of each class."""
        n_classes = 0 if self.probabilities is None else self.probabilities.shape[1]
        if self.codes.ndim == 2:
            return np.asarray(self.codes.sum(axis=0))
        return np.asarray(np.bincount(self.codes, minlength=n_classes))

    def of_class(self, code: int) -> Int64Array:
        """Return the labelled rows of a class."""
        column = self.codes == code if self.codes.ndim == 1 else self.codes[:, code] == 1
        return np.asarray(self.labelled[column])


class Strategy(Protocol):
    """What picks texts for the *teach* stream."""

    def pick(self, pool: Pool, n: int) -> Int64Array:
        """Return the rows of at most `n` candidates, the best first."""
        ...


@dataclass(frozen=True)
class RandomSampling:
    """Texts in random order, the baseline of every other strategy."""

    def pick(self, pool: Pool, n: int) -> Int64Array:
        """Return the rows of `n` candidates."""
        rng = np.random.default_rng([pool.seed, len(pool.labelled)])
        return rng.permutation(pool.candidates)[:n]


@dataclass(frozen=True)
class CoreSet:
    """Texts that are farthest from all labelled ones: the greedy core-set.

    Sener and Savarese 2018, "Active learning for convolutional neural networks: a core-set
    approach", algorithm 1, by Euclidean distance of unit vectors. The first text of all is the one
    nearest to the mean.
    """

    def pick(self, pool: Pool, n: int) -> Int64Array:
        """Return the rows of `n` candidates."""
        vectors = pool.vectors[pool.candidates]
        closest = np.full(len(vectors), -np.inf, dtype=np.float32)
        for begin in range(0, len(pool.labelled), 256):
            part = pool.vectors[pool.labelled[begin : begin + 256]]
            closest = np.maximum(closest, (vectors @ part.T).max(axis=1))
        picked: list[int] = []
        for _ in range(min(n, len(vectors))):
            if len(pool.labelled) or picked:
                best = int(closest.argmin())
            else:
                best = int((vectors @ vectors.mean(axis=0)).argmax())
            picked.append(best)
            closest = np.maximum(closest, vectors @ vectors[best])
            closest[picked] = np.inf
        return pool.candidates[picked]


@dataclass(frozen=True)
class Uncertainty:
    """Texts of which the model is least sure.

    Parameters
    ----------
    measure : {"margin", "entropy"}
        The least difference of the two likeliest classes (Scheffer et al. 2001; "breaking ties"),
        or the largest entropy. For several labels a text, that of its least sure label.
    """

    measure: str = "margin"

    def __post_init__(self) -> None:
        checked_choice(self.measure, "measure", MEASURES)

    def pick(self, pool: Pool, n: int) -> Int64Array:
        """Return the rows of `n` candidates."""
        if pool.probabilities is None:
            return CoreSet().pick(pool, n)
        return pool.candidates[_first(self.doubt(pool, pool.candidates), n)]

    def doubt(self, pool: Pool, rows: Int64Array) -> Float64Array:
        """Return how little sure the model is of some rows, (n_rows,)."""
        assert pool.probabilities is not None
        found = pool.probabilities[rows]
        if pool.codes.ndim == 2:
            return np.asarray(-np.abs(found - 0.5).min(axis=1))
        if self.measure == "entropy":
            return np.asarray(-(found * np.log(np.maximum(found, 1e-300))).sum(axis=1))
        ordered = np.sort(found, axis=1)
        return np.asarray(ordered[:, -2] - ordered[:, -1])


@dataclass(frozen=True)
class RareNeighbors:
    """Unsure texts among the nearest neighbours of those labelled with the rarest class.

    AnchorAL (Lesci and Vlachos 2024, arXiv 2404.05623): a small pool of the neighbours of labelled
    texts of a rare class, from which uncertainty picks.

    Parameters
    ----------
    k : int
        Neighbours of each.
    size : int
        Texts in the pool, the most similar ones.
    """

    k: int = 50
    size: int = 100

    def __post_init__(self) -> None:
        checked_count(self.k, "k")
        checked_count(self.size, "size")

    def pick(self, pool: Pool, n: int) -> Int64Array:
        """Return the rows of `n` candidates."""
        counts = pool.n_per_class
        seen = np.flatnonzero(counts)
        if pool.probabilities is None or not len(seen):
            return CoreSet().pick(pool, n)
        anchors = pool.of_class(int(seen[counts[seen].argmin()]))
        anchors = anchors[-100:]  # the latest: the search does not grow with the labels
        found, similarities = nearest(pool.vectors[anchors], pool.vectors[pool.candidates], self.k)
        best = np.full(len(pool.candidates), -np.inf)
        np.maximum.at(best, found.ravel(), similarities.ravel())
        near = _first(best, max(self.size, n))
        near = near[np.isfinite(best[near])]
        rows = pool.candidates[near]
        return np.asarray(rows[_first(Uncertainty().doubt(pool, rows), n)])


@dataclass(frozen=True)
class Disagreement:
    """Texts that are least likely among those predicted to be of a class: the model's mistakes.

    The class is the rarest among the predictions that has candidates.
    """

    def pick(self, pool: Pool, n: int) -> Int64Array:
        """Return the rows of `n` candidates."""
        if pool.probabilities is None:
            return CoreSet().pick(pool, n)
        found = pool.probabilities[pool.candidates]
        guess = found.argmax(axis=1)
        counts = np.bincount(guess, minlength=found.shape[1])
        frequency = np.where(counts[guess] > 0, counts[guess], 0)
        order = np.lexsort((pool.candidates, found.max(axis=1), frequency))
        return pool.candidates[order[:n]]


@dataclass(frozen=True)
class Discriminative:
    """Texts that a classifier separates from the labelled ones most surely: what is new.

    Gissin and Shalev-Shwartz 2019, "Discriminative active learning", section 3.1, with logistic
    regression on as many as ten times the labelled texts.
    """

    def pick(self, pool: Pool, n: int) -> Int64Array:
        """Return the rows of `n` candidates."""
        if not len(pool.labelled) or not len(pool.candidates):
            return CoreSet().pick(pool, n)
        from sklearn.linear_model import LogisticRegression

        rng = np.random.default_rng([pool.seed, len(pool.labelled)])
        others = rng.permutation(pool.candidates)[: 10 * len(pool.labelled)]
        rows = np.concatenate([pool.labelled, others])
        is_other = np.repeat([0, 1], [len(pool.labelled), len(others)])
        model = LogisticRegression(class_weight="balanced").fit(pool.vectors[rows], is_other)
        scores = pool.vectors[pool.candidates] @ model.coef_[0].astype(np.float32)
        return pool.candidates[_first(scores.astype(np.float64), n)]


def _first(values: Float64Array, n: int) -> Int64Array:
    """Return the places of the `n` largest values, ties in their order."""
    return np.asarray(np.argsort(-values, kind="stable")[:n])


STRATEGIES: dict[str, Strategy] = {
    "random": RandomSampling(),
    "uncertainty": Uncertainty(),
    "entropy": Uncertainty("entropy"),
    "diversity": CoreSet(),
    "rare": RareNeighbors(),
    "disagreement": Disagreement(),
    "discriminative": Discriminative(),
}


def first_of_topics(vectors: FloatArray, topics: Int64Array) -> Int64Array:
    """Return the text nearest to the mean of each topic, the largest topic first; noise is -1."""
    names, sizes = np.unique(topics[topics >= 0], return_counts=True)
    rows = []
    for name in names[np.argsort(-sizes, kind="stable")].tolist():
        members = np.flatnonzero(topics == name)
        middle = vectors[members].mean(axis=0)
        rows.append(int(members[(vectors[members] @ middle).argmax()]))
    return np.array(rows, dtype=np.int64)


def checked_strategy(strategy: str | Strategy) -> Strategy:
    """Return a strategy by its name, or the object given."""
    if isinstance(strategy, str):
        return STRATEGIES[checked_choice(strategy, "strategy", STRATEGIES)]
    if not callable(getattr(strategy, "pick", None)):
        expected = f"one of {', '.join(STRATEGIES)}, or an object with pick(pool, n)"
        raise InputError("strategy", expected, strategy)
    return strategy
