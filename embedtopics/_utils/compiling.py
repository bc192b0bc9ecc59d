"""Compile inner loops with Numba once per machine, and announce it in one line.

Put the loops into a module of their own, such as ``terms/_kernels.py``, with every constant and
helper that they need: Numba's cache notices changes of that file only. Import the module inside the
function that calls a loop, so that importing the package compiles nothing:

    @compiled("float32(float32[::1])", fastmath=True)
    def add_up(values): ...

The import compiles the loop for that signature, or reads the machine code from Numba's cache.
Helpers of a loop need only ``numba.njit(inline="always")``.
"""

import logging
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])

SECONDS = 20
"""Longest time to compile all loops of the package."""

_logger = logging.getLogger("embedtopics")
_announced = False
_is_cached = True


def compiled(*signatures: Any, **options: Any) -> Callable[[Function], Function]:
    """Compile a function for some signatures, or read it from the cache."""
    import numba

    options = {"no_cfunc_wrapper": True, **options}  # which is for callers in C alone

    def compile_one(function: Function) -> Function:
        global _is_cached
        arguments = list(signatures)
        message = f"Compiling once for this machine (up to {SECONDS} s) ..."
        try:
            with _at_first_compilation(partial(_announce, message)):
                return numba.njit(arguments, cache=True, **options)(function)  # type: ignore[return-value]
        except (RuntimeError, OSError) as error:
            if isinstance(error, RuntimeError) and "cannot cache" not in str(error):
                raise
        _is_cached = False
        message = (
            f"No folder for compiled code is writable; compiling in this process (up to "
            f"{SECONDS} s) ... To compile once, set NUMBA_CACHE_DIR to a writable folder."
        )
        with _at_first_compilation(partial(_announce, message)):
            return numba.njit(arguments, **options)(function)  # type: ignore[return-value]

    return compile_one


def _announce(message: str) -> None:
    global _announced
    if not _announced:
        _announced = True
        _logger.warning(message)


@contextmanager
def sharing_with_child(statement: str) -> Iterator[None]:
    """Run a statement that imports loops in a child process if loops are compiled in the block.

    Numba compiles one loop of a process at a time. Afterwards this process reads the loops of the
    child from Numba's cache; it compiles those that are missing there.
    """
    children: list[subprocess.Popen[bytes]] = []

    def start() -> None:
        # Programs that embed Python would start themselves again.
        is_python = Path(sys.executable or "").name.lower().startswith("python")
        if _is_cached and is_python:
            code = f"import sys; sys.path[:] = {sys.path!r}; {statement}"
            quiet: Any = {name: subprocess.DEVNULL for name in ("stdin", "stdout", "stderr")}
            flags = getattr(subprocess, "CREATE_NO_WINDOW", 0)  # of Windows
            with suppress(OSError):
                command = [sys.executable, "-c", code]
                children.append(subprocess.Popen(command, creationflags=flags, **quiet))

    with _at_first_compilation(start):
        yield
    for child in children:
        with suppress(subprocess.TimeoutExpired):
            child.wait(3 * SECONDS)


@contextmanager
def _at_first_compilation(act: Callable[[], None]) -> Iterator[None]:
    """Act once, when Numba begins to compile something."""
    from numba.core import event

    actions = [act]

    class _Listener(event.Listener):
        def on_start(self, event: Any) -> None:
            if actions:
                actions.pop()()

        def on_end(self, event: Any) -> None:
            pass

    with event.install_listener("numba:compile", _Listener()):
        yield
