"""Evaluate encoders on examples and texts with known answers, each compared with the first.

Every difference has an interval from the same examples, resampled for both encoders. Examples that
share a text, directly or through others, are resampled together.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from embedtopics._utils.checks import checked_count, resolve_seed
from embedtopics.comparison.results import EncoderScores
from embedtopics.corpus._corpus import Corpus
from embedtopics.encoders._contract import BaseEncoder
from embedtopics.encoders._foreign import as_encoder, can_encode
from embedtopics.encoders._registry import resolve_encoder, resolve_exact
from embedtopics.errors import InputError
from embedtopics.evaluation._retrieval import measure_rankings, rank_documents
from embedtopics.evaluation.results import Estimate, RetrievalSet
from embedtopics.protocols import RandomState
from embedtopics.results import Decision
from embedtopics.training._compare import (
    SCORED,
    TASK,
    CorpusTexts,
    Judged,
    View,
    class_estimates,
    compare_views,
    corpus_texts,
    judge,
    note_differences,
    note_settings,
    view_of,
)
from embedtopics.training._examples import Examples
from embedtopics.training._figures import (
    Embedded,
    Figure,
    Scored,
    compare_scores,
    embedded_texts,
    mean,
    scored_examples,
    scores_estimate,
    units_of,
)
from embedtopics.training._split import in_order

CUTS = (10, 100)
MEASURES = ("ndcg@10", "mrr@10", "map@100", "recall@10", "recall@100", "precision@10")
"""Measures of rankings, over queries with relevant documents."""

WARMING_TEXTS = 4
"""Texts that are encoded before timing starts: the first call may load a checkpoint."""

SCORES = ["encoder", "task", "metric", "value", "low", "high", "n"]
"""Columns of the scores."""


def evaluate_encoders(
    encoders: Any,
    examples: Any = None,
    *,
    corpus: Any = None,
    labels: str | npt.ArrayLike | None = None,
    n_resamples: int = 2000,
    random_state: RandomState = 0,
    show_progress: bool | None = None,
) -> EncoderScores:
    """Evaluate encoders on examples and texts with known answers.

    Each distinct text is encoded once by each encoder. The other encoders are compared with the
    first: every difference has a 95 % interval, from the same examples resampled for both.
    Examples that share a text, directly or through others, are resampled together. On the test set
    of the STS benchmark (1,379 pairs in 1,179 groups), this makes the intervals a quarter wider.

    Parameters
    ----------
    encoders : encoder, sequence, or mapping of name to encoder
        Objects with ``encode(texts)``, names or folders. An encoder that learns from texts is
        fitted to those of the examples. Encoders should be read with the same precision and
        `long_texts`; otherwise a note reports it.
    examples : Examples or RetrievalSet, sequence of these, or mapping of name to these, optional
        From `training.read_examples` and `evaluation.read_retrieval_set`; without a mapping, a set
        has the name of its source. Graded examples: Spearman's and Pearson's correlation of cosine
        and score. Classed examples: area under the curve and average precision. Inference: how
        often an entailed hypothesis is nearer to its premise than a contradicted one of the same
        premise, and of all premises (AUC). Triplets: how often the positive is nearer than all
        negatives. Pairs: mean reciprocal rank of the second text among all second texts (0 after
        rank 10), and how often it is the first. Retrieval sets: ndcg@10, mrr@10, map@100,
        recall@10, recall@100 and precision@10. Other kinds are left out.
    corpus : Corpus, or what `Corpus` takes, optional
        Texts for two more differences: the share of the ten nearest neighbors that stay (the note
        gives the share by chance), and the agreement of topics between two runs of k-means; both
        are neither good nor bad. At most 5,000 texts are compared.
    labels : str or array_like, optional
        Column of the corpus, or a class for each row. Adds the accuracy of the neighbors' vote, and
        the adjusted mutual information of topics and classes.
    n_resamples : int
    random_state : int, Generator or None
    show_progress : bool, optional
        Whether encoders show a progress bar.

    Returns
    -------
    EncoderScores
        A verdict of its `differences` is "better" or "worse" only if the interval excludes 0 and,
        for differences on a few examples, an exact test agrees. Verdicts are not corrected for
        multiple tests: one in twenty differs by chance. A note marks each verdict that does not
        survive the correction of Holm (1979).

    Raises
    ------
    InputError
        If there is nothing to evaluate on, all labels are equal, or an encoder does not return one
        finite vector per text.

    Notes
    -----
    Intervals describe other examples of the same kind. They do not include the variation between
    random states of a training.

    References
    ----------
    Efron and Tibshirani (1993), "An Introduction to the Bootstrap", chapter 8 on paired data.
    Berg-Kirkpatrick, Burkett and Klein (2012), "An Empirical Investigation of Statistical
    Significance in NLP".

    Examples
    --------
    >>> import embedtopics as et
    >>> rows = [(f"a red {n} car", f"the red {n} car", n % 2) for n in range(40)]
    >>> pairs = et.training.read_examples(rows, "classed")
    >>> scores = et.comparison.evaluate_encoders(["tfidf", "random"], {"pairs": pairs})
    >>> scores
    EncoderScores(tfidf, random: 4 scores on 1 sets)
    >>> scores.differences()[["task", "metric", "encoder", "against"]]
        task             metric encoder against
    0  pairs                AUC  random   tfidf
    1  pairs  average precision  random   tfidf
    """
    if isinstance(encoders, (Examples, RetrievalSet, Corpus)):
        remedy = "call et.comparison.evaluate_encoders(encoders, examples)"
        raise InputError("encoders", "encoders or names", encoders, remedy)
    sets = _named_sets(examples)
    if not sets and corpus is None:
        raise InputError("examples", "given, or a corpus", examples)
    seed = resolve_seed(random_state)
    checked_count(n_resamples, "n_resamples", 100)
    if labels is not None and corpus is None:
        raise InputError("corpus", "given with labels", None)
    texts = None if corpus is None else corpus_texts(corpus, labels)
    opened = _open_encoders(encoders)

    measured = []
    for name in list(opened):
        encoder = opened.pop(name)  # freed before the next is loaded
        measured.append(_measure(name, encoder, sets, texts, seed, show_progress))

    scores = _scores(measured, sets, texts, n_resamples, seed)
    gains = _differences(measured, sets, texts, n_resamples, seed)
    return EncoderScores(
        names=tuple(one.name for one in measured),
        scores=pd.DataFrame(scores, columns=SCORES),
        gains=gains,
        n_texts={one.name: one.n_texts for one in measured},
        seconds={one.name: one.seconds for one in measured},
        settings={"n_resamples": n_resamples, "seed": seed},
        decisions=tuple(decision for one in measured for decision in one.decisions),
    )


def _named_sets(examples: Any) -> dict[str, Any]:
    """Return the sets that can be scored, by name."""
    if isinstance(examples, Mapping):
        named = dict(examples)
    else:
        single = examples is None or isinstance(examples, (Examples, RetrievalSet))
        if single:
            several = [] if examples is None else [examples]
        elif isinstance(examples, (str, os.PathLike)) or not isinstance(examples, Sequence):
            remedy = 'read them: et.training.read_examples(path, "graded")'
            raise InputError("examples", "Examples or retrieval sets", examples, remedy)
        else:
            several = list(examples)
        named = {}
        for one in several:
            if not isinstance(one, (Examples, RetrievalSet)):
                remedy = 'read them: et.training.read_examples(rows, "graded")'
                raise InputError("examples", "Examples or retrieval sets", one, remedy)
            name = getattr(one, "source", "") or getattr(one, "kind", "examples")
            if name in named:
                raise InputError("examples", "of different sources", name, "pass a dict by name")
            named[name] = one

    for name, one in named.items():
        if not isinstance(one, (Examples, RetrievalSet)):
            remedy = "read them: et.training.read_examples(path, kind)"
            raise InputError("examples", f"Examples or a retrieval set for {name!r}", one, remedy)
    return {
        str(name): one
        for name, one in named.items()
        if isinstance(one, RetrievalSet) or (one.kind in SCORED and len(one))
    }


def _open_encoders(encoders: Any) -> dict[str, BaseEncoder]:
    """Return encoders by name; a wrong name fails at once."""
    if isinstance(encoders, Mapping):
        specs = dict(encoders)
    else:
        several = encoders
        if isinstance(encoders, (str, os.PathLike)) or can_encode(encoders):
            several = [encoders]
        specs = {}
        for spec in several:
            is_name = isinstance(spec, (str, os.PathLike))
            if not is_name and not can_encode(spec):
                raise InputError("encoders", "encoders or names", spec)
            name = os.fspath(spec) if is_name else as_encoder(spec).name
            if name in specs:
                raise InputError("encoders", "of different names", name, "pass a dict by name")
            specs[name] = spec
    if not specs:
        raise InputError("encoders", "one or more", found="none")

    opened = {}
    for name, spec in specs.items():
        if isinstance(spec, (str, os.PathLike)):
            # Word counts with all words: without "who" and "where", other encoders look better.
            opened[str(name)] = resolve_encoder(spec, all_words=True).exact()
        else:
            opened[str(name)] = resolve_exact(spec)
    return opened


@dataclass(frozen=True, eq=False)
class _Measured:
    """What one encoder gives each example, and its neighbors and topics of the corpus."""

    name: str
    encoder: BaseEncoder
    scored: dict[str, list[Scored]]  # by set, one for each metric
    view: View | None
    n_texts: int
    seconds: float
    decisions: list[Decision]


def _measure(
    name: str,
    encoder: BaseEncoder,
    sets: Mapping[str, Any],
    texts: CorpusTexts | None,
    seed: int,
    show_progress: bool | None,
) -> _Measured:
    """Encode all texts, and score each example."""
    decisions = []
    columns: list[Sequence[str]] = []
    queries: list[Sequence[str]] = []
    documents: list[Sequence[str]] = []
    for one in sets.values():
        if isinstance(one, RetrievalSet):
            queries.append(one.queries)
            documents.append(one.documents)
        else:
            columns += one.columns
    if texts is not None:
        columns.append(texts.texts)

    everything = sorted({text for column in (*columns, *queries, *documents) for text in column})
    fitted = encoder.fitted_to(everything)
    if fitted is not encoder:
        message = (
            f"{name} was fitted to the texts of all examples, without their answers; its scores "
            "depend on which sets are evaluated together."
        )
        decisions.append(Decision("comparison", "fitted", len(everything), message))
    decisions += [one for one in fitted.decisions if one.name == "similarity"]

    fitted.encode(everything[:WARMING_TEXTS], show_progress=False)
    began = time.perf_counter()
    embedded = _embed(fitted.encode, columns, name, show_progress)
    of_queries = _embed(fitted.encode_query, queries, name, show_progress)
    of_documents = _embed(fitted.encode_document, documents, name, show_progress)
    seconds = time.perf_counter() - began

    scored: dict[str, list[Scored]] = {}
    for task, one in sets.items():
        if isinstance(one, RetrievalSet):
            scored[task] = _score_rankings(one, of_queries, of_documents)
        else:
            scored[task] = scored_examples(one.take(in_order(one)), embedded, "examples")
    view = None
    if texts is not None:
        if not isinstance(embedded.rows, np.ndarray):
            expected = "encoders of dense vectors, to compare a corpus"
            raise InputError("encoders", expected, name, "give it n_components")
        view = view_of(embedded.of(texts.texts), texts, name, seed)
    return _Measured(name, fitted, scored, view, len(everything), seconds, decisions)


def _embed(
    encode: Any, columns: Sequence[Sequence[str]], name: str, show_progress: bool | None
) -> Embedded:
    """Encode each distinct text of some columns once; nothing if there are none."""
    if not columns:
        return Embedded(np.empty((0, 0), dtype=np.float32), {})
    texts = sorted({text for column in columns for text in column})
    vectors = encode(texts, show_progress=show_progress)
    return embedded_texts(vectors, texts, name, parameter="encoders")


def _score_rankings(searched: RetrievalSet, queries: Embedded, documents: Embedded) -> list[Scored]:
    """Measure the ranking of the documents of each query by cosine."""
    relevance = searched.relevance
    ranked, _ = rank_documents(
        queries.of(searched.queries),
        documents.of(searched.documents),
        max(CUTS),
        tie_order=searched.tie_order,
    )
    rows = np.repeat(np.arange(len(ranked)), ranked.shape[1])
    grades = np.asarray(relevance[rows, ranked.ravel()], dtype=np.float64)
    judged = np.split(relevance.data.astype(np.float64), relevance.indptr[1:-1])
    has_relevant = np.array([bool((one > 0).any()) for one in judged])
    if not has_relevant.any():
        expected = "a retrieval set with a relevant document for some query"
        raise InputError("examples", expected, found="none")
    measures = measure_rankings(grades.reshape(ranked.shape), judged, CUTS)

    n = int(has_relevant.sum())
    return [
        Scored(metric, mean, measures[metric][has_relevant], np.ones(n), np.arange(n))
        for metric in MEASURES
    ]


def _units(one: Any, scored: Scored) -> tuple[Any, str]:
    """Return the unit of each score of a set, and a note."""
    if isinstance(one, RetrievalSet):
        return scored.rows, ""
    units, note = units_of(one.take(in_order(one)))
    return units[scored.rows], note


def _scores(
    measured: Sequence[_Measured],
    sets: Mapping[str, Any],
    texts: CorpusTexts | None,
    n_resamples: int,
    seed: int,
) -> list[tuple[Any, ...]]:
    """Return a row for each encoder, task and metric."""
    rows = []

    def add(encoder: str, task: str, metric: str, one: Estimate) -> None:
        rows.append((encoder, task, metric, one.value, one.low, one.high, one.n))

    for encoder in measured:
        for task, several in encoder.scored.items():
            for scored in several:
                units, _ = _units(sets[task], scored)
                figure = scores_estimate(scored, units, n_resamples, seed)
                add(encoder.name, task, scored.metric, figure)
        if texts is not None and texts.classes is not None and encoder.view is not None:
            estimates = class_estimates(encoder.view, texts.classes, n_resamples, seed)
            for metric, figure in estimates.items():
                add(encoder.name, TASK, metric, figure)
    return rows


def _differences(
    measured: Sequence[_Measured],
    sets: Mapping[str, Any],
    texts: CorpusTexts | None,
    n_resamples: int,
    seed: int,
) -> pd.DataFrame:
    """Compare the other encoders with the first."""
    first, *others = measured
    judged: list[tuple[str, Judged]] = []
    described = []
    for other in others:
        for task, several in other.scored.items():
            for before, after in zip(first.scored[task], several, strict=True):
                units, note = _units(sets[task], before)
                figure = Figure(
                    before.metric,
                    before.statistic,
                    before.scores,
                    after.scores,
                    before.truth,
                    units,
                )
                difference = compare_scores(figure, n_resamples, seed)
                n = len(before.scores)
                judged.append((other.name, judge(task, before.metric, difference, n, note)))
        if texts is not None and first.view is not None and other.view is not None:
            views = first.view, other.view
            names = f"of {first.name}", f"of {other.name}"
            of_classes, of_texts = compare_views(views, texts, n_resamples, seed, names)
            judged += [(other.name, one) for one in of_classes]
            described += [(other.name, change) for change in of_texts]

    noted = note_differences([one for _, one in judged])
    changes = [*zip([name for name, _ in judged], noted, strict=True), *described]
    unlike = {
        other.name: note_settings(
            (first.encoder, other.encoder), (f"of {first.name}", f"of {other.name}")
        )
        for other in others
    }
    rows: list[dict[str, Any]] = []
    for other in others:
        for name, change in changes:
            if name != other.name:
                continue
            row: dict[str, Any] = {"encoder": name, "against": first.name, **asdict(change)}
            row["note"] = f"{row['note']} {unlike[name]}".strip()
            rows.append(row)
    columns = ["task", "metric", "encoder", "against", "before", "after", "difference", "low"]
    columns += ["high", "n", "verdict", "note"]
    return pd.DataFrame(rows, columns=columns)
