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
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from embedtopics._utils.display import one_line
from embedtopics._utils.folders import (
    MANIFEST,
    open_saved,
    parse_json,
    replacing_folder,
    write_manifest,
)
from embedtopics.encoders._base import check_tokenizer, load_error, refusing_panics, try_out
from embedtopics.errors import InputError, ModelLoadError
from embedtopics.protocols import FloatArray

if TYPE_CHECKING:
    from tokenizers import Tokenizer


KIND = "static encoder"
FORMAT = 1
CONFIG, TABLE, TOKENIZER = "config.json", "model.safetensors", "tokenizer.json"
DEFAULT_MAX_LENGTH = 512
"""Default maximum number of tokens read of a text, as in model2vec."""

_DTYPES = ("float32", "float16", "int8")
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
    if not folder.is_dir():
        actual = f"{str(folder)!r}, which is not a folder"
        raise load_error("the folder of a static encoder", actual, "check the path")
    for name in (CONFIG, TABLE, TOKENIZER):
        if not (folder / name).is_file():
            raise ModelLoadError(
                f"expected the file {name} of a static encoder in {folder}, which is missing; "
                "pass the folder of a complete model2vec model"
            )
    names = (CONFIG, TOKENIZER, TABLE)
    if (folder / MANIFEST).is_file():
        with open_saved(folder, KIND, FORMAT) as saved:
            if missing := [name for name in names if name not in saved.streams]:
                raise _broken(folder / MANIFEST, f"does not list {missing[0]}")
            contents = {name: saved.streams[name].read() for name in names}
    else:
        contents = {name: (folder / name).read_bytes() for name in names}
    config = _read_config(folder / CONFIG, contents[CONFIG])
    text = _read_text(folder / TOKENIZER, contents[TOKENIZER])
    n_tokens = parse_tokenizer(text, str(folder / TOKENIZER)).get_vocab_size()
    table, weights = _read_table(folder / TABLE, contents.pop(TABLE), n_tokens)
    max_length = config.get("max_length", DEFAULT_MAX_LENGTH)
    return StaticFiles(
        table, weights, text, bool(config.get("normalize", False)), max_length, config
    )


def _read_text(path: Path, content: bytes) -> str:
    try:
        return content.decode("utf-8")
    except ValueError as error:
        raise _broken(path, error) from None


def _read_config(path: Path, content: bytes) -> dict[str, Any]:
    try:
        config = parse_json(_read_text(path, content))
    except ValueError as error:
        raise _broken(path, error) from None
    if not isinstance(config, dict):
        raise _broken(path, f"holds a {type(config).__name__}, not an object")
    length = config.get("max_length", DEFAULT_MAX_LENGTH)
    if length is not None and (type(length) is not int or length < 1):
        raise _broken(path, f"max_length must be null or an integer of at least 1, is {length!r}")
    return config


def _broken(path: Path | str, reason: object) -> ModelLoadError:
    actual = f"{path}: {' '.join(str(reason).split())[:160]}"
    return load_error("a valid file of a static encoder", actual, "fetch or save the encoder again")


def parse_tokenizer(text: str, source: str) -> Tokenizer:
    """Return a tokenizer without truncation and padding."""
    from tokenizers import Tokenizer

    try:
        with refusing_panics():
            check_tokenizer(text)
            tokenizer = Tokenizer.from_str(text)
            tokenizer.no_truncation()
            tokenizer.no_padding()
            try_out(tokenizer)
    except Exception as error:  # the library raises nothing more specific
        raise _broken(source, one_line(error)) from None
    numbers = tokenizer.get_vocab().values()
    if not numbers or max(numbers) != len(numbers) - 1 or len(set(numbers)) != len(numbers):
        raise _broken(source, "token ids must be consecutive and start at 0")
    return tokenizer


def _read_table(path: Path, content: bytes, n_tokens: int) -> tuple[FloatArray, FloatArray | None]:
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        tensors = load(content)
    except (SafetensorError, OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise _broken(path, one_line(error)) from None
    if "embeddings" not in tensors:
        raise _broken(path, f"has no tensor 'embeddings', but {sorted(tensors)}")
    try:
        table = _mapped(tensors["embeddings"], tensors.get("mapping"), n_tokens)
        return check_table(table, tensors.get("weights"), n_tokens)
    except InputError as error:
        raise _broken(path, error) from None


def _mapped(
    table: npt.NDArray[Any], mapping: npt.NDArray[Any] | None, n_tokens: int
) -> npt.NDArray[Any]:
    if mapping is None:
        return table
    if mapping.shape != (n_tokens,) or mapping.dtype.kind not in "iu" or table.ndim != 2:
        raise InputError(
            f"mapping must be {n_tokens} integers, one a token of the tokenizer; "
            f"is {mapping.dtype} of shape {mapping.shape}"
        )
    outside = np.flatnonzero((mapping < 0) | (mapping >= len(table)))
    if len(outside):
        raise InputError(
            f"mapping of token {outside[0]} is {mapping[outside[0]]}; "
            f"there are {len(table)} rows of embeddings"
        )
    mapped: npt.NDArray[Any] = table[mapping]
    return mapped


def check_table(
    table: npt.ArrayLike, weights: npt.ArrayLike | None, n_tokens: int
) -> tuple[FloatArray, FloatArray | None]:
    """Return copies as read-only float32 arrays."""
    vectors = _checked("embeddings", table, n_tokens, 2)
    return vectors, None if weights is None else _checked("weights", weights, n_tokens, 1)


def _checked(name: str, values: npt.ArrayLike, n_tokens: int, n_axes: int) -> FloatArray:
    array = np.asarray(values)
    fits = array.ndim == n_axes and len(array) == n_tokens and array.dtype.kind in "fiu"
    if not fits or 0 in array.shape:
        raise InputError(
            f"expected {name} for the {n_tokens} tokens of the tokenizer, an array of numbers with "
            f"{n_axes} axes and {n_tokens} rows; got {array.dtype} of shape {array.shape}; give "
            "the table and the tokenizer of one encoder"
        )
    with np.errstate(over="ignore"):
        array = np.array(array, dtype=np.float32, order="C")
    finite = np.isfinite(array) if n_axes == 1 else np.isfinite(array).all(axis=1)
    if not finite.all():
        raise InputError(
            f"expected finite {name}, got another number in row {int(np.argmin(finite))}; "
            "mend that row"
        )
    array.flags.writeable = False
    return array


def write_static(folder: Path, files: StaticFiles, dtype: str) -> None:
    """Write a folder atomically."""
    from safetensors.numpy import save_file

    tensors: dict[str, npt.NDArray[Any]] = {"embeddings": _as_dtype(files, dtype)}
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
        "embedding_dtype": dtype,
    }
    config.pop("vocabulary_quantization", None)  # mappings have been applied
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
        (fresh / TOKENIZER).write_text(_cutting(files.tokenizer, files.max_length), "utf-8")
        (fresh / CONFIG).write_text(json.dumps(config, indent=4), "utf-8")
        (fresh / "modules.json").write_text(json.dumps(modules, indent=4), "utf-8")
        write_manifest(fresh, KIND, FORMAT)


def _cutting(tokenizer: str, max_length: int | None) -> str:
    """Return the tokenizer with truncation, on which sentence-transformers relies."""
    parsed = parse_tokenizer(tokenizer, TOKENIZER)
    if max_length is not None:
        parsed.enable_truncation(max_length)
    return str(parsed.to_str())


def _as_dtype(files: StaticFiles, dtype: str) -> npt.NDArray[Any]:
    if dtype not in _DTYPES:
        raise InputError(f"expected dtype to be one of {', '.join(_DTYPES)}; got {dtype!r}")
    largest = float(np.abs(files.table).max())
    if dtype == "int8":
        if not files.normalize:
            raise InputError(
                'dtype "int8" loses the lengths of vectors, and this encoder does not scale '
                'its vectors to length 1; choose "float16"'
            )
        shortened: npt.NDArray[Any] = np.rint(files.table * (127.0 / (largest or 1.0)))
        return shortened.astype(np.int8)
    if dtype == "float16" and largest > float(np.finfo(np.float16).max):
        raise InputError(
            f"expected a table within the range of float16, got {largest:.3g}; "
            'choose dtype="float32"'
        )
    return files.table.astype(dtype)
