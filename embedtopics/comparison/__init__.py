"""Encoders side by side: their neighbours, their maps, their scores, and what makes the difference.

>>> from embedtopics import comparison
>>> result = comparison.compare(corpus, ["tfidf", "all-MiniLM-L6-v2"])  # doctest: +SKIP
>>> comparison.difference_table(result)  # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from embedtopics._utils.lazy import attach

if TYPE_CHECKING:
    from embedtopics.comparison._compare import compare as compare
    from embedtopics.comparison._tables import difference_table as difference_table
    from embedtopics.comparison._tables import move_table as move_table
    from embedtopics.comparison._tables import overlap_table as overlap_table
    from embedtopics.comparison._tables import score_table as score_table

__getattr__, __dir__, __all__ = attach(__name__, __file__)
