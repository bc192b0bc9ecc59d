"""Tiny checkpoints of three families, each with a tokenizer learned from a few texts."""

import pytest

from embedtopics.pretraining import train_tokenizer
from tests.encoders.conftest import tiny_bert  # noqa: F401

TEXTS = [
    "The river floods the old town, and the town rebuilds its walls.",
    "Graphene sheets conduct heat; a sheet of graphene is one atom thick.",
    "A council of the town measures the river each morning.",
    "Old walls hold heat in the morning, thick walls hold it longer.",
] * 3
FAMILIES = {"wordpiece": "Bert", "bpe": "Roberta", "unigram": "XLMRoberta"}


@pytest.fixture(scope="session", params=FAMILIES)
def masked_folder(request, tmp_path_factory):
    """A plain Hugging Face folder with a head for masked words."""
    import torch
    import transformers

    folder = tmp_path_factory.mktemp("masked") / request.param
    tokenizer = train_tokenizer(TEXTS, request.param, vocab_size=340, min_frequency=3)
    family = FAMILIES[request.param]
    config = getattr(transformers, f"{family}Config")(
        vocab_size=len(tokenizer), hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=32, max_position_embeddings=66, pad_token_id=tokenizer.pad_token_id,
    )  # fmt: skip
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        getattr(transformers, f"{family}ForMaskedLM")(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
