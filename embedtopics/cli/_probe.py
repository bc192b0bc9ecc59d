"""``embedtopics probe``: what can be predicted from each layer of an encoder."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from embedtopics._utils.folders import check_output_folder, replacing_folder, write_manifest
from embedtopics.cli import _display as show
from embedtopics.cli._options import Checkpoint, RandomState

if TYPE_CHECKING:
    import pandas as pd

    from embedtopics.probing.results import LayerScores

KIND = "embedtopics probe folder"
FORMAT = 1
CONTENT = {
    "layers.html": "scores by layer, as a figure and a table (opens offline)",
    "scores.csv": "the scores, one a row, with intervals",
    "settings.json": "settings, versions and decisions",
}


def probe(
    file: Annotated[
        Path,
        Argument(
            readable=False,  # a file that cannot be read has an error of its own
            help="CoNLL-U; tsv or csv with one word per line; or jsonl with one labelled text per "
            "line (each also .gz).",
        ),
    ],
    task: Annotated[
        str,
        Option(
            help="A column (upos, xpos, deprel, tag) or a key (feats:Number); or of "
            "whole sentences: sentence length, tree depth, bigram shift; of jsonl, the column of "
            "the labels."
        ),
    ] = "upos",
    encoder: Checkpoint = "all-MiniLM-L6-v2",
    out: Annotated[Path | None, Option(help="Folder for scores and figure.")] = None,
    test: Annotated[Path | None, Option(help="Test file; default: a share of FILE.")] = None,
    control: Annotated[bool, Option("--control", help="Also probe random labels.")] = False,
    random: Annotated[bool, Option("--random", help="Also probe random weights.")] = False,
    mix: Annotated[bool, Option("--mix", help="Also train a scalar mix of the layers.")] = False,
    random_state: RandomState = 0,
) -> None:
    """Probe the layers of an encoder with labels of words or sentences."""
    from embedtopics import probing

    if out is not None:  # refused before the work
        check_output_folder(out, KIND)
    source = file if test is None else {"train": file, "test": test}
    probe_task = probing.make_task(source, task, random_state=random_state)
    states = probing.hidden_states(encoder, probe_task)
    baseline = None
    if random:
        baseline = probing.hidden_states(
            encoder, probe_task, random_weights=True, random_state=random_state
        )
    scores = probing.probe(
        states, probe_task, control=control, baseline=baseline, mix=mix, random_state=random_state
    )
    if out is not None:
        settings = {
            "file": str(file), "test": None if test is None else str(test), "task": task,
            "encoder": encoder, "control": control, "random": random, "mix": mix,
            "seed": random_state,
        }  # fmt: skip
        _write(scores, out, settings, states.fingerprint)
    _print_scores(scores, out)


def _write(
    scores: LayerScores, folder: Path, settings: Mapping[str, Any], fingerprint: str
) -> None:
    """Write the scores, their figure and the settings, atomically."""
    from embedtopics._utils.machine import package_versions
    from embedtopics.corpus._table_files import write_csv
    from embedtopics.report import write_report

    notes = [decision.message for decision in scores.decisions]
    about = {
        "format": FORMAT, "settings": dict(settings), "fingerprint": fingerprint,
        "labels": list(scores.labels), "decisions": notes, "versions": package_versions(),
    }  # fmt: skip
    with replacing_folder(folder, KIND) as fresh:
        write_csv(fresh / "scores.csv", scores.to_frame())
        (fresh / "settings.json").write_text(json.dumps(about, indent=1), "utf-8")
        write_report(scores, fresh / "layers.html")
        write_manifest(fresh, KIND, FORMAT)


def _print_scores(scores: LayerScores, out: Path | None) -> None:
    """Print the scores by layer, baselines and the best layer."""
    show.say(
        f"{show.printable(f'{scores.task}, {scores.encoder}')}: {len(scores.labels):,} classes; "
        f"trained on {scores.n_train:,}, tested on {scores.n_test:,}\n",
        soft_wrap=True,
    )
    _print_layers(scores)
    for name in ("majority", "word type", "embedding layer", "scalar mix"):
        for score in _scores_of(scores, name, "accuracy").itertuples():
            show.say(f"{name}: {_spell(score)}", soft_wrap=True)
    chosen = {} if scores.chosen_layer is None else {"selected on dev": scores.chosen("accuracy")}
    for name, best in (chosen | {"best on test": scores.best("accuracy")}).items():
        show.say(f"{name}: layer {best.layer}, {_spell(best)}", soft_wrap=True)
    # The penalties of all layers are in the folder.
    show.print_notes([d.message for d in scores.decisions if d.name != "penalties"])
    if out is not None:
        show.print_written(out, CONTENT)


def _print_layers(scores: LayerScores) -> None:
    columns = {
        "accuracy": ("probe", "accuracy"),
        "macro F1": ("probe", "macro F1"),
        "control": ("control", "accuracy"),
        "selectivity": ("probe", "selectivity"),
        "random": ("random model", "accuracy"),
    }
    by_layer = {}
    for name, (kind, metric) in columns.items():
        rows_of_kind = _scores_of(scores, kind, metric).itertuples()
        by_layer[name] = {score.layer: score for score in rows_of_kind}
    others = {name: rows for name, rows in by_layer.items() if rows and name != "accuracy"}
    headings = [("layer", "number"), ("accuracy", "figure"), ("95 %", "line")]
    headings += [(name, "figure") for name in others]
    rows = []
    for layer, score in by_layer["accuracy"].items():
        cells = [str(layer), f"{score.value:.3f}", f"{score.low:.3f} to {score.high:.3f}"]
        figures = [f"{rows[layer].value:.3f}" if layer in rows else "" for rows in others.values()]
        rows.append([*cells, *figures])
    show.print_table(headings, rows)
    show.say()


def _scores_of(scores: LayerScores, kind: str, metric: str) -> pd.DataFrame:
    table = scores.to_frame()
    return table[(table["what"] == kind) & (table["metric"] == metric)]


def _spell(score: Any) -> str:
    return f"{score.value:.3f} ({score.low:.3f} to {score.high:.3f})"
