"""The file in which people name topics: a table that spreadsheets open."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

from embedtopics._utils.display import excerpt
from embedtopics._utils.folders import read_regular
from embedtopics.clustering.results import NOISE
from embedtopics.corpus._table_files import spreadsheet_safe
from embedtopics.errors import InputError
from embedtopics.topics.results import TopicResult

COLUMNS = ("topic", "name", "size", "terms", "example_1", "example_2", "example_3")
FORMER_COLUMN = "label"
"""The column of names in files of before."""

DELIMITERS = ",;\t"


def write_names(result: TopicResult, path: Path) -> None:
    """Write a CSV of the topics' names, with keywords and examples."""
    with path.open("w", encoding="utf-8-sig", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(COLUMNS)
        for topic in result.topics:
            examples = [excerpt(result.corpus.texts[row], 300) for row in topic.representatives[:3]]
            cells = [topic.name, topic.size, ", ".join(topic.keywords[:10]), *examples]
            cells += [""] * (len(COLUMNS) - 1 - len(cells))
            writer.writerow([topic.topic_id, *map(spreadsheet_safe, cells)])


def read_names(path: Path, result: TopicResult) -> dict[int, str]:
    """Read the names that people changed, by topic id, from a file that a spreadsheet saved."""
    (_, head), *rows = _read_rows(path) or [(1, [])]
    columns = [cell.strip().lower() for cell in head]
    columns = ["name" if column == FORMER_COLUMN else column for column in columns]
    if not columns.count("topic") == columns.count("name") == 1:
        listed = f"{', '.join(filter(None, columns)) or 'no columns'} in {path}"
        raise InputError("names_from", "a table with one column topic and one name", found=listed)

    names: dict[int, str] = {}
    for line, cells in rows:
        row = dict(zip(columns, cells, strict=False))
        # Spreadsheets write an id as 3.0 or 3,0.
        match = re.fullmatch(r"\s*(-?\d{1,9})(?:[.,]0{0,2})?\s*", row.get("topic", ""))
        topic = int(match[1]) if match else None
        if topic == NOISE:  # the last row of topics.csv
            continue

        if topic is None or topic in names or not 0 <= topic < result.n_topics:
            expected = f"an id of one of the topics, in one row of {path}"
            raise InputError("topic", expected, row.get("topic"), line=line)
        name = " ".join(row.get("name", "").split())
        if not name:
            raise InputError("name", f"given for topic {topic} in {path}", name, line=line)

        # Three zeros are thousands, fewer are decimals.
        size = re.sub(r"\D", "", re.sub(r"[.,]0{0,2}$", "", row.get("size", "").strip()))
        if size and int(size) != result.topics[topic].size:
            expected = f"{result.topics[topic].size:,} for topic {topic} in {path}"
            remedy = "use the names.csv of this result, or delete the column"
            raise InputError("size", expected, int(size), remedy, line=line)
        names[topic] = name

    changed = {}
    for topic, name in names.items():
        before = result.topics[topic].name
        if name not in (before, spreadsheet_safe(before)):
            is_escaped = name.startswith("'") and spreadsheet_safe(name[1:]) == name
            changed[topic] = name[1:] if is_escaped else name
    return changed


def _read_rows(path: Path) -> list[tuple[int, list[str]]]:
    """Return the rows that are not blank, each with the line on which it ends."""
    try:
        text = read_regular(path).decode("utf-8-sig")
    except OSError as error:
        reason = f"{path} ({error.strerror or error})"
        raise InputError("names_from", "a readable file", found=reason) from error
    except UnicodeDecodeError as error:
        row = error.object[: error.start].count(b"\n") + 1
        expected = f"UTF-8 text in {path}"
        remedy = "save the table as CSV UTF-8"
        raise InputError(
            "names_from", expected, remedy=remedy, found="other bytes", line=row
        ) from error

    delimiter = max(DELIMITERS, key=next(iter(text.splitlines()), "").count)
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    return [(rows.line_num, cells) for cells in rows if any(cell.strip() for cell in cells)]
