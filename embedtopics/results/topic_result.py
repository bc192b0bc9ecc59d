"""Everything that a fit found, in one value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from embedtopics.protocols import FloatArray, Int32Array
from embedtopics.results.edits import Edit
from embedtopics.results.guide import Guide
from embedtopics.results.inputs import Decision, DistinctDocuments
from embedtopics.results.parts import (
    NOISE,
    Clustering,
    NeighborGraph,
    Reason,
    SpanningTree,
    Stability,
    TermCounts,
    TokenStream,
    Topic,
)

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from embedtopics.corpus import Corpus

__all__ = ["TopicResult"]


@dataclass(frozen=True, eq=False)
class TopicResult:
    """Everything that a fit found, as arrays; every question afterwards is a function of it.

    Parameters
    ----------
    corpus : Corpus
        The input, row by row.
    documents : DistinctDocuments
        Which rows share a text.
    embeddings : float32 ndarray of shape (n_documents, n_dimensions)
        Unit vectors; zeros for a document of which the encoder made nothing.
    graph : NeighborGraph
        The one neighbour graph that everything was computed from.
    coordinates : float32 ndarray of shape (n_documents, n_components)
        Space in which the documents were clustered.
    map : float32 ndarray of shape (n_documents, 2)
        Positions on the map.
    clustering : Clustering
        Topic of each document.
    memberships : csr_matrix of float32, shape (n_documents, n_topics)
        Share of each topic in each document; what a row lacks to 1 is the share of none, see
        `none_shares`.
    tokens : TokenStream
    term_counts : TermCounts
    topic_terms : csr_matrix of float64, shape (n_topics, n_terms)
        Term weights.
    topics : tuple of Topic
        In the order of their ids, 0 to n_topics - 1; largest first, until `extend` adds to them.
    decisions : tuple of Decision
        What was decided without asking.
    settings : mapping
        Parameters of the fit, with "auto" resolved.
    versions : mapping of str to str
        Versions of the packages that made the result.
    timings : mapping of str to float
        Seconds that the fit waited for each stage, in order; words are split, and the map is laid
        out, beside other stages.
    history : tuple of Edit
        What was done after the fit, in order; `embedtopics.topics.replay` does it again on another.
    tree : SpanningTree or None
        The density hierarchy, from which any other resolution is cut; None where the labels came
        from another clusterer.
    peak_memory : float
        Largest resident set of the process by the end of the fit, in bytes; NaN where unknown.
    stability : Stability or None
        How far the topics come back in replicates, where that was measured.
    guide : Guide or None
        What was asked of the topics before the fit.
    added : bool ndarray of shape (n_documents,) or None
        Documents that came after the fit and took a topic from those of the fit, see
        `embedtopics.topics.extend`. They have no say in where further texts belong, so that these
        get the same answer however many were added before. None where there are none.
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
    peak_memory: float = float("nan")
    stability: Stability | None = None
    guide: Guide | None = None
    added: npt.NDArray[np.bool_] | None = None

    @property
    def n_topics(self) -> int:
        """Number of topics, noise left out."""
        return len(self.topics)

    @property
    def labels(self) -> Int32Array:
        """Topic of each row, shape (n_rows,); -1 for noise and for rows without text."""
        return self.by_row(self.clustering.labels, NOISE)

    @property
    def none_shares(self) -> FloatArray:
        """Share of no topic in each document, shape (n_documents,); with its memberships 1."""
        inside = np.asarray(self.memberships.sum(axis=1), dtype=np.float64).ravel()
        return np.clip(1.0 - inside, 0.0, 1.0).astype(np.float32)

    @property
    def reasons(self) -> npt.NDArray[np.int8]:
        """Why each row is in no topic, a `Reason`, shape (n_rows,); 0 for rows in one."""
        reasons = self.clustering.reasons
        if reasons is None:
            is_noise = self.clustering.labels == NOISE
            reasons = np.where(is_noise, Reason.ISOLATED, Reason.IN_TOPIC).astype(np.int8)
        return self.by_row(reasons, Reason.NO_TEXT)

    @property
    def coverage(self) -> float:
        """Share of the rows with text that are in a topic."""
        has_text = self.documents.of_row >= 0
        return float(np.mean(self.labels[has_text] != NOISE)) if has_text.any() else 0.0

    def by_row(self, values: npt.NDArray[Any], missing: float) -> npt.NDArray[Any]:
        """Spread values of documents over the rows.

        Parameters
        ----------
        values : ndarray of shape (n_documents, ...)
        missing : float
            Value of rows without text.

        Returns
        -------
        ndarray of shape (n_rows, ...)
        """
        of_row = self.documents.of_row
        spread = np.full((len(of_row), *values.shape[1:]), missing, dtype=values.dtype)
        spread[of_row >= 0] = values[of_row[of_row >= 0]]
        return spread
