"""Scores of probes on the same units, with intervals: accuracy, a mix, code length; baselines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from embedtopics.evaluation._bootstrap import estimate, resampled_sums
from embedtopics.evaluation.results import Estimate
from embedtopics.probing._tasks import content_digest
from embedtopics.probing.probes._fit import (
    Features,
    Fit,
    fit,
    fit_mix,
    log_probabilities,
    run_side_by_side,
)
from embedtopics.probing.probes._units import DEV, TEST, TRAIN, Units
from embedtopics.probing.results import ScalarMix
from embedtopics.protocols import Float64Array, Int64Array

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


N_SEEDS = 3
"""Fits of mixes with different initial weights, whose scores are averaged."""

PORTIONS = (0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.0625, 0.125, 0.25, 0.5, 1.0)
"""Shares of the train part after which the probe is trained again (Voita and Titov 2020, section
2.2.2)."""


class ProbedVectors(NamedTuple):
    """Vectors to be probed, of shape (n_rows, width); a baseline has no control."""

    what: str
    layer: int | None
    vectors: npt.NDArray[Any]
    is_baseline: bool = False


@dataclass(frozen=True, eq=False)
class Answers:
    """What one probe predicts for the test units: (n_seeds, n_units), and (n_units,) of gold."""

    what: str
    layer: int | None
    predicted: Int64Array
    gold: Int64Array


def measured(
    answers: Sequence[Answers], group: Int64Array, n_classes: int, seed: int
) -> list[tuple[Estimate, Estimate]]:
    """Measure accuracy and macro F1, paired over answers, with intervals over sentences."""
    numbered = np.unique(group, return_inverse=True)[1]
    estimates = []
    for one in answers:
        counts = _counts(one, numbered, n_classes)
        whole = np.asarray(counts.sum(axis=0), dtype=np.float64).reshape(1, -1)
        drawn = resampled_sums(counts, seed=seed) if counts.shape[0] > 1 else whole[:0]
        values, again = _accuracy_and_f1(whole, n_classes), _accuracy_and_f1(drawn, n_classes)
        accuracy, macro = (
            estimate(float(value[0]), resampled, len(one.gold), n_units=counts.shape[0])
            for value, resampled in zip(values, again, strict=True)
        )
        estimates.append((accuracy, macro))
    return estimates


def score(what: str, layer: int | None, metric: str, figure: Estimate) -> dict[str, Any]:
    """Return an estimate as a row of the table of scores."""
    return {
        "what": what,
        "layer": layer,
        "metric": metric,
        "value": figure.value,
        "low": figure.low,
        "high": figure.high,
        "n": figure.n,
    }


def mean_per_unit(values: npt.ArrayLike, group: Int64Array, seed: int) -> Estimate:
    """Return the mean over units, with its interval over sentences; shapes (n_units,)."""
    array = np.asarray(values, dtype=np.float64)
    numbered = np.unique(group, return_inverse=True)[1]
    sums = np.column_stack([np.bincount(numbered, array), np.bincount(numbered)])
    drawn = resampled_sums(sums, seed=seed) if len(sums) > 1 else np.empty((0, 2))
    means = drawn[:, 0] / drawn[:, 1]
    return estimate(float(array.mean()), means, len(array), n_units=len(sums), bounds=None)


def _counts(answers: Answers, numbered: Int64Array, n_classes: int) -> csr_matrix:
    """Count units by sentence, and for each seed by class: right, predicted and gold."""
    from scipy.sparse import csr_matrix

    gold, columns, of_group = answers.gold, [], []
    for seed, predicted in enumerate(answers.predicted):
        begin, is_right = 3 * n_classes * seed, predicted == gold
        columns += [begin + gold[is_right], begin + n_classes + predicted]
        columns += [begin + 2 * n_classes + gold]
        of_group += [numbered[is_right], numbered, numbered]
    cells = np.concatenate(of_group), np.concatenate(columns)
    shape = int(numbered.max()) + 1, 3 * n_classes * len(answers.predicted)
    return csr_matrix((np.ones(len(cells[0])), cells), shape=shape)


def _accuracy_and_f1(sums: Float64Array, n_classes: int) -> tuple[Float64Array, Float64Array]:
    """Return accuracy and macro F1 from counts, the mean of those of all seeds."""
    n_seeds = sums.shape[1] // (3 * n_classes)
    right, answered, gold = sums.reshape(-1, n_seeds, 3, n_classes).transpose(2, 0, 1, 3)
    accuracy = right.sum(axis=2) / gold.sum(axis=2)
    below = answered + gold
    f1 = np.divide(2 * right, below, out=np.zeros_like(below), where=below > 0)
    macro = f1.sum(axis=2) / (below > 0).sum(axis=2)
    return accuracy.mean(axis=1), macro.mean(axis=1)


def baseline_answers(units: Units) -> list[Answers]:
    """Predict the most frequent class of the train part, overall and of the word type."""
    train, test = units.of(TRAIN), units.of(TEST)
    learned, n_classes = units.target[train], len(units.classes)
    majority = np.bincount(learned, minlength=n_classes).argmax()
    predictions = {"majority": np.full(len(test), majority, dtype=np.int64)}
    if units.unit != "text":
        seen, new = ([units.types[i] for i in part.tolist()] for part in (train, test))
        predictions["word type"] = most_frequent_of_type(seen, learned, new, n_classes)
    gold = units.target[test]
    return [Answers(what, None, predicted[None], gold) for what, predicted in predictions.items()]


def most_frequent_of_type(
    types: Sequence[str], target: Int64Array, new: Sequence[str], n_classes: int
) -> Int64Array:
    """Predict the most frequent class of each type; of equal ones, and if new, that of all."""
    order = np.argsort(-np.bincount(target, minlength=n_classes), kind="stable")
    counts = {one: np.zeros(n_classes) for one in types}
    for one, label in zip(types, target, strict=True):
        counts[one][label] += 1
    best = {one: order[row[order].argmax()] for one, row in counts.items()}
    return np.array([best.get(one, order[0]) for one in new], dtype=np.int64)


def control_target(types: Sequence[str], counts: npt.NDArray[np.int_], seed: int) -> Int64Array:
    """Draw a class for each word type, by type and seed alone (Hewitt and Liang 2019)."""
    shares = np.cumsum(counts) / np.sum(counts)
    # The upper 53 bits: a float holds them exactly, below 1.
    drawn = {
        one: (int.from_bytes(content_digest(one, seed, "control")[:8], "big") >> 11) / 2**53
        for one in set(types)
    }
    place = np.searchsorted(shares, [drawn[one] for one in types], side="right")
    return np.asarray(np.minimum(place, np.flatnonzero(counts)[-1]), dtype=np.int64)


def measure_mix(
    vectors: Sequence[npt.NDArray[Any]],
    fits: Sequence[Fit],
    layers: Sequence[int],
    units: Units,
    seed: int,
    show_progress: bool | None,
) -> tuple[Answers, ScalarMix]:
    """Train mixes of all layers, with the penalty of the best layer, and predict."""
    penalty = min(fits, key=lambda one: float(one.losses[0].min())).penalties[0]
    train, test = units.of(TRAIN), units.of(TEST)

    def work(seed: int) -> tuple[Int64Array, Float64Array, float]:
        features = [Features(one, units.rows).standardised(train) for one in vectors]
        model = fit_mix(features, units.target, len(units.classes), train, penalty, seed)
        shares = np.exp(model.shares.detach().double().numpy())
        return model.predicted(features, test), shares / shares.sum(), model.gain.item()

    seeds = range(seed, seed + N_SEEDS)
    fitted = run_side_by_side(work, seeds, "mixing layers", show_progress)
    predicted, shares, gains = map(np.array, zip(*fitted, strict=True))
    answers = Answers("scalar mix", None, predicted, units.target[test])
    return answers, ScalarMix(tuple(layers), shares, gains)


def code_lengths(
    source: ProbedVectors, units: Units, target: Int64Array, seed: int
) -> list[dict[str, Any]]:
    """Return bits per label and compression, for each task (Voita and Titov 2020, equation 3)."""
    train, dev = units.of(TRAIN), units.of(DEV)
    uniform = np.log2(len(units.classes))
    bits = np.full((len(train), target.shape[1]), uniform)  # those of the first portion stay
    features = Features(source.vectors, units.rows)
    for end, following in pairwise(portions_of(units.group[train])):
        learned, new = train[:end], train[end:following]
        seen = features.standardised(learned)
        fitted = fit(seen, target, len(units.classes), learned, dev, seed=seed)
        for task, weights in enumerate(fitted.parameters):
            logs = log_probabilities(seen, new, weights).astype(np.float64)
            bits[end:following, task] = -logs[np.arange(len(new)), target[new, task]] / np.log(2)
    scores = []
    for what, of_task in zip((source.what, "control"), bits.T, strict=False):
        length = mean_per_unit(of_task, units.group[train], seed)
        value, drawn = uniform / length.value, uniform / length.drawn
        shorter = estimate(value, drawn, length.n, n_units=length.n_units, bounds=None)
        scores.append(score(what, source.layer, "bits per label", length))
        scores.append(score(what, source.layer, "compression", shorter))
    return scores


def portions_of(group: Int64Array) -> list[int]:
    """Return after how many units each portion ends, always at the end of a sentence."""
    ends = np.append(np.flatnonzero(np.diff(group)) + 1, len(group))
    targets = np.array(PORTIONS) * len(group)
    nearest = np.abs(ends[None, :] - targets[:, None]).argmin(axis=1)
    return [int(end) for end in np.unique(ends[nearest])]
