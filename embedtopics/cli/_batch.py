"""``batch``: large files in shards, on several processes or on a Ray cluster."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from embedtopics.cli import _options as opt
from embedtopics.cli._display import print_lines, print_notes, say, spell_seconds
from embedtopics.cli._errors import Commands
from embedtopics.errors import InputError

if TYPE_CHECKING:
    from embedtopics.batch.results import BatchPlan, BatchReport

app = Commands(
    help="Process large files in shards; an interrupted run resumes where it stopped.",
    no_args_is_help=True,
)

Files = Annotated[list[str], Argument(help="parquet, jsonl, csv or tsv files, or patterns.")]
OutParts = Annotated[Path, Option(help="Folder for the parts; reads as one parquet table.")]
Text = Annotated[str, Option(help="Column of texts.")]
Encoder = Annotated[str, Option(help="A checkpoint, or a folder of a static encoder.")]
Model = Annotated[Path, Option(help="Folder of a saved model.")]
Classifier = Annotated[Path, Option(help="Folder of a saved classifier.")]
Vectors = Annotated[str | None, Option(help="Column of vectors, used instead of the encoder.")]
Workers = Annotated[int, Option(min=1, help="Processes of one thread.")]
Runner = Annotated[str, Option(help="processes or ray.")]
Address = Annotated[str | None, Option(help="Address of a Ray cluster.")]
DryRun = Annotated[bool, Option("--dry-run", help="Print the plan, and stop.")]


@app.command()
def embed(
    files: Files,
    encoder: Encoder,
    out: OutParts,
    text: Text = "text",
    id: opt.IdColumn = None,
    n_workers: Workers = 1,
    runner: Runner = "processes",
    address: Address = None,
    dry_run: DryRun = False,
) -> None:
    """Write the vectors of texts."""
    from embedtopics import batch

    _print(
        batch.embed(
            encoder, files, out, text=text, id=id, n_workers=n_workers, runner=runner,
            address=address, dry_run=dry_run,
        )
    )  # fmt: skip


@app.command()
def assign(
    files: Files,
    model: Model,
    out: OutParts,
    text: Text = "text",
    id: opt.IdColumn = None,
    vectors: Vectors = None,
    n_workers: Workers = 1,
    runner: Runner = "processes",
    address: Address = None,
    dry_run: DryRun = False,
) -> None:
    """Write the topics of texts, with memberships and novelty."""
    from embedtopics import batch

    _print(
        batch.assign(
            model, files, out, text=text, id=id, vectors=vectors, n_workers=n_workers,
            runner=runner, address=address, dry_run=dry_run,
        )
    )  # fmt: skip


@app.command()
def count(
    files: Files,
    model: Model,
    out: OutParts,
    text: Text = "text",
    time: opt.TimeColumn = None,
    group: opt.GroupColumn = None,
    every: Annotated[str, Option(help="Period: day, week, month, quarter, year.")] = "month",
    vectors: Vectors = None,
    n_workers: Workers = 1,
    runner: Runner = "processes",
    address: Address = None,
    dry_run: DryRun = False,
) -> None:
    """Count the rows and terms of each topic by period and group."""
    from embedtopics import batch

    _print(
        batch.count(
            model, files, out, every=every, text=text, time=time, group=group, vectors=vectors,
            n_workers=n_workers, runner=runner, address=address, dry_run=dry_run,
        )
    )  # fmt: skip


@app.command()
def classify(
    files: Files,
    classifier: Classifier,
    out: OutParts,
    text: Text = "text",
    id: opt.IdColumn = None,
    n_workers: Workers = 1,
    runner: Runner = "processes",
    address: Address = None,
    dry_run: DryRun = False,
) -> None:
    """Write the classes of texts, with their probabilities."""
    from embedtopics import batch

    _print(
        batch.classify(
            classifier, files, out, text=text, id=id, n_workers=n_workers, runner=runner,
            address=address, dry_run=dry_run,
        )
    )  # fmt: skip


@app.command()
def index(
    files: Files,
    encoder: Encoder,
    out: OutParts,
    index: Annotated[Path, Option(help="Folder of the search index.")],
    text: Text = "text",
    id: opt.IdColumn = None,
    time: opt.TimeColumn = None,
    group: opt.GroupColumn = None,
    n_workers: Workers = 1,
    runner: Runner = "processes",
    address: Address = None,
    dry_run: DryRun = False,
) -> None:
    """Write the vectors of texts that have none yet, and build a search index from them."""
    from embedtopics import batch
    from embedtopics.batch.results import BatchPlan

    built = batch.index(
        encoder, files, out, index=index, text=text, id=id, time=time, group=group,
        n_workers=n_workers, runner=runner, address=address, dry_run=dry_run,
    )  # fmt: skip
    if isinstance(built, BatchPlan):
        _print(built)
    else:
        say(f"{len(built):,} documents are in {index}.", markup=False)


def _print(done: BatchReport | BatchPlan) -> None:
    """Print a plan, or a report; shards that failed are an error."""
    from embedtopics.batch.results import BatchPlan

    if isinstance(done, BatchPlan):
        free = f"{done.n_bytes_free / 1e6:,.0f} free"
        print_lines({
            "shards": f"{done.n_shards:,} ({done.n_shards_to_do:,} remain)",
            "rows": f"{done.n_rows:,} ({done.n_rows_to_do:,} remain)",
            "disk": f"{done.n_bytes / 1e6:,.0f} MB or less, {free}",
            "time": f"about {spell_seconds(done.seconds)}, estimated from the first rows",
        })  # fmt: skip
        return
    say(str(done), markup=False)
    if done.n_failed:
        print_notes(
            f"{row.file}, shard {row.shard} ({row.n:,} rows from {row.first_row:,}): {row.reason}"
            for row in done.to_frame().head(20).itertuples()
        )
        raise InputError(f"{done.n_failed:,} shards failed; run again to retry them")
