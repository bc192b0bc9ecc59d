"""States and labels that a probe can learn, or cannot."""

import numpy as np

from tests.probing.made import made_states

TAGS = ("ADJ", "NOUN", "VERB")


def tagged_states(n_texts=120, width=8, *, n_words=6, seed=0, signals=(0.0, 1.0, 3.0), **others):
    """States whose layer i tells a word's tag by so much signal, and the tags, text by text."""
    rng = np.random.default_rng(seed)
    texts = [" ".join(f"w{n}" for n in rng.integers(0, 90, n_words)) + f" e{i}"
             for i, _ in enumerate(range(n_texts))]  # fmt: skip
    tags = [rng.choice(TAGS, n_words + 1, p=[0.2, 0.5, 0.3]).tolist() for _ in texts]
    flat = np.array([TAGS.index(tag) for own in tags for tag in own])
    centres = rng.normal(size=(len(TAGS), width))
    noise = rng.normal(size=(len(signals), len(flat), width))
    vectors = [signal * centres[flat] + one for signal, one in zip(signals, noise, strict=True)]
    return made_states(texts, vectors, **others), tags
