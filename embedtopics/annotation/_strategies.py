"""Active learning strategies: choose the texts whose labels help the model most."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from embedtopics._utils.checks import checked_choice
from embedtopics.errors import InputError
from embedtopics.protocols import Float64Array, FloatArray, Int64Array

MEASURES = ("margin", "entropy")


@dataclass(frozen=True, eq=False)
class Pool:
    """The texts that a strategy chooses from.

    Parameters
    ----------
    vectors : float32 ndarray of shape (n_texts, n_dimensions)
        Unit vectors.
    candidates : int64 ndarray of shape (n_candidates,)
        Rows of the texts that a strategy may pick.
    labelled : int64 ndarray of shape (n_labelled,)
        Rows of the labelled texts that the model learns from.
    codes : int64 ndarray of shape (n_labelled,) or (n_labelled, n_classes)
    probabilities : float64 ndarray of shape (n_texts, n_classes) or None
        None before the first fit.
    seed : int
    """

    vectors: FloatArray
    candidates: Int64Array
    labelled: Int64Array
    codes: Int64Array
    probabilities: Float64Array | None
    seed: int = 0


class Strategy(Protocol):
    """A strategy that picks texts for the *teach* stream."""

    def pick(self, pool: Pool, n: int) -> Int64Array:
        """Return the rows of at most `n` candidates, the best first."""
        ...


@dataclass(frozen=True)
class RandomSampling:
    """Pick texts at random, the baseline of the other strategies."""

    def pick(self, pool: Pool, n: int) -> Int64Array:
        """Return the rows of `n` candidates."""
        rng = np.random.default_rng([pool.seed, len(pool.labelled)])
        return rng.permutation(pool.candidates)[:n]


@dataclass(frozen=True)
class CoreSet:
    """Pick the texts farthest from all labelled texts: the greedy core-set.

    Sener and Savarese 2018, "Active learning for convolutional neural networks: a core-set
    approach", algorithm 1, by Euclidean distance of unit vectors. The first text of a study is the
    one nearest to the mean.
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
    """Pick the texts with the most uncertain prediction.

    Parameters
    ----------
    measure : {"margin", "entropy"}
        "margin": smallest difference of the two most probable classes (Scheffer et al. 2001,
        "breaking ties"). "entropy": largest entropy. For multilabel kinds, both use the label
        with a probability nearest to 0.5.
    """

    measure: str = "margin"

    def __post_init__(self) -> None:
        checked_choice(self.measure, "measure", MEASURES)

    def pick(self, pool: Pool, n: int) -> Int64Array:
        """Return the rows of `n` candidates."""
        if pool.probabilities is None:
            return CoreSet().pick(pool, n)
        probabilities = pool.probabilities[pool.candidates]
        if pool.codes.ndim == 2:
            uncertainty = -np.abs(probabilities - 0.5).min(axis=1)
        elif self.measure == "entropy":
            uncertainty = -(probabilities * np.log(np.maximum(probabilities, 1e-300))).sum(axis=1)
        else:
            ordered = np.sort(probabilities, axis=1)
            uncertainty = ordered[:, -2] - ordered[:, -1]
        return pool.candidates[np.argsort(-uncertainty, kind="stable")[:n]]


STRATEGIES: dict[str, Strategy] = {
    "random": RandomSampling(),
    "uncertainty": Uncertainty(),
    "entropy": Uncertainty("entropy"),
    "diversity": CoreSet(),
}


def checked_strategy(strategy: str | Strategy) -> Strategy:
    """Return a strategy by its name, or a custom object with `pick`."""
    if isinstance(strategy, str):
        return STRATEGIES[checked_choice(strategy, "strategy", STRATEGIES)]
    if not callable(getattr(strategy, "pick", None)):
        expected = f"one of {', '.join(STRATEGIES)}, or an object with pick(pool, n)"
        raise InputError("strategy", expected, strategy)
    return strategy
