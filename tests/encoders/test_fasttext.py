import os
import subprocess
import sys

import pytest

from embedtopics.encoders import FastTextEncoder
from tests.encoders.test_words import TEXTS


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
        "from embedtopics.encoders import FastTextEncoder, TfidfEncoder, RandomProjectionEncoder\n"
        f"texts = {TEXTS!r}\n"
        "print(FastTextEncoder(dimensions=8, epochs=2).fit(texts).fingerprint)\n"
        "print(TfidfEncoder(3).fit(texts).fingerprint)\n"
        "print(RandomProjectionEncoder(8).encode(texts).tobytes().hex())\n"
    )
    outputs = [
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    ]  # fmt: skip
    assert outputs[0] == outputs[1] and len(outputs[0].split()) == 3


def test_size_of_the_corpus_sets_epochs_and_dimensions():
    encoder = FastTextEncoder()
    assert [encoder.epochs_for(n) for n in (10, 300_000, 1_000_000, 10**8)] == [50, 14, 5, 5]
    assert FastTextEncoder(epochs=3).epochs_for(10) == 3
    assert FastTextEncoder(epochs=1).fit(TEXTS).dimensions == 50
