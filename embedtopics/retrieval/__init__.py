"""Search over a collection: by meaning, by words, or both, under filters, from a folder on disk."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from embedtopics.retrieval.collection import check
    from embedtopics.retrieval.dense.settings import DenseSettings
    from embedtopics.retrieval.fusing import FusionSettings
    from embedtopics.retrieval.index import SearchIndex
    from embedtopics.retrieval.reranking import load_cross_encoder
    from embedtopics.retrieval.snippets import as_html, as_terminal, as_text, snippet
    from embedtopics.retrieval.stores import MemoryStore, QdrantStore, VectorStore

__all__ = [
    "DenseSettings",
    "FusionSettings",
    "MemoryStore",
    "QdrantStore",
    "SearchIndex",
    "VectorStore",
    "as_html",
    "as_terminal",
    "as_text",
    "check",
    "load_cross_encoder",
    "snippet",
]

_HOME = {
    "DenseSettings": "dense.settings",
    "FusionSettings": "fusing",
    "MemoryStore": "stores",
    "QdrantStore": "stores",
    "SearchIndex": "index",
    "VectorStore": "stores",
    "as_html": "snippets",
    "as_terminal": "snippets",
    "as_text": "snippets",
    "check": "collection",
    "load_cross_encoder": "reranking",
    "snippet": "snippets",
}
"""The module of each name; it is imported when the name is first asked for."""


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
