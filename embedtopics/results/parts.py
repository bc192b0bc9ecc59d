"""What each stage of a fit leaves behind."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from embedtopics.protocols import FloatArray, Int32Array, Int64Array

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

__all__ = [
    "NOISE",
    "Clustering",
    "Level",
    "NeighborGraph",
    "Reason",
    "SpanningTree",
    "Stability",
    "TermCounts",
    "TokenStream",
    "Topic",
]

NOISE = -1
"""Label of a document, or a row, that belongs to no topic."""


class Reason(IntEnum):
    """Why a document is in no topic."""

    IN_TOPIC = 0
    BETWEEN = 1
    """Its neighbours lead to two topics alike."""
    ISOLATED = 2
    """Its neighbours are far, or lead to no topic."""
    NO_SUBJECT = 3
    """It is in a dense place whose words are those of the whole corpus."""
    NO_TEXT = 4
    """The row has no text."""
    NOT_ASKED_FOR = 5
    """It is led to a topic, but a smaller coverage was asked for."""
    REMOVED = 6
    """Its topic was removed by hand."""
    KEPT_APART = 7
    """Its topics hold documents from which it is to be kept apart."""
    NOT_LABELED = 8
    """The topics are labels that were given, and it was given none."""

    @property
    def text(self) -> str:
        """The reason in words."""
        return (
            "in a topic", "between topics", "isolated", "no subject", "no text",
            "beyond the coverage asked for", "topic removed", "kept apart", "not labelled",
        )[self]  # fmt: skip


@dataclass(frozen=True, eq=False)
class NeighborGraph:
    """The k nearest neighbours of every document, nearest first, itself left out.

    Parameters
    ----------
    indices : int32 ndarray of shape (n_documents, k)
    similarities : float32 ndarray of shape (n_documents, k)
        Cosine similarities, descending along each row.
    method : {"exact", "ivf", "extended"}
        How the neighbours were searched: all pairs, or an inverted file; "extended" where documents
        were added later, which those before do not have among their neighbours.
    recall : float
        Share of the true neighbours found, measured on a sample (1.0 when exact).
    """

    indices: Int32Array
    similarities: FloatArray
    method: str = "exact"
    recall: float = 1.0

    @property
    def k(self) -> int:
        """Number of neighbours of each document."""
        return int(self.indices.shape[1])

    def __len__(self) -> int:
        """Return the number of documents."""
        return int(self.indices.shape[0])


@dataclass(frozen=True, eq=False)
class SpanningTree:
    """Minimum spanning tree of documents under mutual reachability.

    Every density clustering of the documents, whatever its smallest cluster, is a cut of this
    tree, so that it is built once and cut many times.

    Parameters
    ----------
    edges : int64 ndarray of shape (n_documents - 1, 2)
        Documents at both ends, the lower first.
    distances : float64 ndarray of shape (n_documents - 1,)
        Mutual reachability along each edge, ascending; ties by the documents.
    core_distances : float64 ndarray of shape (n_documents,)
    """

    edges: Int64Array
    distances: npt.NDArray[np.float64]
    core_distances: npt.NDArray[np.float64]

    @property
    def n_documents(self) -> int:
        """Number of documents that the tree spans."""
        return len(self.core_distances)


@dataclass(frozen=True, eq=False)
class Clustering:
    """Labels of documents, numbered from the largest topic down.

    Parameters
    ----------
    labels : int32 ndarray of shape (n_documents,)
        Topic of each document; noise is -1.
    strengths : float32 ndarray of shape (n_documents,)
        How deep each document lies in the dense core of its topic, up to 1; 0 outside the cores,
        for noise and for documents that joined a topic by their neighbours.
    persistence : float64 ndarray of shape (n_topics,)
        Stability of each topic in the density hierarchy; NaN where the clusterer has none.
    reasons : int8 ndarray of shape (n_documents,), optional
        Why each document is in no topic, a `Reason`; 0 for those in one. None where a clusterer's
        labels were taken as they came.
    """

    labels: Int32Array
    strengths: FloatArray
    persistence: npt.NDArray[np.float64]
    reasons: npt.NDArray[np.int8] | None = None


@dataclass(frozen=True)
class Level:
    """One resolution at which a result can be read.

    Parameters
    ----------
    min_cluster_size : int
        Fewest texts in the dense core of a topic.
    n_topics : int
    coverage : float
        Share of the texts in the dense cores, before any others join.
    persistence : float
        Mean stability of the topics in the density hierarchy.
    """

    min_cluster_size: int
    n_topics: int
    coverage: float
    persistence: float


@dataclass(frozen=True, eq=False)
class Stability:
    """How far the topics come back when the documents and the layout are drawn anew.

    Parameters
    ----------
    recurrence : float64 ndarray of shape (n_topics,)
        Mean over the replicates of a topic's best Jaccard overlap with a topic there, on the
        documents that the replicate holds. NaN for a topic of which none holds a document.
    low, high : float64 ndarray of shape (n_topics,)
        Interval that holds nine tenths of these overlaps.
    agreement : float32 ndarray of shape (n_documents,)
        Share of the replicates in which a document is in the best match of its topic; for a
        document in no topic, the share in which it is in none. NaN for a document that no
        replicate held.
    adjusted_rand : float64 ndarray of shape (n_pairs,)
        Adjusted Rand index of each pair of replicates, on the documents that both hold and at
        least one of them has in a topic; in none is a class of its own. 0 where neither has any.
    n_replicates : int
    chance : float64 ndarray of shape (n_topics,), optional
        The recurrence that a topic would have if the labels in each replicate were dealt to its
        documents at random: small, but for large topics.
    """

    recurrence: npt.NDArray[np.float64]
    low: npt.NDArray[np.float64]
    high: npt.NDArray[np.float64]
    agreement: FloatArray
    adjusted_rand: npt.NDArray[np.float64]
    n_replicates: int
    chance: npt.NDArray[np.float64] | None = None


@dataclass(frozen=True, eq=False)
class TokenStream:
    """The words of all documents, tokenised once.

    Parameters
    ----------
    ids : int32 ndarray of shape (n_tokens,)
        Word ids of all documents, one document after the other.
    offsets : int64 ndarray of shape (n_documents + 1,)
        Document `i` holds ``ids[offsets[i]:offsets[i + 1]]``.
    words : tuple of str
        The word of each id, sorted.
    """

    ids: Int32Array
    offsets: Int64Array
    words: tuple[str, ...]

    def __len__(self) -> int:
        """Return the number of documents."""
        return len(self.offsets) - 1


@dataclass(frozen=True, eq=False)
class TermCounts:
    """How often each document holds each term.

    Parameters
    ----------
    counts : csr_matrix of int32, shape (n_documents, n_terms)
    terms : tuple of str
        The terms (words, and n-grams with single spaces), in the order of the columns.
    lengths : int8 ndarray of shape (n_terms,)
        Words in each term.
    stop_words : tuple of str
        Words that were left out, by list, sorted.
    function_words : tuple of str
        Words that were left out because this corpus uses them everywhere alike, sorted.
    """

    counts: csr_matrix
    terms: tuple[str, ...]
    lengths: npt.NDArray[np.int8]
    stop_words: tuple[str, ...] = ()
    function_words: tuple[str, ...] = ()


@dataclass(frozen=True)
class Topic:
    """One topic in a table's row.

    Parameters
    ----------
    topic_id : int
    label : str
        Name to show; a few of the keywords unless the user set one.
    size : int
        Rows of the input in the topic.
    share : float
        `size` over the rows that hold text.
    keywords : tuple of str
        The terms that set the topic apart, best first.
    weights : tuple of float
        Class-TF-IDF weight of each keyword.
    representatives : tuple of int
        Row numbers (positions, from 0) of typical documents, best first.
    persistence : float
        Stability of the topic in the density hierarchy; NaN where unknown.
    is_named : bool
        Whether the user gave the label; it then stays when terms are chosen anew.
    is_anchor : bool
        Whether the topic was asked for before the fit, by a name or a description; no automatic
        step merges it with another or names it anew.
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
    is_anchor: bool = False
