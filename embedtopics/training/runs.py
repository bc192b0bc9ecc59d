"""From examples and an objective to a tuned encoder in a folder, with a report of the run."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from embedtopics._files import check_output_folder
from embedtopics._versions import package_versions
from embedtopics.errors import MissingExtraError
from embedtopics.protocols import Encoder
from embedtopics.results import Change, Decision, TrainingReport
from embedtopics.training.effects.scoring import in_order
from embedtopics.training.examples import Examples
from embedtopics.training.overlaps import overlap, refuse_overlap
from embedtopics.training.reading import read_examples
from embedtopics.training.settings import TrainingSettings, settings_from
from embedtopics.training.splitting import require_size, split

if TYPE_CHECKING:
    from embedtopics.training.engine.running import Run
    from embedtopics.training.objectives.objective import Objective
    from embedtopics.training.objectives.trainee import Trainee

__all__ = ["Held", "MakeObjective", "run_training"]

MakeObjective = Callable[[Examples, "Trainee"], "Objective"]

HELD_OUT = 0.1
"""Share of the examples that is held out for validation where none are given."""


@dataclass(frozen=True, eq=False)
class Held:
    """What a run is measured on, beside its training examples.

    Parameters
    ----------
    validation : Examples, or what `read_examples` takes, or None
        Decides which weights are kept; None holds out a tenth of the training examples.
    test, general, corpus, classes
        See `compare_before_after`; looked at once, at the end.
    allow_overlap : bool
        Whether examples may be both learned from, or validated on, and measured on.
    """

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
    held: Held,
    out: str | os.PathLike[str],
    resume: bool,
    options: Mapping[str, Any],
) -> TrainingReport:
    """Train, keep the best weights, compare with where training started, and write it all down.

    Parameters
    ----------
    encoder : str, path or encoder
    train : Examples, or what `read_examples` takes
    kind : str
        Of the examples.
    make_objective : callable
        From examples, and the model that learns from them, to an objective; also called on the
        validation examples.
    held : Held
    out : path
    resume : bool
    options : mapping
        Fields of `TrainingSettings`.

    Returns
    -------
    TrainingReport
    """
    settings = settings_from(options)
    _require_extra()
    from embedtopics.training.engine.machine import device_and_precision

    device_and_precision(settings)
    held = _readable(held, kind)
    learned, validation, decisions, data = _sets(train, kind, held, settings)
    from embedtopics.training.engine.checkpoints import delete_checkpoints
    from embedtopics.training.objectives.adapters import with_lora
    from embedtopics.training.objectives.matryoshka import lengths_of, with_matryoshka
    from embedtopics.training.objectives.trainee import output_kind, save_trainee, trainee_of

    trainee = trainee_of(encoder, settings)
    if settings.lora_rank is not None:
        trainee = with_lora(trainee, settings.lora_rank, seed=settings.seed)
    folder = check_output_folder(Path(out).expanduser(), output_kind(trainee))
    lengths: tuple[int, ...] = ()
    objective = make_objective(learned, trainee)
    if settings.matryoshka:
        lengths = lengths_of(settings.matryoshka, trainee.n_dimensions)
        objective = with_matryoshka(objective, lengths)
    decisions += [*trainee.decisions, *objective.examples.decisions]
    measured = make_objective(validation, trainee).examples
    run = _train(trainee, objective, measured, settings, folder, resume)
    save_trainee(trainee, folder, matryoshka=lengths)
    data |= {"n_learned_from": len(objective.examples)}
    changes = _compare(trainee, folder, held, decisions)
    report = _written(trainee, objective.name, settings, data, run, changes, decisions, folder)
    # Until everything is written, a run that is started again has nothing to learn twice.
    delete_checkpoints(checkpoints_of(folder))
    return report


def _require_extra() -> None:
    missing = [name for name in ("accelerate", "datasets") if find_spec(name) is None]
    if missing:
        raise MissingExtraError(
            f"training needs {' and '.join(missing)}, which {'is' if len(missing) == 1 else 'are'} "
            'not installed: pip install "embedtopics[train]"'
        )


def _readable(held: Held, kind: str) -> Held:
    """Read what a run is measured on before it begins: errors must not wait until it has ended."""
    from embedtopics.corpus import Corpus
    from embedtopics.training.effects.on_corpus import MOST_DOCUMENTS, corpus_texts

    corpus = None
    if held.corpus is not None:
        corpus = Corpus.of(held.corpus)
        corpus_texts(corpus, held.classes, MOST_DOCUMENTS)
    test, general = (
        {name: read_examples(given, given.kind if isinstance(given, Examples) else read_as)
         for name, given in _named(sets, what)}
        for sets, what, read_as in (
            (held.test, "test", kind), (held.general, "general", "graded"),
        )
    )  # fmt: skip
    return replace(held, test=test or None, general=general or None, corpus=corpus)


def _sets(
    train: Any, kind: str, held: Held, settings: TrainingSettings
) -> tuple[Examples, Examples, list[Decision], dict[str, Any]]:
    """Return what is learned from and what is validated on, and what is to be said of them."""
    learned = read_examples(train, kind)
    decisions = list(learned.decisions)
    measured = [*_named(held.test, "test"), *_named(held.general, "general")]
    # All of them, before a part is held out: what is validated on has a say in the weights, too.
    for name, examples in measured:
        decisions += refuse_overlap(learned, examples, allow=held.allow_overlap, what=name)
    if held.validation is None:
        learned, validation = split(learned, HELD_OUT, settings.seed)
        text = f"{len(validation):,} of the examples were held out for validation."
        decisions.append(Decision("training", "held_out", len(validation), text))
    else:
        validation = read_examples(held.validation, kind)
        require_size(validation)
        decisions += refuse_overlap(
            learned, validation, allow=held.allow_overlap, what="validation"
        )
        for name, examples in measured:
            decisions += refuse_overlap(
                validation, examples, allow=held.allow_overlap, what=name, used_for="validation"
            )
    shared = overlap(learned, validation)
    data = {
        "n_train": len(learned),
        "n_validation": len(validation),
        "train": learned.source,
        "validation": validation.source,
        "n_texts_shared_with_validation": shared.n_shared_texts,
    }
    # What is learned does not depend on the order of the rows.
    return learned.take(in_order(learned)), validation.take(in_order(validation)), decisions, data


def _named(given: Any, name: str) -> list[tuple[str, Any]]:
    if given is None:
        return []
    return list(given.items()) if isinstance(given, Mapping) else [(name, given)]


def checkpoints_of(folder: Path) -> Path:
    """Return where the checkpoints of a run lie while it goes on."""
    return folder.with_name(f"{folder.name}.training")


def _train(
    trainee: Trainee, objective: Objective, validation: Examples, settings: TrainingSettings,
    folder: Path, resume: bool,
) -> Run:  # fmt: skip
    from embedtopics.training.engine.lesson import prepare, tokenized
    from embedtopics.training.engine.running import train

    lesson = prepare(trainee, objective, settings.seed)
    about = {
        "encoder": trainee.fingerprint,
        "objective": objective.name,
        "training examples": objective.examples.fingerprint,
        "validation examples": validation.fingerprint,
        "settings": settings.to_dict(),
    }
    held_out = tokenized(trainee, validation)
    return train(lesson, held_out, settings, checkpoints_of(folder), about, resume)


def _compare(
    trainee: Trainee, folder: Path, held: Held, decisions: list[Decision]
) -> tuple[Change, ...]:
    if held.test is None and held.general is None and held.corpus is None:
        return ()
    from embedtopics.training.effects.comparing import compare_before_after

    return compare_before_after(
        trainee.encoder, _tuned(trainee, folder, decisions), test=held.test, general=held.general,
        corpus=held.corpus, classes=held.classes,
    )  # fmt: skip


def _tuned(trainee: Trainee, folder: Path, decisions: list[Decision]) -> Encoder:
    """Open what was trained as the encoder before is read: only training may make a difference."""
    from embedtopics.encoders import SentenceEncoder, resolve_encoder

    before = trainee.encoder
    if not isinstance(before, SentenceEncoder):
        return resolve_encoder(folder)
    # What a folder does not keep.
    precision, long_texts = before.recipe.precision, before.recipe.long_texts
    asked = {"precision": precision, "long_texts": long_texts}
    usual = {"precision": "float32", "long_texts": "truncate"}
    if asked != usual:
        named = " and ".join(f'{k}="{asked[k]}"' for k in asked if asked[k] != usual[k])
        text = (
            f"Before and after were compared with {named}, as the encoder before was read; the "
            "folder does not keep that, so give it again where the folder is read."
        )
        decisions.append(Decision("training", "read_alike", [*asked.values()], text))
    return SentenceEncoder(folder, precision=precision, long_texts=long_texts)


def _written(
    trainee: Trainee,
    name: str,
    settings: TrainingSettings,
    data: Mapping[str, Any],
    run: Run,
    changes: tuple[Change, ...],
    decisions: list[Decision],
    folder: Path,
) -> TrainingReport:
    """Put the report together, and write it beside the weights."""
    from embedtopics.training.curves.reading import diverged_at, read_curves
    from embedtopics.training.report_files import write_report

    ended = [one.value for one in run.decisions if one.name == "loss_not_finite"]
    diagnosis = diverged_at(ended[0]) if ended else read_curves(run.curves)
    report = TrainingReport(
        objective=name,
        base=trainee.name,
        folder=str(folder),
        settings=settings.to_dict(),
        data=dict(data),
        curves=run.curves,
        diagnosis=diagnosis,
        before_after=changes,
        best_step=run.best_step,
        n_steps=run.n_steps,
        stopped=run.stopped,
        seconds=run.seconds,
        examples_per_second=run.examples_per_second,
        decisions=_each_once([*decisions, *run.decisions]),
        versions=package_versions(),
    )
    write_report(report, folder)
    return report


def _each_once(decisions: Iterable[Decision]) -> tuple[Decision, ...]:
    """Return decisions without those that are there already: examples carry theirs along."""
    kept: list[Decision] = []
    for decision in decisions:
        if decision not in kept:
            kept.append(decision)
    return tuple(kept)
