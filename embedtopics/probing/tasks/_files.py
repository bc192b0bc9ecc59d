"""Tasks from tables of labelled texts, and of labelled pairs of words in their sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from embedtopics._utils.checks import resolve_seed
from embedtopics.corpus._hashing import is_missing
from embedtopics.corpus.results import Decision
from embedtopics.errors import InputError
from embedtopics.probing.results import ProbeTask
from embedtopics.probing.tasks._split import (
    by_part,
    key_of,
    repeats_across,
    split_contents,
    without_repeats,
)
from embedtopics.protocols import RandomState

if TYPE_CHECKING:
    import pandas as pd

Files = str | Path | Mapping[str, str | Path]
_Use = tuple[tuple[str, ...], int]
"""The words of a sentence, and which of them is labelled."""


def text_task(
    files: Files,
    *,
    text: str = "text",
    label: str = "label",
    name: str | None = None,
    random_state: RandomState = 0,
) -> ProbeTask:
    """Make a task of the labels of whole texts, such as whether a sentence is acceptable (CoLA).

    Parameters
    ----------
    files : path or mapping of str to path
        A csv, tsv, jsonl, json or parquet file (or one of these and .gz), or one by part: "train",
        perhaps "dev", and "test". A single file is split by the hash of the texts.
    text, label : str
        Columns.
    name : str, optional
        By default that of the column of labels.
    random_state : int, Generator or None
        Of the split.

    Returns
    -------
    ProbeTask
        With the unit "text". Texts of the train part that are in test or dev, too, are left out,
        and those of dev that are in test. Classes keep their sizes.

    Raises
    ------
    InputError
        If a file cannot be read, has no such columns, or a row has no text or no label; if parts
        are not as expected, or there is only one label.

    References
    ----------
    Warstadt, Singh and Bowman, "Neural Network Acceptability Judgments", TACL 7, 2019.
    """
    texts: list[str] = []
    labels: list[str] = []
    parts: list[str] = []
    for part, table in _read(files):
        texts += table.column(text, _is_text, "a text")
        labels += table.labels(label)
        parts += [part] * len(table.frame)
    keys = [key_of(one) for one in texts]
    kept, decisions = without_repeats(keys, parts, within=False)
    own = [parts[place] for place in kept]
    if not any(own):
        seed = resolve_seed(random_state)
        own, split = split_contents([keys[place] for place in kept], seed, "texts")
        decisions += split
    return _task(
        label if name is None else name, "text", [texts[place] for place in kept],
        [labels[place] for place in kept], own, decisions,
    )  # fmt: skip


def pair_task(
    files: Files,
    *,
    sentences: tuple[str, str] = ("sentence1", "sentence2"),
    places: tuple[str, str] = ("index1", "index2"),
    label: str = "label",
    name: str = "word in context",
    random_state: RandomState = 0,
) -> ProbeTask:
    """Make a task of pairs of words in sentences, such as whether both have the same sense.

    Parameters
    ----------
    files : path or mapping of str to path
        As in `text_task`.
    sentences : (str, str)
        Columns of the sentences, whose words have spaces between them.
    places : (str, str)
        Columns of the numbers of both words, from 0.
    label : str
        Column of the labels; true and false become "true" and "false".
    name : str
    random_state : int, Generator or None
        Of the split.

    Returns
    -------
    ProbeTask
        With the unit "pair"; a sentence of several pairs is among the texts once.

    Raises
    ------
    InputError
        As `text_task`, and where a number is not that of a word.

    Notes
    -----
    Pairs of the train part that share a sentence with test or dev are left out, and those of dev
    that share one with test; the test part stays as it is published. A single file is split by its
    sentences: pairs that share one are in one part.

    References
    ----------
    Pilehvar and Camacho-Collados, "WiC: the Word-in-Context Dataset for Evaluating
    Context-Sensitive Meaning Representations", NAACL 2019.
    """
    uses: list[tuple[_Use, _Use]] = []
    labels: list[str] = []
    parts: list[str] = []
    for part, table in _read(files):
        first, second = (table.uses(*columns) for columns in zip(sentences, places, strict=True))
        uses += zip(first, second, strict=True)
        labels += table.labels(label)
        parts += [part] * len(table.frame)
    kept, decisions = _without_shared_sentences(uses, parts)
    of_text: dict[tuple[str, ...], int] = {}
    pairs = np.array(
        [
            [of_text.setdefault(words, len(of_text)), place]
            for one in kept
            for words, place in uses[one]
        ],
        dtype=np.int32,
    ).reshape(-1, 4)
    parts = [parts[one] for one in kept]
    if not any(parts):
        keys = _sentence_groups(pairs, [key_of(words) for words in of_text])
        parts, split = split_contents(keys, resolve_seed(random_state), "pairs")
        decisions += split
    labels = [labels[one] for one in kept]
    return _task(name, "pair", list(of_text), labels, parts, decisions, pairs)


def _task(
    name: str,
    unit: str,
    texts: Sequence[Any],
    labels: Sequence[str],
    parts: Sequence[str],
    decisions: tuple[Decision, ...],
    pairs: npt.NDArray[np.int32] | None = None,
) -> ProbeTask:
    if len(set(labels)) < 2:
        raise InputError("label", "a column of two labels or more", sorted(set(labels)))
    return ProbeTask(
        name=name,
        unit=unit,
        texts=tuple(texts),
        labels=tuple((one,) for one in labels),
        parts=tuple(parts),
        pairs=pairs,
        decisions=decisions,
    )


def _read(files: Files) -> list[tuple[str, _Table]]:
    named = by_part(files, "files") if isinstance(files, Mapping) else [("", files)]
    return [(part, _Table(Path(path).expanduser())) for part, path in named]


def _is_text(cell: Any) -> bool:
    return isinstance(cell, str) and bool(cell.strip())


class _Table:
    """The columns of a file, each cell checked."""

    def __init__(self, path: Path) -> None:
        from embedtopics.corpus._readers import read_file

        self.path = path
        self.frame: pd.DataFrame = read_file(path).frame

    def column(self, name: str, is_good: Callable[[Any], bool], expected: str) -> list[Any]:
        """Return a column, or refuse the first cell that is not as expected."""
        if name not in self.frame:
            columns = ", ".join(map(repr, self.frame.columns))
            raise InputError(name, f"a column of {self.path.name}", found=columns)
        cells = list(self.frame[name])
        for row, cell in enumerate(cells, start=1):
            if not is_good(cell):
                parameter = f"{name} in {self.path.name}"
                raise InputError(parameter, expected, cell, "correct or remove the row", row=row)
        return cells

    def labels(self, name: str) -> list[str]:
        """Return a column of labels as strings; truth values are "true" and "false"."""
        cells = self.column(
            name, lambda cell: not is_missing(cell) and bool(str(cell).strip()), "a label"
        )
        return [
            str(bool(cell)).lower() if isinstance(cell, (bool, np.bool_)) else str(cell).strip()
            for cell in cells
        ]

    def uses(self, column: str, place: str) -> list[_Use]:
        """Return the words of each sentence, and the number of one of them."""
        sentences = [tuple(text.split()) for text in self.column(column, _is_text, "a text")]
        lengths = iter([len(words) for words in sentences])
        expected = "the number of a word of the sentence, from 0"
        numbers = self.column(place, lambda cell: _is_place(cell, next(lengths)), expected)
        return [(words, int(float(n))) for words, n in zip(sentences, numbers, strict=True)]


def _is_place(cell: Any, n_words: int) -> bool:
    try:
        number = float(cell)
    except (TypeError, ValueError):
        return False
    return not isinstance(cell, bool) and number.is_integer() and 0 <= number < n_words


def _without_shared_sentences(
    uses: Sequence[tuple[_Use, _Use]], parts: Sequence[str]
) -> tuple[list[int], tuple[Decision, ...]]:
    """Leave pairs out of the train and dev part that share a sentence with a later part."""
    keys = [{key_of(words) for words, _ in two} for two in uses]
    kept: list[int] = []
    later: set[str] = set()
    dropped: Counter[str] = Counter()
    for part in ("test", "dev", "train", ""):
        own = [place for place, one in enumerate(parts) if one == part]
        clear = [place for place in own if not keys[place] & later]
        dropped[part] += len(own) - len(clear)
        kept += clear
        later.update(*(keys[place] for place in clear))
    emptied = set(parts) - {parts[place] for place in kept}
    return sorted(kept), repeats_across(dropped, emptied, "Pairs with sentences")


def _sentence_groups(pairs: npt.NDArray[np.int32], keys: Sequence[str]) -> list[str]:
    """Return for each pair the first of the sentences that are connected with it by pairs."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    # Texts that differ in case alone are one sentence, here as everywhere.
    number = {key: nth for nth, key in enumerate(sorted(set(keys)))}
    of_text = np.array([number[key] for key in keys])
    ends = of_text[pairs[:, 0]], of_text[pairs[:, 2]]
    ones = np.ones(len(pairs), dtype=np.int32)
    links = coo_matrix((ones, ends), shape=(len(number), len(number)))
    _, groups = connected_components(links, directed=False)
    first: dict[int, str] = {}
    for key, nth in number.items():  # ascending: the first of a group stays
        first.setdefault(groups[nth], key)
    return [first[groups[nth]] for nth in ends[0].tolist()]
