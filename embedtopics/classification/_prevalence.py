"""What share of a corpus each class is, corrected for what a classifier mistakes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from embedtopics._utils.checks import checked_choice, resolve_seed
from embedtopics.classification._heads import (
    confusion_of,
    grouped_folds,
    n_folds_for,
    near_copies,
    probabilities,
)
from embedtopics.classification._targets import read_targets
from embedtopics.classification.results import Prevalence, ShareOfClass
from embedtopics.corpus._corpus import Corpus
from embedtopics.corpus._texts import TEXT
from embedtopics.decisions import Decision
from embedtopics.encoders._cache import keys_of
from embedtopics.errors import InputError
from embedtopics.evaluation._shares import wilson
from embedtopics.protocols import BoolArray, Float64Array, Int64Array, RandomState

if TYPE_CHECKING:
    import pandas as pd

    from embedtopics.classification._classifier import TextClassifier

METHODS = ("ppi", "design", "adjusted", "em")
N_FOLDS = 5
FEW = 5
"""Labels of either kind below which predictions make no interval narrower than all texts' do."""

N_RESAMPLES = 400
_Z = 1.959964

Parts = list[tuple[str | None, BoolArray]]
PERIODS = {"year": "Y", "quarter": "Q", "month": "M", "week": "W", "day": "D"}


class _Predicted(NamedTuple):
    """What is known and predicted of the texts of a corpus; row by row of those with text."""

    classes: npt.NDArray[Any]
    found: Float64Array  # (n_texts, n_classes), of labelled texts by models that left them out
    truth: Float64Array  # (n_texts, n_classes), 0 where there is no label
    known: BoolArray  # (n_texts,)
    guess: Float64Array  # (n_texts, n_classes), 1 for predicted classes
    decisions: tuple[Decision, ...]


def prevalence(
    classifier: TextClassifier,
    corpus: Any,
    labelled: Any = None,
    *,
    by: str | None = None,
    every: str = "year",
    probability: Any = None,
    method: str | None = None,
    random_state: RandomState = 0,
) -> Prevalence:
    """Estimate what share of a corpus each class is, with intervals that allow for its mistakes.

    Shares of predicted classes are biased by what a classifier mistakes. Labels of a random sample
    of the same corpus correct them, whatever the classifier's accuracy; the better it is, the
    narrower the interval. Intervals are for texts of this kind, of which the corpus is a sample;
    for the share of these very texts they are on the safe side.

    Parameters
    ----------
    classifier : TextClassifier
        Fitted on other texts; or not fitted, or fitted on some of the labelled texts: then it is
        cross-fitted on these, so that no label is used twice.
    corpus : Corpus, or what `Corpus` takes
    labelled : sequence or str, optional
        A label for each row, None where there is none, or the column with them. Which rows have one
        must have been drawn at random. Without labels the classifier's own mistakes on texts
        that were left out of its fit are taken for those on the corpus, which holds if only the
        shares of the classes differ (prior shift).
    by : str, optional
        Column of groups or dates, or "time" or "group" for those of the corpus.
    every : {"year", "quarter", "month", "week", "day"}
        Of dates.
    probability : sequence or str, optional
        Probability with which each row was drawn to be labelled, where it was not the same for
        all, or the column with it.
    method : {"ppi", "design", "adjusted", "em"}, optional
        Prediction-powered inference with tuned power, its factor cross-fitted (PPI++, Angelopoulos,
        Duchi and Zrnic 2023); design-based, with known probabilities (Egami et al. 2023); without
        labels, adjusted count (Forman 2008) or EM (Saerens et al. 2002). By default "design" where
        `probability` is given, "ppi" where there are labels, else "adjusted".
    random_state : int, Generator or None
        Of folds and resamples.

    Returns
    -------
    Prevalence

    Raises
    ------
    InputError
        Where rows, labels or probabilities cannot be used: the message names the row.
    """
    read = Corpus.of(corpus)
    seed = resolve_seed(random_state)
    default = "adjusted" if labelled is None else "ppi" if probability is None else "design"
    chosen = checked_choice(method or default, "method", METHODS)
    for name, value, needed in (
        ("labelled", labelled, chosen in ("ppi", "design")),
        ("probability", probability, chosen == "design"),
    ):
        if (value is not None) != needed:
            wanted = f"{'given' if value is None else 'left out'} for method={chosen!r}"
            raise InputError(name, wanted)
    rows = np.flatnonzero(read.status == TEXT)
    parts = _parts(read, by, every, rows)
    if labelled is None:
        texts = [read.texts[row] for row in rows.tolist()]
        shares, decision = _without_labels(classifier, texts, parts, chosen, seed)
        return Prevalence(tuple(shares), chosen, by, (decision,))
    known = predicted(classifier, read, labelled, seed)
    chance = None
    if probability is not None:
        chance = _chances(read, probability, known.known, rows)
    return Prevalence(tuple(_with_labels(known, parts, chance, seed)), chosen, by, known.decisions)


def predicted(classifier: TextClassifier, corpus: Corpus, labelled: Any, seed: int) -> _Predicted:
    """Predict a corpus, its labelled texts by models that have not seen them."""
    rows = np.flatnonzero(corpus.status == TEXT)
    texts = [corpus.texts[row] for row in rows.tolist()]
    is_fitted = hasattr(classifier, "head_")
    given = classifier.classes_ if is_fitted else classifier.classes
    values = _column(corpus, labelled, "labelled")
    targets = read_targets(values, classifier.head, given, learned=is_fitted)
    known = targets.known[rows]
    if known.sum() < 2:
        raise InputError("labelled", "labels of at least 2 texts", found=f"{int(known.sum())}")
    codes = targets.codes[rows]
    n_classes = len(targets.classes)
    truth = codes if codes.ndim == 2 else np.eye(n_classes)[np.maximum(codes, 0)]
    truth = np.where(known[:, None], truth, 0).astype(np.float64)
    marked = np.flatnonzero(known)
    decisions: tuple[Decision, ...] = ()
    learned = set(map(tuple, classifier.training_keys_.tolist())) if is_fitted else set()
    keys = keys_of([texts[i] for i in marked.tolist()]).tolist()
    if is_fitted and learned.isdisjoint(map(tuple, keys)):
        found = classifier.predict_proba(texts)
    else:
        found, n_folds = _cross_predicted(
            classifier, texts, marked, codes[marked], targets.classes, seed
        )
        message = (
            f"The classifier was fitted {n_folds} times on the labelled texts, each time without "
            "those that it then predicted."
        )
        decisions = (Decision("classification", "cross_fitted", n_folds, message),)
    guess = found >= 0.5 if codes.ndim == 2 else np.eye(n_classes)[found.argmax(axis=1)]
    return _Predicted(targets.classes, found, truth, known, guess.astype(np.float64), decisions)


def _cross_predicted(
    classifier: TextClassifier, texts: list[str], marked: Int64Array, codes: Int64Array,
    classes: npt.NDArray[Any], seed: int,
) -> tuple[Float64Array, int]:  # fmt: skip
    """Predict labelled texts by models that left them out, others by the mean of these models."""
    chosen = [texts[i] for i in marked.tolist()]
    y: Any = codes if codes.ndim == 2 else classes[codes]
    folds = grouped_folds(codes, near_copies(chosen, None), n_folds_for(codes, N_FOLDS), seed)
    used = np.unique(folds).tolist()
    found, of_marked = np.zeros((len(texts), len(classes))), np.zeros((len(chosen), len(classes)))
    for fold in used:
        train, held = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        model: TextClassifier = clone(classifier)
        model.fit([chosen[i] for i in train.tolist()], y[train])
        columns = np.arange(len(classes))
        if codes.ndim == 1:
            columns = np.array([classes.tolist().index(one) for one in model.classes_.tolist()])
        of_texts = model.predict_proba(texts)
        of_marked[np.ix_(held, columns)] = of_texts[marked[held]]
        found[:, columns] += of_texts / len(used)
    found[marked] = of_marked
    return found, len(used)


def _column(corpus: Corpus, given: Any, name: str) -> Sequence[Any]:
    if isinstance(given, str):
        if given not in corpus.metadata.columns:
            known = ", ".join(map(str, corpus.metadata.columns)) or "none"
            raise InputError(name, f"a column of the corpus: {known}", given)
        return corpus.metadata[given].tolist()
    if getattr(given, "ndim", 1) != 1 or hasattr(given, "columns"):
        return given  # type: ignore[no-any-return]
    values = list(given)
    if len(values) != len(corpus):
        found = f"{len(values):,} for {len(corpus):,} rows"
        raise InputError(name, "one value for each row of the corpus", found=found)
    return values


def _chances(corpus: Corpus, given: Any, known: BoolArray, rows: Int64Array) -> Float64Array:
    import pandas as pd

    values = pd.Series(list(_column(corpus, given, "probability")))
    try:
        chances = values.to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError):
        raise InputError("probability", "numbers above 0, up to 1", values[0]) from None
    wrong = (chances <= 0) | (chances > 1)
    wrong[rows[known]] |= np.isnan(chances[rows[known]])
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        remedy = "a text that could not be drawn is not represented: leave it out of the corpus"
        raise InputError("probability", "above 0, up to 1", float(chances[row]), remedy, row=row)
    return np.asarray(chances[rows])


def _parts(corpus: Corpus, by: str | None, every: str, rows: Int64Array) -> Parts:
    """Return the name of each group and which of the rows with text are in it, (n_texts,)."""
    import pandas as pd

    checked_choice(every, "every", PERIODS)
    if by is None:
        return [(None, np.ones(len(rows), dtype=np.bool_))]
    name = {"time": corpus.time_column, "group": corpus.group_column}.get(by) or by
    if name not in corpus.metadata.columns:
        known = ", ".join(map(str, corpus.metadata.columns)) or "none"
        raise InputError("by", f"a column of the corpus: {known}", by)
    column = corpus.metadata[name].iloc[rows]
    if pd.api.types.is_datetime64_any_dtype(column):
        begun = column.dt.tz_localize(None).dt.to_period(PERIODS[every]).dt.start_time
        column = begun.dt.strftime("%Y-%m-%d")
    groups = np.array([None if pd.isna(one) else str(one) for one in column], dtype=object)
    return [(one, groups == one) for one in sorted({one for one in groups if one is not None})]


def _with_labels(
    known: _Predicted, parts: Parts, chance: Float64Array | None, seed: int
) -> Iterator[ShareOfClass]:
    marked = np.flatnonzero(known.known)
    weights = np.ones(len(marked)) if chance is None else 1 / chance[marked]
    n_others = len(known.known) - len(marked)
    # All texts count in a design, the labelled ones among them.
    ratio = len(marked) / max(n_others, 1) if chance is None else 0.0
    whole = np.ones(len(known.known), dtype=np.bool_)
    for place, name in enumerate(known.classes.tolist()):
        y, f = known.truth[:, place], known.found[:, place]
        factor = np.zeros(len(y))
        factor[marked] = tuned_by_fold(y[marked], f[marked], weights, ratio, seed)

        share, _ = _share_of(y, f, known.known, whole, chance, factor)
        gain = 1.0
        if share.variance > 0:
            middle = float(np.clip(share.value, 0.01, 0.99))
            gain = middle * (1 - middle) / share.variance / max(share.n, 1)
        for group, is_in in parts:
            share, rare = _share_of(y, f, known.known, is_in, chance, factor)
            low, high = interval_of(share, rare, gain if group is not None else 1.0)
            labels = is_in & known.known
            alone = _labels_alone(y[labels], None if chance is None else chance[labels])
            yield ShareOfClass(
                group, name, int(is_in.sum()), share.n, min(max(share.value, 0.0), 1.0), low, high,
                *alone, float(known.guess[is_in, place].mean()), share.residual, share.predictions,
            )  # fmt: skip


def _share_of(
    y: Float64Array, f: Float64Array, known: BoolArray, is_in: BoolArray,
    chance: Float64Array | None, factor: Float64Array,
) -> tuple[Share, float]:  # fmt: skip
    """Return the share among some texts, and how many labels of the rarer kind they have."""
    labels = is_in & known
    n_yes = float(y[labels].sum())
    rare = min(n_yes, labels.sum() - n_yes)
    if chance is None:
        return ppi_share(y[labels], f[labels], f[is_in & ~known], factor[labels]), rare
    return design_share(y[labels], f[labels], f[is_in], chance[labels], factor[labels]), rare


def _labels_alone(y: Float64Array, chance: Float64Array | None) -> tuple[float, float, float]:
    """Return the share among the labels and its interval, without any prediction."""
    if not len(y):
        return np.nan, np.nan, np.nan
    if chance is not None:
        zeros = np.zeros(len(y))
        share = design_share(y, zeros, zeros, chance, zeros)
        return share.value, *interval_of(share, min(y.sum(), len(y) - y.sum()))
    low, high = wilson(y.sum(), len(y))
    return float(y.mean()), float(low), float(high)


def _without_labels(
    classifier: TextClassifier, texts: list[str], parts: Parts, method: str, seed: int
) -> tuple[list[ShareOfClass], Decision]:
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(classifier, "head_")
    held = classifier.left_out_scores_, classifier.left_out_codes_
    if classifier.head == "multilabel" or not len(held[0]):
        remedy = "fit it with a calibration, or give labels of some texts of the corpus"
        wanted = "of one label a text, with scores of texts that were left out"
        raise InputError("classifier", wanted, classifier, remedy)
    scores = classifier.decision_function(texts)
    guess = classifier.calibration_.apply(scores).argmax(axis=1)
    found: list[ShareOfClass] = []
    for group, is_in in parts:
        ends = shifted_shares(classifier.head, method, held, scores[is_in], seed)
        for place, name in enumerate(classifier.classes_.tolist()):
            value, low, high = (float(one[place]) for one in ends)
            naive = float((guess[is_in] == place).mean())
            found.append(ShareOfClass(
                group, name, int(is_in.sum()), 0, value, low, high, np.nan, np.nan, np.nan, naive,
                np.nan, np.nan,
            ))  # fmt: skip
    message = (
        "No text of the corpus has a label: shares hold only if texts of a class are like those "
        "that the classifier learned from, and the shares alone differ (prior shift)."
    )
    return found, Decision("classification", "prior_shift", method, message)


def effects(
    classifier: TextClassifier,
    corpus: Any,
    labelled: Any,
    covariates: Sequence[str],
    *,
    target: Any,
    probability: Any = None,
    random_state: RandomState = 0,
) -> pd.DataFrame:
    """Estimate by how much the probability of a class changes with covariates.

    A linear probability model of the pseudo-outcomes of Egami et al. (2023): predictions, corrected
    by the labels of a random sample, with standard errors that hold under heteroscedasticity (HC1).

    Parameters
    ----------
    classifier, corpus, labelled, probability, random_state
        As for `prevalence`.
    covariates : sequence of str
        Columns: numbers as they are, others as levels beside the first of them in order.
    target : str or int
        The class.

    Returns
    -------
    DataFrame
        Columns term, effect, low, high and p; the first row is the intercept.
    """
    import pandas as pd
    from scipy.stats import t as student

    read, seed = Corpus.of(corpus), resolve_seed(random_state)
    known = predicted(classifier, read, labelled, seed)
    if target not in known.classes.tolist():
        raise InputError("target", f"one of the classes {known.classes.tolist()}", target)
    rows = np.flatnonzero(read.status == TEXT)
    missing = [name for name in covariates if name not in read.metadata.columns]
    if missing or not len(covariates):
        columns = ", ".join(map(str, read.metadata.columns)) or "none"
        raise InputError("covariates", f"columns of the corpus: {columns}", [*covariates])
    frame = read.metadata.iloc[rows][list(covariates)]
    X = pd.get_dummies(frame, drop_first=True, dtype=np.float64)
    whole = X.notna().all(axis=1).to_numpy() & frame.notna().all(axis=1).to_numpy()
    X.insert(0, "intercept", 1.0)
    place = known.classes.tolist().index(target)
    f, y = known.found[:, place], known.truth[:, place]
    chance = np.full(len(f), known.known.mean())
    if probability is not None:
        chance = _chances(read, probability, known.known, rows)
    marked = known.known
    factor = tuned_by_fold(y[marked], f[marked], 1 / chance[marked], 0.0, seed).mean()
    outcome = factor * f
    outcome[marked] += (y - factor * f)[marked] / chance[marked]
    design, outcome = X.to_numpy(dtype=np.float64)[whole], outcome[whole]
    inverse = np.linalg.pinv(design.T @ design)
    coefficients = inverse @ design.T @ outcome
    residuals = outcome - design @ coefficients
    n, k = design.shape
    middle = (design * residuals[:, None]).T @ (design * residuals[:, None])
    errors = np.sqrt(np.diag(inverse @ middle @ inverse) * n / max(n - k, 1))
    df = max(int(marked[whole].sum()) - k, 1)
    reach = student.ppf(0.975, df) * errors
    return pd.DataFrame({
        "term": X.columns, "effect": coefficients, "low": coefficients - reach,
        "high": coefficients + reach,
        "p": 2 * student.sf(np.abs(coefficients / np.maximum(errors, 1e-300)), df),
    })  # fmt: skip


class Share(NamedTuple):
    """An estimate with the parts of its variance: of labels ``residual / n``, and `predictions`."""

    value: float
    residual: float
    predictions: float
    n: int

    @property
    def variance(self) -> float:
        """The variance of the estimate."""
        return self.residual / max(self.n, 1) + self.predictions


def tuned(y: Float64Array, f: Float64Array, weights: Float64Array, ratio: float) -> float:
    """Return how much predictions count, from 0 to 1 (Angelopoulos et al. 2023b, example 6.1)."""
    if len(y) < 2:
        return 0.0
    mean_y, mean_f = np.average(y, weights=weights), np.average(f, weights=weights)
    spread = np.average(np.square(f - mean_f), weights=weights) * (1 + ratio)
    both = np.average((y - mean_y) * (f - mean_f), weights=weights)
    return float(np.clip(both / spread, 0.0, 1.0)) if spread > 1e-12 else 0.0


def tuned_by_fold(
    y: Float64Array, f: Float64Array, weights: Float64Array, ratio: float, seed: int
) -> Float64Array:
    """Return for each labelled text the factor that the texts of other folds have, (n,)."""
    folds = np.random.default_rng(seed).permutation(len(y)) % N_FOLDS
    each = [tuned(y[folds != k], f[folds != k], weights[folds != k], ratio) for k in range(N_FOLDS)]
    return np.array(each)[folds]


def ppi_share(
    y: Float64Array, f: Float64Array, others: Float64Array, factor: Float64Array
) -> Share:
    """Return a share by prediction-powered inference with tuned power (PPI++).

    `y` and `f` (n,) are labels and predictions of a random sample, `others` (N,) the predictions
    of the other texts. With k the factors: mean(y - k f) + mean(k) mean(others), and its variance
    var(y - k f) / n + mean(k)^2 var(others) / N (Angelopoulos, Duchi and Zrnic 2023, section 6).
    """
    residuals, power = y - factor * f, float(factor.mean()) if len(factor) else 0.0
    if not len(others):
        residuals, power, others = y, 0.0, np.zeros(1)
    n = len(y)
    value = float(residuals.mean()) + power * float(others.mean()) if n else np.nan
    residual = float(residuals.var(ddof=1)) if n > 1 else np.nan
    spread = float(others.var(ddof=1)) if len(others) > 1 else 0.0
    return Share(value, residual, power**2 * spread / len(others), n)


def design_share(
    y: Float64Array,
    f: Float64Array,
    everything: Float64Array,
    chance: Float64Array,
    factor: Float64Array,
) -> Share:
    """Return a share of a sample with known probabilities (Egami et al. 2023, equation 4).

    Each text has a pseudo-outcome: its prediction, and where it was labelled the residual divided
    by the probability `chance` of that; `everything` (N,) are the predictions of all texts, the
    labelled ones among them. The weights add up to the number of texts (Hajek).
    """
    n, power = len(y), float(factor.mean()) if len(factor) else 0.0
    if n < 2:
        return Share(np.nan, np.nan, 0.0, n)
    weights = 1 / chance
    weights = weights / weights.sum()
    residuals = y - factor * f
    middle = float(weights @ residuals)
    apart = residuals - middle
    residual = float(np.square(weights * apart).sum()) * n * n / (n - 1)
    spread = float(everything.var(ddof=1)) / len(everything) if len(everything) > 1 else 0.0
    shared = 2 * power * float((weights * apart) @ (f - everything.mean())) / len(everything)
    predictions = max(power**2 * spread + shared, 0.0)
    return Share(middle + power * float(everything.mean()), residual, predictions, n)


def interval_of(share: Share, n_rare: float, gain: float = np.inf) -> tuple[float, float]:
    """Return a 95 % interval: Wilson's, of as many trials as have the variance of the estimate.

    `n_rare` counts the labels of the rarer kind. Where they are few, their variance says little:
    the trials are at most `gain` times the labels. In 500 draws for classifiers of 60 to 95 %
    accuracy, at a prevalence of 50 and of 2 %, it covers 94.8 to 97.2 % where labels are a random
    sample, and 91.2 to 95.4 % where their chances differ and are known.
    """
    n = share.n
    if n < 2 or np.isnan(share.value):
        return np.nan, np.nan
    value = float(np.clip(share.value, 0.0, 1.0))
    varies = share.variance > 0 and 0 < value < 1
    trials = value * (1 - value) / share.variance if varies else float(n)
    if n_rare < FEW:
        trials = min(trials, n * max(1.0, gain) if np.isfinite(gain) else float(n))
    low, high = wilson(value * trials, trials, 0.95, df=n - 1)
    return float(low), float(high)


def labels_needed(share: Share, width: float) -> float:
    """Return how many labels more give an interval of a width; infinite where none do."""
    allowed = (width / (2 * _Z)) ** 2 - share.predictions
    if np.isnan(share.residual):
        return np.nan
    return max(0.0, float(np.ceil(share.residual / allowed)) - share.n) if allowed > 0 else np.inf


def adjusted_count(confusion: Float64Array, shares: Float64Array) -> Float64Array:
    """Return shares of classes that explain the predicted ones (Forman 2008), on the simplex."""
    from scipy.optimize import nnls

    # Rows are true classes. A heavy last equation makes the shares add up to 1.
    heavy = 1e4
    found = nnls(
        np.vstack([confusion.T, np.full(len(confusion), heavy)]), np.append(shares, heavy)
    )[0]
    return np.asarray(found / max(found.sum(), 1e-12))


def em_shares(found: Float64Array, prior: Float64Array) -> Float64Array:
    """Return shares of classes under prior shift by EM (Saerens et al. 2002, equation 9)."""
    shares = prior.copy()
    safe = np.maximum(prior, 1e-12)
    for _ in range(1000):
        weighed = found * (shares / safe)
        new = (weighed / np.maximum(weighed.sum(axis=1, keepdims=True), 1e-300)).mean(axis=0)
        if np.abs(new - shares).max() < 1e-8:
            return np.asarray(new)
        shares = new
    return shares


def bias_corrected(kind: str, scores: Float64Array, codes: Int64Array) -> Float64Array:
    """Return the temperature and biases that EM needs (Alexandari et al. 2020, section 3)."""
    from scipy.optimize import minimize

    n_outputs = scores.shape[1]
    rows = np.arange(len(codes))

    def loss(parameters: Float64Array) -> float:
        chances = probabilities(kind, scores / np.exp(parameters[0]) + parameters[1:])
        chosen = np.maximum(chances[rows, codes], 1e-12)
        return float(-np.log(chosen).mean() + 1e-4 * parameters[1:] @ parameters[1:])

    return np.asarray(minimize(loss, np.zeros(1 + n_outputs), method="L-BFGS-B").x)


def shifted_shares(
    kind: str, method: str, held: tuple[Float64Array, Int64Array], scores: Float64Array, seed: int
) -> tuple[Float64Array, Float64Array, Float64Array]:
    """Return shares of texts without labels, (n_classes,), and the ends of their intervals."""
    of_held, codes = held  # scores of left-out texts, and their classes
    estimate = _by_count if method == "adjusted" else _by_em
    # Percentiles over both samples drawn anew, the left-out texts within their classes.
    rng = np.random.default_rng(seed)
    classes = [np.flatnonzero(codes == k) for k in np.unique(codes)]
    value, drawn = estimate(kind, of_held, codes, scores), []
    for _ in range(N_RESAMPLES if method == "adjusted" else N_RESAMPLES // 4):
        rows = np.concatenate([rng.choice(part, len(part)) for part in classes])
        texts = rng.integers(0, len(scores), len(scores))
        drawn.append(estimate(kind, of_held[rows], codes[rows], scores[texts]))
    low, high = np.quantile(drawn, [0.025, 0.975], axis=0)
    return value, low, high


def _by_count(
    kind: str, of_held: Float64Array, codes: Int64Array, scores: Float64Array
) -> Float64Array:
    guess, given = (probabilities(kind, each).argmax(axis=1) for each in (of_held, scores))
    n_classes = scores.shape[1] + (kind == "ordinal")
    table = confusion_of(codes, guess, n_classes)
    rates = table / np.maximum(table.sum(axis=1, keepdims=True), 1)
    return adjusted_count(rates, np.bincount(given, minlength=n_classes) / len(scores))


def _by_em(
    kind: str, of_held: Float64Array, codes: Int64Array, scores: Float64Array
) -> Float64Array:
    parameters = bias_corrected(kind, of_held, codes)
    found = probabilities(kind, scores / np.exp(parameters[0]) + parameters[1:])
    prior = np.bincount(codes, minlength=found.shape[1]) / len(codes)
    return em_shares(found, prior)
