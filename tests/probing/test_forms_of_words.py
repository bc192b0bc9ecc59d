"""Word types of a probe are words as the encoder reads them."""

import json

import numpy as np
import pytest
from tokenizers import Tokenizer, models, normalizers

from embedtopics.probing import hidden_states, probe
from embedtopics.probing._extract import forms_of
from embedtopics.probing.probes._scores import control_target
from embedtopics.probing.probes._units import label_units
from tests.probing.made import made_states, rows_of

WORDS = ["Cat", "cat", "CAFÉ", "cafe", "dog", "ﬁre", "fire"]


def tokenizer_with(normalizer):
    tokenizer = Tokenizer(models.WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    return tokenizer


@pytest.mark.parametrize(
    ("normalizer", "n_types"),
    [
        (None, 7),
        (normalizers.Lowercase(), 6),
        (normalizers.BertNormalizer(lowercase=True), 5),
        (normalizers.BertNormalizer(lowercase=False, strip_accents=False), 7),
        (normalizers.NFKC(), 6),
        (normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()]), 5),
        (normalizers.Prepend("\u2581"), 7),
    ],
)
def test_words_of_one_form_are_one_type(normalizer, n_types):
    forms = forms_of(tokenizer_with(normalizer), WORDS)
    assert len({forms.get(word, word) for word in WORDS}) == n_types
    assert all(word != form for word, form in forms.items())


def test_the_baseline_and_the_control_know_a_word_in_capitals(tiny_bert, tmp_path):
    """Every test word is a capitalized word of the train part: its type and control are known."""
    train = ["cat sat", "dog ran", "mat sat", "red ran"] * 3
    test = ["Cat Ran", "DOG sat", "Mat RAN"]
    texts = [f"{text} blue" for text in train] + [f"{text} Blue" for text in test]
    tags = {"cat": "N", "dog": "N", "mat": "N", "red": "A", "blue": "A", "sat": "V", "ran": "V"}
    labels = [[tags[word.lower()] for word in text.split()] for text in texts]

    states = hidden_states(tiny_bert, texts, dtype="float32", out=tmp_path / "states",
                           show_progress=False)  # fmt: skip
    units = label_units(states, labels, 0)

    assert set(units.types) == set(tags)
    counts = np.bincount(units.target)
    drawn = control_target(units.types, counts, 0)
    assert all(len(set(drawn[np.array(units.types) == one].tolist())) == 1 for one in tags)
    scores = probe(states, labels, control=True, show_progress=False)
    assert rows_of(scores, what="word type", metric="accuracy")[0].value == 1.0

    # A folder without forms, as before they were recorded, gets them from the tokenizer.
    about = tmp_path / "states" / "about.json"
    recorded = json.loads(about.read_text())
    assert recorded["forms"] == dict(states.forms) and recorded["forms"]["Cat"] == "cat"
    again = hidden_states(tiny_bert, texts, dtype="float32", out=tmp_path / "states",
                          show_progress=False)  # fmt: skip
    assert again.forms == states.forms


def test_states_without_a_tokenizer_keep_case():
    texts = [f"Cat cat dog Dog w{row}" for row in range(12)]
    states = made_states(texts, np.zeros((1, 60, 2)))
    units = label_units(states, ["a", "b", "a", "b", ""] * 12, 0)
    assert {"Cat", "cat", "Dog", "dog"} == set(units.types)
