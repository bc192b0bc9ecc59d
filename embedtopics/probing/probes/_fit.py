"""Probes of one layer, trained side by side in one pass over its vectors, and of a mix of all.

Probes of the same vectors differ in their labels and their penalty; their weights are side by side
in one matrix. Each fit runs on one thread: the result does not depend on their number.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import torch

from embedtopics._utils.display import progress_bar
from embedtopics.errors import InputError
from embedtopics.probing._extract import one_core_each
from embedtopics.protocols import FloatArray, Int64Array

T = TypeVar("T")
R = TypeVar("R")
Weights = list[torch.Tensor]

UNITS_AT_ONCE = 4096
PENALTIES = (1000.0, 100.0, 10.0, 1.0)
"""Beside the sum of losses, not their mean: the best one depends on the number of weights more
than on the number of training units."""
MOMENTS = (0.9, 0.99)
SHARE_RATE = 0.03
"""Rate of Adam for the weights of the layers and the gain, which have no scale of their own."""


@dataclass(frozen=True, eq=False)
class Features:
    """Features of units, read from where the vectors are stored when they are needed."""

    vectors: npt.NDArray[Any]  # (n_rows, width)
    rows: Int64Array  # (n_units,)
    shift: torch.Tensor | None = None
    scale: torch.Tensor | None = None

    @property
    def width(self) -> int:
        """Number of features."""
        return int(self.vectors.shape[1])

    def take(self, units: Int64Array) -> torch.Tensor:
        """Return the features of some units, float32 of shape (n, width)."""
        # A view that is no memory map: taking rows of it yields plain arrays.
        x = torch.from_numpy(np.asarray(self.vectors)[self.rows[units]]).float()
        if self.shift is not None and self.scale is not None:
            x.sub_(self.shift).mul_(self.scale)
        return x

    def standardised(self, units: Int64Array) -> Features:
        """Return features with mean 0 and variance 1 over some units; constant ones become 0."""
        stored = np.asarray(self.vectors)
        for rows in pieces_of(self.rows):
            is_finite = np.isfinite(stored[rows]).all(axis=1)
            if not is_finite.all():
                remedy = "extract the states again in float32"
                row = int(rows[~is_finite][0])
                raise InputError("states", "finite", remedy=remedy, found="infinity", row=row)
        bare = Features(self.vectors, self.rows)
        mean, variance = torch.zeros(2, self.width, dtype=torch.float64)
        for piece in pieces_of(units):
            mean += bare.take(piece).double().sum(dim=0) / len(units)
        for piece in pieces_of(units):
            variance += (bare.take(piece).double() - mean).square_().sum(dim=0) / len(units)
        varies = variance.sqrt() > 1e-6 * (1 + mean.abs())
        scale = torch.where(varies, variance.rsqrt(), torch.zeros_like(mean))
        return Features(self.vectors, self.rows, mean.float(), scale.float())


def pieces_of(units: Int64Array, size: int = UNITS_AT_ONCE) -> Iterator[Int64Array]:
    """Yield some units at a time."""
    for begin in range(0, len(units), size):
        yield units[begin : begin + size]


def logits_of(weights: Weights, x: torch.Tensor, n_probes: int) -> torch.Tensor:
    """Return logits of shape (n, n_probes, n_classes).

    Weights are a matrix of shape (width, n_probes * n_classes), and its offsets.
    """
    matrix, offset = weights
    return torch.addmm(offset, x, matrix).view(len(x), n_probes, -1)


@dataclass(frozen=True)
class TrainingPlan:
    """How a probe is trained by Adam; one of its penalties is chosen on the dev part."""

    n_epochs: int = 8
    least_steps: int = 800
    rate: float = 0.1  # over the root of the width
    largest_batch: int = 1024
    penalties: tuple[float, ...] = PENALTIES  # scikit-learn's 1 / C


PLAN = TrainingPlan()


@dataclass(frozen=True, eq=False)
class Fit:
    """Each task's weights and penalty, and losses (n_tasks, n_penalties) on dev, in nats."""

    parameters: tuple[Weights, ...]
    penalties: tuple[float, ...]
    losses: FloatArray


def fit(
    inputs: Features,
    targets: Int64Array,
    n_classes: int,
    train: Int64Array,
    dev: Int64Array,
    plan: TrainingPlan = PLAN,
    *,
    seed: int = 0,
) -> Fit:
    """Train multinomial logistic regressions, with the penalty best on dev.

    Each column of `targets` (n_units, n_tasks) is a task. All weights start at 0.
    """
    penalties = [one / len(train) for one in plan.penalties]
    n_tasks, n_penalties = targets.shape[1], len(penalties)
    n_probes = n_tasks * n_penalties
    n_outputs = n_probes * n_classes
    weights = [torch.zeros(n, n_outputs) for n in (inputs.width, 1)]
    for one in weights:
        one.requires_grad_()
    decay = torch.tensor([*penalties] * n_tasks).repeat_interleave(n_classes) / 2
    n_steps, batches = batches_of(train, plan, seed)
    take_step = stepper([{"params": weights, "lr": plan.rate / np.sqrt(inputs.width)}], n_steps)
    for units in batches:
        gold = torch.from_numpy(targets[units]).repeat_interleave(n_penalties, dim=1)
        logits = logits_of(weights, inputs.take(units), n_probes).flatten(0, 1)
        loss = torch.nn.functional.cross_entropy(logits, gold.flatten(), reduction="sum")
        take_step(loss / len(units) + (decay * weights[0].square().sum(dim=0)).sum())
    weights = [one.detach() for one in weights]
    losses = _losses(inputs, targets, dev, weights, n_penalties)
    table = losses.numpy().reshape(n_tasks, n_penalties)
    best_penalties = table.argmin(axis=1).tolist()
    of_probe = [one.tensor_split(n_probes, dim=-1) for one in weights]
    parameters = tuple(
        [parts[task * n_penalties + which].clone() for parts in of_probe]
        for task, which in enumerate(best_penalties)
    )
    return Fit(parameters, tuple(float(penalties[which]) for which in best_penalties), table)


def log_probabilities(inputs: Features, units: Int64Array, weights: Weights) -> FloatArray:
    """Return the log probabilities of one probe, of shape (n, n_classes)."""
    parts = [
        torch.log_softmax(logits_of(weights, inputs.take(piece), 1)[:, 0], dim=1)
        for piece in pieces_of(units)
    ]
    return np.asarray(torch.cat(parts).numpy())


def run_side_by_side(
    work: Callable[[T], R], jobs: Sequence[T], description: str, show_progress: bool | None
) -> list[R]:
    """Do jobs on all cores with a bar; return the results in the order of the jobs."""
    results: list[R] = []
    with progress_bar(
        total=len(jobs), unit="fit", description=description, show=show_progress
    ) as bar:
        for result in one_core_each(work, jobs):
            results.append(result)
            bar.update()
    return results


def batches_of(
    train: Int64Array, plan: TrainingPlan, seed: int
) -> tuple[int, Iterator[Int64Array]]:
    """Return the number of steps, and the units of each; every epoch has its own order."""
    n = len(train)
    size = min(max(n // 32, 32), plan.largest_batch)
    cuts = np.linspace(0, n, max(1, round(n / size)) + 1).astype(int).tolist()
    n_epochs = max(plan.n_epochs, -(-plan.least_steps // (len(cuts) - 1)))

    def batches() -> Iterator[Int64Array]:
        for epoch in range(n_epochs):
            order = train[np.random.default_rng((seed, epoch)).permutation(n)]
            for begin, end in itertools.pairwise(cuts):
                yield order[begin:end]

    return n_epochs * (len(cuts) - 1), batches()


def stepper(groups: list[dict[str, Any]], n_steps: int) -> Callable[[torch.Tensor], None]:
    """Return a function that takes a step of Adam down a loss; rates fall to 0 by half a cosine."""
    optimizer = torch.optim.Adam(groups, betas=MOMENTS)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: float(0.5 * (1 + np.cos(np.pi * step / n_steps)))
    )

    def take(loss: torch.Tensor) -> None:
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        schedule.step()

    return take


def _losses(
    inputs: Features, targets: Int64Array, units: Int64Array, weights: Weights, n_penalties: int
) -> torch.Tensor:
    n_probes = targets.shape[1] * n_penalties
    total = torch.zeros(n_probes, dtype=torch.float64)
    for piece in pieces_of(units):
        logits = logits_of(weights, inputs.take(piece), n_probes)
        gold = torch.from_numpy(targets[piece]).repeat_interleave(n_penalties, dim=1)
        right = logits.gather(2, gold[:, :, None])[:, :, 0]
        total += (torch.logsumexp(logits, dim=2) - right).double().sum(dim=0)
    return total / len(units)


class MixModel(NamedTuple):
    """A linear probe of a mix of layers (Peters et al. 2018, equation 1)."""

    shares: torch.Tensor  # before the softmax: (n_layers,)
    gain: torch.Tensor  # ()
    matrix: torch.Tensor  # (width, n_classes)
    offset: torch.Tensor  # (n_classes,)

    def logits(self, x: torch.Tensor) -> torch.Tensor:
        """Return logits of shape (n, n_classes), of layers of shape (n_layers, n, width)."""
        mixed = self.gain * torch.tensordot(torch.softmax(self.shares, 0), x, 1)
        return torch.addmm(self.offset, mixed, self.matrix)

    def predicted(self, features: Sequence[Features], units: Int64Array) -> Int64Array:
        """Return the classes that the probe answers, of shape (n,)."""
        with torch.no_grad():
            parts = [self.logits(_stacked(features, p)).argmax(dim=1) for p in pieces_of(units)]
        return np.asarray(torch.cat(parts).numpy())


def fit_mix(
    features: Sequence[Features],
    target: Int64Array,
    n_classes: int,
    train: Int64Array,
    penalty: float,
    seed: int,
    plan: TrainingPlan = PLAN,
) -> MixModel:
    """Train a linear probe of a mix of all layers; `target` (n_units,)."""
    width = features[0].width
    generator = torch.Generator().manual_seed(seed)
    model = MixModel(
        (0.1 * torch.randn(len(features), generator=generator)).requires_grad_(),
        torch.ones((), requires_grad=True),
        torch.zeros(width, n_classes, requires_grad=True),
        torch.zeros(n_classes, requires_grad=True),
    )
    groups = [
        {"params": [model.matrix, model.offset], "lr": plan.rate / np.sqrt(width)},
        {"params": [model.shares, model.gain], "lr": SHARE_RATE},
    ]
    n_steps, batches = batches_of(train, plan, seed)
    take_step = stepper(groups, n_steps)
    for units in batches:
        logits, gold = model.logits(_stacked(features, units)), torch.from_numpy(target[units])
        # Of gain and weights together: a large gain would otherwise undo the penalty.
        weights = model.gain * model.matrix
        loss = torch.nn.functional.cross_entropy(logits, gold)
        take_step(loss + penalty / 2 * weights.square().sum())
    return model


def _stacked(features: Sequence[Features], units: Int64Array) -> torch.Tensor:
    return torch.stack([one.take(units) for one in features])
