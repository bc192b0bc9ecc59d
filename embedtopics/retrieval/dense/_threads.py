"""FAISS, and threads of ours beside one another, each with one of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib import import_module
from typing import Any

__all__ = ["faiss_module", "one_thread", "parts_of", "work_on_parts"]


def faiss_module() -> Any:
    """Import FAISS, whose own type hints lack much of what it has."""
    return import_module("faiss")


def parts_of(n: int, size: int) -> list[slice]:
    """Cut ``0 .. n - 1`` into parts of one size, the last of which may be shorter."""
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def work_on_parts(work: Callable[[slice], None], parts: list[slice]) -> None:
    """Work on all parts, on as many threads as FAISS may use.

    The parts do not depend on the number of threads, and each is worked on by a single one:
    so neither do sums whose order FAISS and BLAS choose by their number of threads.
    """
    n_threads = min(len(parts), faiss_module().omp_get_max_threads())

    def work_alone(part: slice) -> None:
        with one_thread():
            work(part)

    if n_threads < 2:
        for part in parts:
            work_alone(part)
        return
    with ThreadPoolExecutor(n_threads) as threads:
        for _ in threads.map(work_alone, parts):
            pass


@contextmanager
def one_thread() -> Iterator[None]:
    """Let FAISS use one thread where it is called from this one."""
    faiss = faiss_module()
    threads = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(threads)
