"""How much of each layer a task takes, learnt with it, and what each further layer adds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import torch

from embedtopics.evaluation.bootstrap import interval
from embedtopics.probing.probes.asking import Asked, Trained
from embedtopics.probing.probes.features import Features, pieces_of
from embedtopics.probing.probes.fitting import Plan, batches_of, falling, run_side_by_side
from embedtopics.probing.probes.parts import TEST, TRAIN, Units
from embedtopics.probing.probes.scoring import Answers
from embedtopics.protocols import Int64Array
from embedtopics.results import Decision, Estimate, LayerScores, ScalarMix

__all__ = ["MixModel", "Mixes", "expected_layer", "fit_mixes", "measured_mixes", "with_mixes"]

SHARE_RATE = 0.03
"""Of Adam, for what the softmax takes and for the gain; they have no scale of their own."""

MOST_WITHOUT = 0.025
"""Share of the draws without an expected layer, from which on the others say nothing of it: the
lower end of the interval of what all layers add lies below 0."""

Float64Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Mixes:
    """Mixes of the layers up to each, after training.

    Parameters
    ----------
    answers : list of Answers
        "scalar mix" of all layers, and "cumulative mix" by layer.
    mix : ScalarMix
        Of all layers.
    """

    answers: list[Answers]
    mix: ScalarMix


def measured_mixes(trained: Sequence[Trained], units: Units, asked: Asked) -> Mixes:
    """Train mixes of the layers up to each, from several seeds, and ask them about the test part.

    Each mix takes the penalty of the layer that is best on the dev part among those it mixes.

    Parameters
    ----------
    trained : sequence of Trained
        The layers, from which penalties are known.
    units : Units
    asked : Asked
    """
    layers = tuple(int(one.source.layer or 0) for one in trained)
    losses = [float(one.fits[0].losses[0].min()) for one in trained]
    penalties = [
        trained[int(np.argmin(losses[: last + 1]))].fits[0].penalties[0]
        for last in range(len(trained))
    ]
    train, test = units.of(TRAIN), units.of(TEST)

    def work(seed: int) -> tuple[Int64Array, Float64Array, Float64Array]:
        features = [Features(one.source.vectors, units.rows).standardised(train) for one in trained]
        model = fit_mixes(
            features, units.target, len(units.classes), train, penalties, Plan(), asked.seed + seed
        )
        return model.predicted(features, test), *model.shares_and_gain()

    done = run_side_by_side(
        work,
        list(range(asked.n_seeds)),
        description="mixing layers",
        show_progress=asked.show_progress,
    )
    predicted = np.stack([one for one, _, _ in done], axis=1)  # mix, seed, unit
    right = units.target[test]
    answers = [
        Answers("cumulative mix", layer, own, right)
        for layer, own in zip(layers, predicted, strict=True)
    ]
    answers.append(Answers("scalar mix", None, predicted[-1], right))
    shares = np.stack([own[-1] for _, own, _ in done])
    gain = np.array([own[-1] for _, _, own in done])
    return Mixes(answers, ScalarMix(layers, shares, gain))


def with_mixes(
    scores: LayerScores, mixes: Mixes, drawn: dict[tuple[str, int | None], Estimate]
) -> LayerScores:
    """Add the mix, and what each layer adds, to the figures.

    Parameters
    ----------
    scores : LayerScores
    mixes : Mixes
    drawn : mapping of (what, layer) to Estimate
        Accuracies.
    """
    layers = mixes.mix.layers
    found = [drawn["cumulative mix", layer] for layer in layers]
    value, differential = expected_layer(layers, np.array([one.value for one in found])[None])
    again, _ = expected_layer(layers, np.stack([one.drawn for one in found], axis=1))
    low, high = interval(again) if len(again) else (np.nan, np.nan)
    decisions = scores.decisions
    share = float(np.isnan(again).mean()) if len(again) else 0.0
    if share > MOST_WITHOUT:
        message = (
            f"In {share:.0%} of the draws of other sentences the layers together add nothing, so "
            "that the expected layer has no interval: it could be anywhere."
        )
        decisions = (*decisions, Decision("probing", "unsure_expected_layer", share, message))
        low = high = np.nan
    if np.isnan(value[0]):
        decisions = scores.decisions
        message = "No mix is better than the first layer alone: the task has no expected layer."
        decisions = (*decisions, Decision("probing", "no_expected_layer", True, message))
        low = high = np.nan
    return replace(
        scores,
        expected_layer=float(value[0]),
        expected_layer_interval=(float(low), float(high)),
        differential=tuple(differential[0].tolist()),
        mix=mixes.mix,
        decisions=decisions,
    )


def expected_layer(
    layers: Sequence[int], scores: Float64Array
) -> tuple[Float64Array, Float64Array]:
    """Return where a task is solved on average, and what each layer above the first adds.

    Parameters
    ----------
    layers : sequence of int
    scores : float64 ndarray of shape (n, n_layers)
        Of mixes of the layers up to each.

    Returns
    -------
    expected : float64 ndarray of shape (n,)
        The mean of the layers' numbers, weighted by what they add (Tenney et al. 2019, "BERT
        rediscovers the classical NLP pipeline", equation 4); NaN where all together add nothing.
    differential : float64 ndarray of shape (n, n_layers - 1)
        Equation 3.

    Examples
    --------
    >>> import numpy as np
    >>> expected, added = expected_layer((0, 1, 2), np.array([[0.5, 0.75, 1.0]]))
    >>> expected.tolist(), added.tolist()
    ([1.5], [[0.25, 0.25]])
    """
    added = np.diff(scores, axis=1)
    total = added.sum(axis=1)
    expected = np.full(len(scores), np.nan)
    np.divide(added @ np.array(layers[1:], dtype=float), total, out=expected, where=total > 0)
    return expected, added


@dataclass(frozen=True, eq=False)
class MixModel:
    """Linear probes, each of its own mix of layers; mix i takes the layers up to the i-th."""

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
            found = [self.logits(_stacked(features, p)).argmax(dim=2) for p in pieces_of(units)]
        return np.asarray(torch.cat(found, dim=1).numpy())

    def shares_and_gain(self) -> tuple[Float64Array, Float64Array]:
        """Return the share of each layer, and the gain, of each mix."""
        with torch.no_grad():
            return self.softmax().double().numpy(), self.gain[:, 0].double().numpy()


def fit_mixes(
    features: Sequence[Features],
    target: Int64Array,
    n_classes: int,
    train: Int64Array,
    penalties: Sequence[float],
    plan: Plan,
    seed: int,
) -> MixModel:
    """Train a linear probe of each mix: of the first layer, of the first two, up to all.

    A mix is a gain times the mean of its layers, weighted by a softmax (Peters et al. 2018, "Deep
    contextualized word representations", equation 1); both are learnt with the probe.

    Parameters
    ----------
    features : sequence of Features
        Of each layer.
    target : int64 ndarray of shape (n_units,)
    n_classes : int
    train : int64 ndarray
    penalties : sequence of float
        Of half the squared weights, by mix.
    plan : Plan
    seed : int
        Of first shares and of batches.
    """
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
    optimizer = torch.optim.Adam(groups, betas=(0.9, 0.99))
    n_steps, batches = batches_of(train, plan, seed)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: falling(step, n_steps))
    decay = torch.tensor(list(penalties), dtype=torch.float32)[:, None, None] / 2
    for units in batches:
        logits = model.logits(_stacked(features, units))
        asked = torch.from_numpy(target[units])
        loss = torch.nn.functional.cross_entropy(
            logits.transpose(0, 1).reshape(-1, n_classes),
            asked.repeat_interleave(n_mixes),
            reduction="sum",
        )
        # Of gain and weights together: a large gain would otherwise undo the penalty.
        weights = model.gain[:, :, None] * model.matrix
        loss = loss / len(units) + (decay * weights.square()).sum()
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        schedule.step()
    return model


def _stacked(features: Sequence[Features], units: Int64Array) -> torch.Tensor:
    return torch.stack([one.take(units) for one in features])
