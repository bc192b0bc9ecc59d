"""``evaluate`` topics, ``evaluate-encoders`` on known answers, ``compare-encoders`` on texts."""

from __future__ import annotations

import math
from itertools import combinations, groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer import Argument, Option

from embedtopics._utils.folders import check_output_folder, replacing_folder, write_manifest
from embedtopics.cli import _display as show
from embedtopics.cli import _options as opt
from embedtopics.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

    from embedtopics.comparison.results import Comparison, EncoderScores
    from embedtopics.topics.results import TopicResult


CHANGE = ("difference", "low", "high")
COVERED = "_covered"


def evaluate(
    results: opt.ResultsFolder,
    labels: Annotated[str | None, Option(help="Column of gold labels, to compare.")] = None,
    out: opt.OutTable = None,
    sheets: Annotated[Path | None, Option(help="Folder for sheets to fill in, with keys.")] = None,
    answers: Annotated[
        list[Path] | None, Option(help="Completed sheet to score (repeatable: a file a coder).")
    ] = None,
    ask: Annotated[
        Path | None, Option(help="Ask the questions on a local page; answers go to this folder.")
    ] = None,
    annotator: Annotated[str, Option(help="Name of the person who answers.")] = "annotator",
) -> None:
    """Evaluate topics: print measures, ask people questions, score their answers."""
    from embedtopics.annotation import validation_sheets
    from embedtopics.topics import evaluate

    if answers:
        return _score(results, answers)
    show.check_outputs(out)
    result = show.open_result(results)
    if ask is not None:
        return _ask(result, ask, annotator)
    card = evaluate(result, labels=labels)
    blank = validation_sheets(result) if sheets else ()
    written = [(sheet, sheet.write(sheets or Path())) for sheet in blank]
    show.write_outputs(out, lambda: card)
    _print_card(card)
    for sheet, (path, solution) in written:
        typer.echo(f"{path}: {len(sheet)} questions (key: {solution})")
    if written:
        typer.echo("\nnext: people fill in the column answer in copies without the keys; then run")
        typer.echo(f"embedtopics evaluate {results} --answers {written[0][1][0]}")


def _ask(result: TopicResult, folder: Path, annotator: str) -> None:
    """Serve the questions, then print the scores."""
    from embedtopics import annotation

    with annotation.ask(annotation.validation_sheets(result), folder) as study:
        show.run_server(annotation.serve(study, annotator=annotator))
        for score in study.scores():
            show.say(str(score), soft_wrap=True)


def _print_card(card: pd.DataFrame) -> None:
    from embedtopics.plots._comparison import spell

    rows = [
        [row["measure"],
         f"{row['value']:,.0f}" if row["measure"] == "topics" else spell(row["value"]),
         "" if math.isnan(row["low"]) else f"{spell(row['low'])} to {spell(row['high'])}",
         f"{row['n']:,}", "" if row["measure"].endswith(COVERED) else row["meaning"]]
        for row in card.to_dict("records")
    ]  # fmt: skip
    columns = [("measure", "line"), ("value", "figure"), ("95 %", "line"), ("n", "figure")]
    show.print_table([*columns, ("meaning", "words")], rows)
    if card["measure"].str.endswith(COVERED).any():
        show.say("\n..._covered: only texts in a topic; see label_coverage for their share")


def _score(results: Path, answers: list[Path]) -> None:
    """Score answers by the key in ``keys/`` in the folder of their sheet, and print the scores."""
    from embedtopics.annotation._sheets import KEYS, read_sheet, score_sheet

    frame = read_sheet(answers[0])
    tasks = sorted(set(frame["task"])) if "task" in frame else []
    if len(tasks) != 1:
        raise InputError(
            f"expected answers to one sheet, named in its column task; {answers[0]} has "
            f"{', '.join(tasks) or 'none'}; fill in a copy of the sheet"
        )
    key = answers[0].parent / KEYS / f"{tasks[0]}.csv"
    labels = {topic.topic_id: topic.name for topic in show.open_result(results).topics}
    score = score_sheet(answers, key)
    coders = f"{score.n_coders} coder{'s' * (score.n_coders != 1)}"
    typer.echo(
        f"{score.task}: model precision {score.precision:.2f} [{score.low:.2f}, {score.high:.2f}], "
        f"{score.chance:.2f} by chance; {score.n_answers:,} answers of {coders} to "
        f"{score.n_questions:,} questions\n"
    )
    rows = []
    for row in score.by_topic.to_dict("records"):
        cells = [f"{v:.3f}" if isinstance(v, float) else f"{v:,}" for v in row.values()]
        rows.append([*cells, labels.get(int(row["topic"]), "")])
    headings = [(str(name), "figure") for name in score.by_topic.columns]
    show.print_table([*headings, ("label", "words")], rows)
    if not math.isnan(score.alpha):
        show.say(f"\nKrippendorff's alpha of the coders: {score.alpha:.2f}")


def evaluate_encoders(
    encoders: Annotated[
        list[str], Argument(help="tfidf, lsa, fasttext or checkpoints, compared with the first.")
    ],
    examples: Annotated[
        list[Path] | None, Option(help="File of examples with known answers (repeatable).")
    ] = None,
    kind: Annotated[
        Literal["graded", "classed", "nli", "pairs", "triplets"],
        Option(help="Of --examples: graded has scores, classed the classes 0 and 1."),
    ] = "graded",
    columns: Annotated[
        str | None, Option(help="Columns of texts, with commas; found by their names.")
    ] = None,
    label: Annotated[
        str | None, Option(help="Column of classes or scores; found by its name.")
    ] = None,
    scale: Annotated[str | None, Option(help="Lowest and highest possible score: 0,5.")] = None,
    retrieval: Annotated[
        list[Path] | None,
        Option(help="Folder of BEIR: corpus, queries, qrels (repeatable)."),
    ] = None,
    corpus: Annotated[Path | None, Option(help="Documents to compare on.")] = None,
    labels: Annotated[str | None, Option(help="Column of --corpus with known classes.")] = None,
    text: Annotated[Any, Option(help="Column of texts of --corpus.")] = None,
    out: opt.OutTable = None,
) -> None:
    """Evaluate encoders on examples with known answers, on rankings, and on your documents."""
    from embedtopics import comparison, evaluation
    from embedtopics.cli._train import compared_corpus

    show.check_outputs(out)
    if not examples and not retrieval and corpus is None:
        raise InputError(
            "name a file of examples with --examples, a folder with --retrieval, or documents with "
            "--corpus"
        )
    repeated = [name for i, name in enumerate(encoders) if name in encoders[:i]]
    if repeated:
        raise InputError(f"the encoder {repeated[0]} is named twice; name each once")
    documents = compared_corpus(corpus, labels, text, "utf-8")
    sets: list[Any] = [_examples(path, kind, columns, label, scale) for path in examples or ()]
    sets += [evaluation.read_retrieval_set(folder) for folder in retrieval or ()]
    scores = comparison.evaluate_encoders(list(encoders), sets, corpus=documents, labels=labels)

    show.write_outputs(out, lambda: _table(scores))
    _print_scores(scores)
    typer.echo()
    for name, speed in scores.texts_per_second.items():
        typer.echo(
            f"{show.printable(name)}: {scores.n_texts[name]:,} distinct texts in "
            f"{scores.seconds[name]:.1f} s, {speed:,.0f} a second"
        )
    show.print_notes(decision.message for decision in scores.decisions)


def _examples(
    path: Path, kind: str, columns: str | None, label: str | None, scale: str | None
) -> Any:
    """Read examples in the columns that the options name."""
    from embedtopics.cli._train import scale_of
    from embedtopics.training import read_examples

    names = None if columns is None else opt.names_in(columns)
    return read_examples(path, kind, columns=names, label=label, scale=scale_of(scale))


def _table(scores: EncoderScores) -> pd.DataFrame:
    """Return all scores, with the differences of other encoders from the first."""
    table, differences = scores.to_frame(), scores.differences()
    if differences.empty:
        return table
    names = {"low": "difference_low", "high": "difference_high"}
    apart = differences.drop(columns=["n", "before", "after"]).rename(columns=names)
    return table.merge(apart, on=["task", "metric", "encoder"], how="left")


def _print_scores(scores: EncoderScores) -> None:
    several = len(scores.names) > 1
    changes = _spell_changes(scores.differences(), ["task", "metric", "encoder"], "+.4f")
    rows = []
    table = scores.to_frame()
    for (task, metric), same in table.groupby(["task", "metric"], sort=False):
        for row in same.to_dict("records"):
            name = f"{metric}, {row['encoder']}" if several else str(metric)
            ends = f"{row['low']:.4f} to {row['high']:.4f}"
            cells = [str(task), name, f"{row['value']:.4f}", ends, f"{row['n']:,}"]
            if several:
                cells.append(changes.get((task, metric, row["encoder"]), ""))
            rows.append(cells)
    columns = [("", "words"), ("value", "figure"), ("95 %", "line"), ("n", "figure")]
    _print_below_headings(columns + [("from the first", "line")] * several, rows)


def _spell_changes(differences: pd.DataFrame, keys: list[str], form: str) -> dict[Any, str]:
    """Return the differences from the first encoder, with their intervals."""
    return {
        tuple(map(row.get, keys)): show.spell_interval(*[row[c] for c in CHANGE], form=form)
        for row in differences.to_dict("records")
    }


def _print_below_headings(columns: list[tuple[str, str]], rows: list[list[str]]) -> None:
    """Print a table of rows that begin with their heading, each heading once, in bold."""
    shown: list[list[str]] = []
    styles: list[str] = []
    for heading, part in groupby(rows, key=lambda row: row[0]):
        cells = [[f"  {name}", *rest] for _, name, *rest in part]
        shown += [[heading], *cells]
        styles += ["bold", *[""] * len(cells)]
    show.print_table(columns, shown, styles)


def compare_encoders(
    file: opt.DocumentsFile,
    text: opt.TextColumn = None,
    encoders: Annotated[
        str | None, Option(help="Encoders, with commas; default: tfidf,fasttext,all-MiniLM-L6-v2.")
    ] = None,
    labels: Annotated[str | None, Option(help="Column of labels; default: topics.")] = None,
    encoding: opt.FileEncoding = "utf-8",
    out: Annotated[Path | None, Option(help="Folder for the page and tables.")] = None,
) -> None:
    """Compare encoders on a file: scores, speed, and where they differ."""
    from embedtopics import comparison
    from embedtopics.comparison._compare import DEFAULT_ENCODERS
    from embedtopics.corpus._corpus import Corpus, require_text

    if out is not None:
        check_output_folder(out, KIND)
    corpus = Corpus(file, text=text, encoding=encoding)
    require_text(corpus)
    names = opt.names_in(encoders) if encoders else DEFAULT_ENCODERS
    result = comparison.compare_encoders(names, corpus, labels)
    if out is not None:
        _write_comparison(result, out)
    _print_comparison(result)
    if out is not None:
        show.print_written(out, CONTENT)
        typer.echo(f"\nnext: open {out / 'comparison.html'} in a browser")


def _print_comparison(result: Comparison) -> None:
    """Print the scores, the overlap of neighbours, and where the encoders differ most."""
    show.say(f"{len(result.distinct):,} texts, grouped by {show.printable(result.grouped_by)}\n")
    _print_measures(result)
    typer.echo()
    for row in result.overlaps().to_dict("records"):
        show.say(
            f"{show.printable(row['first'])} and {show.printable(row['second'])} share "
            f"{row['jaccard']:.2f} [{row['jaccard_low']:.2f}, {row['jaccard_high']:.2f}] of their "
            f"neighbours ({row['jaccard_chance']:.3f} by chance); rank-biased overlap "
            f"{row['rank_biased']:.2f}"
        )
    moves = result.moves(70)
    for first, second in combinations(result.names, 2):
        names = f"{show.printable(first)} to {show.printable(second)}"
        show.say(f"\ntexts whose neighbours change most from {names}:", style="bold")
        pair = moves[(moves["first"] == first) & (moves["second"] == second)]
        for move in pair.head(5).to_dict("records"):
            show.say(f"  {show.printable(move['text'])}")
            show.say(f"    lost:   {show.printable(move['lost']) or '-'}")
            show.say(f"    gained: {show.printable(move['gained']) or '-'}")
    show.print_notes((decision.message for decision in result.decisions), soft_wrap=False)


def _print_measures(result: Comparison) -> None:
    from embedtopics.comparison.results import spell_figure
    from embedtopics.plots._comparison import name_measure

    changes = _spell_changes(result.differences(), ["measure", "encoder"], "+.3f")
    rows = []
    for row in result.scores.dropna(subset="value").to_dict("records"):
        measure, encoder, value = row["measure"], row["encoder"], row["value"]
        figures = [spell_figure(value, math.nan, math.nan), ""]
        if not math.isnan(row["low"]):
            figures = [f"{value:.3f}", f"{row['low']:.3f} to {row['high']:.3f}"]
        rows.append([name_measure(measure), encoder, *figures, changes.get((measure, encoder), "")])
    columns = [("", "words"), ("value", "figure"), ("95 %", "line"), ("from the first", "line")]
    _print_below_headings(columns, rows)


KIND = "embedtopics comparison folder"
FORMAT = 1
CONTENT = {
    "comparison.html": "page with linked maps, scores and moved texts (opens offline)",
    "scores.csv": "scores of the encoders, with intervals",
    "differences.csv": "differences from the first encoder, with paired intervals",
    "overlaps.csv": "shared neighbours of every pair of encoders",
    "moved.csv": "texts whose neighbours change most, with their words",
}


def _write_comparison(result: Comparison, out: Path) -> None:
    """Write a folder with page and tables, atomically."""
    from embedtopics.corpus._table_files import write_table
    from embedtopics.report._report import write_report

    with replacing_folder(out, KIND) as fresh:
        write_report(result, fresh / "comparison.html")
        write_table(result.scores, fresh / "scores.csv")
        write_table(result.differences(), fresh / "differences.csv")
        write_table(result.overlaps(), fresh / "overlaps.csv")
        write_table(result.moves(300), fresh / "moved.csv")
        write_manifest(fresh, KIND, FORMAT)
