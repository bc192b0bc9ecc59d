"""Train tokenizers on a corpus, and make encoders with random weights."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from embedtopics._utils.checks import checked_choice, checked_count, require, resolve_seed
from embedtopics._utils.folders import check_output_folder, replacing_folder, write_manifest
from embedtopics.corpus._corpus import as_corpus
from embedtopics.encoders._base import require_torch
from embedtopics.encoders.sentence._encoder import SentenceEncoder
from embedtopics.encoders.sentence._torch import silent_transformers
from embedtopics.errors import InputError
from embedtopics.training.objectives._trainable import KIND

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from transformers import PreTrainedTokenizerFast

KINDS = ("wordpiece", "bpe", "unigram")
_INSIDE = "##"
"""Prefix of a piece within a word."""

MIN_FREQUENCY, MAX_LENGTH = 2, 512
"""Fewest occurrences of a pair that is merged; tokens of a text, stored in the tokenizer."""

ENCODER_LENGTH = 128
"""Tokens of a text that a new encoder reads."""

HEAD_WIDTH = 64
"""Width of an attention head, as in BERT."""

_FORMAT = 1


class _Specials(NamedTuple):
    """Special tokens of a family, in the order of their ids."""

    pad: str
    unknown: str
    first: str
    last: str
    mask: str


_BERT = _Specials("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
_ROBERTA = _Specials("<pad>", "<unk>", "<s>", "</s>", "<mask>")


def train_tokenizer(
    corpus: Any,
    kind: str = "wordpiece",
    *,
    vocab_size: int = 8000,
) -> PreTrainedTokenizerFast:
    """Learn a tokenizer from the texts of a corpus, in lower case.

    Parameters
    ----------
    corpus : Corpus, or what `Corpus` takes
        Each distinct text is read once; the order of the rows does not matter.
    kind : {"wordpiece", "bpe", "unigram"}
        As in BERT (Wu et al. 2016), RoBERTa (byte-level; Sennrich et al. 2016) and XLM-R (Kudo
        2018).
    vocab_size : int
        Maximum number of tokens, including special ones; exceeded if the characters of
        "wordpiece", at the beginning and within words, do not fit.

    Returns
    -------
    transformers.PreTrainedTokenizerFast
        Tokenizer for ``save_pretrained(folder)``.

    Raises
    ------
    InputError
        If a parameter is bad, or the texts hold no characters.

    Examples
    --------
    >>> import embedtopics as et
    >>> texts = ["a sheet of graphene", "graphene conducts", "carbon and graphene"]
    >>> tokenizer = et.pretraining.train_tokenizer(texts, vocab_size=80)
    >>> len(tokenizer) <= 80, tokenizer.mask_token
    (True, '[MASK]')
    """
    from tokenizers.processors import TemplateProcessing

    make: Any = require("transformers", "train_tokenizer", "torch").PreTrainedTokenizerFast
    checked_choice(kind, "kind", KINDS)
    family = _BERT if kind == "wordpiece" else _ROBERTA
    checked_count(vocab_size, "vocab_size", len(family) + 1)
    texts = list(as_corpus(corpus).document_texts())
    if not any(text.strip() for text in texts):
        raise InputError("corpus", "texts that hold words", found=f"none in {len(texts)} texts")
    tokenizer, trainer = _untrained(kind, texts, [*family], vocab_size)
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer = _in_order(tokenizer, len(family))
    first, last = family.first, family.last
    second = f"{last} $B:1 {last}:1" if family is _BERT else f"{last} {last} $B {last}"
    tokenizer.post_processor = TemplateProcessing(
        single=f"{first} $A {last}",
        pair=f"{first} $A {second}",
        special_tokens=[(token, tokenizer.token_to_id(token)) for token in (first, last)],
    )
    return make(  # type: ignore[no-any-return]
        tokenizer_object=tokenizer,
        pad_token=family.pad,
        unk_token=family.unknown,
        cls_token=family.first,
        sep_token=family.last,
        mask_token=family.mask,
        model_max_length=MAX_LENGTH,
    )


def _untrained(
    kind: str, texts: list[str], specials: list[str], size: int
) -> tuple[Tokenizer, Any]:
    """Return an untrained tokenizer and its trainer."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers
    from tokenizers import decoders as into_text

    options: dict[str, Any] = {"show_progress": False, "special_tokens": specials}
    if kind == "wordpiece":
        tokenizer = Tokenizer(models.WordPiece(unk_token=_BERT.unknown))
        tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
        tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        tokenizer.decoder = into_text.WordPiece()
        # The library numbers characters within words by a hash that differs between processes, and
        # breaks ties between merges by number. As special tokens they have a fixed order.
        normal = tokenizer.normalizer.normalize_str
        characters = sorted({char for text in texts for char in normal(text) if not char.isspace()})
        options["special_tokens"] = [*specials, *(f"{_INSIDE}{char}" for char in characters)]
        size = max(size, len(specials) + 2 * len(characters))
        options |= {"vocab_size": size, "min_frequency": MIN_FREQUENCY}
        return tokenizer, trainers.WordPieceTrainer(**options)
    if kind == "bpe":
        tokenizer = Tokenizer(models.BPE())
        tokenizer.normalizer = normalizers.Lowercase()
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.decoder = into_text.ByteLevel()
        # All bytes, so that no text is unknown.
        options["initial_alphabet"] = pre_tokenizers.ByteLevel.alphabet()
        options |= {"vocab_size": size, "min_frequency": MIN_FREQUENCY}
        return tokenizer, trainers.BpeTrainer(**options)
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = into_text.Metaspace()
    options |= {"vocab_size": size, "unk_token": _ROBERTA.unknown}
    return tokenizer, trainers.UnigramTrainer(**options)


def _in_order(tokenizer: Tokenizer, n_specials: int) -> Tokenizer:
    """Return a tokenizer whose ids do not depend on chance."""
    from tokenizers import Tokenizer

    state = json.loads(tokenizer.to_str())
    state["added_tokens"] = [one for one in state["added_tokens"] if one["id"] < n_specials]
    if state["model"]["type"] == "Unigram":
        pieces = state["model"]["vocab"]
        # Parallel sums differ in the last digits.
        rest = sorted([piece, round(score, 4)] for piece, score in pieces[n_specials:])
        state["model"]["vocab"] = pieces[:n_specials] + rest
    return Tokenizer.from_str(json.dumps(state))


def new_encoder(
    tokenizer: PreTrainedTokenizerFast,
    *,
    out: str | os.PathLike[str],
    n_layers: int = 4,
    dimensions: int = 256,
    random_state: Any = 0,
) -> SentenceEncoder:
    """Make a BERT with random weights for a tokenizer.

    Train it with `pretrain`. Compare it with a checkpoint of the hub, which was trained on billions
    of words.

    Parameters
    ----------
    tokenizer : transformers.PreTrainedTokenizerFast
        Tokenizer, such as `train_tokenizer` returns, with tokens for masking and padding.
    out : path
        Folder for the encoder, its head for masked words and the tokenizer.
    n_layers, dimensions : int
        Number of layers, and length of the vectors, a multiple of 64 or less. Inner layers are
        four times as wide; each 64 dimensions have an attention head (Devlin et al. 2019).
    random_state : int, Generator or None

    Returns
    -------
    SentenceEncoder
        The mean of the token vectors, of length 1; it reads 128 tokens of a text.

    Raises
    ------
    InputError
        If a parameter is bad.

    Examples
    --------
    >>> import tempfile
    >>> import embedtopics as et
    >>> nouns, verbs = ["dog", "cat", "bird", "cow", "fish"], ["runs", "sleeps", "eats", "jumps"]
    >>> texts = [f"the {noun} {verb}" for noun in nouns for verb in verbs]
    >>> folder = tempfile.TemporaryDirectory()
    >>> tokenizer = et.pretraining.train_tokenizer(texts, vocab_size=80)
    >>> encoder = et.pretraining.new_encoder(
    ...     tokenizer, out=f"{folder.name}/empty", n_layers=1, dimensions=16
    ... )
    >>> encoder.encode(["a dog"]).shape
    (1, 16)
    >>> folder.cleanup()
    """
    torch = require_torch("new_encoder")
    from transformers import BertConfig, BertForMaskedLM

    checked_count(n_layers, "n_layers")
    checked_count(dimensions, "dimensions")
    if dimensions > HEAD_WIDTH and dimensions % HEAD_WIDTH:
        expected = f"a multiple of {HEAD_WIDTH}, or less than it"
        raise InputError("dimensions", expected, dimensions)
    if None in (tokenizer.pad_token_id, tokenizer.mask_token_id, tokenizer.unk_token_id):
        expected = "one with tokens for padding, masks and the unknown"
        raise InputError("tokenizer", expected, tokenizer.name_or_path)
    folder = check_output_folder(Path(out), KIND)
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=int(dimensions),
        num_hidden_layers=int(n_layers),
        num_attention_heads=max(1, dimensions // HEAD_WIDTH),
        intermediate_size=4 * int(dimensions),
        max_position_embeddings=ENCODER_LENGTH,
        pad_token_id=tokenizer.pad_token_id,
    )
    with torch.random.fork_rng(devices=[]), silent_transformers():
        torch.manual_seed(resolve_seed(random_state) % 2**63)
        model = BertForMaskedLM(config)
        with replacing_folder(folder, KIND) as fresh:
            model.save_pretrained(fresh)
            tokenizer.save_pretrained(fresh)
            write_manifest(fresh, KIND, _FORMAT)
    return SentenceEncoder(folder)
