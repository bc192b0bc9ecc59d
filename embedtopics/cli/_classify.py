"""``classify``: train and evaluate classifiers, estimate shares; ``annotate``: label texts."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from embedtopics.cli import _display as show
from embedtopics.cli import _options as opt
from embedtopics.cli._errors import Commands
from embedtopics.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

    from embedtopics.classification._classifier import TextClassifier
    from embedtopics.corpus._corpus import Corpus

app = Commands(
    help="Classify texts, evaluate classifiers, and estimate the shares of classes.",
    no_args_is_help=True,
)

ModelFolder = Annotated[Path, Argument(help="Folder that classify train wrote.")]
LabelsColumn = Annotated[str, Option(help="Column of labels; cells may be empty.")]


@app.command()
def train(
    file: opt.DocumentsFile,
    out: Annotated[Path, Option(help="Folder for the classifier.")],
    labels: LabelsColumn = "label",
    text: opt.TextColumn = None,
    encoder: opt.Checkpoint = "all-MiniLM-L6-v2",
    method: Annotated[str, Option(help="frozen, few_shot, fine_tune or auto.")] = "frozen",
    head: Annotated[str, Option(help="softmax, or ordinal for ordered classes.")] = "softmax",
    classes: Annotated[str | None, Option(help="Classes from the lowest on: low,high.")] = None,
    pairs: Annotated[bool, Option("--pairs", help="Two texts: --text claim,post.")] = False,
    random_state: opt.RandomState = 0,
) -> None:
    """Train a classifier on labelled texts."""
    from embedtopics._utils.folders import check_output_folder
    from embedtopics.classification._classifier import TextClassifier
    from embedtopics.classification._storage import KIND

    check_output_folder(out, KIND)
    texts, y = _labelled(file, text, labels)
    order: Any = None
    if classes is not None:
        order = opt.names_in(classes)
        if all(isinstance(value, int) for value in y if value is not None):
            order = [int(name) if name.lstrip("-").isdigit() else name for name in order]
    options: Any = {"pairs": pairs, "classes": order, "random_state": random_state}
    model = TextClassifier(encoder, method=method, head=head, **options).fit(texts, y)
    model.save(out)
    names = ", ".join(map(str, model.classes_.tolist()[:12]))
    show.say(f"{len(model.training_keys_):,} labelled texts, {len(model.classes_)} classes: "
                  f"{names}", soft_wrap=True)  # fmt: skip
    show.print_notes([decision.message for decision in model.decisions_])
    show.say(f"Written to {out}; next: embedtopics classify evaluate {out} TEST --train {file}",
                  soft_wrap=True)  # fmt: skip


@app.command()
def predict(
    model: ModelFolder,
    file: opt.DocumentsFile,
    out: Annotated[Path, Option(help="Write the table, NAME.csv.")],
    text: opt.TextColumn = None,
    id: opt.IdColumn = None,
) -> None:
    """Predict the class of each text of a file; `batch classify` does so in shards."""
    from embedtopics.classification import classify
    from embedtopics.classification._classifier import TextClassifier
    from embedtopics.corpus._corpus import Corpus

    show.check_outputs(out)
    table = classify(TextClassifier.load(model), Corpus(file, text, id=id))
    show.write_outputs(out, lambda: table)
    show.say(f"{len(table):,} texts classified: {out}", soft_wrap=True)


@app.command()
def evaluate(
    model: ModelFolder,
    file: opt.DocumentsFile,
    train: Annotated[Path, Option(readable=False, help="Training texts, for the baselines.")],
    labels: LabelsColumn = "label",
    text: opt.TextColumn = None,
    out: Annotated[Path | None, Option(help="Page (.html) or table (.csv).")] = None,
) -> None:
    """Evaluate a classifier on labelled texts that were not in its training set."""
    from embedtopics import report
    from embedtopics.classification import evaluate as evaluate_classifier
    from embedtopics.classification._classifier import TextClassifier
    from embedtopics.corpus._table_files import write_table

    show.check_target(out, (*show.PAGE, *show.TABLE))
    loaded, learned = TextClassifier.load(model), _labelled(train, text, labels)
    evaluation = evaluate_classifier(loaded, _labelled(file, text, labels), learned)
    loaded.save(model)  # records this use of the test set
    if out is not None and out.suffix.lower() in show.PAGE:
        report.write_report(evaluation, out, tables=_tables(loaded, *learned))
    elif out is not None:
        write_table(evaluation.to_frame(), out)
    rows = [
        [row["of"], "all" if row["class"] is None else str(row["class"]), row["metric"],
         f"{row['value']:.3f}",
         f"{row['low']:.3f} to {row['high']:.3f}".replace("nan to nan", "none"), f"{row['n']:,}"]
        for row in evaluation.to_frame().to_dict("records")
    ]  # fmt: skip
    columns = [("of", "words"), ("class", "words"), ("metric", "words"), ("value", "figure"),
               ("95 %", "figure"), ("texts", "number")]  # fmt: skip
    show.print_table(columns, rows)
    times = f"{evaluation.n_looks} time{'s' * (evaluation.n_looks > 1)}"
    error = f"calibration error {evaluation.calibration_error:.3f}"
    show.say(f"{error}; evaluated on these texts {times}", soft_wrap=True)
    show.print_notes([decision.message for decision in evaluation.decisions])


def _tables(model: TextClassifier, texts: list[str], y: list[Any]) -> dict[str, pd.DataFrame]:
    """Return the tables on the page of a report."""
    from embedtopics.classification import suspicious_labels

    tables = {}
    with suppress(InputError):  # other texts, or a classifier without out-of-fold probabilities
        suspects = suspicious_labels(model, texts, y).head(30)
        tables["Training texts that may be mislabelled"] = suspects
    return tables


@app.command()
def shares(
    model: ModelFolder,
    file: opt.DocumentsFile,
    gold: Annotated[
        str | None, Option(help="Column of labels that people gave to a random sample of rows.")
    ] = None,
    by: Annotated[str | None, Option(help="Column of groups or dates.")] = None,
    every: Annotated[str, Option(help="year, quarter, month, week or day.")] = "year",
    text: opt.TextColumn = None,
    time: opt.TimeColumn = None,
    group: opt.GroupColumn = None,
    width: Annotated[float | None, Option(help="Labels needed for this interval width.")] = None,
    out: opt.OutTable = None,
    figure: opt.OutFigure = None,
) -> None:
    """Estimate the share of each class, corrected by labels of a random sample.

    Without --gold the shares are adjusted by the errors in training, which holds where texts of a
    class are the same in the file as in training.
    """
    from embedtopics import plots
    from embedtopics.classification import adjusted_shares
    from embedtopics.classification._classifier import TextClassifier
    from embedtopics.corpus._corpus import Corpus
    from embedtopics.inference import Measurement
    from embedtopics.inference import shares as estimate_shares

    show.check_outputs(out, figure)
    corpus = Corpus(file, text, time=time, group=group)
    classifier = TextClassifier.load(model)
    if gold is None:
        estimates = adjusted_shares(classifier, corpus, by, every=every)
    else:
        labelled = Measurement.from_classifier(classifier, corpus, _labels(corpus, gold, "gold"))
        estimates = estimate_shares(labelled, by, every=every)
    show.write_outputs(out, estimates.to_frame, figure, lambda: plots.shares(estimates))
    _print_shares(estimates, width)


def _print_shares(estimates: Any, width: float | None) -> None:
    columns = [("group", "words"), ("class", "words"), ("share", "figure"), ("95 %", "figure"),
               ("labels alone", "figure"), ("predicted", "figure")]  # fmt: skip
    rows = []
    for row in estimates.to_frame().to_dict("records"):
        has_labels = row["n_gold"] > 0
        alone = f"{row['gold_low']:.1%} to {row['gold_high']:.1%}" if has_labels else ""
        share, predicted = f"{row['estimate']:.1%}", f"{row['naive']:.1%}"
        ends = f"{row['low']:.1%} to {row['high']:.1%}"
        rows.append([row["group"] or "all", str(row["class"]), share, ends, alone, predicted])
    if width is not None:
        columns.append(("more labels", "number"))
        further = estimates.further_gold(width)["further_gold"]
        for cells, n in zip(rows, further, strict=True):
            cells.append("" if n != n else f"{n:,.0f}" if n < 1e9 else "no number")
    show.print_table(columns, rows)
    show.print_notes([decision.message for decision in estimates.decisions])


def _labelled(file: Path, text: str | None, labels: str) -> tuple[list[str], list[Any]]:
    """Return the texts of a file and their labels, None if a text has none."""
    from embedtopics.corpus._corpus import Corpus

    corpus = Corpus(file, text)
    return list(corpus.texts), _labels(corpus, labels)


def _labels(corpus: Corpus, column: str, option: str = "labels") -> list[Any]:
    if column not in corpus.metadata.columns:
        columns = ", ".join(map(str, corpus.metadata.columns)) or "none"
        raise InputError(option, f"a column of the file: {columns}", column)
    values = corpus.metadata[column].tolist()
    return [None if isinstance(value, str) and not value.strip() else value for value in values]


def annotate(
    file: opt.DocumentsFile,
    codebook: Annotated[
        str | None,
        Option(
            help='Labels of a new project: "gender,other"; or a JSON list of labels with name, '
            "key, definition and examples."
        ),
    ] = None,
    text: opt.TextColumn = None,
    id: opt.IdColumn = None,
    folder: Annotated[
        Path | None, Option(help="Folder of the project; default: FILE.study.")
    ] = None,
    kind: Annotated[str | None, Option(help="single, several, ordinal or spans.")] = None,
    pairs: Annotated[bool, Option("--pairs", help="Two texts: --text claim,post.")] = False,
    encoder: opt.Checkpoint = "all-MiniLM-L6-v2",
    annotator: Annotated[str, Option(help="Name of the annotator.")] = "annotator",
    port: Annotated[int, Option(help="Port; 0 for a free one.")] = 0,
    merge: Annotated[
        list[Path] | None, Option(help="Folder of a project whose answers are merged first.")
    ] = None,
) -> None:
    """Label texts on a local page while a model learns."""
    from embedtopics._utils.local_server import require_server
    from embedtopics.annotation import serve
    from embedtopics.annotation._project import AnnotationProject
    from embedtopics.corpus._corpus import Corpus

    require_server()

    codes = None if codebook is None else _codes(codebook)
    folder = file.with_suffix(".study") if folder is None else folder
    corpus = Corpus(file, text, id=id)
    with AnnotationProject(corpus, codes, folder, kind=kind, pairs=pairs, encoder=encoder) as study:
        for other in merge or ():
            show.say(f"{study.merge(other):,} new answers from {other}.", soft_wrap=True)
        server = serve(study, annotator=annotator, port=port)
        show.print_notes([note.message for note in (*corpus.decisions, *study.decisions)])
        show.say(f"Labels go to {folder}.", soft_wrap=True)
        show.run_server(server)
        show.say(f"{study.progress()['labelled']:,} texts are labelled.", soft_wrap=True)


def _codes(codebook: str) -> Any:
    """Return the labels of a codebook: names with commas, or those of a JSON file."""
    from embedtopics._utils.folders import parse_json, read_regular

    path = Path(codebook)
    if path.suffix.lower() != ".json" and not path.is_file():
        return opt.names_in(codebook)
    try:
        return parse_json(read_regular(path))
    except (OSError, ValueError) as error:
        raise InputError("codebook", "a file of JSON", codebook, str(error)) from error
