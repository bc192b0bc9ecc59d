"""Queries, rankings and judgements in the forms in which they come, as plain checked mappings."""

import json
import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from embedtopics._utils.checks import is_number
from embedtopics.corpus._columns import as_table, is_frame, read_ids
from embedtopics.corpus._readers import check_path, open_text, read_file
from embedtopics.errors import InputError, name_rows
from embedtopics.retrieval.results import SearchHits

Rankings: TypeAlias = dict[Hashable, tuple[Hashable, ...]]
"""The documents that were found for each query, the best first."""

Judgements: TypeAlias = dict[Hashable, dict[Hashable, float]]
"""The grades of the documents that were judged for each query."""

_QUERY = ("query_id", "query-id", "qid", "query")
_DOCUMENT = ("doc_id", "document_id", "docid", "corpus-id", "corpus_id", "document", "doc", "id")
_GRADE = ("relevance", "grade", "rel", "label", "score")
_SCORE = ("score", "similarity")
_ID_COLUMNS = ("id", "_id", "query_id", "query-id", "qid")
_TEXT_COLUMNS = ("text", "query", "question", "title")


def read_qrels(path: str | Path) -> dict[str, dict[str, float]]:
    """Read judgements: the grades of each query's documents, all ids as texts.

    The first line shows the form: TREC's four columns (query, iteration, document, grade); BEIR's
    three below a header (query-id, corpus-id, score); JSON lines with query_id, doc_id, relevance.
    """
    path = Path(path)
    lines = list(_lines(path))
    first = lines[0][1]
    parse: Callable[[str], tuple[str, str, str]] = _judgement_of_trec
    if first.lstrip().startswith("{"):
        parse = _judgement_of_json
    elif len(first.split("\t")) == 3 and _number(first.split("\t")[2]) is None:
        parse, lines = _judgement_of_beir, lines[1:]
        if not lines:
            raise InputError(f"{path.name}: expected judgements below the header, got none")
    made: dict[str, dict[str, float]] = {}
    for number, line in lines:
        try:
            query, document, written = parse(line)
        except ValueError as error:
            raise InputError(f"{path.name}, line {number}: {error}") from None
        grade = _checked_number(written, "grade", path, number)
        before = made.setdefault(query, {}).setdefault(document, grade)
        if before != grade:
            raise InputError(
                f"{path.name}, line {number}: query {query!r} and document {document!r} have the "
                f"grade {grade:g} here and {before:g} above; keep one"
            )
    return made


def read_run(path: str | Path) -> dict[str, dict[str, float]]:
    """Read rankings in TREC's six columns; as in trec_eval, the score orders, and not the rank."""
    path = Path(path)
    made: dict[str, dict[str, float]] = {}
    for number, line in _lines(path):
        fields = line.split()
        if len(fields) != 6:
            raise InputError(
                f"{path.name}, line {number}: expected 6 columns (query, Q0, document, rank, "
                f"score, name of the run), got {len(fields)}"
            )
        query, _, document, _, written, _ = fields
        if document in made.setdefault(query, {}):
            raise InputError(
                f"{path.name}, line {number}: query {query!r} has document {document!r} twice; "
                "keep one"
            )
        made[query][document] = _checked_number(written, "score", path, number)
    return made


def read_queries(path: str | Path) -> dict[str, str]:
    """Read queries by id from JSON lines, csv, tsv or any other file that a corpus comes from."""
    table = read_file(Path(path))
    columns = [str(name) for name in table.frame.columns]
    of_id = next((columns.index(name) for name in _ID_COLUMNS if name in columns), None)
    texts_at = [columns.index(name) for name in _TEXT_COLUMNS if name in columns]
    of_text = next((place for place in texts_at if place != of_id), None)
    if of_id is None or of_text is None:
        wanted, role = (_ID_COLUMNS, "id") if of_id is None else (_TEXT_COLUMNS, "text")
        raise InputError(
            f"{table.source}: expected a column {' or '.join(map(repr, wanted))} with the {role} "
            f"of each query, got {', '.join(map(repr, columns))}; write a header line"
        )
    ids = read_ids(table.frame.iloc[:, of_id].tolist(), table)
    texts = table.frame.iloc[:, of_text].tolist()
    for row, value in enumerate(texts):
        if not isinstance(value, str) or not value.strip():
            raise InputError(
                f"{table.source}, {name_rows([row], table.lines)}: expected the text of a query in "
                f"{columns[of_text]!r}, got {value!r}; fill it in or remove the row"
            )
    return dict(zip(ids, texts, strict=True))


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines that hold something, with their numbers."""
    check_path(path)
    if path.is_dir():
        raise InputError(f"{path}: expected a file, got a folder")
    is_empty = True
    with open_text(path, "utf-8") as handle:
        for number, line in enumerate(handle, 1):
            if line.strip():
                is_empty = False
                yield number, line.rstrip("\n")
    if is_empty:
        raise InputError(f"{path.name}: expected rankings or judgements, got an empty file")


def _judgement_of_trec(line: str) -> tuple[str, str, str]:
    fields = line.split()
    if len(fields) != 4:
        raise ValueError(
            f"expected 4 columns (query, iteration, document, grade), got {len(fields)}; files of "
            "3 columns need tabs and a header line"
        )
    return fields[0], fields[2], fields[3]


def _judgement_of_beir(line: str) -> tuple[str, str, str]:
    fields = [field.strip() for field in line.split("\t")]
    if len(fields) != 3 or not all(fields):
        raise ValueError(
            f"expected 3 columns separated by tabs (query, document, grade), got {line[:80]!r}"
        )
    return fields[0], fields[1], fields[2]


def _judgement_of_json(line: str) -> tuple[str, str, str]:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"expected a JSON object ({error})") from None
    found = []
    for keys in (_QUERY, _DOCUMENT, _GRADE):
        is_record = isinstance(record, dict)
        value = next((record[k] for k in keys if k in record), None) if is_record else None
        if not isinstance(value, (str, int, float)) or isinstance(value, bool) or value == "":
            raise ValueError(
                f"expected a JSON object with query_id, doc_id and relevance, got {line[:80]!r}"
            )
        found.append(str(value))
    return found[0], found[1], found[2]


def _number(written: str) -> float | None:
    """Return a finite number, or None."""
    try:
        value = float(written)
    except ValueError:
        return None
    return value if math.isfinite(value) and "_" not in written else None


def _checked_number(written: str, what: str, path: Path, number: int) -> float:
    value = _number(written)
    if value is None:
        raise InputError(
            f"{path.name}, line {number}: expected a number as the {what}, got {written!r}"
        )
    return value


def as_rankings(run: Any, query_ids: Sequence[Hashable] | None = None) -> Rankings:
    """Return the ranking of each query."""
    if isinstance(run, (str, Path)):
        run = read_run(run)
    if isinstance(run, SearchHits):
        return _of_hits(run, query_ids)
    if query_ids is not None:
        raise InputError(
            "query_ids", "left out", found=f"a {type(run).__name__}, which names its queries itself"
        )
    if isinstance(run, Mapping):
        return {_plain_query(query): _ranked(query, found) for query, found in run.items()}
    if is_frame(run):
        by_query = _of_table(run, _SCORE, "run", "score")
        return {query: _by_score(scored) for query, scored in by_query.items()}
    raise InputError(
        "run", "a mapping of queries to documents with scores, a table with the columns query, "
        "document and score, SearchHits or the path of a file", found=f"a {type(run).__name__}",
    )  # fmt: skip


def as_judgements(qrels: Any) -> Judgements:
    """Return the grades of each query's documents."""
    if isinstance(qrels, (str, Path)):
        qrels = read_qrels(qrels)
    if isinstance(qrels, Mapping):
        made = {_plain_query(query): _graded(query, judged) for query, judged in qrels.items()}
    elif is_frame(qrels):
        made = _of_table(qrels, _GRADE, "qrels", "relevance")
    else:
        raise InputError(
            "qrels", "a mapping of queries to documents with grades, a table with the columns "
            "query, document and relevance, or the path of a file",
            found=f"a {type(qrels).__name__}",
        )  # fmt: skip
    if not any(made.values()):
        raise InputError("qrels", "judgements of some query", found="none")
    return made


def _of_hits(hits: SearchHits, query_ids: Sequence[Hashable] | None) -> Rankings:
    if query_ids is None or len(query_ids) != len(hits.queries):
        raise InputError(
            "query_ids", f"the ids of the {len(hits.queries)} queries of the hits, as in the qrels",
            found="none" if query_ids is None else f"{len(query_ids)}",
        )  # fmt: skip
    ids = [_plain_id(one) for one in query_ids]
    if len(set(ids)) < len(ids):
        twice = next(one for place, one in enumerate(ids) if one in ids[:place])
        raise InputError("query_ids", "different ids", found=f"{twice!r} twice")
    return {
        query: _in_order(query, [hit.id for hit in found])
        for query, found in zip(ids, hits.hits, strict=True)
    }


def _ranked(query: Hashable, found: Any) -> tuple[Hashable, ...]:
    """Return a query's documents, given with scores or in their order."""
    if isinstance(found, Mapping):
        return _by_score(dict(_checked_pairs(query, found.items())))
    if isinstance(found, (str, bytes, set, frozenset)) or not isinstance(found, Iterable):
        raise InputError(
            "run", "documents with scores, or in their order",
            found=f"a {type(found).__name__} for query {query!r}",
        )  # fmt: skip
    items = found.tolist() if isinstance(found, np.ndarray) else list(found)
    if items and all(isinstance(item, tuple) and len(item) == 2 for item in items):
        _refuse_twice(query, [document for document, _ in items], "run")
        return _by_score(dict(_checked_pairs(query, items)))
    return _in_order(query, items)


def _in_order(query: Hashable, documents: Iterable[Any]) -> tuple[Hashable, ...]:
    ids = tuple(_plain_id(document) for document in documents)
    _refuse_twice(query, ids, "run")
    return ids


def _by_score(scores: Mapping[Hashable, float]) -> tuple[Hashable, ...]:
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
        _refuse_twice(query, ids, "qrels")
        return dict.fromkeys(ids, 1.0)
    raise InputError(
        "qrels", "documents with grades, or a list of the relevant ones",
        found=f"a {type(judged).__name__} for query {query!r}",
    )  # fmt: skip


def _checked_pairs(
    query: Hashable, pairs: Iterable[tuple[Any, Any]]
) -> Iterator[tuple[Hashable, float]]:
    for document, value in pairs:
        if not is_number(value) or not math.isfinite(value):
            raise InputError(
                f"query {query!r}, document {document!r}: expected a finite number; got {value!r}"
            )
        yield _plain_id(document), float(value)


def _refuse_twice(query: Hashable, ids: Sequence[Hashable], parameter: str) -> None:
    if len(set(ids)) < len(ids):
        twice = next(one for place, one in enumerate(ids) if one in ids[:place])
        raise InputError(
            parameter, "different documents for a query", remedy="keep one of the two",
            found=f"{twice!r} twice for query {query!r}",
        )  # fmt: skip


def _plain_query(query: Hashable) -> Hashable:
    """Return a key of Python; NumPy's are equal, but written differently."""
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
                what, f"a table with the columns query, document and {role}",
                found=f"{', '.join(names) or 'no columns'}, and no {wanted}",
                remedy="rename a column",
            )  # fmt: skip
        chosen.append(frame.iloc[:, names.index(found)].tolist())
    made: dict[Hashable, dict[Hashable, float]] = {}
    for row, (query, document, value) in enumerate(zip(*chosen, strict=True), 1):
        query, document = _plain_id(query), _plain_id(document)
        of_query = made.setdefault(query, {})
        if document in of_query:
            raise InputError(
                what, "different documents for a query", row=row, remedy="keep one",
                found=f"{document!r} twice for query {query!r}",
            )  # fmt: skip
        if not is_number(value) or not math.isfinite(value):
            raise InputError(what, f"finite in the column {role}", value, row=row)
        of_query[document] = float(value)
    return made


def name_types(ids: Iterable[Hashable]) -> str:
    """Return the types of ids, with an example of each: "text (such as '1')"."""
    example: dict[str, Hashable] = {}
    for one in ids:
        example.setdefault("text" if isinstance(one, str) else "number", one)
    return " and ".join(f"{kind} (such as {one!r})" for kind, one in sorted(example.items()))
