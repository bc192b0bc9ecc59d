"""Arguments and options that several commands have."""

import inspect
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

FILES = (
    "csv, tsv, xlsx, jsonl, parquet, txt, docx, pdf, html, xml (TEI), a folder or .zip of "
    "these, FOLDER/{speaker}_{date}.txt (columns from names), or hub:org/dataset/split"
)

# A file or folder that cannot be read has an error of its own, hence readable=False.
ResultsFolder = Annotated[
    Path, Argument(readable=False, help="Folder that embedtopics topics or demo wrote.")
]
DocumentsFile = Annotated[Path, Argument(readable=False, help=f"{FILES}.")]
OutFolder = Annotated[Path | None, Option(help="Folder for the results; default: RESULTS itself.")]
OutTable = Annotated[Path | None, Option(help="Write the table, NAME.csv.")]
OutFigure = Annotated[Path | None, Option(help="Write the figure, NAME.html.")]
TextColumn = Annotated[
    Any, Option(
        parser=lambda text: text.split(",") if "," in text else text, metavar="TEXT",
        help="Column of texts, or several: title,abstract; found if left out.",
    ),
]  # fmt: skip
IdColumn = Annotated[str | None, Option(help="Column of ids; made from the texts if left out.")]
TimeColumn = Annotated[str | None, Option(help="Column of dates.")]
GroupColumn = Annotated[str | None, Option(help="Column of groups, such as sources.")]
FileEncoding = Annotated[str, Option(help="Encoding of the file.")]
Words = Annotated[
    str,
    Option(help="auto, characters, lemmas, social (keeps addresses, @names, #tags, emoji), "
                 "social-split, social-drop; or several, with commas."),
]  # fmt: skip
EncoderName = Annotated[str | None, Option(help="A checkpoint, or tfidf, lsa, fasttext or random.")]
Checkpoint = Annotated[str, Option(help="Name or folder of a checkpoint.")]
RandomState = Annotated[int, Option("--random-state", "--seed", min=0, help="Seed.")]
Overwrite = Annotated[bool, Option("--overwrite", help="Replace what the folder holds.")]
IndexFolder = Annotated[Path, Argument(help="Folder that embedtopics index build wrote.")]
MovedEncoder = Annotated[str | None, Option(help="New path of an encoder that has moved.")]


def names_in(text: str) -> list[str]:
    """Return the names in a list with commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


def with_parameters(
    command: Callable[..., None], parameters: Iterable[inspect.Parameter]
) -> Callable[..., None]:
    """Give a command the parameters that Typer is to offer as options, by name."""
    declared = [one.replace(kind=one.KEYWORD_ONLY) for one in parameters]
    command.__dict__["__signature__"] = inspect.Signature(declared)
    command.__annotations__ = {one.name: one.annotation for one in declared}
    return command
