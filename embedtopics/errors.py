"""The errors that embedtopics raises on purpose.

Everything here derives from one root, so that ``except EmbedTopicsError`` catches what the
toolkit can explain and nothing else::

    EmbedTopicsError
    ├── InputError (also ValueError)             what was given cannot be worked with
    ├── ModelLoadError (also OSError)            an encoder could not be found, read or verified
    ├── MissingExtraError (also ImportError)     an optional dependency is not installed
    └── CorruptFileError (also OSError)          a saved file is damaged, incomplete or not ours

Asking an unfitted model for its result raises scikit-learn's ``NotFittedError``.

A message says what was expected, what came instead (naming the row or the file), and what to
do about it, in one line.
"""

from __future__ import annotations

__all__ = [
    "CorruptFileError",
    "EmbedTopicsError",
    "InputError",
    "MissingExtraError",
    "ModelLoadError",
]


class EmbedTopicsError(Exception):
    """Root of all errors that embedtopics raises on purpose."""


class InputError(EmbedTopicsError, ValueError):
    """What the caller gave cannot be worked with."""


class ModelLoadError(EmbedTopicsError, OSError):
    """An encoder could not be found, read or verified."""

    def __str__(self) -> str:
        """Return the message alone; OSError would format several arguments as errno."""
        return " ".join(str(argument) for argument in self.args)


class MissingExtraError(EmbedTopicsError, ImportError):
    """An optional dependency is needed and not installed."""


class CorruptFileError(EmbedTopicsError, OSError):
    """A saved file is damaged, incomplete, of a newer version, or not ours."""

    def __str__(self) -> str:
        """Return the message alone; OSError would format several arguments as errno."""
        return " ".join(str(argument) for argument in self.args)
