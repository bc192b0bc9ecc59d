"""Rankings of documents, and their evaluation with judged documents, as in trec_eval."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from embedtopics._utils.checks import checked_count, is_number, resolve_seed
from embedtopics._utils.machine import one_blas_thread
from embedtopics.errors import InputError
from embedtopics.evaluation._bootstrap import means_of_columns
from embedtopics.evaluation._files import Judgements, read_qrels
from embedtopics.evaluation._pairs import checked_vectors, pair_similarities, row_dots
from embedtopics.evaluation.results import RunComparison, RunScores
from embedtopics.protocols import Float64Array, Int64Array, RandomState
from embedtopics.results import Decision
from embedtopics.retrieval.results import SearchHits

SIMILARITIES_AT_ONCE = 8_000_000
"""Similarities of queries and documents that are held at a time."""

CUTS = (1, 5, 10, 100)


def rank_documents(
    queries: Any, documents: Any, k: int, *, tie_order: npt.ArrayLike | None = None
) -> tuple[Int64Array, Float64Array]:
    """Return the k nearest documents of each query by cosine, and the cosines, nearest first.

    A product in float32 selects candidates, with a margin for its rounding; these are compared in
    float64, one by one, so that the answer depends neither on blocks nor on threads. Of equally
    near documents, the lowest `tie_order` comes first, by default the row.
    """
    of_queries = checked_vectors(queries, "queries")
    of_documents = checked_vectors(documents, "documents")
    n_queries, n_documents = of_queries.shape[0], of_documents.shape[0]
    order = np.arange(n_documents) if tie_order is None else np.asarray(tie_order)
    k = min(k, n_documents)
    ranked = np.empty((n_queries, k), dtype=np.int64)
    similarities = np.empty((n_queries, k))
    narrow, turned, slack = _in_single_precision(of_queries, of_documents)
    at_once = max(1, SIMILARITIES_AT_ONCE // n_documents)
    with one_blas_thread():
        for begin in range(0, n_queries, at_once):
            part = slice(begin, begin + at_once)
            product = narrow[part] @ turned
            near = product if isinstance(product, np.ndarray) else product.toarray()
            least = np.partition(near, n_documents - k, axis=1)[:, n_documents - k]
            rows, columns = np.nonzero(near >= (least.astype(np.float64) - slack)[:, None])
            exact = pair_similarities(of_queries[part][rows], of_documents[columns])
            places = np.lexsort((order[columns], -exact, rows))
            counts = np.bincount(rows, minlength=len(near))
            starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
            first = places[starts[:, None] + np.arange(k)]
            ranked[part], similarities[part] = columns[first], exact[first]
    return ranked, similarities


def _in_single_precision(queries: Any, documents: Any) -> tuple[Any, Any, float]:
    """Return unit vectors, those of documents transposed, and twice the error of their products."""
    narrow = _scaled(queries).astype(np.float32)
    documents = _scaled(documents).astype(np.float32)
    turned: Any
    if isinstance(documents, np.ndarray):
        turned, n_terms = np.ascontiguousarray(documents.T), documents.shape[1]
    else:
        turned = documents.T.tocsr()
        n_terms = int(np.diff(narrow.indptr).max(initial=1))
    # Higham (2002), "Accuracy and Stability of Numerical Algorithms", section 3.1; the rounding
    # of the entries to float32 counts as some terms more.
    return narrow, turned, 2 * (n_terms + 4) * float(np.finfo(np.float32).eps)


def _scaled(vectors: Any) -> Any:
    from scipy.sparse import diags_array

    wide = vectors if isinstance(vectors, np.ndarray) else vectors.astype(np.float64)
    lengths = np.sqrt(row_dots(wide, vectors))
    factors = np.zeros(len(lengths))
    np.divide(1.0, lengths, out=factors, where=lengths > 0)
    if isinstance(vectors, np.ndarray):
        return vectors * factors[:, None]
    return (diags_array(factors) @ vectors).tocsr()


def measure_rankings(
    grades: Float64Array,
    judged: Sequence[Float64Array],
    cuts: Sequence[int] = CUTS,
    relevant_from: float | None = None,
) -> dict[str, Float64Array]:
    """Return the measures of each query, (n_queries,) each, by their names; see `retrieval`.

    `grades` (n_queries, n_ranked) are 0 without a judgement and behind the last ranked document;
    `judged` are those of all judged documents. Without `relevant_from`, any above 0 is relevant.
    """

    def is_relevant(values: Float64Array) -> npt.NDArray[np.bool_]:
        return values > 0 if relevant_from is None else values >= relevant_from

    n_ranked, deepest = grades.shape[1], max(cuts)
    gains, hits = np.maximum(grades, 0), is_relevant(grades).astype(np.float64)
    best = np.zeros((len(judged), deepest))
    for row, values in enumerate(judged):
        top = np.sort(np.maximum(values, 0))[::-1][:deepest]
        best[row, : len(top)] = top
    n_relevant = np.array([is_relevant(values).sum() for values in judged], dtype=np.float64)
    total = np.maximum(n_relevant, 1)
    n_hits = np.cumsum(hits, axis=1)
    ranks = np.arange(1, n_ranked + 1)
    discounts = 1 / np.log2(ranks + 1)
    precisions = np.cumsum(hits * n_hits / ranks, axis=1)
    first = np.where(hits.any(axis=1), hits.argmax(axis=1), n_ranked)
    measures: dict[str, Float64Array] = {}
    for k in cuts:
        last = min(k, n_ranked) - 1
        ideal = (best[:, :k] / np.log2(np.arange(2, k + 2))).sum(axis=1)
        gained = (gains * discounts)[:, : last + 1].sum(axis=1)
        measures[f"ndcg@{k}"] = gained / np.where(best[:, 0] > 0, ideal, 1.0)
        measures[f"mrr@{k}"] = np.where(first <= last, 1 / (first + 1), 0.0)
        measures[f"map@{k}"] = precisions[:, last] / np.minimum(total, k)
        measures[f"recall@{k}"] = n_hits[:, last] / total
        measures[f"precision@{k}"] = n_hits[:, last] / k
    measures["map"] = precisions[:, -1] / total
    measures["mrr"] = np.where(first < n_ranked, 1 / (first + 1), 0.0)
    return measures


EQUAL = 1e-9
"""Below this, two measures of a query count as equal."""


def evaluate_run(
    run: Any,
    qrels: Any,
    ks: Sequence[int] = CUTS,
    *,
    query_ids: Sequence[Hashable] | None = None,
    relevant_from: float = 1,
    random_state: RandomState = 0,
) -> RunScores:
    """Measure the rankings of a run against judgements.

    The measures equal those of trec_eval: "ndcg@k" is its ndcg_cut, with the grades as gains and
    the ideal ranking of all judged documents as the denominator; "map" and "mrr" are over the
    whole ranking; "precision@k" divides by k, and "recall@k" by all relevant documents. Documents
    are ordered by descending scores in single precision, and documents with equal scores by
    descending ids as texts. Documents without a judgement, or with a negative grade, count as not
    relevant.

    The means are over the judged queries of the run; queries without a relevant document count as
    0. Queries without judgements, and judged queries that the run lacks, are left out. The
    decisions report their numbers.

    Parameters
    ----------
    run : SearchHits or mapping
        The hits of a search, in their order, with `query_ids`; or a mapping of queries to
        documents, either with scores (a mapping) or in their order (a sequence).
    qrels : mapping, str or Path
        A mapping of queries to documents with grades, or to lists of relevant documents (grade
        1); or a file in TREC's four columns or BEIR's three.
    ks : sequence of int
        Ranks at which the rankings are cut.
    query_ids : sequence of hashable, optional
        For SearchHits: the id of each query in the qrels.
    relevant_from : float
        Lowest grade that counts as relevant in the binary measures (all but ndcg); above 0.
    random_state : None, int or numpy.random.Generator
        Seed of the intervals of 0.95, over queries drawn with replacement. A single query has no
        interval (NaN).

    Returns
    -------
    RunScores

    Raises
    ------
    InputError
        If the run or the qrels cannot be read, or their ids do not match: 1 and "1" are two ids.

    References
    ----------
    Järvelin and Kekäläinen (2002), "Cumulated gain-based evaluation of IR techniques"; Buckley
    and Voorhees (2005), "Retrieval system evaluation", in TREC: Experiment and Evaluation.

    Examples
    --------
    >>> import embedtopics as et
    >>> run = {"q": {"a": 0.9, "b": 0.8}}
    >>> scores = et.evaluation.evaluate_run(run, {"q": {"b": 1, "c": 1}}, [2])
    >>> scores.scores["recall@2"].value, scores.scores["mrr"].value
    (0.5, 0.5)
    """
    cuts = tuple(sorted({checked_count(k, "ks") for k in ks}))
    if not is_number(relevant_from) or not relevant_from > 0:
        raise InputError("relevant_from", "a number above 0", relevant_from)
    seed = resolve_seed(random_state)
    judgements, rankings = _judgements(qrels), _rankings(run, query_ids)
    judged = filter(judgements.get, rankings)
    queries = sorted(judged, key=lambda query: (str(query), type(query).__name__))
    _check_ids(rankings, judgements, queries)
    ranked = [rankings[query] for query in queries]
    grades = np.zeros((len(queries), max(1, *map(len, ranked))))
    for row, (query, documents) in enumerate(zip(queries, ranked, strict=True)):
        grades[row, : len(documents)] = [judgements[query].get(d, 0.0) for d in documents]
    values = [np.array(list(judgements[query].values())) for query in queries]
    measured = measure_rankings(grades, values, cuts, float(relevant_from))
    names = [f"{measure}@{k}" for measure in ("ndcg", "recall", "precision") for k in cuts]
    by_query = {name: measured[name] for name in [*names, "map", "mrr"]}
    means = means_of_columns(by_query, seed)

    settings = {"ks": cuts, "relevant_from": relevant_from, "seed": seed}
    return RunScores(
        scores=means,
        queries=tuple(queries),
        by_query=by_query,
        settings=settings | {"qrels": _fingerprint(judgements, queries)},
        decisions=_decisions(rankings, judgements, queries, max(cuts), relevant_from),
    )


def compare_runs(
    first: RunScores, second: RunScores, *, random_state: RandomState = 0
) -> RunComparison:
    """Compare two runs query by query.

    Hard queries are hard for both runs, so that the paired interval of the mean difference is
    narrower than two separate intervals suggest.

    Parameters
    ----------
    first, second : RunScores
        Scores with the same queries, judgements, ks and relevant_from.
    random_state : None, int or numpy.random.Generator
        Seed of the intervals of 0.95, over queries drawn with replacement.

    Returns
    -------
    RunComparison

    Raises
    ------
    InputError
        If the queries, judgements, ks or relevant_from of both differ.

    References
    ----------
    Efron and Tibshirani (1993), "An Introduction to the Bootstrap", section 13.3; Smucker, Allan
    and Carterette (2007), "A comparison of statistical significance tests for information
    retrieval evaluation".

    Examples
    --------
    >>> import embedtopics as et
    >>> qrels = {"q1": ["a"], "q2": ["b"]}
    >>> first = et.evaluation.evaluate_run({"q1": ["b", "a"], "q2": ["b"]}, qrels, [1])
    >>> second = et.evaluation.evaluate_run({"q1": ["a", "b"], "q2": ["b"]}, qrels, [1])
    >>> compared = et.evaluation.compare_runs(first, second).to_frame().set_index("measure")
    >>> compared.loc["mrr", ["difference", "better", "equal"]].tolist()
    [0.25, 1.0, 1.0]
    """
    import pandas as pd

    for name, scores in (("first", first), ("second", second)):
        if not isinstance(scores, RunScores):
            remedy = "measure it: et.evaluation.evaluate_run(run, qrels)"
            raise InputError(name, "RunScores", scores, remedy)
    if first.queries != second.queries:
        found = f"{len(first.queries)} and {len(second.queries)} queries"
        raise InputError("second", "of the same queries as first", found=found)
    for name in ("qrels", "ks", "relevant_from"):
        if first.settings[name] != second.settings[name]:
            raise InputError(
                "second", f"measured with the same {name} as first", remedy="measure both again"
            )
    seed = resolve_seed(random_state)
    gains = {name: second.by_query[name] - values for name, values in first.by_query.items()}
    differences = means_of_columns(gains, seed, bounds=None)
    rows = []
    for measure, gain in differences.items():
        n_better = int((gains[measure] > EQUAL).sum())
        n_worse = int((gains[measure] < -EQUAL).sum())
        row = {
            "measure": measure,
            "first": first.scores[measure].value,
            "second": second.scores[measure].value,
            "difference": gain.value,
            "low": gain.low,
            "high": gain.high,
            "better": n_better,
            "worse": n_worse,
            "equal": gain.n - n_better - n_worse,
            "n": gain.n,
        }
        rows.append(row)
    return RunComparison(first, second, pd.DataFrame(rows))


def _rankings(
    run: Any, query_ids: Sequence[Hashable] | None
) -> dict[Hashable, tuple[Hashable, ...]]:
    """Return the ranked documents of each query, best first."""
    if isinstance(run, SearchHits):
        ids = [] if query_ids is None else list(query_ids)
        if len(ids) != len(run.queries) or len(set(ids)) < len(ids):
            expected = f"different ids of the {len(run.queries)} queries of the hits"
            raise InputError("query_ids", expected, found=f"{len(set(ids))}")
        run = {query: [hit.id for hit in hits] for query, hits in zip(ids, run.hits, strict=True)}
    rankings = {}
    for query, documents in run.items():
        if isinstance(documents, (str, set, frozenset)):
            expected = "documents with scores, or in their order"
            raise InputError("run", expected, found=f"a {type(documents).__name__} for {query!r}")
        ids = _distinct(documents, query, "run")
        if isinstance(documents, Mapping):
            scores = _finite(documents, query, "run")
            # As trec_eval, which keeps scores in single precision.
            with np.errstate(over="ignore", under="ignore"):
                rounded = scores.astype(np.float32).tolist()
            order = sorted(range(len(ids)), key=lambda i: (rounded[i], str(ids[i])), reverse=True)
            ids = [ids[i] for i in order]
        rankings[query] = tuple(ids)
    return rankings


def _judgements(qrels: Any) -> Judgements:
    """Return the grades of each query's documents."""
    if isinstance(qrels, (str, Path)):
        return read_qrels(qrels)
    judgements: Judgements = {}
    for query, judged in qrels.items():
        ids = _distinct(judged, query, "qrels")
        judgements[query] = dict.fromkeys(ids, 1.0)
        if isinstance(judged, Mapping):
            grades = _finite(judged, query, "qrels").tolist()
            judgements[query] = dict(zip(ids, grades, strict=True))
    return judgements


def _distinct(documents: Iterable[Hashable], query: Hashable, parameter: str) -> list[Hashable]:
    ids = list(documents)
    if len(set(ids)) < len(ids):
        found = f"one twice for query {query!r}"
        raise InputError(parameter, "different documents for each query", found=found)
    return ids


def _finite(documents: Mapping[Hashable, float], query: Hashable, parameter: str) -> Float64Array:
    numbers = np.array(list(documents.values()), dtype=np.float64)
    if not np.isfinite(numbers).all():
        raise InputError(parameter, "finite numbers", found=f"others for query {query!r}")
    return numbers


def _check_ids(
    rankings: Mapping[Hashable, Sequence[Hashable]], judgements: Judgements, queries: Sequence[Any]
) -> None:
    """Refuse a run whose ids cannot be those of the qrels: 1 and "1" are different."""
    name, ours, theirs = "queries", {*rankings}, {*judgements}
    cannot_match = not queries
    if queries:
        name = "documents"
        ours, theirs = ({d for q in queries for d in side[q]} for side in (rankings, judgements))
        types = [{isinstance(document, str) for document in side} for side in (ours, theirs)]
        cannot_match = bool(ours) and not types[0] & types[1]
    if cannot_match:
        example, other = (repr(next(iter(ids), None)) for ids in (theirs, ours))
        raise InputError("run", f"{name} with ids as in the qrels, such as {example}", found=other)


def _decisions(
    rankings: Mapping[Hashable, Sequence[Hashable]],
    judgements: Judgements,
    queries: Sequence[Hashable],
    k: int,
    relevant_from: float,
) -> tuple[Decision, ...]:
    """Record what counts as 0, and what is left out."""
    n_judged, n = sum(map(bool, judgements.values())), len(queries)
    ranked = [(query, document) for query in queries for document in rankings[query][:k]]
    longest = max(len(rankings[query]) for query in queries)
    counts = {
        "queries_missing": n_judged - n,
        "queries_left_out": len(rankings) - n,
        "queries_without_relevant": sum(
            not any(g >= relevant_from for g in judgements[q].values()) for q in queries
        ),
        "documents_unjudged": sum(document not in judgements[q] for q, document in ranked),
        "documents_ranked": longest if longest < k else 0,
    }
    notes = {
        "queries_missing": f"of {n_judged} judged queries are not in the run and are left out.",
        "queries_left_out": "queries of the run have no judgements and are left out.",
        "queries_without_relevant": f"of {n} judged queries have no relevant document and count as "
        "0 in the binary measures.",
        "documents_unjudged": f"of the {len(ranked)} documents down to rank {k} have no judgement "
        "and count as not relevant.",
        "documents_ranked": f"documents per query at most: measures at rank {k} miss the others.",
    }
    return tuple(
        Decision("evaluation", name, count, f"{count} {notes[name]}")
        for name, count in counts.items()
        if count
    )


def _fingerprint(judgements: Judgements, queries: Sequence[Hashable]) -> str:
    """Return a SHA-256 of judgements that does not depend on their order."""
    digest = hashlib.sha256()
    for query in queries:
        graded = sorted((str(document), grade) for document, grade in judgements[query].items())
        digest.update(repr((str(query), graded)).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()
