"""Verdicts on simulated shares: power, false positives and words.

Each of ten shapes is drawn 1,000 times: 24 periods of 200 texts (or less), a share of 5 % on
average. The likelihood-ratio chi-square test reads the same counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix, hstack
from scipy.special import expit, logit
from scipy.stats import chi2_contingency

from benchmarks.options import Options
from benchmarks.rendering import figure, markdown_table
from embedtopics.topics import changes
from embedtopics.topics.results import CellTerms, TopicTrends
from embedtopics.topics.trends._over_time import fit_shape

__all__ = ["measure", "render", "simulated_trends"]

N_PERIODS, N_TEXTS, FEW_TEXTS, SHARE = 24, 200, 10, 0.05
DRAWS, QUICK_DRAWS, LEVEL = 1_000, 100, 0.05
ACCOUNTS, TEXTS_OF_ACCOUNT, CORRELATION = 40, 5, 0.3
MEMORY, SPREAD = 0.7, 0.4
"""Autocorrelation of neighbouring periods, and standard deviation of the log-odds."""

PLACES = np.linspace(0, 1, N_PERIODS)
SHAPES = {
    "hump": (0.8 * np.exp(-0.5 * ((PLACES - 0.5) / 0.15) ** 2), "peaks"),
    "U": (-1.2 * np.exp(-0.5 * ((PLACES - 0.5) / 0.15) ** 2), "varies"),
    "step": (0.55 * (PLACES > 0.5), "rises"),
    "season": (0.45 * np.sin(np.arange(N_PERIODS) * np.pi / 6), "varies"),
    "burst": (1.1 * (np.arange(N_PERIODS) == 15), "peaks"),
    "linear up": (1.0 * (PLACES - 0.5), "rises"),
    "linear down": (-1.0 * (PLACES - 0.5), "falls"),
}
"""Change of the log-odds in each period, and the right word."""

LARGE = 2.0
"""Factor of the same shapes for the words of clear changes."""


def measure(options: Options) -> dict[str, Any]:
    """Draw every shape, and test it twice."""
    n_draws = QUICK_DRAWS if options.quick else DRAWS
    rng = np.random.default_rng(0)
    rows = []
    for name, (change, word) in SHAPES.items():
        for factor in (1.0, LARGE):
            shares = np.tile(expit(logit(SHARE) + factor * change), (n_draws, 1))
            rows.append(_row(name, factor, word, simulated_trends(shares, N_TEXTS, rng)))
    flat = np.full((n_draws, N_PERIODS), SHARE)
    none = "no trend found"
    rows.append(_row("constant", 0.0, none, simulated_trends(flat, N_TEXTS, rng)))
    rows.append(_row("few texts", 0.0, none, simulated_trends(flat, FEW_TEXTS, rng)))
    rows.append(_row("accounts", 0.0, none, _accounts(n_draws, rng)))
    noise = rng.normal(size=(n_draws, N_PERIODS))
    for period in range(1, N_PERIODS):
        fresh = np.sqrt(1 - MEMORY**2) * noise[:, period]
        noise[:, period] = MEMORY * noise[:, period - 1] + fresh
    memory = simulated_trends(expit(logit(SHARE) + SPREAD * noise), N_TEXTS, rng)
    rows.append(_row("autocorrelated", 1.0, "varies", memory))
    return {"draws": n_draws, "rows": rows}


def simulated_trends(shares: Any, n_texts: int, rng: np.random.Generator) -> TopicTrends:
    """Return one topic for each row of `shares` (n_draws, n_periods), with independent texts."""
    n_draws, n_periods = shares.shape
    counts = rng.binomial(n_texts, shares)
    topic, period = np.nonzero(counts)
    n = counts[topic, period]
    # Any texts of the period: each draw is tested alone.
    text = np.concatenate([rng.choice(n_texts, size, replace=False) for size in n])
    text += np.repeat(period, n) * n_texts
    shape = n_periods * n_texts, n_draws
    units = csr_matrix((np.ones(len(text)), (text, np.repeat(topic, n))), shape=shape)
    return _trends(units, np.ones(shape[0]), np.repeat(np.arange(n_periods), n_texts))


def _accounts(n_draws: int, rng: np.random.Generator) -> TopicTrends:
    """Return constant topics with texts of accounts, of which each has its share."""
    periods = np.repeat(np.arange(N_PERIODS), ACCOUNTS)
    sizes = rng.geometric(1 / TEXTS_OF_ACCOUNT, len(periods))
    strength = (1 - CORRELATION) / CORRELATION
    shares = rng.beta(SHARE * strength, (1 - SHARE) * strength, size=(len(periods), n_draws))
    counts = rng.binomial(sizes[:, None], shares)
    return _trends(csr_matrix(counts.astype(float)), sizes.astype(float), periods)


def _trends(units: csr_matrix, sizes: Any, periods: Any) -> TopicTrends:
    """Return trends with `units` (n_units, n_draws) of some `sizes` in `periods`."""
    rest = sizes - np.asarray(units.sum(axis=1)).ravel()  # no topic: the sum of a unit is its size
    units = csr_matrix(hstack([units, csr_matrix(rest[:, None])]))
    n_periods = int(periods.max()) + 1
    of_period = csr_matrix((np.ones(len(periods)), (periods, np.arange(len(periods)))))
    counts = np.asarray((of_period @ units).todense()).T.astype(np.int64)
    totals = np.bincount(periods, sizes).astype(np.int64)
    starts = np.arange("2000-01", n_periods, dtype="M8[M]").astype("M8[us]")
    nothing = np.zeros((units.shape[1] - 1, n_periods, 0))
    return TopicTrends(
        every="month",
        names=tuple(str(start)[:7] for start in starts),
        starts=starts,
        ends=starts,
        time_zone="as given",
        topic_names=tuple(f"draw {i}" for i in range(units.shape[1] - 1)),
        counts=counts,
        totals=totals,
        n_effective=totals.astype(np.float64),
        shares=counts / totals,
        low=counts / totals,
        high=counts / totals,
        unit_periods=periods,
        unit_counts=units,
        terms=CellTerms((), nothing.astype(np.int32), nothing),
    )


def _row(name: str, factor: float, word: str, trends: TopicTrends) -> dict[str, Any]:
    """Return the power of both tests, and the words of the draws with p <= 0.05."""
    is_significant = (changes(trends)["p"] <= LEVEL).to_numpy()  # not tested: no change is found
    tables = [np.stack([n, trends.totals - n]) for n in trends.counts[:-1]]
    ratio = [
        chi2_contingency(table, lambda_="log-likelihood").pvalue if table[0].any() else 1.0
        for table in tables
    ]
    words: Counter[str] = Counter()
    for counts in trends.counts[:-1][is_significant]:
        share = counts.sum() / trends.totals.sum()
        words[fit_shape(counts / trends.totals, trends.totals / (share * (1 - share))).word] += 1
    n = len(tables)
    return {
        "shape": name,
        "factor": factor,
        "word": word,
        "rejected": float(is_significant.mean()),
        "rejected_by_chi_square": float(np.mean(np.array(ratio) <= LEVEL)),
        "words": {key: count / n for key, count in sorted(words.items())},
        "right": words[word] / sum(words.values()) if factor else None,
    }


def render(result: Mapping[str, Any]) -> str:
    """Return the table, one row for each shape and size."""
    header = ["shape", "right word", "change", "p <= 0.05", "chi-square: p <= 0.05", "right words",
              "rises or falls", "peaks", "varies"]  # fmt: skip
    rows = []
    for row in result["rows"]:
        words = row["words"]
        shares = [words.get("rises", 0) + words.get("falls", 0), words.get("peaks", 0)]
        rows.append([
            row["shape"], row["word"], figure(row["factor"], 0), figure(row["rejected"], 3),
            figure(row["rejected_by_chi_square"], 3), figure(row["right"], 3),
            *(figure(share, 3) for share in [*shares, words.get("varies", 0)]),
        ])  # fmt: skip
    return markdown_table(header, rows)
