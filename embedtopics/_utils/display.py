"""Display of results in notebooks, of values in messages, and of progress."""

from __future__ import annotations

import datetime
import math
import sys
from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    import pandas as pd


SCORE_ROWS = 30
"""Rows of a table of scores in a notebook, in which a reader looks for one of them."""


def html_table(frame: pd.DataFrame, title: str = "", *, n_rows: int = 10) -> str:
    """Return a title and the first rows of a table as HTML; all text is escaped."""

    def as_text(cell: Any) -> str:
        if isinstance(cell, float):
            return "" if cell != cell else f"{cell:.4g}"
        return excerpt(", ".join(map(str, cell)) if isinstance(cell, list | tuple) else str(cell))

    shown = frame.head(n_rows).map(as_text)
    rest = len(frame) - len(shown)
    more = f"<p>{rest:,} more rows</p>" if rest else ""
    heading = f"<p><b>{escape(title)}</b></p>" if title else ""
    return f"{heading}{shown.to_html(index=False, border=0)}{more}"


def excerpt(text: str, width: int = 120) -> str:
    """Return the beginning of a text on one line, with an ellipsis if it is cut."""
    line = " ".join(text.split())
    return line if len(line) <= width else line[: width - 1].rstrip() + "…"


def plain(value: Any) -> Any:
    """Return a value for JSON; a date without a time of day is only a date."""
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, datetime.datetime):
        return value.isoformat().removesuffix("T00:00:00")
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def spell_count(n: int, one: str, many: str) -> str:
    """Return a number with its noun, as in "1 text is" and "1,200 texts are"."""
    return f"{n:,} {one if n == 1 else many}"


def one_line(error: BaseException) -> str:
    """Return an error's message on one short line."""
    return excerpt(str(error), 160) or type(error).__name__


def progress_bar(*, total: int, unit: str, description: str, show: bool | None) -> Any:
    """Return a tqdm bar on stderr."""
    from tqdm.auto import tqdm

    if show is None:
        show = sys.stderr.isatty() or "ipykernel" in sys.modules
    options: Any = {"unit_scale": True, "file": sys.stderr, "leave": False, "delay": 2.0}
    return tqdm(total=total, unit=unit, desc=description, disable=not show, **options)


class Displayed:
    """A result that shows one line, and in a notebook the first rows of its table below it.

    A subclass has `to_frame`, and `_summary`, which is what the line says between the brackets.
    """

    _n_rows_displayed: ClassVar[int] = 10
    """Rows of the table in a notebook: `SCORE_ROWS` where the table holds scores."""

    _columns_displayed: ClassVar[tuple[str, ...]] = ()
    """Columns of the table in a notebook; by default all."""

    def _summary(self) -> str:
        raise NotImplementedError

    def to_frame(self) -> pd.DataFrame:
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._summary()})"

    def _repr_html_(self) -> str:
        frame = self.to_frame()
        if self._columns_displayed:
            frame = frame[list(self._columns_displayed)]
        return html_table(frame, repr(self), n_rows=self._n_rows_displayed)
