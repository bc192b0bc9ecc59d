"""Commands that change a folder of results: ``edit``, ``label``, ``add``; ``export``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from embedtopics.cli import _options as opt
from embedtopics.cli._display import (
    LABELS,
    check_results_folder,
    make_console,
    open_result,
    print_notes,
    print_topics,
    printable,
    read_results_folder,
    write_results_folder,
)
from embedtopics.errors import InputError

if TYPE_CHECKING:
    from embedtopics.topics.results import TopicResult


def edit(
    results: opt.ResultsFolder,
    merge: Annotated[
        list[str] | None, typer.Option(help="Topics to merge, such as 3,5 (repeatable).")
    ] = None,
    split: Annotated[
        list[str] | None,
        typer.Option(help="Topic to split, such as 6, or 6=3 into three (repeatable)."),
    ] = None,
    remove: Annotated[
        list[str] | None, typer.Option(help="Topics to remove, such as 2,9 (repeatable).")
    ] = None,
    rename: Annotated[
        list[str] | None, typer.Option(help='New name, such as "4=Elections" (repeatable).')
    ] = None,
    reduce: Annotated[
        int | None, typer.Option(help="Merge the nearest topics until this many are left.")
    ] = None,
    reassign: Annotated[
        str | None, typer.Option(help="Assign outliers to topics by: graph, terms or embeddings.")
    ] = None,
    out: opt.OutFolder = None,
) -> None:
    """Edit topics, in this order: merge, split, remove, rename, reduce, reassign.

    Ids are those of RESULTS before the command.
    """
    from embedtopics import topics

    console = make_console()
    target = results if out is None else out
    before = read_results_folder(results)
    check_results_folder(target)
    steps = _EditSteps(before)
    if merge:
        steps.do(topics.merge, [_ids(group, "--merge") for group in merge])
    for text in split or ():
        topic, n_parts = _parts(text)
        steps.do(topics.split, steps.now(topic), n_parts)
        part = steps.ids[topic]
        steps.forget([old for old, new in steps.ids.items() if new == part], "split")
    removed = [topic for group in remove or () for topic in _ids(group, "--remove")]
    if removed:
        steps.do(topics.remove, [steps.now(topic) for topic in removed])
        steps.forget([old for old, new in steps.ids.items() if new < 0], "removed")
    if rename:
        labels = dict(_name(text) for text in rename)
        names = {steps.now(topic): name for topic, name in labels.items()}
        if len(names) < len(rename):
            raise InputError("--rename gives a topic two names; give it one")
        steps.do(topics.rename, names)
    if reduce is not None:
        steps.do(topics.reduce, reduce)
    if reassign is not None:
        steps.do(topics.reassign, reassign)
    after = steps.result
    if len(after.history) == len(before.history):
        raise InputError("no edit was given; add --merge, --rename or another option (see --help)")
    write_results_folder(after, target)
    print_topics(console, after, names=True)
    typer.echo()
    for entry in after.history[len(before.history) :]:
        typer.echo(printable(entry.message))
    typer.echo(f"\n{after.n_topics} topics, {after.coverage:.0%} of the texts; written to "
                  f"{target}; topic ids have changed")  # fmt: skip


class _EditSteps:
    """The edits of one command, and the current id of each topic by its id before the command."""

    def __init__(self, result: TopicResult) -> None:
        self.first = self.result = result
        self.ids = {topic: topic for topic in range(result.n_topics)}
        self.gone: dict[int, str] = {}

    def now(self, topic: int) -> int:
        """Return the current id of a topic."""
        from embedtopics.topics._relabel import checked_topic_id

        if topic in self.gone:
            raise InputError(
                f"topic {topic} was {self.gone[topic]} by this command; edit the new topics with "
                "another command"
            )
        # Checked against the first result: a split may have made new ids since.
        return self.ids[checked_topic_id(self.first, topic)]

    def do(self, edit: Callable[..., TopicResult], *args: Any, **options: Any) -> None:
        """Edit the result and update the ids."""
        self.result = edit(self.result, *args, **options)
        new_ids: Any = self.result.history[-1].new_ids
        self.ids = {old: new_ids[now] for old, now in self.ids.items()}

    def forget(self, topics: list[int], why: str) -> None:
        """Mark topics that this command may not edit again."""
        for topic in topics:
            self.gone[topic] = why
            del self.ids[topic]


def _ids(text: str, option: str) -> list[int]:
    """Return the ids in a list with commas."""
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise InputError(f"{option} takes ids with commas, such as 3,5; got {text!r}") from None


def _parts(text: str) -> tuple[int, int | str]:
    """Return the topic and the number of parts in ``6`` or ``6=3``."""
    topic, _, n_topics = text.partition("=")
    try:
        return int(topic), int(n_topics) if n_topics.strip().isdecimal() else n_topics or "auto"
    except ValueError:
        raise InputError(
            f"--split takes an id, such as 6, or 6=3 for three parts; got {text!r}"
        ) from None


def _name(text: str) -> tuple[int, str]:
    """Return the topic and the name in ``4=Elections``."""
    topic, equals, label = text.partition("=")
    try:
        number = int(topic)
    except ValueError:
        equals = ""
    if not equals:
        raise InputError(f'--rename takes an id and a name, such as "4=Elections"; got {text!r}')
    return number, label


def label(
    results: opt.ResultsFolder,
    labels: Annotated[
        Path | None,
        typer.Option(help="Table of topics and labels; default: RESULTS/labels.csv."),
    ] = None,
    out: opt.OutFolder = None,
) -> None:
    """Rename topics as edited in labels.csv."""
    from embedtopics._utils.folders import changed_files
    from embedtopics.topics.editing._labels import read_labels, rename

    console = make_console()
    result = read_results_folder(results)
    target = results if out is None else out
    table = results / LABELS
    file = table if labels is None else labels
    # A labels.csv with edits that this command does not read must not be overwritten.
    check_results_folder(target, reads_labels=labels is None and out is None)
    names = read_labels(file, result)
    # Other edits of the file are kept, or the folder would count as edited forever.
    was_edited = labels is None and out is None and LABELS in changed_files(results)
    same = f"no name in {printable(str(file))} differs"
    if not names and not was_edited:
        typer.echo(f"{same}; nothing was written")
        return
    if names:
        result = rename(result, names)
    content = table.read_bytes() if labels is None else None
    write_results_folder(result, target, labels=content)
    if not names:
        typer.echo(f"{same}; the file was kept as it is")
        return
    print_topics(console, result, names=True)
    typer.echo(f"\n{len(names)} topics renamed; written to {target}")
    typer.echo(f"next: open {target / 'report.html'} in a browser")


def export(
    results: opt.ResultsFolder,
    out: Annotated[
        Path,
        typer.Option(help="NAME.xlsx, .csv, .tsv, .parquet or .jsonl; or a folder for all tables."),
    ],
    what: Annotated[
        list[str] | None,
        typer.Option(
            help="topics, documents, terms, decisions, history or settings (repeatable); default: "
            "all, or documents if the file holds one table."
        ),
    ] = None,
) -> None:
    """Export the tables of a result."""
    from embedtopics.topics.reading._export import export

    console = make_console()
    exported = export(open_result(results), out, what=what or None)
    for path in exported.paths:
        typer.echo(f"written: {path}")
    print_notes(console, (note.message for note in exported.notes))


def add(
    results: opt.ResultsFolder,
    file: opt.DocumentsFile,
    text: Annotated[
        str | None, typer.Option(help="Column of texts; default: that of RESULTS.")
    ] = None,
    id: opt.IdColumn = None,
    time: opt.TimeColumn = None,
    group: opt.GroupColumn = None,
    adopt: Annotated[
        bool, typer.Option("--adopt", help="Make new topics of groups of outliers.")
    ] = False,
    keep_terms: Annotated[
        bool, typer.Option("--keep-terms", help="Keep the terms and names of the topics.")
    ] = False,
    encoder: Annotated[
        str | None, typer.Option(help="Encoder of the fit, if RESULTS cannot load it by name.")
    ] = None,
    encoding: opt.FileEncoding = "utf-8",
    out: opt.OutFolder = None,
) -> None:
    """Add documents to a results folder, assign them to its topics, and report new themes."""
    from embedtopics.corpus._corpus import Corpus
    from embedtopics.topics.growing._extend import extend
    from embedtopics.topics.growing._novelty import adopt as adopted

    console = make_console()
    target = results if out is None else out
    before = read_results_folder(results)
    check_results_folder(target)
    first = Corpus.from_file(file, text=text, encoding=encoding, limit=1)
    columns = {first.text_column, *first.metadata.columns}
    roles = {"text": text, "time": time, "group": group}
    # Columns keep the role that they have in the results.
    for role, column in roles.items():
        name = getattr(before.corpus, f"{role}_column")
        if column is None and name in columns:
            roles[role] = name
    columns_of = (roles["text"], id, roles["time"], roles["group"])
    added = Corpus.from_file(file, *columns_of, encoding=encoding)
    extension = extend(before, added, encoder=encoder, update_terms=not keep_terms)
    result = adopted(extension) if adopt else extension.result
    write_results_folder(result, target)
    print_topics(console, result, names=True)
    typer.echo(f"\n{printable(str(extension))}")
    if extension.is_alarming:
        typer.echo("This is more than chance explains: the topics no longer cover all themes.")
    for theme in extension.candidates:
        terms = ", ".join(theme.keywords[:6])
        near = f", nearest to topic {theme.nearest_topic}" if theme.nearest_topic >= 0 else ""
        typer.echo(f"  {theme.size:,} texts: {printable(terms)}{near}")
    if extension.candidates and not adopt:
        typer.echo("next: --adopt makes topics of these groups")
    typer.echo(f"\nwritten to {printable(str(target))}")
