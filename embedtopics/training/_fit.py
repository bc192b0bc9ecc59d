"""Train an encoder: one `fit` for every kind of examples."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from embedtopics._utils.folders import check_output_folder
from embedtopics._utils.machine import package_versions
from embedtopics.corpus._corpus import as_corpus
from embedtopics.errors import CorruptFileError, InputError
from embedtopics.results import Decision
from embedtopics.training._examples import Examples
from embedtopics.training._reading import read_examples
from embedtopics.training._rows import Change, frame_of
from embedtopics.training._settings import TrainingSettings, require_libraries, settings_of
from embedtopics.training._split import (
    LEAST_HELD_OUT,
    in_order,
    overlap,
    refuse_overlap,
    require_size,
    train_test_split,
)
from embedtopics.training.results import TrainingReport
from embedtopics.training.trainer._checkpoints import (
    checkpoints_of,
    delete_checkpoints,
    refuse_finished,
)

if TYPE_CHECKING:
    from embedtopics.training.objectives._objective import Objective
    from embedtopics.training.objectives._trainable import Trainable
    from embedtopics.training.trainer._running import Run

KIND_OF_OBJECTIVE = {
    "softmax": "nli", "cosine": "graded", "cosent": "graded",
    "triplet": "triplets", "margin": "triplets", "simcse": "texts",
}  # fmt: skip
"""Kind of examples that an objective reads where no kind is given; "ranking" reads several."""

HELD_OUT = 0.1
"""Share of the examples that is held out for validation where none are given."""

FEWEST_USED = 0.2
"""Share of the examples below which a warning says that most of them cannot be learned from."""


def fit(
    encoder: Any,
    examples: Any,
    objective: str | Callable[..., Any] | None = None,
    *,
    out: str | os.PathLike[str],
    kind: str | None = None,
    validation: Any = None,
    test: Any = None,
    general: Any = None,
    corpus: Any = None,
    labels: Any = None,
    settings: TrainingSettings | Mapping[str, Any] | None = None,
    objective_params: Mapping[str, Any] | None = None,
    allow_overlap: bool = False,
    resume: bool = True,
    overwrite: bool = False,
) -> TrainingReport:
    """Train an encoder on examples, and keep the weights of the best validation.

    Parameters
    ----------
    encoder : str, path, SentenceEncoder, StaticEncoder or CachedEncoder
        Encoder that training starts from; it is not changed.
    examples : Examples, or what `read_examples` takes
        Training examples: a file, a frame, a `datasets.Dataset`, or a list of tuples or dicts.
    objective : str, class or callable, optional
        By the kind of examples; the first is the default:

        - nli: "ranking" (a premise is nearest to what it entails; contradictions are hard
          negatives), "softmax" (Reimers and Gurevych 2019)
        - graded: "cosine" (the cosine is the score), "cosent" (only the order of scores counts)
        - pairs: "ranking" (the other texts of a batch are negatives; larger batches hold more)
        - triplets: "ranking" (as for pairs, with hard negatives), "triplet" (nearer than the
          negative by a margin)
        - texts: "simcse" (a text is nearest to itself under another dropout mask; Gao et al. 2021)

        Or a loss of sentence-transformers: its class, or a function that takes the model and
        returns the loss.
    out : path
        Folder for the encoder, its report and its model card. During training,
        ``<out>.training`` holds checkpoints.
    kind : {"nli", "graded", "pairs", "triplets", "texts"}, optional
        Kind that a file, frame or list is read as; `Examples` know theirs, and of the objectives
        all but "ranking" belong to one kind. Examples of kind "triplets" with ``kind="pairs"`` are
        pairs with hard negatives.
    validation : Examples, or what `read_examples` takes, optional
        Examples that choose the weights. By default a tenth of the training examples, which share
        no text with the rest.
    test, general : Examples, what `read_examples` takes, or mapping of name to such, optional
        Held-out examples of the task, and of another domain, which show what was forgotten. The
        encoder is scored on them before and after; see `before_after` of the report.
    corpus : Corpus, or what `Corpus` takes, optional
        Texts on which neighbors and topics are compared before and after.
    labels : str or array_like, optional
        Column of the corpus, or a class for each of its rows.
    settings : TrainingSettings or mapping, optional
        Such as ``{"epochs": 1}``; see `TrainingSettings`.
    objective_params : mapping, optional
        Parameters of the objective: "scale" (inverse temperature: factor of the cosines before the
        softmax, 20 by default; a large value stresses the nearest negatives and separates texts of
        one subject, a small one keeps them together; Wang and Liu 2021), "both_ways" (rank each
        text of a pair from the other, which is the default for pairs and nli), "margin" (of
        "triplet", 0.2 by default).
    allow_overlap : bool
        Allow examples in two of the sets for training, validation and test.
    resume : bool
        Continue from a checkpoint of the same run in ``<out>.training``, to the same weights: on a
        CPU to the last bit, on a GPU up to its rounding. False starts over.
    overwrite : bool
        Replace a finished encoder in `out`.

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
        Without the libraries of training: ``pip install "embedtopics[train]"``.

    References
    ----------
    Reimers and Gurevych (2019), "Sentence-BERT: sentence embeddings using siamese BERT-networks".
    Gao, Yao and Chen (2021), "SimCSE: simple contrastive learning of sentence embeddings".
    Wang and Liu (2021), "Understanding the behaviour of contrastive loss".

    Examples
    --------
    >>> import tempfile
    >>> import embedtopics as et
    >>> nouns, verbs = ["dog", "cat", "bird", "cow", "fish"], ["runs", "sleeps", "eats", "jumps"]
    >>> texts = [f"the {noun} {verb}" for noun in nouns for verb in verbs]
    >>> folder = tempfile.TemporaryDirectory()
    >>> tokenizer = et.pretraining.train_tokenizer(texts, vocab_size=80)
    >>> encoder = et.pretraining.new_encoder(
    ...     tokenizer, out=f"{folder.name}/empty", n_layers=1, dimensions=16
    ... )
    >>> pairs = [(text, text.replace("the", "a")) for text in texts]
    >>> report = et.training.fit(
    ...     encoder, pairs, kind="pairs", validation=pairs, allow_overlap=True,
    ...     settings={"max_steps": 2, "device": "cpu"}, out=f"{folder.name}/tuned",
    ... )
    >>> report.objective, report.n_steps
    ('pairs: ranking, both ways', 2)
    >>> et.training.TrainingReport.load(f"{folder.name}/tuned").n_steps
    2
    >>> folder.cleanup()
    """
    require_libraries()
    from embedtopics.training.objectives import _trainable as models
    from embedtopics.training.objectives._losses import find_objective
    from embedtopics.training.trainer._trainer import device_and_precision

    if isinstance(encoder, Examples):
        remedy = "call et.training.fit(encoder, examples, out=...)"
        raise InputError("encoder", "an encoder, or its name or folder", encoder, remedy)
    kind = _kind_of(examples, objective, kind)
    # Triplets are pairs with hard negatives.
    is_pairs_of_triplets = kind == "pairs" and getattr(examples, "kind", None) == "triplets"
    read_as = "triplets" if is_pairs_of_triplets else kind

    make_objective, names = find_objective(objective, kind)
    own_params = dict(objective_params or {})
    unknown = [name for name in own_params if name not in names]
    if unknown:
        expected = f"parameters of the objective ({', '.join(names) or 'it has none'})"
        raise InputError("objective_params", expected, unknown[0])

    checked = settings_of(settings)
    device_and_precision(checked)
    refuse_finished(out, overwrite, resume)
    sets = _read_sets(_Sets(validation, test, general, corpus, labels, allow_overlap), read_as)
    trainable = models.trainable_of(encoder, checked)
    folder = check_output_folder(Path(out).expanduser(), trainable.output_kind)
    make_objective = partial(make_objective, **own_params)
    job = _Job(trainable, make_objective, sets, checked, folder, resume)
    return _train(job, read_examples(examples, read_as))


def _kind_of(examples: Any, objective: Any, kind: str | None) -> str:
    """Return the kind that is given, or that the examples or the objective have."""
    if kind is not None:
        return kind
    if isinstance(examples, Examples):
        return examples.kind
    if isinstance(objective, str) and objective in KIND_OF_OBJECTIVE:
        return KIND_OF_OBJECTIVE[objective]
    from embedtopics.training.objectives._losses import OBJECTIVES

    raise InputError(
        "kind", f"one of {', '.join(OBJECTIVES)} for examples from a file or a list", None
    )


@dataclass(frozen=True, eq=False)
class _Sets:
    """Examples and texts that a run is measured on; see `fit`."""

    validation: Any = None
    test: Any = None
    general: Any = None
    corpus: Any = None
    labels: Any = None
    allow_overlap: bool = False

    @property
    def scored(self) -> dict[str, Examples]:
        """Sets that the encoder is scored on before and after, by name."""
        return {**(self.test or {}), **(self.general or {})}


@dataclass(frozen=True, eq=False)
class _Job:
    """A run that is checked: nothing slow begins before all bad input is refused."""

    trainable: Trainable
    make_objective: Callable[[Examples, Trainable], Objective]
    sets: _Sets
    settings: TrainingSettings
    folder: Path
    resume: bool


def _read_sets(sets: _Sets, kind: str) -> _Sets:
    """Read everything that a run is measured on."""

    def read(value: Any, name: str, read_as: str) -> dict[str, Examples] | None:
        named = value if isinstance(value, Mapping) else {} if value is None else {name: value}
        return {
            key: read_examples(each, each.kind if isinstance(each, Examples) else read_as)
            for key, each in named.items()
        } or None

    corpus = sets.corpus
    if corpus is not None:
        from embedtopics.training._compare import corpus_texts

        corpus = as_corpus(corpus)
        corpus_texts(corpus, sets.labels)
    validation = sets.validation
    if validation is not None:
        validation = read_examples(validation, kind)
        require_size(validation)
    test, general = read(sets.test, "test", kind), read(sets.general, "general", "graded")
    return replace(sets, validation=validation, test=test, general=general, corpus=corpus)


def _train(job: _Job, examples: Examples) -> TrainingReport:
    """Train, keep the best weights, compare with the encoder before, and write the report."""
    from embedtopics.training._report import write_report
    from embedtopics.training.objectives import _trainable as models

    # Stage 1: training and validation examples, with their objectives.
    trainable, settings, folder = job.trainable, job.settings, job.folder
    learned, validation, decisions, data = _training_and_validation(job, examples)
    objective, measured = (job.make_objective(part, trainable) for part in (learned, validation))
    decisions += _too_few(objective.examples, measured.examples, learned)
    decisions += [*trainable.decisions, *objective.examples.decisions]
    # Stage 2: training.
    checkpoints = checkpoints_of(folder)
    run = train_measured(trainable, objective, measured, settings, checkpoints, job.resume)
    # Stage 3: the encoder, and what became better or worse.
    earlier = _earlier_evaluations(folder)
    models.save_trainable(trainable, folder)
    changes = _compare(trainable, folder, job.sets, decisions)
    changes, data["scored_on"] = _count_evaluations(changes, job.sets, earlier)
    data["n_learned_from"] = len(objective.examples)
    # Stage 4: the report.
    every = [*decisions, *run.decisions]  # a value may be a list, which no set can hold
    distinct = tuple(each for place, each in enumerate(every) if each not in every[:place])
    report = TrainingReport(
        objective=objective.name,
        base=trainable.name,
        folder=str(folder),
        settings=settings.to_dict(),
        data=data,
        before_after=frame_of(changes, Change),
        versions=package_versions(),
        **vars(replace(run, decisions=distinct)),
    )
    write_report(report, folder)
    # Only now: a run that is started again before has nothing to learn twice.
    delete_checkpoints(checkpoints)
    return report


def _training_and_validation(
    job: _Job, learned: Examples
) -> tuple[Examples, Examples, list[Decision], dict[str, Any]]:
    """Return training and validation examples, decisions, and their part of the report."""
    sets, decisions = job.sets, list(learned.decisions)
    refuse = partial(refuse_overlap, allow=sets.allow_overlap)
    # Before a part is held out: validation examples choose the weights, so they count too.
    for name, examples in sets.scored.items():
        decisions += refuse(learned, examples, what=name)
    if sets.validation is None:
        learned, validation = train_test_split(
            learned, HELD_OUT, random_state=job.settings.random_state
        )
        text = f"{len(validation):,} of the examples were held out for validation."
        decisions.append(Decision("training", "held_out", len(validation), text))
    else:
        validation = sets.validation
        decisions += refuse(learned, validation, what="validation")
        for name, examples in sets.scored.items():
            decisions += refuse(validation, examples, what=name, used_for="validation")
    data = {
        "n_train": len(learned),
        "n_validation": len(validation),
        "train": learned.source,
        "validation": validation.source,
        "n_texts_shared_with_validation": overlap(learned, validation).n_shared_texts,
    }
    # The weights do not depend on the order of the rows.
    return learned.take(in_order(learned)), validation.take(in_order(validation)), decisions, data


def _too_few(learned: Examples, measured: Examples, examples: Examples) -> list[Decision]:
    """Warn where an objective can use few of the examples."""
    decisions = []
    used = next((d.value for d in learned.decisions if d.name == "examples_used"), len(examples))
    if used < FEWEST_USED * len(examples):
        message = f"Only {used:,} of {len(examples):,} examples can be used: check their labels."
        warnings.warn(message, stacklevel=4)
        decisions.append(Decision("training", "few_examples_used", used, message))
    if len(measured) < LEAST_HELD_OUT:
        message = f"Only {len(measured):,} validation examples choose the weights: give more."
        decisions.append(Decision("training", "few_validation_examples", len(measured), message))
    return decisions


def train_measured(
    trainable: Trainable,
    objective: Objective,
    measured: Objective,
    settings: TrainingSettings,
    checkpoints: Path,
    resume: bool | None,
) -> Run:
    """Train on the examples of one objective, and validate on those of another."""
    from embedtopics.training.objectives._losses import selecting_by
    from embedtopics.training.trainer._batching import prepare, tokenized
    from embedtopics.training.trainer._running import train

    objective = selecting_by(objective, settings.metric)
    identity = {
        "encoder": trainable.fingerprint,
        "objective": objective.name,
        "training examples": objective.examples.fingerprint,
        "validation examples": measured.examples.fingerprint,
        "settings": settings.to_dict(),
    }
    data = prepare(trainable, objective, settings.random_state)
    held_out = tokenized(trainable, measured.examples)
    return train(data, held_out, settings, checkpoints, identity, resume)


def _compare(
    trainable: Trainable, folder: Path, sets: _Sets, decisions: list[Decision]
) -> tuple[Change, ...]:
    """Compare before and after; both are read with the same settings."""
    if sets.test is None and sets.general is None and sets.corpus is None:
        return ()
    from embedtopics.encoders.sentence._encoder import SentenceEncoder
    from embedtopics.training._compare import compare_before_after

    before: Any = trainable.encoder
    after: Any = folder
    transformer = before.transformer
    if transformer is not None:
        # Settings that a folder does not store.
        recipe, usual = transformer.recipe, {"precision": "float32", "long_texts": "truncate"}
        read_as = {"precision": recipe.precision, "long_texts": recipe.long_texts}
        if read_as != usual:
            options = " and ".join(f'{k}="{v}"' for k, v in read_as.items() if v != usual[k])
            text = f"Before and after were read with {options}, which the folder does not store."
            decisions.append(Decision("training", "equal_conditions", [*read_as.values()], text))
        after = SentenceEncoder(folder, **read_as)
    return compare_before_after(
        before, after, test=sets.test, general=sets.general, corpus=sets.corpus,
        labels=sets.labels,
    )  # fmt: skip


def _earlier_evaluations(folder: Path) -> dict[str, int]:
    """Return how often each test set was scored, by the report that is replaced."""
    from embedtopics.training._report import read_report

    try:
        report = read_report(folder)
    except (InputError, CorruptFileError):
        return {}
    changes = report.before_after
    of_task = dict(zip(changes["task"], changes["n_test_evaluations"], strict=True))
    scored = report.data.get("scored_on", {})
    return {mark: of_task[task] for task, mark in scored.items() if of_task.get(task)}


def _count_evaluations(
    changes: tuple[Change, ...], sets: _Sets, earlier: Mapping[str, int]
) -> tuple[tuple[Change, ...], dict[str, str]]:
    """Count how often runs into this folder were scored on a test set (the test set log)."""
    marks = {task: examples.fingerprint[:32] for task, examples in sets.scored.items()}
    counted = []
    for change in changes:
        n = earlier.get(marks.get(change.task, ""), 0) + 1
        if change.task in marks and n > 1:
            note = (
                f"Runs into this folder were scored {n} times on these examples. Choices made "
                "after such a score make the figure too high and the interval too narrow."
            )
            change = replace(change, n_test_evaluations=n, note=f"{change.note} {note}".strip())
        counted.append(change)
    return tuple(counted), marks
