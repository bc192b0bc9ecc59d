"""A collection into a vector store: a point for each passage."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from embedtopics.protocols import FloatArray
from embedtopics.retrieval.stores.parquet import Exportable
from embedtopics.retrieval.stores.protocol import VectorStore

__all__ = ["STORE_COLUMNS", "export_to_store"]

STORE_COLUMNS = {
    "document_id": "text", "passage": "integer", "start": "integer", "stop": "integer",
    "text": "text",
}  # fmt: skip
"""What a point has beside the metadata of its document, and the kind of each."""

PASSAGES_AT_ONCE = 1_000


def export_to_store(documents: Iterable[Exportable], store: VectorStore) -> int:
    """Put every passage into a store as ``<id>#<number>``, with its text and metadata.

    Parameters
    ----------
    documents : iterable of (id, text, metadata, spans, vectors)
    store : VectorStore
        Its columns are those of the collection, and `STORE_COLUMNS`.

    Returns
    -------
    int
        Passages.

    Raises
    ------
    InputError
        If the store does not take a value.
    """
    n, names, payloads = 0, [], []
    rows: list[FloatArray] = []
    for given, text, metadata, spans, vectors in documents:
        for number, ((start, stop), row) in enumerate(zip(spans, vectors, strict=True)):
            begin, end = int(start), int(stop)
            names.append(f"{given}#{number}")
            rows.append(row)
            own: dict[str, Any] = {
                "document_id": str(given), "passage": number, "start": begin, "stop": end,
                "text": text[begin:end],
            }  # fmt: skip
            payloads.append({**metadata, **own})
        if len(names) >= PASSAGES_AT_ONCE:
            store.upsert(names, rows, payloads)
            n, names, payloads, rows = n + len(names), [], [], []
    if names:
        store.upsert(names, rows, payloads)
    return n + len(names)
