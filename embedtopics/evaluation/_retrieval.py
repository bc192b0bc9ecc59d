"""How good a search is where relevant documents are known, as trec_eval measures it."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from embedtopics._utils.checks import checked_count, checked_level, is_number, resolve_seed
from embedtopics.decisions import Decision
from embedtopics.errors import InputError
from embedtopics.evaluation._bootstrap import means_of_columns
from embedtopics.evaluation._ranking import CUTS, scores_by_query
from embedtopics.evaluation._retrieval_files import (
    Judgements,
    Rankings,
    as_judgements,
    as_rankings,
    name_types,
)
from embedtopics.evaluation.results import RetrievalComparison, RetrievalScores
from embedtopics.protocols import Float64Array, Int64Array, RandomState

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


ENTRIES_AT_ONCE = 2_000_000
"""Ranks of several queries that are measured together."""

DEEPEST = 100_000
"""The largest k."""

EQUAL = 1e-9
"""Below this, two measures of a query count as equal."""


def retrieval(
    run: Any,
    qrels: Any,
    ks: Sequence[int] = CUTS,
    *,
    query_ids: Sequence[Hashable] | None = None,
    relevant_from: float = 1,
    complete: bool = False,
    n_resamples: int = 1000,
    random_state: RandomState = 0,
    confidence: float = 0.95,
) -> RetrievalScores:
    """Measure the rankings of a run against judgements.

    The figures are those of trec_eval: "ndcg@k" is its ndcg_cut, with the grades as gains and the
    ideal ranking of all judged documents as the denominator; "map" and "mrr" are over the whole
    ranking; "precision@k" divides by k, and "recall@k" by all relevant documents. As there,
    documents are ordered by descending scores in single precision, and equal ones by descending
    ids as texts. Documents without a judgement, and with a negative one, count as not relevant.

    The means are over the judged queries of the run, those without a relevant document with 0.
    Queries of the run without judgements are left out, and judged queries that are not in the run
    with them, unless `complete` is set. The decisions say how many of each there are.

    Parameters
    ----------
    run : mapping, table, SearchHits, str or Path
        A mapping of queries to documents with scores (a mapping, or pairs) or to ids in their
        order; a table with the columns query, document and score; the hits of a search, whose
        order is kept, with `query_ids`; or a file in TREC's six columns.
    qrels : mapping, table, str or Path
        A mapping of queries to documents with grades, or to lists of relevant documents (grade
        1); a table with the columns query, document and relevance; or a file in TREC's four
        columns, BEIR's three, or JSON lines with query_id, doc_id and relevance.
    ks : sequence of int
        Ranks at which the rankings are cut.
    query_ids : sequence of hashable, optional
        For SearchHits: the id in the qrels of each of their queries.
    relevant_from : float
        The lowest grade that counts as relevant in the binary measures (all but ndcg); above 0.
    complete : bool
        Whether judged queries that are not in the run count as 0 (trec_eval with -c).
    n_resamples, random_state, confidence
        Of the intervals, over queries drawn with replacement; 0 resamples for none. A single query
        has none (NaN).

    Returns
    -------
    RetrievalScores

    Raises
    ------
    InputError
        For forms that cannot be read, and where no query, or because of their types no document,
        of the run is in the qrels: 1 and "1" are two ids.

    References
    ----------
    Järvelin and Kekäläinen (2002), "Cumulated gain-based evaluation of IR techniques"; Buckley
    and Voorhees (2005), "Retrieval system evaluation", in TREC: Experiment and Evaluation.

    Examples
    --------
    >>> scores = retrieval({"q": {"a": 0.9, "b": 0.8}}, {"q": {"b": 1, "c": 1}}, [2])
    >>> scores.scores["recall@2"].value, scores.scores["mrr"].value
    (0.5, 0.5)
    """
    cuts = _checked_cuts(ks)
    if not is_number(relevant_from) or not relevant_from > 0:
        raise InputError("relevant_from", "a number above 0", relevant_from)
    checked_count(n_resamples, "n_resamples", 0)
    checked_level(confidence)
    seed = resolve_seed(random_state)
    judgements = as_judgements(qrels)
    rankings = as_rankings(run, query_ids)
    judged = tuple(
        sorted((q for q in judgements if judgements[q]), key=lambda q: (str(q), type(q).__name__))
    )
    queries = judged if complete else tuple(query for query in judged if query in rankings)
    decisions = _decisions(rankings, judgements, judged, max(cuts), relevant_from, complete)
    by_query = _measured(rankings, judgements, queries, cuts, float(relevant_from))
    settings = {
        "ks": cuts, "relevant_from": relevant_from, "n_resamples": n_resamples, "seed": seed,
        "confidence": confidence, "qrels": _fingerprint(judgements, queries),
    }  # fmt: skip
    scores = means_of_columns(by_query, n_resamples, seed, confidence)
    return RetrievalScores(scores, queries, by_query, decisions, settings)


def compare_retrieval(
    first: RetrievalScores,
    second: RetrievalScores,
    *,
    n_resamples: int = 1000,
    random_state: RandomState = 0,
    confidence: float = 0.95,
) -> RetrievalComparison:
    """Compare two runs query by query.

    Hard queries are hard for both, so that the interval of the mean difference over the same
    resampled queries is narrower than two intervals side by side suggest.

    Parameters
    ----------
    first, second : RetrievalScores
        Of the same queries, judgements, ks and relevant_from.
    n_resamples, random_state, confidence
        Of the intervals, over queries drawn with replacement; 0 resamples for none.

    Returns
    -------
    RetrievalComparison

    Raises
    ------
    InputError
        Where the two were not measured in the same way.

    References
    ----------
    Efron and Tibshirani (1993), "An Introduction to the Bootstrap", section 13.3; Smucker, Allan
    and Carterette (2007), "A comparison of statistical significance tests for information
    retrieval evaluation".
    """
    if first.queries != second.queries:
        raise InputError(
            "second", "of the same queries as first",
            found=f"{len(first.queries)} and {len(second.queries)} queries",
            remedy="measure runs that lack queries with complete=True",
        )  # fmt: skip
    for name in ("qrels", "ks", "relevant_from"):
        if first.settings.get(name) != second.settings.get(name):
            raise InputError(
                "second", f"measured with the same {name} as first", remedy="measure both again"
            )
    checked_count(n_resamples, "n_resamples", 0)
    checked_level(confidence)
    seed = resolve_seed(random_state)
    gained = {name: second.by_query[name] - values for name, values in first.by_query.items()}
    better = {name: int((values > EQUAL).sum()) for name, values in gained.items()}
    worse = {name: int((values < -EQUAL).sum()) for name, values in gained.items()}
    equal = {name: len(gained[name]) - better[name] - worse[name] for name in gained}
    differences = means_of_columns(gained, n_resamples, seed, confidence, bounds=None)
    settings = {"n_resamples": n_resamples, "seed": seed, "confidence": confidence}
    return RetrievalComparison(first, second, differences, better, worse, equal, settings)


def _checked_cuts(ks: Sequence[int]) -> tuple[int, ...]:
    cuts = (ks,) if isinstance(ks, int | np.integer) else tuple(ks)
    if not cuts:
        raise InputError("ks", "some ranks, such as 10", found="none")
    made = tuple(sorted({checked_count(k, "ks") for k in cuts}))
    if made[-1] > DEEPEST:
        raise InputError("ks", f"at most {DEEPEST:,}", made[-1])
    return made


def _measured(
    rankings: Rankings,
    judgements: Judgements,
    queries: Sequence[Hashable],
    cuts: tuple[int, ...],
    relevant_from: float,
) -> dict[str, Float64Array]:
    names = [f"{measure}@{k}" for measure in ("ndcg", "recall", "precision") for k in cuts]
    made = {name: np.zeros(len(queries)) for name in [*names, "map", "mrr"]}
    for part in _blocks(rankings, judgements, queries, max(cuts)):
        places, grades = _laid_out(rankings, judgements, queries[part])
        # So deep that neither the ranking nor the relevant documents are cut off.
        deepest = grades.shape[1]
        of_grades = scores_by_query(places, grades, cuts)
        binary = grades.copy()
        binary.data = (binary.data >= relevant_from).astype(np.float64)
        of_hits = scores_by_query(places, binary, sorted({*cuts, deepest}))
        for name, values in made.items():
            if name in ("map", "mrr"):
                found = of_hits[f"{name}@{deepest}"]
            else:
                found = (of_grades if name.startswith("ndcg") else of_hits)[name]
            # Queries without a relevant document have no value there, and 0 in trec_eval.
            values[part] = np.nan_to_num(found, nan=0.0)
    return made


def _blocks(
    rankings: Rankings, judgements: Judgements, queries: Sequence[Hashable], k: int
) -> Iterator[slice]:
    """Cut the queries so that the longest ranking of a part times its queries stays small."""
    begin, widest = 0, k
    for place, query in enumerate(queries):
        width = len(rankings.get(query, ())) + len(judgements[query])
        if place > begin and max(widest, width) * (place - begin + 1) > ENTRIES_AT_ONCE:
            yield slice(begin, place)
            begin, widest = place, k
        widest = max(widest, width)
    yield slice(begin, len(queries))


def _laid_out(
    rankings: Rankings, judgements: Judgements, queries: Sequence[Hashable]
) -> tuple[Int64Array, csr_matrix]:
    """Return rankings (n_queries, n_ranked) and grades (n_queries, n_columns), the ranked first."""
    from scipy.sparse import csr_matrix

    ranked = [rankings.get(query, ()) for query in queries]
    longest = max(1, *map(len, ranked))
    places = np.full((len(queries), longest), -1, dtype=np.int64)
    rows: list[int] = []
    columns: list[int] = []
    values: list[float] = []
    for row, (query, found) in enumerate(zip(queries, ranked, strict=True)):
        places[row, : len(found)] = np.arange(len(found))
        judged = judgements[query]
        column_of = {document: column for column, document in enumerate(found)}
        for document, grade in judged.items():
            rows.append(row)
            columns.append(column_of.setdefault(document, len(column_of)))
            values.append(grade)
    shape = (len(queries), max(longest, 1 + max(columns)))
    return places, csr_matrix((np.array(values), (rows, columns)), shape=shape)


def _decisions(
    rankings: Rankings,
    judgements: Judgements,
    judged: Sequence[Hashable],
    k: int,
    relevant_from: float,
    complete: bool,
) -> tuple[Decision, ...]:
    """Record what counts as 0 or not at all; refuse a run that shares nothing with the qrels."""
    shared = [query for query in judged if query in rankings]
    if not shared:
        raise InputError(
            f"none of the {len(rankings)} queries of the run is in the qrels; the run's ids are "
            f"{name_types(rankings) or 'none'}, those of the qrels {name_types(judged)}; give "
            "both the same ids"
        )
    _refuse_other_types(rankings, judgements, shared)
    queries = judged if complete else shared
    n_missing = len(judged) - len(shared)
    n_unknown = sum(query not in judgements or not judgements[query] for query in rankings)
    n_without = sum(not any(g >= relevant_from for g in judgements[q].values()) for q in queries)
    n_ranked = sum(len(rankings[query][:k]) for query in shared)
    n_unjudged = sum(d not in judgements[query] for query in shared for d in rankings[query][:k])
    longest = max(len(rankings[query]) for query in shared)
    counted = "count as 0" if complete else "are left out"
    notes = (
        ("queries_missing", n_missing, f"{n_missing} of {len(judged)} judged queries are not in "
         f"the run and {counted}."),
        ("queries_left_out", n_unknown, f"{n_unknown} queries of the run have no judgements and "
         "were left out."),
        ("queries_without_relevant", n_without, f"{n_without} of {len(queries)} judged queries "
         "have no relevant document and count as 0 in the binary measures."),
        ("documents_unjudged", n_unjudged, f"{n_unjudged} of the {n_ranked} documents down to "
         f"rank {k} were not judged and count as not relevant."),
        ("documents_ranked", longest if longest < k else 0, f"The run has at most {longest} "
         f"documents a query: measures at rank {k} miss what lies behind."),
    )  # fmt: skip
    return tuple(Decision("evaluation", name, n, message) for name, n, message in notes if n)


def _refuse_other_types(
    rankings: Rankings, judgements: Judgements, shared: Sequence[Hashable]
) -> None:
    found = {document for query in shared for document in rankings[query]}
    judged = {document for query in shared for document in judgements[query]}
    types = [{isinstance(document, str) for document in side} for side in (found, judged)]
    if found and not found & judged and not types[0] & types[1]:
        raise InputError(
            f"no document of the run is in the qrels: the run's ids are {name_types(found)}, those "
            f"of the qrels {name_types(judged)}; convert one of the two"
        )


def _fingerprint(judgements: Judgements, queries: Sequence[Hashable]) -> str:
    """Return a SHA-256 of judgements that does not depend on their order."""
    digest = hashlib.sha256()
    for query in queries:
        graded = sorted((repr(document), grade) for document, grade in judgements[query].items())
        digest.update(repr((query, graded)).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()
