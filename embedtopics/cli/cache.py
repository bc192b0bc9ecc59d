"""``embedtopics cache``: what is kept on disk so that no text is encoded twice."""

from __future__ import annotations

from typing import Annotated

import typer

from embedtopics.cli.guard import guarded

__all__ = ["app"]

app = typer.Typer(help="Look at the vectors and models kept on disk, or throw them away.",
                  no_args_is_help=True)  # fmt: skip


@app.command()
@guarded
def info() -> None:
    """Say where the cache is, and what it holds."""
    from rich.table import Table

    from embedtopics.cli.display import make_console, printable
    from embedtopics.encoders.cache_folder import cache_entries
    from embedtopics.encoders.store import default_folder

    console = make_console()
    entries = cache_entries()
    total = sum(entry.n_bytes for entry in entries)
    console.print(f"{default_folder()}: {_size(total)}", soft_wrap=True)
    if not entries:
        return
    table = Table("what", "encoder", "numbers", "texts", "size")
    for column in table.columns[3:]:
        column.justify = "right"
    for entry in entries:
        texts = f"{entry.n_texts:,}" if entry.kind != "model" else ""
        table.add_row(entry.kind, printable(entry.encoder), entry.variant, texts,
                      _size(entry.n_bytes))  # fmt: skip
    console.print(table)


@app.command()
@guarded
def clear(
    vectors: Annotated[bool, typer.Option("--vectors", help="Only vectors.")] = False,
    models: Annotated[bool, typer.Option("--models", help="Only models made ready.")] = False,
    names: Annotated[
        bool, typer.Option("--names", help="Only names that language models gave.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Throw the cache away; all of it can be made again."""
    from embedtopics.cli.display import make_console
    from embedtopics.encoders.cache_folder import cache_entries, clear_cache

    wanted = {"vectors": vectors, "model": models, "names": names}
    kinds = [kind for kind, chosen in wanted.items() if chosen] or list(wanted)
    total = sum(entry.n_bytes for entry in cache_entries() if entry.kind in kinds)
    if total and not yes:
        typer.confirm(f"Throw away {_size(total)} of {' and '.join(kinds)}?", abort=True, err=True)
    make_console().print(f"{_size(clear_cache(kinds=kinds))} freed")


def _size(n_bytes: int) -> str:
    return f"{n_bytes / 1e6:,.1f} MB"
