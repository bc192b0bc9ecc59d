"""The model card: what an encoder is, what it learned from, and what that did to it."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from embedtopics.encoders.sentence._loading import DEFAULT_MODEL, DEFAULT_REPOSITORY
from embedtopics.training.results import Change, StudentReport, TrainingReport

Report = TrainingReport | StudentReport

MOST_VALIDATIONS = 20
MOST_LISTED = 40

# Controls, and overrides of the direction, which would turn round the words beside the text.
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

LIMITS = (
    "An interval in the table shows how a difference varies with other examples of the same kind, "
    "not how it varies with the random state of the training, nor on texts of another kind.",
    "Examples that were scored repeatedly, to choose between encoders, flatter the one chosen.",
    "Biases of the base model and of the training examples are in this encoder, too. Nothing here "
    "was checked for them.",
    "Texts longer than the encoder reads are cut.",
    "This card states no license: those of the base model and of the training examples apply.",
)
OF_STUDENTS = (
    "It has read all texts that it was made of, those that its agreement was measured on included: "
    "figures on a test are valid only where the texts of the test were left out.",
    "Words that none of these texts hold have the vectors that its teacher gives them alone.",
)


def model_card(report: Report) -> str:
    """Return the model card of a trained encoder or a student, Markdown that model hubs read.

    All figures are those of the report. Text that comes from data is shown as it is, never as
    markup; of the paths of folders and files, only the last name is shown.
    """
    is_student = isinstance(report, StudentReport)
    limits = (*OF_STUDENTS, *LIMITS) if is_student else LIMITS
    data = {name: value for name, value in report.data.items() if name != "scored_on"}
    parts = [
        *_front_matter(report),
        *_title(report),
        *_use("model2vec" if is_student else "sentence-transformers"),
        "## Data",
        "",
        *(list(_nested(data)) or ["Nothing was noted of the data."]),
    ]
    if report.decisions:
        parts += ["", "Decided or noticed on the way:", ""]
        parts += [f"- {_sentence(decision.message, 1000)}" for decision in report.decisions]
    parts += [
        "",
        *_training(report),
        *_curve(report),
        *_changes(report.before_after),
        "## Limits",
        "",
        *(f"- {limit}" for limit in limits),
    ]
    if report.versions:
        found = ", ".join(f"{one_line(name)} {one_line(v)}" for name, v in report.versions.items())
        parts += ["", "## Versions", "", escaped(found, 2000)]
    return "\n".join(parts) + "\n"


def _front_matter(report: Report) -> list[str]:
    tags = ["sentence-transformers", "sentence-similarity", "feature-extraction", "embedtopics"]
    library = "sentence-transformers"
    if isinstance(report, StudentReport):
        library = "model2vec"
        tags = [library, "static-embeddings", *tags]
    lines = ["---", f"library_name: {library}", "pipeline_tag: sentence-similarity"]
    base = _repository(report.teacher if isinstance(report, StudentReport) else report.base)
    if base is not None:
        lines.append(f"base_model: {yaml_text(base)}")
    return [*lines, "tags:", *(f"- {tag}" for tag in tags), "---", ""]


def _repository(base: str) -> str | None:
    """Return the name of a base model on the hub; None for a folder and for what is elsewhere."""
    if base == DEFAULT_MODEL:
        return DEFAULT_REPOSITORY
    is_name = _REPOSITORY.fullmatch(base) is not None and ".." not in base and "--" not in base
    return base if is_name and not Path(base).exists() else None


def _last_name(path: str) -> str:
    """Return the last part of a path: the rest is nobody's business but the author's."""
    parts = [part for part in re.split(r"[/\\]", path) if part not in ("", ".", "..")]
    return parts[-1] if parts else "encoder"


def _sentence(sentence: str, longest: int = 500) -> str:
    """Return a sentence in which paths have become names."""
    return escaped(_PATH.sub(lambda found: _last_name(found[0]), sentence), longest)


def _title(report: Report) -> list[str]:
    if isinstance(report, StudentReport):
        base = escaped(_repository(report.teacher) or _last_name(report.teacher))
        about = (
            f"A static encoder: a table of {report.n_tokens:,} token vectors of "
            f"{report.dimensions:,} dimensions, learned with embedtopics from the vectors that "
            f"{base} gives to texts. A text's vector is the mean of those of its tokens; {base} is "
            "not needed for that."
        )
        return [f"# Static student of {base}", "", about, ""]
    base = escaped(_repository(report.base) or _last_name(report.base))
    about = (
        f"A sentence encoder: {base}, trained with embedtopics ({_sentence(report.objective)}). "
        "The cosine of two vectors is the similarity of their texts."
    )
    return [f"# {escaped(_last_name(report.folder))}", "", about, ""]


def _use(library: str) -> list[str]:
    load = {
        "model2vec": "StaticModel.from_pretrained",
        "sentence-transformers": "SentenceTransformer",
    }[library]
    return [
        "## Use",
        "",
        "```python",
        "from embedtopics.encoders import resolve_encoder",
        "",
        'encoder = resolve_encoder("path/to/this/folder")',
        'embeddings = encoder.encode(["a sentence", "another one"])',
        "```",
        "",
        f"Or with {library}:",
        "",
        "```python",
        f"from {library.replace('-', '_')} import {load.partition('.')[0]}",
        "",
        f'model = {load}("path/to/this/folder")',
        'embeddings = model.encode(["a sentence", "another one"])',
        "```",
        "",
    ]


def _nested(values: Mapping[Any, Any], depth: int = 0) -> Iterator[str]:
    """Yield the lines of a list in which mappings are lists of their own."""
    for key, value in values.items():
        name = f"{'  ' * depth}- {escaped(str(key).replace('_', ' '), 80)}"
        if isinstance(value, Mapping) and depth < 4:
            yield f"{name}:"
            yield from _nested(value, depth + 1)
        else:
            yield f"{name}: {_value(value)}"


def _value(value: Any) -> str:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, (list, tuple, np.ndarray)):
        shown = ", ".join(_value(one) for one in list(value)[:MOST_LISTED])
        return f"{shown}, …" if len(value) > MOST_LISTED else shown or "none"
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str) and re.match(r"[A-Za-z]:[\\/]|[/~\\]", value):
        value = _last_name(value)
    return _sentence(value) if isinstance(value, str) else number(value)


def _training(report: Report) -> list[str]:
    kept = f"the weights after step {report.best_step:,} were kept"
    if isinstance(report, StudentReport):
        seconds = sum(report.seconds.values())
        aside = ", ".join(f"{escaped(k)} {number(s, 3)}" for k, s in report.seconds.items())
    else:
        seconds = report.seconds
        aside = f"{number(report.examples_per_second, 3)} examples a second"
    about = (
        f"Training took {report.n_steps:,} steps and {number(seconds, 3)} seconds ({aside}) and "
        f"ended: {_sentence(report.stopped)}; {kept}."
    )
    rows = [[_code(name), _value(value)] for name, value in report.settings.items()]
    return ["## Training", "", about, "", *table(["setting", "value"], rows), ""]


def _code(name: object) -> str:
    """Return a name as code where it is a plain word, which needs no care."""
    return f"`{name}`" if _WORD.fullmatch(str(name)) else escaped(name, 80)


def _curve(report: Report) -> list[str]:
    found, curves = report.diagnosis, report.curves
    lines = ["## Learning curve", ""]
    sure = "n/a" if math.isnan(found.confidence) else f"{found.confidence:.0%}"
    lines.append(f"**{escaped(found.verdict)}** (confidence {sure}).")
    if found.evidence:
        lines += ["", *(f"- {_sentence(each.says)}" for each in found.evidence)]
    if found.advice:
        lines += ["", "What may help:", "", *(f"- {_sentence(each)}" for each in found.advice)]
    n = len(curves.validation_steps)
    if not n:
        return [*lines, "", "There was no validation.", ""]
    kept = np.flatnonzero(curves.validation_steps == report.best_step)
    places = np.unique(np.linspace(0, n - 1, min(n, MOST_VALIDATIONS)).round().astype(int))
    places = np.union1d(places, kept)
    if len(places) < n:
        lines += ["", f"{len(places)} of {n} validations:"]
    head = ["step", "validation loss", "training sample loss"]
    head += [escaped(curves.metric_name)] if curves.metric_name else []
    rows = []
    for place in places.tolist():
        step = int(curves.validation_steps[place])
        columns = [curves.validation_loss, curves.sample_loss]
        columns += [curves.metric] if curves.metric_name else []
        shown = f"{step:,}{' (kept)' if step == report.best_step else ''}"
        rows.append([shown, *(number(float(column[place])) for column in columns)])
    return [*lines, "", *table(head, rows), ""]


def _changes(changes: Sequence[Change]) -> list[str]:
    lines = ["## Before and after", ""]
    if not changes:
        return [*lines, "The encoder was not compared with the one that it came from.", ""]
    head = "on,figure,before,after,difference (95 % interval),n,looks,verdict".split(",")
    rows, notes = [], []
    for change in changes:
        mark = ""
        if change.note:
            if change.note not in notes:
                notes.append(change.note)
            mark = f" ({notes.index(change.note) + 1})"
        names = [escaped(change.task, 60), escaped(change.metric, 80)]
        figures = ["n/a" if math.isnan(x) else f"{x:.3f}" for x in (change.before, change.after)]
        looks = f"{change.n_looks:,}" if change.n_looks else "n/a"
        verdict = escaped(change.verdict) + mark
        rows.append([*names, *figures, _interval(change), f"{change.n:,}", looks, verdict])
    lines += table(head, rows)
    if notes:
        lines += ["", *(f"{i}. {_sentence(note, 1000)}" for i, note in enumerate(notes, 1))]
    return [*lines, ""]


def _interval(change: Change) -> str:
    if math.isnan(change.difference):
        return "n/a"
    if math.isnan(change.low):
        return f"{change.difference:+.3f}"
    return f"{change.difference:+.3f} ({change.low:+.3f} to {change.high:+.3f})"


def one_line(text: object, longest: int = 300) -> str:
    """Return text on one line without controls, cut where it is longer."""
    clean = str(text).encode("utf-8", "replace").decode("utf-8").translate(_HIDDEN)
    line = " ".join(clean.split())
    return line if len(line) <= longest else line[: longest - 1].rstrip() + "…"


def escaped(text: object, longest: int = 300) -> str:
    """Return text on one line that Markdown shows as it is."""
    line = one_line(text, longest).translate(_STRUCTURE)
    line = _AT_THE_BEGIN.sub(lambda found: f"{found[1]}&#{ord(found[2])};", line)
    return _ADDRESS.sub(lambda found: "".join(f"&#{ord(c)};" for c in found[0]), line)


def yaml_text(text: object) -> str:
    """Return text as a scalar between quotes, which YAML reads as JSON does."""
    return json.dumps(one_line(text), ensure_ascii=False)


def number(value: Any, digits: int = 4) -> str:
    """Return a number for people: separators in large ones, "n/a" for one that is unknown."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return escaped(value)
    if isinstance(value, int):
        return f"{value:,}"
    if value != value:
        return "n/a"
    return f"{value:.{digits}g}"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table; cells are Markdown already."""
    lines = [list(head), ["---"] * len(head), *map(list, rows)]
    return [f"| {' | '.join(cells)} |" for cells in lines]
