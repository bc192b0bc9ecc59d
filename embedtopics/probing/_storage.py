"""Hidden states on disk: one file of vectors per layer, and the positions of the units.

::

    <folder>/
        about.json              encoder, settings and decisions
        texts.json              the texts
        index.npz               of_text, sentences, spans, n_pieces
        layer-00.f16 ...        n_units x width little-endian numbers
        manifest.json           sizes and checksums of all these
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from embedtopics._utils.folders import parse_json, read_manifest, write_manifest
from embedtopics.decisions import Decision
from embedtopics.errors import CorruptFileError
from embedtopics.probing.results import HiddenStates
from embedtopics.protocols import FloatArray

KIND = "hidden states"
VERSION = 1
_INDEX = ("of_text", "sentences", "spans", "n_pieces")
_MOST = float(np.finfo(np.float16).max)
_EXTENSIONS = {"float16": "f16", "float32": "f32"}


def append_block(folder: Path, layers: Sequence[int], vectors: FloatArray, dtype: str) -> int:
    """Append vectors, (n_layers, n_new, width); return how many numbers were clipped."""
    n_clipped = 0
    for number, layer in zip(layers, vectors, strict=True):
        if dtype == "float16":
            n_clipped += int((np.abs(layer) > _MOST).sum())
            np.clip(layer, -_MOST, _MOST, out=layer)
        with _path(folder, number, dtype).open("ab") as file:
            file.write(layer.astype(np.dtype(dtype).newbyteorder("<")).data)
    return n_clipped


def map_vectors(
    folder: Path, layers: Sequence[int], shape: tuple[int, int], dtype: str
) -> tuple[Any, ...]:
    """Map the file of each layer into memory."""
    kind = np.dtype(dtype).newbyteorder("<")
    if not shape[0]:  # an empty file cannot be mapped
        return tuple(np.zeros(shape, dtype=kind) for _ in layers)
    paths = [_path(folder, layer, dtype) for layer in layers]
    return tuple(np.memmap(path, dtype=kind, mode="r", shape=shape) for path in paths)


def write_store(folder: Path, states: HiddenStates, description: Mapping[str, Any]) -> None:
    """Write all but the vectors."""
    content = {
        **description,
        "encoder": states.encoder,
        "fingerprint": states.fingerprint,
        "layers": states.layers,
        "decisions": [vars(decision) for decision in states.decisions],
    }
    (folder / "about.json").write_text(json.dumps(content), "utf-8")
    (folder / "texts.json").write_text(json.dumps(states.texts), "utf-8")
    np.savez(folder / "index.npz", **{name: getattr(states, name) for name in _INDEX})
    write_manifest(folder, KIND, VERSION)


def open_store(folder: Path) -> tuple[HiddenStates, dict[str, Any]]:
    """Check all files of a folder; return hidden states, and the description of their store."""
    read_manifest(folder, KIND, VERSION)
    try:
        about = parse_json((folder / "about.json").read_bytes())
        texts = tuple(parse_json((folder / "texts.json").read_bytes()))
        with np.load(folder / "index.npz", allow_pickle=False) as arrays:
            index = {name: arrays[name] for name in _INDEX}
        shape, layers = (len(index["of_text"]), int(about["width"])), tuple(about["layers"])
        states = assemble(
            texts,
            index,
            layers=layers,
            vectors=map_vectors(folder, layers, shape, about["dtype"]),
            folder=str(folder),
            decisions=tuple(Decision(**each) for each in about["decisions"]),
            **{name: about[name] for name in ("unit", "pooling", "encoder", "fingerprint")},
        )
        return states, about
    except (ArithmeticError, LookupError, TypeError, ValueError, OSError) as error:
        raise CorruptFileError(f"{folder} is damaged ({error}); extract again") from error


def assemble(texts: tuple[str, ...], index: Mapping[str, Any], **others: Any) -> HiddenStates:
    """Return hidden states, with the words and positions that follow from the index."""
    of_text, spans = index["of_text"], index["spans"]
    begins = np.searchsorted(of_text, np.arange(len(texts)))
    sizes = np.diff(begins, append=len(of_text))
    return HiddenStates(
        texts=texts,
        words=tuple(
            texts[text][begin:end]
            for text, (begin, end) in zip(of_text.tolist(), spans.tolist(), strict=True)
        ),
        position=(np.arange(len(of_text)) - np.repeat(begins, sizes)).astype(np.int32),
        **index,
        **others,
    )


def _path(folder: Path, layer: int, dtype: str) -> Path:
    return folder / f"layer-{layer:02d}.{_EXTENSIONS[dtype]}"
