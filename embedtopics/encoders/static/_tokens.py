"""Texts to bags of tokens, and bags to vectors: the mean of the tokens' vectors."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from embedtopics.encoders.sentence._tokenizing import readable, slabs
from embedtopics.encoders.static._files import parse_tokenizer
from embedtopics.errors import InputError
from embedtopics.protocols import FloatArray, Int32Array, Int64Array

if TYPE_CHECKING:
    from tokenizers import Tokenizer


@dataclass(frozen=True, eq=False)
class TokenBags:
    """The known tokens of each text, one text after the other.

    Shapes: `ids` (n_known,), `offsets` (n_texts + 1,), `n_tokens` (n_texts,), `n_seen` (n_texts,),
    `n_unknown` (n_texts,).
    """

    ids: Int32Array
    offsets: Int64Array
    n_tokens: Int32Array
    n_seen: Int32Array
    n_unknown: Int32Array


def unknown_token(tokenizer: Tokenizer) -> int:
    """Return the token of what a vocabulary does not know; -1 where there is none."""
    model = json.loads(tokenizer.to_str())["model"]
    if model.get("type") == "Unigram" or "unk_id" in model:
        found = model.get("unk_id")
    else:
        token = model.get("unk_token")
        found = None if token is None else tokenizer.token_to_id(token)
    return -1 if found is None else int(found)


def characters_read(tokenizer: Tokenizer, max_length: int | None) -> int | None:
    """Return the characters of a text that are looked at, as model2vec has it; None for all.

    A text is cut to `max_length` times the median length of a token before it is tokenised.
    """
    if max_length is None:
        return None
    return max_length * int(np.median([len(token) for token in tokenizer.get_vocab()]))


def bag_tokens(
    tokenizer: Tokenizer,
    texts: Sequence[str],
    *,
    unknown_id: int,
    max_length: int | None = None,
    max_characters: int | None = None,
) -> TokenBags:
    """Tokenise texts without special tokens."""
    heads = [readable(text) for text in texts]
    n_behind = np.zeros(len(heads), dtype=np.int32)
    if max_characters is not None:
        long = [row for row, text in enumerate(heads) if len(text) > max_characters]
        tails = [heads[row][max_characters:] for row in long]
        for row in long:
            heads[row] = heads[row][:max_characters]
        counted = tokenizer.encode_batch_fast(tails, add_special_tokens=False)
        n_behind[long] = [len(encoding) for encoding in counted]
    found = [
        encoding.ids for encoding in tokenizer.encode_batch_fast(heads, add_special_tokens=False)
    ]
    lengths = np.fromiter(map(len, found), dtype=np.int32, count=len(found))
    n_seen = lengths
    if max_length is not None and (lengths > max_length).any():
        found = [ids[:max_length] for ids in found]
        n_seen = np.minimum(lengths, max_length).astype(np.int32)
    ids = np.fromiter(chain.from_iterable(found), dtype=np.int32, count=int(n_seen.sum()))
    n_unknown = np.zeros(len(found), dtype=np.int32)
    unknown = ids == unknown_id
    if unknown.any():
        of_text = np.repeat(np.arange(len(found)), n_seen)
        n_unknown += np.bincount(of_text[unknown], minlength=len(found)).astype(np.int32)
        ids = ids[~unknown]
    offsets = np.zeros(len(found) + 1, dtype=np.int64)
    np.cumsum(n_seen - n_unknown, out=offsets[1:])
    return TokenBags(ids, offsets, lengths + n_behind, n_seen, n_unknown)


def mean_vectors(
    bags: TokenBags, table: FloatArray, weights: FloatArray | None, *, normalize: bool
) -> FloatArray:
    """Return the mean of the (weighted) vectors of each text's tokens.

    Sums are taken in float64 and in the order of the text, so that a vector does not depend on
    the other texts in any bit.
    """
    from scipy.sparse import csr_matrix

    # Only the rows that occur are turned into float64: the whole table is much larger.
    is_used = np.zeros(len(table), dtype=np.bool_)
    is_used[bags.ids] = True
    used = np.flatnonzero(is_used)
    columns = (np.cumsum(is_used) - 1)[bags.ids]
    rows = table[used].astype(np.float64)
    if weights is not None:
        rows *= weights[used, None].astype(np.float64)
    n_texts = len(bags.offsets) - 1
    counts = csr_matrix((np.ones(len(columns)), columns, bags.offsets), shape=(n_texts, len(used)))
    vectors = np.asarray(counts @ rows)
    n_known = np.diff(bags.offsets)
    vectors /= np.maximum(n_known, 1)[:, None]
    if normalize:
        norms = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
        vectors /= np.where(norms > 0, norms, 1.0)[:, None]
    return vectors.astype(np.float32)


# A tokenizer's vocabulary made ready for a table of vectors; whole words of a corpus in it.

_PLACEHOLDER = re.compile(r"[\[<]unused_?\d+[\]>]")
_WORD = re.compile(r"(?=.*[^\W\d_])\w{2,}")
"""What is added as a whole word: letters, digits and marks, at least one a letter."""

_EVERY_WORD = 10_000_000
_OTHER = "\0"
"""Token of what is no frequent word; no text that is read holds it."""


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """A tokenizer without special tokens, and what each of its tokens stands for."""

    tokenizer: str
    surfaces: tuple[str, ...]
    n_words: int = 0


def plain_vocabulary(tokenizer: str) -> Vocabulary:
    """Return a tokenizer's vocabulary with nothing in it that text cannot mean.

    Special tokens stay in the vocabulary, so that no token changes its number, but a text that
    happens to hold "[SEP]" is read as what it says.
    """
    content = json.loads(tokenizer)
    special = {token["content"] for token in content["added_tokens"] if token["special"]}
    content["added_tokens"] = [token for token in content["added_tokens"] if not token["special"]]
    content["post_processor"] = content["truncation"] = content["padding"] = None
    text = json.dumps(content, ensure_ascii=False)
    parsed = parse_tokenizer(text, "the tokenizer without its special tokens")
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
    """Return a tokenizer of the whole words of a corpus, and what each of its tokens stands for.

    Words are what the vocabulary's own normaliser and pre-tokenizer make of the texts.
    """
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.trainers import WordLevelTrainer

    parsed = parse_tokenizer(vocabulary.tokenizer, "the tokenizer")
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
    """Return the frequent words of a corpus that the tokenizer splits, most frequent first.

    Words are what the tokenizer's own normaliser and pre-tokenizer make of the texts, as far as
    they are written in letters, digits and marks only. Where the tokenizer takes the space before
    a word for a part of it, a word with and without a space is counted apart.
    """
    words = dict.fromkeys(word for word in word_reader(vocabulary, texts, min_count)[1] if word)
    parsed = parse_tokenizer(vocabulary.tokenizer, "the tokenizer")
    unknown = unknown_token(parsed)
    chosen = list(words)
    found = parsed.encode_batch_fast(chosen, add_special_tokens=False)
    is_split = [len(each) > 1 or each.ids == [unknown] for each in found]
    return [word for word, split in zip(chosen, is_split, strict=True) if split][:max_words]


def _normal(tokenizer: Tokenizer, word: str) -> str:
    return word if tokenizer.normalizer is None else str(tokenizer.normalizer.normalize_str(word))


def add_words(vocabulary: Vocabulary, words: Sequence[str]) -> Vocabulary:
    """Return a vocabulary with more tokens, each of which matches a whole word only.

    Other words are split as before, also those that begin like an added one: the words are added
    beside the tokenizer's model, not to its pieces.
    """
    from tokenizers import AddedToken

    parsed = parse_tokenizer(vocabulary.tokenizer, "the tokenizer")
    n_before = parsed.get_vocab_size()
    # Tokenizers that write the space before a word as part of it would be left with a lone one.
    keeps_spaces = json.loads(vocabulary.tokenizer)["model"].get("type") != "WordPiece"
    parsed.add_tokens(
        [AddedToken(w, single_word=True, lstrip=keeps_spaces, normalized=True) for w in words]
    )
    found = parsed.encode_batch_fast(list(words), add_special_tokens=False)
    for place, (word, encoding) in enumerate(zip(words, found, strict=True)):
        if encoding.ids != [n_before + place]:
            raise InputError(
                f"the tokenizer does not find the word {word!r} that was added to it; leave "
                "vocabulary_from out, or use max_words=0"
            )
    return Vocabulary(
        str(parsed.to_str()), (*vocabulary.surfaces, *words), vocabulary.n_words + len(words)
    )


def count_in_corpus(vocabulary: Vocabulary, texts: Sequence[str]) -> Int64Array:
    """Return how often each token occurs in texts, shape (n_vocabulary,)."""
    parsed: Any = parse_tokenizer(vocabulary.tokenizer, "the tokenizer")
    counts = np.zeros(len(vocabulary.surfaces), dtype=np.int64)
    unknown = unknown_token(parsed)
    for slab in slabs(texts):
        bags = bag_tokens(parsed, slab, unknown_id=unknown)
        counts += np.bincount(bags.ids, minlength=len(counts))
    return counts
