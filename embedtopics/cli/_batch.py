"""``embedtopics batch``: large files in shards, on several processes or on a Ray cluster."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from embedtopics.cli._display import (
    guarded,
    make_console,
    print_lines,
    print_notes,
    spell_seconds,
)
from embedtopics.cli._options import GroupColumn, IdColumn, TimeColumn
from embedtopics.errors import InputError

if TYPE_CHECKING:
    from embedtopics.distributed._jobs import Job
    from embedtopics.distributed.results import Columns, Manifest

app = typer.Typer(
    help="Do large files in shards; a run that was killed goes on where it ended.",
    no_args_is_help=True,
)

Files = Annotated[
    list[str],
    typer.Argument(help="parquet, jsonl, csv or tsv files, patterns, or addresses of fsspec."),
]
Out = Annotated[Path, typer.Option(help="Folder for the parts, read as one parquet table.")]
Model = Annotated[Path, typer.Option(help="Folder of a saved model.")]
Text = Annotated[str, typer.Option(help="Column of texts.")]
Vectors = Annotated[str | None, typer.Option(help="Column of vectors, in place of the encoder.")]
Workers = Annotated[int, typer.Option("--workers", min=1, help="Processes, of one thread each.")]
Runner = Annotated[str, typer.Option(help="processes or ray.")]
Address = Annotated[str | None, typer.Option(help="Of a Ray cluster.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say shards, rows, disk and time only.")]


@app.command()
@guarded
def embed(
    files: Files,
    encoder: Annotated[str, typer.Option(help="A checkpoint, or a folder of a static encoder.")],
    out: Out,
    text: Text = "text",
    id: IdColumn = None,
    n_workers: Workers = 1,
    runner: Runner = "processes",
    address: Address = None,
    dry_run: DryRun = False,
) -> None:
    """Write the vectors of texts."""
    from embedtopics.distributed._jobs import EmbedTexts

    names = {"text": text, "id": id}
    _run(EmbedTexts(encoder), files, out, names, (n_workers, runner, address), dry_run)


@app.command()
@guarded
def assign(
    files: Files,
    model: Model,
    out: Out,
    text: Text = "text",
    id: IdColumn = None,
    vectors: Vectors = None,
    n_workers: Workers = 1,
    runner: Runner = "processes",
    address: Address = None,
    dry_run: DryRun = False,
) -> None:
    """Write the topics of texts, with memberships and novelty."""
    from embedtopics.distributed._jobs import AssignTopics

    columns = {"text": text, "id": id, "vectors": vectors}
    _run(AssignTopics(model), files, out, columns, (n_workers, runner, address), dry_run)


@app.command()
@guarded
def count(
    files: Files,
    model: Model,
    out: Out,
    text: Text = "text",
    time: TimeColumn = None,
    group: GroupColumn = None,
    every: Annotated[str, typer.Option(help="Period: day, week, month, quarter, year.")] = "month",
    vectors: Vectors = None,
    n_workers: Workers = 1,
    runner: Runner = "processes",
    address: Address = None,
    dry_run: DryRun = False,
) -> None:
    """Count rows and terms of each topic, by period and by group."""
    from embedtopics.distributed._jobs import CountTopics

    columns = {"text": text, "time": time, "group": group, "vectors": vectors}
    _run(CountTopics(model, every), files, out, columns, (n_workers, runner, address), dry_run)


@app.command()
@guarded
def classify(
    files: Files,
    model: Model,
    out: Out,
    text: Text = "text",
    id: IdColumn = None,
    n_workers: Workers = 1,
    runner: Runner = "processes",
    address: Address = None,
    dry_run: DryRun = False,
) -> None:
    """Write the classes of texts, with their probabilities."""
    from embedtopics.distributed._jobs import ClassifyTexts

    columns = {"text": text, "id": id}
    _run(ClassifyTexts(model), files, out, columns, (n_workers, runner, address), dry_run)


@app.command()
@guarded
def index(
    files: Files,
    encoder: Annotated[str, typer.Option(help="A checkpoint, or a folder of a static encoder.")],
    out: Out,
    index: Annotated[Path, typer.Option(help="Folder of the search index.")],
    text: Text = "text",
    id: IdColumn = None,
    time: TimeColumn = None,
    group: GroupColumn = None,
    n_workers: Workers = 1,
    runner: Runner = "processes",
    address: Address = None,
    dry_run: DryRun = False,
) -> None:
    """Write the vectors of texts, and make a search index of them."""
    from embedtopics.distributed._index import build_index
    from embedtopics.distributed._jobs import EmbedTexts
    from embedtopics.retrieval.storage._checks import check_target

    check_target(index, False)
    columns, job = {"text": text, "id": id, "time": time, "group": group}, EmbedTexts(encoder)
    manifest, named = _run(job, files, out, columns, (n_workers, runner, address), dry_run)
    if not dry_run:
        made = build_index(job, manifest, out, index, columns=named)
        make_console().print(f"{len(made):,} documents are in {index}.", markup=False)


def _run(
    job: Job,
    files: list[str],
    out: Path,
    names: dict[str, str | None],
    where: tuple[int, str, str | None],
    dry_run: bool,
) -> tuple[Manifest, Columns]:
    """Say what is to be done, do it, say what was done; return what was read."""
    from embedtopics.distributed._manifest import make_manifest
    from embedtopics.distributed._run import plan_batch, run_batch
    from embedtopics.distributed.results import Columns

    columns = Columns(**{key: name for key, name in names.items() if name is not None})
    manifest = make_manifest(files)
    console = make_console()
    n_workers, runner, address = where
    if dry_run:
        plan = plan_batch(job, manifest, out, columns=columns, n_workers=n_workers, measure=True)
        print_lines(console, {
            "shards": f"{plan.n_shards:,}, {plan.n_shards_to_do:,} of them to do",
            "rows": f"{plan.n_rows:,}, {plan.n_rows_to_do:,} of them to do",
            "disk": f"{plan.n_bytes / 1e6:,.0f} MB or less, {plan.n_bytes_free / 1e6:,.0f} free",
            "time": f"about {spell_seconds(plan.seconds)}, by the first rows",
        })  # fmt: skip
        return manifest, columns
    report = run_batch(
        job, manifest, out, columns=columns, n_workers=n_workers, runner=runner, address=address
    )
    console.print(str(report), markup=False)
    if report.failures:
        print_notes(console, map(str, report.failures[:20]))
        raise InputError(f"{len(report.failures):,} shards could not be done; run again to retry")
    return manifest, columns
