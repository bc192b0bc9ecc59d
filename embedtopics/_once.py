"""Properties that are computed once, whichever thread asks first."""

from __future__ import annotations

from functools import cached_property
from threading import RLock
from typing import TYPE_CHECKING, Any

__all__ = ["computed_once"]

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
