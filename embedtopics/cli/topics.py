"""``embedtopics topics``: from a file of documents to a folder of results, or from that on."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from embedtopics.cli.guard import guarded
from embedtopics.errors import InputError

if TYPE_CHECKING:
    from embedtopics.corpus import Corpus
    from embedtopics.topics import Guidance

__all__ = ["run_topics", "topics"]


@guarded
def topics(
    file: Annotated[
        Path,
        typer.Argument(
            readable=False,  # a file that cannot be read has an error of its own
            help="csv, tsv, jsonl, parquet (each also .gz), txt, or a folder of txt; or a folder "
            "of results, with --resolution.",
        ),
    ],
    context: typer.Context,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for the results; a folder of results itself if left out."),
    ] = None,
    text: Annotated[str | None, typer.Option(help="Column of texts; guessed if left out.")] = None,
    id: Annotated[str | None, typer.Option(help="Column of identifiers.")] = None,
    time: Annotated[str | None, typer.Option(help="Column of dates.")] = None,
    group: Annotated[str | None, typer.Option(help="Column of groups, such as sources.")] = None,
    encoder: Annotated[
        str | None,
        typer.Option(help="A checkpoint, or tfidf, lsa, fasttext or random."),
    ] = None,
    n_topics: Annotated[
        str, typer.Option("--topics", help="auto, fine, coarse, or a number, met exactly.")
    ] = "auto",
    min_topic_size: Annotated[
        int | None,
        typer.Option(min=2, help="Fewest texts in a topic's core, in place of --topics."),
    ] = None,
    coverage: Annotated[
        str, typer.Option(help="auto, or the share of the texts to be in a topic, 0 to 1.")
    ] = "auto",
    names: Annotated[
        str | None,
        typer.Option(help="Topics to look for, such as 'health,schools', beside others."),
    ] = None,
    labels: Annotated[
        str | None, typer.Option(help="Column of labels, some may be empty, that topics follow.")
    ] = None,
    resolution: Annotated[
        str | None,
        typer.Option(help="Read a folder of results anew: auto, fine, coarse or a number."),
    ] = None,
    replicates: Annotated[
        int, typer.Option(min=0, help="Replicates that tell how stable each topic is; 0 for none.")
    ] = 20,
    language: Annotated[
        list[str] | None, typer.Option(help="Language code (repeatable); detected if left out.")
    ] = None,
    encoding: Annotated[str, typer.Option(help="Encoding of the file.")] = "utf-8",
    limit: Annotated[int | None, typer.Option(min=1, help="Read only the first rows.")] = None,
    seed: Annotated[int, typer.Option(help="Random seed.")] = 42,
    cache: Annotated[bool, typer.Option(help="Keep vectors on disk, and look there first.")] = True,
) -> None:
    """Find the topics of a file of documents, or read results coarser or finer."""
    from embedtopics.cli.reread import reread
    from embedtopics.cli.results_folder import check_results_folder, is_results_folder
    from embedtopics.corpus import Corpus

    given = _given(context)
    if is_results_folder(file):
        reread(
            file,
            _checked_resolution(file, resolution, given),
            out=out,
            coverage=_share(coverage) if "coverage" in given else None,
            replicates=replicates if "replicates" in given else None,
        )
        return
    if resolution is not None:
        raise InputError(
            f"--resolution reads a folder that topics wrote; {file} is none; for a file of "
            "documents say how fine with --topics"
        )
    if out is None:
        raise InputError("name a folder for the results with --out")
    check_results_folder(out)
    corpus = Corpus.from_file(
        file, text=text, id=id, time=time, group=group, encoding=encoding, limit=limit
    )
    run_topics(
        corpus,
        out=out,
        encoder=encoder,
        cache=cache,
        replicates=replicates,
        n_topics=int(n_topics) if n_topics.isdecimal() else n_topics,
        min_cluster_size=min_topic_size or "auto",
        coverage=_share(coverage),
        guidance=_guidance(corpus, names, labels),
        languages=language or "auto",
        random_state=seed,
    )


def _given(context: typer.Context) -> set[str]:
    """Return the names of the parameters that are on the command line."""
    return {
        name for name in context.params
        if getattr(context.get_parameter_source(name), "name", "") == "COMMANDLINE"
    }  # fmt: skip


def _checked_resolution(folder: Path, resolution: str | None, given: set[str]) -> str:
    """Return the resolution, after making sure that no option is given that would be ignored."""
    if resolution is None:
        raise InputError(
            f"{folder} holds results; say with --resolution how fine they are to be read, or name "
            "a file of documents"
        )
    ignored = sorted(given - {"file", "out", "resolution", "coverage", "replicates"})
    if ignored:
        name = "topics" if ignored[0] == "n_topics" else ignored[0].replace("_", "-")
        raise InputError(
            f"--{name} is for a file of documents, and {folder} holds results; with --resolution "
            "go only --coverage, --replicates and --out"
        )
    return resolution


def _share(coverage: str) -> float | str:
    """Return a number where it is one; what is neither is refused later, with a clear error."""
    try:
        return float(coverage)
    except ValueError:
        return coverage


def _guidance(corpus: Corpus, names: str | None, labels: str | None) -> Guidance | None:
    """Return what is known of the topics beforehand."""
    from embedtopics.errors import InputError
    from embedtopics.topics import Labels, ZeroShot

    if names is not None and labels is not None:
        raise InputError("--names and --labels both guide the topics; give one")
    if names is not None:
        return ZeroShot([name for name in names.split(",") if name.strip()])
    if labels is None:
        return None
    columns = [str(column) for column in corpus.metadata.columns]
    if labels not in columns:
        raise InputError(
            f"expected a column of labels, got {labels!r}; the file has, beside texts and ids, "
            f"{', '.join(columns) or 'no other columns'}"
        )
    values = corpus.metadata.iloc[:, columns.index(labels)]
    return Labels(
        [
            None if lacks else _label(value)
            for value, lacks in zip(values, values.isna(), strict=True)
        ]
    )


def _label(value: Any) -> str | None:
    """Return a label as text; None where it says that there is none."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # a column of integers with gaps is read as one of floats
    # Of numbers, -1 stands for no label, as in Python; with gaps, pandas writes -1.0 to a file.
    return None if str(value) in ("-1", "-1.0") else str(value)


def run_topics(
    corpus: Corpus,
    *,
    out: Path,
    encoder: str | None,
    replicates: int,
    cache: bool = True,
    **parameters: Any,
) -> None:
    """Print the estimate, find the topics, print them, write the folder, say what is next.

    `parameters` are those of the topic model.
    """
    from embedtopics.cli.display import (
        make_console,
        print_inspection,
        print_topics,
        printable,
        spell_seconds,
    )
    from embedtopics.cli.results_folder import CONTENT, check_results_folder, write_results_folder
    from embedtopics.corpus import require_text
    from embedtopics.encoders import resolve_encoder
    from embedtopics.topics import TopicModel, inspect_corpus, with_stability
    from embedtopics.topics.model import DEFAULT_ENCODER

    console = make_console()
    check_results_folder(out)
    require_text(corpus)
    begin = time.perf_counter()
    loaded = resolve_encoder(encoder or DEFAULT_ENCODER, cached=cache)
    print_inspection(make_console(stderr=True), inspect_corpus(corpus, loaded))
    result = TopicModel(loaded, **parameters).fit(corpus).result_
    if replicates and result.topics:
        result = with_stability(result, replicates)
    # Written before anything is printed: a closed pipe must not cost the results.
    write_results_folder(result, out, title=f"Topics of {corpus.source}")
    console.print()
    print_topics(console, result, names=True)
    for decision in result.decisions:
        # What became of what was asked for: names, labels, a number of topics.
        if decision.stage == "clustering" and decision.name not in ("no_subject", "outside"):
            console.print(f"note: {printable(decision.message)}", style="yellow", soft_wrap=True)
    console.print(
        f"\n{result.n_topics} topics cover {result.coverage:.0%} of the texts; "
        f"{spell_seconds(time.perf_counter() - begin)} in all."
    )
    console.print(f"\nwritten to {out}:")
    for name, meaning in CONTENT.items():
        console.print(f"  {name:<18} {meaning}", soft_wrap=True)
    console.print(f"\nnext: open {out / 'report.html'} in a browser; in Python:", soft_wrap=True)
    console.print(f'  model = embedtopics.TopicModel.load("{out / "model"}")', soft_wrap=True)
    console.print('  model.predict(["a new text"])')
