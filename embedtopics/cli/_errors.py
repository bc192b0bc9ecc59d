"""Errors on the command line: one sentence on stderr, and exit status 2."""

from __future__ import annotations

import errno
import functools
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ParamSpec, get_type_hints

import typer
from typer.models import OptionInfo

from embedtopics.cli._display import printable
from embedtopics.errors import EmbedTopicsError, InputError, Remedy

BAD_INPUT = 2
INTERRUPTED = 130

P = ParamSpec("P")


def guarded(command: Callable[P, None]) -> Callable[P, None]:
    """Wrap a command: bad input exits 2 with one line, Ctrl-C exits 130."""

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            command(*args, **kwargs)
        except (EmbedTopicsError, OSError, RuntimeError) as error:
            message = _describe_file_error(error)
            if isinstance(error, EmbedTopicsError):
                message = _describe(error, command)
            if not message:
                raise
            # Messages quote the input: files, filters, ids.
            typer.echo(f"error: {printable(' '.join(message.split()))}", err=True)
            raise typer.Exit(BAD_INPUT) from None
        except KeyboardInterrupt:
            typer.echo("interrupted; nothing was left half-written", err=True)
            raise typer.Exit(INTERRUPTED) from None
        finally:
            sys.stdout.flush()

    return run


class Commands(typer.Typer):
    """A group of guarded commands, which show no traceback for bad input."""

    def command(  # type: ignore[override]
        self, *names: Any, **options: Any
    ) -> Callable[[Callable[..., None]], Callable[..., None]]:
        """Add a command."""
        add = super().command(*names, **options)
        return lambda command: add(guarded(command))


@contextmanager
def options_named(**options: str) -> Iterator[None]:
    """Name these options in errors about parameters that have another name in Python."""
    try:
        yield
    except InputError as error:
        if option := options.get(error.parameter):
            error.problem = option + error.problem.removeprefix(error.parameter)
            error.parameter = option
        raise


def _describe(error: EmbedTopicsError, command: Callable[..., None]) -> str:
    """Return a message that names the options of a command in place of Python's parameters."""
    if not isinstance(error, InputError):
        return str(error)
    hints = get_type_hints(command, include_extras=True)
    problem, remedy = error.problem, error.remedy
    if flags := _flags(hints.get(error.parameter), error.parameter):
        problem = flags[0] + problem.removeprefix(error.parameter)
    if isinstance(remedy, Remedy):
        remedy = _spell_remedy(remedy, hints.get(remedy.parameter))
    return str(EmbedTopicsError(f"{problem}; {remedy}" if remedy else problem))


def _spell_remedy(remedy: Remedy, hint: Any) -> str:
    """Return a remedy that names an option, where the command has one for the parameter."""
    value, flags = remedy.value, _flags(hint, remedy.parameter)
    if not flags:
        return remedy.alternative or str(remedy)
    if value is None or (value is False and len(flags) == 1):
        return remedy.sentence(f"leave {flags[0]} out")
    if value is ... or hint.__origin__ is bool:
        return remedy.sentence(f"add {flags[-1] if value is False else flags[0]}")
    return remedy.sentence(f"add {flags[0]} {shlex.quote(str(value))}")


def _flags(hint: Any, parameter: str) -> list[str]:
    """Return the flag that sets a parameter, and the one that switches it off, if there is one."""
    for option in getattr(hint, "__metadata__", ()):
        if isinstance(option, OptionInfo):
            # In Annotated, Typer takes the first name for the default.
            declared = [option.default, *(option.param_decls or ())]
            names = [one for one in declared if isinstance(one, str) and one.startswith("-")]
            return (names or [f"--{parameter.replace('_', '-')}"])[0].split("/")
    return []


def _describe_file_error(error: Exception) -> str:
    """Return one sentence about a name, a permission or a full disk; empty for other errors."""
    number, text = getattr(error, "errno", 0), str(error)[:200]
    if number in (errno.ENAMETOOLONG, errno.ELOOP) or "Symlink loop" in text:
        return f"the path is too long, or is a link to itself ({text}); choose another path"
    if number in (errno.EACCES, errno.EPERM, errno.EROFS):
        return f"permission denied ({text}); change its permissions, or choose another path"
    if number in (errno.ENOSPC, errno.EFBIG, errno.EDQUOT) or "No usable temporary" in text:
        return f"the disk is full ({text}); free some space there and in the temporary folder"
    return ""
