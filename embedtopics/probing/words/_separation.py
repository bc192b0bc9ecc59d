"""How well each layer separates given senses of words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from embedtopics._utils.checks import checked_count, resolve_seed
from embedtopics.corpus._hashing import is_missing
from embedtopics.corpus.results import Decision
from embedtopics.errors import InputError
from embedtopics.evaluation._bootstrap import interval, resampled_sums
from embedtopics.evaluation._label_probes import silhouettes
from embedtopics.probing._layers import (
    blocks,
    chosen_layers,
    lengths_of,
    one_blas_thread,
    open_space,
)
from embedtopics.probing.results import HiddenStates
from embedtopics.probing.words._uses import numbered, refuse_texts, rows_of_word, word_key
from embedtopics.probing.words.results import SenseScore, SenseSeparation
from embedtopics.protocols import Float64Array, Int64Array, RandomState

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
    random_state: RandomState = 0,
) -> SenseSeparation:
    """Measure, layer by layer, how well uses of words with known senses are separated.

    Each use is assigned the sense of the nearest other use of the word ("1-NN accuracy"), and the
    sense whose centroid is nearest ("centroid accuracy"); uses in its own text, or in a text of the
    same wording, are left out of both. The silhouette is that of the senses, by cosine. "majority"
    is the share of the most frequent sense, the least that a layer should reach.

    Parameters
    ----------
    states : HiddenStates
        Of words or tokens.
    rows : str or sequence of int
        A word, all of whose uses have a label; or units, of one word or several. In texts that
        are split into words, word `i` of text `t` is ``states.rows_of(t).start + i``.
    labels : sequence of str
        The sense of each; those without, "", None or NaN, are left out.
    layers : int, sequence of int, "all" or "last N"
    adjust : {"none", "center", "standardize"}
    match_case : bool
    n_resamples : int
        Of the intervals, over texts; neighbors are those of all texts.
    random_state : int, Generator or None

    Returns
    -------
    SenseSeparation
        Scores of each word; with several, also the unweighted means over words.

    Raises
    ------
    InputError
        If labels and units do not fit, or no word has two senses in several texts.

    References
    ----------
    Loureiro et al. (2021), "Analysis and evaluation of language models for word sense
    disambiguation", sections 4 and 5. Rousseeuw (1987), "Silhouettes".
    """
    refuse_texts(states)
    checked_count(n_resamples, "n_resamples")
    units, senses, decisions = _labelled(states, rows, labels, match_case)
    numbers = chosen_layers(states, layers)
    by_word: dict[str, list[int]] = {}
    for place, row in enumerate(units.tolist()):
        by_word.setdefault(word_key(states.words[row], match_case), []).append(place)
    kept, left_out = {}, []
    for word in sorted(by_word):
        places = np.array(by_word[word])
        texts = {states.texts[states.of_text[r]] for r in units[places].tolist()}
        several = len(set(senses[places].tolist())) > 1 and len(texts) > 1
        kept.update({word: places} if several else {})
        left_out += [] if several else [word]
    if not kept:
        raise InputError("labels", "of two senses of a word or more, in at least two texts")
    if left_out:
        message = f"{len(left_out)} words with a single sense, or in one text, were left out."
        decisions.append(Decision("probing", "words_of_one_sense", left_out, message))
    seed = resolve_seed(random_state)
    spaces = [open_space(states, number, adjust) for number in numbers]
    scores: list[SenseScore] = []
    drawn: list[Float64Array] = []
    with one_blas_thread():
        for word, places in kept.items():
            figures = _figures(states, spaces, units[places], senses[places])
            drawn.append(_resampled(*figures, n_resamples, seed + len(drawn)))
            scores += _scores(word, numbers, drawn[-1], len(places))
    if len(kept) > 1:
        n = sum(len(places) for places in kept.values())
        scores += _scores("", numbers, np.mean(drawn, axis=0), n)
    return SenseSeparation(
        states.encoder,
        tuple(kept),
        tuple(len(set(senses[p].tolist())) for p in kept.values()),
        tuple(scores),
        adjust,
        (*states.decisions, *decisions),
    )


def _labelled(
    states: HiddenStates, rows: Any, labels: Sequence[str], match_case: bool
) -> tuple[Int64Array, npt.NDArray[Any], list[Decision]]:
    """Return the units that have a sense and a vector, in the order of their texts' contents."""
    if isinstance(rows, str):
        units = rows_of_word(states, rows, match_case)
    else:
        units = np.asarray(rows)
        is_1d = units.ndim == 1 and len(units) > 0 and units.dtype.kind in "iu"
        if not is_1d or units.min() < 0 or units.max() >= len(states):
            raise InputError("rows", f"a word, or units from 0 to {len(states) - 1}", rows)
        if len(np.unique(units)) < len(units):
            raise InputError("rows", "distinct units", rows)
    if isinstance(labels, (str, bytes)) or len(labels) != len(units):
        raise InputError("labels", f"a sense for each of the {len(units)} uses", labels)
    senses = np.array(["" if is_missing(label) else str(label) for label in labels], dtype=object)
    known = np.flatnonzero((senses != "") & ~states.missing[units])
    decisions = []
    if len(known) < len(units):
        n = len(units) - len(known)
        message = f"{n} of {len(units)} uses without a sense or a vector were left out."
        decisions.append(Decision("probing", "uses_left_out", n, message))
    order = sorted(
        known.tolist(),
        key=lambda i: (states.texts[states.of_text[units[i]]], states.position[units[i]], units[i]),
    )
    return units[order].astype(np.int64), senses[order], decisions


def _figures(
    states: HiddenStates, spaces: list[Any], units: Int64Array, senses: npt.NDArray[Any]
) -> tuple[Float64Array, npt.NDArray[Any]]:
    """Return what each use adds to each figure, shape (n_uses, 1 + 3 * n_layers), and its text."""
    classes = np.unique(senses.astype(str), return_inverse=True)[1]
    texts = numbered([states.texts[t] for t in states.of_text[units]])
    most = np.bincount(classes).argmax()
    columns = [(classes == most).astype(np.float64)]
    for space in spaces:
        vectors = space.unit(units)
        columns.append((classes[_nearest_elsewhere(vectors, texts)] == classes).astype(float))
        columns.append((_nearest_centroid(vectors, classes, texts) == classes).astype(float))
        columns.append(silhouettes(vectors, classes))
    return np.stack(columns, axis=1), texts


def _nearest_elsewhere(vectors: Float64Array, texts: npt.NDArray[Any]) -> Int64Array:
    """Return the place of the nearest use in another text; of equal ones the first."""
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
        cosines = np.einsum("ij,kj->ik", vectors[own], others) / lengths_of(others)
        found[own] = np.where(left > 0, cosines, -np.inf).argmax(axis=1)
    return found


def _resampled(
    figures: Float64Array, texts: npt.NDArray[Any], n_resamples: int, seed: int
) -> Float64Array:
    """Return the means, and then those over resampled texts, shape (1 + n_resamples, n)."""
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
