"""The folder of a static encoder, in model2vec's format: config, table and tokenizer.

::

    config.json          model_type "model2vec", normalize, max_length, and what it was made from
    model.safetensors    embeddings (n_rows, n_dimensions); perhaps weights (n_vocabulary,), and
                         mapping (n_vocabulary,), the row of each token
    tokenizer.json       of the tokenizers library
    modules.json         lets sentence-transformers read the folder, too
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from embedtopics._utils.checks import optional_count
from embedtopics._utils.display import one_line
from embedtopics._utils.folders import (
    MANIFEST,
    open_saved,
    parse_json,
    replacing_folder,
    write_manifest,
)
from embedtopics.encoders._base import check_tokenizer, load_error, refusing_panics, try_out
from embedtopics.errors import InputError
from embedtopics.protocols import FloatArray

if TYPE_CHECKING:
    from tokenizers import Tokenizer


KIND = "static encoder"
FORMAT = 1
CONFIG, TABLE, TOKENIZER = "config.json", "model.safetensors", "tokenizer.json"
DEFAULT_MAX_LENGTH = 512
"""Default maximum number of tokens read of a text, as in model2vec."""

_LONGEST_HEADER = 100_000_000


@dataclass(frozen=True, eq=False)
class StaticFiles:
    """Contents of a folder: `table` (n_vocabulary, n_dimensions), `weights` (n_vocabulary,)."""

    table: FloatArray
    weights: FloatArray | None
    tokenizer: str
    normalize: bool = True
    max_length: int | None = None
    config: dict[str, Any] = field(default_factory=dict)


def holds_static_encoder(folder: Path) -> bool:
    """Return whether a folder contains a static encoder, by its configuration or its tensors."""
    try:
        config = json.loads((folder / CONFIG).read_text("utf-8"))
        kind = config.get("model_type") if isinstance(config, dict) else None
        if kind is not None:
            return bool(kind == "model2vec")
        with (folder / TABLE).open("rb") as stream:
            length = int.from_bytes(stream.read(8), "little")
            header = json.loads(stream.read(min(length, _LONGEST_HEADER)))
        names = set(header) - {"__metadata__"}
        return "embeddings" in names and names <= {"embeddings", "weights", "mapping"}
    except (OSError, ValueError, TypeError):
        return False


def read_static(folder: Path) -> StaticFiles:
    """Read a folder as safetensors and JSON; a `mapping` assigns a row to each token."""
    from safetensors.numpy import load

    names = (CONFIG, TOKENIZER, TABLE)
    for name in names:
        if not (folder / name).is_file():
            expected, remedy = "the folder of a static encoder", "pass that of a complete model"
            raise load_error(expected, f"{folder}, which has no file {name}", remedy)
    if (folder / MANIFEST).is_file():
        with open_saved(folder, KIND, FORMAT) as saved, _reading(folder / MANIFEST):
            contents = {name: saved.streams[name].read() for name in names}
    else:
        contents = {name: (folder / name).read_bytes() for name in names}
    with _reading(folder / CONFIG):
        config = dict(parse_json(contents[CONFIG].decode()))
        max_length = optional_count(config.get("max_length", DEFAULT_MAX_LENGTH), "max_length")
    with _reading(folder / TOKENIZER):
        text = contents[TOKENIZER].decode()
    n_tokens = parse_tokenizer(text, folder / TOKENIZER).get_vocab_size()
    with _reading(folder / TABLE):
        tensors = load(contents.pop(TABLE))
        table = tensors["embeddings"]
        if "mapping" in tensors:
            mapping = tensors["mapping"]
            if mapping.shape != (n_tokens,) or mapping.min() < 0:
                raise ValueError(f"mapping must have a row for each of the {n_tokens} tokens")
            table = table[mapping]
        table, weights = check_table(table, tensors.get("weights"), n_tokens)
    normalize = bool(config.get("normalize", False))
    return StaticFiles(table, weights, text, normalize, max_length, config)


@contextmanager
def _reading(file: object) -> Iterator[None]:
    """Name the file in the error of whatever is wrong with it."""
    try:
        with refusing_panics():
            yield
    except Exception as error:  # libraries raise whatever a damaged number leads to
        actual = f"{file}: {one_line(error)}"
        remedy = "fetch or save the encoder again"
        raise load_error("a valid file of a static encoder", actual, remedy) from None


def parse_tokenizer(text: str, source: object = "the tokenizer") -> Tokenizer:
    """Return a tokenizer without truncation and padding."""
    from tokenizers import Tokenizer

    with _reading(source):
        check_tokenizer(text)
        tokenizer = Tokenizer.from_str(text)
        tokenizer.no_truncation()
        tokenizer.no_padding()
        try_out(tokenizer)
        if sorted(tokenizer.get_vocab().values()) != list(range(tokenizer.get_vocab_size())):
            raise ValueError("token ids must be consecutive and start at 0")
    return tokenizer


def check_table(
    table: npt.ArrayLike, weights: npt.ArrayLike | None, n_tokens: int
) -> tuple[FloatArray, FloatArray | None]:
    """Return copies as read-only float32 arrays."""
    vectors = _checked("embeddings", table, n_tokens, 2)
    return vectors, None if weights is None else _checked("weights", weights, n_tokens, 1)


def _checked(name: str, values: npt.ArrayLike, n_tokens: int, n_axes: int) -> FloatArray:
    with np.errstate(over="ignore"):
        array = np.array(values, dtype=np.float32, order="C")
    if array.ndim != n_axes or len(array) != n_tokens or 0 in array.shape:
        expected = f"{n_axes} axes and a row for each of the {n_tokens} tokens of the tokenizer"
        raise InputError(name, expected, found=f"shape {array.shape}")
    if not np.isfinite(array).all():
        row = int(np.argmin(np.isfinite(array.reshape(n_tokens, -1)).all(axis=1)))
        raise InputError(name, "finite numbers", found="another number", row=row)
    array.flags.writeable = False
    return array


def write_static(folder: Path, files: StaticFiles) -> None:
    """Write a folder atomically."""
    from safetensors.numpy import save_file

    tensors = {"embeddings": files.table}
    if files.weights is not None:
        tensors["weights"] = files.weights
    config = {
        "model_type": "model2vec",
        "architectures": ["StaticModel"],
        "seq_length": 1_000_000,
        **files.config,
        "hidden_dim": int(files.table.shape[1]),
        "normalize": files.normalize,
        "max_length": files.max_length,
        "embedding_dtype": "float32",
    }
    config.pop("vocabulary_quantization", None)  # mappings have been applied
    tokenizer = parse_tokenizer(files.tokenizer)
    if files.max_length is not None:
        tokenizer.enable_truncation(files.max_length)  # sentence-transformers relies on it
    steps = ["StaticEmbedding", *["Normalize"] * files.normalize]
    modules = [
        {
            "idx": place,
            "name": str(place),
            "path": "." if place == 0 else f"{place}_{step}",
            "type": f"sentence_transformers.models.{step}",
        }
        for place, step in enumerate(steps)
    ]
    with replacing_folder(folder, KIND) as fresh:
        save_file(tensors, fresh / TABLE)
        (fresh / TOKENIZER).write_text(str(tokenizer.to_str()), "utf-8")
        (fresh / CONFIG).write_text(json.dumps(config, indent=4), "utf-8")
        (fresh / "modules.json").write_text(json.dumps(modules, indent=4), "utf-8")
        write_manifest(fresh, KIND, FORMAT)
