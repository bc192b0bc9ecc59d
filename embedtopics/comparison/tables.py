"""What a comparison says, as data frames."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from embedtopics.comparison.alignment import displacement
from embedtopics.comparison.scoring import resample
from embedtopics.errors import InputError
from embedtopics.evaluation import chance_overlap, interval, resampled_means
from embedtopics.results import Comparison

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["difference_table", "move_table", "overlap_table", "score_table"]

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
    A silhouette depends on how an encoder spreads its vectors as well as on the labels: those of
    sparse vectors, nearly all of which are at right angles, are small even where the labels can
    be told without error. Accuracies compare encoders, silhouettes describe one.
    """
    import pandas as pd

    scores = result.scores
    measures = list(dict.fromkeys(scores["measure"]))
    by_place = scores.set_index(["encoder", "measure"])
    columns: dict[Any, list[Any]] = {}
    for measure in measures:
        rows = by_place.loc[[(name, measure) for name in result.names]]
        if numeric:
            for figure in ("value", "low", "high"):
                columns[(measure, figure)] = rows[figure].tolist()
        else:
            columns[measure] = [
                spell_figure(*row) for row in rows[["value", "low", "high"]].to_numpy().tolist()
            ]
    index = pd.Index(result.names, name="encoder")
    frame = pd.DataFrame(columns, index=index)
    if numeric:
        frame.columns = pd.MultiIndex.from_tuples(list(columns), names=["measure", "figure"])
    return frame


def difference_table(result: Comparison, *, against: str = "first") -> pd.DataFrame:
    """Tabulate by how much encoders differ in every measure, with paired intervals.

    Both encoders are looked at on the same resampled documents, so that what makes a document
    easy or hard for both falls out: these intervals are what tells whether one encoder is better,
    and not whether the intervals of the scores overlap.

    Parameters
    ----------
    result : Comparison
    against : str
        The encoder that the others are compared with: "first", "best" (of each measure, by its
        score; then the best is compared with none), or the name of one.

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
        raise InputError(
            f'against must be "first", "best" or one of {", ".join(map(repr, names))}; '
            f"got {against!r}"
        )
    n_resamples, seed = result.settings["n_resamples"], result.settings["seed"]
    looked_at = result.scores.groupby("measure")["n"].min()
    rows = []
    for measure, (values, drawn) in resample(
        result.per_document, result.groups, n_resamples, seed
    ).items():
        if np.isnan(values).all():
            continue
        if against in names:
            base = names.index(against)
        else:
            base = 0 if against == "first" else int(np.nanargmax(values))
        low, high = interval(drawn - drawn[:, [base]])
        rows += [
            (measure, name, names[base], values[place] - values[base], low[place], high[place],
             int(looked_at[measure]))
            for place, name in enumerate(names) if place != base
        ]  # fmt: skip
    columns = ["measure", "encoder", "against", "difference", "low", "high", "n"]
    return pd.DataFrame(rows, columns=columns)


def overlap_table(result: Comparison) -> pd.DataFrame:
    """Tabulate how alike the neighbours of every two encoders are, and their maps.

    Parameters
    ----------
    result : Comparison

    Returns
    -------
    DataFrame
        A row for every two encoders. Columns first, second, jaccard, jaccard_low, jaccard_high,
        jaccard_chance, rank_biased, rank_biased_low, rank_biased_high, rank_biased_chance (means,
        95 % bootstrap intervals, and what neighbours drawn at random would give), displacement
        (how far the places of a document on both maps are apart on average, as a share of the root
        mean squared distance of two documents: 0.05 for two maps of the same vectors, 0.85 for
        those of vectors that have nothing to do with each other, as all start from what the
        encoders have in common) and n (documents that have neighbours with both, of which the
        means of the overlaps are).
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
        low, high = interval(resampled_means(figures, n_resamples, seed))
        for place, name in enumerate(chance):
            mean = float(figures[both, place].mean()) if both.any() else float("nan")
            row |= {
                name: mean, f"{name}_low": float(low[place]), f"{name}_high": float(high[place]),
                f"{name}_chance": chance[name],
            }  # fmt: skip
        maps = (result.encoders[place].map for place in (overlap.first, overlap.second))
        row |= {"displacement": float(displacement(*maps).mean()), "n": int(both.sum())}
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
    for first, second in combinations(range(len(result.names)), 2):
        for move in result.moves:
            if (move.first, move.second) != (first, second):
                continue
            row = int(result.documents.first_rows[move.document])
            group = int(result.groups[move.document])
            rows.append(
                (result.names[first], result.names[second], row, corpus.ids[row],
                 result.group_names[group] if group >= 0 else "", move.jaccard,
                 ", ".join(move.gained), ", ".join(move.lost),
                 shorten(corpus.texts[row], n_characters))
            )  # fmt: skip
    columns = ["first", "second", "row", "id", "group", "jaccard", "gained", "lost", "text"]
    return pd.DataFrame(rows, columns=columns)


def shorten(text: str, n_characters: int) -> str:
    """Return a text on one line, cut at a length.

    Examples
    --------
    >>> shorten("a long story about nothing", 12)
    'a long stor…'
    """
    line = " ".join(text.split())
    return line if len(line) <= n_characters else line[: n_characters - 1].rstrip() + "…"


def spell_figure(value: float, low: float, high: float) -> str:
    """Return a figure for people, with its interval where it has one.

    Examples
    --------
    >>> spell_figure(0.78144, 0.775, 0.7871)
    '0.781 [0.775, 0.787]'
    >>> spell_figure(1234.5, float("nan"), float("nan"))
    '1,234'
    """
    if np.isnan(value):
        return ""
    if np.isnan(low):
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return f"{value:.3f} [{low:.3f}, {high:.3f}]"
