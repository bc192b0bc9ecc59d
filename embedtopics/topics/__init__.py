"""The topic model, and the questions that a fitted result answers."""

from __future__ import annotations

from embedtopics.topics.assign import Assignment, assign
from embedtopics.topics.describe import top_words
from embedtopics.topics.export import write_tables
from embedtopics.topics.growing import adopt, combine, extend, lineage
from embedtopics.topics.inspection import Inspection, inspect_corpus
from embedtopics.topics.model import TopicModel
from embedtopics.topics.resolutions import at_resolution, levels
from embedtopics.topics.sharing import from_pretrained, push_to_hub, without_texts
from embedtopics.topics.stability import stability, with_stability
from embedtopics.topics.storage import load_result, save_result, write_result
from embedtopics.topics.tables import documents, table, terms

__all__ = [
    "Assignment",
    "Inspection",
    "TopicModel",
    "adopt",
    "assign",
    "at_resolution",
    "combine",
    "documents",
    "extend",
    "from_pretrained",
    "inspect_corpus",
    "levels",
    "lineage",
    "load_result",
    "push_to_hub",
    "save_result",
    "stability",
    "table",
    "terms",
    "top_words",
    "with_stability",
    "without_texts",
    "write_result",
    "write_tables",
]
