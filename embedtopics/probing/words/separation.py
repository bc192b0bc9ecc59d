"""How well each layer keeps given senses apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from embedtopics._checks import checked_count
from embedtopics.corpus.hashing import is_missing
from embedtopics.errors import InputError
from embedtopics.evaluation import interval, resampled_sums, silhouettes
from embedtopics.probing.combining import chosen_layers
from embedtopics.probing.spaces import blocks, open_space
from embedtopics.probing.words.finding import numbered, refuse_texts, rows_of_word, word_key
from embedtopics.protocols import Int64Array
from embedtopics.results import Decision, HiddenStates, SenseScore, SenseSeparation

__all__ = ["sense_separation"]

Float64Array = npt.NDArray[np.float64]

MEASURES = ("1-NN accuracy", "centroid accuracy", "silhouette")
MAJORITY = "majority"
QUERIES_AT_ONCE = 1024


def sense_separation(
    states: HiddenStates,
    rows: str | Sequence[int] | npt.NDArray[np.integer],
    labels: Sequence[str],
    *,
    layers: int | str | Sequence[int] = "all",
    adjust: str = "none",
    match_case: bool = False,
    n_resamples: int = 1000,
    seed: int = 0,
) -> SenseSeparation:
    """Measure, layer by layer, how well uses of words with known senses are kept apart.

    Each use is given the sense of the nearest other use of the word ("1-NN accuracy"), and the
    sense whose centroid is nearest ("centroid accuracy"); uses in its own text, or in a text of the
    same wording, are left out of both, so that nothing is told by copying. The silhouette needs no
    decision: how much nearer a use is to its own sense than to the next, by cosine. "majority" is
    the share of the most frequent sense, which no layer should fall below.

    Parameters
    ----------
    states : HiddenStates
        Of words or tokens.
    rows : str or sequence of int
        A word, all of whose uses have a label; or units, of one word or several: each is told
        among the units of the same word. In texts that are split into words, the word at place
        `i` of text `t` is ``states.rows_of(t).start + i``.
    labels : sequence of str
        The sense of each; those without, "", None or NaN, are left out.
    layers : int, sequence of int, "all" or "last N"
    adjust : {"none", "center", "standardize"}
    match_case : bool
    n_resamples : int
        Of the intervals, over texts; what is near to what stays as it is.
    seed : int

    Returns
    -------
    SenseSeparation
        Figures of each word; with several, also the means over words, each counting the same.

    Raises
    ------
    InputError
        If labels and units do not fit, or no word has two senses in several texts.

    References
    ----------
    Loureiro et al. (2021), "Analysis and evaluation of language models for word sense
    disambiguation", sections 4 and 5. Rousseeuw (1987), "Silhouettes".
    """
    from threadpoolctl import threadpool_limits

    refuse_texts(states)
    checked_count(n_resamples, "n_resamples")
    units, senses, decisions = _labelled(states, rows, labels, match_case)
    numbers = chosen_layers(states, layers)
    by_word: dict[str, list[int]] = {}
    for place, row in enumerate(units.tolist()):
        by_word.setdefault(word_key(states.words[row], match_case), []).append(place)
    kept, alike = {}, []
    for word in sorted(by_word):
        places = np.array(by_word[word])
        texts = {states.texts[states.of_text[r]] for r in units[places].tolist()}
        several = len(set(senses[places].tolist())) > 1 and len(texts) > 1
        kept.update({word: places} if several else {})
        alike += [] if several else [word]
    if not kept:
        raise InputError("expected a word with at least two senses, in at least two texts")
    if alike:
        decisions.append(Decision(
            "probing", "words_of_one_sense", alike,
            f"{len(alike)} words with a single sense, or in a single text, were left out.",
        ))  # fmt: skip
    spaces = [open_space(states, number, adjust) for number in numbers]
    scores: list[SenseScore] = []
    drawn: list[Float64Array] = []
    # On one thread: the order in which BLAS sums depends on how many it has.
    with threadpool_limits(limits=1, user_api="blas"):
        for word, places in kept.items():
            figures = _figures(states, spaces, units[places], senses[places])
            drawn.append(_resampled(*figures, n_resamples, seed + len(drawn)))
            scores += _scores(word, numbers, drawn[-1], len(places))
    if len(kept) > 1:
        n = sum(len(places) for places in kept.values())
        scores += _scores("", numbers, np.mean(drawn, axis=0), n)
    return SenseSeparation(
        states.encoder, tuple(kept), tuple(len(set(senses[p].tolist())) for p in kept.values()),
        tuple(scores), adjust, (*states.decisions, *decisions),
    )  # fmt: skip


def _labelled(
    states: HiddenStates, rows: Any, labels: Sequence[str], match_case: bool
) -> tuple[Int64Array, npt.NDArray[Any], list[Decision]]:
    """Return the units that have a sense and a vector, in an order that is that of their texts."""
    if isinstance(rows, str):
        units = rows_of_word(states, rows, match_case)
    else:
        units = np.asarray(rows)
        if units.ndim != 1 or not len(units) or units.dtype.kind not in "iu":
            raise InputError(
                "expected a word, or the numbers of some units; got shape "
                f"{units.shape} of {units.dtype}"
            )
        if units.min() < 0 or units.max() >= len(states):
            raise InputError(
                f"expected units from 0 to {len(states) - 1}; got {units.min()} to {units.max()}"
            )
        if len(np.unique(units)) < len(units):
            raise InputError("expected every unit once; some came twice")
    if isinstance(labels, (str, bytes)) or len(labels) != len(units):
        what = repr(labels) if isinstance(labels, (str, bytes)) else str(len(labels))
        raise InputError(f"expected a sense for each of the {len(units)} uses; got {what}")
    senses = np.array(["" if is_missing(label) else str(label) for label in labels], dtype=object)
    known = np.flatnonzero((senses != "") & ~states.missing[units])
    decisions = []
    if len(known) < len(units):
        left = len(units) - len(known)
        decisions = [Decision(
            "probing", "uses_left_out", left,
            f"{left} of {len(units)} uses without a sense or a vector were left out.",
        )]  # fmt: skip
    order = sorted(known.tolist(), key=lambda i: (
        states.texts[states.of_text[units[i]]], int(states.position[units[i]]), int(units[i]),
    ))  # fmt: skip
    return units[order].astype(np.int64), senses[order], decisions


def _figures(
    states: HiddenStates, spaces: list[Any], units: Int64Array, senses: npt.NDArray[Any]
) -> tuple[Float64Array, npt.NDArray[Any]]:
    """Return what each use adds to each figure, shape (n_uses, 1 + 3 * n_layers), and its text."""
    classes = np.unique(senses.astype(str), return_inverse=True)[1]
    wordings = [states.texts[t] for t in states.of_text[units]]
    texts = numbered(wordings)
    most = np.bincount(classes).argmax()
    columns = [(classes == most).astype(np.float64)]
    for space in spaces:
        vectors = space.unit(units)
        columns.append((classes[_nearest_elsewhere(vectors, texts)] == classes).astype(float))
        columns.append((_nearest_centroid(vectors, classes, texts) == classes).astype(float))
        columns.append(silhouettes(vectors, classes))
    return np.stack(columns, axis=1), texts


def _nearest_elsewhere(vectors: Float64Array, texts: npt.NDArray[Any]) -> Int64Array:
    """Return the place of the nearest use in another text; of equals the first."""
    found = np.empty(len(vectors), dtype=np.int64)
    for part in blocks(len(vectors), QUERIES_AT_ONCE):
        cosines = vectors[part] @ vectors.T
        cosines[texts[part][:, None] == texts] = -np.inf
        found[part] = cosines.argmax(axis=1)
    return found


def _nearest_centroid(
    vectors: Float64Array, classes: npt.NDArray[Any], texts: npt.NDArray[Any]
) -> Int64Array:
    """Return the class whose mean, without the uses in the same text, is nearest."""
    n_classes = int(classes.max()) + 1
    sums = np.array([vectors[classes == c].sum(axis=0) for c in range(n_classes)])
    sizes = np.bincount(classes, minlength=n_classes)
    order = np.argsort(texts, kind="stable")
    starts = np.searchsorted(texts[order], np.arange(int(texts.max()) + 2))
    found = np.empty(len(vectors), dtype=np.int64)
    for begin, end in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        own = order[begin:end]
        others, left = sums.copy(), sizes.copy()
        for use in own.tolist():
            others[classes[use]] -= vectors[use]
            left[classes[use]] -= 1
        lengths = np.sqrt(np.einsum("ij,ij->i", others, others))
        cosines = np.einsum("ij,kj->ik", vectors[own], others) / np.where(lengths > 0, lengths, 1)
        found[own] = np.where(left > 0, cosines, -np.inf).argmax(axis=1)
    return found


def _resampled(
    figures: Float64Array, texts: npt.NDArray[Any], n_resamples: int, seed: int
) -> Float64Array:
    """Return the means, and then those over texts drawn anew, shape (1 + n_resamples, n)."""
    n_texts = int(texts.max()) + 1
    columns = np.zeros((n_texts, figures.shape[1] + 1))
    np.add.at(columns, texts, np.column_stack([figures, np.ones(len(figures))]))
    sums = np.concatenate([columns.sum(axis=0)[None], resampled_sums(columns, n_resamples, seed)])
    return np.asarray(sums[:, :-1] / sums[:, -1:])


def _scores(word: str, numbers: tuple[int, ...], drawn: Float64Array, n: int) -> list[SenseScore]:
    low, high = interval(drawn[1:])
    names: list[tuple[int | None, str]] = [(None, MAJORITY)]
    names += [(number, measure) for number in numbers for measure in MEASURES]
    return [
        SenseScore(word, layer, measure, float(drawn[0, i]), float(low[i]), float(high[i]), n)
        for i, (layer, measure) in enumerate(names)
    ]
