"""Vocabularies of static encoders: a tokenizer without special tokens, and words added to it."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from embedtopics.encoders._base import readable, slabs
from embedtopics.encoders.static._encoder import TokenReader, parse_tokenizer, unknown_token
from embedtopics.errors import InputError
from embedtopics.protocols import Float64Array, Int64Array

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix
    from tokenizers import Tokenizer

PRIOR_TOKENS = 1_000_000
"""Weight of Zipf's law, in tokens, relative to the counts of a corpus."""

_PLACEHOLDER = re.compile(r"[\[<]unused_?\d+[\]>]")
_WORD = re.compile(r"(?=.*[^\W\d_])\w{2,}")
"""Words that can be added: letters, digits and marks, with at least one letter."""

_EVERY_WORD = 10_000_000
_OTHER = "\0"
"""Token of words that are not frequent; it cannot occur in texts."""


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """A tokenizer without special tokens, as JSON, and the text of each token."""

    tokenizer: str
    surfaces: tuple[str, ...]

    @cached_property
    def parsed(self) -> Tokenizer:
        """The tokenizer."""
        return parse_tokenizer(self.tokenizer)

    @cached_property
    def unknown(self) -> int:
        """Id of the unknown token; -1 if there is none."""
        return unknown_token(self.parsed)

    @cached_property
    def is_word_piece(self) -> bool:
        """Whether tokens are pieces of words that were split at spaces before."""
        return bool(json.loads(self.tokenizer)["model"].get("type") == "WordPiece")

    def rows_with_text(self) -> Int64Array:
        """Return the tokens that stand for text."""
        return np.flatnonzero([bool(surface) for surface in self.surfaces])


def plain_vocabulary(tokenizer: str) -> Vocabulary:
    """Return a tokenizer's vocabulary without special tokens: "[SEP]" in a text is plain text."""
    content = json.loads(tokenizer)
    special = {token["content"] for token in content["added_tokens"] if token["special"]}
    content["added_tokens"] = [token for token in content["added_tokens"] if not token["special"]]
    content["post_processor"] = content["truncation"] = content["padding"] = None
    parsed = parse_tokenizer(json.dumps(content, ensure_ascii=False))
    plain = Vocabulary(str(parsed.to_str()), ())
    numbered = parsed.get_vocab()
    prefix = content["model"].get("continuing_subword_prefix") or ""
    surfaces = []
    for token in sorted(numbered, key=numbered.__getitem__):
        if token in special or numbered[token] == plain.unknown or _PLACEHOLDER.fullmatch(token):
            surface = ""
        elif plain.is_word_piece or parsed.decoder is None:
            surface = token.removeprefix(prefix)
        else:
            surface = parsed.decoder.decode([token])
        # A byte that is no whole character shows as U+FFFD.
        surfaces.append(surface.strip().strip("\ufffd"))
    return Vocabulary(plain.tokenizer, tuple(surfaces))


def frequent_split_words(
    vocabulary: Vocabulary, texts: Sequence[str], *, max_words: int, min_count: int
) -> list[str]:
    """Return the frequent words of a corpus that the tokenizer splits, most frequent first."""
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.trainers import WordLevelTrainer

    parsed = vocabulary.parsed
    normal = (lambda word: word) if parsed.normalizer is None else parsed.normalizer.normalize_str
    reader = Tokenizer(WordLevel(unk_token=_OTHER))
    reader.normalizer, reader.pre_tokenizer = parsed.normalizer, parsed.pre_tokenizer
    trainer = WordLevelTrainer(
        vocab_size=_EVERY_WORD, min_frequency=min_count, show_progress=False,
        special_tokens=[_OTHER],
    )  # fmt: skip
    reader.train_from_iterator((readable(text) for text in texts), trainer=trainer)
    numbered = reader.get_vocab()
    decoder = None if vocabulary.is_word_piece else parsed.decoder
    raw = sorted(numbered, key=numbered.__getitem__)
    decoded = raw if decoder is None else [decoder.decode([word]).strip() for word in raw]
    words = [w for w in dict.fromkeys(decoded) if _WORD.fullmatch(w) and normal(w) == w]
    encodings = parsed.encode_batch_fast(words, add_special_tokens=False)
    is_split = [len(each) > 1 or each.ids == [vocabulary.unknown] for each in encodings]
    return [word for word, split in zip(words, is_split, strict=True) if split][:max_words]


def add_words(vocabulary: Vocabulary, words: Sequence[str]) -> Vocabulary:
    """Return a vocabulary with additional tokens for whole words."""
    from tokenizers import AddedToken

    parsed = parse_tokenizer(vocabulary.tokenizer)
    n_before = parsed.get_vocab_size()
    # Otherwise tokenizers that attach spaces to words would leave a lone space.
    how = {"single_word": True, "lstrip": not vocabulary.is_word_piece, "normalized": True}
    parsed.add_tokens([AddedToken(word, **how) for word in words])
    encodings = parsed.encode_batch_fast(list(words), add_special_tokens=False)
    for place, (word, encoding) in enumerate(zip(words, encodings, strict=True)):
        if encoding.ids != [n_before + place]:
            raise InputError(
                f"the tokenizer does not recognize the added word {word!r}; leave "
                "vocabulary_from out, or pass max_words=0"
            )
    return Vocabulary(str(parsed.to_str()), (*vocabulary.surfaces, *words))


def bags_of(
    vocabulary: Vocabulary, texts: Sequence[str], max_length: int | None = None
) -> csr_matrix:
    """Return how often each text holds each token, float32 of shape (n_texts, n_tokens)."""
    from scipy.sparse import vstack

    reader = TokenReader(vocabulary.parsed, max_length, by_characters=False)
    counts: csr_matrix = vstack([reader.read(slab).tokens for slab in slabs(texts)], "csr")
    counts.sum_duplicates()
    return counts


def token_probabilities(
    n_tokens: int, counts: Int64Array | None = None, n_counted: int = 0
) -> Float64Array:
    """Return probabilities of tokens by Zipf's law, joined to `counts` of `n_counted` tokens."""
    zipf: Float64Array = 1.0 / np.arange(2, n_tokens + 2)
    zipf /= zipf.sum()
    if counts is None:
        return zipf
    joined: Float64Array = (counts + PRIOR_TOKENS * zipf) / (n_counted + PRIOR_TOKENS)
    return joined
