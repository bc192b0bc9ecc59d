"""``search`` and ``search-eval`` ask an index and measure its answers; ``index`` builds one."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from embedtopics.cli import _options as opt
from embedtopics.cli._display import (
    check_outputs,
    check_target,
    make_console,
    open_result,
    print_notes,
    print_table,
    printable,
    write_outputs,
)
from embedtopics.cli._errors import Commands
from embedtopics.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

    from embedtopics.retrieval._index import SearchIndex
    from embedtopics.retrieval.results import Hit, SearchHits


TextFields = Annotated[
    str | None, typer.Option(help="Column of texts, or several: title,abstract; guessed.")
]
Where = Annotated[
    str | None, typer.Option(help="Filter, such as \"year >= 2020 and source == 'Le Monde'\".")
]


def search(
    index: opt.IndexFolder,
    query: Annotated[list[str], typer.Argument(help="What you look for: words or a sentence.")],
    k: Annotated[int, typer.Option("--k", "-k", min=1, help="Documents shown.")] = 10,
    mode: Annotated[str, typer.Option(help="dense, lexical or hybrid.")] = "hybrid",
    where: Where = None,
    show: Annotated[
        list[str] | None, typer.Option(help="Column to show, such as date (repeatable).")
    ] = None,
    diversity: Annotated[
        float, typer.Option(min=0, max=1, help="0 shows the best, more the less similar.")
    ] = 0.0,
    rerank: Annotated[
        str | None, typer.Option(help="Name or folder of a cross-encoder that reorders the best.")
    ] = None,
    min_score: Annotated[
        float, typer.Option(min=0, max=1, help="Least relevance shown; gibberish has about 0.")
    ] = 0.0,
    encoder: opt.MovedEncoder = None,
    out: opt.OutTable = None,
) -> None:
    """Search an index: by meaning, by words, or both."""
    check_outputs(out)
    opened = _load(index, encoder)
    unknown = [name for name in show or () if name not in opened.columns]
    if unknown:
        there = ", ".join(map(repr, opened.columns)) or "none"
        raise InputError(f"--show: there is no column {unknown[0]!r}; the index has {there}")
    wanted: Any = mode  # refused by the search where it is none
    found = opened.search(
        " ".join(query), k, wanted, where, diversity=diversity, reranker=rerank,
        min_score=min_score,
    )  # fmt: skip
    write_outputs(out, found.to_frame)
    _print_hits(make_console(), found, show or [])


def _print_hits(console: Console, found: SearchHits, columns: list[str]) -> None:
    from rich.text import Text

    for rank, hit in enumerate(found, 1):
        console.print(Text(printable(_headline(rank, hit)), style="bold"), soft_wrap=True)
        if columns:
            known = [f"{name}: {_cell(hit, name)}" for name in columns]
            console.print(Text(printable("   " + "  ".join(known)), style="dim"), soft_wrap=True)
        for line in hit.snippet.rich("bold yellow").wrap(console, max(20, console.width - 3)):
            line.rstrip()
            console.print(Text("   ").append_text(line), soft_wrap=True)
    if not found:
        console.print("nothing was found")
    print_notes(console, (decision.message for decision in found.decisions))


def _headline(rank: int, hit: Hit) -> str:
    """Return where a hit stands and why: its id, score, relevance, cosine, words and topic."""
    parts = [f"{rank}.", str(hit.id), f"{hit.score:.3f}", f"relevance {hit.relevance:.2f}"]
    if hit.similarity == hit.similarity:
        parts.append(f"cosine {hit.similarity:.2f}")
    if hit.terms:
        words = ", ".join(f"{word} {part:.1f}" for word, part in hit.terms.items())
        parts.append(f"words {words}")
    if hit.topic is not None:
        parts.append(f"topic {hit.topic}")
    return "  ".join(parts)


def _cell(hit: Hit, name: str) -> str:
    """Return a hit's value of a column for people; a day without a time is only a day."""
    value = hit.topic if name == "topic" and hit.topic is not None else hit.metadata.get(name)
    if value is None:
        return "-"
    return str(value).removesuffix(" 00:00:00")


def serve(
    index: opt.IndexFolder,
    port: Annotated[int, typer.Option(help="0 for one that is free.")] = 0,
    encoder: opt.MovedEncoder = None,
) -> None:
    """Search and read an index on a local page, with a JSON API."""
    from embedtopics.report import serve_index

    server = serve_index(_load(index, encoder), port=port)
    make_console().print("Open this address; Ctrl-C ends.", soft_wrap=True)
    typer.echo(server.url)
    try:
        server.run()
    except KeyboardInterrupt:  # the usual way to end
        pass
    finally:
        server.close()


def search_eval(
    index: opt.IndexFolder,
    queries: Annotated[Path, typer.Argument(readable=False, help="jsonl, csv or tsv: id, text.")],
    qrels: Annotated[
        Path, typer.Argument(readable=False, help="Judgements: TREC, BEIR tsv, or jsonl.")
    ],
    mode: Annotated[
        list[str] | None, typer.Option(help="dense, lexical or hybrid; all three if left out.")
    ] = None,
    k: Annotated[int, typer.Option("--k", "-k", min=1, help="Documents for each query.")] = 100,
    relevant_from: Annotated[
        float, typer.Option(help="Least grade that counts as relevant.")
    ] = 1.0,
    where: Where = None,
    encoder: opt.MovedEncoder = None,
    out: opt.OutTable = None,
    random_state: opt.RandomState = 0,
) -> None:
    """Measure an index on queries whose relevant documents are known."""
    import pandas as pd

    from embedtopics import evaluation
    from embedtopics.evaluation._files import read_qrels, read_queries

    check_outputs(out)
    judged = read_qrels(qrels)
    asked = {name: text for name, text in read_queries(queries).items() if name in judged}
    if not asked:
        raise InputError(
            f"expected judgements of queries in {queries}; none of the {len(judged):,} queries in "
            f"{qrels} is there: their ids differ"
        )
    opened = _load(index, encoder)
    modes: list[Any] = list(dict.fromkeys(mode or ("dense", "lexical", "hybrid")))
    scores = {
        name: evaluation.retrieval(
            opened.search(list(asked.values()), k, name, where),
            qrels,
            (min(10, k), k),
            query_ids=list(asked),
            relevant_from=relevant_from,
            random_state=random_state,
        )
        for name in modes
    }
    measures = [one.to_frame().assign(mode=name) for name, one in scores.items()]
    *others, last = scores
    differences = {
        other: evaluation.compare_retrieval(scores[other], scores[last], random_state=random_state)
        for other in others
    }
    write_outputs(out, lambda: pd.concat(measures, ignore_index=True))
    console = make_console()
    rows = [
        [row.measure, *(_spell(e.value, e.low, e.high, ".3f") for e in estimates)]
        for row, *estimates in zip(
            scores[last], *(one.scores.values() for one in scores.values()), strict=True
        )
    ]
    print_table(console, [(column, "text") for column in ("measure", *scores)], rows)
    ndcg = f"ndcg@{min(10, k)}"
    for other, change in differences.items():
        [gain] = change.of(measure=ndcg)
        typer.echo(
            f"{last} - {other}: {ndcg} {_spell(gain.difference, gain.low, gain.high, '+.3f')}, "
            f"better for {gain.better:,} queries, worse for {gain.worse:,}"
        )
    print_notes(console, (d.message for one in scores.values() for d in one.decisions))


def _spell(value: float, low: float, high: float, form: str) -> str:
    """Return a score with its interval; a single query has none."""
    if math.isnan(low):
        return f"{value:{form}}"
    return f"{value:{form}} [{low:{form}}, {high:{form}}]"


app = Commands(
    help="Build an index of documents, add to it, remove from it, check it.", no_args_is_help=True
)

MIB = 1 << 20
DAMAGED = 1


@app.command()
def build(
    file: opt.DocumentsFile,
    out: Annotated[Path, typer.Option(help="Folder for the index.")],
    text: TextFields = None,
    id: opt.IdColumn = None,
    time: Annotated[str | None, typer.Option(help="Column of dates, to filter by.")] = None,
    encoder: Annotated[
        str, typer.Option(help="Name or folder of a checkpoint; none for words alone.")
    ] = "all-MiniLM-L6-v2",
    precision: opt.Precision = None,
    long_texts: opt.LongTexts = None,
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
    words: opt.Words = "characters",
    stems: Annotated[
        bool, typer.Option(help="Search by word stems, so that inflections are found, too.")
    ] = True,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace an index that is there.")
    ] = False,
    encoding: opt.FileEncoding = "utf-8",
    random_state: opt.RandomState = 0,
) -> None:
    """Index the documents of a file."""
    from embedtopics.corpus._languages import checked_languages
    from embedtopics.encoders._registry import resolve_encoder
    from embedtopics.retrieval._build import read_documents
    from embedtopics.retrieval._index import SearchIndex

    # Before the work: an encoder that no later command could load again is of no use.
    loaded = None
    if encoder != "none":
        loaded = resolve_encoder(encoder, cached=True, precision=precision, long_texts=long_texts)
    if loaded is not None and not loaded.is_fitted and encoder != "auto":
        raise InputError(
            f"expected an encoder that can be loaded again for queries; {encoder} learns from the "
            "texts and is not stored with an index; give a checkpoint or a static encoder"
        )
    codes = None
    if languages is not None:
        codes = opt.names_in(languages.lower())
        checked_languages(codes)
    columns = {"text": _fields(text), "id": id, "time": time}
    corpus = read_documents(file, columns, encoding)
    index = SearchIndex.build(
        corpus, out, encoder=loaded, kind=kind, recall=recall,
        memory_limit=None if memory is None else memory * MIB,
        passages=not whole, languages=codes, stems=stems, words=words.replace(" ", "").split(","),
        overwrite=overwrite, random_state=random_state,
    )  # fmt: skip
    _print_decisions(index)
    shown = printable(str(out))
    typer.echo(f'indexed: {_described(index)}\nnext: embedtopics search {shown} "your question"')


@app.command()
def add(
    index: opt.IndexFolder,
    file: opt.DocumentsFile,
    text: TextFields = None,
    id: opt.IdColumn = None,
    time: Annotated[
        str | None, typer.Option(help="Column of dates; if left out, as in the index.")
    ] = None,
    update: Annotated[
        bool, typer.Option("--update", help="Replace documents whose ids are there already.")
    ] = False,
    encoder: opt.MovedEncoder = None,
    encoding: opt.FileEncoding = "utf-8",
) -> None:
    """Add the documents of a file."""
    from embedtopics.retrieval._build import read_more

    opened = _load(index, encoder)
    columns = {"text": _fields(text), "id": id, "time": time}
    corpus = read_more(opened._reader, file, columns, update, encoding)
    before = len(opened)
    n = opened.add(corpus, update=update)
    _print_decisions(opened)
    replaced = before + n - len(opened)
    said = f", of which {replaced:,} replaced one of the same id" if update else ""
    typer.echo(f"added: {n:,} documents{said}; now {_described(opened)}")


@app.command()
def remove(
    index: opt.IndexFolder,
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
    typer.echo(f"removed: {n:,} documents; now {_described(opened)}")


@app.command()
def compact(index: opt.IndexFolder) -> None:
    """Write all segments as one, and free the space of removed documents."""
    opened = _load(index)
    done = opened.compact()
    said = "compacted" if done else "nothing to do"
    typer.echo(f"{said}: {_described(opened)}")


@app.command()
def check(index: opt.IndexFolder) -> None:
    """Compare all files with what was written; exits with 1 if something is damaged."""
    from embedtopics.retrieval.storage._checks import check as check_index
    from embedtopics.retrieval.storage._checks import find_damage

    problems = check_index(index)
    # What a killed writer left behind is reported, and damages nothing.
    damage = find_damage(index) if problems else []
    for problem in problems:
        kind = "damaged" if problem in damage else "note"
        typer.echo(f"{kind}: {printable(str(problem))}")
    if damage:
        raise typer.Exit(DAMAGED)
    typer.echo(f"as it was written: {_described(_load(index))}")


@app.command()
def info(index: opt.IndexFolder) -> None:
    """Say what an index holds, and how good its dense part is."""
    opened = _load(index)
    console = make_console()
    typer.echo(_described(opened))
    named = ", ".join(f"{name} ({kind})" for name, kind in opened.columns.items())
    typer.echo(f"columns: {printable(named) or 'none'}")
    columns = [(name, "number") for name in ("segment", "passages", "recall@10", "queries/s", "MB")]
    columns.insert(2, ("kind", "text"))
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
        cells = [about["segment"], f"{about['n']:,}", str(about["kind"])]
        rows.append([*cells, *figures, f"{size / 1e6:,.1f}"])
    print_table(console, columns, rows)


@app.command()
def topics(index: opt.IndexFolder, results: opt.ResultsFolder) -> None:
    """Attach topics: hits show theirs, and --where "topic == 3" works."""
    opened = _load(index)
    opened.topics(open_result(results))
    n = sum(document.metadata["topic"] is not None for document in opened)
    typer.echo(
        f"attached: topics to {n:,} of {_described(opened)}\n"
        f'next: embedtopics search {printable(str(index))} "your question" --where "topic == 0"'
    )


@app.command()
def export(
    index: opt.IndexFolder,
    out: Annotated[Path, typer.Option(help="NAME.parquet for passages, vectors and metadata.")],
) -> None:
    """Write all passages with their vectors to a Parquet file."""
    check_target(out, (".parquet",))
    opened = _load(index)
    n = opened.export(out)
    _print_decisions(opened)
    typer.echo(f"written: {n:,} passages to {printable(str(out))}")


def _fields(text: str | None) -> Any:
    """Return the column of texts, or several where commas part them."""
    return text.split(",") if text is not None and "," in text else text


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
