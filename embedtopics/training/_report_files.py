"""The report of a training run as files, in the folder of the encoder that came out of it.

::

    <encoder>/
        README.md                        the model card, for people
        training-report/
            manifest.json                kind, format version, size and SHA-256 of the file
            training.json                the report, arrays included

JSON has no infinite numbers, no NaN, no tuples and no arrays. They are objects with one key that
begins with "$", and so are records: {"$number": "nan"}, {"$tuple": [...]}, {"$array": [...],
"dtype": "float64"}, {"$record": "Curves", "fields": {...}}. Numbers come back with all their bits.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from embedtopics._utils.folders import (
    add_unchecked,
    read_manifest,
    replacing_file,
    replacing_folder,
)
from embedtopics._utils.folders import write_manifest as write_checksums
from embedtopics.corpus.results import Decision
from embedtopics.errors import CorruptFileError, InputError
from embedtopics.training._model_card import model_card
from embedtopics.training.results import (
    Change,
    Curves,
    Diagnosis,
    Evidence,
    LabelCurve,
    StudentReport,
    TrainingReport,
)

KIND = "embedtopics training report"
FORMAT = 1
FOLDER, FILE, CARD = "training-report", "training.json", "README.md"

_REPORTS = (TrainingReport, StudentReport)
_PARTS = (Change, Curves, Decision, Diagnosis, Evidence, LabelCurve)
_RECORDS: dict[str, Any] = {each.__name__: each for each in (*_REPORTS, *_PARTS)}
_NUMBERS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
_DEEPEST = 60


def write_report(report: TrainingReport | StudentReport, folder: str | Path) -> Path:
    """Write a report, and its model card as ``README.md``, into the folder of an encoder.

    A report that is there is replaced as a whole; where anything fails, it stays.
    """
    folder = Path(folder).expanduser()
    if not folder.is_dir():
        raise InputError("folder", "that of a saved encoder", str(folder))
    content = json.dumps(_plain(report, "report"), allow_nan=False, indent=1)
    with replacing_folder(folder / FOLDER, KIND) as fresh:
        (fresh / FILE).write_text(content, "utf-8")
        write_checksums(fresh, KIND, FORMAT)
    with replacing_file(folder / CARD) as page:
        page.write_text(model_card(report), "utf-8")
    add_unchecked(folder, [f"{FOLDER}/{FILE}", CARD])
    return folder / FOLDER


def read_report(folder: str | Path) -> TrainingReport | StudentReport:
    """Read the report of the training run that an encoder came from.

    Parameters
    ----------
    folder : str or Path
        Of the encoder.

    Returns
    -------
    TrainingReport or StudentReport
        With all values as they were written.

    Raises
    ------
    InputError
        Where there is no report.
    CorruptFileError
        Where it is damaged, or of a newer version.
    """
    place = Path(folder).expanduser() / FOLDER
    if not place.is_dir():
        raise InputError("folder", "one with the report of a training run", str(folder))
    read_manifest(place, KIND, FORMAT)
    try:
        report = _restored(json.loads((place / FILE).read_text("utf-8")))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise CorruptFileError(
            f"{place / FILE} is damaged ({error}); restore it from a copy"
        ) from error
    if not isinstance(report, _REPORTS):
        raise CorruptFileError(f"{place / FILE} holds no report; restore it from a copy")
    return report


def _plain(value: Any, where: str, depth: int = 0) -> Any:
    """Return what JSON can hold, and `_restored` turns back."""
    if depth > _DEEPEST:
        raise InputError(where[:80], f"nested at most {_DEEPEST} deep")
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"$number": str(value)}
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        flat = [_plain(one, where, depth + 1) for one in value.ravel().tolist()]
        return {"$array": flat, "dtype": value.dtype.name, "shape": list(value.shape)}
    if isinstance(value, (list, tuple)):
        items = [_plain(one, f"{where}[{i}]", depth + 1) for i, one in enumerate(value)]
        return items if isinstance(value, list) else {"$tuple": items}
    if isinstance(value, Mapping):
        items = [
            [_plain(key, where, depth + 1), _plain(one, f"{where}[{key!r}]", depth + 1)]
            for key, one in value.items()
        ]
        is_simple = all(isinstance(key, str) and not key.startswith("$") for key in value)
        return dict(items) if is_simple else {"$items": items}
    if type(value).__name__ in _RECORDS and dataclasses.is_dataclass(value):
        fields = {
            field.name: _plain(getattr(value, field.name), f"{where}.{field.name}", depth + 1)
            for field in dataclasses.fields(value)
        }
        return {"$record": type(value).__name__, "fields": fields}
    raise InputError(where, "a number, string, list or mapping", found=type(value).__name__)


def _restored(value: Any) -> Any:
    if isinstance(value, list):
        return [_restored(one) for one in value]
    if not isinstance(value, dict):
        return value
    tag = next((key for key in value if key.startswith("$")), None)
    if tag is None:
        return {key: _restored(one) for key, one in value.items()}
    if tag == "$number":
        return _NUMBERS[value[tag]]
    if tag == "$tuple":
        return tuple(_restored(one) for one in value[tag])
    if tag == "$items":
        return {_restored(key): _restored(one) for key, one in value[tag]}
    if tag == "$array":
        dtype = np.dtype(value["dtype"])
        if dtype.kind not in "biuf":
            raise ValueError(f"it holds an array of {dtype}, not of numbers")
        return np.array(_restored(value[tag]), dtype=dtype).reshape(value["shape"])
    if tag == "$record":
        made = {name: _restored(one) for name, one in value["fields"].items()}
        return _RECORDS[value[tag]](**made)
    raise ValueError(f"it holds {tag!r}, which means nothing here")
