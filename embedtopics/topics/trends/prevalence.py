"""What a fitted model of topic shares expects."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from embedtopics._checks import checked_count
from embedtopics.errors import InputError
from embedtopics.evaluation.bootstrap import interval
from embedtopics.results import NOISE, TopicEffects
from embedtopics.topics.trends.design import SECONDS_A_YEAR

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["prevalence"]

Float64Array = npt.NDArray[np.float64]

NO_TOPIC = "(no topic)"


def prevalence(effects: TopicEffects, covariate: str, *, n_points: int = 20) -> pd.DataFrame:
    """Return the expected share of each topic by one covariate, the others held at their means.

    Parameters
    ----------
    effects : TopicEffects
    covariate : str
    n_points : int
        Values at which a date or a number is looked at, from its smallest to its largest.

    Returns
    -------
    DataFrame
        Columns topic (-1 for none), label, value (a level, the reference first; a number; or a
        date), share, low and high. Shares of a linear model may leave 0 to 1.

    Raises
    ------
    InputError
        Where the covariate is not in the model.
    """
    import pandas as pd

    names = [name for name in dict.fromkeys(effects.covariates) if name]
    if covariate not in names:
        raise InputError(
            f"there is no covariate {covariate!r} in the model; "
            f"these are: {', '.join(map(repr, names))}"
        )
    checked_count(n_points, "n_points", 2)
    values, places = _points(effects, covariate, n_points)
    shares = effects.coefficients @ places.T
    low, high = interval(effects.draws @ places.T, effects.confidence)
    labels = [*effects.labels, NO_TOPIC]
    return pd.DataFrame(
        {
            "topic": np.repeat([*range(effects.n_topics), NOISE], len(values)),
            "label": np.repeat(np.array(labels, dtype=object), len(values)),
            "value": pd.concat([pd.Series(values)] * len(labels), ignore_index=True),
            "share": shares.ravel(),
            "low": low.ravel(),
            "high": high.ravel(),
        }
    )


def _points(
    effects: TopicEffects, covariate: str, n_points: int
) -> tuple[npt.NDArray[np.generic], Float64Array]:
    """Return values of a covariate, and the row of the design at each."""
    own = [i for i, name in enumerate(effects.covariates) if name == covariate]
    if covariate in effects.references:
        levels = [effects.references[covariate], *(effects.levels[i] for i in own)]
        places = np.tile(effects.means, (len(levels), 1))
        places[:, own] = 0.0
        places[np.arange(1, len(levels)), own] = 1.0
        return np.array(levels, dtype=object), places
    passed = np.linspace(*effects.ranges[covariate], n_points)
    places = np.tile(effects.means, (n_points, 1))
    places[:, own[0]] = passed
    origin = effects.origins[covariate]
    if effects.units[covariate] == "year":
        moments = np.round((origin + passed * SECONDS_A_YEAR) * 1e6).astype(np.int64)
        return moments.astype("M8[us]"), places
    return origin + passed, places
