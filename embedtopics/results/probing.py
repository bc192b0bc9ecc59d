"""What probes are asked, and what they found, layer by layer."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from embedtopics.errors import InputError
from embedtopics.results.inputs import Decision

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["LOWER_IS_BETTER", "LayerScores", "ProbeScore", "ProbeTask", "ScalarMix"]

LOWER_IS_BETTER = ("bits per label",)
"""Metrics of which the least is the best."""

Float64Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ProbeTask:
    """Texts with a question on each word, each text, or each pair of words.

    Parameters
    ----------
    name : str
        Such as "upos".
    unit : {"word", "text", "pair"}
        What has a label.
    texts : tuple of str or tuple of tuple of str
        Whole texts, or texts that are split into words.
    labels : tuple of tuple of str
        For each text the label of each word ("word") or its one label ("text"), for each pair its
        one label ("pair"). An empty string is no label: the unit is left out.
    parts : tuple of str
        "train", "dev" or "test" for each text ("pair": for each pair); empty where texts are to be
        dealt out at random.
    pairs : int32 ndarray of shape (n_pairs, 4), optional
        First text, word in it, second text, word in it.
    decisions : tuple of Decision
    """

    name: str
    unit: str
    texts: tuple[str, ...] | tuple[tuple[str, ...], ...]
    labels: tuple[tuple[str, ...], ...]
    parts: tuple[str, ...] = ()
    pairs: npt.NDArray[np.int32] | None = None
    decisions: tuple[Decision, ...] = field(default=())


@dataclass(frozen=True)
class ProbeScore:
    """One figure.

    Parameters
    ----------
    what : str
        "probe", "mlp", "scalar mix" (of all layers), "cumulative mix" (of those up to this one),
        "combination", "control", or a baseline: "majority", "word type", "random model",
        "embedding layer", "linear chain".
    layer : int or None
        None for what is of no single layer.
    metric : str
        "accuracy", "macro F1", "selectivity", "bits per label", "compression", "spearman", "uuas".
    value, low, high : float
        The figure, and its 95 % interval over sentences; NaN bounds where it has none.
    n : int
        Units that it was measured on.
    """

    what: str
    layer: int | None
    metric: str
    value: float
    low: float
    high: float
    n: int


@dataclass(frozen=True, eq=False)
class ScalarMix:
    """How much of each layer a task takes, learnt with it (Peters et al. 2018, equation 1).

    Parameters
    ----------
    layers : tuple of int
    weights : float64 ndarray of shape (n_seeds, n_layers)
        After the softmax: each row sums to 1.
    gain : float64 ndarray of shape (n_seeds,)
    """

    layers: tuple[int, ...]
    weights: Float64Array
    gain: Float64Array


@dataclass(frozen=True, eq=False)
class LayerScores:
    """What a probe could read at each layer, beside its baselines and controls.

    Parameters
    ----------
    task : str
    encoder : str
    labels : tuple of str
        The classes, sorted; empty for a task without classes.
    scores : tuple of ProbeScore
    n_train, n_dev, n_test : int
        Units.
    expected_layer : float
        Where the task is solved on average, by what each further layer adds (Tenney et al. 2019,
        equation 4); NaN where it was not asked for, or no layer adds anything.
    differential : tuple of float
        What each layer above the first adds to a mix of all below it; empty where not asked for.
    mix : ScalarMix or None
    decisions : tuple of Decision
    expected_layer_interval : (float, float)
        The 95 % interval of the expected layer over sentences; NaN where it has none, or where
        what all layers add is not surely above 0.
    chosen_layer : int or None
        That of the least cross-entropy on the dev part; None where layers were not compared there.
    """

    task: str
    encoder: str
    labels: tuple[str, ...]
    scores: tuple[ProbeScore, ...]
    n_train: int
    n_dev: int
    n_test: int
    expected_layer: float = float("nan")
    differential: tuple[float, ...] = ()
    mix: ScalarMix | None = None
    decisions: tuple[Decision, ...] = field(default=())
    expected_layer_interval: tuple[float, float] = (float("nan"), float("nan"))
    chosen_layer: int | None = None

    def of(self, what: str, metric: str) -> tuple[ProbeScore, ...]:
        """Return the figures of one kind, by layer."""
        found = [s for s in self.scores if s.what == what and s.metric == metric]
        return tuple(sorted(found, key=lambda s: -1 if s.layer is None else s.layer))

    def best(self, metric: str = "accuracy", what: str = "probe") -> ProbeScore:
        """Return the best figure of one kind; of equals the lowest layer's.

        The highest, or of `LOWER_IS_BETTER` the least; unknown ones do not count. It was chosen on
        the part that it was measured on, and with it its interval: as an estimate of what the
        layer would do elsewhere it is too good, the more so the more layers there are. `chosen`
        gives a figure that is not.

        Raises
        ------
        InputError
            If nothing of that kind was measured.
        """
        found = [score for score in self._known(metric, what) if not math.isnan(score.value)]
        if not found:
            raise InputError(f"expected a known figure of {what}, {metric}; all are NaN")
        sign = -1 if metric in LOWER_IS_BETTER else 1
        return max(found, key=lambda s: sign * s.value)

    def chosen(self, metric: str = "accuracy", what: str = "probe") -> ProbeScore:
        """Return the figure of the layer that the dev part chooses.

        The test part had no say in it, so that the figure and its interval hold for that layer.

        Raises
        ------
        InputError
            If the dev part chose no layer, or nothing of that kind was measured there.
        """
        if self.chosen_layer is None:
            raise InputError(f"expected layers compared on the dev part; {self.task!r} has none")
        found = [score for score in self._known(metric, what) if score.layer == self.chosen_layer]
        if not found:
            raise InputError(
                f"expected {what}, {metric} of layer {self.chosen_layer}; it is of no single layer"
            )
        return found[0]

    def _known(self, metric: str, what: str) -> tuple[ProbeScore, ...]:
        found = self.of(what, metric)
        if not found:
            kinds = sorted({f"{s.what}, {s.metric}" for s in self.scores})
            raise InputError(f"expected one of {'; '.join(kinds)}; got {what}, {metric}")
        return found

    def to_frame(self) -> pd.DataFrame:
        """Return the figures as a table: task, what, layer, metric, value, low, high and n."""
        import pandas as pd

        rows = [
            (self.task, s.what, s.layer, s.metric, s.value, s.low, s.high, s.n) for s in self.scores
        ]
        columns = ["task", "what", "layer", "metric", "value", "low", "high", "n"]
        return pd.DataFrame(rows, columns=columns).astype({"layer": "Int64"})
