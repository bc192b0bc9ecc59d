"""The frozen values that travel between the rooms.

Rows and documents are told apart everywhere. A *row* is one row of the caller's input, in the
caller's order. A *document* is one distinct usable text: rows with the same text share a
document, and rows without text have none. Documents are ordered by the hash of their content,
so that nothing computed from them depends on the order in which the rows arrived.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from embedtopics.protocols import FloatArray, Int32Array, Int64Array

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from embedtopics.corpus import Corpus

__all__ = [
    "NOISE",
    "Clustering",
    "Decision",
    "DistinctDocuments",
    "Encoding",
    "LanguageShares",
    "NeighborGraph",
    "TermCounts",
    "TokenStream",
    "Topic",
    "TopicResult",
]

NOISE = -1
"""Label of a document, or a row, that belongs to no topic."""


@dataclass(frozen=True)
class Decision:
    """One thing that the pipeline decided, or noticed, on the user's behalf.

    Parameters
    ----------
    stage : str
        Room that decided: "corpus", "encoder", "neighbors", "reduction", "clustering", "terms".
    name : str
        Short stable key, such as "duplicates" or "truncated".
    value : int, float, str, bool or list of str
        The figure or choice, for programs.
    message : str
        The same in one sentence, for people.
    """

    stage: str
    name: str
    value: Any
    message: str


@dataclass(frozen=True, eq=False)
class DistinctDocuments:
    """The distinct usable texts of a corpus, ordered by content hash.

    Parameters
    ----------
    hashes : uint64 ndarray of shape (n_documents, 2)
        128-bit content hashes, ascending.
    first_rows : int64 ndarray of shape (n_documents,)
        The first row that holds each document.
    of_row : int64 ndarray of shape (n_rows,)
        Document of each row; -1 where the row has no text.
    weights : int64 ndarray of shape (n_documents,)
        How many rows hold each document.
    """

    hashes: npt.NDArray[np.uint64]
    first_rows: Int64Array
    of_row: Int64Array
    weights: Int64Array

    def __len__(self) -> int:
        """Return the number of documents."""
        return len(self.first_rows)


@dataclass(frozen=True)
class LanguageShares:
    """Languages found in a sample of texts.

    Parameters
    ----------
    shares : mapping of str to float
        Share of the sampled texts by ISO 639-1 code, largest first.
    n_sampled : int
        Texts that were looked at.
    """

    shares: Mapping[str, float]
    n_sampled: int

    @property
    def main(self) -> str | None:
        """The most frequent language, or None where no text could be judged."""
        return next(iter(self.shares), None)


@dataclass(frozen=True, eq=False)
class Encoding:
    """Embeddings with an account of what the encoder saw.

    Parameters
    ----------
    embeddings : float32 ndarray of shape (n_texts, n_dimensions)
    n_tokens : int32 ndarray of shape (n_texts,)
        Sub-word tokens of each text before truncation, special tokens left out.
    n_seen : int32 ndarray of shape (n_texts,)
        Of these, the tokens that the encoder read.
    n_unknown : int32 ndarray of shape (n_texts,)
        Of the tokens read, those that the vocabulary does not know.
    """

    embeddings: FloatArray
    n_tokens: Int32Array
    n_seen: Int32Array
    n_unknown: Int32Array

    @property
    def truncated_share(self) -> float:
        """Share of the texts that were cut."""
        return float(np.mean(self.n_seen < self.n_tokens)) if len(self.n_tokens) else 0.0

    @property
    def unseen_token_share(self) -> float:
        """Share of all tokens that lay behind a cut."""
        total = int(self.n_tokens.sum())
        return 1.0 - int(self.n_seen.sum()) / total if total else 0.0

    @property
    def unknown_token_share(self) -> float:
        """Share of the tokens read that the vocabulary does not know."""
        total = int(self.n_seen.sum())
        return int(self.n_unknown.sum()) / total if total else 0.0


@dataclass(frozen=True, eq=False)
class NeighborGraph:
    """The k nearest neighbours of every document, nearest first, itself left out.

    Parameters
    ----------
    indices : int32 ndarray of shape (n_documents, k)
    similarities : float32 ndarray of shape (n_documents, k)
        Cosine similarities, descending along each row.
    method : {"exact", "ivf"}
        How the neighbours were searched: all pairs, or an inverted file.
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
class Clustering:
    """Labels of documents, numbered from the largest topic down.

    Parameters
    ----------
    labels : int32 ndarray of shape (n_documents,)
        Topic of each document; noise is -1.
    strengths : float32 ndarray of shape (n_documents,)
        How deep each document lies in its topic, 0 (noise) to 1 (core).
    persistence : float64 ndarray of shape (n_topics,)
        Stability of each topic in the density hierarchy; NaN where the clusterer has none.
    """

    labels: Int32Array
    strengths: FloatArray
    persistence: npt.NDArray[np.float64]


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
    """

    topic_id: int
    label: str
    size: int
    share: float
    keywords: tuple[str, ...]
    weights: tuple[float, ...]
    representatives: tuple[int, ...]
    persistence: float = float("nan")


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
        Unit vectors.
    graph : NeighborGraph
        The one neighbour graph that everything was computed from.
    coordinates : float32 ndarray of shape (n_documents, n_components)
        Space in which the documents were clustered.
    map : float32 ndarray of shape (n_documents, 2)
        Positions on the map.
    clustering : Clustering
        Topic of each document.
    memberships : csr_matrix of float32, shape (n_documents, n_topics)
        Share of each topic in each document; a row sums to at most 1, the rest is no topic's.
    tokens : TokenStream
    term_counts : TermCounts
    topic_terms : csr_matrix of float64, shape (n_topics, n_terms)
        Term weights.
    topics : tuple of Topic
        In the order of their ids, 0 to n_topics - 1, largest first.
    decisions : tuple of Decision
        What was decided without asking.
    settings : mapping
        Parameters of the fit, with "auto" resolved.
    versions : mapping of str to str
        Versions of the packages that made the result.
    timings : mapping of str to float
        Seconds by stage, in order.
    history : tuple of str
        Edits made after the fit, one line each.
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
    history: tuple[str, ...] = ()

    @property
    def n_topics(self) -> int:
        """Number of topics, noise left out."""
        return len(self.topics)

    @property
    def labels(self) -> Int32Array:
        """Topic of each row, shape (n_rows,); -1 for noise and for rows without text."""
        return self.by_row(self.clustering.labels, NOISE)

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
