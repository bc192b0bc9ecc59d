"""Which topics emerge, fade or burst, by tests that hold their level."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from embedtopics._checks import checked_level
from embedtopics.protocols import Int64Array
from embedtopics.results import TopicTrends
from embedtopics.topics.trends.bursts import Burst, find_bursts, strongest_p
from embedtopics.topics.trends.slopes import fit_slopes

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["changes"]

Float64Array = npt.NDArray[np.float64]

FEWEST_PERIODS = 3
FEWEST_ROWS = 5
"""Of fewer rows, up to 18 % have p <= 0.05 without any change: one row is at some end too often."""
EMERGING, FADING, BURSTING, STEADY, UNTESTED = (
    "emerging", "fading", "bursting", "steady", "not tested",
)  # fmt: skip


def changes(trends: TopicTrends, *, alpha: float = 0.05) -> pd.DataFrame:
    """Tell which topics emerge, fade or burst, and how sure that is.

    Two questions are asked of each topic. Does its share rise or fall from the first period to the
    last? And is there a stretch of periods in which it is more frequent than its share elsewhere
    allows? A topic is *emerging* or *fading* by the first, *bursting* by the second, where q is at
    most `alpha`; if both hold, the description that fits the counts better decides. All others are
    *steady*: no change was found, which is no proof that there is none.

    Parameters
    ----------
    trends : TopicTrends
        Counts and totals are tested, never smoothed shares.
    alpha : float
        Share of the topics with another verdict than steady that may be wrong, on average, as far
        as the tests hold their level; see the notes.

    Returns
    -------
    DataFrame
        A row a topic: topic, label, verdict ("not tested" for topics with fewer than five rows or
        with all of them, and where fewer than three periods have rows); odds_ratio (odds of the
        topic in the last period over those in the first, by the fitted trend) with low and high;
        share_first and share_last (fitted); p and q of the trend; dispersion (1 where counts
        scatter around the trend as rows drawn one by one would); n_bursts, burst_start and
        burst_end (names of the first and last period of the strongest burst), burst_strength
        (Kleinberg's weight, in units of log-likelihood), burst_p and burst_q.

    Raises
    ------
    InputError
        Where `alpha` is not between 0 and 1.

    Notes
    -----
    Each row is an observation: a text that was printed a hundred times in a week counts a hundred
    times, and makes a burst. Look at the texts before you read one as interest in the topic.

    The trend is a logistic regression of the share on time. p is the larger of two: that of the
    likelihood ratio for binomial counts, and that of the F test which divides it by the dispersion
    of the counts (quasi-likelihood; McCullagh and Nelder 1989, "Generalized linear models",
    section 4.5). Dispersion is measured around the best curve that only rises or only falls,
    drawn towards the median of all topics, and grows by (1 + a) / (1 - a) where neighbouring
    periods deviate alike, with a their autocorrelation. In simulations without any change 1 to 6 %
    of the topics have p <= 0.05, with dispersed counts too; 5 to 11 % of topics that are far more
    dispersed than most. Where neighbours correlate with 0.5 it is 10 to 18 %, and with 0.8 20 to
    36 %: a slow wave in few periods looks like a trend, and no test here tells them apart. The
    interval is by profile likelihood at the `confidence` of the trends, and holds the odds ratio 1
    exactly where p > 1 - confidence.

    Bursts are those of Kleinberg (2002, "Bursty and hierarchical structure in streams", section 4;
    s = 2, gamma = 1). burst_p is the probability of so many rows in the strongest one if the share
    were constant, times the number of stretches of periods in which it could have lain; it allows
    for dispersion in the other periods. In simulations without bursts it is 0.05 or less for under
    1 % of the topics with binomial counts, for 2 to 8 % where shares scatter by a third from
    period to period, and for up to 16 % where they scatter by two thirds, which are bursts of a
    kind.

    q values are those of Benjamini and Hochberg (1995) over both tests of all topics together.
    """
    import pandas as pd

    checked_level(alpha, "alpha")
    held = np.flatnonzero(trends.totals > 0)
    counts, totals = trends.counts[:-1, held], trends.totals[held]
    sums = counts.sum(axis=1)
    usable = np.flatnonzero((sums >= FEWEST_ROWS) & (sums < totals.sum()))
    if len(held) < FEWEST_PERIODS:
        usable = usable[:0]
    columns = _blank(trends.n_topics)
    if len(usable):
        _fill(columns, usable, trends, held)
    both = np.concatenate([columns["p"], columns["burst_p"]])
    columns["q"], columns["burst_q"] = np.split(_adjusted(both), 2)
    frame = pd.DataFrame({"topic": np.arange(trends.n_topics), "label": list(trends.labels)})
    frame["verdict"] = _verdicts(columns, alpha)
    order = [
        "odds_ratio", "low", "high", "share_first", "share_last", "p", "q", "dispersion",
        "n_bursts", "burst_start", "burst_end", "burst_strength", "burst_p", "burst_q",
    ]  # fmt: skip
    return frame.assign(**{name: columns[name] for name in order})


def _blank(n_topics: int) -> dict[str, npt.NDArray[Any]]:
    """Return columns of topics that cannot be tested."""
    numbers = [
        "odds_ratio", "low", "high", "share_first", "share_last", "p", "dispersion",
        "burst_strength", "burst_p", "burst_fits_better",
    ]  # fmt: skip
    columns: dict[str, npt.NDArray[Any]] = {name: np.full(n_topics, np.nan) for name in numbers}
    columns["n_bursts"] = np.zeros(n_topics, dtype=np.int64)
    for name in ("burst_start", "burst_end"):
        columns[name] = np.full(n_topics, "", dtype=object)
    return columns


def _fill(
    columns: dict[str, npt.NDArray[Any]],
    usable: Int64Array,
    trends: TopicTrends,
    held: Int64Array,
) -> None:
    """Test topics, and write what was found into the columns."""
    counts, totals = trends.counts[usable][:, held], trends.totals[held]
    places = (held - held[0]) / (held[-1] - held[0]) - 0.5
    slopes = fit_slopes(counts, totals, places, trends.confidence)
    with np.errstate(over="ignore"):
        for name, values in (
            ("odds_ratio", slopes.slope), ("low", slopes.low), ("high", slopes.high),
        ):  # fmt: skip
            columns[name][usable] = np.exp(values)
    columns["share_first"][usable], columns["share_last"][usable] = slopes.first, slopes.last
    columns["p"][usable], columns["dispersion"][usable] = slopes.p, slopes.dispersion
    columns["burst_strength"][usable] = 0.0
    for row, topic in enumerate(usable.tolist()):
        bursts = find_bursts(counts[row], totals)
        columns["burst_p"][topic] = strongest_p(counts[row], totals, bursts)
        columns["n_bursts"][topic] = len(bursts)
        if not bursts:
            continue
        strongest = max(bursts, key=lambda burst: burst.strength)
        columns["burst_start"][topic] = trends.names[held[strongest.first]]
        columns["burst_end"][topic] = trends.names[held[strongest.last]]
        columns["burst_strength"][topic] = strongest.strength
        # Akaike's criterion: a trend has two parameters; bursts have two rates, and two ends each.
        scale = max(1.0, float(slopes.dispersion[row]))
        gap = float(slopes.deviance[row]) - _deviance(counts[row], totals, bursts)
        columns["burst_fits_better"][topic] = gap / scale > 2 * 2 * len(bursts)


def _deviance(counts: Int64Array, totals: Int64Array, bursts: list[Burst]) -> float:
    """Return minus twice the log-likelihood of one share in all bursts and one outside."""
    from scipy.special import xlogy

    inside = np.zeros(len(counts), dtype=bool)
    for burst in bursts:
        inside[burst.first : burst.last + 1] = True
    fit = 0.0
    for part in (inside, ~inside):
        n, total = counts[part].sum(), totals[part].sum()
        share = n / max(total, 1)
        fit += float(xlogy(n, share) + xlogy(total - n, 1 - share))
    return -2.0 * fit


def _adjusted(p: Float64Array) -> Float64Array:
    """Return Benjamini and Hochberg's q values; NaN where there is no p."""
    q = np.full(len(p), np.nan)
    known = np.flatnonzero(~np.isnan(p))
    order = known[np.argsort(-p[known], kind="stable")]
    ranks = np.arange(len(order), 0, -1)
    q[order] = np.minimum.accumulate(np.minimum(p[order] * len(order) / ranks, 1.0))
    return q


def _verdicts(columns: dict[str, npt.NDArray[Any]], alpha: float) -> list[str]:
    words = []
    for p, q, burst_q, ratio, burst_is_better in zip(
        *(columns[name] for name in ("p", "q", "burst_q", "odds_ratio", "burst_fits_better")),
        strict=True,
    ):
        if np.isnan(p):
            words.append(UNTESTED)
        elif burst_q <= alpha and (q > alpha or burst_is_better):
            words.append(BURSTING)
        elif q <= alpha:
            words.append(EMERGING if ratio > 1 else FADING)
        else:
            words.append(STEADY)
    return words
