"""The topic model, and the questions that a fitted result answers."""

from __future__ import annotations

from embedtopics.topics.assign import Assignment, assign
from embedtopics.topics.describe import top_words
from embedtopics.topics.export import write_tables
from embedtopics.topics.inspection import Inspection, inspect_corpus
from embedtopics.topics.model import TopicModel
from embedtopics.topics.storage import load_result, save_result, write_result
from embedtopics.topics.tables import documents, table, terms

__all__ = [
    "Assignment",
    "Inspection",
    "TopicModel",
    "assign",
    "documents",
    "inspect_corpus",
    "load_result",
    "save_result",
    "table",
    "terms",
    "top_words",
    "write_result",
    "write_tables",
]
