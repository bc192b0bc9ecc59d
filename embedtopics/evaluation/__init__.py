"""Measures of topics, labels, encoders and searches, as pure functions."""

from embedtopics._utils.public import attach

MOVED = {
    "agreement": "et.evaluation.evaluate_clustering",
    "c_v": 'et.evaluation.coherence(topics, measure="c_v")',
    "compare_retrieval": "et.evaluation.compare_runs",
    "evaluate_encoder": "et.comparison.evaluate_encoders",
    "npmi": "et.evaluation.coherence",
    "read_pairs": 'et.training.read_examples(path, "graded")',
    "retrieval": "et.evaluation.evaluate_run",
    "score_sheet": "et.annotation.score_sheet",
    "score_differences": "et.comparison.evaluate_encoders(encoders, examples).differences",
    "u_mass": 'et.evaluation.coherence(topics, measure="u_mass")',
}
"""Former public names, and what to use now."""

__getattr__, __dir__, __all__ = attach(__name__, __file__, MOVED)
