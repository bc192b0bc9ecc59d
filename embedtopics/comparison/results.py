"""Results of a comparison of encoders: neighbours, maps, scores and differences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from embedtopics.corpus.results import DistinctDocuments
from embedtopics.neighbors.results import NeighborGraph
from embedtopics.protocols import FloatArray, Int32Array
from embedtopics.results import Decision
from embedtopics.terms.results import TermCounts, TokenStream

if TYPE_CHECKING:
    import pandas as pd

    from embedtopics.corpus._corpus import Corpus


MEANINGS = {
    "knn_accuracy": "labels predicted from the nearest neighbours",
    "probe_accuracy": "labels predicted by a linear model, on held-out documents",
    "probe_macro_f1": "the same model, all labels weighted equally",
    "silhouette": "separation of the labels; not for comparing encoders",
    "trustworthiness": "neighbours on the map that are neighbours in the embeddings",
    "continuity": "neighbours in the embeddings that are neighbours on the map",
}
"""What the measures of `Comparison.scores` say, for display."""


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
        Time to fit the encoder and encode all documents; NaN for given vectors. With a cache on
        disk it is an estimate, and the decisions say so.
    megabytes : float
        Memory of the vectors.
    settings : mapping
        Name, fingerprint and settings of the encoder.

    Notes
    -----
    Neighbours with a similarity of 0 or below only fill the list of a document that has too little
    in common with others. A document without neighbours keeps the position of the mean map.
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
        """Whether each document has a neighbour, shape (n_documents,)."""
        return np.asarray((self.graph.similarities > 0).any(axis=1))


@dataclass(frozen=True, eq=False)
class Overlap:
    """Overlap of each document's neighbours under two encoders.

    Parameters
    ----------
    first, second : int
        Positions of the encoders in the comparison, in ascending order.
    jaccard : float32 ndarray of shape (n_documents,)
        Jaccard similarity of the two lists of neighbours; 0 if a list is empty.
    rank_biased : float32 ndarray of shape (n_documents,)
        Rank-biased overlap, which weights the nearest neighbours most (Webber, Moffat and Zobel,
        2010, "A similarity measure for indefinite rankings", equation 32).
    """

    first: int
    second: int
    jaccard: FloatArray
    rank_biased: FloatArray


@dataclass(frozen=True)
class Move:
    """A document whose neighbours differ between two encoders.

    Parameters
    ----------
    document : int
    first, second : int
        Positions of the encoders in the comparison.
    jaccard : float
        Overlap of its neighbours.
    gained : tuple of str
        Terms that distinguish its neighbours under the second encoder from those under the first,
        the strongest first.
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
    """Comparison of encoders on the same texts: maps, scores and differences.

    Parameters
    ----------
    corpus : Corpus
    distinct : DistinctDocuments
        Distinct documents. All arrays have one row for each, in this order.
    encoders : tuple of EncoderView
    groups : int32 ndarray of shape (n_documents,)
        Label or topic of each document, as an index into `group_names`; -1 for none.
    group_names : tuple of str
    grouped_by : str
        Source of the groups, for display: ``'label "section"'`` or ``"topics by tfidf"``.
    scores : pandas.DataFrame
        One row per encoder and measure, with the columns encoder, measure, value, low, high (95 %
        bootstrap interval over documents, or NaN) and n (measured documents). Measures by labels,
        if given: knn_accuracy, probe_accuracy,
        probe_macro_f1, silhouette; of the maps: trustworthiness, continuity; of the cost:
        documents_per_second, megabytes.
    overlaps : tuple of Overlap
        One for each pair of encoders.
    moves : tuple of Move
        For each pair of encoders, the documents whose neighbours differ most.
    decisions : tuple of Decision
    settings : mapping
    versions : mapping of str to str
    per_document : mapping of str to ndarray of shape (n_encoders, n_documents)
        Value of each document in the measures of `scores`, or NaN; and "probe_prediction", the
        group that the probe predicted, or -1.
    differences : pandas.DataFrame, optional
        Differences of the other encoders from the first, with paired intervals; see
        `embedtopics.comparison.difference_table`.
    tokens : TokenStream, optional
        Words of the documents.
    term_counts : TermCounts, optional
        Counts of each word in each document.
    """

    corpus: Corpus
    distinct: DistinctDocuments
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
    per_document: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)
    differences: pd.DataFrame | None = None
    tokens: TokenStream | None = None
    term_counts: TermCounts | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the encoders, in order."""
        return tuple(view.name for view in self.encoders)

    def __repr__(self) -> str:
        return (
            f"Comparison({', '.join(self.names)}: {len(self.distinct):,} texts, "
            f"{len(self.group_names)} groups by {self.grouped_by})"
        )

    def _repr_html_(self) -> str:
        from embedtopics._utils.display import html_table

        return html_table(score_table(self).T.reset_index(), repr(self), n_rows=20)


def score_table(result: Comparison) -> pd.DataFrame:
    """Tabulate the scores, one row per encoder.

    Parameters
    ----------
    result : Comparison

    Returns
    -------
    DataFrame
        Strings such as ``"0.781 [0.775, 0.787]"``, indexed by the names of the encoders; one column
        per measure, empty for unknown values. The numbers are in `Comparison.scores`.

    Notes
    -----
    Compare encoders by accuracies, not by silhouettes: sparse vectors are nearly orthogonal and
    have small silhouettes even if the labels can be predicted without error.
    """
    import pandas as pd

    by_place = result.scores.set_index(["encoder", "measure"])[["value", "low", "high"]]
    columns: dict[str, list[str]] = {}
    for measure in dict.fromkeys(result.scores["measure"]):
        rows = by_place.loc[[(name, measure) for name in result.names]]
        columns[measure] = [spell_figure(*row) for row in rows.to_numpy().tolist()]
    return pd.DataFrame(columns, index=pd.Index(result.names, name="encoder"))


def spell_figure(value: float, low: float, high: float) -> str:
    """Format a value for display, with its interval if there is one."""
    if np.isnan(value):
        return ""
    if np.isnan(low):
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return f"{value:.3f} [{low:.3f}, {high:.3f}]"
