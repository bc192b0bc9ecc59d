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
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from embedtopics._utils.folders import (
    is_kind,
    open_saved,
    replacing_folder,
    stays_inside,
    write_manifest,
)
from embedtopics._utils.machine import package_versions
from embedtopics._utils.records import AnyRecord, read_record
from embedtopics.classification._heads import Calibration, LinearHead
from embedtopics.classification._pairs import PairEncoder, load_trained, settings_mapping
from embedtopics.classification._records import ClassifierRecord
from embedtopics.encoders._cache import CachedEncoder
from embedtopics.encoders._registry import encoder_from_settings, recorded_encoder, resolve_encoder
from embedtopics.encoders.words._counts import WordEncoder
from embedtopics.encoders.words._storage import read_words, write_words
from embedtopics.errors import CorruptFileError, InputError

if TYPE_CHECKING:
    from embedtopics.classification._classifier import TextClassifier

KIND = "text classifier"
TOKEN_KIND = "word classifier"
FORMAT = 1

_CLASS_OF_KIND = {KIND: "TextClassifier", TOKEN_KIND: "TokenClassifier"}

ABOUT, ARRAYS, ENCODER = "classifier.json", "arrays.safetensors", "encoder"
ATTRIBUTES = ("left_out_scores_", "left_out_codes_", "training_keys_")
"""Fitted arrays that are saved under their own names."""

_PARAMETERS = ("method", "head", "pairs", "class_weight", "calibration", "random_state")


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


def read_folder(
    path: Path, kind: str, record: type[AnyRecord]
) -> tuple[AnyRecord, dict[str, npt.NDArray[Any]]]:
    """Return the record and the arrays of `write_folder`."""
    from safetensors.numpy import load

    with open_saved(path, kind, FORMAT) as saved, refuse_damage(path):
        about = read_record(record, saved.streams[ABOUT].read(), path / ABOUT)
        return about, load(saved.streams[ARRAYS].read())


def checked_head(kind: str, n_classes: int, arrays: Mapping[str, npt.NDArray[Any]]) -> LinearHead:
    """Return the head of saved arrays; ValueError unless it fits the classes."""
    weights = arrays["weights"]
    bias = arrays["bias"]
    n_outputs = n_classes - (kind == "ordinal")
    if weights.ndim != 2 or len(weights) != n_outputs or bias.shape != (n_outputs,):
        raise ValueError("its head does not fit its classes")
    for array in (weights, bias):
        if array.dtype.kind != "f" or not np.isfinite(array).all():
            raise ValueError("its head holds values that are no finite numbers")
    return LinearHead(kind, weights, bias)


def part_of(path: Path, name: str) -> Path:
    """Return a subfolder of a saved folder; it must not be a link out of it."""
    if not stays_inside(path / name, path):
        message = f"{path / name} is a link out of the folder; replace it by a copy"
        raise CorruptFileError(message)
    return path / name


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
    except CorruptFileError:
        raise
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
    encoder = model.encoder_.uncached
    name = model.encoder_.name
    is_frozen = model.method_ == "frozen"
    has_settings = not encoder.learns and encoder.settings is not None

    if not is_frozen:  # the encoder that training started from
        start = model.encoder
        name = str(start) if isinstance(start, (str, os.PathLike)) else resolve_encoder(start).name

    parameters = {name: getattr(model, name) for name in _PARAMETERS}
    if isinstance(model.class_weight, Mapping):  # keys of JSON would be texts
        keys = np.array(list(model.class_weight)).tolist()
        values = [float(weight) for weight in model.class_weight.values()]
        parameters["class_weight"] = list(zip(keys, values, strict=True))
    parameters["training"] = settings_mapping(model.settings) or None
    if not isinstance(parameters["random_state"], (int, type(None))):
        parameters["random_state"] = None

    log = dict(model.test_log_)
    if is_kind(path, KIND):  # a new fit in the same folder sees the same test sets
        for name, n_looks in read_folder(path, KIND, ClassifierRecord)[0].test_log.items():
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
    about, arrays = read_folder(path, KIND, ClassifierRecord)
    parameters: dict[str, Any] = {**about.parameters.model_dump(), "classes": about.order}
    parameters["settings"] = recorded_settings(parameters.pop("training"))
    if isinstance(about.parameters.class_weight, list):
        parameters["class_weight"] = dict(about.parameters.class_weight)
    kind = about.parameters.head
    classes = np.array(about.classes)

    with refuse_damage(path):
        attributes: dict[str, Any] = {
            "classes_": classes,
            "method_": about.method or about.parameters.method,
            "head_": checked_head(kind, len(classes), arrays),
            "calibration_": Calibration(kind, _checked_temperature(arrays["temperature"])),
            "decisions_": tuple(record.decision() for record in about.decisions),
            "test_log_": dict(about.test_log),
            **_checked_scores(arrays, kind, len(classes)),
        }

    parameters["encoder"] = recorded_encoder(about.encoder_name)
    if encoder is not None:
        parameters["encoder"] = attributes["encoder_"] = resolve_encoder(encoder, cached=True)
    elif attributes["method_"] != "frozen":
        attributes["encoder_"] = load_trained(part_of(path, ENCODER))
    elif (words := _read_words(path)) is not None:
        attributes["encoder_"] = words
    elif about.encoder is None:
        expected = "given, because the folder does not hold the encoder of the fit"
        raise InputError("encoder", expected, found=about.encoder_name)
    else:
        saved = encoder_from_settings(about.encoder)
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


def recorded_settings(recorded: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return recorded settings of training by their present names."""
    if recorded is None or "max_length" not in recorded:
        return recorded
    settings = dict(recorded)
    settings["max_seq_length"] = settings.pop("max_length")
    return settings


def refuse_other_kind(path: Path, name: str) -> None:
    """Refuse the folder of the other class of classifiers, and name the call that reads it."""
    for kind, class_name in _CLASS_OF_KIND.items():
        if class_name != name and is_kind(path, kind):
            raise InputError(
                "folder",
                f"the folder of a {name}",
                found=f"that of a {class_name}",
                remedy=f"call et.{class_name}.load({str(path)!r})",
            )


def _checked_temperature(array: npt.NDArray[Any]) -> float:
    """Return the temperature of the calibration, a positive number."""
    if array.shape != (1,) or array.dtype.kind != "f" or not 0 < array[0] < np.inf:
        raise ValueError("its temperature is no positive number")
    return float(array[0])


def _checked_scores(
    arrays: Mapping[str, npt.NDArray[Any]], kind: str, n_classes: int
) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of `ATTRIBUTES`; ValueError unless they fit together."""
    checked = {name: arrays[name] for name in ATTRIBUTES}
    scores = checked["left_out_scores_"]
    codes = checked["left_out_codes_"]
    keys = checked["training_keys_"]

    n_outputs = n_classes - (kind == "ordinal")
    if scores.dtype.kind != "f" or scores.ndim != 2 or scores.shape[1] not in (0, n_outputs):
        raise ValueError("its scores of left-out texts do not fit its classes")

    shape = (len(scores), n_classes) if kind == "multilabel" else (len(scores),)
    # Without left-out texts, the codes are empty, of any width.
    if codes.dtype.kind != "i" or (len(scores) and codes.shape != shape):
        raise ValueError("its codes of left-out texts do not fit their scores")
    if codes.size and not 0 <= codes.min() <= codes.max() < max(n_classes, 2):
        raise ValueError("its codes of left-out texts are no classes")
    if keys.ndim != 2 or keys.shape[1] != 2 or keys.dtype != np.uint64:
        raise ValueError("its training texts are no hashes")
    return checked
