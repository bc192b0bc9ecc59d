"""The words of one short text, such as a query, without waiting for the compiled loops."""

from __future__ import annotations

from embedtopics.terms.spans import _PIECE
from embedtopics.terms.tokens import _chunks, _clean, _split

__all__ = ["words_of"]


def words_of(text: str) -> list[str]:
    """Return the words of one text in their order, as `tokenize` makes them.

    `tokenize` reads a corpus with loops whose loading takes longer than reading a query.

    Parameters
    ----------
    text : str

    Returns
    -------
    list of str
        In lower case.

    Examples
    --------
    >>> words_of("L'eau froide, long-term")
    ['l', 'eau', 'froide', 'long', 'term']
    """
    return [
        word
        for piece in _PIECE.findall(_clean(text, True))
        for chunk in _chunks(piece)
        for word in _split(chunk)
    ]
