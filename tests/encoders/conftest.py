"""Tiny checkpoints with random weights, made on the spot: no download, no packaged model."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from embedtopics.encoders._base import modules_of

WORDS = "the a cat dog sat ran on in mat park and or red blue river stone light sound".split()

PACKAGE = "sentence_transformers.models"
SIZES = {
    "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32,
    "initializer_range": 0.5,
}  # fmt: skip


def word_pieces():
    letters = [chr(code) for code in range(ord("a"), ord("z"))]  # no z: some words are unknown
    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    return specials + WORDS + [x for x in letters if x not in WORDS] + ["##" + x for x in letters]


@pytest.fixture(scope="session")
def texts():
    return [
        "the cat sat on the mat",
        "a dog ran in the park",
        "",
        "red and blue " * 9,
        "stone",
        "light or sound zebra 日本語 😀",
        "the river " * 3,
        "the cat sat on the mat",
    ]


@pytest.fixture(scope="session")
def tiny_bert(tmp_path_factory):
    """A plain Hugging Face folder: BERT with two layers, 16 dimensions and 32 positions."""
    import torch
    from transformers import BertConfig, BertModel, BertTokenizer

    folder = tmp_path_factory.mktemp("checkpoints") / "tiny-bert"
    vocabulary = {piece: index for index, piece in enumerate(word_pieces())}
    config = BertConfig(vocab_size=len(vocabulary), max_position_embeddings=32, **SIZES)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(7)
        BertModel(config).save_pretrained(folder)
    BertTokenizer(vocab=vocabulary).save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def tiny_roberta(tmp_path_factory):
    """A plain Hugging Face folder: RoBERTa, whose positions start after the padding id."""
    import torch
    from tokenizers.pre_tokenizers import ByteLevel
    from transformers import RobertaConfig, RobertaModel, RobertaTokenizer

    folder = tmp_path_factory.mktemp("checkpoints") / "tiny-roberta"
    symbols = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", *sorted(ByteLevel.alphabet())]
    symbols += ["th", "the"]
    vocabulary = {symbol: index for index, symbol in enumerate(symbols)}
    merges = [("t", "h"), ("th", "e")]
    config = RobertaConfig(
        vocab_size=len(vocabulary), max_position_embeddings=34, type_vocab_size=1, **SIZES
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(7)
        RobertaModel(config).save_pretrained(folder)
    RobertaTokenizer(vocab=vocabulary, merges=merges).save_pretrained(folder)
    return folder


@pytest.fixture
def make_sentence_folder(tiny_bert, tmp_path):
    """Wrap the tiny BERT in a sentence-transformers folder."""

    def make(pooling="mean", normalize=True, max_length=12, modules=None, legacy=True):
        folder = Path(shutil.copytree(tiny_bert, tmp_path / "sentence-bert", dirs_exist_ok=True))
        kinds = modules or ["Transformer", "Pooling"] + ["Normalize"] * normalize
        (folder / "modules.json").write_text(json.dumps(modules_of(*kinds)))
        (folder / "1_Pooling").mkdir(exist_ok=True)
        mode = {"cls": "cls_token", "mean": "mean_tokens", "max": "max_tokens"}.get(
            pooling, pooling
        )
        flags = ("cls_token", "mean_tokens", "max_tokens", "mean_sqrt_len_tokens")
        old = {f"pooling_mode_{flag}": flag == mode for flag in flags}
        new = {"pooling_mode": pooling, "embedding_dimension": 16}
        (folder / "1_Pooling" / "config.json").write_text(json.dumps(old if legacy else new))
        if max_length is not None:
            lengths = {"max_seq_length": max_length, "do_lower_case": False}
            (folder / "sentence_bert_config.json").write_text(json.dumps(lengths))
        return folder

    return make


@pytest.fixture(scope="session")
def tiny_encoder(tiny_bert):
    from tests.factories import exact_encoder

    return exact_encoder(tiny_bert, max_seq_length=12)


@pytest.fixture(scope="session")
def tokenizer(tiny_bert):
    from tokenizers import Tokenizer

    return Tokenizer.from_file(str(tiny_bert / "tokenizer.json"))


@pytest.fixture(scope="session")
def table(tokenizer):
    """A vector of eight random numbers for each token."""
    n_tokens = tokenizer.get_vocab_size()
    return np.random.default_rng(5).normal(size=(n_tokens, 8)).astype(np.float32)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A cache folder of one's own."""
    monkeypatch.setenv("EMBEDTOPICS_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def empty_hub(monkeypatch, tmp_path):
    """An empty hub cache, and no network; returns the cache's folder."""
    from huggingface_hub import constants

    cache = tmp_path / "hub"
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(cache))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    return cache
