"""Write any result as a self-contained page or as a document."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from embedtopics._utils.display import Displayed
from embedtopics._utils.fitted import FittedTopics, result_of
from embedtopics.annotation.results import SheetScore, StudyReport
from embedtopics.classification.results import ClassificationReport
from embedtopics.comparison.results import Comparison
from embedtopics.errors import InputError
from embedtopics.plots._classification import confusion, reliability, risk_coverage
from embedtopics.plots._layers import layers
from embedtopics.plots._learning import before_after, learning_curves
from embedtopics.plots._shares import shares
from embedtopics.probing.results import LayerScores
from embedtopics.report._comparison import comparison_html
from embedtopics.report._documents import FORMATS, Section, Table, write_page
from embedtopics.report._explorer import explorer_html
from embedtopics.report._page_data import corpus_title
from embedtopics.report._study import Checks, record_sections, study_sections
from embedtopics.topics.results import Specifications, TopicResult, Verification
from embedtopics.training.results import TrainingReport

if TYPE_CHECKING:
    import pandas as pd

MAX_CLASSES = 40
"""Classes of the confusion figure."""

Reported = ClassificationReport | StudyReport | TrainingReport | LayerScores


def write_report(
    result: FittedTopics | Comparison | Reported,
    out: str | os.PathLike[str],
    *,
    title: str | None = None,
    tables: Mapping[str, pd.DataFrame] = MappingProxyType({}),
    evaluation: pd.DataFrame | None = None,
    scores: Sequence[SheetScore] = (),
    specifications: Specifications | None = None,
    verification: Verification | None = None,
) -> Path:
    """Write a result to one file, a page that works offline or a document for reviewers.

    A page contains its scripts, style and data. Its content security policy allows no connection,
    and no script except its own, identified by hashes. Text of the corpus is escaped. The same
    result gives the same file, byte for byte, except .docx files. The file is replaced atomically,
    so a failed write keeps the old report.

    Parameters
    ----------
    result : TopicResult, fitted TopicModel, Comparison, or one of four reports
        A TopicResult gives a page to search, select and compare its documents, with a report below
        the map: methods, sample, topics, validation, decisions, software, references, and a
        checklist after ValiTex (Birkenmaier et al. 2024), in which what is missing is "not done".
        A Comparison gives linked maps: a document that is highlighted or selected on one map is
        highlighted or selected on all. A ClassificationReport, a StudyReport, a TrainingReport and
        LayerScores give a page of their figures and tables.
    out : str or path
        File to write, in an existing folder. An existing file is replaced. It ends in .html, or,
        for the report alone, without figures, in .md, .docx (needs the extra "files") or .tex; then
        a file that ends in .bib cites the methods of topics. A Comparison has a page only.
    title : str, optional
        Heading; by default it names the corpus, or what the result is of.
    tables : mapping of str to DataFrame
        Further tables, by heading, such as effects or corrected shares; not for a Comparison.
    evaluation : DataFrame, optional
        Only for topics: what `topics.evaluate` returned.
    scores : sequence of SheetScore
        Only for topics: the scores of answers of people to `annotation.validation_sheets`.
    specifications : Specifications, optional
        Only for topics: what `topics.specifications` returned.
    verification : Verification, optional
        Only for topics: what `topics.verify` returned.

    Returns
    -------
    Path
        The file. A page has 0.1 MB for topics and 40 kB for a comparison, plus the texts; else
        5 MB, most of it Plotly.

    Raises
    ------
    InputError
        Another type of result, an option that this kind of result has no place for, another suffix,
        or a folder that does not exist.
    NotFittedError
        If a model is not fitted.
    MissingExtraError
        If python-docx, which writes .docx files, is not installed.
    OSError
        The folder is not writable, or the disk is full.

    Examples
    --------
    >>> import tempfile
    >>> import embedtopics as et
    >>> model = et.TopicModel("tfidf").fit(et.Corpus("embedtopics:demo"))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = et.report.write_report(model, f"{folder}/study.html", title="What people wrote")
    ...     document = et.report.write_report(model, f"{folder}/study.md")
    ...     page.name, "## Methods" in document.read_text("utf-8")
    ('study.html', True)
    """
    result = _reported(result)
    _check_tables(result, tables)

    of_topics = {
        "evaluation": evaluation,
        "scores": scores,
        "specifications": specifications,
        "verification": verification,
    }
    _check_checks(result, {name: value for name, value in of_topics.items() if _is_given(value)})

    if not isinstance(out, str | os.PathLike):
        raise InputError("out", "the path of a file to write", out)
    path = Path(out)
    if not path.parent.is_dir():
        raise InputError("out", "a file in a folder that exists", out, "create the folder first")

    suffix = path.suffix.lower()
    formats = (".html", ".htm") if isinstance(result, Comparison) else tuple(FORMATS)
    if suffix not in formats:
        raise InputError("out", f"a file that ends in {', '.join(formats)}", out)

    if isinstance(result, Comparison):
        return write_page(comparison_html(result, title=title), path)

    if isinstance(result, TopicResult):
        computed: dict[str, Displayed] = {}
        if specifications is not None:
            computed["Choices"] = specifications
        if verification is not None:
            computed["Computed again"] = verification
        checks = Checks(evaluation, scores, tables, computed)

        if suffix in (".html", ".htm"):
            return write_page(explorer_html(result, title=title, checks=checks), path)
        sections, entries = study_sections(result, checks, is_page=False)
        heading = corpus_title("Topics of", result)
        write_page("\n".join(entries), path.with_suffix(".bib"))
    else:
        heading, sections = PAGES[type(result)](result)
        sections += [Section(name, [frame]) for name, frame in tables.items()]
        sections += record_sections(result.decisions)

    FORMATS[suffix](title or heading, sections, path)
    return path


def _reported(result: Any) -> TopicResult | Comparison | Reported:
    """Return what a page describes: a result, or that of a fitted topic model."""
    if isinstance(result, Comparison) or type(result) in PAGES:
        return result  # type: ignore[no-any-return]

    kinds = ["TopicResult", "fitted TopicModel", "Comparison"]
    expected = "one of " + ", ".join([*kinds, *(kind.__name__ for kind in PAGES)])
    found = type(result).__name__
    if found in CALLS:
        raise InputError("result", expected, remedy=f"call {CALLS[found]} first", found=found)
    try:
        return result_of(result)
    except InputError as error:
        raise InputError("result", expected, result, error.remedy) from None


def _check_tables(result: Any, tables: Any) -> None:
    """Raise InputError for tables that are none, or that a comparison has no place for."""
    import pandas as pd

    is_mapping = isinstance(tables, Mapping)
    if not is_mapping or not all(isinstance(table, pd.DataFrame) for table in tables.values()):
        raise InputError("tables", "a mapping of headings to DataFrames", tables)
    if tables and isinstance(result, Comparison):
        remedy = "the page of a comparison shows none"
        raise InputError(
            "tables", "left out for a Comparison", found=", ".join(tables), remedy=remedy
        )


def _is_given(value: Any) -> bool:
    """Return whether an argument is neither None nor an empty sequence."""
    return value is not None and not (isinstance(value, list | tuple) and not value)


def _check_checks(result: Any, checks: Mapping[str, Any]) -> None:
    """Raise InputError for checks of topics that are of a wrong type, or of another result."""
    for name, value in checks.items():
        if not isinstance(result, TopicResult):
            expected = f"left out for a {type(result).__name__}"
            remedy = "only the report of topics shows it"
            raise InputError(name, expected, remedy=remedy, found=f"a {type(value).__name__}")
        source, is_valid = CHECKS[name]
        if not is_valid(value):
            raise InputError(name, f"what {source} returns", value)


def _are_scores(value: Any) -> bool:
    """Return whether a value is a sequence of scores of sheets."""
    return isinstance(value, list | tuple) and all(isinstance(score, SheetScore) for score in value)


CHECKS: Mapping[str, tuple[str, Callable[[Any], bool]]] = {
    "evaluation": ("topics.evaluate", lambda value: "measure" in getattr(value, "columns", ())),
    "scores": ("annotation.score_sheet, in a list", _are_scores),
    "specifications": ("topics.specifications", lambda value: isinstance(value, Specifications)),
    "verification": ("topics.verify", lambda value: isinstance(value, Verification)),
}
"""The function whose results each check of topics shows, and the test of its type."""


CALLS = {
    "AnnotationProject": "project.report()",
    "TextClassifier": "et.classification.evaluate(classifier, test, train)",
    "TokenClassifier": "et.classification.evaluate(classifier, test, train)",
}
"""What returns the report of an object that has none itself, by the name of its class."""


def _classification(report: ClassificationReport) -> tuple[str, list[Section]]:
    """Return the report of a classifier."""
    times = "once" if report.n_looks == 1 else f"{report.n_looks:,} times"
    table = report.to_frame()
    of_all = table[table["class"].isna()]
    by_model = [
        {"model": of, **_figures(scores)} for of, scores in of_all.groupby("of", sort=False)
    ]
    by_class = []
    for name in report.classes:
        of_class = table[[value == name for value in table["class"]]]
        scores = of_class[of_class["of"] == "classifier"]
        by_class.append({"class": name, "texts": int(scores["n"].iloc[0]), **_figures(scores)})
    summary = (
        f"{report.n:,} labelled test texts in {report.n_groups:,} groups of near-duplicates. The "
        f"classifier was evaluated on them {times}. Changes made because of an evaluation make the "
        "next figures too high."
    )
    calibration = f"Expected calibration error: {report.calibration_error:.3f}."
    note = "Brackets contain 95 % bootstrap intervals over texts."
    sections = [
        Section("Summary", [summary, calibration]),
        Section("Comparison with baselines", [note, _table(by_model)]),
        Section("Scores by class", [_table(by_class)]),
    ]
    if report.confusion is not None and len(report.classes) <= MAX_CLASSES:
        sections.append(Section("Confusion of classes", [confusion(report)]))
    sections.append(Section("Calibration: confidence and accuracy", [reliability(report)]))
    if report.risk_coverage is not None:
        sections.append(Section("Error at lower coverage", [risk_coverage(report)]))
    return "Report of a classifier", sections


def _figures(scores: pd.DataFrame) -> dict[str, str]:
    """Return metrics with their intervals; a class that is never predicted has no precision."""
    figures = {}
    for row in scores.to_dict("records"):
        figure = "\u2013"
        if not math.isnan(row["low"]):
            figure = f"{row['value']:.3f} [{row['low']:.3f}, {row['high']:.3f}]"
        figures[row["metric"].replace("f1", "F1")] = figure
    return figures


def _table(rows: Sequence[Mapping[str, Any]]) -> Table:
    heads = list(dict.fromkeys(head for row in rows for head in row))
    return Table(heads, [[row.get(head) for head in heads] for row in rows])


def _training(report: TrainingReport) -> tuple[str, list[Section]]:
    """Return a training run: the verdict, its evidence, the curves and the effect."""
    diagnosis = report.diagnosis
    weights = f"of step {report.best_step:,}" if report.best_step else "unchanged"
    run = f"{report.objective} from {report.base}: {report.n_steps:,} steps. The weights are "
    evidence = diagnosis.evidence["says"].tolist() or ["None."]
    sections = [
        Section("Summary", [f"Verdict: {diagnosis.verdict}.", f"{run}{weights}.", evidence]),
        Section("Advice", [list(diagnosis.advice) or ["None."]]),
        Section("Learning curves", [learning_curves(report)]),
    ]
    changes = report.before_after
    if not changes.empty:
        scores = Table(changes.columns.tolist(), changes.to_numpy(dtype=object).tolist())
        sections.append(Section("Before and after training", [before_after(report)]))
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
        figure = shares(report.shares)
        sections.append(Section("Share of each label in the distinct texts", [figure]))
    tables = [Section(heading, [frame]) for heading, frame in report.tables.items()]
    return "Annotation study", [*sections, *tables]


PAGES: Mapping[type, Callable[[Any], tuple[str, list[Section]]]] = {
    ClassificationReport: _classification,
    StudyReport: _study,
    TrainingReport: _training,
    LayerScores: _probing,
}
"""What describes each kind of result: title and sections."""
