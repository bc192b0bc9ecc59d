"""Checkpoint folders, read and written: weights, pooling, prompts, and how much text is read."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from embedtopics._utils.checks import checked_count, is_count
from embedtopics._utils.display import one_line
from embedtopics._utils.folders import (
    MANIFEST,
    changed_files,
    parse_json,
    replacing_folder,
    sha256,
    write_manifest,
)
from embedtopics.encoders._base import load_error, modules_of, require_torch
from embedtopics.errors import InputError, ModelLoadError
from embedtopics.protocols import FloatArray

MODULES, PROMPTS = "modules.json", "config_sentence_transformers.json"
POOLINGS = ("mean", "cls", "max", "mean_sqrt_len_tokens", "weightedmean", "lasttoken")

_ACTIVATIONS = ("Identity", "Tanh", "ReLU", "GELU", "Sigmoid")
PACKAGE = "sentence_transformers"
_AFTER = ("Dense", "Normalize", "Dropout")
_KINDS = ("Transformer", "WeightedLayerPooling", "Pooling", *_AFTER)


@dataclass(frozen=True, eq=False)
class Dense:
    """A layer ``activation(W x + b)``: `weight` (n_out, n_in), `bias` (n_out,)."""

    file: Path
    weight: FloatArray
    bias: FloatArray
    activation: str


@dataclass(frozen=True)
class Scale:
    """Vectors are scaled to length 1."""


Step: TypeAlias = Dense | Scale


@dataclass(frozen=True, eq=False)
class Head:
    """From hidden states to one vector."""

    pooling: tuple[str, ...] = ("mean",)
    layers: int | tuple[float, ...] = 1
    steps: tuple[Step, ...] = (Scale(),)
    pools_prompt: bool = True


def finish(vectors: FloatArray, steps: tuple[Step, ...]) -> FloatArray:
    """Do to pooled vectors (n_texts, n_pooled) what comes after the pooling."""
    for step in steps:
        if isinstance(step, Scale):
            lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))[:, None]
            vectors = vectors / np.maximum(lengths, np.float32(1e-12))
        else:
            vectors = _activate(vectors @ step.weight.T + step.bias, step.activation)
    return vectors


def read_head(folder: Path) -> tuple[Head, Path]:
    """Read how hidden states become vectors (the scaled mean, if not said), and their folder."""
    if not (folder / MODULES).is_file():
        return Head(), folder
    modules = _read_modules(folder / MODULES)
    kinds = [kind for kind, _ in modules]
    place = kinds.index("Pooling") if kinds.count("Pooling") == 1 else 0
    before, after = kinds[1:place], kinds[place + 1 :]
    is_known = place and kinds[0] == "Transformer" and before in ([], ["WeightedLayerPooling"])
    if not is_known or not set(after) <= set(_AFTER):
        raise load_error(
            "the modules Transformer, perhaps WeightedLayerPooling, Pooling and then any of "
            + ", ".join(_AFTER),
            f"{', '.join(kinds)} ({folder / MODULES})",
            "choose another checkpoint",
        )
    paths = [folder / path for _, path in modules]
    pooling, pools_prompt = _read_pooling(paths[place])
    head_steps = [
        _read_step(kind, path) for kind, path in zip(after, paths[place + 1 :], strict=True)
    ]
    layers = _read_layers(paths[1]) if before else 1
    steps = tuple(step for step in head_steps if step is not None)
    return Head(pooling, layers, steps, pools_prompt), paths[0]


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
        reason = " ".join(str(error).split())
        raise load_error("JSON", f"a broken file ({path}: {reason})") from None


def _is_text_map(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(text, str) for text in value.values())


def _read_modules(file: Path) -> list[tuple[str, str]]:
    """Return the kind and the sub-folder of each module, in their order."""
    modules = []
    for module in read_json(file, list):
        if not isinstance(module, dict):
            raise load_error("a type and a path for each module", f"{module!r} ({file})")
        name, path = str(module.get("type", "no type")), str(module.get("path", ""))
        package, _, kind = name.rpartition(".")
        if not package.startswith(PACKAGE) or kind not in _KINDS:
            expected = f"modules of the kinds {', '.join(_KINDS)}"
            raise load_error(expected, f"{name} ({file})", "choose a checkpoint without it")
        if not (file.parent / path).resolve().is_relative_to(file.parent.resolve()):
            raise load_error("modules inside the checkpoint", f"the path {path!r} ({file})")
        modules.append((kind, path))
    return modules


def _read_pooling(folder: Path) -> tuple[tuple[str, ...], bool]:
    """Return the pooling of the folder, and whether it includes the prompt."""
    path = required(folder / "config.json")
    config = read_json(path)
    modes = config.get("pooling_mode") or _legacy_modes(config) or ["mean"]
    modes = list(modes) if isinstance(modes, list) else [modes]
    unknown = [str(mode) for mode in modes if mode not in POOLINGS]
    if unknown:
        actual = f"{', '.join(unknown)} ({path})"
        raise load_error(f"poolings of {', '.join(POOLINGS)}", actual, "choose another checkpoint")
    return tuple(modes), bool(config.get("include_prompt", True))


def _legacy_modes(config: dict[str, Any]) -> list[str]:
    """Read the older form, one true or false for each mode, in the order of their vectors."""
    prefix = "pooling_mode_"
    names = {"cls_token": "cls", "max_tokens": "max", "mean_tokens": "mean",
             "mean_sqrt_len_tokens": "mean_sqrt_len_tokens", "weightedmean_tokens": "weightedmean",
             "lasttoken": "lasttoken"}  # fmt: skip
    flags = [key.removeprefix(prefix) for key in config if key.startswith(prefix) and config[key]]
    modes = [mode for flag, mode in names.items() if flag in flags]
    return modes + [flag for flag in flags if flag not in names]


def _read_layers(folder: Path) -> tuple[float, ...]:
    config = read_json(required(folder / "config.json"))
    [file] = _find_weights(folder)
    weights = _read_tensors(file).get("layer_weights")
    start = int(config.get("layer_start", 0))
    if weights is None or weights.ndim != 1 or not weights.sum():
        raise load_error(f"one weight per layer as layer_weights in {file}", "none")
    return normalized_layers([0.0] * start + weights.tolist())


def normalized_layers(weights: npt.ArrayLike) -> tuple[float, ...]:
    """Return weights of layers with a sum of 1; those that have it stay as they are, to the bit."""
    values = np.asarray(weights, dtype=np.float64)
    total = values.sum()
    return tuple((values if abs(total - 1) < 1e-12 else values / total).tolist())


def _read_step(kind: str, folder: Path) -> Step | None:
    if kind == "Normalize":
        return Scale()
    if kind == "Dropout":  # does nothing outside of training
        return None
    path = required(folder / "config.json")
    config = read_json(path)
    name = str(config.get("activation_function", "torch.nn.modules.activation.Tanh"))
    activation = name.rpartition(".")[2]
    if not name.startswith("torch.nn.") or activation not in _ACTIVATIONS:
        expected = f"an activation of {', '.join(_ACTIVATIONS)} from torch.nn"
        raise load_error(expected, f"{name} ({path})", "choose another checkpoint")
    inside = {config.get(f"module_{end}_name") for end in ("input", "output")}
    if config.get("use_residual") or not inside <= {None, "sentence_embedding"}:
        expected = "a dense layer on the pooled vector without a residual connection"
        raise load_error(expected, f"another ({path})", "choose another checkpoint")
    [file] = _find_weights(folder)
    tensors = _read_tensors(file)
    weight, bias = tensors.get("linear.weight"), tensors.get("linear.bias")
    shape = (int(config.get("out_features", 0)), int(config.get("in_features", 0)))
    if weight is None or weight.shape != shape:
        actual = "none" if weight is None else str(weight.shape)
        raise load_error(f"a linear.weight of shape {shape} in {file}", actual)
    if bias is None:
        bias = np.zeros(shape[0], dtype=np.float32)
    return Dense(file, weight, bias, activation)


def _read_tensors(file: Path) -> dict[str, FloatArray]:
    """Read tensors of floats as float32; large ones stay in the file until they are used."""
    if file.suffix == ".bin":
        torch = require_torch(f"reading {file.name}")
        try:  # tensors alone: anything else that was pickled is refused
            tensors = torch.load(file, map_location="cpu", weights_only=True)
            return {name: tensor.float().numpy() for name, tensor in tensors.items()}
        except Exception as error:
            raise load_error("tensors alone", f"{file}: {one_line(error)}") from None
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


_FLOATS = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}


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


def missing_weight(checkpoint: Checkpoint, name: str) -> ModelLoadError:
    """Return the error of a checkpoint without a weight."""
    expected = f"all weights of the family {checkpoint.family!r} in {checkpoint.weights[0]}"
    return load_error(expected, f"none for {name}")


def _activate(values: FloatArray, activation: str) -> FloatArray:
    if activation == "Tanh":
        return np.tanh(values)
    if activation == "ReLU":
        return np.maximum(values, np.float32(0))
    if activation in ("GELU", "Sigmoid"):
        from scipy.special import expit, ndtr

        return values * ndtr(values) if activation == "GELU" else expit(values)
    return values


_TOKENIZER_FILES = (
    "tokenizer.json", "vocab.txt", "vocab.json", "sentencepiece.bpe.model", "spiece.model",
    "tokenizer.model", "spm.model",
)  # fmt: skip
_BESIDE_THE_TOKENIZER = ("merges.txt", "added_tokens.json", "special_tokens_map.json")
LENGTH_FILES = tuple(
    f"sentence_{kind}_config.json"
    for kind in ("bert", "roberta", "distilbert", "camembert", "albert", "xlm-roberta")
)
# These number positions from pad_token_id + 1 on, so that part of their table is never used.
POSITIONS_AFTER_PADDING = (
    "camembert", "data2vec-text", "ibert", "longformer", "luke", "mpnet", "roberta",
    "roberta-prelayernorm", "xlm-roberta", "xlm-roberta-xl", "xmod",
)  # fmt: skip
_CHOOSE = "choose an encoder checkpoint"
T5 = ("mt5", "t5", "umt5")
"""Encoder-decoders whose encoder alone gives the token vectors."""
_DEFAULT_MAX_LENGTH = 512
_LEAST_LENGTH = 3
_DEPTHS = ("num_hidden_layers", "n_layers", "n_layer", "num_layers")
_HEADS = ("num_attention_heads", "n_heads", "n_head", "num_heads")
_WIDTHS = ("hidden_size", "dim", "d_model", "n_embd")
_INCIDENTAL = ("_name_or_path", "transformers_version", "torch_dtype", "dtype", "architectures")
"""Keys of a configuration that change no vector."""
_INCIDENTAL_TO_TOKENS = (
    "backend", "chat_template", "clean_up_tokenization_spaces", "is_local", "local_files_only",
    "max_length", "model_max_length", "name_or_path", "pad_to_multiple_of", "pad_token_type_id",
    "padding_side", "processor_class", "special_tokens_map_file", "stride", "tokenizer_file",
    "transformers_version", "truncation_side", "truncation_strategy",
)  # fmt: skip
"""Keys of a tokenizer's configuration that change no token."""


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint folder, read but not loaded."""

    folder: Path
    weights: tuple[Path, ...]
    tokenizer_files: tuple[Path, ...]
    head: Head
    width: int | None = None
    n_layers: int | None = None
    max_length: int = _DEFAULT_MAX_LENGTH
    position_limit: int | None = None
    lower_case: bool = False
    prompts: Mapping[str, str] = field(default_factory=dict)
    prompt: str = ""
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
    source: str
    checkpoint: Checkpoint
    pooling: tuple[str, ...]
    layers: int | tuple[float, ...]
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
    head, inner = read_head(folder)
    lengths: dict[str, Any] = next(
        (read_json(inner / f) for f in LENGTH_FILES if (inner / f).is_file()), {}
    )
    if (task := lengths.get("transformer_task", "feature-extraction")) != "feature-extraction":
        actual = f"transformer_task {task!r} ({inner})"
        raise load_error("a checkpoint that gives token vectors", actual, _CHOOSE)
    config = read_json(required(inner / "config.json"))
    if config.get("is_encoder_decoder") and config.get("model_type") not in T5:
        kind = config.get("model_type")
        actual = f"an encoder-decoder of type {kind!r} ({inner / 'config.json'})"
        raise load_error("an encoder", actual, _CHOOSE)
    for name, most in {
        **dict.fromkeys(_DEPTHS + _HEADS, 1000),
        **dict.fromkeys(_WIDTHS, 1 << 16),
    }.items():
        if config.get(name) is not None and not (is_count(config[name]) and config[name] <= most):
            expected, actual = f"a {name} from 1 to {most:,}", f"{config[name]!r:.40}"
            raise load_error(expected, f"{actual} ({inner / 'config.json'})", _CHOOSE)
    limit = position_limit(config)
    file = inner / "tokenizer_config.json"
    of_tokenizer: dict[str, Any] = read_json(file) if file.is_file() else {}
    declared = lengths.get("max_seq_length")
    declared = of_tokenizer.get("model_max_length") if declared is None else declared
    prompts, default = _read_prompts(folder)
    width, depth = (
        next((config[key] for key in keys if isinstance(config.get(key), int)), None)
        for keys in (_WIDTHS, _DEPTHS)
    )
    weights = _find_weights(inner)
    for file in weights:
        if file.suffix != ".bin":
            _safetensors_header(file)
    _check_unchanged(inner)
    return Checkpoint(
        folder=inner,
        weights=weights,
        tokenizer_files=_find_tokenizer(inner),
        head=head,
        width=width,
        n_layers=None if depth is None else depth + 1,
        max_length=_max_length(declared, limit, inner),
        position_limit=limit,
        lower_case=bool(lengths.get("do_lower_case", False)),
        prompts=prompts,
        prompt=default,
        family=str(config.get("model_type", "")),
        vocabulary=config.get("vocab_size"),
        configuration=_without(_INCIDENTAL, config),
        tokenizer_configuration=_without(_INCIDENTAL_TO_TOKENS, of_tokenizer),
    )


def _without(incidental: tuple[str, ...], config: dict[str, Any]) -> str:
    entries = {key: value for key, value in config.items() if key not in incidental}
    return json.dumps(entries, sort_keys=True)


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
    names = ("model.safetensors", "pytorch_model.bin")
    for file in (folder / name for name in names):
        index = folder / f"{file.name}.index.json"
        if file.is_file():
            return (file,)
        if index.is_file():
            shards = read_json(index).get("weight_map")
            if not _is_text_map(shards) or not shards:
                raise load_error("the file of each tensor as weight_map", f"none ({index})")
            return tuple(required(folder / shard) for shard in sorted(set(shards.values())))
    return (required(folder / names[0]),)


def _find_tokenizer(folder: Path) -> tuple[Path, ...]:
    first, *others = (folder / name for name in (*_TOKENIZER_FILES, *_BESIDE_THE_TOKENIZER))
    if first.is_file():  # holds the vocabulary that the others hold, too
        others = others[len(_TOKENIZER_FILES) :]
    files = tuple(path for path in (first, *others) if path.is_file())
    if not files or files[0].name in _BESIDE_THE_TOKENIZER:
        required(first)
    return files


def position_limit(config: dict[str, Any]) -> int | None:
    """Return the maximum number of tokens of a model, if the configuration states it."""
    positions = config.get("max_position_embeddings")
    if not isinstance(positions, int) or positions < 1:
        return None
    family, padding = str(config.get("model_type")), config.get("pad_token_id", 1)
    if family == "mpnet":
        return positions - 2  # whatever the configuration says of padding
    if family in POSITIONS_AFTER_PADDING:
        if not isinstance(padding, int):
            expected = f"a pad_token_id, from which a {family} counts its positions"
            raise load_error(expected, f"{padding!r} in config.json")
        return positions - padding - 1
    return positions


def _max_length(declared: Any, limit: int | None, folder: Path) -> int:
    """Return the declared length, within what the model can read."""
    is_length = isinstance(declared, (int, float)) and declared >= _LEAST_LENGTH
    if declared is not None and not is_length:
        raise load_error(
            f"a checkpoint that reads at least {_LEAST_LENGTH} tokens",
            f"the length {declared!r} ({folder})",
            "repair max_seq_length or model_max_length",
        )
    # Tokenizers without a limit declare an astronomical one.
    limits = [length for length in (declared, limit) if length is not None and length < 10**9]
    return int(min(limits, default=_DEFAULT_MAX_LENGTH))


def _read_prompts(folder: Path) -> tuple[dict[str, str], str]:
    """Return all prompts, and the one that is used where none is asked for."""
    path = folder / PROMPTS
    config = read_json(path) if path.is_file() else {}
    prompts, name = config.get("prompts") or {}, config.get("default_prompt_name")
    if not _is_text_map(prompts) or not isinstance(name, str | None):
        raise load_error("prompts that are texts", f"others ({path})", "repair it")
    if name and name not in prompts:
        expected = f"the default prompt {name!r} among the prompts {', '.join(prompts)}"
        raise load_error(expected, f"none ({path})", "repair it")
    return dict(prompts), prompts[name] if name else ""


def check_layers(layers: int | Sequence[float]) -> int | tuple[float, ...]:
    if isinstance(layers, (int, np.integer)):
        checked_count(layers, "layers")
        return int(layers)
    weights = np.asarray(layers, dtype=np.float64)
    if weights.ndim != 1 or not np.isfinite(weights).all() or not weights.sum():
        expected = "a number of last layers, or a finite weight for each, with a sum other than 0"
        raise InputError("layers", expected, layers)
    return normalized_layers(weights)


def choose_max_length(length: int | None, checkpoint: Checkpoint) -> int:
    if length is None:
        return checkpoint.max_length
    checked_count(length, "max_length", 3)
    if checkpoint.position_limit is not None and length > checkpoint.position_limit:
        most = f"at most {checkpoint.position_limit}, all that this model can read"
        raise InputError("max_length", most, length, "or choose a model for longer texts")
    return int(length)


def check_widths(recipe: Recipe) -> None:
    """Check that layers, pooled dimensions and the requested length fit together."""
    width, n_layers = recipe.checkpoint.width, recipe.checkpoint.n_layers
    if n_layers is not None:
        n_pooled = recipe.layers if isinstance(recipe.layers, int) else len(recipe.layers)
        if n_pooled > n_layers or (n_pooled < n_layers and not isinstance(recipe.layers, int)):
            most = f"at most {n_layers} last layers, or one weight for each of the {n_layers}"
            raise InputError("layers", f"{most}, that of the embeddings first", n_pooled)
    first = next((step for step in recipe.steps if isinstance(step, Dense)), None)
    if first and width is not None and width * len(recipe.pooling) != first.weight.shape[1]:
        expected = f"one that gives the {first.weight.shape[1]} numbers which the dense layer takes"
        raise InputError("pooling", expected, recipe.pooling, "leave it out")
    if recipe.dimensions is not None:
        checked_count(recipe.dimensions, "dimensions")
        if recipe.width is not None and recipe.dimensions > recipe.width:
            most = f"at most {recipe.width}, the length of this encoder's vectors"
            raise InputError("dimensions", most, recipe.dimensions)


KIND, FORMAT = "sentence encoder", 1


def write_checkpoint(folder: Path, recipe: Recipe) -> None:
    """Write weights, tokenizer, pooling and prompts atomically; the precision is not stored."""
    checkpoint, inner = recipe.checkpoint, recipe.checkpoint.folder
    for parameter, default in {"layers": 1, "dimensions": None, "trusts_code": False}.items():
        if (value := getattr(recipe, parameter)) != default:
            expected = "left out: the folder of a checkpoint does not hold it"
            raise InputError(parameter.replace("trusts", "trust_remote"), expected, value)
    steps = [*recipe.steps, *[Scale()] * recipe.normalize]
    kinds = ["Pooling", *("Dense" if isinstance(step, Dense) else "Normalize" for step in steps)]
    modules = modules_of("Transformer", *kinds)
    _, pooling, *paths = (module["path"] for module in modules)
    names = {key: words for key, words in checkpoint.prompts.items() if words == recipe.prompt}
    name = next(iter(names), "default") if recipe.prompt else None
    files: dict[str, Any] = {
        MODULES: modules,
        LENGTH_FILES[0]: {
            "max_seq_length": recipe.max_length, "do_lower_case": checkpoint.lower_case,
        },
        PROMPTS: {
            "prompts": {**checkpoint.prompts, **({name: recipe.prompt} if name else {})},
            "default_prompt_name": name, "similarity_fn_name": "cosine",
        },
        f"{pooling}/config.json": {
            "word_embedding_dimension": checkpoint.width, "pooling_mode": list(recipe.pooling),
            "include_prompt": checkpoint.head.pools_prompt,
        },
    }  # fmt: skip
    replaced = {MANIFEST, *files, *LENGTH_FILES}
    beside = {*inner.glob("*.json"), *checkpoint.weights, *checkpoint.tokenizer_files}
    with replacing_folder(folder, KIND) as fresh:
        for file in sorted(file for file in beside if file.name not in replaced):
            shutil.copyfile(file, fresh / file.name)
        for step, path in zip(steps, paths, strict=True):
            (fresh / path).mkdir()
            if isinstance(step, Dense):
                for file in (step.file, step.file.parent / "config.json"):
                    shutil.copyfile(file, fresh / path / file.name)
        (fresh / pooling).mkdir()
        for place, content in files.items():
            (fresh / place).write_text(json.dumps(content, indent=1), "utf-8")
        write_manifest(fresh, KIND, FORMAT)
