"""The application: all commands of the command line."""

from typing import Annotated

import typer
from typer import Option

from embedtopics.cli._batch import app as batch_app
from embedtopics.cli._classify import annotate
from embedtopics.cli._classify import app as classify_app
from embedtopics.cli._edit import edit, export, extend, verify
from embedtopics.cli._errors import Commands
from embedtopics.cli._evaluate import compare_encoders, evaluate, evaluate_encoders
from embedtopics.cli._pretrain import pretrain, tokenizer_report
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
from embedtopics.cli._report import report
from embedtopics.cli._search import app as index_app
from embedtopics.cli._search import search, serve
from embedtopics.cli._study import run_plan
from embedtopics.cli._topics import demo, inspect, recluster, topics
from embedtopics.cli._train import train
from embedtopics.cli._vectors import app as cache_app
from embedtopics.cli._vectors import embed

PANELS = {
    "First steps": (demo, inspect, topics, index_app, search),
    "Ask a results folder": (
        over_time, by_group, effects, hierarchy, find, keyness, concordance,
    ),
    "Judge and share": (evaluate, verify, report, export, run_plan),
    "Change topics": (recluster, edit, extend),
    "Labels and shares": (annotate, classify_app),
    "Search": (serve,),
    "Encoders": (
        embed, compare_encoders, evaluate_encoders, train, pretrain, probe, tokenizer_report,
        cache_app,
    ),
    "Large files": (batch_app,),
}  # fmt: skip
"""The commands under the headings of the help text."""

GROUPS = {"batch": batch_app, "cache": cache_app, "classify": classify_app, "index": index_app}

app = Commands(
    name="embedtopics",
    help="Embed texts, find their topics, search, classify and evaluate them.",
    epilog=(
        "Start: embedtopics demo; then embedtopics topics FILE --out results; then open "
        "results/report.html."
    ),
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
for panel, commands in PANELS.items():
    for command in commands:
        if isinstance(command, Commands):
            [name] = [name for name, group in GROUPS.items() if group is command]
            app.add_typer(command, name=name, rich_help_panel=panel)
        else:
            app.command(rich_help_panel=panel)(command)


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
