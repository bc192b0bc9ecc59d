"""Threads, and installed versions."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from threading import Event, RLock
from typing import Any, TypeVar

Result = TypeVar("Result")
PACKAGES = (
    "embedtopics", "numpy", "scipy", "scikit-learn", "faiss-cpu",
    "faiss-gpu-cu12", "numba", "torch", "transformers",
)  # fmt: skip


@contextmanager
def in_background(work: Callable[[Callable[[], bool]], Result]) -> Iterator[Callable[[], Result]]:
    """Run some work in another thread; yield a function that waits for its result."""
    unwanted, executor = Event(), ThreadPoolExecutor(1)
    try:
        yield executor.submit(work, unwanted.is_set).result
    finally:  # unfinished work is not waited for, so that an error is seen at once
        unwanted.set()
        executor.shutdown(wait=False)


def in_parts(loop: Callable[..., None], n: int, *arguments: Any, few: int) -> None:
    """Run a loop from 0 to n, which gets a start and an end, on several threads if not for few."""
    import numba  # whose own parallel loops compile several times as long

    n_threads = numba.get_num_threads()
    if n < few or n_threads == 1:
        loop(0, n, *arguments)
        return
    ends = [n * part // (4 * n_threads) for part in range(4 * n_threads + 1)]
    with ThreadPoolExecutor(n_threads) as threads:
        for _ in threads.map(lambda first, end: loop(first, end, *arguments), ends, ends[1:]):
            pass


def one_blas_thread() -> Any:
    """Limit BLAS to one thread in a context: the order of its sums depends on how many it has."""
    from threadpoolctl import threadpool_limits

    return threadpool_limits(limits=1, user_api="blas")


_LOCK = RLock()


def _renew_lock() -> None:
    """Replace the lock in a forked process, where the thread that may hold it is gone."""
    global _LOCK
    _LOCK = RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)


class computed_once(cached_property[Result]):
    """A `functools.cached_property` with a lock, which the standard one lost in Python 3.12."""

    def __get__(self, instance: Any, owner: type[Any] | None = None) -> Result:  # type: ignore[override]
        """Return the value; compute it if no other thread has."""
        with _LOCK:
            value: Result = super().__get__(instance, owner)
            return value


def package_versions() -> dict[str, str]:
    """Return the installed versions of Python and of the packages that shape a result."""
    versions = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return versions
