"""Corpus text on its way into a figure: made harmless, cut and wrapped."""

from __future__ import annotations

from typing import Any

__all__ = [
    "FONT", "INK", "LEFT_TO_RIGHT", "MUTED", "cut", "escape", "nothing_to_draw", "plain", "wrap",
]  # fmt: skip

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
    r"""Return `text` on one line, without controls, overrides and lone surrogates.

    Examples
    --------
    >>> plain("two\n\n lines\x00")
    'two lines'
    """
    if not text.isascii():
        # a lone surrogate can be held in memory but not written to a file
        text = text.encode("utf-8", "replace").decode("utf-8")
    return " ".join(text.translate(_INVISIBLE).split())


def cut(text: str, length: int) -> str:
    """Return `text` as `plain` gives it, at most `length` characters, an ellipsis where cut.

    Examples
    --------
    >>> cut("a long story", 7)
    'a long…'
    """
    # plain() drops characters too, so more than `length` is read; never the whole of a long text
    line = plain(text[: 4 * length + 200])
    if len(line) <= length:
        return line
    return line[: length - 1].rstrip(" " + _JOINERS) + "…"


def escape(text: str) -> str:
    """Return `text` so that Plotly shows it as it is, never as markup or TeX.

    Examples
    --------
    >>> escape("<b> & $x$")
    '&lt;b&gt; &amp; &#36;x&#36;'
    """
    return text.translate(_MARKUP)


def wrap(text: str, width: int, most: int | None = None) -> list[str]:
    """Break `text` into lines of at most `width` characters, within words only where it must.

    With `most` there are so many lines at most, the last with an ellipsis where the text goes on.

    Examples
    --------
    >>> wrap("one two three", 8)
    ['one two', 'three']
    >>> wrap("one, two, three", 5, 2)
    ['one,', 'two…']
    """
    lines: list[str] = []
    line = ""
    for word in text.split():
        while len(word) > width:  # scripts without spaces, long addresses
            room = width - len(line) - 1 if line else width
            if room > 0:
                line = f"{line} {word[:room]}" if line else word[:room]
                word = word[room:]
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


def nothing_to_draw() -> dict[str, Any]:
    """Return the note that stands in a figure of no topics."""
    return {
        "x": 0.5,
        "y": 0.5,
        "xref": "paper",
        "yref": "paper",
        "text": "No topics were found",
        "showarrow": False,
        "font": {"size": 15, "color": MUTED},
    }
