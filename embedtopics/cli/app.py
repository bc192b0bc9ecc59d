"""The commands, and what becomes of errors on the command line."""

from __future__ import annotations

from typing import Annotated

import typer

from embedtopics.cli.add import add
from embedtopics.cli.by_group import by_group
from embedtopics.cli.cache import app as cache_app
from embedtopics.cli.compare import compare
from embedtopics.cli.demo import demo
from embedtopics.cli.edit import edit
from embedtopics.cli.evaluate import evaluate
from embedtopics.cli.evaluate_encoder import evaluate_encoder
from embedtopics.cli.export import export
from embedtopics.cli.find import find
from embedtopics.cli.hierarchy import hierarchy
from embedtopics.cli.index import app as index_app
from embedtopics.cli.inspect import inspect
from embedtopics.cli.label import label
from embedtopics.cli.name import name
from embedtopics.cli.over_time import over_time
from embedtopics.cli.probe import probe
from embedtopics.cli.search import search, search_eval
from embedtopics.cli.topics import topics
from embedtopics.cli.train import app as train_app

__all__ = ["app", "main"]

app = typer.Typer(
    name="embedtopics",
    help="From a file of documents to a topic map.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(add)
app.command(name="by-group")(by_group)
app.command()(compare)
app.command()(demo)
app.command()(export)
app.command()(find)
app.command()(evaluate)
app.command(name="evaluate-encoder")(evaluate_encoder)
app.command()(hierarchy)
app.command()(inspect)
app.command()(name)
app.command()(edit)
app.command()(label)
app.command(name="over-time")(over_time)
app.command()(probe)
app.command()(search)
app.command(name="search-eval")(search_eval)
app.command()(topics)
app.add_typer(cache_app, name="cache")
app.add_typer(index_app, name="index")
app.add_typer(train_app, name="train")


def _show_version(value: bool) -> None:
    if value:
        from embedtopics import __version__

        typer.echo(f"embedtopics {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """From a file of documents to a topic map."""


def main() -> None:
    """Run the command line."""
    app()
