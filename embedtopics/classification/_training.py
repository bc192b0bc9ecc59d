"""Train the encoder of a classifier: "few_shot", "fine_tune" with all weights, and "auto"."""

from __future__ import annotations

import json
import logging
import shutil
import tempfile
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from embedtopics._utils.checks import checked_between
from embedtopics._utils.display import progress_bar, spell_count
from embedtopics._utils.folders import check_output_folder
from embedtopics._utils.machine import package_versions
from embedtopics.classification._heads import (
    FittedHead,
    LinearHead,
    confusion_of,
    cross_fit,
    grouped_folds,
    kappa,
    n_folds_for,
    near_duplicates,
    precision_recall_f1,
    probabilities,
    sample_weights,
)
from embedtopics.classification._pairs import (
    FEW_SHOT,
    RATE_OF_WIDTH,
    fit_few_shot,
    label_marks,
    load_trained,
    settings_mapping,
)
from embedtopics.classification._targets import LabelledTexts
from embedtopics.encoders._registry import resolve_encoder
from embedtopics.encoders.sentence._encoder import SentenceEncoder
from embedtopics.errors import InputError
from embedtopics.protocols import Float64Array, FloatArray, Int32Array, Int64Array
from embedtopics.results import Decision
from embedtopics.training._examples import Examples
from embedtopics.training._rows import Change, frame_of
from embedtopics.training._settings import (
    TrainingSettings,
    require_libraries,
    settings_of,
)
from embedtopics.training.results import TrainingReport
from embedtopics.training.trainer._checkpoints import (
    checkpoints_of,
    delete_checkpoints,
    output_folder,
)

if TYPE_CHECKING:
    import os

    from torch import nn

    from embedtopics.classification._classifier import TextClassifier
    from embedtopics.training.objectives._trainable import Trainable

_log = logging.getLogger(__name__)

BATCH = 16
FINE_TUNE = {"patience": None, "batch_size": BATCH, "sample_size": 64}
"""Added to the defaults of training, with the numbers of steps and the learning rate below."""

EPOCHS, LEAST_STEPS = 3, 120
"""Passes over the texts, and minimum number of optimizer steps. With 100 TREC questions, the macro
F1 of 200 others was .65 before the first step, .89 after 45 and after 120 (one draw)."""

VALIDATIONS = 12
"""Validations of a run, however many epochs it has."""

HELD_OUT = 0.1
"""Default share of the texts on which "fine_tune" is measured."""

FEWEST_TO_CHOOSE = 100
"""Validation texts from which on the best validation chooses the weights, not the last one."""

CALIBRATION_FOLDS, COMPARISON_FOLDS = 2, 3
"""Folds of methods that train an encoder; one temperature needs fewer than a choice of methods."""

MOST_SECONDS = 900
"""Processor seconds that "auto" may spend on comparing, as predicted from counts."""

FLOPS = 3e10
"""Operations in a processor second, from the examples a second of "fine_tune" (benchmarks)."""

CHARACTERS_A_TOKEN = 4.5

DEPTHS = ("num_hidden_layers", "n_layers", "num_layers")
"""Names of the number of layers in configurations."""


@dataclass(frozen=True)
class _Ulmfit:
    """Options after Howard and Ruder (2018), "Universal language model fine-tuning"."""

    layer_decay: float = 1.0  # 1 / 2.6 there (section 3.2)
    slanted: bool = False  # equation 3
    unfreezing: bool = False  # section 3.3

    def __post_init__(self) -> None:
        checked_between(self.layer_decay, "layer_decay", 0, 1, closed=True)


Fit = Callable[[LabelledTexts, "LabelledTexts | None", Path], FittedHead]
"""Trains on texts, scores held-out texts, and writes the encoder to a folder."""


def fit_trained(
    model: TextClassifier,
    labelled: LabelledTexts,
    validation: LabelledTexts | None,
    class_weights: Float64Array | None,
    seed: int,
    out: str | os.PathLike[str] | None,
) -> tuple[str, FittedHead]:
    """Train the encoder of a classifier and its head; return the method as well."""
    if model.method == "fine_tune":
        require_libraries()
    folder = output_folder(out, "classifier", resume=True)
    method, options = model.method, {"random_state": seed, **settings_mapping(model.settings)}
    if method != "fine_tune" and validation is not None:
        raise InputError("validation", f'left out for method="{method}"')
    few_shot: Fit = lambda texts, held_out, target: fit_few_shot(  # noqa: E731
        model, texts, held_out, class_weights, options, target
    )
    resume = None if out is None else True
    fine_tune = partial(_fine_tune, model, class_weights, options, resume)
    comparison: _Comparison | None = None
    if method == "auto":
        # Weights that the left-out texts chose would score too high on them.
        last = partial(_fine_tune, model, class_weights, {**options, "keep": "last"}, None)
        comparison = _compare(model, labelled, class_weights, seed, few_shot, last)
        method = comparison.best
    if method == "frozen":
        fit = model._fit_frozen(labelled, class_weights, seed)
    elif method == "few_shot":
        fit = few_shot(labelled, None, folder)
        if comparison is None and model.calibration is not None:
            folds = _folds(labelled, seed, CALIBRATION_FOLDS)
            scores = _cross_fitted(few_shot, model.head, labelled, folds, np.unique(folds))
            fit = fit._replace(left_out_scores=scores, left_out_codes=labelled.codes)
    else:
        train, held_out = _split(labelled, seed) if validation is None else (labelled, validation)
        fit = fine_tune(train, held_out, folder)
        if validation is None:
            n = len(held_out.texts)
            message = f"{spell_count(n, 'text was', 'texts were')} held out to measure training."
            decision = Decision("classification", "held_out", n, message)
            fit = fit._replace(decisions=(decision, *fit.decisions))
    if comparison is not None:
        fit = fit._replace(
            left_out_scores=comparison.scores,
            left_out_codes=comparison.codes,
            decisions=(comparison.decision, *fit.decisions),
        )
    if fit.report is not None:
        from embedtopics.training._report import write_report

        write_report(fit.report, folder)
        delete_checkpoints(checkpoints_of(folder))
    if method != "frozen":
        fit = fit._replace(encoder=load_trained(folder))
    if out is None:  # the temporary folder lives as long as the encoder
        weakref.finalize(fit.encoder, shutil.rmtree, folder.parent, ignore_errors=True)
    return method, fit


def _split(labelled: LabelledTexts, seed: int) -> tuple[LabelledTexts, LabelledTexts]:
    """Split texts into training and validation texts, stratified, near-duplicates together."""
    folds = _folds(labelled, seed, round(1 / HELD_OUT))
    return labelled.take(np.flatnonzero(folds != 0)), labelled.take(np.flatnonzero(folds == 0))


def _folds(labelled: LabelledTexts, seed: int, n_folds: int) -> Int32Array:
    groups = near_duplicates(labelled.texts, None)
    return grouped_folds(labelled.codes, groups, n_folds_for(labelled.codes, n_folds), seed)


def _cross_fitted(
    fit: Fit, head: str, labelled: LabelledTexts, folds: Int32Array, used: Int32Array
) -> Float64Array:
    """Return the scores of the texts of some folds, each by a fit to all other folds."""
    n_outputs = len(labelled.classes) - (head == "ordinal")
    scores = np.full((len(folds), n_outputs), -30.0)
    for fold in used.tolist():
        rows, others = np.flatnonzero(folds == fold), np.flatnonzero(folds != fold)
        with tempfile.TemporaryDirectory() as temporary:
            target = Path(temporary) / "encoder"
            of_fold = fit(labelled.take(others), labelled.take(rows), target).left_out_scores
        scores[rows, : of_fold.shape[1]] = of_fold
    return scores[np.isin(folds, used)]


class _Comparison(NamedTuple):
    """The best method, and the scores (n_texts, n_outputs) that it gave to left-out texts."""

    best: str
    scores: Float64Array
    codes: Int64Array
    decision: Decision


def _compare(
    model: TextClassifier,
    labelled: LabelledTexts,
    class_weights: Float64Array | None,
    seed: int,
    few_shot: Fit,
    fine_tune: Fit,
) -> _Comparison:
    """Cross-validate the methods whose predicted time is short enough."""
    folds, codes = _folds(labelled, seed, COMPARISON_FOLDS), labelled.codes
    used, seconds = np.unique(folds), _predicted_seconds(model, labelled)
    if sum(seconds.values()) * len(used) > MOST_SECONDS:
        used = used[:1]
    fits, total = {}, 0.0
    for name in sorted(seconds, key=lambda name: seconds[name]):
        if total + seconds[name] * len(used) <= MOST_SECONDS:
            fits[name] = few_shot if name == "few_shot" else fine_tune
            total += seconds[name] * len(used)
    if fits:
        require_libraries()
    model._fit_frozen(labelled, class_weights, seed)
    vectors, weights = model._vectors(labelled.texts), sample_weights(codes, class_weights)
    rows = np.isin(folds, used)
    scores = {"frozen": cross_fit(model.head, vectors, codes, folds, weights)[1][rows]}
    _log.info("Comparing %s takes about %d s.", ", ".join(["frozen", *fits]), total)
    show = settings_mapping(model.settings).get("show_progress")
    name = f"Comparing, about {total:.0f} s"
    with progress_bar(total=len(fits), unit="method", description=name, show=show) as bar:
        for name, fit in fits.items():
            scores[name] = _cross_fitted(fit, model.head, labelled, folds, used)
            bar.update(1)
    marks = label_marks(codes[rows], len(labelled.classes), model.head == "ordinal")
    figures = {name: _score(model.head, each, marks) for name, each in scores.items()}
    best = max(figures, key=lambda name: figures[name])
    each = ", ".join(f"{name} {figure:.3f}" for name, figure in figures.items())
    message = f"{METRIC_OF.get(model.head, 'Macro F1')} on {rows.sum():,} left-out texts: {each}; "
    message += f"{best} was taken."
    for name in (name for name in seconds if name not in fits):
        message += f" {name} was not tried: it takes about {seconds[name] / 60:.0f} minutes."
    decision = Decision("classification", "method", figures, message)
    return _Comparison(best, scores[best], codes[rows], decision)


def _predicted_seconds(model: TextClassifier, labelled: LabelledTexts) -> dict[str, float]:
    """Predict the processor seconds that each method that can train the encoder takes.

    From counts, not from a clock: the same texts are always compared in the same way.
    """
    encoder = resolve_encoder(model.encoder)
    if encoder.static is not None:
        return {"few_shot": 0.0}
    if encoder.transformer is None:
        return {}
    recipe = encoder.transformer.recipe
    epochs = settings_mapping(model.settings).get("epochs")
    n_texts = len(labelled.texts)
    configuration = json.loads(recipe.checkpoint.configuration)
    depth = next((configuration[name] for name in DEPTHS if name in configuration), 0)
    n_weights = 12 * depth * (recipe.checkpoint.width or 0) ** 2
    lengths = [len(text) / CHARACTERS_A_TOKEN + 2 for text in labelled.texts]
    n_tokens = np.minimum(lengths, recipe.max_length or np.inf).mean()
    n_read = {
        "few_shot": n_texts * (epochs or FEW_SHOT["epochs"]),
        "fine_tune": n_texts * epochs if epochs else max(BATCH * LEAST_STEPS, n_texts * EPOCHS),
    }
    return {name: n * n_tokens * 6 * n_weights / FLOPS for name, n in n_read.items()}


def _fine_tune(
    model: TextClassifier,
    class_weights: Float64Array | None,
    options: dict[str, Any],
    resume: bool | None,
    labelled: LabelledTexts,
    held_out: LabelledTexts,
    folder: Path,
) -> FittedHead:
    """Train all weights, beginning with the head of "frozen" (Kumar et al. 2022)."""
    from embedtopics.training._fit import train_measured
    from embedtopics.training.objectives import _trainable as models
    from embedtopics.training.objectives._objective import Objective
    from embedtopics.training.trainer._trainer import device_and_precision

    options = dict(options)
    extra = _Ulmfit(**{name: options.pop(name) for name in vars(_Ulmfit()) if name in options})
    encoder = models.transformer_of(model.encoder)
    settings = _settings(options, encoder, len(labelled.texts), len(held_out.texts))
    device_and_precision(settings)
    trainable = models.trainable_of(encoder, settings)
    folder = check_output_folder(folder, trainable.output_kind)
    kind = model.head
    start = model._fit_frozen(labelled, class_weights, settings.random_state).head
    loss = _head_loss(start, len(labelled.classes), class_weights, _dropout(trainable))
    examples, measured_on = (_examples(part, kind) for part in (labelled, held_out))
    changed = [f", {name} {v}" for name, v in vars(extra).items() if v not in (1.0, False)]
    objective = Objective(
        f"classification: {kind}{''.join(changed)}",
        examples,
        lambda *_: loss,
        METRIC_OF.get(kind, "macro F1"),
        partial(_metric, kind),
        optimizers=partial(_optimizers, extra),
    )
    measured = replace(objective, examples=measured_on)
    run = train_measured(trainable, objective, measured, settings, checkpoints_of(folder), resume)
    loss.to("cpu")
    trainable.model.to("cpu")
    models.save_trainable(trainable, folder)
    run = replace(run, decisions=(*trainable.decisions, *run.decisions))
    report = TrainingReport(
        objective=objective.name,
        base=trainable.name,
        folder=str(folder),
        settings={**settings.to_dict(), **vars(extra)},
        data={"n_train": len(examples), "n_validation": len(measured_on),
              "n_learned_from": len(examples),
              "train": examples.source, "validation": measured_on.source},
        before_after=frame_of((), Change),
        versions=package_versions(),
        **vars(run),
    )  # fmt: skip
    head, trained = _linear(kind, loss), load_trained(folder, backend="torch")
    scores = head.scores(trained.encode(held_out.texts))
    return FittedHead(trained, head, scores, held_out.codes, report.decisions, report)


def _settings(
    options: dict[str, Any], encoder: SentenceEncoder, n_texts: int, n_held_out: int
) -> TrainingSettings:
    """Return the settings of training, with defaults by the number of texts and the encoder."""
    options = {**FINE_TUNE, **options}
    if "epochs" not in options:
        n_steps = round(EPOCHS * n_texts / options["batch_size"])
        n_steps = options.setdefault("max_steps", max(LEAST_STEPS, n_steps))
        n_epochs = max(1.0, n_steps * options["batch_size"] / n_texts)
        options.setdefault("validations_per_epoch", VALIDATIONS / n_epochs)
    options.setdefault("learning_rate", RATE_OF_WIDTH / (encoder.recipe.checkpoint.width or 768))
    options.setdefault("keep", "best" if n_held_out >= FEWEST_TO_CHOOSE else "last")
    return settings_of(options)


def _examples(labelled: LabelledTexts, kind: str) -> Examples:
    marks = label_marks(labelled.codes, len(labelled.classes), kind == "ordinal")
    rows, texts = np.arange(len(marks), dtype=np.int64), (tuple(labelled.texts),)
    return Examples("labelled", texts, marks, rows, source="labelled texts")


def _dropout(trainable: Trainable) -> float:
    config: Any = trainable.model[0].model.config  # type: ignore[union-attr]
    names = ("classifier_dropout", "seq_classif_dropout", "hidden_dropout_prob")
    rates = (getattr(config, name, None) for name in names)
    return float(next((rate for rate in rates if rate is not None), 0.1))


def _head_loss(
    start: LinearHead, n_classes: int, class_weights: Float64Array | None, dropout: float
) -> nn.Module:
    """Return a head with its loss; labels are those of `label_marks`."""
    import torch
    from torch import nn
    from torch.nn import functional

    kind, width = start.kind, start.weights.shape[1]
    n_outputs = n_classes - (kind == "ordinal")
    n_absent = n_outputs - len(start.bias)  # the last classes, if no training text has them
    bias = torch.tensor(np.append(start.bias, -30.0 - np.arange(n_absent))).float()
    slopes = start.weights[:1] if kind == "ordinal" else start.weights
    slopes = np.vstack([slopes, np.zeros((n_absent * (kind != "ordinal"), width))])
    weights = None if class_weights is None else torch.tensor(class_weights).float()

    class _HeadLoss(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(width, len(slopes))
            self.linear.weight.data = torch.tensor(slopes).float()
            self.linear.bias.data = torch.zeros(1) if kind == "ordinal" else bias
            self.dropout = nn.Dropout(dropout)
            if kind == "ordinal":
                self.first = nn.Parameter(-bias[0])
                self.steps = nn.Parameter(torch.log(-torch.diff(bias)))

        def scores(self, vectors: Any) -> Any:
            scores = self.linear(self.dropout(vectors))
            if kind != "ordinal":
                return scores
            steps = torch.cumsum(torch.exp(self.steps), dim=0)
            thresholds = self.first + torch.cat([steps.new_zeros(1), steps])
            return scores - thresholds

        def forward(self, features: list[dict[str, Any]], labels: Any) -> Any:
            scores = self.scores(features[0]["sentence_embedding"])
            of_class = None if weights is None else weights.to(scores.device)
            if kind == "softmax":
                return functional.cross_entropy(scores, labels.argmax(dim=1), of_class)
            if kind == "multilabel":
                return functional.binary_cross_entropy_with_logits(scores, labels, of_class)
            above = functional.pad(torch.sigmoid(scores), (1, 0), value=1.0)
            chances = -torch.diff(functional.pad(above, (0, 1)), dim=1)
            codes = labels.sum(dim=1).long() - 1
            return functional.nll_loss(chances.clamp_min(1e-7).log(), codes, of_class)

    return _HeadLoss()


def _linear(kind: str, loss: Any) -> LinearHead:
    """Return the head of a trained loss as arrays."""
    import torch

    with torch.no_grad():
        weight = loss.linear.weight.double().numpy()
        loss.eval()
        bias = loss.scores(torch.zeros(1, weight.shape[1])).double().numpy()[0]
    return LinearHead(kind, np.repeat(weight, len(bias) // len(weight), axis=0), bias)


METRIC_OF = {"ordinal": "quadratic kappa"}
"""What chooses weights and methods; the macro F1 for other heads."""


def _metric(
    kind: str, embeddings: Sequence[FloatArray], labels: Any, loss: Any, keys: Any = None
) -> float:
    """Return the macro F1, or the quadratic kappa of ordinal classes."""
    import torch

    with torch.no_grad():
        device = next(loss.parameters()).device
        scores = loss.scores(torch.from_numpy(embeddings[0]).to(device)).double().cpu().numpy()
    return _score(kind, scores, labels)


def _score(kind: str, scores: Float64Array, marks: Any) -> float:
    """Return the macro F1 or kappa of scores; labels are those of `label_marks`."""
    chances, truth = probabilities(kind, scores), np.asarray(marks).astype(np.int64)
    n_classes = chances.shape[1]
    best = chances.argmax(axis=1)
    if kind == "ordinal":
        return float(kappa(confusion_of(truth.sum(axis=1) - 1, best, n_classes)))
    guess = chances >= 0.5 if kind == "multilabel" else np.eye(n_classes, dtype=np.bool_)[best]
    counts = ((a * b).sum(axis=0) for a, b in ((truth, guess), (truth, 1), (guess, 1)))
    return float(precision_recall_f1(*counts)["f1"].mean())


def _optimizers(extra: _Ulmfit, data: Any, arguments: Any, n_steps_per_epoch: int) -> Any:
    """Return AdamW with one parameter group a layer, and its learning rate schedule."""
    import torch

    from embedtopics.training.objectives._trainable import layers_of

    if extra == _Ulmfit():
        return None
    transformer = data.model[0].model
    layers = [[layer] for layer in layers_of(transformer)]
    grouped: set[int] = set()
    groups: list[dict[str, Any]] = []
    depths: list[int] = []
    for depth, part in enumerate(
        [[data.loss, *list(data.model)[1:]], *layers[::-1], [transformer]]
    ):
        weights = [w for module in part for w in module.parameters() if id(w) not in grouped]
        grouped |= set(map(id, weights))
        rate = arguments.learning_rate * extra.layer_decay**depth
        for decay, is_plain in ((arguments.weight_decay, False), (0.0, True)):
            # Biases and layer norms are not decayed.
            params = [w for w in weights if w.requires_grad and (w.ndim < 2) == is_plain]
            if params:
                groups.append({"params": params, "lr": rate, "weight_decay": decay})
                depths.append(depth)
    optimizer = torch.optim.AdamW(groups)
    total, n_warm = arguments.max_steps, max(1, arguments.warmup_steps)

    def factor(depth: int, step: int) -> float:
        if extra.unfreezing and step < depth * n_steps_per_epoch:
            return 0.0
        if step < n_warm:
            return float(step / n_warm)
        decay = float(max(0, total - step) / max(1, total - n_warm))
        # Slanted triangular rates end at a 32nd of the peak (equation 3).
        return (1 + 31 * decay) / 32 if extra.slanted else decay

    factors: list[Any] = [partial(factor, depth) for depth in depths]
    return optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, factors)
