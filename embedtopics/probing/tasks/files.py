"""Tasks from tables of labelled texts, and of labelled pairs of words in their sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from embedtopics._randomness import resolve_seed
from embedtopics.errors import InputError
from embedtopics.evaluation.encoder_tasks.tables import Rows
from embedtopics.probing.tasks.dealing import (
    by_part,
    dealt,
    key_of,
    told_parts,
    without_repeats,
)
from embedtopics.results import Decision, ProbeTask

__all__ = ["pair_task", "text_task"]

Files = str | Path | Mapping[str, str | Path]
_Use = tuple[tuple[str, ...], int]


def text_task(
    files: Files,
    *,
    text: str = "text",
    label: str = "label",
    name: str | None = None,
    seed: int = 0,
) -> ProbeTask:
    """Ask for the label of whole texts, such as whether a sentence is acceptable (CoLA).

    Parameters
    ----------
    files : path or mapping of str to path
        A csv, tsv, jsonl, json or parquet file (or one of these and .gz), or one by part: "train",
        perhaps "dev", and "test". A single file is dealt out by the hash of the texts.
    text, label : str
        Columns.
    name : str, optional
        By default that of the column of labels.
    seed : int
        Of the dealing.

    Returns
    -------
    ProbeTask
        With the unit "text". Texts of the training that are in test or dev, too, are left out, and
        those of dev that are in test. Classes are as large as they are in the files.

    Raises
    ------
    InputError
        If a file cannot be read, has no such columns, or a row has no text or no label; if parts
        are not as expected, or there is one label alone.

    References
    ----------
    Warstadt, Singh and Bowman, "Neural Network Acceptability Judgments", TACL 7, 2019.
    """
    seed = resolve_seed(seed)
    texts: list[str] = []
    labels: list[str] = []
    parts: list[str] = []
    for part, rows in _read(files):
        texts += rows.texts(text)
        labels += _labels(rows, label)
        parts += [part] * len(rows)
    keys = [key_of(one) for one in texts]
    kept, decisions = without_repeats(keys, parts, within=False)
    own = [parts[place] for place in kept]
    if not any(own):
        own = list(dealt([keys[place] for place in kept], seed))
        decisions += (told_parts(own, seed, "texts"),)
    _check_labels([labels[place] for place in kept], label)
    return ProbeTask(
        name=label if name is None else name, unit="text",
        texts=tuple(texts[place] for place in kept),
        labels=tuple((labels[place],) for place in kept), parts=tuple(own), decisions=decisions,
    )  # fmt: skip


def pair_task(
    files: Files,
    *,
    sentences: tuple[str, str] = ("sentence1", "sentence2"),
    places: tuple[str, str] = ("index1", "index2"),
    label: str = "label",
    name: str = "word in context",
    seed: int = 0,
) -> ProbeTask:
    """Ask about a word in one sentence and a word in another, such as whether both mean the same.

    Parameters
    ----------
    files : path or mapping of str to path
        As in `text_task`.
    sentences : (str, str)
        Columns of the sentences, whose words have blanks between them.
    places : (str, str)
        Columns of the places of both words, from 0.
    label : str
        Column of the labels; true and false become "true" and "false".
    name : str
    seed : int
        Of the dealing.

    Returns
    -------
    ProbeTask
        With the unit "pair"; a sentence of several pairs is among the texts once.

    Raises
    ------
    InputError
        As `text_task`, and where there is no word at a place.

    Notes
    -----
    Pairs of the training that have a sentence in common with test or dev are left out, and those
    of dev that have one in common with test; what is measured on stays as it is published. A
    single file is dealt out by its sentences: pairs with one in common are in one part.

    References
    ----------
    Pilehvar and Camacho-Collados, "WiC: the Word-in-Context Dataset for Evaluating
    Context-Sensitive Meaning Representations", NAACL 2019.
    """
    seed = resolve_seed(seed)
    uses: list[tuple[_Use, _Use]] = []
    labels: list[str] = []
    parts: list[str] = []
    for part, rows in _read(files):
        first, second = (list(_uses(rows, *named)) for named in zip(sentences, places, strict=True))
        uses += zip(first, second, strict=True)
        labels += _labels(rows, label)
        parts += [part] * len(rows)
    kept, decisions = _apart(uses, parts)
    uses = [uses[one] for one in kept]
    labels, parts = ([column[one] for one in kept] for column in (labels, parts))
    of_text: dict[tuple[str, ...], int] = {}
    pairs = np.array(
        [[of_text.setdefault(words, len(of_text)), place] for two in uses for words, place in two],
        dtype=np.int32,
    ).reshape(-1, 4)
    if not any(parts):
        parts = _dealt_pairs(pairs, [key_of(words) for words in of_text], seed)
        decisions += (told_parts(parts, seed, "pairs"),)
    _check_labels(labels, label)
    return ProbeTask(
        name=name, unit="pair", texts=tuple(of_text), labels=tuple((one,) for one in labels),
        parts=tuple(parts), pairs=pairs, decisions=decisions,
    )  # fmt: skip


def _read(files: Files) -> list[tuple[str, Rows]]:
    if isinstance(files, Mapping):
        return [(part, Rows(Path(path).expanduser())) for part, path in by_part(files)]
    return [("", Rows(Path(files).expanduser()))]


def _labels(rows: Rows, column: str) -> list[str]:
    made = []
    for row, cell in enumerate(rows.cells(column), start=1):
        spelt = str(bool(cell)).lower() if isinstance(cell, (bool, np.bool_)) else str(cell).strip()
        if cell is None or cell != cell or not spelt:
            raise InputError(
                f"{rows.path.name}, row {row}: expected a label in the column {column!r}, got "
                "none; remove the row"
            )
        made.append(spelt)
    return made


def _uses(rows: Rows, column: str, place: str) -> Iterator[_Use]:
    """Yield the words of each sentence, and which of them is meant."""
    texts, numbers = rows.texts(column), rows.numbers(place).tolist()
    for row, (text, number) in enumerate(zip(texts, numbers, strict=True), start=1):
        words = tuple(text.split())
        if not (number.is_integer() and 0 <= number < len(words)):
            raise InputError(
                f"{rows.path.name}, row {row}: expected in the column {place!r} the place of one "
                f"of {len(words)} words, from 0; got {number:g}; correct or remove the row"
            )
        yield words, int(number)


def _apart(
    uses: Sequence[tuple[_Use, _Use]], parts: Sequence[str]
) -> tuple[list[int], tuple[Decision, ...]]:
    """Leave out of the training the pairs with a sentence that is measured on."""
    keys = [{key_of(words) for words, _ in two} for two in uses]
    kept: list[int] = []
    measured: set[str] = set()
    dropped: Counter[str] = Counter()
    for part in ("test", "dev", "train", ""):
        own = [place for place, one in enumerate(parts) if one == part]
        clear = [place for place in own if not keys[place] & measured]
        if own and not clear:
            raise InputError(
                f"expected pairs in {part} whose sentences are in no later part; all of them are; "
                "give each part its own"
            )
        dropped[part] += len(own) - len(clear)
        kept += clear
        measured.update(*(keys[place] for place in clear))
    if not dropped.total():
        return sorted(kept), ()
    counted = " and ".join(f"{n:,} of {part}" for part, n in sorted(dropped.items()) if n)
    message = f"Pairs with a sentence that later parts have, too, are left out: {counted}."
    decision = Decision("probing", "repeats_across_parts", dropped.total(), message)
    return sorted(kept), (decision,)


def _check_labels(labels: Sequence[str], column: str) -> None:
    if len(set(labels)) < 2:
        raise InputError(
            f"expected at least two labels in the column {column!r}, got "
            f"{', '.join(sorted(set(labels))) or 'no rows'}"
        )


def _dealt_pairs(pairs: Any, keys: Sequence[str], seed: int) -> list[str]:
    """Deal pairs out so that those which have a sentence in common stay together."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    # Texts that differ in case alone are one sentence, here as everywhere.
    number = {key: nth for nth, key in enumerate(sorted(set(keys)))}
    of_text = np.array([number[key] for key in keys])
    ones = np.ones(len(pairs), dtype=np.int32)
    ends = of_text[pairs[:, 0]], of_text[pairs[:, 2]]
    links = coo_matrix((ones, ends), shape=(len(number), len(number)))
    _, groups = connected_components(links, directed=False)
    least: dict[int, str] = {}
    for key, nth in number.items():  # ascending: the first of a group stays
        least.setdefault(groups[nth], key)
    return list(dealt([least[groups[nth]] for nth in ends[0].tolist()], seed))
