"""``embedtopics inspect``: what a file holds, before the work."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from embedtopics.cli.guard import guarded

if TYPE_CHECKING:
    from rich.console import Console

    from embedtopics.corpus import Corpus
    from embedtopics.protocols import Encoder

__all__ = ["inspect"]


@guarded
def inspect(
    file: Annotated[
        Path,
        typer.Argument(
            readable=False,  # a file that cannot be read has an error of its own
            help="csv, tsv, jsonl, parquet (each also .gz), txt, or a folder of txt.",
        ),
    ],
    text: Annotated[str | None, typer.Option(help="Column of texts; guessed if left out.")] = None,
    encoder: Annotated[
        str | None,
        typer.Option(help="A checkpoint, or tfidf, lsa, fasttext or random."),
    ] = None,
    encoding: Annotated[str, typer.Option(help="Encoding of the file.")] = "utf-8",
    limit: Annotated[int | None, typer.Option(min=1, help="Read only the first rows.")] = None,
    sample: Annotated[
        int | None, typer.Option(min=2, help="Also map a sample of so many texts.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Page for the sample's map; FILE-sample.html if left out.")
    ] = None,
) -> None:
    """Look at a file: columns, languages, what would be cut, and the time a fit would take."""
    from embedtopics.cli.display import make_console, print_inspection, printable
    from embedtopics.cli.files import PAGE, check_target
    from embedtopics.corpus import Corpus, guess_columns, require_text
    from embedtopics.encoders import resolve_encoder
    from embedtopics.topics import inspect_corpus
    from embedtopics.topics.model import DEFAULT_ENCODER

    console = make_console()
    page = None
    if sample is not None:
        page = out or Path(f"{file.name.split('.')[0] or 'sample'}-sample.html")
        check_target(page, PAGE)
    corpus = Corpus.from_file(file, text=text, encoding=encoding, limit=limit)
    guessed = {**guess_columns(corpus.metadata), "text": corpus.text_column}
    found = {
        role: f"--{role} {shlex.quote(printable(name))}"
        for role, name in guessed.items() if name is not None
    }  # fmt: skip
    if found:
        console.print(f"columns guessed: {' '.join(found.values())}", soft_wrap=True)
    require_text(corpus)
    loaded = resolve_encoder(encoder or DEFAULT_ENCODER, cached=True)
    print_inspection(console, inspect_corpus(corpus, loaded))
    if page is not None and sample is not None:
        _map_sample(console, corpus, loaded, sample, page)
    options = " ".join(option for role, option in found.items() if role != "id")
    name = shlex.quote(printable(str(file)))
    console.print(f"\nnext: embedtopics topics {name} {options} --out results", soft_wrap=True)


def _map_sample(console: Console, corpus: Corpus, encoder: Encoder, size: int, path: Path) -> None:
    """Find the topics of a sample, print them, and write their map."""
    from embedtopics.cli.display import print_topics
    from embedtopics.report import write_report
    from embedtopics.topics import TopicModel

    rows = corpus.distinct().first_rows[:size]  # ordered by content hash: a fair sample
    model = TopicModel(encoder, random_state=42).fit(corpus.take(sorted(rows.tolist())))
    console.print(f"\na first look, at {len(rows):,} texts:")
    print_topics(console, model.result_, most=12)
    write_report(model.result_, path, title=f"A sample of {corpus.source}")
    console.print(f"\nmap of the sample: {path}", soft_wrap=True)
