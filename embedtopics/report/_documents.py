"""Headings, paragraphs, lists, tables and figures, written as HTML, Markdown, Word or LaTeX."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from embedtopics._utils.checks import require
from embedtopics._utils.folders import replacing_file
from embedtopics.plots._theme import cut
from embedtopics.report import _markup as markup

LENGTH, CELL, LONG = 8000, 4000, 700
"""Characters of a paragraph, of a cell, and of a cell that HTML folds."""

MAX_ROWS = 200
"""Rows of a table."""

WIDEST, GAP = 60, 4
"""Characters up to which a column grows with its longest cell, and those between columns."""

POINT = 12_700
"""Units of Word in a typographic point."""

TEX = {character: f"\\{character}" for character in "&%$#_{}"} | {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "…": r"\dots{}",
}  # fmt: skip


class ReportPart(NamedTuple):
    """A part of a document; figures and markup are in HTML only.

    Tables are DataFrames, or names and rows: pandas does not hold half of a surrogate pair.
    """

    kind: Literal["heading", "text", "list", "table", "figure", "markup"]
    content: Any


def table_block(heads: Sequence[str], rows: Sequence[Sequence[Any]]) -> ReportPart:
    """Return a table of names and rows."""
    return ReportPart("table", (heads, rows))


def _cells(table: Any) -> tuple[list[str], list[list[str]]]:
    """Return the names of the columns that hold something, and the cells as texts on one line."""
    heads, content = table if isinstance(table, tuple) else (table.columns, table.to_numpy(object))
    rows = [[_cell(value) for value in row] for row in content[:MAX_ROWS]]
    columns = [i for i in range(len(heads)) if any(row[i] for row in rows)]
    names = [cut(str(heads[i]).replace("_", " "), CELL) for i in columns]
    return names, [[row[i] for i in columns] for row in rows]


def _cell(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        value = ", ".join(map(str, value))
    if isinstance(value, (float, np.floating)):
        return "" if value != value else f"{value:.3g}"
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    return "" if value is None else cut(f"{value:,}" if whole else str(value), CELL)


def html_sections(blocks: Sequence[ReportPart]) -> list[str]:
    """Return a section for each heading, named after it."""
    parts: list[list[str]] = []
    n_figures = 0
    for kind, content in blocks:
        if kind == "heading":
            parts.append([re.sub(r"\W+", "-", content.lower()), markup.text(content)])
        elif kind == "text":
            parts[-1].append(f"<p>{markup.text(content, LENGTH)}</p>")
        elif kind == "markup":
            parts[-1].append(content)
        elif kind == "list":
            items = "".join(f"<li>{markup.text(line, LENGTH)}</li>" for line in content)
            parts[-1].append(f"<ul>{items}</ul>")
        elif kind == "figure":
            parts[-1].append(f'<div id="place-figure-{n_figures}"></div>')
            n_figures += 1
        else:
            heads, rows = _cells(content)
            cells = [[_html_cell(cell) for cell in row] for row in rows]
            names = [markup.text(head) for head in heads]
            parts[-1].append(markup.table(names, cells) if rows else "<p>None.</p>")
    return [markup.section(*part) for part in parts]


def _html_cell(cell: str) -> str:
    shown = f"<bdi>{markup.text(cell, CELL)}</bdi>"
    if len(cell) <= LONG:
        return shown
    return f"<details><summary>{markup.text(cell, LONG // 2)}</summary><p>{shown}</p></details>"


def _write_html(title: str, blocks: Sequence[ReportPart], path: Path) -> None:
    from plotly.offline import get_plotlyjs

    figures = [content for kind, content in blocks if kind == "figure"]
    data = [
        markup.data_script(f"figure-{number}", figure.to_json(engine="json"))
        for number, figure in enumerate(figures)
    ]
    scripts = [get_plotlyjs(), markup.asset("figures.js")] if figures else []
    sections, style = html_sections(blocks), markup.asset("page.css")
    heading, compiles = markup.text(title, 160), bool(figures)
    page = markup.html_page(heading, style, sections, data, scripts, compiles=compiles)
    markup.write_page(page, path)


def _write_markdown(title: str, blocks: Sequence[ReportPart], path: Path) -> None:
    lines = [f"# {_markdown(title)}"]
    for kind, content in blocks:
        if kind == "heading":
            lines.append(f"## {_markdown(content)}")
        elif kind == "text":
            lines.append(_markdown(content))
        elif kind == "list":
            lines.append("\n".join(f"- {_markdown(line)}" for line in content))
        elif kind == "table":
            heads, rows = _cells(content)
            rule = ["---"] * len(heads)
            cells = ([_markdown(cell) for cell in row] for row in [heads, *rows])
            table = [f"| {' | '.join(row)} |" for row in cells]
            lines.append("\n".join([*table[:1], f"| {' | '.join(rule)} |", *table[1:]]))
    markup.write_page("\n\n".join(lines) + "\n", path)


def _markdown(text: Any) -> str:
    """Escape a text so that it holds no markup, HTML included."""
    line = cut(str(text), LENGTH)
    return "".join(f"\\{c}" if c in "\\`*_[]|#<>~" else "&amp;" if c == "&" else c for c in line)


def _write_latex(title: str, blocks: Sequence[ReportPart], path: Path) -> None:
    begin = markup.asset("study.tex")
    lines = [f"{begin}\\title{{{_tex(title)}}}\\date{{}}\n\\begin{{document}}\n\\maketitle"]
    for kind, content in blocks:
        if kind == "heading":
            lines.append(f"\\section*{{{_tex(content)}}}")
        elif kind == "text":
            lines.append(_tex(content))
        elif kind == "list":
            items = "\n".join(f"\\item {_tex(line)}" for line in content)
            lines.append(f"\\begin{{itemize}}\n{items}\n\\end{{itemize}}")
        elif kind == "table" and any(cells := _cells(content)):
            lines.append(_longtable(*cells))
    markup.write_page("\n\n".join([*lines, "\\end{document}"]) + "\n", path)


def _widths(heads: list[str], rows: list[list[str]]) -> list[float]:
    """Return the share of each column in the width of a table; long words fit where they can."""
    columns = [[head, *cells] for head, cells in zip(heads, zip(*rows, strict=True), strict=True)]
    longest = [max(len(word) for cell in column for word in cell.split()) for column in columns]
    lengths = [
        GAP + word + min(max(map(len, column)), WIDEST)
        for word, column in zip(longest, columns, strict=True)
    ]
    return [length / sum(lengths) for length in lengths]


def _longtable(heads: list[str], rows: list[list[str]]) -> str:
    widths = [0.99 * width - 0.012 for width in _widths(heads, rows)]
    form = "".join(f"L{{{width:.3f}}}" for width in widths)
    lines = [" & ".join(map(_tex, row)) + r" \\" for row in [heads, *rows]]
    begin = rf"{{\small\begin{{longtable}}{{@{{}}{form}@{{}}}}"
    head = rf"\toprule {lines[0]} \midrule \endhead"
    return "\n".join([begin, head, *lines[1:], r"\bottomrule", r"\end{longtable}}"])


def _tex(text: Any) -> str:
    return "".join(TEX.get(character, character) for character in cut(str(text), LENGTH))


def _write_word(title: str, blocks: Sequence[ReportPart], path: Path) -> None:
    document = require("docx", "a .docx file", "files").Document()
    page = document.sections[0]
    page.left_margin = page.right_margin = page.page_width // 12
    width = page.page_width - page.left_margin - page.right_margin
    document.styles["Light Shading"].font.size = 8 * POINT
    document.add_heading(cut(title, CELL), 0)
    for kind, content in blocks:
        if kind == "heading":
            document.add_heading(cut(content, CELL), 1)
        elif kind == "text":
            document.add_paragraph(cut(content, LENGTH))
        elif kind == "list":
            for line in content:
                document.add_paragraph(cut(line, LENGTH), style="List Bullet")
        elif kind == "table" and any(cells := _cells(content)):
            heads, rows = cells
            table = document.add_table(rows=1 + len(rows), cols=len(heads), style="Light Shading")
            table.autofit = False
            widths = [int(share * width) for share in _widths(heads, rows)]
            for column, space in zip(table.columns, widths, strict=True):
                column.width = space  # LibreOffice reads the columns, Word the cells
            # Reading a row builds the list of its cells; a table builds all of them each time.
            for row, texts in zip(table.rows, [heads, *rows], strict=True):
                for cell, text, space in zip(row.cells, texts, widths, strict=True):
                    cell.text, cell.width = text, space
    with replacing_file(path) as fresh:
        document.save(fresh)


FORMATS: dict[str, Callable[[str, Sequence[ReportPart], Path], None]] = {
    ".html": _write_html,
    ".htm": _write_html,
    ".md": _write_markdown,
    ".docx": _write_word,
    ".tex": _write_latex,
}
"""What writes a title and blocks to a path, by the suffix of the path."""
