"""Train tokenizers on a corpus, and make encoders with random weights."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from embedtopics._utils.checks import checked_choice, checked_count, is_count, resolve_seed
from embedtopics._utils.folders import check_output_folder, replacing_folder, write_manifest
from embedtopics.corpus._corpus import Corpus
from embedtopics.encoders.sentence._encoder import SentenceEncoder
from embedtopics.encoders.sentence._loading import silent_transformers
from embedtopics.errors import InputError
from embedtopics.training.objectives._trainable import KIND

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from transformers import PreTrainedTokenizerFast

KINDS = ("wordpiece", "bpe", "unigram")
_INSIDE = "##"
"""Prefix of a piece within a word."""

MOST_TOKENS = 2**31 - 1
"""Largest 32-bit id."""


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
    lowercase: bool = True,
    min_frequency: int = 2,
    special_tokens: Any = (),
    max_length: int = 512,
) -> PreTrainedTokenizerFast:
    """Learn a tokenizer from the texts of a corpus.

    Parameters
    ----------
    corpus : Corpus, or what `Corpus.of` takes
        Each distinct text is read once; the order of the rows does not matter.
    kind : {"wordpiece", "bpe", "unigram"}
        As in BERT (Wu et al. 2016), RoBERTa (byte-level; Sennrich et al. 2016) and XLM-R (Kudo
        2018).
    vocab_size : int
        Maximum number of tokens, including special ones; exceeded if the characters of
        "wordpiece", at the beginning and within words, do not fit.
    lowercase : bool
        Convert to lower case; "wordpiece" also removes accents, as in BERT.
    min_frequency : int
        Fewest occurrences of a pair that is merged; not for "unigram".
    special_tokens : sequence of str
        Further tokens that are never split.
    max_length : int
        Maximum number of tokens of a text, stored in the tokenizer.

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
    >>> tokenizer = train_tokenizer(["a sheet of graphene"] * 3, vocab_size=80)  # doctest: +SKIP
    >>> tokenizer.tokenize("graphene")  # doctest: +SKIP
    ['graphene']
    """
    from transformers import PreTrainedTokenizerFast

    checked_choice(kind, "kind", KINDS)
    checked_count(min_frequency, "min_frequency")
    checked_count(max_length, "max_length", 3)
    family = _BERT if kind == "wordpiece" else _ROBERTA
    more = _checked_specials(special_tokens, family)
    least = len(family) + len(more) + 1
    if not is_count(vocab_size, least) or vocab_size > MOST_TOKENS:
        expected = f"an integer from {least} to {MOST_TOKENS:,}, the largest id"
        raise InputError("vocab_size", expected, vocab_size)
    texts = list(Corpus.of(corpus).document_texts())
    if not any(text.strip() for text in texts):
        raise InputError("corpus", "texts that hold words", found=f"none in {len(texts)} texts")
    tokenizer = _untrained(kind, lowercase)
    trainer = _trainer(kind, tokenizer, texts, [*family, *more], int(vocab_size), min_frequency)
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer = _in_order(tokenizer, len(family) + len(more))
    _frame(tokenizer, family)
    make: Any = PreTrainedTokenizerFast
    return make(  # type: ignore[no-any-return]
        tokenizer_object=tokenizer,
        pad_token=family.pad,
        unk_token=family.unknown,
        cls_token=family.first,
        sep_token=family.last,
        mask_token=family.mask,
        additional_special_tokens=list(more),
        model_max_length=int(max_length),
    )


def _checked_specials(tokens: Any, family: _Specials) -> tuple[str, ...]:
    if isinstance(tokens, str):
        raise InputError("special_tokens", "a sequence of strings", tokens)
    specials = tuple(tokens)
    for row, token in enumerate(specials):
        if not isinstance(token, str) or not token.strip():
            raise InputError("special_tokens", "strings that are not blank", token, row=row)
        if token in family or token in specials[:row]:
            raise InputError("special_tokens", "tokens that come once", token, row=row)
    return specials


def _untrained(kind: str, lowercase: bool) -> Tokenizer:
    """Return an untrained tokenizer."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers
    from tokenizers import decoders as into_text

    lowering = [normalizers.Lowercase()] if lowercase else []
    if kind == "wordpiece":
        tokenizer = Tokenizer(models.WordPiece(unk_token=_BERT.unknown))
        tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
        tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        tokenizer.decoder = into_text.WordPiece()
    elif kind == "bpe":
        tokenizer = Tokenizer(models.BPE())
        tokenizer.normalizer = normalizers.Sequence(lowering)
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.decoder = into_text.ByteLevel()
    else:
        tokenizer = Tokenizer(models.Unigram())
        tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), *lowering])
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
        tokenizer.decoder = into_text.Metaspace()
    return tokenizer


def _trainer(
    kind: str, tokenizer: Tokenizer, texts: list[str], specials: list[str], size: int, least: int
) -> Any:
    from tokenizers import pre_tokenizers, trainers

    options: dict[str, Any] = {"show_progress": False, "special_tokens": specials}
    if kind == "unigram":
        return trainers.UnigramTrainer(vocab_size=size, unk_token=_ROBERTA.unknown, **options)
    options["min_frequency"] = int(least)
    if kind == "bpe":
        # All bytes, so that no text is unknown.
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        return trainers.BpeTrainer(vocab_size=size, initial_alphabet=alphabet, **options)
    # The library numbers characters within words by a hash that differs between processes, and
    # breaks ties between merges by number. As special tokens they have a fixed order.
    normal = tokenizer.normalizer.normalize_str
    characters = sorted({char for text in texts for char in normal(text) if not char.isspace()})
    options["special_tokens"] = [*specials, *(f"{_INSIDE}{char}" for char in characters)]
    return trainers.WordPieceTrainer(
        vocab_size=max(size, len(specials) + 2 * len(characters)), **options
    )


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


def _frame(tokenizer: Tokenizer, family: _Specials) -> None:
    """Add the special tokens of the family to texts and pairs."""
    from tokenizers.processors import TemplateProcessing

    first, last = family.first, family.last
    is_bert = family is _BERT
    pair = f"{first} $A {last} $B:1 {last}:1" if is_bert else f"{first} $A {last} {last} $B {last}"
    tokenizer.post_processor = TemplateProcessing(
        single=f"{first} $A {last}",
        pair=pair,
        special_tokens=[(token, tokenizer.token_to_id(token)) for token in (first, last)],
    )


def new_encoder(
    tokenizer: PreTrainedTokenizerFast,
    *,
    out: str | os.PathLike[str],
    layers: int = 4,
    width: int = 256,
    max_length: int = 128,
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
    layers, width : int
        Number of layers, and dimensions, a multiple of 64 or less. Inner layers are four times as
        wide; each 64 dimensions have an attention head (Devlin et al. 2019).
    max_length : int
        Maximum number of tokens of a text.
    random_state : int, Generator or None

    Returns
    -------
    SentenceEncoder
        The mean of the token vectors, of length 1.

    Raises
    ------
    InputError
        If a parameter is bad.

    Examples
    --------
    >>> tokenizer = train_tokenizer(corpus, "wordpiece")  # doctest: +SKIP
    >>> pretrain(new_encoder(tokenizer, out="empty"), corpus, out="mine")  # doctest: +SKIP
    """
    import torch
    from transformers import BertConfig, BertForMaskedLM

    for name, value, least in (("layers", layers, 1), ("width", width, 2),
                               ("max_length", max_length, 3)):  # fmt: skip
        checked_count(value, name, least)
    if width > HEAD_WIDTH and width % HEAD_WIDTH:
        raise InputError("width", f"a multiple of {HEAD_WIDTH}, or less than it", width)
    needed = ("pad_token_id", "mask_token_id", "unk_token_id")
    lacking = [name for name in needed if getattr(tokenizer, name, None) is None]
    if lacking or not hasattr(tokenizer, "save_pretrained"):
        expected = "a tokenizer of transformers with tokens for padding, masks and the unknown"
        raise InputError("tokenizer", expected, type(tokenizer).__name__)
    folder = check_output_folder(Path(out), KIND)
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=int(width),
        num_hidden_layers=int(layers),
        num_attention_heads=max(1, width // HEAD_WIDTH),
        intermediate_size=4 * int(width),
        max_position_embeddings=int(max_length),
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
