"""Small pieces of HTML; every value that comes from outside is escaped here."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from embedtopics.plots.text import cut

__all__ = ["bar", "flatten", "section", "table", "text"]


def text(value: object, length: int = 400) -> str:
    """Return any value as escaped text on one line, cut with an ellipsis.

    Examples
    --------
    >>> text('<b title="x">')
    '&lt;b title=&quot;x&quot;&gt;'
    """
    return html.escape(cut(str(value), length))


def section(name: str, heading: str, *parts: str) -> str:
    """Return a section with its heading; `heading` and `parts` are markup already."""
    body = "\n".join(part for part in parts if part)
    return f'<section id="{name}">\n<h2>{heading}</h2>\n{body}\n</section>'


def bar(share: float, color: str = "#7d8896") -> str:
    """Return a small bar that fills `share` of its place."""
    width = 100.0 * min(max(share, 0.0), 1.0)
    return (
        '<span class="bar"><span style="width:'
        f'{width:.1f}%;background:{html.escape(color)}"></span></span>'
    )


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a plain table; the cells are markup already."""
    heads = "".join(f'<th scope="col">{cell}</th>' for cell in head)
    body = "\n".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return (
        f'<div class="scroll"><table class="plain"><thead><tr>{heads}</tr></thead>'
        f"\n<tbody>\n{body}\n</tbody></table></div>"
    )


def flatten(values: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    """Return nested settings as (dotted name, value) pairs.

    Examples
    --------
    >>> flatten({"k": 15, "reducer": {"n_epochs": 200}})
    [('k', 15), ('reducer.n_epochs', 200)]
    """
    pairs: list[tuple[str, Any]] = []
    for name, value in values.items():
        if isinstance(value, Mapping) and value:
            pairs += flatten(value, f"{prefix}{name}.")
        else:
            pairs.append((f"{prefix}{name}", value))
    return pairs
