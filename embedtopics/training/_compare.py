"""Compare a trained encoder with the one that it came from."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from embedtopics._utils.checks import checked_count, resolve_seed
from embedtopics.corpus._corpus import as_corpus, require_text
from embedtopics.encoders._foreign import as_encoder
from embedtopics.encoders._registry import resolve_exact
from embedtopics.errors import InputError
from embedtopics.evaluation._agreement import Contingency
from embedtopics.evaluation._bootstrap import interval, resampled_means, resampled_sums
from embedtopics.evaluation._labels import Groups, groups_of, neighbor_votes, scored_classes
from embedtopics.evaluation.results import Estimate
from embedtopics.neighbors._graph import build_partial_graph
from embedtopics.neighbors.results import NeighborGraph
from embedtopics.protocols import Float64Array, FloatArray, Int32Array
from embedtopics.results import Decision
from embedtopics.training._examples import Examples
from embedtopics.training._figures import (
    CONFIDENCE,
    Difference,
    Figure,
    Scored,
    compare_scores,
    embed,
    figures_of,
    holm,
    mean,
    p_of,
    scores_estimate,
    units_of,
)
from embedtopics.training._rows import Change
from embedtopics.training._split import in_order

SCORED = ("graded", "classed", "nli", "triplets", "pairs")
"""Kinds of examples that similarities can be right or wrong about."""

FEW_UNITS = 30
"""Examples below which a note says that an interval is rough."""

TASK = "corpus"
NEIGHBORS = 10
"""Neighbours that are compared, and that vote on a class."""

MOST_DOCUMENTS = 5000
"""Documents that are compared; a larger corpus is sampled."""

N_RUNS, N_TOPICS = 2, 20
"""Runs of k-means by each encoder from different seeds, which show how much the seed changes; and
its topics where there are no classes."""


class Judged(NamedTuple):
    """A change that may be better or worse, with its p-value."""

    change: Change
    p: float


def compare_before_after(
    before: Any,
    after: Any,
    *,
    test: Examples | Mapping[str, Examples] | None = None,
    general: Examples | Mapping[str, Examples] | None = None,
    corpus: Any = None,
    labels: str | npt.ArrayLike | None = None,
    n_resamples: int = 2000,
    random_state: Any = 0,
) -> tuple[Change, ...]:
    """Compare an encoder before and after training, on held-out examples and texts.

    Every difference has a 95 % interval, from the same examples resampled for both encoders.
    Examples that share a text, directly or through others, are resampled together. On the test set
    of the STS benchmark (1,379 pairs in 1,179 groups), this makes the intervals a quarter wider.

    Parameters
    ----------
    before, after : Encoder, or its name or folder
        Both should be read with the same precision and `long_texts`; otherwise a note reports it.
    test : Examples, or mapping of name to Examples, optional
        Examples held out from training. Graded examples: Spearman's and Pearson's correlation of
        cosine and score. Inference: how often an entailed hypothesis is nearer to its premise than
        a contradicted one of the same premise, and of all premises (AUC). Triplets: how often the
        positive is nearer than all negatives. Pairs: mean reciprocal rank of the second text among
        all second texts (0 behind rank 10), and how often it is the first. Other kinds are left
        out.
    general : Examples, or mapping of name to Examples, optional
        Examples of another domain, which show what was forgotten.
    corpus : Corpus, or what `Corpus` takes, optional
        Texts for two more figures: the share of the ten nearest neighbors that stay (the note gives
        the share by chance), and the agreement of topics between two runs of k-means. Before: two
        runs of the encoder before training, the value of an encoder that does not change. After:
        one run of each encoder.
        At most 5,000 texts are compared.
    labels : str or array_like, optional
        Column of the corpus, or a class for each row. Adds the accuracy of the neighbors' vote, and
        the adjusted mutual information of topics and classes.
    n_resamples : int
    random_state : int, Generator or None

    Returns
    -------
    tuple of Change
        Changes on test, general and corpus, in this order. The verdict is "better" or "worse" only
        if the interval excludes 0 and, for differences on a few examples, an exact test agrees.
        Verdicts are not corrected for multiple tests: one in twenty differs by chance. A note marks
        each verdict that does not survive the correction of Holm (1979).

    Raises
    ------
    InputError
        If there is nothing to compare on, all labels are equal, or an encoder does not return one
        finite vector per text.

    Notes
    -----
    Intervals describe other examples of the same kind. They do not include the variation between
    random states of the training.

    References
    ----------
    Efron and Tibshirani (1993), "An Introduction to the Bootstrap", chapter 8 on paired data.
    Berg-Kirkpatrick, Burkett and Klein (2012), "An Empirical Investigation of Statistical
    Significance in NLP".

    """
    sets = _named(test, "test")
    for name, examples in _named(general, "general").items():
        if name in sets:
            raise InputError("general", "of other names than test", name)
        sets[name] = examples
    if test is None and general is None and corpus is None:
        raise InputError("test", "given, or general or a corpus", None)
    seed = resolve_seed(random_state)
    checked_count(n_resamples, "n_resamples", 100)
    if labels is not None and corpus is None:
        raise InputError("corpus", "given with labels", None)
    texts = None if corpus is None else corpus_texts(corpus, labels)
    columns = [column for examples in sets.values() for column in examples.columns]
    if texts is not None:
        columns.append(texts.texts)
    encoders = resolve_exact(before), resolve_exact(after)
    embedded = embed(encoders[0], columns, "before"), embed(encoders[1], columns, "after")
    judged: list[Judged] = []
    for task, examples in sets.items():
        ordered = examples.take(in_order(examples))
        units, note = units_of(ordered)
        for each in figures_of(ordered, *embedded, units):
            difference = compare_scores(each, n_resamples, seed)
            judged.append(
                judge(task, each.metric, difference, len(each.before), note, n_test_evaluations=1)
            )
    described: list[Change] = []
    if texts is not None:
        rows = embedded[0].of(texts.texts), embedded[1].of(texts.texts)
        views = view_of(rows[0], texts, "before", seed), view_of(rows[1], texts, "after", seed)
        of_classes, of_texts = compare_views(views, texts, n_resamples, seed)
        judged += of_classes
        described += of_texts
    unlike = note_settings(encoders)
    return tuple(_with_note(c, unlike) for c in (*note_differences(judged), *described))


def compare_views(
    views: tuple[View, View],
    texts: CorpusTexts,
    n_resamples: int,
    seed: int,
    names: tuple[str, str] = ("before", "after"),
) -> tuple[list[Judged], list[Change]]:
    """Compare the neighbors and topics of texts: what may be better, and what only differs."""
    described = [
        _neighbors_kept(views, n_resamples, seed, texts.note),
        _topics_kept(views, n_resamples, seed, texts.note, names),
    ]
    if texts.classes is None:
        return [], described
    figures = score_classes(views, texts.classes, n_resamples, seed)
    judged = [judge(TASK, name, each, each.n_units, texts.note) for name, each in figures]
    return judged, described


def note_settings(encoders: tuple[Any, Any], names: tuple[str, str] = ("before", "after")) -> str:
    """Return a note if the encoders are read with different settings, which is no training."""
    ways = [as_encoder(encoder).settings or {} for encoder in encoders]
    return " ".join(
        f"Part of the difference may come from {name.replace('_', ' ')} {ways[0][name]} {names[0]} "
        f"and {ways[1][name]} {names[1]}."
        for name in ("precision", "long_texts")
        if name in ways[0] and name in ways[1] and ways[0][name] != ways[1][name]
    )


def _with_note(change: Change, note: str) -> Change:
    return replace(change, note=f"{change.note} {note}".strip()) if note else change


def _named(value: Any, name: str) -> dict[str, Examples]:
    """Return the sets by name that can be scored."""
    sets = dict(value) if isinstance(value, Mapping) else {} if value is None else {name: value}
    for examples in sets.values():
        if not isinstance(examples, Examples):
            raise InputError(name, "Examples, or a dict of name -> Examples", examples)
    return {key: each for key, each in sets.items() if each.kind in SCORED and len(each)}


def judge(
    task: str, metric: str, effect: Difference, n: int, note: str, n_test_evaluations: int = 0
) -> Judged:
    """Return a difference with its verdict and its note."""
    notes = [note] if note else []
    verdict, low, high = "no difference shown", effect.low, effect.high
    outside = low > 0 or high < 0
    if outside and effect.p <= 1 - CONFIDENCE:
        verdict = "better" if low > 0 else "worse"
    elif outside:
        low, high = min(low, 0.0), max(high, 0.0)
        notes.append(
            f"The interval was extended to 0: a test for the {effect.n_changed:,} of "
            f"{effect.n_units:,} independent examples in which the encoders differ does not "
            f"exclude it (p = {effect.p:.3f})."
        )
    if math.isnan(effect.before) or math.isnan(effect.after):
        notes.append("An encoder gives all examples the same similarity.")
    if effect.n_units == 1:
        notes.append("There is no interval from 1 independent example.")
    elif effect.n_units < FEW_UNITS:
        notes.append(f"The interval is rough, from {effect.n_units} independent examples.")
    elif effect.n_units < n:
        notes.append(f"Resamples are of {effect.n_units:,} groups of examples with common texts.")
    difference = effect.after - effect.before
    figures = (effect.before, effect.after, difference, low, high)
    return Judged(
        Change(task, metric, *figures, n, verdict, n_test_evaluations, " ".join(notes)), effect.p
    )


def note_differences(judged: list[Judged]) -> list[Change]:
    """Note the verdicts that do not survive Holm's correction."""
    changes, n = [], len(judged)
    for (change, _), p in zip(judged, holm([p for _, p in judged]), strict=True):
        text = f"Among {n} figures this may be chance: p = {p:.2f} by Holm's correction."
        is_shaken = change.verdict != "no difference shown" and p > 1 - CONFIDENCE
        changes.append(_with_note(change, text if is_shaken else ""))
    return changes


@dataclass(frozen=True, eq=False)
class CorpusTexts:
    """The documents that are compared."""

    texts: tuple[str, ...]
    weights: npt.NDArray[np.int64]  # (n_documents,), rows that hold each
    classes: Int32Array | None  # (n_documents,), -1 if there is none
    note: str  # what was left out


class View(NamedTuple):
    graph: NeighborGraph
    runs: list[Int32Array]  # topics of the documents by k-means, from two seeds


def corpus_texts(corpus: Any, labels: Any) -> CorpusTexts:
    """Read distinct texts of a corpus, of many those with the lowest hashes, a random sample."""
    corpus = as_corpus(corpus)
    require_text(corpus)
    documents = corpus.distinct()
    if len(documents) < NEIGHBORS + 2:
        expected = f"one of {NEIGHBORS + 2} different texts or more"
        raise InputError("corpus", expected, len(documents))
    sample, decisions, class_ids = slice(0, MOST_DOCUMENTS), list[Decision](), None
    if labels is not None:
        groups = groups_of(labels, corpus, decisions)
        groups = Groups(groups.of_document[sample], groups.names, groups.grouped_by)
        class_ids = scored_classes(groups, decisions)
    notes = [decision.message for decision in decisions]
    if len(documents) > MOST_DOCUMENTS:
        notes.insert(0, f"A random sample of {MOST_DOCUMENTS:,} of {len(documents):,} texts.")
    texts = tuple(corpus.document_texts()[sample])
    return CorpusTexts(texts, documents.weights[sample], class_ids, " ".join(notes))


def view_of(rows: FloatArray, corpus: CorpusTexts, name: str, seed: int) -> View:
    """Find the neighbors and, twice, the topics of the documents by one encoder."""
    from sklearn.cluster import KMeans
    from threadpoolctl import threadpool_limits

    has_vector = np.asarray(rows.any(axis=1))
    n_vectors = int(has_vector.sum())
    if n_vectors < NEIGHBORS + 2:
        expected = f"an encoder with a vector for {NEIGHBORS + 2} texts of the corpus or more"
        raise InputError(name, expected, found=f"{n_vectors} of {len(rows)}")
    graph = build_partial_graph(rows, NEIGHBORS, has_vector, seed)
    n_topics = N_TOPICS if corpus.classes is None else int(corpus.classes.max()) + 1
    runs = []
    for run in range(N_RUNS):
        means = KMeans(min(n_topics, n_vectors), n_init=1, random_state=(seed + run) % 2**32)
        topics = np.full(len(rows), -1, dtype=np.int32)
        with threadpool_limits(limits=1):  # the order of sums depends on the number of threads
            topics[has_vector] = means.fit(
                rows[has_vector], None, corpus.weights[has_vector]
            ).labels_
        runs.append(topics)
    return View(graph, runs)


def _neighbors_kept(views: tuple[View, ...], n_resamples: int, seed: int, note: str) -> Change:
    lists = [
        np.where(view.graph.similarities > 0, view.graph.indices, -1)[:, :NEIGHBORS]
        for view in views
    ]
    n = len(lists[0])
    shared = np.zeros(n)
    for column in lists[0].T:
        shared += (column[:, None] == lists[1]).any(axis=1) & (column >= 0)
    there = (lists[0] >= 0).sum(axis=1)
    shares = np.divide(shared, there, out=np.full(n, np.nan), where=there > 0)
    value = float(np.nanmean(shares)) if (there > 0).any() else float("nan")
    drawn = resampled_means(shares[:, None], n_resamples, seed)[:, 0]
    low, high = interval(drawn - 1.0, n)
    chance = NEIGHBORS / (n - 1)
    note = f"Of neighbours drawn at random, {chance:.1%} would be kept. {note}"
    return _described(f"{NEIGHBORS} nearest neighbours kept", (1.0, value, low, high), n, note)


def _topics_kept(
    views: tuple[View, ...], n_resamples: int, seed: int, note: str, names: tuple[str, str]
) -> Change:
    """Compare topics between the encoders, and between two runs of the first."""
    # Between seeds: runs of one seed share their chance, and would agree too well.
    (first_run, again), (new, newer) = (view.runs for view in views)
    first = _resampled([(first_run, again)], "ARI", n_resamples, seed)
    second = _resampled([(first_run, newer), (new, again)], "ARI", n_resamples, seed)
    before, after = float(first[0].mean()), float(second[0].mean())
    # Texts that a resample holds twice agree with themselves: its figures are a little high.
    drawn = second[1].mean(axis=1) - first[1][:, 0]
    low, high = interval(drawn - np.nanmean(drawn) + (after - before), len(first_run))
    table = Contingency.of(new, newer)
    itself = float(table.adjusted_rand(table.counts[None, :])[0])
    text = (
        f"Adjusted Rand index (0 by chance) of two runs of k-means with {first_run.max() + 1} "
        "topics from different seeds. Before: two runs of the first encoder, the value of an "
        "unchanged encoder. After: one run of each encoder. Two runs of one encoder agree by "
        f"{before:.2f} {names[0]} and by {itself:.2f} {names[1]}."
    )
    name, figures = "topics of two runs agree (ARI)", (before, after, low, high)
    return _described(name, figures, len(first_run), f"{text} {note}")


def _described(
    metric: str, figures: tuple[float, float, float, float], n: int, note: str
) -> Change:
    """Return a change that is neither good nor bad, by before, after, low and high."""
    before, after, low, high = map(float, figures)
    row = (before, after, after - before, low, high)
    return Change(TASK, metric, *row, n, "descriptive", 0, note.strip())


def score_classes(
    views: tuple[View, ...], classes: Int32Array, n_resamples: int, seed: int
) -> list[tuple[str, Difference]]:
    """Measure how well neighbors and topics match given classes."""
    asked = np.flatnonzero(classes >= 0)
    right = []
    for view in views:
        near, weights = view.graph.indices[:, :NEIGHBORS], view.graph.similarities[:, :NEIGHBORS]
        right.append((neighbor_votes(near, weights, classes) == classes)[asked].astype(float))
    figure = Figure(
        "accuracy", mean, right[0], right[1], np.ones(len(asked)), np.arange(len(asked))
    )
    judged = [(f"{NEIGHBORS}-NN accuracy", compare_scores(figure, n_resamples, seed))]
    values, drawn = [], []
    for view in views:
        runs = [(classes[asked], run[asked]) for run in view.runs]
        value, resampled = _resampled(runs, "AMI", n_resamples, seed)
        values.append(float(value.mean()))
        drawn.append(resampled - resampled.mean(axis=0) + value)
    # Each resample with every run of both encoders, because topics change between runs.
    apart = (drawn[1][:, :, None] - drawn[0][:, None, :]).ravel()
    low, high = map(float, interval(apart, len(asked)))
    p = p_of(apart, len(asked))
    n_changed = int((views[0].runs[0] != views[1].runs[0])[asked].sum())
    effect = Difference(values[0], values[1], low, high, p, len(asked), n_changed)
    return [*judged, ("AMI of topics and classes", effect)]


def class_estimates(
    view: View, classes: Int32Array, n_resamples: int, seed: int
) -> dict[str, Estimate]:
    """Measure how well the neighbors and topics of one encoder match given classes."""
    asked = np.flatnonzero(classes >= 0)
    near, weights = view.graph.indices[:, :NEIGHBORS], view.graph.similarities[:, :NEIGHBORS]
    right = (neighbor_votes(near, weights, classes) == classes)[asked].astype(float)
    n, rows = len(asked), np.arange(len(asked))
    accuracy = Scored("accuracy", mean, right, np.ones(n), rows)

    runs = [(classes[asked], run[asked]) for run in view.runs]
    values, resampled = _resampled(runs, "AMI", n_resamples, seed)
    value = float(values.mean())
    # Documents that a resample holds twice agree with themselves: its figures are a little high.
    drawn = (resampled - resampled.mean(axis=0) + values).ravel()
    low, high = map(float, interval(drawn, n))
    return {
        f"{NEIGHBORS}-NN accuracy": scores_estimate(accuracy, rows, n_resamples, seed),
        "AMI of topics and classes": Estimate(value, low, high, n),
    }


def _resampled(
    pairs: list[tuple[npt.NDArray[Any], npt.NDArray[Any]]], metric: str, n: int, seed: int
) -> tuple[Float64Array, Float64Array]:
    """Return the agreement of pairs of labels, (n_pairs,), and of n resamples, (n, n_pairs)."""
    from scipy.sparse import csr_matrix

    values, drawn = list[Any](), list[Any]()
    for one, other in pairs:
        table = Contingency.of(one, other)
        places = (np.arange(len(one)), table.cell_of)
        cells: Any = csr_matrix((np.ones(len(one)), places), shape=(len(one), len(table.counts)))
        for counts, figures in (
            (table.counts[None, :], values),
            (resampled_sums(cells, n, seed), drawn),
        ):
            if metric == "ARI":
                figures.append(table.adjusted_rand(counts))
            else:
                expected = table.expected_information()
                figures.append(table.information(counts).adjusted(expected))
    return np.concatenate(values), np.column_stack(drawn)
