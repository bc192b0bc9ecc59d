"""From candidates for pairs to `Examples`: what teaches nothing is left out, and counted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from embedtopics.corpus import Corpus, normalize_text
from embedtopics.errors import InputError
from embedtopics.results import Decision
from embedtopics.training.examples import Examples
from embedtopics.training.splitting import text_key

__all__ = ["Pair", "checked_corpus", "counted", "make_pairs", "metadata_column"]

Pair = tuple[str, str, int]
"""Anchor, positive, and the row of the corpus that the anchor comes from."""


def checked_corpus(corpus: Any) -> Corpus:
    """Return a corpus of whatever holds texts; see `Corpus.of`."""
    return Corpus.of(corpus)


def metadata_column(corpus: Corpus, name: str, role: str) -> list[object]:
    """Return the values of a column of the metadata.

    Raises
    ------
    InputError
        There is none of that name; the message lists those that exist.
    """
    if name not in corpus.metadata.columns:
        names = ", ".join(repr(str(column)) for column in corpus.metadata.columns[:30])
        raise InputError(
            f"{corpus.source}: expected a {role} column {name!r} besides the texts, got "
            f"{names or 'no other columns'}; name one of these"
        )
    values: list[object] = corpus.metadata[name].tolist()
    return values


def counted(name: str, value: int, message: str) -> list[Decision]:
    """Return a decision about some rows, or nothing where there are none.

    Parameters
    ----------
    name : str
    value : int
    message : str
        What follows the number.
    """
    return [Decision("training", name, value, f"{value:,} {message}")] if value else []


def make_pairs(
    corpus: Corpus, pairs: Iterable[Pair], decisions: Sequence[Decision], what: str
) -> Examples:
    """Return pairs as examples, each once, in an order that comes from their texts.

    Parameters
    ----------
    corpus : Corpus
    pairs : iterable of Pair
    decisions : sequence of Decision
        What was left out before.
    what : str
        Such as "titles with texts", for messages.

    Raises
    ------
    InputError
        If there is no pair.
    """
    chosen: dict[tuple[str, str], Pair] = {}
    n_same = n_repeated = 0
    # The least of equal pairs stands for them: the first would depend on the order of the rows.
    for anchor, positive, row in sorted(
        ((normalize_text(a), normalize_text(p), r) for a, p, r in pairs)
    ):
        one, other = text_key(anchor), text_key(positive)
        both = (min(one, other), max(one, other))
        if one == other:
            n_same += 1
        elif both in chosen:
            n_repeated += 1
        else:
            chosen[both] = (anchor, positive, row)
    told = [
        *decisions,
        *counted("identical_sides", n_same, "pairs of equal texts were left out."),
        *counted("repeated_pairs", n_repeated, "pairs occur again and were left out."),
    ]
    if not chosen:
        reasons = " ".join(decision.message for decision in told)
        raise InputError(
            f"{corpus.source}: expected pairs of {what}, got none from {len(corpus):,} rows"
            + (f": {reasons}" if reasons else "; give more texts")
        )
    anchors, positives, rows = zip(*chosen.values(), strict=True)
    message = f"{len(chosen):,} pairs of {what} were made of {len(corpus):,} rows."
    return Examples(
        kind="pairs",
        columns=(anchors, positives),
        labels=None,
        rows=np.array(rows, dtype=np.int64),
        source=f"{corpus.source}: {what}",
        decisions=(*told, Decision("training", "pairs_made", len(chosen), message)),
    )
