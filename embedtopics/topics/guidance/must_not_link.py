"""Pairs of documents that may not be in one topic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from embedtopics.corpus import Corpus
from embedtopics.errors import InputError
from embedtopics.protocols import Int64Array
from embedtopics.results import Decision, Guide
from embedtopics.topics.guidance.protocol import Material, note, unguided

__all__ = ["MustNotLink"]


class MustNotLink:
    """Documents that may not be in the same topic.

    Topics are found as ever. Where one then holds both documents of a pair, the one that fewer
    pairs bar there stays, of two alike the one that lies deeper; the other moves to the next topic
    to which its neighbours clearly lead and from which no pair bars it, or to none. No pair is ever
    in one topic, at any resolution. Edits after the fit, such as a merge, may bring one together,
    which they then say.

    Parameters
    ----------
    pairs : sequence of (int, int) or of (str, str)
        Row numbers (positions, from 0), or ids of the corpus. Never changed.

    Raises
    ------
    InputError
        Where these are no pairs, or a document is paired with itself.

    Examples
    --------
    >>> MustNotLink([(0, 5), (2, 3)]).describe()
    {'kind': 'must_not_link', 'n_pairs': 2}
    """

    def __init__(self, pairs: Any) -> None:
        self.pairs = tuple(_checked_pair(pair) for pair in _listed(pairs))
        if not self.pairs:
            raise InputError("expected pairs of rows or of ids; got none")

    def __repr__(self) -> str:
        return f"MustNotLink({len(self.pairs)} pairs)"

    def describe(self) -> dict[str, Any]:
        """Return what is to be written down; the pairs themselves are in the result's guide."""
        return {"kind": "must_not_link", "n_pairs": len(self.pairs)}

    def prepare(self, material: Material) -> tuple[Guide, Sequence[Decision]]:
        """Return the pairs as documents.

        Raises
        ------
        InputError
            Where a row or an id does not exist, or both rows of a pair have the same text.
        """
        rows = _rows_of(self.pairs, material.corpus)
        documents = material.documents.of_row[rows]
        has_text = (documents >= 0).all(axis=1)
        notes = []
        if not has_text.all():
            n_without = int((~has_text).sum())
            message = f"{n_without:,} pairs to be kept apart hold a row without text, in no topic."
            notes.append(note("pairs_without_text", n_without, message))
        same = np.flatnonzero(has_text & (documents[:, 0] == documents[:, 1]))
        if len(same):
            first, second = self.pairs[int(same[0])]
            raise InputError(
                f"the pair {first!r} and {second!r} cannot be kept apart: both rows have the same "
                "text, and rows of one text share a topic; leave the pair out"
            )
        groups, strengths = unguided(len(material))
        apart = np.unique(np.sort(documents[has_text], axis=1), axis=0).astype(np.int64)
        message = f"{len(apart):,} pairs of texts are kept in different topics."
        guide = Guide(groups, (), strengths, apart=apart.reshape(-1, 2))
        return guide, [note("kept_apart", len(apart), message), *notes]


def _listed(pairs: Any) -> list[Any]:
    if isinstance(pairs, (str, bytes, dict)) or not hasattr(pairs, "__iter__"):
        raise InputError(f"expected a sequence of pairs; got {type(pairs).__name__}")
    return list(pairs)


def _checked_pair(pair: Any) -> tuple[Any, Any]:
    """Return two row numbers or two ids."""
    ends = () if isinstance(pair, (str, bytes)) or not hasattr(pair, "__iter__") else tuple(pair)
    ends = tuple(end.item() if isinstance(end, np.generic) else end for end in ends)
    are_rows = all(isinstance(end, int) and not isinstance(end, bool) for end in ends)
    if len(ends) != 2 or not (are_rows or all(isinstance(end, str) for end in ends)):
        raise InputError(f"expected pairs of two row numbers or of two ids; got {pair!r}")
    if ends[0] == ends[1]:
        raise InputError(f"a document cannot be kept apart from itself; got the pair {pair!r}")
    return ends


def _rows_of(pairs: Sequence[tuple[Any, Any]], corpus: Corpus) -> Int64Array:
    """Return the rows of pairs."""
    row_of: dict[str, int] = {}
    if any(isinstance(first, str) for first, _ in pairs):
        row_of = {name: row for row, name in enumerate(corpus.ids)}
    rows = np.empty((len(pairs), 2), dtype=np.int64)
    for number, pair in enumerate(pairs):
        for side, end in enumerate(pair):
            if isinstance(end, str):
                if end not in row_of:
                    raise InputError(
                        f"no row has the id {end!r}, of a pair to be kept apart; see corpus.ids"
                    )
                rows[number, side] = row_of[end]
            elif 0 <= end < len(corpus):
                rows[number, side] = end
            else:
                raise InputError(
                    f"rows to be kept apart must be from 0 to {len(corpus) - 1}; got {end}"
                )
    return rows
