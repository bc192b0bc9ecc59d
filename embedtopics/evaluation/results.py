"""Results of evaluation: estimates with intervals, scores of runs, agreement, answers."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from embedtopics._utils.display import Displayed
from embedtopics.results import Decision

if TYPE_CHECKING:
    import pandas as pd
    from scipy.sparse import csr_matrix

__all__ = [
    "ClusteringScores",
    "DawidSkene",
    "Estimate",
    "RetrievalSet",
    "RunComparison",
    "RunScores",
]


@dataclass(frozen=True, eq=False, repr=False)
class Estimate(Displayed):
    """A number with its interval.

    Parameters
    ----------
    value : float
    low, high : float
        95 % interval, also valid for few units; NaN without resamples.
    n : int
        Number of examples.
    p : float
        p-value, where the number is tested; else NaN.
    drawn : float64 ndarray of shape (n_resamples,), optional
        The estimate on examples drawn with replacement; NaN if undefined. Estimates from one seed
        are paired.
    n_units : float, optional
        Number of units that are drawn together, such as sentences, or of the smaller class.
    bounds : tuple of float, optional
        Ends of the scale.
    """

    value: float
    low: float = math.nan
    high: float = math.nan
    n: int = 0
    p: float = math.nan
    drawn: npt.NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    n_units: float = math.nan
    bounds: tuple[float, float] | None = None

    def to_frame(self) -> pd.DataFrame:
        """Return one row: value, low, high, n and p."""
        import pandas as pd

        names = ["value", "low", "high", "n", "p"]
        return pd.DataFrame([[getattr(self, name) for name in names]], columns=names)

    def _summary(self) -> str:
        tested = "" if math.isnan(self.p) else f", p={self.p:.3g}"
        return f"{self.value:.4g} [{self.low:.4g}, {self.high:.4g}], n={self.n:,}{tested}"


@dataclass(frozen=True, eq=False, repr=False)
class RetrievalSet(Displayed):
    """Queries and documents with judgements of their relevance.

    Parameters
    ----------
    source : str
        Name of the folder.
    queries, documents : tuple of str
        Texts.
    relevance : csr_matrix of shape (n_queries, n_documents)
        Grades of relevance.
    tie_order : int64 ndarray of shape (n_documents,)
        Order of documents that are equally near.
    """

    source: str
    queries: tuple[str, ...]
    documents: tuple[str, ...]
    relevance: csr_matrix
    tie_order: npt.NDArray[np.int64]

    def to_frame(self) -> pd.DataFrame:
        """Return a row for each judgement: query, document (texts) and grade."""
        import pandas as pd

        judged = self.relevance.tocoo()
        columns = {
            "query": [self.queries[row] for row in judged.row],
            "document": [self.documents[column] for column in judged.col],
            "grade": judged.data,
        }
        return pd.DataFrame(columns)

    def _summary(self) -> str:
        return (
            f"{self.source!r}, {len(self.queries):,} queries, {len(self.documents):,} documents, "
            f"{self.relevance.nnz:,} judgements"
        )


@dataclass(frozen=True, eq=False, repr=False)
class RunScores(Displayed):
    """Measures of one run over judged queries.

    Parameters
    ----------
    scores : mapping of str to Estimate
        Mean of each measure over the queries, with its interval: "ndcg@10", "recall@10",
        "precision@10" (for each k), "map" and "mrr".
    queries : tuple of hashable
        The measured queries, sorted by name.
    by_query : mapping of str to float64 ndarray of shape (n_queries,)
        Each measure of each query.
    settings : mapping
        ks, relevant_from, seed, and "qrels", the SHA-256 of the judgements.
    decisions : tuple of Decision
        Numbers of queries that are missing, left out or without relevant documents, and of
        unjudged documents among those ranked first.
    """

    scores: Mapping[str, Estimate]
    queries: tuple[Hashable, ...]
    by_query: Mapping[str, npt.NDArray[np.float64]]
    settings: Mapping[str, object] = field(default_factory=dict)
    decisions: tuple[Decision, ...] = ()

    def to_frame(self) -> pd.DataFrame:
        """Return columns measure, value, low, high (over queries) and n (queries)."""
        import pandas as pd

        rows = [(name, one.value, one.low, one.high, one.n) for name, one in self.scores.items()]
        return pd.DataFrame(rows, columns=["measure", "value", "low", "high", "n"])

    def _summary(self) -> str:
        means = ", ".join(f"{name}={one.value:.3f}" for name, one in self.scores.items())
        return f"{len(self.queries):,} queries: {means}"


@dataclass(frozen=True, eq=False, repr=False)
class RunComparison(Displayed):
    """The gain of a second run over a first on the same queries.

    Parameters
    ----------
    first, second : RunScores
    rows : DataFrame
        A row for each measure; see `to_frame`.
    """

    first: RunScores
    second: RunScores
    rows: pd.DataFrame

    def to_frame(self) -> pd.DataFrame:
        """Return a row for each measure.

        Returns
        -------
        DataFrame
            Columns measure; first, second (means of both runs); difference, low, high (second less
            first, paired by query: above 0 the second is better); better, worse, equal (queries on
            which the second run is better, worse, or neither, to 1e-9); n (queries).
        """
        return self.rows.copy()

    def _summary(self) -> str:
        measures = zip(self.rows["measure"], self.rows["difference"], strict=True)
        gains = ", ".join(f"{measure}={gain:+.3f}" for measure, gain in measures)
        return f"{len(self.first.queries):,} queries: {gains}"


@dataclass(frozen=True, eq=False, repr=False)
class DawidSkene(Displayed):
    """The classes behind the ratings of several coders, and the errors of each.

    Parameters
    ----------
    classes : tuple
    shares, low, high : float64 ndarray of shape (n_classes,)
        Share of each class among the units, with its 95 % interval.
    posterior : float64 ndarray of shape (n_units, n_classes)
        Probabilities of the classes of each unit.
    confusion : float64 ndarray of shape (n_coders, n_classes, n_classes)
        Probabilities of each coder's ratings, (class, rating), with rows of sum 1.
    """

    classes: tuple[Any, ...]
    shares: npt.NDArray[np.float64]
    low: npt.NDArray[np.float64]
    high: npt.NDArray[np.float64]
    posterior: npt.NDArray[np.float64]
    confusion: npt.NDArray[np.float64]

    def to_frame(self) -> pd.DataFrame:
        """Return columns class, share, low, high and n (units)."""
        import pandas as pd

        columns = {"class": list(self.classes), "share": self.shares}
        columns |= {"low": self.low, "high": self.high, "n": len(self.posterior)}
        return pd.DataFrame(columns)

    def _summary(self) -> str:
        shares = zip(self.classes, self.shares.tolist(), strict=True)
        first = ", ".join(f"{name} {share:.3f}" for name, share in list(shares)[:3])
        return f"{len(self.confusion)} coders, {len(self.posterior):,} units: {first}"


CLUSTERING_MEASURES = ("nmi", "ami", "ari", "homogeneity", "completeness")
COVERED = "_covered"


@dataclass(frozen=True, repr=False)
class ClusteringScores(Displayed):
    """Agreement of predicted labels with true classes.

    Parameters
    ----------
    nmi, ami, ari : float
        Normalized and adjusted mutual information and adjusted Rand index on all documents, with
        noise as one more topic. The normalized mutual information is also the V-measure.
    nmi_covered, ami_covered, ari_covered : float
        The same on the documents in topics; NaN without any. High values are easy to reach at low
        coverage: report both.
    coverage : float
        Share of the documents in topics.
    homogeneity, completeness : float
        1 if every topic holds documents of one class, and if every class lies in one topic.
    homogeneity_covered, completeness_covered : float
    n, n_covered : int
        Numbers of documents, and of documents in topics.
    intervals : mapping of str to (float, float)
        Bootstrap interval of each value above, by its name; empty without resamples.
    """

    nmi: float
    ami: float
    ari: float
    nmi_covered: float
    ami_covered: float
    ari_covered: float
    coverage: float
    homogeneity: float
    completeness: float
    homogeneity_covered: float
    completeness_covered: float
    n: int
    n_covered: int
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def _summary(self) -> str:
        return f"NMI {self.nmi:.3f}, ARI {self.ari:.3f}, coverage {self.coverage:.1%}, n={self.n:,}"

    def to_frame(self) -> pd.DataFrame:
        """Return columns measure, documents ("all" or "covered"), value, low, high and n."""
        import pandas as pd

        names = [
            "coverage",
            *CLUSTERING_MEASURES,
            *(name + COVERED for name in CLUSTERING_MEASURES),
        ]
        rows = []
        for name in names:
            covered = name.endswith(COVERED)
            head = name.removesuffix(COVERED), "covered" if covered else "all", getattr(self, name)
            bounds = self.intervals.get(name, (math.nan, math.nan))
            rows.append((*head, *bounds, self.n_covered if covered else self.n))
        return pd.DataFrame(rows, columns=["measure", "documents", "value", "low", "high", "n"])
