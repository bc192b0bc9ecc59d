"""Uses of a word as points: their groups, colours and sentences."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from embedtopics.errors import InputError
from embedtopics.plots.palette import NOISE_COLOR, PALETTE
from embedtopics.plots.text import LEFT_TO_RIGHT, cut, escape, plain, wrap
from embedtopics.results import WordMap

__all__ = ["OTHERS", "USE_SCALE", "UseGroup", "checked_uses", "grouped_uses", "hover_texts"]

USE_SCALE = [
    [0.0, "#440154"], [0.28, "#3b528b"], [0.56, "#21918c"], [0.8, "#5ec962"], [1.0, "#c9cf2b"],
]  # fmt: skip
"""Shades for uses without labels; lightness rises evenly, for every kind of colour vision."""

OTHERS = "#8a94a3"
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
    found: WordMap, colors: Sequence[Any] | None, places: npt.NDArray[np.float64]
) -> list[UseGroup]:
    """Return the uses by label; without labels as one group, shaded along the first axis.

    Parameters
    ----------
    found : WordMap
    colors : sequence or None
        A label for each use, each text or each unit.
    places : float64 ndarray of shape (n_uses, 2)
        The map along which uses without labels are shaded.

    Raises
    ------
    InputError
        If `colors` is of another length, or could be read in two ways.
    """
    if colors is None:
        ranks = np.argsort(np.argsort(np.round(places[:, 0], 12), kind="stable"))
        shades = ranks / max(len(found) - 1, 1)
        return [UseGroup("", np.arange(len(found)), shades.tolist())]
    labels = _labels(found, colors)
    counts = Counter(label for label in labels if label is not None)
    numbers = all(_is_number(label) for label in counts)
    named = sorted(counts, key=lambda l: float(l) if numbers else (-counts[l], str(l)))  # type: ignore[arg-type, return-value]
    kept = named
    if len(named) > _MOST:
        most = sorted(named, key=lambda label: -counts[label])[: _MOST - 1]
        kept = [label for label in named if label in set(most)]
    sets = [(_name(label), [label], PALETTE[i]) for i, label in enumerate(kept)]
    rest = [label for label in named if label not in set(kept)]
    if rest:
        sets.append((f"{len(rest):,} other labels", rest, OTHERS))
    groups = [
        UseGroup(name, np.array([i for i, own in enumerate(labels) if own in members]), color)
        for name, members, color in ((n, set(m), c) for n, m, c in sets)
    ]
    without = np.array([i for i, own in enumerate(labels) if own is None], dtype=np.int64)
    if len(without):
        groups.insert(0, UseGroup("no label", without, NOISE_COLOR))  # drawn below the others
    return groups


def _labels(found: WordMap, colors: Sequence[Any]) -> list[Any]:
    """Return the label of each use, None for none."""
    given = list(colors)
    kinds = {
        "use": (len(found), np.arange(len(found))),
        "text": (found.n_texts, found.of_text),
        "unit": (found.n_units, found.rows),
    }
    readings = [rows for n, rows in kinds.values() if n == len(given)]
    if not readings:
        raise InputError(
            f"expected a label for each of the {len(found):,} uses, {found.n_texts:,} texts or "
            f"{found.n_units:,} units; got {len(given):,}"
        )
    if any(not np.array_equal(rows, readings[0]) for rows in readings):
        raise InputError(
            f"{len(given):,} labels could be one for each use or one for each text or unit; "
            f"give one for each of the {found.n_units:,} units"
            if found.n_units != len(given)
            else f"{len(given):,} labels could be one for each unit or one for each text or use; "
            f"give one for each of the {len(found):,} uses or {found.n_texts:,} texts"
        )
    chosen = [given[row] for row in readings[0].tolist()]
    return [None if _is_none(label) else label for label in chosen]


def _is_none(label: Any) -> bool:
    return label is None or label == "" or (isinstance(label, float) and math.isnan(label))


def _is_number(label: Any) -> bool:
    return isinstance(label, (int, float, np.integer, np.floating))


def _name(label: Any) -> str:
    return escape(cut(str(label), 30)) + LEFT_TO_RIGHT


def checked_uses(found: WordMap, uses: Sequence[int], most: int | None = None) -> list[int]:
    """Return the numbers of uses, or refuse them."""
    for use in uses:
        if isinstance(use, bool) or not isinstance(use, (int, np.integer)):
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
        lines = _marked(sentence, span, length) if length else []
        number = f"<i>use {use}, text {int(found.of_text[use])}</i>"
        shown.append("<br>".join([*lines, number]))
    return shown


def _marked(sentence: str, span: Sequence[int], length: int) -> list[str]:
    """Return a sentence in lines, the word in bold."""
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
    lines = wrap(f"{left}{_OPEN}{word}{_CLOSE}{right}", _HOVER_WIDTH)
    marks = {_OPEN: "<b>", _CLOSE: "</b>"}
    escaped = [escape(line) for line in lines]
    return [
        line.replace(_OPEN, marks[_OPEN]).replace(_CLOSE, marks[_CLOSE]) for line in escaped
    ]


def _from_word(text: str) -> str:
    """Return a text from its first whole word, where there is one soon."""
    blank = text.find(" ", 0, 20)
    return text[blank + 1 :] if blank >= 0 else text


def _unmarked(text: str) -> str:
    return text.replace(_OPEN, "").replace(_CLOSE, "")
