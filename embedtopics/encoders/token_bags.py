"""Texts to bags of tokens, and bags to vectors: the mean of the tokens' vectors."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from embedtopics.encoders.tokenizing import readable
from embedtopics.protocols import FloatArray, Int32Array, Int64Array

if TYPE_CHECKING:
    from tokenizers import Tokenizer

__all__ = ["TokenBags", "bag_tokens", "characters_read", "mean_vectors", "unknown_token"]


@dataclass(frozen=True, eq=False)
class TokenBags:
    """The known tokens of each text, one text after the other.

    Parameters
    ----------
    ids : int32 ndarray of shape (n_known,)
        Tokens read and known, in the order of the text.
    offsets : int64 ndarray of shape (n_texts + 1,)
        Text i has ``ids[offsets[i]:offsets[i + 1]]``.
    n_tokens : int32 ndarray of shape (n_texts,)
        Tokens of each text before it is cut.
    n_seen : int32 ndarray of shape (n_texts,)
        Of these, the tokens read.
    n_unknown : int32 ndarray of shape (n_texts,)
        Of the tokens read, those that the vocabulary does not know.
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
    """Tokenise texts without special tokens.

    Parameters
    ----------
    tokenizer : tokenizers.Tokenizer
        Without truncation and padding.
    texts : sequence of str
        Lone surrogates and NUL are replaced by U+FFFD.
    unknown_id : int
        As of `unknown_token`.
    max_length : int, optional
        Most tokens read of a text; all by default.
    max_characters : int, optional
        Most characters read of a text. What lies behind is tokenised by itself, for the count.

    Returns
    -------
    TokenBags
    """
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

    Parameters
    ----------
    bags : TokenBags
    table : float32 ndarray of shape (n_vocabulary, n_dimensions)
    weights : float32 ndarray of shape (n_vocabulary,), optional
        Factor of each token's vector. The sum is divided by the number of tokens, not by the sum
        of their weights: frequent words draw a text's vector towards zero.
    normalize : bool
        Whether vectors are scaled to length 1.

    Returns
    -------
    float32 ndarray of shape (n_texts, n_dimensions)
        Zeros for a text without known tokens.
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
