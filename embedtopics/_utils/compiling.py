"""Compiling inner loops by Numba: once for a machine, announced by one line, kept where possible.

How to use it: put the loops into a module of their own, say ``terms/_kernels.py``, with every
constant and helper that they need (Numba notices a change of that file only), and import that
module inside the function that calls a loop, so that importing the package compiles nothing:

    @compiled("float32(float32[::1])", fastmath=True)
    def add_up(values): ...

The import compiles the loop for that signature, or reads the machine code from Numba's cache.
Helpers that are called from within need no more than ``numba.njit(inline="always")``.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])

SECONDS = 20
"""What compiling all of the package's loops takes at most."""

_logger = logging.getLogger("embedtopics")
_announced = False


def compiled(*signatures: Any, **options: Any) -> Callable[[Function], Function]:
    """Compile a function for the given signatures, or read the outcome of an earlier time."""
    import numba

    def compile_one(function: Function) -> Function:
        arguments = list(signatures)
        try:
            with _announcing(f"Compiling once for this machine (up to {SECONDS} s) ..."):
                return numba.njit(arguments, cache=True, **options)(function)  # type: ignore[return-value]
        except (RuntimeError, OSError) as error:
            if isinstance(error, RuntimeError) and "cannot cache" not in str(error):
                raise
        message = (
            f"No folder can be written to keep compiled code; compiling in every process (up to "
            f"{SECONDS} s) ... To compile once, let NUMBA_CACHE_DIR name a folder."
        )
        with _announcing(message):
            return numba.njit(arguments, **options)(function)  # type: ignore[return-value]

    return compile_one


@contextmanager
def _announcing(message: str) -> Iterator[None]:
    """Log a message if anything is compiled inside, unless one was logged before."""
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
