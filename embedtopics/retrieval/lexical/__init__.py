"""Words of a segment: BM25 with the statistics of the whole collection."""

from __future__ import annotations

from embedtopics.retrieval.lexical.searcher import LexicalHits, LexicalSearcher
from embedtopics.retrieval.lexical.segment import LexicalSegment, build_lexical, open_lexical
from embedtopics.retrieval.lexical.settings import LexicalSettings, lexical_settings

__all__ = [
    "LexicalHits",
    "LexicalSearcher",
    "LexicalSegment",
    "LexicalSettings",
    "build_lexical",
    "lexical_settings",
    "open_lexical",
]
