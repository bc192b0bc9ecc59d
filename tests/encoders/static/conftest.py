"""A teacher by formula: what its vectors mean is known, and it costs nothing."""

import numpy as np
import pytest

from embedtopics.encoders.static import _student, _student_table

N_WORDS, WIDTH = 60, 12


class FormulaTeacher:
    """The mean of word vectors, but for what a distilled table cannot know.

    Filler words count for nothing beside others, and "w0 w1" means something else than its words.
    """

    name = "formula"
    fingerprint = "formula-1"
    max_length = 64

    def __init__(self):
        from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

        names = ["[UNK]", *(f"w{number}" for number in range(N_WORDS))]
        model = models.WordPiece({name: i for i, name in enumerate(names)}, unk_token="[UNK]")
        tokenizer = Tokenizer(model)
        tokenizer.normalizer = normalizers.BertNormalizer()
        tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        self.tokenizer_json = tokenizer.to_str()
        rng = np.random.default_rng(3)
        self.vectors = rng.normal(size=(N_WORDS, WIDTH))
        self.phrase = rng.normal(size=WIDTH) * 2

    def encode(self, texts, *, show_progress=None):
        rows = []
        for text in texts:
            total, rest = np.zeros(WIDTH), text.lower()
            if "w0 w1" in rest:
                total, rest = total + self.phrase, rest.replace("w0 w1", "")
            words = [int(word[1:]) for word in rest.split() if word[1:].isdigit()]
            heavy = [word for word in words if word < 50] or words
            rows.append(total + sum((self.vectors[word] for word in heavy), np.zeros(WIDTH)))
        rows = np.array(rows, dtype=np.float64).reshape(len(rows), WIDTH)
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        return (rows / np.where(lengths > 0, lengths, 1)).astype(np.float32)


def write_texts(n, seed):
    rng = np.random.default_rng(seed)
    texts = []
    for _ in range(n):
        words = [f"w{i}" for i in rng.integers(2, N_WORDS, rng.integers(4, 9))]
        if rng.random() < 0.4:
            words.insert(int(rng.integers(len(words))), "w0 w1")
        texts.append(" ".join(words))
    return texts


@pytest.fixture(scope="session")
def teacher():
    return FormulaTeacher()


@pytest.fixture(scope="session")
def corpus_texts():
    return write_texts(1500, seed=1)


@pytest.fixture(scope="session")
def new_texts():
    return write_texts(300, seed=2)


@pytest.fixture(scope="module", autouse=True)
def only_one_phrase():
    """Of three words, none is frequent enough to be a phrase."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_student, "MIN_PHRASE_COUNT", 20)
        yield


@pytest.fixture
def few_steps(monkeypatch):
    """Let small corpora be read once."""
    monkeypatch.setattr(_student_table, "MIN_STEPS", 3)
