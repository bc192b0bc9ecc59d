"""The topic model, and the questions that a fitted result answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from embedtopics._utils.lazy import attach

if TYPE_CHECKING:
    from embedtopics.topics._assign import assign as assign
    from embedtopics.topics._describe import top_words as top_words
    from embedtopics.topics._hub import from_pretrained as from_pretrained
    from embedtopics.topics._hub import push_to_hub as push_to_hub
    from embedtopics.topics._hub import without_texts as without_texts
    from embedtopics.topics._inspection import inspect_corpus as inspect_corpus
    from embedtopics.topics._languages import keywords_by_language as keywords_by_language
    from embedtopics.topics._model import TopicModel as TopicModel
    from embedtopics.topics._report_card import report_card as report_card
    from embedtopics.topics._resolution import at_resolution as at_resolution
    from embedtopics.topics._resolution import levels as levels
    from embedtopics.topics._resolution import suggest_resolution as suggest_resolution
    from embedtopics.topics._stability import with_stability as with_stability
    from embedtopics.topics._storage import load_result as load_result
    from embedtopics.topics._storage import save_result as save_result
    from embedtopics.topics._tables import documents as documents
    from embedtopics.topics._tables import table as table
    from embedtopics.topics._tables import terms as terms
    from embedtopics.topics._tables import validation_sheets as validation_sheets
    from embedtopics.topics.constraints._labels import CannotLink as CannotLink
    from embedtopics.topics.constraints._labels import ManualLabels as ManualLabels
    from embedtopics.topics.constraints._labels import PartialLabels as PartialLabels
    from embedtopics.topics.constraints._protocol import Constraint as Constraint
    from embedtopics.topics.constraints._words import SeedWords as SeedWords
    from embedtopics.topics.constraints._words import ZeroShot as ZeroShot
    from embedtopics.topics.editing._labels import make_labels as make_labels
    from embedtopics.topics.editing._labels import rename as rename
    from embedtopics.topics.editing._labels import update_terms as update_terms
    from embedtopics.topics.editing._merge import at_level as at_level
    from embedtopics.topics.editing._merge import merge as merge
    from embedtopics.topics.editing._merge import reduce as reduce
    from embedtopics.topics.editing._merge import remove as remove
    from embedtopics.topics.editing._reassign import reassign as reassign
    from embedtopics.topics.editing._reassign import split as split
    from embedtopics.topics.editing._replay import history as history
    from embedtopics.topics.editing._replay import replay as replay
    from embedtopics.topics.growing._combine import combine as combine
    from embedtopics.topics.growing._combine import lineage as lineage
    from embedtopics.topics.growing._extend import extend as extend
    from embedtopics.topics.growing._novelty import adopt as adopt
    from embedtopics.topics.growing._sample import fit_sample as fit_sample
    from embedtopics.topics.mixture._windows import mixtures as mixtures
    from embedtopics.topics.mixture._windows import token_topics as token_topics
    from embedtopics.topics.naming._keywords import keywords as keywords
    from embedtopics.topics.naming._keywords import with_keywords as with_keywords
    from embedtopics.topics.naming._name_topics import name_topics as name_topics
    from embedtopics.topics.naming._questions import naming_questions as naming_questions
    from embedtopics.topics.naming._score_labels import score_labels as score_labels
    from embedtopics.topics.reading._concordance import concordance as concordance
    from embedtopics.topics.reading._export import export as export
    from embedtopics.topics.reading._find import find as find
    from embedtopics.topics.reading._find import sample_documents as sample_documents
    from embedtopics.topics.reading._keyness import keyness as keyness
    from embedtopics.topics.tree._hierarchy import hierarchy as hierarchy
    from embedtopics.topics.tree._hierarchy import tree_text as tree_text
    from embedtopics.topics.trends._by_group import by_group as by_group
    from embedtopics.topics.trends._changes import changes as changes
    from embedtopics.topics.trends._effects import effects as effects
    from embedtopics.topics.trends._over_time import over_time as over_time

__getattr__, __dir__, __all__ = attach(__name__, __file__)
