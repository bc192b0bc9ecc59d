"""Files of queries, rankings and judgements, as TREC and BEIR write them."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path

from embedtopics.corpus.columns import read_ids
from embedtopics.corpus.opening import check_path, open_text
from embedtopics.corpus.readers import read_file
from embedtopics.corpus.tables import Table
from embedtopics.errors import InputError

__all__ = ["read_qrels", "read_queries", "read_run"]

_QUERY_KEYS = ("query_id", "query-id", "qid", "query")
_DOCUMENT_KEYS = ("doc_id", "document_id", "docid", "corpus-id", "corpus_id", "document")
_GRADE_KEYS = ("relevance", "score", "grade", "rel", "label")
_ID_COLUMNS = ("id", "_id", "query_id", "query-id", "qid")
_TEXT_COLUMNS = ("text", "query", "question", "title")


def read_qrels(path: str | Path) -> dict[str, dict[str, float]]:
    """Read judgements: which documents are relevant to which query, and how much.

    Three forms are told apart by the first line: TREC's four columns (query, iteration, document,
    grade; parted by blanks); BEIR's three, parted by tabs, below a header (query-id, corpus-id,
    score); and JSON lines with query_id, doc_id and relevance. The name may end in .gz.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    dict of str to dict of str to float
        Grades of each query's documents; ids are texts. A grade may be 0 or negative.

    Raises
    ------
    InputError
        Where there is no such file, or a line is broken or contradicts another; it is named.
    """
    path = Path(path)
    lines = list(_lines(path))
    if not lines:
        raise InputError(f"{path.name}: expected judgements, got an empty file")
    first = lines[0][1]
    if first.lstrip().startswith("{"):
        parse: Callable[[str, Path, int], tuple[str, str, str]] = _judgement_of_json
    elif len(first.split("\t")) == 3 and _grade(first.split("\t")[2]) is None:
        parse, lines = _judgement_of_beir, lines[1:]
        if not lines:
            raise InputError(f"{path.name}: expected judgements below the header, got none")
    else:
        parse = _judgement_of_trec
    made: dict[str, dict[str, float]] = {}
    for number, line in lines:
        query, document, written = parse(line, path, number)
        grade = _grade(written)
        if grade is None:
            raise InputError(
                f"{path.name}, line {number}: expected a number as the grade, got {written!r}"
            )
        before = made.setdefault(query, {}).setdefault(document, grade)
        if before != grade:
            raise InputError(
                f"{path.name}, line {number}: query {query!r} and document {document!r} have the "
                f"grade {grade:g} here and {before:g} above; keep one"
            )
    return made


def read_run(path: str | Path) -> dict[str, dict[str, float]]:
    """Read rankings in TREC's six columns: query, Q0, document, rank, score and name of the run.

    As in trec_eval, the score orders the documents and the rank is not looked at.

    Parameters
    ----------
    path : str or Path
        The name may end in .gz.

    Returns
    -------
    dict of str to dict of str to float
        Scores of each query's documents; ids are texts.

    Raises
    ------
    InputError
        Where there is no such file, or a line is broken or has a document again; it is named.
    """
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
        score = _grade(written)
        if score is None:
            raise InputError(
                f"{path.name}, line {number}: expected a number as the score, got {written!r}"
            )
        if document in made.setdefault(query, {}):
            raise InputError(
                f"{path.name}, line {number}: query {query!r} has document {document!r} twice; "
                "keep one"
            )
        made[query][document] = score
    if not made:
        raise InputError(f"{path.name}: expected rankings, got an empty file")
    return made


def read_queries(
    path: str | Path, *, id: str | None = None, text: str | None = None, encoding: str = "utf-8"
) -> dict[str, str]:
    """Read queries with their ids from JSON lines, csv, tsv or any other file of documents.

    Parameters
    ----------
    path : str or Path
    id, text : str, optional
        Columns; by default, of id, _id, query_id, query-id and qid, and of text, query, question
        and title, the first that is there.
    encoding : str

    Returns
    -------
    dict of str to str
        Texts by id, in the order of the file.

    Raises
    ------
    InputError
        Where the file cannot be read, a column is missing, an id is missing or there twice, or a
        query is empty.
    """
    table = read_file(Path(path), encoding)
    columns = [str(name) for name in table.frame.columns]
    of_id = _column(table, columns, id, _ID_COLUMNS, "id")
    of_text = _column(table, columns, text, _TEXT_COLUMNS, "text", but=of_id)
    ids = read_ids(table.frame.iloc[:, of_id].tolist(), table)
    texts = table.frame.iloc[:, of_text].tolist()
    for row, value in enumerate(texts):
        if not isinstance(value, str) or not value.strip():
            raise InputError(
                f"{table.source}, {table.name_row(row)}: expected the text of a query in "
                f"{columns[of_text]!r}, got {value!r}; fill it in or take the row out"
            )
    return dict(zip(ids, texts, strict=True))


def _column(
    table: Table,
    columns: list[str],
    given: str | None,
    known: tuple[str, ...],
    role: str,
    but: int = -1,
) -> int:
    """Return the place of a column that was named, or has one of the known names."""
    wanted = known if given is None else (given,)
    found = [columns.index(name) for name in wanted if name in columns]
    found = [place for place in found if place != but]
    if not found:
        raise InputError(
            f"{table.source}: expected a column {' or '.join(map(repr, wanted))} with the {role} "
            f"of each query, got {', '.join(map(repr, columns))}; name it with {role}=, or write "
            "a header line"
        )
    return found[0]


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    check_path(path)
    if path.is_dir():
        raise InputError(f"{path}: expected a file, got a folder")
    with open_text(path, "utf-8") as handle:
        for number, line in enumerate(handle, 1):
            if line.strip():
                yield number, line.rstrip("\n")


def _judgement_of_trec(line: str, path: Path, number: int) -> tuple[str, str, str]:
    fields = line.split()
    if len(fields) != 4:
        raise InputError(
            f"{path.name}, line {number}: expected 4 columns (query, iteration, document, grade), "
            f"got {len(fields)}; files of 3 columns need tabs and a header line"
        )
    return fields[0], fields[2], fields[3]


def _judgement_of_beir(line: str, path: Path, number: int) -> tuple[str, str, str]:
    fields = [field.strip() for field in line.split("\t")]
    if len(fields) != 3 or not all(fields):
        raise InputError(
            f"{path.name}, line {number}: expected 3 columns parted by tabs (query, document, "
            f"grade), got {line[:80]!r}"
        )
    return fields[0], fields[1], fields[2]


def _judgement_of_json(line: str, path: Path, number: int) -> tuple[str, str, str]:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"{path.name}, line {number}: expected a JSON object, got a fault ({error})"
        ) from None
    found = []
    for keys in (_QUERY_KEYS, _DOCUMENT_KEYS, _GRADE_KEYS):
        value = next((record[k] for k in keys if k in record), None) if _is(record) else None
        if not isinstance(value, (str, int, float)) or isinstance(value, bool) or value == "":
            raise InputError(
                f"{path.name}, line {number}: expected a JSON object with query_id, doc_id and "
                f"relevance, got {line[:80]!r}"
            )
        found.append(str(value))
    return found[0], found[1], found[2]


def _is(record: object) -> bool:
    return isinstance(record, dict)


def _grade(written: str) -> float | None:
    """Return a finite number, or None."""
    try:
        value = float(written)
    except ValueError:
        return None
    return value if math.isfinite(value) and "_" not in written else None
