"""The layout: UMAP's forces, with the same result for any number of threads.

UMAP's optimizer moves both ends of one sampled edge at a time, and its outcome depends on the order
of the threads. Here every document sums the forces on itself from a frozen copy of the positions;
then all documents move. An epoch consists of sub-steps with a part of the edges each, because the
sum of all pulls on a document would overshoot.

The learning rate falls with the square of the remaining epochs, UMAP's in proportion to them. The
error of a final layout is mostly noise of the last samples: half of UMAP's epochs preserve more
neighbors than all of them at its rate.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from embedtopics.protocols import FloatArray, Int32Array, Int64Array

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


NEGATIVES_PER_EDGE = 5
EPOCHS = 200
EPOCHS_OF_MANY = 150
"""Epochs for many documents; 50 more raise the trustworthiness by at most 0.01."""

MANY_DOCUMENTS = 10_000
BEAT_BITS = 24
"""Fractional bits in the rates and phases of edges."""

EPOCHS_A_STEP = 4
STEPS_BETWEEN_TRIALS = 16
ENOUGH_FOR_THREADS = 4_000
"""Documents below which a sub-step is too short for several threads: they wait for each other, and
on a busy machine each wait may last a time slice."""


@dataclass(frozen=True, eq=False)
class EdgeSchedule:
    """A fuzzy graph prepared for layouts: its edges, spread over the sub-steps of an epoch.

    `order` (n_documents,) numbers the documents in the other arrays. `counts, starts, pulling` hold
    the pulls of each sub-step (see `_schedule`), `strengths` (n_documents,) the weights of the
    pushes.
    """

    order: Int64Array
    counts: Int32Array
    starts: Int64Array
    pulling: Int32Array
    strengths: FloatArray
    seed: int


def edge_schedule(fuzzy: csr_matrix, *, seed: int = 0, n_epochs: int | None = None) -> EdgeSchedule:
    """Prepare a fuzzy graph (n_documents, n_documents) for layouts of up to `n_epochs`."""
    from embedtopics.reduction import _kernels

    n_documents = fuzzy.shape[0]
    n_epochs = default_epochs(n_documents) if n_epochs is None else n_epochs
    # Adjacent documents exchange pushes: renumber them in an order without meaning.
    order = np.argsort(_mix(np.arange(n_documents, dtype=np.uint64), seed), kind="stable")
    fuzzy = fuzzy[order][:, order]
    strengths = np.asarray(fuzzy.sum(axis=1)).ravel() / fuzzy.data.max(initial=1.0)
    strengths *= NEGATIVES_PER_EDGE / (_kernels.SUB_STEPS * _kernels.PUSHES)
    edges = _edges_by_sub_step(fuzzy, max(1, n_epochs), seed)
    return EdgeSchedule(order, *_schedule(*edges), strengths.astype(np.float32), seed)


def layout(
    fuzzy: csr_matrix | EdgeSchedule,
    start: FloatArray,
    *,
    min_dist: float = 0.0,
    seed: int = 0,
    n_epochs: int | None = None,
    first_epoch: int = 0,
    n_threads: int | None = None,
    stop: Callable[[], bool] | None = None,
) -> FloatArray:
    """Lay out a fuzzy graph from `start` (n_documents, n_components) by UMAP's forces.

    The expected numbers of pulls per edge and of negative samples per document and epoch, the
    gradients and their clipping are those of UMAP's stochastic gradient descent. The learning rate
    falls from 1 to 0 with the square of the share of remaining epochs. `first_epoch` skips the
    early epochs with large steps, if the start is a layout already. The layout is the same for any
    `n_threads`, and ends early if `stop` returns True. Source: McInnes, Healy and Melville (2018),
    "UMAP", algorithm 5.
    """
    from embedtopics.reduction import _kernels

    n_documents = len(start)
    n_epochs = default_epochs(n_documents) if n_epochs is None else n_epochs
    schedule = fuzzy
    if not isinstance(schedule, EdgeSchedule):
        schedule = edge_schedule(schedule, seed=seed, n_epochs=n_epochs)
    if n_epochs == 0 or not len(schedule.pulling):
        return start.copy()
    positions = start[schedule.order].astype(np.float32)
    rows = np.arange(n_documents + _kernels.ROWS_AT_ONCE) % n_documents
    # The number of sub-steps is even: epochs begin and end with the first half.
    halves = np.stack([positions, positions])
    arrays = (
        halves,
        np.ascontiguousarray(halves[:, rows].transpose(0, 2, 1)),
        schedule.counts,
        schedule.starts,
        schedule.pulling,
        schedule.strengths,
        *force_tables(*curve_parameters(min_dist)),
    )

    def advance(first: int, end: int, n: int) -> None:
        move = _kernels.move_chunks(start.shape[1], n > 1)
        steps = first * _kernels.SUB_STEPS, end * _kernels.SUB_STEPS
        move(*arrays, *steps, n_epochs, np.uint64(schedule.seed))

    many = n_documents >= ENOUGH_FOR_THREADS
    _run_on_threads(advance, first_epoch, n_epochs, n_threads if many else 1, stop)
    positions[schedule.order] = halves[0]
    return positions


def default_epochs(n_documents: int) -> int:
    """Return the default number of epochs of a layout."""
    return EPOCHS if n_documents <= MANY_DOCUMENTS else EPOCHS_OF_MANY


def _run_on_threads(
    advance: Callable[[int, int, int], None],
    first_epoch: int,
    n_epochs: int,
    n_threads: int | None,
    stop: Callable[[], bool] | None,
) -> None:
    """Run the epochs on all threads or on one, whichever is faster at the time.

    Threads wait for each other many times per epoch. If other programs use the cores, each wait may
    last a time slice, and one thread alone is many times faster.
    """
    import numba

    threads = numba.get_num_threads()
    most = min(n_threads or threads, threads)
    choices = (most, 1) if most > 1 else (1,)
    seconds = dict.fromkeys(choices, 0.0)  # per epoch; untried choices come first
    epoch, n_steps = first_epoch, 0
    try:
        while epoch < n_epochs and not (stop and stop()):
            fastest = min(choices, key=lambda n: seconds[n])
            others = [n for n in choices if n != fastest]
            is_trial = bool(others) and n_steps % STEPS_BETWEEN_TRIALS == 0
            n_now = others[0] if is_trial else fastest
            numba.set_num_threads(n_now)
            end = min(epoch + (1 if is_trial else EPOCHS_A_STEP), n_epochs)
            begin = time.perf_counter()
            advance(epoch, end, n_now)
            seconds[n_now] = (time.perf_counter() - begin) / (end - epoch)
            epoch, n_steps = end, n_steps + 1
    finally:
        numba.set_num_threads(threads)


def curve_parameters(min_dist: float, spread: float = 1.0) -> tuple[float, float]:
    """Fit UMAP's similarity curve 1 / (1 + a·d^(2b)) to a minimal distance."""
    from scipy.optimize import curve_fit

    distance = np.linspace(0, 3 * spread, 300)
    target = np.where(distance < min_dist, 1.0, np.exp(-(distance - min_dist) / spread))
    (a, b), _ = curve_fit(lambda d, a, b: 1.0 / (1.0 + a * d ** (2 * b)), distance, target)
    return float(a), float(b)


def force_tables(a: float, b: float) -> tuple[FloatArray, FloatArray]:
    """Tabulate the forces by squared distance, for every float32 with nine bits of mantissa.

    Powers in the loop gave other last bits right after compilation than from the cache.
    """
    from embedtopics.reduction._kernels import TABLE_SHIFT

    bits = np.arange(0x7F800000 >> TABLE_SHIFT, dtype=np.int32) << TABLE_SHIFT
    middle = bits + (1 << (TABLE_SHIFT - 1))
    squared = middle.view(np.float32).astype(np.float64)
    power = squared**b
    pulls = -2 * a * b * power / (squared * (1 + a * power))
    pushes = 2 * b / ((0.001 + squared) * (1 + a * power))
    return pulls.astype(np.float32), pushes.astype(np.float32)


def _schedule(
    offsets: Int64Array, neighbors: Int32Array, rates: Int32Array, phases: Int32Array
) -> tuple[Int32Array, Int64Array, Int32Array]:
    """List the pulls of each sub-step in a cycle of epochs.

    Shapes: edges (n_edges,) -> `counts` (CYCLE * SUB_STEPS, n_documents), `starts` (CYCLE *
    SUB_STEPS, n_chunks), `pulling` (n_pulls,).
    """
    from embedtopics.reduction._kernels import CYCLE, ROWS_AT_ONCE, SUB_STEPS

    n_documents = (len(offsets) - 1) // SUB_STEPS
    counts = np.empty((CYCLE, SUB_STEPS, n_documents), dtype=np.int32)
    pulling: list[list[Int32Array]] = [[] for _ in range(CYCLE)]
    document, sub_steps = np.divmod(
        np.repeat(np.arange(len(offsets) - 1), np.diff(offsets)), SUB_STEPS
    )
    for sub_step in range(SUB_STEPS):
        edges = np.flatnonzero(sub_steps == sub_step)
        rate, beat = rates[edges].astype(np.int64), phases[edges].astype(np.int64)
        near, pulled = neighbors[edges], document[edges]
        for epoch in range(CYCLE):
            times = -(beat >> BEAT_BITS)
            beat += rate
            times += beat >> BEAT_BITS  # 0, 1 or 2
            pulling[epoch].append(np.repeat(near, times))
            counts[epoch, sub_step] = np.bincount(pulled, times, n_documents)
    by_step = counts.reshape(-1, n_documents)
    n_pulls = np.add.reduceat(by_step, np.arange(0, n_documents, ROWS_AT_ONCE), axis=1)
    ends = np.cumsum(n_pulls, dtype=np.int64).reshape(n_pulls.shape)
    return by_step, ends - n_pulls, np.concatenate([part for epoch in pulling for part in epoch])


def _edges_by_sub_step(
    fuzzy: csr_matrix, n_epochs: int, seed: int
) -> tuple[Int64Array, Int32Array, Int32Array, Int32Array]:
    """Spread every document's edges over the sub-steps.

    As in UMAP, edges too weak for one pull in all epochs are left out. Sub-step and phase are the
    same for both ends of an edge: ends that pull in turns would overshoot, and close pairs would
    leave the map.
    """
    from embedtopics.reduction._kernels import SUB_STEPS

    n_documents = fuzzy.shape[0]
    rows = np.repeat(np.arange(n_documents, dtype=np.int64), np.diff(fuzzy.indptr))
    weights = fuzzy.data / fuzzy.data.max(initial=np.float32(np.finfo(np.float32).tiny))
    is_strong = weights >= 1.0 / n_epochs
    rows, columns, weights = rows[is_strong], fuzzy.indices[is_strong], weights[is_strong]
    first, second = np.minimum(rows, columns), np.maximum(rows, columns)
    mixed = _mix(first.astype(np.uint64) * np.uint64(n_documents) + second.astype(np.uint64), seed)
    place = rows * SUB_STEPS + (mixed % np.uint64(SUB_STEPS)).astype(np.int64)
    # Columns ascend within each row, and a stable sort keeps that.
    order = np.argsort(place, kind="stable")
    offsets = np.zeros(n_documents * SUB_STEPS + 1, dtype=np.int64)
    np.cumsum(np.bincount(place, minlength=n_documents * SUB_STEPS), out=offsets[1:])
    # Each edge pulls a document in both directions: twice its weight.
    rates = np.rint(2.0 * weights.astype(np.float64) * 2**BEAT_BITS).astype(np.int32)
    phases = (mixed >> np.uint64(64 - BEAT_BITS)).astype(np.int32)
    return offsets, columns[order].astype(np.int32), rates[order], phases[order]


def _mix(values: np.ndarray, seed: int) -> np.ndarray:
    """Scramble integers (the finaliser of SplitMix64)."""
    mixed = values + np.uint64((seed * 0x9E3779B97F4A7C15) % 2**64)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))
