"""``embedtopics edit``: topics merged, split, removed, named, and their terms chosen anew."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from embedtopics.cli._display import (
    LABELS,
    check_results_folder,
    guarded,
    make_console,
    print_topics,
    printable,
    read_results_folder,
    write_results_folder,
)
from embedtopics.cli._options import OutFolder, ResultsFolder
from embedtopics.errors import InputError

if TYPE_CHECKING:
    from embedtopics.topics.results import TopicResult


@guarded
def edit(
    results: ResultsFolder,
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
        str | None,
        typer.Option(help="Let texts in no topic join one: graph, terms or embeddings."),
    ] = None,
    threshold: Annotated[
        float | None, typer.Option(help="How near a text must be to join, 0 to 1.")
    ] = None,
    stop_word: Annotated[
        list[str] | None, typer.Option(help="Word that no term may begin or end with (repeatable).")
    ] = None,
    out: OutFolder = None,
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
    console.print()
    for done in after.history[len(before.history) :]:
        console.print(printable(done.message), soft_wrap=True)
    console.print(f"\n{after.n_topics} topics, {after.coverage:.0%} of the texts; written to "
                  f"{target}; the ids are other ones now", soft_wrap=True)  # fmt: skip


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


# ``embedtopics label``: names that were written into a spreadsheet, given to the topics.


@guarded
def label(
    results: ResultsFolder,
    labels: Annotated[
        Path | None,
        typer.Option(help="Table of topics and labels; RESULTS/labels.csv if left out."),
    ] = None,
    out: OutFolder = None,
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
        console.print(f"{same}; nothing was written", soft_wrap=True)
        return
    if names:
        result = rename(result, names)
    content = own.read_bytes() if labels is None else None
    write_results_folder(result, target, labels=content)
    if not names:
        console.print(f"{same}; the file was taken over", soft_wrap=True)
        return
    print_topics(console, result, names=True)
    console.print(f"\n{len(names)} names given; written to {target}", soft_wrap=True)
    console.print(f"next: open {target / 'report.html'} in a browser", soft_wrap=True)
