"""The answers of people on sheets, read and checked row by row."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from embedtopics.errors import InputError
from embedtopics.evaluation.sheets import ANSWER

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["checked_answers", "checked_key", "read_choice", "read_sheet", "read_yes_or_no"]

YES = {"yes", "y", "1", "true", "oui", "ja", "si", "sí"}
NO = {"no", "n", "0", "false", "non", "nein"}
ONE_CODER = "1"


def read_sheet(path: str | Path) -> pd.DataFrame:
    """Read a sheet as a spreadsheet saved it: commas, semicolons or tabs; all values are strings.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    DataFrame

    Raises
    ------
    InputError
        Where it is missing, no such table, or not UTF-8.
    """
    import pandas as pd

    try:
        text = Path(path).read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}; name the file") from error
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path} is not UTF-8 (byte {error.start}); save it as CSV UTF-8"
        ) from None
    header = text.split("\n", 1)[0]
    separator = max(",;\t", key=header.count)
    try:
        frame = pd.read_csv(StringIO(text), sep=separator, dtype=str, keep_default_na=False)
    except (pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        raise InputError(f"{path} is no table ({error}); save the sheet as CSV again") from None
    return frame


def checked_key(key: pd.DataFrame | str | Path, column: str) -> pd.DataFrame:
    """Return the key of a sheet, after making sure that it is one.

    Parameters
    ----------
    key : DataFrame or file
    column : str
        Of what the answers are scored by.
    """
    import pandas as pd

    frame = key if isinstance(key, pd.DataFrame) else read_sheet(key)
    missing = [name for name in ("task", "question", "topic", column) if name not in frame]
    if missing or frame.empty:
        raise InputError(
            f"expected the key of a sheet, with the columns task, question, topic and {column}; "
            f"got {', '.join(map(str, frame.columns)) or 'none'}; take the file from the folder "
            "of keys"
        )
    return frame


def checked_answers(
    answers: Any, key: pd.DataFrame, read: Callable[[str, Any], str]
) -> pd.DataFrame:
    """Return question, coder and answer of each row, after making sure that they are answers.

    Parameters
    ----------
    answers : DataFrame, or file or files of answers
    key : DataFrame, by question
    read : callable
        From what was written and the row of the key to the answer; raises `InputError`.

    Returns
    -------
    DataFrame
        Columns question, coder, answer.
    """
    import pandas as pd

    if isinstance(answers, pd.DataFrame | str | Path):
        answers = [answers]
    seen: dict[tuple[str, str], str] = {}
    rows = []
    for number, one in enumerate(answers, start=1):
        frame = one if isinstance(one, pd.DataFrame) else read_sheet(one)
        source = "the answers" if isinstance(one, pd.DataFrame) else str(one)
        absent = [name for name in ("question", ANSWER) if name not in frame]
        if absent:
            raise InputError(
                f"{source} must have the columns question and {ANSWER}; got "
                f"{', '.join(map(str, frame.columns))}; fill in the sheet as it was written"
            )
        coders = frame["coder"] if "coder" in frame else [ONE_CODER] * len(frame)
        prefix = f"{number}/" if len(answers) > 1 else ""
        entries = zip(frame["question"], frame[ANSWER], coders, strict=True)
        for line, (question, answer, coder) in enumerate(entries, start=1):
            place = f"{source}, row {line} (question {question})"
            name = _spelled(question)
            if name not in key.index:
                raise InputError(
                    f"{place}: the key has no such question; take the key of this sheet"
                )
            who = prefix + _spelled(coder)
            if (name, who) in seen:
                raise InputError(
                    f"{place}: it was answered in {seen[name, who]} already; keep one answer for "
                    "each coder, or add a column coder"
                )
            seen[name, who] = f"row {line} of {source}"
            try:
                rows.append((name, who, read(_spelled(answer), key.loc[name])))
            except InputError as error:
                raise InputError(f"{place}: {error}") from None
    if not rows:
        raise InputError("expected at least one answer; got none; fill in the column answer")
    return pd.DataFrame(rows, columns=["question", "coder", ANSWER])


def _spelled(value: Any) -> str:
    """Return a cell as a person typed it; spreadsheets make 3.0 of 3 and nothing of NaN."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, float | np.floating) and float(value).is_integer():
        value = int(value)
    text = str(value).strip()
    whole, dot, rest = text.partition(".")
    return whole if dot and whole.isdecimal() and set(rest) == {"0"} else text


def read_choice(answer: str, solution: Any) -> str:
    """Return the number of the option that an answer names."""
    n_options = int(solution["n_options"])
    options = [str(solution[f"option_{i}"]).removeprefix("'") for i in range(1, n_options + 1)]
    if not answer:
        raise InputError("the answer is empty; answer it, or delete the row")
    if answer.isdecimal() and 1 <= int(answer) <= n_options:
        return str(int(answer))
    plain = [option.casefold() for option in options]
    wanted = answer.removeprefix("'").casefold()
    if wanted in plain:
        return str(plain.index(wanted) + 1)
    if answer.isdecimal():
        raise InputError(f"expected a number from 1 to {n_options}, or the option; got {answer}")
    parts = [part.strip().casefold() for part in answer.replace(";", ",").split(",")]
    if len(parts) > 1 and all(part in plain or part.isdecimal() for part in parts):
        raise InputError(f"expected one answer; got {len(parts)}: {answer!r}")
    close = difflib.get_close_matches(wanted, plain, n=1)
    hint = f"; did you mean {options[plain.index(close[0])]!r}?" if close else ""
    raise InputError(
        f"expected a number from 1 to {n_options}, or one of the options as it is written; got "
        f"{answer[:80]!r}{hint}"
    )


def read_yes_or_no(answer: str, solution: Any) -> str:
    """Return "yes" or "no"."""
    low = answer.casefold()
    if low in YES or low in NO:
        return "yes" if low in YES else "no"
    if not answer:
        raise InputError("the answer is empty; answer it, or delete the row")
    raise InputError(f"expected yes or no; got {answer[:80]!r}")
