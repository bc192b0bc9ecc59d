"""The labels of topics: given, made of keywords, or edited in a spreadsheet."""

from __future__ import annotations

import csv
import dataclasses
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from embedtopics._utils.checks import checked_count, optional_count
from embedtopics._utils.display import excerpt
from embedtopics._utils.table_files import spreadsheet_safe
from embedtopics.clustering.results import NOISE
from embedtopics.errors import InputError
from embedtopics.topics._relabel import checked_topic_id, edit_of
from embedtopics.topics.results import TopicResult


def checked_labels(
    labels: Mapping[int, Any], others: Iterable[tuple[int, str]] = ()
) -> dict[int, str]:
    """Return labels on one line by topic, or refuse empty ones and those of two topics."""
    owner = {label: topic for topic, label in others}
    checked = {}
    for topic, label in labels.items():
        name = " ".join(label.split()) if isinstance(label, str) else ""
        if not any(map(str.isprintable, name.replace(" ", ""))):
            raise InputError("label", f"a text that is not empty, for topic {topic}", label)
        if name in owner:
            raise InputError(
                "label",
                "of one topic only",
                found=f"{name!r} for {owner[name]} and {topic}",
                remedy="give one of them another label, or merge them",
            )
        owner[name] = topic
        checked[topic] = name
    return checked


def spell_topic(result: TopicResult, topic: int) -> str:
    """Return a topic as the messages of edits name it."""
    return f"{topic} ({result.topics[topic].label})"


def rename(
    result: TopicResult, labels: Mapping[int, str] | Sequence[str] | str | Path
) -> TopicResult:
    """Give topics labels, which stay through all later edits for as long as the topic does.

    Parameters
    ----------
    result : TopicResult
    labels : mapping of int to str, sequence of str, str or Path
        Labels by topic id; or one for every topic, in the order of the ids; or the path of an
        edited ``labels.csv``, as saved with a result.

    Returns
    -------
    TopicResult
        Shares everything but the labels with `result`, stability included.

    Raises
    ------
    InputError
        If there is no such topic, a label is empty or no string, two topics would share one, or
        the file cannot be read.

    Examples
    --------
    >>> named = rename(result, {3: "Elections", 5: "Sport"})  # doctest: +SKIP
    """
    if isinstance(labels, (str, Path)):
        labels = read_labels(labels, result)
    if isinstance(labels, Mapping):
        given = {checked_topic_id(result, topic): label for topic, label in labels.items()}
        given = dict(sorted(given.items()))
    elif isinstance(labels, bytes) or not hasattr(labels, "__len__"):
        raise InputError("labels", "a mapping such as {3: 'Elections'}, a list or a path", labels)
    elif len(labels) != result.n_topics:
        raise InputError(
            "labels",
            f"one for each of the {result.n_topics} topics",
            found=f"{len(labels)}",
            remedy="to name only some, give a mapping such as {3: 'Elections'}",
        )
    else:
        given = dict(enumerate(labels))
    others = [(t.topic_id, t.label) for t in result.topics if t.topic_id not in given]
    names = checked_labels(given, others)
    called = ", ".join(f"{topic} {name!r}" for topic, name in names.items())
    message = f"called {called}" if names else "gave no labels"
    edit = edit_of(
        result, "rename", {"labels": names}, message, tuple(names), range(result.n_topics)
    )
    topics = list(result.topics)
    for topic, name in names.items():
        topics[topic] = dataclasses.replace(topics[topic], label=name, is_named=True)
    return dataclasses.replace(result, topics=tuple(topics), history=(*result.history, edit))


def make_labels(
    result: TopicResult,
    n_terms: int = 3,
    *,
    separator: str = ", ",
    prefix: str = "",
    word_length: int | None = None,
) -> TopicResult:
    """Label the topics by their keywords.

    Seeded topics and those named by hand keep their labels. The others do not count as named: an
    edit that changes the topics labels them anew.

    Parameters
    ----------
    result : TopicResult
    n_terms : int
        Keywords in a label; more where two topics would have the same one, and a number where
        that does not help.
    separator : str
        Between the keywords.
    prefix : str
        In front of them; "{topic}" in it stands for the topic's id, as in "{topic}: ".
    word_length : int, optional
        Characters at which each keyword is cut.

    Returns
    -------
    TopicResult

    Raises
    ------
    InputError
        If an argument is bad.
    """
    n_terms = checked_count(n_terms, "n_terms")
    word_length = optional_count(word_length, "word_length")
    for value, name in ((separator, "separator"), (prefix, "prefix")):
        if not isinstance(value, str):
            raise InputError(name, "a string", value)
    topics = list(result.topics)
    made = [topic for topic in topics if not (topic.is_named or topic.is_seeded)]
    taken = {topic.label for topic in topics} - {topic.label for topic in made}
    for topic in made:
        start = prefix.replace("{topic}", str(topic.topic_id))
        words = [word[:word_length] for word in topic.keywords] or ["no terms"]
        sizes = range(min(n_terms, len(words)), len(words) + 1)
        labels = [start + separator.join(words[:size]) for size in sizes]
        label, number = next((one for one in labels if one not in taken), labels[0]), 2
        while label in taken:
            label, number = f"{labels[0]} ({number})", number + 1
        taken.add(label)
        topics[topic.topic_id] = dataclasses.replace(topic, label=label)
    parameters = {
        "n_terms": n_terms,
        "separator": separator,
        "prefix": prefix,
        "word_length": word_length,
    }
    message = f"labelled topics by {n_terms} of the keywords: {len(made):,} topics"
    edit = edit_of(result, "make_labels", parameters, message, (), range(result.n_topics))
    return dataclasses.replace(result, topics=tuple(topics), history=(*result.history, edit))


LABELS = "labels.csv"
COLUMNS = ("topic", "label", "size", "terms", "example_1", "example_2", "example_3")
DELIMITERS = ",;\t"


def write_labels(result: TopicResult, path: str | Path) -> Path:
    """Write a CSV of the topics' labels, with what helps to choose better ones."""
    path = Path(path)
    with path.open("w", encoding="utf-8-sig", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(COLUMNS)
        for topic in result.topics:
            examples = [excerpt(result.corpus.texts[row], 300) for row in topic.representatives[:3]]
            cells = [topic.label, topic.size, ", ".join(topic.keywords[:10]), *examples]
            cells += [""] * (len(COLUMNS) - 1 - len(cells))
            writer.writerow([topic.topic_id, *map(spreadsheet_safe, cells)])
    return path


def read_labels(path: str | Path, result: TopicResult | None = None) -> dict[int, str]:
    """Read labels by topic id, as a spreadsheet leaves them.

    Cells are separated by commas, semicolons or tabs; rows may be sorted or deleted, and columns
    moved, added or deleted, except for topic and label. With a result, an id that it does not
    have, or another size, is an error, and only labels that differ from its own are returned.
    """
    path = Path(path)
    (_, head), *rows = _rows(path) or [(1, [])]
    names = [cell.strip().lower() for cell in head]
    if not names.count("topic") == names.count("label") == 1:
        found = ", ".join(filter(None, names)) or "no columns"
        raise InputError(
            "labels",
            "a table with one column topic and one column label, named in its first row",
            found=f"{found} in {path}",
        )
    labels: dict[int, str] = {}
    first_row: dict[int, int] = {}
    for number, cells in rows:
        row = dict(zip(names, cells, strict=False))
        # Spreadsheets make an id 3.0 or 3,0.
        cell = row.get("topic", "")
        if (match := re.fullmatch(r"\s*(-?\d{1,9})(?:[.,]0{0,2})?\s*", cell)) is None:
            raise InputError("topic", f"the id of a topic in {path}", cell, row=number)
        topic, label = int(match[1]), " ".join(row.get("label", "").split())
        if topic == NOISE:  # the last row of topics.csv
            continue
        if not label:
            raise InputError(
                "label",
                f"given for topic {topic} in {path}",
                found="none",
                row=number,
                remedy="write one, or delete the row",
            )
        if topic in labels:
            raise InputError(
                "topic",
                f"in one row of {path}",
                found=f"{topic} again, after row {first_row[topic]},",
                row=number,
            )
        if result is not None:
            _check_topic(result, topic, row.get("size", ""), path, number)
        labels[topic], first_row[topic] = label, number
    own = {} if result is None else {topic: result.topics[topic].label for topic in labels}
    return {
        topic: _without_apostrophe(label)
        for topic, label in labels.items()
        if label not in (own.get(topic), spreadsheet_safe(own.get(topic)))
    }


def _rows(path: Path) -> list[tuple[int, list[str]]]:
    """Return the rows that are not blank, each with its number in a spreadsheet."""
    try:
        data = path.read_bytes()
    except OSError as error:
        reason = error.strerror or error
        raise InputError("labels", "a readable file", found=f"{path} ({reason})") from error
    encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        text = data.decode(encoding)
    except UnicodeError as error:
        row = data[: getattr(error, "start", 0)].count(b"\n") + 1
        raise InputError(
            "labels",
            "in UTF-8",
            found=f"other bytes in {path}",
            row=row,
            remedy="save the table as CSV UTF-8",
        ) from error
    lines = io.StringIO(text, newline="")
    first = lines.readline()
    named = re.fullmatch(r"sep=(.)\s*", first, re.IGNORECASE)
    if not named:
        lines.seek(0)
    reader = csv.reader(lines, delimiter=named[1] if named else max(DELIMITERS, key=first.count))
    try:
        numbered = list(enumerate(reader, start=2 if named else 1))
    except csv.Error as error:
        raise InputError(
            "labels", "a table", found=f"{path} ({error})", remedy="save it as CSV"
        ) from error
    return [(number, cells) for number, cells in numbered if any(cell.strip() for cell in cells)]


def _check_topic(result: TopicResult, topic: int, size: str, path: Path, number: int) -> None:
    """Refuse a row that is about a topic of another result."""
    if not 0 <= topic < result.n_topics:
        raise InputError(
            "topic",
            f"one of the {result.n_topics} topics in {path}",
            topic,
            "delete the row",
            row=number,
        )
    # Three zeros are thousands, fewer are decimals.
    digits = re.sub(r"\D", "", re.sub(r"[.,]0{0,2}$", "", size.strip()))
    if digits and int(digits) != result.topics[topic].size:
        raise InputError(
            "size",
            f"{result.topics[topic].size:,} for topic {topic} in {path}",
            int(digits),
            "the file was written for other topics; take the labels.csv of these, or delete its "
            "column size",
            row=number,
        )


def _without_apostrophe(label: str) -> str:
    """Remove what `spreadsheet_safe` added."""
    is_guarded = label.startswith("'") and spreadsheet_safe(label[1:]) == label
    return label[1:] if is_guarded else label
