"""Shares, quality and advice on stopping, from the count texts of a study."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from embedtopics._utils.checks import checked_count, checked_level
from embedtopics.annotation._codebook import KINDS, as_json
from embedtopics.annotation._tables import agreement
from embedtopics.annotation.results import RecallTest, Stopping, StoppingOfClass, StudyReport
from embedtopics.classification._prevalence import predicted, prevalence
from embedtopics.classification.results import Prevalence
from embedtopics.errors import InputError
from embedtopics.evaluation._shares import wilson
from embedtopics.protocols import BoolArray, Float64Array

if TYPE_CHECKING:
    import pandas as pd

    from embedtopics.annotation._project import AnnotationProject
    from embedtopics.classification import TextClassifier

N_EXAMPLES = 3
ENOUGH = 2
"""Count texts with a label below which nothing is estimated."""


def shares(study: AnnotationProject, by: str | None = None, every: str = "year") -> Prevalence:
    """Return the share of each label among the distinct texts."""
    classifier, given = _sample(study)
    return prevalence(
        classifier, study._documents, given, by=by, every=every, random_state=study._seed
    )


def _sample(study: AnnotationProject) -> tuple[Any, list[Any]]:
    """Return a classifier taught by all other labels, and the labels of the count texts."""
    with study._lock:
        keys, _ = study.counted()
        if len(keys) < ENOUGH:
            remedy = "label more texts of the count stream"
            found = f"{len(keys)}"
            raise InputError("count texts", f"at least {ENOUGH}", remedy=remedy, found=found)
        given: list[Any] = [None] * len(study.keys)
        for key in keys:
            label = study._records.label_of(key) or ()
            given[study._row[key]] = list(label) if study.has_many else label[0]
        return study._classifier(set(keys)), given


def quality(study: AnnotationProject) -> pd.DataFrame:
    """Return figures of the count texts, each left out, and of the test part."""
    import pandas as pd

    classifier, given = _sample(study)
    known = predicted(classifier, study._documents, given, study._seed)
    rows = list(_figures("count", known.truth, known.guess, known.known, study))
    with study._lock:
        is_test = np.array([key in study._records.test for key in study.keys]) & known.known
        model = study._classifier(study._records.test)
    if is_test.any():
        found = model.fit_taught().of_rows(slice(None))
        guess = np.eye(found.shape[1])[found.argmax(axis=1)]
        if study.has_many:
            guess = (found >= 0.5).astype(np.float64)
        rows += list(_figures("test", known.truth, guess, is_test, study))
    return pd.DataFrame(rows, columns=["part", "class", "metric", "value", "low", "high", "n"])


def _figures(
    part: str, truth: Float64Array, guess: Float64Array, used: BoolArray, study: AnnotationProject
) -> Iterator[tuple[Any, ...]]:
    y, g = truth[used] > 0.5, guess[used] > 0.5
    yield (part, None, "accuracy", *_ratio(int((y == g).all(axis=1).sum()), len(y)))
    for place, name in enumerate(study._records.names):
        hits = int((y[:, place] & g[:, place]).sum())
        yield (part, name, "recall", *_ratio(hits, int(y[:, place].sum())))
        yield (part, name, "precision", *_ratio(hits, int(g[:, place].sum())))


def _ratio(hits: int, n: int) -> tuple[float, float, float, int]:
    """Return a share with Wilson's interval, and of how many it is; NaN for none."""
    if not n:
        return math.nan, math.nan, math.nan, 0
    low, high = wilson(hits, n)
    return hits / n, float(low), float(high), n


def classifier(study: AnnotationProject, method: str, options: dict[str, Any]) -> TextClassifier:
    """Return a classifier that has learned from all labels but the test part's."""
    from embedtopics.classification import TextClassifier

    with study._lock:
        known = dict(zip(*study._labelled(), strict=True))
    keys = [key for key in known if key not in study._records.test]
    if not keys:
        raise InputError("labels", "of texts outside the test part; label more texts", found="none")
    texts = [study._documents.texts[study._row[key]] for key in keys]
    given = [list(known[key]) if study.has_many else known[key][0] for key in keys]
    options = {"head": KINDS[study.kind], "classes": study._records.names, **options}
    return TextClassifier(method=method, **options).fit(texts, given)


def suspicious(study: AnnotationProject) -> pd.DataFrame:
    """Return labelled texts whose label is likely wrong."""
    from embedtopics.classification import TextClassifier, suspicious_labels

    if study.has_many:
        raise InputError("kind", "one label a text", study.kind)
    with study._lock:
        keys, labels = study._labelled()
    texts = [study._documents.texts[study._row[key]] for key in keys]
    given = [label[0] for label in labels]
    model = TextClassifier(
        study._vectors, "frozen", KINDS[study.kind], classes=study._records.names
    )
    found = suspicious_labels(model.fit(texts, given), texts, given)
    found.insert(0, "key", [keys[row] for row in found.pop("row")])
    return found


def report(study: AnnotationProject, by: str | None) -> StudyReport:
    """Return the study as it stands."""
    import pandas as pd

    found, frame = agreement(study), study.to_frame()
    tables = {"Codebook": pd.DataFrame(as_json(study.codebook))}
    shares_found = None
    with suppress(InputError):  # too few count texts
        shares_found = shares(study, by)
        known = quality(study)
        known["class"] = known["class"].fillna("all")
        tables["How well the model does on texts that it has not seen"] = known
    alpha = pd.DataFrame(found.alpha.items(), columns=["label", "Krippendorff's alpha"])
    if found.n_texts:
        tables[f"Agreement on {found.n_texts:,} texts of two annotators or more"] = alpha
        tables["Texts on which annotators differ"] = found.disagreements
    given = frame[frame["label"].notna() & frame["text"].notna()].explode("label")
    given = given[given["label"].notna()]
    # The first of the random order: nobody chose them.
    given = given.sort_values("probability", kind="stable", na_position="last")
    examples = given.groupby("label", sort=False).head(N_EXAMPLES)
    tables["Examples"] = examples.sort_values("label", kind="stable")[
        ["label", "id", "text", "note", "annotator", "stream"]
    ]
    return StudyReport(study.progress(), tables, shares_found, study.decisions)


def stopping(study: AnnotationProject, recall: float, confidence: float, further: int) -> Stopping:
    """Return for each label whether enough was found, and how narrow its share would become."""
    with study._lock:
        known = dict(zip(*study._labelled(), strict=True))
        is_counted = {key: study._records.stream_of(key) == "count" for key in known}
        n_counted = sum(is_counted.values())
        # Texts without a label are left out of the population: nothing is known of them.
        n_open = len(study.keys) - sum(
            key in study._row and key not in known for key in study._records.stacks
        )
        names = study._records.names
    widths = _widths(study, further)
    found = []
    for name in names:
        relevant = [key for key, label in known.items() if name in label]
        k = sum(is_counted[key] for key in relevant)
        test = recall_test(n_open, len(known) - n_counted, len(relevant) - k, n_counted, k,
                           recall=recall, confidence=confidence)  # fmt: skip
        found.append(StoppingOfClass(name, test, *widths.get(name, (math.nan, math.nan)), further))
    return Stopping(tuple(found))


def _widths(study: AnnotationProject, further: int) -> dict[str, tuple[float, float]]:
    """Return how wide the interval of each share is, and is to be expected after more labels."""
    try:
        now = shares(study)
    except InputError:
        return {}
    found = {}
    for one in now.shares:
        n, width = one.n_labelled, one.high - one.low
        before = one.residual_variance / max(n, 1) + one.prediction_variance
        after = one.residual_variance / (n + further) + one.prediction_variance
        # Without any variance yet, as of an interval of n trials.
        factor = after / before if before > 0 else n / (n + further)
        found[one.name] = width, width * math.sqrt(factor)
    return found


def recall_test(
    n_texts: int,
    n_taught: int,
    taught_relevant: int,
    n_counted: int,
    counted_relevant: int,
    *,
    recall: float = 0.95,
    confidence: float = 0.95,
) -> RecallTest:
    """Test whether enough of the relevant texts were found.

    The counted texts are a random sample of those that were not taught. Under the hypothesis that
    recall is below the target at least K = floor((r + k) / recall - r) + 1 relevant texts were
    among these, with r relevant texts taught and k counted; P(X <= k) for X hypergeometric is its
    p-value (Callaghan and Mueller-Hansen 2020, "Statistical stopping criteria for automated
    screening in systematic reviews", equations 5 to 7). Looking after every label and stopping at
    the first small value makes errors more frequent than one look does.

    Parameters
    ----------
    n_texts : int
        In the corpus.
    n_taught, taught_relevant : int
        Labelled texts that a strategy picked, and the relevant ones among them.
    n_counted, counted_relevant : int
        Labelled texts that were drawn at random, and the relevant ones among them.
    recall : float
        Share of the relevant texts that is to be found.
    confidence : float
        Of the test and of the bound.

    Returns
    -------
    RecallTest

    Raises
    ------
    InputError
        Where a count is negative or larger than what it is a part of.
    """
    from scipy.stats import hypergeom

    counts = {
        "n_texts": n_texts, "n_taught": n_taught, "taught_relevant": taught_relevant,
        "n_counted": n_counted, "counted_relevant": counted_relevant,
    }  # fmt: skip
    for name, value in counts.items():
        checked_count(value, name, 0)
    whole = {"n_taught": n_texts, "taught_relevant": n_taught, "counted_relevant": n_counted,
             "n_counted": n_texts - n_taught}  # fmt: skip
    for name, most in whole.items():
        if counts[name] > most:
            raise InputError(name, f"at most {most}", counts[name])
    target, level = checked_level(recall, "recall"), 1.0 - checked_level(confidence)
    rest, k, found = n_texts - n_taught, counted_relevant, taught_relevant + counted_relevant
    missing = math.floor(found / target - taught_relevant + 1e-9) + 1
    p = float(hypergeom.cdf(k, rest, missing, n_counted)) if missing <= rest else 0.0
    # The most relevant texts with which so few among the counted are not too unlikely.
    low, high = k, rest - (n_counted - k)
    while low < high:
        middle = (low + high + 1) // 2
        if hypergeom.cdf(k, rest, middle, n_counted) >= level:
            low = middle
        else:
            high = middle - 1
    bound = found / (taught_relevant + low) if taught_relevant + low else 0.0
    return RecallTest(found, p, bound, target, p < level and found > 0)
