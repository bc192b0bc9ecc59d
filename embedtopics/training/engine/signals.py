"""A polite request to end, as schedulers send it before they kill: noted, not obeyed at once."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["EXIT_CODE", "Request", "noticed_termination"]

EXIT_CODE = 128 + signal.SIGTERM


class Request:
    """Whether the process was asked to end."""

    def __init__(self) -> None:
        self.came = False


@contextmanager
def noticed_termination() -> Iterator[Request]:
    """Note a SIGTERM, so that a run can write a checkpoint first.

    Only the main thread of a process can do so; elsewhere the request is never noted. What was
    done about the signal before is done about it again afterwards.

    Yields
    ------
    Request
    """
    request = Request()
    if threading.current_thread() is not threading.main_thread():
        yield request
        return

    def note(number: int, frame: Any) -> None:
        request.came = True

    before = signal.signal(signal.SIGTERM, note)
    try:
        yield request
    finally:
        signal.signal(signal.SIGTERM, before if before is not None else signal.SIG_DFL)
