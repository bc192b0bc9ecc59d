"""Tables, queries and judgements from files, as checked columns and mappings."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from embedtopics.corpus._columns import read_ids
from embedtopics.corpus._files import read_file
from embedtopics.corpus.readers._opening import File, check_path, open_text
from embedtopics.errors import InputError
from embedtopics.protocols import Float64Array

if TYPE_CHECKING:
    import pandas as pd

Judgements: TypeAlias = dict[Hashable, dict[Hashable, float]]
"""The grades of the judged documents of each query."""

_ID_COLUMNS = ("id", "_id", "query_id", "query-id", "qid")
_TEXT_COLUMNS = ("text", "query", "question", "title")


class TableFile:
    """The columns of a file that `Corpus` reads, checked cell by cell."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.table = read_file(path)
        self.frame: pd.DataFrame = self.table.frame.reset_index(drop=True)

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.frame)

    def cells(
        self, column: str, is_valid: Callable[[Any], bool] = lambda cell: True, expected: str = ""
    ) -> list[Any]:
        """Return a column, or refuse the first cell that is not as expected."""
        cells = list(self.frame[self.first_of([column])])
        for row, cell in enumerate(cells):
            if not is_valid(cell):
                parameter = f"{column} in {self.path.name}"
                remedy = "correct or remove the row"
                if self.table.lines is None:
                    raise InputError(parameter, expected, cell, remedy, row=row)
                raise InputError(parameter, expected, cell, remedy, line=self.table.lines[row])
        return cells

    def texts(self, column: str, *, may_be_empty: bool = False) -> tuple[str, ...]:
        """Return a column of texts."""

        def is_text(cell: Any) -> bool:
            return isinstance(cell, str) and (may_be_empty or bool(cell.strip()))

        return tuple(self.cells(column, is_text, "a text"))

    def numbers(self, column: str) -> Float64Array:
        """Return a column of finite numbers."""
        return np.array(list(map(float, self.cells(column, is_finite_number, "a number"))))

    def first_of(self, names: Sequence[str]) -> str:
        """Return the first of some names that is a column."""
        for name in names:
            if name in self.frame:
                return name
        columns = ", ".join(map(str, self.frame.columns))
        expected = f"a file with a column {' or '.join(map(repr, names))}"
        raise InputError(self.path.name, expected, found=columns, remedy="rename a column")


def is_finite_number(cell: Any) -> bool:
    """Return whether a cell is a finite number, or text that spells one."""
    try:
        return not isinstance(cell, bool) and bool(np.isfinite(float(cell)))
    except (TypeError, ValueError):
        return False


def read_qrels(path: str | Path) -> Judgements:
    """Read judgements: the grades of each query's documents, all ids as texts.

    A file has BEIR's three columns (query, document, grade) between tabs, with or without a
    header, or TREC's four (query, iteration, document, grade).
    """
    path = Path(path)
    check_path(path)
    with open_text(File.on_disk(path), "utf-8") as handle:
        lines = [line.rstrip("\n") for line in handle]

    judgements: Judgements = {}
    is_beir = bool(lines) and lines[0].count("\t") == 2
    has_header = is_beir and not is_finite_number(lines[0].split("\t")[2])

    for number, line in enumerate(lines, start=1):
        if not line.strip() or (number == 1 and has_header):
            continue
        cells = line.split("\t") if is_beir else line.split()
        if len(cells) != (3 if is_beir else 4) or not all(cells) or not is_finite_number(cells[-1]):
            expected = "lines of a query, a document and a number, as in TREC or BEIR"
            raise InputError(path.name, expected, line, line=number)

        query, document, grade = cells[0], cells[-2], float(cells[-1])
        if judgements.setdefault(query, {}).setdefault(document, grade) != grade:
            expected = "one grade for each query and document"
            raise InputError(path.name, expected, line, line=number)

    if not judgements:
        raise InputError(path.name, "judgements", found="none")
    return judgements


def read_queries(path: str | Path) -> dict[str, str]:
    """Read queries by id from JSON lines, csv, tsv or any other file that a corpus comes from."""
    file = TableFile(Path(path))
    id_column = file.first_of(_ID_COLUMNS)
    texts = file.texts(file.first_of([name for name in _TEXT_COLUMNS if name != id_column]))
    return dict(zip(read_ids(list(file.frame[id_column]), file.table), texts, strict=True))
