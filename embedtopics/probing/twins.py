"""An encoder with the shape of another, and nothing learnt."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from pathlib import Path
from typing import Any

from embedtopics._checks import checked_count
from embedtopics.encoders import SentenceEncoder
from embedtopics.encoders.checkpoint import Checkpoint
from embedtopics.encoders.hub import one_line
from embedtopics.encoders.loading import silent_transformers
from embedtopics.encoders.resolve import DEFAULT_MODEL
from embedtopics.errors import InputError, ModelLoadError
from embedtopics.probing.opening import source_of

__all__ = ["random_twin"]


class _RandomTwin(SentenceEncoder):
    """An encoder of a temporary folder, called after the one that it has the shape of."""

    def __init__(self, folder: Path, name: str, max_length: int) -> None:
        super().__init__(folder, max_length=max_length)
        self._called = name

    @property
    def name(self) -> str:
        """What it is a twin of."""
        return self._called


def random_twin(encoder: Any = DEFAULT_MODEL, seed: int = 0) -> SentenceEncoder:
    """Return an encoder of the same architecture and vocabulary with fresh random weights.

    What a probe reads from it was not learnt in training: it comes from the architecture and from
    the words themselves (Zhang & Bowman 2018; Conneau et al. 2018). A probe of the trained encoder
    is worth as much as it reads beyond that.

    Parameters
    ----------
    encoder : str, path or SentenceEncoder
    seed : int

    Returns
    -------
    SentenceEncoder
        Its weights are drawn as the architecture draws them before training, lie in a temporary
        folder, and go away with it. The same seed gives the same weights.

    Raises
    ------
    InputError
        If the encoder has no layers, or the seed is no whole number from 0 up.
    ModelLoadError
        If the checkpoint cannot be read.

    Examples
    --------
    >>> states = hidden_states(texts, random_twin("all-MiniLM-L6-v2"))  # doctest: +SKIP
    """
    if checked_count(seed, "seed", 0) >= 2**64:
        raise InputError(f"expected a seed below 2 ** 64, all that torch takes; got {seed}")
    source = source_of(encoder)
    root = Path(tempfile.mkdtemp(prefix="embedtopics-twin-"))
    try:
        folder = root / "twin"
        _copy_tokenizer(source.checkpoint, folder)
        _draw_weights(source.checkpoint, folder, int(seed), source.trusts_code)
        name = f"{source.name} (random weights, seed {int(seed)})"
        twin = _RandomTwin(folder, name, source.max_length)
    except BaseException:  # an interrupt too
        shutil.rmtree(root, ignore_errors=True)
        raise
    weakref.finalize(twin, shutil.rmtree, root, ignore_errors=True)
    return twin


def _copy_tokenizer(checkpoint: Checkpoint, folder: Path) -> None:
    """Copy all but the weights that a tokenizer could be made of."""
    folder.mkdir()
    others = [*checkpoint.folder.glob("*_config.json")]
    for path in (*checkpoint.tokenizer_files, *others):
        shutil.copyfile(path, folder / path.name)


def _draw_weights(checkpoint: Checkpoint, folder: Path, seed: int, trusts_code: bool) -> None:
    import torch
    from transformers import AutoConfig, AutoModel

    architecture: Any = AutoModel  # it carries no types

    try:
        with silent_transformers(), torch.random.fork_rng(devices=[]):
            config = AutoConfig.from_pretrained(
                checkpoint.folder, local_files_only=True, trust_remote_code=trusts_code
            )
            torch.default_generator.manual_seed(seed)  # and not that of any GPU
            model = architecture.from_config(
                config, dtype=torch.float32, trust_remote_code=trusts_code
            )
            model.save_pretrained(folder)
    except Exception as error:  # whatever transformers makes of a configuration
        raise ModelLoadError(
            f"expected a checkpoint whose model can be made anew, got {checkpoint.folder}: "
            f"{one_line(error)}; choose another"
        ) from None
