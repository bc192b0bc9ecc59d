"""Tables of a comparison, and the documents whose neighbours differ most."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from embedtopics._utils.display import excerpt
from embedtopics.comparison._maps import displacement
from embedtopics.comparison._scores import resample
from embedtopics.comparison.results import Comparison, Move, Overlap
from embedtopics.errors import InputError
from embedtopics.evaluation._bootstrap import bounded_interval, interval, resampled_means
from embedtopics.evaluation._maps import chance_overlap, jaccard_overlap, rank_biased_overlap
from embedtopics.neighbors.results import NeighborGraph
from embedtopics.protocols import Int32Array
from embedtopics.terms._weighting import log_odds
from embedtopics.terms.results import TermCounts

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd


N_CHARACTERS = 160


def difference_table(result: Comparison, *, against: str = "first") -> pd.DataFrame:
    """Tabulate the differences of encoders in every measure, with paired intervals.

    Both encoders are measured on the same resampled documents. An encoder is better if the interval
    of the difference excludes 0. Whether the intervals of the scores overlap does not matter.

    Parameters
    ----------
    result : Comparison
    against : str
        Encoder that the others are compared with: "first", "best" (in each measure), or a name.

    Returns
    -------
    DataFrame
        Columns measure, encoder, against, difference (encoder minus the other), low, high (95 %
        bootstrap interval) and n (documents). Differences from the best are slightly too large,
        because the same documents choose the best.

    Raises
    ------
    InputError
        If there is no encoder `against`.

    References
    ----------
    Efron and Tibshirani (1993), "An Introduction to the Bootstrap", section 13.3.
    """
    import pandas as pd

    names = result.names
    if against not in (*names, "first", "best"):
        expected = f"'first', 'best' or one of {', '.join(map(repr, names))}"
        raise InputError("against", expected, against)
    n_resamples, seed = result.settings["n_resamples"], result.settings["seed"]
    looked_at = result.scores.groupby("measure")["n"].min()
    rows = []
    measured = resample(result.per_document, result.groups, n_resamples, seed)
    for measure, (values, drawn) in measured.items():
        if np.isnan(values).all():
            continue
        if against in names:
            base = names.index(against)
        else:
            base = 0 if against == "first" else int(np.nanargmax(values))
        low, high = interval(drawn - drawn[:, [base]], int(looked_at[measure]))
        rows += [
            (measure, name, names[base], values[place] - values[base], low[place], high[place],
             int(looked_at[measure]))
            for place, name in enumerate(names) if place != base
        ]  # fmt: skip
    columns = ["measure", "encoder", "against", "difference", "low", "high", "n"]
    return pd.DataFrame(rows, columns=columns)


def overlap_table(result: Comparison) -> pd.DataFrame:
    """Tabulate the overlap of neighbours and maps for each pair of encoders.

    Parameters
    ----------
    result : Comparison

    Returns
    -------
    DataFrame
        One row per pair of encoders. Columns first, second, jaccard, jaccard_low, jaccard_high,
        jaccard_chance, rank_biased, rank_biased_low, rank_biased_high, rank_biased_chance (means,
        95 % bootstrap intervals, and the expectation for random neighbours), displacement (mean
        distance of a document's positions on the two maps, as a share of the root mean squared
        distance of two documents: 0.05 for two maps of the same vectors, 0.85 for unrelated
        vectors) and n (documents with neighbours under both encoders).
    """
    import pandas as pd

    n_resamples, seed = result.settings["n_resamples"], result.settings["seed"]
    n_documents, k = len(result.documents), result.encoders[0].graph.k
    chance = dict(zip(("jaccard", "rank_biased"), chance_overlap(n_documents, k), strict=True))
    has_neighbors = [view.has_neighbors for view in result.encoders]
    rows = []
    for overlap in result.overlaps:
        both = has_neighbors[overlap.first] & has_neighbors[overlap.second]
        row: dict[str, object] = {
            "first": result.names[overlap.first], "second": result.names[overlap.second]
        }  # fmt: skip
        figures = np.column_stack([overlap.jaccard, overlap.rank_biased]).astype(np.float64)
        figures[~both] = np.nan
        n = int(both.sum())
        means = figures[both].mean(axis=0) if n else np.full(2, np.nan)
        low, high = bounded_interval(means, resampled_means(figures, n_resamples, seed), n)
        for place, name in enumerate(chance):
            row |= {
                name: float(means[place]), f"{name}_low": float(low[place]),
                f"{name}_high": float(high[place]), f"{name}_chance": chance[name],
            }  # fmt: skip
        maps = (result.encoders[place].map for place in (overlap.first, overlap.second))
        row |= {"displacement": float(displacement(*maps).mean()), "n": n}
        rows.append(row)
    return pd.DataFrame(rows)


def move_table(result: Comparison, *, n_characters: int = N_CHARACTERS) -> pd.DataFrame:
    """Tabulate the documents whose neighbours change most between two encoders.

    Parameters
    ----------
    result : Comparison
    n_characters : int
        Length to which texts are cut.

    Returns
    -------
    DataFrame
        Columns first, second, row (of the corpus, from 0; the first with this text), id, group,
        jaccard, gained, lost (terms, separated by commas) and text.
    """
    import pandas as pd

    corpus = result.corpus
    rows = []
    for move in sorted(result.moves, key=lambda move: (move.first, move.second)):
        row = int(result.documents.first_rows[move.document])
        group = int(result.groups[move.document])
        rows.append(
            (result.names[move.first], result.names[move.second], row, corpus.ids[row],
             result.group_names[group] if group >= 0 else "", move.jaccard,
             ", ".join(move.gained), ", ".join(move.lost),
             excerpt(corpus.texts[row], n_characters))
        )  # fmt: skip
    columns = ["first", "second", "row", "id", "group", "jaccard", "gained", "lost", "text"]
    return pd.DataFrame(rows, columns=columns)


N_TERMS = 5
"""Maximum number of terms for each side of a move."""

FEWEST_HOLDERS = 2
"""Minimum number of neighbours that contain a shared term."""

LEAST_Z = 1.0
"""Minimum z-score of a term that distinguishes one side from the other."""


def real_neighbors(graph: NeighborGraph) -> Int32Array:
    """Return the neighbours of a graph, with -1 for similarities of 0 or below."""
    return np.where(graph.similarities > 0, graph.indices, -1).astype(np.int32)


def compare_neighbors(graphs: Sequence[NeighborGraph]) -> tuple[Overlap, ...]:
    """Compare the neighbours of each document for each pair of encoders."""
    lists = [real_neighbors(graph) for graph in graphs]
    return tuple(
        Overlap(i, j, jaccard_overlap(lists[i], lists[j]), rank_biased_overlap(lists[i], lists[j]))
        for i, j in combinations(range(len(lists)), 2)
    )


def find_moves(
    graphs: Sequence[NeighborGraph], overlaps: Sequence[Overlap], counts: TermCounts, n_moves: int
) -> tuple[Move, ...]:
    """Find the documents whose neighbours change most, and the terms that distinguish them.

    Documents are sorted by rank-biased overlap, ascending. Ties go to the documents with the
    nearest neighbours under both encoders: a text that is far from everything has different
    neighbours under every encoder.
    """
    lists = [real_neighbors(graph) for graph in graphs]
    nearness = [_nearness(graph) for graph in graphs]
    share = np.asarray(counts.counts.sum(axis=0), dtype=np.float64).ravel()
    n_documents = max(1, counts.counts.shape[0])
    moves = []
    for overlap in overlaps:
        one, other = lists[overlap.first], lists[overlap.second]
        sure = np.minimum(nearness[overlap.first], nearness[overlap.second])
        order = np.lexsort((-sure, overlap.rank_biased))
        has_both = (one >= 0).any(axis=1) & (other >= 0).any(axis=1)
        changes = has_both & (overlap.jaccard < 1)
        for document in order[changes[order]][:n_moves].tolist():
            before, after = set(one[document].tolist()), set(other[document].tolist())
            left, new = sorted(before - after - {-1}), sorted(after - before - {-1})
            # The prior has as many words as one side on average, so that neither dominates.
            prior = share * ((len(left) + len(new)) / (2 * n_documents))
            gained, lost = _terms(counts, new, left, prior)
            moves.append(
                Move(document, overlap.first, overlap.second, float(overlap.jaccard[document]),
                     gained, lost)
            )  # fmt: skip
    return tuple(moves)


def _nearness(graph: NeighborGraph) -> npt.NDArray[np.float64]:
    """Return the rank of each document's mean similarity, scaled to 0 to 1."""
    mean = graph.similarities.mean(axis=1, dtype=np.float64)
    return np.asarray(np.searchsorted(np.sort(mean), mean) / max(1, len(mean) - 1))


def _terms(
    counts: TermCounts, gained: list[int], lost: list[int], prior: npt.NDArray[np.float64]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the terms that distinguish entering from leaving neighbours, and the reverse."""
    new, old = counts.counts[gained], counts.counts[lost]
    sums = [np.asarray(rows.sum(axis=0), dtype=np.float64).ravel() for rows in (new, old)]
    z = log_odds(sums[0], sums[1], prior)
    return _best(counts.terms, z, new), _best(counts.terms, -z, old)


def _best(terms: Sequence[str], z: npt.NDArray[np.float64], rows: Any) -> tuple[str, ...]:
    """Return the terms with the highest z-scores that enough rows contain; ties by name."""
    holders = np.bincount(rows.indices, minlength=len(terms))
    shared = np.flatnonzero((holders >= FEWEST_HOLDERS) & (z >= LEAST_Z))
    order = shared[np.argsort(-z[shared], kind="stable")][:N_TERMS]
    return tuple(terms[i] for i in order.tolist())
