"""Arguments and options that several commands have."""

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
Where = Annotated[
    str | None, Option(help="Filter of rows: \"year >= 2020 and source == 'Le Monde'\".")
]
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
RandomState = Annotated[int, Option(min=0, help="Seed.")]
Overwrite = Annotated[bool, Option("--overwrite", help="Replace what the folder holds.")]
IndexFolder = Annotated[Path, Argument(help="Folder that embedtopics index build wrote.")]
MovedEncoder = Annotated[str | None, Option(help="New path of an encoder that has moved.")]

# Options of the commands that train.
MEASURED, TRAINED = "Evaluation", "Training"
"""Headings of these options in a help text."""

TestExamples = Annotated[
    Path | None, Option(help="Examples scored before and after.", rich_help_panel=MEASURED)
]
ComparedCorpus = Annotated[
    Path | None, Option(help="Documents to compare on.", rich_help_panel=MEASURED)
]
CorpusLabels = Annotated[
    str | None,
    Option(help="Column of --corpus with known classes.", rich_help_panel=MEASURED),
]
CorpusText = Annotated[
    str | None, Option(help="Column of texts of --corpus.", rich_help_panel=MEASURED)
]
Epochs = Annotated[
    float, Option(help="Passes over the training examples.", rich_help_panel=TRAINED)
]
BatchSize = Annotated[int, Option(help="Examples of a batch.", rich_help_panel=TRAINED)]
LearningRate = Annotated[float, Option(help="Peak learning rate.", rich_help_panel=TRAINED)]
MaxSeqLength = Annotated[
    int | None,
    Option(
        help="Maximum number of tokens of a text; default: the encoder's.", rich_help_panel=TRAINED
    ),
]
Precision = Annotated[
    str | None,
    Option(help="float32, bfloat16 or float16; default: by device.", rich_help_panel=TRAINED),
]
ValidationsPerEpoch = Annotated[
    float, Option(help="Validations per epoch; a checkpoint each.", rich_help_panel=TRAINED)
]
Keep = Annotated[str, Option(help="Weights that are kept: best or last.", rich_help_panel=TRAINED)]
Metric = Annotated[
    str | None,
    Option(help="What selects: loss, or a metric of the objective.", rich_help_panel=TRAINED),
]
ReportPage = Annotated[Path | None, Option(help="Write a report with the curves, NAME.html.")]
Resume = Annotated[bool, Option("--resume/--fresh", help="Continue a run.")]


def names_in(text: str) -> list[str]:
    """Return the names in a list with commas."""
    return [name.strip() for name in text.split(",") if name.strip()]
