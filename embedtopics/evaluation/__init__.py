"""Measures of topics, labels, encoders and searches, as pure functions."""

from embedtopics._utils.public import attach

MOVED = {
    "agreement": "et.evaluation.evaluate_clustering",
    "c_v": 'et.evaluation.coherence(topics, measure="c_v")',
    "compare_retrieval": "et.evaluation.compare_runs",
    "npmi": "et.evaluation.coherence",
    "retrieval": "et.evaluation.evaluate_run",
    "u_mass": 'et.evaluation.coherence(topics, measure="u_mass")',
}
"""Former public names, and what to use now."""

__getattr__, __dir__, __all__ = attach(__name__, __file__, MOVED)
