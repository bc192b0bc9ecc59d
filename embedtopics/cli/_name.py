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
    from embedtopics.topics.results import TopicResult


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
    if dry_run:
        _print_prompts(make_console(), questions)
        typer.echo(_plan(questions, endpoint, model) + "; nothing was sent", err=True)
        return
    if not questions:
        typer.echo("every topic has a given name; name some with --topic", err=True)
        return
    _ask_leave(_plan(questions, endpoint, model), yes)
    asked = [question.topic_id for question in questions]
    request = {"timeout": timeout}
    named = name_topics(
        result, endpoint, model, questions=questions, request=request, record=record
    )
    # Written before anything is printed: a closed pipe must not cost the names.
    write_results_folder(named, results)
    _print_names(make_console(), named, asked, n_decisions=len(result.decisions))


def _plan(questions: Sequence[Question], endpoint: str, model: str) -> str:
    """Say what is sent where."""
    n_documents = sum(question.n_documents for question in questions)
    n_characters = sum(question.n_characters for question in questions)
    n_tokens = sum(question.n_tokens for question in questions)
    return (
        f"{len(questions)} prompts with parts of {n_documents:,} documents, {n_characters:,} "
        f"characters in all, about {n_tokens:,} tokens, for {model} at {endpoint}"
    )


def _ask_leave(plan: str, yes: bool) -> None:
    """Say what will be sent, and ask; without someone to ask, leave has to be given before."""
    typer.echo(f"to be sent: {plan}", err=True)
    if yes:
        return
    if not sys.stdin.isatty():
        raise InputError("expected leave to send parts of documents; add --yes, or --dry-run")
    typer.confirm("Send them?", abort=True, err=True)


def _print_prompts(console: Console, questions: Sequence[Question]) -> None:
    """Print every message, as it would be sent but for control characters."""
    for question in questions:
        console.print(f"--- topic {question.topic_id}")
        for message in question.messages:
            console.print(f"[{message['role']}]")
            for line in message["content"].splitlines():
                console.print(printable(line), soft_wrap=True)


def _print_names(
    console: Console, result: TopicResult, asked: Sequence[int], *, n_decisions: int
) -> None:
    """Print the names, and what was decided on the way."""
    for number in asked:
        topic = result.topics[number]
        mark = "" if topic.is_named else "  (automatic)"
        console.print(f"{number:>4}  {printable(topic.label)}{mark}", soft_wrap=True)
    for decision in result.decisions[n_decisions:]:
        typer.echo(f"note: {printable(decision.message)}", err=True)
