"""What ``probe`` prints: figures by layer, beside what they are to be compared with."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from embedtopics.cli.display import make_console, printable
from embedtopics.cli.probe_folder import CONTENT

if TYPE_CHECKING:
    from rich.console import Console

    from embedtopics.results import LayerScores, ProbeScore

__all__ = ["print_scores"]

PROBES = ("probe", "mlp")


def print_scores(scores: LayerScores, out: Path | None = None) -> None:
    """Print figures by layer, baselines and the best layer on stdout.

    Parameters
    ----------
    scores : LayerScores
    out : Path, optional
        Folder that was written.
    """
    console = make_console()
    console.print(
        f"{printable(scores.task)}, {printable(scores.encoder)}: {len(scores.labels):,} classes; "
        f"learnt on {scores.n_train:,}, measured on {scores.n_test:,}\n",
        soft_wrap=True,
    )
    what = next(one for one in PROBES if scores.of(one, "accuracy"))
    _print_layers(console, scores, what)
    for name in ("majority", "word type", "embedding layer"):
        for score in scores.of(name, "accuracy"):
            console.print(f"{name}: {_spell(score)}", soft_wrap=True)
    for score in scores.of("scalar mix", "accuracy"):
        console.print(f"scalar mix of the layers: {_spell(score)}", soft_wrap=True)
    if scores.expected_layer == scores.expected_layer:
        low, high = scores.expected_layer_interval
        within = f" ({low:.2f} to {high:.2f})" if low == low else ""
        console.print(f"expected layer: {scores.expected_layer:.2f}{within}", soft_wrap=True)
    if scores.chosen_layer is not None:
        chosen = scores.chosen("accuracy", what)
        console.print(f"chosen on dev: layer {chosen.layer}, {_spell(chosen)}", soft_wrap=True)
    best = scores.best("accuracy", what)
    console.print(f"best on test: layer {best.layer}, {_spell(best)}", soft_wrap=True)
    for decision in scores.decisions:
        # Penalties, a number for each layer, are in the folder.
        if decision.name != "penalties":
            console.print(f"note: {printable(decision.message)}", style="yellow", soft_wrap=True)
    if out is not None:
        console.print(f"\nwritten to {out}:", soft_wrap=True)
        for file, meaning in CONTENT.items():
            console.print(f"  {file:<12} {meaning}", soft_wrap=True)


def _print_layers(console: Console, scores: LayerScores, what: str) -> None:
    from rich.table import Table

    columns = {
        "accuracy": (what, "accuracy"),
        "macro F1": (what, "macro F1"),
        "control": ("control", "accuracy"),
        "selectivity": (what, "selectivity"),
        "bits": (what, "bits per label"),
        "random": ("random model", "accuracy"),
    }
    by_layer = {
        name: {score.layer: score for score in scores.of(*wanted)}
        for name, wanted in columns.items()
    }
    shown = Table(box=None, pad_edge=False, header_style="bold", show_edge=False)
    shown.add_column("layer", justify="right")
    for name, own in by_layer.items():
        if own:
            shown.add_column(name, justify="right", no_wrap=True)
        if own and name == "accuracy":
            shown.add_column("95 %", no_wrap=True)
    for layer, score in by_layer["accuracy"].items():
        cells = [str(layer), f"{score.value:.3f}", f"{score.low:.3f} to {score.high:.3f}"]
        for name, own in by_layer.items():
            if own and name != "accuracy":
                cells.append(f"{own[layer].value:.3f}" if layer in own else "")
        shown.add_row(*cells)
    console.print(shown)
    console.print()


def _spell(score: ProbeScore) -> str:
    return f"{score.value:.3f} ({score.low:.3f} to {score.high:.3f})"
