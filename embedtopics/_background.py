"""Work beside the main thread."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event
from typing import TypeVar

__all__ = ["in_background", "loops_may_meet", "side_by_side"]

Result = TypeVar("Result")


@contextmanager
def in_background(
    work: Callable[[Callable[[], bool]], Result], *, runs_loops: bool
) -> Iterator[Callable[[], Result]]:
    """Let some work go on in another thread.

    Of Numba's ways to run threads, one may not be entered from two threads at once. Where it is in
    use, or none is yet, work with such loops is done when its result is asked for.

    Parameters
    ----------
    work : callable
        Gets a function that tells whether the result is still wanted.
    runs_loops : bool
        Whether the work runs parallel loops of Numba.

    Yields
    ------
    callable
        Returns the result of the work, or raises its error, when it is done.
    """
    if runs_loops and not loops_may_meet():
        yield lambda: work(lambda: False)
        return
    unwanted = Event()
    executor = ThreadPoolExecutor(1)
    future = executor.submit(work, unwanted.is_set)
    try:
        yield future.result
    finally:
        # What is still under way is not waited for: an error is to be seen at once.
        unwanted.set()
        executor.shutdown(wait=False)


def side_by_side(work: Callable[[int], Result], n: int) -> Iterator[Result]:
    """Do several pieces of work at once, each on one of Numba's threads, as far as these can meet.

    Parameters
    ----------
    work : callable
        Does the piece of a number.
    n : int

    Yields
    ------
    object
        The results of ``0 .. n - 1``, in order.
    """
    import numba

    if not loops_may_meet():
        yield from map(work, range(n))
        return

    def work_alone(number: int) -> Result:
        numba.set_num_threads(1)  # of this thread
        return work(number)

    executor = ThreadPoolExecutor(numba.get_num_threads())
    try:
        yield from executor.map(work_alone, range(n))
    finally:
        executor.shutdown(wait=False, cancel_futures=True)


def loops_may_meet() -> bool:
    """Tell whether parallel loops of Numba may run in two threads at once."""
    import numba

    try:
        return numba.threading_layer() in ("omp", "tbb")  # type: ignore[attr-defined]
    except ValueError:  # no loop was run so far
        return False
