"""Figures of two encoders on the same examples, and whether they differ by more than chance."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from embedtopics._utils.machine import one_blas_thread
from embedtopics.errors import InputError
from embedtopics.evaluation._bootstrap import estimate, interval, resampled_sums
from embedtopics.evaluation._pairs import (
    Measure,
    areas,
    over_thresholds,
    precisions,
    rank_correlations,
    row_dots,
)
from embedtopics.evaluation.results import Estimate
from embedtopics.neighbors._graph import unit_rows
from embedtopics.protocols import Float64Array, FloatArray, Int64Array
from embedtopics.training._examples import Examples
from embedtopics.training._split import connected_texts

Statistic = Callable[[Float64Array, npt.NDArray[Any]], Measure]
"""Takes scores and truth of shape (n,)."""

CONFIDENCE = 0.95
ENTRIES_AT_ONCE = 4_000_000
"""Counts of resamples that are held at a time."""

_SMALL = 1e-24
"""Share of the squared size below which a sum of squared deviations is rounding alone."""


def mean(scores: Float64Array, truth: npt.NDArray[Any]) -> Measure:
    """Return the measure of the mean score; the scores already hold the truth."""
    return lambda counts: ratio((counts * scores).sum(axis=1), counts.sum(axis=1))


def pearson(scores: Float64Array, truth: npt.NDArray[Any]) -> Measure:
    """Return the measure of Pearson's correlation; NaN where scores or truth do not vary."""

    def measure(counts: Float64Array) -> Float64Array:
        total = counts.sum(axis=1, keepdims=True)
        # Centred first: the sums of squares alone would lose half of the digits.
        dx, dy = (z - ratio((counts * z).sum(axis=1, keepdims=True), total) for z in (x, y))
        both, of_x, of_y = (
            (counts * one * other).sum(axis=1) for one, other in ((dx, dy), (dx, dx), (dy, dy))
        )
        varies = (of_x > _SMALL * np.square(x).sum()) & (of_y > _SMALL * np.square(y).sum())
        correlation = ratio(both, np.sqrt(of_x) * np.sqrt(of_y))
        return np.where(varies, np.clip(correlation, -1.0, 1.0), np.nan)

    x, y = scores, np.asarray(truth, dtype=np.float64)
    return measure


def auc(scores: Float64Array, truth: npt.NDArray[Any]) -> Measure:
    """Return the measure of how often a true example has a higher score than a false one."""
    return over_thresholds(scores, truth, areas)


def average_precision(scores: Float64Array, truth: npt.NDArray[Any]) -> Measure:
    """Return the measure of the average precision of true examples, the highest score first."""
    return over_thresholds(scores, truth, precisions)


def ratio(above: Float64Array, below: Float64Array) -> Float64Array:
    """Divide, with NaN for a division by 0."""
    quotient = np.full(np.shape(above), np.nan)
    np.divide(above, below, out=quotient, where=below != 0)
    return quotient


@dataclass(frozen=True, eq=False)
class Figure:
    """One figure of both encoders, by what each gives every example."""

    metric: str
    statistic: Statistic
    before: Float64Array  # (n,), scores of the examples
    after: Float64Array  # (n,), scores of the examples
    truth: npt.NDArray[Any]  # (n,), what the scores are held against
    units: Int64Array  # (n,), examples of one unit are drawn together


@dataclass(frozen=True)
class Difference:
    """A figure before and after training."""

    before: float
    after: float
    low: float  # interval of the difference
    high: float  # interval of the difference
    p: float  # two-sided, of no difference
    n_units: int  # what was drawn with replacement
    n_changed: int  # units to which the encoders give different scores
    exact: float = 0.0  # p-value of the exact test on these units alone, a part of `p`


def compare_scores(figure: Figure, n_resamples: int, seed: int) -> Difference:
    """Return how a figure differs, by the expanded percentile interval (Hesterberg 2015)."""
    _, unit_of = np.unique(figure.units, return_inverse=True)
    n_units, n = int(unit_of.max()) + 1, len(unit_of)

    first, changed = (figure.statistic(x, figure.truth) for x in (figure.before, figure.after))
    before, after = (float(measure(np.ones((1, n)))[0]) for measure in (first, changed))
    resamples = _resamples(unit_of, n_resamples, seed)
    drawn = np.concatenate([changed(counts) - first(counts) for counts in resamples])
    moved = np.bincount(unit_of, (figure.before != figure.after).astype(float)) > 0
    low, high = (float(end) for end in interval(drawn, n_units, CONFIDENCE))
    n_changed = int(moved.sum())
    exact = min(1.0, 2.0 ** (1 - n_changed))
    if figure.statistic is mean:
        by_unit = np.zeros(n_units)
        np.add.at(by_unit, unit_of, figure.after - figure.before)
        exact = _sign_test(by_unit[moved], n_resamples, seed)
    p = max(p_of(drawn, n_units), exact)
    if math.isnan(before) or math.isnan(after):
        low = high = math.nan
        p = 1.0
    return Difference(before, after, low, high, p, n_units, n_changed, exact)


def _resamples(unit_of: Int64Array, n_resamples: int, seed: int) -> Iterator[Float64Array]:
    from scipy.sparse import csr_matrix

    n, n_units = len(unit_of), int(unit_of.max()) + 1
    belongs: Any = csr_matrix((np.ones(n), (unit_of, np.arange(n))), shape=(n_units, n))
    at_once = max(1, ENTRIES_AT_ONCE // max(n, n_units))
    seeds = np.random.SeedSequence(seed).generate_state(-(-n_resamples // at_once))
    for number, begin in enumerate(range(0, n_resamples, at_once)):
        size = min(at_once, n_resamples - begin)
        yield resampled_sums(belongs, size, int(seeds[number]))


def p_of(drawn: Float64Array, n_units: int) -> float:
    """Return the two-sided p-value of no difference, at the resolution of the resamples."""
    from scipy.stats import norm, t

    ordered = np.sort(drawn[~np.isnan(drawn)])
    if n_units < 2 or not len(ordered):
        return 1.0
    tail = max(min(_reaching(ordered), _reaching(-ordered[::-1])), 1 / (len(ordered) + 1))
    if tail >= 0.5:
        return 1.0
    reach = float(norm.isf(tail)) * math.sqrt((n_units - 1) / n_units)
    return float(2 * t.sf(reach, n_units - 1))


def _reaching(ordered: Float64Array) -> float:
    """Return the largest share whose quantile is not above 0, interpolated."""
    n, below = len(ordered), int(np.count_nonzero(ordered <= 0))
    if below in (0, n):
        return float(below > 0)
    last, following = float(ordered[below - 1]), float(ordered[below])
    return (below - 1 - last / (following - last)) / (n - 1)


def _sign_test(differences: Float64Array, n_draws: int, seed: int) -> float:
    """Return the two-sided p-value of the sign test."""
    from scipy.stats import binomtest

    real = differences[differences != 0]
    if not len(real):
        return 1.0
    sizes = np.abs(real)
    if np.ptp(sizes) <= 1e-12 * sizes.max():
        return float(binomtest(int((real > 0).sum()), len(real)).pvalue)
    rng = np.random.default_rng([seed, 1])
    reached, observed = 0, abs(float(real.sum())) * (1 - 1e-12)
    at_once = max(1, ENTRIES_AT_ONCE // len(real))
    for begin in range(0, n_draws, at_once):
        size = min(at_once, n_draws - begin)
        heads = rng.integers(0, 2, size=(size, len(real)), dtype=np.bool_)
        reached += int((np.abs(np.where(heads, real, -real).sum(axis=1)) >= observed).sum())
    return (reached + 1) / (n_draws + 1)


def holm(p_values: list[float]) -> list[float]:
    """Return p-values after the correction of Holm (1979)."""
    order = np.argsort(p_values, kind="stable")
    raised = np.sort(p_values) * np.arange(len(p_values), 0, -1)
    adjusted = np.empty(len(p_values))
    adjusted[order] = np.minimum(np.maximum.accumulate(raised), 1.0)
    return [float(p) for p in adjusted]


QUERIES_AT_ONCE = 256
CUTOFF = 10
"""Ranks that count in the mean reciprocal rank."""

DIGITS = 6
TIE = 10.0**-DIGITS
"""Cosines nearer than this are equal, so that rounding on another machine changes no figure."""

LUMP, LARGEST_SHARE = 50, 0.2
"""Examples, and the share of them that share texts, from which on too little is left to draw."""


class Scored(NamedTuple):
    """What an encoder gives each example in one metric."""

    metric: str
    statistic: Statistic
    scores: Float64Array  # (n,)
    truth: npt.NDArray[Any]  # (n,), what the scores are held against
    rows: Int64Array  # (n,), the example of each score


@dataclass(frozen=True, eq=False)
class Embedded:
    """Vectors of texts."""

    rows: FloatArray  # (n_texts, n_dimensions), of length one
    place: dict[str, int]  # row of each text

    def of(self, texts: Sequence[str]) -> FloatArray:
        """Return the vectors of texts, shape (n, n_dimensions)."""
        return self.rows[np.array([self.place[text] for text in texts], dtype=np.int64)]


def embed(encoder: Any, columns: Iterable[Sequence[str]], what: str) -> Embedded:
    """Encode each distinct text of some columns once."""
    # In one order, so that nothing depends on the order of the examples.
    texts = sorted({text for column in columns for text in column})
    vectors = encoder.encode(texts)
    if hasattr(vectors, "toarray"):
        raise InputError(what, "an encoder of dense vectors", encoder, "give it n_components")
    return embedded_texts(vectors, texts, f"the encoder {what} training", parameter=what)


def embedded_texts(vectors: Any, texts: Sequence[str], name: str, *, parameter: str) -> Embedded:
    """Return vectors of texts, dense or sparse, scaled to length one."""
    if hasattr(vectors, "toarray"):
        rows = _unit_sparse_rows(vectors, name)
    else:
        rows = unit_rows(vectors, what=f"the vectors of {name}", keep_zeros=True)
    if rows.shape[0] != len(texts):
        expected = f"an encoder that returns a vector for each of {len(texts):,} texts"
        raise InputError(parameter, expected, found=f"{rows.shape[0]:,}")
    return Embedded(rows, {text: place for place, text in enumerate(texts)})


def _unit_sparse_rows(vectors: Any, name: str) -> Any:
    from scipy.sparse import csr_matrix, diags

    rows = csr_matrix(vectors).astype(np.float64)
    if not np.isfinite(rows.data).all():
        raise InputError(f"the vectors of {name} must be finite")
    lengths = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1)).ravel())
    return csr_matrix(diags(1 / np.where(lengths > 0, lengths, 1.0)) @ rows)


def units_of(examples: Examples) -> tuple[Int64Array, str]:
    """Return the group of each example; examples that share a text are not independent."""
    texts = sorted({text for column in examples.columns for text in column})
    place = {text: number for number, text in enumerate(texts)}
    columns = np.array([[place[text] for text in column] for column in examples.columns])
    units = np.unique(connected_texts(columns)[columns[0]], return_inverse=True)[1]
    sizes = np.bincount(units)
    by_first = np.unique(columns[0], return_inverse=True)[1]
    is_one_lump = len(examples) >= LUMP and sizes.max() > LARGEST_SHARE * len(examples)
    if not is_one_lump or by_first.max() + 1 <= len(sizes):
        return units.astype(np.int64), ""
    return by_first.astype(np.int64), (
        "Many examples share texts. Only examples with the same first text were resampled "
        "together, so the interval may be slightly too narrow."
    )


def figures_of(
    examples: Examples, before: Embedded, after: Embedded, units: Int64Array
) -> list[Figure]:
    """Return the figures of a set of examples; units (n,)."""
    both = zip(scored_examples(examples, before), scored_examples(examples, after), strict=True)
    return [
        Figure(one.metric, one.statistic, one.scores, other.scores, one.truth, units[one.rows])
        for one, other in both
    ]


def scored_examples(examples: Examples, encoder: Embedded, what: str = "test") -> list[Scored]:
    """Return the scores of a set of examples in each metric; `what` names the set in errors."""
    kind = examples.kind
    if kind in ("graded", "classed"):
        labels = np.asarray(examples.labels)
        if np.ptp(labels) == 0:
            raise InputError(what, "of different labels", found=f"{labels[0]:g} for all examples")
    if kind == "nli":
        return _inference(examples, encoder, what)
    measures = {"graded": _graded, "classed": _classed, "triplets": _triplets, "pairs": _pairs}
    return measures[kind](examples, encoder)


def scores_estimate(scored: Scored, units: Int64Array, n_resamples: int, seed: int) -> Estimate:
    """Return the figure of one encoder; examples of one unit, (n,), are drawn together."""
    _, unit_of = np.unique(units, return_inverse=True)
    measure = scored.statistic(scored.scores, scored.truth)
    value = float(measure(np.ones((1, len(unit_of))))[0])
    resamples = _resamples(unit_of, n_resamples, seed)
    drawn = np.concatenate([measure(counts) for counts in resamples])
    least = -1.0 if scored.statistic in (rank_correlations, pearson) else 0.0
    n_units = int(unit_of.max()) + 1
    return estimate(value, drawn, len(unit_of), n_units=n_units, bounds=(least, 1.0))


def _graded(examples: Examples, encoder: Embedded) -> list[Scored]:
    labels, rows = np.asarray(examples.labels), np.arange(len(examples))
    scores = _similarities(examples, encoder)
    return [
        Scored("Spearman correlation", rank_correlations, scores, labels, rows),
        Scored("Pearson correlation", pearson, scores, labels, rows),
    ]


def _classed(examples: Examples, encoder: Embedded) -> list[Scored]:
    is_pair, rows = np.asarray(examples.labels) == 1, np.arange(len(examples))
    scores = _similarities(examples, encoder)
    return [
        Scored("AUC", auc, scores, is_pair, rows),
        Scored("average precision", average_precision, scores, is_pair, rows),
    ]


def _inference(examples: Examples, encoder: Embedded, what: str) -> list[Scored]:
    """Compare entailed with contradicted hypotheses, of one premise and of all."""
    names = [name.strip().casefold() for name in examples.names]
    labels = np.asarray(examples.labels)
    entailed, contradicted = (
        np.isin(labels, [i for i, name in enumerate(names) if name.startswith(stem)])
        for stem in ("entail", "contrad")
    )
    if not entailed.any() or not contradicted.any():
        got = f"{int(entailed.sum()):,} and {int(contradicted.sum()):,} of {examples.names}"
        raise InputError(what, "of pairs of entailment and of contradiction", found=got)

    scores = _similarities(examples, encoder)
    asked = np.flatnonzero(entailed | contradicted)
    name = "AUC, entailment against contradiction"
    figures = [Scored(name, auc, scores[asked], entailed[asked], asked)]

    pairs = _same_premise(examples.columns[0], entailed, contradicted)
    if len(pairs):
        right = (scores[pairs[:, 0]] > scores[pairs[:, 1]] + TIE).astype(float)
        name = "entailed nearer than contradicted"
        figures.append(Scored(name, mean, right, np.ones(len(pairs)), pairs[:, 0]))
    return figures


def _same_premise(
    premises: Sequence[str], entailed: npt.NDArray[np.bool_], contradicted: npt.NDArray[np.bool_]
) -> Int64Array:
    """Return each entailed and contradicted pair of one premise, shape (n, 2)."""
    of_premise: dict[str, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
    for side, is_of_class in enumerate((entailed, contradicted)):
        for row in np.flatnonzero(is_of_class).tolist():
            of_premise[premises[row]][side].append(row)
    both = [(a, b) for one, other in of_premise.values() for a in one for b in other]
    return np.array(both, dtype=np.int64).reshape(-1, 2)


def _triplets(examples: Examples, encoder: Embedded) -> list[Scored]:
    anchor, positive, *negatives = (encoder.of(column) for column in examples.columns)
    hardest = np.max([row_dots(anchor, negative) for negative in negatives], axis=0)
    scores = (row_dots(anchor, positive) > hardest + TIE).astype(float)
    rows = np.arange(len(examples))
    return [Scored("accuracy", mean, scores, np.ones(len(rows)), rows)]


def _pairs(examples: Examples, encoder: Embedded) -> list[Scored]:
    rank = _partner_ranks(examples, encoder)
    rows, truth = np.arange(len(examples)), np.ones(len(examples))
    reciprocal = np.where(rank <= CUTOFF, 1 / rank, 0.0)
    return [
        Scored(f"MRR@{CUTOFF}", mean, reciprocal, truth, rows),
        Scored("accuracy@1", mean, (rank == 1).astype(float), truth, rows),
    ]


def _partner_ranks(examples: Examples, encoder: Embedded) -> Float64Array:
    """Return the rank of each second text for its first; ties count against it."""
    queries, answers = examples.columns[:2]
    candidates = sorted(set(answers))
    place = {text: number for number, text in enumerate(candidates)}
    right: dict[str, set[int]] = defaultdict(set)
    for query, answer in zip(queries, answers, strict=True):
        right[query].add(place[answer])
    vectors = encoder.of(candidates).astype(np.float64)
    ranks = np.empty(len(queries))
    with one_blas_thread():
        for begin in range(0, len(queries), QUERIES_AT_ONCE):
            asked = queries[begin : begin + QUERIES_AT_ONCE]
            product = encoder.of(asked).astype(np.float64) @ vectors.T
            similarity = product if isinstance(product, np.ndarray) else product.toarray()
            for row, query in enumerate(asked):
                target = similarity[row, place[answers[begin + row]]]
                others = np.array(sorted(right[query] | {place.get(query, -1)} - {-1}))
                rivals = np.count_nonzero(similarity[row] > target - TIE)
                rivals -= np.count_nonzero(similarity[row, others] > target - TIE)
                ranks[begin + row] = 1 + rivals
    return ranks


def _similarities(examples: Examples, encoder: Embedded) -> npt.NDArray[np.float64]:
    first, second = examples.columns[:2]
    return np.round(row_dots(encoder.of(first), encoder.of(second)), DIGITS)
