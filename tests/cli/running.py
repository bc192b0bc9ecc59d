"""Running commands as a user does, and a small index as the command line builds it."""

import copy
from dataclasses import replace

import numpy as np
import pandas as pd
from typer.testing import CliRunner

from embedtopics.cli._app import app


def run(*arguments, columns=80, **options):
    """Run a command; return how it ended and what it printed."""
    runner = CliRunner(env={"COLUMNS": str(columns)})
    return runner.invoke(app, [str(argument) for argument in arguments], **options)


def refused(*arguments):
    """Run a command that must be refused; return its one line."""
    done = run(*arguments)
    assert done.exit_code == 2, done.output
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    assert len(lines) == 1 and lines[0].startswith("error: "), done.stderr
    return lines[0]


EVIL = "\x1b[31m[bold]red[/bold] \x07\x1b]0;owned\x07 river \u202e [link=http://x]here[/link]"
"""Markup, a bell, escape sequences, and a mark that turns the direction of writing."""

TEXTS = [
    "The river flooded the lower town.",
    "Rural hospitals are closed one after the other.",
    "The closure of a hospital leaves a valley without a doctor.",
    "A goalkeeper saved two penalties.",
    "Bread needs flour, water, salt and time.",
    "The library lends seeds in spring.",
    "A comet was seen above the harbour.",
    "Trains were late again because of leaves.",
]


def rows():
    """Return documents with an id, a date, a source and a number; the last has no text."""
    return pd.DataFrame(
        {
            "id": [f"d{n}" for n in range(1, 10)],
            "body": [*TEXTS, ""],
            "date": [f"2020-0{n}-01" for n in range(1, 10)],
            "source": ["press", "forum", "press"] * 3,
            "words": [10 * n for n in range(1, 10)],
        }
    )


def grouped(result):
    """Return a result whose rows come from two sources."""
    source = np.where(np.arange(len(result.corpus)) % 3, "times", "post")
    corpus = copy.copy(result.corpus)
    vars(corpus).update(metadata=corpus.metadata.assign(source=source), group_column="source")
    return replace(result, corpus=corpus)


def build(folder, frame=None, *options):
    """Build an index without a checkpoint; return its folder and the table of documents."""
    file, out = folder / "articles.csv", folder / "articles.index"
    frame = rows() if frame is None else frame
    frame.to_csv(file, index=False)
    done = run(
        "index", "build", file, "--text", "body", "--id", "id", "--time", "date", "--encoder",
        "random", "--out", out, *options,
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    return out, file
