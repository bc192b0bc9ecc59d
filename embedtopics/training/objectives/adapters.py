"""Low-rank additions to the weights: few numbers are learned, and added up at the end."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from embedtopics._checks import checked_count
from embedtopics.errors import InputError, MissingExtraError
from embedtopics.results import Decision
from embedtopics.training.objectives.layers import layers_of
from embedtopics.training.objectives.trainee import Trainee, merge_adapters

if TYPE_CHECKING:
    from torch import nn

__all__ = ["merged", "with_lora"]

_ALPHA = 2
"""What is learned is multiplied by so much before it is added, whatever the rank."""


def with_lora(trainee: Trainee, rank: int, *, seed: int = 0) -> Trainee:
    """Let only low-rank additions to the weights of a transformer's layers be learned.

    To each linear layer W of attention and feed-forward, the product of two matrices B A of rank
    `rank` is added, B being zero at first (Hu et al., 2021, "LoRA", equation 3). The other weights
    stay as they are, those of layers after the pooling included. `save_trainee` adds what was
    learned to the weights, so that a saved folder is like any other.

    Parameters
    ----------
    trainee : Trainee
        Its model is changed.
    rank : int
    seed : int
        Of the matrices A.

    Returns
    -------
    Trainee

    Raises
    ------
    InputError
        If it is a static encoder, has such additions already, or the rank is no count.
    MissingExtraError
        If peft is not installed.
    """
    import torch

    checked_count(rank, "rank")
    if trainee.is_static:
        raise InputError(
            f"expected a transformer for low-rank additions, got the static encoder "
            f"{trainee.name!r}; train its table without lora_rank"
        )
    if trainee.has_adapters:
        raise InputError("expected a model without low-rank additions, got one that has them")
    try:
        from peft import LoraConfig, inject_adapter_in_model
    except ImportError:
        raise MissingExtraError(
            'low-rank additions need peft; install it with: pip install "embedtopics[train]"'
        ) from None
    model: Any = trainee.model
    transformer = model[0].model
    names = _linear_names(transformer)
    if not names:
        raise InputError(
            f"expected a transformer with linear layers, got a {type(transformer).__name__} with "
            "none; train all of its weights, without lora_rank"
        )
    model.requires_grad_(False)
    config = LoraConfig(r=rank, lora_alpha=_ALPHA * rank, target_modules=names)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        inject_adapter_in_model(config, transformer)
    n_learned = sum(w.numel() for w in model.parameters() if w.requires_grad)
    note = Decision(
        "training",
        "lora_rank",
        rank,
        f"Additions of rank {rank} to {len(names)} linear layers were learned, {n_learned:,} "
        "numbers; they are added to the weights in what is saved.",
    )
    return replace(trainee, decisions=(*trainee.decisions, note))


def merged(trainee: Trainee) -> Trainee:
    """Add what was learned to the weights, and take the additions out.

    Parameters
    ----------
    trainee : Trainee
        Its model is changed; one without additions stays as it is.

    Returns
    -------
    Trainee
    """
    merge_adapters(trainee.model)
    return trainee


def _linear_names(transformer: nn.Module) -> list[str]:
    """Return the names of the linear layers of all layers of a transformer."""
    from torch import nn

    inside = {id(part) for layer in layers_of(transformer) for part in layer.modules()}
    return [
        name
        for name, part in transformer.named_modules()
        if isinstance(part, nn.Linear) and id(part) in inside
    ]
