"""Rows of tables of scores, which `to_frame` of the results returns."""

from dataclasses import dataclass


@dataclass(frozen=True)
class ProbeScore:
    """One score.

    Parameters
    ----------
    what : str
        "probe", "scalar mix" (of all layers), "combination" (of vectors that the caller passed),
        "control", or a baseline: "majority", "word type", "random model", "embedding layer".
    layer : int or None
        None for scores of no single layer.
    metric : str
        "accuracy", "macro F1", "selectivity", "bits per label" or "compression".
    value, low, high : float
        The score and its 95 % interval over sentences; NaN bounds without an interval.
    n : int
        Units behind the score.
    """

    what: str
    layer: int | None
    metric: str
    value: float
    low: float
    high: float
    n: int


@dataclass(frozen=True)
class GeometryScore:
    """One measure of one layer.

    Parameters
    ----------
    measure : str
    layer : int or None
        None for a baseline without a layer.
    value, low, high : float
        The measure, and its 95 % interval.
    n : int
        Words, sentences or uses.
    """

    measure: str
    layer: int | None
    value: float
    low: float
    high: float
    n: int
