"""The parts of a task: which sentence is for training, for dev or for the test."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TypeVar

from embedtopics.corpus._hashing import normalize_text
from embedtopics.corpus.results import Decision
from embedtopics.errors import InputError
from embedtopics.probing.results import Sentence, Treebank

PARTS = ("train", "dev", "test")
SHARES = {"train": 0.8, "dev": 0.1, "test": 0.1}
"""Share of the contents in each part where the parts are not given."""

Treebanks = Treebank | Sequence[Treebank] | Mapping[str, Treebank]
T = TypeVar("T")


def gathered(treebanks: Treebanks) -> tuple[list[Sentence], list[str], tuple[Decision, ...]]:
    """Return all sentences, their parts ("" where none are given) and the readers' decisions."""
    if isinstance(treebanks, Mapping):
        named = by_part(treebanks, "treebanks")
    else:
        several = [treebanks] if isinstance(treebanks, Treebank) else list(treebanks)
        named = [("", one) for one in several]
    if not named or not all(isinstance(one, Treebank) for _, one in named):
        expected = "what read_conllu or read_token_table returned, one, several or by part"
        kinds = ", ".join(type(one).__name__ for _, one in named)
        raise InputError("treebanks", expected, found=kinds or "none")
    sentences = [sentence for _, one in named for sentence in one.sentences]
    parts = [part for part, one in named for _ in one.sentences]
    if not sentences:
        raise InputError("treebanks", "with sentences", found="none")
    return sentences, parts, tuple(decision for _, one in named for decision in one.decisions)


def by_part(given: Mapping[str, T], parameter: str) -> list[tuple[str, T]]:
    """Return what is given for each part, in the order train, dev, test."""
    if not {"train", "test"} <= set(given) <= set(PARTS):
        raise InputError(parameter, 'by part "train", "test" and perhaps "dev"', list(given))
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
    """Leave sentences of later parts out of the earlier ones, so that none can be memorized."""
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
    decisions = repeats_across(across, set(parts) - {parts[place] for place in kept}, "Sentences")
    if n_within:
        message = f"{n_within:,} repeated sentences are left out."
        decisions = (*decisions, Decision("probing", "repeats", n_within, message))
    return kept, decisions


def repeats_across(across: Counter[str], emptied: set[str], what: str) -> tuple[Decision, ...]:
    """Report what earlier parts have in common with later ones; refuse parts that it empties."""
    if emptied:
        part = sorted(emptied)[0]
        raise InputError(f"the part {part}", "with content of its own", found="that of later parts")
    if not across.total():
        return ()
    counted = " and ".join(f"{n:,} of {part}" for part, n in sorted(across.items()) if n)
    message = f"{what} that occur in later parts, too, are left out: {counted}."
    return (Decision("probing", "repeats_across_parts", across.total(), message),)


def split_contents(
    keys: Sequence[str], seed: int, what: str
) -> tuple[list[str], tuple[Decision, ...]]:
    """Assign contents to parts by their hash: equal ones to one part, in whatever order."""
    order = sorted(set(keys), key=lambda key: content_digest(key, seed, "part"))
    n = len(order)
    least = 1 if n >= len(PARTS) else 0
    n_test, n_dev = (max(least, round(SHARES[part] * n)) for part in ("test", "dev"))
    part_of = {
        key: "test" if place < n_test else "dev" if place < n_test + n_dev else "train"
        for place, key in enumerate(order)
    }
    parts = [part_of[key] for key in keys]
    counted = Counter(parts)
    sizes = ", ".join(f"{part} ({counted[part]:,})" for part in PARTS)
    message = f"The {what} were split by the hash of their content: {sizes}; random_state {seed}."
    return parts, (Decision("probing", "parts", "split", message),)
