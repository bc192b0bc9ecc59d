"""Which sentence is in which part, so that none is in two of them."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TypeVar

from embedtopics.corpus import normalize_text
from embedtopics.errors import InputError
from embedtopics.results import Decision, Sentence, Treebank

__all__ = [
    "PARTS", "SHARES", "by_part", "content_digest", "dealt", "gathered", "key_of", "told_parts",
    "without_repeats",
]  # fmt: skip

PARTS = ("train", "dev", "test")

SHARES = {"train": 0.8, "dev": 0.1, "test": 0.1}
"""How much is in each part where the parts are not given."""

Treebanks = Treebank | Sequence[Treebank] | Mapping[str, Treebank]
T = TypeVar("T")


def gathered(treebanks: Treebanks) -> tuple[list[Sentence], list[str], tuple[Decision, ...]]:
    """Return all sentences, their parts ("" where none are given) and the readers' decisions.

    Raises
    ------
    InputError
        Where it is not treebanks, or parts are not "train", perhaps "dev", and "test".
    """
    if isinstance(treebanks, Mapping):
        named = by_part(treebanks)
    else:
        several = [treebanks] if isinstance(treebanks, Treebank) else list(treebanks)
        named = [("", one) for one in several]
    sentences, parts, decisions = [], [], []
    for part, treebank in named:
        if not isinstance(treebank, Treebank):
            raise InputError(
                "expected what read_conllu or read_token_table returned, one or as "
                f'{{"train": ..., "dev": ..., "test": ...}}; got a {type(treebank).__name__}'
            )
        sentences += treebank.sentences
        parts += [part] * len(treebank)
        decisions += treebank.decisions
    if not sentences:
        raise InputError("expected at least one treebank, got none")
    return sentences, parts, tuple(decisions)


def by_part(given: Mapping[str, T]) -> list[tuple[str, T]]:
    """Return what is given for each part, in the order train, dev, test.

    Raises
    ------
    InputError
        Where train or test is missing, or there is another part.
    """
    if not {"train", "test"} <= set(given) <= set(PARTS):
        raise InputError(
            'expected the parts "train" and "test", and perhaps "dev"; got '
            f"{', '.join(map(repr, given)) or 'none'}"
        )
    return [(part, given[part]) for part in PARTS if part in given]


def key_of(text: str | Sequence[str]) -> str:
    """Return the form in which two sentences are the same: case and white space do not count."""
    whole = text if isinstance(text, str) else " ".join(text)
    return normalize_text(whole).casefold()


def content_digest(key: str, seed: int, purpose: str = "") -> bytes:
    """Return a hash of a content, by which choices depend on it and the seed alone."""
    salt = f"{seed} {purpose}".encode()[:64]
    return hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=16, key=salt).digest()


def without_repeats(
    keys: Sequence[str], parts: Sequence[str], *, within: bool
) -> tuple[list[int], tuple[Decision, ...]]:
    """Leave out of the training what is measured on, so that nothing is known by heart.

    Parameters
    ----------
    keys : sequence of str
    parts : sequence of str
    within : bool
        Whether what stands in one part several times is left in it once alone.

    Returns
    -------
    kept : list of int
        Ascending.
    decisions : tuple of Decision

    Raises
    ------
    InputError
        Where nothing is left of a part.
    """
    home: dict[str, str] = {}
    for part in ("test", "dev", "train", ""):
        for key, own in zip(keys, parts, strict=True):
            if own == part:
                home.setdefault(key, part)
    kept, seen = [], set()
    across: Counter[str] = Counter()
    n_within = 0
    for place, (key, part) in enumerate(zip(keys, parts, strict=True)):
        if home[key] != part:
            across[part] += 1
        elif within and key in seen:
            n_within += 1
        else:
            kept.append(place)
            seen.add(key)
    emptied = set(parts) - {parts[place] for place in kept}
    if emptied:
        raise InputError(
            f"expected sentences in {sorted(emptied)[0]} that are in no later part; all of them "
            "are; give each part its own"
        )
    told = []
    if across:
        counted = " and ".join(f"{n:,} of {part}" for part, n in sorted(across.items()))
        message = f"Sentences that later parts have, too, are left out: {counted}."
        told.append(Decision("probing", "repeats_across_parts", sum(across.values()), message))
    if n_within:
        message = f"{n_within:,} sentences that are there already are left out."
        told.append(Decision("probing", "repeats", n_within, message))
    return kept, tuple(told)


def dealt(keys: Sequence[str], seed: int) -> tuple[str, ...]:
    """Deal contents out to parts by their hash: equal ones to one part, in whatever order."""
    order = sorted(set(keys), key=lambda key: content_digest(key, seed, "part"))
    n = len(order)
    least = 1 if n >= len(PARTS) else 0
    n_test, n_dev = (max(least, round(SHARES[part] * n)) for part in ("test", "dev"))
    part_of = {
        key: "test" if place < n_test else "dev" if place < n_test + n_dev else "train"
        for place, key in enumerate(order)
    }
    return tuple(part_of[key] for key in keys)


def told_parts(parts: Sequence[str], seed: int, what: str = "sentences") -> Decision:
    """Say that parts were dealt out."""
    counted = Counter(parts)
    message = (
        f"The {what} were dealt out to "
        + ", ".join(f"{part} ({counted[part]:,})" for part in PARTS)
        + f" by the hash of their content, with the seed {seed}; the same ones are on one side."
    )
    return Decision("probing", "parts", "dealt", message)
