"""Replaced-token detection: a small generator, and a head that finds what it replaced."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from embedtopics.encoders.sentence._loading import silent_transformers
from embedtopics.pretraining._new import HEAD_WIDTH

GENERATOR_WIDTH = 4
"""The generator is narrower than the encoder by so much (Clark et al. 2020, section 3.2)."""


class PairHead(nn.Module):
    """Scores (n, 2) of pairs, of the first token's state, as in BERT."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.pooler, self.scores = nn.Linear(width, width), nn.Linear(width, 2)

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        scores: torch.Tensor = self.scores(torch.tanh(self.pooler(states))).float()
        return scores


class Detector(nn.Module):
    """Generator and head of replaced-token detection (Clark et al. 2020, section 2).

    The generator is a narrow ELECTRA with as many layers as the encoder, and the encoder's table of
    token vectors, which both learn.
    """

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
        """Return scores (n_hidden, n_vocabulary) of the tokens that are hidden."""
        states = self.generator.electra(**features).last_hidden_state[is_hidden]
        head = self.generator.generator_lm_head(self.generator.generator_predictions(states))
        return torch.as_tensor(head).float()

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """Return a score of each hidden state (n, width): positive where it was replaced."""
        hidden = nn.functional.gelu(self.dense(states))
        return torch.as_tensor(self.scores(hidden)).float()[:, 0]
