"""``embedtopics batch``: large files in shards, on several processes or on a Ray cluster."""

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from embedtopics.cli._display import print_lines, print_notes, say, spell_seconds
from embedtopics.cli._errors import Commands
from embedtopics.cli._options import GroupColumn, IdColumn, TimeColumn, with_parameters
from embedtopics.errors import InputError

app = Commands(
    help="Process large files in shards; an interrupted run resumes where it stopped.",
    no_args_is_help=True,
)

Text = Annotated[str, Option(help="Column of texts.")]
Model = Annotated[Path, Option(help="Folder of a saved model.")]
Classifier = Annotated[Path, Option(help="Folder of a saved classifier.")]
Encoder = Annotated[str, Option(help="A checkpoint, or a folder of a static encoder.")]
Vectors = Annotated[str | None, Option(help="Column of vectors, used instead of the encoder.")]


def _run(
    job: Any,
    names: dict[str, str | None],
    index: Path | None = None,
    *,
    files: Annotated[list[str], Argument(help="parquet, jsonl, csv or tsv files, or patterns.")],
    out: Annotated[Path, Option(help="Folder for the parts; reads as one parquet table.")],
    n_workers: Annotated[int, Option("--workers", min=1, help="Processes of one thread.")] = 1,
    runner: Annotated[str, Option(help="processes or ray.")] = "processes",
    address: Annotated[str | None, Option(help="Address of a Ray cluster.")] = None,
    dry_run: Annotated[bool, Option("--dry-run", help="Print the plan, and stop.")] = False,
) -> None:
    """Plan or run a batch, print its report, and build a search index if one is named."""
    from embedtopics.batch._manifest import make_manifest
    from embedtopics.batch._rows import Columns
    from embedtopics.batch._run import plan_batch, run_batch

    columns = Columns(**{key: name for key, name in names.items() if name is not None})
    manifest = make_manifest(files)
    if dry_run:
        plan = plan_batch(job, manifest, out, columns=columns, n_workers=n_workers)
        print_lines({
            "shards": f"{plan.n_shards:,} ({plan.n_shards_to_do:,} remain)",
            "rows": f"{plan.n_rows:,} ({plan.n_rows_to_do:,} remain)",
            "disk": f"{plan.n_bytes / 1e6:,.0f} MB or less, {plan.n_bytes_free / 1e6:,.0f} free",
            "time": f"about {spell_seconds(plan.seconds)}, estimated from the first rows",
        })  # fmt: skip
        return
    report = run_batch(
        job, manifest, out, columns=columns, n_workers=n_workers, runner=runner, address=address
    )
    say(str(report), markup=False)
    if report.n_failed:
        failures = report.to_frame().head(20)
        print_notes(
            f"{row.file}, shard {row.shard} ({row.n:,} rows from {row.first_row:,}): {row.reason}"
            for row in failures.itertuples()
        )
        raise InputError(f"{report.n_failed:,} shards failed; run again to retry them")
    if index is not None:
        from embedtopics.batch._index import build_index

        built = build_index(job, manifest, out, index, columns=columns)
        say(f"{len(built):,} documents are in {index}.", markup=False)


def _command(make: Callable[..., Any]) -> Callable[..., Any]:
    """Add a command with the options of a run, and those of the function that makes its job."""
    of_make, of_run = (
        inspect.signature(one, eval_str=True).parameters.values() for one in (make, _run)
    )
    shared = [one for one in of_run if one.kind is one.KEYWORD_ONLY]

    @functools.wraps(make)
    def run(**values: Any) -> None:
        run_options = {one.name: values.pop(one.name) for one in shared}
        _run(*make(**values), **run_options)

    app.command()(with_parameters(run, [*of_make, *shared]))
    return make


@_command
def embed(encoder: Encoder, text: Text = "text", id: IdColumn = None) -> Any:
    """Write the vectors of texts."""
    from embedtopics.batch._jobs import EmbedTexts

    return EmbedTexts(encoder), {"text": text, "id": id}


@_command
def assign(model: Model, text: Text = "text", id: IdColumn = None, vectors: Vectors = None) -> Any:
    """Write the topics of texts, with memberships and novelty."""
    from embedtopics.batch._jobs import AssignTopics

    return AssignTopics(model), {"text": text, "id": id, "vectors": vectors}


@_command
def count(
    model: Model,
    text: Text = "text",
    time: TimeColumn = None,
    group: GroupColumn = None,
    every: Annotated[str, Option(help="Period: day, week, month, quarter, year.")] = "month",
    vectors: Vectors = None,
) -> Any:
    """Count the rows and terms of each topic by period and group."""
    from embedtopics.batch._jobs import CountTopics

    columns = {"text": text, "time": time, "group": group, "vectors": vectors}
    return CountTopics(model, every), columns


@_command
def classify(classifier: Classifier, text: Text = "text", id: IdColumn = None) -> Any:
    """Write the classes of texts, with their probabilities."""
    from embedtopics.batch._jobs import ClassifyTexts

    return ClassifyTexts(classifier), {"text": text, "id": id}


@_command
def index(
    encoder: Encoder,
    index: Annotated[Path, Option(help="Folder of the search index.")],
    text: Text = "text",
    id: IdColumn = None,
    time: TimeColumn = None,
    group: GroupColumn = None,
) -> Any:
    """Write the vectors of texts, and build a search index from them."""
    from embedtopics.batch._jobs import EmbedTexts
    from embedtopics.retrieval.storage._checks import check_target

    check_target(index, False)
    return EmbedTexts(encoder), {"text": text, "id": id, "time": time, "group": group}, index
