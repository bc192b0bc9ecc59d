"""Small pieces of HTML; every external value is escaped here."""

import base64
import hashlib
import html
import os
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from pathlib import Path, PurePath
from typing import Any

from embedtopics._utils.folders import replacing_file
from embedtopics.plots._theme import cut


def text(value: object, length: int = 400) -> str:
    """Return a value as escaped text on one line, cut with an ellipsis."""
    return html.escape(cut(str(value), length))


def section(name: str, heading: str, *parts: str) -> str:
    """Return a section; `heading` and `parts` are markup."""
    body = "\n".join(part for part in parts if part)
    return f'<section id="{name}">\n<h2>{heading}</h2>\n{body}\n</section>'


def bar(share: float, color: str = "#7d8896") -> str:
    """Return a bar that fills a share of its width, without inline styles."""
    width = 100.0 * min(max(share, 0.0), 1.0)
    return (
        '<svg class="bar" viewBox="0 0 100 1" preserveAspectRatio="none" aria-hidden="true">'
        f'<rect width="{width:.1f}" height="1" fill="{html.escape(color)}"/></svg>'
    )


def dot(color: str) -> str:
    """Return a disc in the colour of a topic."""
    return (
        '<svg class="dot" viewBox="0 0 2 2" aria-hidden="true">'
        f'<circle cx="1" cy="1" r="1" fill="{html.escape(color)}"/></svg>'
    )


def corpus_title(what: str, source: str, n_rows: int) -> str:
    """Return a heading with the file of a corpus, or its number of rows."""
    if PurePath(source).suffix:
        return f"{what} {PurePath(source).name}"
    return f"{what} 1 row" if n_rows == 1 else f"{what} {n_rows:,} rows"


def tiles(figures: Iterable[tuple[str, str]]) -> str:
    """Return names and figures, which are markup, as tiles."""
    items = "\n".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in figures)
    return f'<dl class="tiles">\n{items}\n</dl>'


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; the cells are markup."""
    heads = "".join(f'<th scope="col">{cell}</th>' for cell in head)
    body = "\n".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return (
        f'<div class="scroll"><table class="plain"><thead><tr>{heads}</tr></thead>'
        f"\n<tbody>\n{body}\n</tbody></table></div>"
    )


def flatten(values: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    """Return nested settings as (dotted name, value) pairs."""
    pairs: list[tuple[str, Any]] = []
    for name, value in values.items():
        if isinstance(value, Mapping) and value:
            pairs += flatten(value, f"{prefix}{name}.")
        else:
            pairs.append((f"{prefix}{name}", value))
    return pairs


def html_page(
    heading: str,
    style: str,
    sections: Sequence[str],
    data: Sequence[str],
    scripts: Sequence[str],
    *,
    compiles: bool = False,
    inline_styles: bool = True,
) -> str:
    """Return a page without external resources that runs only these scripts."""
    style = f"\n{style}"
    styles = "'unsafe-inline'" if inline_styles else _hash(style)
    hashes = " ".join([*map(_hash, scripts), *["'unsafe-eval'"] * compiles])
    return "\n".join(
        [
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
            f"script-src {hashes}; style-src {styles}; img-src data: blob:; base-uri 'none'; "
            "form-action 'none'\">",
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{heading}</title>\n<style>{style}</style>\n</head>\n<body>",
            f"<header><h1>{heading}</h1></header>\n<main>",
            *sections,
            "</main>",
            *data,
            *(f"<script>{script}</script>" for script in scripts),
            "</body>\n</html>\n",
        ]
    )


def asset(name: str) -> str:
    """Return a file of this folder."""
    return resources.files("embedtopics.report").joinpath(name).read_text(encoding="utf-8")


def data_script(name: str, json: str) -> str:
    """Return data for the page's script, escaped so that no markup can end the element."""
    for character in "<>&":
        json = json.replace(character, f"\\u{ord(character):04x}")
    return f'<script type="application/json" id="{name}">{json}</script>'


def _hash(script: str) -> str:
    digest = hashlib.sha256(script.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def write_page(page: str, path: Path) -> Path:
    """Write a page to a temporary file and move it, so that the page is complete or absent."""
    with (
        replacing_file(path) as temporary,
        temporary.open("x", encoding="utf-8", newline="\n") as file,
    ):
        file.write(page)
        file.flush()
        os.fsync(file.fileno())
    return path
