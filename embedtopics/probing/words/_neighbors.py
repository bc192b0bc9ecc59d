"""Nearest neighbours of one use of a word, and of a word averaged over its uses."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from embedtopics._utils.checks import checked_count
from embedtopics.errors import InputError
from embedtopics.probing._layers import Space, blocks, lengths_of, one_blas_thread, open_space
from embedtopics.probing.results import HiddenStates
from embedtopics.probing.words._uses import find_use, rows_of_word, types_of, use_at, word_key
from embedtopics.probing.words.results import StaticNeighbors, WordNeighbors
from embedtopics.protocols import BoolArray, Float64Array, Int64Array

AMONG = ("all", "same word", "other words")
SLACK = 1e-5
"""Error of single precision: cosines this close to the last are computed again in double."""


def neighbors(
    states: HiddenStates,
    word: str,
    *,
    in_text: int | None = None,
    occurrence: int | None = None,
    layer: int = -1,
    k: int = 10,
    among: str = "all",
    adjust: str = "none",
    match_case: bool = False,
) -> WordNeighbors:
    """Find the uses of words nearest to one use of a word.

    Exact, by cosine, over all units of the layer but those of the same text and of texts equal to
    it. Candidates are found in single precision and compared in double.

    Parameters
    ----------
    states : HiddenStates
        Of words or tokens.
    word : str
    in_text : int, optional
        The text of the use; not needed where the word occurs once.
    occurrence : int, optional
        Which of the uses in that text, or in all texts, from 0; not needed where there is one.
    layer : int
        Negative from the last.
    k : int
    among : {"all", "same word", "other words"}
        Which uses may be neighbours.
    adjust : {"none", "center", "standardize"}
        Whether to center or standardize every dimension over all units first.
    match_case : bool
        Whether "Play" and "play" are different words.

    Returns
    -------
    WordNeighbors

    Raises
    ------
    InputError
        If the word does not occur (similar ones are named), if it has several uses (they are
        listed), or if there is no such layer.

    References
    ----------
    Peters et al. (2018), "Deep contextualized word representations", table 4.
    """
    checked_count(k, "k")
    if among not in AMONG:
        raise InputError("among", f"one of {', '.join(AMONG)}", among)
    row = find_use(states, word, in_text, occurrence, match_case)
    space = open_space(states, layer, adjust)
    own = states.texts[states.of_text[row]]
    is_other = np.array([text != own for text in states.texts], dtype=bool)
    allowed = ~states.missing & is_other[states.of_text]
    if among != "all":
        names, types = types_of(states, match_case)
        is_word = types == names.index(word_key(states.words[row], match_case))
        allowed &= is_word if among == "same word" else ~is_word
    rows, similarities = _nearest(states, space, row, allowed, k)
    return WordNeighbors(
        use_at(states, row),
        tuple(use_at(states, one) for one in rows.tolist()),
        similarities,
        space.layer,
        states.encoder,
        among,
        adjust,
        int(allowed.sum()),
        states.decisions,
    )


def static_neighbors(
    states: HiddenStates,
    word: str,
    *,
    layer: int = -1,
    k: int = 10,
    min_count: int = 5,
    adjust: str = "none",
    match_case: bool = False,
) -> StaticNeighbors:
    """Find the words whose mean vectors are nearest to that of a word.

    The mean over contexts makes one static vector a word, as word2vec has (Bommasani et al. 2020,
    "Interpreting pretrained contextualized representations via reductions to static embeddings").

    Parameters
    ----------
    states : HiddenStates
    word : str
    layer, k : int
    min_count : int
        Words with fewer uses are left out: their means depend on these uses more than on the word.
    adjust : {"none", "center", "standardize"}
    match_case : bool

    Returns
    -------
    StaticNeighbors

    Raises
    ------
    InputError
        If the word does not occur, or there is no such layer.
    """
    checked_count(k, "k")
    checked_count(min_count, "min_count")
    own = rows_of_word(states, word, match_case)
    space = open_space(states, layer, adjust)
    names, types = types_of(states, match_case)
    present = ~states.missing
    counts = np.bincount(types[present], minlength=len(names))
    query = int(types[own[0]])
    kept = np.flatnonzero((counts >= min_count) | (np.arange(len(names)) == query))
    means = _type_sums(space, types, present, kept) / counts[kept, None]
    means /= lengths_of(means)[:, None]
    place = int(np.searchsorted(kept, query))
    similarities = np.einsum("ij,j->i", means, means[place])
    others = np.delete(np.arange(len(kept)), place)
    # The words are in alphabetical order, so that a stable sort breaks ties by the alphabet.
    best = others[np.argsort(-similarities[others], kind="stable")][:k]
    return StaticNeighbors(
        names[query],
        len(own),
        tuple(names[kept[i]] for i in best.tolist()),
        similarities[best],
        counts[kept[best]].astype(np.int32),
        space.layer,
        states.encoder,
        min_count,
        adjust,
        len(others),
    )


def _nearest(
    states: HiddenStates, space: Space, row: int, allowed: BoolArray, k: int
) -> tuple[Int64Array, Float64Array]:
    """Return the k nearest allowed units; ties by text and position."""
    query = space.unit(np.array([row]))[0]
    narrow = query.astype(np.float32)
    rows, rough = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float32)
    with one_blas_thread():
        for part in blocks(len(allowed)):
            inside = np.flatnonzero(allowed[part])
            if not len(inside):
                continue
            found = (space.unit32(part) @ narrow)[inside]
            rows = np.concatenate([rows, part.start + inside])
            rough = np.concatenate([rough, found])
            if len(rough) > k:
                least = np.partition(rough, len(rough) - k)[len(rough) - k]
                near = rough >= least - SLACK
                rows, rough = rows[near], rough[near]
    exact = np.einsum("ij,j->i", space.unit(rows), query)
    texts = [states.texts[t] for t in states.of_text[rows]]
    order = sorted(
        range(len(rows)), key=lambda i: (-exact[i], texts[i], states.position[rows[i]], rows[i])
    )[:k]
    return rows[order], exact[order]


def _type_sums(
    space: Space, types: npt.NDArray[np.int32], present: BoolArray, kept: Int64Array
) -> Float64Array:
    """Return the sum of the vectors of each type that is kept, of shape (n_kept, width)."""
    from scipy.sparse import csr_matrix

    sums = np.zeros((len(kept), space.vectors.shape[1]))
    place = np.full(int(types.max()) + 1, -1)
    place[kept] = np.arange(len(kept))
    for part in blocks(len(types)):
        inside = np.flatnonzero(present[part] & (place[types[part]] >= 0))
        of_type, numbered = np.unique(place[types[part][inside]], return_inverse=True)
        entries = np.ones(len(inside)), (numbered, inside)
        belongs = csr_matrix(entries, shape=(len(of_type), part.stop - part.start))
        sums[of_type] += belongs @ space.raw(part)
    return sums
