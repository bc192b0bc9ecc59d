"""Names of topics as a table that is edited in a spreadsheet and read back."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from embedtopics._spreadsheets import spreadsheet_safe
from embedtopics.errors import InputError
from embedtopics.results import NOISE, TopicResult
from embedtopics.topics.tables import shorten

__all__ = ["LABELS", "read_labels", "write_labels"]

LABELS = "labels.csv"
COLUMNS = ("topic", "label", "size", "terms", "example_1", "example_2", "example_3")
DELIMITERS = ",;\t"

Rows = list[tuple[int, list[str]]]
"""The number of each row in the file, from 1, and its cells."""


def write_labels(result: TopicResult, path: str | Path) -> Path:
    """Write the names of the topics, with what helps to choose better ones.

    Parameters
    ----------
    result : TopicResult
    path : str or Path

    Returns
    -------
    Path
        A CSV of UTF-8 with a byte order mark, by which spreadsheets know it: columns topic, label
        (to be edited), size, terms and three examples; a topic a row. Cells that a spreadsheet
        would take for a formula begin with an apostrophe.
    """
    path = Path(path)
    with path.open("w", encoding="utf-8-sig", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(COLUMNS)
        for topic in result.topics:
            examples = [shorten(result.corpus.texts[row], 300) for row in topic.representatives[:3]]
            cells = [topic.label, topic.size, ", ".join(topic.keywords[:10]), *examples]
            cells += [""] * (len(COLUMNS) - 1 - len(cells))
            writer.writerow([topic.topic_id, *map(spreadsheet_safe, cells)])
    return path


def read_labels(path: str | Path, result: TopicResult | None = None) -> dict[int, str]:
    """Read names of topics, as a spreadsheet leaves them.

    Commas, semicolons or tabs may part the cells; rows may be sorted or deleted, columns moved,
    added or deleted, but for topic and label.

    Parameters
    ----------
    path : str or Path
        Text in UTF-8, or in UTF-16 with a byte order mark.
    result : TopicResult, optional
        Whose topics the file names. An id that it does not have, or another size than it has, is
        then an error, and only names that differ from its own are returned.

    Returns
    -------
    dict of int to str
        Names by topic, for `rename`. An apostrophe that keeps a spreadsheet from running a name
        as a formula is taken off.

    Raises
    ------
    InputError
        Which names the row: where a topic has no name or comes twice, or an id is no number.
    """
    path = Path(path)
    rows = _rows(path)
    if not rows:
        raise InputError(f"{path} is empty; expected a table with the columns topic and label")
    _, head = rows[0]
    names = [cell.strip().lower() for cell in head]
    for wanted in ("topic", "label"):
        if names.count(wanted) != 1:
            found = ", ".join(name for name in names if name) or "none"
            raise InputError(
                f"{path} must have one column {wanted!r}, named in its first row; got {found}"
            )
    labels: dict[int, str] = {}
    first_row: dict[int, int] = {}
    for number, cells in rows[1:]:
        row = dict(zip(names, cells, strict=False))
        topic = _topic_id(row.get("topic", ""), path, number)
        if topic == NOISE:  # the last row of topics.csv
            continue
        label = " ".join(row.get("label", "").split())
        if not label:
            raise InputError(
                f"{path}, row {number}: topic {topic} has no label; write one, or delete the row"
            )
        if topic in labels:
            raise InputError(
                f"{path}, row {number}: topic {topic} has a label in row {first_row[topic]} "
                "already; delete one of them"
            )
        if result is not None:
            _check(result, topic, row.get("size", ""), path, number)
        labels[topic], first_row[topic] = label, number
    own = {} if result is None else {topic: result.topics[topic].label for topic in labels}
    return {
        topic: _without_apostrophe(label)
        for topic, label in labels.items()
        if label not in (own.get(topic), spreadsheet_safe(own.get(topic)))
    }


def _rows(path: Path) -> Rows:
    """Return the rows that are not blank."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(
            f"cannot read the labels in {path}: {error.strerror or error}; name another file"
        ) from error
    encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        text = data.decode(encoding)
    except UnicodeError as error:
        row = data[: getattr(error, "start", 0)].count(b"\n") + 1
        raise InputError(
            f"{path}, row {row}: expected UTF-8; save the table as CSV UTF-8"
        ) from error
    lines = io.StringIO(text, newline="")
    first = lines.readline()
    if said := re.fullmatch(r"sep=(.)\s*", first, re.IGNORECASE):
        return list(_parse(lines, said[1], 2, path))
    lines.seek(0)
    return list(_parse(lines, max(DELIMITERS, key=first.count), 1, path))


def _parse(
    lines: Iterable[str], delimiter: str, begin: int, path: Path
) -> Iterator[tuple[int, list[str]]]:
    """Yield rows as a spreadsheet numbers them, the blank ones counted but left out."""
    try:
        for number, cells in enumerate(csv.reader(lines, delimiter=delimiter), start=begin):
            if any(cell.strip() for cell in cells):
                yield number, cells
    except csv.Error as error:
        raise InputError(f"{path} cannot be read as a table: {error}; save it as CSV") from error


def _topic_id(cell: str, path: Path, number: int) -> int:
    """Return a topic id, also where a spreadsheet made it 3.0 or 3,0."""
    found = re.fullmatch(r"\s*(-?\d{1,9})(?:[.,]0{0,2})?\s*", cell)
    if found is None:
        raise InputError(f"{path}, row {number}: expected the id of a topic; got {cell!r}")
    return int(found[1])


def _check(result: TopicResult, topic: int, size: str, path: Path, number: int) -> None:
    """Make sure that a row speaks of a topic of this result."""
    if not 0 <= topic < result.n_topics:
        there = f"0 to {result.n_topics - 1}" if result.n_topics else "none"
        raise InputError(
            f"{path}, row {number}: there is no topic {topic}; there are {there}; delete the row"
        )
    # Three zeros are thousands, fewer are decimals.
    digits = re.sub(r"\D", "", re.sub(r"[.,]0{0,2}$", "", size.strip()))
    if digits and int(digits) != result.topics[topic].size:
        raise InputError(
            f"{path}, row {number}: topic {topic} has {result.topics[topic].size:,} texts here and "
            f"{int(digits):,} in the file, which was written for other topics; take the "
            f"{LABELS} of these, or delete its column size"
        )


def _without_apostrophe(label: str) -> str:
    """Take off what `spreadsheet_safe` added."""
    is_guarded = label.startswith("'") and spreadsheet_safe(label[1:]) == label
    return label[1:] if is_guarded else label
