"""A cross-encoder reads query and passage together, and puts the best hits in a better order."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from embedtopics.encoders.sentence._checkpoint import read_json, required
from embedtopics.errors import InputError, ModelLoadError

BATCH_SIZE = 32

_WEIGHTS_OF_OPENVINO = "openvino_"
"""Begins the names of files of plain numbers, for another runtime, that end in .bin, too."""


@runtime_checkable
class PairScorer(Protocol):
    """Says how well passages answer queries, as `sentence_transformers.CrossEncoder` does."""

    def predict(self, pairs: list[tuple[str, str]], /) -> Any:
        """Return one number a pair of query and passage; higher is better."""
        ...


def load_cross_encoder(
    name: str | os.PathLike[str], *, revision: str | None = None, device: str = "cpu"
) -> PairScorer:
    """Load a cross-encoder from a folder or the hub's cache, else from the hub after saying so.

    Code that comes with a checkpoint is never run, and pickled weights are never read.

    Parameters
    ----------
    name : str or path
        Folder, or a name such as "cross-encoder/ms-marco-MiniLM-L6-v2".
    revision : str, optional
        Commit, branch or tag on the hub.
    device : str
        As torch names it.

    Returns
    -------
    PairScorer

    Raises
    ------
    InputError
        If `name` is no name, or torch does not know the device.
    ModelLoadError
        If the checkpoint is nowhere, has no safetensors weights, cannot be read, or does not give
        one number a pair.
    """
    from embedtopics._utils.display import one_line
    from embedtopics.encoders.sentence._loading import check_device, silent_transformers

    if not isinstance(name, (str, os.PathLike)) or not os.fspath(name):
        raise InputError("name", "the name or folder of a cross-encoder", name)
    check_device(device)
    folder = _folder_of(name, revision)
    from sentence_transformers import CrossEncoder

    try:
        with silent_transformers():
            _check_modules(folder)
            _check_weights(folder)
            model: Any = CrossEncoder(
                str(folder),
                device=device,
                local_files_only=True,
                trust_remote_code=False,
                model_kwargs={"use_safetensors": True},
            )
    except ModelLoadError:
        raise
    except Exception as error:  # transformers raises many kinds
        raise ModelLoadError(
            f"expected a cross-encoder that sentence-transformers can load, got {folder}: "
            f"{one_line(error)}; choose a checkpoint for sequence classification"
        ) from None
    if model.num_labels != 1:
        raise ModelLoadError(
            f"expected a cross-encoder that gives one number a pair, got one that gives "
            f"{model.num_labels} ({folder}); choose one that was trained for ranking"
        )
    scorer: PairScorer = model
    return scorer


def _folder_of(name: str | os.PathLike[str], revision: str | None) -> Path:
    from embedtopics.encoders.sentence._loading import Miss, cached_snapshot, download_snapshot

    folder = Path(name).expanduser()
    if not folder.is_dir():
        if folder.exists() or os.fspath(name).startswith("."):
            raise ModelLoadError(
                f"expected the folder of a cross-encoder or a hub name, got {name!r}; check the "
                "path"
            )
        found = cached_snapshot(os.fspath(name), revision)
        if isinstance(found, Miss):
            tried, found = found, download_snapshot(os.fspath(name), revision, with_code=False)
            if isinstance(found, Miss):
                raise ModelLoadError(
                    f"expected a cross-encoder named {os.fspath(name)!r}, found none; tried in "
                    f"order: folder {name}; {tried.reason}; {found.reason}; give the folder of a "
                    "checkpoint, or connect to the network once"
                )
        folder = found
    return folder.absolute()


def _check_modules(folder: Path) -> None:
    """Refuse parts that some versions of sentence-transformers import from a folder unasked."""
    path = folder / "modules.json"
    for module in read_json(path, list) if path.is_file() else []:
        if not str(module["type"]).startswith("sentence_transformers."):
            raise ModelLoadError(
                f"expected a cross-encoder of parts of sentence-transformers, got {folder} with a "
                f"part {module['type']!r}, and code that comes with a checkpoint is never run; "
                "choose another"
            )


def _check_weights(folder: Path) -> None:
    """Make sure that no weights are missing or pickled: a random head would go unnoticed."""
    pickled = [
        path
        for path in folder.rglob("*.bin")
        if not any(path.parent.glob("*.safetensors"))
        and not path.name.startswith(_WEIGHTS_OF_OPENVINO)
    ]
    if pickled or not any(folder.glob("*.safetensors")):
        raise ModelLoadError(
            f"expected safetensors weights in {pickled[0].parent if pickled else folder}, got "
            "none, and pickled ones are never loaded; choose a checkpoint with a model.safetensors"
        )
    names = read_json(required(folder / "config.json")).get("architectures") or [""]
    own = folder / "config_sentence_transformers.json"
    of_modules = read_json(own).get("model_type") if own.is_file() else None
    if str(names[0]).endswith("ForSequenceClassification"):
        from transformers import AutoModelForSequenceClassification

        _, report = AutoModelForSequenceClassification.from_pretrained(
            folder, use_safetensors=True, local_files_only=True, trust_remote_code=False,
            output_loading_info=True,
        )  # fmt: skip
        missing = sorted(report["missing_keys"])
        if missing:
            raise ModelLoadError(
                f"expected all weights of a {names[0]} in {folder}, got none for {len(missing)} "
                f"tensors, such as {missing[0]}; fetch the checkpoint again"
            )
    elif not str(names[0]).endswith("ForCausalLM") and of_modules != "CrossEncoder":
        raise ModelLoadError(
            f"expected a cross-encoder, got a checkpoint without a head that gives scores "
            f"({names[0] or 'no architecture'}, {folder}); choose one that was trained for ranking"
        )


def resolve_reranker(reranker: Any) -> Callable[[list[tuple[str, str]]], Any] | None:
    """Return the function of pairs that a search reorders its candidates by."""
    if reranker is None:
        return None
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
    """Return the order of the passages, the best first, and their scores in it, (n,)."""
    # Passages of one length are read together; each different one once.
    different = sorted(set(passages), key=lambda passage: (len(passage), passage))
    score_of: dict[str, float] = {}
    for start in range(0, len(different), BATCH_SIZE):
        batch = different[start : start + BATCH_SIZE]
        given = _numbers(predict([(query, passage) for passage in batch]), len(batch))
        score_of |= dict(zip(batch, given, strict=True))
    scores = np.array([score_of[passage] for passage in passages], dtype=np.float64)
    order = np.argsort(-scores, kind="stable").astype(np.int64)
    return order, scores[order]


def _numbers(given: Any, n_pairs: int) -> list[float]:
    """Return what a reranker gave, one finite number for each pair."""
    try:
        scores = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        scores = np.empty(0)
    if scores.shape == (n_pairs, 1):
        scores = scores[:, 0]
    if scores.shape != (n_pairs,) or not np.isfinite(scores).all():
        raise InputError(
            "reranker", f"one that gives {n_pairs} finite numbers for {n_pairs} pairs", given
        )
    return [float(score) for score in scores]
