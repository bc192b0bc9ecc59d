"""The look of all figures: text made harmless, one Plotly template, panels, names and notes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from embedtopics._utils.checks import checked_count
from embedtopics.errors import InputError
from embedtopics.plots._colors import PALETTE

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
INK = "#1b2430"
MUTED = "#5b6674"

# Plotly reads a subset of HTML in every text, and TeX between dollars where MathJax is loaded.
# It knows no &quot; entity, so quotes stay as they are: no text of ours becomes an attribute.
_MARKUP = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "$": "&#36;"})

# Controls have no glyph, and directional overrides would turn round the words beside the text.
_INVISIBLE = {code: " " for code in (*range(0x20), *range(0x7F, 0xA0))} | {
    code: "" for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A))
}
_JOINERS = "\u200d\ufe0e\ufe0f"

LEFT_TO_RIGHT = "\u200e"
"""Mark after a name, without which a number that follows one in Arabic would stand before it."""


def plain(text: str) -> str:
    """Return `text` on one line, without controls, overrides and lone surrogates."""
    if not text.isascii():
        # a lone surrogate can be held in memory but not written to a file
        text = text.encode("utf-8", "replace").decode("utf-8")
    return " ".join(text.translate(_INVISIBLE).split())


def cut(text: str, length: int) -> str:
    """Return `text` as `plain` gives it, at most `length` characters, an ellipsis where cut."""
    # plain() drops characters too, so more than `length` is read; never the whole of a long text
    line = plain(text[: 4 * length + 200])
    if len(line) <= length:
        return line
    return line[: length - 1].rstrip(" " + _JOINERS) + "…"


def escape(text: str) -> str:
    """Return `text` so that Plotly shows it as it is, never as markup or TeX."""
    return text.translate(_MARKUP)


def wrap(text: str, width: int, most: int | None = None) -> list[str]:
    """Break `text` into lines of at most `width` characters, within words only where it must."""
    lines: list[str] = []
    line = ""
    for word in text.split():
        while len(word) > width:  # scripts without spaces, long addresses
            left = width - len(line) - 1 if line else width
            if left > 0:
                line = f"{line} {word[:left]}" if line else word[:left]
                word = word[left:]
            lines.append(line)
            line = ""
        if not word:
            continue
        if line and len(line) + 1 + len(word) > width:
            lines.append(line)
            line = word
        else:
            line = f"{line} {word}" if line else word
    lines += [line] if line else []
    if most is not None and len(lines) > most:
        lines = [*lines[: most - 1], lines[most - 1][: width - 1].rstrip(" ,;" + _JOINERS) + "…"]
    return lines


def caption(text: str, length: int) -> str:
    """Return `text` cut to `length` characters and escaped."""
    return escape(cut(text, length))


ASSUMED_WIDTH = 1100
"""Pixels for which a figure without a width of its own is laid out."""

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
_LABEL = {"bgcolor": "#fff", "align": "left", "font": {"family": FONT, "color": INK}}

TEMPLATE = {
    "layout": {
        "annotationdefaults": {"showarrow": False},
        "colorway": PALETTE,
        "font": {"family": FONT, "size": 13, "color": INK},
        "hoverlabel": _LABEL,
        "hovermode": "closest",
        "legend": {"orientation": "h", "x": 0, "y": 1, "yanchor": "bottom", "font": {"size": 12}},
        "margin": {"l": 16, "r": 24, "t": 16, "b": 16},
        "showlegend": False,
        "xaxis": _AXIS,
        "yaxis": _AXIS,
    },
    "data": {"bar": [{"marker": {"line": {"width": 0}}}]},
}
"""The Plotly template of every figure."""


def look(
    height: float, width: int | None = None, *, title: str | None = None, **margin: float
) -> dict[str, Any]:
    """Return the layout that all figures share; `margin` takes Plotly's l, r, t and b."""
    made = {"template": TEMPLATE, "height": round(height), "width": width, "margin": margin}
    if title:
        place = {"x": 0.01, "xanchor": "left", "y": 1.0, "yanchor": "top", "pad": {"t": 14}}
        made["title"] = {"text": caption(title, 200), "font": {"size": 18}, **place}
    return made


def empty_figure(text: str = "No topics were found") -> Figure:
    """Return a figure with a note in place of data."""
    import plotly.graph_objects as go

    said = note(text, 0.5, 0.5, across="center", up="middle", size=15, color=MUTED)
    return go.Figure(layout=look(200) | {"xaxis": HIDDEN, "yaxis": HIDDEN, "annotations": [said]})


def panel_figure(
    heights: Sequence[float],
    columns: int = 1,
    *,
    n: int | None = None,
    between: float = 0,
    gap: float = 16,
    table: float = 0,
    width: int | None = None,
    margin: dict[str, Any] | None = None,
    **options: Any,
) -> Figure:
    """Return a figure of empty panels, of which the first `n` are there."""
    from plotly.subplots import make_subplots

    cells: list[Any] = [{}] * (n or len(heights) * columns)
    cells += [None] * (len(heights) * columns - len(cells))
    specs = [cells[i : i + columns] for i in range(0, len(cells), columns)]
    heights = [float(height) for height in heights]
    if table:
        heights.append(table)
        specs.append([{"type": "table", "colspan": columns}, *[None] * (columns - 1)])
    margin = {"l": 16, "r": 16, "t": 16, "b": 16} | (margin or {})
    inner = sum(heights) + (len(heights) - 1) * between
    across = (width or ASSUMED_WIDTH) - margin["l"] - margin["r"]
    figure = make_subplots(
        len(heights),
        columns,
        specs=specs,
        row_heights=heights,
        vertical_spacing=between / inner if len(heights) > 1 else 0,
        horizontal_spacing=gap / across if columns > 1 else 0,
        **options,
    )
    figure.layout.template = TEMPLATE  # an update would only add to Plotly's own
    return figure.update_layout(look(inner + margin["t"] + margin["b"], width, **margin))


def axes_of(panel: int) -> dict[str, str]:
    """Return the axes of a panel, as its traces name them."""
    number = str(panel + 1) if panel else ""
    return {"xaxis": f"x{number}", "yaxis": f"y{number}"}


def panel_note(figure: Figure, panel: int, text: str, *, right: bool = False, **more: Any) -> Any:
    """Return a note above a panel, at its left or right edge."""
    x, y = (figure.layout[f"{name[0]}axis{name[1:]}"].domain for name in axes_of(panel).values())
    return note(text, x[right], y[1], across="right" if right else "left", **more)


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
) -> dict[str, Any]:
    """Return an annotation, by default in shares of the drawing; the text is markup already."""
    place = {"x": x, "y": y, "xref": "paper", "yref": "paper", "xanchor": across, "yanchor": up}
    font = {"size": size, "color": color}
    return {**place, "text": text, "align": "left", "showarrow": False, "font": font, **more}


def name_axis(names: Sequence[str], length: int | None = 40) -> dict[str, Any]:
    """Return an axis of names from top to bottom; without a `length` they are markup already."""
    shown = names if length is None else [caption(name, length) for name in names]
    return {
        "range": [len(names) - 0.5, -0.5],
        "tickvals": list(range(len(names))),
        "ticktext": [f"{name}  " for name in shown],
    }


def interval_dots(
    x: Iterable[float | None],
    y: Iterable[float],
    ends: tuple[Iterable[float | None], Iterable[float | None]],
    texts: Sequence[str],
    **more: Any,
) -> dict[str, Any]:
    """Return dots with lines that reach by `ends` below and above them."""
    below, above = (list(reach) for reach in ends)
    bars = {"type": "data", "symmetric": False, "array": above, "arrayminus": below, "width": 0}
    return {
        "type": "scatter",
        "mode": "markers",
        "x": list(x),
        "y": list(y),
        "error_x": bars | {"thickness": 1.5} | more.pop("error_x", {}),
        "text": texts,
        "hovertemplate": "%{text}<extra></extra>",
        **more,
    }


def topic_name(labels: Sequence[str], topic: int) -> str:
    """Return the name of a topic, or of none."""
    return labels[topic] if topic >= 0 else "No topic"


def checked_topics(topics: Iterable[int], n_topics: int, least: int = 0) -> list[int]:
    """Return topic ids from `least` up, or refuse one that does not exist."""
    chosen = list(topics)
    for topic in chosen:
        if not least <= topic < n_topics:
            none = " (-1 for no topic)" if least else ""
            raise InputError("topics", f"ids from {least} to {n_topics - 1}{none}", topic)
    return [int(topic) for topic in chosen]


def chosen_columns(n: int, columns: int | None, width: int, least: float, gap: float = 16) -> int:
    """Return in how many columns panels stand: as many as fit, with rows as even as can be."""
    if columns is not None:
        return min(checked_count(columns, "columns"), max(n, 1))
    fit = max(int((width + gap) / (least + gap)), 1)
    rows = -(-n // fit)
    return max(-(-n // max(rows, 1)), 1)


def checked_sizes(width: int | None, height: int | None, least: int = 300) -> None:
    """Refuse sizes that no figure can have."""
    for name, pixels in (("width", width), ("height", height)):
        if pixels is not None and not pixels >= least:
            raise InputError(name, f"None or at least {least} pixels", pixels)


def title_notes(
    lines: Sequence[str], top: float, *, left: float = 0, size: int = 15
) -> list[dict[str, Any]]:
    """Return a title of two lines, `top` pixels above the panels and `left` of their edge."""
    looks: list[dict[str, Any]] = [{"size": size}, {"size": 12, "color": MUTED}]
    return [
        note(line, up="top", xshift=-left, yshift=top - 20 * place, **looks[place])
        for place, line in enumerate(lines)
    ]


def color_bar(title: str, n_ticks: int) -> dict[str, Any]:
    """Return the scale of a heat map, at the upper right."""
    return {
        "title": {"text": title, "font": {"color": MUTED, "size": 12}},
        "thickness": 12,
        "len": 180,
        "lenmode": "pixels",
        "outlinewidth": 0,
        "y": 1,
        "yanchor": "top",
        "tickfont": {"color": MUTED, "size": 11},
        "nticks": n_ticks,
    }
