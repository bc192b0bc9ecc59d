"""Numbers in the cells of a csv or tsv file, which holds nothing but texts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from embedtopics.corpus.tables import MISSING_MARKERS
from embedtopics.results import Decision

if TYPE_CHECKING:
    from embedtopics.corpus import Corpus

__all__ = ["with_numbers"]

_CELLS = re.compile(r"\.(csv|tsv)(\.gz)?$", re.IGNORECASE)
# No leading zeros: those of a postcode or a number of a file mean something.
_INTEGER = re.compile(r"-?(0|[1-9][0-9]{0,14})")
_REAL = re.compile(r"-?(0|[1-9][0-9]{0,14})(\.[0-9]{1,15})?")


def with_numbers(corpus: Corpus, known: Mapping[str, str]) -> Corpus:
    """Return a corpus of a csv or tsv file with numbers in columns of nothing but numerals.

    A filter compares numbers with numbers: without this, ``year >= 2020`` could be asked of no
    such file. Any other corpus has types of its own, and is returned as it is.

    Parameters
    ----------
    corpus : Corpus
    known : mapping of str to str
        Kinds of the columns that a collection has already: one of texts stays one of texts.

    Returns
    -------
    Corpus
        A note names the columns that were read as numbers.
    """
    if not _CELLS.search(corpus.source):
        return corpus
    import pandas as pd

    metadata = corpus.metadata.copy()
    read = []
    for name in [str(name) for name in metadata.columns]:
        if known.get(name) in ("text", "boolean", "date"):
            continue
        numbers = _numbers(metadata[name].tolist())
        if numbers is not None:
            metadata[name] = pd.Series(numbers, index=metadata.index, dtype=object)
            read.append(name)
    if not read:
        return corpus
    message = f"Columns that hold nothing but numbers are compared as numbers: {', '.join(read)}."
    note = Decision("retrieval", "columns read as numbers", read, message)
    return replace(corpus, metadata=metadata, notes=(*corpus.notes, note))


def _numbers(cells: list[object]) -> list[int | float | None] | None:
    """Return the numbers of a column; None where a cell is something else, or all are empty."""
    kept = [None if _is_gap(cell) else cell for cell in cells]
    texts = [cell for cell in kept if isinstance(cell, str)]
    if not texts or len(texts) < sum(cell is not None for cell in kept):
        return None
    if all(_INTEGER.fullmatch(text) for text in texts):
        return [int(cell) if isinstance(cell, str) else None for cell in kept]
    if all(_REAL.fullmatch(text) for text in texts):
        return [float(cell) if isinstance(cell, str) else None for cell in kept]
    return None


def _is_gap(cell: object) -> bool:
    return cell is None or cell != cell or (isinstance(cell, str) and cell in MISSING_MARKERS)
