"""The collection in other engines: Parquet, and the stores that speak `VectorStore`."""

from __future__ import annotations

from embedtopics.retrieval.stores.exporting import STORE_COLUMNS, export_to_store
from embedtopics.retrieval.stores.memory import MemoryStore
from embedtopics.retrieval.stores.parquet import export_parquet
from embedtopics.retrieval.stores.protocol import Found, VectorStore
from embedtopics.retrieval.stores.qdrant import QdrantStore

__all__ = [
    "STORE_COLUMNS", "Found", "MemoryStore", "QdrantStore", "VectorStore", "export_parquet",
    "export_to_store",
]  # fmt: skip
