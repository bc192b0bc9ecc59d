"""Heads of masked language models, pairs and replaced-token detection."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from transformers.modeling_outputs import BaseModelOutput

from embedtopics.encoders.sentence._checkpoint import Recipe
from embedtopics.encoders.sentence._torch import silent_transformers
from embedtopics.pretraining._tokenizers import HEAD_WIDTH

GENERATOR_WIDTH = 4
"""Ratio of the widths of encoder and generator (Clark et al. 2020, section 3.2)."""


class PairHead(nn.Module):
    """Scores (n, 2) of pairs from the state of the first token, as in BERT."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.pooler, self.scores = nn.Linear(width, width), nn.Linear(width, 2)

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        scores: torch.Tensor = self.scores(torch.tanh(self.pooler(states))).float()
        return scores


class _GivenStates(nn.Module):
    """Replaces the transformer in its masked language model, and returns given states."""

    body: Any

    def __init__(self, body: Any) -> None:
        super().__init__()
        self.__dict__["body"] = body  # no part of this module: it is the trained one

    @property
    def embeddings(self) -> Any:
        """Embeddings of the transformer, which some heads use."""
        return self.body.embeddings

    def forward(self, *_: Any, inputs_embeds: Any = None, **__: Any) -> BaseModelOutput:
        return BaseModelOutput(last_hidden_state=inputs_embeds)


class TokenHead(nn.Module):
    """The head of a masked language model, tied to the embeddings of a transformer."""

    # Runs the code of the model on the states of predicted tokens, for any family.
    body: Any

    def __init__(self, model: Any, body: Any, is_new: bool, pair: PairHead | None) -> None:
        super().__init__()
        self.model = model
        self.pair = pair
        self.is_new = is_new
        self.__dict__["body"] = body
        self._prefix = str(model.base_model_prefix)
        setattr(model, self._prefix, _GivenStates(body))
        # Share the weights that the head has in common with the transformer.
        for name, source in dict(model.all_tied_weights_keys).items():
            if source.startswith(f"{self._prefix}."):
                path, _, key = name.rpartition(".")
                weight = body.get_parameter(source.removeprefix(f"{self._prefix}."))
                setattr(model.get_submodule(path), key, weight)

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """Return scores (n, n_vocabulary) of hidden states (n, width)."""
        scores: torch.Tensor = self.model(inputs_embeds=states[None], return_dict=True).logits[0]
        return scores.float()

    def save(self, folder: Any) -> None:
        """Write transformer and head as a masked language model."""
        stub = getattr(self.model, self._prefix)
        setattr(self.model, self._prefix, self.body)
        try:
            with silent_transformers():
                self.model.save_pretrained(str(folder))
        finally:
            setattr(self.model, self._prefix, stub)


def token_head(recipe: Recipe, body: Any, seed: int, has_pairs: bool = False) -> TokenHead:
    """Return the head of a checkpoint; a new one, drawn from the seed, if it has none."""
    from transformers import AutoModelForMaskedLM

    checkpoint, trusted = recipe.checkpoint, recipe.trusts_code
    with torch.random.fork_rng([]), silent_transformers():
        torch.manual_seed(seed)
        model, report = AutoModelForMaskedLM.from_pretrained(
            checkpoint.folder,
            dtype=torch.float32,
            use_safetensors=True,
            local_files_only=not trusted,
            trust_remote_code=trusted,
            output_loading_info=True,
        )
        pair = PairHead(int(body.config.hidden_size)) if has_pairs else None
    prefix = f"{model.base_model_prefix}."
    missing = [key for key in report["missing_keys"] if not key.startswith(prefix)]
    return TokenHead(model.train(), body, bool(missing), pair)


class Detector(nn.Module):
    """Generator and head of replaced-token detection (Clark et al. 2020, section 2)."""

    # The generator is a narrow ELECTRA that shares the token embeddings of the encoder.

    def __init__(self, body: Any, max_length: int, seed: int, is_new: bool) -> None:
        from transformers import ElectraConfig, ElectraForMaskedLM

        super().__init__()
        self.is_new = is_new
        table = body.get_input_embeddings().weight
        size, width = table.shape
        narrow = max(2, width // GENERATOR_WIDTH)
        n_heads = max(1, narrow // HEAD_WIDTH)
        layers = getattr(body.config, "num_hidden_layers", 1)
        with torch.random.fork_rng([]), silent_transformers():
            torch.manual_seed(seed)
            self.generator: Any = ElectraForMaskedLM(ElectraConfig(
                vocab_size=size, embedding_size=width, hidden_size=narrow // n_heads * n_heads,
                num_hidden_layers=layers, num_attention_heads=n_heads, intermediate_size=4 * narrow,
                max_position_embeddings=max_length,
                pad_token_id=getattr(body.config, "pad_token_id", None) or 0,
            ))  # fmt: skip
            self.dense, self.scores = nn.Linear(width, width), nn.Linear(width, 1)
        self.generator.electra.embeddings.word_embeddings.weight = table
        self.generator.generator_lm_head.weight = table

    def generate(self, features: Any, is_hidden: torch.Tensor) -> torch.Tensor:
        """Return scores (n_hidden, n_vocabulary) of hidden tokens."""
        states = self.generator.electra(**features).last_hidden_state[is_hidden]
        head = self.generator.generator_lm_head(self.generator.generator_predictions(states))
        return torch.as_tensor(head).float()

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """Return a score of each hidden state (n, width), positive if the token was replaced."""
        hidden = nn.functional.gelu(self.dense(states))
        return torch.as_tensor(self.scores(hidden)).float()[:, 0]
