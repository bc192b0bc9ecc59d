"""One `fit` for every kind of examples and objective, and a short front for each usual task."""

from __future__ import annotations

import inspect
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from embedtopics._utils.checks import checked_choice
from embedtopics._utils.folders import check_output_folder
from embedtopics._utils.machine import package_versions
from embedtopics.decisions import Decision
from embedtopics.errors import CorruptFileError, InputError
from embedtopics.training._examples import Examples, read_examples
from embedtopics.training._settings import TrainingSettings, require_libraries, settings_from
from embedtopics.training._split import (
    LEAST_HELD_OUT,
    in_order,
    overlap,
    refuse_overlap,
    require_size,
    split,
)
from embedtopics.training.results import Change, TrainingReport
from embedtopics.training.trainer._checkpoints import (
    checkpoints_of,
    delete_checkpoints,
    refuse_finished,
)

if TYPE_CHECKING:
    from embedtopics.training.objectives._objective import Objective
    from embedtopics.training.objectives._trainable import Trainable
    from embedtopics.training.trainer._running import Run

KIND_OF = {
    "ranking": "pairs", "softmax": "nli", "cosine": "graded", "cosent": "graded",
    "triplet": "triplets", "margin": "triplets", "contrastive": "binary", "online": "binary",
    "simcse": "texts", "tsdae": "texts", "mse": "taught",
}  # fmt: skip
"""How examples are read where only an objective is named."""

HELD_OUT = 0.1
"""Share of the examples that is held out for validation where none are given."""

FEWEST_USED = 0.2
"""Share of the examples below which a warning says that most of them cannot be learned from."""


@dataclass(frozen=True, eq=False)
class _HeldOut:
    """What a run is measured on, beside its training examples; see `fit`."""

    validation: Any
    test: Any
    general: Any
    corpus: Any
    classes: Any
    allow_overlap: bool

    @property
    def scored(self) -> dict[str, Examples]:
        """Sets that the encoder is scored on before and after, by name."""
        return {**(self.test or {}), **(self.general or {})}


def fit(
    encoder: Any,
    train: Any,
    objective: str | Callable[..., Any] | None = None,
    *,
    out: str | os.PathLike[str],
    kind: str | None = None,
    validation: Any = None,
    test: Any = None,
    general: Any = None,
    corpus: Any = None,
    classes: Any = None,
    allow_overlap: bool = False,
    resume: bool = True,
    overwrite: bool = False,
    callbacks: Sequence[Any] = (),
    **options: Any,
) -> TrainingReport:
    """Train an encoder on examples, keep the weights of the best validation, and report.

    Parameters
    ----------
    encoder : str, path, SentenceEncoder, StaticEncoder or CachedEncoder
        To start from; it is not changed.
    train : Examples, or what `read_examples` takes
        Training examples: a file, a frame, a `datasets.Dataset`, or a list of tuples, dicts or
        `InputExample`.
    objective : str, class or callable, optional
        By the kind of examples, the first being the default:

        - nli: "ranking" (a premise is nearest to what it entails; contradictions are hard
          negatives), "softmax" (Reimers and Gurevych 2019)
        - graded: "cosine" (the cosine is the score), "cosent" (only the order of scores counts)
        - pairs: "ranking" (in-batch negatives)
        - triplets: "ranking", "triplet" (nearer than the negative by a margin)
        - binary: "online" (hard pairs of a batch), "contrastive" (all pairs)
        - texts: "simcse" (Gao et al. 2021), "tsdae" (Wang et al. 2021)

        Or a loss of sentence-transformers: its class, or a function that takes the model and
        returns the loss.
    out : path
        Folder for the encoder, its report and its model card. While training goes on,
        ``<out>.training`` holds checkpoints.
    kind : str, optional
        How `train` is read if it is not `Examples`; by default that of the objective.
    validation : Examples, or what `read_examples` takes, optional
        Chooses the weights that are kept. By default a tenth of the training examples, which share
        no text with the rest.
    test, general : Examples, what `read_examples` takes, or mapping of name to such, optional
        Held-out examples of the task, and of another domain; see `compare_before_after`.
    corpus, classes : optional
        Texts, and perhaps their classes, on which neighbors and topics are compared.
    allow_overlap : bool
        Allow examples in two of the sets for training, validation and test.
    resume : bool
        Continue from a checkpoint of the same run in ``<out>.training``, to the same weights: on a
        CPU to the last bit, on a GPU up to its rounding. False starts over.
    overwrite : bool
        Replace a finished encoder in `out`.
    callbacks : sequence of transformers.TrainerCallback
    **options
        Fields of `TrainingSettings`, such as ``epochs=1`` or ``report_to="wandb"``, and of the
        objective: `scale` (of cosines before the softmax), `both_ways`, `margin`, `deleted`.

    Returns
    -------
    TrainingReport
        Also written to `out`.

    Raises
    ------
    InputError
        If examples, settings or folder cannot be used, or examples are in two sets.
    ModelLoadError
        If the encoder cannot be loaded.
    MissingExtraError
        Without what training needs: ``pip install "embedtopics[train]"``.

    Examples
    --------
    >>> report = fit("all-MiniLM-L6-v2", pairs, "ranking", out="mine")  # doctest: +SKIP
    >>> report.diagnosis.verdict  # doctest: +SKIP
    'just right'
    """
    if kind is None and isinstance(train, Examples):
        kind = train.kind
    elif kind is None:
        kind = KIND_OF.get(objective, "pairs") if isinstance(objective, str) else "pairs"
    make, own = _objective(objective, kind)
    if kind == "pairs" and isinstance(train, Examples) and train.kind == "triplets":
        kind = "triplets"  # pairs with hard negatives, which are ranked beside those of the batch
    make = partial(make, **{name: options.pop(name) for name in own if name in options})
    also = [name for name in inspect.signature(fit).parameters if name != "options"]
    settings: TrainingSettings = settings_from(TrainingSettings, options, (*also, *own))
    refuse_finished(out, overwrite, resume)
    held = _HeldOut(validation, test, general, corpus, classes, allow_overlap)
    return _run(encoder, train, kind, make, held, settings, Path(out), resume, callbacks)


def _objective(objective: Any, kind: str) -> tuple[Callable[..., Any], list[str]]:
    """Return what makes an objective of examples, and the names of its own parameters."""
    from embedtopics.training.objectives._losses import OBJECTIVES, passed_through

    checked_choice(kind, "kind", OBJECTIVES)
    known = OBJECTIVES[kind]
    if objective is None:
        objective = next(iter(known))
    if not isinstance(objective, str):
        return partial(passed_through, objective), []
    if objective not in known:
        wanted = f"one of {', '.join(known)} for {kind}, or a loss class"
        raise InputError("objective", wanted, objective)
    make = known[objective]
    fixed = make.keywords if isinstance(make, partial) else {}
    named = inspect.signature(make).parameters.values()
    return make, [p.name for p in named if p.kind is p.KEYWORD_ONLY and p.name not in fixed]


def _run(
    encoder: Any,
    train: Any,
    kind: str,
    make_objective: Callable[[Examples, Trainable], Objective],
    held: _HeldOut,
    settings: TrainingSettings,
    out: Path,
    resume: bool,
    callbacks: Sequence[Any],
) -> TrainingReport:
    """Train, keep the best weights, compare with the encoder before, and write it all down."""
    require_libraries()
    from embedtopics.training._report import write_report
    from embedtopics.training.objectives import _trainable as models
    from embedtopics.training.objectives._losses import lengths_of, with_matryoshka
    from embedtopics.training.trainer._trainer import device_and_precision

    device_and_precision(settings)
    held = _readable(held, kind)
    if not callable(train):
        train = read_examples(train, kind)
    trainable = models.trainable_of(encoder, settings)
    if settings.lora_rank is not None:
        state = settings.random_state
        trainable = models.with_lora(trainable, settings.lora_rank, random_state=state)
    folder = check_output_folder(out.expanduser(), trainable.output_kind)
    if callable(train):  # a teacher, which encodes for minutes
        train = read_examples(train(), kind)
    learned, validation, decisions, data = _sets(train, kind, held, settings)
    objective, measured = (make_objective(part, trainable) for part in (learned, validation))
    decisions += _few_used(objective.examples, measured.examples, learned)
    lengths: tuple[int, ...] = ()
    if settings.matryoshka:
        lengths = lengths_of(settings.matryoshka, trainable.n_dimensions)
        objective = with_matryoshka(objective, lengths)
    decisions += [*trainable.decisions, *objective.examples.decisions]
    run = train_measured(
        trainable, objective, measured, settings, checkpoints_of(folder), resume, callbacks
    )
    earlier = _earlier_looks(folder)
    models.save_trainable(trainable, folder, matryoshka=lengths)
    changes = _compare(trainable, folder, held, decisions)
    changes, data["scored_on"] = _counted_looks(changes, held, earlier)
    data["n_learned_from"] = len(objective.examples)
    # Examples carry their decisions along; a value may be a list, which no set can hold.
    said = [*decisions, *run.decisions]
    report = TrainingReport(
        objective=objective.name,
        base=trainable.name,
        folder=str(folder),
        settings=settings.to_dict(),
        data=data,
        before_after=changes,
        versions=package_versions(),
        **vars(replace(run, decisions=tuple(d for i, d in enumerate(said) if d not in said[:i]))),
    )
    write_report(report, folder)
    # Until everything is written, a run that is started again has nothing to learn twice.
    delete_checkpoints(checkpoints_of(folder))
    return report


def train_measured(
    trainable: Trainable,
    objective: Objective,
    measured: Objective,
    settings: TrainingSettings,
    checkpoints: Path,
    resume: bool | None,
    callbacks: Sequence[Any],
) -> Run:
    """Train on the examples of one objective, and measure those of another on the way."""
    from embedtopics.training.trainer._batching import prepare, tokenized
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


def _readable(held: _HeldOut, kind: str) -> _HeldOut:
    """Read what a run is measured on before it begins: errors must not wait until it has ended."""
    from embedtopics.corpus._corpus import Corpus
    from embedtopics.training._compare import MOST_DOCUMENTS, corpus_texts

    def read(sets: Any, name: str, read_as: str) -> dict[str, Examples] | None:
        named = sets if isinstance(sets, Mapping) else {} if sets is None else {name: sets}
        return {
            name: read_examples(given, given.kind if isinstance(given, Examples) else read_as)
            for name, given in named.items()
        } or None

    corpus = None if held.corpus is None else Corpus.of(held.corpus)
    if corpus is not None:
        corpus_texts(corpus, held.classes, MOST_DOCUMENTS)
    test, general = read(held.test, "test", kind), read(held.general, "general", "graded")
    return replace(held, test=test, general=general, corpus=corpus)


def _sets(
    learned: Examples, kind: str, held: _HeldOut, settings: TrainingSettings
) -> tuple[Examples, Examples, list[Decision], dict[str, Any]]:
    decisions = list(learned.decisions)
    refuse = partial(refuse_overlap, allow=held.allow_overlap)
    # All of them, before a part is held out: validation examples have a say in the weights, too.
    for name, examples in held.scored.items():
        decisions += refuse(learned, examples, what=name)
    if held.validation is None:
        learned, validation = split(learned, HELD_OUT, settings.random_state)
        text = f"{len(validation):,} of the examples were held out for validation."
        decisions.append(Decision("training", "held_out", len(validation), text))
    else:
        validation = read_examples(held.validation, kind)
        require_size(validation)
        decisions += refuse(learned, validation, what="validation")
        for name, examples in held.scored.items():
            decisions += refuse(validation, examples, what=name, used_for="validation")
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
        message = f"Only {used:,} of {len(given):,} examples can be used: check their labels."
        warnings.warn(message, stacklevel=4)
        found.append(Decision("training", "few_examples_used", used, message))
    if len(measured) < LEAST_HELD_OUT:
        message = f"Only {len(measured):,} validation examples choose the best weights: give more."
        found.append(Decision("training", "few_validation_examples", len(measured), message))
    return found


def _compare(
    trainable: Trainable, folder: Path, held: _HeldOut, decisions: list[Decision]
) -> tuple[Change, ...]:
    """Compare before and after; both are read in the same way: only training may differ."""
    if held.test is None and held.general is None and held.corpus is None:
        return ()
    from embedtopics.encoders.sentence._encoder import SentenceEncoder
    from embedtopics.training._compare import compare_before_after

    before = trainable.encoder
    after: Any = folder
    if before.transformer is not None:
        # What a folder does not keep.
        asked: dict[str, Any] = {
            "precision": before.transformer.recipe.precision,
            "long_texts": before.transformer.recipe.long_texts,
        }
        usual = {"precision": "float32", "long_texts": "truncate"}
        if asked != usual:
            named = " and ".join(f'{k}="{asked[k]}"' for k in asked if asked[k] != usual[k])
            text = f"Before and after were read with {named}, which the folder does not keep."
            decisions.append(Decision("training", "equal_conditions", [*asked.values()], text))
        after = SentenceEncoder(folder, **asked)
    sets = {"test": held.test, "general": held.general}
    return compare_before_after(before, after, corpus=held.corpus, classes=held.classes, **sets)


def _earlier_looks(folder: Path) -> dict[str, int]:
    """Return how often the report that is replaced says that each test set was scored."""
    from embedtopics.training._report import read_report

    try:
        report = read_report(folder)
    except (InputError, CorruptFileError):
        return {}
    of_task = {change.task: change.n_looks for change in report.before_after}
    scored = report.data.get("scored_on", {})
    return {mark: of_task[task] for task, mark in scored.items() if of_task.get(task)}


def _counted_looks(
    changes: tuple[Change, ...], held: _HeldOut, before: Mapping[str, int]
) -> tuple[tuple[Change, ...], dict[str, str]]:
    """Count, in the report itself, how often runs into this folder were scored on a test set."""
    marks = {task: examples.fingerprint[:32] for task, examples in held.scored.items()}
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


def fit_nli(encoder: Any, train: Any, objective: str = "ranking", **options: Any) -> TrainingReport:
    """Train on inference pairs: a premise, a hypothesis, and the relation between them.

    Parameters
    ----------
    encoder, train, **options
        As for `fit`.
    objective : {"ranking", "softmax"}
        "softmax" classifies the relation from `u`, `v` and `|u - v|` (Reimers and Gurevych 2019).

    Returns
    -------
    TrainingReport

    Examples
    --------
    >>> report = fit_nli("all-MiniLM-L6-v2", "nli.jsonl", out="my-encoder")  # doctest: +SKIP
    """
    return fit(encoder, train, objective, kind="nli", **options)


def fit_sts(encoder: Any, train: Any, objective: str = "cosine", **options: Any) -> TrainingReport:
    """Train on pairs of texts with a similarity score.

    Parameters
    ----------
    encoder, train, **options
        As for `fit`.
    objective : {"cosine", "cosent"}
        "cosent" is for scores of which only the order can be trusted.

    Returns
    -------
    TrainingReport
    """
    return fit(encoder, train, objective, kind="graded", **options)


def fit_pairs(
    encoder: Any, train: Any, *, both_ways: bool = True, scale: float = 20.0, **options: Any
) -> TrainingReport:
    """Train on texts that belong together, such as title and abstract, with in-batch negatives.

    Parameters
    ----------
    encoder, train, **options
        As for `fit`; examples of kind "triplets" are pairs with hard negatives. Larger batches are
        harder, and teach more.
    both_ways : bool
        Whether each text of a pair is ranked from the other.
    scale : float
        Inverse temperature: factor of the cosines before the softmax. A large one stresses the
        nearest negatives and separates texts of one subject; a small one keeps them together (Wang
        and Liu 2021, "Understanding the behaviour of contrastive loss").

    Returns
    -------
    TrainingReport
    """
    options |= {"both_ways": both_ways, "scale": scale}
    return fit(encoder, train, "ranking", kind="pairs", **options)


def fit_triplets(
    encoder: Any, train: Any, objective: str = "ranking", **options: Any
) -> TrainingReport:
    """Train on triplets: an anchor, a text nearer to it, and texts farther from it.

    Parameters
    ----------
    encoder, train, **options
        As for `fit`.
    objective : {"ranking", "triplet"}
        "ranking" compares with the texts of the rest of the batch, too.

    Returns
    -------
    TrainingReport
    """
    return fit(encoder, train, objective, kind="triplets", **options)


def fit_unsupervised(
    encoder: Any, texts: Any, method: str = "simcse", **options: Any
) -> TrainingReport:
    """Train on texts alone.

    What is learned is no task that anybody has: give `test`, or `corpus` and `classes`, to see
    whether it helped.

    Parameters
    ----------
    encoder, **options
        As for `fit`.
    texts : Examples of kind "texts", or what `read_examples` takes
    method : {"simcse", "tsdae"}
        "simcse": a text is nearest to itself under another dropout mask (Gao et al. 2021).
        "tsdae": a text can be reconstructed from the vector of what is left when most of its words
        are deleted (Wang et al. 2021).

    Returns
    -------
    TrainingReport
    """
    checked_choice(method, "method", ("simcse", "tsdae"))
    return fit(encoder, texts, method, kind="texts", **options)


def fit_distilled(
    student: Any,
    teacher: Any,
    texts: Sequence[str],
    *,
    translations: Sequence[str] | Mapping[str, Sequence[str]] | None = None,
    keep_layers: int | Sequence[int] | None = None,
    **options: Any,
) -> TrainingReport:
    """Train a student to give the vectors of a teacher: a smaller one, or one of more languages.

    Parameters
    ----------
    student : str, path, SentenceEncoder or StaticEncoder
        To start from; it is not changed.
    teacher : str, path or Encoder
    texts : sequence of str
        That both encode; they should be of the kind that the student will see.
    translations : sequence of str, or mapping of str to such, optional
        Of each text, into one language, or several by their names: the student gives them the
        vector that the teacher gives the text (Reimers and Gurevych 2020).
    keep_layers : int or sequence of int, optional
        Make the student smaller first: keep so many of its layers, evenly spaced, or those of
        these numbers.
    **options
        As for `fit`. A tenth of the texts is held out for validation.

    Returns
    -------
    TrainingReport
    """
    from embedtopics.training.objectives._losses import teach
    from embedtopics.training.objectives._trainable import fewer_layers

    start = student if keep_layers is None else fewer_layers(student, keep_layers)
    examples = partial(teach, teacher, texts, translations)
    return fit(start, examples, "mse", kind="taught", **options)
