"""Compile inner loops with Numba once per machine, and announce it in one line.

Put the loops into a module of their own, such as ``terms/_kernels.py``, with every constant and
helper that they need: Numba's cache notices changes of that file only. Import the module inside the
function that calls a loop, so that importing the package compiles nothing:

    @compiled("float32(float32[::1])", fastmath=True)
    def add_up(values): ...

The import compiles the loop for that signature, or reads the machine code from Numba's cache.
Helpers of a loop need only ``numba.njit(inline="always")``.

A parallel loop runs on one thread in a forked process: Numba would end the process, because the
threads that it started before the fork are gone.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, wraps
from typing import Any, TypeVar

from embedtopics._utils.forks import is_forked

Function = TypeVar("Function", bound=Callable[..., Any])

SECONDS = 20
"""Longest time to compile all loops of the package."""

_logger = logging.getLogger("embedtopics")
_announced = False


def compiled(*signatures: Any, **options: Any) -> Callable[[Function], Function]:
    """Compile a function for some signatures, or read it from the cache."""
    import numba

    options = {"no_cfunc_wrapper": True, **options}  # which is for callers in C alone

    def compile_one(function: Function) -> Function:
        compiled_function = compile_for(function)
        if not options.get("parallel"):
            return compiled_function

        @cache
        def serial() -> Function:
            # Not from the cache on disk, which would take it for the parallel loop.
            return numba.njit([*signatures], **{**options, "parallel": False})(function)  # type: ignore[return-value]

        @wraps(function)
        def run(*arguments: Any) -> Any:
            if is_forked():
                return serial()(*arguments)
            return compiled_function(*arguments)

        return run  # type: ignore[return-value]

    def compile_for(function: Function) -> Function:
        arguments = list(signatures)
        try:
            with _announcing(f"Compiling once for this machine (up to {SECONDS} s) ..."):
                return numba.njit(arguments, cache=True, **options)(function)  # type: ignore[return-value]
        except (RuntimeError, OSError) as error:
            if isinstance(error, RuntimeError) and "cannot cache" not in str(error):
                raise

        message = (
            f"No folder for compiled code is writable; compiling in this process (up to "
            f"{SECONDS} s) ... To compile once, set NUMBA_CACHE_DIR to a writable folder."
        )
        with _announcing(message):
            return numba.njit(arguments, **options)(function)  # type: ignore[return-value]

    return compile_one


@contextmanager
def _announcing(message: str) -> Iterator[None]:
    """Log a message when Numba first compiles something."""
    from numba.core import event

    class _Listener(event.Listener):
        def on_start(self, event: Any) -> None:
            global _announced
            if not _announced:
                _announced = True
                _logger.warning(message)

        def on_end(self, event: Any) -> None:
            pass

    with event.install_listener("numba:compile", _Listener()):
        yield
