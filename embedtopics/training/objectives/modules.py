"""A sentence encoder's recipe as modules of sentence-transformers, which can be trained."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from embedtopics.encoders.head import Dense, Scale
from embedtopics.encoders.loading import load_model, silent_transformers
from embedtopics.encoders.recipe import Recipe
from embedtopics.errors import InputError

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from torch import nn

__all__ = ["model_of"]

_PROMPT = "training"
"""Name of a prompt that the checkpoint has no name for."""


def model_of(recipe: Recipe) -> SentenceTransformer:
    """Return a model of sentence-transformers with an encoder's weights and its vectors.

    Parameters
    ----------
    recipe : Recipe

    Returns
    -------
    SentenceTransformer
        On the CPU, in float32.

    Raises
    ------
    InputError
        If the recipe weighs layers whose number the configuration does not tell.
    ModelLoadError
        If the checkpoint cannot be loaded.
    """
    from sentence_transformers import SentenceTransformer

    modules = [_transformer(recipe), *_layers(recipe), _pooling(recipe)]
    modules += [_step(step) for step in recipe.steps]
    if recipe.dimensions is not None:
        modules.append(_cut(modules, recipe.dimensions))
    if recipe.normalize:
        modules.append(_step(Scale()))
    prompts, name = dict(recipe.checkpoint.prompts), None
    if recipe.prompt:
        name = next((key for key, words in prompts.items() if words == recipe.prompt), _PROMPT)
        prompts[name] = recipe.prompt
    with silent_transformers():
        model = SentenceTransformer(
            modules=modules, device="cpu", prompts=prompts, default_prompt_name=name,
            trust_remote_code=recipe.trusts_code, local_files_only=True,
        )  # fmt: skip
    return model.eval()


def _transformer(recipe: Recipe) -> nn.Module:
    """Return the transformer with its tokenizer.

    The weights are loaded as the encoder loads them, which finds out what is missing; what
    sentence-transformers loaded on its way is replaced.
    """
    import torch
    from sentence_transformers.sentence_transformer.modules import Transformer

    checkpoint, trusted = recipe.checkpoint, recipe.trusts_code
    local = {"local_files_only": not trusted, "trust_remote_code": trusted}
    # A pooler that is not in the file starts at random. It gives no vector, but is saved.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = load_model(checkpoint, trust_remote_code=trusted)
        with silent_transformers():
            module: nn.Module = Transformer(
                str(checkpoint.folder),
                model_kwargs={**local, "dtype": torch.float32, "use_safetensors": True},
                processor_kwargs=dict(local),
                config_kwargs=dict(local),
                modality_config={
                    "text": {"method": "forward", "method_output_name": "last_hidden_state"}
                },
                module_output_name="token_embeddings",
                max_seq_length=recipe.max_length,
                do_lower_case=checkpoint.lower_case,
            )
    module.model = model
    model.config.output_hidden_states = recipe.layers != 1
    return module


def _layers(recipe: Recipe) -> list[nn.Module]:
    """Return the mean of several layers as a module, with weights that are not learned."""
    import torch
    from sentence_transformers.sentence_transformer.modules import WeightedLayerPooling

    if recipe.layers == 1:
        return []
    n_layers, width = recipe.checkpoint.n_layers, recipe.checkpoint.width
    if n_layers is None or width is None:
        raise InputError(
            "expected a checkpoint whose configuration tells how many layers it has, as the "
            f"encoder takes several; got {recipe.checkpoint.folder}; make the encoder with layers=1"
        )
    if isinstance(recipe.layers, int):
        weights = [0.0] * (n_layers - recipe.layers) + [1 / recipe.layers] * recipe.layers
    else:
        weights = list(recipe.layers)
    module = WeightedLayerPooling(width, num_hidden_layers=n_layers - 1, layer_start=0)
    module.layer_weights = torch.nn.Parameter(torch.tensor(weights), requires_grad=False)
    return [module]


def _pooling(recipe: Recipe) -> nn.Module:
    from sentence_transformers.sentence_transformer.modules import Pooling

    width = recipe.checkpoint.width
    if width is None:
        raise InputError(
            "expected a checkpoint whose configuration tells the length of its hidden states, got "
            f"{recipe.checkpoint.folder}, which does not; choose another checkpoint"
        )
    pools_prompt = recipe.checkpoint.head.pools_prompt
    module: nn.Module = Pooling(width, recipe.pooling, include_prompt=pools_prompt)
    return module


def _step(step: Dense | Scale) -> nn.Module:
    import torch
    from sentence_transformers.sentence_transformer.modules import Dense as DenseModule
    from sentence_transformers.sentence_transformer.modules import Normalize

    if isinstance(step, Scale):
        return Normalize()
    n_out, n_in = step.weight.shape
    module: nn.Module = DenseModule(
        n_in,
        n_out,
        activation_function=getattr(torch.nn, step.activation)(),
        init_weight=torch.tensor(step.weight),
        init_bias=torch.tensor(step.bias),
    )
    return module


def _cut(modules: list[Any], dimensions: int) -> nn.Module:
    """Return a module that keeps the first numbers of a vector, before it is scaled.

    sentence-transformers itself cuts what has been scaled, and does not scale it again.
    """
    import torch
    from sentence_transformers.sentence_transformer.modules import Dense as DenseModule

    sized = [module for module in modules if hasattr(module, "get_embedding_dimension")]
    width = int(sized[-1].get_embedding_dimension())
    module: nn.Module = DenseModule(
        width,
        dimensions,
        bias=False,
        activation_function=torch.nn.Identity(),
        init_weight=torch.eye(width)[:dimensions].clone(),
    )
    module.requires_grad_(False)
    return module
