"""Whether a word is used differently in two groups of texts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, islice
from math import comb
from typing import Any

import numpy as np
import numpy.typing as npt

from embedtopics._checks import checked_count
from embedtopics.corpus.hashing import is_missing
from embedtopics.errors import InputError
from embedtopics.evaluation import interval, resampled_counts
from embedtopics.probing.spaces import Space, blocks, open_space
from embedtopics.probing.words.finding import refuse_texts, rows_of_word, types_of, word_key
from embedtopics.protocols import Int64Array
from embedtopics.results import (
    ChangeMeasure,
    Decision,
    HiddenStates,
    RareWord,
    SemanticChange,
    WordChange,
)

__all__ = ["semantic_change"]

Float64Array = npt.NDArray[np.float64]

MEASURES = ("apd", "excess", "prototype")
AT_ONCE = 256
"""Ways of dealing the texts that are measured together."""

MOST_UNKNOWN = 0.05
"""Share of the draws of texts without a value, from which on there is no interval."""

TIED = 1e-10
"""Differences that rounding alone may make."""


def semantic_change(
    states: HiddenStates,
    words: str | Sequence[str],
    groups: Sequence[Any],
    *,
    layer: int = -1,
    n_permutations: int = 1999,
    n_resamples: int = 1000,
    min_uses: int = 5,
    min_texts: int = 2,
    adjust: str = "none",
    match_case: bool = False,
    seed: int = 0,
) -> SemanticChange:
    """Measure how differently words are used in two periods, or in two groups of texts.

    The average pairwise distance (APD) is the mean cosine distance between a use in one group and
    a use in the other. No pair is compared: the mean cosine of all pairs is the product of the
    mean unit vectors, so that it costs as much as reading the uses once. A word of many senses has
    a large APD in any two groups, and where the groups are of unequal size its test is weak; the
    excess over the mean distance within the groups, over pairs of different texts, is 0 on average
    where nothing changed, and its test is the one to read first. The prototype distance
    is that of the mean vectors; it grows where uses are few, which `by_chance` shows.

    The test deals the texts that hold the word to the groups anew, keeping how many each has:
    uses within one text are not independent, so that permuting them would find change in any
    word. All ways are tried where they are at most `n_permutations`, and p is the share with a
    value as large; else p is (1 + b) / (1 + m), with b of m random ones as large (Phipson and
    Smyth 2010). It is valid if texts are exchangeable: where one author wrote many, join them
    to one.

    Parameters
    ----------
    states : HiddenStates
    words : str or sequence of str
    groups : sequence, one label a text
        Of exactly two kinds; None, NaN, NaT, pandas.NA and "" leave a text out.
    layer : int
    n_permutations, n_resamples : int
        Of the test, and of the intervals over texts within each group. The intervals are "basic"
        ones, which take the bias of a distance out (Efron and Tibshirani 1993, section 13.4): that
        of a prototype distance may lie below its value.
    min_uses, min_texts : int
        In each group; words with fewer are listed in `too_rare`.
    adjust : {"none", "center", "standardize"}
    match_case : bool
    seed : int

    Returns
    -------
    SemanticChange
        With false discovery rates over the words (Benjamini and Hochberg 1995), one measure at a
        time.

    Raises
    ------
    InputError
        If none of the words occurs, or the groups are not two, each with texts.

    References
    ----------
    Kutuzov and Giulianelli (2020), "UiO-UvA at SemEval-2020 Task 1: contextualised embeddings for
    lexical semantic change detection", section 3.
    """
    refuse_texts(states)
    checked_count(n_permutations, "n_permutations")
    checked_count(n_resamples, "n_resamples")
    checked_count(min_uses, "min_uses")
    checked_count(min_texts, "min_texts", 2)
    names, of_text, decisions = _two_groups(states, groups)
    asked = _asked(states, words, match_case)
    space = open_space(states, layer, adjust)
    changes, too_rare = [], []
    for word, rows in asked.items():
        rows = rows[of_text[states.of_text[rows]] >= 0]
        own = of_text[states.of_text[rows]]
        n_uses = int((own == 0).sum()), int((own == 1).sum())
        n_texts = tuple(len(np.unique(states.of_text[rows[own == g]])) for g in (0, 1))
        rare = RareWord(word, n_uses, (n_texts[0], n_texts[1]))
        if min(n_uses) < min_uses or min(n_texts) < min_texts:
            too_rare.append(rare)
            continue
        sums = _text_sums(states, space, rows, of_text)
        measured, exact = _measure(sums, n_permutations, n_resamples, seed)
        changes.append(WordChange(word, n_uses, rare.n_texts, *measured, exact))
    changes = _with_false_discovery_rates(changes)
    changes.sort(key=lambda change: (-change.excess.value, change.word))
    return SemanticChange(
        names, tuple(changes), tuple(sorted(too_rare, key=lambda rare: rare.word)), space.layer,
        states.encoder, adjust, n_permutations, (*states.decisions, *decisions),
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _TextSums:
    """What each text that holds a word adds to the sums; texts of equal content in any order."""

    group: npt.NDArray[np.int64]
    n: Float64Array
    unit: Float64Array
    raw: Float64Array
    squared: Float64Array


def _two_groups(
    states: HiddenStates, groups: Sequence[Any]
) -> tuple[tuple[str, str], npt.NDArray[np.int64], list[Decision]]:
    """Return the names of the groups and the group of each text, -1 for none."""
    if isinstance(groups, (str, bytes)) or not hasattr(groups, "__len__"):
        raise InputError(f"expected one group a text; got {groups!r}")
    labels = [_label(group) for group in groups]
    if len(labels) != len(states.texts):
        raise InputError(
            f"expected one group for each of the {len(states.texts)} texts; got {len(labels)}"
        )
    found = sorted(set(labels) - {""})
    if len(found) != 2:
        shown = ", ".join(map(repr, found[:6])) + (", ..." if len(found) > 6 else "")
        raise InputError(
            f"expected two groups; got {len(found)} ({shown or 'none'}): give None for the texts "
            "of all others"
        )
    left_out = labels.count("")
    decisions = []
    if left_out:
        decisions = [Decision(
            "probing", "texts_without_group", left_out,
            f"{left_out} of {len(labels)} texts have no group and were left out.",
        )]  # fmt: skip
    number = {"": -1, found[0]: 0, found[1]: 1}
    return (found[0], found[1]), np.array([number[label] for label in labels]), decisions


def _label(group: Any) -> str:
    return "" if is_missing(group) else str(group)


def _asked(
    states: HiddenStates, words: str | Sequence[str], match_case: bool
) -> dict[str, Int64Array]:
    """Return the units of each word, in the order asked for; of a list, some may have none."""
    if isinstance(words, str):
        return {word_key(words.strip(), match_case): rows_of_word(states, words, match_case)}
    if not hasattr(words, "__len__") or not len(words):
        raise InputError(f"expected at least one word; got {words!r}")
    for word in words:
        if not isinstance(word, str) or not word.strip():
            raise InputError(f"expected words; got {word!r}")
    names, types = types_of(states, match_case)
    number = dict(zip(names, range(len(names)), strict=True))
    order = np.argsort(types, kind="stable")
    bounds = np.searchsorted(types[order], np.arange(len(names) + 1))
    found = {}
    for word in words:
        key = word_key(word.strip(), match_case)
        place = number.get(key)
        rows = order[bounds[place] : bounds[place + 1]] if place is not None else order[:0]
        found[key] = rows[~states.missing[rows]]
    if not any(len(rows) for rows in found.values()):
        rows_of_word(states, words[0], match_case)
    return found


def _text_sums(
    states: HiddenStates, space: Space, rows: Int64Array, of_text: npt.NDArray[np.int64]
) -> _TextSums:
    """Add up the uses in each text, in an order of the texts that is that of their contents."""
    texts, counts = np.unique(states.of_text[rows], return_counts=True)
    width = space.vectors.shape[1]
    unit, raw = np.zeros((len(texts), width)), np.zeros((len(texts), width))
    which = np.repeat(np.arange(len(texts)), counts)
    for part in blocks(len(rows)):
        held, starts = np.unique(which[part], return_index=True)
        unit[held] += np.add.reduceat(space.unit(rows[part]), starts, axis=0)
        raw[held] += np.add.reduceat(space.raw(rows[part]), starts, axis=0)
    order = sorted(
        range(len(texts)), key=lambda i: (states.texts[texts[i]], int(of_text[texts[i]]))
    )
    return _TextSums(
        of_text[texts[order]], counts[order].astype(np.float64), unit[order], raw[order],
        np.einsum("ij,ij->i", unit[order], unit[order]),
    )  # fmt: skip


def _measure(
    sums: _TextSums, n_permutations: int, n_resamples: int, seed: int
) -> tuple[tuple[ChangeMeasure, ChangeMeasure, ChangeMeasure], bool]:
    """Return the measures of one word, in the order of `MEASURES`, with q still to come."""
    from threadpoolctl import threadpool_limits

    first = (sums.group == 0).astype(np.float64)
    exact = comb(len(first), int(first.sum())) <= n_permutations
    # On one thread: the order in which BLAS sums depends on how many it has.
    with threadpool_limits(limits=1, user_api="blas"):
        whole = _side(sums, np.ones((1, len(first))), slice(None))
        one = _side(sums, first[None], slice(None))
        value = _values(one, one.rest_of(whole))[:, 0]
        dealt = []
        for deal in _deals(first, exact, n_permutations, seed):
            one = _side(sums, deal, slice(None))
            dealt.append(_values(one, one.rest_of(whole)))
        drawn = np.concatenate(
            [_values(*sides) for sides in _resamples(sums, n_resamples, seed)], axis=1
        )
    by_deal = np.concatenate(dealt, axis=1)
    low, high = interval(drawn.T)
    # Draws of one text alone have no pairs within the group; those left show too little.
    low, high = np.where(np.isnan(drawn).mean(axis=1) > MOST_UNKNOWN, np.nan, [low, high])
    as_large = (by_deal >= value[:, None] - TIED).sum(axis=1)
    p = as_large / by_deal.shape[1] if exact else (1 + as_large) / (1 + by_deal.shape[1])
    least = (0.0, -np.inf, 0.0)
    found = [
        ChangeMeasure(
            float(value[i]), float(np.maximum(2 * value[i] - high[i], least[i])),
            float(np.maximum(2 * value[i] - low[i], least[i])), float(by_deal[i].mean()),
            float(p[i]), float("nan"),
        )
        for i in range(len(MEASURES))
    ]  # fmt: skip
    return (found[0], found[1], found[2]), exact


@dataclass(frozen=True, eq=False)
class _Side:
    """Sums over the texts of one group, for some ways of counting them in.

    Parameters
    ----------
    n : float64 ndarray of shape (n_ways,)
        Uses.
    unit, raw : float64 ndarray of shape (n_ways, width)
    alike, together : float64 ndarray of shape (n_ways,)
        Over texts, the squares of the numbers of uses and of the sums of unit vectors: what the
        pairs of uses within one text add.
    """

    n: Float64Array
    unit: Float64Array
    raw: Float64Array
    alike: Float64Array
    together: Float64Array

    def rest_of(self, whole: _Side) -> _Side:
        """Return what is left of all texts, where each counts once."""
        return _Side(
            whole.n - self.n, whole.unit - self.unit, whole.raw - self.raw,
            whole.alike - self.alike, whole.together - self.together,
        )  # fmt: skip

    def within(self) -> Float64Array:
        """Return the mean distance of two uses in different texts; NaN where there are none."""
        # A text drawn twice makes no pair of different texts with itself.
        pairs = self.n**2 - self.alike
        mean = np.full(len(pairs), np.nan)
        cosines = np.einsum("ij,ij->i", self.unit, self.unit) - self.together
        np.divide(cosines, pairs, out=mean, where=pairs > 0.5)
        return 1 - mean


def _side(sums: _TextSums, times: Float64Array, members: Int64Array | slice) -> _Side:
    """Add up some texts, each so many times; `times` has shape (n_ways, n_members)."""
    n, squares = sums.n[members], times**2
    return _Side(
        times @ n, times @ sums.unit[members], times @ sums.raw[members], squares @ n**2,
        squares @ sums.squared[members],
    )  # fmt: skip


def _values(first: _Side, second: _Side) -> Float64Array:
    """Return all measures, of shape (3, n_ways)."""
    apd = 1 - np.einsum("ij,ij->i", first.unit, second.unit) / (first.n * second.n)
    lengths = [np.sqrt(np.einsum("ij,ij->i", one.raw, one.raw)) for one in (first, second)]
    product = lengths[0] * lengths[1]
    cosine = np.zeros(len(product))
    np.divide(
        np.einsum("ij,ij->i", first.raw, second.raw), product, out=cosine, where=product > 0
    )  # fmt: skip
    return np.array([apd, apd - (first.within() + second.within()) / 2, 1 - cosine])


def _deals(
    first: Float64Array, exact: bool, n_permutations: int, seed: int
) -> Iterator[Float64Array]:
    """Deal the texts to the groups anew, some ways at a time; 1 for the first group."""
    n, size = len(first), int(first.sum())
    if exact:
        every = combinations(range(n), size)
        while chosen := list(islice(every, AT_ONCE)):
            dealt = np.zeros((len(chosen), n))
            np.put_along_axis(dealt, np.array(chosen), 1.0, axis=1)
            yield dealt
        return
    rng = np.random.default_rng([seed, 1])
    for part in blocks(n_permutations, AT_ONCE):
        yield rng.permuted(np.tile(first, (part.stop - part.start, 1)), axis=1)


def _resamples(sums: _TextSums, n_resamples: int, seed: int) -> Iterator[tuple[_Side, _Side]]:
    """Draw the texts of each group with replacement, some resamples at a time."""
    members = [np.flatnonzero(sums.group == g) for g in (0, 1)]
    draws = [resampled_counts(len(m), n_resamples, seed + g) for g, m in enumerate(members)]
    for first, second in zip(*draws, strict=True):
        yield _side(sums, first, members[0]), _side(sums, second, members[1])


def _with_false_discovery_rates(changes: list[WordChange]) -> list[WordChange]:
    """Return the words with the false discovery rate of each measure over all of them."""
    if not changes:
        return []
    from scipy.stats import false_discovery_control

    rates = {
        name: false_discovery_control([getattr(change, name).p for change in changes])
        for name in MEASURES
    }
    return [
        replace(change, **{
            name: replace(getattr(change, name), q=float(rates[name][i])) for name in MEASURES
        })
        for i, change in enumerate(changes)
    ]  # fmt: skip
