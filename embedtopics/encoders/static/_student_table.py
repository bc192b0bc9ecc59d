"""Learn a table of token vectors whose means over texts are the teacher's vectors.

Everything runs on one thread in a fixed order, so that the table has the same bits wherever it is
learned with the same libraries: a step costs milliseconds, for no transformer runs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from embedtopics._utils.checks import checked_between, checked_count, resolve_seed
from embedtopics._utils.progress import progress_bar
from embedtopics.protocols import FloatArray, Int64Array
from embedtopics.training.results import Curves

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


BATCH_SIZE, MIN_STEPS = 1024, 500
"""Texts of a batch, and minimum number of steps: small corpora are repeated."""
LEARNING_RATE = 0.05
"""Peak learning rate, relative to the table's values."""
CONTRAST, TEMPERATURE = 0.05, 0.05
"""Weight of the contrastive loss, which is added to the cosine loss, and its temperature."""
VALIDATIONS_AN_EPOCH, PATIENCE = 4.0, 6
"""Training ends after `PATIENCE` validations without improvement."""
DECAY, DECAY_OF_SQUARES = 0.9, 0.999
WARMUP = 0.05
"""Share of the steps over which the learning rate rises."""
RATE_OF_LOGS = 0.2
"""Learning rate of the weights' logarithms, as a share of that of the vectors."""
SMALLEST = 1e-6
"""Length below which a text's sum of vectors is not scaled up any further."""
MOST_VALIDATIONS = 50
BATCHES_AN_EPOCH = 16
"""Smaller corpora have smaller batches."""


@dataclass(frozen=True)
class StudentSettings:
    """Settings of a static student: principal components, passes over the texts, and a seed."""

    dimensions: int = 256
    epochs: float = 5.0
    random_state: Any = 42

    def __post_init__(self) -> None:
        object.__setattr__(self, "random_state", resolve_seed(self.random_state))
        checked_count(self.dimensions, "dimensions")
        checked_between(self.epochs, "epochs", 0, math.inf)

    def to_dict(self) -> dict[str, Any]:
        """Return the settings in what JSON can hold."""
        return {"dimensions": self.dimensions, "epochs": self.epochs, "seed": self.random_state}


@dataclass(frozen=True, eq=False)
class Bagged:
    """Texts as bags of tokens, and what their vectors should be."""

    bags: csr_matrix  # (n_texts, n_tokens), how often each text holds each token
    targets: FloatArray  # (n_texts, n_dimensions), of length 1

    def take(self, rows: Int64Array) -> Bagged:
        """Return some of the texts."""
        return Bagged(self.bags[rows], self.targets[rows])


@dataclass(frozen=True, eq=False)
class Learned:
    """A table that was learned."""

    table: FloatArray  # (n_tokens, n_dimensions)
    weights: FloatArray  # (n_tokens,), factor of each token's vector
    curves: Curves
    best_step: int
    n_steps: int
    stopped: str


class _Learner:
    """The table in work, with Adam's moments, and the curves so far."""

    def __init__(self, table: FloatArray, weights: FloatArray) -> None:
        self.table, self.logs = table.copy(), np.log(weights).astype(np.float32)
        # Adam's steps know no scale: they are shares of the numbers that they change.
        numbers = table[np.any(table, axis=1)]
        square = float(np.mean(numbers**2, dtype=np.float64)) if len(numbers) else 1.0
        self.scale = math.sqrt(square)
        self.moments = [np.zeros_like(x) for x in (self.table, self.table, self.logs, self.logs)]
        self.training: list[tuple[int, float]] = []
        self.validation: list[tuple[int, float, float, float]] = []
        self._since: list[float] = []  # losses since the last validation

    def step(self, batch: Bagged, rate: float, number: int) -> None:
        """Take a step with the gradient of the loss of some texts."""
        from scipy.sparse import csr_matrix

        # Only the tokens of the batch are touched: the whole table is much larger.
        used, columns = np.unique(batch.bags.indices, return_inverse=True)
        factors = np.exp(self.logs[used])
        shape = (len(batch.targets), len(used))
        weighted = csr_matrix(
            (batch.bags.data * factors[columns], columns, batch.bags.indptr), shape=shape
        )
        rows = self.table[used]
        vectors, lengths = _unit(weighted @ rows)
        loss, gradient = _loss(vectors, batch.targets)
        # Through the scaling to length 1: what points along a vector does not turn it.
        gradient -= vectors * np.einsum("ij,ij->i", gradient, vectors)[:, None]
        of_rows = weighted.T.tocsr() @ (gradient / lengths)
        of_logs = np.einsum("ij,ij->i", of_rows, rows)
        change = _adam(self.moments[:2], used, of_rows, number)
        self.table[used] = rows - np.float32(rate * self.scale) * change
        change = _adam(self.moments[2:], used, of_logs, number)
        self.logs[used] -= np.float32(rate * RATE_OF_LOGS) * change
        self._since.append(loss)

    def validate(self, step: int, validation: Bagged, sample: Bagged, size: int) -> float:
        """Note the losses after a step, and return the mean cosine of the validation texts."""
        weights = np.exp(self.logs)
        mean_losses = []
        for texts in (sample, validation):
            vectors = student_vectors(texts.bags, self.table, weights)
            # In batches like those of the training, or the loss would be of another size.
            losses = [
                _loss(vectors[part], texts.targets[part])[0] * len(part)
                for part in np.array_split(np.arange(len(vectors)), math.ceil(len(vectors) / size))
            ]
            mean_losses.append(sum(losses) / len(vectors))
        cosines = np.einsum("ij,ij->i", vectors, validation.targets)
        cosine = float(cosines.mean(dtype=np.float64))
        self.validation.append((step, mean_losses[1], mean_losses[0], cosine))
        if self._since:
            self.training.append((step, float(np.mean(self._since))))
            self._since.clear()
        return cosine


def learn(
    table: FloatArray,
    weights: FloatArray,
    training: Bagged,
    validation: Bagged,
    settings: StudentSettings,
    show_progress: bool | None = False,
) -> Learned:
    """Learn token vectors and weights from the teacher's vectors."""
    from threadpoolctl import threadpool_limits

    learner = _Learner(table, weights)
    n_texts, n_held = training.bags.shape[0], validation.bags.shape[0]
    size = min(BATCH_SIZE, max(2, n_texts // BATCHES_AN_EPOCH))
    n_batches = max(1, math.ceil(n_texts / size))
    n_steps = max(MIN_STEPS, 1, round(settings.epochs * n_batches))
    # A small corpus has many epochs, and needs no more validations for that.
    every = max(1, round(n_batches / VALIDATIONS_AN_EPOCH), n_steps // MOST_VALIDATIONS)
    rng = np.random.default_rng(settings.random_state)
    sample = training.take(np.sort(rng.permutation(n_texts)[:n_held]))
    best = (-math.inf, 0, learner.table.copy(), weights)
    step, waited, stopped = 0, 0, "finished"
    # On one thread: the order in which BLAS sums depends on how many it has.
    with (
        threadpool_limits(limits=1, user_api="blas"),
        progress_bar(total=n_steps, unit="step", description="Learning", show=show_progress) as bar,
    ):
        batches = _batches(n_texts, n_batches, rng)
        while True:
            if step % every == 0 or step == n_steps:
                cosine = learner.validate(step, validation, sample, size)
                if cosine > best[0]:
                    best, waited = (cosine, step, learner.table.copy(), np.exp(learner.logs)), 0
                else:
                    waited += 1
                if waited >= PATIENCE:
                    stopped = "no improvement"
            if step == n_steps or stopped == "no improvement":
                break
            step += 1
            # Rises over the warm-up, then falls towards zero in a straight line.
            share = min(1.0, step / max(1.0, WARMUP * n_steps)) * (1 - (step - 1) / n_steps)
            learner.step(training.take(next(batches)), LEARNING_RATE * share, step)
            bar.update(1)
    _, best_step, best_table, best_weights = best
    at, losses, sample_losses, cosines = np.array(learner.validation).T.copy()
    steps, training_losses = np.array(learner.training).T.copy()
    curves = Curves(
        training_steps=steps.astype(np.int64),
        training_loss=training_losses,
        validation_steps=at.astype(np.int64),
        validation_loss=losses,
        sample_loss=sample_losses,
        metric=cosines,
        metric_name="mean cosine with the teacher",
        steps_per_epoch=n_batches,
        n_steps_planned=n_steps,
        n_validation=n_held,
        n_sample=n_held,
    )
    return Learned(best_table, best_weights, curves, best_step, step, stopped)


def _batches(n_texts: int, n_batches: int, rng: np.random.Generator) -> Iterator[Int64Array]:
    while True:
        yield from np.array_split(rng.permutation(n_texts), n_batches)


def student_vectors(bags: csr_matrix, table: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the vectors of texts, of length 1; shorter for texts of next to no tokens."""
    return _unit(bags @ (table * weights[:, None]))[0]


def _unit(sums: FloatArray) -> tuple[FloatArray, FloatArray]:
    lengths = np.sqrt(np.einsum("ij,ij->i", sums, sums))[:, None]
    lengths = np.maximum(lengths, np.float32(SMALLEST))
    return sums / lengths, lengths


def _loss(vectors: FloatArray, targets: FloatArray) -> tuple[float, FloatArray]:
    n = len(vectors)
    cosines = np.einsum("ij,ij->i", vectors, targets)
    loss = float(1 - cosines.mean(dtype=np.float64))
    gradient = targets * np.float32(-1 / n)
    logits = (vectors @ targets.T) * np.float32(1 / TEMPERATURE)
    logits -= logits.max(axis=1, keepdims=True)
    shares = np.exp(logits)
    shares /= shares.sum(axis=1, keepdims=True)
    right = np.maximum(np.diagonal(shares).astype(np.float64), 1e-30)
    loss += CONTRAST * float(-np.log(right).mean())
    shares[np.arange(n), np.arange(n)] -= 1
    gradient += (shares @ targets) * np.float32(CONTRAST / (TEMPERATURE * n))
    return loss, gradient


def _adam(
    moments: list[FloatArray], used: npt.NDArray[Any], gradient: FloatArray, step: int
) -> Any:
    """Return the direction of a step in the rows `used` (Kingma and Ba 2015, algorithm 1)."""
    first, second = moments
    first[used] = DECAY * first[used] + (1 - DECAY) * gradient
    second[used] = DECAY_OF_SQUARES * second[used] + (1 - DECAY_OF_SQUARES) * gradient**2
    mean = first[used] / np.float32(1 - DECAY**step)
    square = second[used] / np.float32(1 - DECAY_OF_SQUARES**step)
    return mean / (np.sqrt(square) + np.float32(1e-10))
