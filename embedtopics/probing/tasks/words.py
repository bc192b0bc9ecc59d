"""Tasks that ask something of each word: its tag, its relation, how far off its head is."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence

from embedtopics._randomness import resolve_seed
from embedtopics.errors import InputError
from embedtopics.probing.tasks.dealing import (
    Treebanks,
    dealt,
    gathered,
    key_of,
    told_parts,
    without_repeats,
)
from embedtopics.results import ProbeTask, Sentence

__all__ = ["HEAD_DISTANCE", "token_task"]

HEAD_DISTANCE = "head distance"

_FARTHEST = ((1, "1"), (2, "2"), (4, "3-4"), (9, "5-9"))
_ENTITY = re.compile(r"[BIESLUM]-(.+)")
_OUTSIDE = "O"

Labeller = Callable[[Sentence], Sequence[str]]


def token_task(
    treebanks: Treebanks,
    what: str,
    *,
    entity_types: bool = False,
    missing: Collection[str] = ("_", ""),
    seed: int = 0,
) -> ProbeTask:
    """Ask a question of every word of a treebank, or of any table of labelled words.

    Parameters
    ----------
    treebanks : Treebank, sequence of Treebank, or mapping of str to Treebank
        By part: "train", perhaps "dev", and "test". Without parts, sentences are dealt out by the
        hash of their content: 80 % to train, 10 % each to dev and test.
    what : str
        A column, such as "upos", "xpos", "deprel" or the "tag" of named entities; one key of a
        column, such as "feats:Number" or "misc:Gloss", which the words without it are not asked;
        or "head distance": on which side the head of a word is, and how many words away (1, 2,
        3-4, 5-9, 10 or more).
    entity_types : bool
        Whether the place of a word in its entity is left out of the label: "person" instead of
        "B-person" and "I-person".
    missing : collection of str
        What stands for no label.
    seed : int
        Of the dealing.

    Returns
    -------
    ProbeTask
        With the unit "word". Sentences of the training that stand in test or dev, too, are left
        out, and those of dev that stand in test: a frequent "Thank you." would be known by heart.
        What is measured on stays as it is published.

    Raises
    ------
    InputError
        If there is no such column, a part has no labels, all labels are the same, or a label is
        no tag of an entity.

    Examples
    --------
    >>> train, test = map(read_conllu, ["train.conllu", "test.conllu"])  # doctest: +SKIP
    >>> task = token_task({"train": train, "test": test}, "feats:Number")  # doctest: +SKIP
    """
    seed = resolve_seed(seed)
    sentences, parts, decisions = gathered(treebanks)
    labels_of = _labeller(sentences, what, set(missing), entity_types)
    keys = [key_of(sentence.words) for sentence in sentences]
    kept, repeats = without_repeats(keys, parts, within=False)
    decisions += repeats
    sentences = [sentences[place] for place in kept]
    parts = [parts[place] for place in kept]
    if not any(parts):
        parts = list(dealt([keys[place] for place in kept], seed))
        decisions += (told_parts(parts, seed),)
    labels = tuple(tuple(labels_of(sentence)) for sentence in sentences)
    _check(labels, parts, what)
    return ProbeTask(
        name=f"{what} type" if entity_types else what, unit="word",
        texts=tuple(sentence.words for sentence in sentences), labels=labels, parts=tuple(parts),
        decisions=decisions,
    )  # fmt: skip


def _labeller(
    sentences: Sequence[Sentence], what: str, missing: set[str], entity_types: bool
) -> Labeller:
    if what == HEAD_DISTANCE:
        if not any(sentence.heads for sentence in sentences):
            raise InputError(f"expected heads for {what!r}, got sentences without any")
        return _head_distances
    column, _, key = what.partition(":")
    name = what if all(what in sentence.columns for sentence in sentences) else column
    lacking = next((one for one in sentences if name not in one.columns), None)
    if lacking is not None:
        raise InputError(
            f"expected a column {name!r} for every sentence; the sentence {lacking.id!r} has "
            f"{', '.join(map(repr, lacking.columns))}; ask for one of these, or for "
            f'"{HEAD_DISTANCE}"'
        )
    read = (lambda cell: _value(cell, key)) if name != what else (lambda cell: cell)

    def labels_of(sentence: Sentence) -> list[str]:
        cells = [
            # An underscore is the lemma of an underscore.
            cell if cell not in missing or (name == "lemma" and cell == word) else ""
            for word, cell in zip(sentence.words, sentence.columns[name], strict=True)
        ]
        found = [read(cell) for cell in cells]
        return [_entity_type(tag, what, sentence) for tag in found] if entity_types else found

    return labels_of


def _value(cell: str, key: str) -> str:
    """Return the value of a key in "Case=Nom|Number=Sing"."""
    for one in cell.split("|"):
        name, sign, value = one.partition("=")
        if sign and name == key:
            return value
    return ""


def _entity_type(tag: str, what: str, sentence: Sentence) -> str:
    if tag in ("", _OUTSIDE):
        return tag
    found = _ENTITY.fullmatch(tag)
    if found is None:
        raise InputError(
            f"expected tags of entities such as B-person, I-person and O in the column {what!r}; "
            f"the sentence {sentence.id!r} has {tag!r:.40}; leave entity_types out"
        )
    return found.group(1)


def _head_distances(sentence: Sentence) -> list[str]:
    if not sentence.heads:
        return [""] * len(sentence.words)
    return [
        "root" if head == 0 else _bucket(head - place)
        for place, head in enumerate(sentence.heads, start=1)
    ]


def _bucket(distance: int) -> str:
    """Return a class of signed distances.

    Examples
    --------
    >>> _bucket(-1), _bucket(4), _bucket(25)
    ('left 1', 'right 3-4', 'right 10+')
    """
    side = "left" if distance < 0 else "right"
    size = next((name for most, name in _FARTHEST if abs(distance) <= most), "10+")
    return f"{side} {size}"


def _check(labels: Sequence[Sequence[str]], parts: Sequence[str], what: str) -> None:
    """Make sure that there is something to learn and to measure."""
    found: dict[str, set[str]] = {part: set() for part in parts}
    for own, part in zip(labels, parts, strict=True):
        found[part].update(own)
    for part, known in found.items():
        if not known - {""}:
            raise InputError(f"expected labels of {what!r} in {part}, got none; ask for another")
    if len(set().union(*found.values()) - {""}) < 2:
        raise InputError(f"expected at least two labels of {what!r}, got one; ask for another")
