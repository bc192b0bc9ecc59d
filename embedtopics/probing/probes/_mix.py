"""Mixes of layers learned with a probe, and the online code of the labels."""

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from embedtopics.decisions import Decision
from embedtopics.evaluation._bootstrap import estimate, interval
from embedtopics.evaluation.results import Estimate
from embedtopics.probing.probes._fit import (
    PLAN,
    Features,
    Fit,
    TrainingPlan,
    batches_of,
    fit,
    log_probabilities,
    pieces_of,
    run_side_by_side,
    stepper,
)
from embedtopics.probing.probes._scores import Answers, ProbedVectors, mean_per_unit, score
from embedtopics.probing.probes._units import DEV, TEST, TRAIN, Units
from embedtopics.probing.results import LayerScores, ProbeScore, ScalarMix
from embedtopics.protocols import Float64Array, Int64Array

N_SEEDS = 3
"""Fits of mixes with different initial weights, whose scores are averaged."""

SHARE_RATE = 0.03
"""Rate of Adam for the weights of the layers and the gain, which have no scale of their own."""

MOST_WITHOUT = 0.025
"""Share of the draws without an expected layer, from which on there is no interval."""

PORTIONS = (0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.0625, 0.125, 0.25, 0.5, 1.0)
"""Shares of the train part after which the probe is trained again (Voita and Titov 2020, section
2.2.2)."""


def measure_mixes(
    vectors: Sequence[npt.NDArray[Any]],
    fits: Sequence[Fit],
    layers: Sequence[int],
    units: Units,
    seed: int,
    show_progress: bool | None,
) -> tuple[list[Answers], ScalarMix]:
    """Train mixes up to each layer, with the penalty of the best one of each, and predict."""
    losses = [float(one.losses[0].min()) for one in fits]
    penalties = [fits[int(np.argmin(losses[: last + 1]))].penalties[0] for last in range(len(fits))]
    train, test = units.of(TRAIN), units.of(TEST)
    n_classes = len(units.classes)

    def work(seed: int) -> tuple[Int64Array, Float64Array, float]:
        features = [Features(one, units.rows).standardised(train) for one in vectors]
        model = fit_mixes(features, units.target, n_classes, train, penalties, seed)
        with torch.no_grad():
            shares, gain = model.softmax()[-1].double().numpy(), float(model.gain[-1, 0])
        return model.predicted(features, test), shares, gain

    seeds = range(seed, seed + N_SEEDS)
    fitted = run_side_by_side(work, seeds, "mixing layers", show_progress)
    of_seeds, shares, gains = zip(*fitted, strict=True)
    predicted = np.stack(of_seeds, axis=1)  # mix, seed, unit
    gold = units.target[test]
    answers = [
        Answers("cumulative mix", layer, of_mix, gold)
        for layer, of_mix in zip(layers, predicted, strict=True)
    ]
    answers.append(Answers("scalar mix", None, predicted[-1], gold))
    return answers, ScalarMix(tuple(layers), np.stack(shares), np.array(gains))


def with_mixes(
    scores: LayerScores, mix: ScalarMix, estimates: dict[tuple[str, int | None], Estimate]
) -> LayerScores:
    """Add the mix and the expected layer to the scores."""
    mixes = [estimates["cumulative mix", layer] for layer in mix.layers]
    [value] = expected_layer(mix.layers, np.array([[one.value for one in mixes]]))
    drawn = expected_layer(mix.layers, np.stack([one.drawn for one in mixes], axis=1))
    share = float(np.isnan(drawn).mean()) if len(drawn) else 1.0
    decisions = scores.decisions
    low = high = np.nan
    if np.isnan(value):
        message = "No mix is better than the first layer alone, so there is no expected layer."
        decisions += (Decision("probing", "no_expected_layer", True, message),)
    elif share <= MOST_WITHOUT:
        low, high = interval(drawn, mixes[0].n_units)
    elif len(drawn):
        message = f"There is no interval: in {share:.0%} of the resamples, the layers add nothing."
        decisions += (Decision("probing", "unsure_expected_layer", share, message),)
    return replace(
        scores,
        expected_layer=float(value),
        expected_layer_interval=(float(low), float(high)),
        mix=mix,
        decisions=decisions,
    )


def expected_layer(layers: Sequence[int], scores: Float64Array) -> Float64Array:
    """Return the layer at which a task is solved on average, (n,), by scores (n, n_layers)."""
    added = np.diff(scores, axis=1)
    total = added.sum(axis=1)
    expected = np.full(len(scores), np.nan)
    np.divide(added @ np.array(layers[1:], dtype=float), total, out=expected, where=total > 0)
    return expected


class MixModel(NamedTuple):
    """Linear probes of mixes of the layers up to each one (Peters et al. 2018, equation 1)."""

    shares: torch.Tensor  # before the softmax: (n_mixes, n_layers)
    gain: torch.Tensor  # (n_mixes, 1)
    matrix: torch.Tensor  # (n_mixes, width, n_classes)
    offset: torch.Tensor  # (n_mixes, 1, n_classes)

    def logits(self, x: torch.Tensor) -> torch.Tensor:
        """Return logits of shape (n_mixes, n, n_classes), of layers of shape (n_layers, n, d)."""
        n_layers, n, width = x.shape
        mixed = (self.gain * self.softmax()) @ x.view(n_layers, -1)
        return torch.baddbmm(self.offset, mixed.view(-1, n, width), self.matrix)

    def softmax(self) -> torch.Tensor:
        """Return the share of each layer in each mix."""
        allowed = torch.ones_like(self.shares, dtype=torch.bool).tril()
        return torch.softmax(self.shares.masked_fill(~allowed, -torch.inf), dim=1)

    def predicted(self, features: Sequence[Features], units: Int64Array) -> Int64Array:
        """Return the classes that each mix answers, of shape (n_mixes, n)."""
        with torch.no_grad():
            parts = [self.logits(_stacked(features, p)).argmax(dim=2) for p in pieces_of(units)]
        return np.asarray(torch.cat(parts, dim=1).numpy())


def fit_mixes(
    features: Sequence[Features],
    target: Int64Array,
    n_classes: int,
    train: Int64Array,
    penalties: Sequence[float],
    seed: int,
    plan: TrainingPlan = PLAN,
) -> MixModel:
    """Train a linear probe of the first layer, of the first two, up to all; `target` (n_units,)."""
    n_mixes, width = len(features), features[0].width
    generator = torch.Generator().manual_seed(seed)
    model = MixModel(
        (0.1 * torch.randn(n_mixes, n_mixes, generator=generator)).requires_grad_(),
        torch.ones(n_mixes, 1, requires_grad=True),
        torch.zeros(n_mixes, width, n_classes, requires_grad=True),
        torch.zeros(n_mixes, 1, n_classes, requires_grad=True),
    )
    rate = plan.rate / np.sqrt(width)
    groups = [
        {"params": [model.matrix, model.offset], "lr": rate},
        {"params": [model.shares, model.gain], "lr": SHARE_RATE},
    ]
    n_steps, batches = batches_of(train, plan, seed)
    take_step = stepper(groups, n_steps)
    decay = torch.tensor(list(penalties), dtype=torch.float32)[:, None, None] / 2
    for units in batches:
        logits = model.logits(_stacked(features, units))
        gold = torch.from_numpy(target[units])
        loss = torch.nn.functional.cross_entropy(
            logits.transpose(0, 1).reshape(-1, n_classes),
            gold.repeat_interleave(n_mixes),
            reduction="sum",
        )
        # Of gain and weights together: a large gain would otherwise undo the penalty.
        weights = model.gain[:, :, None] * model.matrix
        take_step(loss / len(units) + (decay * weights.square()).sum())
    return model


def _stacked(features: Sequence[Features], units: Int64Array) -> torch.Tensor:
    return torch.stack([one.take(units) for one in features])


def code_lengths(
    source: ProbedVectors, units: Units, target: Int64Array, seed: int
) -> list[ProbeScore]:
    """Return bits per label and compression, for each task (Voita and Titov 2020, equation 3)."""
    train, dev = units.of(TRAIN), units.of(DEV)
    uniform = np.log2(len(units.classes))
    bits = np.full((len(train), target.shape[1]), uniform)  # those of the first portion stay
    features = Features(source.vectors, units.rows)
    for end, following in itertools.pairwise(portions_of(units.group[train])):
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
