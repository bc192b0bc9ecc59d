"""Checkpoint folders, read and written: weights, pooling, prompts, and how much text is read."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from embedtopics._utils.display import one_line
from embedtopics._utils.folders import (
    MANIFEST,
    changed_files,
    parse_json,
    replacing_folder,
    sha256,
    stays_inside,
    write_manifest,
)
from embedtopics.encoders._base import load_error, modules_of
from embedtopics.encoders.sentence._configuration import (
    Configuration,
    Lengths,
    Modules,
    Prompts,
    TokenizerConfiguration,
    WeightIndex,
    check_links,
    read_file,
)
from embedtopics.errors import InputError, ModelLoadError
from embedtopics.protocols import FloatArray

MODULES, PROMPTS = "modules.json", "config_sentence_transformers.json"
POOLINGS = ("mean", "cls", "max", "mean_sqrt_len_tokens", "weightedmean", "lasttoken")
PACKAGE = "sentence_transformers"
_AFTER = ("Dense", "Normalize", "Dropout")
"""Modules that may follow the pooling."""
_LEGACY_POOLINGS = {
    "cls_token": "cls", "max_tokens": "max", "mean_tokens": "mean",
    "mean_sqrt_len_tokens": "mean_sqrt_len_tokens", "weightedmean_tokens": "weightedmean",
    "lasttoken": "lasttoken",
}  # fmt: skip
"""Flags of older folders, in the order in which sentence-transformers joins their vectors."""

_TOKENIZER_FILES = (
    "tokenizer.json", "vocab.txt", "vocab.json", "sentencepiece.bpe.model", "spiece.model",
    "tokenizer.model", "spm.model",
)  # fmt: skip
_MERGES = "merges.txt"
_BESIDE_THE_TOKENIZER = ("added_tokens.json", "special_tokens_map.json")
LENGTH_FILES = tuple(
    f"sentence_{kind}_config.json"
    for kind in ("bert", "roberta", "distilbert", "camembert", "albert", "xlm-roberta")
)
# These number positions from pad_token_id + 1 on, so that part of their table is never used.
POSITIONS_AFTER_PADDING = (
    "camembert", "data2vec-text", "ibert", "longformer", "luke", "mpnet", "roberta",
    "roberta-prelayernorm", "xlm-roberta", "xlm-roberta-xl", "xmod",
)  # fmt: skip
_CHOOSE = "choose another checkpoint"
T5 = ("mt5", "t5", "umt5")
"""Encoder-decoders whose encoder alone gives the token vectors."""
_POSITIONS = ("max_position_embeddings", "n_positions", "n_ctx", "max_seq_len")
"""Names of the number of positions: of most families, of GPT-2 and its like, of MPT."""

_DEFAULT_MAX_LENGTH, LEAST_LENGTH = 512, 3
EQUAL_HEADS = (
    "bert", "camembert", "distilbert", "modernbert", "mpnet", "roberta", "xlm-roberta",
)  # fmt: skip
_ATTENTIONS = (None, "eager", "sdpa", "flash_attention_2", "flex_attention")
_INCIDENTAL = ("_name_or_path", "transformers_version", "torch_dtype", "dtype", "architectures")
"""Keys of a configuration that change no vector."""
_INCIDENTAL_TO_TOKENS = (
    "backend", "chat_template", "clean_up_tokenization_spaces", "is_local", "local_files_only",
    "max_length", "model_max_length", "name_or_path", "pad_to_multiple_of", "pad_token_type_id",
    "padding_side", "processor_class", "special_tokens_map_file", "stride", "tokenizer_file",
    "transformers_version", "truncation_side", "truncation_strategy",
)  # fmt: skip
"""Keys of a tokenizer's configuration that change no token."""


@dataclass(frozen=True, eq=False)
class Dense:
    """A layer ``activation(W x + b)``: `weight` (n_out, n_in), `bias` (n_out,)."""

    file: Path
    weight: FloatArray
    bias: FloatArray
    activation: str


@dataclass(frozen=True)
class UnitLength:
    """Vectors are scaled to length 1."""


Step: TypeAlias = Dense | UnitLength
_ACTIVATIONS: dict[str, Callable[[FloatArray], FloatArray]] = {
    "Identity": lambda values: values,
    "Tanh": np.tanh,
    "ReLU": lambda values: np.maximum(values, np.float32(0)),
}


def finish(vectors: FloatArray, steps: tuple[Step, ...]) -> FloatArray:
    """Do to pooled vectors (n_texts, n_pooled) what comes after the pooling."""
    for step in steps:
        if isinstance(step, UnitLength):
            lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))[:, None]
            vectors = vectors / np.maximum(lengths, np.float32(1e-12))
        else:
            vectors = _ACTIVATIONS[step.activation](vectors @ step.weight.T + step.bias)
    return vectors


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A checkpoint folder, read but not loaded."""

    folder: Path
    weights: tuple[Path, ...]
    tokenizer_files: tuple[Path, ...]
    pooling: tuple[str, ...] = ("mean",)
    steps: tuple[Step, ...] = (UnitLength(),)
    pools_prompt: bool = True
    width: int | None = None
    max_length: int = _DEFAULT_MAX_LENGTH
    position_limit: int | None = None
    lower_case: bool = False
    prompts: Mapping[str, str] = field(default_factory=dict)
    prompt: str = ""
    similarity: str = "cosine"
    dimensions: int | None = None
    family: str = ""
    vocabulary: int | None = None
    configuration: str = ""
    tokenizer_configuration: str = ""

    def tensors(self) -> dict[str, FloatArray]:
        """Read all weights, in float32."""
        return {
            name: values for file in self.weights for name, values in _read_tensors(file).items()
        }

    @cached_property
    def contents(self) -> tuple[tuple[str, ...], str, str]:
        """What tokens and hidden states depend on: hashes of files, and configurations."""
        hashes = tuple(sha256(path) for path in (*self.weights, *self.tokenizer_files))
        return hashes, self.configuration, self.tokenizer_configuration


@dataclass(frozen=True, eq=False)
class Recipe:
    """How texts become vectors."""

    name: str
    revision: str | None
    checkpoint: Checkpoint
    pooling: tuple[str, ...]
    steps: tuple[Step, ...]
    normalize: bool
    dimensions: int | None
    max_length: int
    prompt: str
    precision: str
    long_texts: str
    trusts_code: bool = False

    @property
    def width(self) -> int | None:
        """Length of a vector before it is cut; None if the configuration does not state it."""
        dense = [step for step in self.steps if isinstance(step, Dense)]
        if dense:
            return len(dense[-1].bias)
        width = self.checkpoint.width
        return None if width is None else width * len(self.pooling)


def read_checkpoint(folder: Path) -> Checkpoint:
    """Read a sentence-transformers folder, or a plain Hugging Face one."""
    try:
        return _read_checkpoint(folder)
    except (ValueError, TypeError, KeyError, AttributeError) as error:  # JSON of another form
        actual = f"{folder}: {type(error).__name__} {one_line(error)}"
        raise load_error("a checkpoint whose files have the usual entries", actual) from error


def _read_checkpoint(folder: Path) -> Checkpoint:
    check_links(folder, folder)
    inner, head = _read_head(folder)
    length_files = [inner / name for name in LENGTH_FILES if (inner / name).is_file()]
    lengths = read_file(Lengths, next(iter(length_files), inner / LENGTH_FILES[0]))

    if (task := lengths.transformer_task) != "feature-extraction":
        actual = f"transformer_task {task!r} ({inner})"
        raise load_error("a checkpoint that gives token vectors", actual, _CHOOSE)

    config = read_json(required(inner / "config.json"))
    sizes = read_file(Configuration, inner / "config.json")
    family = sizes.model_type
    _check_configuration(sizes, config, inner)
    limit = position_limit(config)

    file = inner / "tokenizer_config.json"
    of_tokenizer: dict[str, Any] = read_json(file) if file.is_file() else {}
    declared: float | None = read_file(TokenizerConfiguration, file).model_max_length
    declared = declared if lengths.max_seq_length is None else lengths.max_seq_length

    sentence = read_file(Prompts, folder / PROMPTS)
    prompts = sentence.prompts or {}
    default = sentence.default_prompt_name

    weights = _find_weights(inner)
    for file in weights:
        _safetensors_header(file)
    _check_unchanged(inner)

    return Checkpoint(
        folder=inner,
        weights=weights,
        tokenizer_files=_find_tokenizer(inner),
        **head,
        width=sizes.width,
        max_length=_max_length(declared, limit, inner),
        position_limit=limit,
        lower_case=bool(lengths.do_lower_case),
        prompts=prompts,
        prompt=prompts[default] if default else "",
        similarity=sentence.similarity_fn_name or "cosine",
        dimensions=sentence.truncate_dim,
        family=family,
        vocabulary=sizes.vocab_size,
        configuration=_without(_INCIDENTAL, config),
        tokenizer_configuration=_without(_INCIDENTAL_TO_TOKENS, of_tokenizer),
    )


def _check_configuration(sizes: Configuration, config: dict[str, Any], folder: Path) -> None:
    """Refuse an architecture that is no encoder, or that asks for more than weights."""
    file = folder / "config.json"
    family = sizes.model_type
    if sizes.is_encoder_decoder and family not in T5:
        actual = f"an encoder-decoder of type {family!r} ({file})"
        raise load_error("an encoder", actual, _CHOOSE)

    # Heads share the width, except in families that state the width of a head.
    heads = sizes.n_attention_heads
    if family in EQUAL_HEADS and sizes.width and heads and sizes.width % heads:
        actual = f"{heads} heads for {sizes.width} dimensions ({file})"
        raise load_error("attention heads of equal width", actual)

    # transformers would fetch the code of an attention by its name on the hub.
    for name in ("attn_implementation", "_attn_implementation"):
        if config.get(name) not in _ATTENTIONS:
            actual = f"{name} {str(config[name])[:80]!r} ({file})"
            raise load_error("an attention that transformers itself holds", actual, _CHOOSE)


def _without(incidental: tuple[str, ...], config: dict[str, Any]) -> str:
    entries = {key: value for key, value in config.items() if key not in incidental}
    return json.dumps(entries, sort_keys=True)


def required(path: Path) -> Path:
    """Return the path of a file that must be there."""
    if path.is_file():
        return path
    raise ModelLoadError(
        f"expected the checkpoint file {path.name} in {path.parent}, which has none; give the "
        "folder of a complete Hugging Face or sentence-transformers checkpoint"
    )


def read_json(path: Path, kind: type = dict) -> Any:
    """Return a file's content, or say that it is broken."""
    try:
        content = parse_json(path.read_bytes())
        if not isinstance(content, kind):
            raise ValueError(f"holds a {type(content).__name__}, not a {kind.__name__}")
        return content
    except ValueError as error:
        raise load_error("JSON", f"a broken file ({path}: {one_line(error)})") from None


def _read_head(folder: Path) -> tuple[Path, dict[str, Any]]:
    """Return the folder of the transformer, and pooling, steps and pools_prompt of a Checkpoint."""
    file = folder / MODULES
    if not file.is_file():
        return folder, {}

    kinds = []
    paths = []
    for module in read_file(Modules, file).root:
        package, _, kind = module.type.rpartition(".")
        name = kind if package.startswith(PACKAGE) else module.type
        kinds.append(name)
        paths.append(folder / module.path)
        if not stays_inside(paths[-1], folder):
            raise load_error("modules inside the checkpoint", f"{module.path!r} ({file})")
        if paths[-1].is_dir():
            check_links(paths[-1], folder)

    if kinds[:2] != ["Transformer", "Pooling"] or not set(kinds[2:]) <= set(_AFTER):
        expected = f"the modules Transformer, Pooling and then any of {', '.join(_AFTER)}"
        raise load_error(expected, f"{', '.join(kinds)} ({file})", _CHOOSE)

    config = read_json(required(paths[1] / "config.json"))
    steps = [_read_step(kind, path) for kind, path in zip(kinds[2:], paths[2:], strict=True)]
    return paths[0], {
        "pooling": _poolings_of(config, paths[1]),
        "steps": tuple(step for step in steps if step is not None),
        "pools_prompt": bool(config.get("include_prompt", True)),
    }


def _poolings_of(config: dict[str, Any], folder: Path) -> tuple[str, ...]:
    modes = config.get("pooling_mode")
    if not modes:
        prefix = "pooling_mode_"
        flags = [key[len(prefix) :] for key in config if key.startswith(prefix) and config[key]]
        modes = [mode for flag, mode in _LEGACY_POOLINGS.items() if flag in flags]
        modes += [flag for flag in flags if flag not in _LEGACY_POOLINGS]
    modes = [modes] if isinstance(modes, str) else modes or ["mean"]
    unknown = [str(mode) for mode in modes if mode not in POOLINGS]
    if unknown:
        actual = f"{', '.join(unknown)} ({folder})"
        raise load_error(f"poolings of {', '.join(POOLINGS)}", actual, _CHOOSE)
    return tuple(modes)


def _read_step(kind: str, folder: Path) -> Step | None:
    if kind == "Normalize":
        return UnitLength()
    if kind == "Dropout":  # does nothing outside of training
        return None

    path = required(folder / "config.json")
    config = read_json(path)
    name = str(config.get("activation_function", "torch.nn.modules.activation.Tanh"))
    activation = name.rpartition(".")[2]
    inside = {config.get(f"module_{end}_name") for end in ("input", "output")}
    is_plain = not config.get("use_residual") and inside <= {None, "sentence_embedding"}
    if not name.startswith("torch.nn.") or activation not in _ACTIVATIONS or not is_plain:
        expected = f"a plain dense layer with an activation of {', '.join(_ACTIVATIONS)}"
        raise load_error(expected, f"{name} ({path})", _CHOOSE)

    [file] = _find_weights(folder)
    tensors = _read_tensors(file)
    weight = tensors["linear.weight"]
    bias = tensors.get("linear.bias", np.zeros(len(weight), dtype=np.float32))
    for name, values in (("linear.weight", weight), ("linear.bias", bias)):
        check_finite(name, values, file)
    return Dense(file, weight, bias, activation)


def check_finite(name: str, values: FloatArray, file: Path) -> None:
    """Refuse weights with NaN or infinities: all vectors would be NaN."""
    # The extremes are NaN if any value is; a mask of all values would take a quarter of their size.
    if values.size and not (np.isfinite(values.min()) and np.isfinite(values.max())):
        raise load_error("weights that are finite numbers", f"others in {name} ({file})")


_FLOATS = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}


def _read_tensors(file: Path) -> dict[str, FloatArray]:
    """Read tensors of floats as float32; large ones stay in the file until they are used."""
    header, start = _safetensors_header(file)
    content = np.memmap(file, np.uint8, "r", offset=start)
    tensors = {}
    for name, tensor in header.items():
        if tensor["dtype"] not in _FLOATS:
            continue
        first, last = tensor["data_offsets"]
        values = content[first:last].view(_FLOATS[tensor["dtype"]]).reshape(tensor["shape"])
        if tensor["dtype"] == "BF16":  # the first half of a float32
            values = (values.astype(np.uint32) << 16).view(np.float32)
        tensors[name] = np.require(values, np.float32, "A")
    return tensors


def _safetensors_header(file: Path) -> tuple[dict[str, Any], int]:
    """Return the tensors of a file and where their content begins; check that it is whole."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(file, "numpy"), file.open("rb") as stream:
            length = int.from_bytes(stream.read(8), "little")
            header: dict[str, Any] = json.loads(stream.read(length))
    except SafetensorError as error:
        raise load_error(f"whole safetensors weights in {file}", one_line(error)) from None
    header.pop("__metadata__", None)
    return header, 8 + length


def _check_unchanged(folder: Path) -> None:
    """Make sure that files which a training run of ours wrote are as its manifest records them."""
    try:
        changed = sorted(changed_files(folder))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return  # there is no manifest, or it is another program's
    if changed:
        raise load_error(
            f"{folder / changed[0]} as it was written", "another checksum",
            f"restore the file from a copy; if it was changed on purpose, delete {MANIFEST} there",
        )  # fmt: skip


def _find_weights(folder: Path) -> tuple[Path, ...]:
    file, index = folder / "model.safetensors", folder / "model.safetensors.index.json"
    if file.is_file() or not index.is_file():
        return (required(file),)
    shards = sorted(set(read_file(WeightIndex, index).weight_map.values()))
    return tuple(required(folder / shard) for shard in shards)


def _find_tokenizer(folder: Path) -> tuple[Path, ...]:
    """Return the files of the tokenizer; tokenizer.json holds vocabulary and merges of others."""
    whole, *vocabularies = (folder / name for name in _TOKENIZER_FILES)
    beside = [folder / name for name in _BESIDE_THE_TOKENIZER]
    if whole.is_file():
        return (whole, *(path for path in beside if path.is_file()))

    present = [path for path in vocabularies if path.is_file()]
    if not present:
        required(whole)
    others = [folder / _MERGES, *beside]
    return (*present, *(path for path in others if path.is_file()))


def position_limit(config: dict[str, Any]) -> int | None:
    """Return the maximum number of tokens of a model, if the configuration states it."""
    family = config.get("model_type")
    if family in T5:  # positions are relative; n_positions is the length of the training texts
        return None
    stated = [config.get(name) for name in _POSITIONS]
    limits = [n for n in stated if isinstance(n, int) and not isinstance(n, bool) and n >= 1]
    if not limits:
        return None
    positions = min(limits)
    if family == "mpnet":
        return positions - 2  # whatever the configuration says of padding
    if family in POSITIONS_AFTER_PADDING:
        return positions - int(config.get("pad_token_id", 1)) - 1
    return positions


def _max_length(declared: float | None, limit: int | None, folder: Path) -> int:
    """Return the declared length, within what the model can read."""
    # Tokenizers without a limit declare an astronomical one.
    limits = [length for length in (declared, limit) if length is not None and length < 10**9]
    length = int(min(limits, default=_DEFAULT_MAX_LENGTH))
    if length < LEAST_LENGTH:
        expected = f"a checkpoint that reads at least {LEAST_LENGTH} tokens"
        remedy = "repair max_seq_length or model_max_length"
        raise load_error(expected, f"the length {length} ({folder})", remedy)
    return length


KIND = "sentence encoder"
FORMAT = 1
_NOT_STORED = "left out: the folder of a checkpoint does not hold it"


def write_checkpoint(folder: Path, recipe: Recipe) -> None:
    """Write an encoder as a folder of sentence-transformers, atomically.

    The folder holds the weights, the tokenizer, pooling, dense layers and prompts. It does not
    hold the precision, which is chosen when the encoder is loaded.
    """
    if recipe.trusts_code:
        raise InputError("trust_remote_code", _NOT_STORED, recipe.trusts_code)

    # One module for each step; the transformer itself is in the root of the folder.
    checkpoint = recipe.checkpoint
    steps = list(recipe.steps)
    if recipe.normalize:
        steps.append(UnitLength())
    kinds = ["Dense" if isinstance(step, Dense) else "Normalize" for step in steps]
    modules = modules_of("Transformer", "Pooling", *kinds)
    pooling_folder = modules[1]["path"]
    step_folders = [module["path"] for module in modules[2:]]

    configurations: dict[str, Any] = {
        MODULES: modules,
        LENGTH_FILES[0]: {
            "max_seq_length": recipe.max_length,
            "do_lower_case": checkpoint.lower_case,
        },
        PROMPTS: {
            **_prompt_configuration(checkpoint.prompts, recipe.prompt),
            "similarity_fn_name": checkpoint.similarity,
            "truncate_dim": recipe.dimensions,
        },
        f"{pooling_folder}/config.json": {
            "word_embedding_dimension": checkpoint.width,
            "pooling_mode": list(recipe.pooling),
            "include_prompt": checkpoint.pools_prompt,
        },
    }

    # Weights, tokenizer and other configurations are copied as they are.
    rewritten = {MANIFEST, *configurations, *LENGTH_FILES}
    originals = {
        *checkpoint.folder.glob("*.json"),
        *checkpoint.weights,
        *checkpoint.tokenizer_files,
    }
    with replacing_folder(folder, KIND) as fresh:
        for file in sorted(originals):
            if file.name not in rewritten:
                shutil.copyfile(file, fresh / file.name)

        for step, step_folder in zip(steps, step_folders, strict=True):
            (fresh / step_folder).mkdir()
            if isinstance(step, Dense):
                for file in (step.file, step.file.parent / "config.json"):
                    shutil.copyfile(file, fresh / step_folder / file.name)

        (fresh / pooling_folder).mkdir()
        for name, content in configurations.items():
            (fresh / name).write_text(json.dumps(content, indent=1), "utf-8")
        write_manifest(fresh, KIND, FORMAT)


def _prompt_configuration(prompts: Mapping[str, str], default: str) -> dict[str, Any]:
    """Return all prompts and the name of the default prompt, "default" if it has no name yet."""
    name: str | None = None
    if default:
        names = (name for name, prompt in prompts.items() if prompt == default)
        name = next(names, "default")
        prompts = {**prompts, name: default}
    return {"prompts": dict(prompts), "default_prompt_name": name}
