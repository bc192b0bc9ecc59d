"""What runs a transformer: torch, or ONNX Runtime on a CPU."""

from __future__ import annotations

import os
import warnings
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from embedtopics.protocols import FloatArray

__all__ = ["OnnxRuntime", "Runtime", "TorchRuntime", "has_gpu", "physical_cores"]

TokenArray = npt.NDArray[np.int64]


_FOR_CACHES = 512
_FOR_A_GPU = 16_384


class Runtime(Protocol):
    """Turns token ids into pooled vectors."""

    name: str
    tokens_per_batch: int
    """How many are fastest together."""

    @property
    def n_workers(self) -> int:
        """Calls that may go on at the same time."""
        ...

    def __call__(self, ids: TokenArray, mask: TokenArray, pooled: TokenArray) -> FloatArray:
        """Return pooled vectors of shape (n_texts, n_pooled); all arrays (n_texts, n_tokens)."""
        ...


class TorchRuntime:
    """Runs a pooled model with torch.

    Parameters
    ----------
    module : torch.nn.Module
        Of `pooling.pooled_model`.
    device : str
    """

    name = "torch"
    n_workers = 1

    def __init__(self, module: Any, device: str) -> None:
        self._module = module.to(device)
        self._device = device
        self.tokens_per_batch = _FOR_CACHES if device == "cpu" else _FOR_A_GPU

    def __call__(self, ids: TokenArray, mask: TokenArray, pooled: TokenArray) -> FloatArray:
        """Return pooled vectors."""
        import torch

        with torch.inference_mode():
            inputs = (torch.from_numpy(array).to(self._device) for array in (ids, mask, pooled))
            made: FloatArray = self._module(*inputs).float().cpu().numpy()
        return made


class OnnxRuntime:
    """Runs an exported model with ONNX Runtime on the CPU.

    A batch is computed by one thread, and several batches at the same time: threads that share a
    batch wait for one another a hundred times in each.

    Parameters
    ----------
    model : bytes
        An ONNX model.
    """

    name = "onnx"
    tokens_per_batch = _FOR_CACHES

    def __init__(self, model: bytes) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        # Threads that wait by spinning would take the cores from all other work.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self._session = onnxruntime.InferenceSession(
            model, options, providers=["CPUExecutionProvider"]
        )
        self._inputs = [value.name for value in self._session.get_inputs()]

    @cached_property
    def n_workers(self) -> int:
        """Calls that may go on at the same time: one on each core."""
        return physical_cores()

    def __call__(self, ids: TokenArray, mask: TokenArray, pooled: TokenArray) -> FloatArray:
        """Return pooled vectors."""
        arrays = {"input_ids": ids, "attention_mask": mask, "pooled_mask": pooled}
        made: FloatArray = self._session.run(None, {name: arrays[name] for name in self._inputs})[0]
        return made


def physical_cores() -> int:
    """Return how many cores this process may use, hyper-threads counted once."""
    from joblib import cpu_count

    with warnings.catch_warnings():
        # It says so where it cannot tell threads from cores, which does not matter here.
        warnings.simplefilter("ignore")
        return max(1, int(cpu_count(only_physical_cores=True)))


def has_gpu() -> bool:
    """Tell whether torch could use a CUDA device, without loading torch where it could not."""
    import ctypes

    try:
        ctypes.CDLL("libcuda.so.1" if os.name == "posix" else "nvcuda.dll")
    except OSError:
        return False
    import torch

    return bool(torch.cuda.is_available())
