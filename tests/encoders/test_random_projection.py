import hashlib

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer

from embedtopics.encoders import RandomProjectionEncoder


def test_a_word_is_the_signs_of_its_hash():
    bits = np.unpackbits(np.frombuffer(hashlib.shake_128(b"3:cat").digest(2), np.uint8))[:12]
    expected = (2.0 * bits - 1) / np.sqrt(12)
    found = RandomProjectionEncoder(12, random_state=3).encode(["Cat", "cat cat cat"])
    np.testing.assert_allclose(found, [expected, expected], atol=1e-7)


def test_cosines_are_kept_on_average():
    rng = np.random.default_rng(1)
    words = np.array([f"w{a}{b}" for a in "abcdefgh" for b in "abcdefgh"])
    chances = rng.dirichlet(np.full(len(words), 0.3), size=40)
    texts = [" ".join(rng.choice(words, 80, p=p)) for p in chances]
    counts = CountVectorizer().fit_transform(texts).toarray().astype(float)
    counts /= np.linalg.norm(counts, axis=1, keepdims=True)
    pairs = np.triu_indices(len(texts), 1)
    true = (counts @ counts.T)[pairs]
    errors = []
    for seed in range(30):
        found = RandomProjectionEncoder(64, random_state=seed).encode(texts)
        errors.append((found @ found.T)[pairs] - true)
    spread = np.std(errors)
    # Of the order of 1 / sqrt(64), and no pair is drawn to one side.
    assert 0.5 / np.sqrt(64) < spread < np.sqrt(2 / 64)
    assert abs(np.mean(errors)) < 0.1 / np.sqrt(64)
    wide = RandomProjectionEncoder(4096).encode(texts)
    assert np.abs((wide @ wide.T)[pairs] - true).max() < 6 * np.sqrt(2 / 4096)
