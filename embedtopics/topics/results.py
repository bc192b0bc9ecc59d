"""Results of a fit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from embedtopics._utils.display import Displayed, html_table, spell_count
from embedtopics.clustering.results import NOISE, Clustering, Level, SpanningTree
from embedtopics.corpus.results import DistinctDocuments
from embedtopics.neighbors.results import NeighborGraph
from embedtopics.protocols import FloatArray, Int32Array, Int64Array, TermWeighting
from embedtopics.results import Decision
from embedtopics.terms.results import TermCounts, TokenStream

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from embedtopics.corpus._corpus import Corpus


class Reason(IntEnum):
    """Why a document is in no topic."""

    IN_TOPIC = 0
    BETWEEN = 1
    """Its neighbors lead to two topics equally."""
    ISOLATED = 2
    """Its neighbors are far, or lead to no topic."""
    UNINFORMATIVE = 3
    """It is in a dense cluster with the words of the whole corpus."""
    NO_TEXT = 4
    """The row has no text."""
    BEYOND_COVERAGE = 5
    """It leads to a topic, but the requested coverage is smaller."""
    REMOVED = 6
    """Its topic was removed."""
    NOT_LABELED = 7
    """The topics are given labels, and it has no label."""

    @property
    def text(self) -> str:
        """The reason in words."""
        return (
            "in a topic", "between topics", "isolated", "uninformative", "no text",
            "beyond the requested coverage", "topic removed", "not labelled",
        )[self]  # fmt: skip


@dataclass(frozen=True, eq=False)
class Stability:
    """Recurrence of the topics in random halves of the documents.

    Parameters
    ----------
    recurrence : float64 ndarray of shape (n_topics,)
        Mean over the replicates of a topic's best Jaccard overlap with a topic of the replicate,
        on the documents in the replicate. NaN for a topic without documents in any.
    low, high : float64 ndarray of shape (n_topics,)
        Interval with nine tenths of these overlaps.
    agreement : float32 ndarray of shape (n_documents,)
        Share of the replicates in which a document is in the best match of its topic; for a
        document in no topic, the share in which it is in none. NaN for a document that no
        replicate held.
    adjusted_rand : float64 ndarray of shape (n_pairs,)
        Adjusted Rand index of each pair of replicates, on documents of both that are in a topic of
        at least one; no topic is a class of its own. 0 for a pair without topics.
    n_replicates : int
    chance : float64 ndarray of shape (n_topics,), optional
        Recurrence of randomly permuted labels: small, except for large topics.
    """

    recurrence: npt.NDArray[np.float64]
    low: npt.NDArray[np.float64]
    high: npt.NDArray[np.float64]
    agreement: FloatArray
    adjusted_rand: npt.NDArray[np.float64]
    n_replicates: int
    chance: npt.NDArray[np.float64] | None = None


@dataclass(frozen=True)
class Topic:
    """One topic.

    Parameters
    ----------
    topic_id : int
    label : str
        Displayed name: that of the user, a few keywords, or a phrase that separates the topic's
        texts better, see `score_labels`.
    size : int
        Number of rows in the topic.
    share : float
        `size` over the number of rows with text.
    keywords : tuple of str
        Distinctive terms of the topic, best first.
    weights : tuple of float
        Class-TF-IDF weight of each keyword.
    representatives : tuple of int
        Row numbers (positions, from 0) of representative documents, best first.
    persistence : float
        Stability of the topic in the density hierarchy; NaN if unknown.
    is_named : bool
        Whether the user gave the label; such a label stays when keywords change.
    is_seeded : bool
        Whether the topic was named before the fit; no automatic step merges or renames it.
    label_auc : tuple of float or None
        Area under the ROC curve: how often a text of the topic is nearer to the label than a text
        of sibling topics, with its 95 % interval. None if not measured.
    keywords_auc : float or None
        The same for the first three keywords.
    """

    topic_id: int
    label: str
    size: int
    share: float
    keywords: tuple[str, ...]
    weights: tuple[float, ...]
    representatives: tuple[int, ...]
    persistence: float = float("nan")
    is_named: bool = False
    is_seeded: bool = False
    label_auc: tuple[float, float, float] | None = None
    keywords_auc: float | None = None

    @property
    def is_label_worse(self) -> bool:
        """Whether the label separates the texts worse than the keywords, or hardly at all."""
        if self.label_auc is None or self.keywords_auc is None:
            return False
        return self.label_auc[2] < self.keywords_auc or self.label_auc[0] < LEAST_AUC


@dataclass(frozen=True)
class Theme:
    """A group of topics.

    Parameters
    ----------
    label : str
    size : int
        Number of rows.
    share : float
        `size` over the number of rows with text.
    topics : tuple of int
        Ids, ascending.
    """

    label: str
    size: int
    share: float
    topics: tuple[int, ...]


LEAST_AUC = 0.6
"""AUC below which a label hardly separates the texts of its topic."""


@dataclass(frozen=True)
class TopicMark:
    """Identifies a topic of an edit in another fit, by its keywords and documents.

    Parameters
    ----------
    topic_id : int
        Id in the edited result.
    label : str
    keywords : tuple of str
    documents : tuple of str
        Hexadecimal content hashes of central documents of the topic.
    """

    topic_id: int
    label: str
    keywords: tuple[str, ...]
    documents: tuple[str, ...]


@dataclass(frozen=True)
class Edit:
    """One edit of a result.

    Parameters
    ----------
    name : str
        Name of the function in `embedtopics.topics`, such as "merge"; "note" for a remark that
        `replay` skips.
    parameters : mapping of str
        Its arguments except the result, as JSON holds them.
    message : str
        One sentence on the outcome.
    marks : tuple of TopicMark
        The topics named by the parameters.
    new_ids : tuple of int or None
        New id of each earlier topic, or -1; None if all topics are new.
    """

    name: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    message: str = ""
    marks: tuple[TopicMark, ...] = ()
    new_ids: tuple[int, ...] | None = None


@dataclass(frozen=True, eq=False)
class TopicConstraints:
    """Groups of documents known before the fit, and their effect on the topics.

    The fit, every other cut of the hierarchy and the replicates that measure stability obey the
    same constraints.

    Parameters
    ----------
    groups : int32 ndarray of shape (n_documents,)
        Group of each document; -1 if unknown.
    names : tuple of str
        Name of each group; "" for an unnamed one.
    probabilities : float32 ndarray of shape (n_documents,)
        Probability of each document's group, up to 1; 0 without a group.
    attraction : float
        Weight, 0 to 1, of the edges that tie each document to the nearest others of its group in
        the fuzzy graph.
    separation : float
        How far, 0 to 1, edges between documents of different groups are weakened in that graph.
    is_fixed : bool
        Whether each group is a topic.
    is_complete : bool
        Whether there are no other topics, and no other documents in these topics.
    """

    groups: Int32Array
    names: tuple[str, ...]
    probabilities: FloatArray
    attraction: float = 0.0
    separation: float = 0.0
    is_fixed: bool = False
    is_complete: bool = False

    def of(self, documents: Int64Array) -> TopicConstraints:
        """Return the constraints of some of the documents."""
        groups, probabilities = self.groups[documents], self.probabilities[documents]
        return replace(self, groups=groups, probabilities=probabilities)

    def among(self, positions: Int64Array, n_documents: int) -> TopicConstraints:
        """Return the constraints of more documents, with the present ones at `positions`."""
        groups = np.full(n_documents, -1, dtype=np.int32)
        groups[positions] = self.groups
        probabilities = np.zeros(n_documents, dtype=np.float32)
        probabilities[positions] = self.probabilities
        return replace(self, groups=groups, probabilities=probabilities)


@dataclass(frozen=True, eq=False, repr=False)
class TopicResult:
    """Result of a fit: topics, labels, map, arrays. `embedtopics.topics` has functions for it.

    Parameters
    ----------
    corpus : Corpus
        The input, row by row.
    documents : DistinctDocuments
        Rows of each distinct text.
    embeddings : float32 ndarray of shape (n_documents, n_dimensions)
        Unit vectors; zeros for a document without a vector.
    graph : NeighborGraph
    coordinates : float32 ndarray of shape (n_documents, n_components)
        Coordinates that were clustered.
    map : float32 ndarray of shape (n_documents, 2)
        Positions on the map.
    clustering : Clustering
        Topic of each document.
    memberships : csr_matrix of float32, shape (n_documents, n_topics)
        Share of each topic in each document; the rest to 1 is the share of no topic, see
        `none_shares`.
    tokens : TokenStream
    term_counts : TermCounts
    topic_terms : csr_matrix of float64, shape (n_topics, n_terms)
        Term weights.
    topics : tuple of Topic
        In the order of their ids, 0 to n_topics - 1; largest first, except after `extend`.
    decisions : tuple of Decision
        Defaults, fallbacks and losses of the fit, each in one sentence.
    settings : mapping
        Parameters of the fit, with resolved values for "auto".
    versions : mapping of str to str
        Versions of the packages used.
    timings : mapping of str to float
        Seconds that the fit waited for each stage, in order.
    history : tuple of Edit
        Edits after the fit, in order; `embedtopics.topics.replay` repeats them on another result.
    tree : SpanningTree or None
        The density hierarchy; None with another clusterer.
    stability : Stability or None
        Recurrence of the topics, if measured.
    constraints : TopicConstraints or None
        Constraints of the fit.
    added : bool ndarray of shape (n_documents,) or None
        Documents that `embedtopics.topics.extend` added; they do not count when further texts are
        assigned. None if there are none.
    weighting : TermWeighting or None
        A custom weighting of the terms, which files do not hold.
    """

    corpus: Corpus
    documents: DistinctDocuments
    embeddings: FloatArray
    graph: NeighborGraph
    coordinates: FloatArray
    map: FloatArray
    clustering: Clustering
    memberships: csr_matrix
    tokens: TokenStream
    term_counts: TermCounts
    topic_terms: csr_matrix
    topics: tuple[Topic, ...]
    decisions: tuple[Decision, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    timings: Mapping[str, float] = field(default_factory=dict)
    history: tuple[Edit, ...] = ()
    tree: SpanningTree | None = None
    stability: Stability | None = None
    constraints: TopicConstraints | None = None
    added: npt.NDArray[np.bool_] | None = None
    weighting: TermWeighting | None = None

    def __repr__(self) -> str:
        n_texts = int(self.documents.weights.sum())
        return (
            f"TopicResult({self.n_topics} topics, {n_texts:,} texts, {self.coverage:.0%} covered)"
        )

    def _repr_html_(self) -> str:
        rows = [
            (t.topic_id, t.size, f"{t.share:.1%}", t.label, ", ".join(t.keywords[:8]))
            for t in self.topics
        ]
        frame = pd.DataFrame(rows, columns=["topic", "size", "share", "label", "terms"])
        return html_table(frame, repr(self))

    def summary(self, n_topics: int = 10) -> str:
        """Return the result on a screen of plain text: the largest topics, and what was decided.

        Parameters
        ----------
        n_topics : int
            Number of topics to list; the largest topic of each theme is listed as well.
        """
        lines = [repr(self)]
        for theme in self.themes:
            if len(self.themes) < self.n_topics:
                lines.append(f"     {theme.share:6.1%}  {theme.label} ({len(theme.topics)} topics)")
            for topic in (self.topics[i] for i in theme.topics):
                if topic.topic_id < n_topics or topic.topic_id == theme.topics[0]:
                    terms = ", ".join(w for w in topic.keywords[:8] if w not in topic.label)
                    lines.append(f"{topic.topic_id:4} {topic.share:6.1%}    {topic.label}: {terms}")
        lines += ["", *dict.fromkeys(decision.message for decision in self.decisions)]
        return "\n".join(lines)

    @property
    def n_topics(self) -> int:
        """Number of topics, without noise."""
        return len(self.topics)

    @cached_property
    def themes(self) -> tuple[Theme, ...]:
        """4 to 12 groups of topics, the largest first; fewer than 8 topics are their own themes."""
        from embedtopics.topics.reading._hierarchy import group_topics

        return group_topics(self)

    @property
    def labels(self) -> Int32Array:
        """Topic of each row, shape (n_rows,); -1 for noise and for rows without text."""
        return self.by_row(self.clustering.labels, NOISE)

    @property
    def none_shares(self) -> FloatArray:
        """Share of no topic in each document, (n_documents,): 1 less its memberships."""
        inside = np.asarray(self.memberships.sum(axis=1), dtype=np.float64).ravel()
        return np.clip(1.0 - inside, 0.0, 1.0).astype(np.float32)

    @property
    def reasons(self) -> npt.NDArray[np.int8]:
        """Why each row is in no topic, a `Reason`, shape (n_rows,); 0 for rows in a topic."""
        reasons = self.clustering.reasons
        if reasons is None:
            is_noise = self.clustering.labels == NOISE
            reasons = np.where(is_noise, Reason.ISOLATED, Reason.IN_TOPIC).astype(np.int8)
        return self.by_row(reasons, Reason.NO_TEXT)

    @property
    def coverage(self) -> float:
        """Share of the rows with text in a topic."""
        has_text = self.documents.of_row >= 0
        return float(np.mean(self.labels[has_text] != NOISE)) if has_text.any() else 0.0

    def by_row(self, values: npt.NDArray[Any], missing: float) -> npt.NDArray[Any]:
        """Return values of rows from those of documents; `missing` for rows without text."""
        of_row = self.documents.of_row
        spread = np.full((len(of_row), *values.shape[1:]), missing, dtype=values.dtype)
        spread[of_row >= 0] = values[of_row[of_row >= 0]]
        return spread


@dataclass(frozen=True, eq=False, repr=False)
class TokenMixture(Displayed):
    """The topics of one text, and the contribution of each word.

    Parameters
    ----------
    tokens : tuple of str
        The words, in their order.
    weights : csr_matrix of float32, shape (n_tokens, n_topics)
        Contribution of each word to each topic: what it adds to the similarities of its windows,
        or all of these.
    shares : float32 ndarray of shape (n_topics,)
        Topic mixture of the text; sums to 1, or to 0 if no window is similar to any topic.
    written : tuple of str
        The words as in the text, with punctuation.
    """

    tokens: tuple[str, ...]
    weights: csr_matrix
    shares: FloatArray
    written: tuple[str, ...] = ()

    def _summary(self) -> str:
        return f"{len(self.tokens)} words, {self.weights.shape[1]} topics"

    def to_frame(self) -> pd.DataFrame:
        """Tabulate the words: token, topic (the largest weight; -1 for none) and weight."""
        n_tokens = len(self.tokens)
        topics, weights = np.full(n_tokens, NOISE, dtype=np.int32), np.zeros(n_tokens, np.float32)
        if 0 not in self.weights.shape:
            weights = self.weights.max(axis=1).toarray().ravel()
            best = np.asarray(self.weights.argmax(axis=1)).ravel()
            topics = np.where(weights > 0, best, NOISE).astype(np.int32)
        return pd.DataFrame({"token": list(self.tokens), "topic": topics, "weight": weights})


@dataclass(frozen=True, eq=False, repr=False)
class ResolutionChoice(Displayed):
    """The levels of a result with their scores, and the suggested one.

    Parameters
    ----------
    levels : tuple of Level
        With ascending numbers of topics.
    chosen : int
        Position of the suggested level.
    n_replicates : int
    result : TopicResult
        The result cut at the suggested level.
    """

    levels: tuple[Level, ...]
    chosen: int
    n_replicates: int
    result: TopicResult

    def to_frame(self) -> pd.DataFrame:
        """Return a row for each level.

        Returns
        -------
        pandas.DataFrame
            With the columns n_topics, word_gain, neighbor_share, examples, recurrence and
            suggested.
        """
        columns = ["n_topics", "word_gain", "neighbor_share", "examples", "recurrence"]
        frame = pd.DataFrame([vars(level) for level in self.levels], columns=columns)
        return frame.assign(suggested=frame.index == self.chosen)

    def _summary(self) -> str:
        counts = [level.n_topics for level in self.levels]
        return f"levels of {counts[0]} to {counts[-1]} topics, suggested: {counts[self.chosen]}"


@dataclass(frozen=True, eq=False, repr=False)
class Verification(Displayed):
    """A saved study beside the one that its texts give here.

    Parameters
    ----------
    parts : DataFrame
        A row for each part: part, outcome ("same bits", "within rounding", "differs" or "not
        computed"), numbers of items compared and different, and message.
    versions : mapping of str to (str, str)
        Packages with another version here: that of the study, and the present one.
    result : TopicResult
        The study computed again.
    """

    parts: pd.DataFrame
    versions: Mapping[str, tuple[str, str]]
    result: TopicResult

    @property
    def is_same(self) -> bool:
        """Whether no part differs by more than rounding."""
        return "differs" not in self.parts["outcome"].tolist()

    def to_frame(self) -> pd.DataFrame:
        """Return a copy of `parts`."""
        return self.parts.copy()

    def _summary(self) -> str:
        different = self.parts["part"][self.parts["outcome"] == "differs"]
        return f"different: {', '.join(different)}" if len(different) else "it comes out again"


CHOICES = ("encoder", "n_topics", "seed", "words", "truncation")
"""Columns of the choices of a specification."""


@dataclass(frozen=True, eq=False, repr=False)
class Specifications(Displayed):
    """Answers to one question over all combinations of choices.

    Parameters
    ----------
    choices : DataFrame
        A row for each specification: encoder, n_topics, seed, words, truncation; n_fitted (topics);
        coverage; unmatched (labels of topics that match none of the main study).
    estimates : DataFrame
        A row for each specification and quantity: topic (of the main study; -1 for all texts),
        label, quantity, estimate, low, high (95 % interval), matched (ids of the topics here),
        overlap (Jaccard), agrees (the same conclusion as the main study), and the choices.
    summary : DataFrame
        A row for each quantity: estimate, low, high and conclusion of the main study; median,
        lowest and highest over the specifications; n and n_matched (specifications, and those with
        the topic); same_sign and agreement (shares of all specifications with the sign and the
        conclusion of the main study); by_encoder, by_n_topics ... (share of the variance).
    question : str
    main : TopicResult
    """

    choices: pd.DataFrame
    estimates: pd.DataFrame
    summary: pd.DataFrame
    question: str
    main: TopicResult

    def to_frame(self) -> pd.DataFrame:
        """Return a copy of `estimates`."""
        return self.estimates.copy()

    def _summary(self) -> str:
        varied = [f"{self.choices[one].nunique()} of {one}" for one in self._varied()]
        how = f" ({', '.join(varied)})" if varied else ""
        return f"{self.question}: {len(self.choices)} specifications{how}"

    def _varied(self) -> list[str]:
        return [one for one in CHOICES if self.choices[one].nunique() > 1]

    @property
    def verdict(self) -> tuple[str, ...]:
        """One paragraph for each quantity, in the order of `summary`."""
        return tuple(self._sentences(row) for _, row in self.summary.iterrows())

    def _sentences(self, row: pd.Series) -> str:
        is_function = self.question.split("(")[0].strip() not in ("shares", "effects", "trends")

        def number(value: float) -> str:
            return f"{value if is_function else 100 * value:.3g}"

        about = row["label"] if row["topic"] < 0 else f"topic {row['topic']} ({row['label']})"
        text = f"{about}, {row['quantity']}: {number(row['estimate'])}"
        text += "" if is_function else " points" if row["quantity"] != "share" else " %"
        if not np.isnan(row["low"]):
            text += f" (95 % interval {number(row['low'])} to {number(row['high'])})"
        n, n_matched = row["n"], row["n_matched"]
        text += f" in the main study. Over {n} specifications the median is "
        text += f"{number(row['median'])}, from {number(row['lowest'])} to {number(row['highest'])}"
        if n_matched < n:
            text += f"; {spell_count(n - n_matched, 'has', 'have')} no such topic"
        if row["quantity"] == "share":
            text += f". The interval overlaps that of the main study in {row['agreement']:.0%}"
        else:
            text += f". The sign is the same in {row['same_sign']:.0%}, the conclusion "
            text += f"({row['conclusion']}) in {row['agreement']:.0%}"
        by_choice = {one: row[f"by_{one}"] for one in self._varied()}
        most = max(by_choice, key=lambda one: by_choice[one], default="")
        if by_choice and by_choice[most] > 0:
            text += f"; of the choices, {most} matters most ({by_choice[most]:.0%} of the variance)"
        return f"{text}."
