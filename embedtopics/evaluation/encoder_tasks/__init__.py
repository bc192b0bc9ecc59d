"""Tasks with known answers, and what encoders score on them."""

from __future__ import annotations

from embedtopics.evaluation.encoder_tasks.evaluating import (
    evaluate_encoder,
    read_tasks,
    score_differences,
)
from embedtopics.evaluation.encoder_tasks.pair_files import read_pairs
from embedtopics.evaluation.encoder_tasks.reading import TASKS
from embedtopics.evaluation.encoder_tasks.sets import (
    ClassedPairs,
    GradedPairs,
    InferencePairs,
    LabelledTexts,
    SearchSet,
    TaskSet,
    Translations,
)

__all__ = [
    "TASKS",
    "ClassedPairs",
    "GradedPairs",
    "InferencePairs",
    "LabelledTexts",
    "SearchSet",
    "TaskSet",
    "Translations",
    "evaluate_encoder",
    "read_pairs",
    "read_tasks",
    "score_differences",
]
