"""Uses of a word: their positions, neighbors and maps, and the separation of its senses."""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.linalg import orthogonal_procrustes

from embedtopics._utils.checks import checked_choice, checked_count, is_count
from embedtopics._utils.display import excerpt
from embedtopics._utils.machine import one_blas_thread
from embedtopics.corpus._texts import is_missing
from embedtopics.errors import InputError
from embedtopics.evaluation._bootstrap import bounded_interval, resampled_sums
from embedtopics.evaluation._labels import silhouettes
from embedtopics.probing._layers import Space, blocks, check_states, open_space
from embedtopics.probing._tables import LAYER_MEASURES, WORD_USES, make_table
from embedtopics.probing.results import HiddenStates
from embedtopics.probing.words.results import SenseSeparation, WordMap, WordNeighbors
from embedtopics.protocols import BoolArray, Float64Array, Int32Array, Int64Array
from embedtopics.results import Decision, counted

SUGGESTED, LISTED = 3, 5
"""Similar words, and uses, that a message shows."""
CANDIDATES = ("all", "same word", "other words")
SLACK = 1e-5
"""Error of single precision: cosines this close to the last are computed again in double."""


def word_key(word: str) -> str:
    """Return the form in which spellings of one word are equal: case does not count."""
    return unicodedata.normalize("NFC", word).casefold()


def numbered(texts: Sequence[str]) -> Int64Array:
    """Return the rank of each text among the distinct ones in alphabetical order."""
    number = {text: rank for rank, text in enumerate(sorted(set(texts)))}
    return np.array([number[text] for text in texts], dtype=np.int64)


def types_of(states: HiddenStates) -> tuple[tuple[str, ...], Int32Array]:
    """Return the distinct words, in alphabetical order, and which of them each unit is."""
    keys = {word: word_key(word) for word in set(states.words)}
    types, names = pd.factorize(pd.Series(states.words, dtype=object).map(keys), sort=True)
    return tuple(names), types.astype(np.int32)


def by_text(states: HiddenStates, rows: Int64Array) -> list[int]:
    """Return the places of units ordered by the contents of their texts, whatever their rows."""
    texts = [states.texts[text] for text in states.of_text[rows]]
    return sorted(range(len(rows)), key=lambda i: (texts[i], states.position[rows[i]], rows[i]))


def refuse_texts(states: HiddenStates) -> None:
    """Refuse what are no hidden states, and states that have one vector for each text."""
    check_states(states)
    if states.unit == "text":
        raise InputError("states", "states of words or tokens", found="states of texts")


def checked_words(words: Any) -> list[str]:
    """Return one or several words as a list, or refuse them."""
    several = [words] if isinstance(words, str) or not hasattr(words, "__len__") else list(words)
    if not several or not all(isinstance(one, str) and one.strip() for one in several):
        raise InputError("word", "a word, or a list of words", words)
    return several


def find_rows(states: HiddenStates, words: Sequence[str]) -> Int64Array:
    """Return all units that are one of some words, those without a vector included."""
    refuse_texts(states)
    keys = {word_key(word.strip()) for word in words}
    spellings = {one for one in set(states.words) if word_key(one) in keys}
    if not spellings:
        remedy = similar_words(states.words, words[0])
        raise InputError("word", "a word of the texts", words[0], remedy)
    return np.flatnonzero(np.fromiter((w in spellings for w in states.words), bool, len(states)))


def rows_of_word(states: HiddenStates, word: Any) -> Int64Array:
    """Return the units that are a word and have a vector."""
    rows = find_rows(states, checked_words(word))
    present = rows[~states.missing[rows]]
    if not len(present):
        raise InputError("word", "a word with a token", word)
    return present


def _find_use(states: HiddenStates, word: str, in_text: Any, occurrence: Any) -> int:
    rows = rows_of_word(states, word)
    if in_text is not None:
        texts = states.of_text[rows]
        if in_text not in texts:
            listed = ", ".join(map(str, np.unique(texts)[:LISTED]))
            raise InputError("in_text", f"a text with {word!r}, such as {listed}", in_text)
        rows = rows[texts == in_text]
    number = 0 if occurrence is None and len(rows) == 1 else occurrence
    if not is_count(number, 0) or number >= len(rows):
        expected = f"from 0 to {len(rows) - 1}, one of the uses of {word!r}"
        raise InputError("occurrence", expected, occurrence, f"they are {_listed(states, rows)}")
    return int(rows[number])


def uses_at(states: HiddenStates, rows: Iterable[int]) -> pd.DataFrame:
    """Return uses of words with their sentences, a row each, with the columns of `WORD_USES`."""
    return make_table([_use_at(states, int(row)) for row in rows], WORD_USES)


def _use_at(states: HiddenStates, row: int) -> dict[str, Any]:
    """Return a use of a word with its sentence, which ends where the next of the text begins."""
    text = int(states.of_text[row])
    whole = states.texts[text]
    begin, end = (int(bound) for bound in states.spans[row])
    in_text, number = states.rows_of(text), states.sentences[row]
    first, last = np.searchsorted(states.sentences, [number, number + 1])
    # Marks before the first unit of a text and after its last belong to the sentence too.
    start = 0 if first == in_text.start else int(states.spans[first, 0])
    stop = len(whole) if last == in_text.stop else int(states.spans[last, 0])
    start, stop = min(start, begin), max(stop, end)
    sentence = whole[start:stop]
    start += len(sentence) - len(sentence.lstrip())
    return {
        "row": row,
        "text": text,
        "position": int(states.position[row]),
        "word": states.words[row],
        "start": begin,
        "end": end,
        "sentence": sentence.strip(),
        "offset": begin - start,
    }


def _listed(states: HiddenStates, rows: Int64Array) -> str:
    """Return uses with text, position and sentence, for a message."""
    shown = []
    for number, row in enumerate(rows[:LISTED].tolist()):
        use = _use_at(states, row)
        place = f"text {use['text']}, position {use['position']}"
        shown.append(f"{number} ({place}: {excerpt(use['sentence'], 70)!r})")
    more = [f"and {len(rows) - LISTED} more"] if len(rows) > LISTED else []
    return ", ".join(shown + more)


def similar_words(words: Iterable[str], word: str) -> str:
    """Return words with a similar spelling, as the remedy of a message."""
    key = word_key(word.strip())
    if " " in key:
        return "give a single word"
    # Comparing with every word would take seconds; a misspelling changes few letters.
    names = sorted({word_key(one) for one in set(words) if abs(len(one) - len(key)) <= 2})
    close = difflib.get_close_matches(key, names, n=SUGGESTED, cutoff=0.6)
    if close:
        return f"similar words are {', '.join(map(repr, close))}"
    return "see the words of the texts"


def word_neighbors(
    states: HiddenStates,
    word: str,
    *,
    in_text: int | None = None,
    occurrence: int | None = None,
    layer: int = -1,
    k: int = 10,
    candidates: str = "all",
) -> WordNeighbors:
    """Find the uses of words nearest to one use of a word.

    The search is exact, by cosine, over all units of the layer outside the same text and texts
    equal to it.

    Parameters
    ----------
    states : HiddenStates
        States of words or tokens.
    word : str
    in_text : int, optional
        Number of the text of the use; optional if the word occurs once.
    occurrence : int, optional
        Number of the use in that text, or in all texts, from 0; optional if there is one use.
    layer : int
        Negative numbers count from the last.
    k : int
    candidates : {"all", "same word", "other words"}
        Uses that may be neighbors: those of all words, of this word, or of all other words.

    Returns
    -------
    WordNeighbors

    Raises
    ------
    InputError
        If the word does not occur (the error names similar words), if it has several uses (the
        error lists them), or if the layer does not exist.

    References
    ----------
    Peters et al. (2018), "Deep contextualized word representations", table 4.

    Examples
    --------
    >>> import embedtopics as et
    >>> texts = ["They play chess.", "A play in two acts.", "The band will play."]
    >>> states = et.probing.hidden_states("all-MiniLM-L6-v2", texts, show_progress=False)
    >>> near = et.probing.word_neighbors(states, "play", in_text=0, k=2, candidates="same word")
    >>> sorted(near.to_frame()["text"])
    [1, 2]
    """
    refuse_texts(states)
    checked_count(k, "k")
    checked_choice(candidates, "candidates", CANDIDATES)
    row = _find_use(states, word, in_text, occurrence)
    space = open_space(states, layer)
    wording = states.texts[states.of_text[row]]
    is_other = np.array([text != wording for text in states.texts], dtype=bool)
    allowed = ~states.missing & is_other[states.of_text]
    if candidates != "all":
        names, types = types_of(states)
        is_word = types == names.index(word_key(states.words[row]))
        allowed &= is_word if candidates == "same word" else ~is_word
    rows, similarities = _nearest(states, space, row, allowed, k)
    return WordNeighbors(
        query=uses_at(states, [row]).iloc[0],
        uses=uses_at(states, rows),
        similarities=similarities,
        layer=space.layer,
        encoder=states.encoder,
        decisions=states.decisions,
    )


def _nearest(
    states: HiddenStates, space: Space, row: int, allowed: BoolArray, k: int
) -> tuple[Int64Array, Float64Array]:
    """Return the k nearest allowed units; ties by text and position."""
    [query], rows = space.unit(np.array([row])), np.flatnonzero(allowed)
    rough = np.empty(len(rows), dtype=np.float32)
    for part in blocks(len(rows)):
        vectors = space.unit(rows[part], np.float32)
        rough[part] = np.einsum("ij,j->i", vectors, query.astype(np.float32))
    if len(rows) > k:
        rows = rows[rough >= np.partition(rough, -k)[-k] - SLACK]
    cosines = np.einsum("ij,j->i", space.unit(rows), query)
    ordered = np.array(by_text(states, rows), dtype=np.int64)
    order = ordered[np.argsort(-cosines[ordered], kind="stable")][:k]
    return rows[order], cosines[order]


MOST_USES = 1000

SAME = 1e-12
"""Variance of unit vectors below which all uses are one point; half precision rounds at 1e-7."""


def word_map(states: HiddenStates, word: str | Sequence[str]) -> WordMap:
    """Project all uses of a word onto a plane at each layer.

    Of more than 1,000 uses, those that are shown are drawn at random. The normalized
    vectors of a layer are projected onto their first two principal components. Each map is then
    rotated or reflected, without scaling, to fit the map of the next layer (orthogonal Procrustes).
    A second, joint plane shows the paths of the uses through the layers: the first two principal
    components of the vectors of all layers, each layer centred. The axes have no meaning.

    Parameters
    ----------
    states : HiddenStates
        States of words or tokens.
    word : str or sequence of str
        Case is ignored. Inflected forms are different words; pass them in a list:
        ``["play", "plays", "played"]``.

    Returns
    -------
    WordMap

    Raises
    ------
    InputError
        If the word does not occur or has no vector.

    Examples
    --------
    >>> import embedtopics as et
    >>> texts = ["They play chess.", "A play in two acts.", "The band will play."]
    >>> states = et.probing.hidden_states("all-MiniLM-L6-v2", texts, show_progress=False)
    >>> uses = et.probing.word_map(states, "play")
    >>> uses
    WordMap('play': 3 uses on 7 layers, all-MiniLM-L6-v2)
    >>> list(uses.to_frame())
    ['layer', 'use', 'x', 'y', 'text', 'word', 'sentence']
    """
    refuse_texts(states)
    words = checked_words(word)
    every, rows = find_rows(states, words), rows_of_word(states, words)
    message = "uses have no token, and so no vector, and are left out."
    decisions = counted("probing", "missing", len(every) - len(rows), message)
    if len(rows) > MOST_USES:
        message = f"{MOST_USES:,} of {len(rows):,} uses are shown, drawn at random."
        decisions.append(Decision("probing", "sampled", MOST_USES, message))
        drawn = np.random.default_rng(0).choice(len(rows), MOST_USES, replace=False)
        rows = np.sort(rows[by_text(states, rows)][drawn])
    # Sums of floating-point numbers depend on the order; that of the texts must not show.
    order = np.array(by_text(states, rows))
    vectors = [open_space(states, layer).unit(rows[order]) for layer in states.layers]
    coordinates, joint, explained, jointly = _planes(vectors)
    back = np.argsort(order)
    return WordMap(
        word=", ".join(words),
        uses=uses_at(states, rows),
        n_texts=len(states.texts),
        layers=states.layers,
        coordinates=coordinates[:, back],
        joint=joint[:, back],
        explained_variance=explained,
        joint_explained_variance=jointly,
        similarity=np.array([_similarity(one) for one in vectors]),
        encoder=states.encoder,
        decisions=tuple(decisions),
    )


def _similarity(vectors: Float64Array) -> float:
    """Return the mean cosine of two different uses, from the length of the sum of their vectors."""
    n = len(vectors)
    if n < 2:
        return float("nan")
    alone = np.square(vectors).sum()
    return float((np.square(vectors.sum(axis=0)).sum() - alone) / (n * (n - 1)))


def _planes(
    vectors: Sequence[Float64Array],
) -> tuple[Float64Array, Float64Array, Float64Array, Float64Array]:
    """Return the coordinates on each layer's plane and on the joint one, and their variances."""
    with one_blas_thread():
        centred = [one - one.mean(axis=0) for one in vectors]
        totals = np.array([np.square(one).sum() for one in centred])
        is_flat = totals <= SAME * len(vectors[0])
        for layer in np.flatnonzero(is_flat):
            centred[layer] = np.zeros_like(centred[layer])
        coordinates = np.array([one @ _principal_axes(one) for one in centred])
        plane = _principal_axes(np.concatenate(centred))
        joint = np.array([one @ plane for one in centred])
    # The last layer is the anchor: the first ones often show no more than the position.
    for place in range(len(coordinates) - 2, -1, -1):
        rotation, _ = orthogonal_procrustes(coordinates[place], coordinates[place + 1])
        coordinates[place] = coordinates[place] @ rotation
    joint = joint @ orthogonal_procrustes(joint[-1], coordinates[-1])[0]
    totals = np.where(is_flat, np.nan, totals)
    explained, jointly = (
        np.square(places).sum(axis=(1, 2)) / totals for places in (coordinates, joint)
    )
    return coordinates, joint, explained, jointly


def _principal_axes(centred: Float64Array) -> Float64Array:
    """Return the first two right singular vectors, (width, 2); the largest weights are positive."""
    n, width = centred.shape
    axes = np.zeros((width, 2))
    by_rows = n < width
    product = centred @ centred.T if by_rows else centred.T @ centred
    values, vectors = np.linalg.eigh(product)
    for place, which in enumerate(range(len(values) - 1, max(len(values) - 3, -1), -1)):
        if values[which] <= 1e-10 * values[-1] or values[which] <= 0:
            break  # the uses lie on a line, or are one point
        axis = centred.T @ vectors[:, which] if by_rows else vectors[:, which]
        axis = axis / np.sqrt(np.square(axis).sum())
        largest = int(np.argmax(np.round(np.abs(axis), 9)))
        axes[:, place] = axis * np.sign(axis[largest])
    return axes


QUERIES_AT_ONCE = 1024


def sense_separation(states: HiddenStates, word: str, labels: Sequence[str]) -> SenseSeparation:
    """Measure how well each layer separates labelled senses of a word.

    "1-NN accuracy" assigns each use the sense of the nearest other use of the word, outside of its
    text and texts with the same wording. "silhouette" is the mean silhouette of the senses by
    cosine. "majority" is the share of the most frequent sense, a baseline for the accuracy.

    Parameters
    ----------
    states : HiddenStates
        States of words or tokens.
    word : str
    labels : sequence of str
        The sense of each use in order; uses with "", None or NaN are left out.

    Returns
    -------
    SenseSeparation

    Raises
    ------
    InputError
        If labels and uses do not match, or there are not two senses in at least two texts.

    References
    ----------
    Loureiro et al. (2021), "Analysis and evaluation of language models for word sense
    disambiguation", sections 4 and 5. Rousseeuw (1987), "Silhouettes".

    Examples
    --------
    >>> import embedtopics as et
    >>> texts = [
    ...     "They play chess and win.",
    ...     "They play football and win.",
    ...     "A sad play in two acts.",
    ...     "A funny play in three acts.",
    ... ]
    >>> states = et.probing.hidden_states("all-MiniLM-L6-v2", texts, show_progress=False)
    >>> scores = et.probing.sense_separation(states, "play", ["game", "game", "stage", "stage"])
    >>> table = scores.to_frame()
    >>> table[(table["measure"] == "1-NN accuracy") & (table["layer"] == 6)]["value"].item()
    1.0
    """
    refuse_texts(states)
    rows = rows_of_word(states, word)
    if len(labels) != len(rows):
        raise InputError("labels", f"a sense for each of the {len(rows)} uses", labels)
    senses = np.array(["" if is_missing(label) else str(label) for label in labels])
    labelled = np.flatnonzero(senses != "")
    message = f"of {len(rows)} uses without a sense were left out."
    decisions = counted("probing", "uses_left_out", len(rows) - len(labelled), message)
    order = labelled[by_text(states, rows[labelled])]
    uses = rows[order]
    names, classes = np.unique(senses[order], return_inverse=True)
    texts = numbered([states.texts[text] for text in states.of_text[uses]])
    if len(names) < 2 or texts.max() < 1:
        raise InputError("labels", "of two senses or more, in at least two texts")
    most_frequent = np.bincount(classes).argmax()
    columns: dict[tuple[str, int | None], Float64Array] = {
        ("majority", None): (classes == most_frequent).astype(np.float64)
    }
    with one_blas_thread():
        for number in states.layers:
            vectors = open_space(states, number).unit(uses)
            is_right = classes[_nearest_elsewhere(vectors, texts)] == classes
            columns["1-NN accuracy", number] = is_right.astype(np.float64)
            columns["silhouette", number] = silhouettes(vectors, classes)
    # The means, then those over resampled texts.
    n_texts = int(texts.max()) + 1
    by_text_sums = np.zeros((n_texts, len(columns) + 1))
    np.add.at(by_text_sums, texts, np.stack([*columns.values(), np.ones(len(uses))], axis=1))
    resampled = resampled_sums(by_text_sums)
    sums = np.concatenate([by_text_sums.sum(axis=0)[None], resampled])
    drawn = sums[:, :-1] / sums[:, -1:]
    least = np.array([-1.0 if measure == "silhouette" else 0.0 for measure, _ in columns])
    low, high = bounded_interval(drawn[0], drawn[1:], n_texts, bounds=(least, 1.0))
    scores = [
        {
            "measure": measure,
            "layer": layer,
            "value": drawn[0, i],
            "low": low[i],
            "high": high[i],
            "n": len(uses),
        }
        for i, (measure, layer) in enumerate(columns)
    ]
    return SenseSeparation(
        table=make_table(scores, LAYER_MEASURES),
        encoder=states.encoder,
        word=word_key(word.strip()),
        decisions=(*states.decisions, *decisions),
    )


def _nearest_elsewhere(vectors: Float64Array, texts: npt.NDArray[Any]) -> Int64Array:
    """Return the place of the nearest use in another text; of equal ones the first."""
    nearest = np.empty(len(vectors), dtype=np.int64)
    for part in blocks(len(vectors), QUERIES_AT_ONCE):
        cosines = vectors[part] @ vectors.T
        cosines[texts[part][:, None] == texts] = -np.inf
        nearest[part] = cosines.argmax(axis=1)
    return nearest
