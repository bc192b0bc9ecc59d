"""Rankings and judgements in whatever form they come, as plain mappings that were checked."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from embedtopics._checks import is_number
from embedtopics.corpus.tables import as_table, is_frame
from embedtopics.errors import InputError
from embedtopics.evaluation.retrieval_files import read_qrels, read_run
from embedtopics.results import SearchHits

__all__ = ["Judgements", "Rankings", "as_judgements", "as_rankings", "name_types"]

Rankings: TypeAlias = dict[Hashable, tuple[Hashable, ...]]
"""Of each query, the documents that were found, the best first."""

Judgements: TypeAlias = dict[Hashable, dict[Hashable, float]]
"""Of each query, the grades of the documents that were judged."""

_QUERY = ("query", "query_id", "query-id", "qid")
_DOCUMENT = ("document", "document_id", "doc_id", "docid", "doc", "corpus-id", "corpus_id", "id")
_SCORE = ("score", "similarity")
_RELEVANCE = ("relevance", "grade", "rel", "label", "score")


def as_rankings(run: Any, query_ids: Sequence[Hashable] | None = None) -> Rankings:
    """Return the ranking of each query; see `retrieval` for the forms and the order.

    Raises
    ------
    InputError
        For another form, a document that is ranked twice, or a score that is no finite number.
    """
    if isinstance(run, (str, Path)):
        run = read_run(run)
    if isinstance(run, SearchHits):
        return _of_hits(run, query_ids)
    if query_ids is not None:
        raise InputError("query_ids are for SearchHits alone; this run names its queries itself")
    if isinstance(run, Mapping):
        return {_plain_query(query): _ranked(query, found) for query, found in run.items()}
    if is_frame(run):
        by_query = _of_table(run, _SCORE, "run", "score")
        return {query: _by_score(query, scored) for query, scored in by_query.items()}
    raise InputError(
        "expected a run as a mapping of queries to documents with scores, a table with the columns "
        f"query, document and score, SearchHits or the path of a file; got a {type(run).__name__}"
    )


def as_judgements(qrels: Any) -> Judgements:
    """Return the grades of each query's documents; see `retrieval` for the forms.

    Raises
    ------
    InputError
        For another form, none at all, a document that is judged twice, or a grade that is no
        finite number.
    """
    if isinstance(qrels, (str, Path)):
        qrels = read_qrels(qrels)
    if isinstance(qrels, Mapping):
        made = {_plain_query(query): _graded(query, judged) for query, judged in qrels.items()}
    elif is_frame(qrels):
        made = _of_table(qrels, _RELEVANCE, "qrels", "relevance")
        made = {query: dict(_checked_pairs(query, d.items())) for query, d in made.items()}
    else:
        raise InputError(
            "expected qrels as a mapping of queries to documents with grades, a table with the "
            "columns query, document and relevance, or the path of a file; got a "
            f"{type(qrels).__name__}"
        )
    if not any(made.values()):
        raise InputError("expected qrels with some judgement; got none")
    return made


def _of_hits(hits: SearchHits, query_ids: Sequence[Hashable] | None) -> Rankings:
    if query_ids is None or len(query_ids) != len(hits):
        got = "none" if query_ids is None else f"{len(query_ids)}"
        raise InputError(
            f"expected the id of each of the {len(hits)} queries of the hits, as in the qrels; got "
            f"{got}; give query_ids"
        )
    ids = [_plain_id(one) for one in query_ids]
    if len(set(ids)) < len(ids):
        twice = next(one for place, one in enumerate(ids) if one in ids[:place])
        raise InputError(f"expected a different id for each query; got {twice!r} twice")
    return {
        query: _in_order(query, [hit.id for hit in found])
        for query, found in zip(ids, hits.hits, strict=True)
    }


def _ranked(query: Hashable, found: Any) -> tuple[Hashable, ...]:
    """Return a query's documents, given with scores or in their order."""
    if isinstance(found, Mapping):
        return _by_score(query, dict(_checked_pairs(query, found.items())))
    if isinstance(found, (str, bytes)) or not isinstance(found, Iterable):
        raise InputError(
            f"query {query!r}: expected documents with scores, or in their order; got "
            f"a {type(found).__name__}"
        )
    items = found.tolist() if isinstance(found, np.ndarray) else list(found)
    if isinstance(found, (set, frozenset)):
        raise InputError(f"query {query!r}: expected documents in an order; got a set")
    if items and all(isinstance(item, tuple) and len(item) == 2 for item in items):
        _refuse_twice(query, [document for document, _ in items], "ranked")
        return _by_score(query, dict(_checked_pairs(query, items)))
    return _in_order(query, items)


def _in_order(query: Hashable, documents: Iterable[Any]) -> tuple[Hashable, ...]:
    ids = tuple(_plain_id(document) for document in documents)
    _refuse_twice(query, ids, "ranked")
    return ids


def _by_score(query: Hashable, scores: Mapping[Hashable, float]) -> tuple[Hashable, ...]:
    """Order as trec_eval does, which keeps scores in single precision."""
    documents = list(scores)
    with np.errstate(over="ignore", under="ignore"):
        rounded = np.array(list(scores.values()), dtype=np.float64).astype(np.float32).tolist()
    names = [str(document) for document in documents]
    order = sorted(range(len(documents)), key=lambda i: (rounded[i], names[i]), reverse=True)
    return tuple(documents[i] for i in order)


def _graded(query: Hashable, judged: Any) -> dict[Hashable, float]:
    if isinstance(judged, Mapping):
        return dict(_checked_pairs(query, judged.items()))
    if isinstance(judged, (list, tuple, set, frozenset, np.ndarray)):
        ids = [_plain_id(document) for document in judged]
        _refuse_twice(query, ids, "judged")
        return dict.fromkeys(ids, 1.0)
    raise InputError(
        f"query {query!r}: expected documents with grades, or a list of the relevant ones; got a "
        f"{type(judged).__name__}"
    )


def _checked_pairs(
    query: Hashable, pairs: Iterable[tuple[Any, Any]]
) -> Iterable[tuple[Hashable, float]]:
    for document, value in pairs:
        if not is_number(value) or not np.isfinite(value):
            raise InputError(
                f"query {query!r}, document {document!r}: expected a finite number; got {value!r}"
            )
        yield _plain_id(document), float(value)


def _refuse_twice(query: Hashable, ids: Sequence[Hashable], how: str) -> None:
    if len(set(ids)) == len(ids):
        return
    seen: set[Hashable] = set()
    for document in ids:
        if document in seen:
            raise InputError(
                f"query {query!r}: document {document!r} is {how} twice; keep one of the two"
            )
        seen.add(document)


def _plain_query(query: Hashable) -> Hashable:
    """Return a key of Python; NumPy's are equal, and spelled otherwise."""
    plain: Hashable = query.item() if isinstance(query, np.generic) else query
    return plain


def _plain_id(value: Any) -> Hashable:
    """Return an id of Python; those of NumPy are other types, and equal."""
    plain = value.item() if isinstance(value, np.generic) else value
    if not isinstance(plain, (str, int, float)) or plain != plain:
        raise InputError(f"expected ids that are texts or numbers; got {value!r}")
    return plain


def _of_table(
    data: Any, value_names: Sequence[str], what: str, role: str
) -> dict[Hashable, dict[Hashable, float]]:
    """Read a table of one row for each query and document."""
    frame = as_table(data).frame
    names = [str(name) for name in frame.columns]
    chosen = []
    for wanted, known in (("query", _QUERY), ("document", _DOCUMENT), (role, value_names)):
        found = next((name for name in known if name in names), None)
        if found is None:
            raise InputError(
                f"expected {what} with the columns query, document and {role}; got "
                f"{', '.join(names) or 'no columns'}, and no {wanted}; rename a column"
            )
        chosen.append(frame.iloc[:, names.index(found)].tolist())
    made: dict[Hashable, dict[Hashable, float]] = {}
    for row, (query, document, value) in enumerate(zip(*chosen, strict=True), 1):
        query, document = _plain_id(query), _plain_id(document)
        of_query = made.setdefault(query, {})
        if document in of_query:
            raise InputError(
                f"{what}, row {row}: query {query!r} has document {document!r} twice; keep one"
            )
        if not is_number(value) or not np.isfinite(value):
            raise InputError(f"{what}, row {row}: expected a finite {role}; got {value!r}")
        of_query[document] = float(value)
    return made


def name_types(ids: Iterable[Hashable]) -> str:
    """Tell of what types ids are, with an example of each: "text (such as '1')"."""
    example: dict[str, Hashable] = {}
    for one in ids:
        example.setdefault("text" if isinstance(one, str) else "number", one)
    return " and ".join(f"{kind} (such as {one!r})" for kind, one in sorted(example.items()))
