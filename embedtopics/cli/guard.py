"""Errors that the toolkit can explain become one line on stderr and an exit code."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import ParamSpec

import typer

from embedtopics.cli.display import printable
from embedtopics.errors import EmbedTopicsError

__all__ = ["guarded"]

BAD_INPUT = 2
INTERRUPTED = 130

P = ParamSpec("P")


def guarded(command: Callable[P, None]) -> Callable[P, None]:
    """Wrap a command: bad input exits 2 with one line, Ctrl-C exits 130."""

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            command(*args, **kwargs)
        except EmbedTopicsError as error:
            # Messages quote what was given: files, filters, ids.
            typer.echo(f"error: {printable(' '.join(str(error).split()))}", err=True)
            raise typer.Exit(BAD_INPUT) from None
        except KeyboardInterrupt:
            typer.echo("interrupted; nothing was left half-written", err=True)
            raise typer.Exit(INTERRUPTED) from None
        finally:
            sys.stdout.flush()

    return run
