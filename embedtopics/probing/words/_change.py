"""Whether a word is used differently in two groups of texts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, islice
from math import comb
from typing import Any, NamedTuple

import numpy as np

from embedtopics._utils.checks import checked_count, resolve_seed
from embedtopics.corpus._hashing import is_missing
from embedtopics.decisions import Decision, counted
from embedtopics.errors import InputError
from embedtopics.evaluation._bootstrap import interval, resampled_counts
from embedtopics.probing._layers import Space, blocks, one_blas_thread, open_space
from embedtopics.probing.results import HiddenStates
from embedtopics.probing.words._uses import (
    checked_words,
    find_rows,
    refuse_texts,
    types_of,
    word_key,
)
from embedtopics.probing.words.results import ChangeMeasure, RareWord, SemanticChange, WordChange
from embedtopics.protocols import Float64Array, Int64Array, RandomState

AT_ONCE = 256
"""Assignments of the texts that are measured together."""

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
    match_case: bool = False,
    random_state: RandomState = 0,
) -> SemanticChange:
    """Measure how differently words are used in two periods, or in two groups of texts.

    The average pairwise distance (APD) is the mean cosine distance between a use in one group and
    a use in the other; a word of many senses has a large APD in any two groups. Its excess over
    the mean distance within the groups, over pairs of different texts, is 0 on average where
    nothing changed: read its test first. The prototype distance is that of the mean vectors; it
    grows where uses are few, which `by_chance` shows.

    The permutation test reassigns the texts that hold the word to the groups. All assignments are
    tried where they are at most `n_permutations`, and p is the share with a value as large;
    otherwise p is (1 + b) / (1 + m), with b of m random ones as large (Phipson and Smyth 2010). It
    is valid if texts are exchangeable: where one author wrote many, merge them into one.

    Parameters
    ----------
    states : HiddenStates
    words : str or sequence of str
    groups : sequence, one label a text
        Of exactly two kinds; None, NaN, NaT, pandas.NA and "" leave a text out.
    layer : int
    n_permutations, n_resamples : int
        Of the test, and of the "basic" bootstrap intervals over texts within each group, which
        correct the bias of a distance (Efron and Tibshirani 1993, section 13.4): that of a
        prototype distance may lie below its value.
    min_uses, min_texts : int
        In each group; words with fewer are listed in `too_rare`.
    match_case : bool
    random_state : int, Generator or None

    Returns
    -------
    SemanticChange
        With false discovery rates over the words (Benjamini and Hochberg 1995) for each measure.

    Raises
    ------
    InputError
        If none of the words occurs, or the groups are not two, each with texts.

    References
    ----------
    Kutuzov and Giulianelli (2020), "UiO-UvA at SemEval-2020 Task 1: contextualised embeddings for
    lexical semantic change detection", section 3.
    """
    from scipy.stats import false_discovery_control

    refuse_texts(states)
    checked_count(n_permutations, "n_permutations")
    checked_count(n_resamples, "n_resamples")
    checked_count(min_uses, "min_uses")
    checked_count(min_texts, "min_texts", 2)
    seed = resolve_seed(random_state)
    names, of_text, decisions = _two_groups(states, groups)
    rows_by_word = _rows_by_word(states, checked_words(words), match_case)
    space = open_space(states, layer)
    measured, too_rare = [], []
    for word, rows in rows_by_word.items():
        rows = rows[of_text[states.of_text[rows]] >= 0]
        own = of_text[states.of_text[rows]]
        n_uses = int((own == 0).sum()), int((own == 1).sum())
        first, second = (len(np.unique(states.of_text[rows[own == g]])) for g in (0, 1))
        if min(n_uses) < min_uses or min(first, second) < min_texts:
            too_rare.append(RareWord(word, n_uses, (first, second)))
            continue
        sums = _text_sums(states, space, rows, of_text)
        figures, exact = _measure(sums, n_permutations, n_resamples, seed)
        measured.append((word, n_uses, (first, second), figures, exact))
    changes = []
    p = [figures[:, -1] for *_, figures, _ in measured]
    rates: Any = false_discovery_control(p, axis=0) if measured else []
    for (word, n_uses, n_texts, figures, exact), q in zip(measured, rates, strict=True):
        apd, excess, prototype = (ChangeMeasure(*row) for row in np.c_[figures, q].tolist())
        changes.append(WordChange(word, n_uses, n_texts, apd, excess, prototype, exact))
    changes.sort(key=lambda change: (-change.excess.value, change.word))
    return SemanticChange(
        groups=names,
        words=tuple(changes),
        too_rare=tuple(sorted(too_rare, key=lambda rare: rare.word)),
        layer=space.layer,
        encoder=states.encoder,
        n_permutations=n_permutations,
        decisions=(*states.decisions, *decisions),
    )


@dataclass(frozen=True, eq=False)
class _TextSums:
    """Sums over the uses in each text that holds a word."""

    group: Int64Array
    n: Float64Array
    unit: Float64Array
    raw: Float64Array
    squared: Float64Array


def _two_groups(
    states: HiddenStates, groups: Sequence[Any]
) -> tuple[tuple[str, str], Int64Array, list[Decision]]:
    """Return the names of the groups and the group of each text, -1 for none."""
    is_sequence = hasattr(groups, "__len__") and not isinstance(groups, (str, bytes))
    if not is_sequence or len(groups) != len(states.texts):
        given = f"{len(groups)} labels" if is_sequence else repr(groups)
        raise InputError("groups", f"a label for each of {len(states.texts)} texts", found=given)
    labels = ["" if is_missing(group) else str(group) for group in groups]
    found = sorted(set(labels) - {""})
    if len(found) != 2:
        shown = ", ".join(map(repr, found[:6])) + (", ..." if len(found) > 6 else "")
        remedy = "give None for the texts of all others"
        raise InputError("groups", "of two kinds", remedy=remedy, found=shown or "none")
    message = f"of {len(labels)} texts have no group and were left out."
    decisions = counted("probing", "texts_without_group", labels.count(""), message)
    number = {"": -1, found[0]: 0, found[1]: 1}
    return (found[0], found[1]), np.array([number[label] for label in labels]), decisions


def _rows_by_word(
    states: HiddenStates, words: Sequence[str], match_case: bool
) -> dict[str, Int64Array]:
    """Return the units of each word, in the order given; some words may have none."""
    names, types = types_of(states, match_case)
    number = {name: place for place, name in enumerate(names)}
    present, found = ~states.missing, {}
    for word in words:
        key = word_key(word.strip(), match_case)
        found[key] = np.flatnonzero((types == number.get(key, -1)) & present)
    if not any(len(rows) for rows in found.values()):
        find_rows(states, words, match_case)
        raise InputError("words", "a word of which the tokenizer leaves a token", words[0])
    return found


def _text_sums(
    states: HiddenStates, space: Space, rows: Int64Array, of_text: Int64Array
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
        of_text[texts[order]],
        counts[order].astype(np.float64),
        unit[order],
        raw[order],
        np.einsum("ij,ij->i", unit[order], unit[order]),
    )


def _measure(
    sums: _TextSums, n_permutations: int, n_resamples: int, seed: int
) -> tuple[Float64Array, bool]:
    """Return value, low, high, mean by chance and p of each measure, of shape (3, 5)."""
    first = (sums.group == 0).astype(np.float64)
    exact = comb(len(first), int(first.sum())) <= n_permutations
    with one_blas_thread():
        whole = _side(sums, np.ones((1, len(first))), slice(None))
        value = _split_values(sums, first[None], whole)[:, 0]
        ways = _assignments(first, exact, n_permutations, seed)
        assigned = np.concatenate([_split_values(sums, times, whole) for times in ways], axis=1)
        members = [np.flatnonzero(sums.group == g) for g in (0, 1)]
        draws = [resampled_counts(len(m), n_resamples, seed + g) for g, m in enumerate(members)]
        resamples = [
            _values(*(_side(sums, *side) for side in zip(times, members, strict=True)))
            for times in zip(*draws, strict=True)
        ]
        drawn = np.concatenate(resamples, axis=1)
    low, high = interval(drawn.T, min(map(len, members)))
    # Draws of one text alone have no pairs within the group; those left show too little.
    low, high = np.where(np.isnan(drawn).mean(axis=1) > MOST_UNKNOWN, np.nan, [low, high])
    as_large = (assigned >= value[:, None] - TIED).sum(axis=1)
    p = as_large / assigned.shape[1] if exact else (1 + as_large) / (1 + assigned.shape[1])
    least = (0.0, -np.inf, 0.0)
    low, high = np.maximum(2 * value - high, least), np.maximum(2 * value - low, least)
    return np.stack([value, low, high, assigned.mean(axis=1), p], axis=1), exact


class _Side(NamedTuple):
    """Sums over the texts of one group, for some ways of counting them, each (n_ways, ...)."""

    n: Float64Array
    unit: Float64Array
    raw: Float64Array
    same_text: Float64Array
    same_text_cosine: Float64Array

    def within(self) -> Float64Array:
        """Return the mean distance of two uses in different texts; NaN where there are none."""
        # A text drawn twice makes no pair of different texts with itself.
        pairs = self.n**2 - self.same_text
        mean = np.full(len(pairs), np.nan)
        cosines = np.einsum("ij,ij->i", self.unit, self.unit) - self.same_text_cosine
        np.divide(cosines, pairs, out=mean, where=pairs > 0.5)
        return 1 - mean


def _side(sums: _TextSums, times: Float64Array, members: Int64Array | slice) -> _Side:
    """Add up some texts, each so many times; `times` has shape (n_ways, n_members)."""
    n, squares = sums.n[members], times**2
    return _Side(
        times @ n,
        times @ sums.unit[members],
        times @ sums.raw[members],
        squares @ n**2,
        squares @ sums.squared[members],
    )


def _split_values(sums: _TextSums, times: Float64Array, whole: _Side) -> Float64Array:
    """Return all measures of some texts against the others, of shape (3, n_ways)."""
    one = _side(sums, times, slice(None))
    return _values(one, _Side(*(of_all - own for of_all, own in zip(whole, one, strict=True))))


def _values(first: _Side, second: _Side) -> Float64Array:
    """Return all measures, of shape (3, n_ways)."""
    apd = 1 - np.einsum("ij,ij->i", first.unit, second.unit) / (first.n * second.n)
    lengths = [np.sqrt(np.einsum("ij,ij->i", one.raw, one.raw)) for one in (first, second)]
    product = lengths[0] * lengths[1]
    cosine = np.zeros(len(product))
    np.divide(np.einsum("ij,ij->i", first.raw, second.raw), product, out=cosine, where=product > 0)
    return np.array([apd, apd - (first.within() + second.within()) / 2, 1 - cosine])


def _assignments(
    first: Float64Array, exact: bool, n_permutations: int, seed: int
) -> Iterator[Float64Array]:
    """Reassign the texts to the groups, some ways at a time; 1 for the first group."""
    n, size = len(first), int(first.sum())
    if exact:
        every = combinations(range(n), size)
        while chosen := list(islice(every, AT_ONCE)):
            assigned = np.zeros((len(chosen), n))
            np.put_along_axis(assigned, np.array(chosen), 1.0, axis=1)
            yield assigned
        return
    rng = np.random.default_rng([seed, 1])
    for part in blocks(n_permutations, AT_ONCE):
        yield rng.permuted(np.tile(first, (part.stop - part.start, 1)), axis=1)
