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

import reprlib

_NOTHING = object()
_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 80
_LONGEST = 3000
"""Characters of a message."""


class EmbedTopicsError(Exception):
    """Root of all errors that embedtopics raises on purpose."""

    def __str__(self) -> str:
        """Return the message alone: OSError would format several arguments as errno."""
        message = " ".join(str(argument) for argument in self.args)
        # A path or a column's name may have thousands of characters; the remedy is at the end.
        half = _LONGEST // 2
        whole = len(message) <= _LONGEST
        return message if whole else f"{message[:half]} ... {message[-half:]}"


class InputError(EmbedTopicsError, ValueError):
    """What the caller gave cannot be worked with.

    Parameters
    ----------
    parameter : str
        Name of the argument or column at fault, as the caller spells it; alone, the whole message.
    expected : str
        What it must be, to be read after "must be".
    got : object, optional
        The value that came, shown by its `repr`.
    remedy : str, optional
        What to do about it.
    found : str, optional
        What came, in words, where the value itself says little ("3 rows").
    row : int, optional
        Row of the input at fault.

    Examples
    --------
    >>> print(InputError("k", "an integer from 1 up", 0, "leave it out for 10"))
    k must be an integer from 1 up; got 0; leave it out for 10
    >>> print(InputError("texts", "strings", 7, row=2))
    texts must be strings; got 7 in row 2
    """

    def __init__(
        self,
        parameter: str,
        expected: str = "",
        got: object = _NOTHING,
        remedy: str = "",
        *,
        found: str = "",
        row: int | None = None,
    ) -> None:
        self.parameter = parameter if expected else ""
        self.row = row
        message = f"{parameter} must be {expected}" if expected else parameter
        if got is not _NOTHING or found:
            message += f"; got {found or _SHORT.repr(got)}"
        if row is not None:
            message += f" in row {row}"
        whole = f"{message}; {remedy}" if remedy else message
        super().__init__(" ".join(filter(None, whole.splitlines())))  # arrays have many lines


class ModelLoadError(EmbedTopicsError, OSError):
    """An encoder could not be found, read or verified."""


class MissingExtraError(EmbedTopicsError, ImportError):
    """An optional dependency is needed and not installed."""


class CorruptFileError(EmbedTopicsError, OSError):
    """A saved file is damaged, incomplete, of a newer version, or not ours."""
