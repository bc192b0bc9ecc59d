"""``embedtopics index``: build a collection that can be searched, change it, check it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from embedtopics.cli._display import check_target, guarded, make_console, open_result, printable
from embedtopics.cli._options import Checkpoint, RandomState, ResultsFolder

if TYPE_CHECKING:
    from collections.abc import Iterable

    from embedtopics.corpus.results import Decision
    from embedtopics.retrieval._index import SearchIndex


app = typer.Typer(help="Build an index of documents, add to it, remove from it, check it.",
                  no_args_is_help=True)  # fmt: skip

Index = Annotated[Path, typer.Argument(help="The folder that `embedtopics index build` wrote.")]
File = Annotated[Path, typer.Argument(readable=False, help="csv, tsv, jsonl, json, parquet, txt, "
                                      "or a folder of texts.")]  # fmt: skip
Text = Annotated[str | None, typer.Option(help="Column of texts; guessed if left out.")]
Id = Annotated[
    str | None, typer.Option(help="Column of ids; if left out they are made of the texts.")
]
Moved = Annotated[
    str | None, typer.Option(help="Where the index's own encoder is, if it has moved.")
]
Encoding = Annotated[str, typer.Option(help="Of the file's characters.")]
MIB = 1 << 20
DAMAGED = 1


@app.command()
@guarded
def build(
    file: File,
    out: Annotated[Path, typer.Option(help="Folder for the index.")],
    text: Text = None,
    id: Id = None,
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
    encoding: Encoding = "utf-8",
    random_state: RandomState = 0,
) -> None:
    """Index the documents of a file."""
    from embedtopics.corpus._corpus import Corpus
    from embedtopics.retrieval._index import SearchIndex

    _refuse_learnt(encoder)
    codes = _language_codes(languages)
    corpus = Corpus.from_file(file, text=text, id=id, time=time, encoding=encoding)
    index = SearchIndex.build(
        corpus, out, encoder=encoder, kind=kind, recall=recall,
        memory_limit=None if memory is None else memory * MIB,
        passages=not whole, languages=codes, stems=stems, overwrite=overwrite,
        random_state=random_state,
    )  # fmt: skip
    _print_notes(index.decisions)
    shown = printable(str(out))
    make_console().print(
        f'indexed: {_described(index)}\nnext: embedtopics search {shown} "your question"',
        soft_wrap=True,
    )


@app.command()
@guarded
def add(
    index: Index,
    file: File,
    text: Text = None,
    id: Id = None,
    time: Annotated[
        str | None, typer.Option(help="Column of dates; if left out, as in the index.")
    ] = None,
    update: Annotated[
        bool, typer.Option("--update", help="Replace documents whose ids are there already.")
    ] = False,
    encoder: Moved = None,
    encoding: Encoding = "utf-8",
) -> None:
    """Add the documents of a file."""
    from embedtopics.retrieval._build import read_more

    opened = _load(index, encoder)
    columns = {"text": text, "id": id, "time": time}
    corpus = read_more(opened._reader, file, columns, update, encoding)
    before = len(opened)
    n = opened.add(corpus, update=update)
    _print_notes(opened.decisions)
    replaced = before + n - len(opened)
    said = f", of which {replaced:,} replaced one of the same id" if update else ""
    make_console().print(f"added: {n:,} documents{said}; now {_described(opened)}", soft_wrap=True)


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
    make_console().print(f"removed: {n:,} documents; now {_described(opened)}", soft_wrap=True)


@app.command()
@guarded
def compact(index: Index) -> None:
    """Write all segments as one, and free the space of removed documents."""
    opened = _load(index)
    done = opened.compact()
    said = "compacted" if done else "nothing to do"
    make_console().print(f"{said}: {_described(opened)}", soft_wrap=True)


@app.command()
@guarded
def check(index: Index) -> None:
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
def info(index: Index) -> None:
    """Say what an index holds, and how good its dense part is."""
    from rich.table import Table
    from rich.text import Text

    opened = _load(index)
    console = make_console()
    console.print(_described(opened), soft_wrap=True)
    columns = ", ".join(f"{name} ({kind})" for name, kind in opened.columns.items())
    console.print(f"columns: {printable(columns) or 'none'}", soft_wrap=True)
    shown = Table(box=None, pad_edge=False, header_style="bold", show_edge=False)
    for name in ("segment", "passages", "kind", "recall@10", "queries/s", "MB"):
        shown.add_column(name, justify="left" if name == "kind" else "right")
    for about in opened.measured:
        measured = about["measured"]
        folder = opened.folder / "segments" / about["segment"]
        recall, speed = measured.get("recall"), measured.get("queries_per_second")
        cells = (
            about["segment"], f"{about['n']:,}", str(about["kind"]),
            "" if recall is None else f"{recall:.3f}", "" if speed is None else f"{speed:,.0f}",
            f"{sum(f.stat().st_size for f in folder.rglob('*') if f.is_file()) / 1e6:,.1f}",
        )  # fmt: skip
        shown.add_row(*(Text(printable(cell)) for cell in cells))
    console.print(shown)


@app.command()
@guarded
def topics(
    index: Index,
    results: ResultsFolder,
) -> None:
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
    index: Index,
    out: Annotated[Path, typer.Option(help="NAME.parquet for passages, vectors and metadata.")],
) -> None:
    """Write all passages with their vectors to a Parquet file."""
    check_target(out, (".parquet",))
    opened = _load(index)
    n = opened.export(out)
    _print_notes(opened.decisions)
    make_console().print(f"written: {n:,} passages to {printable(str(out))}", soft_wrap=True)


def _load(folder: Path, encoder: str | None = None) -> SearchIndex:
    from embedtopics.retrieval._index import SearchIndex

    return SearchIndex.load(folder, encoder=encoder)


def _described(index: SearchIndex) -> str:
    """Return what an index holds, in a line for people."""
    return printable(
        f"{str(index).removeprefix('SearchIndex(').removesuffix(')')} in {index.folder}"
    )


def _language_codes(written: str | None) -> list[str] | None:
    from embedtopics.errors import InputError

    if written is None:
        return None
    codes = [code.strip().lower() for code in written.split(",") if code.strip()]
    for code in codes:
        if len(code) != 2 or not code.isalpha():
            raise InputError(f"--languages: expected codes such as en,fr; got {code!r}")
    return codes


def _refuse_learnt(name: str) -> None:
    """Refuse, before the work, an encoder that no later command could load again."""
    from embedtopics.encoders._registry import resolve_encoder
    from embedtopics.errors import InputError

    if not getattr(resolve_encoder(name), "is_fitted", True):
        raise InputError(
            f"expected an encoder that can be loaded again for queries; {name} learns from the "
            "texts and is not stored with an index; give a checkpoint or a static encoder"
        )


def _print_notes(decisions: Iterable[Decision]) -> None:
    console = make_console(stderr=True)
    for message in dict.fromkeys(decision.message for decision in decisions):
        console.print(f"note: {printable(message)}", style="yellow", soft_wrap=True)
