"""A question over all reasonable choices of encoders, numbers of topics, seeds and words."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from math import factorial, nan
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_matrix
from sklearn.base import clone

from embedtopics._utils.checks import checked_choice, is_number
from embedtopics._utils.display import progress_bar
from embedtopics._utils.fitted import FittedTopics, result_of
from embedtopics.clustering.results import NOISE
from embedtopics.corpus._corpus import Corpus, as_corpus
from embedtopics.encoders._registry import resolve_encoder
from embedtopics.encoders.sentence._encoder import LONG_TEXTS
from embedtopics.errors import InputError
from embedtopics.evaluation._bootstrap import wilson
from embedtopics.protocols import Float64Array, Int32Array
from embedtopics.terms._counts import count_by_topic
from embedtopics.terms._representative import best_terms
from embedtopics.topics._clusters import ClusterTree, NotEnoughTopics, Resolution
from embedtopics.topics._describe import fitted_weighting
from embedtopics.topics._model import TopicModel
from embedtopics.topics._propagation import assign_outliers
from embedtopics.topics._relabel import checked_topic_ids
from embedtopics.topics._repetition import texts_to_learn
from embedtopics.topics._resolution import clusters_of, recut
from embedtopics.topics.reading._words import Z_OF_95
from embedtopics.topics.results import CHOICES, Specifications, Topic, TopicResult
from embedtopics.topics.trends._effects import effects
from embedtopics.topics.trends._over_time import over_time

LEAST_OVERLAP = 0.25
"""Smallest Jaccard overlap of a matching topic: two halves of it have a third of all in common."""

Answer = tuple[int, str, float, float, float]
"""Topic of the main study or -1, name of the quantity, estimate, and interval."""


def specifications(
    corpus: Any,
    encoders: Sequence[Any] = (None,),
    n_topics: Sequence[int | str] = ("auto",),
    *,
    random_states: Sequence[int] = (0,),
    words: Sequence[Any] = ("auto",),
    long_texts: Sequence[str] = ("auto",),
    question: str | Callable[[TopicResult], Any] = "shares",
    topics: Sequence[int | str] | None = None,
    main: FittedTopics | None = None,
    model: TopicModel | None = None,
    show_progress: bool | None = None,
) -> Specifications:
    """Answer a question with every combination of choices (a multiverse, or specification curve).

    Texts are encoded once for each encoder, and other numbers of topics are cut from one fit. A
    topic of the main study is matched by its documents: one to one with the largest sum of Jaccard
    overlaps, joined by topics with more than half of their texts in it. An overlap below 0.25 is
    no match; such a specification does not support a conclusion.

    Parameters
    ----------
    corpus : Corpus, or what `Corpus` takes
    encoders : sequence of str or objects with ``encode(texts)``
    n_topics : sequence of int or {"auto", "fine", "coarse"}
    random_states : sequence of int
        Values of `random_state` of `TopicModel`.
    words : sequence
        Values of `words` of `TopicModel`, such as "auto" and "lemmas".
    long_texts : sequence of {"auto", "truncate", "chunk"}
        How checkpoints read long texts, see `SentenceEncoder`.
    question : str or function
        "shares"; "effects(date, party)", or a formula, "effects(~ date * party)"; "trends(year)",
        the change of shares from the first to the last third of the periods; or a function that
        takes a `TopicResult` and returns a number, or a mapping or Series of numbers by topic id or
        name. A number can be (estimate, low, high).
    topics : sequence of int or str, optional
        Topics of the main study to ask about, by default all.
    main : TopicResult or fitted TopicModel, optional
        The main study, a result of the same texts; by default the first specification.
    model : TopicModel, optional
        The other parameters of the fits.
    show_progress : bool or None

    Returns
    -------
    Specifications

    Raises
    ------
    InputError
        If there is no choice or an unknown one, if a topic does not exist, if the main study has
        other texts, or if the question has no answer.

    Notes
    -----
    The conclusion of an estimate is "above 0", "below 0" or "unclear" by its 95 % interval; shares
    agree if their intervals overlap. Intervals of effects take the topics as given. The variance
    by choice is the Shapley value of each choice in the R² of a regression on all of them, which
    are eta squared if no estimate is missing. Seeds matter only for more than 20,000 texts, whose
    neighbors are approximate, and words only for numbers of topics with a name and for terms.

    References
    ----------
    Steegen et al. (2016), "Increasing transparency through a multiverse analysis"; Simonsohn,
    Simmons and Nelson (2020), "Specification curve analysis"; Lipovetsky and Conklin (2001),
    "Analysis of regression in game theory approach".

    Examples
    --------
    >>> import embedtopics as et
    >>> corpus = et.Corpus("embedtopics:demo", limit=120)
    >>> answers = et.topics.specifications(corpus, ["tfidf"], [4, 5], question="shares")
    >>> answers.choices[["encoder", "n_topics", "n_fitted"]]
      encoder  n_topics  n_fitted
    0   tfidf         4         4
    1   tfidf         5         5
    """
    corpus = as_corpus(corpus)
    study = None
    if main is not None:
        study = result_of(main, "main")
    choices = _checked(
        {
            "encoder": encoders,
            "n_topics": n_topics,
            "random_state": random_states,
            "words": words,
            "long_texts": long_texts,
        }
    )
    ask = _question(question)
    base = TopicModel(show_progress=False) if model is None else clone(model)
    rows = []
    answers = []
    n = int(np.prod([len(values) for values in choices.values()]))

    with progress_bar(total=n, unit="fit", description="specify", show=show_progress) as bar:
        for names, result in _fits(corpus, choices, base, is_whole=callable(question)):
            if study is None:
                study = result
            ids = [*range(study.n_topics)]
            if topics is not None:
                ids = checked_topic_ids(study, topics)
            if not np.array_equal(study.distinct.hashes, result.distinct.hashes):
                raise InputError("main", "a result of the same texts", study)

            match = Match.of(study, result)
            rows.append((*names, result.n_topics, result.coverage, match.unmatched(result)))
            answers.append((match, {answer[:2]: answer[2:] for answer in ask(result, match, ids)}))
            bar.update()

    assert study is not None
    in_main = {answer[:2]: answer[2:] for answer in ask(study, Match.of(study, study), ids)}
    if not in_main:
        raise InputError("question", "one with an answer: a number, or numbers by topic", question)

    table = pd.DataFrame(rows, columns=[*CHOICES, "n_fitted", "coverage", "unmatched"])
    estimates = _estimates(table, study, in_main, answers, is_share=question == "shares")
    text = question if isinstance(question, str) else getattr(question, "__name__", "question")
    return Specifications(table, estimates, _summary(table, estimates, in_main), text, study)


def _checked(choices: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Return the lists of choices, or refuse an empty list or an unknown choice."""
    lists = {
        name: list(values) if isinstance(values, (list, tuple, range)) else [values]
        for name, values in choices.items()
    }
    for name, values in lists.items():
        parameter = {"encoder": "encoders", "random_state": "random_states"}.get(name, name)
        if not values:
            raise InputError(parameter, "a list with at least one choice", values)
    for value in lists["n_topics"]:
        Resolution(value)
    for value in lists["long_texts"]:
        checked_choice(value, "long_texts", LONG_TEXTS)
        if value != "auto" and not all(isinstance(one, str | None) for one in lists["encoder"]):
            expected = '"auto" for encoders that are objects, which have their own'
            raise InputError("long_texts", expected, value)
    return lists


class _Once:
    """An encoder that encodes the texts of the corpus once for all fits."""

    def __init__(self, encoder: Any) -> None:
        self._encoder, self._vectors = encoder, None
        self._texts: list[str] | None = None

    def encode(self, texts: Sequence[str]) -> Any:
        if self._texts is None or self._texts != list(texts):
            vectors = self._encoder.encode(texts)
            if self._texts is not None:  # names, for constraints
                return vectors
            self._texts, self._vectors = list(texts), vectors
        return self._vectors


def _fits(
    corpus: Corpus, choices: dict[str, list[Any]], model: TopicModel, *, is_whole: bool
) -> Any:
    """Yield the names of the choices and the result of each specification, the first one first."""
    cut = recut if is_whole else _recut
    texts = corpus.document_texts()

    for encoder, reading in product(choices["encoder"], choices["long_texts"]):
        options = {} if reading == "auto" else {"long_texts": reading}
        resolved = resolve_encoder(encoder or "all-MiniLM-L6-v2", cached=True, **options)
        learned = texts_to_learn(texts, corpus.distinct().weights)
        once = _Once(resolved.fitted_to(learned).reading_to_ends(texts))
        name = encoder if isinstance(encoder, str) else resolved.name
        before: ClusterTree | None = None

        for seed, words in product(choices["random_state"], choices["words"]):
            first, *others = choices["n_topics"]
            fresh = clone(model).set_params(random_state=seed, words=words, n_topics=first)
            fitted = fresh.set_params(encoder=once).fit(corpus).result_
            yield (name, first, seed, str(words), reading), fitted
            clusters: Any = clusters_of(fitted) if others else None
            if before is not None:  # fits that differ in words alone start from the same groups
                clusters = clusters.sharing(before)
            before = clusters

            for number in others:
                try:
                    result = cut(fitted, clusters, number)
                except NotEnoughTopics as error:
                    result = cut(fitted, clusters, error.best.n_informative)
                yield (name, number, seed, str(words), reading), result


def _recut(result: TopicResult, clusters: ClusterTree, n_topics: int | str) -> TopicResult:
    """Return a result cut at another resolution, whose topics have a size and three terms only."""
    weights, coverage = result.distinct.weights, result.settings["coverage"]
    cut = clusters.cut(Resolution(n_topics))
    assigned = assign_outliers(result.graph, cut, weights, coverage, result.constraints)
    labels, n = assigned.clustering.labels, len(assigned.clustering.persistence)
    counts = count_by_topic(result.term_counts.counts, labels, n, weights)
    weighed = (
        csr_matrix(fitted_weighting(result, counts).transform(counts)) if counts.nnz else counts
    )
    sizes = np.bincount(labels[labels >= 0], weights[labels >= 0], minlength=n).astype(int).tolist()
    names = [
        ", ".join(result.term_counts.terms[i] for i in ids)
        for ids, _ in best_terms(weighed, result.term_counts, 3)
    ]
    topics = [Topic(i, names[i], sizes[i], sizes[i] / weights.sum(), (), (), ()) for i in range(n)]
    return replace(result, clustering=assigned.clustering, topics=tuple(topics), stability=None)


@dataclass(frozen=True, eq=False)
class Match:
    """The topics of a result that belong to each topic of the main study, and their overlap."""

    main: TopicResult
    first: Int32Array  # (n_topics of the result,), topic of the main study matched one to one or -1
    topic: Int32Array  # (n_topics of the result + 1,), the same with joined topics; the last is -1
    overlap: Float64Array  # (n_topics of the main study,)

    @classmethod
    def of(cls, main: TopicResult, result: TopicResult) -> Match:
        """Match topics by the distinct documents of both, weighted by their rows."""
        weights, n_main, n_here = main.distinct.weights, main.n_topics, result.n_topics
        shared = np.zeros((n_here + 1, n_main + 1))  # the last are no topic
        np.add.at(shared, (result.clustering.labels, main.clustering.labels), weights)
        sizes, sizes_main = shared.sum(axis=1)[:-1], shared.sum(axis=0)[:-1]
        inside = shared[:-1, :-1]
        jaccard = inside / np.maximum(sizes[:, None] + sizes_main - inside, 1)
        first = np.full(n_here, NOISE, dtype=np.int32)
        here, there = linear_sum_assignment(-jaccard)
        is_match = jaccard[here, there] >= LEAST_OVERLAP
        first[here[is_match]] = there[is_match]
        most = inside.argmax(axis=1) if n_main else np.zeros(n_here, dtype=np.int64)
        is_inside = 2 * inside.max(axis=1, initial=0.0) > sizes
        topic = np.append(np.where((first == NOISE) & is_inside, most, first), NOISE)
        member = topic[:-1, None] == np.arange(n_main)
        both, union = (member * inside).sum(axis=0), (member * sizes[:, None]).sum(axis=0)
        overlap = both / np.maximum(union + sizes_main - both, 1)
        topic = np.where(np.append(overlap < LEAST_OVERLAP, False)[topic], NOISE, topic)
        overlap = np.where(overlap < LEAST_OVERLAP, 0.0, overlap)
        return cls(main, first, topic.astype(np.int32), overlap)

    def unmatched(self, result: TopicResult) -> tuple[str, ...]:
        """Return the names of the topics of a result that match none of the main study."""
        return tuple(one.name for one in result.topics if self.topic[one.topic_id] == NOISE)

    def renumbered(self, result: TopicResult) -> TopicResult:
        """Return a result with the topics of the main study in place of those that match them."""
        clustering = replace(result.clustering, labels=self.topic[result.clustering.labels])
        return replace(result, clustering=clustering, topics=self.main.topics)


Ask = Callable[[TopicResult, Match, list[int]], list[Answer]]


def _question(question: Any) -> Ask:
    """Return a function that answers a question for a result, by topics of the main study."""
    if callable(question):
        return lambda result, match, ids: _by_function(question, result, match, ids)
    parsed = re.fullmatch(r"\s*(shares|effects|trends)\s*(?:\((.*)\))?\s*", str(question), re.S)
    if parsed is None or (parsed[1] == "effects" and not parsed[2]):
        expected = 'a function, "shares", "effects(COLUMNS)" or "trends(PERIOD)"'
        raise InputError("question", expected, question)
    ask = {"shares": _shares, "effects": _effects, "trends": _trends}[parsed[1]]

    def answers(result: TopicResult, match: Match, ids: list[int]) -> list[Answer]:
        there = [topic for topic in ids if match.overlap[topic] > 0]
        return ask(match.renumbered(result), there, (parsed[2] or "").strip()) if there else []

    return answers


def _shares(result: TopicResult, topics: list[int], _: str) -> list[Answer]:
    """Return the share of each topic, with Wilson's interval for distinct texts."""
    labels, weights, n = result.clustering.labels, result.distinct.weights, len(result.distinct)
    sizes = np.bincount(labels[labels >= 0], weights[labels >= 0], minlength=result.n_topics)
    shares = sizes / weights.sum()
    low, high = wilson(shares * n, n)
    return [(i, "share", float(shares[i]), float(low[i]), float(high[i])) for i in topics]


def _effects(result: TopicResult, topics: list[int], covariates: str) -> list[Answer]:
    columns: Any = covariates
    if not covariates.startswith("~"):
        columns = [name.strip() for name in covariates.split(",") if name.strip()]
    frame = effects(result, columns, topics=topics, n_replicates=0).to_frame()
    level = np.where(frame["level"] == "", "", ": " + frame["level"])
    against = np.where(frame["reference"] == "", "", " against " + frame["reference"])
    unit = np.where(frame["unit"] == "", "", " (one " + frame["unit"] + " more)")
    frame["quantity"] = frame["covariate"] + level + against + unit
    columns = ["topic", "quantity", "effect", "low", "high"]
    return list(frame[columns].itertuples(index=False, name=None))


def _trends(result: TopicResult, topics: list[int], every: str) -> list[Answer]:
    """Return the change of each share from the first to the last third of the periods."""
    trends = over_time(result, every or "auto", n_terms=0)
    periods = np.flatnonzero(trends.totals > 0)
    if len(periods) < 2:
        raise InputError("question", "about at least two periods with texts", every)
    third = -(-len(periods) // 3)
    parts = periods[:third], periods[-third:]
    totals, n = ([x[part].sum() for part in parts] for x in (trends.totals, trends.n_effective))
    shares = [
        trends.counts[:-1, part].sum(axis=1) / t for part, t in zip(parts, totals, strict=True)
    ]
    change = shares[1] - shares[0]
    # Agresti and Caffo (2000): an observation more inside and outside keeps errors above 0.
    p = [(share * m + 1) / (m + 2) for share, m in zip(shares, n, strict=True)]
    width = Z_OF_95 * np.sqrt(sum(q * (1 - q) / (m + 2) for q, m in zip(p, n, strict=True)))
    names = [trends.names[part[end]] for part, end in zip(parts, (0, -1), strict=True)]
    quantity = f"change from {names[0]} to {names[1]} (thirds)"
    low, high = change - width, change + width
    return [(i, quantity, float(change[i]), float(low[i]), float(high[i])) for i in topics]


def _by_function(
    question: Any, result: TopicResult, match: Match, topics: list[int]
) -> list[Answer]:
    """Return the numbers of a function; those of topics under the matching ids, one to one."""
    answer = question(result)
    values: Any = answer.to_dict() if isinstance(answer, pd.Series) else answer
    values = values if isinstance(values, Mapping) else {"value": values}
    answers: list[Answer] = []
    for key, value in values.items():
        parts = tuple(value) if isinstance(value, (tuple, list)) else (value, nan, nan)
        if len(parts) != 3 or not all(map(is_number, parts)):
            expected = "a function that returns a number, or numbers by topic"
            raise InputError("question", expected, answer)
        estimate, low, high = map(float, parts)
        if isinstance(key, str):
            answers.append((NOISE, key, estimate, low, high))
        elif key != NOISE and match.first[key] in topics:
            answers.append((int(match.first[key]), "value", estimate, low, high))
    return answers


def _conclusion(estimate: float, low: float, high: float) -> str:
    """Return on which side of 0 an interval is; without one, on which side the estimate is."""
    low, high = (estimate, estimate) if np.isnan(low) else (low, high)
    return "above 0" if low > 0 else "below 0" if high < 0 else "unclear"


def _estimates(
    table: pd.DataFrame,
    main: TopicResult,
    in_main: Mapping[Any, Any],
    answers: Sequence[Any],
    is_share: bool,
) -> pd.DataFrame:
    """Return a row for each specification and quantity, also where no topic matches."""
    rows = []
    for place, (match, found) in enumerate(answers):
        for key, (value, low, high) in in_main.items():
            one = found.get(key, (nan, nan, nan))
            ids: tuple[int, ...] = ()
            overlap, topic_name = nan, "(all texts)"
            if key[0] != NOISE:
                ids = tuple(np.flatnonzero(match.topic[:-1] == key[0]).tolist())
                overlap = float(match.overlap[key[0]])
                topic_name = main.topics[key[0]].name
            agrees = not np.isnan(one[0])
            if agrees and is_share:
                agrees = one[1] <= high and low <= one[2]
            elif agrees:
                agrees = _conclusion(*one) == _conclusion(value, low, high)
            rows.append((place, key[0], topic_name, key[1], *one, ids, overlap, agrees))
    columns = ["specification", "topic", "topic_name", "quantity", "estimate", "low", "high"]
    frame = pd.DataFrame(rows, columns=[*columns, "matched", "overlap", "agrees"])
    return frame.join(table[list(CHOICES)], on="specification")


def _summary(
    table: pd.DataFrame, estimates: pd.DataFrame, in_main: Mapping[Any, Any]
) -> pd.DataFrame:
    """Return a row for each quantity: the main study beside all specifications."""
    rows = []
    for (topic, quantity), (value, low, high) in in_main.items():
        frame = estimates.query("topic == @topic and quantity == @quantity")
        values = frame["estimate"].to_numpy()
        there = values[~np.isnan(values)]
        variance = variance_by_choice(values, frame[list(CHOICES)])
        spread = [f(there) if len(there) else nan for f in (np.median, np.min, np.max)]
        same_sign = float((np.sign(there) == np.sign(value)).sum() / len(table))
        main = (topic, frame["topic_name"].iloc[0], quantity, value, low, high)
        of_all = (*spread, len(table), len(there), same_sign, float(frame["agrees"].mean()))
        rows.append((*main, _conclusion(value, low, high), *of_all, *variance.values()))
    columns = ["topic", "topic_name", "quantity", "estimate", "low", "high", "conclusion", "median"]
    columns += ["lowest", "highest", "n", "n_matched", "same_sign", "agreement"]
    by_choice = [f"by_{choice}" for choice in CHOICES]
    return pd.DataFrame(rows, columns=[*columns, *by_choice])


def variance_by_choice(values: Float64Array, choices: pd.DataFrame) -> dict[str, float]:
    """Return the Shapley value of each choice in R², its mean gain over all orders of entry."""
    is_there = ~np.isnan(values)
    y = values[is_there] - values[is_there].mean() if is_there.any() else np.zeros(0)
    total = float(y @ y)
    levels = {str(name): pd.factorize(choices[name][is_there])[0] for name in choices}
    varied = [name for name, codes in levels.items() if len(np.unique(codes)) > 1]

    def explained(names: tuple[str, ...]) -> float:
        x = np.hstack([np.eye(int(levels[name].max()) + 1)[levels[name]] for name in names])
        rest = y - x @ np.linalg.lstsq(x, y, rcond=None)[0]
        return 1 - float(rest @ rest) / total

    shares, k = dict.fromkeys(levels, 0.0), len(varied)
    if total <= 1e-20 * max(len(y), 1):
        return shares
    gains: dict[tuple[str, ...], float] = {(): 0.0}
    for size in range(1, k + 1):
        gains |= {names: explained(names) for names in combinations(varied, size)}
    for names, gain in gains.items():
        for name in names:
            before = tuple(other for other in names if other != name)
            weight = factorial(len(before)) * factorial(k - len(names)) / factorial(k)
            shares[name] += weight * (gain - gains[before])
    return {name: round(share, 12) + 0.0 for name, share in shares.items()}
