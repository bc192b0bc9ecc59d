"""What holds for every encoder of words: settings, odd texts, batches, the order of the texts."""

import hashlib
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import issparse
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer

from embedtopics.encoders import (
    CachedEncoder,
    FastTextEncoder,
    RandomProjectionEncoder,
    TfidfEncoder,
)
from embedtopics.encoders._registry import encoder_from_settings
from embedtopics.errors import InputError
from tests.factories import refuses

TEXTS = [
    "cold water and ice on the lake", "ice and snow on the mountain", "the snow is cold",
    "hot coffee and tea in the kitchen", "tea is hot in the cup", "the kitchen and the cup",
] * 4  # fmt: skip
SMALL = {"dimensions": 8, "epochs": 2}
MAKERS = {
    "tfidf": lambda: TfidfEncoder(stop_words=[]),
    "lsa": lambda: TfidfEncoder(3, stop_words=[]),
    "fasttext": lambda: FastTextEncoder(**SMALL),
    "random": lambda: RandomProjectionEncoder(64),
}


def encoded(encoder, texts):
    found = encoder.encode(texts)
    return found.toarray() if issparse(found) else found


@pytest.mark.parametrize("name", MAKERS)
def test_neither_the_batch_nor_odd_texts_do_harm(name):
    encoder = MAKERS[name]().fit(TEXTS)
    texts = [*TEXTS[:6], "icy kitchens", "", "   ", "...", "\ud800", "\0", "ice " * 200_000]
    together, report = encoded(encoder, texts), encoder.encode_with_report(texts)
    np.testing.assert_array_equal(together, np.vstack([encoded(encoder, [t]) for t in texts]))
    np.testing.assert_array_equal(encoded(encoder, texts[::-1]), together[::-1])
    lengths = np.delete(np.linalg.norm(together, axis=1), 6)
    np.testing.assert_allclose(lengths, [1] * 6 + [0] * 5 + [1], atol=1e-6)
    assert report.n_tokens.tolist() == [7, 6, 4, 7, 6, 5, 2, 0, 0, 0, 0, 0, 200_000]
    assert report.n_unknown.tolist() == [0] * 6 + [0 if name == "random" else 2] + [0] * 6
    counted = encoder.count_tokens(texts)
    for counts in ("n_tokens", "n_seen", "n_unknown"):
        np.testing.assert_array_equal(getattr(counted, counts), getattr(report, counts))
    assert counted.embeddings.shape == (len(texts), 0)
    assert encoder.encode([]).shape == (0, encoder.dimensions)


@settings(max_examples=5, deadline=None)
@given(order=st.permutations(range(len(TEXTS))))
def test_what_is_learned_does_not_depend_on_the_order_of_the_texts(order):
    for make in MAKERS.values():
        one, other = make().fit(TEXTS), make().fit([TEXTS[i] for i in order])
        assert one.fingerprint == other.fingerprint
        np.testing.assert_array_equal(encoded(one, TEXTS[:6]), encoded(other, TEXTS[:6]))


@pytest.mark.parametrize(
    ("encoder", "others"),
    [
        (TfidfEncoder(2, stop_words=["the"], ngram_range=(1, 2)),
         [{"n_components": 3}, {"stop_words": []}, {"ngram_range": (1, 1)}]),
        (FastTextEncoder(dimensions=8, epochs=2), [{"random_state": 1}, {"epochs": 3}]),
        (RandomProjectionEncoder(16, random_state=2), [{"dimensions": 8}, {"random_state": 0}]),
    ],
)  # fmt: skip
def test_settings_make_it_again(encoder, others):
    again = encoder_from_settings(encoder.settings)
    assert again.settings == encoder.settings and again.is_fitted == encoder.is_fitted
    prints = {encoder.fit(TEXTS).fingerprint}
    assert again.fit(TEXTS).fingerprint in prints
    for other in others:
        prints.add(encoder_from_settings(encoder.settings | other).fit(TEXTS).fingerprint)
    assert len(prints) == 1 + len(others)


@pytest.mark.parametrize("encoder", [TfidfEncoder(), FastTextEncoder()])
def test_what_needs_texts_says_so_before_the_fit(encoder):
    for ask in (
        lambda: encoder.dimensions, lambda: encoder.encode(TEXTS),
        lambda: encoder.count_tokens(TEXTS),
    ):  # fmt: skip
        with pytest.raises(NotFittedError, match=r"Encoder .* call fit\(texts\) first"):
            ask()
    with pytest.raises(InputError, match="fingerprint"):
        CachedEncoder(encoder)


@pytest.mark.parametrize(
    ("kind", "parameters", "texts", "parameter"),
    [
        (TfidfEncoder, {"n_components": 0}, TEXTS, "n_components"),
        (TfidfEncoder, {"stop_words": "english"}, TEXTS, "stop_words"),
        (TfidfEncoder, {"ngram_range": (2, 1)}, TEXTS, "ngram_range"),
        (TfidfEncoder, {}, [], "texts"), (TfidfEncoder, {}, "one text", "texts"),
        (TfidfEncoder, {}, ["a text", None], "texts"), (TfidfEncoder, {}, ["...", "12"], "texts"),
        (FastTextEncoder, {"dimensions": 0}, TEXTS, "dimensions"),
        (FastTextEncoder, {"epochs": 1.5}, TEXTS, "epochs"), (FastTextEncoder, {}, [], "texts"),
        (FastTextEncoder, {}, ["all words once", ""], "texts"),
        (RandomProjectionEncoder, {"dimensions": 0}, TEXTS, "dimensions"),
    ],
)  # fmt: skip
def test_bad_input_is_refused(kind, parameters, texts, parameter):
    with refuses(parameter):
        kind(**parameters).fit(texts)


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


def test_words_share_the_vectors_of_their_parts():
    encoder = FastTextEncoder(dimensions=8, epochs=2).fit(TEXTS)
    # "kitchens" is in no text; its n-grams that are in "kitchen" are.
    word, new = encoder.encode(["kitchen", "kitchens"])
    assert new @ word > 0.5


def test_no_word_of_a_long_text_is_left_out_of_training(monkeypatch):
    import gensim.models

    seen = []

    class Spy(Exception):
        pass

    def look(sentences, **parameters):
        seen.extend([list(sentences), list(sentences)])
        raise Spy

    monkeypatch.setattr(gensim.models, "FastText", look)
    text = " ".join(f"w{i % 7} end{i}" for i in range(12_000))
    with pytest.raises(Spy):
        FastTextEncoder().fit([text, "w1 w2"])
    assert seen[0] == seen[1]
    assert [len(sentence) for sentence in seen[0]] == [10_000, 10_000, 4_000, 2]
    assert [word for sentence in seen[0][:3] for word in sentence] == text.split()


@pytest.mark.slow
def test_every_process_learns_the_same():
    code = (
        "from tests.encoders.test_words import MAKERS, TEXTS\n"
        "for make in MAKERS.values(): print(make().fit(TEXTS).fingerprint)\n"
        "print(MAKERS['random']().encode(TEXTS).tobytes().hex())\n"
    )
    outputs = [
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    ]  # fmt: skip
    assert outputs[0] == outputs[1] and len(outputs[0].split()) == 5


def test_size_of_the_corpus_sets_epochs_and_dimensions():
    encoder = FastTextEncoder()
    assert [encoder.epochs_for(n) for n in (10, 300_000, 1_000_000, 10**8)] == [50, 14, 5, 5]
    assert FastTextEncoder(epochs=3).epochs_for(10) == 3
    assert FastTextEncoder(epochs=1).fit(TEXTS).dimensions == 50
