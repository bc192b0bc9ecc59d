"""``embedtopics search`` and ``search-eval``: ask an index, and measure its answers."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from embedtopics.cli._display import (
    TABLE,
    check_target,
    guarded,
    make_console,
    print_notes,
    print_table,
    printable,
)
from embedtopics.cli._options import IndexFolder, MovedEncoder, OutTable, RandomState
from embedtopics.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

    from embedtopics.evaluation.results import Estimate
    from embedtopics.retrieval.results import Hit, SearchHits


Where = Annotated[
    str | None, typer.Option(help="Filter, such as \"year >= 2020 and source == 'Le Monde'\".")
]


@guarded
def search(
    index: IndexFolder,
    query: Annotated[list[str], typer.Argument(help="What you look for: words or a sentence.")],
    k: Annotated[int, typer.Option("--k", "-k", min=1, help="Documents shown.")] = 10,
    mode: Annotated[str, typer.Option(help="dense, lexical or hybrid.")] = "hybrid",
    where: Where = None,
    show: Annotated[
        list[str] | None, typer.Option(help="Column to show, such as date (repeatable).")
    ] = None,
    diversity: Annotated[
        float, typer.Option(min=0, max=1, help="0 shows the best, more the less alike.")
    ] = 0.0,
    rerank: Annotated[
        str | None, typer.Option(help="Name or folder of a cross-encoder that reorders the best.")
    ] = None,
    encoder: MovedEncoder = None,
    out: OutTable = None,
) -> None:
    """Search an index: by meaning, by words, or both."""
    from embedtopics._utils.table_files import write_table
    from embedtopics.retrieval._index import SearchIndex

    check_target(out, TABLE)
    opened = SearchIndex.load(index, encoder=encoder)
    unknown = [name for name in show or () if name not in opened.columns]
    if unknown:
        there = ", ".join(map(repr, opened.columns)) or "none"
        raise InputError(f"--show: there is no column {unknown[0]!r}; the index has {there}")
    wanted: Any = mode  # refused by the search where it is none
    found = opened.search(" ".join(query), k, wanted, where, diversity=diversity, reranker=rerank)
    # Written before anything is printed: a closed pipe must not cost the results.
    if out is not None:
        write_table(found.to_frame(), out)
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
    """Return where a hit stands and why: its id, score, cosine, words and topic."""
    parts = [f"{rank}.", str(hit.id), f"{hit.score:.3f}"]
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


@guarded
def search_eval(
    index: IndexFolder,
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
    encoder: MovedEncoder = None,
    out: OutTable = None,
    random_state: RandomState = 0,
) -> None:
    """Measure an index on queries whose relevant documents are known."""
    import pandas as pd

    from embedtopics import evaluation
    from embedtopics._utils.table_files import write_table
    from embedtopics.evaluation._retrieval_files import read_qrels, read_queries
    from embedtopics.retrieval._index import SearchIndex

    check_target(out, TABLE)
    judged = read_qrels(qrels)
    asked = {name: text for name, text in read_queries(queries).items() if name in judged}
    if not asked:
        raise InputError(
            f"expected judgements of queries in {queries}; none of the {len(judged):,} queries in "
            f"{qrels} is there: their ids differ"
        )
    opened = SearchIndex.load(index, encoder=encoder)
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
    # Written before anything is printed: a closed pipe must not cost the results.
    if out is not None:
        write_table(pd.concat(measures, ignore_index=True), out)
    console = make_console()
    rows = [
        [measure, *(_spell(one.scores[measure], ".3f") for one in scores.values())]
        for measure in scores[last].scores
    ]
    print_table(console, [(column, {}) for column in ("measure", *scores)], rows)
    ndcg = f"ndcg@{min(10, k)}"
    for other, change in differences.items():
        gain = change.differences[ndcg]
        console.print(
            f"{last} - {other}: {ndcg} {_spell(gain, '+.3f')}, "
            f"better for {change.better[ndcg]:,} queries, worse for {change.worse[ndcg]:,}",
            soft_wrap=True,
        )
    print_notes(console, (d.message for one in scores.values() for d in one.decisions))


def _spell(found: Estimate, form: str) -> str:
    """Return an estimate with its interval, for people; a single query has none."""
    value = f"{found.value:{form}}"
    if math.isnan(found.low):
        return value
    return f"{value} [{found.low:{form}}, {found.high:{form}}]"
