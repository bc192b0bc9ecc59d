"""Estimate the share of each class in a corpus, corrected for the classifier's errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from embedtopics._utils.checks import resolve_seed
from embedtopics.classification._heads import (
    confusion_of,
    grouped_folds,
    n_folds_for,
    near_duplicates,
    probabilities,
)
from embedtopics.classification._targets import read_targets
from embedtopics.corpus._alignment import align_values
from embedtopics.corpus._corpus import Corpus
from embedtopics.corpus._texts import TEXT
from embedtopics.encoders._cache import keys_of
from embedtopics.errors import InputError
from embedtopics.inference import Measurement, shares
from embedtopics.inference._sample import Sample, balance_notes
from embedtopics.inference._shares import groups_of
from embedtopics.inference.results import MeasuredShare, MeasuredShares
from embedtopics.protocols import BoolArray, Float64Array, Int64Array, RandomState
from embedtopics.results import Decision

if TYPE_CHECKING:
    import pandas as pd

    from embedtopics.classification._classifier import TextClassifier

N_FOLDS, N_RESAMPLES = 5, 400


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


def prevalence(
    classifier: TextClassifier,
    corpus: Any,
    labelled: Any = None,
    *,
    by: str | None = None,
    every: str = "year",
    probability: Any = None,
    random_state: RandomState = 0,
) -> MeasuredShares:
    """Estimate the share of each class in a corpus, with 95 % intervals.

    Shares of predicted classes are biased by the classifier's errors. Labels of a random sample of
    the same corpus correct this bias for any classifier; a better classifier gives narrower
    intervals. See `measure` and `embedtopics.inference.shares`.

    Parameters
    ----------
    classifier, corpus, probability, random_state
        See `measure`.
    labelled : sequence or str, optional
        See `measure`. Without labels, the classifier's errors on texts left out of its fit stand
        for its errors on the corpus: adjusted count (Forman 2008). This is valid only if the shares
        of the classes are the only difference between both (prior shift).
    by : str, optional
        Column of groups or dates; "time" and "group" name those of the corpus.
    every : {"year", "quarter", "month", "week", "day"}
        Period of dates.

    Returns
    -------
    MeasuredShares
    """
    read = Corpus.of(corpus)
    roles = {"time": read.time_column, "group": read.group_column}
    by = None if by is None else roles.get(by) or by
    if labelled is not None:
        measured = measure(
            classifier, read, labelled, probability=probability, random_state=random_state
        )
        return shares(measured, by, every=every)
    if probability is not None:
        raise InputError("probability", "left out without labels")
    rows = np.flatnonzero(read.status == TEXT)
    names, cells = groups_of(read.metadata.iloc[rows], by, every)
    texts = [read.texts[row] for row in rows.tolist()]
    groups = [(name, cells == cell) for cell, name in enumerate(names)] or [(None, cells == 0)]
    seed = resolve_seed(random_state)
    estimates, decision = _shares_without_labels(classifier, texts, groups, seed)
    columns = () if by is None else (by,)
    return MeasuredShares(tuple(estimates), (decision,), name="class", by=columns)


def measure(
    classifier: TextClassifier,
    corpus: Any,
    labelled: Any,
    *,
    probability: Any = None,
    units: Any = None,
    random_state: RandomState = 0,
) -> Measurement:
    """Measure a corpus: labels of a random sample, and predictions of all texts.

    Parameters
    ----------
    classifier : TextClassifier
        Fitted on any texts. Texts of the corpus that it learned from need not be a random sample:
        they are a stratum of their own, whose labels count for no other text, and are left out if
        fewer than two of them have a label here. Without a fit, or if nearly all labels are of such
        texts, it is cross-fitted on the labelled texts.
    corpus : Corpus, or any input of `Corpus`
    labelled : sequence or str
        One label for each row, None for rows without a label; or the column of the labels. The
        labelled rows must have been drawn at random, those that the classifier learned from aside.
    probability : sequence or str, optional
        Probability of each row to be drawn for labelling, or its column, if it differs by row.
    units : sequence or str, optional
        Independent unit of each row, such as its author, or its column; by default each text. In a
        cross-fit, no row is predicted by a classifier that learned from its unit.
    random_state : int, Generator or None
        Seed of folds.

    Returns
    -------
    Measurement
        Of the rows with text, for `embedtopics.inference`; its name is "class". Rows of one text
        are in one unit.

    Raises
    ------
    InputError
        If rows, labels or probabilities are invalid; the message names the row.
    """
    read = Corpus.of(corpus)
    seed = resolve_seed(random_state)
    unit = _units(read, units)
    predictions = predict_corpus(classifier, read, labelled, seed, unit)
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

    return Measurement.of_columns(
        name="class",
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
    labelled: Any,
    seed: int,
    unit: Int64Array | None = None,
) -> CorpusPredictions:
    """Predict a corpus; labelled texts by models that were not fitted on their units."""
    unit = _units(corpus, None) if unit is None else unit
    rows = np.flatnonzero(corpus.status == TEXT)
    texts = [corpus.texts[row] for row in rows.tolist()]

    is_fitted = hasattr(classifier, "head_")
    classes = classifier.classes_ if is_fitted else classifier.classes
    values = _column(corpus, labelled, "labelled")
    targets = read_targets(values, classifier.head, classes, learned=is_fitted)
    has_label = targets.has_label[rows]
    codes = targets.codes[rows]
    if has_label.sum() < 2:
        raise InputError("labelled", "labels of at least 2 texts", found=f"{int(has_label.sum())}")

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


def _shares_without_labels(
    classifier: TextClassifier,
    texts: list[str],
    groups: list[tuple[Any, BoolArray]],
    seed: int,
) -> tuple[list[MeasuredShare], Decision]:
    check_is_fitted(classifier, "head_")
    left_out = classifier.left_out_scores_, classifier.left_out_codes_
    if classifier.head == "multilabel" or not len(left_out[0]):
        remedy = "fit it with a calibration, or give labels of some texts of the corpus"
        expected = "of one label per text, with scores of left-out texts"
        raise InputError("classifier", expected, classifier, remedy)

    scores = classifier._scores(texts)
    guess = classifier.calibration_.apply(scores).argmax(axis=1)
    estimates: list[MeasuredShare] = []

    for group, members in groups:
        shares, lows, highs = shifted_shares(classifier.head, left_out, scores[members], seed)
        for code, name in enumerate(classifier.classes_.tolist()):
            value = float(shares[code])
            low = float(lows[code])
            high = float(highs[code])
            naive = float((guess[members] == code).mean())
            n = int(members.sum())
            share = MeasuredShare(group, name, n, 0, value, low, high, naive=naive)
            estimates.append(share)

    message = (
        "No text of the corpus has a label. The shares are valid only if the texts of each class "
        "are like those in the training data, so that only the shares differ (prior shift)."
    )
    return estimates, Decision("classification", "prior_shift", "adjusted", message)


def adjusted_count(confusion: Float64Array, shares: Float64Array) -> Float64Array:
    """Return the class shares that explain the predicted shares (Forman 2008), on the simplex."""
    from scipy.optimize import nnls

    # Rows are true classes. A heavy last equation makes the shares add up to 1.
    heavy = 1e4
    equations = np.vstack([confusion.T, np.full(len(confusion), heavy)])
    solution = nnls(equations, np.append(shares, heavy))[0]
    return np.asarray(solution / max(solution.sum(), 1e-12))


def shifted_shares(
    kind: str, left_out: tuple[Float64Array, Int64Array], scores: Float64Array, seed: int
) -> tuple[Float64Array, Float64Array, Float64Array]:
    """Return shares of texts without labels, (n_classes,), and the ends of their intervals.

    `left_out` holds scores and classes; both sets of texts are resampled, these within classes.
    """
    left_out_scores, codes = left_out
    rng = np.random.default_rng(seed)
    classes = [np.flatnonzero(codes == k) for k in np.unique(codes)]
    value, drawn = _adjusted_shares(kind, left_out_scores, codes, scores), []
    for _ in range(N_RESAMPLES):
        rows = np.concatenate([rng.choice(part, len(part)) for part in classes])
        texts = rng.integers(0, len(scores), len(scores))
        drawn.append(_adjusted_shares(kind, left_out_scores[rows], codes[rows], scores[texts]))
    low, high = np.quantile(drawn, [0.025, 0.975], axis=0)
    return value, low, high


def _adjusted_shares(
    kind: str, left_out: Float64Array, codes: Int64Array, scores: Float64Array
) -> Float64Array:
    guess, predicted = (probabilities(kind, s).argmax(axis=1) for s in (left_out, scores))
    n_classes = scores.shape[1] + (kind == "ordinal")
    table = confusion_of(codes, guess, n_classes)
    rates = table / np.maximum(table.sum(axis=1, keepdims=True), 1)
    return adjusted_count(rates, np.bincount(predicted, minlength=n_classes) / len(scores))
