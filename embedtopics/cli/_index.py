"""``embedtopics index``: build a collection that can be searched, change it, check it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from embedtopics.cli._display import (
    RIGHT,
    check_target,
    guarded,
    make_console,
    open_result,
    print_notes,
    print_table,
    printable,
)
from embedtopics.cli._options import (
    Checkpoint,
    DocumentsFile,
    FileEncoding,
    IdColumn,
    IndexFolder,
    MovedEncoder,
    RandomState,
    ResultsFolder,
    TextColumn,
)
from embedtopics.errors import InputError

if TYPE_CHECKING:
    from embedtopics.retrieval._index import SearchIndex


app = typer.Typer(help="Build an index of documents, add to it, remove from it, check it.",
                  no_args_is_help=True)  # fmt: skip

MIB = 1 << 20
DAMAGED = 1


@app.command()
@guarded
def build(
    file: DocumentsFile,
    out: Annotated[Path, typer.Option(help="Folder for the index.")],
    text: TextColumn = None,
    id: IdColumn = None,
    time: Annotated[str | None, typer.Option(help="Column of dates, to filter by.")] = None,
    encoder: Checkpoint = "all-MiniLM-L6-v2",
    kind: Annotated[str, typer.Option(help="Of the dense index: auto, flat or ivf.")] = "auto",
    recall: Annotated[
        float, typer.Option(help="Share of the ten nearest that it has to find, if not flat.")
    ] = 0.95,
    memory: Annotated[
        int | None, typer.Option(min=1, help="MiB that vectors and dense index may take.")
    ] = None,
    whole: Annotated[
        bool, typer.Option("--whole", help="Do not cut long texts into passages.")
    ] = False,
    languages: Annotated[
        str | None, typer.Option(help="Codes, such as en,fr, for stop words and stems; guessed.")
    ] = None,
    stems: Annotated[
        bool, typer.Option(help="Search by word stems, so that inflections are found, too.")
    ] = True,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace an index that is there.")
    ] = False,
    encoding: FileEncoding = "utf-8",
    random_state: RandomState = 0,
) -> None:
    """Index the documents of a file."""
    from embedtopics.corpus._corpus import Corpus
    from embedtopics.encoders._registry import resolve_encoder
    from embedtopics.retrieval._index import SearchIndex

    # Before the work: an encoder that no later command could load again is of no use.
    if not getattr(resolve_encoder(encoder), "is_fitted", True):
        raise InputError(
            f"expected an encoder that can be loaded again for queries; {encoder} learns from the "
            "texts and is not stored with an index; give a checkpoint or a static encoder"
        )
    codes = None
    if languages is not None:
        codes = [code.strip().lower() for code in languages.split(",") if code.strip()]
        for code in codes:
            if len(code) != 2 or not code.isalpha():
                raise InputError(f"--languages: expected codes such as en,fr; got {code!r}")
    corpus = Corpus.from_file(file, text=text, id=id, time=time, encoding=encoding)
    index = SearchIndex.build(
        corpus, out, encoder=encoder, kind=kind, recall=recall,
        memory_limit=None if memory is None else memory * MIB,
        passages=not whole, languages=codes, stems=stems, overwrite=overwrite,
        random_state=random_state,
    )  # fmt: skip
    _print_decisions(index)
    shown = printable(str(out))
    make_console().print(
        f'indexed: {_described(index)}\nnext: embedtopics search {shown} "your question"',
        soft_wrap=True,
    )


@app.command()
@guarded
def add(
    index: IndexFolder,
    file: DocumentsFile,
    text: TextColumn = None,
    id: IdColumn = None,
    time: Annotated[
        str | None, typer.Option(help="Column of dates; if left out, as in the index.")
    ] = None,
    update: Annotated[
        bool, typer.Option("--update", help="Replace documents whose ids are there already.")
    ] = False,
    encoder: MovedEncoder = None,
    encoding: FileEncoding = "utf-8",
) -> None:
    """Add the documents of a file."""
    from embedtopics.retrieval._build import read_more

    opened = _load(index, encoder)
    columns = {"text": text, "id": id, "time": time}
    corpus = read_more(opened._reader, file, columns, update, encoding)
    before = len(opened)
    n = opened.add(corpus, update=update)
    _print_decisions(opened)
    replaced = before + n - len(opened)
    said = f", of which {replaced:,} replaced one of the same id" if update else ""
    make_console().print(f"added: {n:,} documents{said}; now {_described(opened)}", soft_wrap=True)


@app.command()
@guarded
def remove(
    index: IndexFolder,
    ids: Annotated[list[str] | None, typer.Argument(help="Ids of documents.")] = None,
    file: Annotated[
        Path | None, typer.Option(help="A file of ids, one a line, to remove as well.")
    ] = None,
    missing: Annotated[
        bool, typer.Option("--ignore-missing", help="Pass over ids that are not there.")
    ] = False,
) -> None:
    """Remove documents by id."""
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
    make_console().print(f"removed: {n:,} documents; now {_described(opened)}", soft_wrap=True)


@app.command()
@guarded
def compact(index: IndexFolder) -> None:
    """Write all segments as one, and free the space of removed documents."""
    opened = _load(index)
    done = opened.compact()
    said = "compacted" if done else "nothing to do"
    make_console().print(f"{said}: {_described(opened)}", soft_wrap=True)


@app.command()
@guarded
def check(index: IndexFolder) -> None:
    """Compare all files with what was written; exits with 1 if something is damaged."""
    from embedtopics.retrieval.storage._checks import check as check_index
    from embedtopics.retrieval.storage._checks import find_damage

    problems = check_index(index)
    # What a killed writer left behind is reported, and damages nothing.
    damage = find_damage(index) if problems else []
    console = make_console()
    for problem in problems:
        kind = "damaged" if problem in damage else "note"
        console.print(f"{kind}: {printable(str(problem))}", soft_wrap=True)
    if damage:
        raise typer.Exit(DAMAGED)
    console.print(f"as it was written: {_described(_load(index))}", soft_wrap=True)


@app.command()
@guarded
def info(index: IndexFolder) -> None:
    """Say what an index holds, and how good its dense part is."""
    opened = _load(index)
    console = make_console()
    console.print(_described(opened), soft_wrap=True)
    named = ", ".join(f"{name} ({kind})" for name, kind in opened.columns.items())
    console.print(f"columns: {printable(named) or 'none'}", soft_wrap=True)
    columns = [(name, RIGHT) for name in ("segment", "passages", "recall@10", "queries/s", "MB")]
    columns.insert(2, ("kind", {}))
    rows = []
    for about in opened.measured:
        measured = about["measured"]
        folder = opened.folder / "segments" / about["segment"]
        recall, speed = measured.get("recall"), measured.get("queries_per_second")
        size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
        figures = [
            "" if recall is None else f"{recall:.3f}",
            "" if speed is None else f"{speed:,.0f}",
        ]
        rows.append(
            [
                about["segment"],
                f"{about['n']:,}",
                str(about["kind"]),
                *figures,
                f"{size / 1e6:,.1f}",
            ]
        )
    print_table(console, columns, rows)


@app.command()
@guarded
def topics(index: IndexFolder, results: ResultsFolder) -> None:
    """Attach topics: hits show theirs, and --where "topic == 3" works."""
    opened = _load(index)
    opened.topics(open_result(results))
    n = sum(document.metadata["topic"] is not None for document in opened)
    make_console().print(
        f"attached: topics to {n:,} of {_described(opened)}\n"
        f'next: embedtopics search {printable(str(index))} "your question" --where "topic == 0"',
        soft_wrap=True,
    )


@app.command()
@guarded
def export(
    index: IndexFolder,
    out: Annotated[Path, typer.Option(help="NAME.parquet for passages, vectors and metadata.")],
) -> None:
    """Write all passages with their vectors to a Parquet file."""
    check_target(out, (".parquet",))
    opened = _load(index)
    n = opened.export(out)
    _print_decisions(opened)
    make_console().print(f"written: {n:,} passages to {printable(str(out))}", soft_wrap=True)


def _load(folder: Path, encoder: str | None = None) -> SearchIndex:
    from embedtopics.retrieval._index import SearchIndex

    return SearchIndex.load(folder, encoder=encoder)


def _described(index: SearchIndex) -> str:
    """Return what an index holds, in a line for people."""
    return printable(
        f"{str(index).removeprefix('SearchIndex(').removesuffix(')')} in {index.folder}"
    )


def _print_decisions(index: SearchIndex) -> None:
    print_notes(make_console(stderr=True), (decision.message for decision in index.decisions))
