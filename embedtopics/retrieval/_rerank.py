"""Reranking of the best hits by a cross-encoder, which reads query and passage together."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from embedtopics._utils.checks import require
from embedtopics.encoders.sentence._checkpoint import read_json, required
from embedtopics.errors import InputError, ModelLoadError


def load_cross_encoder(name: str | os.PathLike[str]) -> Any:
    """Load a cross-encoder from a folder, from the cache of the hub, or from the hub.

    Code in a checkpoint is never run. The model is read from safetensors; of pickled weights of
    further modules, sentence-transformers reads only tensors.
    """
    from embedtopics._utils.display import one_line
    from embedtopics.encoders.sentence._torch import silent_transformers

    CrossEncoder = require("sentence_transformers", "a cross-encoder", "torch").CrossEncoder
    folder = _folder_of(name)

    try:
        with silent_transformers():
            _check_modules(folder)
            _check_weights(folder)
            model: Any = CrossEncoder(
                str(folder), device="cpu", local_files_only=True, trust_remote_code=False,
                model_kwargs={"use_safetensors": True},
            )  # fmt: skip
    except ModelLoadError:
        raise
    except Exception as error:  # transformers raises many kinds
        raise ModelLoadError(
            f"expected a cross-encoder that sentence-transformers can load, got {folder}: "
            f"{one_line(error)}; choose a checkpoint for sequence classification"
        ) from None
    if model.num_labels != 1:
        raise ModelLoadError(
            f"expected a cross-encoder with one output, got one with {model.num_labels} "
            f"({folder}); choose one that was trained for ranking"
        )
    return model


def _folder_of(name: str | os.PathLike[str]) -> Path:
    from embedtopics.encoders.sentence._loading import Miss, cached_snapshot, download_snapshot

    folder = Path(name).expanduser()
    if folder.is_dir():
        return folder.absolute()
    if folder.exists() or os.fspath(name).startswith("."):
        raise ModelLoadError(
            f"expected the folder of a cross-encoder or a hub name, got {name!r}; check the path"
        )
    reasons = []
    for fetch in (cached_snapshot, partial(download_snapshot, with_code=False)):
        try:
            return fetch(os.fspath(name), None).absolute()
        except Miss as miss:
            reasons.append(str(miss))
    raise ModelLoadError(
        f"there is no cross-encoder {os.fspath(name)!r}; tried in order: folder {name}; "
        f"{'; '.join(reasons)}; give the folder of a checkpoint, or connect to the network once"
    )


def _check_modules(folder: Path) -> None:
    """Refuse modules that sentence-transformers would import from the checkpoint."""
    path = folder / "modules.json"
    for module in read_json(path, list) if path.is_file() else []:
        if not str(module["type"]).startswith("sentence_transformers."):
            raise ModelLoadError(
                f"{folder} has the module {module['type']!r}, and code in a checkpoint is never "
                "run; choose a cross-encoder of sentence-transformers' own modules"
            )


def _check_weights(folder: Path) -> None:
    """Refuse missing weights; a random head would otherwise go unnoticed."""
    names = read_json(required(folder / "config.json")).get("architectures") or [""]
    config = folder / "config_sentence_transformers.json"
    model_type = read_json(config).get("model_type") if config.is_file() else None
    if str(names[0]).endswith("ForSequenceClassification"):
        from transformers import AutoModelForSequenceClassification

        _, report = AutoModelForSequenceClassification.from_pretrained(
            folder, use_safetensors=True, local_files_only=True, trust_remote_code=False,
            output_loading_info=True,
        )  # fmt: skip
        if missing := sorted(report["missing_keys"]):
            raise ModelLoadError(
                f"{folder} lacks {len(missing)} tensors of a {names[0]}, such as {missing[0]}; "
                "fetch the checkpoint again"
            )
    elif not str(names[0]).endswith("ForCausalLM") and model_type != "CrossEncoder":
        raise ModelLoadError(
            f"{folder} ({names[0] or 'no architecture'}) is not a cross-encoder; choose a "
            "checkpoint that was trained for ranking"
        )


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
