"""The topic model, and the questions that a fitted result answers."""

from __future__ import annotations

from embedtopics.topics.assign import Assignment, assign
from embedtopics.topics.describe import top_words
from embedtopics.topics.export import write_tables
from embedtopics.topics.inspection import Inspection, inspect_corpus
from embedtopics.topics.mixtures.passages import passage_topics
from embedtopics.topics.mixtures.windows import mixtures, token_topics
from embedtopics.topics.model import TopicModel
from embedtopics.topics.resolutions import at_resolution, levels
from embedtopics.topics.stability import stability, with_stability
from embedtopics.topics.storage import load_result, save_result, write_result
from embedtopics.topics.tables import documents, table, terms
from embedtopics.topics.tree.building import hierarchy
from embedtopics.topics.tree.drawing import tree_text
from embedtopics.topics.tree.levels import at_level

__all__ = [
    "Assignment",
    "Inspection",
    "TopicModel",
    "assign",
    "at_level",
    "at_resolution",
    "documents",
    "hierarchy",
    "inspect_corpus",
    "levels",
    "load_result",
    "mixtures",
    "passage_topics",
    "save_result",
    "stability",
    "table",
    "terms",
    "token_topics",
    "top_words",
    "tree_text",
    "with_stability",
    "write_result",
    "write_tables",
]
