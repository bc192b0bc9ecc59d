"""A collection into a vector store: a point for each passage."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any

from embedtopics.errors import InputError
from embedtopics.protocols import FloatArray
from embedtopics.results import Decision
from embedtopics.retrieval.stores.checking import free_names, renamed
from embedtopics.retrieval.stores.parquet import Exportable
from embedtopics.retrieval.stores.protocol import VectorStore

__all__ = ["STORE_COLUMNS", "export_to_store"]

STORE_COLUMNS = {
    "document_id": "text", "passage": "integer", "start": "integer", "stop": "integer",
    "text": "text",
}  # fmt: skip
"""What a point has beside the metadata of its document, and the kind of each."""

PASSAGES_AT_ONCE = 1_000


def export_to_store(
    documents: Iterable[Exportable], store: VectorStore, *, columns: Iterable[str] = ()
) -> tuple[int, tuple[Decision, ...]]:
    """Put every passage into a store as ``<id>#<number>``, with its text and metadata.

    Parameters
    ----------
    documents : iterable of (id, text, metadata, spans, vectors)
    store : VectorStore
        Its columns are those of the collection, and `STORE_COLUMNS`.
    columns : iterable of str
        Metadata to write; one that is called as one of `STORE_COLUMNS` gets an underscore behind.

    Returns
    -------
    int
        Passages.
    tuple of Decision
        Tells of columns that were renamed.

    Raises
    ------
    InputError
        If the store does not take a value, or a column was not named.
    """
    called = free_names(columns, STORE_COLUMNS)
    n, names, payloads = 0, [], []
    rows: list[FloatArray] = []
    for given, text, metadata, spans, vectors in documents:
        known = _renamed(given, metadata, called)
        for number, ((start, stop), row) in enumerate(zip(spans, vectors, strict=True)):
            begin, end = int(start), int(stop)
            names.append(f"{given}#{number}")
            rows.append(row)
            own: dict[str, Any] = {
                "document_id": str(given), "passage": number, "start": begin, "stop": end,
                "text": text[begin:end],
            }  # fmt: skip
            payloads.append({**known, **own})
        if len(names) >= PASSAGES_AT_ONCE:
            store.upsert(names, rows, payloads)
            n, names, payloads, rows = n + len(names), [], [], []
    if names:
        store.upsert(names, rows, payloads)
    return n + len(names), renamed(called)


def _renamed(
    given: Hashable, metadata: Mapping[str, Any], called: Mapping[str, str]
) -> dict[str, Any]:
    unknown = [column for column in metadata if column not in called]
    if unknown:
        raise InputError(
            f"document {given!r}: column {unknown[0]!r} was not named; name it in columns"
        )
    return {called[column]: value for column, value in metadata.items()}
