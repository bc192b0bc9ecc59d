"""What ``probe`` writes: the scores as a table and as JSON, and their figure."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from embedtopics._files import check_output_folder, replacing_folder, write_manifest

if TYPE_CHECKING:
    from embedtopics.results import LayerScores

__all__ = ["CONTENT", "check_probe_folder", "write_probe_folder"]

KIND = "embedtopics probe folder"
FORMAT = 1
CONTENT = {
    "layers.html": "the figure: scores by layer (opens offline)",
    "scores.csv": "a figure a row, with its interval",
    "scores.json": "the same, with settings, versions and what was decided",
}


def check_probe_folder(folder: Path) -> None:
    """Make sure, before the work, that scores can be written there and nothing is lost."""
    check_output_folder(folder, KIND)


def write_probe_folder(
    scores: LayerScores, folder: Path, settings: Mapping[str, Any], fingerprint: str
) -> None:
    """Write everything, all or nothing.

    Parameters
    ----------
    scores : LayerScores
    folder : Path
    settings : mapping of str to value
        As they were given.
    fingerprint : str
        Of the hidden states.

    Raises
    ------
    InputError
        Where something cannot be written; what was there before is whole.
    """
    from embedtopics import plots
    from embedtopics._spreadsheets import write_csv

    content = json.dumps(_content(scores, settings, fingerprint), allow_nan=False, indent=1)
    page = plots.layers(scores).to_html(include_plotlyjs=True, full_html=True)
    with replacing_folder(folder, KIND) as fresh:
        write_csv(fresh / "scores.csv", scores.to_frame())
        (fresh / "scores.json").write_text(content, "utf-8")
        (fresh / "layers.html").write_text(page, "utf-8")
        write_manifest(fresh, KIND, FORMAT)


def _content(scores: LayerScores, settings: Mapping[str, Any], fingerprint: str) -> dict[str, Any]:
    from embedtopics._versions import package_versions

    mix = scores.mix
    content = {
        "format": FORMAT,
        "task": scores.task,
        "encoder": scores.encoder,
        "fingerprint": fingerprint,
        "settings": dict(settings),
        "versions": package_versions(),
        "labels": list(scores.labels),
        "n_train": scores.n_train,
        "n_dev": scores.n_dev,
        "n_test": scores.n_test,
        "scores": [asdict(score) for score in scores.scores],
        "expected_layer": scores.expected_layer,
        "differential": list(scores.differential),
        "mix": None
        if mix is None
        else {
            "layers": list(mix.layers),
            "weights": mix.weights.tolist(),
            "gain": mix.gain.tolist(),
        },
        "decisions": [asdict(decision) for decision in scores.decisions],
    }
    plain: dict[str, Any] = _plain(content)
    return plain


def _plain(value: Any) -> Any:
    """Return what JSON can hold: None for a number that is not known, Python's own numbers."""
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
