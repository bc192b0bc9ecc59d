"""Positions of texts on an axis, which `Scale` returns."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from embedtopics._utils.display import Displayed, excerpt
from embedtopics.corpus._alignment import align_values
from embedtopics.corpus._corpus import Corpus
from embedtopics.errors import InputError
from embedtopics.evaluation._bootstrap import bounded_interval, resampled_means
from embedtopics.evaluation.results import Estimate
from embedtopics.protocols import Float64Array
from embedtopics.results import Decision

if TYPE_CHECKING:
    from embedtopics.inference import Measurement


def intervals(values: Any, draws: Float64Array, df: float) -> tuple[Float64Array, Float64Array]:
    """Return 95 % intervals (n,) of values by their draws (n, n_draws); NaN without draws."""
    from scipy.special import stdtrit

    error = draws.std(axis=1, ddof=1) if draws.shape[1] else np.full(len(values), np.nan)
    reach = error * stdtrit(max(df, 1), 0.975)
    return values - reach, values + reach


@dataclass(frozen=True, eq=False, repr=False)
class Positions(Displayed):
    """Positions of texts on an axis.

    Parameters
    ----------
    corpus : Corpus
    values : float64 ndarray of shape (n_rows,)
        NaN for rows without text.
    draws : float64 ndarray of shape (n_rows, n_draws)
        Positions on axes of resampled seeds or scored texts.
    df : int
        Degrees of freedom of the axis; 0 if it has no draws.
    encoder : str
    decisions : tuple of Decision
    """

    corpus: Corpus
    values: Float64Array
    draws: Float64Array
    df: int
    encoder: str
    decisions: tuple[Decision, ...] = ()

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.values)

    def _summary(self) -> str:
        return f"{len(self):,} texts, {self.encoder}"

    def to_frame(self) -> pd.DataFrame:
        """Return one row per text: id, text, position, low, high and the metadata.

        The interval covers the choice of the seeds alone.
        """
        low, high = intervals(self.values, self.draws, self.df)
        places = pd.DataFrame({"position": self.values, "low": low, "high": high})
        frame = self.corpus.to_frame()
        places.index = frame.index
        rest = frame.columns.difference(["id", "text", *places], sort=False)
        return pd.concat([frame[["id", "text"]], places, frame[rest]], axis=1)

    def ends(self, k: int = 5) -> pd.DataFrame:
        """Return the k different texts at either end, the highest first."""
        frame = self.to_frame().dropna(subset="position").drop_duplicates("text")
        frame = frame.sort_values(["position", "text"], ascending=[False, True])
        both = pd.concat([frame.head(k), frame.tail(max(0, min(k, len(frame) - k)))])
        return both[["position", "id", "text"]].assign(text=[excerpt(one) for one in both["text"]])

    def within(self, labels: Any) -> "Positions":
        """Return differences from the mean of each row's topic; see `Scale.positions`."""
        expected = f"topics of the {len(self):,} rows"
        topics = np.asarray(align_values(labels, self.corpus, "within", expected))
        both = pd.DataFrame(np.column_stack([self.values, self.draws]))
        centered = (both - both.groupby(topics).transform("mean")).to_numpy()
        metadata = self.corpus.metadata.assign(topic=topics)
        corpus = Corpus(list(self.corpus.texts), ids=list(self.corpus.ids), metadata=metadata)
        return replace(self, corpus=corpus, values=centered[:, 0], draws=centered[:, 1:])

    def agreement(self, other: "Positions") -> Estimate:
        """Compare with the positions of the same texts by other seeds or by another encoder.

        Returns
        -------
        Estimate
            Pearson correlation, with a 95 % bootstrap interval over the texts.

        Raises
        ------
        InputError
            If `other` has other texts.
        """
        if list(self.corpus.texts) != list(other.corpus.texts):
            raise InputError("other", "positions of the same texts")

        has_both = ~np.isnan(self.values) & ~np.isnan(other.values)
        x = _standardized(self.values[has_both])
        y = _standardized(other.values[has_both])
        correlation = float((x * y).mean())

        # The correlation in a resample follows from the means of x, y and their products.
        means = resampled_means(np.column_stack([x * y, x, y, x * x, y * y]))
        mean_xy, mean_x, mean_y, mean_xx, mean_yy = means.T
        covariance = mean_xy - mean_x * mean_y
        spread = np.sqrt((mean_xx - mean_x**2) * (mean_yy - mean_y**2))
        drawn = covariance / spread

        n = len(x)
        bounds = (-1.0, 1.0)
        low, high = bounded_interval(correlation, drawn, n, bounds=bounds)
        return Estimate(
            value=correlation,
            low=float(low),
            high=float(high),
            n=n,
            drawn=drawn,
            n_units=n,
            bounds=bounds,
        )

    def measurement(
        self,
        gold: Any = None,
        *,
        sampling: str | None = None,
        probability: Any = None,
        strata: Any = None,
        units: Any = None,
        name: str = "position",
    ) -> "Measurement":
        """Return the positions as a variable for `inference.shares` and `inference.regress`.

        These functions take the positions themselves too: ``et.inference.shares(positions, by)``.

        Parameters
        ----------
        gold : array_like of shape (n_rows,), optional
            Positions that people gave to a random sample, NaN for the other rows. The positions
            then are predictions, whose errors are corrected. Without gold, positions count as the
            truth, and the choice of the seeds adds to the errors.
        sampling, probability, strata : optional
            With `gold`: how its rows were drawn; see `inference.Measurement`. The last two are
            columns, or have a value for each row.
        units : str or sequence, optional
            Units that are independent, such as the column "speaker"; by default the rows.
        name : str
            Name of the variable in formulas.

        Returns
        -------
        Measurement
        """
        from scipy.special import ndtri, stdtrit

        from embedtopics.inference import Measurement

        gold = None if gold is None else align_values(gold, self.corpus, "gold")
        rows = np.flatnonzero(~np.isnan(self.values))
        values = self.values[rows]
        data = self.corpus.metadata.iloc[rows]
        options: dict[str, Any] = {"name": name, "data": data, "kind": "number"}
        for key, value in {"units": units, "strata": strata, "probability": probability}.items():
            if isinstance(value, str):
                options[key] = data[value]
            elif value is not None:
                options[key] = np.asarray(align_values(value, self.corpus, key))[rows]

        # With gold positions, ours are predictions of them.
        if gold is not None:
            return Measurement(np.asarray(gold)[rows], values, sampling=sampling, **options)

        # Without, ours are the truth, up to the choice of the seeds. `regress` takes the draws as
        # normal; few seeds call for Student's t, whose 95 % interval is wider.
        draws = np.full((len(rows), 2), np.nan)
        if self.df > 0:
            draws = self.draws[rows]
        wider = stdtrit(max(self.df, 1), 0.975) / ndtri(0.975)
        draws = values[:, None] + wider * (draws - values[:, None])
        measurement = Measurement(values, values, sampling="random", **options)
        return measurement.with_draws(draws)


def _standardized(values: Float64Array) -> Float64Array:
    """Scale values to a mean of 0 and a standard deviation of 1."""
    return np.asarray((values - values.mean()) / values.std())
