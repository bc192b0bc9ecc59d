"""The JSON files of a checkpoint, which other programs write: what is read of them, and its types.

Whatever else the files hold is ignored. Numbers that no transformer can have are refused here,
because the graph and the libraries below would compute vectors from them, or fail in many ways.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, Field, RootModel

from embedtopics._utils.folders import is_below, stays_inside
from embedtopics._utils.records import ForeignRecord, parse_record
from embedtopics.encoders._base import load_error

MOST_LAYERS = 1000
"""Most layers, and most attention heads, of a checkpoint."""

MOST_POSITIONS = 2**24
"""Most positions: tables of them are computed from the configuration alone."""

Size = Annotated[int, Field(ge=1)] | None
Count = Annotated[int, Field(ge=1, le=MOST_LAYERS)] | None
Epsilon = Annotated[float, Field(gt=0, allow_inf_nan=False)] | None


def _checked_path(path: str) -> str:
    if not is_below(path):
        raise ValueError(f"{path[:200]!r} is not below the checkpoint")
    return path


PathBelow = Annotated[str, Field(max_length=4096), AfterValidator(_checked_path)]


class Configuration(ForeignRecord):
    """``config.json``: the architecture. Each family has its own names for sizes."""

    model_type: str = ""
    is_encoder_decoder: bool | None = None
    vocab_size: Size = None

    hidden_size: Size = None
    dim: Size = None
    d_model: Size = None
    n_embd: Size = None

    num_hidden_layers: Count = None
    n_layers: Count = None
    n_layer: Count = None
    num_layers: Count = None

    num_attention_heads: Count = None
    n_heads: Count = None
    n_head: Count = None
    num_heads: Count = None

    # Some families have -1 for no limit.
    max_position_embeddings: Annotated[int, Field(ge=-1, le=MOST_POSITIONS)] | None = None

    layer_norm_eps: Epsilon = None
    norm_eps: Epsilon = None

    @property
    def width(self) -> int | None:
        """Length of a hidden state."""
        return self.hidden_size or self.dim or self.d_model or self.n_embd

    @property
    def n_attention_heads(self) -> int | None:
        """Number of attention heads of a layer."""
        return self.num_attention_heads or self.n_heads or self.n_head or self.num_heads


class Lengths(ForeignRecord):
    """``sentence_bert_config.json``: how much text is read."""

    max_seq_length: int | None = None
    do_lower_case: bool | None = None
    transformer_task: str = "feature-extraction"


class TokenizerConfiguration(ForeignRecord):
    """``tokenizer_config.json``; a tokenizer without a limit declares an astronomical number."""

    model_max_length: int | float | None = None
    do_lower_case: bool | None = None
    strip_accents: bool | None = None
    tokenize_chinese_chars: bool | None = None


class Module(ForeignRecord):
    """A module of ``modules.json``, and its folder."""

    type: str
    path: PathBelow


class Modules(RootModel[list[Module]]):
    """``modules.json``: the modules of sentence-transformers, in their order."""


class Prompts(ForeignRecord):
    """``config_sentence_transformers.json``: prompts by their names, and what vectors are for."""

    prompts: dict[str, str] | None = None
    default_prompt_name: str | None = None
    similarity_fn_name: Literal["cosine", "dot", "euclidean", "manhattan"] | None = None
    truncate_dim: Annotated[int, Field(ge=1)] | None = None


class WeightIndex(ForeignRecord):
    """``model.safetensors.index.json``: the file of each tensor."""

    weight_map: Annotated[dict[str, PathBelow], Field(min_length=1)]


AnyFile = TypeVar("AnyFile", bound=BaseModel)


def read_file(model: type[AnyFile], path: Path) -> AnyFile:
    """Read a JSON file of a checkpoint as a record; a missing one has the defaults."""
    try:
        content = path.read_bytes() if path.is_file() else b"{}"
        return parse_record(model, content)
    except ValueError as error:
        raise load_error("a checkpoint with plain entries", f"{path}: {error}") from None


# What a checkpoint is made of; other files of its folder are not read.
_READ = (".json", ".txt", ".model", ".safetensors", ".jinja")


def check_links(folder: Path, root: Path) -> None:
    """Refuse a file of a checkpoint that is a link to a file outside of its root folder."""
    for path in folder.iterdir():
        if path.suffix in _READ and path.is_symlink() and not stays_inside(path, root):
            remedy = "replace the link by a copy of the file"
            raise load_error(
                "a checkpoint whose files are in its folder", f"the link {path}", remedy
            )
