"""Estimate the share of each class in a corpus without labels, by the errors of the classifier."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from embedtopics._utils.checks import resolve_seed
from embedtopics.classification._heads import confusion_of, probabilities
from embedtopics.corpus._corpus import as_corpus
from embedtopics.corpus._texts import TEXT
from embedtopics.errors import InputError
from embedtopics.inference._shares import groups_of
from embedtopics.inference.results import MeasuredShares, shares_table
from embedtopics.protocols import BoolArray, Float64Array, Int64Array, RandomState
from embedtopics.results import Decision

if TYPE_CHECKING:
    from embedtopics.classification._classifier import TextClassifier

N_RESAMPLES = 400


def adjusted_shares(
    classifier: TextClassifier,
    corpus: Any,
    by: str | None = None,
    *,
    every: str = "year",
    random_state: RandomState = 0,
) -> MeasuredShares:
    """Estimate the share of each class in a corpus without labels, with 95 % intervals.

    The classifier's errors on texts left out of its fit stand for its errors on the corpus:
    adjusted count (Forman 2008). This is valid only if the shares of the classes are the only
    difference between both (prior shift). Where people can label a random sample of the corpus, use
    `embedtopics.inference.shares` of ``Measurement.from_classifier``, which needs no such
    assumption.

    Parameters
    ----------
    classifier : TextClassifier
        A fitted classifier of one label per text, with a calibration.
    corpus : Corpus, or any input of `Corpus`
    by : str, optional
        Column of groups or dates.
    every : {"year", "quarter", "month", "week", "day"}
        Period of dates.
    random_state : int, Generator or None
        Seed of the resamples.

    Returns
    -------
    MeasuredShares

    Raises
    ------
    InputError
        If there is no such column, or the classifier has no scores of left-out texts.

    Examples
    --------
    >>> import embedtopics as et
    >>> texts = ["ripe plums", "late trains", "sweet pears", "slow trains"]
    >>> labels = ["fruit", "rail", "fruit", "rail"]
    >>> classifier = et.TextClassifier("tfidf").fit(texts, labels)
    >>> corpus = ["plums in a jar", "late, late", "sweet plums", "slow trains again"]
    >>> shares = et.classification.adjusted_shares(classifier, corpus)
    >>> shares.to_frame()[["class", "n", "naive"]]
       class  n  naive
    0  fruit  4    0.5
    1   rail  4    0.5
    """
    if not hasattr(classifier, "predict_proba"):
        remedy = "pass it first: adjusted_shares(classifier, corpus)"
        raise InputError("classifier", "a fitted TextClassifier", classifier, remedy)
    read = as_corpus(corpus)
    rows = np.flatnonzero(read.status == TEXT)
    names, cells = groups_of(read.metadata.iloc[rows], by, every)
    texts = [read.texts[row] for row in rows.tolist()]
    groups = [(name, cells == cell) for cell, name in enumerate(names)] or [(None, cells == 0)]
    seed = resolve_seed(random_state)
    estimates, decision = _shares_without_labels(classifier, texts, groups, seed)
    columns = () if by is None else (by,)
    return MeasuredShares(
        table=shares_table(estimates), name="class", by=columns, decisions=(decision,)
    )


def _shares_without_labels(
    classifier: TextClassifier,
    texts: list[str],
    groups: list[tuple[Any, BoolArray]],
    seed: int,
) -> tuple[list[dict[str, Any]], Decision]:
    check_is_fitted(classifier, "head_")
    left_out = classifier.left_out_scores_, classifier.left_out_codes_
    if classifier.head == "multilabel" or not len(left_out[0]):
        remedy = "fit it with a calibration, or give labels of some texts of the corpus"
        expected = "of one label per text, with scores of left-out texts"
        raise InputError("classifier", expected, classifier, remedy)

    scores = classifier._scores(texts)
    guess = classifier.calibration_.apply(scores).argmax(axis=1)
    estimates: list[dict[str, Any]] = []

    for group, members in groups:
        shares, lows, highs = shifted_shares(classifier.head, left_out, scores[members], seed)
        for code, name in enumerate(classifier.classes_.tolist()):
            estimates.append(
                {
                    "group": group,
                    "class": name,
                    "n": int(members.sum()),
                    "n_gold": 0,
                    "estimate": float(shares[code]),
                    "low": float(lows[code]),
                    "high": float(highs[code]),
                    "naive": float((guess[members] == code).mean()),
                }
            )

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
