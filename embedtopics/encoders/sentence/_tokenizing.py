"""Texts to the token ids that a transformer reads, with an account of what was cut."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from embedtopics._utils.progress import progress_bar
from embedtopics.errors import InputError
from embedtopics.protocols import Int32Array

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer


# Half of a surrogate pair cannot be written as UTF-8, and some tokenizers stop at NUL.
_UNREADABLE = re.compile("[\\ud800-\\udfff\\0]")

_SLAB_CHARACTERS = 500_000
"""Characters tokenised at a time: the tokenizer's own records are 30 times what is kept."""


@dataclass(frozen=True, eq=False)
class TokenizedTexts:
    """What a transformer reads of each text.

    Shapes: `n_tokens` (n_texts,), `n_seen` (n_texts,), `n_unknown` (n_texts,).
    """

    ids: list[bytes]
    n_tokens: Int32Array
    n_seen: Int32Array
    n_unknown: Int32Array


def check_texts(texts: Iterable[str]) -> list[str]:
    """Return the texts as a list."""
    if isinstance(texts, (str, bytes)):
        found = f"one {type(texts).__name__}"
        raise InputError("texts", "a sequence of strings", found=found, remedy="put it in a list")
    if isinstance(texts, Mapping) or getattr(texts, "ndim", 1) != 1:
        found = type(texts).__name__
        raise InputError("texts", "a sequence of strings", found=found, remedy="give one column")
    try:
        texts = list(texts)
    except TypeError:
        raise InputError("texts", "a sequence of strings", found=type(texts).__name__) from None
    for row, text in enumerate(texts):
        if not isinstance(text, str):
            remedy = "leave rows without text out, or make them empty strings"
            raise InputError(
                "texts", "strings in every row", remedy=remedy, found=type(text).__name__, row=row
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
    """Tokenise texts, a slab at a time."""
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
