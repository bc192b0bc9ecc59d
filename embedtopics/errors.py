"""The errors that embedtopics raises on purpose.

All of them derive from one root, so ``except EmbedTopicsError`` catches them and nothing else::

    EmbedTopicsError
    ├── InputError (also ValueError)             an argument or an input is invalid
    ├── ModelLoadError (also OSError)            an encoder could not be found, read or verified
    ├── MissingExtraError (also ImportError)     an optional dependency is not installed
    └── CorruptFileError (also OSError)          a saved file is damaged, incomplete or not ours

Asking an unfitted model for its result raises scikit-learn's ``NotFittedError``.

A message is one line. It names the parameter, the expected value, the actual value with its row
or file, and a remedy.
"""

from __future__ import annotations

import reprlib
from collections.abc import Sequence
from dataclasses import dataclass

_NOTHING = object()
_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 80
_LONGEST_VALUE = 300
"""Characters of a value in a message: the remedy after it shall be read."""
_LONGEST = 3000
"""Characters of a message."""


class EmbedTopicsError(Exception):
    """Base class of all errors that embedtopics raises."""

    def __str__(self) -> str:
        """Return the message alone: OSError would format several arguments as errno."""
        message = " ".join(str(argument) for argument in self.args)
        # A path or a column's name may have thousands of characters; the remedy is at the end.
        half = _LONGEST // 2
        whole = len(message) <= _LONGEST
        return message if whole else f"{message[:half]} ... {message[-half:]}"


@dataclass(frozen=True)
class Remedy:
    """A remedy that names a parameter, so that the command line can name its option instead.

    Parameters
    ----------
    parameter : str
        Parameter to pass.
    value : object, optional
        Value to pass; left out where only the caller knows it.
    alternative : str, optional
        Another remedy, in words.

    Examples
    --------
    >>> print(Remedy("overwrite", True, "choose another folder"))
    pass overwrite=True, or choose another folder
    """

    parameter: str
    value: object = ...
    alternative: str = ""

    def __str__(self) -> str:
        """Return the remedy as a caller in Python reads it."""
        value = "" if self.value is ... else f"={self.value!r}"
        return self.sentence(f"pass {self.parameter}{value}")

    def sentence(self, action: str) -> str:
        """Return an action, followed by the alternative."""
        return f"{action}, or {self.alternative}" if self.alternative else action


class InputError(EmbedTopicsError, ValueError):
    """An argument or an input is invalid.

    Parameters
    ----------
    parameter : str
        Name of the argument or column at fault, as the caller spells it; alone, the whole message.
    expected : str
        What it must be, to be read after "must be".
    got : object, optional
        The actual value, shown by its `repr`.
    remedy : str or Remedy, optional
        What to do: a `Remedy` if it names a parameter, otherwise a clause in words.
    found : str, optional
        The actual value in words, such as "3 rows", instead of `got`.
    row : int, optional
        Row of the input at fault, counted from 0.
    line : int, optional
        Line of a text file at fault, counted from 1, instead of a row.

    Attributes
    ----------
    problem : str
        The message without its remedy.

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
        remedy: str | Remedy = "",
        *,
        found: str = "",
        row: int | None = None,
        line: int | None = None,
    ) -> None:
        self.parameter = parameter if expected else ""
        self.remedy = remedy
        self.row = row
        self.line = line
        problem = f"{parameter} must be {expected}" if expected else parameter
        if got is not _NOTHING or found:
            problem += f"; got {found or _shortened(_SHORT.repr(got))}"
        if row is not None:
            problem += f" in {name_rows([row])}"
        if line is not None:
            problem += f" in line {line}"
        self.problem = " ".join(filter(None, problem.splitlines()))  # arrays have many lines
        super().__init__(f"{self.problem}; {remedy}" if remedy else self.problem)


def _shortened(text: str) -> str:
    """Return the beginning and the end of a long text."""
    half = _LONGEST_VALUE // 2
    return text if len(text) <= _LONGEST_VALUE else f"{text[:half]} ... {text[-half:]}"


def name_rows(rows: Sequence[int], lines: Sequence[int] | None = None) -> str:
    """Name rows of an input in a message: at most three of them, and the number of the others.

    A row is named by its position, counted from 0 as in NumPy and pandas. A row of a text file is
    named by its line: `lines` holds the line, counted from 1, on which each row begins.
    """
    noun, numbers = ("row", rows) if lines is None else ("line", [lines[row] for row in rows])
    shown = [str(number) for number in numbers[:3]]
    shown += [f"{len(rows) - 3:,} more"] if len(rows) > 3 else []
    text = " and ".join(filter(None, (", ".join(shown[:-1]), shown[-1])))
    return f"{noun if len(rows) == 1 else noun + 's'} {text}"


class ModelLoadError(EmbedTopicsError, OSError):
    """An encoder could not be found, read or verified."""


class MissingExtraError(EmbedTopicsError, ImportError):
    """An optional dependency is needed and not installed."""


class CorruptFileError(EmbedTopicsError, OSError):
    """A saved file is damaged, incomplete, of a newer version, or not ours."""
