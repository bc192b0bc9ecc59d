"""Evaluate a classifier: scores with intervals, baselines, likely label errors."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from embedtopics.classification._classifier import TextClassifier, check_classifier
from embedtopics.classification._heads import (
    calibration_error,
    confusion_of,
    kappa,
    near_duplicates,
    precision_recall_f1,
    risk_coverage,
)
from embedtopics.classification._targets import (
    LabelledTexts,
)
from embedtopics.classification.results import ClassificationReport
from embedtopics.encoders._cache import keys_of
from embedtopics.errors import InputError
from embedtopics.evaluation._bootstrap import bounded_interval, resampled_sums
from embedtopics.protocols import Float64Array, Int64Array
from embedtopics.results import Decision

if TYPE_CHECKING:
    import pandas as pd

N_RESAMPLES = 1000


def evaluate(
    classifier: TextClassifier,
    test: tuple[Sequence[str], Any],
    train: tuple[Sequence[str], Any],
) -> ClassificationReport:
    """Measure a classifier on labelled texts that it was not fitted on, with baselines.

    Baselines are the most frequent class, logistic regression on TF-IDF and, where the encoder was
    trained, the encoder before training.

    The classifier counts its evaluations on these texts: a change made because of one evaluation
    makes the next figures too high.

    Parameters
    ----------
    classifier : TextClassifier
        A fitted classifier.
    test, train : pair of texts and labels
        `train` holds the texts that the classifier was fitted on; the baselines learn from them.
        Texts without a label, or with different labels in different rows, are left out.

    Returns
    -------
    ClassificationReport

    Raises
    ------
    InputError
        If a test label is not among the classes; the message names the row.

    Examples
    --------
    >>> import embedtopics as et
    >>> texts = ["ripe plums", "late trains", "sweet pears", "slow trains"]
    >>> labels = ["fruit", "rail", "fruit", "rail"]
    >>> classifier = et.TextClassifier("tfidf").fit(texts, labels)
    >>> test = ["plum jam with plums", "many trains"], ["fruit", "rail"]
    >>> report = et.classification.evaluate(classifier, test, (texts, labels))
    >>> report.to_frame().query("metric == 'accuracy'")[["of", "value", "n"]]
                                 of  value  n
    0                    classifier    1.0  2
    9                 most frequent    0.5  2
    12  TF-IDF, logistic regression    1.0  2
    """
    import pandas as pd

    check_classifier(classifier, "et.classification.evaluate(classifier, test, train)")
    head = classifier.head
    classes = classifier.classes_
    tested = classifier._labelled(*test, classes, True)
    learned = classifier._labelled(*train, classes, True)
    texts = tested.texts
    codes = tested.codes
    if not texts:
        raise InputError("test", "labelled texts", found="none")

    vectors = classifier._vectors(texts)
    groups = near_duplicates(texts, vectors)
    chances = classifier.calibration_.apply(classifier.head_.scores(vectors))
    rows = list(_scores("classifier", classifier, chances, codes, groups))

    notes = [decision for decision in classifier.decisions_ if decision.name == "method"]
    notes += tested.notes

    baselines = list(_baselines(classifier, learned, texts))
    if classifier.method_ != "frozen":
        try:
            baselines.append(("frozen", _predicted(classifier.encoder, classifier, learned, texts)))
        except OSError as missing:
            message = f"The encoder without training could not be measured: {missing}"
            notes.append(Decision("classification", "baseline", "frozen", message))

    for name, guess in baselines:
        every = _scores(name, classifier, guess, codes, groups)
        rows += [score for score in every if score["class"] is None]

    confidence = chances.ravel()
    right = codes.ravel()
    confusion = None
    curve = None
    if codes.ndim == 1:
        best = chances.argmax(axis=1)
        confidence = chances.max(axis=1)
        right = best == codes
        confusion = confusion_of(codes, best, chances.shape[1])
        curve = risk_coverage(confidence, right)
    error, bins = calibration_error(confidence, right)

    table = pd.DataFrame(rows)
    table["class"] = pd.Series([row["class"] for row in rows], dtype=object)  # None beside numbers

    # The same texts in another order are the same test.
    keys = keys_of(texts)
    name = hashlib.sha256(keys[np.lexsort(keys.T)].tobytes()).hexdigest()[:32]
    classifier.test_log_[name] = n_looks = classifier.test_log_.get(name, 0) + 1

    return ClassificationReport(
        table=table,
        decisions=(*notes, *_warnings(texts, learned.texts, n_looks)),
        classes=tuple(classes.tolist()),
        head=head,
        confusion=confusion,
        calibration_error=error,
        calibration=bins,
        risk_coverage=curve,
        n=len(texts),
        n_groups=len(np.unique(groups)),
        n_looks=n_looks,
    )


def _warnings(texts: list[str], learned: list[str], n_looks: int) -> Iterator[Decision]:
    training_keys = set(map(tuple, keys_of(learned).tolist()))
    n = sum(tuple(key) in training_keys for key in keys_of(texts).tolist())
    if n:
        message = f"{n:,} of the test texts are training texts: the figures are too high."
        yield Decision("classification", "overlap", n, message)
    if n_looks > 1:
        message = (
            f"This classifier was evaluated {n_looks} times on these texts. Changes made because "
            "of earlier evaluations make the figures too high and the intervals too narrow."
        )
        yield Decision("classification", "looks", n_looks, message)


def _scores(
    of: str,
    classifier: TextClassifier,
    chances: Float64Array,
    codes: Int64Array,
    groups: Int64Array,
) -> Iterator[dict[str, Any]]:
    """Yield the scores of probabilities (n_texts, n_classes), with intervals over groups."""
    n, n_classes = chances.shape
    one_hot = np.eye(n_classes, dtype=np.int64)
    is_multilabel, is_ordinal = codes.ndim == 2, classifier.head == "ordinal"
    truth = codes if is_multilabel else one_hot[codes]
    guess = (chances >= 0.5).astype(np.int64) if is_multilabel else one_hot[chances.argmax(axis=1)]
    right = (truth == guess).all(axis=1)
    counts = [truth & guess, truth, guess, right[:, None], np.ones((n, 1), dtype=np.int64)]
    if is_ordinal:
        cells = codes * n_classes + chances.argmax(axis=1)
        counts.append(np.eye(n_classes**2, dtype=np.int64)[cells])
    columns = np.concatenate(counts, axis=1)
    numbered = np.unique(groups, return_inverse=True)[1]
    sums = np.zeros((int(numbered.max()) + 1, columns.shape[1]))
    np.add.at(sums, numbered, columns)
    whole = _figures(columns.sum(axis=0, keepdims=True).astype(np.float64), n_classes, is_ordinal)
    resampled = _figures(resampled_sums(sums, N_RESAMPLES, 0), n_classes, is_ordinal)
    n_units = (sums > 0).sum(axis=0)
    recall, precision = n_units[n_classes : 2 * n_classes], n_units[2 * n_classes : 3 * n_classes]
    units = {"recall": recall, "precision": precision, "f1": np.maximum(recall, precision)}
    scales = {"quadratic kappa": (-1.0, 1.0), "mean absolute error": (0.0, n_classes - 1.0)}
    for metric, value in whole.items():
        ends = bounded_interval(
            value[0],
            resampled[metric],
            units.get(metric, len(sums)),
            bounds=scales.get(metric, (0.0, 1.0)),
        )
        is_by_class = metric in units
        names = classifier.classes_.tolist() if is_by_class else [None]
        sizes = truth.sum(axis=0).tolist() if is_by_class else [n]
        figures = np.stack([value[0], *ends]).reshape(3, -1).T.tolist()
        for name, (figure, low, high), size in zip(names, figures, sizes, strict=True):
            yield {
                "of": of,
                "class": name,
                "metric": metric,
                "value": figure,
                "low": low,
                "high": high,
                "n": size,
            }


def _figures(sums: Float64Array, n_classes: int, is_ordinal: bool) -> dict[str, Float64Array]:
    """Return figures (n_tables, ...) of summed columns (n_tables, n_columns)."""
    hits, true, predicted = (sums[:, i * n_classes : (i + 1) * n_classes] for i in range(3))
    right, total = sums[:, 3 * n_classes], sums[:, 3 * n_classes + 1]
    by_class = precision_recall_f1(hits, true, predicted)
    figures = {
        "accuracy": right / total,
        "macro F1": by_class["f1"].mean(axis=1),
        "micro F1": 2 * hits.sum(axis=1) / np.maximum((true + predicted).sum(axis=1), 1),
    }
    if is_ordinal:
        tables = sums[:, 3 * n_classes + 2 :].reshape(-1, n_classes, n_classes)
        ranks = np.arange(n_classes)
        distances = np.abs(ranks[:, None] - ranks)
        figures["quadratic kappa"] = kappa(tables)
        figures["mean absolute error"] = (tables * distances).sum(axis=(1, 2)) / total
    return {**figures, **by_class}


def _baselines(
    like: TextClassifier, learned: LabelledTexts, texts: list[str]
) -> Iterator[tuple[str, Float64Array]]:
    """Yield the probabilities of the most frequent class and of logistic regression on TF-IDF."""
    codes, n_classes = learned.codes, len(learned.classes)
    shares = codes.mean(axis=0) if codes.ndim == 2 else np.bincount(codes, minlength=n_classes)
    yield "most frequent", np.tile(np.asarray(shares, dtype=np.float64), (len(texts), 1))
    if codes.ndim == 1 and len(np.unique(codes)) < n_classes:
        return
    yield "TF-IDF, logistic regression", _predicted("tfidf", like, learned, texts)


def _predicted(
    encoder: Any, like: TextClassifier, learned: LabelledTexts, texts: list[str]
) -> Float64Array:
    """Return the probabilities of a frozen encoder with logistic regression."""
    codes = learned.codes
    y: Any = codes if codes.ndim == 2 else codes.tolist()
    order = list(range(len(learned.classes))) if like.head == "ordinal" else None
    options: dict[str, Any] = {"head": like.head, "pairs": like.pairs, "classes": order}
    model = TextClassifier(encoder, calibration=None, **options)
    return model.fit(learned.texts, y).predict_proba(texts)


def suspicious_labels(classifier: TextClassifier, texts: Sequence[str], y: Any) -> pd.DataFrame:
    """Return the training texts with a likely wrong label, the most likely first.

    Confident learning (Northcutt et al. 2021, equation 2): a text belongs to another class if its
    cross-fitted probability of that class is at least the mean probability of that class among the
    texts labelled with it.

    Parameters
    ----------
    classifier : TextClassifier
        Fitted with a calibration on `texts` and `y`, in this order.
    texts, y : sequence
        The arguments of `fit`.

    Returns
    -------
    DataFrame
        Columns row, text, label, suggested, probability (of the label) and of_suggested.

    Examples
    --------
    >>> import embedtopics as et
    >>> texts = ["ripe plums", "late trains", "plums", "slow trains", "plum plums", "more trains"]
    >>> labels = ["fruit", "rail", "fruit", "rail", "fruit", "fruit"]  # the last one is wrong
    >>> classifier = et.TextClassifier("tfidf").fit(texts, labels)
    >>> suspects = et.classification.suspicious_labels(classifier, texts, labels)
    >>> suspects[["row", "label", "suggested"]]
       row  label suggested
    0    5  fruit      rail
    """
    import pandas as pd

    check_classifier(classifier, "et.classification.suspicious_labels(classifier, texts, y)")
    learned = classifier._labelled(texts, y, classifier.classes_, learned=True)
    if not np.array_equal(keys_of(learned.texts), classifier.training_keys_):
        raise InputError("texts", "the texts of the fit, in the same order", found="others")
    is_cross_fitted = classifier.method != "fine_tune" and (
        len(classifier.left_out_scores_) == len(learned.texts)
    )
    if classifier.head == "multilabel" or not is_cross_fitted:
        expected = "a classifier of one label per text, with cross-fitted probabilities"
        remedy = 'fit one with method="frozen" and a calibration'
        raise InputError("classifier", expected, classifier, remedy)
    chances = classifier.calibration_.apply(classifier.left_out_scores_)
    codes, names = learned.codes, classifier.classes_
    suspects, suggested = confident_errors(chances, codes)
    columns = {
        "row": learned.rows[suspects],
        "text": [learned.texts[place] for place in suspects.tolist()],
        "label": names[codes[suspects]],
        "suggested": names[suggested],
        "probability": chances[suspects, codes[suspects]],
        "of_suggested": chances[suspects, suggested],
    }
    return pd.DataFrame(columns).sort_values("probability", kind="stable", ignore_index=True)


def confident_errors(chances: Float64Array, codes: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Return the texts that confidently belong to another class, and that class."""
    means = [
        chances[codes == k, k].mean() if (codes == k).any() else np.inf
        for k in range(chances.shape[1])
    ]
    above = np.where(chances >= np.array(means) - 1e-6, chances, -1.0)
    best = above.argmax(axis=1)
    suspects = np.flatnonzero((above.max(axis=1) >= 0) & (best != codes))
    return suspects, best[suspects]
