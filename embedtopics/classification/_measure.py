"""Predict a corpus and measure it: labels of a random sample, and predictions of all texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from embedtopics._utils.checks import resolve_seed
from embedtopics.classification._heads import (
    grouped_folds,
    n_folds_for,
    near_duplicates,
)
from embedtopics.classification._targets import read_targets
from embedtopics.corpus._alignment import align_values
from embedtopics.corpus._corpus import Corpus, as_corpus
from embedtopics.corpus._texts import TEXT
from embedtopics.encoders._cache import keys_of
from embedtopics.errors import InputError
from embedtopics.inference import Measurement
from embedtopics.inference._sample import Sample, balance_notes
from embedtopics.protocols import BoolArray, Float64Array, Int64Array, RandomState
from embedtopics.results import Decision

if TYPE_CHECKING:
    import pandas as pd

    from embedtopics.classification._classifier import TextClassifier

N_FOLDS = 5


class CorpusPredictions(NamedTuple):
    """Labels and predictions of the texts of a corpus; rows without text are left out."""

    classes: npt.NDArray[Any]
    probabilities: Float64Array  # (n_texts, n_classes), cross-fitted for labelled texts
    truth: Float64Array  # (n_texts, n_classes), 0 without a label
    has_label: BoolArray  # (n_texts,)
    predicted: Float64Array  # (n_texts, n_classes), 1 for predicted classes
    learned: BoolArray  # (n_texts,), texts that the classifier which predicts them learned from
    decisions: tuple[Decision, ...]


MIN_NEW = 30
"""Labels of texts that a classifier did not learn from, with which it is not fitted again."""


def measure(
    classifier: TextClassifier,
    corpus: Any,
    gold: Any,
    *,
    probability: Any = None,
    units: Any = None,
    name: str = "class",
    random_state: RandomState = 0,
) -> Measurement:
    """Measure a corpus; see `Measurement.from_classifier`, which calls it."""
    read = as_corpus(corpus)
    seed = resolve_seed(random_state)
    unit = _units(read, units)
    predictions = predict_corpus(classifier, read, gold, seed, unit)
    rows = np.flatnonzero(read.status == TEXT)
    has_label = predictions.has_label

    weight = has_label.astype(np.float64)
    chance = None
    if probability is not None:
        chance = _chances(read, probability, has_label, rows)
        weight[has_label] /= chance[has_label]

    # Labels of texts that the classifier learned from are a sample of these texts alone.
    learned = predictions.learned
    decisions = list(predictions.decisions)
    is_kept = np.ones(len(rows), dtype=np.bool_)
    n_learned = int(learned.sum())
    n_labels = int((learned & has_label).sum())
    if n_labels >= 2:
        message = (
            f"{n_labels:,} labels are of texts that the classifier learned from. They count for "
            f"the {n_learned:,} rows with such texts alone."
        )
        decisions.append(Decision("classification", "learned_stratum", n_labels, message))
    elif n_learned:
        is_kept = ~learned
        message = (
            f"{n_learned:,} rows with texts that the classifier learned from are left out, because "
            f"{n_labels or 'none'} of them has a label here. To include them, add their labels."
        )
        decisions.append(Decision("classification", "learned_left_out", n_learned, message))
    sample = Sample.of(weight[is_kept], learned[is_kept], unit[is_kept])

    naive = predictions.predicted[is_kept]
    is_cross_fitted = any(decision.name == "cross_fitted" for decision in decisions)
    chance = sample.chances() if chance is None else chance[is_kept]
    if not is_cross_fitted and not np.isnan(chance).any():
        names = predictions.classes.tolist()
        decisions += balance_notes(naive, names, sample, chance, "the classifier")

    return Measurement._of_columns(
        name=name,
        classes=tuple(predictions.classes.tolist()),
        truth=predictions.truth[is_kept],
        proxy=predictions.probabilities[is_kept],
        naive=naive,
        sample=sample,
        data=read.metadata.iloc[rows[is_kept]].reset_index(drop=True),
        decisions=tuple(decisions),
    )


def _units(corpus: Corpus, units: Any) -> Int64Array:
    """Return the unit of each text, (n_texts,), which holds all rows of the text."""
    import pandas as pd
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    rows = np.flatnonzero(corpus.status == TEXT)
    of_text = near_duplicates([corpus.texts[row] for row in rows.tolist()], None)
    if units is None:
        return of_text
    codes = pd.factorize(pd.Series(list(_column(corpus, units, "units"))).iloc[rows])[0]
    if (codes < 0).any():
        raise InputError("units", "present in every row", None, row=int(rows[(codes < 0).argmax()]))
    n = len(rows) + int(codes.max()) + 1
    links = coo_matrix((np.ones(len(rows)), (of_text, len(rows) + codes)), shape=(n, n))
    return np.asarray(connected_components(links, directed=False)[1][of_text], dtype=np.int64)


def predict_corpus(
    classifier: TextClassifier,
    corpus: Corpus,
    gold: Any,
    seed: int,
    unit: Int64Array | None = None,
) -> CorpusPredictions:
    """Predict a corpus; labelled texts by models that were not fitted on their units."""
    unit = _units(corpus, None) if unit is None else unit
    rows = np.flatnonzero(corpus.status == TEXT)
    texts = [corpus.texts[row] for row in rows.tolist()]

    is_fitted = hasattr(classifier, "head_")
    classes = classifier.classes_ if is_fitted else classifier.classes
    values = _column(corpus, gold, "gold")
    targets = read_targets(values, classifier.head, classes, learned=is_fitted)
    has_label = targets.has_label[rows]
    codes = targets.codes[rows]
    if has_label.sum() < 2:
        raise InputError("gold", "labels of at least 2 texts", found=f"{int(has_label.sum())}")

    n_classes = len(targets.classes)
    truth = codes if codes.ndim == 2 else np.eye(n_classes)[np.maximum(codes, 0)]
    truth = np.where(has_label[:, None], truth, 0).astype(np.float64)
    sample = np.flatnonzero(has_label)
    decisions = targets.notes
    learned = np.zeros(len(rows), dtype=np.bool_)
    n_new = 0
    if is_fitted:
        training_keys = set(map(tuple, classifier.training_keys_.tolist()))
        keys = map(tuple, keys_of(texts).tolist())
        learned = np.array([key in training_keys for key in keys], dtype=np.bool_)
        n_new = int((~learned[sample]).sum())

    if 2 * n_new >= len(sample) + 2 or n_new >= MIN_NEW:
        chances = classifier.predict_proba(texts)
    else:
        learned = np.zeros(len(rows), dtype=np.bool_)
        chances, n_folds = _cross_predict(
            classifier, texts, sample, codes, targets.classes, seed, unit
        )
        message = (
            f"The classifier was fitted {n_folds} times on the labelled texts, each time without "
            "the texts that it then predicted."
        )
        decisions += (Decision("classification", "cross_fitted", n_folds, message),)

    guess = chances >= 0.5 if codes.ndim == 2 else np.eye(n_classes)[chances.argmax(axis=1)]
    return CorpusPredictions(
        classes=targets.classes,
        probabilities=chances,
        truth=truth,
        has_label=has_label,
        predicted=guess.astype(np.float64),
        learned=learned,
        decisions=decisions,
    )


def _cross_predict(
    classifier: TextClassifier,
    texts: list[str],
    sample: Int64Array,
    codes: Int64Array,
    classes: npt.NDArray[Any],
    seed: int,
    unit: Int64Array,
) -> tuple[Float64Array, int]:
    """Predict units of the sample by models that left them out, others by the mean of the models.

    Rows without a label are predicted like the labelled rows of their unit, or else the errors of
    the labelled rows would not stand for theirs.
    """
    learned, codes = [texts[i] for i in sample.tolist()], codes[sample]
    y: Any = codes if codes.ndim == 2 else classes[codes]
    n_folds = n_folds_for(codes, N_FOLDS)
    folds = grouped_folds(codes, unit[sample], n_folds, seed)
    numbers = np.unique(folds).tolist()
    of_unit = np.full(int(unit.max()) + 1, -1)
    of_unit[unit[sample]] = folds
    of_row = of_unit[unit]
    chances = np.zeros((len(texts), len(classes)))
    for fold in numbers:
        train = np.flatnonzero(folds != fold)
        model: TextClassifier = clone(classifier)
        model.fit([learned[i] for i in train.tolist()], y[train])
        columns = np.arange(len(classes))
        if codes.ndim == 1:
            columns = np.array([classes.tolist().index(one) for one in model.classes_.tolist()])
        part = np.where(of_row == fold, 1.0, np.where(of_row < 0, 1 / len(numbers), 0.0))
        chances[:, columns] += model.predict_proba(texts) * part[:, None]
    return chances, len(numbers)


def _column(corpus: Corpus, values: Any, parameter: str) -> Sequence[Any]:
    """Return one value for each row, from a column of the corpus or a sequence."""
    if isinstance(values, str):
        return list(_metadata(corpus, [values], parameter)[values])
    aligned = align_values(values, corpus, parameter, "one value for each row of the corpus")
    if getattr(aligned, "ndim", 1) != 1:
        return aligned  # type: ignore[no-any-return]
    return list(aligned)


def _metadata(corpus: Corpus, names: Sequence[str], parameter: str) -> pd.DataFrame:
    """Return columns of the metadata, or refuse names that it does not have."""
    missing = [name for name in names if name not in corpus.metadata.columns]
    if missing or not names:
        columns = ", ".join(map(str, corpus.metadata.columns)) or "none"
        raise InputError(parameter, f"among the columns of the corpus: {columns}", missing)
    return corpus.metadata[list(names)]


def _chances(
    corpus: Corpus, probability: Any, has_label: BoolArray, rows: Int64Array
) -> Float64Array:
    """Return the sampling probability of each text, (n_texts,)."""
    import pandas as pd

    values = pd.Series(list(_column(corpus, probability, "probability")))
    chances = values.to_numpy(dtype=np.float64, na_value=np.nan)
    wrong = (chances <= 0) | (chances > 1)
    wrong[rows[has_label]] |= np.isnan(chances[rows[has_label]])
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        remedy = "leave texts that could not be drawn out of the corpus"
        raise InputError("probability", "above 0, up to 1", float(chances[row]), remedy, row=row)
    return np.asarray(chances[rows])
