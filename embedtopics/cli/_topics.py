"""From documents to a folder of results: ``demo``, ``inspect``, ``topics`` and ``recluster``."""

from __future__ import annotations

import shlex
import time
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer import Argument, Option

from embedtopics.cli import _display as show
from embedtopics.cli import _options as opt
from embedtopics.errors import InputError

if TYPE_CHECKING:
    from embedtopics.corpus._corpus import Corpus
    from embedtopics.encoders._contract import BaseEncoder
    from embedtopics.topics._model import TopicModel


def topics(
    file: opt.DocumentsFile,
    out: Annotated[Path, Option(help="Folder for the results.")],
    text: opt.TextColumn = None,
    id: opt.IdColumn = None,
    time: opt.TimeColumn = None,
    group: opt.GroupColumn = None,
    encoder: opt.EncoderName = None,
    n_topics: Annotated[str, Option(help="auto, fine, coarse or a number.")] = "auto",
    n_replicates: Annotated[int, Option(min=0, help="Replicates that measure stability.")] = 20,
    sample: Annotated[
        int | None, Option(min=2, help="Fit a sample, without replicates; assign the other texts.")
    ] = None,
    distill: Annotated[
        int | None,
        Option(min=50, help="Encode by static vectors distilled from N texts: less exact."),
    ] = None,
    passages: Annotated[bool, Option("--passages", help="Fit passages of texts.")] = False,
    words: opt.Words = "auto",
    stop_words: Annotated[str, Option(help="More words to leave out, with commas.")] = "",
    seed_words: Annotated[
        list[str] | None, Option(help='Topic to find: "migration: border, asylum" (repeatable).')
    ] = None,
    encoding: opt.FileEncoding = "utf-8",
    random_state: opt.RandomState = 0,
) -> None:
    """Find the topics of a file of documents."""
    from embedtopics.corpus._corpus import Corpus
    from embedtopics.topics import SeedWords
    from embedtopics.topics._clusters import Resolution
    from embedtopics.topics._model import TopicModel

    if show.is_results_folder(file):
        remedy = "change the number of topics with embedtopics recluster"
        raise InputError(f"{file} holds results; {remedy}, or name a file of documents")
    number = int(n_topics) if n_topics.isdecimal() else n_topics
    Resolution(number)  # a wrong one ends the command here
    pairs = [entry.partition(":") for entry in seed_words or ()]
    seeds = {name.strip(): opt.names_in(listed) for name, _, listed in pairs}
    corpus = Corpus(file, text=text, id=id, time=time, group=group, encoding=encoding)
    corpus = corpus.passages() if passages else corpus
    model = TopicModel(
        n_topics=number,
        words=words.replace(" ", "").split(","),
        stop_words=["auto", *opt.names_in(stop_words)],
        constraints=SeedWords(seeds) if seeds else None,
        random_state=random_state,
    )
    _find_topics(corpus, model, out, encoder, n_replicates, sample, distill)


def _find_topics(
    corpus: Corpus,
    model: TopicModel,
    out: Path,
    encoder: str | None = None,
    n_replicates: int = 20,
    sample: int | None = None,
    distill: int | None = None,
) -> None:
    """Print the estimate, find the topics, write the folder, and print the topics."""
    from embedtopics.corpus._corpus import require_text
    from embedtopics.encoders._registry import resolve_encoder
    from embedtopics.topics import inspect, with_stability
    from embedtopics.topics._model import DEFAULT_ENCODER
    from embedtopics.topics.growing._sample import fit_sample

    show.check_results_folder(out)
    require_text(corpus)
    begin = time.perf_counter()
    name = encoder or DEFAULT_ENCODER
    loaded = resolve_encoder(name, cached=True)
    show.print_inspection(corpus, inspect(corpus, loaded), stderr=True)
    if distill is not None:
        # By default a teacher computes in float32, which takes twice as long.
        precision = loaded.transformer.precision if loaded.transformer else None
        teacher = resolve_encoder(name, cached=True, precision=precision)
        loaded = _student_of(corpus, distill, teacher, out.with_name(f"{out.name}-encoder"))
    model.set_params(encoder=loaded)
    rows = None
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The encoder ")  # the inspection printed these
        if sample is None:
            result = model.fit(corpus).result_
        else:
            assignment = fit_sample(model, corpus, sample)
            result, rows = assignment.result, assignment.to_frame()
    if n_replicates and result.topics and rows is None:
        result = with_stability(result, n_replicates)
    show.write_results_folder(result, out, title=f"Topics of {corpus.source}", rows=rows)
    typer.echo()
    show.print_topics(result)
    # How a number of topics was met.
    met = [d for d in result.decisions if d.stage == "clustering"]
    show.print_notes(d.message for d in met if d.name not in ("uninformative", "outside"))
    show.say(
        f"\n{result.n_topics} topics cover {result.coverage:.0%} of the texts; "
        f"{show.spell_seconds(time.perf_counter() - begin)} in all."
    )
    show.print_written(out, show.CONTENT if rows is None else show.CONTENT | show.SAMPLED)
    typer.echo(f"\nnext: open {out / 'report.html'} in a browser; in Python:")
    typer.echo(f'  model = embedtopics.TopicModel.load("{out / "model"}")')
    show.say('  model.predict(["a new text"])')


def _student_of(corpus: Corpus, n: int, teacher: BaseEncoder, folder: Path) -> BaseEncoder:
    """Train a static student on the vectors of some texts; its folder serves new texts."""
    from embedtopics.encoders import StaticEncoder
    from embedtopics.training import distill

    rows = corpus.distinct().first_rows[:n].tolist()  # ordered by content hash: a fair sample
    distill(teacher, [corpus.texts[row] for row in rows], method="texts").save(folder)
    typer.echo(f"new texts need the encoder in {folder}", err=True)
    return StaticEncoder(folder)


def recluster(
    results: opt.ResultsFolder,
    n_topics: Annotated[str, Argument(help="auto, fine, coarse or a number of topics.")],
    overwrite: Annotated[bool, Option("--overwrite", help="Replace edits made by hand.")] = False,
    out: opt.OutFolder = None,
) -> None:
    """Change the number of topics of a results folder, without a new fit."""
    from embedtopics import topics

    target = results if out is None else out
    before = show.read_results_folder(results)
    permanent = {"recluster", "update_terms"}  # settings of terms outlive a resolution
    edits = list(dict.fromkeys(e.name for e in before.history if e.name not in permanent))
    if edits and target == results and not overwrite:
        raise InputError(
            f"{results} was edited by hand, and another number of topics would replace these "
            "edits; name another folder with --out, or add --overwrite"
        )
    show.check_results_folder(target)
    after = topics.recluster(before, int(n_topics) if n_topics.isdecimal() else n_topics)
    if before.stability is not None and after.topics:
        after = topics.with_stability(after, before.stability.n_replicates)
    show.write_results_folder(after, target)
    show.print_topics(after)
    if edits:
        show.say(
            f"\nnote: these topics do not have the earlier edits ({', '.join(edits)}); their "
            "names are made from their terms",
            style="yellow",
        )
    covered = f"{after.n_topics} topics cover {after.coverage:.0%} of the texts"
    typer.echo(f"\n{covered}; written to {target}")


def demo(
    out: Annotated[Path, Option(help="Folder for the results.")] = Path("demo-results"),
    language: Annotated[Literal["en", "fr", "all"], Option(help="Of the texts.")] = "en",
) -> None:
    """Find the topics of the bundled corpus: short texts in English, French or both."""
    from embedtopics._utils.folders import demo_path
    from embedtopics.corpus._corpus import Corpus
    from embedtopics.topics._model import TopicModel

    corpus = Corpus(demo_path(), text="text", id="id", time="date", group="source")
    if language != "all":
        corpus = corpus[corpus.metadata["language"] == language]
    _find_topics(corpus, TopicModel(), out, None if language == "en" else "auto")


def inspect(
    file: opt.DocumentsFile,
    text: opt.TextColumn = None,
    encoder: opt.EncoderName = None,
    encoding: opt.FileEncoding = "utf-8",
    sample: Annotated[int | None, Option(min=2, help="Also map a sample of this size.")] = None,
) -> None:
    """Inspect a file: columns, languages, truncated texts, and the time that a fit would take."""
    from embedtopics.corpus._corpus import Corpus, require_text
    from embedtopics.encoders._base import MULTILINGUAL
    from embedtopics.encoders._registry import resolve_encoder
    from embedtopics.topics import inspect
    from embedtopics.topics._inspection import guess_columns
    from embedtopics.topics._model import DEFAULT_ENCODER

    page = None
    if sample is not None:
        page = Path(f"{file.name.split('.')[0] or 'sample'}-sample.html")
        show.check_target(page, show.PAGE)
    corpus = Corpus(file, text=text, encoding=encoding)
    guessed: dict[str, Any] = {"text": corpus.text_column, **guess_columns(corpus.metadata)}
    if any(guessed.values()):
        typer.echo(f"columns found: {_as_options(guessed)}")
    require_text(corpus)
    loaded = resolve_encoder(encoder or DEFAULT_ENCODER, cached=True)
    inspection = inspect(corpus, loaded)
    show.print_inspection(corpus, inspection)
    if page is not None and sample is not None:
        _map_sample(corpus, loaded, sample, page)
    guessed["encoder"] = MULTILINGUAL if inspection.warnings else encoder
    guessed["encoding"] = None if encoding == "utf-8" else encoding
    name = shlex.quote(show.printable(str(file))) + " --passages" * inspection.is_long
    typer.echo(f"\nnext: embedtopics topics {name} {_as_options(guessed)} --out results")


def _as_options(values: Mapping[str, str | list[str] | None]) -> str:
    texts = {k: v if isinstance(v, str) else ",".join(v) for k, v in values.items() if v}
    return " ".join(f"--{name} {shlex.quote(show.printable(v))}" for name, v in texts.items())


def _map_sample(corpus: Corpus, encoder: BaseEncoder, size: int, path: Path) -> None:
    """Find the topics of a sample, print them, and write their map."""
    from embedtopics.report._report import write_report
    from embedtopics.topics._model import TopicModel

    rows = corpus.distinct().first_rows[:size]  # ordered by content hash: a fair sample
    model = TopicModel(encoder).fit(corpus.take(sorted(rows.tolist())))
    show.say(f"\ntopics of a sample of {len(rows):,} texts:")
    show.print_topics(model.result_, most=12)
    write_report(model.result_, path, title=f"A sample of {corpus.source}")
    typer.echo(f"\nmap of the sample: {path}")
