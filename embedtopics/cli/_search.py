"""``search`` and ``serve`` query an index; ``index`` builds, maintains and evaluates one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from embedtopics.cli import _display as show
from embedtopics.cli import _options as opt
from embedtopics.cli._errors import Commands
from embedtopics.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

    from embedtopics.retrieval._index import SearchIndex
    from embedtopics.retrieval.results import Hit, SearchHits


def search(
    index: opt.IndexFolder,
    query: Annotated[list[str], Argument(help="Words or a sentence.")],
    k: Annotated[int, Option("--k", "-k", min=1, help="Number of documents.")] = 10,
    mode: Annotated[str, Option(help="dense, lexical or hybrid.")] = "hybrid",
    where: opt.Where = None,
    encoder: opt.MovedEncoder = None,
    out: opt.OutTable = None,
) -> None:
    """Search an index by meaning, by words, or both."""
    show.check_outputs(out)
    reader = _load(index, encoder)
    search_mode: Any = mode
    hits = reader.search(" ".join(query), k, mode=search_mode, where=where)
    show.write_outputs(out, hits.to_frame)
    _print_hits(hits)


def _print_hits(hits: SearchHits) -> None:
    from rich.text import Text

    console = show.make_console()
    for rank, hit in enumerate(hits, 1):
        show.say(Text(show.printable(_headline(rank, hit)), style="bold"), soft_wrap=True)
        for line in hit.snippet.rich("bold yellow").wrap(console, max(20, console.width - 3)):
            line.rstrip()
            show.say(Text("   ").append_text(line), soft_wrap=True)
    if not hits:
        show.say("no document was found")
    show.print_notes(decision.message for decision in hits.decisions)


def _headline(rank: int, hit: Hit) -> str:
    """Return the rank of a hit with its id, score, cosine, words and topic."""
    parts = [f"{rank}.", str(hit.id), f"{hit.score:.3f}"]
    if hit.similarity == hit.similarity:
        parts.append(f"cosine {hit.similarity:.2f}")
    if hit.terms:
        words = ", ".join(f"{word} {part:.1f}" for word, part in hit.terms.items())
        parts.append(f"words {words}")
    if hit.topic is not None:
        parts.append(f"topic {hit.topic}")
    return "  ".join(parts)


def serve(
    index: opt.IndexFolder,
    port: Annotated[int, Option(help="Port; 0 for a free one.")] = 0,
    mcp: Annotated[bool, Option("--mcp", help="Serve tools for an assistant on stdio.")] = False,
    results: Annotated[
        Path | None, Option(readable=False, help="Results of topics, for more tools with --mcp.")
    ] = None,
    encoder: opt.MovedEncoder = None,
) -> None:
    """Serve a local page to search and read an index, with a JSON API; or tools by --mcp."""
    from embedtopics.report._assistant import AssistantTools
    from embedtopics.retrieval import serve

    if results is not None and not mcp:
        raise InputError("results", "given with --mcp", results)
    if not mcp:
        show.run_server(serve(_load(index, encoder), port=port))
        return
    reader = _load(index, encoder)
    tables = () if results is None else _tables_of(results, reader)
    AssistantTools(reader, *tables).server().run()


def _tables_of(
    results: Path, index: SearchIndex
) -> tuple[Callable[[], pd.DataFrame], Callable[[str], pd.DataFrame]]:
    """Return functions for the topics of a results folder, and for their shares."""
    from embedtopics import topics
    from embedtopics.topics.trends._over_time import UNITS

    result = show.open_result(results)
    if not {*result.corpus.ids} & {*index.ids}:
        raise InputError("results", "results of the documents of the index", results)

    def shares(by: str) -> pd.DataFrame:
        columns = [str(name) for name in result.corpus.metadata]
        if by in columns:
            return topics.by_group(result, by).to_frame()
        if by not in UNITS:
            raise InputError("by", f"one of {', '.join([*columns, *UNITS])}", by)
        return topics.over_time(result, by).to_frame()

    return lambda: topics.table(result, n_examples=0), shares


app = Commands(help="Build and maintain a search index of documents.", no_args_is_help=True)


@app.command()
def build(
    file: opt.DocumentsFile,
    out: Annotated[Path, Option(help="Folder for the index.")],
    text: opt.TextColumn = None,
    id: opt.IdColumn = None,
    time: opt.TimeColumn = None,
    encoder: Annotated[
        str, Option(help="Name or folder of a checkpoint; none for lexical search only.")
    ] = "all-MiniLM-L6-v2",
    words: opt.Words = "characters",
    overwrite: opt.Overwrite = False,
    encoding: opt.FileEncoding = "utf-8",
) -> None:
    """Index the documents of a file."""
    from embedtopics.encoders._registry import resolve_encoder
    from embedtopics.retrieval._build import read_documents
    from embedtopics.retrieval._index import SearchIndex

    # Refused before the work: later commands could not load such an encoder.
    loaded = None
    if encoder != "none":
        loaded = resolve_encoder(encoder, cached=True)
    if loaded is not None and not loaded.is_fitted and encoder != "auto":
        raise InputError(
            f"--encoder must be a checkpoint or a static encoder; {encoder} is fitted to the texts "
            "and not stored with an index"
        )
    columns = {"text": text, "id": id, "time": time}
    corpus = read_documents(file, columns, encoding)
    index = SearchIndex.build(
        corpus, out, encoder=loaded, words=words.replace(" ", "").split(","), overwrite=overwrite
    )  # fmt: skip
    show.print_notes((note.message for note in index.decisions), stderr=True)
    shown = show.printable(str(out))
    typer.echo(f'indexed: {_described(index)}\nnext: embedtopics search {shown} "your question"')


@app.command()
def add(
    index: opt.IndexFolder,
    file: opt.DocumentsFile,
    text: opt.TextColumn = None,
    id: opt.IdColumn = None,
    time: opt.TimeColumn = None,
    update: Annotated[bool, Option("--update", help="Replace documents of the same id.")] = False,
    encoder: opt.MovedEncoder = None,
    encoding: opt.FileEncoding = "utf-8",
) -> None:
    """Add the documents of a file."""
    from embedtopics.retrieval._build import read_more

    writer = _load(index, encoder)
    columns = {"text": text, "id": id, "time": time}
    corpus = read_more(writer._reader, file, columns, update, encoding)
    before = len(writer)
    n = writer.add(corpus, update=update)
    show.print_notes((note.message for note in writer.decisions), stderr=True)
    n_replaced = before + n - len(writer)
    replaced = f" ({n_replaced:,} replaced an older version)" if update else ""
    typer.echo(f"added: {n:,} documents{replaced}; now {_described(writer)}")


@app.command()
def remove(index: opt.IndexFolder, ids: Annotated[list[str], Argument(help="Ids.")]) -> None:
    """Remove documents by id."""
    writer = _load(index)
    n = writer.remove(ids)
    typer.echo(f"removed: {n:,} documents; now {_described(writer)}")


@app.command()
def compact(index: opt.IndexFolder) -> None:
    """Merge all segments, and free the space of removed documents."""
    writer = _load(index)
    outcome = "compacted" if writer.compact() else "already compact"
    typer.echo(f"{outcome}: {_described(writer)}")


@app.command()
def check(index: opt.IndexFolder) -> None:
    """Verify the checksums of all files; exits with 1 if one is damaged."""
    from embedtopics.retrieval.storage._checks import check as check_index
    from embedtopics.retrieval.storage._checks import find_damage

    problems = check_index(index)
    # Files left by a killed writer are reported; they are no damage.
    damage = find_damage(index) if problems else []
    for problem in problems:
        kind = "damaged" if problem in damage else "note"
        typer.echo(f"{kind}: {show.printable(str(problem))}")
    if damage:
        raise typer.Exit(1)
    typer.echo(f"no damage: {_described(_load(index))}")


@app.command()
def info(index: opt.IndexFolder) -> None:
    """Print the contents of an index, and the recall of its dense part."""
    reader = _load(index)
    typer.echo(_described(reader))
    listed = ", ".join(f"{name} ({kind})" for name, kind in reader.columns.items())
    typer.echo(f"columns: {show.printable(listed) or 'none'}")
    columns = [(name, "number") for name in ("segment", "passages", "recall@10", "MB")]
    columns.insert(2, ("kind", "text"))
    rows = []
    for about in reader.measured:
        folder = reader.folder / "segments" / about["segment"]
        size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
        cells = [about["segment"], f"{about['n']:,}", str(about["kind"])]
        rows.append([*cells, f"{about['measured']['recall']:.3f}", f"{size / 1e6:,.1f}"])
    show.print_table(columns, rows)


@app.command()
def evaluate(
    index: opt.IndexFolder,
    queries: Annotated[Path, Argument(readable=False, help="jsonl, csv or tsv with id and text.")],
    qrels: Annotated[Path, Argument(readable=False, help="Judgements as TREC qrels or BEIR tsv.")],
    mode: Annotated[list[str] | None, Option(help="dense, lexical, hybrid; default: all.")] = None,
    k: Annotated[int, Option("--k", "-k", min=1, help="Documents for each query.")] = 100,
    encoder: opt.MovedEncoder = None,
    out: opt.OutTable = None,
) -> None:
    """Evaluate an index on queries with relevance judgements."""
    import pandas as pd

    from embedtopics import evaluation
    from embedtopics.evaluation._files import read_qrels, read_queries

    show.check_outputs(out)
    judged = read_qrels(qrels)
    texts = {name: text for name, text in read_queries(queries).items() if name in judged}
    if not texts:
        absent = f"none of the {len(judged):,} queries in {qrels} is in {queries}"
        raise InputError(f"the ids of queries differ: {absent}")
    reader = _load(index, encoder)
    modes: list[Any] = list(dict.fromkeys(mode or ("dense", "lexical", "hybrid")))
    ids, asked, depths = list(texts), list(texts.values()), (min(10, k), k)
    scores = {
        name: evaluation.evaluate_run(
            reader.search(asked, k, mode=name), qrels, depths, query_ids=ids
        )
        for name in modes
    }
    measures = [one.to_frame().assign(mode=name) for name, one in scores.items()]
    *others, last = scores
    compare = evaluation.compare_runs
    differences = {other: compare(scores[other], scores[last]) for other in others}
    show.write_outputs(out, lambda: pd.concat(measures, ignore_index=True))
    columns = [one.scores.values() for one in scores.values()]
    rows = [
        [measure, *(show.spell_interval(e.value, e.low, e.high, form=".3f") for e in estimates)]
        for measure, *estimates in zip(scores[last].scores, *columns, strict=True)
    ]
    show.print_table([(column, "text") for column in ("measure", *scores)], rows)
    ndcg = f"ndcg@{min(10, k)}"
    for other, change in differences.items():
        gains = {row["measure"]: row for row in change.to_frame().to_dict("records")}
        gain = gains[ndcg]
        ends = gain["difference"], gain["low"], gain["high"]
        difference = show.spell_interval(*ends, form="+.3f")
        typer.echo(
            f"{last} - {other}: {ndcg} {difference}, "
            f"better for {gain['better']:,} queries, worse for {gain['worse']:,}"
        )
    show.print_notes(d.message for one in scores.values() for d in one.decisions)


@app.command()
def attach_topics(index: opt.IndexFolder, results: opt.ResultsFolder) -> None:
    """Attach topics to the documents, for hits and filters such as "topic == 3"."""
    writer = _load(index)
    writer.attach_topics(show.open_result(results))
    n = sum(document.metadata["topic"] is not None for document in writer)
    typer.echo(
        f"attached: topics to {n:,} of {_described(writer)}\nnext: embedtopics search "
        f'{show.printable(str(index))} "your question" --where "topic == 0"'
    )


def _load(folder: Path, encoder: str | None = None) -> SearchIndex:
    from embedtopics.retrieval._index import SearchIndex

    return SearchIndex.load(folder, encoder=encoder)


def _described(index: SearchIndex) -> str:
    """Describe an index in one line."""
    contents = str(index).removeprefix("SearchIndex(").removesuffix(")")
    return show.printable(f"{contents} in {index.folder}")
