"""The answers of a study as tables, and what follows from them: agreement, shares, recall."""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.base import clone

from embedtopics._utils.checks import checked_between
from embedtopics.annotation._codebook import KINDS, MULTILABEL, as_json
from embedtopics.annotation._state import StudyState
from embedtopics.annotation.results import (
    AnnotatorAgreement,
    Stopping,
    StudyReport,
)
from embedtopics.classification._classifier import TextClassifier
from embedtopics.classification._measure import measure, predict_corpus
from embedtopics.classification._targets import without_rare_labels
from embedtopics.errors import InputError
from embedtopics.evaluation._agreement import krippendorff_alpha
from embedtopics.evaluation._bootstrap import wilson
from embedtopics.evaluation.results import Estimate
from embedtopics.inference import Measurement
from embedtopics.inference.results import MeasuredShares
from embedtopics.protocols import BoolArray, Float64Array
from embedtopics.results import Decision

if TYPE_CHECKING:
    import pandas as pd

N_EXAMPLES = 3
N_FURTHER = 50
"""Further count labels for which the width of an interval is predicted."""

COLUMN_AFTER = f"width_after_{N_FURTHER}"

CONFIDENCE = 0.95
"""Level of the recall test and of its bound."""

MIN_SAMPLE = 2
"""Labelled count texts below which nothing is estimated."""


NO_ALPHA = Estimate(float("nan"))


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
            krippendorff_alpha(array, level, units=groups) if array.size else NO_ALPHA
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


def _count_labels(state: StudyState) -> tuple[Any, list[Any]]:
    """Return a classifier that learns from all other labels too, and the label of each text."""
    with state.lock:
        keys = state.count_sample().keys
        if len(keys) < MIN_SAMPLE:
            remedy = "label more texts of the count stream"
            raise InputError("count texts", f"at least {MIN_SAMPLE}", len(keys), remedy)
        labels: list[Any] = [None] * len(state.texts)
        for key in keys:
            label = state.records.label_of(key) or ()
            labels[state.texts.row_of[key]] = list(label) if state.is_multilabel else label[0]
        return state.classifier(exclude=set(keys)), labels


def measurement(state: StudyState) -> Measurement:
    """Return the labels of the count texts with predictions of all distinct texts."""
    classifier, labels = _count_labels(state)
    return measure(classifier, state.texts.documents, labels, random_state=state.seed)


def quality(state: StudyState) -> pd.DataFrame:
    """Return the scores of the model on the cross-fitted count texts and on the test texts."""
    import pandas as pd

    classifier, labels = _count_labels(state)
    predictions = predict_corpus(classifier, state.texts.documents, labels, state.seed)
    names = state.records.names
    truth = predictions.truth
    has_label = predictions.has_label & ~predictions.learned
    rows = list(_scores("count", truth, predictions.predicted, has_label, names))

    with state.lock:
        is_test = np.array([key in state.records.test for key in state.texts.keys])
        model = state.classifier(exclude=state.records.test)
    is_test &= has_label
    if is_test.any():
        chances = model.fit_taught().of_rows(slice(None))
        most = np.eye(chances.shape[1])[chances.argmax(axis=1)]
        guess = (chances >= 0.5 if state.is_multilabel else most).astype(np.float64)
        rows += list(_scores("test", truth, guess, is_test, names))

    return pd.DataFrame(rows, columns=["part", "class", "metric", "value", "low", "high", "n"])


def _scores(
    part: str, truth: Float64Array, guess: Float64Array, used: BoolArray, names: tuple[str, ...]
) -> Iterator[tuple[Any, ...]]:
    y, g = truth[used] > 0.5, guess[used] > 0.5
    yield (part, None, "accuracy", *_ratio(int((y == g).all(axis=1).sum()), len(y)))
    for column, name in enumerate(names):
        hits = int((y[:, column] & g[:, column]).sum())
        yield (part, name, "recall", *_ratio(hits, int(y[:, column].sum())))
        yield (part, name, "precision", *_ratio(hits, int(g[:, column].sum())))


def agreement_with_people(names: tuple[str, ...], labels: pd.Series, gold: Any) -> pd.DataFrame:
    """Return the scores of a coder's labels; see `Coding.agreement`."""
    import pandas as pd

    from embedtopics.corpus._alignment import align_values
    from embedtopics.corpus._classes import read_classes

    gold = align_values(gold, labels, "gold", f"{len(labels):,} labels, one for each text")
    people = pd.Series(read_classes(gold, known=names).values, dtype=object)
    codes = {name: code for code, name in enumerate(names)}
    is_gold = people.notna().to_numpy()

    if not is_gold.any():
        raise InputError("gold", "labels of at least one text", found="none")
    if (unknown := is_gold & ~people.isin(codes).to_numpy()).any():
        row = int(unknown.argmax())
        raise InputError(
            "gold", f"labels of the codebook ({', '.join(names)})", people[row], row=row
        )

    people_codes = people.map(codes).to_numpy(dtype=np.float64)
    label_codes = labels.map(codes).to_numpy(dtype=np.float64)
    pair = np.stack([people_codes, label_codes])
    truth = people_codes[:, None] == np.arange(len(names))
    guess = label_codes[:, None] == np.arange(len(names))
    rows = list(_scores("", 1.0 * truth, 1.0 * guess, is_gold, names))
    pair = pair[:, is_gold]

    for code, name in [(-1, None), *enumerate(names)]:
        ratings = pair if name is None else np.where(np.isnan(pair), np.nan, pair == code)
        alpha = krippendorff_alpha(ratings)
        rows.append(("", name, "alpha", alpha.value, alpha.low, alpha.high, len(pair[0])))

    frame = pd.DataFrame(rows, columns=["part", "class", "metric", "value", "low", "high", "n"])
    order = {name: place for place, name in enumerate([None, *names])}
    return frame.drop(columns="part").sort_values(
        "class", key=lambda c: c.map(order), kind="stable"
    )


def _ratio(hits: int, n: int) -> tuple[float, float, float, int]:
    """Return a share, its Wilson interval and its denominator; NaN for none."""
    if not n:
        return math.nan, math.nan, math.nan, 0
    low, high = wilson(hits, n)
    return hits / n, float(low), float(high), n


def classifier(state: StudyState, estimator: TextClassifier | None) -> TextClassifier:
    """Return a classifier fitted to all labels except those of the test texts."""
    pairs = state.records.pairs
    if estimator is None:
        estimator = TextClassifier(method="frozen" if pairs else "auto")
    if not isinstance(estimator, TextClassifier):
        remedy = 'pass et.TextClassifier(method="frozen")'
        raise InputError("estimator", "an unfitted TextClassifier", estimator, remedy)
    labelled = {k: v for k, v in state.labelled().items() if k not in state.records.test}
    names, labels = state.records.names, list(labelled.values())
    y, names, decisions = without_rare_labels(labels, names, state.is_multilabel)
    if not names:
        expected = "labels of at least one text outside the test part"
        raise InputError("labels", expected, found="none", remedy="label more texts")
    model: TextClassifier = clone(estimator)
    model.set_params(head=KINDS[state.kind], classes=names, pairs=pairs)
    model.fit([state.texts.text(key) for key in labelled], y)
    model.decisions_ += decisions
    return model


def report(
    state: StudyState, decisions: tuple[Decision, ...], measure_shares: Callable[[], MeasuredShares]
) -> StudyReport:
    """Return codebook, quality, agreement and examples of a study."""
    import pandas as pd

    tables = {"Codebook": pd.DataFrame(as_json(state.records.labels))}
    estimates = None
    with suppress(InputError):  # too few count texts
        estimates = measure_shares()
        scores = quality(state)
        scores["class"] = scores["class"].fillna("all")
        tables["Quality of the model on texts that it was not fitted on"] = scores
    agreed = agreement(state)
    if agreed.n_texts:
        alpha = pd.DataFrame(agreed.alpha.items(), columns=["label", "Krippendorff's alpha"])
        alpha[["low", "high"]] = list(agreed.intervals.values())
        tables[f"Agreement on {agreed.n_texts:,} texts of two annotators or more"] = alpha
        tables["Texts on which annotators differ"] = agreed.disagreements
    answers = to_frame(state).dropna(subset=["label", "text"])
    answers = answers.explode("label").dropna(subset=["label"])
    # The texts of the random sample come first, so that no strategy chose the examples.
    answers = answers.sort_values("probability", kind="stable", na_position="last")
    examples = answers.groupby("label", sort=False).head(N_EXAMPLES)
    columns = ["label", "id", "text", "note", "annotator", "stream"]
    tables["Examples"] = examples.sort_values("label", kind="stable")[columns]
    return StudyReport(state.progress(), tables, estimates, decisions)


def stopping(
    state: StudyState, recall: float, measure_shares: Callable[[], MeasuredShares]
) -> Stopping:
    """Return the recall test of each label and the expected width of its share's interval."""
    import pandas as pd

    with state.lock:
        labelled, records = state.labelled(), state.records
        is_counted = {key: records.stream_of[key] == "count" for key in labelled}
        # Answered texts without a label are not part of the population.
        n_unlabelled = sum(
            key in state.texts.row_of and key not in labelled for key in records.answers
        )
        names = records.names
    n_texts, n_counted = len(state.texts) - n_unlabelled, sum(is_counted.values())
    widths = _widths(measure_shares)
    classes = []
    for name in names:
        relevant = [is_counted[key] for key, label in labelled.items() if name in label]
        test = recall_test(
            n_texts=n_texts,
            n_taught=len(labelled) - n_counted,
            taught_relevant=len(relevant) - sum(relevant),
            n_counted=n_counted,
            counted_relevant=sum(relevant),
            recall=recall,
        )
        width, after = widths.get(name, (math.nan, math.nan))
        classes.append({"class": name, **test._asdict(), "width": width, COLUMN_AFTER: after})
    return Stopping(pd.DataFrame(classes))


def _widths(measure_shares: Callable[[], MeasuredShares]) -> dict[str, tuple[float, float]]:
    """Return the width of each share's interval, now and expected after more count labels."""
    try:
        now = measure_shares()
    except InputError:  # too few count texts
        return {}
    widths = {}
    rows = now.to_frame().to_dict("records")
    for row, (by_gold, by_predictions) in zip(rows, now._variances.tolist(), strict=True):
        n = row["n_gold"]
        width = row["high"] - row["low"]
        before = by_gold + by_predictions
        after = by_gold * n / (n + N_FURTHER) + by_predictions
        # Without any variance yet, the interval is that of n trials.
        factor = after / before if before > 0 else n / (n + N_FURTHER)
        widths[row["class"]] = width, width * math.sqrt(factor)
    return widths


class RecallTest(NamedTuple):
    """A test whether recall has reached a target; the bound is a one-sided lower one."""

    n_found: int
    p: float
    recall_bound: float
    enough: bool


def recall_test(
    n_texts: int,
    n_taught: int,
    taught_relevant: int,
    n_counted: int,
    counted_relevant: int,
    *,
    recall: float = 0.95,
) -> RecallTest:
    """Test whether recall has reached a target.

    The counted texts are a random sample of the texts that were not taught. If recall is below the
    target, at least K = floor((r + k) / recall - r) + 1 of these texts were relevant, with r
    relevant taught texts and k relevant counted texts. The p-value is P(X <= k) for a
    hypergeometric X (Callaghan and Mueller-Hansen 2020, "Statistical stopping criteria for
    automated screening in systematic reviews", equations 5 to 7). Testing after every label and
    stopping at the first small p-value increases the error rate.
    """
    from scipy.stats import hypergeom

    target, level = checked_between(recall, "recall", 0, 1), 1.0 - CONFIDENCE
    rest, k, n_relevant = n_texts - n_taught, counted_relevant, taught_relevant + counted_relevant
    missing = math.floor(n_relevant / target - taught_relevant + 1e-9) + 1
    p = float(hypergeom.cdf(k, rest, missing, n_counted)) if missing <= rest else 0.0
    # The largest number of relevant texts that is compatible with k at this level.
    numbers = range(k, rest - (n_counted - k) + 1)
    n_compatible = bisect_left(
        numbers, True, key=lambda n: bool(hypergeom.cdf(k, rest, n, n_counted) < level)
    )
    largest = taught_relevant + k + n_compatible - 1
    bound = n_relevant / largest if largest else 0.0
    return RecallTest(n_relevant, p, bound, p < level and n_relevant > 0)
