"""Loading a checkpoint with transformers, quietly and with errors that name it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from embedtopics.encoders.checkpoint import Checkpoint
from embedtopics.encoders.hub import one_line
from embedtopics.errors import InputError, ModelLoadError

__all__ = ["load_model", "load_tokenizer"]


def load_model(checkpoint: Checkpoint, device: str | None, trust_remote_code: bool) -> Any:
    """Load a checkpoint's transformer in float32, ready to encode.

    Parameters
    ----------
    checkpoint : Checkpoint
    device : str or None
        As in torch; None takes the first CUDA device where there is one, else the CPU.
    trust_remote_code : bool

    Returns
    -------
    transformers.PreTrainedModel

    Raises
    ------
    InputError
        If torch does not know the device.
    ModelLoadError
        If transformers cannot read the checkpoint, or weights are missing.
    """
    import torch
    from transformers import AutoModel

    try:
        target = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
    except RuntimeError as error:
        raise InputError(f"expected a torch device, got {device!r}: {one_line(error)}") from None
    with _silent_transformers(), _explained(checkpoint):
        model, report = AutoModel.from_pretrained(
            checkpoint.folder,
            dtype=torch.float32,
            use_safetensors=True,
            local_files_only=not trust_remote_code,
            trust_remote_code=trust_remote_code,
            output_loading_info=True,
        )
    # Weights that are not in the file start at random, which must not pass for a model. The
    # pooler is none of ours: it was trained to guess the next sentence, and is not used.
    missing = sorted(key for key in report["missing_keys"] if "pooler" not in key)
    if missing:
        raise ModelLoadError(
            f"expected all weights of a {type(model).__name__} in {checkpoint.weights[0]}, got "
            f"none for {len(missing)} tensors, such as {missing[0]}; fetch the checkpoint again"
        )
    return model.eval().to(target)


def load_tokenizer(
    checkpoint: Checkpoint, max_length: int, trust_remote_code: bool
) -> tuple[Any, int, int]:
    """Return a checkpoint's fast tokenizer, cutting at `max_length` and not padding.

    Returns
    -------
    tokenizer : tokenizers.Tokenizer
    pad_id : int
    unknown_id : int
        -1 where no token stands for the unknown.

    Raises
    ------
    ModelLoadError
    """
    from tokenizers.normalizers import Lowercase, Sequence
    from transformers import AutoTokenizer

    with _silent_transformers(), _explained(checkpoint):
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
    fast.enable_truncation(max_length)
    unknown_id = -1 if wrapper.unk_token_id is None else wrapper.unk_token_id
    return fast, wrapper.pad_token_id or 0, unknown_id


@contextmanager
def _explained(checkpoint: Checkpoint) -> Iterator[None]:
    """Turn whatever transformers raises about a checkpoint into one line that names it."""
    try:
        yield
    except Exception as error:
        remedy = "fetch the checkpoint again or choose another"
        if "trust_remote_code" in str(error):
            remedy = "read its code and, if you trust it, pass trust_remote_code=True"
        raise ModelLoadError(
            f"expected a checkpoint that transformers can load, got {checkpoint.folder}: "
            f"{one_line(error)}; {remedy}"
        ) from None


@contextmanager
def _silent_transformers() -> Iterator[None]:
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
