"""The tables of a result as files for other programs: Excel, csv, parquet, jsonl."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from embedtopics._files import replacing_file, replacing_folder, write_manifest
from embedtopics._spreadsheets import write_csv
from embedtopics.errors import InputError
from embedtopics.results import Decision, Exported, TopicResult
from embedtopics.topics._parquet import storable, unique_names, unstorable_columns
from embedtopics.topics.export import topic_table, without_lists
from embedtopics.topics.reading.json_lines import write_json_lines
from embedtopics.topics.reading.workbook import write_workbook
from embedtopics.topics.tables import documents, terms

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["export"]

KIND = "embedtopics export"
FORMAT = 1
FORMATS = ("csv", "tsv", "parquet", "jsonl")
WORKBOOK = "xlsx"


def export(
    result: TopicResult,
    path: str | Path,
    *,
    what: str | Sequence[str] | None = None,
    format: str = "csv",
    safe: bool = True,
    show_progress: bool | None = None,
) -> Exported:
    """Write the tables of a result for other programs.

    The tables are topics, documents (the rows of the input with what was found for each), terms,
    decisions (what was decided during the fit), history (what was done after it) and settings.

    Parameters
    ----------
    result : TopicResult
    path : str or Path
        ``NAME.xlsx`` for one workbook with a sheet for each table (needs the extra "excel");
        ``NAME.csv``, ``.tsv``, ``.parquet`` or ``.jsonl`` for one table; anything without a suffix
        for a folder with a file for each table. What was there before is replaced when all is
        written, a folder only if it was written by this function.
    what : str or sequence of str, optional
        Tables to write; by default all, and to a file that holds one the documents.
    format : {"csv", "tsv", "parquet", "jsonl"}
        Of the files in a folder.
    safe : bool
        Whether, in csv and tsv files, texts that a spreadsheet would run as a formula get an
        apostrophe in front. In a workbook they are marked as text, and stay as they are.
    show_progress : bool, optional
        Whether to show a bar; by default where somebody looks.

    Returns
    -------
    Exported
        The files, and notes of what was changed: a workbook holds no text of more than 32,767
        characters, no time zones, no control characters and no integers of more than 15 digits;
        the notes are also in its last sheet.

    Raises
    ------
    InputError
        If the format or a table is unknown, the place cannot be written, or a table has more rows
        or columns than a sheet holds.
    MissingExtraError
        If openpyxl is not installed and a workbook is asked for.

    Notes
    -----
    Row labels become the first columns, unless they only count the rows. A csv file does not tell
    a missing value from an empty text; parquet and jsonl files do.
    """
    path = Path(path)
    suffix = "" if path.is_dir() else path.suffix.lower().removeprefix(".")
    if suffix not in ("", WORKBOOK, *FORMATS):
        raise InputError(
            f"expected a file that ends in .{WORKBOOK}, {', '.join('.' + f for f in FORMATS)}, or "
            f"a folder, whose name has no such end; got {path.name!r}"
        )
    if format not in FORMATS:
        raise InputError(f"expected a format among {', '.join(FORMATS)}; got {format!r}")
    names = _checked_names(what, single=suffix in FORMATS)
    tables = {name: _TABLES[name](result) for name in names}
    if suffix == WORKBOOK:
        flat = {name: _flat(name, table) for name, table in tables.items()}
        with replacing_file(path) as fresh:
            notes = write_workbook(fresh, flat, show_progress)
        return Exported((path,), notes)
    if suffix:
        with replacing_file(path) as fresh:
            notes = _write(fresh, names[0], tables[names[0]], suffix, safe)
        return Exported((path,), tuple(notes))
    notes = ()
    with replacing_folder(path, KIND) as folder:
        for name, table in tables.items():
            notes += _write(folder / f"{name}.{format}", name, table, format, safe)
        write_manifest(folder, KIND, FORMAT)
    return Exported(tuple(path / f"{name}.{format}" for name in names), notes)


def _checked_names(what: str | Sequence[str] | None, *, single: bool) -> list[str]:
    """Return the names of the tables to write, in their order."""
    if what is None:
        return ["documents"] if single else list(_TABLES)
    wanted = [what] if isinstance(what, str) else list(what)
    unknown = [name for name in wanted if name not in _TABLES]
    if unknown or not wanted:
        got = repr(unknown[0]) if unknown else "none"
        raise InputError(f"expected tables among {', '.join(_TABLES)}; got {got}")
    if single and len(wanted) > 1:
        raise InputError(
            f"such a file holds one table; got {', '.join(wanted)}; name a folder or an .xlsx file"
        )
    return [name for name in _TABLES if name in wanted]


def _write(
    path: Path, name: str, table: pd.DataFrame, format: str, safe: bool
) -> tuple[Decision, ...]:
    """Write one table to a file; return what was changed."""
    if format == "parquet":
        changed = unstorable_columns(table)
        storable(table).to_parquet(path, engine="pyarrow", compression="zstd")
        if not changed:
            return ()
        message = f"{name}: columns that parquet cannot hold were written as text: {changed}."
        return (_note("columns_as_text", changed, message),)
    if format == "jsonl":
        write_json_lines(path, _with_labels(table))
        return ()
    separator = "\t" if format == "tsv" else ","
    n_marked = write_csv(path, _flat(name, table), separator=separator, safe=safe)
    if not n_marked:
        return ()
    message = (
        f"{name}: an apostrophe stands in front of what a spreadsheet would run as a formula "
        f"(cells: {n_marked:,})."
    )
    return (_note("formulas", n_marked, message),)


def _note(name: str, value: Any, message: str) -> Decision:
    return Decision("export", name, value, message)


def _flat(name: str, table: pd.DataFrame) -> pd.DataFrame:
    """Return a table for a format that knows neither lists nor row labels."""
    return _with_labels(without_lists(table) if name == "topics" else table)


def _with_labels(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table with its row labels as columns, unless they only count the rows."""
    import pandas as pd

    index = table.index
    names = [str(name) for name in table.columns]
    if index.name is None and index.equals(pd.RangeIndex(len(index))):
        labels = []
    else:
        labels = [index.get_level_values(level) for level in range(index.nlevels)]
    free: list[str] = []
    for place, label in enumerate(labels):
        plain = "index" if label.name is None else str(label.name)
        taken = {*names, *free}
        free.append(plain if plain not in taken else f"{plain} (row label {place + 1})")
    made = table.reset_index(drop=True)
    for place, (name, label) in enumerate(zip(free, labels, strict=True)):
        made.insert(place, name, label.array, allow_duplicates=True)
    made.columns = pd.Index(unique_names(made.columns))
    return made


def _decisions(result: TopicResult) -> pd.DataFrame:
    import pandas as pd

    lines = [(d.stage, d.name, _as_json(d.value), d.message) for d in result.decisions]
    return pd.DataFrame(lines, columns=["stage", "name", "value", "message"])


def _history(result: TopicResult) -> pd.DataFrame:
    import pandas as pd

    lines = [
        (number, edit.name, edit.message, _as_json(dict(edit.parameters)))
        for number, edit in enumerate(result.history, start=1)
    ]
    return pd.DataFrame(lines, columns=["number", "name", "message", "parameters"])


def _settings(result: TopicResult) -> pd.DataFrame:
    import pandas as pd

    sections = {
        "settings": result.settings, "versions": result.versions, "seconds": result.timings,
    }  # fmt: skip
    lines = [
        (section, str(name), value if isinstance(value, str) else _as_json(value))
        for section, values in sections.items()
        for name, value in values.items()
    ]
    return pd.DataFrame(lines, columns=["section", "name", "value"])


def _as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


_TABLES: dict[str, Callable[[TopicResult], pd.DataFrame]] = {
    "topics": topic_table,
    "documents": documents,
    "terms": terms,
    "decisions": _decisions,
    "history": _history,
    "settings": _settings,
}
