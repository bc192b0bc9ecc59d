"""From a file of documents to a folder of results: ``inspect``, ``topics``, ``demo``; ``cache``."""

from __future__ import annotations

import shlex
import time
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from embedtopics.cli._display import (
    CONTENT,
    PAGE,
    SAMPLED,
    check_results_folder,
    check_target,
    is_results_folder,
    make_console,
    print_inspection,
    print_notes,
    print_table,
    print_topics,
    printable,
    read_results_folder,
    spell_seconds,
    write_results_folder,
)
from embedtopics.cli._errors import Commands
from embedtopics.cli._options import (
    DocumentsFile,
    EncoderName,
    FileEncoding,
    GroupColumn,
    IdColumn,
    Languages,
    LongTexts,
    Precision,
    RandomState,
    RowLimit,
    TextColumn,
    TimeColumn,
    Words,
)
from embedtopics.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

    from embedtopics.corpus._corpus import Corpus
    from embedtopics.encoders._contract import BaseEncoder
    from embedtopics.topics.constraints._protocol import Constraint


STUDENT_FROM = 1000
"""Texts of a sample from which on it tells how near a static student comes to the encoder."""


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
    precision: Precision = None,
    long_texts: LongTexts = None,
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
    sample: Annotated[
        int | None,
        typer.Option(min=2, help="Fit so many texts, without replicates; assign the others."),
    ] = None,
    student: Annotated[
        int | None,
        typer.Option(min=50, help="Encode by a static student of so many texts: faster, rougher."),
    ] = None,
    language: Languages = None,
    words: Words = "auto",
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
        ignored = sorted(
            given - {"file", "resolution", "out", "coverage", "replicates", "overwrite"}
        )
        if resolution is None:
            raise InputError(
                f"{file} holds results; say with --resolution how fine they are to be read, or "
                "name a file of documents"
            )
        if ignored:
            name = "topics" if ignored[0] == "n_topics" else ignored[0].replace("_", "-")
            raise InputError(
                f"--{name} is for a file of documents, and {file} holds results; with --resolution "
                "go only --coverage, --replicates and --out"
            )
        _reread(
            file,
            resolution,
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
    _run_topics(
        corpus,
        out=out,
        encoder={"spec": encoder, "cached": cache}
        | {"precision": precision, "long_texts": long_texts},
        replicates=replicates,
        sample=sample,
        student=student,
        n_topics=int(n_topics) if n_topics.isdecimal() else n_topics,
        min_cluster_size=min_topic_size or "auto",
        coverage=_share(coverage),
        constraints=_constraints(corpus, names, labels),
        languages=language or "auto",
        words=words.replace(" ", "").split(","),
        random_state=random_state,
    )


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


def _run_topics(
    corpus: Corpus,
    *,
    out: Path,
    encoder: Mapping[str, Any],
    replicates: int,
    sample: int | None = None,
    student: int | None = None,
    **parameters: Any,
) -> None:
    """Print the estimate, find the topics, print them, write the folder, say what is next."""
    from embedtopics.corpus._corpus import require_text
    from embedtopics.encoders._registry import resolve_encoder
    from embedtopics.topics._inspection import inspect_corpus
    from embedtopics.topics._model import DEFAULT_ENCODER, TopicModel
    from embedtopics.topics._stability import with_stability
    from embedtopics.topics.growing._sample import fit_sample

    console = make_console()
    check_results_folder(out)
    require_text(corpus)
    begin = time.perf_counter()
    wanted = {**encoder, "spec": encoder["spec"] or DEFAULT_ENCODER}
    loaded = resolve_encoder(**wanted)
    print_inspection(make_console(stderr=True), inspect_corpus(corpus, loaded))
    if student is not None:
        # By default a teacher computes in float32, which takes twice as long.
        precision = loaded.transformer.precision if loaded.transformer else None
        teacher = resolve_encoder(**wanted | {"precision": precision})
        loaded = _student_of(corpus, student, teacher, out.with_name(f"{out.name}-encoder"))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The encoder ")  # what was printed already
        model, rows = TopicModel(loaded, **parameters), None
        if sample is None:
            result = model.fit(corpus).result_
        else:
            found = fit_sample(corpus, sample, model=model)
            result, rows = found.result, found.to_frame()
    if replicates and result.topics and rows is None:
        result = with_stability(result, replicates)
    # Written before anything is printed: a closed pipe must not cost the results.
    write_results_folder(result, out, title=f"Topics of {corpus.source}", rows=rows)
    typer.echo()
    print_topics(console, result, names=True)
    # What became of what was asked for: names, labels, a number of topics.
    asked = [d for d in result.decisions if d.stage == "clustering"]
    print_notes(console, (d.message for d in asked if d.name not in ("uninformative", "outside")))
    console.print(
        f"\n{result.n_topics} topics cover {result.coverage:.0%} of the texts; "
        f"{spell_seconds(time.perf_counter() - begin)} in all."
    )
    console.print(f"\nwritten to {out}:")
    for name, meaning in (CONTENT if rows is None else CONTENT | SAMPLED).items():
        typer.echo(f"  {name:<18} {meaning}")
    typer.echo(f"\nnext: open {out / 'report.html'} in a browser; in Python:")
    typer.echo(f'  model = embedtopics.TopicModel.load("{out / "model"}")')
    console.print('  model.predict(["a new text"])')


def _student_of(corpus: Corpus, n: int, teacher: BaseEncoder, folder: Path) -> BaseEncoder:
    """Let a static student learn from the vectors of some texts; it is kept for new ones."""
    from embedtopics.encoders.static._encoder import StaticEncoder
    from embedtopics.training._student import fit_static_student

    rows = corpus.distinct().first_rows[:n]  # ordered by content hash: a fair sample
    texts = [corpus.texts[row] for row in rows.tolist()]
    fit_static_student(teacher, texts, out=folder, overwrite=True)
    typer.echo(f"the encoder, {folder}, is needed for new texts", err=True)
    return StaticEncoder(folder)


def _reread(
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
    typer.echo(f"\n{after.n_topics} topics cover {after.coverage:.0%} of the texts; written to "
                  f"{target}")  # fmt: skip


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the results.")] = Path("demo-results"),
    random_state: RandomState = 42,
) -> None:
    """Find the topics of the bundled corpus: 631 short texts, English and French."""
    from embedtopics.corpus._corpus import Corpus
    from embedtopics.corpus._readers import demo_path

    corpus = Corpus.from_file(demo_path(), text="text", id="id", time="date", group="source")
    default = {"spec": "auto", "cached": True}
    _run_topics(corpus, out=out, encoder=default, replicates=20, random_state=random_state)


def inspect(
    file: DocumentsFile,
    text: TextColumn = None,
    encoder: EncoderName = None,
    precision: Precision = None,
    long_texts: LongTexts = None,
    encoding: FileEncoding = "utf-8",
    limit: RowLimit = None,
    sample: Annotated[
        int | None, typer.Option(min=2, help="Also map a sample of so many texts.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Page for the sample's map; FILE-sample.html if left out.")
    ] = None,
) -> None:
    """Look at a file: columns, languages, what would be cut, and the time a fit would take."""
    from embedtopics.corpus._columns import guess_columns
    from embedtopics.corpus._corpus import Corpus, require_text
    from embedtopics.encoders._registry import resolve_encoder
    from embedtopics.topics._inspection import inspect_corpus
    from embedtopics.topics._model import DEFAULT_ENCODER

    console = make_console()
    page = None
    if sample is not None:
        page = out or Path(f"{file.name.split('.')[0] or 'sample'}-sample.html")
        check_target(page, PAGE)
    corpus = Corpus.from_file(file, text=text, encoding=encoding, limit=limit)
    guessed = {"text": corpus.text_column, **guess_columns(corpus.metadata)}
    found = {
        role: f"--{role} {shlex.quote(printable(name))}"
        for role, name in guessed.items() if name is not None
    }  # fmt: skip
    if found:
        typer.echo(f"columns guessed: {' '.join(found.values())}")
    require_text(corpus)
    loaded = resolve_encoder(
        encoder or DEFAULT_ENCODER, cached=True, precision=precision, long_texts=long_texts
    )
    print_inspection(console, inspect_corpus(corpus, loaded))
    if page is not None and sample is not None:
        _map_sample(console, corpus, loaded, sample, page)
    options = " ".join(option for role, option in found.items() if role != "id")
    name = shlex.quote(printable(str(file)))
    typer.echo(f"\nnext: embedtopics topics {name} {options} --out results")


def _map_sample(
    console: Console, corpus: Corpus, encoder: BaseEncoder, size: int, path: Path
) -> None:
    """Find the topics of a sample, print them, and write their map."""
    from embedtopics.encoders.static._cascade import CascadeEncoder
    from embedtopics.report._report import write_report
    from embedtopics.topics._model import TopicModel

    rows = corpus.distinct().first_rows[:size]  # ordered by content hash: a fair sample
    model = TopicModel(encoder, random_state=42).fit(corpus.take(sorted(rows.tolist())))
    console.print(f"\na first look, at {len(rows):,} texts:")
    print_topics(console, model.result_, most=12)
    write_report(model.result_, path, title=f"A sample of {corpus.source}")
    typer.echo(f"\nmap of the sample: {path}")
    if encoder.transformer and len(rows) >= STUDENT_FROM:
        made = CascadeEncoder(encoder, n_learned=len(rows)).fit(model.result_.corpus.texts)
        print_notes(console, [made.decisions[-1].message], soft_wrap=False)


app = Commands(
    help="Look at the vectors and models kept on disk, or throw them away.", no_args_is_help=True
)


@app.command()
def info() -> None:
    """Say where the cache is, and what it holds."""
    from embedtopics.encoders._cache import cache_entries
    from embedtopics.encoders._folders import default_folder

    entries = cache_entries()
    typer.echo(f"{default_folder()}: {_size(sum(entry.n_bytes for entry in entries))}")
    if entries:
        columns = [(name, "words") for name in ("what", "encoder", "numbers")]
        columns += [(name, "number") for name in ("texts", "size")]
        rows = [
            [one.kind, one.encoder, one.variant,
             "" if one.kind == "model" else f"{one.n_texts:,}", _size(one.n_bytes)]
            for one in entries
        ]  # fmt: skip
        print_table(make_console(), columns, rows)


@app.command()
def clear(yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False) -> None:
    """Throw the cache away; all of it can be made again."""
    from embedtopics.encoders._cache import cache_entries, clear_cache

    total = sum(entry.n_bytes for entry in cache_entries())
    if total and not yes:
        typer.confirm(f"Throw away {_size(total)}?", abort=True, err=True)
    make_console().print(f"{_size(clear_cache())} freed")


def _size(n_bytes: int) -> str:
    return f"{n_bytes / 1e6:,.1f} MB"
