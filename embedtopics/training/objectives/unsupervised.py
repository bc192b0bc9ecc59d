"""Objectives for texts alone: nobody has to say which of them belong together."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np

from embedtopics._checks import is_number
from embedtopics.encoders.head import Dense
from embedtopics.encoders.loading import load_vocabulary, silent_transformers
from embedtopics.encoders.static import StaticEncoder
from embedtopics.encoders.tokenizing import n_leading
from embedtopics.errors import InputError
from embedtopics.training.examples import Examples
from embedtopics.training.objectives.objective import Objective, TokenColumns
from embedtopics.training.objectives.supervised import SCALE, checked_kind, ranking_loss
from embedtopics.training.objectives.trainee import Trainee

__all__ = ["DECODERS", "simcse", "tsdae"]

DECODERS = ("bert", "camembert", "electra", "roberta", "xlm-roberta")
"""Families that transformers can run as a decoder which looks at an encoder's vector."""


def simcse(examples: Examples, *, scale: float = SCALE) -> Objective:
    """Learn that a text is nearer to itself than to others, whichever units are dropped.

    Each text is encoded twice with other units dropped out (Gao et al., 2021, "SimCSE", equation
    4). There is no metric: without dropout a text is always nearest to itself.

    Parameters
    ----------
    examples : Examples
        Of kind "texts".
    scale : float
        Factor of the cosines before the softmax, 1 / temperature.

    Returns
    -------
    Objective
        Its `make_loss` raises InputError for a model without dropout.

    Raises
    ------
    InputError
        If the examples are of another kind.
    """
    checked_kind(examples, "simcse", ("texts",))
    ranking = ranking_loss(scale, False)

    def make_loss(model: Any, given: Any) -> Any:
        from torch import nn

        if not any(isinstance(part, nn.Dropout) and part.p > 0 for part in model.modules()):
            raise InputError(
                "expected a model with dropout, which makes the two views of a text differ, got "
                "one without; choose a checkpoint whose configuration has a dropout above 0, or "
                "learn from texts with tsdae"
            )
        return ranking(model, given)

    return Objective(
        name="texts: SimCSE",
        examples=examples,
        make_loss=make_loss,
        in_batch_negatives=True,
        views=lambda columns, rng: (columns[0], columns[0]),
    )


def tsdae(examples: Examples, trainee: Trainee, *, deleted: float = 0.6) -> Objective:
    """Learn vectors from which a text can be written again after most of its words are deleted.

    A decoder that shares the encoder's weights sees nothing of the damaged text but its vector
    (Wang et al., 2021, "TSDAE", section 3). There is no metric.

    Parameters
    ----------
    examples : Examples
        Of kind "texts".
    trainee : Trainee
        That will be trained: its tokenizer tells where words begin.
    deleted : float
        Chance of each word to be deleted; one word always stays.

    Returns
    -------
    Objective

    Raises
    ------
    InputError
        If the examples are of another kind, `deleted` is no share, or the encoder is of a family
        that has no decoder, or its vectors are no longer or shorter than its hidden states.
    """
    checked_kind(examples, "tsdae", ("texts",))
    if not is_number(deleted) or not 0 < deleted < 1:
        raise InputError(f"expected deleted to be a share between 0 and 1; got {deleted!r}")
    _check_decoder(trainee)
    damage = _deletion(trainee, deleted)

    def views(columns: TokenColumns, rng: np.random.Generator) -> TokenColumns:
        return [damage(ids, rng) for ids in columns[0]], columns[0]

    return Objective(
        name="texts: TSDAE",
        examples=examples,
        make_loss=_reconstruction,
        views=views,
        n_encoded=1,
    )


def _check_decoder(trainee: Trainee) -> None:
    if isinstance(trainee.encoder, StaticEncoder):
        raise InputError(
            f"expected a transformer for tsdae, got the static encoder {trainee.name!r}, which has "
            "no decoder; learn from pairs instead"
        )
    recipe = trainee.encoder.recipe
    if recipe.checkpoint.family not in DECODERS:
        raise InputError(
            f"expected a checkpoint of a family with a decoder for tsdae, {', '.join(DECODERS)}; "
            f"got {recipe.checkpoint.family!r} ({trainee.name}); learn from texts with simcse"
        )
    config: Any = trainee.model[0].model.config  # type: ignore[union-attr]
    layers = config.num_hidden_layers + 1
    changes_width = recipe.dimensions is not None or len(recipe.pooling) > 1
    changes_width = changes_width or any(isinstance(step, Dense) for step in recipe.steps)
    if changes_width or layers != recipe.checkpoint.n_layers or trainee.has_adapters:
        raise InputError(
            "expected an encoder with all its layers and one pooling for tsdae, as its decoder has "
            f"the same layers and reads vectors of {config.hidden_size} numbers; got one that "
            "leaves layers out, learns additions to its weights, or changes the vector after it "
            "was pooled; use the checkpoint as it is"
        )


def _reconstruction(model: Any, given: Any) -> Any:
    """Return the loss of sentence-transformers, for an encoder that has run already."""
    import torch
    from sentence_transformers.sentence_transformer.losses import DenoisingAutoEncoderLoss
    from torch import nn

    device = model.device  # the decoder, whose weights the encoder gets, is read to the CPU
    weights = {name: weight.clone() for name, weight in model.state_dict().items()}
    with silent_transformers():
        loss = DenoisingAutoEncoderLoss(model, tie_encoder_decoder=True)
    # The decoder was read from the checkpoint, and its weights became those of the encoder, which
    # may have been trained since.
    model.load_state_dict(weights)
    loss.encoder = given
    loss.to(device)

    class _Reconstruction(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.loss = loss

        def forward(self, features: Any, labels: Any) -> Any:
            damaged, whole = features
            vectors = damaged["sentence_embedding"]
            # The decoder attends to one vector a text.
            seen = torch.ones(len(vectors), 1, dtype=torch.long, device=vectors.device)
            return self.loss([{**damaged, "attention_mask": seen}, whole], labels)

    return _Reconstruction()


def _deletion(
    trainee: Trainee, deleted: float
) -> Callable[[list[int], np.random.Generator], list[int]]:
    """Return a function that deletes words from the token ids of a text."""
    recipe = trainee.encoder.recipe  # type: ignore[union-attr]
    tokenizer = load_vocabulary(recipe.checkpoint, recipe.trusts_code).tokenizer
    begins = _word_beginnings(tokenizer)
    special = set(tokenizer.encode("").ids)
    leading = n_leading(tokenizer, recipe.prompt)

    def delete(ids: list[int], rng: np.random.Generator) -> list[int]:
        inside = [place >= leading and token not in special for place, token in enumerate(ids)]
        word = -1
        of_token = []
        for place, token in enumerate(ids):
            is_first = not place or not inside[place - 1]
            if inside[place] and (is_first or begins[token]):
                word += 1
            of_token.append(word if inside[place] else -1)
        if word < 0:
            return list(ids)
        stays = rng.random(word + 1) > deleted
        stays[rng.integers(word + 1)] |= not stays.any()
        return [t for t, w in zip(ids, of_token, strict=True) if w < 0 or stays[w]]

    return delete


def _word_beginnings(tokenizer: Any) -> list[bool]:
    """Tell of each token whether a word begins with it."""
    content = json.loads(tokenizer.to_str())
    vocabulary = tokenizer.get_vocab()
    inner = content["model"].get("continuing_subword_prefix") or ""
    mark = next((m for m in ("\u0120", "\u2581") if any(t.startswith(m) for t in vocabulary)), "")
    begins = [True] * (max(vocabulary.values()) + 1)
    for token, number in vocabulary.items():
        if content["model"]["type"] == "WordPiece" and inner:
            begins[number] = not token.startswith(inner)
        elif mark:
            begins[number] = token.startswith(mark)
    return begins
