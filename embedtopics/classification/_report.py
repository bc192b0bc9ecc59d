"""How far to trust a classifier: scores, baselines, wrong labels, and what predictions rest on."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from embedtopics._utils.checks import checked_count
from embedtopics.classification._heads import (
    calibration_error,
    confidences,
    confusion_of,
    kappa,
    near_copies,
    rates,
    risk_coverage,
)
from embedtopics.classification._targets import one_length, read_targets
from embedtopics.classification.results import ClassificationReport, Score
from embedtopics.decisions import Decision
from embedtopics.encoders._base import check_texts
from embedtopics.encoders._cache import keys_of
from embedtopics.errors import InputError
from embedtopics.evaluation._bootstrap import bounded_interval, resampled_sums
from embedtopics.protocols import Float64Array, Int64Array
from embedtopics.terms._weighting import log_odds

if TYPE_CHECKING:
    import pandas as pd

    from embedtopics.classification._classifier import TextClassifier

N_RESAMPLES = 1000


def evaluate(
    classifier: TextClassifier,
    test: tuple[Sequence[str], Any],
    train: tuple[Sequence[str], Any],
    *,
    topics: tuple[Sequence[int], Sequence[int]] | None = None,
    random_state: int = 0,
) -> ClassificationReport:
    """Measure a classifier on labelled texts that it has not learned from, beside baselines.

    The classifier counts how often it was measured on these texts: what is changed because of such
    a figure makes the next one too high.

    Parameters
    ----------
    classifier : TextClassifier
        Fitted.
    test, train : pair of texts and labels
        `train` are those that it was fitted on; the baselines learn from them. Texts without label
        are left out.
    topics : pair of sequences of int, optional
        The topic of each test text and of each training text, as another baseline: the shares of
        the classes in its topic.
    random_state : int
        Of the resamples.

    Returns
    -------
    ClassificationReport

    Raises
    ------
    InputError
        Where a test label is no class that was learned: the message names the row.
    """
    check_is_fitted(classifier, "head_")
    texts, targets = classifier._read(*test, classifier.classes_)
    if not texts:
        raise InputError("test", "labelled texts", found="none")
    learned, of_learned = classifier._read(*train, classifier.classes_)
    codes = targets.codes
    vectors = classifier._vectors(texts)
    groups = near_copies(texts, vectors)
    found = classifier.calibration_.apply(classifier.head_.scores(vectors))
    scores = [*_scored("classifier", classifier, found, codes, groups, random_state)]
    baselines: list[Score] = []
    guesses = dict(_baselines(classifier.head, learned, of_learned.codes, texts, found.shape[1]))
    if topics is not None:
        of_test = _topics_of(classifier, topics[0], test)
        of_train = _topics_of(classifier, topics[1], train)
        guesses["topics alone"] = _by_topic(of_test, of_train, of_learned.codes, found.shape[1])
    for name, guess in guesses.items():
        made = _scored(name, classifier, guess, codes, groups, random_state)
        baselines += [one for one in made if one.name is None]
    several = codes.ndim == 2
    best = found.argmax(axis=1)
    sure, right = (found.ravel(), codes.ravel()) if several else confidences(found, codes)
    error, bins = calibration_error(sure, right)
    decisions = list(_overlap(texts, learned))
    n_looks = _looked(classifier, texts)
    if n_looks > 1:
        message = (
            f"This classifier was measured {n_looks} times on these texts: what was changed because"
            " of it makes its figures too high and their intervals too narrow."
        )
        decisions.append(Decision("classification", "looks", n_looks, message))
    return ClassificationReport(
        classes=tuple(classifier.classes_.tolist()), head=classifier.head, scores=tuple(scores),
        baselines=tuple(baselines),
        confusion=None if several else confusion_of(codes, best, found.shape[1]),
        calibration_error=error, calibration=bins,
        risk_coverage=None if several else risk_coverage(sure, right),
        n=len(texts), n_groups=len(np.unique(groups)), n_looks=n_looks, decisions=tuple(decisions),
    )  # fmt: skip


def _overlap(texts: list[str], learned: list[str]) -> Iterator[Decision]:
    known = set(map(tuple, keys_of(learned).tolist()))
    n = sum(tuple(key) in known for key in keys_of(texts).tolist())
    if n:
        message = f"{n:,} of the test texts are training texts: the figures are too high."
        yield Decision("classification", "overlap", n, message)


def _looked(classifier: TextClassifier, texts: list[str]) -> int:
    """Count a look at a test set, whatever the order of its texts."""
    keys = keys_of(texts)
    ordered = keys[np.lexsort(keys.T)]
    name = hashlib.sha256(ordered.tobytes()).hexdigest()[:32]
    classifier.test_log_[name] = classifier.test_log_.get(name, 0) + 1
    return classifier.test_log_[name]


def _scored(
    of: str,
    classifier: TextClassifier,
    found: Float64Array,
    codes: Int64Array,
    groups: Int64Array,
    seed: int,
) -> Iterator[Score]:
    """Yield the scores of probabilities (n_texts, n_classes), with intervals over groups."""
    n, n_classes = found.shape
    one_hot = np.eye(n_classes, dtype=np.int64)
    several = codes.ndim == 2
    truth = codes if several else one_hot[codes]
    guess = (found >= 0.5).astype(np.int64) if several else one_hot[found.argmax(axis=1)]
    right = (truth == guess).all(axis=1)
    parts = [truth & guess, truth, guess, right[:, None], np.ones((n, 1), dtype=np.int64)]
    is_ordinal = classifier.head == "ordinal"
    if is_ordinal:
        cells = codes * n_classes + found.argmax(axis=1)
        parts.append(np.eye(n_classes**2, dtype=np.int64)[cells])
    columns = np.concatenate(parts, axis=1)
    numbered = np.unique(groups, return_inverse=True)[1]
    added = np.zeros((int(numbered.max()) + 1, columns.shape[1]))
    np.add.at(added, numbered, columns)
    whole = _figures(columns.sum(axis=0, keepdims=True).astype(np.float64), n_classes, is_ordinal)
    drawn = _figures(resampled_sums(added, N_RESAMPLES, seed), n_classes, is_ordinal)
    met = (added > 0).sum(axis=0)
    recall, precision = met[n_classes : 2 * n_classes], met[2 * n_classes : 3 * n_classes]
    units = {"recall": recall, "precision": precision, "f1": np.maximum(recall, precision)}
    for metric, value in whole.items():
        bounds = {"quadratic kappa": (-1.0, 1.0), "mean absolute error": (0.0, n_classes - 1.0)}
        ends = bounded_interval(value[0], drawn[metric], units.get(metric, len(added)),
                                bounds=bounds.get(metric, (0.0, 1.0)))  # fmt: skip
        names = classifier.classes_.tolist() if metric in units else [None]
        figures = np.stack([value[0], *ends]).reshape(3, -1).T.tolist()
        counts = truth.sum(axis=0).tolist() if metric in units else [n]
        for name, (value_of, low, high), n_texts in zip(names, figures, counts, strict=True):
            yield Score(of, name, metric, value_of, low, high, n_texts)


def _figures(sums: Float64Array, n_classes: int, is_ordinal: bool) -> dict[str, Float64Array]:
    """Return figures (n_tables, ...) of summed columns (n_tables, n_columns)."""
    hits, true, given = (sums[:, i * n_classes : (i + 1) * n_classes] for i in range(3))
    right, total = sums[:, 3 * n_classes], sums[:, 3 * n_classes + 1]
    found = rates(hits, true, given)
    below = np.maximum((true + given).sum(axis=1), 1)
    figures = {"accuracy": right / total, "macro F1": found["f1"].mean(axis=1),
               "micro F1": 2 * hits.sum(axis=1) / below}  # fmt: skip
    if is_ordinal:
        tables = sums[:, 3 * n_classes + 2 :].reshape(-1, n_classes, n_classes)
        places = np.arange(n_classes)
        apart = np.abs(places[:, None] - places)
        figures["quadratic kappa"] = kappa(tables)
        figures["mean absolute error"] = (tables * apart).sum(axis=(1, 2)) / total
    return {**figures, **found}


def _baselines(
    head: str, learned: list[str], codes: Int64Array, texts: list[str], n_classes: int
) -> Iterator[tuple[str, Float64Array]]:
    """Yield what the simplest models predict, as probabilities."""
    from embedtopics.classification._classifier import TextClassifier

    shares = codes.mean(axis=0) if codes.ndim == 2 else np.bincount(codes, minlength=n_classes)
    yield "most frequent", np.tile(np.asarray(shares, dtype=np.float64), (len(texts), 1))
    y: Any = codes if codes.ndim == 2 else codes.tolist()
    if codes.ndim == 1 and len(np.unique(codes)) < n_classes:
        return
    order = list(range(n_classes)) if head == "ordinal" else None
    model = TextClassifier("tfidf", head=head, classes=order, calibration=None).fit(learned, y)
    yield "TF-IDF, logistic regression", model.predict_proba(texts)


def _topics_of(
    classifier: TextClassifier, topics: Sequence[int], given: tuple[Sequence[str], Any]
) -> Int64Array:
    """Return the topics of the texts that have labels."""
    known = read_targets(given[1], classifier.head, classifier.classes_, learned=True).known
    if len(topics) != len(known):
        found = f"{len(topics):,} for {len(known):,} texts"
        raise InputError("topics", "the topic of each test and of each training text", found=found)
    return np.asarray(topics, dtype=np.int64)[known]


def _by_topic(
    topics: Int64Array, learned: Int64Array, codes: Int64Array, n_classes: int
) -> Float64Array:
    """Return the shares of the classes in the topic of each text; in a new topic those of all."""
    truth = codes if codes.ndim == 2 else np.eye(n_classes, dtype=np.int64)[codes]
    shares = {topic: truth[learned == topic].mean(axis=0) for topic in np.unique(learned).tolist()}
    return np.stack([shares.get(topic, truth.mean(axis=0)) for topic in topics.tolist()])


def suspicious_labels(classifier: TextClassifier, texts: Sequence[str], y: Any) -> pd.DataFrame:
    """Return the training texts whose label is likely wrong, the likeliest first.

    By confident learning (Northcutt et al. 2021, equation 2): a text counts as of another class
    where its probability, from a head that left the text out, is at least the mean probability of
    that class among the texts that have it.

    Parameters
    ----------
    classifier : TextClassifier
        Fitted with a calibration, on `texts` and `y` in this order.
    texts, y : sequence
        As they were given to `fit`.

    Returns
    -------
    DataFrame
        Columns row, text, label, suggested, probability (of the label) and of_suggested.
    """
    import pandas as pd

    check_is_fitted(classifier, "head_")
    targets = read_targets(y, classifier.head, classifier.classes_, learned=True)
    rows = np.flatnonzero(targets.known)
    known = [texts[row] for row in rows.tolist()]
    if not np.array_equal(keys_of(known), classifier.training_keys_):
        wanted = "those that the classifier was fitted on, in the same order"
        raise InputError("texts", wanted, found="others")
    if classifier.head == "multilabel" or len(classifier.left_out_rows_) != len(rows):
        wanted = "a classifier of one label a text, with probabilities by cross-fitting"
        remedy = 'fit one with method="frozen" and a calibration'
        raise InputError("classifier", wanted, classifier, remedy)
    found = classifier.calibration_.apply(classifier.left_out_scores_)
    codes, names = targets.codes[rows], classifier.classes_
    suspects, suggested = confident_errors(found, codes)
    own = found[suspects, codes[suspects]]
    table = pd.DataFrame({
        "row": rows[suspects], "text": [known[place] for place in suspects.tolist()],
        "label": names[codes[suspects]], "suggested": names[suggested], "probability": own,
        "of_suggested": found[suspects, suggested],
    })  # fmt: skip
    return table.sort_values("probability", kind="stable", ignore_index=True)


def confident_errors(found: Float64Array, codes: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Return texts that are confidently of another class than labelled, and that class."""
    n_classes = found.shape[1]
    usual = np.array([
        found[codes == k, k].mean() if (codes == k).any() else np.inf for k in range(n_classes)
    ])  # fmt: skip
    above = np.where(found >= usual - 1e-6, found, -1.0)
    best = above.argmax(axis=1)
    is_wrong = (above.max(axis=1) >= 0) & (best != codes)
    suspects = np.flatnonzero(is_wrong)
    return suspects, best[suspects]


_WORD = re.compile(r"\w+(?:[-'\u2019]\w+)*")
PRIOR = 500
"""Words of the prior, in proportion to all texts."""

MOST_WORDS = 200
"""Words of a text that are left out in turn; each is a text to encode."""


def class_terms(
    texts: Sequence[str], y: Any, *, n_terms: int = 10, min_texts: int = 3
) -> pd.DataFrame:
    """Return the words that set each class apart from the others, by weighted log-odds.

    Log-odds of the texts that hold a word, with an informative Dirichlet prior in proportion to
    all texts (Monroe, Colaresi and Quinn 2008, equations 15 to 22).

    Parameters
    ----------
    texts : sequence of str
    y : sequence
        Labels or predictions, such as ``classifier.predict(texts)``; None or NaN for none.
    n_terms : int
        Words of each class.
    min_texts : int
        Texts that must hold a word.

    Returns
    -------
    DataFrame
        Columns class, term, z (in standard errors), n_class and n_others (texts that hold it).
    """
    import pandas as pd

    checked_count(n_terms, "n_terms")
    checked_count(min_texts, "min_texts")
    targets = read_targets(y, "softmax")
    read = one_length(check_texts(texts), targets.codes)
    counts: list[Counter[str]] = [Counter() for _ in targets.classes]
    for text, code in zip(read, targets.codes.tolist(), strict=True):
        if code >= 0:
            counts[code].update({match.group().casefold() for match in _WORD.finditer(text)})
    total = sum(counts, Counter())
    terms = sorted(term for term, n in total.items() if n >= min_texts)
    everywhere = np.array([total[term] for term in terms], dtype=np.float64)
    prior = everywhere / max(everywhere.sum(), 1) * PRIOR
    rows = []
    for name, of_class in zip(targets.classes.tolist(), counts, strict=True):
        own = np.array([of_class[term] for term in terms], dtype=np.float64)
        z = log_odds(own, everywhere - own, prior)
        for at in np.argsort(-z, kind="stable")[:n_terms].tolist():
            rows.append((name, terms[at], float(z[at]), int(own[at]), int((everywhere - own)[at])))
    return pd.DataFrame(rows, columns=["class", "term", "z", "n_class", "n_others"])


def nearest_labelled(
    classifier: TextClassifier,
    texts: Sequence[str],
    train: tuple[Sequence[str], Any],
    *,
    k: int = 3,
) -> pd.DataFrame:
    """Return the labelled texts nearest to each text, by the cosine of the classifier's vectors.

    Parameters
    ----------
    classifier : TextClassifier
        Fitted.
    texts : sequence of str
    train : pair of texts and labels
    k : int
        Neighbours of each.

    Returns
    -------
    DataFrame
        Columns row (of `texts`), predicted, rank, label, similarity and text.
    """
    import pandas as pd

    from embedtopics.neighbors._graph import nearest, unit_rows

    check_is_fitted(classifier, "head_")
    learned, targets = classifier._read(*train, classifier.classes_)
    if classifier.head == "multilabel":
        raise InputError("classifier", "of one label a text", classifier)
    read, vectors = check_texts(texts), []
    for part in (read, learned):
        made = classifier._vectors(part)
        dense = made.toarray() if hasattr(made, "toarray") else made
        vectors.append(unit_rows(dense, keep_zeros=True))
    places, similarities = nearest(vectors[0], vectors[1], checked_count(k, "k"))
    n, k = places.shape
    flat = places.ravel()
    return pd.DataFrame({
        "row": np.repeat(np.arange(n), k), "predicted": np.repeat(classifier.predict(read), k),
        "rank": np.tile(np.arange(1, k + 1), n), "label": classifier.classes_[targets.codes[flat]],
        "similarity": similarities.ravel(), "text": [learned[place] for place in flat.tolist()],
    })  # fmt: skip


def occlusion(classifier: TextClassifier, text: str, *, target: Any = None) -> pd.DataFrame:
    """Return by how much the probability of a class falls where a word is left out.

    Parameters
    ----------
    classifier : TextClassifier
        Fitted.
    text : str
        Its first 200 words are left out one at a time.
    target : str or int, optional
        The class; by default the predicted one.

    Returns
    -------
    DataFrame
        Columns word, begin (character), change: what leaving the word out takes from the
        probability; the largest first.
    """
    import pandas as pd

    check_is_fitted(classifier, "head_")
    if not isinstance(text, str) or not (words := list(_WORD.finditer(text))[:MOST_WORDS]):
        raise InputError("text", "a text with words", text)
    without = [text[: word.start()] + text[word.end() :] for word in words]
    found = classifier.predict_proba([text, *without])
    names = classifier.classes_.tolist()
    if target is not None and target not in names:
        raise InputError("target", f"one of the classes {names}", target)
    place = int(found[0].argmax()) if target is None else names.index(target)
    change = found[0, place] - found[1:, place]
    order = np.argsort(-change, kind="stable")
    return pd.DataFrame({
        "word": [words[i].group() for i in order], "begin": [words[i].start() for i in order],
        "change": change[order],
    })  # fmt: skip
