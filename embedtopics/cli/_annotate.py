"""``embedtopics annotate``: label texts on a local page while a model learns."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

from typer import Option

from embedtopics.cli._display import PAGE, check_target, print_notes, run_server, say
from embedtopics.cli._options import Checkpoint, DocumentsFile, IdColumn, TextColumn, names_in
from embedtopics.errors import InputError


def annotate(
    file: DocumentsFile,
    labels: Annotated[str | None, Option(help='Labels of a new study: "gender,other".')] = None,
    text: TextColumn = None,
    id: IdColumn = None,
    folder: Annotated[Path | None, Option(help="Folder of the study; default: FILE.study.")] = None,
    codebook: Annotated[
        Path | None, Option(help="JSON list of labels with name, key, definition, examples.")
    ] = None,
    kind: Annotated[str | None, Option(help="single, several, ordinal or spans.")] = None,
    pairs: Annotated[bool, Option("--pairs", help="Two texts: --text claim,post.")] = False,
    encoder: Checkpoint = "all-MiniLM-L6-v2",
    annotator: Annotated[str, Option(help="Name of the annotator.")] = "annotator",
    port: Annotated[int, Option(help="Port; 0 for a free one.")] = 0,
    merge: Annotated[
        list[Path] | None,
        Option(help="Folder of a study whose answers are merged first."),
    ] = None,
    report: Annotated[Path | None, Option(help="Write a report (.html) on the study.")] = None,
) -> None:
    """Label texts on a local page while a model learns."""
    from embedtopics.annotation import AnnotationProject, serve
    from embedtopics.corpus import Corpus

    check_target(report, PAGE, "--report")
    codes: Any = None if labels is None else names_in(labels)
    if codebook is not None:
        try:
            codes = json.loads(codebook.read_text("utf-8"))
        except ValueError as error:
            raise InputError("codebook", "a file of JSON", codebook, str(error)) from error
    folder = file.with_suffix(".study") if folder is None else folder
    corpus = Corpus(file, text, id)
    with AnnotationProject(corpus, codes, folder, kind, encoder=encoder, pairs=pairs) as study:
        for other in merge or ():
            say(f"{study.merge(other):,} new answers from {other}.", soft_wrap=True)
        if report is not None:
            from embedtopics.report import write_report

            write_report(study.report(), report)
            say(f"Written to {report}.", soft_wrap=True)
            return
        server = serve(study, annotator=annotator, port=port)
        print_notes([note.message for note in (*corpus.notes, *study.decisions)])
        say(f"Labels go to {folder}.", soft_wrap=True)
        run_server(server)
        say(f"{study.progress()['labelled']:,} texts are labelled.", soft_wrap=True)
