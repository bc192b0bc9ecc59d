"""Every family on a tiny random checkpoint: on ONNX Runtime, on torch, as transformers has it."""

import json
import shutil

import numpy as np
import pytest

from embedtopics.errors import ModelLoadError
from tests.encoders.conftest import SIZES, WORDS
from tests.factories import exact_encoder

SPECIAL = ["<pad>", "<unk>", "<cls>", "<sep>", "<mask>"]
SETTINGS = {
    **SIZES, "num_hidden_layers": 3, "intermediate_size": 24, "max_position_embeddings": 40,
    "pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3, "cls_token_id": 2, "sep_token_id": 3,
}  # fmt: skip
FAMILIES = {
    "bert": {},
    "roberta": {"type_vocab_size": 1},
    "xlm-roberta": {"type_vocab_size": 1},
    "camembert": {"type_vocab_size": 1},
    "distilbert": {"dim": 16, "n_layers": 3, "n_heads": 2, "hidden_dim": 24},
    "albert": {"embedding_size": 8},
    "electra": {"embedding_size": 8},
    "mpnet": {},
    "deberta-v2": {"relative_attention": True, "position_buckets": 8, "pos_att_type": "p2c|c2p",
                   "position_biased_input": False, "norm_rel_ebd": "layer_norm",
                   "share_att_key": True, "type_vocab_size": 0},
    "modernbert": {"local_attention": 8, "global_attn_every_n_layers": 2,
                   "reference_compile": False},
}  # fmt: skip
WITHOUT_GRAPH = {"albert", "deberta-v2", "electra"}
TEXTS = ["the cat sat on the mat", "", "a", "red river " * 12, "dog and unknowable 東京 light",
         "the cat sat on the mat and the dog ran in the park"]  # fmt: skip


@pytest.fixture(scope="module", params=FAMILIES)
def checkpoint(request, tmp_path_factory):
    """A folder of a family with random weights and a vocabulary of words."""
    import torch
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace
    from tokenizers.processors import TemplateProcessing
    from transformers import AutoConfig, AutoModel, PreTrainedTokenizerFast

    folder = tmp_path_factory.mktemp("families") / request.param
    vocabulary = {word: place for place, word in enumerate(SPECIAL + WORDS)}
    settings = {**SETTINGS, "vocab_size": len(vocabulary), **FAMILIES[request.param]}
    config = AutoConfig.for_model(request.param, **settings)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(5)
        AutoModel.from_config(config).save_pretrained(folder)
    tokenizer = Tokenizer(WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.post_processor = TemplateProcessing(
        single="<cls> $A <sep>", special_tokens=[("<cls>", 2), ("<sep>", 3)]
    )
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", unk_token="<unk>", cls_token="<cls>",
        sep_token="<sep>", mask_token="<mask>", model_max_length=32,
    ).save_pretrained(folder)  # fmt: skip
    # The class that wraps the tokenizer is no matter of the family here.
    config = json.loads((folder / "tokenizer_config.json").read_text())
    config["tokenizer_class"] = "PreTrainedTokenizerFast"
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return folder


def states_of(folder, texts, max_length):
    """Yield the last hidden states of each text, from plain calls of transformers."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModel.from_pretrained(folder, dtype=torch.float32).eval()
    for text in texts:
        tokens = tokenizer(text, truncation=True, max_length=max_length, return_tensors="pt")
        with torch.no_grad():
            output = model(input_ids=tokens["input_ids"], attention_mask=tokens["attention_mask"])
        yield output.last_hidden_state[0].numpy()


def test_vectors_are_those_of_transformers(checkpoint):
    encoder = exact_encoder(checkpoint)
    backend = "torch" if checkpoint.name in WITHOUT_GRAPH else "onnx"
    assert (encoder.backend, encoder.max_seq_length) == (backend, 32)
    found = encoder.encode(TEXTS)
    for last, vector in zip(states_of(checkpoint, TEXTS, 32), found, strict=True):
        expected = last.mean(axis=0)
        np.testing.assert_allclose(vector, expected / np.linalg.norm(expected), atol=1e-5)
    np.testing.assert_allclose(
        found, exact_encoder(checkpoint, backend="torch").encode(TEXTS), atol=1e-5
    )
    alone = np.vstack([encoder.encode([text]) for text in TEXTS])
    np.testing.assert_allclose(found, alone, atol=1e-6)


def test_an_unknown_family_says_what_is_known(tiny_bert, tmp_path):
    folder = shutil.copytree(tiny_bert, tmp_path / "odd")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "model_type": "abacus"}))
    with pytest.raises(ModelLoadError, match=r"family .abacus.*trust_remote"):
        exact_encoder(folder).encode(["the cat"])


def test_a_tokenizer_of_more_tokens_than_the_weights(tiny_bert, tmp_path):
    folder = shutil.copytree(tiny_bert, tmp_path / "mismatch")
    file = folder / "tokenizer.json"
    tokenizer = json.loads(file.read_text())
    tokenizer["model"]["vocab"]["extra"] = 99
    file.write_text(json.dumps(tokenizer))
    with pytest.raises(ModelLoadError, match=r"at most 72 tokens.*the token 99"):
        exact_encoder(folder).encode(["the cat"])
