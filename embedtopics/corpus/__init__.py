"""Files, frames and lists become a `Corpus`: texts with ids, content hashes and metadata."""

from __future__ import annotations

from embedtopics.corpus.columns import guess_columns
from embedtopics.corpus.corpus import Corpus, require_text
from embedtopics.corpus.dates import parse_dates
from embedtopics.corpus.hashing import EMPTY, MISSING, TEXT, normalize_text
from embedtopics.corpus.joining import blank_corpus, join_corpora, recall_hashes
from embedtopics.corpus.languages import detect_languages, language_of, main_languages
from embedtopics.corpus.readers import SUFFIXES

__all__ = [
    "EMPTY",
    "MISSING",
    "SUFFIXES",
    "TEXT",
    "Corpus",
    "blank_corpus",
    "detect_languages",
    "guess_columns",
    "join_corpora",
    "language_of",
    "main_languages",
    "normalize_text",
    "parse_dates",
    "recall_hashes",
    "require_text",
]
