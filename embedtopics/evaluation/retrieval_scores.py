"""How good a search is where relevant documents are known, as trec_eval measures it."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from embedtopics._checks import checked_count, checked_level, is_number
from embedtopics.errors import InputError
from embedtopics.evaluation.bootstrap import resampled_means
from embedtopics.evaluation.estimates import estimate
from embedtopics.evaluation.retrieval_runs import (
    Judgements,
    Rankings,
    as_judgements,
    as_rankings,
    name_types,
)
from embedtopics.evaluation.search_scores import CUTS, scores_by_query
from embedtopics.results import Decision, Estimate, RetrievalComparison, RetrievalScores

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

__all__ = ["compare_retrieval", "retrieval"]

ENTRIES_AT_ONCE = 2_000_000
"""Ranks of several queries that are measured together."""

DEEPEST = 100_000
"""The largest k."""

EQUAL = 1e-9
"""Below this, two measures of a query count as equal."""

Float64Array = npt.NDArray[np.float64]


def retrieval(
    run: Any,
    qrels: Any,
    ks: Sequence[int] = CUTS,
    *,
    query_ids: Sequence[Hashable] | None = None,
    relevant_from: float = 1,
    n_resamples: int = 1000,
    seed: int = 0,
    confidence: float = 0.95,
) -> RetrievalScores:
    """Measure the rankings of a run against judgements.

    The figures are those of trec_eval: "ndcg@k" is its ndcg_cut, with the grades as gains and the
    best ranking of all judged documents below the line; "map" and "mrr" look at the whole ranking;
    "precision@k" divides by k, and "recall@k" by all relevant documents. As there, documents
    stand in the order of their scores, falling, in single precision, and equal ones in the order
    of their ids as texts, falling. Documents without a judgement, and with a negative one, count
    as not relevant.

    Every query with judgements counts (trec_eval with -c): one that is not in the run, or has no
    relevant document, with 0. Queries of the run without judgements are left out. What happened
    is in the decisions.

    Parameters
    ----------
    run : mapping, table, SearchHits, str or Path
        A mapping of queries to documents with scores (a mapping, or pairs) or to ids in their
        order; a table with the columns query, document and score; what a search returned, whose
        order is kept, with `query_ids`; or a file, see `read_run`.
    qrels : mapping, table, str or Path
        A mapping of queries to documents with grades, or to lists of relevant documents (grade
        1); a table with the columns query, document and relevance; or a file, see `read_qrels`.
    ks : sequence of int
        Ranks down to which is looked.
    query_ids : sequence of hashable, optional
        For SearchHits: the id in the qrels of each of their queries.
    relevant_from : float
        The lowest grade that counts as relevant in the binary measures (all but ndcg); above 0.
    n_resamples, seed, confidence
        Of the intervals, over queries drawn with replacement; 0 resamples for none, and of a
        single query, which tells nothing of others, there is none (NaN).

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
        raise InputError(f"relevant_from must be a number above 0; got {relevant_from!r}")
    _check_intervals(n_resamples, seed, confidence)
    judgements = as_judgements(qrels)
    rankings = as_rankings(run, query_ids)
    queries = tuple(sorted((q for q in judgements if judgements[q]), key=_name_of))
    decisions = _decisions(rankings, judgements, queries, max(cuts), relevant_from)
    by_query = _measured(rankings, judgements, queries, cuts, float(relevant_from))
    settings = {
        "ks": cuts, "relevant_from": relevant_from, "n_resamples": n_resamples, "seed": seed,
        "confidence": confidence, "qrels": _fingerprint(judgements, queries),
    }  # fmt: skip
    scores = _with_intervals(by_query, n_resamples, seed, confidence)
    return RetrievalScores(scores, queries, by_query, decisions, settings)


def compare_retrieval(
    first: RetrievalScores,
    second: RetrievalScores,
    *,
    n_resamples: int = 1000,
    seed: int = 0,
    confidence: float = 0.95,
) -> RetrievalComparison:
    """Tell what a second run gains over a first, query by query.

    Hard queries are hard for both, so that the interval of the mean difference over the same
    resampled queries is narrower than two intervals side by side suggest.

    Parameters
    ----------
    first, second : RetrievalScores
        Of the same judgements, ks and relevant_from.
    n_resamples, seed, confidence
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
    for name, what in (("qrels", "judgements"), ("ks", "ks"), ("relevant_from", "relevant_from")):
        if first.settings.get(name) != second.settings.get(name):
            raise InputError(
                f"a comparison needs two runs that were measured with the same {what}; measure "
                "both again, with the same qrels and settings"
            )
    _check_intervals(n_resamples, seed, confidence)
    gained = {name: second.by_query[name] - values for name, values in first.by_query.items()}
    better = {name: int((values > EQUAL).sum()) for name, values in gained.items()}
    worse = {name: int((values < -EQUAL).sum()) for name, values in gained.items()}
    equal = {name: len(gained[name]) - better[name] - worse[name] for name in gained}
    return RetrievalComparison(
        first, second, _with_intervals(gained, n_resamples, seed, confidence), better, worse, equal,
        {"n_resamples": n_resamples, "seed": seed, "confidence": confidence},
    )  # fmt: skip


def _check_intervals(n_resamples: int, seed: int, confidence: float) -> None:
    checked_count(n_resamples, "n_resamples", 0)
    checked_count(seed, "seed", 0)
    checked_level(confidence)


def _checked_cuts(ks: Sequence[int]) -> tuple[int, ...]:
    cuts = (ks,) if isinstance(ks, int | np.integer) else tuple(ks)
    if not cuts:
        raise InputError("expected ranks to look down to, such as 10; got none")
    made = tuple(sorted({checked_count(k, "each k") for k in cuts}))
    if made[-1] > DEEPEST:
        raise InputError(f"each k must be at most {DEEPEST:,}; got {made[-1]:,}")
    return made


def _name_of(query: Hashable) -> tuple[str, str]:
    return str(query), type(query).__name__


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
        # So deep that nothing is cut off: of the ranking, nor of the relevant documents.
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
) -> tuple[npt.NDArray[np.int64], csr_matrix]:
    """Return places of documents in rows of their own: first those ranked, then others judged."""
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
        known = {document: column for column, document in enumerate(found) if document in judged}
        behind = len(found)
        for document, grade in judged.items():
            column = known.get(document)
            if column is None:
                column, behind = behind, behind + 1
            rows.append(row)
            columns.append(column)
            values.append(grade)
    shape = (len(queries), max(longest, 1 + max(columns)))
    return places, csr_matrix((np.array(values), (rows, columns)), shape=shape)


def _with_intervals(
    by_query: dict[str, Float64Array], n_resamples: int, seed: int, confidence: float
) -> dict[str, Estimate]:
    columns = np.column_stack(list(by_query.values()))
    drawn = None
    if n_resamples and len(columns) > 1:
        drawn = resampled_means(columns, n_resamples, seed)
    return {
        name: estimate(
            columns[:, place].mean(),
            [] if drawn is None else drawn[:, place],
            len(columns),
            confidence=confidence,
        )
        for place, name in enumerate(by_query)
    }


def _decisions(
    rankings: Rankings,
    judgements: Judgements,
    queries: Sequence[Hashable],
    k: int,
    relevant_from: float,
) -> tuple[Decision, ...]:
    """Say what counts as 0 or not at all; refuse a run that has nothing to do with the qrels."""
    shared = [query for query in queries if query in rankings]
    if not shared:
        raise InputError(
            f"none of the {len(rankings)} queries of the run is in the qrels; the run's ids are "
            f"{name_types(rankings) or 'none'}, those of the qrels {name_types(queries)}; give "
            "both the same ids"
        )
    _refuse_other_types(rankings, judgements, shared)
    n_missing = len(queries) - len(shared)
    n_unknown = sum(query not in judgements or not judgements[query] for query in rankings)
    n_without = sum(not any(g >= relevant_from for g in judgements[q].values()) for q in queries)
    best = [(q, document) for q in shared for document in rankings[q][:k]]
    n_unjudged = sum(document not in judgements[query] for query, document in best)
    longest = max(len(rankings[query]) for query in shared)
    told = (
        ("queries_missing", n_missing, f"{n_missing} of {len(queries)} judged queries are not in "
         "the run and count as 0."),
        ("queries_left_out", n_unknown, f"{n_unknown} queries of the run have no judgements and "
         "were left out."),
        ("queries_without_relevant", n_without, f"{n_without} of {len(queries)} judged queries "
         "have no relevant document and count as 0 in the binary measures."),
        ("documents_unjudged", n_unjudged, f"{n_unjudged} of the {len(best)} documents down to "
         f"rank {k} were not judged and count as not relevant."),
        ("documents_ranked", longest if longest < k else 0, f"The run has at most {longest} "
         f"documents a query: measures down to rank {k} miss what lies behind."),
    )  # fmt: skip
    return tuple(Decision("evaluation", name, n, message) for name, n, message in told if n)


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
