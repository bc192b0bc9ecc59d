"""The topic model, and the questions that a fitted result answers."""

from __future__ import annotations

from embedtopics.topics.assign import Assignment, assign
from embedtopics.topics.describe import top_words
from embedtopics.topics.export import write_tables
from embedtopics.topics.inspection import Inspection, inspect_corpus
from embedtopics.topics.model import TopicModel
from embedtopics.topics.resolutions import at_resolution, levels
from embedtopics.topics.stability import stability, with_stability
from embedtopics.topics.storage import load_result, save_result, write_result
from embedtopics.topics.tables import documents, table, terms
from embedtopics.topics.trends import by_group, changes, effects, over_time, prevalence

__all__ = [
    "Assignment",
    "Inspection",
    "TopicModel",
    "assign",
    "at_resolution",
    "by_group",
    "changes",
    "documents",
    "effects",
    "inspect_corpus",
    "levels",
    "load_result",
    "over_time",
    "prevalence",
    "save_result",
    "stability",
    "table",
    "terms",
    "top_words",
    "with_stability",
    "write_result",
    "write_tables",
]
