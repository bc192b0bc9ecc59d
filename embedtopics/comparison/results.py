"""Results of a comparison of encoders: neighbours, maps, scores and differences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from embedtopics._utils.display import Displayed, html_table
from embedtopics.corpus.results import DistinctDocuments
from embedtopics.neighbors.results import NeighborGraph
from embedtopics.protocols import FloatArray, Int32Array
from embedtopics.results import Decision
from embedtopics.terms.results import TermCounts, TokenStream

if TYPE_CHECKING:
    import pandas as pd

    from embedtopics.corpus._corpus import Corpus

__all__ = ["Comparison", "EncoderScores", "EncoderView", "Overlap"]

MEANINGS = {
    "knn_accuracy": "labels predicted from the nearest neighbours",
    "probe_accuracy": "labels predicted by a linear model, on held-out documents",
    "probe_macro_f1": "the same model, all labels weighted equally",
    "silhouette": "separation of the labels; not for comparing encoders",
    "trustworthiness": "neighbours on the map that are neighbours in the embeddings",
    "continuity": "neighbours in the embeddings that are neighbours on the map",
}
"""What the measures of `Comparison.scores` say, for display."""


@dataclass(frozen=True, eq=False, repr=False)
class EncoderView(Displayed):
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

    def to_frame(self) -> pd.DataFrame:
        """Return a row for each document: x and y on the map, and has_neighbors."""
        import pandas as pd

        columns = {"x": self.map[:, 0], "y": self.map[:, 1], "has_neighbors": self.has_neighbors}
        return pd.DataFrame(columns)

    def _summary(self) -> str:
        return f"{self.name!r}, {len(self.map):,} documents, {self.dimensions} dimensions"

    @property
    def has_neighbors(self) -> npt.NDArray[np.bool_]:
        """Whether each document has a neighbour, shape (n_documents,)."""
        return np.asarray((self.graph.similarities > 0).any(axis=1))


@dataclass(frozen=True, eq=False, repr=False)
class Overlap(Displayed):
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

    def to_frame(self) -> pd.DataFrame:
        """Return a row for each document: jaccard and rank_biased."""
        import pandas as pd

        return pd.DataFrame({"jaccard": self.jaccard, "rank_biased": self.rank_biased})

    def _summary(self) -> str:
        mean = float(self.jaccard.mean(dtype=np.float64)) if len(self.jaccard) else float("nan")
        return f"encoders {self.first} and {self.second}, mean Jaccard {mean:.3f}"


DIFFERENCES = ["measure", "encoder", "against", "difference", "low", "high", "n"]
"""Columns of the differences of encoders."""


def _no_gains() -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(columns=DIFFERENCES)


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Displayed):
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
    neighbor_overlaps : tuple of Overlap
        One for each pair of encoders; see `overlaps`.
    moved : pandas.DataFrame
        For each pair of encoders, the documents whose neighbours differ most: document, first and
        second (positions of the encoders), jaccard (overlap of the neighbours), gained and lost
        (tuples of terms, the strongest first); see `moves`.
    decisions : tuple of Decision
    settings : mapping
    versions : mapping of str to str
    per_document : mapping of str to ndarray of shape (n_encoders, n_documents)
        Value of each document in the measures of `scores`, or NaN; and "probe_prediction", the
        group that the probe predicted, or -1.
    gains : pandas.DataFrame
        See `differences`.
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
    neighbor_overlaps: tuple[Overlap, ...]
    moved: pd.DataFrame
    decisions: tuple[Decision, ...]
    settings: Mapping[str, Any]
    versions: Mapping[str, str]
    per_document: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)
    gains: pd.DataFrame = field(default_factory=_no_gains)
    tokens: TokenStream | None = None
    term_counts: TermCounts | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the encoders, in order."""
        return tuple(view.name for view in self.encoders)

    def to_frame(self) -> pd.DataFrame:
        """Return the scores: a row for each encoder and measure.

        Returns
        -------
        DataFrame
            Columns encoder, measure, value, low, high and n; see `scores`.
        """
        return self.scores.copy()

    def summary(self) -> str:
        """Return the scores as a text: a line for each measure, a column for each encoder.

        Notes
        -----
        Compare encoders by accuracies, not by silhouettes: sparse vectors are nearly orthogonal and
        have small silhouettes even if the labels can be predicted without error.
        """
        return f"{self._summary()}\n\n{self._spelled_scores().T.to_string()}"

    def differences(self) -> pd.DataFrame:
        """Return the differences of the encoders from the first, with paired intervals.

        Both encoders are measured on the same resampled documents. An encoder is better if the
        interval of the difference excludes 0. Whether the intervals of the scores overlap does not
        matter.

        Returns
        -------
        DataFrame
            Columns measure, encoder, against (the first), difference (encoder minus the first),
            low, high (95 % bootstrap interval) and n (documents).

        References
        ----------
        Efron and Tibshirani (1993), "An Introduction to the Bootstrap", section 13.3.
        """
        return self.gains.copy()

    def overlaps(self) -> pd.DataFrame:
        """Return the overlap of neighbours and maps for each pair of encoders.

        Returns
        -------
        DataFrame
            Columns first, second, jaccard, jaccard_low, jaccard_high, jaccard_chance, rank_biased,
            rank_biased_low, rank_biased_high, rank_biased_chance (means, 95 % bootstrap intervals,
            and the expectation for random neighbours), displacement (mean distance of a document's
            positions on the two maps, as a share of the root mean squared distance of two
            documents: 0.05 for two maps of the same vectors, 0.85 for unrelated vectors) and n
            (documents with neighbours under both encoders).
        """
        from embedtopics.comparison._tables import overlap_table

        return overlap_table(self)

    def moves(self, n_characters: int = 160) -> pd.DataFrame:
        """Return the documents whose neighbours change most between two encoders.

        Parameters
        ----------
        n_characters : int
            Length to which texts are cut.

        Returns
        -------
        DataFrame
            Columns first, second, row (of the corpus, from 0; the first with this text), id, group,
            jaccard, gained, lost (terms that distinguish the neighbours under one encoder from
            those under the other, separated by commas) and text.
        """
        from embedtopics.comparison._tables import move_table

        return move_table(self, n_characters=n_characters)

    def _spelled_scores(self) -> pd.DataFrame:
        """Return strings such as "0.781 [0.775, 0.787]", (n_encoders, n_measures)."""
        import pandas as pd

        by_place = self.scores.set_index(["encoder", "measure"])[["value", "low", "high"]]
        columns: dict[str, list[str]] = {}
        for measure in dict.fromkeys(self.scores["measure"]):
            rows = by_place.loc[[(name, measure) for name in self.names]]
            columns[measure] = [spell_figure(*row) for row in rows.to_numpy().tolist()]
        return pd.DataFrame(columns, index=pd.Index(self.names, name="encoder"))

    def _summary(self) -> str:
        return (
            f"{', '.join(self.names)}: {len(self.distinct):,} texts, "
            f"{len(self.group_names)} groups by {self.grouped_by}"
        )

    def _repr_html_(self) -> str:
        return html_table(self._spelled_scores().T.reset_index(), repr(self), n_rows=20)


@dataclass(frozen=True, eq=False, repr=False)
class EncoderScores(Displayed):
    """Scores of encoders on examples and texts with known answers.

    Parameters
    ----------
    names : tuple of str
        Names of the encoders.
    scores : pandas.DataFrame
        See `to_frame`.
    gains : pandas.DataFrame
        See `differences`.
    n_texts : mapping of str to int
        Distinct texts that each encoder encoded.
    seconds : mapping of str to float
        Time to encode them.
    settings : mapping
        n_resamples and seed.
    decisions : tuple of Decision
    """

    names: tuple[str, ...]
    scores: pd.DataFrame
    gains: pd.DataFrame
    n_texts: Mapping[str, int]
    seconds: Mapping[str, float]
    settings: Mapping[str, Any] = field(default_factory=dict)
    decisions: tuple[Decision, ...] = ()

    def to_frame(self) -> pd.DataFrame:
        """Return a row for each encoder, set of examples and metric.

        Returns
        -------
        DataFrame
            Columns encoder, task (name of the set, or "corpus"), metric, value, low, high (95 %
            interval) and n (examples).
        """
        return self.scores.copy()

    def differences(self) -> pd.DataFrame:
        """Return the differences of the other encoders from the first, with paired intervals.

        Returns
        -------
        DataFrame
            Columns task, metric, encoder, against (the first), before (value of the first), after
            (of the encoder), difference, low, high, n, verdict ("better", "worse", "no difference
            shown", or "descriptive" for what is neither good nor bad) and note.
        """
        return self.gains.copy()

    @property
    def texts_per_second(self) -> dict[str, float]:
        """Distinct texts encoded per second; NaN if no time was measured."""
        return {
            name: self.n_texts[name] / seconds if seconds > 0 else float("nan")
            for name, seconds in self.seconds.items()
        }

    def _summary(self) -> str:
        n_tasks = self.scores["task"].nunique()
        return f"{', '.join(self.names)}: {len(self.scores)} scores on {n_tasks} sets"

    def _repr_html_(self) -> str:
        return html_table(self.to_frame(), repr(self), n_rows=30)


def spell_figure(value: float, low: float, high: float) -> str:
    """Format a value for display, with its interval if there is one."""
    if np.isnan(value):
        return ""
    if np.isnan(low):
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return f"{value:.3f} [{low:.3f}, {high:.3f}]"
