"""Vocabularies of static encoders: tokens, frequent words, probabilities, and principal axes."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from embedtopics.encoders._base import readable, slabs
from embedtopics.encoders.static._encoder import bag_tokens, unknown_token
from embedtopics.encoders.static._files import parse_tokenizer
from embedtopics.errors import InputError
from embedtopics.protocols import Float64Array, Int64Array

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_PLACEHOLDER = re.compile(r"[\[<]unused_?\d+[\]>]")
_WORD = re.compile(r"(?=.*[^\W\d_])\w{2,}")
"""Words that can be added: letters, digits and marks, with at least one letter."""

PRIOR_TOKENS = 1_000_000
"""Weight of Zipf's law, in tokens, relative to the counts of a corpus."""

_EVERY_WORD = 10_000_000
_OTHER = "\0"
"""Token of words that are not frequent; it cannot occur in texts."""


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """A tokenizer without special tokens, and the text of each token."""

    tokenizer: str
    surfaces: tuple[str, ...]

    def rows_with_text(self) -> Int64Array:
        """Return the tokens that stand for text."""
        return np.flatnonzero([bool(surface) for surface in self.surfaces])


def plain_vocabulary(tokenizer: str) -> Vocabulary:
    """Return a tokenizer's vocabulary without special tokens: "[SEP]" in a text is plain text."""
    content = json.loads(tokenizer)
    special = {token["content"] for token in content["added_tokens"] if token["special"]}
    content["added_tokens"] = [token for token in content["added_tokens"] if not token["special"]]
    content["post_processor"] = content["truncation"] = content["padding"] = None
    text = json.dumps(content, ensure_ascii=False)
    parsed = parse_tokenizer(text)
    numbered = parsed.get_vocab()
    unknown = unknown_token(parsed)
    prefix = content["model"].get("continuing_subword_prefix") or ""
    is_word_piece = content["model"].get("type") == "WordPiece"
    surfaces = []
    for token in sorted(numbered, key=numbered.__getitem__):
        if token in special or numbered[token] == unknown or _PLACEHOLDER.fullmatch(token):
            surface = ""
        elif is_word_piece or parsed.decoder is None:
            surface = token.removeprefix(prefix)
        else:
            surface = parsed.decoder.decode([token])
        # A byte that is no whole character shows as U+FFFD.
        surfaces.append(surface.strip().strip("\ufffd"))
    return Vocabulary(str(parsed.to_str()), tuple(surfaces))


def word_reader(
    vocabulary: Vocabulary, texts: Sequence[str], min_count: int
) -> tuple[Tokenizer, tuple[str, ...]]:
    """Return a tokenizer of the words of a corpus, and the word of each token."""
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.trainers import WordLevelTrainer

    parsed = parse_tokenizer(vocabulary.tokenizer)
    reader = Tokenizer(WordLevel(unk_token=_OTHER))
    reader.normalizer, reader.pre_tokenizer = parsed.normalizer, parsed.pre_tokenizer
    trainer = WordLevelTrainer(
        vocab_size=_EVERY_WORD, min_frequency=min_count, show_progress=False,
        special_tokens=[_OTHER],
    )  # fmt: skip
    reader.train_from_iterator((readable(text) for text in texts), trainer=trainer)
    numbered = reader.get_vocab()
    is_word_piece = json.loads(vocabulary.tokenizer)["model"].get("type") == "WordPiece"
    decoder = None if is_word_piece else parsed.decoder
    words = []
    for raw in sorted(numbered, key=numbered.__getitem__):
        word = raw if decoder is None else decoder.decode([raw]).strip()
        words.append(word if _WORD.fullmatch(word) and _normal(parsed, word) == word else "")
    return reader, tuple(words)


def frequent_split_words(
    vocabulary: Vocabulary, texts: Sequence[str], *, max_words: int, min_count: int
) -> list[str]:
    """Return the frequent words of a corpus that the tokenizer splits, most frequent first."""
    words = dict.fromkeys(word for word in word_reader(vocabulary, texts, min_count)[1] if word)
    parsed = parse_tokenizer(vocabulary.tokenizer)
    unknown = unknown_token(parsed)
    candidates = list(words)
    encodings = parsed.encode_batch_fast(candidates, add_special_tokens=False)
    is_split = [len(each) > 1 or each.ids == [unknown] for each in encodings]
    return [word for word, split in zip(candidates, is_split, strict=True) if split][:max_words]


def _normal(tokenizer: Tokenizer, word: str) -> str:
    return word if tokenizer.normalizer is None else str(tokenizer.normalizer.normalize_str(word))


def add_words(vocabulary: Vocabulary, words: Sequence[str]) -> Vocabulary:
    """Return a vocabulary with additional tokens for whole words."""
    from tokenizers import AddedToken

    parsed = parse_tokenizer(vocabulary.tokenizer)
    n_before = parsed.get_vocab_size()
    # Otherwise tokenizers that attach spaces to words would leave a lone space.
    keeps_spaces = json.loads(vocabulary.tokenizer)["model"].get("type") != "WordPiece"
    parsed.add_tokens(
        [AddedToken(w, single_word=True, lstrip=keeps_spaces, normalized=True) for w in words]
    )
    encodings = parsed.encode_batch_fast(list(words), add_special_tokens=False)
    for place, (word, encoding) in enumerate(zip(words, encodings, strict=True)):
        if encoding.ids != [n_before + place]:
            raise InputError(
                f"the tokenizer does not recognize the added word {word!r}; leave "
                "vocabulary_from out, or pass max_words=0"
            )
    return Vocabulary(str(parsed.to_str()), (*vocabulary.surfaces, *words))


def count_in_corpus(vocabulary: Vocabulary, texts: Sequence[str]) -> Int64Array:
    """Return how often each token occurs in texts, shape (n_vocabulary,)."""
    parsed: Any = parse_tokenizer(vocabulary.tokenizer)
    counts = np.zeros(len(vocabulary.surfaces), dtype=np.int64)
    unknown = unknown_token(parsed)
    for slab in slabs(texts):
        bags = bag_tokens(parsed, slab, unknown_id=unknown)
        counts += np.bincount(bags.ids, minlength=len(counts))
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


def principal_axes(products: Float64Array) -> tuple[Float64Array, Float64Array]:
    """Return eigenvalues of ``rows.T @ rows``, descending, and eigenvectors of fixed sign."""
    from threadpoolctl import threadpool_limits

    # On one thread: the order in which BLAS sums depends on how many it has.
    with threadpool_limits(limits=1, user_api="blas"):
        values, axes = np.linalg.eigh(products)
    axes = axes[:, ::-1]
    axes = axes * np.where(axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])] < 0, -1, 1)
    return np.clip(values[::-1], 0, None), axes


def project(rows: Any, axes: Any) -> Any:
    """Return ``rows @ axes``, by BLAS on one thread."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1, user_api="blas"):
        return np.asarray(rows @ axes)
