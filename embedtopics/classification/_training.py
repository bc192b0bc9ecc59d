"""Train the encoder of a classifier: "few_shot", and "fine_tune" with all weights."""

from __future__ import annotations

import shutil
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from embedtopics._utils.checks import checked_between
from embedtopics._utils.display import spell_count
from embedtopics._utils.folders import check_output_folder
from embedtopics._utils.machine import package_versions
from embedtopics.classification._heads import (
    FittedHead,
    LinearHead,
    confusion_of,
    grouped_folds,
    kappa,
    n_folds_for,
    near_duplicates,
    precision_recall_f1,
    probabilities,
)
from embedtopics.classification._pairs import fit_few_shot, label_marks, load_trained
from embedtopics.classification._targets import LabelledTexts
from embedtopics.decisions import Decision
from embedtopics.encoders.sentence._encoder import SentenceEncoder
from embedtopics.errors import InputError
from embedtopics.protocols import Float64Array, FloatArray
from embedtopics.training._examples import Examples
from embedtopics.training._settings import (
    TrainingSettings,
    require_libraries,
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

FINE_TUNE = {"patience": None, "batch_size": 16, "sample_size": 128}
"""Added to the defaults: 3 epochs, a peak learning rate of 2e-5, weight decay of 0.01."""

HELD_OUT = 0.1
"""Default share of the texts on which "fine_tune" chooses its weights."""

ACTIVATIONS = {"distilbert": "ReLU", "electra": "GELU"}
"""Activation after the dense layer that reads the first token, as in transformers' classifiers of
a family; "Tanh" for the others."""


@dataclass(frozen=True)
class _Ulmfit:
    """Options after Howard and Ruder (2018), "Universal language model fine-tuning"."""

    layer_decay: float = 1.0  # 1 / 2.6 there (section 3.2)
    slanted: bool = False  # equation 3
    unfreezing: bool = False  # section 3.3

    def __post_init__(self) -> None:
        checked_between(self.layer_decay, "layer_decay", 0, 1, closed=True)


def fit_trained(
    model: TextClassifier,
    labelled: LabelledTexts,
    validation: LabelledTexts | None,
    class_weights: Float64Array | None,
    seed: int,
    out: str | os.PathLike[str] | None,
) -> FittedHead:
    """Train the encoder of a classifier and its head."""
    if model.method == "fine_tune":
        require_libraries()
    folder = output_folder(out, "classifier", resume=True)
    options = {"random_state": seed, **(model.training or {})}
    if model.method == "few_shot":
        if validation is not None:
            raise InputError("validation", 'left out for method="few_shot"')
        fit = fit_few_shot(model, labelled, class_weights, options, folder)
    else:
        decisions: tuple[Decision, ...] = ()
        if validation is None:
            labelled, validation = _split(labelled, seed)
            n = len(validation.texts)
            message = f"{spell_count(n, 'text was', 'texts were')} held out to choose the weights."
            decisions = (Decision("classification", "held_out", n, message),)
        resume = None if out is None else True
        fit = _fine_tune(model, (labelled, validation), class_weights, options, folder, resume)
        fit = fit._replace(decisions=(*decisions, *fit.decisions))
    if out is None:  # the temporary folder lives as long as the encoder
        weakref.finalize(fit.encoder, shutil.rmtree, folder.parent, ignore_errors=True)
    return fit


def _split(labelled: LabelledTexts, seed: int) -> tuple[LabelledTexts, LabelledTexts]:
    """Split texts into training and validation texts, stratified, near-duplicates together."""
    codes = labelled.codes
    n_folds = max(2, min(round(1 / HELD_OUT), n_folds_for(codes, 10)))
    is_held_out = grouped_folds(codes, near_duplicates(labelled.texts, None), n_folds, seed) == 0
    train, validation = (np.flatnonzero(part) for part in (~is_held_out, is_held_out))
    return labelled.take(train), labelled.take(validation)


def _fine_tune(
    model: TextClassifier,
    sets: tuple[LabelledTexts, LabelledTexts],
    class_weights: Float64Array | None,
    options: dict[str, Any],
    folder: Path,
    resume: bool | None,
) -> FittedHead:
    import torch

    from embedtopics.training._fit import train_measured
    from embedtopics.training._report import write_report
    from embedtopics.training.objectives import _trainable as models
    from embedtopics.training.objectives._objective import Objective
    from embedtopics.training.trainer._trainer import device_and_precision

    extra = _Ulmfit(**{name: options.pop(name) for name in vars(_Ulmfit()) if name in options})
    settings = TrainingSettings(**{**FINE_TUNE, **options})
    if settings.matryoshka:
        raise InputError("matryoshka", "left out for classifiers", settings.matryoshka)
    device_and_precision(settings)
    n_classes, kind = len(model.classes_), model.head
    trainable = _with_dense(model.encoder, settings)
    folder = check_output_folder(folder, trainable.output_kind)
    with torch.random.fork_rng([]):
        torch.manual_seed(settings.random_state)
        loss = _head_loss(
            kind, trainable.n_dimensions, n_classes, class_weights, _dropout(trainable)
        )
    examples, held_out = (_examples(part, kind) for part in sets)
    changed = [f", {name} {v}" for name, v in vars(extra).items() if v not in (1.0, False)]
    objective = Objective(
        f"classification: {kind}{''.join(changed)}",
        examples,
        lambda *_: loss,
        "quadratic kappa" if kind == "ordinal" else "macro F1",
        partial(_metric, kind),
        optimizers=partial(_optimizers, extra),
    )
    measured = replace(objective, examples=held_out)
    checkpoints = checkpoints_of(folder)
    run = train_measured(trainable, objective, measured, settings, checkpoints, resume)
    loss.to("cpu")
    trainable.model.to("cpu")
    models.save_trainable(trainable, folder)
    run = replace(run, decisions=(*trainable.decisions, *run.decisions))
    report = TrainingReport(
        objective=objective.name,
        base=trainable.name,
        folder=str(folder),
        settings={**settings.to_dict(), **vars(extra)},
        data={"n_train": len(examples), "n_validation": len(held_out),
              "n_learned_from": len(examples),
              "train": examples.source, "validation": held_out.source},
        before_after=(),
        versions=package_versions(),
        **vars(run),
    )  # fmt: skip
    write_report(report, folder)
    delete_checkpoints(checkpoints)
    head, validation = _linear(kind, loss), sets[1]
    scores = head.scores(load_trained(folder, runtime="torch").encode(validation.texts))
    encoder = load_trained(folder)
    return FittedHead(encoder, head, scores, validation.codes, report.decisions, report)


def _examples(labelled: LabelledTexts, kind: str) -> Examples:
    marks = label_marks(labelled.codes, len(labelled.classes), kind == "ordinal")
    rows, texts = np.arange(len(marks), dtype=np.int64), (tuple(labelled.texts),)
    return Examples("labelled", texts, marks, rows, source="labelled texts")


def _with_dense(encoder: Any, settings: TrainingSettings) -> Trainable:
    """Return an encoder of the first token with one more dense layer."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Dense, Pooling

    from embedtopics.encoders.sentence._torch import silent_transformers
    from embedtopics.training.objectives import _trainable as models

    plain = models.transformer_of(encoder)
    fresh = {"pooling": "cls", "layers": 1, "dimensions": None, "prompt": "", "normalize": False}
    trainable = models.trainable_of(SentenceEncoder(**{**plain.get_params(), **fresh}), settings)
    if settings.lora_rank is not None:
        state = settings.random_state
        trainable = models.with_lora(trainable, settings.lora_rank, random_state=state)
    transformer: Any = trainable.model[0]
    config = transformer.model.config
    width = int(config.hidden_size if hasattr(config, "hidden_size") else config.dim)
    activation = ACTIVATIONS.get(config.model_type, "Tanh")
    pooler = getattr(transformer.model, "pooler", None)
    trained: Any = getattr(pooler, "dense", pooler)
    with torch.random.fork_rng([]):
        torch.manual_seed(settings.random_state)
        weight = torch.randn(width, width) * getattr(config, "initializer_range", 0.02)
    bias = torch.zeros(width)
    if isinstance(trained, torch.nn.Linear) and trained.weight.shape == weight.shape:
        weight, bias = trained.weight.detach().clone(), trained.bias.detach().clone()
    start: dict[str, Any] = {"init_weight": weight, "init_bias": bias}
    dense = Dense(width, width, activation_function=getattr(torch.nn, activation)(), **start)
    with silent_transformers():
        model = SentenceTransformer(
            modules=[transformer, Pooling(width, "cls"), dense], device="cpu", local_files_only=True
        )
    return replace(trainable, model=model.eval(), n_unpooled=0)


def _dropout(trainable: Trainable) -> float:
    config: Any = trainable.model[0].model.config  # type: ignore[union-attr]
    names = ("classifier_dropout", "seq_classif_dropout", "hidden_dropout_prob")
    rates = (getattr(config, name, None) for name in names)
    return float(next((rate for rate in rates if rate is not None), 0.1))


def _head_loss(
    kind: str, width: int, n_classes: int, class_weights: Float64Array | None, dropout: float
) -> nn.Module:
    """Return a head with its loss; labels are those of `label_marks`."""
    import torch
    from torch import nn
    from torch.nn import functional

    weights = None if class_weights is None else torch.tensor(class_weights).float()

    class _HeadLoss(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(width, 1 if kind == "ordinal" else n_classes)
            nn.init.normal_(self.linear.weight, std=0.02)
            nn.init.zeros_(self.linear.bias)
            self.dropout = nn.Dropout(dropout)
            if kind == "ordinal":
                self.first = nn.Parameter(torch.tensor(1.0 - n_classes / 2))
                self.steps = nn.Parameter(torch.zeros(n_classes - 2))  # logarithms

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


def _metric(
    kind: str, embeddings: Sequence[FloatArray], labels: Any, loss: Any, keys: Any = None
) -> float:
    """Return the macro F1, or the quadratic kappa of ordinal classes."""
    import torch

    with torch.no_grad():
        device = next(loss.parameters()).device
        scores = loss.scores(torch.from_numpy(embeddings[0]).to(device)).double().cpu().numpy()
    chances, truth = probabilities(kind, scores), np.asarray(labels).astype(np.int64)
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
    for depth, part in enumerate([[data.loss, data.model[2]], *layers[::-1], [transformer]]):
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
