"""``embed`` writes the vectors of a file; ``cache`` shows or deletes the vectors kept on disk."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from typer import Option

from embedtopics.cli import _options as opt
from embedtopics.cli._display import check_target, print_notes, print_table, printable, say
from embedtopics.cli._errors import Commands
from embedtopics.errors import InputError


def embed(
    file: opt.DocumentsFile,
    out: Annotated[Path, Option(help="NAME.npy (a row per text), or NAME.parquet (with the ids).")],
    text: opt.TextColumn = None,
    id: opt.IdColumn = None,
    encoder: opt.EncoderName = None,
    precision: Annotated[str | None, Option(help="float32 or int8 (default on a CPU).")] = None,
    queries: Annotated[bool, Option("--queries", help="Use the prompt for queries.")] = False,
    encoding: opt.FileEncoding = "utf-8",
) -> None:
    """Write the vectors of the texts of a file, in the order of its rows."""
    import numpy as np
    import pandas as pd

    from embedtopics._utils.folders import replacing_file
    from embedtopics.corpus._corpus import Corpus, require_text
    from embedtopics.corpus._table_files import write_table
    from embedtopics.encoders._registry import resolve_encoder
    from embedtopics.topics._model import DEFAULT_ENCODER

    check_target(out, (".npy", ".parquet"))
    if encoder == "tfidf":  # as wide as the vocabulary
        raise InputError("encoder", "one of short vectors, such as lsa or a checkpoint", encoder)
    loaded = resolve_encoder(encoder or DEFAULT_ENCODER, cached=True, precision=precision)
    corpus = Corpus(file, text=text, id=id, encoding=encoding)
    require_text(corpus)
    texts, of_row = corpus.document_texts(), corpus.distinct().of_row
    fitted = loaded.fitted_to(texts).reading("query" if queries else "document")
    report = fitted.encode_with_report(texts)
    vectors = np.full((len(corpus), report.embeddings.shape[1]), np.nan, dtype=np.float32)
    vectors[of_row >= 0] = report.embeddings[of_row[of_row >= 0]]
    if out.suffix.lower() == ".npy":
        without_text = "NaN"
        with replacing_file(out) as fresh, fresh.open("wb") as stream:
            np.save(stream, vectors, allow_pickle=False)
    else:
        without_text = "null"
        rows = [row if one >= 0 else None for row, one in zip(vectors, of_row, strict=True)]
        write_table(pd.DataFrame({"id": corpus.ids, "vector": rows}), out)
    notes = [note.message for note in corpus.decisions]
    if n_missing := int((of_row < 0).sum()):
        notes.append(f"The vectors of rows without text are {without_text} (rows: {n_missing:,}).")
    if share := report.truncated_share:
        notes.append(f"The ends of long texts were not read (of {share:.1%} of the texts).")
    if fitted.learns:
        notes.append(f"{fitted.name} was fitted to these texts; a fit to others differs.")
    print_notes(notes)
    say(
        f"{len(vectors):,} rows of {vectors.shape[1]:,} numbers (float32), from {len(texts):,} "
        f"distinct texts by {printable(fitted.name)} ({report.n_cached:,} vectors were cached); "
        f"written to {out}",
        soft_wrap=True,
    )


app = Commands(help="Show or delete the vectors and models kept on disk.", no_args_is_help=True)


@app.command()
def info() -> None:
    """Show where the cache is and what it holds."""
    from embedtopics.encoders._base import default_folder
    from embedtopics.encoders._cache import cache_entries

    entries = cache_entries()
    typer.echo(f"{default_folder()}: {_size(sum(entry.n_bytes for entry in entries))}")
    if entries:
        columns = [(name, "words") for name in ("what", "encoder", "numbers")]
        columns += [(name, "number") for name in ("texts", "size")]
        rows = [
            [one.kind, one.encoder, one.variant,
             "" if one.kind == "model" else f"{one.n_texts:,}", _size(one.n_bytes)]
            for one in entries
        ]  # fmt: skip
        print_table(columns, rows)


@app.command()
def clear(yes: Annotated[bool, Option("--yes", help="Do not ask.")] = False) -> None:
    """Delete the cache; its contents are made again when needed."""
    from embedtopics.encoders._cache import cache_entries, clear_cache

    total = sum(entry.n_bytes for entry in cache_entries())
    if total and not yes:
        typer.confirm(f"Delete {_size(total)}?", abort=True, err=True)
    say(f"{_size(clear_cache())} freed")


def _size(n_bytes: int) -> str:
    return f"{n_bytes / 1e6:,.1f} MB"
