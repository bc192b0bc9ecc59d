"""Keywords that occur together."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from embedtopics._checks import checked_count, checked_share
from embedtopics.evaluation import npmi_of_pairs
from embedtopics.results import TopicResult
from embedtopics.terms import keywords
from embedtopics.terms.stems import repeats, stems_of
from embedtopics.topics.naming.candidates import (
    Keywords,
    candidates_of,
    first_distinct,
)
from embedtopics.topics.recorded import languages_of

__all__ = ["keywords_by_npmi"]


def keywords_by_npmi(
    result: TopicResult,
    *,
    weight: float = 0.5,
    n: int = 10,
    n_candidates: int = 30,
    window: int | None = 10,
    candidates: Any = None,
    keep_repeats: bool = False,
) -> Keywords:
    """Rank the terms that name a topic by how much they occur together, too.

    A candidate's score is

        (1 - weight) * (1 - place / n) + weight * c / max c,

    with its place among the topic's n candidates, from 0, and c the mean of its NPMI with the
    topic's other candidates. Places and not scores, as these are of other kinds on other roads.
    Pairs of which one repeats a word of the other are left out of the mean: they occur together
    of necessity.

    The coherence of such lists, measured on the same documents, must not be compared with that
    of systems which do not do this: they were chosen by that very measure.

    Parameters
    ----------
    result : TopicResult
    weight : float
        From 0 (the order of the candidates) to 1 (NPMI alone).
    n : int
        Keywords of each topic at most.
    n_candidates : int
        Terms of each topic that are looked at, chosen as its keywords are.
    window : int or None
        Words in the sliding window in which terms occur together; None takes whole documents.
    candidates : sequence of sequence of (str, float), optional
        Lists of another road to choose from.
    keep_repeats : bool
        Whether a keyword may share a stem at its ends with a better one.

    Returns
    -------
    list of list of (str, float)
        For each topic its keywords, best first, with these scores; ties in the order of the
        candidates.

    Raises
    ------
    InputError
        Where a parameter is bad.

    References
    ----------
    Aletras and Stevenson (2013), "Evaluating topic coherence using distributional semantics".
    """
    n, weight = checked_count(n, "n"), checked_share(weight, "weight")
    if window is not None:
        window = checked_count(window, "window")
    n_candidates = checked_count(n_candidates, "n_candidates")
    languages = languages_of(result)
    if candidates is None:
        lists = keywords(
            result.topic_terms,
            result.term_counts,
            result.embeddings,
            n=n_candidates,
            languages=languages,
        )
    else:
        lists = candidates_of(result, candidates, n_candidates)
    pairs = npmi_of_pairs(
        [[term for term, _ in row] for row in lists], result.tokens, window=window
    )
    chosen = []
    for row, measured in zip(lists, pairs, strict=True):
        stems = [stems_of(term, languages) for term, _ in row]
        places = 1.0 - np.arange(len(row)) / max(len(row), 1)
        clash = np.array([[repeats(a, b) for b in stems] for a in stems], dtype=bool)
        together = _mean_of_known(np.where(clash.reshape(measured.shape), np.nan, measured))
        highest = together.max(initial=0.0)
        scores = (1 - weight) * places + weight * together / (highest if highest > 0 else 1.0)
        order = np.argsort(-scores, kind="stable").tolist()
        ranked = [(row[i][0], float(scores[i])) for i in order]
        chosen.append(first_distinct(result, ranked, n, keep_repeats))
    return chosen


def _mean_of_known(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the mean of each row over what is no NaN; 0 where all is."""
    known = ~np.isnan(values)
    total = np.where(known, values, 0.0).sum(axis=1)
    mean: npt.NDArray[np.float64] = total / np.maximum(known.sum(axis=1), 1)
    return mean
