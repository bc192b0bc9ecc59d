"""Every use of a word on a map: the plane on which the uses are spread most, layer by layer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from hashlib import blake2b
from unicodedata import normalize

import numpy as np
import numpy.typing as npt

from embedtopics._checks import checked_count, is_whole
from embedtopics.errors import InputError
from embedtopics.results import Decision, HiddenStates, WordMap

__all__ = ["map_uses"]

Float64Array = npt.NDArray[np.float64]
Int64Array = npt.NDArray[np.int64]

_ALIKE = 1e-12
"""Variance of unit vectors below which all uses are one point; half precision rounds at 1e-7."""


def map_uses(
    states: HiddenStates,
    word: str | Sequence[str],
    layers: str | int | Sequence[int] = "all",
    max_uses: int = 1000,
) -> WordMap:
    """Lay the uses of a word on a plane for each layer; see `embedtopics.probing.word_map`."""
    words = [word] if isinstance(word, str) else list(word)
    if not words or not all(isinstance(one, str) and one.strip() for one in words):
        raise InputError(f"expected a word, or several in a list; got {word!r}")
    most = checked_count(max_uses, "max_uses")
    chosen = _layers(states, layers)
    found = _rows_of(states, words)
    decisions = []
    rows = found[~states.missing[found]]
    if not len(rows):
        raise InputError(
            f"expected a use of {words[0]!r} that has a vector; the tokenizer leaves nothing of it"
        )
    if len(rows) < len(found):
        n = len(found) - len(rows)
        said = f"{n:,} uses without a vector are left out: the tokenizer leaves nothing of them"
        decisions.append(Decision("probing", "missing", n, said))
    if len(rows) > most:
        said = f"{most:,} of {len(rows):,} uses are shown, chosen by a hash of their texts"
        decisions.append(Decision("probing", "sampled", most, said))
        rows = _sample(states, rows, most)
    # Sums of floating-point numbers depend on the order; that of the texts must not show.
    order = np.array(sorted(range(len(rows)), key=lambda i: _key(states, int(rows[i]))))
    vectors = [_unit(states.layer(layer)[rows[order]]) for layer in chosen]
    coordinates, joint, shown, shown_jointly = _planes(vectors)
    back = np.argsort(order)
    said_in = [_sentence(states, int(row)) for row in rows]
    return WordMap(
        word=", ".join(words),
        uses=tuple(states.words[row] for row in rows.tolist()),
        sentences=tuple(sentence for sentence, _ in said_in),
        spans=np.array([span for _, span in said_in], dtype=np.int32),
        rows=rows.astype(np.int32),
        of_text=states.of_text[rows].astype(np.int32),
        n_units=len(states),
        n_texts=len(states.texts),
        layers=chosen,
        coordinates=coordinates[:, back],
        joint=joint[:, back],
        shown=shown,
        shown_jointly=shown_jointly,
        similarity=np.array([_similarity(one) for one in vectors]),
        encoder=states.encoder,
        decisions=tuple(decisions),
    )


def _layers(states: HiddenStates, layers: str | int | Sequence[int]) -> tuple[int, ...]:
    if isinstance(layers, str):
        if layers != "all":
            raise InputError(f'expected layers as numbers or "all"; got {layers!r}')
        return states.layers
    wanted = list(layers) if isinstance(layers, Iterable) else [layers]
    if not wanted or not all(is_whole(layer) for layer in wanted):
        raise InputError(f'expected layers as whole numbers or "all"; got {layers!r}')
    for layer in wanted:
        states.layer(layer)  # refuses what is not there
    last = states.layers[-1]
    found = tuple(int(last + 1 + layer if layer < 0 else layer) for layer in wanted)
    if len(set(found)) < len(found):
        raise InputError(f"expected each layer once; got {layers!r}")
    return found


def _rows_of(states: HiddenStates, words: Sequence[str]) -> Int64Array:
    """Return the rows of all uses, whether capitalised or not."""
    if states.unit == "text":
        raise InputError("expected states of words or tokens; these are of whole texts")
    wanted = {_folded(word) for word in words}
    folded = {word: _folded(word) for word in set(states.words)}
    rows = [row for row, word in enumerate(states.words) if folded[word] in wanted]
    if not rows:
        first = _folded(words[0])
        near = sorted({word for word in folded.values() if word[:1] == first[:1]})
        like = get_close_matches(first, near, 3)
        hint = f"; there are {', '.join(map(repr, like))}" if like else ""
        raise InputError(f"expected a word of the texts; {words[0]!r} does not occur{hint}")
    return np.array(rows, dtype=np.int64)


def _folded(word: str) -> str:
    return normalize("NFC", word.strip()).casefold()


def _key(states: HiddenStates, row: int) -> tuple[str, int]:
    return states.texts[int(states.of_text[row])], int(states.spans[row, 0])


def _sample(states: HiddenStates, rows: Int64Array, most: int) -> Int64Array:
    """Return some of the rows, the same ones whatever the order of the texts."""
    digests = []
    for row in rows.tolist():
        text, begin = _key(states, row)
        content = f"{begin} {text}".encode("utf-8", "surrogatepass")
        digests.append(blake2b(content, digest_size=16).digest())
    chosen = sorted(range(len(rows)), key=digests.__getitem__)[:most]
    kept: Int64Array = rows[np.sort(chosen)]
    return kept


def _sentence(states: HiddenStates, row: int) -> tuple[str, tuple[int, int]]:
    """Return the sentence around a unit, and where in it the unit stands."""
    text = states.texts[int(states.of_text[row])]
    units = states.rows_of(int(states.of_text[row]))
    first, behind = np.searchsorted(
        states.sentences, [states.sentences[row], states.sentences[row] + 1]
    )
    # Marks before the first unit and behind the last belong to the sentence too.
    begin = int(states.spans[first, 0]) if first > units.start else 0
    end = int(states.spans[behind, 0]) if behind < units.stop else len(text)
    sentence = text[begin:end]
    begin += len(sentence) - len(sentence.lstrip())
    own = states.spans[row] - begin
    return sentence.strip(), (int(own[0]), int(own[1]))


def _unit(vectors: npt.NDArray[np.generic]) -> Float64Array:
    """Return vectors of length 1, for what counts of them elsewhere is the cosine, too."""
    rows = np.asarray(vectors, dtype=np.float64)
    norms = np.sqrt(np.square(rows).sum(axis=1, keepdims=True))
    unit: Float64Array = np.divide(rows, norms, out=np.zeros_like(rows), where=norms > 0)
    return unit


def _similarity(vectors: Float64Array) -> float:
    """Return the mean cosine of two different uses, which the length of the sum gives.

    A vector of zeros has a cosine of 0 with all.
    """
    n = len(vectors)
    if n < 2:
        return float("nan")
    alone = np.square(vectors).sum()
    return float((np.square(vectors.sum(axis=0)).sum() - alone) / (n * (n - 1)))


def _planes(
    vectors: Sequence[Float64Array],
) -> tuple[Float64Array, Float64Array, Float64Array, Float64Array]:
    """Return the coordinates on the plane of each layer and of all, and the shares they show."""
    from threadpoolctl import threadpool_limits

    # On one thread: the order in which BLAS sums depends on how many it has.
    with threadpool_limits(limits=1, user_api="blas"):
        centred = [one - one.mean(axis=0) for one in vectors]
        totals = np.array([np.square(one).sum() for one in centred])
        bounds = _ALIKE * len(vectors[0])
        is_flat = totals <= bounds
        for layer in np.flatnonzero(is_flat):
            centred[layer] = np.zeros_like(centred[layer])
        own = np.array([one @ _axes(one) for one in centred])
        plane = _axes(np.concatenate(centred))
        joint = np.array([one @ plane for one in centred])
    # The last layer is the anchor, for what the first ones show is often the place in the sentence.
    for place in range(len(own) - 2, -1, -1):
        own[place] = own[place] @ _turn(own[place], own[place + 1])
    joint = joint @ _turn(joint[-1], own[-1])
    totals = np.where(is_flat, np.nan, totals)
    shown, shown_jointly = (np.square(places).sum(axis=(1, 2)) / totals for places in (own, joint))
    return own, joint, shown, shown_jointly


def _axes(centred: Float64Array) -> Float64Array:
    """Return the two directions along which vectors vary most, shape (width, 2).

    Those are the right singular vectors (Jolliffe 2002, section 3.5), here by way of the smaller
    of the two products of the matrix with itself. Of a direction and its opposite, the one whose
    largest weight is positive is taken.
    """
    n, width = centred.shape
    axes = np.zeros((width, 2))
    by_rows = n < width
    product = centred @ centred.T if by_rows else centred.T @ centred
    values, found = np.linalg.eigh(product)
    for place, which in enumerate(range(len(values) - 1, max(len(values) - 3, -1), -1)):
        if values[which] <= 1e-10 * values[-1] or values[which] <= 0:
            break  # the uses lie on a line, or are one point
        axis = centred.T @ found[:, which] if by_rows else found[:, which]
        axis = axis / np.sqrt(np.square(axis).sum())
        largest = int(np.argmax(np.round(np.abs(axis), 9)))
        axes[:, place] = axis * np.sign(axis[largest])
    return axes


def _turn(moving: Float64Array, target: Float64Array) -> Float64Array:
    """Return the rotation or reflection that lays points on their partners best.

    The orthogonal Procrustes problem (Schönemann 1966), which has a closed form in the plane.
    """
    (a, b), (c, d) = (
        [float((moving[:, i] * target[:, j]).sum()) for j in range(2)] for i in range(2)
    )
    turned, mirrored = np.hypot(a + d, b - c), np.hypot(a - d, b + c)
    if turned >= mirrored * (1 - 1e-9):
        angle = np.arctan2(b - c, a + d)
        return np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    angle = np.arctan2(b + c, a - d)
    return np.array([[np.cos(angle), np.sin(angle)], [np.sin(angle), -np.cos(angle)]])
