"""From the name of an encoder to a transformer that returns its layers."""

import shutil
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar, cast

from embedtopics._utils.checks import checked_count
from embedtopics.encoders._base import load_error, require_torch
from embedtopics.encoders._registry import resolve_encoder
from embedtopics.encoders.sentence._checkpoint import Recipe
from embedtopics.encoders.sentence._encoder import SentenceEncoder
from embedtopics.encoders.sentence._running import has_gpu
from embedtopics.encoders.sentence._torch import load_model, silent_transformers
from embedtopics.errors import InputError

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, eq=False)
class LayeredModel:
    """A loaded transformer; in a causal one, a word knows nothing of what comes after it."""

    model: Any
    device: str
    n_layers: int
    width: int
    is_causal: bool = False


def transformer_of(encoder: Any) -> SentenceEncoder:
    """Return the transformer of an encoder."""
    transformer: SentenceEncoder | None = resolve_encoder(encoder).transformer
    if transformer is None:
        expected = "a checkpoint of a transformer, its folder or a SentenceEncoder"
        raise InputError("encoder", expected, encoder)
    return transformer


def load_layers(recipe: Recipe) -> LayeredModel:
    """Load a transformer, and see on two sequences that it has all layers, and whether causal."""
    device = "cuda" if has_gpu() else "cpu"
    model: Any = load_model(recipe.checkpoint, trust_remote_code=recipe.trusts_code).to(device)
    import torch

    padding = getattr(model.config, "pad_token_id", None)
    one, two, three = [token for token in range(4) if token != padding][:3]
    ids = torch.tensor([[one, two], [one, three]], device=device)
    mask = torch.ones_like(ids)
    with torch.inference_mode():
        states = model(input_ids=ids, attention_mask=mask, output_hidden_states=True).hidden_states
    shapes = {tuple(layer.shape) for layer in states}
    if len(shapes) != 1 or states[0].shape[:2] != ids.shape:
        expected = f"layers of one shape in {recipe.checkpoint.folder}"
        raise load_error(expected, sorted(shapes), "choose another checkpoint")
    is_causal = torch.equal(states[-1][0, 0], states[-1][1, 0])
    return LayeredModel(model, device, len(states), int(states[0].shape[2]), is_causal)


def one_core_each(work: Callable[[T], R], jobs: Iterable[T]) -> Iterator[R]:
    """Do jobs on as many threads as torch has, each on one; yield the results in order."""
    torch = require_torch("a model")
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)  # the order of its sums depends on their number
    try:
        with ThreadPoolExecutor(n_threads, "probing", torch.set_num_threads, (1,)) as pool:
            yield from pool.map(work, jobs)
    finally:
        torch.set_num_threads(n_threads)


@contextmanager
def random_model(encoder: Any, random_state: int) -> Iterator[SentenceEncoder]:
    """Yield an encoder with the same architecture and vocabulary, and freshly drawn weights."""
    torch = require_torch("a random model")
    from transformers import AutoConfig, AutoModel

    seed = checked_count(random_state, "random_state", 0)
    recipe = transformer_of(encoder).recipe
    checkpoint = recipe.checkpoint
    trusts_code, architecture = recipe.trusts_code, cast(Any, AutoModel)  # it has no types
    with TemporaryDirectory(prefix="embedtopics-random-") as root:
        folder = Path(root) / "model"
        folder.mkdir()
        # All but the weights that a tokenizer may be made of.
        for path in (*checkpoint.tokenizer_files, *checkpoint.folder.glob("*_config.json")):
            shutil.copyfile(path, folder / path.name)
        with silent_transformers(), torch.random.fork_rng(devices=[]):
            config = AutoConfig.from_pretrained(
                checkpoint.folder, local_files_only=True, trust_remote_code=trusts_code
            )
            torch.default_generator.manual_seed(seed)  # not those of GPUs
            model = architecture.from_config(
                config, dtype=torch.float32, trust_remote_code=trusts_code
            )
            model.save_pretrained(folder)
        encoder = SentenceEncoder(folder, max_length=recipe.max_length)
        name = f"{recipe.name} (random weights, random_state {seed})"
        encoder.recipe = replace(encoder.recipe, name=name)
        yield encoder
