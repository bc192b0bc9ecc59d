"""Several encoders on the same texts: neighbours, maps, scores and differences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from embedtopics.corpus.results import DistinctDocuments
from embedtopics.decisions import Decision
from embedtopics.neighbors.results import NeighborGraph
from embedtopics.protocols import FloatArray, Int32Array
from embedtopics.terms.results import TermCounts, TokenStream

if TYPE_CHECKING:
    import pandas as pd

    from embedtopics.corpus._corpus import Corpus


@dataclass(frozen=True, eq=False)
class EncoderView:
    """Neighbours, map and cost of one encoder.

    Parameters
    ----------
    name : str
        Unique in the comparison.
    graph : NeighborGraph
        Nearest neighbours among the documents.
    map : float32 ndarray of shape (n_documents, 2)
        Positions, aligned with the maps of the other encoders.
    dimensions : int
        Length of a vector.
    seconds : float
        Time to encode all documents, learning from them included; NaN where the vectors were
        given. Where an encoder keeps its vectors on disk it is an estimate, which the decisions
        say.
    megabytes : float
        Memory of the vectors.
    settings : mapping
        Name, fingerprint and settings of the encoder.

    Notes
    -----
    A neighbour with a similarity of 0 or below is none: it only fills the list of a document that
    has too little in common with others. A document without neighbours keeps, on the map, the
    place that all encoders together give it.
    """

    name: str
    graph: NeighborGraph
    map: FloatArray
    dimensions: int
    seconds: float
    megabytes: float
    settings: Mapping[str, Any]

    @property
    def has_neighbors(self) -> npt.NDArray[np.bool_]:
        """Whether each document has any neighbour, shape (n_documents,)."""
        return np.asarray((self.graph.similarities > 0).any(axis=1))


@dataclass(frozen=True, eq=False)
class Overlap:
    """Overlap of the neighbours that two encoders give to each document.

    Parameters
    ----------
    first, second : int
        Places of both encoders in the comparison, the first the lower.
    jaccard : float32 ndarray of shape (n_documents,)
        Neighbours in both lists, as a share of those in either; 0 where one list is empty.
    rank_biased : float32 ndarray of shape (n_documents,)
        Rank-biased overlap: agreement at each depth, the nearest neighbours counting most (Webber,
        Moffat and Zobel, 2010, "A similarity measure for indefinite rankings", equation 32).
    """

    first: int
    second: int
    jaccard: FloatArray
    rank_biased: FloatArray


@dataclass(frozen=True)
class Move:
    """A document that is among other neighbours with one encoder than with another.

    Parameters
    ----------
    document : int
    first, second : int
        Places of both encoders in the comparison.
    jaccard : float
        Overlap of its neighbours.
    gained : tuple of str
        Terms that its neighbours under the second encoder share, and those under the first do
        not; the strongest first.
    lost : tuple of str
        The reverse.
    """

    document: int
    first: int
    second: int
    jaccard: float
    gained: tuple[str, ...]
    lost: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Comparison:
    """Several encoders on the same texts: their maps, their scores, and where they differ.

    Parameters
    ----------
    corpus : Corpus
    documents : DistinctDocuments
        All arrays below have one row for each of these, in their order.
    encoders : tuple of EncoderView
    groups : int32 ndarray of shape (n_documents,)
        The label or topic of each document, a place in `group_names`; -1 where there is none.
    group_names : tuple of str
    grouped_by : str
        Where the groups come from, for people: ``'label "section"'`` or ``"topics by tfidf"``.
    scores : pandas.DataFrame
        One row for each encoder and measure, with the columns encoder, measure, value, low, high
        (a 95 % bootstrap interval over documents; NaN where there is none) and n (documents that
        were measured). Measures by labels, where they were given: knn_accuracy, probe_accuracy,
        probe_macro_f1, silhouette; of the maps: trustworthiness, continuity; of the cost:
        documents_per_second, megabytes.
    overlaps : tuple of Overlap
        One for every two encoders.
    moves : tuple of Move
        For every two encoders, the documents whose neighbours differ most.
    decisions : tuple of Decision
    settings : mapping
    versions : mapping of str to str
    timings : mapping of str to float
        Seconds by stage.
    per_document : mapping of str to ndarray of shape (n_encoders, n_documents)
        The value of each document in the measures of `scores`, NaN where it was not measured; and
        "probe_prediction", the group that the probe predicted, -1 where there is none.
    differences : pandas.DataFrame, optional
        By how much the other encoders differ from the first, with paired intervals; see
        `embedtopics.comparison.difference_table`.
    tokens : TokenStream, optional
        Words of the documents.
    term_counts : TermCounts, optional
        How often each word stands in each document, for the search and the words of a selection.
    """

    corpus: Corpus
    documents: DistinctDocuments
    encoders: tuple[EncoderView, ...]
    groups: Int32Array
    group_names: tuple[str, ...]
    grouped_by: str
    scores: pd.DataFrame
    overlaps: tuple[Overlap, ...]
    moves: tuple[Move, ...]
    decisions: tuple[Decision, ...]
    settings: Mapping[str, Any]
    versions: Mapping[str, str]
    timings: Mapping[str, float]
    per_document: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)
    differences: pd.DataFrame | None = None
    tokens: TokenStream | None = None
    term_counts: TermCounts | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the encoders, in their order."""
        return tuple(view.name for view in self.encoders)

    def __repr__(self) -> str:
        """Return the encoders, the texts and the groups."""
        return (
            f"Comparison({', '.join(self.names)}: {len(self.documents):,} texts, "
            f"{len(self.group_names)} groups by {self.grouped_by})"
        )

    def _repr_html_(self) -> str:
        from embedtopics._utils.display import html_table
        from embedtopics.comparison._tables import score_table

        return html_table(score_table(self).T.reset_index(), repr(self), n_rows=20)
