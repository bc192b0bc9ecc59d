"""Classify texts and words, evaluate classifiers, and estimate the share of each class."""

from embedtopics._utils.public import attach

MOVED = {
    "TextClassifier": "et.TextClassifier",
    "TokenClassifier": "et.TokenClassifier",
    "load_classifier": "et.TextClassifier.load(folder) or et.TokenClassifier.load(folder)",
    "measure": "et.inference.Measurement.from_classifier",
    "prevalence": "et.inference.shares(et.inference.Measurement.from_classifier(...), by), "
    "or without labels et.classification.adjusted_shares",
    "word_scores": "et.classification.evaluate_tokens",
}
"""Former public names, and what to use now."""

__getattr__, __dir__, __all__ = attach(__name__, __file__, MOVED)
