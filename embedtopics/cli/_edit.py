"""Commands on a folder of results: ``edit``, ``label``, ``export``, ``add`` and ``name``."""

from __future__ import annotations

import sys
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
    from collections.abc import Sequence

    from rich.console import Console

    from embedtopics.topics.naming._questions import Question
    from embedtopics.topics.results import TopicResult


def edit(
    results: opt.ResultsFolder,
    merge: Annotated[
        list[str] | None, typer.Option(help="Topics to make one, such as 3,5 (repeatable).")
    ] = None,
    split: Annotated[
        list[str] | None,
        typer.Option(help="Topic to split, such as 6, or 6=3 into three (repeatable)."),
    ] = None,
    remove: Annotated[
        list[str] | None, typer.Option(help="Topics to remove, such as 2,9 (repeatable).")
    ] = None,
    rename: Annotated[
        list[str] | None, typer.Option(help='Name to give, such as "4=Elections" (repeatable).')
    ] = None,
    reduce: Annotated[
        int | None, typer.Option(help="Merge the nearest until so many are left.")
    ] = None,
    reassign: Annotated[
        str | None, typer.Option(help="Let texts in no topic join one: graph, terms or embeddings.")
    ] = None,
    threshold: Annotated[
        float | None, typer.Option(help="How near a text must be to join, 0 to 1.")
    ] = None,
    stop_word: Annotated[
        list[str] | None, typer.Option(help="Word that no term may begin or end with (repeatable).")
    ] = None,
    out: opt.OutFolder = None,
) -> None:
    """Edit topics, in this order: merge, split, remove, rename, reduce, reassign, stop words.

    Ids are those of RESULTS as it is now, whatever steps come before.
    """
    from embedtopics import topics

    console = make_console()
    target = results if out is None else out
    before = read_results_folder(results)
    check_results_folder(target)
    steps = _Steps(before)
    if merge:
        steps.do(topics.merge, [_ids(group, "--merge") for group in merge])
    for wanted in split or ():
        topic, n_parts = _parts(wanted)
        steps.do(topics.split, steps.now(topic), n_parts)
        part = steps.ids[topic]
        steps.forget([old for old, new in steps.ids.items() if new == part], "split")
    unwanted = [topic for group in remove or () for topic in _ids(group, "--remove")]
    if unwanted:
        steps.do(topics.remove, [steps.now(topic) for topic in unwanted])
        steps.forget([old for old, new in steps.ids.items() if new < 0], "removed")
    if rename:
        given = dict(_name(wanted) for wanted in rename)
        names = {steps.now(topic): name for topic, name in given.items()}
        if len(names) < len(rename):
            raise InputError("a topic was given two names; give one with --rename")
        steps.do(topics.rename, names)
    if threshold is not None and reassign is None:
        raise InputError("--threshold goes with --reassign; give both")
    if reduce is not None:
        steps.do(topics.reduce, reduce)
    if reassign is not None:
        steps.do(topics.reassign, reassign, threshold=threshold)
    if stop_word:
        steps.do(topics.update_terms, extra_stop_words=stop_word)
    after = steps.result
    if len(after.history) == len(before.history):
        raise InputError("nothing to do; give --merge, --rename, or another option (see --help)")
    write_results_folder(after, target)
    print_topics(console, after, names=True)
    typer.echo()
    for done in after.history[len(before.history) :]:
        typer.echo(printable(done.message))
    typer.echo(f"\n{after.n_topics} topics, {after.coverage:.0%} of the texts; written to "
                  f"{target}; the ids are other ones now")  # fmt: skip


class _Steps:
    """Edits of one command, each topic followed by the id that it had before all of them."""

    def __init__(self, result: TopicResult) -> None:
        self.first = self.result = result
        self.ids = {topic: topic for topic in range(result.n_topics)}
        self.gone: dict[int, str] = {}

    def now(self, topic: int) -> int:
        """Return the id that a topic has by now."""
        from embedtopics.topics._relabel import checked_topic_id

        if topic in self.gone:
            raise InputError(
                f"topic {topic} was {self.gone[topic]} by this same command; look at what came of "
                "it, and edit that with another command"
            )
        # Not by the edit: a split may have made a topic of an id that was none before.
        return self.ids[checked_topic_id(self.first, topic)]

    def do(self, edit: Callable[..., TopicResult], *args: Any, **options: Any) -> None:
        """Edit the result, and follow the topics."""
        self.result = edit(self.result, *args, **options)
        new_ids: Any = self.result.history[-1].new_ids
        self.ids = {old: new_ids[now] for old, now in self.ids.items()}

    def forget(self, topics: list[int], why: str) -> None:
        """Leave out topics that this command may not edit again."""
        for topic in topics:
            self.gone[topic] = why
            del self.ids[topic]


def _ids(text: str, option: str) -> list[int]:
    """Return ids that are parted by commas."""
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise InputError(
            f"{option} takes ids parted by commas, such as 3,5; got {text!r}"
        ) from None


def _parts(text: str) -> tuple[int, int | str]:
    """Return of ``6`` or ``6=3`` the topic and the number of its parts."""
    topic, _, n_topics = text.partition("=")
    try:
        return int(topic), int(n_topics) if n_topics.strip().isdecimal() else n_topics or "auto"
    except ValueError:
        raise InputError(
            f"--split takes an id, such as 6, or 6=3 for three parts; got {text!r}"
        ) from None


def _name(text: str) -> tuple[int, str]:
    """Return of ``4=Elections`` the topic and its name."""
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
        typer.Option(help="Table of topics and labels; RESULTS/labels.csv if left out."),
    ] = None,
    out: opt.OutFolder = None,
) -> None:
    """Give topics the names that were written into labels.csv."""
    from embedtopics._utils.folders import changed_files
    from embedtopics.topics.editing._labels import read_labels, rename

    console = make_console()
    result = read_results_folder(results)
    target = results if out is None else out
    own = results / LABELS
    file = own if labels is None else labels
    # Of the file that is read nothing is lost; another that was edited must not be overwritten.
    check_results_folder(target, reads_labels=labels is None and out is None)
    names = read_labels(file, result)
    # What else was written there is taken over too, or the folder could not be edited again.
    was_edited = labels is None and out is None and LABELS in changed_files(results)
    same = f"no name in {printable(str(file))} differs"
    if not names and not was_edited:
        typer.echo(f"{same}; nothing was written")
        return
    if names:
        result = rename(result, names)
    content = own.read_bytes() if labels is None else None
    write_results_folder(result, target, labels=content)
    if not names:
        typer.echo(f"{same}; the file was taken over")
        return
    print_topics(console, result, names=True)
    typer.echo(f"\n{len(names)} names given; written to {target}")
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
            help="topics, documents, terms, decisions, history or settings (repeatable); "
            "documents for a file that holds one table, else all."
        ),
    ] = None,
    format: Annotated[str, typer.Option(help="Of a folder: csv, tsv, parquet or jsonl.")] = "csv",
) -> None:
    """Write the tables of a result for a spreadsheet or another program."""
    from embedtopics.topics.reading._export import export

    console = make_console()
    done = export(open_result(results), out, what=what or None, format=format)
    for path in done.paths:
        typer.echo(f"written: {path}")
    print_notes(console, (note.message for note in done.notes))


def add(
    results: opt.ResultsFolder,
    file: opt.DocumentsFile,
    text: Annotated[
        str | None, typer.Option(help="Column of texts; if left out that of RESULTS, or guessed.")
    ] = None,
    id: opt.IdColumn = None,
    time: opt.TimeColumn = None,
    group: opt.GroupColumn = None,
    adopt: Annotated[
        bool, typer.Option("--adopt", help="Make topics of the groups that belong to none.")
    ] = False,
    keep_terms: Annotated[
        bool, typer.Option("--keep-terms", help="Keep keywords and names as they are.")
    ] = False,
    encoder: Annotated[
        str | None, typer.Option(help="The encoder of the fit; known to most RESULTS.")
    ] = None,
    encoding: opt.FileEncoding = "utf-8",
    out: opt.OutFolder = None,
) -> None:
    """Add documents to topics, which keep their numbers; say what no topic holds."""
    from embedtopics.corpus._corpus import Corpus
    from embedtopics.topics.growing._extend import extend
    from embedtopics.topics.growing._novelty import adopt as adopted

    console = make_console()
    target = results if out is None else out
    before = read_results_folder(results)
    check_results_folder(target)
    known = before.corpus
    first = Corpus.from_file(file, text=text, encoding=encoding, limit=1)
    columns = {first.text_column, *first.metadata.columns}
    roles = {"text": text, "time": time, "group": group}
    # What has a meaning in the results has it in the new rows, where they have such a column.
    for role, given in roles.items():
        name = getattr(known, f"{role}_column")
        if given is None and name in columns:
            roles[role] = name
    columns_of = (roles["text"], id, roles["time"], roles["group"])
    added = Corpus.from_file(file, *columns_of, encoding=encoding)
    extension = extend(before, added, encoder=encoder, update_terms=not keep_terms)
    result = adopted(extension) if adopt else extension.result
    write_results_folder(result, target)
    print_topics(console, result, names=True)
    typer.echo(f"\n{printable(str(extension))}")
    if extension.is_alarming:
        typer.echo("That is more than chance explains: the topics no longer hold all that the "
                      "texts are about.")  # fmt: skip
    for one in extension.candidates:
        terms = ", ".join(one.keywords[:6])
        near = f", nearest to topic {one.nearest_topic}" if one.nearest_topic >= 0 else ""
        typer.echo(f"  {one.size:,} texts: {printable(terms)}{near}")
    if extension.candidates and not adopt:
        typer.echo("--adopt makes topics of these groups.")
    typer.echo(f"\nwritten to {printable(str(target))}")


def name(
    results: opt.ResultsFolder,
    endpoint: Annotated[
        str, typer.Option(help="Of a chat API, such as http://localhost:11434/v1.")
    ],
    model: Annotated[str, typer.Option(help="Name of the model there.")],
    topic: Annotated[
        list[int] | None,
        typer.Option(help="Topic to name (repeatable); all without a given name if left out."),
    ] = None,
    documents: Annotated[
        int, typer.Option(min=0, help="Documents of a topic that are sent; 0 for none.")
    ] = 4,
    characters: Annotated[int, typer.Option(min=1, help="Length at which they are cut.")] = 500,
    terms: Annotated[int, typer.Option(min=1, help="Terms of a topic that are sent.")] = 10,
    record: Annotated[
        Path,
        typer.Option(help="File to which every call is added; what it answers is not asked again."),
    ] = Path("names.jsonl"),
    timeout: Annotated[float, typer.Option(help="Seconds to wait for an answer.")] = 30.0,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would be sent, and send nothing.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Send without asking.")] = False,
) -> None:
    """Let a language model name the topics; parts of documents are sent to it.

    The key is read from OPENAI_API_KEY.
    """
    from embedtopics.topics.naming._chat import open_endpoint
    from embedtopics.topics.naming._name_topics import name_topics
    from embedtopics.topics.naming._questions import naming_questions

    if not dry_run:
        check_results_folder(results)
        if record.resolve().is_relative_to(results.resolve()):
            raise InputError(
                f"the record {record} lies in {results}, which is written anew, and would be lost; "
                "name a file elsewhere with --record"
            )
    result = open_result(results) if dry_run else read_results_folder(results)
    open_endpoint(endpoint)
    questions = naming_questions(
        result, topics=topic or None, n_terms=terms, n_documents=documents, n_characters=characters
    )
    plan = _plan(questions, endpoint, model)
    console = make_console()
    if dry_run:
        _print_prompts(console, questions)
        typer.echo(f"{plan}; nothing was sent", err=True)
        return
    if not questions:
        typer.echo("every topic has a given name; name some with --topic", err=True)
        return
    typer.echo(f"to be sent: {plan}", err=True)
    if not yes and not sys.stdin.isatty():
        raise InputError("expected leave to send parts of documents; add --yes, or --dry-run")
    if not yes:
        typer.confirm("Send them?", abort=True, err=True)
    request = {"timeout": timeout}
    named = name_topics(
        result, endpoint, model, questions=questions, request=request, record=record
    )
    # Written before anything is printed: a closed pipe must not cost the names.
    write_results_folder(named, results)
    for question in questions:
        made = named.topics[question.topic_id]
        mark = "" if made.is_named else "  (automatic)"
        typer.echo(f"{made.topic_id:>4}  {printable(made.label)}{mark}")
    for decision in named.decisions[len(result.decisions) :]:
        typer.echo(f"note: {printable(decision.message)}", err=True)


def _plan(questions: Sequence[Question], endpoint: str, model: str) -> str:
    """Say what is sent where."""
    n_documents, n_characters, n_tokens = (
        sum(getattr(question, name) for question in questions)
        for name in ("n_documents", "n_characters", "n_tokens")
    )
    return (
        f"{len(questions)} prompts with parts of {n_documents:,} documents, {n_characters:,} "
        f"characters in all, about {n_tokens:,} tokens, for {model} at {endpoint}"
    )


def _print_prompts(console: Console, questions: Sequence[Question]) -> None:
    """Print every message, as it would be sent but for control characters."""
    for question in questions:
        console.print(f"--- topic {question.topic_id}")
        for message in question.messages:
            console.print(f"[{message['role']}]")
            for line in message["content"].splitlines():
                typer.echo(printable(line))
