"""The pages of a classifier and of a labelling study: tables, figures and decisions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from embedtopics.annotation.results import StudyReport
from embedtopics.classification.results import ClassificationReport, Score
from embedtopics.plots._classification import confusion, prevalence, reliability, risk_coverage
from embedtopics.report._markup import asset, data_script, html_page, section, table, text
from embedtopics.report._report import decisions_section

if TYPE_CHECKING:
    import pandas as pd

MOST_CLASSES, MOST_ROWS = 40, 200
"""Of the confusion figure, and of a table."""

SCRIPT = """
for (const data of document.querySelectorAll('script[id^="figure-"]')) {
  const figure = JSON.parse(data.textContent);
  const place = document.getElementById("place-" + data.id);
  Plotly.newPlot(place, figure.data, figure.layout, {displayModeBar: false});
}
"""


def classification_html(
    report: ClassificationReport, tables: Mapping[str, Any], *, title: str | None = None
) -> str:
    """Return the report of a classifier, and further tables, as a self-contained HTML page."""
    from plotly.offline import get_plotlyjs

    figures = {"reliability": ("Does it know how sure to be?", reliability(report))}
    if report.confusion is not None and len(report.classes) <= MOST_CLASSES:
        figures = {"confusion": ("What is taken for what", confusion(report)), **figures}
    if report.risk_coverage is not None:
        figures["risk"] = ("What if only the surest are predicted?", risk_coverage(report))
    drawn = [
        section(name, text(heading), f'<div id="place-figure-{name}"></div>')
        for name, (heading, _) in figures.items()
    ]
    heading = text(title if title is not None else "How far to trust a classifier", 160)
    return html_page(
        heading,
        asset("page.css"),
        [
            _summary(report),
            _overall(report),
            _by_class(report),
            *drawn,
            *(_further(number, name, each) for number, (name, each) in enumerate(tables.items())),
            decisions_section(report.decisions),
        ],
        [
            data_script(f"figure-{name}", figure.to_json(engine="json"))
            for name, (_, figure) in figures.items()
        ],
        [get_plotlyjs(), SCRIPT],
        compiles=True,
    )


def _summary(report: ClassificationReport) -> str:
    looks = "once" if report.n_looks == 1 else f"{report.n_looks:,} times"
    return section(
        "summary",
        "Summary",
        f"<p>{report.n:,} labelled texts that it has not learned from, in {report.n_groups:,} "
        f"groups of near-copies. It was measured on them {looks}: what is changed because of such "
        "figures makes the next ones too high.</p>",
        f"<p>Expected calibration error: {report.calibration_error:.3f}.</p>",
    )


def _figure(score: Score) -> str:
    return f"{score.value:.3f} <small>[{score.low:.3f}, {score.high:.3f}]</small>"


def _overall(report: ClassificationReport) -> str:
    """Return the figures of all classes together, of the classifier and of baselines."""
    every = [one for one in (*report.scores, *report.baselines) if one.name is None]
    metrics = list(dict.fromkeys(one.metric for one in every))
    rows = [
        [text(of, 60), *(_figure(one) for one in every if one.of == of)]
        for of in dict.fromkeys(one.of for one in every)
    ]
    note = '<p class="note">In brackets 95 % intervals over texts, near-copies drawn together.</p>'
    return section("overall", "Beside baselines", note, table(["Model", *metrics], rows))


def _by_class(report: ClassificationReport) -> str:
    """Return precision, recall and F1 of each class."""
    rows = []
    for name in report.classes:
        of = [report.score(metric, name) for metric in ("precision", "recall", "f1")]
        rows.append([text(name, 60), f"{of[0].n:,}", *map(_figure, of)])
    return section("classes", "Each class", table(["class", "texts", "precision", "recall", "F1"],
                                                  rows))  # fmt: skip


def study_html(report: StudyReport, *, title: str | None = None) -> str:
    """Return a study of annotators as a self-contained HTML page."""
    from plotly.offline import get_plotlyjs

    n = report.progress
    said = (
        f"<p>{n['labelled']:,} of {n['texts']:,} distinct texts have a label: {n['teach']:,} were "
        f"picked for the model, {n['count']:,} drawn at random. Shares and quality are estimated "
        f"from the random ones; {n['test']:,} texts are kept for tests, and no model learns from "
        "them.</p>"
    )
    parts, data, scripts = [section("summary", "Summary", said)], [], []
    if report.shares is not None:
        note = '<p class="note">Of the distinct texts of the corpus, with 95 % intervals.</p>'
        place = '<div id="place-figure-shares"></div>'
        parts.append(section("shares", "What share of the texts carries each label", note, place))
        figure = prevalence(report.shares)
        data = [data_script("figure-shares", figure.to_json(engine="json"))]
        scripts = [get_plotlyjs(), SCRIPT]
    tables = enumerate(report.tables.items())
    parts += [_further(number, name, each) for number, (name, each) in tables]
    parts.append(decisions_section(report.decisions))
    heading = text(title if title is not None else "A study of labelled texts", 160)
    return html_page(heading, asset("page.css"), parts, data, scripts, compiles=bool(scripts))


def _further(number: int, name: str, frame: pd.DataFrame) -> str:
    """Return a table as it is given, its texts escaped."""
    rows = [
        [f"{cell:.3g}" if isinstance(cell, float) else text(_plain(cell), 300) for cell in row]
        for row in frame.head(MOST_ROWS).itertuples(index=False)
    ]
    shown = table([text(column, 60) for column in frame.columns], rows)
    return section(f"table-{number}", text(name, 120), shown if rows else "<p>None.</p>")


def _plain(cell: Any) -> Any:
    """Return several values as one text, and none as nothing."""
    if isinstance(cell, (list, tuple)):
        return "; ".join(map(str, cell))
    return "" if cell is None else cell
