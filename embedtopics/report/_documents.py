"""Headings, paragraphs, lists, tables and figures, written as HTML, Markdown, Word or LaTeX."""

from __future__ import annotations

import base64
import hashlib
import html
import re
from collections.abc import Callable, Iterable, Sequence
from importlib import resources
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from embedtopics._utils.checks import require
from embedtopics._utils.folders import flush_file, replacing_file
from embedtopics.plots._theme import cut

LENGTH, CELL, LONG, MAX_ROWS = 8000, 4000, 700, 200
"""Characters of a paragraph, of a cell, and of one that HTML folds and documents cut; rows."""

WIDEST, GAP, POINT = 60, 4, 12_700
"""Characters up to which a column grows with its longest cell, and between columns; Word's units
in a typographic point."""

MARKDOWN = re.compile(r"[\\`*_\[\]|#<>~]|:(?=//)|(?<=www)\.", re.IGNORECASE)
"""Characters to escape; an address without its ":" or "." is no link."""

TEX = str.maketrans({character: f"\\{character}" for character in "&%$#_{}"} | {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "…": r"\dots{}", "[": "{[}", "*": "{*}",
})  # fmt: skip


class Markup(str):
    """HTML that pages contain as it is, and documents leave out."""


class Table(NamedTuple):
    """Names and rows, for texts that a DataFrame, the other kind of table, does not hold."""

    heads: Sequence[str]
    rows: Sequence[Sequence[Any]]


class Section(NamedTuple):
    """A heading with paragraphs (texts), lists of texts, tables, figures and markup."""

    heading: str
    contents: Sequence[Any]


def _shown(
    sections: Sequence[Section],
    heading: Callable[[str], Any],
    paragraph: Callable[[str], Any],
    items: Callable[[list[str]], Any],
    table: Callable[[list[str], list[list[str]]], Any],
    figure: Callable[[Any], str] | None = None,
) -> list[Any]:
    """Return what functions make of the contents; documents have no function for figures."""
    shown = []
    for section in sections:
        shown.append(heading(section.heading))
        for content in section.contents:
            if isinstance(content, Markup):
                shown += [content] * (figure is not None)
            elif isinstance(content, str):
                shown.append(paragraph(content))
            elif isinstance(content, list):
                shown.append(items(content))
            elif hasattr(content, "to_json") and hasattr(content, "layout"):
                shown += [] if figure is None else [figure(content)]
            else:
                cells = _cells(content, LONG if figure is None else CELL)
                shown.append(table(*cells) if any(cells) else paragraph("None."))
    return shown


def _cells(table: Any, length: int) -> tuple[list[str], list[list[str]]]:
    """Return the names of the columns that hold something, and the cells as texts on one line."""
    is_named = isinstance(table, Table)
    heads, content = table if is_named else (table.columns, table.to_numpy(object))
    rows = [[cut(_spell(value), length) for value in row] for row in content[:MAX_ROWS]]
    columns = [i for i in range(len(heads)) if any(row[i] for row in rows)]
    names = [cut(str(heads[i]).replace("_", " "), CELL) for i in columns]
    return names, [[row[i] for i in columns] for row in rows]


def _spell(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        value = ", ".join(map(str, value))
    if isinstance(value, (float, np.floating)):
        return "" if value != value else f"{value:.3g}"
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    return "" if value is None else f"{value:,}" if whole else str(value)


def text(value: object, length: int = 400) -> str:
    """Return a value as escaped text on one line, cut with an ellipsis."""
    return html.escape(cut(str(value), length))


def html_table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a table; the heads and cells are markup."""
    names = "".join(f'<th scope="col">{head}</th>' for head in heads)
    body = "\n".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return (
        f'<div class="scroll"><table class="plain"><thead><tr>{names}</tr></thead>'
        f"\n<tbody>\n{body}\n</tbody></table></div>"
    )


def html_sections(sections: Sequence[Section]) -> str:
    """Return sections named after their headings; each figure stands before its data."""
    numbers = count()

    def heading(line: str) -> str:
        name = re.sub(r"\W+", "-", line.lower()).strip("-") or "-"
        return f'<section id="{name}">\n<h2>{text(line)}</h2>'

    def paragraph(line: str) -> str:
        return f"<p>{text(line, LENGTH)}</p>"

    def items(lines: list[str]) -> str:
        return f"<ul>{''.join(f'<li>{text(line, LENGTH)}</li>' for line in lines)}</ul>"

    def table(heads: list[str], rows: list[list[str]]) -> str:
        return html_table(map(text, heads), [map(_html_cell, row) for row in rows])

    def figure(content: Any) -> str:
        name = f"figure-{next(numbers)}"
        data = data_script(name, content.to_json(engine="json"))
        return f'<div id="place-{name}"></div>\n{data}'

    parts = [_shown([each], heading, paragraph, items, table, figure) for each in sections]
    return "\n".join(line for part in parts for line in [*part, "</section>"])


def _html_cell(cell: str) -> str:
    shown = f"<bdi>{text(cell, CELL)}</bdi>"
    if len(cell) <= LONG:
        return shown
    return f"<details><summary>{text(cell, LONG // 2)}</summary><p>{shown}</p></details>"


def html_page(
    title: str, style: str, body: str, scripts: Sequence[str], *, has_plotly: bool = False
) -> str:
    """Return a page without external resources that runs only these scripts; `body` is markup."""
    # Plotly compiles code, and writes styles into elements.
    return fill(
        "page.html",
        heading=text(title, 160),
        style=style,
        allowed_scripts=" ".join([*map(_hash, scripts), *["'unsafe-eval'"] * has_plotly]),
        allowed_styles="'unsafe-inline'" if has_plotly else _hash(style),
        body=body,
        scripts="\n".join(f"<script>{script}</script>" for script in scripts),
    )


def _hash(script: str) -> str:
    digest = hashlib.sha256(script.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def asset(name: str) -> str:
    """Return a file of this folder."""
    return resources.files("embedtopics.report").joinpath(name).read_text(encoding="utf-8")


def fill(name: str, part: str = "", **values: Any) -> Markup:
    """Return a template of this folder, or a part of it, with its values, which are markup."""
    template = asset(name).rpartition(f"<!-- {part} -->\n")[2].partition("<!-- ")[0]
    return Markup(template.format(**values))


def data_script(name: str, json: str) -> str:
    """Return data for the page's script, escaped so that no markup can end the element."""
    for character in "<>&":
        json = json.replace(character, f"\\u{ord(character):04x}")
    return f'<script type="application/json" id="{name}">{json}</script>'


def write_page(page: str, path: Path) -> Path:
    """Write a page to a temporary file and move it, so that the page is complete or absent."""
    with replacing_file(path) as temporary:
        temporary.write_text(page, encoding="utf-8", newline="\n")
        flush_file(temporary)
    return path


def _write_html(title: str, sections: Sequence[Section], path: Path) -> None:
    from plotly.offline import get_plotlyjs

    body = html_sections(sections)
    has_figures = 'id="place-figure-0"' in body
    scripts = [get_plotlyjs(), asset("figures.js")] if has_figures else []
    page = html_page(title, asset("page.css"), body, scripts, has_plotly=has_figures)
    write_page(page, path)


def _write_markdown(title: str, sections: Sequence[Section], path: Path) -> None:
    def items(lines: list[str]) -> str:
        return "\n".join(f"- {_markdown(line)}" for line in lines)

    def table(heads: list[str], rows: list[list[str]]) -> str:
        lines = [f"| {' | '.join(map(_markdown, row))} |" for row in [heads, *rows]]
        return "\n".join([lines[0], f"|{' --- |' * len(heads)}", *lines[1:]])

    def heading(line: str) -> str:
        return f"## {_markdown(line)}"

    parts = _shown(sections, heading, _markdown, items, table)
    write_page("\n\n".join([f"# {_markdown(title)}", *parts]) + "\n", path)


def _markdown(line: str) -> str:
    """Escape a text so that it holds no markup, HTML and bare addresses included."""
    return MARKDOWN.sub(r"\\\g<0>", cut(line, LENGTH).replace("&", "&amp;"))


def _write_latex(title: str, sections: Sequence[Section], path: Path) -> None:
    def items(lines: list[str]) -> str:
        listed = "\n".join(f"\\item {_tex(line)}" for line in lines)
        return f"\\begin{{itemize}}\n{listed}\n\\end{{itemize}}"

    def heading(line: str) -> str:
        return f"\\section*{{{_tex(line)}}}"

    body = "\n\n".join(_shown(sections, heading, _tex, items, _longtable))
    # An escaped text holds no "<", so it is no placeholder.
    page = asset("study.tex").replace("<title>", _tex(title)).replace("<body>", body)
    write_page(page, path)


def _widths(heads: list[str], rows: list[list[str]]) -> list[float]:
    """Return the share of each column in the width of a table; long words fit where they can."""
    lengths = []
    for cells in zip(heads, *rows, strict=True):
        longest_word = max(len(word) for cell in cells for word in cell.split())
        lengths.append(GAP + longest_word + min(max(map(len, cells)), WIDEST))
    return [length / sum(lengths) for length in lengths]


def _longtable(heads: list[str], rows: list[list[str]]) -> str:
    widths = [0.99 * width - 0.012 for width in _widths(heads, rows)]
    form = "".join(f"L{{{width:.3f}}}" for width in widths)
    lines = [" & ".join(map(_tex, row)) + r" \\" for row in [heads, *rows]]
    begin = rf"{{\small\begin{{longtable}}{{@{{}}{form}@{{}}}}"
    head = rf"\toprule {lines[0]} \midrule \endhead"
    return "\n".join([begin, head, *lines[1:], r"\bottomrule", r"\end{longtable}}"])


def _tex(line: str) -> str:
    return cut(line, LENGTH).translate(TEX)


def _write_word(title: str, sections: Sequence[Section], path: Path) -> None:
    document = require("docx", "a .docx file", "files").Document()
    page = document.sections[0]
    page.left_margin = page.right_margin = page.page_width // 12
    width = page.page_width - page.left_margin - page.right_margin
    document.styles["Light Shading"].font.size = 8 * POINT

    def heading(line: str) -> None:
        document.add_heading(cut(line, CELL), 1)

    def paragraph(line: str, style: str | None = None) -> None:
        document.add_paragraph(cut(line, LENGTH), style)

    def items(lines: list[str]) -> None:
        for line in lines:
            paragraph(line, "List Bullet")

    def table(heads: list[str], rows: list[list[str]]) -> None:
        grid = document.add_table(rows=1 + len(rows), cols=len(heads), style="Light Shading")
        grid.autofit = False
        widths = [int(share * width) for share in _widths(heads, rows)]
        for column, space in zip(grid.columns, widths, strict=True):
            column.width = space  # LibreOffice reads the columns, Word the cells
        # Reading a row builds the list of its cells; a table builds all of them each time.
        for row, texts in zip(grid.rows, [heads, *rows], strict=True):
            for cell, content, space in zip(row.cells, texts, widths, strict=True):
                cell.text, cell.width = content, space

    document.add_heading(cut(title, CELL), 0)
    _shown(sections, heading, paragraph, items, table)
    with replacing_file(path) as fresh:
        document.save(fresh)
        flush_file(fresh)


FORMATS: dict[str, Callable[[str, Sequence[Section], Path], None]] = {
    **dict.fromkeys((".html", ".htm"), _write_html),
    ".md": _write_markdown,
    ".docx": _write_word,
    ".tex": _write_latex,
}
"""What writes a title and sections to a path, by the suffix of the path."""
