"""Loading a checkpoint with transformers, quietly and with errors that name it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from embedtopics.encoders.checkpoint import Checkpoint
from embedtopics.encoders.hub import one_line
from embedtopics.errors import InputError, ModelLoadError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

__all__ = [
    "FAMILIES", "Vocabulary", "check_device", "load_model", "load_vocabulary", "require_device",
    "silent_transformers",
]  # fmt: skip

FAMILIES = (
    "albert", "bert", "camembert", "deberta-v2", "distilbert", "electra", "modernbert", "mpnet",
    "roberta", "xlm-roberta",
)  # fmt: skip
"""Families that have tests of their own; most others that transformers knows load as well."""


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """A tokenizer, and the tokens that have a meaning of their own.

    Parameters
    ----------
    tokenizer : tokenizers.Tokenizer
        Neither cuts nor pads.
    pad_id : int
    unknown_id : int
        -1 where no token stands for the unknown.
    """

    tokenizer: Tokenizer
    pad_id: int
    unknown_id: int


def check_device(device: str) -> None:
    """Make sure that torch knows a device, whether it is there or not.

    Raises
    ------
    InputError
    """
    import torch

    try:
        torch.device(device)
    except RuntimeError as error:
        raise InputError(f"expected a torch device, got {device!r}: {one_line(error)}") from None


def require_device(device: str) -> None:
    """Make sure that a device can be used here.

    Raises
    ------
    InputError
    """
    import torch

    check_device(device)
    try:
        torch.empty(0, device=device)
    except (AssertionError, NotImplementedError, RuntimeError) as error:  # as torch was built
        raise InputError(
            f"expected a device that is there, got {device!r}: {one_line(error)}; leave it out for "
            "the fastest that is"
        ) from None


def load_model(
    checkpoint: Checkpoint,
    *,
    dtype: str = "float32",
    attention: str | None = None,
    trust_remote_code: bool = False,
) -> Any:
    """Load a checkpoint's transformer on the CPU, ready to encode.

    Parameters
    ----------
    checkpoint : Checkpoint
    dtype : {"float32", "float16", "bfloat16"}
    attention : str, optional
        Implementation of attention; the fastest that the family has by default.
    trust_remote_code : bool

    Returns
    -------
    transformers.PreTrainedModel

    Raises
    ------
    ModelLoadError
        If transformers cannot read the checkpoint, or weights are missing.
    """
    import torch
    from transformers import AutoModel

    with silent_transformers(), _explained(checkpoint):
        model, report = AutoModel.from_pretrained(
            checkpoint.folder,
            dtype=getattr(torch, dtype),
            use_safetensors=True,
            local_files_only=not trust_remote_code,
            trust_remote_code=trust_remote_code,
            output_loading_info=True,
            **({} if attention is None else {"attn_implementation": attention}),
        )
    # Weights that are not in the file start at random, which must not pass for a model. The
    # pooler is none of ours: it was trained to guess the next sentence, and is not used.
    missing = sorted(key for key in report["missing_keys"] if "pooler" not in key)
    wrong = sorted(str(key[0]) for key in report.get("mismatched_keys") or ())
    if missing or wrong:
        raise ModelLoadError(
            f"expected all weights of a {type(model).__name__} in {checkpoint.weights[0]}, got "
            f"none for {len(missing + wrong)} tensors, such as {(missing + wrong)[0]}; fetch the "
            "checkpoint again"
        )
    return model.eval()


def load_vocabulary(checkpoint: Checkpoint, trust_remote_code: bool = False) -> Vocabulary:
    """Load a checkpoint's fast tokenizer.

    Raises
    ------
    ModelLoadError
        If transformers cannot read it, it is none of the fast ones, or it makes tokens that the
        weights do not know.
    """
    from tokenizers.normalizers import Lowercase, Sequence
    from transformers import AutoTokenizer

    with silent_transformers(), _explained(checkpoint):
        wrapper = AutoTokenizer.from_pretrained(
            checkpoint.folder,
            local_files_only=not trust_remote_code,
            trust_remote_code=trust_remote_code,
        )
    fast = getattr(wrapper, "backend_tokenizer", None)
    if fast is None:
        raise ModelLoadError(
            f"expected a fast tokenizer, got {type(wrapper).__name__} ({checkpoint.folder}); "
            "choose a checkpoint with a tokenizer.json"
        )
    if checkpoint.lower_case:
        steps = [Lowercase()] if fast.normalizer is None else [Lowercase(), fast.normalizer]
        fast.normalizer = Sequence(steps)
    fast.no_padding()
    fast.no_truncation()
    largest = max(fast.get_vocab().values(), default=-1)
    if checkpoint.vocabulary is not None and largest >= checkpoint.vocabulary:
        raise ModelLoadError(
            f"expected a tokenizer of at most {checkpoint.vocabulary:,} tokens, all that the "
            f"weights know, got one with the token {largest:,} ({checkpoint.tokenizer_files[0]}); "
            "fetch both from the same checkpoint"
        )
    unknown_id = -1 if wrapper.unk_token_id is None else wrapper.unk_token_id
    return Vocabulary(fast, wrapper.pad_token_id or 0, unknown_id)


@contextmanager
def _explained(checkpoint: Checkpoint) -> Iterator[None]:
    """Turn whatever transformers raises about a checkpoint into one line that names it."""
    try:
        yield
    except Exception as error:
        remedy = "fetch the checkpoint again or choose another"
        if "trust_remote_code" in str(error):
            remedy = "read its code and, if you trust it, pass trust_remote_code=True"
        elif not _is_known(checkpoint.family):
            remedy = (
                f"choose one of a family such as {', '.join(FAMILIES)}; where the checkpoint comes "
                "with code of its own, read it and, if you trust it, pass trust_remote_code=True"
            )
        raise ModelLoadError(
            f"expected a checkpoint that transformers can load, got {checkpoint.folder} of the "
            f"family {checkpoint.family!r}: {one_line(error)}; {remedy}"
        ) from None


def _is_known(family: str) -> bool:
    from transformers import CONFIG_MAPPING

    return family in CONFIG_MAPPING


@contextmanager
def silent_transformers() -> Iterator[None]:
    """Switch the bars and notes of transformers off, and back to what they were."""
    logging: Any = import_module("transformers.utils.logging")  # it carries no types
    verbosity, has_bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    if has_bars:
        logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if has_bars:
            logging.enable_progress_bar()
