"""The topic model, and the questions that a fitted result answers."""

from __future__ import annotations

from embedtopics.topics.assign import Assignment, assign
from embedtopics.topics.describe import top_words
from embedtopics.topics.editing import (
    history,
    merge,
    reassign,
    reduce,
    remove,
    rename,
    replay,
    split,
    update_terms,
)
from embedtopics.topics.export import write_tables
from embedtopics.topics.inspection import Inspection, inspect_corpus
from embedtopics.topics.label_files import read_labels, write_labels
from embedtopics.topics.model import TopicModel
from embedtopics.topics.resolutions import at_resolution, levels
from embedtopics.topics.stability import stability, with_stability
from embedtopics.topics.storage import load_result, save_result, write_result
from embedtopics.topics.tables import documents, table, terms

__all__ = [
    "Assignment",
    "Inspection",
    "TopicModel",
    "assign",
    "at_resolution",
    "documents",
    "history",
    "inspect_corpus",
    "levels",
    "load_result",
    "merge",
    "read_labels",
    "reassign",
    "reduce",
    "remove",
    "rename",
    "replay",
    "save_result",
    "split",
    "stability",
    "table",
    "terms",
    "top_words",
    "update_terms",
    "with_stability",
    "write_labels",
    "write_result",
    "write_tables",
]
