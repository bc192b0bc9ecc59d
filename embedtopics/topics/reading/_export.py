"""Export of the tables of a result to files for other programs."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from embedtopics.corpus._table_files import format_of, write_tables
from embedtopics.decisions import Exported
from embedtopics.errors import InputError
from embedtopics.topics._tables import documents, table, terms
from embedtopics.topics.results import TopicResult

N_EXAMPLES = 3


def export(
    result: TopicResult,
    path: str | Path,
    *,
    what: str | Sequence[str] | None = None,
) -> Exported:
    """Write the tables of a result for other programs.

    The tables are topics, documents (the rows of the input with their results), terms, decisions
    (of the fit), history (edits after it) and settings.

    Parameters
    ----------
    result : TopicResult
    path : str or Path
        ``NAME.xlsx`` for one workbook with a sheet for each table (needs the extra "excel");
        ``NAME.csv``, ``.tsv``, ``.parquet`` or ``.jsonl`` for one table; a name without a suffix
        for a folder with a csv file for each table. An existing file is replaced; an existing
        folder is replaced only if this function wrote it.
    what : str or sequence of str, optional
        Tables to write; by default all, or the documents if the file holds one table.

    Returns
    -------
    Exported
        The files, and notes of changes: texts that a spreadsheet would run as a formula get a
        leading apostrophe in csv and tsv files; a workbook cannot hold texts of more than 32,767
        characters, time zones, control characters, or integers of more than 15 digits.

    Raises
    ------
    InputError
        If the format or a table is unknown, if the file cannot be written, or if a table has more
        rows than a sheet can hold.
    MissingExtraError
        If openpyxl, which writes workbooks, is not installed.
    """
    suffix = format_of(path)
    if what is None:
        names = ["documents"] if suffix not in ("", "xlsx") else list(TABLES)
    else:
        selected = [what] if isinstance(what, str) else list(what)
        if not selected or not set(selected) <= set(TABLES):
            raise InputError("what", f"tables among {', '.join(TABLES)}", what)
        names = [name for name in TABLES if name in selected]
    tables = {name: TABLES[name](result) for name in names}
    if "topics" in tables and suffix in ("", "csv", "tsv", "xlsx"):
        tables["topics"] = without_lists(tables["topics"])
    return write_tables(tables, path)


def without_lists(topics: pd.DataFrame) -> pd.DataFrame:
    """Return a table of topics with joined terms and one column for each example."""
    flat = topics.assign(terms=topics["terms"].map(", ".join))
    for place in range(N_EXAMPLES):
        flat[f"example_{place + 1}"] = [
            examples[place] if len(examples) > place else "" for examples in flat["examples"]
        ]
    return flat.drop(columns="examples")


def _topics(result: TopicResult) -> pd.DataFrame:
    return table(result, n_terms=10, n_examples=N_EXAMPLES, n_characters=300)


def _decisions(result: TopicResult) -> pd.DataFrame:
    lines = [(d.stage, d.name, _as_json(d.value), d.message) for d in result.decisions]
    return pd.DataFrame(lines, columns=["stage", "name", "value", "message"])


def _history(result: TopicResult) -> pd.DataFrame:
    lines = [
        (number, edit.name, edit.message, _as_json(dict(edit.parameters)))
        for number, edit in enumerate(result.history, start=1)
    ]
    return pd.DataFrame(lines, columns=["number", "name", "message", "parameters"])


def _settings(result: TopicResult) -> pd.DataFrame:
    lines = []
    for section in ("settings", "versions", "timings"):
        for name, value in getattr(result, section).items():
            text = value if isinstance(value, str) else _as_json(value)
            lines.append((section.replace("timings", "seconds"), str(name), text))
    return pd.DataFrame(lines, columns=["section", "name", "value"])


def _as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


TABLES: dict[str, Callable[[TopicResult], pd.DataFrame]] = {
    "topics": _topics,
    "documents": documents,
    "terms": terms,
    "decisions": _decisions,
    "history": _history,
    "settings": _settings,
}
