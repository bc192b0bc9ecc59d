"""Encoders side by side: their neighbours, their maps, their scores and their differences."""

from embedtopics._utils.public import attach

MOVED = {
    "compare": "et.comparison.compare_encoders",
    "difference_table": "et.comparison.compare_encoders(encoders, corpus).differences",
    "move_table": "et.comparison.compare_encoders(encoders, corpus).moves",
    "overlap_table": "et.comparison.compare_encoders(encoders, corpus).overlaps",
    "score_table": "et.comparison.compare_encoders(encoders, corpus).summary",
}
"""Former public names, and what to use now."""

__getattr__, __dir__, __all__ = attach(__name__, __file__, MOVED)
