"""What lies near to one use of a word, and near to a word whatever its context."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from embedtopics._checks import checked_count, is_whole
from embedtopics.errors import InputError
from embedtopics.probing.spaces import Space, blocks, open_space
from embedtopics.probing.words.finding import (
    find_use,
    rows_of_word,
    types_of,
    use_at,
    word_key,
)
from embedtopics.protocols import Int64Array
from embedtopics.results import HiddenStates, NeighborTable, StaticNeighbors, WordNeighbors

__all__ = ["neighbor_table", "neighbors", "static_neighbors"]

Float64Array = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

AMONG = ("all", "same word", "other words")
SLACK = 1e-5
"""What single precision may take from a cosine: those so near to the last are computed anew."""


def neighbors(
    states: HiddenStates,
    word: str,
    *,
    in_text: int | None = None,
    occurrence: int | None = None,
    layer: int = -1,
    k: int = 10,
    among: str = "all",
    exclude_same_text: bool = True,
    adjust: str = "none",
    match_case: bool = False,
) -> WordNeighbors:
    """Find the uses of words that lie nearest to one use of a word.

    Exact, by cosine, over all units of the layer, read in blocks: nothing is held in memory but
    the best so far. The candidates are found in single precision and compared in double.

    Parameters
    ----------
    states : HiddenStates
        Of words or tokens.
    word : str
    in_text : int, optional
        The text of the use that is meant; not needed where the word occurs once.
    occurrence : int, optional
        Which of the uses in that text, or in all texts, from 0; not needed where there is one.
    layer : int
        Negative from the last.
    k : int
    among : {"all", "same word", "other words"}
        Which uses may be neighbours.
    exclude_same_text : bool
        Whether uses in the same text are left out, and those in texts that are equal to it.
    adjust : {"none", "center", "standardize"}
        Whether every dimension is first centred, or standardized, over all units.
    match_case : bool
        Whether "Play" and "play" are two words.

    Returns
    -------
    WordNeighbors

    Raises
    ------
    InputError
        If the word does not occur (near spellings are named), if several uses may be meant (they
        are listed), or if there is no such layer.

    References
    ----------
    Peters et al. (2018), "Deep contextualized word representations", table 4.
    """
    checked_count(k, "k")
    if among not in AMONG:
        raise InputError(f"expected among to be one of {', '.join(AMONG)}; got {among!r}")
    row = find_use(states, word, in_text, occurrence, match_case)
    space = open_space(states, layer, adjust)
    allowed = ~states.missing
    allowed[row] = False
    if exclude_same_text:
        own = states.texts[states.of_text[row]]
        same = np.array([text == own for text in states.texts], dtype=bool)
        allowed &= ~same[states.of_text]
    if among != "all":
        names, types = types_of(states, match_case)
        is_word = types == names.index(word_key(states.words[row], match_case))
        allowed &= is_word if among == "same word" else ~is_word
    rows, similarities = _nearest(states, space, row, allowed, k)
    return WordNeighbors(
        use_at(states, row), tuple(use_at(states, one) for one in rows.tolist()), similarities,
        space.layer, states.encoder, among, adjust, int(allowed.sum()), states.decisions,
    )  # fmt: skip


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
    """Find the words whose mean vectors lie nearest to that of a word.

    The mean over contexts makes one static vector a word, as word2vec has (Bommasani et al. 2020,
    "Interpreting pretrained contextualized representations via reductions to static embeddings").

    Parameters
    ----------
    states : HiddenStates
    word : str
    layer : int
    k : int
    min_count : int
        Words of fewer uses are left out: their means say more of these uses than of the word.
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
    asked = int(types[own[0]])
    kept = np.flatnonzero((counts >= min_count) | (np.arange(len(names)) == asked))
    means = _type_sums(space, types, present, kept) / counts[kept, None]
    lengths = np.sqrt(np.einsum("ij,ij->i", means, means))
    means /= np.where(lengths > 0, lengths, 1.0)[:, None]
    place = int(np.searchsorted(kept, asked))
    similarities = np.einsum("ij,j->i", means, means[place])
    others = np.delete(np.arange(len(kept)), place)
    # The words are in alphabetical order, so that a stable sort settles ties by the alphabet.
    best = others[np.argsort(-similarities[others], kind="stable")][:k]
    return StaticNeighbors(
        names[asked], len(own), tuple(names[kept[i]] for i in best.tolist()), similarities[best],
        counts[kept[best]].astype(np.int32), space.layer, states.encoder, min_count, adjust,
        len(others),
    )  # fmt: skip


def neighbor_table(
    states: HiddenStates,
    word: str,
    uses: Sequence[int | tuple[int, int]],
    *,
    layer: int = -1,
    k: int = 5,
    **options: Any,
) -> NeighborTable:
    """Set the neighbours of a word alone beside those of some of its uses.

    As in table 4 of Peters et al. (2018, "Deep contextualized word representations"): "play" alone
    is near to "game" and "players"; a use of it in a review of a theatre is near to its other uses
    on stage.

    Parameters
    ----------
    states : HiddenStates
    word : str
    uses : sequence of int or of (int, int)
        Numbers of texts that hold the word once, or text and occurrence.
    layer, k
    **options
        `min_count` for the static neighbours; `among`, `exclude_same_text` for the contextual ones;
        `adjust` and `match_case` for both.

    Returns
    -------
    NeighborTable

    Raises
    ------
    InputError
        As `neighbors`; and without uses.
    """
    both = {name: options.pop(name) for name in ("adjust", "match_case") if name in options}
    of_static = {name: options.pop(name) for name in ("min_count",) if name in options}
    unknown = set(options) - {"among", "exclude_same_text"}
    if unknown:
        raise InputError(f"expected no other options; got {', '.join(sorted(unknown))}")
    if isinstance(uses, (str, bytes)) or not hasattr(uses, "__len__") or not len(uses):
        raise InputError(f"expected the texts of at least one use of {word!r}; got {uses!r}")
    contextual = []
    for use in uses:
        text, occurrence = (use, None) if is_whole(use) else _pair(use)
        contextual.append(
            neighbors(
                states,
                word,
                in_text=text,
                occurrence=occurrence,
                layer=layer,
                k=k,
                **both,
                **options,
            )
        )
    static = static_neighbors(states, word, layer=layer, k=k, **both, **of_static)
    return NeighborTable(static.word, static, tuple(contextual))


def _pair(use: Any) -> tuple[int, int]:
    if isinstance(use, (tuple, list)) and len(use) == 2 and all(map(is_whole, use)):
        return int(use[0]), int(use[1])
    raise InputError(f"expected the number of a text, or text and occurrence; got {use!r}")


def _nearest(
    states: HiddenStates, space: Space, row: int, allowed: BoolArray, k: int
) -> tuple[Int64Array, Float64Array]:
    """Return the k nearest of the units that are allowed; ties by text and position."""
    from threadpoolctl import threadpool_limits

    query = space.unit(np.array([row]))[0]
    narrow = query.astype(np.float32)
    rows, rough = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float32)
    # On one thread: the order in which BLAS sums depends on how many it has.
    with threadpool_limits(limits=1, user_api="blas"):
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
        ones = np.ones(len(inside))
        belongs = csr_matrix(
            (ones, (numbered, inside)), shape=(len(of_type), part.stop - part.start)
        )
        sums[of_type] += belongs @ space.raw(part)
    return sums
