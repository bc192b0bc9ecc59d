"""Texts and labels -> what each topic is about: terms, weights, keywords, representative documents.

Documents are tokenised once; everything else is counted from the word ids.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from embedtopics._utils.lazy import attach

if TYPE_CHECKING:
    from embedtopics.terms._weighting import ClassTfidf as ClassTfidf

__getattr__, __dir__, __all__ = attach(__name__, __file__)
