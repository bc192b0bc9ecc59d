"""Search over a collection: by meaning, by words, or both, under filters, from a folder on disk."""

from __future__ import annotations

from typing import TYPE_CHECKING

from embedtopics._utils.lazy import attach

if TYPE_CHECKING:
    from embedtopics.retrieval._index import SearchIndex as SearchIndex
    from embedtopics.retrieval._rerank import load_cross_encoder as load_cross_encoder
    from embedtopics.retrieval.storage._checks import check as check

__getattr__, __dir__, __all__ = attach(__name__, __file__)
