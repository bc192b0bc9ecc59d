"""The machine: threads beside the main one, memory held, and the versions that are installed."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from threading import Event, RLock
from typing import TYPE_CHECKING, Any, TypeVar

Result = TypeVar("Result")
STATUS = Path("/proc/self/status")
PACKAGES = (
    "embedtopics", "numpy", "scipy", "scikit-learn", "faiss-cpu",
    "faiss-gpu-cu12", "numba", "torch", "transformers",
)  # fmt: skip


@contextmanager
def in_background(
    work: Callable[[Callable[[], bool]], Result], *, runs_loops: bool
) -> Iterator[Callable[[], Result]]:
    """Let some work go on in another thread."""
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
    """Do pieces of work at once, each on one of Numba's threads, as far as these can meet."""
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
    """Return whether parallel loops of Numba may run in two threads at once."""
    import numba

    try:
        return numba.threading_layer() in ("omp", "tbb")  # type: ignore[attr-defined]
    except ValueError:  # no loop was run so far
        return False


_LOCK = RLock()

if TYPE_CHECKING:
    computed_once = cached_property
else:

    class computed_once(cached_property):
        """A `functools.cached_property` that other threads wait for.

        From Python 3.12 on, threads that ask at the same time all compute it. Once it is there, it
        is an attribute like any other, and nobody waits.
        """

        def __get__(self, instance: Any, owner: type[Any] | None = None) -> Any:
            """Return the value, and compute it where no other thread has."""
            if instance is None:
                return self
            with _LOCK:
                return super().__get__(instance, owner)


def has_cuda_driver() -> bool:
    """Return whether the driver of CUDA devices is installed: without it none need be asked for."""
    import ctypes

    try:
        ctypes.CDLL("libcuda.so.1" if os.name == "posix" else "nvcuda.dll")
    except OSError:
        return False
    return True


def peak_memory() -> float:
    """Return the largest resident set of this process so far, in bytes; NaN where unknown."""
    if STATUS.exists():
        for line in STATUS.read_text("ascii", "replace").splitlines():
            if line.startswith("VmHWM:"):
                return float(line.split()[1]) * 1024
    try:
        import resource
    except ImportError:
        return float("nan")
    unit = 1 if sys.platform == "darwin" else 1024
    return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit)


def package_versions() -> dict[str, str]:
    """Return the installed versions of Python and of the packages that shape a result."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
