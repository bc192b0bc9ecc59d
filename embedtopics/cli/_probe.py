"""``embedtopics probe``: what can be predicted from each layer of an encoder."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from embedtopics._utils.folders import check_output_folder, replacing_folder, write_manifest
from embedtopics.cli._display import (
    make_console,
    print_table,
    printable,
)
from embedtopics.cli._options import Checkpoint, RandomState, names_in
from embedtopics.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

    from embedtopics.probing.results import LayerScores, ProbeScore, ProbeTask

KIND = "embedtopics probe folder"
FORMAT = 1
CONTENT = {
    "layers.html": "the figure: scores by layer (opens offline)",
    "scores.csv": "the scores, one a row, with intervals",
    "scores.json": "the same with settings, versions and decisions",
}


def probe(
    file: Annotated[
        Path,
        typer.Argument(
            readable=False,  # a file that cannot be read has an error of its own
            help="CoNLL-U; tsv or csv with one word per line; or jsonl with one labelled text or "
            "pair per line (each also .gz).",
        ),
    ],
    task: Annotated[
        str,
        typer.Option(
            help="A column (upos, xpos, deprel, tag), a key (feats:Number), head distance; or of "
            "whole sentences: sentence length, tree depth, bigram shift; of jsonl, the column of "
            "the labels, or word in context."
        ),
    ] = "upos",
    encoder: Checkpoint = "all-MiniLM-L6-v2",
    out: Annotated[Path | None, typer.Option(help="Folder for scores and figure.")] = None,
    dev: Annotated[Path | None, typer.Option(help="File to select penalties on.")] = None,
    test: Annotated[
        Path | None, typer.Option(help="File to evaluate on; default: a share of FILE.")
    ] = None,
    layers: Annotated[str, typer.Option(help='all, "last 4", or numbers with commas.')] = "all",
    probe: Annotated[str, typer.Option(help="linear, or mlp (one hidden layer).")] = "linear",
    control: Annotated[
        bool, typer.Option("--control", help="Also probe random labels, for the selectivity.")
    ] = False,
    random: Annotated[
        bool, typer.Option("--random", help="Also probe the model with random weights.")
    ] = False,
    mix: Annotated[
        bool, typer.Option("--mix", help="Also train a scalar mix of the layers.")
    ] = False,
    word: Annotated[str | None, typer.Option(help="Column of words in a tsv or csv file.")] = None,
    text: Annotated[str, typer.Option(help="Column of texts in a jsonl file.")] = "text",
    random_state: RandomState = 0,
) -> None:
    """Probe the layers of an encoder with labels of words, sentences or pairs of words."""
    from embedtopics import probing

    if probe not in ("linear", "mlp"):
        raise InputError(f"--probe must be linear or mlp; got {probe!r}")
    if out is not None:  # refused before the work
        check_output_folder(out, KIND)
    selection = _layers(layers)
    probe_task = _task({"train": file, "dev": dev, "test": test}, task, word, text, random_state)
    extracted: Any = selection
    if not isinstance(selection, str) and min(selection) >= 0:
        extracted = sorted({0, *selection})
    states, controls = probing.hidden_states(probe_task, encoder, layers=extracted), None
    if random:
        controls = probing.random_states(
            probe_task, encoder, random_state=random_state, layers=extracted
        )
    if probe_task.unit == "text":
        states = probing.pooled(states)
        controls = probing.pooled(controls) if controls else None
    scores = probing.probe(
        states, probe_task, layers=selection, probe=probe, control=control,
        random_states=controls, mix=mix, random_state=random_state,
    )  # fmt: skip
    # Written before anything is printed: a closed pipe must not cost the results.
    if out is not None:
        files = {"file": file, "dev": dev, "test": test}
        settings = {
            **{name: None if path is None else str(path) for name, path in files.items()},
            "task": task, "encoder": encoder, "layers": layers, "probe": probe,
            "control": control, "random": random, "mix": mix, "word": word, "text": text,
            "seed": random_state,
        }  # fmt: skip
        _write(scores, out, settings, states.fingerprint)
    _print_scores(scores, out)


def _layers(text: str) -> str | list[int]:
    """Return layers as a list of numbers, or as text."""
    try:
        return [int(one) for one in names_in(text)] or text
    except ValueError:
        return text  # such as "last 4"


def _task(
    paths: Mapping[str, Path | None], name: str, word: str | None, text: str, random_state: int
) -> ProbeTask:
    """Read the files, and make the task."""
    from embedtopics import probing
    from embedtopics.probing._sentence_tasks import SENTENCE_TASKS

    files = {part: path for part, path in paths.items() if path is not None}
    if "dev" in files and "test" not in files:
        raise InputError("--dev needs --test, the file to evaluate on")
    kinds = {_kind(path) for path in files.values()}
    if len(kinds) > 1:
        raise InputError(f"expected files of one kind, got {' and '.join(sorted(kinds))}")
    [kind] = kinds
    if kind == "jsonl":
        source: Any = files if "test" in files else files["train"]
        if name == "word in context":
            return probing.pair_task(source, random_state=random_state)
        return probing.text_task(source, text=text, label=name, random_state=random_state)
    banks = {
        part: probing.read_conllu(path)
        if kind == "conllu"
        else probing.read_token_table(path, word=word)
        for part, path in files.items()
    }
    parts: Any = banks if "test" in files else banks["train"]
    if name in SENTENCE_TASKS:
        return probing.sentence_task(parts, name, random_state=random_state)
    return probing.token_task(parts, name, random_state=random_state)


def _kind(path: Path) -> str:
    """Return the kind of a file by its name."""
    name = path.name.lower().removesuffix(".gz")
    if name.endswith((".jsonl", ".ndjson", ".json")):
        return "jsonl"
    return "table" if name.endswith((".tsv", ".csv", ".txt")) else "conllu"


def _write(
    scores: LayerScores, folder: Path, settings: Mapping[str, Any], fingerprint: str
) -> None:
    """Write the scores as a table and as JSON, and their figure, atomically."""
    from embedtopics import plots
    from embedtopics._utils.machine import package_versions
    from embedtopics.corpus._table_files import write_csv

    about = {
        "format": FORMAT,
        "settings": dict(settings),
        "fingerprint": fingerprint,
        "versions": package_versions(),
    }
    fields = {"scores" if name == "rows" else name: one for name, one in vars(scores).items()}
    content = json.dumps({**about, **_plain(fields)}, allow_nan=False, indent=1)
    page = plots.layers(scores).to_html(include_plotlyjs=True, full_html=True)
    with replacing_folder(folder, KIND) as fresh:
        write_csv(fresh / "scores.csv", scores.to_frame())
        (fresh / "scores.json").write_text(content, "utf-8")
        (fresh / "layers.html").write_text(page, "utf-8")
        write_manifest(fresh, KIND, FORMAT)


def _plain(value: Any) -> Any:
    """Convert to JSON's types, with None for numbers that are not finite."""
    if dataclasses.is_dataclass(value):
        return _plain(vars(value))
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    if hasattr(value, "tolist"):  # of NumPy
        return _plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _print_scores(scores: LayerScores, out: Path | None) -> None:
    """Print the scores by layer, baselines and the best layer."""
    console = make_console()
    console.print(
        f"{printable(scores.task)}, {printable(scores.encoder)}: {len(scores.labels):,} classes; "
        f"trained on {scores.n_train:,}, tested on {scores.n_test:,}\n",
        soft_wrap=True,
    )
    what = next(one for one in ("probe", "mlp") if scores.of(what=one))
    _print_layers(console, scores, what)
    for name in ("majority", "word type", "embedding layer"):
        for score in scores.of(what=name, metric="accuracy"):
            console.print(f"{name}: {_spell(score)}", soft_wrap=True)
    for score in scores.of(what="scalar mix", metric="accuracy"):
        console.print(f"scalar mix of the layers: {_spell(score)}", soft_wrap=True)
    if scores.expected_layer == scores.expected_layer:
        low, high = scores.expected_layer_interval
        within = f" ({low:.2f} to {high:.2f})" if low == low else ""
        console.print(f"expected layer: {scores.expected_layer:.2f}{within}", soft_wrap=True)
    if scores.chosen_layer is not None:
        best = scores.chosen("accuracy", what)
        console.print(f"selected on dev: layer {best.layer}, {_spell(best)}", soft_wrap=True)
    best = scores.best("accuracy", what)
    console.print(f"best on test: layer {best.layer}, {_spell(best)}", soft_wrap=True)
    for decision in scores.decisions:
        # The penalties of all layers are in the folder.
        if decision.name != "penalties":
            console.print(f"note: {printable(decision.message)}", style="yellow", soft_wrap=True)
    if out is not None:
        console.print(f"\nwritten to {out}:", soft_wrap=True)
        for file, meaning in CONTENT.items():
            console.print(f"  {file:<12} {meaning}", soft_wrap=True)


def _print_layers(console: Console, scores: LayerScores, what: str) -> None:
    columns = {
        "accuracy": (what, "accuracy"),
        "macro F1": (what, "macro F1"),
        "control": ("control", "accuracy"),
        "selectivity": (what, "selectivity"),
        "random": ("random model", "accuracy"),
    }
    by_layer = {
        name: {score.layer: score for score in scores.of(what=kind, metric=metric)}
        for name, (kind, metric) in columns.items()
    }
    others = {name: rows for name, rows in by_layer.items() if rows and name != "accuracy"}
    headings = [("layer", "number"), ("accuracy", "figure"), ("95 %", "line")]
    headings += [(name, "figure") for name in others]
    rows = []
    for layer, score in by_layer["accuracy"].items():
        cells = [str(layer), f"{score.value:.3f}", f"{score.low:.3f} to {score.high:.3f}"]
        figures = [f"{rows[layer].value:.3f}" if layer in rows else "" for rows in others.values()]
        rows.append([*cells, *figures])
    print_table(console, headings, rows)
    console.print()


def _spell(score: ProbeScore) -> str:
    return f"{score.value:.3f} ({score.low:.3f} to {score.high:.3f})"
