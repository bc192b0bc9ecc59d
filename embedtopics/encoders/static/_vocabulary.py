"""Vocabularies of static encoders: a tokenizer without special tokens, and words added to it."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from embedtopics.encoders.static._encoder import parse_tokenizer, unknown_token
from embedtopics.errors import InputError
from embedtopics.protocols import Int64Array

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_PLACEHOLDER = re.compile(r"[\[<]unused_?\d+[\]>]")


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
                "texts out, or pass max_words=0"
            )
    return Vocabulary(str(parsed.to_str()), (*vocabulary.surfaces, *words))
