"""What a classifier was measured to do, and what share of a corpus each class is."""

from __future__ import annotations

from dataclasses import dataclass

from embedtopics.protocols import Float64Array


@dataclass(frozen=True, eq=False)
class RiskCoverage:
    """The error among predictions for which a classifier is sure enough.

    Parameters
    ----------
    coverage, error, high, thresholds : float64 ndarray of shape (n_points,)
        Share of the texts that are predicted, the share of errors among these, an upper bound of
        it (all bounds hold together in 95 % of the samples of labels), and the confidence from
        which on texts are predicted.
    n : int
        Labelled texts that they come from.
    """

    coverage: Float64Array
    error: Float64Array
    high: Float64Array
    thresholds: Float64Array
    n: int
