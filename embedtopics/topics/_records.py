"""Records of saved results: the JSON in their folders. Arrays are checked by `check_parts`."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from embedtopics._utils.records import DecisionRecord, ForeignRecord, Record
from embedtopics.encoders._records import RulesRecord

Count = Annotated[int, Field(ge=0)]
Positive = Annotated[int, Field(ge=1)]
Number = int | float
Pair = Annotated[list[int], Field(min_length=2, max_length=2)]


class CorpusRecord(Record):
    """Columns and notes of the input."""

    text_column: str | int | None
    time_column: str | int | None
    group_column: str | int | None
    source: str | None
    notes: list[DecisionRecord]


class GraphRecord(Record):
    """How the neighbors were found; None stands for an unknown recall."""

    method: str
    recall: Number | None


class TopicRecord(Record):
    """The fields of `Topic`; None stands for NaN."""

    topic_id: Count
    label: str
    size: Count
    share: Number | None
    keywords: list[str]
    weights: list[Number | None]
    representatives: list[int]
    persistence: Number | None
    is_named: bool = False
    is_seeded: bool = False
    label_auc: Annotated[list[Number], Field(min_length=3, max_length=3)] | None = None
    keywords_auc: Number | None = None


class MarkRecord(Record):
    """The fields of `TopicMark`."""

    topic_id: int
    label: str
    keywords: list[str]
    documents: list[str]


class EditRecord(Record):
    """The fields of `Edit`."""

    name: str
    parameters: dict[str, Any]
    message: str
    marks: list[MarkRecord]
    new_ids: list[int] | None


class ConstraintsRecord(Record):
    """The fields of `TopicConstraints` that are no arrays."""

    names: list[str]
    is_fixed: bool
    is_complete: bool
    attraction: Number
    separation: Number


class AskedRecord(Record):
    """Parameters as they were given, before the fit resolved them."""

    n_topics: Positive | str | None
    min_cluster_size: Positive | str | None
    coverage: Number | str | None


class SettingsRecord(ForeignRecord):
    """The settings of a fit, and of the edits after it; others have no effect."""

    n_topics: Positive | str | None = None
    min_cluster_size: Number | str | None = None
    coverage: Number | str | None = None
    asked: AskedRecord | None = None
    n_neighbors: Positive | None = None
    n_components: Positive | None = None
    seed: Count | None = None
    min_margin: Number | None = None
    reducer: str | list[Any] | dict[str, Any] | None = None
    clusterer: str | list[Any] | dict[str, Any] | None = None
    constraints: dict[str, Any] | None = None

    encoder: str | None = None
    encoder_fingerprint: str | None = None
    encoder_space: str | None = None
    encoder_settings: Any = None  # checked where an encoder is made of them

    languages: list[str] | None = None
    words: str | list[str] | RulesRecord | None = None
    stop_words: str | list[str] | None = None
    extra_stop_words: list[str] | None = None
    ngram_range: Pair | None = None
    min_df: Number | None = None
    n_keywords: Positive | None = None
    weighting: str | dict[str, Any] | None = None

    n_fitted_rows: Count | None = None
    texts: str | None = None


class ResultRecord(Record):
    """Content of ``result.json``."""

    corpus: CorpusRecord
    graph: GraphRecord
    topics: list[TopicRecord]
    decisions: list[DecisionRecord]
    settings: SettingsRecord
    versions: dict[str, str]
    timings: dict[str, Number]
    history: list[EditRecord]
    word_rules: RulesRecord
    n_replicates: Positive | None
    constraints: ConstraintsRecord | None
    peak_memory: Number | None = None


class ResultWordsRecord(Record):
    """Content of ``words.json``."""

    words: list[str]
    terms: list[str]
    stop_words: list[str]
    function_words: list[str]
