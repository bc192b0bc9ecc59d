"""Uses of a word as points: their groups, colours and sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from embedtopics._checks import is_number, is_whole
from embedtopics.corpus.hashing import is_missing
from embedtopics.errors import InputError
from embedtopics.plots.palette import NOISE_COLOR, PALETTE
from embedtopics.plots.text import LEFT_TO_RIGHT, cut, escape, plain, wrap
from embedtopics.results import WordMap, WordSenses

__all__ = ["USE_SCALE", "UseGroup", "checked_uses", "grouped_uses", "hover_texts", "marked"]

USE_SCALE = [
    [0.0, "#440154"], [0.28, "#3b528b"], [0.56, "#21918c"], [0.8, "#5ec962"], [1.0, "#c9cf2b"],
]  # fmt: skip
"""Shades for uses without labels; lightness rises evenly, for every kind of colour vision."""

GREY = "#8a94a3"
_MOST = 12
"""Labels that have a colour of their own; more are not told apart."""
_HOVER_WIDTH = 60
# Private characters hold the place of the marks while a sentence is cut and wrapped.
_OPEN, _CLOSE = "\ue000", "\ue001"


@dataclass(frozen=True, eq=False)
class UseGroup:
    """Uses that share a label.

    Parameters
    ----------
    name : str
        As it is shown, escaped; empty where uses have no labels.
    members : int64 ndarray of shape (n,)
        Numbers of the uses.
    color : str or list of float
        One for all, or where each stands on `USE_SCALE`.
    """

    name: str
    members: npt.NDArray[np.int64]
    color: str | list[float]


def grouped_uses(
    found: WordMap, colors: Sequence[Any] | WordSenses | None, places: npt.NDArray[np.float64]
) -> list[UseGroup]:
    """Return the uses by label; without labels as one group, shaded along the first axis.

    Parameters
    ----------
    found : WordMap
    colors : sequence, WordSenses or None
        A label for each use, each text or each unit, or what the senses say of each use.
    places : float64 ndarray of shape (n_uses, 2)
        The map along which uses without labels are shaded.

    Returns
    -------
    list of UseGroup
        Numbers in their order, other labels with the most frequent first; uses without a label
        come before all others, so that they are drawn below them.

    Raises
    ------
    InputError
        If `colors` is of another length, could be read in two ways, or is of other uses.
    """
    if colors is None:
        ranks = np.argsort(np.argsort(np.round(places[:, 0], 12), kind="stable"))
        shades = ranks / max(len(found) - 1, 1)
        return [UseGroup("", np.arange(len(found)), shades.tolist())]
    given = _of_senses(found, colors) if isinstance(colors, WordSenses) else _labels(found, colors)
    known = [label for label in given if label is not None]
    if known and all(is_number(label) for label in known):
        names = [f"{label:g}" for label in sorted({float(label) for label in known})]
        labels = [None if label is None else f"{float(label):g}" for label in given]
    else:
        labels = [None if label is None else str(label) for label in given]
        counts = Counter(label for label in labels if label is not None)
        names = sorted(counts, key=lambda name: (-counts[name], name))
    members = {name: _where(labels, name) for name in names}
    frequent = sorted(names, key=lambda name: -len(members[name]))
    own = names if len(names) <= _MOST else [n for n in names if n in set(frequent[: _MOST - 1])]
    groups = [
        UseGroup(escape(cut(name, 30)) + LEFT_TO_RIGHT, members[name], PALETTE[place])
        for place, name in enumerate(own)
    ]
    rest = [members[name] for name in names if name not in set(own)]
    if rest:
        groups.append(UseGroup(f"{len(rest):,} other labels", np.sort(np.concatenate(rest)), GREY))
    without = _where(labels, None)
    if len(without):
        groups.insert(0, UseGroup("no label", without, NOISE_COLOR))
    return groups


def _where(labels: Sequence[str | None], name: str | None) -> npt.NDArray[np.int64]:
    return np.array([i for i, label in enumerate(labels) if label == name], dtype=np.int64)


def _of_senses(found: WordMap, senses: WordSenses) -> list[str | None]:
    """Return the sense of each use, None for those that were not looked at."""
    of_row = {use.row: int(label) for use, label in zip(senses.uses, senses.labels, strict=True)}
    labels = [of_row.get(row) for row in found.rows.tolist()]
    if all(label is None for label in labels) or senses.encoder != found.encoder:
        raise InputError(
            f"expected senses of the uses of {found.word!r} with {found.encoder}; "
            f"got those of {senses.word!r} with {senses.encoder}"
        )
    return [None if label is None else f"sense {label}" for label in labels]


def _labels(found: WordMap, colors: Sequence[Any]) -> list[Any]:
    """Return the label of each use, None for none."""
    given = list(colors)
    ways = ((len(found), range(len(found))), (found.n_texts, found.of_text.tolist()),
            (found.n_units, found.rows.tolist()))  # fmt: skip
    readings = [list(rows) for n, rows in ways if n == len(given)]
    counts = f"{len(found):,} uses, {found.n_texts:,} texts or {found.n_units:,} units"
    if not readings:
        raise InputError(f"expected a label for each of the {counts}; got {len(given):,}")
    if any(rows != readings[0] for rows in readings):
        raise InputError(
            f"expected labels whose number tells what they belong to, {counts}; "
            f"{len(given):,} could be several of these"
        )
    chosen = [given[row] for row in readings[0]]
    return [None if _is_none(label) else label for label in chosen]


def _is_none(label: Any) -> bool:
    return is_missing(label) or (isinstance(label, str) and not label)


def checked_uses(found: WordMap, uses: Sequence[int], most: int | None = None) -> list[int]:
    """Return the numbers of uses, or refuse them."""
    for use in uses:
        if not is_whole(use):
            raise InputError(f"expected the numbers of uses as whole numbers; got {use!r}")
        if not 0 <= use < len(found):
            raise InputError(f"expected a use from 0 to {len(found) - 1}; got {use}")
    if most is not None and len(uses) > most:
        raise InputError(f"expected at most {most} uses, which can be told apart; got {len(uses)}")
    return [int(use) for use in uses]


def hover_texts(found: WordMap, length: int) -> list[str]:
    """Return the sentence of each use as Plotly markup, the word in bold, and its number.

    Parameters
    ----------
    found : WordMap
    length : int
        Characters of a sentence; of a longer one those around the word are shown.
    """
    if length < 0:
        raise InputError(f"hover_characters must be 0 or more; got {length}")
    shown = []
    for use, (sentence, span) in enumerate(zip(found.sentences, found.spans.tolist(), strict=True)):
        lines = marked(sentence, span, length) if length else []
        number = f"<i>use {use}, text {int(found.of_text[use])}</i>"
        shown.append("<br>".join([*lines, number]))
    return shown


def marked(sentence: str, span: Sequence[int], length: int, width: int = _HOVER_WIDTH) -> list[str]:
    """Return a sentence as escaped lines, the word in bold; a long one as what is around it."""
    begin, end = span
    before, word, after = sentence[:begin], sentence[begin:end], sentence[end:]
    word = cut(word, length)
    room = max(length - len(word), 0)
    left, right = plain(before), plain(after)
    n_left = min(len(left), max(room // 2, room - len(right)))
    n_right = min(len(right), room - n_left)
    if n_left < len(left):
        left = "…" + _from_word(left[len(left) - n_left :])
    if n_right < len(right):
        right = cut(right, n_right + 1) if n_right else "…"
    # whether a blank stood between them is lost by plain()
    left += " " if before[-1:].isspace() else ""
    right = (" " if after[:1].isspace() else "") + right
    left, word, right = (_unmarked(part) for part in (left, word, right))
    lines = wrap(f"{left}{_OPEN}{word}{_CLOSE}{right}", width)
    marks = {_OPEN: "<b>", _CLOSE: "</b>"}
    escaped = [escape(line) for line in lines]
    return [line.replace(_OPEN, marks[_OPEN]).replace(_CLOSE, marks[_CLOSE]) for line in escaped]


def _from_word(text: str) -> str:
    """Return a text from its first whole word, where there is one soon."""
    blank = text.find(" ", 0, 20)
    return text[blank + 1 :] if blank >= 0 else text


def _unmarked(text: str) -> str:
    return text.replace(_OPEN, "").replace(_CLOSE, "")
