"""Pairs of texts of a file of the user's own, with a score or a class each."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from embedtopics.errors import InputError
from embedtopics.evaluation.encoder_tasks.sets import ClassedPairs, GradedPairs
from embedtopics.evaluation.encoder_tasks.tables import Rows

__all__ = ["read_pairs"]


def read_pairs(path: str | os.PathLike[str], columns: Sequence[str]) -> GradedPairs | ClassedPairs:
    """Read pairs of texts with what people said of them.

    Parameters
    ----------
    path : path
        A file that `Corpus.from_file` reads.
    columns : sequence of str
        Those of the first text, of the second, and of the score, which is higher where both are
        more alike.

    Returns
    -------
    ClassedPairs or GradedPairs
        The first where all scores are 0 or 1.

    Raises
    ------
    InputError
        Where the file or a column is not there, a cell is empty, no text or no number, there are
        fewer than three pairs, or all scores are equal.
    """
    if len(columns) != 3:
        raise InputError(
            "expected three columns, those of both texts and of the score; got "
            f"{', '.join(map(repr, columns)) or 'none'}"
        )
    twice = [name for place, name in enumerate(columns) if name in columns[:place]]
    if twice:
        raise InputError(f"expected three different columns; got {twice[0]!r} twice")
    file = Path(path).expanduser()
    rows = Rows(file)
    texts = rows.texts(columns[0]), rows.texts(columns[1])
    scores = rows.scores(columns[2])
    if set(scores.tolist()) <= {0.0, 1.0}:
        return ClassedPairs(
            task="pairs", file=file.name, columns=texts, labels=scores.astype(np.int64)
        )
    return GradedPairs(task="pairs", file=file.name, columns=texts, scores=scores)
