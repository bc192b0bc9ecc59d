"""Classifiers of texts with few labels or many, how far to trust them, and shares of a corpus."""

from __future__ import annotations

from typing import TYPE_CHECKING

from embedtopics._utils.lazy import attach

if TYPE_CHECKING:
    from embedtopics.classification._classifier import TextClassifier as TextClassifier
    from embedtopics.classification._corpora import classify as classify
    from embedtopics.classification._pairs import PairScorer as PairScorer
    from embedtopics.classification._pairs import fit_pair_scorer as fit_pair_scorer
    from embedtopics.classification._prevalence import effects as effects
    from embedtopics.classification._prevalence import prevalence as prevalence
    from embedtopics.classification._report import class_terms as class_terms
    from embedtopics.classification._report import evaluate as evaluate
    from embedtopics.classification._report import nearest_labelled as nearest_labelled
    from embedtopics.classification._report import occlusion as occlusion
    from embedtopics.classification._report import suspicious_labels as suspicious_labels
    from embedtopics.classification._storage import load_classifier as load_classifier
    from embedtopics.classification._targets import label_conflicts as label_conflicts
    from embedtopics.classification._words import TokenClassifier as TokenClassifier
    from embedtopics.classification._words import entities as entities
    from embedtopics.classification._words import word_scores as word_scores
    from embedtopics.classification._words import write_conll as write_conll

__getattr__, __dir__, __all__ = attach(__name__, __file__)
