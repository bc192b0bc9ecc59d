"""Export the answers of a study as tables, import labels, merge studies, measure agreement."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from embedtopics.annotation._codebook import (
    MULTILABEL,
    check_schemes,
    checked_annotator,
    checked_spans,
)
from embedtopics.annotation._journal import NAME, read_events
from embedtopics.annotation._records import ADJUDICATED, Records
from embedtopics.annotation._state import StudyState
from embedtopics.annotation.results import AnnotatorAgreement
from embedtopics.corpus._table_files import write_table
from embedtopics.decisions import Exported
from embedtopics.errors import InputError
from embedtopics.evaluation._agreement import krippendorff_alpha

if TYPE_CHECKING:
    import pandas as pd

WORD = re.compile(r"\w+|[^\w\s]")
SEPARATOR = "|"
"""Separates the labels of a text in a csv file."""


def plain_labels(labels: tuple[str, ...] | None, kind: str) -> Any:
    """Return the labels of a text as a list or a single label; None for none."""
    if labels is None:
        return None
    return list(labels) if kind in MULTILABEL else labels[0]


def to_frame(state: StudyState) -> pd.DataFrame:
    """Return one row for each text and annotator; see `AnnotationProject.to_frame`."""
    import pandas as pd

    records, texts = state.records, state.texts
    with state.lock:
        sample = state.count_sample()
        sampled = set(sample.keys)
        chance = (len(sample.keys) + sample.n_unlabelled) / len(texts)
        rows = [
            {
                "id": answer.id,
                "key": key,
                "text": texts.text(key) if key in texts.row_of else None,
                "label": plain_labels(answer.labels, state.kind),
                "spans": [list(span) for span in answer.spans],
                "unsure": answer.unsure,
                "note": answer.note,
                "annotator": answer.by,
                "stream": answer.stream,
                "probability": chance if key in sampled else np.nan,
                "test": key in records.test,
                "time": answer.time,
            }
            for key in records.answers
            for answer in records.current(key).values()
        ]
    columns = "id key text label spans unsure note annotator stream probability test time".split()
    if state.kind != "spans":
        columns.remove("spans")
    return pd.DataFrame(rows, columns=columns)


def labels(state: StudyState) -> pd.Series:
    """Return the label of each row of the corpus."""
    import pandas as pd

    labelled, texts = state.labelled(), state.texts
    keys = [texts.keys[row] if row >= 0 else "" for row in texts.of_row.tolist()]
    values = [plain_labels(labelled.get(key), state.kind) for key in keys]
    return pd.Series(values, index=texts.corpus.index, dtype=object, name="label")


def export(state: StudyState, path: str | os.PathLike[str]) -> Exported:
    """Write the answers to a file."""
    if Path(path).suffix == ".conll":
        return _export_conll(state, path)
    frame = to_frame(state)
    if "spans" in frame:
        frame["spans"] = frame["spans"].map(json.dumps)
    if state.is_multilabel and Path(path).suffix in (".csv", ".tsv"):
        frame["label"] = [None if one is None else SEPARATOR.join(one) for one in frame["label"]]
    return write_table(frame, os.fspath(path), name="labels")


def _export_conll(state: StudyState, path: str | os.PathLike[str]) -> Exported:
    """Write the words of texts with the BIO labels of their spans."""
    from embedtopics.classification import write_conll

    if state.kind != "spans":
        raise InputError("path", "a .csv, .parquet or .jsonl file", os.fspath(path))
    sentences, tags = [], []
    for key in state.labelled():
        answer = state.records.resolved(key)
        words = [(m.group(), m.start(), m.end()) for m in WORD.finditer(state.texts.text(key))]
        if answer is None or not words:
            continue
        of_word = ["O"] * len(words)
        for name, begin, end in answer.spans:
            # A word that the edge of a span cuts belongs to the span.
            inside = [i for i, (_, a, b) in enumerate(words) if a < end and begin < b]
            for i in inside:
                of_word[i] = f"{'B' if i == inside[0] else 'I'}-{name}"
        sentences.append([word for word, _, _ in words])
        tags.append(of_word)
    write_conll(path, sentences, tags)
    return Exported((Path(path),))


def read_answers(state: StudyState, data: Any) -> list[dict[str, Any]]:
    """Read labels or spans from a frame or a file, as arguments of `AnnotationProject.label`."""
    from embedtopics.corpus._columns import as_table, is_frame, is_records
    from embedtopics.corpus._readers import read_file

    if is_frame(data) or is_records(data):
        frame = as_table(data).frame
    elif isinstance(data, (str, os.PathLike)):
        frame = read_file(Path(data), "utf-8", None).frame
    else:
        raise InputError("data", "a frame or the path of a file", found=type(data).__name__)
    column = "spans" if state.kind == "spans" else "label"
    identifiers = [name for name in ("key", "id", "text") if name in frame.columns]
    if column not in frame.columns or not identifiers:
        columns = ", ".join(map(str, frame.columns))
        expected = f'of columns "{column}" and "key", "id" or "text"'
        raise InputError("data", expected, found=columns)
    key_of = state.texts.keys_by(identifiers[0])
    answers = []
    for row, (value, cell) in enumerate(zip(frame[identifiers[0]], frame[column], strict=True)):
        if column == "label" and _is_empty(cell):
            continue
        if value not in key_of:
            raise InputError(identifiers[0], "that of a text of the corpus", value, row=row)
        answer: dict[str, Any] = {"key": key_of[value]}
        if column == "spans":
            answer["spans"] = _read_spans(state, answer["key"], cell, row)
        else:
            answer["labels"] = _read_labels(state, cell, row)
        is_new = answer["key"] not in state.records.answers
        answers.append({**answer, "stream": "imported" if is_new else None})
    return answers


def _is_empty(cell: Any) -> bool:
    import pandas as pd

    return not isinstance(cell, (list, tuple, np.ndarray)) and bool(pd.isna(cell) or cell == "")


def _read_labels(state: StudyState, cell: Any, row: int) -> list[str]:
    if isinstance(cell, (list, tuple, np.ndarray)):
        names = list(cell)
    else:
        names = str(cell).split(SEPARATOR) if state.is_multilabel else [str(cell)]
    is_valid = set(names) <= set(state.records.names)
    if not is_valid or (not state.is_multilabel and len(names) != 1):
        raise InputError("label", f"among {', '.join(state.records.names)}", cell, row=row)
    check_schemes(names, state.records.labels, row)
    return names


def _read_spans(state: StudyState, key: str, cell: Any, row: int) -> Any:
    """Read spans, a list or JSON of (label, begin, end)."""
    try:
        spans = json.loads(cell) if isinstance(cell, str) else cell
        spans = [tuple(one.values()) if isinstance(one, dict) else tuple(one) for one in spans]
        return checked_spans(spans, state.texts.text(key), state.records.names)
    except (ValueError, TypeError, RecursionError) as error:
        expected = "lists of (label, begin, end) in the text that do not overlap"
        raise InputError("spans", expected, found=str(error)[:200], row=row) from error


def merge(state: StudyState, folder: str | os.PathLike[str], by: str | None) -> int:
    """Add the answers of another study that are new or later; return their number."""
    header, *events = read_events(Path(folder) / NAME)
    other, records = Records(header), state.records
    for event in events:
        other.apply(event)
    if (other.kind, other.names) != (records.kind, records.names):
        expected = f"a study of {records.kind} labels {', '.join(records.names)}"
        description = f"{other.kind}: {', '.join(other.names)}"
        raise InputError("folder", expected, found=description)
    answers = [answer for text in other.answers for answer in other.current(text).values()]
    n_new = 0
    with state.lock:
        for answer in sorted(answers, key=lambda one: one.number):
            name = checked_annotator(by or answer.by)
            present = records.current(answer.text).get(name)
            if present is None or present.time < answer.time:
                fields = {**vars(answer), "by": name, "n_texts": len(state.texts)}
                del fields["number"]
                state.record("answer", **fields)
                n_new += 1
    return n_new


def agreement(state: StudyState) -> AnnotatorAgreement:
    """Return alpha of the annotators and the texts that they disagree on."""
    import pandas as pd

    with state.lock:
        shared = dict(_shared_labels(state))
        annotators = sorted({by for labels_by in shared.values() for by in labels_by})
        rows = []
        for key, labels_by in shared.items():
            if len({frozenset(names) for names in labels_by.values()}) < 2:
                continue
            text = state.texts.to_label(key, "") if key in state.texts.row_of else None
            by_annotator = [plain_labels(labels_by.get(by), state.kind) for by in annotators]
            decided = plain_labels(state.records.label_of(key), state.kind)
            shown = (None, key, None) if text is None else (text.id, key, text.text)
            rows.append((*shown, *by_annotator, decided))
    columns = ["id", "key", "text", *annotators, "decided"]
    alpha = {}
    for name in state.records.names if state.is_multilabel else ("",):
        ratings = np.full((len(annotators), len(shared)), np.nan, dtype=object)
        for column, labels_by in enumerate(shared.values()):
            for by, names in labels_by.items():
                ratings[annotators.index(by), column] = name in names if name else names[0]
        alpha[name or "label"] = krippendorff_alpha(ratings) if shared else float("nan")
    return AnnotatorAgreement(alpha, len(shared), pd.DataFrame(rows, columns=columns))


def _shared_labels(state: StudyState) -> Iterator[tuple[str, Mapping[str, tuple[str, ...]]]]:
    """Yield the texts of two or more annotators, with the labels that each gave."""
    for key in state.records.answers:
        labels_by = {
            answer.by: answer.labels
            for answer in state.records.current(key).values()
            if answer.labels is not None and answer.stream != ADJUDICATED
        }
        if len(labels_by) > 1:
            yield key, labels_by
