"""Reports of classifiers, studies, training runs and probes: tables and figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from embedtopics.annotation.results import StudyReport
from embedtopics.classification.results import ClassificationReport, Score
from embedtopics.plots._classification import confusion, prevalence, reliability, risk_coverage
from embedtopics.plots._layers import layers
from embedtopics.plots._learning import before_after, learning_curves
from embedtopics.probing.results import LayerScores
from embedtopics.report._documents import Section, Table
from embedtopics.training.results import TrainingReport

MAX_CLASSES = 40
"""Classes of the confusion figure."""


def _classification(report: ClassificationReport) -> tuple[str, list[Section]]:
    """Return the report of a classifier."""
    times = "once" if report.n_looks == 1 else f"{report.n_looks:,} times"
    every = report.of(name=None)
    rows = [
        {"model": of} | {one.metric: _spell(one) for one in every if one.of == of}
        for of in dict.fromkeys(one.of for one in every)
    ]
    by_class = []
    for name in report.classes:
        scores = report.of(of="classifier", name=name)
        figures = {one.metric.replace("f1", "F1"): _spell(one) for one in scores}
        by_class.append({"class": name, "texts": scores[0].n} | figures)
    summary = (
        f"{report.n:,} labelled test texts in {report.n_groups:,} groups of near-duplicates. The "
        f"classifier was evaluated on them {times}. Changes made because of an evaluation make the "
        "next figures too high."
    )
    calibration = f"Expected calibration error: {report.calibration_error:.3f}."
    note = "Brackets contain 95 % bootstrap intervals over texts."
    sections = [
        Section("Summary", [summary, calibration]),
        Section("Comparison with baselines", [note, _table(rows)]),
        Section("Scores by class", [_table(by_class)]),
    ]
    if report.confusion is not None and len(report.classes) <= MAX_CLASSES:
        sections.append(Section("Confusion of classes", [confusion(report)]))
    sections.append(Section("Calibration: confidence and accuracy", [reliability(report)]))
    if report.risk_coverage is not None:
        sections.append(Section("Error at lower coverage", [risk_coverage(report)]))
    return "Report of a classifier", sections


def _spell(score: Score) -> str:
    if score.low != score.low:  # the precision of a class that is never predicted
        return "–"  # noqa: RUF001
    return f"{score.value:.3f} [{score.low:.3f}, {score.high:.3f}]"


def _table(rows: Sequence[Mapping[str, Any]]) -> Table:
    heads = list(dict.fromkeys(head for row in rows for head in row))
    return Table(heads, [[row.get(head) for head in heads] for row in rows])


def _training(report: TrainingReport) -> tuple[str, list[Section]]:
    """Return a training run: the verdict, its evidence, the curves and the effect."""
    diagnosis = report.diagnosis
    weights = f"of step {report.best_step:,}" if report.best_step else "unchanged"
    run = f"{report.objective} from {report.base}: {report.n_steps:,} steps. The weights are "
    evidence = [each.says for each in diagnosis.evidence] or ["None."]
    sections = [
        Section("Summary", [f"Verdict: {diagnosis.verdict}.", f"{run}{weights}.", evidence]),
        Section("Advice", [list(diagnosis.advice) or ["None."]]),
        Section("Learning curves", [learning_curves(report)]),
    ]
    if report.before_after:
        scores = _table([vars(change) for change in report.before_after])
        sections.append(Section("Before and after training", [before_after(report.before_after)]))
        sections.append(Section("Scores", [scores]))
    return f"Training of {Path(report.folder).name}", sections


def _probing(scores: LayerScores) -> tuple[str, list[Section]]:
    """Return the scores of a probe by layer."""
    summary = (
        f"{scores.task}, {scores.encoder}: {len(scores.labels):,} classes, {scores.n_train:,} "
        f"units to train on and {scores.n_test:,} to test on."
    )
    return "Probes", [
        Section("Summary", [summary]),
        Section("Scores by layer", [layers(scores)]),
        Section("Scores", [scores.to_frame()]),
    ]


def _study(report: StudyReport) -> tuple[str, list[Section]]:
    """Return an annotation study."""
    n = report.progress
    summary = (
        f"{n['labelled']:,} of {n['texts']:,} distinct texts have a label: {n['teach']:,} were "
        f"picked for the model, {n['count']:,} were drawn at random. Shares and quality are "
        f"estimated from the random texts. No model learns from the {n['test']:,} test texts."
    )
    sections = [Section("Summary", [summary])]
    if report.shares is not None:
        shares = prevalence(report.shares)
        sections.append(Section("Share of each label in the distinct texts", [shares]))
    tables = [Section(heading, [frame]) for heading, frame in report.tables.items()]
    return "Annotation study", [*sections, *tables]


Reported = ClassificationReport | StudyReport | TrainingReport | LayerScores
PAGES: Mapping[type, Callable[[Any], tuple[str, list[Section]]]] = {
    ClassificationReport: _classification,
    StudyReport: _study,
    TrainingReport: _training,
    LayerScores: _probing,
}
"""What describes each kind of result: title and sections."""
