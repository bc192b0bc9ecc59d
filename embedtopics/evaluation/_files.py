"""Queries, runs and judgements in their usual forms, as plain checked mappings."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from embedtopics.corpus._columns import as_table, is_frame, read_ids
from embedtopics.corpus._readers import check_path, open_text, read_file
from embedtopics.errors import InputError
from embedtopics.protocols import Float64Array
from embedtopics.retrieval.results import SearchHits

if TYPE_CHECKING:
    import pandas as pd

Rankings: TypeAlias = dict[Hashable, tuple[Hashable, ...]]
"""The ranked documents of each query, best first."""

Judgements: TypeAlias = dict[Hashable, dict[Hashable, float]]
"""The grades of the judged documents of each query."""

_QUERY = ("query_id", "query-id", "qid", "query")
_DOCUMENT = ("doc_id", "document_id", "docid", "corpus-id", "corpus_id", "document", "doc", "id")
_GRADE = ("relevance", "grade", "rel", "label", "score")
_SCORE = ("score", "similarity")
_ID_COLUMNS = ("id", "_id", "query_id", "query-id", "qid")
_TEXT_COLUMNS = ("text", "query", "question", "title")


class TableFile:
    """The columns of a file that `Corpus.from_file` reads, checked cell by cell."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.table = read_file(path)
        self.frame: pd.DataFrame = self.table.frame.reset_index(drop=True)

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.frame)

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return [str(name) for name in self.frame.columns]

    def cells(
        self, column: str, is_valid: Callable[[Any], bool] = lambda cell: True, expected: str = ""
    ) -> list[Any]:
        """Return a column, or refuse the first cell that is not as expected."""
        if column not in self.frame:
            columns = ", ".join(map(repr, self.columns))
            raise InputError(self.path.name, f"a file with a column {column!r}", found=columns)
        cells = list(self.frame[column])
        for row, cell in enumerate(cells, start=1):
            if not is_valid(cell):
                parameter = f"{column} in {self.path.name}"
                raise InputError(parameter, expected, cell, "correct or remove the row", row=row)
        return cells

    def texts(self, column: str, *, may_be_empty: bool = False) -> tuple[str, ...]:
        """Return a column of texts."""

        def is_text(cell: Any) -> bool:
            return isinstance(cell, str) and (may_be_empty or bool(cell.strip()))

        return tuple(self.cells(column, is_text, "a text"))

    def numbers(self, column: str) -> Float64Array:
        """Return a column of finite numbers."""
        return np.array(list(map(float, self.cells(column, is_finite_number, "a number"))))


def is_finite_number(cell: Any) -> bool:
    """Return whether a cell is a finite number, or text that spells one."""
    try:
        return not isinstance(cell, bool) and bool(np.isfinite(float(cell)))
    except (TypeError, ValueError):
        return False


def read_qrels(path: str | Path) -> dict[Hashable, dict[Hashable, float]]:
    """Read judgements: the grades of each query's documents, all ids as texts.

    The first line decides the format: JSON lines with query_id, doc_id and relevance; BEIR's
    three columns between tabs below a header; or TREC's four (query, iteration, document, grade).
    """
    import pandas as pd

    path = Path(path)
    head = _first_line(path)
    if head.startswith("{"):
        records = _read(path, lambda handle: pd.read_json(handle, lines=True, dtype=False))
        frame = records[
            [_named(records, names, path.name) for names in (_QUERY, _DOCUMENT, _GRADE)]
        ]
        frame = frame.dropna().astype({name: str for name in frame.columns[:2]})
        if len(frame) < len(records):
            raise InputError(path.name, "query_id, doc_id and relevance in each line")
    elif head.count("\t") == 2 and not is_finite_number(head.split("\t")[2]):
        frame = _read_text(path, sep="\t")
    else:
        frame = _read_text(path, sep=r"\s+", header=None)
        _check_width(frame, 4, "query, iteration, document, grade", path.name)
        frame = frame.iloc[:, [0, 2, 3]]
    _check_width(frame, 3, "query, document, grade", path.name)
    return _by_query(frame, path.name)


def read_run(path: str | Path) -> dict[Hashable, dict[Hashable, float]]:
    """Read rankings in TREC's six columns; the score orders as in trec_eval, not the rank."""
    path = Path(path)
    _first_line(path)
    frame = _read_text(path, sep=r"\s+", header=None)
    _check_width(frame, 6, "query, Q0, document, rank, score, name of the run", path.name)
    return _by_query(frame.iloc[:, [0, 2, 4]], path.name)


def read_queries(path: str | Path) -> dict[str, str]:
    """Read queries by id from JSON lines, csv, tsv or any other file that a corpus comes from."""
    file = TableFile(Path(path))
    of_id = _named(file.frame, _ID_COLUMNS, file.path.name)
    others = [name for name in _TEXT_COLUMNS if name != of_id]
    texts = file.texts(_named(file.frame, others, file.path.name))
    ids = read_ids(list(file.frame[of_id]), file.table)
    return dict(zip(ids, texts, strict=True))


def _first_line(path: Path) -> str:
    check_path(path)
    if path.is_dir():
        raise InputError("path", "a file", found=f"the folder {path}")
    with open_text(path, "utf-8") as handle:
        line = next((line.strip("\n") for line in handle if line.strip()), "")
    if not line:
        raise InputError(path.name, "rankings or judgements", found="an empty file")
    return line


def _read(path: Path, parse: Callable[[Any], pd.DataFrame]) -> pd.DataFrame:
    """Return what pandas reads; its message names the line of an error."""
    with open_text(path, "utf-8") as handle:
        try:
            return parse(handle)
        except UnicodeDecodeError:
            raise
        except ValueError as error:
            raise InputError(path.name, "lines of one format", found=str(error)) from None


def _read_text(path: Path, **options: Any) -> pd.DataFrame:
    import csv

    import pandas as pd

    options |= {"dtype": str, "keep_default_na": False, "quoting": csv.QUOTE_NONE}
    return _read(path, lambda handle: pd.read_csv(handle, **options))


def _check_width(frame: pd.DataFrame, n_columns: int, names: str, source: str) -> None:
    if frame.shape[1] != n_columns or not len(frame):
        size = f"{frame.shape[1]} columns and {len(frame)} rows"
        raise InputError(source, f"lines of {n_columns} columns ({names})", found=size)


def _named(frame: pd.DataFrame, names: Sequence[str], source: str) -> str:
    """Return the first of some names that is a column."""
    column = next((name for name in names if name in frame.columns), None)
    if column is None:
        columns = ", ".join(map(str, frame.columns)) or "no columns"
        expected = f"a column {' or '.join(map(repr, names))}"
        raise InputError(source, expected, found=columns, remedy="rename a column")
    return column


def _by_query(frame: pd.DataFrame, source: str) -> dict[Hashable, dict[Hashable, float]]:
    """Return the number of each query and document, from a frame of these three columns."""
    import pandas as pd

    numbers = pd.to_numeric(frame.iloc[:, 2], errors="coerce").to_numpy(dtype=np.float64)
    ids = frame.iloc[:, :2]
    is_bad = (ids.isna() | (ids == "")).any(axis=1).to_numpy() | ~np.isfinite(numbers)
    if is_bad.any():
        row = int(np.argmax(is_bad))
        expected = "a query, a document and a finite number in each row"
        raise InputError(source, expected, found=str(frame.iloc[row].tolist()), row=row)
    table: dict[Hashable, dict[Hashable, float]] = {}
    triples = zip(ids.iloc[:, 0].tolist(), ids.iloc[:, 1].tolist(), numbers.tolist(), strict=True)
    for row, (query, document, number) in enumerate(triples):
        earlier = table.setdefault(query, {}).setdefault(document, number)
        if earlier != number:
            conflict = f"{earlier:g} and {number:g} for query {query!r} and document {document!r}"
            raise InputError(
                source, "one number for each query and document", found=conflict, row=row
            )
    return table


def _of_table(data: Any, values: Sequence[str], parameter: str) -> Judgements:
    """Read a table with one row for each query and document."""
    frame = as_table(data).frame
    columns = [_named(frame, names, parameter) for names in (_QUERY, _DOCUMENT, values)]
    return _by_query(frame[columns], parameter)


def as_rankings(run: Any, query_ids: Sequence[Hashable] | None = None) -> Rankings:
    """Return the ranking of each query."""
    if isinstance(run, (str, Path)):
        run = read_run(run)
    if isinstance(run, SearchHits):
        ids = [] if query_ids is None else list(map(_plain, query_ids))
        if len(ids) != len(run.queries) or len(set(ids)) < len(ids):
            expected = f"different ids of the {len(run.queries)} queries of the hits"
            raise InputError("query_ids", expected, found=f"{len(set(ids))}")
        run = {query: [hit.id for hit in hits] for query, hits in zip(ids, run.hits, strict=True)}
    elif query_ids is not None:
        raise InputError("query_ids", "None for a run that names its queries", query_ids)
    elif not isinstance(run, Mapping) and is_frame(run):
        run = _of_table(run, _SCORE, "run")
    elif not isinstance(run, Mapping):
        expected = "a mapping of queries to documents, a table, SearchHits or a path"
        raise InputError("run", expected, found=f"a {type(run).__name__}")
    return {_plain(query): _ranked(query, documents) for query, documents in run.items()}


def _ranked(query: Hashable, documents: Any) -> tuple[Hashable, ...]:
    """Return a query's documents, given with scores or in their order, best first."""
    if isinstance(documents, (str, bytes, set, frozenset)):
        expected = "documents with scores, or in their order"
        raise InputError("run", expected, found=f"a {type(documents).__name__} for {query!r}")
    items = list(documents.items() if isinstance(documents, Mapping) else documents)
    has_scores = bool(items) and all(isinstance(one, tuple) and len(one) == 2 for one in items)
    ids = _distinct((one[0] if has_scores else one for one in items), query, "run")
    if not has_scores:
        return tuple(ids)
    scores = np.array([score for _, score in items], dtype=np.float64)
    if not np.isfinite(scores).all():
        raise InputError("run", "finite scores", found=f"others for query {query!r}")
    # As trec_eval, which keeps scores in single precision.
    with np.errstate(over="ignore", under="ignore"):
        rounded = scores.astype(np.float32).tolist()
    names = list(map(str, ids))
    order = sorted(range(len(ids)), key=lambda i: (rounded[i], names[i]), reverse=True)
    return tuple(ids[i] for i in order)


def as_judgements(qrels: Any) -> Judgements:
    """Return the grades of each query's documents."""
    if isinstance(qrels, (str, Path)):
        qrels = read_qrels(qrels)
    elif not isinstance(qrels, Mapping) and is_frame(qrels):
        qrels = _of_table(qrels, _GRADE, "qrels")
    if not isinstance(qrels, Mapping) or not any(map(len, qrels.values())):
        expected = "a mapping of queries to judged documents, a table or a path"
        raise InputError("qrels", expected, found=f"a {type(qrels).__name__}, or none")
    judgements: Judgements = {}
    for query, judged in qrels.items():
        ids = _distinct(judged, query, "qrels")
        grades = list(judged.values()) if isinstance(judged, Mapping) else [1.0] * len(ids)
        numbers = np.array(grades, dtype=np.float64)
        if not np.isfinite(numbers).all():
            raise InputError("qrels", "finite grades", found=f"others for query {query!r}")
        judgements[_plain(query)] = dict(zip(ids, numbers.tolist(), strict=True))
    return judgements


def _distinct(documents: Iterable[Any], query: Hashable, parameter: str) -> list[Hashable]:
    ids = [_plain(document) for document in documents]
    if len(set(ids)) < len(ids):
        problem = f"one twice for query {query!r}"
        raise InputError(parameter, "different documents for each query", found=problem)
    return ids


def _plain(value: Any) -> Hashable:
    """Return an id of Python; those of NumPy are other types, and equal."""
    plain: Hashable = value.item() if isinstance(value, np.generic) else value
    return plain


def name_types(ids: Iterable[Hashable]) -> str:
    """Return the types of ids, with an example of each: "text (such as '1')"."""
    examples: dict[str, Hashable] = {}
    for one in ids:
        examples.setdefault("text" if isinstance(one, str) else "number", one)
    return " and ".join(f"{kind} (such as {one!r})" for kind, one in sorted(examples.items()))
