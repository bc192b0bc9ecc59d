"""The application: all commands of the command line."""

from typing import Annotated

import typer
from typer import Option

from embedtopics.cli._batch import app as batch_app
from embedtopics.cli._classify import annotate
from embedtopics.cli._classify import app as classify_app
from embedtopics.cli._edit import add, edit, export, label, verify
from embedtopics.cli._errors import Commands
from embedtopics.cli._evaluate import compare, evaluate, evaluate_encoder, report
from embedtopics.cli._pretrain import pretrain, tokens
from embedtopics.cli._probe import probe
from embedtopics.cli._questions import (
    by_group,
    concordance,
    effects,
    find,
    hierarchy,
    keyness,
    over_time,
)
from embedtopics.cli._search import app as index_app
from embedtopics.cli._search import search, search_eval, serve
from embedtopics.cli._study import study
from embedtopics.cli._topics import demo, inspect, resolution, topics
from embedtopics.cli._train import app as train_app
from embedtopics.cli._vectors import app as cache_app
from embedtopics.cli._vectors import embed

app = Commands(
    name="embedtopics",
    help="Embed texts, find their topics, search, classify and evaluate them.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (
    add, annotate, by_group, compare, concordance, demo, edit, effects, embed, evaluate,
    evaluate_encoder, export, find, hierarchy, inspect, keyness, label, over_time, pretrain, probe,
    report, resolution, search, search_eval, serve, study, tokens, topics, verify,
):  # fmt: skip
    app.command()(command)
app.add_typer(batch_app, name="batch")
app.add_typer(cache_app, name="cache")
app.add_typer(classify_app, name="classify")
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
        bool, Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Embed texts, find their topics, search, classify and evaluate them."""


def main() -> None:
    """Run the command line."""
    app()
