"""Load a checkpoint with transformers, and run it with torch."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from embedtopics._utils.display import one_line
from embedtopics.encoders._base import load_error, refusing_panics, require_torch, try_out
from embedtopics.encoders.sentence._checkpoint import T5, Checkpoint
from embedtopics.encoders.sentence._running import TOKENS_ON_CPU, TokenArray
from embedtopics.errors import InputError
from embedtopics.protocols import FloatArray

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from torch import Tensor

TOKENS_ON_GPU = 16_384

_logger = logging.getLogger("embedtopics")

FAMILIES = (
    "albert", "bert", "camembert", "deberta-v2", "distilbert", "electra", "modernbert", "mpnet",
    "roberta", "t5", "xlm-roberta",
)  # fmt: skip
"""Tested families; most other families of transformers load as well."""


def check_device(device: str) -> None:
    """Make sure that torch knows a device, available or not."""
    torch = require_torch("this model" if device == "cpu" else f"device={device!r}")
    try:
        torch.device(device)
    except RuntimeError as error:
        raise InputError(f"expected a torch device, got {device!r}: {one_line(error)}") from None


def require_device(device: str) -> None:
    """Make sure that a device is available."""
    check_device(device)
    import torch

    try:
        torch.empty(0, device=device)
    except (AssertionError, NotImplementedError, RuntimeError) as error:  # as torch was built
        actual = f"{device!r}: {one_line(error)}"
        remedy = "leave it out for the fastest available device"
        raise InputError("device", "an available device", None, remedy, found=actual) from None


def load_model(
    checkpoint: Checkpoint,
    *,
    dtype: str = "float32",
    attention: str | None = None,
    trust_remote_code: bool = False,
) -> Any:
    """Load a checkpoint's transformer on the CPU, ready to encode."""
    torch = require_torch(f"a model of the family {checkpoint.family!r}")
    from transformers import AutoModel, AutoModelForTextEncoding

    loader = AutoModelForTextEncoding if checkpoint.family in T5 else AutoModel
    with silent_transformers(), _explained(checkpoint):
        model, report = loader.from_pretrained(
            checkpoint.folder,
            dtype=getattr(torch, dtype),
            use_safetensors=checkpoint.weights[0].suffix != ".bin",
            weights_only=True,  # of what was pickled, tensors alone
            local_files_only=not trust_remote_code,
            trust_remote_code=trust_remote_code,
            output_loading_info=True,
            **({} if attention is None else {"attn_implementation": attention}),
        )
    # Missing weights would be initialized at random. The pooler is not used: it was trained to
    # predict the next sentence.
    lost = sorted(key for key in report["missing_keys"] if "pooler" not in key)
    lost += sorted(str(key[0]) for key in report.get("mismatched_keys") or ())
    if lost:
        raise load_error(
            f"all weights of a {type(model).__name__} in {checkpoint.weights[0]}",
            f"none for {len(lost)} tensors, such as {lost[0]}",
        )
    return model.eval()


def wrapped_tokenizer(checkpoint: Checkpoint, trust_remote_code: bool) -> Any:
    """Return the tokenizer of transformers."""
    require_torch(f"the tokenizer of transformers for {checkpoint.folder}")
    from transformers import AutoTokenizer

    with silent_transformers(), _explained(checkpoint), refusing_panics():
        return AutoTokenizer.from_pretrained(
            checkpoint.folder,
            local_files_only=not trust_remote_code,
            trust_remote_code=trust_remote_code,
        )


def tokenizer_of_transformers(
    checkpoint: Checkpoint, trust_remote_code: bool
) -> tuple[Tokenizer, int | None, int | None]:
    """Return the fast tokenizer, and the ids of its padding and unknown tokens."""
    wrapper = wrapped_tokenizer(checkpoint, trust_remote_code)
    fast = getattr(wrapper, "backend_tokenizer", None)
    if fast is None:
        actual = f"{type(wrapper).__name__} ({checkpoint.folder})"
        raise load_error("a fast tokenizer", actual, "choose a checkpoint with a tokenizer.json")
    with _explained(checkpoint):
        try_out(fast)
    return fast, wrapper.pad_token_id, wrapper.unk_token_id


@contextmanager
def _explained(checkpoint: Checkpoint) -> Iterator[None]:
    """Turn any exception of transformers into one line that names the checkpoint."""
    from transformers import CONFIG_MAPPING

    try:
        yield
    except Exception as error:
        remedy = "fetch the checkpoint again or choose another"
        if "trust_remote_code" in str(error):
            remedy = "read its code and, if you trust it, pass trust_remote_code=True"
        elif checkpoint.family not in CONFIG_MAPPING:
            remedy = (
                f"choose one of a family such as {', '.join(FAMILIES)}; where the checkpoint comes "
                "with code of its own, read it and, if you trust it, pass trust_remote_code=True"
            )
        raise load_error(
            "a checkpoint that transformers can load",
            f"{checkpoint.folder} of the family {checkpoint.family!r}: {one_line(error)}",
            remedy,
        ) from None


@contextmanager
def silent_transformers() -> Iterator[None]:
    """Silence the progress bars and messages of transformers, and restore the settings."""
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


def pool(hidden_states: Tensor, mask: Tensor, pooling: str) -> Tensor:
    """Pool hidden states (n_texts, n_tokens, n_dimensions) under a mask (n_texts, n_tokens)."""
    import torch

    if pooling in ("cls", "lasttoken"):
        # Where the ones begin, or end: the running sum of a row of ones counts up to both.
        counted = mask.cumsum(dim=1) * mask
        is_wanted = counted == (1 if pooling == "cls" else mask.sum(dim=1, keepdim=True))
        return (hidden_states * (is_wanted * mask).unsqueeze(-1).to(hidden_states.dtype)).sum(dim=1)
    weights = mask.unsqueeze(-1).to(hidden_states.dtype)
    if pooling == "max":
        largest = hidden_states.masked_fill(weights == 0, float("-inf")).amax(dim=1)
        return largest.masked_fill(mask.sum(dim=1, keepdim=True) == 0, 0.0)  # nothing to pool
    if pooling == "weightedmean":
        positions = torch.ones_like(mask).cumsum(dim=1)
        weights = weights * positions.unsqueeze(-1).to(hidden_states.dtype)
    total = weights.sum(dim=1).clamp_min(1e-9)
    if pooling == "mean_sqrt_len_tokens":
        total = total.sqrt()
    return (hidden_states * weights).sum(dim=1) / total


def pooled_model(model: Any, pooling: tuple[str, ...], layers: int | tuple[float, ...]) -> Any:
    """Return a module from token ids to pooled vectors."""
    import torch

    class Pooled(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, input_ids: Tensor, attention_mask: Tensor, pooled_mask: Tensor) -> Tensor:
            inputs = {"input_ids": input_ids, "attention_mask": attention_mask}
            if layers == 1:
                states = self.model(**inputs).last_hidden_state
            else:
                every = self.model(**inputs, output_hidden_states=True).hidden_states
                states = _combine(every, layers)
            # Sums over many tokens need more digits than half precision has.
            states = states.to(torch.float32)
            return torch.cat([pool(states, pooled_mask, mode) for mode in pooling], dim=-1)

    return Pooled().eval()


def _combine(every: tuple[Tensor, ...], layers: int | tuple[float, ...]) -> Tensor:
    import torch

    if isinstance(layers, int):
        return torch.stack(every[-layers:]).mean(dim=0)
    weighted = [state * weight for state, weight in zip(every, layers, strict=True) if weight]
    return torch.stack(weighted).sum(dim=0)


class TorchRuntime:
    """Run a pooled model with torch; the CPU takes over if a text exceeds the memory of the GPU."""

    name = "torch"
    n_workers = 1

    def __init__(self, module: Any, device: str, note: str = "") -> None:
        import torch

        self._module, self.device, self.note = module, device, note
        self.tokens_per_batch = TOKENS_ON_CPU if device == "cpu" else TOKENS_ON_GPU
        self._most_tokens = sys.maxsize  # half of those that were too many
        try:
            module.to(device)
        except torch.OutOfMemoryError:
            self._leave_gpu()

    def __call__(self, ids: TokenArray, mask: TokenArray, pooled: TokenArray) -> FloatArray:
        """Return pooled vectors."""
        import torch

        parts: list[FloatArray] = []
        arrays = [torch.from_numpy(array) for array in (ids, mask, pooled)]
        start, (n_texts, n_tokens) = 0, ids.shape
        while start < n_texts:
            part = slice(start, min(n_texts, start + max(1, self._most_tokens // n_tokens)))
            try:
                with torch.inference_mode():
                    inputs = (array[part].to(self.device) for array in arrays)
                    parts.append(self._module(*inputs).float().cpu().numpy())
                start = part.stop
            except torch.OutOfMemoryError:
                if self.device == "cpu":
                    raise
                if part.stop - start > 1:
                    self._most_tokens = (part.stop - start) * n_tokens // 2
                else:
                    self._leave_gpu()
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _leave_gpu(self) -> None:
        """Continue on the CPU with the same weights in float32: half precision is slow there."""
        self.note = f"The CPU encodes the texts, because the memory of {self.device} is too small"
        _logger.warning("%s.", self.note)
        self.device, self.tokens_per_batch, self._most_tokens = "cpu", TOKENS_ON_CPU, sys.maxsize
        self._module.to("cpu").float()
