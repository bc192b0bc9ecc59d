"""The model card: what an encoder is, what it learned from, and what that did to it."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from embedtopics.encoders.resolve import DEFAULT_MODEL, DEFAULT_REPOSITORY
from embedtopics.results import Change, StudentReport, TrainingReport
from embedtopics.training.examples import Examples
from embedtopics.training.markup import escaped, number, one_line, table, yaml_text

__all__ = ["model_card"]

MOST_VALIDATIONS = 20
MOST_LISTED = 40
_REPOSITORY = re.compile(r"[\w-][\w.-]*/[\w-][\w.-]*")
_WORD = re.compile(r"[A-Za-z]\w*")
_PATH = re.compile(r"(?<![\w:/\\.])(?:[A-Za-z]:|~|\.\.?)?(?:[/\\][^\s/\\:;,\"'()]+){2,}")
"""Of two names and more, so that "and/or" and a lone slash are none."""

LIMITS = (
    "An interval in the table says how a difference varies with other examples of the same kind. "
    "It does not say how it varies with the seed of the training, nor on texts of another kind.",
    "Examples that were looked at repeatedly, to choose between encoders, flatter the one chosen.",
    "What the base model or the training examples are biased towards, this encoder is, too. "
    "Nothing here was checked for that.",
    "Texts longer than the encoder reads are cut.",
    "This card states no licence: those of the base model and of the training examples apply.",
)


OF_STUDENTS = (
    "It has read all texts that it was made of, those that its agreement was measured on included: "
    "figures on a test are true only where the texts of the test were left out.",
    "Words that none of these texts hold have the vectors that its teacher gives them alone.",
)

Report = TrainingReport | StudentReport


def model_card(report: Report, examples: Examples | None = None, *, n_examples: int = 3) -> str:
    """Write the model card of a tuned encoder or a student, Markdown that model hubs read.

    All figures are those of the report. Text that comes from data is shown as it is, never as
    markup; of the paths of folders and files, only the last name is shown.

    Parameters
    ----------
    report : TrainingReport or StudentReport
    examples : Examples, optional
        Some to show, where they may be shown to whoever reads the card. By default none are.
    n_examples : int

    Returns
    -------
    str
        For ``README.md``.
    """
    limits = (*OF_STUDENTS, *LIMITS) if isinstance(report, StudentReport) else LIMITS
    parts = [
        _front_matter(report),
        _title(report),
        _use(report),
        _data(report, examples, n_examples),
        _training(report),
        _curve(report),
        _changes(report.before_after),
        ["## Limits", "", *(f"- {limit}" for limit in limits)],
        _versions(report),
    ]
    return "\n".join("\n".join(part) + "\n" for part in parts if part)


def _front_matter(report: Report) -> list[str]:
    tags = ["sentence-transformers", "sentence-similarity", "feature-extraction", "embedtopics"]
    library = "sentence-transformers"
    if isinstance(report, StudentReport):
        library = "model2vec"
        tags = [library, "static-embeddings", *tags]
    lines = ["---", f"library_name: {library}", "pipeline_tag: sentence-similarity"]
    base = _repository(_origin(report))
    if base is not None:
        lines.append(f"base_model: {yaml_text(base)}")
    return [*lines, "tags:", *(f"- {tag}" for tag in tags), "---"]


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


def _said(sentence: str, longest: int = 500) -> str:
    """Return a sentence in which paths have become names."""
    return escaped(_PATH.sub(lambda found: _last_name(found[0]), sentence), longest)


def _origin(report: Report) -> str:
    return report.teacher if isinstance(report, StudentReport) else report.base


def _base_name(base: str) -> str:
    return _repository(base) or _last_name(base)


def _title(report: Report) -> list[str]:
    if isinstance(report, StudentReport):
        base = escaped(_base_name(report.teacher))
        about = (
            f"A static encoder: a table of {report.n_tokens:,} token vectors of "
            f"{report.dimensions:,} numbers, learned with embedtopics from the vectors that {base} "
            "gives to texts. It turns texts into vectors whose cosine says how alike they are, as "
            f"means of the vectors of their tokens; {base} is not needed for that."
        )
        return [f"# Static student of {base}", "", about]
    about = (
        f"A sentence encoder: {escaped(_base_name(report.base))}, tuned with embedtopics "
        f"({_said(report.objective)}). It turns texts into vectors whose cosine says how alike "
        "they are."
    )
    return [f"# {escaped(_last_name(report.folder))}", "", about]


def _use(report: Report) -> list[str]:
    library, module, load = "sentence-transformers", "sentence_transformers", "SentenceTransformer"
    if isinstance(report, StudentReport):
        library, module, load = "model2vec", "model2vec", "StaticModel.from_pretrained"
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
        f"from {module} import {load.partition('.')[0]}",
        "",
        f'model = {load}("path/to/this/folder")',
        'embeddings = model.encode(["a sentence", "another one"])',
        "```",
    ]


def _data(report: Report, examples: Examples | None, n_examples: int) -> list[str]:
    lines = ["## Data", ""]
    lines += list(_nested(report.data)) or ["Nothing was noted of the data."]
    if report.decisions:
        lines += ["", "Decided or noticed on the way:", ""]
        lines += [f"- {_said(decision.message, 1000)}" for decision in report.decisions]
    if examples is not None and len(examples) and n_examples > 0:
        lines += ["", *_shown(examples, min(n_examples, len(examples)))]
    return lines


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
    return _said(value) if isinstance(value, str) else number(value)


def _shown(examples: Examples, n: int) -> list[str]:
    names = {
        "nli": ("premise", "hypothesis"), "triplets": ("anchor", "positive"), "texts": ("text",),
    }.get(examples.kind, ("first text", "second text"))  # fmt: skip
    n_columns = len(examples.columns)
    further = "negative" if examples.kind == "triplets" else "text"
    head = [*names, *[f"{further} {i}" for i in range(1, n_columns - len(names) + 1)]][:n_columns]
    labels = examples.labels
    is_shown = labels is not None and labels.ndim == 1
    rows = []
    for place in range(n):
        cells = [escaped(column[place], 200) for column in examples.columns]
        if labels is not None and is_shown:
            label = labels[place].item()
            cells.append(escaped(examples.names[label]) if examples.names else number(label))
        rows.append(cells)
    kind = f"The first {n} of {len(examples):,} examples:"
    return [kind, "", *table([*head, "label"] if is_shown else head, rows)]


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
        f"ended: {_said(report.stopped)}; {kept}."
    )
    rows = [[_code(name), _value(value)] for name, value in report.settings.items()]
    return ["## Training", "", about, "", *table(["setting", "value"], rows)]


def _code(name: object) -> str:
    """Return a name as code where it is a plain word, which needs no care."""
    return f"`{name}`" if _WORD.fullmatch(str(name)) else escaped(name, 80)


def _curve(report: Report) -> list[str]:
    found, curves = report.diagnosis, report.curves
    lines = ["## Learning curve", ""]
    lines.append(f"**{escaped(found.verdict)}** (confidence {_percent(found.confidence)}).")
    if found.evidence:
        lines += ["", *(f"- {_said(each.says)}" for each in found.evidence)]
    if found.advice:
        lines += ["", "What may help:", "", *(f"- {_said(each)}" for each in found.advice)]
    n = len(curves.validation_steps)
    if not n:
        return [*lines, "", "There was no validation."]
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
    return [*lines, "", *table(head, rows)]


def _percent(share: float) -> str:
    return "n/a" if math.isnan(share) else f"{share:.0%}"


def _changes(changes: Sequence[Change]) -> list[str]:
    lines = ["## Before and after", ""]
    if not changes:
        return [*lines, "The encoder was not compared with the one that it came from."]
    head = [
        "on",
        "figure",
        "before",
        "after",
        "difference (95 % interval)",
        "n",
        "looks",
        "verdict",
    ]
    rows, notes = [], []
    for change in changes:
        mark = ""
        if change.note:
            if change.note not in notes:
                notes.append(change.note)
            mark = f" ({notes.index(change.note) + 1})"
        rows.append(
            [escaped(change.task, 60), escaped(change.metric, 80), _figure(change.before),
             _figure(change.after), _interval(change), f"{change.n:,}",
             f"{change.n_looks:,}" if change.n_looks else "n/a", escaped(change.verdict) + mark]
        )  # fmt: skip
    lines += table(head, rows)
    if notes:
        lines += ["", *(f"{i}. {_said(note, 1000)}" for i, note in enumerate(notes, 1))]
    return lines


def _figure(value: float) -> str:
    return "n/a" if math.isnan(value) else f"{value:.3f}"


def _interval(change: Change) -> str:
    if math.isnan(change.difference):
        return "n/a"
    if math.isnan(change.low):
        return f"{change.difference:+.3f}"
    return f"{change.difference:+.3f} ({change.low:+.3f} to {change.high:+.3f})"


def _versions(report: Report) -> list[str]:
    if not report.versions:
        return []
    found = ", ".join(f"{one_line(name)} {one_line(v)}" for name, v in report.versions.items())
    return ["## Versions", "", escaped(found, 2000)]
