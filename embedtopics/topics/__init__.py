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
from embedtopics.topics.growing import adopt, combine, extend, lineage
from embedtopics.topics.guidance import (
    Guidance,
    Labels,
    ManualLabels,
    Material,
    MustNotLink,
    SeedWords,
    ZeroShot,
)
from embedtopics.topics.inspection import Inspection, inspect_corpus
from embedtopics.topics.label_files import read_labels, write_labels
from embedtopics.topics.mixtures.passages import passage_topics
from embedtopics.topics.mixtures.windows import mixtures, token_topics
from embedtopics.topics.model import TopicModel
from embedtopics.topics.naming import (
    Question,
    aspects,
    keywords_by_embedding,
    keywords_by_npmi,
    keywords_by_part_of_speech,
    keywords_diverse,
    name_topics,
    naming_questions,
    with_keywords,
)
from embedtopics.topics.reading import (
    collocates,
    concordance,
    export,
    find,
    keyness,
    make_labels,
    read,
)
from embedtopics.topics.report_card import report_card
from embedtopics.topics.resolutions import at_resolution, levels
from embedtopics.topics.sharing import from_pretrained, push_to_hub, without_texts
from embedtopics.topics.stability import stability, with_stability
from embedtopics.topics.storage import load_result, save_result, write_result
from embedtopics.topics.tables import documents, table, terms
from embedtopics.topics.tree.building import hierarchy
from embedtopics.topics.tree.drawing import tree_text
from embedtopics.topics.tree.levels import at_level
from embedtopics.topics.trends import by_group, changes, effects, over_time, prevalence
from embedtopics.topics.validation import validation_sheets

__all__ = [
    "Assignment",
    "Guidance",
    "Inspection",
    "Labels",
    "ManualLabels",
    "Material",
    "MustNotLink",
    "Question",
    "SeedWords",
    "TopicModel",
    "ZeroShot",
    "adopt",
    "aspects",
    "assign",
    "at_level",
    "at_resolution",
    "by_group",
    "changes",
    "collocates",
    "combine",
    "concordance",
    "documents",
    "effects",
    "export",
    "extend",
    "find",
    "from_pretrained",
    "hierarchy",
    "history",
    "inspect_corpus",
    "keyness",
    "keywords_by_embedding",
    "keywords_by_npmi",
    "keywords_by_part_of_speech",
    "keywords_diverse",
    "levels",
    "lineage",
    "load_result",
    "make_labels",
    "merge",
    "mixtures",
    "name_topics",
    "naming_questions",
    "over_time",
    "passage_topics",
    "prevalence",
    "push_to_hub",
    "read",
    "read_labels",
    "reassign",
    "reduce",
    "remove",
    "rename",
    "replay",
    "report_card",
    "save_result",
    "split",
    "stability",
    "table",
    "terms",
    "token_topics",
    "top_words",
    "tree_text",
    "update_terms",
    "validation_sheets",
    "with_keywords",
    "with_stability",
    "without_texts",
    "write_labels",
    "write_result",
    "write_tables",
]
