"""The pages of a classifier and of an annotation study: tables, figures and decisions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from embedtopics.annotation.results import StudyReport
from embedtopics.classification.results import ClassificationReport, Score
from embedtopics.plots._classification import confusion, prevalence, reliability, risk_coverage
from embedtopics.report._markup import asset, data_script, html_page, section, table, text
from embedtopics.report._sections import decisions_section

if TYPE_CHECKING:
    import pandas as pd

MAX_CLASSES, MAX_ROWS = 40, 200
"""Classes of the confusion figure, and rows of a table."""

SCRIPT = """
for (const data of document.querySelectorAll('script[id^="figure-"]')) {
  const figure = JSON.parse(data.textContent);
  const place = document.getElementById("place-" + data.id);
  if (figure.layout.width > place.clientWidth) figure.layout.width = place.clientWidth;
  Plotly.newPlot(place, figure.data, figure.layout, {displayModeBar: false});
}
"""


def classification_html(
    report: ClassificationReport, tables: Mapping[str, Any], *, title: str | None = None
) -> str:
    """Return the report of a classifier and further tables as a self-contained HTML page."""
    from plotly.offline import get_plotlyjs

    figures = {"reliability": ("Calibration: confidence and accuracy", reliability(report))}
    if report.confusion is not None and len(report.classes) <= MAX_CLASSES:
        figures = {"confusion": ("Confusion of classes", confusion(report)), **figures}
    if report.risk_coverage is not None:
        figures["risk"] = ("Error at lower coverage", risk_coverage(report))
    drawn = [
        section(name, text(heading), f'<div id="place-figure-{name}"></div>')
        for name, (heading, _) in figures.items()
    ]
    heading = text(title if title is not None else "Report of a classifier", 160)
    further = [_further(number, name, each) for number, (name, each) in enumerate(tables.items())]
    parts = [_summary(report), _overall(report), _by_class(report), *drawn, *further]
    parts.append(decisions_section(report.decisions))
    data = [
        data_script(f"figure-{name}", figure.to_json(engine="json"))
        for name, (_, figure) in figures.items()
    ]
    scripts = [get_plotlyjs(), SCRIPT]
    return html_page(heading, asset("page.css"), parts, data, scripts, compiles=True)


def _summary(report: ClassificationReport) -> str:
    times = "once" if report.n_looks == 1 else f"{report.n_looks:,} times"
    return section(
        "summary",
        "Summary",
        f"<p>{report.n:,} labelled test texts in {report.n_groups:,} groups of near-duplicates. "
        f"The classifier was evaluated on them {times}. Changes made because of an evaluation "
        "make the next figures too high.</p>",
        f"<p>Expected calibration error: {report.calibration_error:.3f}.</p>",
    )


def _figure(score: Score) -> str:
    if score.low != score.low:  # the precision of a class that is never predicted
        return "&ndash;"
    return f"{score.value:.3f} <small>[{score.low:.3f}, {score.high:.3f}]</small>"


def _overall(report: ClassificationReport) -> str:
    """Return the scores of the classifier and of the baselines over all classes."""
    every = report.of(name=None)
    metrics = list(dict.fromkeys(one.metric for one in every))
    rows = [
        [text(of, 60), *(_figure(one) for one in every if one.of == of)]
        for of in dict.fromkeys(one.of for one in every)
    ]
    note = '<p class="note">Brackets contain 95 % bootstrap intervals over texts.</p>'
    return section("overall", "Comparison with baselines", note, table(["Model", *metrics], rows))


def _by_class(report: ClassificationReport) -> str:
    """Return precision, recall and F1 of each class."""
    rows = []
    for name in report.classes:
        scores = [
            report.of(of="classifier", metric=metric, name=name)[0]
            for metric in ("precision", "recall", "f1")
        ]
        rows.append([text(name, 60), f"{scores[0].n:,}", *map(_figure, scores)])
    heads = ["class", "texts", "precision", "recall", "F1"]
    return section("classes", "Scores by class", table(heads, rows))


def study_html(report: StudyReport, *, title: str | None = None) -> str:
    """Return an annotation study as a self-contained HTML page."""
    from plotly.offline import get_plotlyjs

    n = report.progress
    summary = (
        f"<p>{n['labelled']:,} of {n['texts']:,} distinct texts have a label: {n['teach']:,} were "
        f"picked for the model, {n['count']:,} were drawn at random. Shares and quality are "
        f"estimated from the random texts. No model learns from the {n['test']:,} test texts.</p>"
    )
    parts, data, scripts = [section("summary", "Summary", summary)], [], []
    if report.shares is not None:
        note = '<p class="note">Shares of the distinct texts, with 95 % intervals.</p>'
        figure_place = '<div id="place-figure-shares"></div>'
        parts.append(section("shares", "Share of each label", note, figure_place))
        figure = prevalence(report.shares)
        data = [data_script("figure-shares", figure.to_json(engine="json"))]
        scripts = [get_plotlyjs(), SCRIPT]
    tables = enumerate(report.tables.items())
    parts += [_further(number, name, each) for number, (name, each) in tables]
    parts.append(decisions_section(report.decisions))
    heading = text(title if title is not None else "Annotation study", 160)
    return html_page(heading, asset("page.css"), parts, data, scripts, compiles=bool(scripts))


def _further(number: int, name: str, frame: pd.DataFrame) -> str:
    """Return a table with escaped texts, without columns that hold nothing."""
    rows = [
        [
            f"{cell:.3g}" if isinstance(cell, float) and cell == cell else _plain(cell)
            for cell in row
        ]
        for row in frame.head(MAX_ROWS).itertuples(index=False)
    ]
    columns = [i for i in range(frame.shape[1]) if any(row[i] for row in rows)]
    names = [text(frame.columns[i], 60) for i in columns]
    shown = table(names, [[row[i] for i in columns] for row in rows])
    return section(f"table-{number}", text(name, 120), shown if rows else "<p>None.</p>")


def _plain(cell: Any) -> str:
    """Return markup: a list as one text, None and NaN as an empty one."""
    if isinstance(cell, (list, tuple)):
        cell = "; ".join(map(str, cell))
    return "" if cell is None or cell != cell else text(cell, 300)
