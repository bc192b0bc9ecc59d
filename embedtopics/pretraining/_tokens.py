"""Texts as a model reads them: token ids, the word of each token, and its letters."""

from __future__ import annotations

import re
from dataclasses import dataclass

from embedtopics.protocols import Int64Array

_EDGES = re.compile(r"^\W+|\W+$")


@dataclass(frozen=True, eq=False)
class Tokens:
    """A text as the model reads it; what a masking chooses from.

    Parameters
    ----------
    ids : int64 ndarray of shape (n_tokens,)
        Special tokens at both ends included.
    words : int64 ndarray of shape (n_tokens,)
        Number of the word that each token is of, ascending; -1 for special tokens.
    surfaces : tuple of str, length n_tokens
        That word, in lower case and without punctuation at its ends; "" for special tokens.
    """

    ids: Int64Array
    words: Int64Array
    surfaces: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.ids)

    def part(self, begin: int, end: int) -> Tokens:
        """Return the tokens from one place to before another."""
        return Tokens(self.ids[begin:end], self.words[begin:end], self.surfaces[begin:end])


def surface_of(piece: str) -> str:
    """Return a word in lower case, without punctuation and spaces at its ends."""
    return _EDGES.sub("", piece).lower() or piece.strip()
