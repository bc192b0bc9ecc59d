"""How good a search is, on queries whose relevant documents are known."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from embedtopics.results.encoder_scores import Estimate
from embedtopics.results.inputs import Decision

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["RetrievalComparison", "RetrievalScores"]


@dataclass(frozen=True, eq=False)
class RetrievalScores:
    """Measures of one run over judged queries.

    Parameters
    ----------
    scores : mapping of str to Estimate
        "ndcg@10", "recall@10", "precision@10" (for each k), "map" and "mrr", with intervals over
        queries.
    queries : tuple of hashable
        All queries with judgements, in the order of their names.
    by_query : mapping of str to float64 ndarray of shape (n_queries,)
        Each measure of each query.
    decisions : tuple of Decision
        Queries that were missing, left out or without relevant documents, and how many of the
        best ranked documents nobody judged.
    settings : mapping
        ks, relevant_from, n_resamples, seed, confidence, and "qrels", the SHA-256 of the
        judgements.
    """

    scores: Mapping[str, Estimate]
    queries: tuple[Hashable, ...]
    by_query: Mapping[str, npt.NDArray[np.float64]]
    decisions: tuple[Decision, ...] = ()
    settings: Mapping[str, object] = field(default_factory=dict)

    def to_frame(self) -> pd.DataFrame:
        """Return the measures as a table.

        Returns
        -------
        pandas.DataFrame
            Columns measure, value, low, high and n (queries).
        """
        import pandas as pd

        rows = [(name, e.value, e.low, e.high, e.n) for name, e in self.scores.items()]
        return pd.DataFrame(rows, columns=["measure", "value", "low", "high", "n"])

    def by_query_frame(self) -> pd.DataFrame:
        """Return the measures of each query.

        Returns
        -------
        pandas.DataFrame
            Column query, and one for each measure.
        """
        import pandas as pd

        frame = pd.DataFrame({name: values for name, values in self.by_query.items()})
        frame.insert(0, "query", pd.Series(list(self.queries), dtype=object))
        return frame


@dataclass(frozen=True, eq=False)
class RetrievalComparison:
    """What a second run gains over a first, on the same queries.

    Parameters
    ----------
    first, second : RetrievalScores
    differences : mapping of str to Estimate
        Second minus first, paired by query: above 0 the second is better.
    better, worse, equal : mapping of str to int
        Queries on which the second run is better, worse, or neither (to 1e-9).
    settings : mapping
        n_resamples, seed and confidence of the intervals.
    """

    first: RetrievalScores
    second: RetrievalScores
    differences: Mapping[str, Estimate]
    better: Mapping[str, int]
    worse: Mapping[str, int]
    equal: Mapping[str, int]
    settings: Mapping[str, object] = field(default_factory=dict)

    def to_frame(self) -> pd.DataFrame:
        """Return the comparison as a table.

        Returns
        -------
        pandas.DataFrame
            Columns measure, first, second, difference, low, high, better, worse, equal and n.
        """
        import pandas as pd

        rows = [
            (name, self.first.scores[name].value, self.second.scores[name].value, e.value, e.low,
             e.high, self.better[name], self.worse[name], self.equal[name], e.n)
            for name, e in self.differences.items()
        ]  # fmt: skip
        return pd.DataFrame(
            rows,
            columns=["measure", "first", "second", "difference", "low", "high", "better", "worse",
                     "equal", "n"],
        )  # fmt: skip
