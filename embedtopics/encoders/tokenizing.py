"""Texts to the token ids that a transformer reads, with an account of what was cut."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from embedtopics._progress import progress_bar
from embedtopics.errors import InputError
from embedtopics.protocols import Int32Array

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

__all__ = ["TokenizedTexts", "check_texts", "n_leading", "readable", "slabs", "tokenize"]

# Half of a surrogate pair cannot be written as UTF-8, and some tokenizers stop at NUL.
_UNREADABLE = re.compile("[\\ud800-\\udfff\\0]")

_SLAB_CHARACTERS = 500_000
"""Characters tokenised at a time: the tokenizer's own records are 30 times what is kept."""


@dataclass(frozen=True, eq=False)
class TokenizedTexts:
    """What a transformer reads of each text.

    Parameters
    ----------
    ids : list of bytes
        Token ids of each text after truncation, special tokens included: int32 as bytes, which
        compare, sort and hash faster than arrays and take no more memory.
    n_tokens : int32 ndarray of shape (n_texts,)
        Tokens of each text before truncation, special tokens left out.
    n_seen : int32 ndarray of shape (n_texts,)
        Of these, the tokens in `ids`.
    n_unknown : int32 ndarray of shape (n_texts,)
        Of the tokens in `ids`, those that the vocabulary does not know.
    """

    ids: list[bytes]
    n_tokens: Int32Array
    n_seen: Int32Array
    n_unknown: Int32Array


def check_texts(texts: Sequence[str]) -> list[str]:
    """Return the texts as a list.

    Raises
    ------
    InputError
        If `texts` is one string, or a row is no string.
    """
    if isinstance(texts, (str, bytes)):
        raise InputError(
            f"expected a sequence of strings, got one {type(texts).__name__}; put it in a list"
        )
    if isinstance(texts, Mapping) or getattr(texts, "ndim", 1) != 1:
        raise InputError(
            f"expected a sequence of strings, got {type(texts).__name__}, which is more than that; "
            "give one column of it"
        )
    try:
        texts = list(texts)
    except TypeError:
        raise InputError(
            f"expected a sequence of strings, got {type(texts).__name__}; put the texts in a list"
        ) from None
    for row, text in enumerate(texts):
        if not isinstance(text, str):
            raise InputError(
                f"expected a string in every row, got {type(text).__name__} in row {row}; "
                "leave rows without text out, or make them empty strings"
            )
    return texts


def tokenize(
    tokenizer: Tokenizer,
    texts: Sequence[str],
    *,
    unknown_id: int,
    prompt: str = "",
    show_progress: bool | None = None,
) -> TokenizedTexts:
    """Tokenise texts, a slab at a time.

    Parameters
    ----------
    tokenizer : tokenizers.Tokenizer
        With truncation on and padding off.
    texts : sequence of str
        Lone surrogates and NUL are replaced by U+FFFD.
    unknown_id : int
        Token of what the vocabulary does not know; -1 where there is none.
    prompt : str
        Put before every text.
    show_progress : bool, optional

    Returns
    -------
    TokenizedTexts
    """
    # A prompt is no part of the text: its tokens are not counted as read. The space at its end
    # is a token in some vocabularies, and before a text the beginning of the text's first.
    empty = tokenizer.encode(prompt.rstrip()).ids
    n_special, special_unknown = len(empty), empty.count(unknown_id)
    n_ends = len(tokenizer.encode("").ids)
    ids: list[bytes] = []
    counts = np.zeros((3, len(texts)), dtype=np.int32)
    row = 0
    with progress_bar(
        total=len(texts), unit="text", description="Tokenising", show=show_progress
    ) as bar:
        for slab in slabs(texts):
            prompted = [prompt + readable(text) for text in slab]
            for text, encoding in zip(slab, tokenizer.encode_batch_fast(prompted), strict=True):
                kept = encoding.ids
                ids.append(np.array(kept, dtype=np.int32).tobytes())
                seen = len(kept) - n_special if text else 0
                unknown = kept.count(unknown_id) - special_unknown
                seen, unknown = max(seen, 0), max(unknown, 0)
                counts[:, row] = seen + _n_cut(encoding, n_ends), seen, unknown
                row += 1
            bar.update(len(slab))
    return TokenizedTexts(ids, counts[0], counts[1], counts[2])


def readable(text: str) -> str:
    """Replace what no tokenizer reads, character by character."""
    return _UNREADABLE.sub("\ufffd", text)


def n_leading(tokenizer: Tokenizer, prompt: str) -> int:
    """Return how many tokens come before the text: those of the prompt, and what opens a text."""
    if not prompt:
        return 0
    encoding = tokenizer.encode(prompt)
    opening = [place for place, special in enumerate(encoding.special_tokens_mask) if not special]
    return opening[-1] + 1 if opening else 0


def _n_cut(encoding: Encoding, n_special: int) -> int:
    """Count the tokens behind the cut; the tokenizer keeps them as further sequences."""
    rest: list[Any] = encoding.overflowing
    return sum(len(part) for part in rest) - n_special * len(rest)


def slabs(texts: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield consecutive texts, as many as are tokenised at a time."""
    start = size = 0
    for stop, text in enumerate(texts, start=1):
        size += len(text)
        if size >= _SLAB_CHARACTERS:
            yield texts[start:stop]
            start, size = stop, 0
    if start < len(texts):
        yield texts[start:]
