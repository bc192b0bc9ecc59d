"""Encoders that learn from labelled texts: all weights, with a head."""

from __future__ import annotations

import shutil
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from embedtopics._utils.display import spell_count
from embedtopics._utils.folders import check_output_folder
from embedtopics._utils.machine import package_versions
from embedtopics.classification._heads import (
    LinearHead,
    confusion_of,
    grouped_folds,
    kappa,
    n_folds_for,
    near_copies,
    probabilities,
    rates,
)
from embedtopics.classification._pairs import fit_few_shot, label_marks, opened
from embedtopics.classification._targets import Targets
from embedtopics.encoders.sentence._encoder import SentenceEncoder
from embedtopics.errors import InputError
from embedtopics.protocols import Float64Array, FloatArray
from embedtopics.training._examples import Examples
from embedtopics.training._settings import (
    TrainingSettings,
    checked_between,
    require_libraries,
    settings_from,
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
"""Beside the usual settings: 3 epochs, a peak learning rate of 2e-5, weight decay of 0.01."""

HELD_OUT = 0.1
"""Share of the texts that chooses the weights of "fine_tune" where none are given."""

DENSE_OF_FAMILY = {
    "albert": ("albert.pooler", "classifier", "Tanh"),
    "bert": ("bert.pooler.dense", "classifier", "Tanh"),
    "camembert": ("classifier.dense", "classifier.out_proj", "Tanh"),
    "distilbert": ("pre_classifier", "classifier", "ReLU"),
    "electra": ("classifier.dense", "classifier.out_proj", "GELU"),
    "mpnet": ("classifier.dense", "classifier.out_proj", "Tanh"),
    "roberta": ("classifier.dense", "classifier.out_proj", "Tanh"),
    "xlm-roberta": ("classifier.dense", "classifier.out_proj", "Tanh"),
}
"""Where transformers has the layer between the first token and the head, the head, and what comes
between: "fine_tune" trains the same model, so that it can be exported."""


@dataclass(frozen=True)
class _Ulmfit:
    """Options after Howard and Ruder (2018), "Universal language model fine-tuning"."""

    layer_decay: float = 1.0  # 1 / 2.6 there (section 3.2)
    slanted: bool = False  # equation 3
    unfreezing: bool = False  # section 3.3

    def __post_init__(self) -> None:
        if self.layer_decay != 1.0:
            checked_between(self.layer_decay, "layer_decay", 0, 1, closed=True)
        for name in ("slanted", "unfreezing"):
            if not isinstance(getattr(self, name), bool):
                raise InputError(name, "True or False", getattr(self, name))


def fit_trained(
    model: TextClassifier,
    texts: list[str],
    targets: Targets,
    held: tuple[list[str], Targets] | None,
    of_class: Float64Array | None,
    seed: int,
    out: str | os.PathLike[str] | None,
    resume: bool,
) -> None:
    """Train the encoder of a classifier and its head."""
    if model.method == "fine_tune":
        require_libraries()
    folder = output_folder(out, "classifier", resume=resume)
    options = {"random_state": seed, **(model.training or {})}
    if model.method == "few_shot":
        if held is not None:
            raise InputError("validation", 'left out for method="few_shot"')
        fit_few_shot(model, texts, targets.codes, of_class, options, folder)
    else:
        sets = _held_out(model, texts, targets, seed) if held is None else (texts, targets, *held)
        _fine_tune(model, sets, of_class, options, folder, None if out is None else resume)
    if out is None:  # the folder goes with the encoder that reads it
        weakref.finalize(model.encoder_, shutil.rmtree, folder.parent, ignore_errors=True)


def _held_out(
    model: TextClassifier, texts: list[str], targets: Targets, seed: int
) -> tuple[list[str], Targets, list[str], Targets]:
    """Hold texts out, of each class the same share, copies together."""
    codes = targets.codes
    model.groups_ = near_copies(texts, None)
    n_folds = max(2, min(round(1 / HELD_OUT), n_folds_for(codes, 10)))
    is_held = grouped_folds(codes, model.groups_, n_folds, seed) == 0
    parts: list[Any] = []
    for rows in (np.flatnonzero(~is_held), np.flatnonzero(is_held)):
        part = replace(targets, codes=codes[rows], known=targets.known[rows])
        parts += [[texts[row] for row in rows.tolist()], part]
    n_held = int(is_held.sum())
    message = f"{spell_count(n_held, 'text was', 'texts were')} held out to choose the weights."
    model._note("held_out", n_held, message)
    return tuple(parts)  # type: ignore[return-value]


def _fine_tune(
    model: TextClassifier,
    sets: tuple[list[str], Targets, list[str], Targets],
    of_class: Float64Array | None,
    options: dict[str, Any],
    folder: Path,
    resume: bool | None,
) -> None:
    import torch

    from embedtopics.training._fit import train_measured
    from embedtopics.training._report import write_report
    from embedtopics.training.objectives import _trainable as models
    from embedtopics.training.objectives._objective import Objective
    from embedtopics.training.trainer._trainer import device_and_precision

    texts, targets, held_texts, held = sets
    extra = _Ulmfit(**{name: options.pop(name) for name in vars(_Ulmfit()) if name in options})
    settings: TrainingSettings = settings_from(
        TrainingSettings, {**FINE_TUNE, **options}, vars(extra)
    )
    if settings.matryoshka:
        raise InputError("matryoshka", "left out for classifiers", settings.matryoshka)
    device_and_precision(settings)
    n_classes, kind = len(model.classes_), model.head
    trainable = _with_dense(model.encoder, settings)
    folder = check_output_folder(folder, trainable.output_kind)
    with torch.random.fork_rng([]):
        torch.manual_seed(settings.random_state)
        loss = _head_loss(kind, trainable.n_dimensions, n_classes, of_class, _dropout(trainable))
    examples = []
    for part, labels in ((texts, targets), (held_texts, held)):
        marks = label_marks(labels.codes, n_classes, kind == "ordinal")
        rows = np.arange(len(marks), dtype=np.int64)
        examples.append(Examples("taught", (tuple(part),), marks, rows, source="labelled texts"))
    used = [f", {name} {value}" for name, value in vars(extra).items() if value not in (1.0, False)]
    objective = Objective(
        f"classification: {kind}{''.join(used)}", examples[0], lambda *_: loss,
        "quadratic kappa" if kind == "ordinal" else "macro F1", partial(_metric, kind),
        optimizers=partial(_optimizers, extra),
    )  # fmt: skip
    measured = replace(objective, examples=examples[1])
    checkpoints = checkpoints_of(folder)
    run = train_measured(trainable, objective, measured, settings, checkpoints, resume, ())
    loss.to("cpu")
    trainable.model.to("cpu")
    models.save_trainable(trainable, folder)
    model.head_ = _linear(kind, loss)
    model.encoder_ = opened(folder)
    vectors = opened(folder, runtime="torch").encode(held_texts)
    model.left_out_scores_ = model.head_.scores(vectors)
    model.left_out_codes_ = held.codes
    model.left_out_rows_ = np.empty(0, dtype=np.int64)
    report = TrainingReport(
        objective=objective.name, base=trainable.name, folder=str(folder),
        settings={**settings.to_dict(), **vars(extra)},
        data={"n_train": len(texts), "n_validation": len(held_texts), "n_learned_from": len(texts),
              "train": "labelled texts", "validation": "labelled texts"},
        before_after=(), versions=package_versions(),
        **vars(replace(run, decisions=(*trainable.decisions, *run.decisions))),
    )  # fmt: skip
    write_report(report, folder)
    delete_checkpoints(checkpoints)
    model.training_report_ = report
    model.decisions_ = (*model.decisions_, *report.decisions)


def _with_dense(encoder: Any, settings: TrainingSettings) -> Trainable:
    """Return an encoder whose vector is that of the first token after one more layer."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Dense, Pooling

    from embedtopics.encoders.sentence._loading import silent_transformers
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
    activation = DENSE_OF_FAMILY.get(config.model_type, ("", "", "Tanh"))[2]
    pooler = getattr(transformer.model, "pooler", None)
    trained: Any = getattr(pooler, "dense", pooler)
    with torch.random.fork_rng([]):
        torch.manual_seed(settings.random_state)
        weight = torch.randn(width, width) * getattr(config, "initializer_range", 0.02)
    bias = torch.zeros(width)
    if isinstance(trained, torch.nn.Linear) and trained.weight.shape == weight.shape:
        weight, bias = trained.weight.detach().clone(), trained.bias.detach().clone()
    made: dict[str, Any] = {"init_weight": weight, "init_bias": bias}
    dense = Dense(width, width, activation_function=getattr(torch.nn, activation)(), **made)
    with silent_transformers():
        model = SentenceTransformer(
            modules=[transformer, Pooling(width, "cls"), dense], device="cpu", local_files_only=True
        )
    return replace(trainable, model=model.eval(), n_unpooled=0)


def _dropout(trainable: Trainable) -> float:
    config: Any = trainable.model[0].model.config  # type: ignore[union-attr]
    names = ("classifier_dropout", "seq_classif_dropout", "hidden_dropout_prob")
    found = (getattr(config, name, None) for name in names)
    return float(next((value for value in found if value is not None), 0.1))


def _head_loss(
    kind: str, width: int, n_classes: int, of_class: Float64Array | None, dropout: float
) -> nn.Module:
    """Return a head with its loss; it takes labels as `label_marks` writes them."""
    import torch
    from torch import nn
    from torch.nn import functional

    weights = None if of_class is None else torch.tensor(of_class, dtype=torch.float32)

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
            found = self.linear(self.dropout(vectors))
            if kind != "ordinal":
                return found
            steps = torch.cumsum(torch.exp(self.steps), dim=0)
            thresholds = self.first + torch.cat([steps.new_zeros(1), steps])
            return found - thresholds

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
    """Return the macro F1, or the quadratic kappa of ordered classes."""
    import torch

    with torch.no_grad():
        device = next(loss.parameters()).device
        scores = loss.scores(torch.from_numpy(embeddings[0]).to(device)).double().cpu().numpy()
    found, truth = probabilities(kind, scores), np.asarray(labels).astype(np.int64)
    n_classes = found.shape[1]
    best = found.argmax(axis=1)
    if kind == "ordinal":
        return float(kappa(confusion_of(truth.sum(axis=1) - 1, best, n_classes)))
    guess = found >= 0.5 if kind == "multilabel" else np.eye(n_classes, dtype=np.bool_)[best]
    hits, true, given = ((a * b).sum(axis=0) for a, b in ((truth, guess), (truth, 1), (guess, 1)))
    return float(rates(hits, true, given)["f1"].mean())


def _optimizers(extra: _Ulmfit, data: Any, arguments: Any, n_steps_per_epoch: int) -> Any:
    """Return AdamW and the schedule of its rates, with a group of weights a layer."""
    import torch

    from embedtopics.training.objectives._trainable import layers_of

    if extra == _Ulmfit():
        return None
    transformer = data.model[0].model
    layers = [[layer] for layer in layers_of(transformer)]
    taken: set[int] = set()
    groups: list[dict[str, Any]] = []
    depths: list[int] = []
    for depth, part in enumerate([[data.loss, data.model[2]], *layers[::-1], [transformer]]):
        own = [w for module in part for w in module.parameters() if id(w) not in taken]
        taken |= set(map(id, own))
        rate = arguments.learning_rate * extra.layer_decay**depth
        for decay, is_plain in ((arguments.weight_decay, False), (0.0, True)):
            # Biases and layer norms are not decayed.
            chosen = [w for w in own if w.requires_grad and (w.ndim < 2) == is_plain]
            if chosen:
                groups.append({"params": chosen, "lr": rate, "weight_decay": decay})
                depths.append(depth)
    optimizer = torch.optim.AdamW(groups)
    total, warm = arguments.max_steps, max(1, arguments.warmup_steps)

    def factor(depth: int, step: int) -> float:
        if extra.unfreezing and step < depth * n_steps_per_epoch:
            return 0.0
        if step < warm:
            return float(step / warm)
        falls = float(max(0, total - step) / max(1, total - warm))
        # Slanted triangular rates end at a 32nd of the peak (equation 3).
        return (1 + 31 * falls) / 32 if extra.slanted else falls

    factors: list[Any] = [partial(factor, depth) for depth in depths]
    return optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, factors)
