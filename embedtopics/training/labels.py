"""Reading what examples are labelled with: classes of inference, scores on a scale, yes or no."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from embedtopics._checks import is_number
from embedtopics.corpus.hashing import is_missing
from embedtopics.corpus.tables import name_rows
from embedtopics.errors import InputError
from embedtopics.results import Decision

__all__ = [
    "NLI_NAMES", "ReadLabels", "read_binary", "read_classes", "read_scores", "require_difference",
]  # fmt: skip

NLI_NAMES = ("entailment", "neutral", "contradiction")
"""The classes of inference, in the order in which they are numbered."""

_SPELLINGS = {
    "entailment": ("entailment", "entailed", "entails", "entail", "e"),
    "neutral": ("neutral", "n"),
    "contradiction": (
        "contradiction", "contradictory", "contradicted", "contradicts", "contradict", "c",
    ),
}  # fmt: skip
_CLASS_OF = {spelling: name for name, known in _SPELLINGS.items() for spelling in known}
_NO_GOLD = {"-", "-1"}  # how SNLI and its copies mark pairs on which the annotators disagreed
_TRUTHS = {"0": 0, "1": 1, "false": 0, "true": 1}
_MOST_LISTED = 12

NameRows = Callable[[Sequence[int]], str]


@dataclass(frozen=True, eq=False)
class ReadLabels:
    """A column of labels after its reading.

    Parameters
    ----------
    values : ndarray of shape (n_rows,)
        int64 or float64; what stands where `status` is not "" means nothing.
    status : tuple of str
        "" where the label can be used, "missing", or "no gold label".
    names : tuple of str
    decisions : tuple of Decision
    """

    values: npt.NDArray[Any]
    status: tuple[str, ...]
    names: tuple[str, ...] = ()
    decisions: tuple[Decision, ...] = ()


def read_classes(values: Sequence[object], order: Sequence[str] | None, source: str) -> ReadLabels:
    """Read the classes of inference.

    Parameters
    ----------
    values : sequence
        Names in any case, or, with an order, numbers.
    order : sequence of str, optional
        What 0, 1 and 2 stand for.
    source : str
        For messages.
    """
    numbered = _checked_order(order)
    status, codes, unknown, changed = [], [], False, 0
    for value in values:
        spelled = _spelled(value)
        name = _CLASS_OF.get(spelled)
        if name is None and spelled.isdecimal() and int(spelled) < len(numbered):
            name = numbered[int(spelled)]
        is_gold = spelled not in _NO_GOLD
        unknown |= name is None and is_gold and spelled != ""
        changed += name is not None and name != value
        codes.append(-1 if name is None else NLI_NAMES.index(name))
        status.append("missing" if spelled == "" else "" if is_gold else "no gold label")
    if unknown:
        numbers = all(_spelled(value) in {"", "-1", "0", "1", "2"} for value in values)
        remedy = (
            f"say what the numbers mean with label_order, such as label_order={NLI_NAMES!r}"
            if numbers and not numbered
            else "rename them, or leave those rows out"
        )
        raise InputError(
            f"{source}: expected the labels {', '.join(NLI_NAMES)}; got {_listed(values)}; {remedy}"
        )
    decisions = []
    if changed:
        message = f"{changed:,} labels were read as one of {', '.join(NLI_NAMES)}."
        decisions.append(Decision("training", "label_spellings", changed, message))
    absent = [name for code, name in enumerate(NLI_NAMES) if code not in codes]
    if absent:
        message = f"No example has the label {absent[0]}."
        decisions.append(Decision("training", "absent_label", absent[0], message))
    return ReadLabels(np.array(codes, np.int64), tuple(status), NLI_NAMES, tuple(decisions))


def read_binary(values: Sequence[object], source: str) -> ReadLabels:
    """Read labels that say whether two texts belong together: 0 or 1, or truth values."""
    spelled = [_spelled(value) for value in values]
    if any(cell and cell not in _TRUTHS for cell in spelled):
        raise InputError(
            f"{source}: expected the labels 0 and 1; got {_listed(values)}; write 1 where the two "
            "texts belong together and 0 where not"
        )
    codes = np.array([_TRUTHS.get(cell, -1) for cell in spelled], dtype=np.int64)
    return ReadLabels(codes, tuple("" if cell else "missing" for cell in spelled))


def read_scores(
    values: Sequence[object],
    scale: tuple[float, float] | None,
    source: str,
    name: NameRows,
) -> ReadLabels:
    """Read scores, and bring them from their scale to the one from 0 to 1.

    Parameters
    ----------
    values : sequence
        Numbers, or strings that hold one.
    scale : (float, float), optional
        The lowest and the highest score that could be given. Without it, scores must already lie
        from 0 to 1: what lies inside another scale does not tell where that ends.
    source : str
    name : callable
        Names rows for messages.
    """
    low, high = _checked_scale(scale)
    scores = np.array([_number(value, row, source, name) for row, value in enumerate(values)])
    known = ~np.isnan(scores)
    outside = np.flatnonzero(known & ~((scores >= low) & (scores <= high)))
    if len(outside):
        got = f"{source}, {name([int(outside[0])])}: expected a score from {low:g} to {high:g}, "
        if scale is None:
            lowest, highest = scores[known].min(), scores[known].max()
            raise InputError(
                f"{got}got {scores[outside[0]]:g}; scores go from {lowest:g} to {highest:g} here: "
                "say which could be given, such as scale=(0, 5)"
            )
        raise InputError(
            f"{got}got {scores[outside[0]]:g} ({len(outside):,} scores lie outside); correct them, "
            "or give the scale that was used"
        )
    message = f"Scores are on a scale from {low:g} to {high:g}."
    return ReadLabels(
        (scores - low) / (high - low),
        tuple("" if is_known else "missing" for is_known in known.tolist()),
        decisions=(Decision("training", "scale", [str(low), str(high)], message),),
    )


def require_difference(labels: ReadLabels, kept: npt.NDArray[np.int64], source: str) -> None:
    """Refuse labels that are all the same on the rows that are used."""
    values = labels.values[kept]
    if len(values) and (values == values[0]).all():
        one = labels.names[int(values[0])] if labels.names else f"{float(values[0]):g}"
        raise InputError(
            f"{source}: expected at least two different labels, got {one} in all "
            f"{len(values):,} usable rows; nothing can be learned or measured with one"
        )


def _spelled(value: object) -> str:
    """Return a label in small letters, whole numbers without a fraction; "" where missing."""
    if is_missing(value):
        return ""
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value)).lower()
    if isinstance(value, (int, float, np.integer, np.floating)) and float(value).is_integer():
        return str(int(value))
    return str(value).strip().casefold()


def _listed(values: Sequence[object]) -> str:
    """Name the labels that were found, the most frequent first, with counts and the first row."""
    counts: dict[str, int] = {}
    first: dict[str, int] = {}
    for row, value in enumerate(values):
        shown = "none" if is_missing(value) else repr(getattr(value, "item", lambda v=value: v)())
        counts[shown] = counts.get(shown, 0) + 1
        first.setdefault(shown, row)
    ordered = sorted(counts, key=lambda shown: (-counts[shown], first[shown]))
    parts = [f"{s[:40]} ({counts[s]:,}, first in {name_rows([first[s]])})" for s in ordered]
    more = len(parts) - _MOST_LISTED
    return ", ".join(parts[:_MOST_LISTED]) + (f" and {more:,} other labels" if more > 0 else "")


def _checked_order(order: Sequence[str] | None) -> tuple[str, ...]:
    if order is None:
        return ()
    names = () if isinstance(order, str) else tuple(_CLASS_OF.get(_spelled(n), "") for n in order)
    if sorted(names) != sorted(NLI_NAMES):
        raise InputError(
            f"expected label_order to hold {', '.join(NLI_NAMES)}, each once; got {order!r}"
        )
    return names


def _checked_scale(scale: Any) -> tuple[float, float]:
    if scale is None:
        return 0.0, 1.0
    is_pair = isinstance(scale, (tuple, list)) and len(scale) == 2 and all(map(is_number, scale))
    if not is_pair or not -math.inf < scale[0] < scale[1] < math.inf:
        raise InputError(
            "expected scale to be the lowest and the highest score that could be given, such as "
            f"(0, 5); got {scale!r}"
        )
    return float(scale[0]), float(scale[1])


def _number(value: object, row: int, source: str, name: NameRows) -> float:
    """Return a score, NaN where there is none."""
    if is_missing(value) or (isinstance(value, str) and not value.strip()):
        return math.nan
    try:
        if isinstance(value, (bool, np.bool_)):
            raise ValueError
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise InputError(
            f"{source}, {name([row])}: expected a number as score, got {value!r}; write scores as "
            "numbers with a point, or use another kind of examples"
        ) from None
