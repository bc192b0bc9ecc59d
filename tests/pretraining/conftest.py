"""Tiny checkpoints of the families that masked language models come in."""

from unittest.mock import patch

import numpy as np
import pytest

from embedtopics.pretraining import train_tokenizer
from tests.encoders.conftest import WORDS, make_sentence_folder, tiny_bert  # noqa: F401

SIZES = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def sentences(n, seed=0):
    """Texts in which words stand in a fixed order: what is hidden can be predicted."""
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(n):
        begin, length = int(rng.integers(len(WORDS))), int(rng.integers(6, 14))
        made.append(" ".join(WORDS[(begin + i) % len(WORDS)] for i in range(length)))
    return list(dict.fromkeys(made))


def save_checkpoint(folder, family, with_head=True):
    """Write a random masked language model of a family with its tokenizer."""
    import torch
    import transformers

    names = {"bert": "Bert", "roberta": "Roberta", "deberta": "DebertaV2", "xlm": "XLMRoberta",
             "modernbert": "ModernBert", "distilbert": "DistilBert"}  # fmt: skip
    is_word_piece = family in ("bert", "modernbert", "distilbert")
    tokenizer = word_piece() if is_word_piece else unigram() if family != "roberta" else bpe()
    pad, sep = tokenizer.pad_token_id, tokenizer.sep_token_id
    sizes = {"vocab_size": len(tokenizer), "max_position_embeddings": 40, "pad_token_id": pad,
             "initializer_range": 0.2, **SIZES, "intermediate_size": 32}  # fmt: skip
    if family == "modernbert":
        cls = tokenizer.cls_token_id
        sizes |= dict.fromkeys(("bos_token_id", "cls_token_id"), cls)
        sizes |= dict.fromkeys(("eos_token_id", "sep_token_id"), sep)
    if family == "distilbert":
        sizes = {"vocab_size": len(tokenizer), "max_position_embeddings": 40, "dim": 16,
                 "n_layers": 2, "n_heads": 2, "hidden_dim": 32}  # fmt: skip
    config = getattr(transformers, f"{names[family]}Config")(**sizes)
    kind = "ForMaskedLM" if with_head else "Model"
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        getattr(transformers, names[family] + kind)(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def wrapped(tokenizer, first, last, pad, mask, unknown):
    from tokenizers.processors import TemplateProcessing
    from transformers import PreTrainedTokenizerFast

    ids = [(name, tokenizer.token_to_id(name)) for name in (first, last)]
    tokenizer.post_processor = TemplateProcessing(
        f"{first} $A {last}", f"{first} $A {last} $B:1 {last}:1", special_tokens=ids
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, cls_token=first, sep_token=last, pad_token=pad,
        mask_token=mask, unk_token=unknown, model_max_length=32,
    )  # fmt: skip


def word_piece():
    from tokenizers import Tokenizer, models, pre_tokenizers

    letters = [chr(code) for code in range(ord("a"), ord("z") + 1)]
    # "stone" and "river" are not whole words here: they have pieces.
    whole = [word for word in WORDS if word not in ("stone", "river", "a")]
    pieces = [*SPECIAL, *whole, *letters, *(f"##{x}" for x in letters)]
    vocabulary = {piece: number for number, piece in enumerate(pieces)}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return wrapped(tokenizer, "[CLS]", "[SEP]", "[PAD]", "[MASK]", "[UNK]")


def unigram():
    from tokenizers import Tokenizer, models, pre_tokenizers

    letters = [chr(code) for code in range(ord("a"), ord("z") + 1)]
    pieces = [("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("<mask>", 0.0)]
    pieces += [(f"▁{word}", -2.0) for word in WORDS] + [(x, -6.0) for x in letters]
    tokenizer = Tokenizer(models.Unigram([*pieces, ("▁", -6.0)], unk_id=3))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    return wrapped(tokenizer, "<s>", "</s>", "<pad>", "<mask>", "<unk>")


def bpe():
    from tokenizers import Tokenizer, models, pre_tokenizers

    symbols = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    symbols += [*sorted(pre_tokenizers.ByteLevel.alphabet()), "th", "the"]
    vocabulary = {symbol: number for number, symbol in enumerate(symbols)}
    tokenizer = Tokenizer(models.BPE(vocabulary, [("t", "h"), ("th", "e")]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel()
    return wrapped(tokenizer, "<s>", "</s>", "<pad>", "<mask>", "<unk>")


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory):
    """Return the folder of a family's checkpoint, made once."""
    made = {}

    def folder_of(family, with_head=True):
        if (family, with_head) not in made:
            folder = tmp_path_factory.mktemp("masked") / family
            made[family, with_head] = save_checkpoint(folder, family, with_head)
        return made[family, with_head]

    return folder_of


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
    with patch("embedtopics.pretraining._tokenizers.MIN_FREQUENCY", 3):
        tokenizer = train_tokenizer(TEXTS, request.param, vocab_size=340)
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
