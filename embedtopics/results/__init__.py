"""The frozen values that travel between the rooms.

Rows and documents are told apart everywhere. A *row* is one row of the caller's input, in the
caller's order. A *document* is one distinct usable text: rows with the same text share a
document, and rows without text have none. Documents are ordered by the hash of their content,
so that nothing computed from them depends on the order in which the rows arrived.
"""

from __future__ import annotations

from embedtopics.results.comparison import Comparison, EncoderView, Move, Overlap
from embedtopics.results.contexts import (
    NeighborTable,
    SenseCount,
    SenseScore,
    SenseSeparation,
    StaticNeighbors,
    WordNeighbors,
    WordSenses,
    WordUse,
)
from embedtopics.results.edits import Edit, TopicMark
from embedtopics.results.encoder_scores import EncoderScores, Estimate, TaskScore
from embedtopics.results.example_overlap import ExampleOverlap
from embedtopics.results.geometry import (
    Contextualization,
    GeometryScore,
    LayerNorms,
    LayerSimilarity,
)
from embedtopics.results.growth import Candidate, Extension, Lineage, Link
from embedtopics.results.guide import Guide
from embedtopics.results.hidden_states import Attention, HiddenStates
from embedtopics.results.hierarchy import HierarchyLevel, TopicHierarchy, TopicNode
from embedtopics.results.inputs import Decision, DistinctDocuments, Encoding, LanguageShares
from embedtopics.results.mixture import PassageTopics, TokenMixture
from embedtopics.results.parts import (
    NOISE,
    Clustering,
    Level,
    NeighborGraph,
    Reason,
    SpanningTree,
    Stability,
    TermCounts,
    TokenStream,
    Topic,
)
from embedtopics.results.probing import LayerScores, ProbeScore, ProbeTask, ScalarMix
from embedtopics.results.reading import Exported
from embedtopics.results.retrieval_scores import RetrievalComparison, RetrievalScores
from embedtopics.results.search import DuplicateGroups, Hit, SearchHits
from embedtopics.results.student import StudentReport
from embedtopics.results.topic_result import TopicResult
from embedtopics.results.training import (
    VERDICTS,
    Change,
    Curves,
    Diagnosis,
    Evidence,
    LabelCurve,
    TrainingReport,
)
from embedtopics.results.treebank import Sentence, Treebank
from embedtopics.results.trends import CellTerms, TopicEffects, TopicGroups, TopicTrends
from embedtopics.results.word_change import ChangeMeasure, RareWord, SemanticChange, WordChange
from embedtopics.results.word_map import WordMap

__all__ = [
    "NOISE",
    "VERDICTS",
    "Attention",
    "Candidate",
    "CellTerms",
    "Change",
    "ChangeMeasure",
    "Clustering",
    "Comparison",
    "Contextualization",
    "Curves",
    "Decision",
    "Diagnosis",
    "DistinctDocuments",
    "DuplicateGroups",
    "Edit",
    "EncoderScores",
    "EncoderView",
    "Encoding",
    "Estimate",
    "Evidence",
    "ExampleOverlap",
    "Exported",
    "Extension",
    "GeometryScore",
    "Guide",
    "HiddenStates",
    "HierarchyLevel",
    "Hit",
    "LabelCurve",
    "LanguageShares",
    "LayerNorms",
    "LayerScores",
    "LayerSimilarity",
    "Level",
    "Lineage",
    "Link",
    "Move",
    "NeighborGraph",
    "NeighborTable",
    "Overlap",
    "PassageTopics",
    "ProbeScore",
    "ProbeTask",
    "RareWord",
    "Reason",
    "RetrievalComparison",
    "RetrievalScores",
    "ScalarMix",
    "SearchHits",
    "SemanticChange",
    "SenseCount",
    "SenseScore",
    "SenseSeparation",
    "Sentence",
    "SpanningTree",
    "Stability",
    "StaticNeighbors",
    "StudentReport",
    "TaskScore",
    "TermCounts",
    "TokenMixture",
    "TokenStream",
    "Topic",
    "TopicEffects",
    "TopicGroups",
    "TopicHierarchy",
    "TopicMark",
    "TopicNode",
    "TopicResult",
    "TopicTrends",
    "TrainingReport",
    "Treebank",
    "WordChange",
    "WordMap",
    "WordNeighbors",
    "WordSenses",
    "WordUse",
]
