"""The folder of a classifier: arrays, JSON and perhaps an encoder of its own; and its export.

::

    <folder>/
        classifier.json      parameters, classes, decisions, and how often test sets were looked at
        arrays.safetensors   head, calibration, scores of left-out texts, hashes of training texts
        encoder/             the trained encoder; without, `classifier.json` says how to make it
        manifest.json        kind, format version, size and SHA-256 of each file
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from embedtopics._utils.folders import (
    is_kind,
    open_saved,
    parse_json,
    replacing_folder,
    write_manifest,
)
from embedtopics._utils.machine import package_versions
from embedtopics.classification._heads import Calibration, LinearHead
from embedtopics.decisions import Decision
from embedtopics.encoders._cache import CachedEncoder
from embedtopics.encoders._registry import encoder_from_settings, resolve_encoder
from embedtopics.encoders.sentence._encoder import SentenceEncoder
from embedtopics.errors import CorruptFileError, InputError

if TYPE_CHECKING:
    from embedtopics.classification._classifier import TextClassifier

KIND, FORMAT = "text classifier", 1
EXPORT = "exported classifier"
ABOUT, ARRAYS, ENCODER = "classifier.json", "arrays.safetensors", "encoder"
KEPT = ("left_out_scores_", "left_out_codes_", "left_out_rows_", "groups_", "training_keys_")
"""Fitted arrays that are saved under their own names."""

_PARAMETERS = ("method", "head", "class_weight", "calibration", "training", "random_state")


@contextmanager
def written(
    folder: str | os.PathLike[str], kind: str, about: dict[str, Any], arrays: Mapping[str, Any]
) -> Iterator[Path]:
    """Write JSON and arrays, and yield the folder before it takes its place."""
    from safetensors.numpy import save_file

    with replacing_folder(Path(folder).expanduser(), kind) as fresh:
        (fresh / ABOUT).write_text(json.dumps(about, indent=1, allow_nan=False), "utf-8")
        plain = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
        save_file(plain, fresh / ARRAYS)
        yield fresh
        write_manifest(fresh, kind, FORMAT)


def read_saved(path: Path, kind: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return JSON and arrays that `written` wrote."""
    from safetensors.numpy import load

    with open_saved(path, kind, FORMAT) as saved, damage(path):
        about: dict[str, Any] = {**parse_json(saved.streams[ABOUT].read())}
        return about, load(saved.streams[ARRAYS].read())


@contextmanager
def damage(path: Path) -> Iterator[None]:
    """Turn what reading a damaged folder raises into one error."""
    from safetensors import SafetensorError

    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, SafetensorError) as error:
        raise CorruptFileError(f"{path} is damaged ({error}); save again") from error


def save(model: TextClassifier, folder: str | os.PathLike[str]) -> None:
    """Write a fitted classifier; see `TextClassifier.save`."""
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(model, "head_")
    arrays = {
        "weights": model.head_.weights, "bias": model.head_.bias,
        "temperature": np.array([model.calibration_.temperature]),
        **{f"knots/{k:05d}": knots for k, knots in enumerate(model.calibration_.knots)},
        **{name: getattr(model, name) for name in KEPT},
    }  # fmt: skip
    with written(folder, KIND, _about(model, Path(folder).expanduser()), arrays) as fresh:
        if model.method != "frozen":
            shutil.copytree(model.encoder_.name, fresh / ENCODER)


def _about(model: TextClassifier, path: Path) -> dict[str, Any]:
    encoder = model.encoder_.uncached
    has_settings = not encoder.learns and encoder.settings is not None
    parameters = {name: getattr(model, name) for name in _PARAMETERS}
    if not isinstance(parameters["random_state"], (int, type(None))):
        parameters["random_state"] = None
    log = dict(model.test_log_)
    if is_kind(path, KIND):  # what was fitted again into one folder looks at one test set
        for name, n_looks in read_saved(path, KIND)[0].get("test_log", {}).items():
            log[name] = max(log.get(name, 0), n_looks)
    return {
        "parameters": parameters,
        "classes": model.classes_.tolist(),
        "order": None if model.classes is None else np.array(list(model.classes)).tolist(),
        "encoder": encoder.settings if has_settings and model.method == "frozen" else None,
        "encoder_name": encoder.name,
        "decisions": [asdict(decision) for decision in model.decisions_],
        "test_log": log,
        "versions": package_versions(),
    }


def load_classifier(folder: str | os.PathLike[str], *, encoder: Any = None) -> TextClassifier:
    """Read a classifier that `TextClassifier.save` wrote.

    Parameters
    ----------
    folder : path
    encoder : str, path or Encoder, optional
        Where the folder does not hold what is needed to make it again: an object of your own, or
        one that learned from the texts.

    Returns
    -------
    TextClassifier

    Raises
    ------
    CorruptFileError
        Where the folder is damaged, of a newer version, or no classifier.
    """
    from embedtopics.classification._classifier import TextClassifier

    path = Path(folder).expanduser()
    about, arrays = read_saved(path, KIND)
    with damage(path):
        model = TextClassifier(classes=about["order"], **about["parameters"])
        model.classes_ = np.array(about["classes"])
        model.head_ = LinearHead(model.head, arrays["weights"], arrays["bias"])
        knots = tuple(arrays[name] for name in sorted(arrays) if name.startswith("knots/"))
        model.calibration_ = Calibration(model.head, float(arrays["temperature"][0]), knots)
        for name in KEPT:
            setattr(model, name, arrays[name])
        model.decisions_ = tuple(Decision(**one) for one in about["decisions"])
        model.test_log_ = {str(name): int(n) for name, n in about["test_log"].items()}
        n_outputs = len(model.classes_) - (model.head == "ordinal")
        if model.head_.weights.ndim != 2 or model.head_.bias.shape != (n_outputs,):
            raise ValueError("its head does not fit its classes")
    model.encoder_ = _encoder(path, about, encoder, model.method)
    model.encoder = model.encoder_ if encoder is not None else about["encoder_name"]
    model.training_report_ = None
    if (path / ENCODER / "training-report").is_dir():
        from embedtopics.training._report import read_report

        model.training_report_ = read_report(path / ENCODER)
    return model


def _encoder(path: Path, about: dict[str, Any], given: Any, method: str) -> Any:
    if given is not None:
        return resolve_encoder(given, cached=True)
    if method != "frozen":
        return SentenceEncoder(path / ENCODER, precision="float32", long_texts="chunk")
    if about["encoder"] is None:
        wanted = "given, because the folder does not hold that of the fit"
        raise InputError("encoder", wanted, found=about["encoder_name"])
    recorded = encoder_from_settings(about["encoder"])
    return recorded if recorded.transformer is None else CachedEncoder(recorded)


def export(model: TextClassifier, folder: str | os.PathLike[str]) -> None:
    """Write a checkpoint for transformers; see `TextClassifier.export`."""
    import torch
    from sklearn.utils.validation import check_is_fitted
    from transformers import AutoConfig, AutoModelForSequenceClassification, AutoTokenizer

    from embedtopics.classification._training import DENSE_OF_FAMILY
    from embedtopics.encoders.sentence._checkpoint import Dense
    from embedtopics.encoders.sentence._loading import silent_transformers

    check_is_fitted(model, "head_")
    if model.method != "fine_tune":
        found = f'method="{model.method}", whose head reads vectors that no such model makes'
        raise InputError("method", '"fine_tune" for a checkpoint of transformers', found=found)
    recipe, head = model.encoder_.recipe, model.head_
    family, source = recipe.checkpoint.family, recipe.checkpoint.folder
    if family not in DENSE_OF_FAMILY:
        known = ", ".join(DENSE_OF_FAMILY)
        raise InputError("encoder", f"of a family among {known} to be exported", found=family)
    names = [str(one) for one in model.classes_]
    if head.kind == "ordinal":
        names = [f"above {name}" for name in names[:-1]]
    kind = "single_label" if head.kind == "softmax" else "multi_label"
    local: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
    with silent_transformers(), torch.random.fork_rng([]):
        config = AutoConfig.from_pretrained(
            source, id2label=dict(enumerate(names)), problem_type=f"{kind}_classification",
            label2id={name: place for place, name in enumerate(names)}, **local,
        )  # fmt: skip
        made: Any = AutoModelForSequenceClassification.from_pretrained(
            source, config=config, use_safetensors=True, **local
        )
        dense_name, head_name, _ = DENSE_OF_FAMILY[family]
        dense = next(step for step in recipe.steps if isinstance(step, Dense))
        for name, weight, bias in (
            (dense_name, dense.weight, dense.bias), (head_name, head.weights, head.bias),
        ):  # fmt: skip
            part = made.get_submodule(name)
            with torch.no_grad():
                part.weight.copy_(torch.tensor(weight))
                part.bias.copy_(torch.tensor(bias))
        with replacing_folder(Path(folder).expanduser(), EXPORT) as fresh:
            made.save_pretrained(fresh)
            AutoTokenizer.from_pretrained(source, **local).save_pretrained(fresh)
            write_manifest(fresh, EXPORT, FORMAT)
