"""Many probes of one layer, trained side by side in one pass over its vectors.

Probes that see the same vectors differ in what they are asked (the labels, or the control's) and
in their penalty. Their weights stand side by side in one matrix, so that a batch is read, made
float32 and multiplied once for all of them.

Each fit runs on one thread, and fits of several layers run beside one another: what a layer gives
depends neither on the other layers nor on the number of threads.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
import torch

from embedtopics._progress import progress_bar
from embedtopics.probing.probes.architectures import Architecture
from embedtopics.probing.probes.features import pieces_of
from embedtopics.protocols import FloatArray, Int64Array

__all__ = ["Fit", "Plan", "fit", "log_probabilities", "run_side_by_side"]

PENALTIES = (1e-1, 1e-2, 1e-3, 1e-4)
"""Of half the squared length of the weights, beside the mean loss of a unit."""

MOMENTS = (0.9, 0.99)
TINY = 1e-8

T = TypeVar("T")
R = TypeVar("R")


class Inputs(Protocol):
    """Where batches come from."""

    @property
    def width(self) -> int: ...

    def take(self, units: Int64Array) -> torch.Tensor: ...


@dataclass(frozen=True)
class Plan:
    """How long, and in what steps, a probe is trained.

    The rate of Adam falls to 0 by half a cosine, so that the noise of batches dies away and a
    convex probe ends at its optimum.

    Parameters
    ----------
    n_epochs : int
        Passes over what is learnt from; more where it is little.
    least_steps : int
        Fewest steps.
    rate : float
        Of the first steps, over the square root of the number of features.
    largest_batch : int
    n_looks : int
        How often the dev part is looked at; the best look is kept. 1 is the end alone.
    """

    n_epochs: int = 8
    least_steps: int = 800
    rate: float = 0.1
    largest_batch: int = 1024
    n_looks: int = 1


@dataclass(frozen=True, eq=False)
class Fit:
    """Probes that were trained side by side, the best penalty of each task.

    Parameters
    ----------
    parameters : tuple of list of Tensor
        For each task those of its one probe.
    penalties : tuple of float
        That the dev part chose, by task.
    losses : float64 ndarray of shape (n_tasks, n_penalties)
        Mean on the dev part, in nats, at the best look.
    """

    parameters: tuple[list[torch.Tensor], ...]
    penalties: tuple[float, ...]
    losses: FloatArray


def fit(
    inputs: Inputs,
    targets: Int64Array,
    n_classes: int,
    train: Int64Array,
    dev: Int64Array,
    architecture: Architecture,
    plan: Plan,
    *,
    penalties: Sequence[float] = PENALTIES,
    seed: int = 0,
) -> Fit:
    """Train a probe for each task and penalty, and keep the penalty that is best on dev.

    The loss is the mean cross-entropy of a unit, in nats, and half the squared weights times the
    penalty; offsets are not penalised.

    Parameters
    ----------
    inputs : Inputs
    targets : int64 ndarray of shape (n_units, n_tasks)
        Classes from 0.
    n_classes : int
    train, dev : int64 ndarray
        Numbers of units.
    architecture : Architecture
    plan : Plan
    penalties : sequence of float
    seed : int
        Of first weights and of batches.

    Returns
    -------
    Fit
    """
    n_tasks, n_penalties = targets.shape[1], len(penalties)
    generator = torch.Generator().manual_seed(seed)
    n_probes = n_tasks * n_penalties
    weights = architecture.start(inputs.width, n_probes, n_classes, generator)
    decay = architecture.spread(torch.tensor(list(penalties) * n_tasks), n_classes)
    means = [torch.zeros_like(one) for one in weights]
    squares = [torch.zeros_like(one) for one in weights]
    batches = list(_sizes(len(train), plan))
    n_steps = len(batches) * max(plan.n_epochs, -(-plan.least_steps // len(batches)))
    looks = {round(n_steps * (i + 1) / plan.n_looks) for i in range(plan.n_looks)}
    best, losses = [one.clone() for one in weights], torch.full((n_probes,), torch.inf).double()
    rate = plan.rate / np.sqrt(inputs.width)
    for step, units in enumerate(_batches(train, batches, n_steps, seed), start=1):
        x = inputs.take(units)
        asked = torch.from_numpy(targets[units]).repeat_interleave(n_penalties, dim=1)
        logits, kept = architecture.forward(weights, x, n_probes)
        error = torch.softmax(logits, dim=2)
        error.scatter_add_(2, asked[:, :, None], torch.full((*asked.shape, 1), -1.0))
        slopes = architecture.backward(weights, x, kept, error.div_(len(units)))
        for weight, slope, factor in zip(weights, slopes, decay, strict=True):
            if factor is not None:
                slope.addcmul_(weight, factor)
        now = rate * 0.5 * (1 + np.cos(np.pi * (step - 1) / n_steps))
        _adam(weights, slopes, means, squares, step, float(now))
        if step in looks:
            found = _dev_losses(inputs, targets, dev, architecture, weights, n_penalties)
            architecture.keep(best, weights, found < losses)
            losses = torch.minimum(found, losses)
    table = losses.numpy().reshape(n_tasks, n_penalties)
    chosen = table.argmin(axis=1).tolist()
    return Fit(
        parameters=tuple(
            architecture.only(best, task * n_penalties + which, n_probes)
            for task, which in enumerate(chosen)
        ),
        penalties=tuple(float(penalties[which]) for which in chosen),
        losses=table,
    )


def log_probabilities(
    inputs: Inputs, units: Int64Array, architecture: Architecture, weights: list[torch.Tensor]
) -> FloatArray:
    """Return what one probe says of some units: log probabilities of shape (n, n_classes)."""
    found = [
        torch.log_softmax(architecture.forward(weights, inputs.take(piece), 1)[0][:, 0], dim=1)
        for piece in pieces_of(units)
    ]
    return np.asarray(torch.cat(found).numpy())


def run_side_by_side(
    work: Callable[[T], R], jobs: Sequence[T], *, description: str, show_progress: bool | None
) -> list[R]:
    """Do jobs on as many threads as torch has, each on one; results in the order of the jobs."""
    n_threads = torch.get_num_threads()
    bar = progress_bar(total=len(jobs), unit="fit", description=description, show=show_progress)
    with bar, _one_thread_each():
        if n_threads == 1 or len(jobs) < 2:
            results = []
            for job in jobs:
                results.append(work(job))
                bar.update()
            return results
        with ThreadPoolExecutor(n_threads) as pool:
            futures = [pool.submit(work, job) for job in jobs]
            try:
                results = []
                for future in futures:
                    results.append(future.result())
                    bar.update()
            finally:
                for future in futures:
                    future.cancel()
            return results


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Let torch compute on one thread: the order of its sums depends on their number."""
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(n_threads)


def _sizes(n: int, plan: Plan) -> Iterator[slice]:
    """Cut an epoch into batches of about one size, small where there is little to learn from."""
    size = min(max(n // 32, 32), plan.largest_batch)
    cuts = np.linspace(0, n, max(1, round(n / size)) + 1).astype(int).tolist()
    for begin, end in itertools.pairwise(cuts):
        yield slice(begin, end)


def _batches(
    train: Int64Array, batches: list[slice], n_steps: int, seed: int
) -> Iterator[Int64Array]:
    for epoch in range(n_steps // len(batches)):
        order = train[np.random.default_rng((seed, epoch)).permutation(len(train))]
        for batch in batches:
            yield order[batch]


def _adam(
    weights: list[torch.Tensor],
    slopes: list[torch.Tensor],
    means: list[torch.Tensor],
    squares: list[torch.Tensor],
    step: int,
    rate: float,
) -> None:
    """Take one step of Adam (Kingma and Ba 2015, algorithm 1)."""
    first, second = MOMENTS
    for weight, slope, mean, square in zip(weights, slopes, means, squares, strict=True):
        mean.lerp_(slope, 1 - first)
        square.mul_(second).addcmul_(slope, slope, value=1 - second)
        below = (square / (1 - second**step)).sqrt_().add_(TINY)
        weight.addcdiv_(mean, below, value=-rate / (1 - first**step))


def _dev_losses(
    inputs: Inputs,
    targets: Int64Array,
    dev: Int64Array,
    architecture: Architecture,
    weights: list[torch.Tensor],
    n_penalties: int,
) -> torch.Tensor:
    """Return the mean loss of every probe on the dev part."""
    n_probes = targets.shape[1] * n_penalties
    total = torch.zeros(n_probes, dtype=torch.float64)
    for piece in pieces_of(dev):
        logits, _ = architecture.forward(weights, inputs.take(piece), n_probes)
        asked = torch.from_numpy(targets[piece]).repeat_interleave(n_penalties, dim=1)
        right = logits.gather(2, asked[:, :, None])[:, :, 0]
        total += (torch.logsumexp(logits, dim=2) - right).double().sum(dim=0)
    return total / len(dev)
