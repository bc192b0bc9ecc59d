"""From the name of an encoder to a transformer that returns its layers."""

import hashlib
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

from embedtopics._utils.checks import checked_count
from embedtopics._utils.display import one_line
from embedtopics.decisions import Decision
from embedtopics.encoders._base import require_torch
from embedtopics.encoders._registry import resolve_encoder
from embedtopics.encoders.sentence._checkpoint import Checkpoint
from embedtopics.encoders.sentence._encoder import SentenceEncoder
from embedtopics.encoders.sentence._running import has_gpu
from embedtopics.encoders.sentence._torch import load_model, silent_transformers
from embedtopics.errors import InputError, ModelLoadError


@dataclass(frozen=True, eq=False)
class CheckpointSource:
    """A checkpoint, and how it is read."""

    name: str
    checkpoint: Checkpoint
    max_length: int
    trusts_code: bool
    decisions: tuple[Decision, ...]

    def digest(self) -> str:
        """Return the SHA-256 over weights, vocabulary and configuration."""
        contents = (self.checkpoint.contents, self.checkpoint.lower_case)
        return hashlib.sha256(repr(contents).encode()).hexdigest()


@dataclass(frozen=True, eq=False)
class LayeredModel:
    """A loaded transformer; in a causal one, a word knows nothing of what comes after it."""

    model: Any
    device: str
    n_layers: int
    width: int
    is_causal: bool = False


def source_of(encoder: Any) -> CheckpointSource:
    """Return the checkpoint of an encoder."""
    transformer = resolve_encoder(encoder).transformer
    if transformer is None:
        expected = "a checkpoint of a transformer, its folder or a SentenceEncoder"
        raise InputError("encoder", expected, encoder)
    recipe = transformer.recipe
    decisions: tuple[Decision, ...] = ()
    if recipe.prompt:
        message = f"The prompt {recipe.prompt!r} is not prepended to the texts."
        decisions = (Decision("probing", "prompt", recipe.prompt, message),)
    length, trusts_code = recipe.max_length, recipe.trusts_code
    return CheckpointSource(transformer.name, recipe.checkpoint, length, trusts_code, decisions)


def load_layers(source: CheckpointSource) -> LayeredModel:
    """Load a transformer, and see on two sequences that it has all layers, and whether causal."""
    device = "cuda" if has_gpu() else "cpu"
    checkpoint = source.checkpoint
    named = f"{checkpoint.folder} of the family {checkpoint.family!r}"
    model: Any = load_model(checkpoint, trust_remote_code=source.trusts_code).to(device)
    import torch

    padding = getattr(model.config, "pad_token_id", None)
    one, two, three = [token for token in range(4) if token != padding][:3]
    ids = torch.tensor([[one, two], [one, three]], device=device)
    try:
        with torch.inference_mode():
            output = model(
                input_ids=ids, attention_mask=torch.ones_like(ids), output_hidden_states=True
            )
        states = output.hidden_states
        shapes = {tuple(layer.shape) for layer in states}
    except Exception as error:  # models without layers, or of another kind, raise anything
        message = (
            f"{named} does not return its layers ({one_line(error)}); choose another checkpoint"
        )
        raise ModelLoadError(message) from None
    if len(shapes) != 1 or states[0].shape[:2] != ids.shape:
        message = f"layers of {named} have the shapes {sorted(shapes)}; choose another checkpoint"
        raise ModelLoadError(message)
    is_causal = torch.equal(states[-1][0, 0], states[-1][1, 0])
    return LayeredModel(model, device, len(states), int(states[0].shape[2]), is_causal)


class _RandomModel(SentenceEncoder):
    """An encoder in a temporary folder, named after the one whose architecture it has."""

    def __init__(self, folder: Path, name: str, max_length: int) -> None:
        super().__init__(folder, max_length=max_length)
        self.name = name


@contextmanager
def random_model(encoder: Any, random_state: int) -> Iterator[SentenceEncoder]:
    """Yield an encoder with the same architecture and vocabulary, and freshly drawn weights."""
    torch = require_torch("a random model")
    from transformers import AutoConfig, AutoModel

    seed = checked_count(random_state, "random_state", 0)
    source = source_of(encoder)
    checkpoint = source.checkpoint
    trusts_code, architecture = source.trusts_code, cast(Any, AutoModel)  # it has no types
    with TemporaryDirectory(prefix="embedtopics-random-") as root:
        folder = Path(root) / "model"
        folder.mkdir()
        # All but the weights that a tokenizer may be made of.
        for path in (*checkpoint.tokenizer_files, *checkpoint.folder.glob("*_config.json")):
            shutil.copyfile(path, folder / path.name)
        try:
            with silent_transformers(), torch.random.fork_rng(devices=[]):
                config = AutoConfig.from_pretrained(
                    checkpoint.folder, local_files_only=True, trust_remote_code=trusts_code
                )
                torch.default_generator.manual_seed(seed)  # not those of GPUs
                model = architecture.from_config(
                    config, dtype=torch.float32, trust_remote_code=trusts_code
                )
                model.save_pretrained(folder)
        except Exception as error:  # transformers raises anything for a bad configuration
            message = (
                f"{checkpoint.folder} cannot be initialized ({one_line(error)}); choose another"
            )
            raise ModelLoadError(message) from None
        name = f"{source.name} (random weights, random_state {seed})"
        yield _RandomModel(folder, name, source.max_length)
