"""``embedtopics name``: let a language model name the topics of a folder of results."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from embedtopics.cli._display import (
    check_results_folder,
    guarded,
    make_console,
    open_result,
    printable,
    read_results_folder,
    write_results_folder,
)
from embedtopics.cli._options import ResultsFolder
from embedtopics.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from embedtopics.topics.naming._questions import Question


@guarded
def name(
    results: ResultsFolder,
    endpoint: Annotated[
        str, typer.Option(help="Of a chat API, such as http://localhost:11434/v1.")
    ],
    model: Annotated[str, typer.Option(help="Name of the model there.")],
    topic: Annotated[
        list[int] | None,
        typer.Option(help="Topic to name (repeatable); all without a given name if left out."),
    ] = None,
    documents: Annotated[
        int,
        typer.Option(min=0, help="Documents of a topic that are sent; 0 for none."),
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
        console.print(f"{made.topic_id:>4}  {printable(made.label)}{mark}", soft_wrap=True)
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
                console.print(printable(line), soft_wrap=True)
