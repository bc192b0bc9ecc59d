"""``report``: what a folder that embedtopics wrote holds, for readers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from typer import Argument, Option

from embedtopics.cli import _display as show
from embedtopics.cli import _options as opt
from embedtopics.errors import InputError

SUFFIXES = {"html": ".html", "md": ".md", "docx": ".docx", "latex": ".tex"}


def report(
    folder: Annotated[
        Path,
        Argument(
            readable=False,  # a folder that cannot be read has an error of its own
            help="Results of topics, an encoder that train wrote, or a project of annotate.",
        ),
    ],
    format: Annotated[Literal["html", "md", "docx", "latex"], Option(help="Format.")] = "html",
    out: Annotated[Path | None, Option(help="File; by default FOLDER-report.")] = None,
    labels: Annotated[
        str | None, Option(help="Of topics: column of known classes, to compare.")
    ] = None,
    answers: Annotated[Path | None, Option(help="Of topics: folder of evaluate --ask.")] = None,
    corpus: Annotated[
        Path | None, Option(help="Of a project: the file that annotate was given.")
    ] = None,
    text: opt.TextColumn = None,
    id: opt.IdColumn = None,
) -> None:
    """Write a report: methods and validation of topics, learning curves, or labels of people."""
    suffix = SUFFIXES[format]
    if _is_encoder(folder):
        show.check_target(out, (suffix,))
        _print_training(folder, out)
        return
    page = out or folder.with_name(f"{folder.name}-report{suffix}")
    show.check_target(page, (suffix,))
    if _is_project(folder):
        _write_project(folder, page, corpus, text, id)
    else:
        _write_topics(folder, page, labels, answers)
    show.say(f"Written to {page}.")


def _is_encoder(folder: Path) -> bool:
    """Return whether a training run wrote its report into a folder."""
    from embedtopics.training._report import FOLDER

    return (folder / FOLDER).is_dir()


def _is_project(folder: Path) -> bool:
    """Return whether a folder holds the answers of people."""
    from embedtopics.annotation._journal import NAME
    from embedtopics.annotation._journal_lines import LINES_NAME

    return (folder / NAME).exists() or (folder / LINES_NAME).exists()


def _print_training(folder: Path, out: Path | None) -> None:
    from embedtopics.cli._train import print_report
    from embedtopics.training.results import TrainingReport

    print_report(TrainingReport.load(folder), folder, page=out)


def _write_project(
    folder: Path, page: Path, corpus: Path | None, text: Any, id: str | None
) -> None:
    from embedtopics.annotation._project import AnnotationProject
    from embedtopics.corpus._corpus import Corpus
    from embedtopics.report import write_report

    if corpus is None:
        raise InputError("corpus", "the file that embedtopics annotate was given", None)
    with AnnotationProject.load(folder, Corpus(corpus, text, id=id)) as project:
        write_report(project.report(), page)


def _write_topics(folder: Path, page: Path, labels: str | None, answers: Path | None) -> None:
    import pandas as pd

    from embedtopics import annotation
    from embedtopics.report import write_report
    from embedtopics.topics import evaluate

    if answers is not None and not answers.is_dir():
        raise InputError("--answers", "the folder of embedtopics evaluate --ask", str(answers))
    result = show.open_result(folder)
    parts: dict[str, Any] = {"evaluation": evaluate(result, labels=labels)}
    choices = folder / "summary.csv"  # of the command run-plan
    if choices.is_file():
        parts["tables"] = {"Choices": pd.read_csv(choices, usecols=[*range(1, 10), 13])}
    if answers is not None:
        with annotation.ask(annotation.validation_sheets(result), answers) as study:
            parts["scores"] = study.scores()
    write_report(result, page, **parts)
