"""Export the answers of a study as tables, merge studies, measure agreement."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from embedtopics.annotation._codebook import MULTILABEL, checked_annotator
from embedtopics.annotation._journal import NAME, Records, read_events
from embedtopics.annotation._state import StudyState
from embedtopics.annotation.results import AnnotatorAgreement
from embedtopics.corpus._table_files import write_table
from embedtopics.decisions import Exported
from embedtopics.errors import InputError
from embedtopics.evaluation._agreement import Alpha, krippendorff_alpha

if TYPE_CHECKING:
    import pandas as pd

NO_ALPHA = Alpha(*[float("nan")] * 3)
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
    frame = to_frame(state)
    if "spans" in frame:
        frame["spans"] = frame["spans"].map(json.dumps)
    if state.is_multilabel and Path(path).suffix in (".csv", ".tsv"):
        frame["label"] = [None if one is None else SEPARATOR.join(one) for one in frame["label"]]
    return write_table(frame, os.fspath(path), name="labels")


def merge(state: StudyState, folder: str | os.PathLike[str]) -> int:
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
            name = checked_annotator(answer.by)
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
    level = "ordinal" if state.kind == "ordinal" else "nominal"
    order = state.records.names.index
    alpha = {}
    for name in state.records.names if state.is_multilabel else ("",):
        ratings = np.full((len(annotators), len(shared)), np.nan, dtype=object)
        for column, labels_by in enumerate(shared.values()):
            for by, names in labels_by.items():
                ratings[annotators.index(by), column] = name in names if name else order(names[0])
        alpha[name or "label"] = krippendorff_alpha(ratings, level) if shared else NO_ALPHA
    return AnnotatorAgreement(
        {name: one.value for name, one in alpha.items()},
        len(shared),
        pd.DataFrame(rows, columns=columns),
        {name: (one.low, one.high) for name, one in alpha.items()},
    )


def _shared_labels(state: StudyState) -> Iterator[tuple[str, Mapping[str, tuple[str, ...]]]]:
    """Yield the texts of two or more annotators, with the labels that each gave."""
    for key in state.records.answers:
        labels_by = {
            answer.by: answer.labels
            for answer in state.records.current(key).values()
            if answer.labels is not None
        }
        if len(labels_by) > 1:
            yield key, labels_by
