"""Questions for people, written so that they cannot see the answers."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from embedtopics._spreadsheets import write_csv
from embedtopics.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["ANSWER", "KEYS", "Sheet", "question_id", "shown"]

ANSWER = "answer"
KEYS = "keys"
"""Folder of the keys, below that of the sheets, so that a coder is given the one without them."""


@dataclass(frozen=True, eq=False)
class Sheet:
    """Questions, and their key apart.

    Parameters
    ----------
    task : str
        "word_intrusion", "document_intrusion", "topic_intrusion" or "coding"; the files' name.
    questions : pandas.DataFrame
        A question a row, with the columns task, question (its name), what is shown, and answer,
        empty.
    key : pandas.DataFrame
        A question a row, with task, question, and what the answers are scored by.
    """

    task: str
    questions: pd.DataFrame
    key: pd.DataFrame

    def __len__(self) -> int:
        """Return the number of questions."""
        return len(self.questions)

    def write(self, folder: str | Path) -> tuple[Path, Path]:
        """Write the questions, and the key into a folder of its own below.

        Each coder fills in the column answer of a copy. Nothing in the files is run as a formula.

        Parameters
        ----------
        folder : str or Path
            Made where it is missing.

        Returns
        -------
        questions, key : Path
            ``folder/TASK.csv`` and ``folder/keys/TASK.csv``; UTF-8, with a mark by which
            spreadsheets know that.

        Raises
        ------
        InputError
            Where a file is there already, or cannot be written: answers are never written over.
        """
        folder = Path(folder)
        paths = folder / f"{self.task}.csv", folder / KEYS / f"{self.task}.csv"
        for path, table in zip(paths, (self.questions, self.key), strict=True):
            if path.exists():
                raise InputError(
                    f"{path} is there already, and may hold answers; name another folder"
                )
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                with path.open("x", encoding="utf-8-sig", newline="") as stream:
                    write_csv(stream, table)
            except OSError as error:
                raise InputError(
                    f"cannot write {path}: {error.strerror or error}; name another folder"
                ) from error
        return paths


def question_id(number: int, *content: str) -> str:
    """Return a name that no question of another sheet has.

    Examples
    --------
    >>> question_id(7, "tax", "cut")
    'q007-be43'
    """
    digest = hashlib.blake2b("\x1f".join(content).encode("utf-8", "replace"), digest_size=2)
    return f"q{number:03}-{digest.hexdigest()}"


def shown(text: str, n_characters: int) -> str:
    """Return a text on one line, without controls, cut at a length.

    Examples
    --------
    >>> shown("a long story about nothing", 12)
    'a long stor…'
    """
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line if len(line) <= n_characters else line[: n_characters - 1].rstrip() + "…"
