"""A teacher by formula: what its vectors mean is known, and it costs nothing."""

import numpy as np
import pytest

N_WORDS, WIDTH = 60, 12


class FormulaTeacher:
    """The mean of word vectors; filler words count for nothing beside others."""

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

    def encode(self, texts, *, show_progress=None):
        rows = []
        for text in texts:
            words = [int(word[1:]) for word in text.lower().split() if word[1:].isdigit()]
            heavy = [word for word in words if word < 50] or words
            rows.append(sum((self.vectors[word] for word in heavy), np.zeros(WIDTH)))
        rows = np.array(rows, dtype=np.float64).reshape(len(rows), WIDTH)
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        return (rows / np.where(lengths > 0, lengths, 1)).astype(np.float32)


def write_texts(n, seed):
    rng = np.random.default_rng(seed)
    return [
        " ".join(f"w{i}" for i in rng.integers(N_WORDS, size=rng.integers(4, 9))) for _ in range(n)
    ]


@pytest.fixture(scope="session")
def teacher():
    return FormulaTeacher()


@pytest.fixture(scope="session")
def corpus_texts():
    return write_texts(1500, seed=1)


@pytest.fixture(scope="session")
def new_texts():
    return write_texts(300, seed=2)
