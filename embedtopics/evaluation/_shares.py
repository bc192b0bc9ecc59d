"""Intervals of shares that were counted in a sample."""

import numpy as np
import numpy.typing as npt

from embedtopics.protocols import Float64Array


def wilson(
    counts: npt.ArrayLike,
    totals: npt.ArrayLike,
    confidence: float = 0.95,
    *,
    df: npt.ArrayLike = np.inf,
) -> tuple[Float64Array, Float64Array]:
    """Return Wilson's intervals of shares, whose coverage holds for small counts too.

    Source: Brown, Cai and DasGupta (2001), "Interval estimation for a binomial proportion", eq. 4.
    `df` are the degrees of freedom of a variance that was estimated, (...) as the counts.
    """
    from scipy.special import stdtrit

    above, n = np.broadcast_arrays(
        np.asarray(counts, dtype=np.float64), np.asarray(totals, dtype=np.float64)
    )
    share = np.where(n > 0, above / np.where(n > 0, n, 1.0), np.nan)
    n = np.where(n > 0, n, 1.0)
    z2 = np.square(stdtrit(np.asarray(df, dtype=np.float64), 0.5 + confidence / 2))
    middle = (share + z2 / (2 * n)) / (1 + z2 / n)
    spread = np.maximum(share * (1 - share), 0.0) / n + z2 / (4 * n * n)
    half = np.sqrt(z2 * spread) / (1 + z2 / n)
    # Rounding must not put the end of the scale outside of an interval that reaches it.
    low = np.where(share == 0, 0.0, np.maximum(middle - half, 0.0))
    high = np.where(share == 1, 1.0, np.minimum(middle + half, 1.0))
    return np.where(np.isnan(share), np.nan, low), np.where(np.isnan(share), np.nan, high)
