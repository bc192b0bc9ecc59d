"""Evaluators of sentence-transformers on vectors that are given: what our figures must equal."""

from __future__ import annotations

import numpy as np

__all__ = ["Given", "evaluate_by_rows"]


class Given:
    """A model for evaluators: the text "first 3" has row 3 of the vectors named "first"."""

    similarity_fn_name = "cosine"

    def __init__(self, **vectors):
        self.vectors = vectors

    def encode(self, texts, *, convert_to_tensor=False, **_):
        import torch

        pairs = [text.split() for text in texts]
        made = np.stack([self.vectors[name][int(row)] for name, row in pairs])
        return torch.from_numpy(made) if convert_to_tensor else made

    encode_query = encode_document = encode

    def similarity(self, queries, documents):
        from sentence_transformers.util import cos_sim

        return cos_sim(queries, documents)

    @property
    def model_card_data(self):
        return self

    def set_evaluation_metrics(self, *_):
        """Evaluators note their figures in a model card."""


def evaluate_by_rows(name, *arguments, vectors, columns, **options):
    """Run an evaluator on rows of vectors; return its figures."""
    from sentence_transformers.sentence_transformer import evaluation

    texts = [[f"{column} {row}" for row in range(len(vectors[column]))] for column in columns]
    evaluator = getattr(evaluation, name)(*texts, *arguments, write_csv=False, **options)
    return evaluator(Given(**vectors))
