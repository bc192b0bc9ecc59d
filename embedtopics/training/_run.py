"""From examples and an objective to a trained encoder in a folder, with a report of the run."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from embedtopics._utils.folders import check_output_folder
from embedtopics._utils.machine import package_versions
from embedtopics.corpus.results import Decision
from embedtopics.errors import CorruptFileError, InputError, MissingExtraError
from embedtopics.protocols import Encoder
from embedtopics.training._examples import Examples, read_examples
from embedtopics.training._settings import TrainingSettings
from embedtopics.training._split import (
    LEAST_HELD_OUT,
    in_order,
    overlap,
    refuse_overlap,
    require_size,
    split,
)
from embedtopics.training.results import Change, TrainingReport

if TYPE_CHECKING:
    from embedtopics.training.objectives._objective import Objective
    from embedtopics.training.objectives._trainable import Trainable
    from embedtopics.training.trainer._running import Run

MakeObjective = Callable[[Examples, "Trainable"], "Objective"]

HELD_OUT = 0.1
"""Share of the examples that is held out for validation where none are given."""

FEWEST_USED = 0.2
"""Share of the examples below which a warning says that most of them cannot be learned from."""


@dataclass(frozen=True, eq=False)
class HeldOut:
    """What a run is measured on, beside its training examples; see `fit`."""

    validation: Any = None
    test: Any = None
    general: Any = None
    corpus: Any = None
    classes: Any = None
    allow_overlap: bool = False


def run_training(
    encoder: Any,
    train: Any,
    kind: str,
    make_objective: MakeObjective,
    held: HeldOut,
    settings: TrainingSettings,
    out: str | os.PathLike[str],
    resume: bool,
    callbacks: Sequence[Any],
) -> TrainingReport:
    """Train, keep the best weights, compare with the encoder before, and write it all down."""
    missing = [name for name in ("accelerate", "datasets") if find_spec(name) is None]
    if missing:
        raise MissingExtraError(
            f'training needs {" and ".join(missing)}: pip install "embedtopics[train]"'
        )
    from embedtopics.training._report_files import write_report
    from embedtopics.training.objectives import _trainable as models
    from embedtopics.training.objectives._distilled import lengths_of, with_matryoshka
    from embedtopics.training.trainer._checkpoints import delete_checkpoints
    from embedtopics.training.trainer._data import device_and_precision

    device_and_precision(settings)
    held = _readable(held, kind)
    if not callable(train):
        train = read_examples(train, kind)
    trainable = models.trainable_of(encoder, settings)
    if settings.lora_rank is not None:
        state = settings.random_state
        trainable = models.with_lora(trainable, settings.lora_rank, random_state=state)
    folder = check_output_folder(Path(out).expanduser(), models.output_kind(trainable))
    if callable(train):
        train = read_examples(train(), kind)
    learned, validation, decisions, data = _sets(train, kind, held, settings)
    objective, measured = (make_objective(part, trainable) for part in (learned, validation))
    decisions += _few_used(objective.examples, measured.examples, learned)
    lengths: tuple[int, ...] = ()
    if settings.matryoshka:
        lengths = lengths_of(settings.matryoshka, trainable.n_dimensions)
        objective = with_matryoshka(objective, lengths)
    decisions += [*trainable.decisions, *objective.examples.decisions]
    checkpoints = folder.with_name(f"{folder.name}.training")
    run = _train(trainable, objective, measured, settings, checkpoints, resume, callbacks)
    earlier = _earlier_looks(folder)
    models.save_trainable(trainable, folder, matryoshka=lengths)
    changes = _compare(trainable, folder, held, decisions)
    changes, data["scored_on"] = _counted_looks(changes, held, earlier)
    data["n_learned_from"] = len(objective.examples)
    report = TrainingReport(
        objective=objective.name,
        base=trainable.name,
        folder=str(folder),
        settings=settings.to_dict(),
        data=data,
        curves=run.curves,
        diagnosis=run.diagnosis,
        before_after=changes,
        best_step=run.best_step,
        n_steps=run.n_steps,
        stopped=run.stopped,
        seconds=run.seconds,
        examples_per_second=run.examples_per_second,
        decisions=tuple(_unique([*decisions, *run.decisions])),
        versions=package_versions(),
    )
    write_report(report, folder)
    # Until everything is written, a run that is started again has nothing to learn twice.
    delete_checkpoints(checkpoints)
    return report


def _train(
    trainable: Trainable,
    objective: Objective,
    measured: Objective,
    settings: TrainingSettings,
    checkpoints: Path,
    resume: bool,
    callbacks: Sequence[Any],
) -> Run:
    """Train in a folder of checkpoints that belong to this run alone."""
    from embedtopics.training.trainer._data import prepare, tokenized
    from embedtopics.training.trainer._running import train

    identity = {
        "encoder": trainable.fingerprint,
        "objective": objective.name,
        "training examples": objective.examples.fingerprint,
        "validation examples": measured.examples.fingerprint,
        "settings": settings.to_dict(),
    }
    data = prepare(trainable, objective, settings.random_state)
    held_out = tokenized(trainable, measured.examples)
    return train(data, held_out, settings, checkpoints, identity, resume, callbacks)


def _unique(decisions: Sequence[Decision]) -> list[Decision]:
    """Return each decision once: examples carry theirs along, and a value may be a list."""
    kept: list[Decision] = []
    for decision in decisions:
        if decision not in kept:
            kept.append(decision)
    return kept


def _readable(held: HeldOut, kind: str) -> HeldOut:
    """Read what a run is measured on before it begins: errors must not wait until it has ended."""
    from embedtopics.corpus._corpus import Corpus
    from embedtopics.training._corpus_changes import MOST_DOCUMENTS, corpus_texts

    def read(sets: Any, name: str, read_as: str) -> dict[str, Examples] | None:
        named = sets if isinstance(sets, Mapping) else {} if sets is None else {name: sets}
        return {
            name: read_examples(given, given.kind if isinstance(given, Examples) else read_as)
            for name, given in named.items()
        } or None

    corpus = None
    if held.corpus is not None:
        corpus = Corpus.of(held.corpus)
        corpus_texts(corpus, held.classes, MOST_DOCUMENTS)
    return replace(
        held,
        test=read(held.test, "test", kind),
        general=read(held.general, "general", "graded"),
        corpus=corpus,
    )


def _sets(
    learned: Examples, kind: str, held: HeldOut, settings: TrainingSettings
) -> tuple[Examples, Examples, list[Decision], dict[str, Any]]:
    """Return training and validation examples, and what is to be said of them."""
    decisions = list(learned.decisions)
    allow, measured = held.allow_overlap, {**(held.test or {}), **(held.general or {})}
    # All of them, before a part is held out: validation examples have a say in the weights, too.
    for name, examples in measured.items():
        decisions += refuse_overlap(learned, examples, allow=allow, what=name)
    if held.validation is None:
        learned, validation = split(learned, HELD_OUT, settings.random_state)
        text = f"{len(validation):,} of the examples were held out for validation."
        decisions.append(Decision("training", "held_out", len(validation), text))
    else:
        validation = read_examples(held.validation, kind)
        require_size(validation)
        decisions += refuse_overlap(learned, validation, allow=allow, what="validation")
        for name, examples in measured.items():
            decisions += refuse_overlap(
                validation, examples, allow=allow, what=name, used_for="validation"
            )
    data = {
        "n_train": len(learned),
        "n_validation": len(validation),
        "train": learned.source,
        "validation": validation.source,
        "n_texts_shared_with_validation": overlap(learned, validation).n_shared_texts,
    }
    # What is learned does not depend on the order of the rows.
    return learned.take(in_order(learned)), validation.take(in_order(validation)), decisions, data


def _few_used(learned: Examples, measured: Examples, given: Examples) -> list[Decision]:
    """Warn where an objective can use few of the examples that it was given."""
    found = []
    used = next((d.value for d in learned.decisions if d.name == "examples_used"), len(given))
    if used < FEWEST_USED * len(given):
        message = (
            f"Only {used:,} of {len(given):,} training examples ({used / len(given):.1%}) can be "
            f"used by this objective: choose another, or check their labels."
        )
        warnings.warn(message, stacklevel=4)
        found.append(Decision("training", "few_examples_used", used, message))
    if len(measured) < LEAST_HELD_OUT:
        message = (
            f"Validation is on {len(measured):,} examples only, too few to choose the best weights "
            "by: give more."
        )
        found.append(Decision("training", "few_validation_examples", len(measured), message))
    return found


def _compare(
    trainable: Trainable, folder: Path, held: HeldOut, decisions: list[Decision]
) -> tuple[Change, ...]:
    """Compare before and after; both are read in the same way: only training may differ."""
    if held.test is None and held.general is None and held.corpus is None:
        return ()
    from embedtopics.encoders._registry import resolve_encoder
    from embedtopics.encoders.sentence._encoder import SentenceEncoder
    from embedtopics.training._compare import compare_before_after

    before = trainable.encoder
    after: Encoder
    if not isinstance(before, SentenceEncoder):
        after = resolve_encoder(folder)
    else:
        # What a folder does not keep.
        asked = {"precision": before.recipe.precision, "long_texts": before.recipe.long_texts}
        usual = {"precision": "float32", "long_texts": "truncate"}
        if asked != usual:
            named = " and ".join(f'{k}="{asked[k]}"' for k in asked if asked[k] != usual[k])
            text = (
                f"Before and after were compared with {named}, as the encoder before was read; the "
                "folder does not keep that, so give it again where the folder is read."
            )
            decisions.append(Decision("training", "read_alike", [*asked.values()], text))
        after = SentenceEncoder(
            folder, precision=asked["precision"], long_texts=asked["long_texts"]
        )
    return compare_before_after(
        before,
        after,
        test=held.test,
        general=held.general,
        corpus=held.corpus,
        classes=held.classes,
    )


def _earlier_looks(folder: Path) -> dict[str, int]:
    """Return how often the report that is replaced says that each test set was scored."""
    from embedtopics.training._report_files import read_report

    try:
        report = read_report(folder)
    except (InputError, CorruptFileError):
        return {}
    of_task = {change.task: change.n_looks for change in report.before_after}
    scored = report.data.get("scored_on", {})
    return {mark: of_task[task] for task, mark in scored.items() if of_task.get(task)}


def _counted_looks(
    changes: tuple[Change, ...], held: HeldOut, before: Mapping[str, int]
) -> tuple[tuple[Change, ...], dict[str, str]]:
    """Count, in the report itself, how often runs into this folder were scored on a test set."""
    sets = {**(held.test or {}), **(held.general or {})}
    marks = {task: examples.fingerprint[:32] for task, examples in sets.items()}
    counted = []
    for change in changes:
        n_looks = before.get(marks.get(change.task, ""), 0) + 1
        if change.task in marks and n_looks > 1:
            note = (
                f"Runs into this folder were scored {n_looks} times on these examples: what was "
                "changed because of it makes the figure too high and the interval too narrow."
            )
            change = replace(change, n_looks=n_looks, note=f"{change.note} {note}".strip())
        counted.append(change)
    return tuple(counted), marks
