"""Answers as tables: out of a study, into one, and annotators beside one another."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from embedtopics.annotation._codebook import (
    MANY,
    checked_annotator,
    checked_spans,
    refuse_two_of_a_scheme,
)
from embedtopics.annotation._journal import NAME, read_events
from embedtopics.annotation._records import ADJUDICATED, Records
from embedtopics.annotation.results import AnnotatorAgreement
from embedtopics.corpus._table_files import write_table
from embedtopics.decisions import Exported
from embedtopics.errors import InputError
from embedtopics.evaluation._sheet_scores import krippendorff_alpha

if TYPE_CHECKING:
    import pandas as pd

    from embedtopics.annotation._project import AnnotationProject

COLUMNS = ("id", "key", "text", "label", "spans", "unsure", "note", "annotator", "stream",
           "probability", "test", "time")  # fmt: skip
WORD = re.compile(r"\w+|[^\w\s]")
SEPARATOR = "|"
"""Between several labels of a text in a csv file."""


def to_frame(study: AnnotationProject) -> pd.DataFrame:
    """Return a row for each text and annotator."""
    import pandas as pd

    with study._lock:
        sample, n_missing = study.counted()
        is_sample = set(sample)
        chance = (len(sample) + n_missing) / len(study.keys)
        rows = []
        for key in study._records.stacks:
            row = study._row.get(key)
            text = None if row is None else study._documents.texts[row]
            for answer in study._records.answers(key).values():
                label = None if answer.labels is None else _plain(answer.labels, study.kind)
                rows.append((
                    answer.id, key, text, label, [list(span) for span in answer.spans],
                    answer.unsure, answer.note, answer.by, answer.stream,
                    chance if key in is_sample else np.nan, key in study._records.test, answer.time,
                ))  # fmt: skip
    frame = pd.DataFrame(rows, columns=list(COLUMNS))
    return frame if study.kind == "spans" else frame.drop(columns="spans")


def _plain(labels: tuple[str, ...], kind: str) -> Any:
    return list(labels) if kind in MANY else labels[0]


def labels(study: AnnotationProject) -> pd.Series:
    """Return the label of each row of the corpus."""
    import pandas as pd

    with study._lock:
        known = dict(zip(*study._labelled(), strict=True))
    of_row = study.corpus.distinct().of_row.tolist()
    keys = [study.keys[place] if place >= 0 else "" for place in of_row]
    found = [_plain(known[key], study.kind) if key in known else None for key in keys]
    return pd.Series(found, index=study.corpus.index, dtype=object, name="label")


def export(study: AnnotationProject, path: str | os.PathLike[str]) -> Exported:
    """Write the answers to a file."""
    if Path(path).suffix == ".conll":
        return _export_conll(study, path)
    frame = to_frame(study)
    if "spans" in frame:
        frame["spans"] = frame["spans"].map(json.dumps)
    if study.has_many and Path(path).suffix in (".csv", ".tsv"):
        joined = [None if one is None else SEPARATOR.join(one) for one in frame["label"]]
        frame["label"] = joined
    return write_table(frame, os.fspath(path), name="labels")


def _export_conll(study: AnnotationProject, path: str | os.PathLike[str]) -> Exported:
    """Write the words of texts and whether they are in a span, as B-, I- or O."""
    from embedtopics.classification import write_conll

    if study.kind != "spans":
        raise InputError("path", "a .csv, .parquet or .jsonl file", os.fspath(path))
    with study._lock:
        held = [(key, study._records.holding(key)) for key in study._records.stacks]
        marked = [
            (study._documents.texts[study._row[key]], one.spans)
            for key, one in held if one is not None and key in study._row
        ]  # fmt: skip
    sentences, tags = [], []
    for text, spans in marked:
        words = [(one.group(), one.start(), one.end()) for one in WORD.finditer(text)]
        of_word = ["O"] * len(words)
        for name, begin, end in spans:
            # A word that is cut by a span's edge is part of it.
            inside = [i for i, (_, a, b) in enumerate(words) if a < end and begin < b]
            for place in inside:
                of_word[place] = f"{'B' if place == inside[0] else 'I'}-{name}"
        if words:
            sentences.append([word for word, _, _ in words])
            tags.append(of_word)
    write_conll(path, sentences, tags)
    return Exported((Path(path),))


def add_labels(study: AnnotationProject, data: Any, by: str) -> int:
    """Take in labels by key, id or text: all or none."""
    import pandas as pd

    from embedtopics.corpus._columns import as_table, is_frame, is_records
    from embedtopics.corpus._readers import read_file

    if not (is_frame(data) or is_records(data) or isinstance(data, (str, os.PathLike))):
        raise InputError("data", "a frame or the path of a file", found=type(data).__name__)
    is_held = is_frame(data) or is_records(data)
    frame = (as_table(data) if is_held else read_file(Path(data), "utf-8", None)).frame
    named = [name for name in ("key", "id", "text") if name in frame.columns]
    wanted = "spans" if study.kind == "spans" else "label"
    if wanted not in frame.columns or not named:
        found = ", ".join(map(str, frame.columns))
        raise InputError("data", f'of columns "{wanted}" and "key", "id" or "text"', found=found)
    key_of = keys_by(study, named[0])
    if study.kind == "spans":
        return _add_spans(study, frame, named[0], key_of, by)
    read: list[tuple[str, list[str]]] = []
    names = study._records.names
    for row, (value, label) in enumerate(zip(frame[named[0]], frame["label"], strict=True)):
        several = isinstance(label, (list, tuple, np.ndarray))
        if not several and (pd.isna(label) or label == ""):
            continue
        if value not in key_of:
            raise InputError(named[0], "that of a text of the corpus", value, row=row)
        split = study.has_many and not several
        given = list(label) if several else str(label).split(SEPARATOR) if split else [str(label)]
        wrong = [name for name in given if name not in names]
        if wrong or (not study.has_many and len(given) != 1):
            raise InputError("label", f"among {', '.join(names)}", label, row=row)
        refuse_two_of_a_scheme(given, study.codebook, row)
        read.append((key_of[value], given))
    for key, given in read:
        stream = None if key in study._records.stacks else "imported"
        study.label(key, given, by=by, stream=stream)
    return len(read)


def _add_spans(
    study: AnnotationProject, frame: pd.DataFrame, column: str, key_of: dict[str, str], by: str
) -> int:
    """Take in spans, lists or JSON of (label, begin, end): all or none."""
    read = []
    for row, (value, cell) in enumerate(zip(frame[column], frame["spans"], strict=True)):
        if value not in key_of:
            raise InputError(column, "that of a text of the corpus", value, row=row)
        key = key_of[value]
        try:
            spans = json.loads(cell) if isinstance(cell, str) else cell
            spans = [tuple(one.values()) if isinstance(one, dict) else tuple(one) for one in spans]
            text = study._documents.texts[study._row[key]]
            read.append((key, checked_spans(spans, text, study._records.names)))
        except (ValueError, TypeError, RecursionError) as error:
            wanted = "lists of (label, begin, end) that are in the text and do not overlap"
            raise InputError("spans", wanted, found=str(error)[:200], row=row) from error
    for key, spans in read:
        stream = None if key in study._records.stacks else "imported"
        study.label(key, by=by, stream=stream, spans=spans)
    return len(read)


def keys_by(study: AnnotationProject, column: str) -> dict[str, str]:
    """Return the key of each text by its key, by the ids of all its rows, or by itself."""
    if column == "key":
        return {key: key for key in study.keys}
    of_row = study.corpus.distinct().of_row.tolist()
    values = study.corpus.ids if column == "id" else study.corpus.texts
    return {
        value: study.keys[place] for value, place in zip(values, of_row, strict=True) if place >= 0
    }


def merge(study: AnnotationProject, folder: str | os.PathLike[str], by: str | None) -> int:
    """Take in the answers of another folder that are new, or later than those here."""
    events = read_events(Path(folder) / NAME)
    other = Records(events[0])
    for event in events[1:]:
        other.apply(event)
    own, names = study._records, list(study._records.names)
    if (other.kind, list(other.names)) != (own.kind, names):
        wanted = f"a study of {own.kind} labels {', '.join(names)}"
        found = f"{other.kind}: {', '.join(other.names)}"
        raise InputError("folder", wanted, found=found)
    given = (one for text in other.stacks for one in other.answers(text).values())
    n_new = 0
    with study._lock:
        for answer in sorted(given, key=lambda one: one.number):
            name = checked_annotator(by or answer.by)
            known = own.answers(answer.text).get(name)
            if known is None or known.time < answer.time:
                fields = {**vars(answer), "by": name, "n_texts": len(study.keys)}
                del fields["number"]
                own.apply(study._journal.add("answer", **fields))
                n_new += 1
    return n_new


def agreement(study: AnnotationProject) -> AnnotatorAgreement:
    """Return alpha of the annotators and the texts on which they differ."""
    import pandas as pd

    with study._lock:
        given = {
            key: {
                answer.by: answer.labels for answer in study._records.answers(key).values()
                if answer.labels is not None and answer.stream != ADJUDICATED
            }
            for key in study._records.stacks
        }  # fmt: skip
        shared = {key: one for key, one in given.items() if len(one) > 1}
        annotators = sorted({by for one in shared.values() for by in one})
        differ = [key for key, one in shared.items() if len({*map(frozenset, one.values())}) > 1]
        rows = []
        for key in differ:
            row = study._row.get(key)
            decided = study._records.label_of(key)
            cells = [shared[key].get(by) for by in annotators]
            rows.append((
                study._documents.ids[row] if row is not None else None, key,
                study._documents.texts[row] if row is not None else None,
                *(None if cell is None else _plain(cell, study.kind) for cell in cells),
                None if decided is None else _plain(decided, study.kind),
            ))  # fmt: skip
    columns = ["id", "key", "text", *annotators, "decided"]
    names = study._records.names if study.has_many else ("",)
    alpha = {}
    for name in names:
        ratings = np.full((len(annotators), len(shared)), np.nan, dtype=object)
        for place, one in enumerate(shared.values()):
            for by, said in one.items():
                ratings[annotators.index(by), place] = name in said if name else said[0]
        alpha[name or "label"] = krippendorff_alpha(ratings) if shared else float("nan")
    return AnnotatorAgreement(alpha, len(shared), pd.DataFrame(rows, columns=columns))
