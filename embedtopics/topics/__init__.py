"""The topic model, and the questions that a fitted result answers."""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from embedtopics.topics.assign import Assignment, assign
    from embedtopics.topics.describe import top_words
    from embedtopics.topics.editing.logbook import history
    from embedtopics.topics.editing.merging import merge
    from embedtopics.topics.editing.reassigning import reassign
    from embedtopics.topics.editing.recounting import update_terms
    from embedtopics.topics.editing.reducing import reduce
    from embedtopics.topics.editing.removing import remove
    from embedtopics.topics.editing.renaming import rename
    from embedtopics.topics.editing.replaying import replay
    from embedtopics.topics.editing.splitting import split
    from embedtopics.topics.export import write_tables
    from embedtopics.topics.growing.adopting import adopt
    from embedtopics.topics.growing.combining import combine
    from embedtopics.topics.growing.extending import extend
    from embedtopics.topics.growing.lineage import lineage
    from embedtopics.topics.guidance.labels import Labels, ManualLabels
    from embedtopics.topics.guidance.must_not_link import MustNotLink
    from embedtopics.topics.guidance.protocol import Guidance, Material
    from embedtopics.topics.guidance.seed_words import SeedWords
    from embedtopics.topics.guidance.zero_shot import ZeroShot
    from embedtopics.topics.inspection import Inspection, inspect_corpus
    from embedtopics.topics.label_files import read_labels, write_labels
    from embedtopics.topics.mixtures.passages import passage_topics
    from embedtopics.topics.mixtures.windows import mixtures, token_topics
    from embedtopics.topics.model import TopicModel
    from embedtopics.topics.naming.by_embedding import keywords_by_embedding, keywords_diverse
    from embedtopics.topics.naming.by_npmi import keywords_by_npmi
    from embedtopics.topics.naming.by_part_of_speech import keywords_by_part_of_speech
    from embedtopics.topics.naming.giving import aspects, with_keywords
    from embedtopics.topics.naming.name_topics import name_topics
    from embedtopics.topics.naming.prompts import Question, naming_questions
    from embedtopics.topics.reading.collocates import collocates
    from embedtopics.topics.reading.concordance import concordance
    from embedtopics.topics.reading.documents import read
    from embedtopics.topics.reading.exporting import export
    from embedtopics.topics.reading.finding import find
    from embedtopics.topics.reading.keyness import keyness
    from embedtopics.topics.reading.labels import make_labels
    from embedtopics.topics.report_card import report_card
    from embedtopics.topics.resolutions import at_resolution, levels
    from embedtopics.topics.sharing.hub import from_pretrained, push_to_hub
    from embedtopics.topics.sharing.privacy import without_texts
    from embedtopics.topics.stability import stability, with_stability
    from embedtopics.topics.storage import load_result, save_result, write_result
    from embedtopics.topics.tables import documents, table, terms
    from embedtopics.topics.tree.building import hierarchy
    from embedtopics.topics.tree.drawing import tree_text
    from embedtopics.topics.tree.levels import at_level
    from embedtopics.topics.trends.by_group import by_group
    from embedtopics.topics.trends.changes import changes
    from embedtopics.topics.trends.effects import effects
    from embedtopics.topics.trends.over_time import over_time
    from embedtopics.topics.trends.prevalence import prevalence
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

# A fit does not wait for what only a question after it needs.
_HOME = {
    "Assignment": "assign",
    "Guidance": "guidance.protocol",
    "Inspection": "inspection",
    "Labels": "guidance.labels",
    "ManualLabels": "guidance.labels",
    "Material": "guidance.protocol",
    "MustNotLink": "guidance.must_not_link",
    "Question": "naming.prompts",
    "SeedWords": "guidance.seed_words",
    "TopicModel": "model",
    "ZeroShot": "guidance.zero_shot",
    "adopt": "growing.adopting",
    "aspects": "naming.giving",
    "assign": "assign",
    "at_level": "tree.levels",
    "at_resolution": "resolutions",
    "by_group": "trends.by_group",
    "changes": "trends.changes",
    "collocates": "reading.collocates",
    "combine": "growing.combining",
    "concordance": "reading.concordance",
    "documents": "tables",
    "effects": "trends.effects",
    "export": "reading.exporting",
    "extend": "growing.extending",
    "find": "reading.finding",
    "from_pretrained": "sharing.hub",
    "hierarchy": "tree.building",
    "history": "editing.logbook",
    "inspect_corpus": "inspection",
    "keyness": "reading.keyness",
    "keywords_by_embedding": "naming.by_embedding",
    "keywords_by_npmi": "naming.by_npmi",
    "keywords_by_part_of_speech": "naming.by_part_of_speech",
    "keywords_diverse": "naming.by_embedding",
    "levels": "resolutions",
    "lineage": "growing.lineage",
    "load_result": "storage",
    "make_labels": "reading.labels",
    "merge": "editing.merging",
    "mixtures": "mixtures.windows",
    "name_topics": "naming.name_topics",
    "naming_questions": "naming.prompts",
    "over_time": "trends.over_time",
    "passage_topics": "mixtures.passages",
    "prevalence": "trends.prevalence",
    "push_to_hub": "sharing.hub",
    "read": "reading.documents",
    "read_labels": "label_files",
    "reassign": "editing.reassigning",
    "reduce": "editing.reducing",
    "remove": "editing.removing",
    "rename": "editing.renaming",
    "replay": "editing.replaying",
    "report_card": "report_card",
    "save_result": "storage",
    "split": "editing.splitting",
    "stability": "stability",
    "table": "tables",
    "terms": "tables",
    "token_topics": "mixtures.windows",
    "top_words": "describe",
    "tree_text": "tree.drawing",
    "update_terms": "editing.recounting",
    "validation_sheets": "validation",
    "with_keywords": "naming.giving",
    "with_stability": "stability",
    "without_texts": "sharing.privacy",
    "write_labels": "label_files",
    "write_result": "storage",
    "write_tables": "export",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


class _Room(ModuleType):
    """A module whose functions are not hidden by submodules of the same name."""

    def __setattr__(self, name: str, value: Any) -> None:
        # Importing a submodule sets it as an attribute: `assign`, `export`, `stability` ...
        if not (name in _HOME and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Room
