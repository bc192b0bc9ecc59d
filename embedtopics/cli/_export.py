"""``embedtopics export``: the tables of a result as a workbook, csv, parquet or jsonl."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from embedtopics.cli._display import (
    check_results_folder,
    guarded,
    make_console,
    open_result,
    print_notes,
    print_topics,
    printable,
    read_results_folder,
    write_results_folder,
)
from embedtopics.cli._options import (
    DocumentsFile,
    FileEncoding,
    GroupColumn,
    IdColumn,
    OutFolder,
    ResultsFolder,
    TimeColumn,
)


@guarded
def export(
    results: ResultsFolder,
    out: Annotated[
        Path,
        typer.Option(help="NAME.xlsx, .csv, .tsv, .parquet or .jsonl; or a folder for all tables."),
    ],
    what: Annotated[
        list[str] | None,
        typer.Option(
            help="topics, documents, terms, decisions, history or settings (repeatable); "
            "documents for a file that holds one table, else all."
        ),
    ] = None,
    format: Annotated[str, typer.Option(help="Of a folder: csv, tsv, parquet or jsonl.")] = "csv",
) -> None:
    """Write the tables of a result for a spreadsheet or another program."""
    from embedtopics.topics.reading._export import export

    console = make_console()
    done = export(open_result(results), out, what=what or None, format=format)
    for path in done.paths:
        console.print(f"written: {path}", soft_wrap=True)
    print_notes(console, (note.message for note in done.notes))


# ``embedtopics add``: new documents for topics that are there.


@guarded
def add(
    results: ResultsFolder,
    file: DocumentsFile,
    text: Annotated[
        str | None, typer.Option(help="Column of texts; if left out that of RESULTS, or guessed.")
    ] = None,
    id: IdColumn = None,
    time: TimeColumn = None,
    group: GroupColumn = None,
    adopt: Annotated[
        bool, typer.Option("--adopt", help="Make topics of the groups that belong to none.")
    ] = False,
    keep_terms: Annotated[
        bool, typer.Option("--keep-terms", help="Keep keywords and names as they are.")
    ] = False,
    encoder: Annotated[
        str | None, typer.Option(help="The encoder of the fit; known to most RESULTS.")
    ] = None,
    encoding: FileEncoding = "utf-8",
    out: OutFolder = None,
) -> None:
    """Add documents to topics, which keep their numbers; say what no topic holds."""
    from embedtopics.corpus._corpus import Corpus
    from embedtopics.topics.growing._extend import extend
    from embedtopics.topics.growing._novelty import adopt as adopted

    console = make_console()
    target = results if out is None else out
    before = read_results_folder(results)
    check_results_folder(target)
    known = before.corpus
    first = Corpus.from_file(file, text=text, encoding=encoding, limit=1)
    columns = {first.text_column, *first.metadata.columns}
    roles = {"text": text, "time": time, "group": group}
    # What has a meaning in the results has it in the new rows, where they have such a column.
    for role, given in roles.items():
        name = getattr(known, f"{role}_column")
        if given is None and name in columns:
            roles[role] = name
    columns_of = (roles["text"], id, roles["time"], roles["group"])
    added = Corpus.from_file(file, *columns_of, encoding=encoding)
    extension = extend(before, added, encoder=encoder, update_terms=not keep_terms)
    result = adopted(extension) if adopt else extension.result
    write_results_folder(result, target)
    print_topics(console, result, names=True)
    console.print(f"\n{printable(str(extension))}", soft_wrap=True)
    if extension.is_alarming:
        console.print("That is more than chance explains: the topics no longer hold all that the "
                      "texts are about.", soft_wrap=True)  # fmt: skip
    for one in extension.candidates:
        terms = ", ".join(one.keywords[:6])
        near = f", nearest to topic {one.nearest_topic}" if one.nearest_topic >= 0 else ""
        console.print(f"  {one.size:,} texts: {printable(terms)}{near}", soft_wrap=True)
    if extension.candidates and not adopt:
        console.print("--adopt makes topics of these groups.", soft_wrap=True)
    console.print(f"\nwritten to {printable(str(target))}", soft_wrap=True)
