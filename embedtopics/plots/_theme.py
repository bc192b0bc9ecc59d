"""The theme of all figures: escaped text, one Plotly template, panels, axes and notes."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from embedtopics._utils.checks import checked_count, is_whole
from embedtopics.errors import InputError
from embedtopics.plots._colors import PALETTE

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

Spec = dict[str, Any]
"""A trace, an annotation or an axis, as Plotly's JSON describes it."""

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
INK = "#1b2430"
MUTED = "#5b6674"

# Plotly reads a subset of HTML in every text, and TeX between dollars where MathJax is loaded.
# It knows no &quot; entity, so quotes stay as they are: no text of ours becomes an attribute.
_MARKUP = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "$": "&#36;"})

# Control characters have no glyph; directional overrides would reverse the words around a text.
_INVISIBLE = {code: " " for code in (*range(0x20), *range(0x7F, 0xA0))} | {
    code: "" for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A))
}
_JOINERS = "\u200d\ufe0e\ufe0f"

LEFT_TO_RIGHT = "\u200e"
"""Mark after a name, so that a number after an Arabic name stays behind it."""


def plain(text: str) -> str:
    """Return `text` on one line, without control characters, overrides and lone surrogates."""
    if not text.isascii():
        # a lone surrogate can be held in memory but not written to a file
        text = text.encode("utf-8", "replace").decode("utf-8")
    return " ".join(text.translate(_INVISIBLE).split())


def cut(text: str, length: int) -> str:
    """Return `text` as `plain` gives it, at most `length` characters, an ellipsis where cut."""
    # plain() drops characters, so more than `length` is read, but never all of a long text
    line = plain(text[: 4 * length + 200])
    if len(line) <= length:
        return line
    return line[: length - 1].rstrip(" " + _JOINERS) + "…"


def escape(text: str) -> str:
    """Escape `text`, so that Plotly reads no markup or TeX in it."""
    return text.translate(_MARKUP)


def wrap(text: str, width: int, most: int | None = None) -> list[str]:
    """Break `text` into lines of at most `width` characters, and only longer words within."""
    lines = textwrap.wrap(" ".join(text.split()), width, break_on_hyphens=False)
    if most is not None and len(lines) > most:
        lines = [*lines[: most - 1], lines[most - 1][: width - 1].rstrip(" ,;" + _JOINERS) + "…"]
    return lines


def name_lines(name: str, width: int, most: int) -> list[str]:
    """Break the name of a topic into lines, between its terms if they are short."""
    words, terms = plain(name).split(), plain(name).split(", ")
    glue = "\0" if max(map(len, terms)) <= width else " "
    width = max(width, min(max(map(len, words), default=0), 30))
    lines = wrap(", ".join(term.replace(" ", glue) for term in terms), width, most)
    return [line.replace(glue, " ") for line in lines]


def caption(text: str, length: int) -> str:
    """Return `text` cut to `length` characters and escaped."""
    return escape(cut(text, length))


ASSUMED_WIDTH = 1100
"""Pixels for which a figure without a width is laid out."""

PAGE_WIDTH = 700
"""Pixels of figures whose parts do not flow, such as texts: they fit into a notebook."""

TITLE_BAND = 44
"""Pixels that a title adds to the top of a figure."""

# The least that the margins and the headings leave for the drawing: a line of text.
NARROWEST_DRAWING = 60
LOWEST_PANEL = 20

GRID = "#e6e9ed"
GREY = "#8a94a3"
HIDDEN = {"visible": False, "showgrid": False, "zeroline": False}

_AXIS = {
    "automargin": True,
    "fixedrange": True,
    "gridcolor": GRID,
    "showgrid": False,
    "ticks": "",
    "title": {"font": {"size": 12, "color": MUTED}},
    "zeroline": False,
}
_MARGINS: dict[str, float] = {"l": 16, "r": 24, "t": 16, "b": 16}
_LABEL = {"bgcolor": "#fff", "align": "left", "font": {"family": FONT, "color": INK}}

TEMPLATE = {
    "layout": {
        "annotationdefaults": {"showarrow": False},
        "colorway": PALETTE,
        "font": {"family": FONT, "size": 13, "color": INK},
        "hoverlabel": _LABEL,
        "hovermode": "closest",
        "legend": {"orientation": "h", "x": 0, "y": 1, "yanchor": "bottom", "font": {"size": 12}},
        "margin": _MARGINS,
        "showlegend": False,
        "xaxis": _AXIS,
        "yaxis": _AXIS,
    },
    "data": {"bar": [{"marker": {"line": {"width": 0}}}]},
}
"""The Plotly template of every figure."""


@dataclass(frozen=True)
class Canvas:
    """The title and the size of a figure that a caller asks for, as in plotly.express.

    Parameters
    ----------
    title : str, optional
        It stands above all else, and adds `TITLE_BAND` pixels to a default height.
    width : int, optional
        Pixels; by default the figure fills its page, and is laid out for `ASSUMED_WIDTH`.
    height : int, optional
        Pixels; by default what the content needs.
    """

    title: str | None = None
    width: int | None = None
    height: int | None = None

    def __post_init__(self) -> None:
        if self.title is not None and not isinstance(self.title, str):
            raise InputError("title", "a string", self.title)
        if self.width is not None:
            checked_count(self.width, "width")
        if self.height is not None:
            checked_count(self.height, "height")

    @property
    def assumed_width(self) -> int:
        """Pixels across for which the figure is laid out."""
        return self.width or ASSUMED_WIDTH

    @property
    def title_band(self) -> int:
        """Pixels of the title, 0 without one."""
        return TITLE_BAND if self.title else 0

    def sized(self, width: int) -> Canvas:
        """Return a canvas of this width unless the caller asked for another."""
        return self if self.width is not None else replace(self, width=width)


def base_layout(canvas: Canvas, height: float, **margin: float) -> Spec:
    """Return the layout that all figures share.

    Parameters
    ----------
    canvas : Canvas
    height : float
        Pixels that the content needs, with its margins and without a title.
    **margin : float
        Plotly's l, r, t and b, in pixels, without a title.
    """
    margins = {**_MARGINS, **margin}
    margins["t"] += canvas.title_band
    total = canvas.height or round(height + canvas.title_band)

    _check_space("width", canvas.width, margins["l"] + margins["r"])
    _check_space("height", canvas.height, margins["t"] + margins["b"])

    layout: Spec = {
        "template": TEMPLATE,
        "height": total,
        "width": canvas.width,
        "margin": margins,
    }
    if canvas.title:
        place = {"x": 0.01, "xanchor": "left", "y": 1.0, "yanchor": "top", "pad": {"t": 14}}
        layout["title"] = {"text": caption(canvas.title, 200), "font": {"size": 18}, **place}
    return layout


def _check_space(parameter: str, pixels: int | None, margins: float) -> None:
    """Raise InputError if the margins of a figure leave too little of its width or height."""
    least = round(margins) + NARROWEST_DRAWING
    if pixels is not None and pixels < least:
        raise InputError(parameter, f"at least {least} pixels for this figure", pixels)


def empty_figure(canvas: Canvas, text: str = "No topics were found") -> Figure:
    """Return a figure with a note in place of data."""
    import plotly.graph_objects as go

    shown = note(text, 0.5, 0.5, across="center", up="middle", size=15, color=MUTED)
    axes = {"xaxis": HIDDEN, "yaxis": HIDDEN}
    return go.Figure(layout=base_layout(canvas, 200) | axes | {"annotations": [shown]})


def panel_figure(
    canvas: Canvas,
    heights: Sequence[float],
    columns: int = 1,
    *,
    n: int | None = None,
    between: float = 0,
    gap: float = 16,
    table: float = 0,
    margin: Spec | None = None,
    **options: Any,
) -> Figure:
    """Return a figure of empty panels, the first `n` of a grid.

    `heights` are those of the rows of panels, in pixels. A canvas with a height of its own shrinks
    or stretches the panels; the space `between` them holds headings and keeps its pixels, and so
    does a `table` below them.
    """
    from plotly.subplots import make_subplots

    cells: list[Any] = [{}] * (n or len(heights) * columns)
    cells += [None] * (len(heights) * columns - len(cells))
    specs = [cells[i : i + columns] for i in range(0, len(cells), columns)]

    margins: Spec = {"l": 16, "r": 16, "t": 16, "b": 16} | (margin or {})
    n_spaces = len(heights) if table else len(heights) - 1
    fixed = n_spaces * between + table
    around = margins["t"] + margins["b"]
    heights = _fitted_heights(canvas, heights, fixed + around)

    if table:
        heights.append(table)
        specs.append([{"type": "table", "colspan": columns}, *[None] * (columns - 1)])
    inner = sum(heights) + n_spaces * between
    across = canvas.assumed_width - margins["l"] - margins["r"]
    spacing: Spec = {
        "vertical_spacing": between / inner if len(heights) > 1 else 0,
        "horizontal_spacing": max(gap / across, 0) if columns > 1 else 0,
    }
    layout = base_layout(canvas, inner + around, **margins)
    figure = make_subplots(
        len(heights), columns, specs=specs, row_heights=heights, **spacing, **options
    )
    figure.layout.template = TEMPLATE  # an update would only add to Plotly's own
    return figure.update_layout(layout)


def _fitted_heights(canvas: Canvas, heights: Sequence[float], fixed: float) -> list[float]:
    """Return the heights of rows of panels, so that they and `fixed` pixels fill the canvas."""
    if canvas.height is None:
        return [float(height) for height in heights]

    available = canvas.height - canvas.title_band - fixed
    stretch = available / sum(heights)
    if stretch * min(heights) < LOWEST_PANEL:
        least = fixed + canvas.title_band + LOWEST_PANEL * sum(heights) / min(heights)
        expected = f"at least {math.ceil(least)} pixels for this figure"
        raise InputError("height", expected, canvas.height)
    return [stretch * height for height in heights]


def panel_size(figure: Figure, panel: int, canvas: Canvas) -> tuple[float, float]:
    """Return the width and the height of a panel in pixels."""
    x, y = domains(figure, panel)
    margin = figure.layout.margin
    across = canvas.assumed_width - margin.l - margin.r
    up = figure.layout.height - margin.t - margin.b
    return (x[1] - x[0]) * across, (y[1] - y[0]) * up


def axes_of(panel: int) -> dict[str, str]:
    """Return the axes of a panel under the names that traces use."""
    number = str(panel + 1) if panel else ""
    return {"xaxis": f"x{number}", "yaxis": f"y{number}"}


def axis_keys(panel: int) -> tuple[str, str]:
    """Return the axes of a panel under the names that a layout uses."""
    number = str(panel + 1) if panel else ""
    return f"xaxis{number}", f"yaxis{number}"


def domains(figure: Figure, panel: int) -> tuple[Any, Any]:
    """Return the span of a panel across and up, in shares of the drawing."""
    x, y = axis_keys(panel)
    return figure.layout[x].domain, figure.layout[y].domain


def panel_note(figure: Figure, panel: int, text: str, **more: Any) -> Spec:
    """Return a note above the left edge of a panel."""
    x, y = domains(figure, panel)
    return note(text, x[0], y[1], **more)


def note(
    text: str,
    x: float = 0.0,
    y: float = 1.0,
    *,
    across: str = "left",
    up: str = "bottom",
    size: int = 13,
    color: str = INK,
    **more: Any,
) -> Spec:
    """Return an annotation of markup, by default placed in shares of the drawing."""
    place = {"x": x, "y": y, "xref": "paper", "yref": "paper", "xanchor": across, "yanchor": up}
    font = {"size": size, "color": color}
    return {**place, "text": text, "align": "left", "showarrow": False, "font": font, **more}


def hover(texts: Any, key: str = "hovertext") -> Spec:
    """Return the entries of a trace that show a text for each point."""
    return {key: texts, "hovertemplate": f"%{{{key}}}<extra></extra>"}


def scatter(x: Any, y: Any, mode: str = "markers", **more: Any) -> Spec:
    """Return a trace of points or lines."""
    return {"type": "scatter", "mode": mode, "x": x, "y": y, **more}


def small(text: str) -> str:
    """Return markup in small grey letters."""
    return f'<span style="font-size:11px;color:{MUTED}">{text}</span>'


def name_axis(names: Sequence[str], length: int | None = 40) -> Spec:
    """Return an axis of names from top to bottom; without a `length` they are markup."""
    shown = names if length is None else [caption(name, length) for name in names]
    return {
        "range": [len(names) - 0.5, -0.5],
        "tickvals": list(range(len(names))),
        "ticktext": [f"{name}  " for name in shown],
    }


def lined_axis(names: Sequence[str]) -> Spec:
    """Return an axis of names on up to two short lines, which fit into narrow figures."""
    lines = [name_lines(name, 24, 2) for name in names]
    axis = name_axis(["  <br>".join(map(escape, name)) for name in lines], None)
    return {**axis, "tickfont": {"size": 11}}


def interval_dots(
    x: Iterable[float | None],
    y: Iterable[float],
    ends: tuple[Iterable[float | None], Iterable[float | None]],
    texts: Sequence[str],
    **more: Any,
) -> Spec:
    """Return dots with intervals that extend by `ends` below and above them."""
    below, above = (list(lengths) for lengths in ends)
    bars = {"type": "data", "symmetric": False, "array": above, "arrayminus": below, "width": 0}
    error = bars | {"thickness": 1.5} | more.pop("error_x", {})
    return scatter(list(x), list(y), error_x=error, **hover(texts, "text"), **more)


def topic_name(labels: Sequence[str], topic: int) -> str:
    """Return the name of a topic; -1 is "No topic"."""
    return labels[topic] if topic >= 0 else "No topic"


def checked_topics(topics: Any, labels: Sequence[str], least: int = 0) -> list[int]:
    """Return the ids of one topic or several, given by id or name; -1 if `least` allows it."""
    if isinstance(topics, str) or not isinstance(topics, Iterable):
        topics = [topics]
    n_topics = len(labels)
    id_of: dict[Any, Any] = {label: topic_id for topic_id, label in enumerate(labels)}
    topic_ids = []
    for topic in topics:
        topic_id = id_of.get(topic, topic) if isinstance(topic, str) else topic
        if not is_whole(topic_id) or not least <= topic_id < n_topics:
            none = " (-1 for no topic)" if least else ""
            expected = f"names or ids from {least} to {n_topics - 1}{none}"
            raise InputError("topics", expected, topic)
        topic_ids.append(int(topic_id))
    return topic_ids


def fit_columns(
    n: int, *, sides: float, least: float, width: float, gap: float = 16
) -> tuple[int, float]:
    """Return the number of columns of `n` panels, in rows that are even, and a panel's pixels."""
    inner = width - sides
    fit = max(int((inner + gap) / (least + gap)), 1)
    columns = max(-(-n // max(-(-n // fit), 1)), 1)
    return columns, (inner - (columns - 1) * gap) / columns


def title_notes(lines: Sequence[str], top: float, *, left: float = 0, size: int = 15) -> list[Spec]:
    """Return a title of at most two lines, `top` pixels above the panels and `left` of them."""
    fonts: list[Spec] = [{"size": size}, {"size": 12, "color": MUTED}]
    return [
        note(line, up="top", xshift=-left, yshift=top - 20 * i, **font)
        for i, (line, font) in enumerate(zip(lines, fonts, strict=False))
    ]
