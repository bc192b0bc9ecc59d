"""Forked processes, such as those of ``multiprocessing`` on Linux before Python 3.14.

A fork copies a process without its threads. Libraries that had computed on threads of OpenMP
(FAISS, scikit-learn, PyTorch) or Rust (tokenizers) would wait for these in the copy, forever, and
Numba would end it. So the copy computes on one thread.
"""

from __future__ import annotations

import os
import sys

_is_forked = False


def is_forked() -> bool:
    """Return whether this process was forked after embedtopics was imported."""
    return _is_forked


def _use_one_thread() -> None:
    """Set the libraries that are loaded to one thread, in a process that was just forked."""
    global _is_forked
    _is_forked = True
    if "tokenizers" in sys.modules:
        os.environ["TOKENIZERS_PARALLELISM"] = "false"
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)
    if {"faiss", "sklearn", "torch"} & sys.modules.keys():
        from threadpoolctl import threadpool_limits

        threadpool_limits(limits=1, user_api="openmp")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_use_one_thread)
