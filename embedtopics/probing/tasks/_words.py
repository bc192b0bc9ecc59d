"""Tasks on each word: its tag, its relation, the distance to its head."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence

from embedtopics._utils.checks import resolve_seed
from embedtopics.errors import InputError
from embedtopics.probing.results import ProbeTask, Sentence
from embedtopics.probing.tasks._split import (
    Treebanks,
    gathered,
    key_of,
    split_contents,
    without_repeats,
)
from embedtopics.protocols import RandomState

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
    random_state: RandomState = 0,
) -> ProbeTask:
    """Make a task of labels of every word of a treebank, or of a table of labelled words.

    Parameters
    ----------
    treebanks : Treebank, sequence of Treebank, or mapping of str to Treebank
        By part: "train", perhaps "dev", and "test". Without parts, sentences are split by the
        hash of their content: 80 % to train, 10 % each to dev and test.
    what : str
        A column, such as "upos", "xpos", "deprel" or the "tag" of named entities; one key of a
        column, such as "feats:Number" or "misc:Gloss", of the words that have it; or "head
        distance": on which side the head of a word is, and how many words away (1, 2, 3-4, 5-9, 10
        or more).
    entity_types : bool
        Whether to strip the prefix of entity tags: "person" instead of "B-person", "I-person".
    missing : collection of str
        Values that mean no label.
    random_state : int, Generator or None
        Of the split.

    Returns
    -------
    ProbeTask
        With the unit "word". Sentences of the train part that occur in test or dev, too, are left
        out, and those of dev that occur in test: a frequent "Thank you." would be memorized. The
        test part stays as it is published.

    Raises
    ------
    InputError
        If there is no such column, a part has no labels, all labels are the same, or a label is
        no tag of an entity.
    """
    sentences, parts, decisions = gathered(treebanks)
    labels_of = _labeller(sentences, what, set(missing), entity_types)
    keys = [key_of(sentence.words) for sentence in sentences]
    kept, repeats = without_repeats(keys, parts, within=False)
    decisions += repeats
    sentences = [sentences[place] for place in kept]
    parts = [parts[place] for place in kept]
    if not any(parts):
        seed = resolve_seed(random_state)
        parts, split = split_contents([keys[place] for place in kept], seed, "sentences")
        decisions += split
    labels = tuple(tuple(labels_of(sentence)) for sentence in sentences)
    _check(labels, parts, what)
    return ProbeTask(
        name=f"{what} type" if entity_types else what,
        unit="word",
        texts=tuple(sentence.words for sentence in sentences),
        labels=labels,
        parts=tuple(parts),
        decisions=decisions,
    )


def _labeller(
    sentences: Sequence[Sentence], what: str, missing: set[str], entity_types: bool
) -> Labeller:
    if what == HEAD_DISTANCE:
        if not any(sentence.heads for sentence in sentences):
            raise InputError("treebanks", f"with heads, for {what!r}", found="none")
        return _head_distances
    column, _, key = what.partition(":")
    name = what if all(what in sentence.columns for sentence in sentences) else column
    lacking = next((one for one in sentences if name not in one.columns), None)
    if lacking is not None:
        columns = ", ".join(lacking.columns)
        raise InputError("what", f'one of {columns}, or "{HEAD_DISTANCE}"', what)
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
        expected = f"tags such as B-person, I-person and O, in sentence {sentence.id!r}"
        raise InputError(what, expected, tag, "leave entity_types out")
    return found.group(1)


def _head_distances(sentence: Sentence) -> list[str]:
    if not sentence.heads:
        return [""] * len(sentence.words)
    return [
        "root" if head == 0 else _bucket(head - place)
        for place, head in enumerate(sentence.heads, start=1)
    ]


def _bucket(distance: int) -> str:
    """Return a class of signed distances."""
    side = "left" if distance < 0 else "right"
    size = next((name for most, name in _FARTHEST if abs(distance) <= most), "10+")
    return f"{side} {size}"


def _check(labels: Sequence[Sequence[str]], parts: Sequence[str], what: str) -> None:
    """Refuse parts without labels, and a single label."""
    found: dict[str, set[str]] = {part: set() for part in parts}
    for own, part in zip(labels, parts, strict=True):
        found[part].update(own)
    for part, known in found.items():
        if not known - {""}:
            raise InputError("what", f"a column with labels in {part}", what)
    if len(set().union(*found.values()) - {""}) < 2:
        raise InputError("what", "a column of two labels or more", what)
