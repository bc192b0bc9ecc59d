"""Hidden states made by hand, for tests of everything that reads them."""

import numpy as np

from embedtopics.probing.results import HiddenStates


def made_states(texts, vectors, *, missing=(), encoder="made", unit="word"):
    """States of texts that are split at blanks; `vectors` has shape (n_layers, n_words, width)."""
    words = [text.split() for text in texts]
    of_text = np.repeat(np.arange(len(texts)), [len(w) for w in words]).astype(np.int32)
    position = np.concatenate([np.arange(len(w)) for w in words]).astype(np.int32)
    spans = []
    for text, own in zip(texts, words, strict=True):
        begin = 0
        for word in own:
            begin = text.index(word, begin)
            spans.append((begin, begin + len(word)))
            begin += len(word)
    n_pieces = np.ones(len(of_text), dtype=np.int32)
    n_pieces[list(missing)] = 0
    layers = [np.array(one, dtype=np.float16) for one in vectors]
    for layer in layers:
        layer[list(missing)] = 0
    return HiddenStates(
        texts=tuple(texts), words=tuple(w for own in words for w in own),
        layers=tuple(range(len(layers))), vectors=tuple(layers), of_text=of_text,
        position=position, sentences=of_text.copy(), spans=np.array(spans, dtype=np.int32),
        n_pieces=n_pieces, unit=unit, encoder=encoder, fingerprint=encoder,
    )  # fmt: skip


def random_states(texts, *, n_layers=3, width=4, seed=0, **others):
    """The same with random vectors."""
    n = sum(len(text.split()) for text in texts)
    vectors = np.random.default_rng(seed).normal(size=(n_layers, n, width))
    return made_states(texts, vectors, **others)


def unit(rows):
    """Vectors of length one."""
    rows = np.asarray(rows, dtype=np.float64)
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


def reordered(states, order=None):
    """The same states with their texts in another order, and that order."""
    n = len(states.texts)
    order = np.random.default_rng(1).permutation(n).tolist() if order is None else list(order)
    rows = np.concatenate([np.arange(len(states))[states.rows_of(text)] for text in order])
    texts = [states.texts[text] for text in order]
    return made_states(texts, [layer[rows] for layer in states.vectors]), order


def rows_of(result, **conditions):
    """The rows of a result's table with some values, one tuple with named fields a row."""
    table = result.to_frame()
    for name, value in conditions.items():
        table = table[table[name] == value]
    return list(table.itertuples(index=False))
