"""Load a checkpoint with transformers, and run it with torch."""

from __future__ import annotations

import logging
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
            use_safetensors=True,
            local_files_only=not trust_remote_code,
            trust_remote_code=trust_remote_code,
            output_loading_info=True,
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
    for name, weights in model.named_parameters():
        if not weights.numel():
            continue
        # A weight above 65,504 is infinite in float16 alone. Its vectors are no numbers, so that
        # the encoder is loaded again in float32.
        ends = weights.detach().aminmax()
        is_number = [end.isfinite() or (dtype == "float16" and end.isinf()) for end in ends]
        if not all(is_number):
            actual = f"others in {name} ({checkpoint.weights[0]})"
            raise load_error("weights that are finite numbers", actual)
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
        if "trust_remote_code" in str(error) or checkpoint.family not in CONFIG_MAPPING:
            remedy = (
                "read its code and, if you trust it, give the encoder as "
                f"SentenceEncoder({str(checkpoint.folder)!r}, trust_remote_code=True)"
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


def pooled_model(model: Any, pooling: tuple[str, ...]) -> Any:
    """Return a module from token ids to pooled vectors."""
    import torch

    class Pooled(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, input_ids: Tensor, attention_mask: Tensor, pooled_mask: Tensor) -> Tensor:
            output = self.model(input_ids=input_ids, attention_mask=attention_mask)
            # Sums over many tokens need more digits than half precision has.
            states = output.last_hidden_state.to(torch.float32)
            return torch.cat([pool(states, pooled_mask, mode) for mode in pooling], dim=-1)

    return Pooled().eval()


class TorchRuntime:
    """Run a pooled model with torch; the CPU takes over if a text exceeds the memory of the GPU."""

    name = "torch"
    n_workers = 1

    def __init__(self, module: Any, device: str, note: str = "") -> None:
        import torch

        self._module, self.device, self.note = module, device, note
        self.tokens_per_batch = TOKENS_ON_CPU if device == "cpu" else TOKENS_ON_GPU
        try:
            module.to(device)
        except torch.OutOfMemoryError:
            self._leave_gpu()

    def __call__(self, ids: TokenArray, mask: TokenArray, pooled: TokenArray) -> FloatArray:
        """Return pooled vectors."""
        import torch

        arrays = (ids, mask, pooled)
        try:
            with torch.inference_mode():
                inputs = (torch.from_numpy(array).to(self.device) for array in arrays)
                vectors: FloatArray = self._module(*inputs).float().cpu().numpy()
                return vectors
        except torch.OutOfMemoryError:
            if self.device == "cpu":
                raise
        half = len(ids) // 2
        if half:
            return np.concatenate(
                [self(*(a[:half] for a in arrays)), self(*(a[half:] for a in arrays))]
            )
        self._leave_gpu()
        return self(*arrays)

    def _leave_gpu(self) -> None:
        """Continue on the CPU with the same weights in float32: half precision is slow there."""
        self.note = f"The CPU encodes the texts, because the memory of {self.device} is too small"
        _logger.warning("%s.", self.note)
        self.device, self.tokens_per_batch = "cpu", TOKENS_ON_CPU
        self._module.to("cpu").float()
