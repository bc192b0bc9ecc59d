"""Encoders side by side: their neighbours, their maps, their scores, and what makes the difference.

>>> from embedtopics import comparison
>>> result = comparison.compare(corpus, ["tfidf", "all-MiniLM-L6-v2"])  # doctest: +SKIP
>>> comparison.difference_table(result)  # doctest: +SKIP
"""

from __future__ import annotations

from embedtopics.comparison.alignment import align_maps, displacement, fit_similarity
from embedtopics.comparison.comparing import compare
from embedtopics.comparison.tables import difference_table, move_table, overlap_table, score_table

__all__ = [
    "align_maps",
    "compare",
    "difference_table",
    "displacement",
    "fit_similarity",
    "move_table",
    "overlap_table",
    "score_table",
]
