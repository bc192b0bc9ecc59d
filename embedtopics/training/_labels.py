"""Reading what examples are labelled with: classes of inference, scores on a scale, yes or no."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from embedtopics._utils.checks import is_number
from embedtopics.corpus._hashing import TEXT, TextRows, is_missing
from embedtopics.corpus._readers import Table, name_rows
from embedtopics.corpus.results import Decision
from embedtopics.errors import InputError

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
    """A column of labels after its reading."""

    values: npt.NDArray[Any]  # (n_rows,), int64 or float64
    status: tuple[str, ...]  # "" where the label can be used, "missing", or "no gold label"
    names: tuple[str, ...] = ()
    decisions: tuple[Decision, ...] = ()


def read_classes(values: Sequence[object], order: Sequence[str] | None, source: str) -> ReadLabels:
    """Read the classes of inference."""
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
            "label", f"{', '.join(NLI_NAMES)} in {source}", found=_listed(values), remedy=remedy
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
            "label",
            f"0 or 1 in {source}",
            found=_listed(values),
            remedy="write 1 where the two texts belong together and 0 where not",
        )
    codes = np.array([_TRUTHS.get(cell, -1) for cell in spelled], dtype=np.int64)
    return ReadLabels(codes, tuple("" if cell else "missing" for cell in spelled))


def read_scores(
    values: Sequence[object], scale: tuple[float, float] | None, source: str, name: NameRows
) -> ReadLabels:
    """Read scores, and bring them from their scale to the one from 0 to 1."""
    low, high = _checked_scale(scale)
    scores = np.array([_number(value, row, source, name) for row, value in enumerate(values)])
    known = ~np.isnan(scores)
    outside = np.flatnonzero(known & ~((scores >= low) & (scores <= high)))
    if len(outside):
        lowest, highest = scores[known].min(), scores[known].max()
        raise InputError(
            "scale",
            "the lowest and highest score that could be given, such as (0, 5)",
            found=f"{scores[outside[0]]:g} in {source}, {name([int(outside[0])])}, where scores go "
            f"from {lowest:g} to {highest:g}, and the scale from {low:g} to {high:g}",
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
            "label",
            f"of two different values at least in {source}",
            found=f"{one} in all {len(values):,} usable rows",
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
    """Name the labels that were found, the most frequent first, with counts."""
    counts = Counter("none" if is_missing(value) else str(value)[:40] for value in values)
    parts = [f"{shown!r} ({count:,})" for shown, count in counts.most_common(_MOST_LISTED)]
    return ", ".join([*parts, *["..."] * (len(counts) > _MOST_LISTED)])


def _checked_order(order: Sequence[str] | None) -> tuple[str, ...]:
    if order is None:
        return ()
    names = () if isinstance(order, str) else tuple(_CLASS_OF.get(_spelled(n), "") for n in order)
    if sorted(names) != sorted(NLI_NAMES):
        raise InputError("label_order", f"{', '.join(NLI_NAMES)}, each once", order)
    return names


def _checked_scale(scale: Any) -> tuple[float, float]:
    if scale is None:
        return 0.0, 1.0
    is_pair = isinstance(scale, (tuple, list)) and len(scale) == 2 and all(map(is_number, scale))
    if not is_pair or not -math.inf < scale[0] < scale[1] < math.inf:
        raise InputError("scale", "the lowest and highest possible score, such as (0, 5)", scale)
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
        where = f"{value!r} in {source}, {name([row])}"
        raise InputError("label", "a number as score", found=where) from None


# Which rows can be learned from, and what is odd about those that can.


def usable_rows(
    table: Table,
    names: Sequence[str],
    sides: Sequence[TextRows],
    label_column: str | None,
    labels: ReadLabels | None,
    drop_invalid: bool,
) -> tuple[npt.NDArray[np.int64], list[Decision]]:
    """Return the rows that can be used, and what was said of the others."""
    keep = np.ones(len(table.frame), dtype=bool)
    decisions = []
    if labels is not None:
        no_gold = np.array([state == "no gold label" for state in labels.status])
        if no_gold.any():
            count = int(no_gold.sum())
            message = f"{count:,} examples without a gold label were left out."
            decisions.append(Decision("training", "no_gold_label", count, message))
        keep &= ~no_gold
    bad = {f"text in column {n!r}": s.status != TEXT for n, s in zip(names, sides, strict=True)}
    if labels is not None:
        missing = np.array([state == "missing" for state in labels.status])
        bad[f"label in column {label_column!r}"] = missing
    for what, where in bad.items():
        rows = np.flatnonzero(where & keep).tolist()
        if rows and not drop_invalid:
            raise InputError(
                "drop_invalid",
                f"True to leave out rows without a {what}",
                found=f"none in {name_rows(rows, table.lines)} of {table.source}",
            )
        if rows:
            message = f"{len(rows):,} rows without a {what} were left out."
            decisions.append(Decision("training", "dropped_invalid", len(rows), message))
        keep &= ~where
    if not keep.any():
        raise InputError("examples", "usable", found=f"no usable row in {table.source}")
    return np.flatnonzero(keep), decisions


def describe_repeats(
    hashes: Sequence[npt.NDArray[np.uint64]], labels: npt.NDArray[Any] | None, kind: str
) -> list[Decision]:
    """Count what is kept as it is and yet should be known; `hashes` (n_examples, 2) a column."""
    halves = {f"{side}.{half}": h[:, half] for side, h in enumerate(hashes) for half in (0, 1)}
    texts = pd.DataFrame(halves)
    with_label = texts if labels is None else texts.assign(label=labels)
    n_conflicting = len(with_label.drop_duplicates()) - len(texts.drop_duplicates())
    found = [
        ("repeated_examples", with_label.duplicated().sum(), "repeat an earlier one"),
        ("conflicting_labels", n_conflicting, "have the texts of another and a different label"),
    ]
    if kind in ("pairs", "triplets"):
        same = (hashes[0] == hashes[1]).all(axis=1).sum()
        found.append(("identical_sides", same, "have an anchor equal to its positive"))
    if kind == "triplets":
        wrong = np.logical_or.reduce([(h == hashes[1]).all(axis=1) for h in hashes[2:]]).sum()
        found.append(("negative_is_positive", wrong, "have their positive as a negative too"))
    return [
        Decision("training", name, int(n), f"{int(n):,} examples {what}; they are kept.")
        for name, n, what in found
        if n
    ]
