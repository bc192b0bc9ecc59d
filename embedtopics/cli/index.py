"""``embedtopics index``: build a collection that can be searched, change it, check it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from embedtopics.cli.guard import guarded

if TYPE_CHECKING:
    from collections.abc import Iterable

    from embedtopics.corpus import Corpus
    from embedtopics.results import Decision

__all__ = ["app"]

app = typer.Typer(help="Build an index of documents, add to it, remove from it, check it.",
                  no_args_is_help=True)  # fmt: skip

Index = Annotated[Path, typer.Argument(help="The folder that `embedtopics index build` wrote.")]
File = Annotated[Path, typer.Argument(readable=False, help="csv, tsv, jsonl, json, parquet, txt, "
                                      "or a folder of texts.")]  # fmt: skip
Text = Annotated[str | None, typer.Option(help="Column of texts; guessed if left out.")]
Id = Annotated[str | None, typer.Option(help="Column of ids; guessed if left out.")]
Encoding = Annotated[str, typer.Option(help="Of the file's characters.")]
MIB = 1 << 20


@app.command()
@guarded
def build(
    file: File,
    out: Annotated[Path, typer.Option(help="Folder for the index.")],
    text: Text = None,
    id: Id = None,
    time: Annotated[str | None, typer.Option(help="Column of dates, to filter by.")] = None,
    encoder: Annotated[
        str, typer.Option(help="Name or folder of a checkpoint.")
    ] = "all-MiniLM-L6-v2",
    kind: Annotated[
        str, typer.Option(help="Of the dense index: auto, flat, hnsw, ivf, ivfpq or sq.")
    ] = "auto",
    recall: Annotated[
        float, typer.Option(help="Share of the nearest that it has to find, where it is not flat.")
    ] = 0.95,
    memory: Annotated[
        int | None, typer.Option(min=1, help="MiB that vectors and dense index may take.")
    ] = None,
    whole: Annotated[
        bool, typer.Option("--whole", help="Do not cut long texts into passages.")
    ] = False,
    languages: Annotated[
        str | None, typer.Option(help="Of the stop words, with commas; guessed if left out.")
    ] = None,
    stems: Annotated[
        bool, typer.Option(help="Search by word stems, so that inflections are found, too.")
    ] = True,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace an index that is there.")
    ] = False,
    encoding: Encoding = "utf-8",
    seed: Annotated[int, typer.Option(min=0, help="Random seed.")] = 0,
) -> None:
    """Index the documents of a file."""
    from embedtopics.cli.display import make_console
    from embedtopics.corpus import Corpus
    from embedtopics.retrieval import SearchIndex

    corpus = Corpus.from_file(file, text=text, id=id, time=time, encoding=encoding)
    wanted = None if languages is None else [c.strip() for c in languages.split(",") if c.strip()]
    index = SearchIndex.build(
        corpus, out, encoder=encoder, kind=kind, recall=recall,
        memory_limit=None if memory is None else memory * MIB,
        passages=not whole, languages=wanted, stems=stems, overwrite=overwrite, random_state=seed,
    )  # fmt: skip
    _print_notes(index.decisions)
    make_console().print(
        f'{index!r} in {out}\nnext: embedtopics search {out} "your question"', soft_wrap=True
    )


@app.command()
@guarded
def add(
    index: Index,
    file: File,
    text: Text = None,
    id: Id = None,
    update: Annotated[
        bool, typer.Option("--update", help="Replace documents whose ids are there already.")
    ] = False,
    encoding: Encoding = "utf-8",
) -> None:
    """Add the documents of a file."""
    from embedtopics.cli.display import make_console

    opened = _load(index)
    corpus = _read(file, text, id, encoding)
    n = opened.add(corpus, update=update)
    _print_notes(opened.decisions)
    make_console().print(f"{n:,} documents were added; {opened!r}", soft_wrap=True)


@app.command()
@guarded
def remove(
    index: Index,
    ids: Annotated[list[str] | None, typer.Argument(help="Ids of documents.")] = None,
    file: Annotated[
        Path | None, typer.Option(help="A file of ids, one a line, to remove as well.")
    ] = None,
    missing: Annotated[
        bool, typer.Option("--ignore-missing", help="Pass over ids that are not there.")
    ] = False,
) -> None:
    """Remove documents by id."""
    from embedtopics.cli.display import make_console
    from embedtopics.errors import InputError

    wanted = list(ids or [])
    if file is not None:
        try:
            lines = file.read_text("utf-8-sig").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"cannot read ids from {file}: {error}") from error
        wanted += [line.strip() for line in lines if line.strip()]
    if not wanted:
        raise InputError("expected ids to remove, or --file with ids; got none")
    opened = _load(index)
    n = opened.remove(wanted, missing="ignore" if missing else "raise")
    make_console().print(f"{n:,} documents were removed; {opened!r}", soft_wrap=True)


@app.command()
@guarded
def compact(index: Index) -> None:
    """Write all segments as one, and give back the room of removed documents."""
    from embedtopics.cli.display import make_console

    opened = _load(index)
    done = opened.compact()
    said = "compacted" if done else "nothing to do"
    make_console().print(f"{said}; {opened!r}", soft_wrap=True)


@app.command()
@guarded
def check(index: Index) -> None:
    """Compare all files with what was written; exits with 1 if something is wrong."""
    from embedtopics.cli.display import make_console, printable
    from embedtopics.retrieval import check as check_index

    problems = check_index(index)
    console = make_console()
    for problem in problems:
        console.print(
            f"{printable(str(problem.file))}: {printable(problem.what)}; "
            f"{printable(problem.remedy)}",
            soft_wrap=True,
        )
    if problems:
        raise typer.Exit(1)
    console.print(f"{_load(index)!r}: everything is as it was written", soft_wrap=True)


@app.command()
@guarded
def info(index: Index) -> None:
    """Say what an index holds, and how good its dense part is."""
    from rich.table import Table
    from rich.text import Text

    from embedtopics.cli.display import make_console, printable

    opened = _load(index)
    console = make_console()
    console.print(repr(opened), soft_wrap=True)
    columns = ", ".join(f"{name} ({kind})" for name, kind in opened.columns.items())
    console.print(f"columns: {printable(columns) or 'none'}", soft_wrap=True)
    shown = Table(box=None, pad_edge=False, header_style="bold", show_edge=False)
    for name in ("segment", "passages", "kind", "recall@10", "queries/s", "MB"):
        shown.add_column(name, justify="left" if name == "kind" else "right")
    views = opened.opened().segments
    for view, about in zip(views, opened.measured, strict=True):
        measured = about["measured"]
        recall, speed = measured.get("recall"), measured.get("queries_per_second")
        cells = (
            view.name, f"{len(view.documents):,}", str(about["kind"]),
            "" if recall is None else f"{recall:.3f}", "" if speed is None else f"{speed:,.0f}",
            f"{sum(f.stat().st_size for f in view.folder.rglob('*') if f.is_file()) / 1e6:,.1f}",
        )  # fmt: skip
        shown.add_row(*(Text(cell) for cell in cells))
    console.print(shown)


@app.command()
@guarded
def topics(
    index: Index,
    results: Annotated[Path, typer.Argument(help="The folder that `embedtopics topics` wrote.")],
) -> None:
    """Attach topics: hits show theirs, and --where "topic == 3" works."""
    from embedtopics.cli.display import make_console
    from embedtopics.cli.results_folder import open_result

    opened = _load(index)
    opened.topics(open_result(results))
    make_console().print(f"topics are attached to {opened!r}", soft_wrap=True)


@app.command()
@guarded
def export(
    index: Index,
    out: Annotated[Path, typer.Argument(help="Parquet file for passages, vectors, metadata.")],
) -> None:
    """Write all passages with their vectors to a Parquet file."""
    from embedtopics.cli.display import make_console

    opened = _load(index)
    n = opened.export(out)
    _print_notes(opened.decisions)
    make_console().print(f"{n:,} passages in {out}", soft_wrap=True)


def _load(folder: Path) -> Any:
    from embedtopics.retrieval import SearchIndex

    return SearchIndex.load(folder)


def _read(file: Path, text: str | None, id: str | None, encoding: str) -> Corpus:
    from embedtopics.corpus import Corpus

    return Corpus.from_file(file, text=text, id=id, encoding=encoding)


def _print_notes(decisions: Iterable[Decision]) -> None:
    from embedtopics.cli.display import make_console, printable

    console = make_console(stderr=True)
    for message in dict.fromkeys(decision.message for decision in decisions):
        console.print(f"note: {printable(message)}", style="yellow", soft_wrap=True)
