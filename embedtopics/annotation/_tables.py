"""Export the answers of a study as tables, merge studies, measure agreement."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from embedtopics.annotation._codebook import MULTILABEL
from embedtopics.annotation._state import StudyState
from embedtopics.annotation.results import AnnotatorAgreement
from embedtopics.evaluation._agreement import Alpha, krippendorff_alpha

if TYPE_CHECKING:
    import pandas as pd

NO_ALPHA = Alpha(*[float("nan")] * 3)


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


def agreement(state: StudyState) -> AnnotatorAgreement:
    """Return alpha of the annotators and the texts that they disagree on."""
    import pandas as pd

    with state.lock:
        answers = dict(_shared_answers(state))
        annotators = sorted({by for answers_by in answers.values() for by in answers_by})
        rows = []
        for key, answers_by in answers.items():
            labels_by = {by: answer.labels for by, answer in answers_by.items()}
            if len({(frozenset(one.labels), one.spans) for one in answers_by.values()}) < 2:
                continue
            text = state.texts.to_label(key, "") if key in state.texts.row_of else None
            by_annotator = [plain_labels(labels_by.get(by), state.kind) for by in annotators]
            decided = plain_labels(state.records.label_of(key), state.kind)
            shown = (None, key, None) if text is None else (text.id, key, text.text)
            rows.append((*shown, *by_annotator, decided))
    columns = ["id", "key", "text", *annotators, "decided"]
    level = "ordinal" if state.kind == "ordinal" else "nominal"
    order, words = state.records.names.index, {key: [(0, 1)] for key in answers}
    if state.kind == "spans":
        text_of = state.texts.text
        readable = [key for key in answers if key in state.texts.row_of]
        words = {key: [w.span() for w in re.finditer(r"\S+", text_of(key))] for key in readable}
    alpha = {}
    for name in state.records.names if state.is_multilabel else ("",):
        ratings: list[list[Any]] = [[] for _ in annotators]
        for key, places in words.items():
            for row, by in zip(ratings, annotators, strict=True):
                answer = answers[key].get(by)
                if answer is None:
                    row += [np.nan] * len(places)
                elif state.kind == "spans":
                    marks = [(a, b) for label, a, b in answer.spans if label == name]
                    row += [any(a < end and begin < b for a, b in marks) for begin, end in places]
                else:
                    row.append(name in answer.labels if name else order(answer.labels[0]))
        groups = np.repeat(np.arange(len(words)), [len(places) for places in words.values()])
        array = np.array(ratings, dtype=object)
        alpha[name or "label"] = (
            krippendorff_alpha(array, level, groups=groups) if array.size else NO_ALPHA
        )
    return AnnotatorAgreement(
        {name: one.value for name, one in alpha.items()},
        len(answers),
        pd.DataFrame(rows, columns=columns),
        {name: (one.low, one.high) for name, one in alpha.items()},
    )


def _shared_answers(state: StudyState) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the texts of two or more annotators, with the answer of each."""
    for key in state.records.answers:
        current = state.records.current(key).values()
        answers_by = {answer.by: answer for answer in current if answer.labels is not None}
        if len(answers_by) > 1:
            yield key, answers_by
