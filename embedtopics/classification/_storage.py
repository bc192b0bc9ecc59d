"""Save classifiers as arrays and JSON, and load them.

::

    <folder>/
        classifier.json      parameters, classes, decisions, number of evaluations of each test set
        arrays.safetensors   head, calibration, scores of left-out texts, hashes of training texts
        encoder.json, encoder.safetensors   the encoder, if it learned words from the texts
        encoder/             the trained encoder; otherwise `classifier.json` has its settings
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
from sklearn.utils.validation import check_is_fitted

from embedtopics._utils.folders import (
    is_kind,
    open_saved,
    parse_json,
    replacing_folder,
    write_manifest,
)
from embedtopics._utils.machine import package_versions
from embedtopics.classification._heads import Calibration, LinearHead
from embedtopics.classification._pairs import PairEncoder, load_trained
from embedtopics.decisions import Decision
from embedtopics.encoders._cache import CachedEncoder
from embedtopics.encoders._registry import encoder_from_settings, recorded_encoder, resolve_encoder
from embedtopics.encoders.words._counts import WordEncoder
from embedtopics.encoders.words._storage import read_words, write_words
from embedtopics.errors import CorruptFileError, InputError

if TYPE_CHECKING:
    from embedtopics.classification._classifier import TextClassifier

KIND, FORMAT = "text classifier", 1
ABOUT, ARRAYS, ENCODER = "classifier.json", "arrays.safetensors", "encoder"
ATTRIBUTES = ("left_out_scores_", "left_out_codes_", "training_keys_")
"""Fitted arrays that are saved under their own names."""

_PARAMETERS = ("method", "head", "pairs", "class_weight", "calibration", "training", "random_state")


@contextmanager
def write_folder(
    folder: str | os.PathLike[str], kind: str, about: dict[str, Any], arrays: Mapping[str, Any]
) -> Iterator[Path]:
    """Write JSON and arrays; yield the new folder before it replaces the old one."""
    from safetensors.numpy import save_file

    with replacing_folder(Path(folder).expanduser(), kind) as fresh:
        (fresh / ABOUT).write_text(json.dumps(about, indent=1, allow_nan=False), "utf-8")
        plain = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
        save_file(plain, fresh / ARRAYS)
        yield fresh
        write_manifest(fresh, kind, FORMAT)


def read_folder(path: Path, kind: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the JSON and arrays of `write_folder`."""
    from safetensors.numpy import load

    with open_saved(path, kind, FORMAT) as saved, refuse_damage(path):
        about: dict[str, Any] = {**parse_json(saved.streams[ABOUT].read())}
        return about, load(saved.streams[ARRAYS].read())


def _read_words(path: Path) -> WordEncoder | None:
    """Return the encoder that learned its words from the training texts, if there is one."""
    with open_saved(path, KIND, FORMAT) as saved, refuse_damage(path):
        return read_words(saved, path)


@contextmanager
def refuse_damage(path: Path) -> Iterator[None]:
    """Raise CorruptFileError for any error in reading a damaged folder."""
    from safetensors import SafetensorError

    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, SafetensorError) as error:
        raise CorruptFileError(f"{path} is damaged ({error}); save again") from error


def save(model: TextClassifier, folder: str | os.PathLike[str]) -> None:
    """Write a fitted classifier; see `TextClassifier.save`."""
    check_is_fitted(model, "head_")
    arrays = {
        "weights": model.head_.weights,
        "bias": model.head_.bias,
        "temperature": np.array([model.calibration_.temperature]),
        **{name: getattr(model, name) for name in ATTRIBUTES},
    }
    with write_folder(folder, KIND, _about(model, Path(folder).expanduser()), arrays) as fresh:
        if model.method_ != "frozen":
            shutil.copytree(model.encoder_.name, fresh / ENCODER)
        else:
            write_words(model.encoder_.uncached, fresh)


def _about(model: TextClassifier, path: Path) -> dict[str, Any]:
    encoder, name = model.encoder_.uncached, model.encoder_.name
    is_frozen = model.method_ == "frozen"
    has_settings = not encoder.learns and encoder.settings is not None
    if not is_frozen:  # the encoder that training started from
        start = model.encoder
        name = str(start) if isinstance(start, (str, os.PathLike)) else resolve_encoder(start).name
    parameters = {name: getattr(model, name) for name in _PARAMETERS}
    if not isinstance(parameters["random_state"], (int, type(None))):
        parameters["random_state"] = None
    log = dict(model.test_log_)
    if is_kind(path, KIND):  # a new fit in the same folder sees the same test sets
        for name, n_looks in read_folder(path, KIND)[0].get("test_log", {}).items():
            log[name] = max(log.get(name, 0), n_looks)
    return {
        "parameters": parameters,
        "classes": model.classes_.tolist(),
        "order": None if model.classes is None else np.array(list(model.classes)).tolist(),
        "method": model.method_,
        "encoder": encoder.settings if has_settings and is_frozen else None,
        "encoder_name": name,
        "decisions": [asdict(decision) for decision in model.decisions_],
        "test_log": log,
        "versions": package_versions(),
    }


def read_classifier(path: Path, encoder: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the parameters and the fitted attributes of a saved classifier."""
    about, arrays = read_folder(path, KIND)
    with refuse_damage(path):
        parameters = {"classes": about["order"], **about["parameters"]}
        kind, classes = parameters["head"], np.array(about["classes"])
        head = LinearHead(kind, arrays["weights"], arrays["bias"])
        if head.weights.ndim != 2 or head.bias.shape != (len(classes) - (kind == "ordinal"),):
            raise ValueError("its head does not fit its classes")
        attributes = {
            "classes_": classes,
            "method_": about.get("method", parameters["method"]),
            "head_": head,
            "calibration_": Calibration(kind, float(arrays["temperature"][0])),
            "decisions_": tuple(Decision(**decision) for decision in about["decisions"]),
            "test_log_": {str(name): int(n) for name, n in about["test_log"].items()},
            **{name: arrays[name] for name in ATTRIBUTES},
        }
    parameters["encoder"] = recorded_encoder(about["encoder_name"])
    if encoder is not None:
        parameters["encoder"] = attributes["encoder_"] = resolve_encoder(encoder, cached=True)
    elif attributes["method_"] != "frozen":
        attributes["encoder_"] = load_trained(path / ENCODER)
    elif (words := _read_words(path)) is not None:
        attributes["encoder_"] = words
    elif about["encoder"] is None:
        expected = "given, because the folder does not hold the encoder of the fit"
        raise InputError("encoder", expected, found=about["encoder_name"])
    else:
        saved = encoder_from_settings(about["encoder"])
        attributes["encoder_"] = saved if saved.transformer is None else CachedEncoder(saved)
        parameters["encoder"] = attributes["encoder_"]
    if parameters.get("pairs"):
        encoder = attributes["encoder_"]
        attributes["encoder_"] = PairEncoder(encoder, attributes["method_"] != "frozen")
    attributes["training_report_"] = None
    if (path / ENCODER / "training-report").is_dir():
        from embedtopics.training._report import read_report

        attributes["training_report_"] = read_report(path / ENCODER)
    return parameters, attributes
