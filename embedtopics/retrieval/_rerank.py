"""Reranking of the best hits by a cross-encoder, which reads query and passage together."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from embedtopics._utils.checks import require
from embedtopics.errors import InputError, ModelLoadError


def load_cross_encoder(name: str | os.PathLike[str]) -> Any:
    """Load a cross-encoder from a folder, from the cache of the hub, or from the hub.

    Code in a checkpoint is never run, and weights are read from safetensors.
    """
    from embedtopics._utils.display import one_line
    from embedtopics.encoders.sentence._torch import silent_transformers

    CrossEncoder = require("sentence_transformers", "a cross-encoder", "torch").CrossEncoder
    try:
        with silent_transformers():
            model: Any = CrossEncoder(
                os.fspath(name), device="cpu", trust_remote_code=False,
                model_kwargs={"use_safetensors": True},
            )  # fmt: skip
    except Exception as error:  # transformers raises many kinds
        raise ModelLoadError(
            f"expected a cross-encoder that sentence-transformers can load, got {name}: "
            f"{one_line(error)}; give the folder or the hub name of a checkpoint for ranking"
        ) from None
    architecture = (model.config.architectures or ["no architecture"])[0]
    is_classifier = architecture.endswith("ForSequenceClassification")
    if not (is_classifier or architecture.endswith("ForCausalLM")) or model.num_labels != 1:
        raise ModelLoadError(
            f"{name} ({architecture}, outputs: {model.num_labels}) is not a cross-encoder with one "
            "output; choose a checkpoint that was trained for ranking"
        )
    if is_classifier and (missing := _missing_weights(name)):
        # They would be random, and so would the scores.
        raise ModelLoadError(f"{name} lacks weights: {', '.join(missing[:3])}; complete it")
    return model


def _missing_weights(name: str | os.PathLike[str]) -> list[str]:
    from transformers import AutoModelForSequenceClassification

    load = AutoModelForSequenceClassification.from_pretrained
    return sorted(load(name, use_safetensors=True, output_loading_info=True)[1]["missing_keys"])


def resolve_reranker(reranker: Any) -> Callable[[list[tuple[str, str]]], Any]:
    """Return the function of pairs that scores candidates."""
    if isinstance(reranker, str | os.PathLike):
        reranker = load_cross_encoder(reranker)
    predict = getattr(reranker, "predict", reranker)
    if isinstance(reranker, type) or not callable(predict):
        expected = "a checkpoint, an object with predict(pairs) or a function of pairs"
        raise InputError("reranker", expected, reranker)
    function: Callable[[list[tuple[str, str]]], Any] = predict
    return function


def rerank(
    predict: Callable[[list[tuple[str, str]]], Any], query: str, passages: Sequence[str]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Return the order of the passages, best first, and their ordered scores, (n,)."""
    pairs = [(query, passage) for passage in passages]
    scores = np.array(_as_scores(predict(pairs), len(pairs)) if pairs else [], dtype=np.float64)
    order = np.argsort(-scores, kind="stable").astype(np.int64)
    return order, scores[order]


def _as_scores(output: Any, n_pairs: int) -> list[float]:
    """Return the output of a reranker as one finite number for each pair."""
    try:
        scores = np.asarray(output, dtype=np.float64).reshape(n_pairs)
    except (TypeError, ValueError):
        scores = np.array([np.nan])
    if not np.isfinite(scores).all():
        expected = f"one that returns {n_pairs} finite numbers for {n_pairs} pairs"
        raise InputError("reranker", expected, output)
    return [float(score) for score in scores]
