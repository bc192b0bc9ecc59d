"""``embedtopics evaluate-encoder``: what encoders score on examples with known answers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from embedtopics.cli._display import (
    FIGURE,
    LINE,
    TABLE,
    WORDS,
    check_target,
    guarded,
    make_console,
    print_notes,
    print_table,
    printable,
)
from embedtopics.cli._options import OutTable, RandomState
from embedtopics.errors import InputError

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console

    from embedtopics.evaluation.results import EncoderScores


@guarded
def evaluate_encoder(
    encoder: Annotated[
        list[str],
        typer.Argument(
            help="tfidf, lsa, fasttext, or the name or folder of a checkpoint; of several, "
            "differences are from the first."
        ),
    ],
    pairs: Annotated[
        list[Path] | None,
        typer.Option(help="File of pairs (repeatable); scores of 0 and 1 are classes."),
    ] = None,
    columns: Annotated[
        str, typer.Option(help="Columns of --pairs: both texts and the score, with commas.")
    ] = "sentence1,sentence2,score",
    retrieval: Annotated[
        list[Path] | None,
        typer.Option(help="Folder with corpus, queries and qrels as in BEIR (repeatable)."),
    ] = None,
    split: Annotated[str, typer.Option(help="Judgements of --retrieval: qrels/SPLIT.")] = "test",
    out: OutTable = None,
    random_state: RandomState = 0,
) -> None:
    """Measure encoders on your own pairs of texts with scores, and queries with judgements."""
    from embedtopics import evaluation
    from embedtopics._utils.table_files import write_table
    from embedtopics.encoders._registry import resolve_encoder
    from embedtopics.evaluation._encoder_tasks import read_pairs, read_retrieval_set

    check_target(out, TABLE)
    if not pairs and not retrieval:
        raise InputError("name a file of pairs with --pairs, or a folder with --retrieval")
    names = [name.strip() for name in columns.split(",") if name.strip()]
    sets: list[Any] = [read_pairs(path, names) for path in pairs or ()]
    sets += [read_retrieval_set(folder, split=split) for folder in retrieval or ()]
    twice = [name for place, name in enumerate(encoder) if name in encoder[:place]]
    if twice:
        raise InputError(f"the encoder {twice[0]} is named twice; name each once")
    # All are found before one is measured; each is let go before the next is loaded.
    waiting = [resolve_encoder(name) for name in encoder]
    made = [
        evaluation.evaluate_encoder(waiting.pop(0), sets, name=name, random_state=random_state)
        for name in encoder
    ]
    differences = evaluation.score_differences(made)
    # Written before anything is printed: a closed pipe must not cost the results.
    if out is not None:
        write_table(_table(made, differences), out)
    console = make_console()
    _print_scores(console, made, differences)
    console.print()
    for scores in made:
        console.print(
            f"{printable(scores.name)}: {scores.n_texts:,} distinct texts in "
            f"{scores.seconds:.1f} s, {scores.texts_per_second:,.0f} a second",
            soft_wrap=True,
        )
    print_notes(console, (decision.message for scores in made for decision in scores.decisions))


def _table(made: Sequence[EncoderScores], differences: pd.DataFrame) -> pd.DataFrame:
    """Return all scores, and how far those of other encoders are from the first."""
    import pandas as pd

    frames = []
    for scores in made:
        frame = scores.to_frame()
        frame.insert(0, "encoder", scores.name)
        frames.append(frame)
    table = pd.concat(frames, ignore_index=True)
    if differences.empty:
        return table
    apart = differences.rename(columns={"low": "difference_low", "high": "difference_high"}).drop(
        columns="n"
    )
    return table.merge(apart, on=["task", "file", "metric", "encoder"], how="left")


def _print_scores(
    console: Console, made: Sequence[EncoderScores], differences: pd.DataFrame
) -> None:
    several = len(made) > 1
    apart = {
        (row["task"], row["file"], row["metric"], row["encoder"]):
            f"{row['difference']:+.4f} [{row['low']:+.4f}, {row['high']:+.4f}]"
        for row in differences.to_dict("records")
    }  # fmt: skip
    columns = [("", WORDS), ("value", FIGURE), ("95 %", LINE), ("n", FIGURE)]
    if several:
        columns.append(("from the first", LINE))
    rows: list[list[str]] = []
    styles = []
    task = file = ""
    for same in zip(*(scores.scores for scores in made), strict=True):
        metric = same[0].metric
        if same[0].task != task:
            task, file = same[0].task, ""
            rows.append([task])
            styles.append("bold")
        headings = [f" {same[0].file}"] if same[0].file != file else []
        headings += [f"  {metric}"] if several else []
        file = same[0].file
        rows += [[heading] for heading in headings]
        for scores, score in zip(made, same, strict=True):
            one = score.estimate
            first = f"    {scores.name}" if several else f"  {metric}"
            cells = [first, f"{one.value:.4f}", f"{one.low:.4f} to {one.high:.4f}", f"{one.n:,}"]
            if several:
                cells.append(apart.get((score.task, score.file, metric, scores.name), ""))
            rows.append(cells)
        styles += [""] * (len(rows) - len(styles))
    print_table(console, columns, rows, styles)
