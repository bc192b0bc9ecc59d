"""What the share of each topic depends on: dates, groups, numbers.

The regressions are those of `inference`, in which every row is known.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from embedtopics._utils.checks import checked_choice, checked_count, is_whole, resolve_seed
from embedtopics._utils.fitted import FittedTopics, result_of
from embedtopics.clustering.results import NOISE
from embedtopics.errors import InputError
from embedtopics.inference._design import Design, make_design, parse_covariates
from embedtopics.inference._equations import (
    EquationFit,
    Equations,
    MarginalEffect,
    marginal_effects,
    marginal_table,
)
from embedtopics.inference._gold import half_rows
from embedtopics.inference._sample import Sample
from embedtopics.inference.results import Coefficients
from embedtopics.protocols import Float64Array, Int32Array, Int64Array, RandomState
from embedtopics.results import Decision
from embedtopics.topics._resolution import NOT_DRAWN, best_matches, draw_replicates
from embedtopics.topics.results import NO_TOPIC, TopicEffects, TopicResult
from embedtopics.topics.trends._by_group import count_rows, units_of, values_of

N_REPLICATES, N_OF_LARGE = 25, 10
"""Replicates by default, and those of large corpora. With five, an error can double by the seed."""

LARGE = 20_000
"""Documents from which a corpus is large."""


def effects(
    result: FittedTopics,
    formula: Any,
    *,
    topics: Sequence[int] | Mapping[str, Any] | None = None,
    link: str = "identity",
    reference: Mapping[str, Any] | None = None,
    units: Any = None,
    n_replicates: int | None = None,
    random_state: RandomState = 0,
) -> TopicEffects:
    """Estimate how the share of each topic changes with dates, groups and numbers.

    Each topic has one model of its share on all covariates together, so that an effect is adjusted
    for the other covariates.

    Parameters
    ----------
    result : TopicResult or fitted TopicModel
    formula : str, sequence of str, or mapping
        A formula over columns of the corpus, such as "~ date + source"; a list of columns; or
        values for each row by name. Formulas are those of formulaic: "~ date * source" adds an
        interaction, "~ bs(date, df=4) + source" a spline. They can call functions, so do not
        accept them from untrusted sources.

        Dates count from their mean in days if they span at most two months, in months if they span
        at most two years, and else in years; `units` of the result holds the unit. Other values
        that are not numbers are levels; `C(year)` takes numbers as levels and compares them to the
        lowest. Levels with fewer than five units are pooled. Rows without a value are left out.
        Functions of numbers that jump, such as `I(age >= 18)`, have marginal effects of their own
        beside those of the number.
    topics : sequence of int, or mapping of str to int or sequence of int, optional
        Ids of topics; by default all and no topic. A mapping adds up topics under a name, such as
        ``{"climate": [3, 7]}``.
    link : {"identity", "logit"}
        "identity": effects are differences of shares. "logit": effects are differences of log odds;
        `marginal_effects` of the result returns those of shares.
    reference : mapping of str to str, optional
        Level to which the other levels of a covariate are compared; by default the most frequent.
    units : str or array_like of shape (n_rows,), optional
        A column, or a value for each row, of the independent units, such as authors; by default
        each distinct text.
    n_replicates : int, optional
        Replicates of the clustering (see `with_stability`; each takes about half of a fit). By
        default 25, in corpora of 20,000 documents or more ten, or none if they cannot be drawn,
        which the decisions report. Fewer are faster, but errors then depend on the seed. 0 takes
        the topics as given.
    random_state : int, numpy.random.Generator or None

    Returns
    -------
    TopicEffects

    Raises
    ------
    InputError
        If a covariate does not exist, is constant, has more than 50 frequent levels or depends
        linearly on others; or if a parameter is invalid.

    Notes
    -----
    Least squares on shares, as in `estimateEffect` of stm: effects are differences of shares, and
    add up to 0 over all topics and no topic. With the logit link, coefficients are those of
    quasi-likelihood (Papke and Wooldridge 1996, "Econometric methods for fractional response
    variables").

    Errors are robust to heteroscedasticity and to dependence within units (HC3), with Student's t
    for the effective number of units behind an effect. A level without any row in a topic would
    have no error, so half a row in the topic and half a row outside of it count at every level, and
    two standard deviations to both sides of each number: in the errors of least squares, and in
    logits that would be infinite (see the decisions). In simulations, intervals of 0.95 hold
    effects of levels of 6 to 30 rows in 92 to 100 % of the cases, and those between 10 to 60
    authors in 92 to 97 %; near a share of 0 they are wide.

    With replicates, the variance grows by the mean square of the changes of the coefficients if the
    topics of one replicate replace those of the result: the method of composition (Treier and
    Jackman 2008; Roberts et al. 2014, "Structural topic models for open-ended survey responses").
    Replicates are fits to halves of the texts, so that these intervals are wide: in simulations
    with topics that overlap, by up to a half. Texts in a wrong topic weaken effects, which no
    interval shows.

    Examples
    --------
    >>> import embedtopics as et
    >>> model = et.TopicModel("tfidf", n_topics=4).fit(et.Corpus("embedtopics:demo", limit=120))
    >>> effects = et.topics.effects(model, "~ source", reference={"source": "press"})
    >>> effects.to_frame()["level"].unique().tolist()
    ['forum', 'newsletter', 'report']
    """
    result = result_of(result)
    checked_choice(link, "link", ("identity", "logit"))
    seed = resolve_seed(random_state)
    unit_of_row = units_of(result, units)
    targets = _Targets.of(result, topics)

    terms, names = parse_covariates(formula, set(map(str, result.corpus.metadata.columns)))
    columns = {name: values_of(result, column, name)[0] for name, column in names.items()}
    has_text = result.distinct.of_row >= 0
    design = make_design(terms, columns, has_text, unit_of_row, reference or {})
    rows = _Rows.of(result, design, unit_of_row, units)

    labels_again, notes = _replicates(result, n_replicates, seed)
    labels = result.clustering.labels[rows.documents]
    plain = _Partition(np.arange(len(labels)), labels, targets.sums)
    again = [_of_replicate(rows, result, drawn, targets.sums) for drawn in labels_again]
    family = "logistic" if link == "logit" else "linear"
    effects = _fit_targets(rows, targets.labels, plain, again, family)
    n_rows_of = np.bincount(rows.part)
    n_targets = len(targets.labels)

    return TopicEffects(
        columns=design.columns,
        covariates=design.covariates,
        levels=design.levels,
        references=design.references,
        units=design.units,
        topics=targets.ids,
        topic_names=targets.labels,
        link=link,
        shares=np.array([n_rows_of @ plain.inside(i) for i in range(n_targets)]) / len(design.rows),
        coefficients=effects.coefficients.value,
        errors=effects.coefficients.error,
        low=effects.coefficients.low,
        high=effects.coefficients.high,
        p=effects.coefficients.p,
        marginal=marginal_table(effects.marginal),
        n_rows=len(design.rows),
        n_documents=len(rows.documents),
        n_replicates=len(labels_again),
        decisions=(*design.decisions, *rows.decisions, *notes, *effects.decisions),
    )


class _Targets(NamedTuple):
    """The modelled shares: their ids and names, and the topics of each."""

    ids: tuple[Any, ...]
    labels: tuple[str, ...]
    sums: Float64Array  # (n_topics + 1, n_targets), 1 for topics that are added up; last is none

    @classmethod
    def of(cls, result: TopicResult, topics: Any) -> _Targets:
        n = result.n_topics
        if isinstance(topics, Mapping):
            parts, names = [_ids(one, n) for one in topics.values()], list(topics)
        else:
            ids = [*range(n), NOISE] if topics is None else _ids(topics, n)
            labels = [*(topic.name for topic in result.topics), NO_TOPIC]
            parts, names = [[one] for one in ids], [labels[one] for one in ids]
        sums = np.zeros((n + 1, len(parts)))
        for place, part in enumerate(parts):
            sums[part, place] = 1.0  # no topic is -1 and thus the last
        shown = [part[0] if len(part) == 1 else "+".join(map(str, part)) for part in parts]
        return cls(tuple(shown), tuple(map(str, names)), sums)


def _ids(topics: Any, n_topics: int) -> list[int]:
    """Return one id or several as a list."""
    ids = [topics] if is_whole(topics) else list(topics)
    for one in ids or [None]:
        if not is_whole(one) or not 0 <= one < n_topics:
            raise InputError("topics", f"ids of topics, 0 to {n_topics - 1}", one)
    return [int(one) for one in dict.fromkeys(ids)]


class _Effects(NamedTuple):
    """Coefficients, (n_targets, n_columns), and the effects of each target on its share."""

    coefficients: Coefficients
    marginal: list[MarginalEffect]
    decisions: list[Decision]


class _Partition(NamedTuple):
    """Some of the texts, their clusters, and the targets that count each cluster."""

    texts: Int64Array
    labels: Int32Array  # (n_texts,), -1 for none
    sums: Float64Array  # (n_clusters + 1, n_targets), the last of none

    def inside(self, target: int) -> Float64Array:
        """Return 1 for the texts in a target, and 0 for the others."""
        return np.asarray(self.sums[self.labels, target])


@dataclass(frozen=True, eq=False)
class _Rows:
    """The rows of the models, and the prior, which counts half inside and half outside a topic."""

    design: Design
    sample: Sample
    part: Int64Array  # (n_used,), text and unit of each row
    documents: Int64Array  # (n_parts,)
    prior: Equations
    decisions: tuple[Decision, ...]

    @classmethod
    def of(cls, result: TopicResult, design: Design, unit_of_row: Int64Array, units: Any) -> _Rows:
        rows = design.rows
        n = len(design.rows)
        pairs = np.stack([result.distinct.of_row[rows], unit_of_row[rows]])
        parts, place = np.unique(pairs, axis=1, return_inverse=True)
        sample = Sample.of(np.ones(n), np.zeros(n), unit_of_row[rows])

        cells = np.full(len(unit_of_row), -1)
        cells[rows] = 0
        counted = count_rows(result, cells, 1, units)
        prior = half_rows(design, design.matrix, sample.unit, counted.correlation)
        return cls(design, sample, place.ravel(), parts[0], prior, counted.decisions)

    def fit(
        self, family: str, shares: Float64Array, texts: Int64Array, *, prior: bool
    ) -> EquationFit:
        """Fit the shares (n_texts,) of some texts."""
        position = np.full(len(self.documents), -1)
        position[texts] = np.arange(len(texts))
        of_row = position[self.part]
        rows = np.flatnonzero(of_row >= 0)
        y = shares[of_row[rows], None]
        equations = Equations(self.design.matrix[rows], y, np.ones(len(rows)), rows)
        return EquationFit(family, equations, self.sample, self.prior if prior else None)


def _fit_targets(
    rows: _Rows,
    labels: tuple[str, ...],
    plain: _Partition,
    again: list[_Partition],
    family: str,
) -> _Effects:
    models, estimates, decisions, without = [], [], [], []
    for place, label in enumerate(labels):
        y = plain.inside(place)
        model = rows.fit(family, y, plain.texts, prior=False)
        if is_separated := model.separated_by() is not None:
            without.append(label)
            model = rows.fit(family, y, plain.texts, prior=True)

        estimate = model.estimate()
        covariance = estimate.covariance
        if family == "linear" or is_separated:
            # A level without a text in the topic would have no variance.
            smooth = model if is_separated else rows.fit(family, y, plain.texts, prior=True)
            covariance = smooth.estimate().covariance

        for replicate in again:
            both = replicate.inside(place), y[replicate.texts]
            ends = [rows.fit(family, shares, replicate.texts, prior=True).beta for shares in both]
            shift = (ends[0] - ends[1]).ravel()
            covariance = covariance + np.outer(shift, shift) / len(again)

        models.append(model)
        estimates.append(estimate._replace(covariance=covariance))

    if without:
        message = (
            f"Covariates separate the texts of {', '.join(map(repr, without))} from others. There, "
            "half a text inside and half a text outside of the topic count at each level, and two "
            "standard deviations to both sides of each number."
        )
        decisions.append(Decision("trends", "separated", len(without), message))

    marginal: dict[str, list[MarginalEffect]] = defaultdict(list)
    for change in rows.design.changes():  # one at a time, because its matrices are large
        for label, model, estimate in zip(labels, models, estimates, strict=True):
            marginal[label] += marginal_effects([change], model, estimate, (label,))

    fits = [estimate.coefficients() for estimate in estimates]
    arrays = [np.array([getattr(fit, name) for fit in fits]) for name in vars(fits[0])]
    return _Effects(Coefficients(*arrays), [*chain(*marginal.values())], decisions)


def _replicates(
    result: TopicResult, n_replicates: int | None, seed: int
) -> tuple[list[Int32Array], list[Decision]]:
    """Return the labels of the replicates, or a decision with the reason why there are none."""
    n = N_OF_LARGE if len(result.clustering.labels) >= LARGE else N_REPLICATES
    if n_replicates is not None:
        n = checked_count(n_replicates, "n_replicates", 0)

    if not n or not result.n_topics:
        return [], []
    try:
        return draw_replicates(result, n, seed, "effects", None), []
    except InputError as error:
        if n_replicates is not None:
            raise
        message = f"The intervals take the topics as given, without replicates: {error}."
        return [], [Decision("trends", "no_replicates", True, message)]


def _of_replicate(
    rows: _Rows, result: TopicResult, labels_again: Int32Array, sums: Float64Array
) -> _Partition:
    """Return the texts of a replicate, whose clusters count as the topics that match best."""
    both = np.flatnonzero(labels_again != NOT_DRAWN)
    labels, weights = result.clustering.labels[both], result.distinct.weights[both]
    _, match = best_matches(labels, labels_again[both], weights, result.n_topics)
    texts = np.flatnonzero(labels_again[rows.documents] != NOT_DRAWN)
    clusters = labels_again[rows.documents[texts]]
    n_clusters = int(clusters.max(initial=NOISE)) + 1
    matched = np.flatnonzero((match >= 0) & (match < n_clusters))
    sums_again = np.zeros((n_clusters + 1, sums.shape[1]))
    np.add.at(sums_again, match[matched], sums[matched])
    sums_again[-1] = sums[-1]
    return _Partition(texts, clusters, sums_again)
