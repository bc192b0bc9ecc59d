"""Running commands as a user does, in tests."""

from __future__ import annotations

from typer.testing import CliRunner

from embedtopics.cli._app import app

__all__ = ["refused", "run"]


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
