"""Arguments and options that several commands have."""

from pathlib import Path
from typing import Annotated

import typer

from embedtopics.errors import InputError

FILES = "csv, tsv, jsonl, parquet, arrow (each also .gz), txt, or a folder of txt"

# A file or folder that cannot be read has an error of its own, hence readable=False.
ResultsFolder = Annotated[
    Path, typer.Argument(readable=False, help="Folder that embedtopics topics or demo wrote.")
]
DocumentsFile = Annotated[Path, typer.Argument(readable=False, help=f"{FILES}.")]
OutFolder = Annotated[
    Path | None, typer.Option(help="Folder for the results; RESULTS itself if left out.")
]
OutTable = Annotated[Path | None, typer.Option(help="Write the table, NAME.csv.")]
OutFigure = Annotated[Path | None, typer.Option(help="Write the figure, NAME.html.")]
TextColumn = Annotated[str | None, typer.Option(help="Column of texts; guessed if left out.")]
IdColumn = Annotated[
    str | None, typer.Option(help="Column of ids; if left out they are made of the texts.")
]
TimeColumn = Annotated[str | None, typer.Option(help="Column of dates.")]
GroupColumn = Annotated[str | None, typer.Option(help="Column of groups, such as sources.")]
FileEncoding = Annotated[str, typer.Option(help="Encoding of the file.")]
RowLimit = Annotated[int | None, typer.Option(min=1, help="Read only the first rows.")]
Languages = Annotated[
    list[str] | None, typer.Option(help="Language code (repeatable); detected if left out.")
]
Words = Annotated[
    str,
    typer.Option(help="auto, characters, lemmas, social (keeps addresses, @names, #tags, emoji), "
                 "social-split, social-drop; or several, with commas."),
]  # fmt: skip
EncoderName = Annotated[
    str | None, typer.Option(help="A checkpoint, or tfidf, lsa, fasttext or random.")
]
Precision = Annotated[
    str | None,
    typer.Option(help="Of a checkpoint: auto (int8 on a CPU), float32, int8, float16, bfloat16."),
]
LongTexts = Annotated[
    str | None,
    typer.Option(help="Of a checkpoint: auto, truncate (read the beginning) or chunk (read all)."),
]
Checkpoint = Annotated[str, typer.Option(help="Name or folder of a checkpoint.")]
MostTopics = Annotated[int, typer.Option(min=1, help="Topics to print and to draw.")]
RandomState = Annotated[
    int, typer.Option("--random-state", "--seed", min=0, help="Seed of what is drawn at random.")
]
IndexFolder = Annotated[
    Path, typer.Argument(help="The folder that `embedtopics index build` wrote.")
]
MovedEncoder = Annotated[
    str | None, typer.Option(help="Where the index's own encoder is, if it has moved.")
]


def names_in(given: str) -> list[str]:
    """Return the names in a list with commas."""
    return [name.strip() for name in given.split(",") if name.strip()]


def whole_numbers_in(given: str, option: str) -> tuple[int, ...]:
    """Return the whole numbers in a list with commas."""
    names = names_in(given)
    if not names or not all(name.isdecimal() for name in names):
        raise InputError(
            f"expected whole numbers with commas, such as {option} 5,20; got {given!r}"
        )
    return tuple(int(name) for name in names)
