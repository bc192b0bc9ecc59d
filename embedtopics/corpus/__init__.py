"""Files, frames and lists become a `Corpus`: texts with ids, content hashes and metadata."""

from __future__ import annotations

from typing import TYPE_CHECKING

from embedtopics._utils.lazy import attach

if TYPE_CHECKING:
    from embedtopics.corpus._corpus import Corpus as Corpus
    from embedtopics.corpus._dates import parse_dates as parse_dates
    from embedtopics.corpus._languages import detect_languages as detect_languages

__getattr__, __dir__, __all__ = attach(__name__, __file__)
