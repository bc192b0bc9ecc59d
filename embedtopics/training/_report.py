"""Read and write the report of a training run, in the folder of the trained encoder.

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
import re
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from embedtopics._utils.display import excerpt
from embedtopics._utils.folders import (
    MANIFEST,
    manifest_of,
    open_saved,
    parse_json,
    replacing_file,
    replacing_folder,
    write_manifest,
)
from embedtopics.encoders.sentence._loading import DEFAULT_MODEL, DEFAULT_REPOSITORY
from embedtopics.errors import CorruptFileError, InputError
from embedtopics.training._records import PARTS, make_part
from embedtopics.training._rows import TABLES, Change, rows_of
from embedtopics.training.results import Diagnosis, TrainingReport

if TYPE_CHECKING:
    import pandas as pd

KIND = "embedtopics training report"
FORMAT = 1
FOLDER, FILE, CARD = "training-report", "training.json", "README.md"

_NUMBERS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


def write_report(report: TrainingReport, folder: str | Path) -> Path:
    """Write a report and its model card into the folder of an encoder."""
    folder = Path(folder).expanduser()
    if not folder.is_dir():
        raise InputError("folder", "that of a saved encoder", str(folder))
    content = json.dumps(_plain(report, "report"), allow_nan=False, indent=1)
    with replacing_folder(folder / FOLDER, KIND) as fresh:
        (fresh / FILE).write_text(content, "utf-8")
        write_manifest(fresh, KIND, FORMAT)
    with replacing_file(folder / CARD) as page:
        page.write_text(model_card(report), "utf-8")
    add_unchecked(folder, [f"{FOLDER}/{FILE}", CARD])
    return folder / FOLDER


def add_unchecked(folder: Path, names: Iterable[str]) -> None:
    """Record files that are written later and that people may edit."""
    try:
        manifest = manifest_of(folder)
    except (OSError, ValueError):
        return
    unchecked = sorted({*manifest.unchecked, *names})
    with replacing_file(folder / MANIFEST) as fresh:
        content = manifest.model_copy(update={"unchecked": unchecked}).model_dump_json(indent=1)
        fresh.write_text(content, "utf-8")


def read_report(folder: str | Path) -> TrainingReport:
    """Read the report of the training run of an encoder; see `TrainingReport.load`."""
    place = Path(folder).expanduser() / FOLDER
    if not place.is_dir():
        raise InputError("folder", "one with the report of a training run", str(folder))
    try:
        with open_saved(place, KIND, FORMAT) as saved:
            report = _restored(parse_json(saved.streams[FILE].read()))
    except CorruptFileError:
        raise
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        message = f"{place / FILE} is damaged ({error}); restore it from a copy"
        raise CorruptFileError(message) from error
    if not isinstance(report, TrainingReport):
        raise CorruptFileError(f"{place / FILE} holds no report; restore it from a copy")
    return report


def _plain(value: Any, where: str) -> Any:
    """Return a value as JSON; see `_restored`."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"$number": str(value)}
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        flat = [_plain(one, where) for one in value.ravel().tolist()]
        return {"$array": flat, "dtype": value.dtype.name, "shape": list(value.shape)}
    if isinstance(value, (list, tuple)):
        items = [_plain(one, f"{where}[{i}]") for i, one in enumerate(value)]
        return items if isinstance(value, list) else {"$tuple": items}
    if isinstance(value, Mapping):
        items = [
            [_plain(key, where), _plain(one, f"{where}[{key!r}]")] for key, one in value.items()
        ]
        is_simple = all(isinstance(key, str) and not key.startswith("$") for key in value)
        return dict(items) if is_simple else {"$items": items}
    if type(value).__name__ in PARTS and dataclasses.is_dataclass(value):
        fields = {}
        for field in dataclasses.fields(value):
            part = getattr(value, field.name)
            if field.name in TABLES:
                part = rows_of(part, TABLES[field.name])
            fields[field.name] = _plain(part, f"{where}.{field.name}")
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
        fields = {name: _restored(one) for name, one in value["fields"].items()}
        return make_part(value[tag], fields)
    raise ValueError(f"it holds {tag!r}, which means nothing here")


MOST_LISTED = 40

# Control characters, and overrides of the text direction.
_HIDDEN = {code: " " for code in (*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029)} | {
    code: "" for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0xFEFF, 0xFFFE, 0xFFFF)
}

# By CommonMark 2.5, a character that is written as a number never is part of the structure.
_STRUCTURE = {ord(mark): f"&#{ord(mark)};" for mark in "&<>*_`[]|~$#!\\{}^"}
_AT_THE_BEGIN = re.compile(r"^(\d*)([-+=.)])")
_ADDRESS = re.compile(r"://|(?i:(?<=\bwww)\.)")
_REPOSITORY = re.compile(r"[\w-][\w.-]*/[\w-][\w.-]*")
_WORD = re.compile(r"[A-Za-z]\w*")
_PATH = re.compile(r"(?<![\w:/\\.])(?:[A-Za-z]:|~|\.\.?)?(?:[/\\][^\s/\\:;,\"'()]+){2,}")
"""Of two names and more, so that "and/or" and a lone slash are none."""


def model_card(report: TrainingReport) -> str:
    """Return the model card; text from data is never markup, and paths are not shown."""
    repository = _repository(report.base)
    base = escaped(repository or _last_name(report.base))
    how = f"with embedtopics ({_sentence(report.objective)})"
    about = (
        f"A sentence encoder: {base}, trained {how}. "
        if report.best_step
        else f"**Unchanged: the weights are those of {base}.** Training {how} gave no better ones. "
    )
    data = [
        f"- {escaped(str(name).replace('_', ' '), 80)}: {_value(value)}"
        for name, value in report.data.items()
        if name != "scored_on"
    ]
    if report.decisions:
        data += ["", "Decisions and findings:", ""]
        data += [f"- {_sentence(decision.message, 1000)}" for decision in report.decisions]
    template = resources.files("embedtopics.training").joinpath("model_card.md")
    return template.read_text("utf-8").format(
        base_model="" if repository is None else f"base_model: {yaml_text(repository)}\n",
        title=escaped(_last_name(report.folder)),
        about=f"{about}The cosine of two vectors is the similarity of their texts.",
        data="\n".join(data),
        training=_training(report),
        curve=_curve(report.diagnosis),
        changes=_changes(report.before_after),
    )


def _repository(base: str) -> str | None:
    """Return the name of a base model on the hub; None for a folder."""
    if base == DEFAULT_MODEL:
        return DEFAULT_REPOSITORY
    is_name = _REPOSITORY.fullmatch(base) is not None and ".." not in base and "--" not in base
    return base if is_name and not Path(base).exists() else None


def _last_name(path: str) -> str:
    """Return the last part of a path, because the rest may be private."""
    parts = [part for part in re.split(r"[/\\]", path) if part not in ("", ".", "..")]
    return parts[-1] if parts else "encoder"


def _sentence(sentence: str, longest: int = 500) -> str:
    """Return a sentence in which paths have become names."""
    return escaped(_PATH.sub(lambda match: _last_name(match[0]), sentence), longest)


def _value(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        shown = ", ".join(_value(one) for one in value[:MOST_LISTED])
        return f"{shown}, …" if len(value) > MOST_LISTED else shown or "none"
    if value is None or isinstance(value, bool):
        return {None: "none", True: "yes", False: "no"}[value]
    if isinstance(value, str) and re.match(r"[A-Za-z]:[\\/]|[/~\\]", value):
        value = _last_name(value)
    return _sentence(value) if isinstance(value, str) else number(value)


def _training(report: TrainingReport) -> str:
    kept = f"the weights after step {report.best_step:,} were kept"
    about = (
        f"Training took {report.n_steps:,} steps and {number(report.seconds, 3)} seconds "
        f"({number(report.examples_per_second, 3)} examples per second) and ended: "
        f"{_sentence(report.stopped)}; {kept}."
    )
    rows = [[_code(name), _value(value)] for name, value in report.settings.items()]
    return "\n".join([about, "", *table(["setting", "value"], rows)])


def _code(name: object) -> str:
    """Return a plain word as code, and other text escaped."""
    return f"`{name}`" if _WORD.fullmatch(str(name)) else escaped(name, 80)


def _curve(diagnosis: Diagnosis) -> str:
    sure = "n/a" if math.isnan(diagnosis.confidence) else f"{diagnosis.confidence:.0%}"
    lines = [f"**{escaped(diagnosis.verdict)}** (confidence {sure}).", ""]
    lines += [f"- {_sentence(says)}" for says in diagnosis.evidence["says"]]
    if diagnosis.advice:
        lines += ["", "What may help:", "", *(f"- {_sentence(each)}" for each in diagnosis.advice)]
    return "\n".join(lines)


def _changes(changes: pd.DataFrame) -> str:
    if changes.empty:
        return "The encoder was not compared with its base model."
    head = "on,figure,before,after,difference (95 % interval),n,test evaluations,verdict".split(",")
    rows, notes = [], list(dict.fromkeys(note for note in changes["note"] if note))
    for change in rows_of(changes, Change):
        mark = f" ({notes.index(change.note) + 1})" if change.note else ""
        names = [escaped(change.task, 60), escaped(change.metric, 80)]
        figures = ["n/a" if math.isnan(x) else f"{x:.3f}" for x in (change.before, change.after)]
        uses = f"{change.n_test_evaluations:,}" if change.n_test_evaluations else "n/a"
        verdict = escaped(change.verdict) + mark
        rows.append([*names, *figures, _interval(change), f"{change.n:,}", uses, verdict])
    below = [f"{i}. {_sentence(note, 1000)}" for i, note in enumerate(notes, 1)]
    return "\n".join([*table(head, rows), *([""] if notes else []), *below])


def _interval(change: Change) -> str:
    if math.isnan(change.difference):
        return "n/a"
    if math.isnan(change.low):
        return f"{change.difference:+.3f}"
    return f"{change.difference:+.3f} ({change.low:+.3f} to {change.high:+.3f})"


def one_line(text: object, longest: int = 300) -> str:
    """Return text on one line without control characters, truncated."""
    clean = str(text).encode("utf-8", "replace").decode("utf-8").translate(_HIDDEN)
    return excerpt(clean, longest)


def escaped(text: object, longest: int = 300) -> str:
    """Return text on one line that Markdown shows as it is."""
    line = one_line(text, longest).translate(_STRUCTURE)
    line = _AT_THE_BEGIN.sub(lambda match: f"{match[1]}&#{ord(match[2])};", line)
    return _ADDRESS.sub(lambda match: "".join(f"&#{ord(c)};" for c in match[0]), line)


def yaml_text(text: object) -> str:
    """Return text as a quoted YAML scalar."""
    return json.dumps(one_line(text), ensure_ascii=False)


def number(value: Any, digits: int = 4) -> str:
    """Return a formatted number, "n/a" for NaN."""
    if not isinstance(value, (int, float)):
        return escaped(value)
    if isinstance(value, int):
        return f"{value:,}"
    return "n/a" if math.isnan(value) else f"{value:.{digits}g}"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return [f"| {' | '.join(cells)} |" for cells in lines]
