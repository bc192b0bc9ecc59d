"""Encoders whose vectors are known, and examples for them."""

import numpy as np

from embedtopics.training import Examples


def examples_of(kind, columns, labels=None, names=()):
    columns = tuple(map(tuple, columns))
    labels = None if labels is None else np.asarray(labels)
    rows = np.arange(len(columns[0]))
    return Examples(kind, columns, labels, rows, tuple(names), source=f"{kind} set")


def random_vectors(texts, seed, n_dimensions=8):
    rng = np.random.default_rng(seed)
    return {text: rng.normal(size=n_dimensions) for text in sorted(set(texts))}


def moved(vectors, size, seed):
    rng = np.random.default_rng(seed)
    return {text: row + size * rng.normal(size=row.shape) for text, row in vectors.items()}


def cosine(vectors, a, b):
    one, other = vectors[a], vectors[b]
    return one @ other / np.linalg.norm(one) / np.linalg.norm(other)
