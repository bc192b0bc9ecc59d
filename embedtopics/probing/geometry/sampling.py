"""Uses of words in different contexts, drawn in an order that is that of their contents."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from embedtopics.errors import InputError
from embedtopics.probing.words.finding import types_of
from embedtopics.protocols import Int64Array
from embedtopics.results import HiddenStates

__all__ = [
    "Contexts", "DrawnUses", "contexts_of", "draw_sentences", "draw_uses", "in_one_sentence",
]  # fmt: skip


@dataclass(frozen=True, eq=False)
class Contexts:
    """The sentences, in an order that is that of their contents.

    Parameters
    ----------
    rank : int64 ndarray of shape (n_sentences,)
        Place of each sentence, as `HiddenStates.sentences` numbers them, in that order.
    content : int64 ndarray of shape (n_sentences,)
        Number of its wording: equal where sentences are.
    """

    rank: Int64Array
    content: Int64Array


@dataclass(frozen=True, eq=False)
class DrawnUses:
    """Uses of some words, those of a word together, no two of one word in equal sentences.

    Parameters
    ----------
    words : tuple of str
    rows : int64 ndarray of shape (n_uses,)
    starts : int64 ndarray of shape (n_words,)
        Where the uses of each word begin in `rows`.
    counts : int64 ndarray of shape (n_words,)
    n_able : int
        Words that could have been drawn.
    """

    words: tuple[str, ...]
    rows: Int64Array
    starts: Int64Array
    counts: Int64Array
    n_able: int


def contexts_of(states: HiddenStates) -> Contexts:
    """Return the order and the wordings of the sentences."""
    numbers, first = np.unique(states.sentences, return_index=True)
    texts = states.of_text[first]
    is_first = np.diff(texts, prepend=-1) > 0
    begins = np.where(is_first, 0, states.spans[first, 0])
    ends = [
        int(begins[i + 1]) if i + 1 < len(numbers) and texts[i + 1] == texts[i]
        else len(states.texts[texts[i]])
        for i in range(len(numbers))
    ]  # fmt: skip
    wordings = [
        states.texts[text][begin:end].strip()
        for text, begin, end in zip(texts.tolist(), begins.tolist(), ends, strict=True)
    ]
    order = sorted(range(len(numbers)), key=lambda i: (wordings[i], states.texts[texts[i]], i))
    names = {wording: number for number, wording in enumerate(sorted(set(wordings)))}
    size = int(numbers[-1]) + 1 if len(numbers) else 0
    rank, content = np.zeros(size, dtype=np.int64), np.full(size, -1, dtype=np.int64)
    rank[numbers[order]] = np.arange(len(numbers))
    content[numbers] = [names[wording] for wording in wordings]
    return Contexts(rank, content)


def draw_uses(
    states: HiddenStates, contexts: Contexts, *, min_uses: int, max_uses: int, n_words: int,
    match_case: bool, seed: int,
) -> DrawnUses:  # fmt: skip
    """Draw words that stand in enough different sentences, and uses of each.

    Raises
    ------
    InputError
        If fewer than two words do.
    """
    names, types = types_of(states, match_case)
    has_letter = np.array([any(c.isalpha() for c in name) for name in names], dtype=bool)
    rows = np.flatnonzero(~states.missing & has_letter[types])
    sentences = states.sentences[rows]
    order = np.lexsort((states.position[rows], contexts.rank[sentences], types[rows]))
    rows = rows[order]
    # Of uses in equal sentences the first; they are side by side.
    keys = np.stack([types[rows], contexts.content[states.sentences[rows]]])
    rows = rows[(np.diff(keys, axis=1, prepend=-1) != 0).any(axis=0)]
    counts = np.bincount(types[rows], minlength=len(names))
    able = np.flatnonzero(counts >= min_uses)
    if len(able) < 2:
        raise InputError(
            f"expected at least two words in {min_uses} different sentences each; got {len(able)} "
            f"among {len(names)} words: give more texts, or a lower min_uses"
        )
    rng = np.random.default_rng(seed)
    drawn = np.sort(rng.choice(able, min(n_words, len(able)), replace=False))
    begins = np.searchsorted(types[rows], drawn)
    kept = []
    for begin, count in zip(begins.tolist(), counts[drawn].tolist(), strict=True):
        chosen = np.arange(count)
        if count > max_uses:
            chosen = np.sort(rng.choice(count, max_uses, replace=False))
        kept.append(rows[begin + chosen])
    sizes = np.array([len(one) for one in kept], dtype=np.int64)
    return DrawnUses(
        tuple(names[i] for i in drawn.tolist()), np.concatenate(kept), np.cumsum(sizes) - sizes,
        sizes, len(able),
    )  # fmt: skip


def draw_sentences(
    states: HiddenStates, contexts: Contexts, n_sentences: int, seed: int
) -> list[Int64Array]:
    """Return the units of some different sentences, each of two units or more."""
    rows = np.flatnonzero(~states.missing)
    sentences = states.sentences[rows]
    numbers, starts, sizes = np.unique(sentences, return_index=True, return_counts=True)
    able = np.flatnonzero(sizes >= 2)
    able = able[np.argsort(contexts.rank[numbers[able]], kind="stable")]
    _, first = np.unique(contexts.content[numbers[able]], return_index=True)
    able = able[np.sort(first)]
    rng = np.random.default_rng([seed, 1])
    drawn = np.sort(rng.choice(len(able), min(n_sentences, len(able)), replace=False))
    return [
        rows[starts[i] : starts[i] + sizes[i]] for i in able[drawn].tolist()
    ]  # fmt: skip


def in_one_sentence(states: HiddenStates, rows: Int64Array) -> npt.NDArray[np.int64]:
    """Return all ordered pairs of different places in `rows` in the same sentence, shape (n, 2)."""
    order = np.argsort(states.sentences[rows], kind="stable")
    _, starts, sizes = np.unique(
        states.sentences[rows][order], return_index=True, return_counts=True
    )
    pairs = []
    for size in np.unique(sizes[sizes > 1]).tolist():
        places = order[starts[sizes == size][:, None] + np.arange(size)]
        one, other = np.nonzero(~np.eye(size, dtype=bool))
        pairs.append(np.stack([places[:, one].ravel(), places[:, other].ravel()], axis=1))
    return np.concatenate(pairs) if pairs else np.empty((0, 2), dtype=np.int64)
