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


def score_table(result: Comparison, *, numeric: bool = False) -> pd.DataFrame:
    """Tabulate the scores, an encoder a row.

    Parameters
    ----------
    result : Comparison
    numeric : bool
        Whether to give numbers, in the columns (measure, "value"), (measure, "low") and (measure,
        "high"), instead of strings such as ``"0.781 [0.775, 0.787]"``.

    Returns
    -------
    DataFrame
        Indexed by the names of the encoders; a column a measure, empty where a figure is unknown.

    Notes
    -----
    Compare encoders by accuracies, not by silhouettes: those of sparse vectors, nearly all of
    which are orthogonal, are small even where the labels can be predicted without error.
    """
    import pandas as pd

    by_place = result.scores.set_index(["encoder", "measure"])[["value", "low", "high"]]
    columns: dict[Any, list[Any]] = {}
    for measure in dict.fromkeys(result.scores["measure"]):
        rows = by_place.loc[[(name, measure) for name in result.names]]
        if numeric:
            columns |= {(measure, figure): rows[figure].tolist() for figure in rows}
        else:
            columns[measure] = [spell_figure(*row) for row in rows.to_numpy().tolist()]
    index = pd.Index(result.names, name="encoder")
    frame = pd.DataFrame(columns, index=index)
    if numeric:
        frame.columns = pd.MultiIndex.from_tuples(list(columns), names=["measure", "figure"])
    return frame


def difference_table(result: Comparison, *, against: str = "first") -> pd.DataFrame:
    """Tabulate by how much encoders differ in every measure, with paired intervals.

    Both encoders are measured on the same resampled documents. One is better where this interval
    does not hold 0; whether the intervals of the scores overlap does not decide that.

    Parameters
    ----------
    result : Comparison
    against : str
        The encoder that the others are compared with: "first", "best" (of each measure), or the
        name of one.

    Returns
    -------
    DataFrame
        Columns measure, encoder, against, difference (encoder minus the other), low, high (a 95 %
        bootstrap interval), n (documents). The best was chosen by the same documents, which makes
        differences from it a little too large.

    Raises
    ------
    InputError
        Where there is no encoder `against`.

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
    """Tabulate the overlap of the neighbours of every two encoders, and of their maps.

    Parameters
    ----------
    result : Comparison

    Returns
    -------
    DataFrame
        A row for every two encoders. Columns first, second, jaccard, jaccard_low, jaccard_high,
        jaccard_chance, rank_biased, rank_biased_low, rank_biased_high, rank_biased_chance (means,
        95 % bootstrap intervals, and the expectation for random neighbours), displacement (mean
        distance of the places of a document on both maps, as a share of the root mean squared
        distance of two documents: 0.05 for two maps of the same vectors, 0.85 for unrelated
        vectors) and n (documents that have neighbours with both).
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
    """Tabulate the documents whose neighbours change most from one encoder to another.

    Parameters
    ----------
    result : Comparison
    n_characters : int
        Length at which a text is cut.

    Returns
    -------
    DataFrame
        Columns first, second, row (of the corpus, from 0, the first that holds the text), id,
        group, jaccard, gained, lost (terms, joined by commas) and text.
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


def spell_figure(value: float, low: float, high: float) -> str:
    """Return a figure for people, with its interval where it has one."""
    if np.isnan(value):
        return ""
    if np.isnan(low):
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return f"{value:.3f} [{low:.3f}, {high:.3f}]"


N_TERMS = 5
"""Terms that are named for each side of a move."""

FEWEST_HOLDERS = 2
"""Neighbours that must hold a term for them to share it."""

LEAST_Z = 1.0
"""Standard errors by which a term must be more of the one side than of the other."""


def real_neighbors(graph: NeighborGraph) -> Int32Array:
    """Return the neighbours of a graph, -1 in place of those with a similarity of 0 or below."""
    return np.where(graph.similarities > 0, graph.indices, -1).astype(np.int32)


def compare_neighbors(graphs: Sequence[NeighborGraph]) -> tuple[Overlap, ...]:
    """Compare the neighbours of each document under every two encoders."""
    lists = [real_neighbors(graph) for graph in graphs]
    return tuple(
        Overlap(i, j, jaccard_overlap(lists[i], lists[j]), rank_biased_overlap(lists[i], lists[j]))
        for i, j in combinations(range(len(lists)), 2)
    )


def find_moves(
    graphs: Sequence[NeighborGraph], overlaps: Sequence[Overlap], counts: TermCounts, n_moves: int
) -> tuple[Move, ...]:
    """Find the documents whose neighbours change most, and the terms of the old and the new ones.

    The lowest rank-biased overlap comes first; of equal ones, the documents whose neighbours are
    nearest with the encoder that puts them less near: a text that is far from everything has
    other neighbours with every encoder.
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
            # A prior of as many words as one side has on average: neither it nor they decide alone.
            prior = share * ((len(left) + len(new)) / (2 * n_documents))
            gained, lost = _terms(counts, new, left, prior)
            moves.append(
                Move(document, overlap.first, overlap.second, float(overlap.jaccard[document]),
                     gained, lost)
            )  # fmt: skip
    return tuple(moves)


def _nearness(graph: NeighborGraph) -> npt.NDArray[np.float64]:
    """Return the place of each document's mean similarity among those of all, from 0 to 1."""
    mean = graph.similarities.mean(axis=1, dtype=np.float64)
    return np.asarray(np.searchsorted(np.sort(mean), mean) / max(1, len(mean) - 1))


def _terms(
    counts: TermCounts, gained: list[int], lost: list[int], prior: npt.NDArray[np.float64]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the terms that the neighbours found share, and those that the neighbours left do."""
    new, old = counts.counts[gained], counts.counts[lost]
    sums = [np.asarray(rows.sum(axis=0), dtype=np.float64).ravel() for rows in (new, old)]
    z = log_odds(sums[0], sums[1], prior)
    return _best(counts.terms, z, new), _best(counts.terms, -z, old)


def _best(terms: Sequence[str], z: npt.NDArray[np.float64], rows: Any) -> tuple[str, ...]:
    """Return the terms of the highest z among those that enough rows hold, ties by name."""
    holders = np.bincount(rows.indices, minlength=len(terms))
    shared = np.flatnonzero((holders >= FEWEST_HOLDERS) & (z >= LEAST_Z))
    order = shared[np.argsort(-z[shared], kind="stable")][:N_TERMS]
    return tuple(terms[i] for i in order.tolist())
