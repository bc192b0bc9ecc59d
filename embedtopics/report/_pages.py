"""Pages of classifiers, studies, training runs and probes: tables, figures and decisions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from embedtopics.annotation.results import StudyReport
from embedtopics.classification.results import ClassificationReport, Score
from embedtopics.decisions import Decision
from embedtopics.plots._classification import confusion, prevalence, reliability, risk_coverage
from embedtopics.plots._layers import layers
from embedtopics.plots._learning import before_after, learning_curves
from embedtopics.probing.results import LayerScores
from embedtopics.report._markup import asset, data_script, html_page, section, table, text
from embedtopics.report._sections import decisions_section
from embedtopics.training.results import TrainingReport

if TYPE_CHECKING:
    import pandas as pd
    from plotly.graph_objects import Figure

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


def _classification(
    report: ClassificationReport, tables: Mapping[str, pd.DataFrame], title: str | None
) -> str:
    """Return the report of a classifier."""
    figures = {"reliability": ("Calibration: confidence and accuracy", reliability(report))}
    if report.confusion is not None and len(report.classes) <= MAX_CLASSES:
        figures = {"confusion": ("Confusion of classes", confusion(report)), **figures}
    if report.risk_coverage is not None:
        figures["risk"] = ("Error at lower coverage", risk_coverage(report))
    times = "once" if report.n_looks == 1 else f"{report.n_looks:,} times"
    summary = (
        f"<p>{report.n:,} labelled test texts in {report.n_groups:,} groups of near-duplicates. "
        f"The classifier was evaluated on them {times}. Changes made because of an evaluation "
        "make the next figures too high.</p>\n"
        f"<p>Expected calibration error: {report.calibration_error:.3f}.</p>"
    )
    parts = [section("summary", "Summary", summary), _overall(report), _by_class(report)]
    return _page(title or "Report of a classifier", parts, figures, tables, report.decisions)


def _training(report: TrainingReport, tables: Mapping[str, pd.DataFrame], title: str | None) -> str:
    """Return a training run: the verdict, its evidence, the curves and the effect."""
    import pandas as pd

    diagnosis = report.diagnosis
    weights = f"of step {report.best_step:,}" if report.best_step else "unchanged"
    summary = (
        f"<p><strong>Verdict: {text(diagnosis.verdict)}</strong>. {text(report.objective)} from "
        f"{text(report.base)}: {report.n_steps:,} steps. The weights are {weights}.</p>"
    )
    evidence, advice = _points(each.says for each in diagnosis.evidence), _points(diagnosis.advice)
    parts = [section("summary", "Summary", summary, evidence), section("advice", "Advice", advice)]
    figures = {"curves": ("Learning curves", learning_curves(report))}
    if report.before_after:
        figures["effect"] = ("Before and after training", before_after(report.before_after))
        tables = {"Scores": pd.DataFrame(list(report.before_after)), **tables}
    heading = title or f"Training of {Path(report.folder).name}"
    return _page(heading, parts, figures, tables, report.decisions)


def _probing(scores: LayerScores, tables: Mapping[str, pd.DataFrame], title: str | None) -> str:
    """Return the scores of a probe by layer."""
    summary = (
        f"<p>{text(scores.task)}, {text(scores.encoder)}: {len(scores.labels):,} classes, "
        f"{scores.n_train:,} units to train on and {scores.n_test:,} to test on.</p>"
    )
    figures = {"layers": ("Scores by layer", layers(scores))}
    tables = {"Scores": scores.to_frame(), **tables}
    parts = [section("summary", "Summary", summary)]
    return _page(title or "Probes", parts, figures, tables, scores.decisions)


def _page(
    heading: str,
    parts: Sequence[str],
    figures: Mapping[str, tuple[str, Figure]],
    tables: Mapping[str, pd.DataFrame],
    decisions: Sequence[Decision],
) -> str:
    """Return a page of parts, figures by name with their headings, tables and decisions."""
    from plotly.offline import get_plotlyjs

    drawn = [
        section(name, text(caption), f'<div id="place-figure-{name}"></div>')
        for name, (caption, _) in figures.items()
    ]
    further = [_further(number, name, each) for number, (name, each) in enumerate(tables.items())]
    data = [
        data_script(f"figure-{name}", figure.to_json(engine="json"))
        for name, (_, figure) in figures.items()
    ]
    scripts = [get_plotlyjs(), SCRIPT] if figures else []
    parts = [*parts, *drawn, *further, decisions_section(decisions)]
    heading = text(heading, 160)
    return html_page(heading, asset("page.css"), parts, data, scripts, compiles=bool(figures))


def _points(sentences: Iterable[str]) -> str:
    items = "".join(f"<li>{text(each, 600)}</li>" for each in sentences)
    return f"<ul>{items}</ul>" if items else "<p>None.</p>"


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
        metrics = ("precision", "recall", "f1")
        scores = [report.of(of="classifier", metric=one, name=name)[0] for one in metrics]
        rows.append([text(name, 60), f"{scores[0].n:,}", *map(_figure, scores)])
    heads = ["class", "texts", "precision", "recall", "F1"]
    return section("classes", "Scores by class", table(heads, rows))


def _study(report: StudyReport, tables: Mapping[str, pd.DataFrame], title: str | None) -> str:
    """Return an annotation study."""
    n = report.progress
    summary = (
        f"<p>{n['labelled']:,} of {n['texts']:,} distinct texts have a label: {n['teach']:,} were "
        f"picked for the model, {n['count']:,} were drawn at random. Shares and quality are "
        f"estimated from the random texts. No model learns from the {n['test']:,} test texts.</p>"
    )
    parts, figures = [section("summary", "Summary", summary)], {}
    if report.shares is not None:
        figures["shares"] = ("Share of each label in the distinct texts", prevalence(report.shares))
    tables = {**report.tables, **tables}
    return _page(title or "Annotation study", parts, figures, tables, report.decisions)


def _further(number: int, name: str, frame: pd.DataFrame) -> str:
    """Return a table with escaped texts, without columns that hold nothing."""
    rows = [[_plain(cell) for cell in row] for row in frame.head(MAX_ROWS).itertuples(index=False)]
    columns = [i for i in range(frame.shape[1]) if any(row[i] for row in rows)]
    names = [text(frame.columns[i], 60) for i in columns]
    shown = table(names, [[row[i] for i in columns] for row in rows])
    return section(f"table-{number}", text(name, 120), shown if rows else "<p>None.</p>")


def _plain(cell: Any) -> str:
    """Return markup: a list as one text, what is missing as an empty one."""
    import pandas as pd

    if isinstance(cell, float) and cell == cell:
        return f"{cell:.3g}"
    if isinstance(cell, (list, tuple)):
        cell = "; ".join(map(str, cell))
    return "" if pd.isna(cell) else text(cell, 300)


Reported = ClassificationReport | StudyReport | TrainingReport | LayerScores
PAGES: Mapping[type, Callable[[Any, Mapping[str, pd.DataFrame], str | None], str]] = {
    ClassificationReport: _classification,
    StudyReport: _study,
    TrainingReport: _training,
    LayerScores: _probing,
}
"""What writes each kind of result: result, further tables by heading, title -> HTML."""
