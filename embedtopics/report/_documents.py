"""Headings, paragraphs, lists, tables and figures, written as HTML, Markdown, Word or LaTeX."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from embedtopics._utils.checks import require
from embedtopics._utils.folders import replacing_file
from embedtopics.plots._theme import cut
from embedtopics.report import _markup as markup

LENGTH, CELL, LONG = 8000, 4000, 700
"""Characters of a paragraph, of a cell, and of one that HTML folds and documents cut."""

MAX_ROWS = 200
"""Rows of a table."""

WIDEST, GAP = 60, 4
"""Characters up to which a column grows with its longest cell, and those between columns."""

POINT = 12_700
"""Units of Word in a typographic point."""

MARKDOWN = re.compile(r"[\\`*_\[\]|#<>~]|:(?=//)|(?<=www)\.", re.IGNORECASE)
"""Characters to escape; an address without its ":" or "." is no link."""

TEX = {character: f"\\{character}" for character in "&%$#_{}"} | {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "…": r"\dots{}",
}  # fmt: skip


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


Show = Callable[[Any], Any]


def _shown(
    section: Section, paragraph: Show, items: Show, table: Callable[..., Any], figure: Show | None
) -> list[Any]:
    """Return what functions make of the contents; documents have no function for figures."""
    shown = []
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


def html_sections(sections: Sequence[Section], figures: list[str] | None = None) -> list[str]:
    """Return sections named after their headings; the JSON of figures is added to a list."""
    drawn = [] if figures is None else figures

    def figure(content: Any) -> str:
        drawn.append(content.to_json(engine="json"))
        return f'<div id="place-figure-{len(drawn) - 1}"></div>'

    def items(lines: list[str]) -> str:
        return f"<ul>{''.join(f'<li>{markup.text(line, LENGTH)}</li>' for line in lines)}</ul>"

    def table(heads: list[str], rows: list[list[str]]) -> str:
        names = [markup.text(head) for head in heads]
        return markup.table(names, [[_html_cell(cell) for cell in row] for row in rows])

    return [
        markup.section(
            re.sub(r"\W+", "-", each.heading.lower()),
            markup.text(each.heading),
            *_shown(each, lambda text: f"<p>{markup.text(text, LENGTH)}</p>", items, table, figure),
        )
        for each in sections
    ]


def _html_cell(cell: str) -> str:
    shown = f"<bdi>{markup.text(cell, CELL)}</bdi>"
    if len(cell) <= LONG:
        return shown
    return f"<details><summary>{markup.text(cell, LONG // 2)}</summary><p>{shown}</p></details>"


def _write_html(title: str, sections: Sequence[Section], path: Path) -> None:
    from plotly.offline import get_plotlyjs

    figures: list[str] = []
    body, style = html_sections(sections, figures), markup.asset("page.css")
    data = [markup.data_script(f"figure-{i}", figure) for i, figure in enumerate(figures)]
    scripts = [get_plotlyjs(), markup.asset("figures.js")] if figures else []
    heading, compiles = markup.text(title, 160), bool(figures)
    markup.write_page(
        markup.html_page(heading, style, body, data, scripts, compiles=compiles), path
    )


def _write_markdown(title: str, sections: Sequence[Section], path: Path) -> None:
    def items(lines: list[str]) -> str:
        return "\n".join(f"- {_markdown(line)}" for line in lines)

    def table(heads: list[str], rows: list[list[str]]) -> str:
        lines = [f"| {' | '.join(map(_markdown, row))} |" for row in [heads, *rows]]
        return "\n".join([lines[0], f"|{' --- |' * len(heads)}", *lines[1:]])

    parts = [f"# {_markdown(title)}"]
    for each in sections:
        parts.append(f"## {_markdown(each.heading)}")
        parts += _shown(each, _markdown, items, table, None)
    markup.write_page("\n\n".join(parts) + "\n", path)


def _markdown(text: str) -> str:
    """Escape a text so that it holds no markup, HTML and bare addresses included."""
    return MARKDOWN.sub(r"\\\g<0>", cut(text, LENGTH).replace("&", "&amp;"))


def _write_latex(title: str, sections: Sequence[Section], path: Path) -> None:
    def items(lines: list[str]) -> str:
        listed = "\n".join(f"\\item {_tex(line)}" for line in lines)
        return f"\\begin{{itemize}}\n{listed}\n\\end{{itemize}}"

    parts = [markup.asset("study.tex"), f"\\title{{{_tex(title)}}}\\date{{}}"]
    parts.append("\\begin{document}\n\\maketitle")
    for each in sections:
        parts.append(f"\\section*{{{_tex(each.heading)}}}")
        parts += _shown(each, _tex, items, _longtable, None)
    markup.write_page("\n\n".join([*parts, "\\end{document}"]) + "\n", path)


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


def _tex(text: str) -> str:
    return "".join(TEX.get(character, character) for character in cut(text, LENGTH))


def _write_word(title: str, sections: Sequence[Section], path: Path) -> None:
    document = require("docx", "a .docx file", "files").Document()
    page = document.sections[0]
    page.left_margin = page.right_margin = page.page_width // 12
    width = page.page_width - page.left_margin - page.right_margin
    document.styles["Light Shading"].font.size = 8 * POINT

    def items(lines: list[str]) -> None:
        for line in lines:
            document.add_paragraph(cut(line, LENGTH), style="List Bullet")

    def table(heads: list[str], rows: list[list[str]]) -> None:
        grid = document.add_table(rows=1 + len(rows), cols=len(heads), style="Light Shading")
        grid.autofit = False
        widths = [int(share * width) for share in _widths(heads, rows)]
        for column, space in zip(grid.columns, widths, strict=True):
            column.width = space  # LibreOffice reads the columns, Word the cells
        # Reading a row builds the list of its cells; a table builds all of them each time.
        for row, texts in zip(grid.rows, [heads, *rows], strict=True):
            for cell, text, space in zip(row.cells, texts, widths, strict=True):
                cell.text, cell.width = text, space

    document.add_heading(cut(title, CELL), 0)
    for each in sections:
        document.add_heading(cut(each.heading, CELL), 1)
        _shown(each, lambda text: document.add_paragraph(cut(text, LENGTH)), items, table, None)
    with replacing_file(path) as fresh:
        document.save(fresh)


FORMATS: dict[str, Callable[[str, Sequence[Section], Path], None]] = {
    ".html": _write_html,
    ".htm": _write_html,
    ".md": _write_markdown,
    ".docx": _write_word,
    ".tex": _write_latex,
}
"""What writes a title and sections to a path, by the suffix of the path."""
