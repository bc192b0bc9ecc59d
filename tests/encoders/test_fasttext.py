import os
import subprocess
import sys

import numpy as np
import pytest

from embedtopics.encoders import FastTextEncoder
from embedtopics.encoders.words._base import look_up
from tests.encoders.test_words import TEXTS

SMALL = {"dimensions": 8, "epochs": 2}


def test_words_have_gensims_vectors_and_share_those_of_their_parts(monkeypatch):
    import gensim.models

    made = []
    original = gensim.models.FastText

    def keep(*arguments, **parameters):
        made.append(original(*arguments, **parameters))
        return made[-1]

    monkeypatch.setattr(gensim.models, "FastText", keep)
    encoder = FastTextEncoder(**SMALL).fit(TEXTS)
    theirs = made[0].wv
    table = encoder._learned.table
    vectors, _, is_known = look_up(table, theirs.index_to_key)
    np.testing.assert_allclose(vectors, theirs[theirs.index_to_key], atol=1e-7)
    assert is_known.all()
    # "kitchens" was never met; its n-grams that are in "kitchen" were.
    theirs.vectors_ngrams = table.parts
    new, frequencies, is_known = look_up(table, ["kitchens", "zzzzz"])
    np.testing.assert_allclose(new[0], theirs["kitchens"], atol=1e-7)
    assert new[0].any() and not is_known.any() and not frequencies.any()
    cosine = new[0] @ theirs["kitchen"] / np.linalg.norm(new[0]) / np.linalg.norm(theirs["kitchen"])
    assert cosine > 0.5


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
    said = [
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    ]  # fmt: skip
    assert said[0] == said[1] and len(said[0].split()) == 3


def test_one_text_alone_has_nothing_but_the_common_direction():
    encoder = FastTextEncoder(**SMALL, min_count=1, remove_common=True).fit(["cold water"])
    assert not encoder.encode(["cold water"]).any()
    assert FastTextEncoder(**SMALL, min_count=1).fit(["cold water"]).encode(["cold water"]).any()


def test_size_of_the_corpus_sets_epochs_and_dimensions():
    encoder = FastTextEncoder()
    assert [encoder.epochs_for(n) for n in (10, 300_000, 1_000_000, 10**8)] == [50, 14, 5, 5]
    assert FastTextEncoder(epochs=3).epochs_for(10) == 3
    assert FastTextEncoder(epochs=1).fit(TEXTS).dimensions == 50


def test_several_workers_are_taken_where_vectors_need_not_be_the_same_twice():
    encoder = FastTextEncoder(**SMALL, reproducible=False, n_workers=2).fit(TEXTS)
    assert encoder.settings["n_workers"] == 2 and encoder.encode(TEXTS[:1]).shape == (1, 8)
