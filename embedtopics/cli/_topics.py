"""``embedtopics topics``: from a file of documents to a folder of results, or from that on."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from embedtopics.cli._display import (
    CONTENT,
    check_results_folder,
    guarded,
    is_results_folder,
    make_console,
    print_inspection,
    print_notes,
    print_topics,
    read_results_folder,
    spell_seconds,
    write_results_folder,
)
from embedtopics.cli._options import (
    EncoderName,
    FileEncoding,
    GroupColumn,
    IdColumn,
    Languages,
    RandomState,
    RowLimit,
    TextColumn,
    TimeColumn,
)
from embedtopics.errors import InputError

if TYPE_CHECKING:
    from embedtopics.corpus._corpus import Corpus
    from embedtopics.topics.constraints._protocol import Constraint


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
    text: TextColumn = None,
    id: IdColumn = None,
    time: TimeColumn = None,
    group: GroupColumn = None,
    encoder: EncoderName = None,
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
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="With --resolution, replace edits made by hand.")
    ] = False,
    replicates: Annotated[
        int, typer.Option(min=0, help="Replicates that tell how stable each topic is; 0 for none.")
    ] = 20,
    language: Languages = None,
    encoding: FileEncoding = "utf-8",
    limit: RowLimit = None,
    random_state: RandomState = 42,
    cache: Annotated[bool, typer.Option(help="Keep vectors on disk, and look there first.")] = True,
) -> None:
    """Find the topics of a file of documents, or read results coarser or finer."""
    from embedtopics.corpus._corpus import Corpus

    given = {
        name
        for name in context.params
        if getattr(context.get_parameter_source(name), "name", "") == "COMMANDLINE"
    }
    if is_results_folder(file):
        reread(
            file,
            _checked_resolution(file, resolution, given),
            out=out,
            coverage=_share(coverage) if "coverage" in given else None,
            replicates=replicates if "replicates" in given else None,
            overwrite=overwrite,
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
        constraints=_constraints(corpus, names, labels),
        languages=language or "auto",
        random_state=random_state,
    )


def _checked_resolution(folder: Path, resolution: str | None, given: set[str]) -> str:
    """Return the resolution, after making sure that no option is given that would be ignored."""
    if resolution is None:
        raise InputError(
            f"{folder} holds results; say with --resolution how fine they are to be read, or name "
            "a file of documents"
        )
    ignored = sorted(given - {"file", "out", "resolution", "coverage", "replicates", "overwrite"})
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


def _constraints(corpus: Corpus, names: str | None, labels: str | None) -> Constraint | None:
    """Return what is known of the topics beforehand."""
    from embedtopics.topics.constraints._labels import PartialLabels
    from embedtopics.topics.constraints._words import ZeroShot

    if names is not None and labels is not None:
        raise InputError("--names and --labels both constrain the topics; give one")
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
    return PartialLabels(
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
    from embedtopics.corpus._corpus import require_text
    from embedtopics.encoders._registry import resolve_encoder
    from embedtopics.topics._inspection import inspect_corpus
    from embedtopics.topics._model import DEFAULT_ENCODER, TopicModel
    from embedtopics.topics._stability import with_stability

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
    # What became of what was asked for: names, labels, a number of topics.
    asked = [d for d in result.decisions if d.stage == "clustering"]
    print_notes(console, (d.message for d in asked if d.name not in ("no_subject", "outside")))
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


# ``embedtopics topics RESULTS --resolution``: the topics of a folder, coarser or finer.


def reread(
    results: Path,
    resolution: str,
    *,
    out: Path | None,
    coverage: float | str | None,
    replicates: int | None,
    overwrite: bool = False,
) -> None:
    """Read results at another resolution, print the topics, and write the folder."""
    from embedtopics.topics._resolution import at_resolution
    from embedtopics.topics._stability import with_stability

    console = make_console()
    target = results if out is None else out
    before = read_results_folder(results)
    stays = {"at_resolution", "update_terms"}  # how terms are chosen is kept
    by_hand = list(dict.fromkeys(e.name for e in before.history if e.name not in stays))
    if by_hand and target == results and not overwrite:
        raise InputError(
            f"{results} was edited by hand, and reading it anew would replace that; name another "
            "folder with --out, or add --overwrite"
        )
    check_results_folder(target)
    wanted = int(resolution) if resolution.isdecimal() else resolution
    if wanted not in ("auto", "fine", "coarse") and not isinstance(wanted, int):
        raise InputError(f"--resolution must be auto, fine, coarse or a number; got {resolution!r}")
    after = at_resolution(before, wanted, coverage=coverage)
    if replicates is None:
        replicates = 0 if before.stability is None else before.stability.n_replicates
    if replicates and after.topics:
        after = with_stability(after, replicates)
    write_results_folder(after, target)
    print_topics(console, after, names=True)
    if by_hand:
        console.print(
            f"\nnote: what was done by hand before ({', '.join(by_hand)}) was done to other "
            "topics; these are as the hierarchy has them, with names made of their terms",
            style="yellow",
        )
    console.print(f"\n{after.n_topics} topics cover {after.coverage:.0%} of the texts; written to "
                  f"{target}", soft_wrap=True)  # fmt: skip


# ``embedtopics demo``: the main job on the bundled corpus.


@guarded
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the results.")] = Path("demo-results"),
    random_state: RandomState = 42,
) -> None:
    """Find the topics of the bundled corpus: 631 short texts, English and French."""
    from embedtopics.corpus._corpus import Corpus
    from embedtopics.corpus._readers import demo_path

    corpus = Corpus.from_file(demo_path(), text="text", id="id", time="date", group="source")
    run_topics(corpus, out=out, encoder=None, replicates=20, random_state=random_state)
