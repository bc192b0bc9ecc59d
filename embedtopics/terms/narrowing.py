"""Terms counted otherwise: from the counts that there are where they hold enough."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from embedtopics.results import TermCounts, TokenStream
from embedtopics.terms.counts import count_terms, document_limits

__all__ = ["TermRules", "recount_terms"]


@dataclass(frozen=True)
class TermRules:
    """What counts as a term; the parameters of `count_terms`.

    Parameters
    ----------
    ngram_range : (int, int)
    min_df : int, float or None
    max_df : int or float
    stop_words, function_words : tuple of str
    """

    ngram_range: tuple[int, int] = (1, 2)
    min_df: int | float | None = None
    max_df: int | float = 1.0
    stop_words: tuple[str, ...] = ()
    function_words: tuple[str, ...] = ()


def recount_terms(
    tokens: TokenStream, counts: TermCounts, before: TermRules, after: TermRules
) -> TermCounts:
    """Count terms by other rules.

    Where the rules allow no term that is not among those counted, columns are dropped; else the
    word ids are counted anew. Both give the very same.

    Parameters
    ----------
    tokens : TokenStream
    counts : TermCounts
        Of `tokens`, by the rules `before`.
    before, after : TermRules

    Returns
    -------
    TermCounts
    """
    if before == after:
        return counts
    left_out = set(counts.stop_words) | set(counts.function_words)
    stops = _among(tokens.words, after.stop_words)
    functions = _among(tokens.words, after.function_words)
    edges = set(stops) | set(functions)
    if not (left_out <= edges and _is_within(before, after, len(tokens))):
        return count_terms(
            tokens,
            ngram_range=after.ngram_range,
            min_df=after.min_df,
            max_df=after.max_df,
            stop_words=after.stop_words,
            function_words=after.function_words,
        )
    kept = np.flatnonzero(_is_allowed(counts, edges - left_out, after, len(tokens)))
    return TermCounts(
        counts=counts.counts if len(kept) == len(counts.terms) else counts.counts[:, kept],
        terms=tuple(counts.terms[column] for column in kept.tolist()),
        lengths=counts.lengths[kept],
        stop_words=stops,
        function_words=tuple(word for word in functions if word not in set(stops)),
    )


def _is_within(before: TermRules, after: TermRules, n_documents: int) -> bool:
    """Tell whether every length and frequency that is allowed now was allowed before."""
    fewest_before, most_before = document_limits(before.min_df, before.max_df, n_documents)
    fewest, most = document_limits(after.min_df, after.max_df, n_documents)
    shortest_before, longest_before = before.ngram_range
    shortest, longest = after.ngram_range
    return (
        fewest >= fewest_before
        and most <= most_before
        and shortest_before <= shortest <= longest <= longest_before
    )


def _is_allowed(
    counts: TermCounts, newly_left_out: set[str], after: TermRules, n_documents: int
) -> npt.NDArray[np.bool_]:
    """Tell for each column whether it is a term still."""
    fewest, most = document_limits(after.min_df, after.max_df, n_documents)
    holders = np.bincount(counts.counts.indices, minlength=len(counts.terms))
    allowed: npt.NDArray[np.bool_] = (holders >= fewest) & (holders <= most)
    allowed &= (counts.lengths >= after.ngram_range[0]) & (counts.lengths <= after.ngram_range[1])
    if newly_left_out:
        allowed &= [
            newly_left_out.isdisjoint((term.split(" ", 1)[0], term.rsplit(" ", 1)[-1]))
            for term in counts.terms
        ]
    return allowed


def _among(words: tuple[str, ...], listed: Iterable[str]) -> tuple[str, ...]:
    """Return those words that are listed, compared without regard to case."""
    wanted = {word.lower() for word in listed}
    return tuple(word for word in words if word.lower() in wanted)
