"""The layout: coordinates in which linked documents lie near one another.

UMAP's optimiser moves both ends of one sampled edge at a time, so that the outcome depends on
the order in which threads get there. Here every document sums the forces on itself, all read
from a frozen copy of the positions; then all move together. The result is the same for any
number of threads. An epoch is cut into sub-steps, each with a part of the edges, because
summing all of a document's pulls before it moves would overshoot.

The learning rate falls with the square of the epochs that are left, where UMAP's falls in
proportion to them. Most of what is wrong with a layout at its end is the noise of the last samples:
so half of UMAP's epochs keep more of the neighbours than all of them did at its rate.
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
"""Epochs where there are many documents; 50 more raise the trustworthiness by up to 0.01."""

MANY_DOCUMENTS = 10_000
EPOCHS_A_STEP = 4
STEPS_BETWEEN_TRIALS = 16
ENOUGH_FOR_THREADS = 4_000
"""Documents below which a sub-step is too short to share: threads would wait for one another,
and on a busy machine each wait may last as long as a time slice."""


@dataclass(frozen=True, eq=False)
class EdgeSchedule:
    """A fuzzy graph made ready for layouts: its edges, spread over the sub-steps of an epoch.

    `order` (n_documents,) numbers the documents in the other arrays; `counts, starts, pulling` say
    who pulls at whom (see `_kernels.schedule`), and `strengths` (n_documents,) weigh the pushes.
    """

    order: Int64Array
    counts: Int32Array
    starts: Int64Array
    pulling: Int32Array
    strengths: FloatArray
    seed: int


def edge_schedule(fuzzy: csr_matrix, *, seed: int = 0, n_epochs: int | None = None) -> EdgeSchedule:
    """Make a fuzzy graph (n_documents, n_documents) ready for layouts of up to `n_epochs`."""
    from embedtopics.reduction import _kernels

    n_documents = fuzzy.shape[0]
    n_epochs = default_epochs(n_documents) if n_epochs is None else n_epochs
    # Pushes are exchanged between documents that stand side by side somewhere: renumber them in
    # an order without meaning.
    order = np.argsort(_mix(np.arange(n_documents, dtype=np.uint64), seed), kind="stable")
    fuzzy = fuzzy[order][:, order]
    strengths = np.asarray(fuzzy.sum(axis=1)).ravel() / fuzzy.data.max(initial=1.0)
    strengths *= NEGATIVES_PER_EDGE / (_kernels.SUB_STEPS * _kernels.PUSHES)
    edges = _edges_by_sub_step(fuzzy, max(1, n_epochs), seed)
    return EdgeSchedule(order, *_kernels.schedule(*edges), strengths.astype(np.float32), seed)


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
    """Lay a fuzzy graph out from `start` (n_documents, n_components) by UMAP's forces.

    The expected numbers of pulls along an edge and of negative samples per document and epoch
    are those of UMAP's stochastic gradient descent, as are the gradients and their clipping. The
    learning rate falls from 1 to 0, as the square of the share of epochs left. `first_epoch` leaves
    out the early ones of large steps, for a start that is a layout already. The layout is the same
    with any `n_threads`; it ends early where `stop`, asked from time to time, returns true. Source:
    McInnes, Healy and Melville (2018), "UMAP", algorithm 5.
    """
    from embedtopics.reduction import _kernels

    n_documents = len(start)
    n_epochs = default_epochs(n_documents) if n_epochs is None else n_epochs
    schedule = fuzzy
    if not isinstance(schedule, EdgeSchedule):
        schedule = edge_schedule(schedule, seed=seed, n_epochs=n_epochs)
    if n_epochs == 0 or not len(schedule.pulling):
        return start.copy()
    positions = np.ascontiguousarray(start[schedule.order], dtype=np.float32)
    arrays = (
        positions, schedule.counts, schedule.starts, schedule.pulling, schedule.strengths,
        *force_tables(*curve_parameters(min_dist)),
    )  # fmt: skip

    def advance(first: int, end: int) -> None:
        _kernels.move_all(*arrays, first, end, n_epochs, np.uint64(schedule.seed))

    many = n_documents >= ENOUGH_FOR_THREADS
    _run_on_threads(advance, first_epoch, n_epochs, n_threads if many else 1, stop)
    laid_out = np.empty_like(positions)
    laid_out[schedule.order] = positions
    return laid_out


def default_epochs(n_documents: int) -> int:
    """Return the number of epochs that a layout takes by default; see `layout`."""
    return EPOCHS if n_documents <= MANY_DOCUMENTS else EPOCHS_OF_MANY


def _run_on_threads(
    advance: Callable[[int, int], None],
    first_epoch: int,
    n_epochs: int,
    n_threads: int | None,
    stop: Callable[[], bool] | None,
) -> None:
    """Run the epochs from the first on, on all threads or on one, whichever is faster at the time.

    Threads wait for one another many times an epoch. Where other programs keep the cores busy,
    each wait may last as long as a time slice, and one thread alone is many times faster.
    """
    import numba

    threads = numba.get_num_threads()
    most = min(n_threads or threads, threads)
    choices = (most, 1) if most > 1 else (1,)
    seconds = dict.fromkeys(choices, 0.0)  # an epoch's; untried choices come first
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
            advance(epoch, end)
            seconds[n_now] = (time.perf_counter() - begin) / (end - epoch)
            epoch, n_steps = end, n_steps + 1
    finally:
        numba.set_num_threads(threads)


def curve_parameters(min_dist: float, spread: float = 1.0) -> tuple[float, float]:
    """Fit UMAP's similarity curve 1 / (1 + a·d^(2b)) to a wanted minimal distance."""
    from scipy.optimize import curve_fit

    distance = np.linspace(0, 3 * spread, 300)
    target = np.where(distance < min_dist, 1.0, np.exp(-(distance - min_dist) / spread))
    (a, b), _ = curve_fit(lambda d, a, b: 1.0 / (1.0 + a * d ** (2 * b)), distance, target)
    return float(a), float(b)


def force_tables(a: float, b: float) -> tuple[FloatArray, FloatArray]:
    """Tabulate the forces by squared distance, for every float32 cut to nine bits of mantissa.

    With powers in it, the loop gave other last bits when it was just compiled than when it was read
    from the cache.
    """
    from embedtopics.reduction._kernels import TABLE_SHIFT

    bits = np.arange(0x7F800000 >> TABLE_SHIFT, dtype=np.int32) << TABLE_SHIFT
    middle = bits + (1 << (TABLE_SHIFT - 1))
    squared = middle.view(np.float32).astype(np.float64)
    power = squared**b
    pulls = -2 * a * b * power / (squared * (1 + a * power))
    pushes = 2 * b / ((0.001 + squared) * (1 + a * power))
    return pulls.astype(np.float32), pushes.astype(np.float32)


def _edges_by_sub_step(
    fuzzy: csr_matrix, n_epochs: int, seed: int
) -> tuple[Int64Array, Int32Array, Int32Array, Int32Array]:
    """Spread every document's edges over the sub-steps.

    Edges too weak to be pulled once in all epochs are left out, as UMAP does. Sub-step and phase
    (when in its own rhythm an edge starts) are the same for both ends of an edge: ends that pulled
    by turns would leap over one another, and a close pair would run off the map.
    """
    from embedtopics.reduction._kernels import BEAT_BITS, SUB_STEPS

    n_documents = fuzzy.shape[0]
    rows = np.repeat(np.arange(n_documents, dtype=np.int64), np.diff(fuzzy.indptr))
    weights = fuzzy.data / fuzzy.data.max(initial=np.float32(np.finfo(np.float32).tiny))
    is_strong = weights >= 1.0 / n_epochs
    rows, columns, weights = rows[is_strong], fuzzy.indices[is_strong], weights[is_strong]
    first, second = np.minimum(rows, columns), np.maximum(rows, columns)
    mixed = _mix(first.astype(np.uint64) * np.uint64(n_documents) + second.astype(np.uint64), seed)
    place = rows * SUB_STEPS + (mixed % np.uint64(SUB_STEPS)).astype(np.int64)
    # Columns ascend within each row, and a stable sort leaves them so.
    order = np.argsort(place, kind="stable")
    offsets = np.zeros(n_documents * SUB_STEPS + 1, dtype=np.int64)
    np.cumsum(np.bincount(place, minlength=n_documents * SUB_STEPS), out=offsets[1:])
    # Each edge pulls a document from both of its directions, hence twice its weight.
    rates = np.rint(2.0 * weights.astype(np.float64) * 2**BEAT_BITS).astype(np.int32)
    phases = (mixed >> np.uint64(64 - BEAT_BITS)).astype(np.int32)
    return offsets, columns[order].astype(np.int32), rates[order], phases[order]


def _mix(values: np.ndarray, seed: int) -> np.ndarray:
    """Scramble integers (the finaliser of SplitMix64)."""
    mixed = values + np.uint64((seed * 0x9E3779B97F4A7C15) % 2**64)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))
