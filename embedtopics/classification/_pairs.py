"""Read two texts as one, for classifiers of pairs; train few-shot encoders on pairs of texts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from sklearn.base import clone

from embedtopics._utils.display import progress_bar
from embedtopics.classification._heads import (
    DEFAULT_STRENGTH,
    FittedHead,
    fit_head,
    sample_weights,
)
from embedtopics.classification._targets import LabelledTexts
from embedtopics.corpus._columns import FIELD_SEPARATOR
from embedtopics.encoders._base import require_torch
from embedtopics.encoders._contract import BaseEncoder, WrappedEncoder, forwarded
from embedtopics.encoders.results import Encoding
from embedtopics.encoders.sentence._encoder import SentenceEncoder
from embedtopics.encoders.sentence._running import read_together
from embedtopics.encoders.sentence._torch import check_device
from embedtopics.errors import InputError
from embedtopics.protocols import Float64Array, FloatArray, Int64Array
from embedtopics.results import Decision
from embedtopics.training._settings import TrainingSettings, settings_of

if TYPE_CHECKING:
    from embedtopics.classification._classifier import TextClassifier
    from embedtopics.training.objectives._trainable import Trainable


def joined_pairs(X: Any, parameter: str = "X", rows: Any = None) -> list[str]:
    """Return each pair as one text, with an empty line between, as `Corpus` joins two columns."""
    joined = []
    for row, pair in enumerate(X.itertuples(index=False) if hasattr(X, "itertuples") else X):
        parts = pair.split(FIELD_SEPARATOR) if isinstance(pair, str) else pair
        if np.shape(parts) != (2,) or not all(isinstance(p, str) and p.strip() for p in parts):
            expected = "two texts in each row, with no other empty line than one between them"
            raise InputError(parameter, expected, pair, row=row if rows is None else rows[row])
        joined.append(FIELD_SEPARATOR.join(re.sub(r"\n\s*\n", "\n", p.strip()) for p in parts))
    return joined


def split_pairs(joined: Sequence[str]) -> list[str]:
    """Return the first texts of pairs, then the second ones."""
    first, second = zip(*(text.split(FIELD_SEPARATOR) for text in joined), strict=True)
    return [*first, *second]


class PairEncoder(WrappedEncoder):
    """Vectors of joined pairs: of both texts, with difference and product, or of both together."""

    fingerprint = forwarded("fingerprint")
    uncached = forwarded("uncached")

    def __init__(self, encoder: BaseEncoder, together: bool = False) -> None:
        self._arguments = {"encoder": encoder, "together": together}
        self._encoder, self._together = encoder, together

    def encode_with_report(
        self, texts: Sequence[str], *, show_progress: bool | None = None
    ) -> Encoding:
        """Return one vector per pair; the report is that of the single texts."""
        parts, encode = split_pairs(texts), self._encoder.encode_with_report
        if self._together:
            return encode(read_together(self._encoder, parts), show_progress=show_progress)
        report = encode(parts, show_progress=show_progress)
        vectors: Any = report.embeddings
        first, second = vectors[: len(texts)], vectors[len(texts) :]
        product = first.multiply(second) if hasattr(first, "multiply") else first * second
        stack: Any = sparse.hstack if sparse.issparse(first) else np.hstack
        return replace(report, embeddings=stack([first, second, abs(first - second), product]))


def fit_together(
    model: TextClassifier, labelled: LabelledTexts, held_out: LabelledTexts | None, *rest: Any
) -> tuple[str, FittedHead]:
    """Train the encoder of a classifier on pairs that it reads as one text; see `fit_trained`."""
    from embedtopics.classification._training import fit_trained
    from embedtopics.training.objectives._trainable import transformer_of

    encoder = transformer_of(model.encoder)
    most = settings_mapping(model.settings).get("max_seq_length")
    read: Any = [
        part and part._replace(texts=read_together(encoder, split_pairs(part.texts), most))
        for part in (labelled, held_out)
    ]
    method, fit = fit_trained(clone(model).set_params(pairs=False), *read, *rest)
    return method, fit._replace(encoder=PairEncoder(fit.encoder, together=True))


FEW_SHOT = {"epochs": 6.0, "batch_size": 16, "learning_rate": 1e-4}
"""An epoch reads each text once, paired with a text of the same label, so that the cost is linear
in the texts. Six epochs were as accurate as the twenty pairs a text of SetFit's default."""

RATE_OF_WIDTH = 0.04
"""Peak learning rate of "fine_tune" times the width of the encoder: 1e-4 for 384 dimensions."""

STEP_SETTINGS = (
    "epochs", "max_steps", "batch_size", "learning_rate", "weight_decay", "warmup", "max_gradient",
    "max_seq_length", "device", "random_state", "show_progress",
)  # fmt: skip
"""Settings of training without validation during the run."""


def settings_mapping(settings: TrainingSettings | Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the settings of a classifier by name; a TrainingSettings names all but the seed."""
    if settings is None:
        return {}
    if isinstance(settings, TrainingSettings):
        # The seed is that of the classifier.
        names = [field.name for field in fields(settings) if field.name != "random_state"]
        return {name: getattr(settings, name) for name in names}
    if not isinstance(settings, Mapping):
        raise InputError("settings", "a TrainingSettings or a mapping", settings)
    return dict(settings)


def step_settings(options: Mapping[str, Any], *also: str) -> TrainingSettings:
    """Return training settings; refuse those that `STEP_SETTINGS` and `also` do not name."""
    settings = settings_of(options)
    names = (*STEP_SETTINGS, *also)
    default = TrainingSettings()
    for name in sorted(set(options) - set(names)):
        if options[name] == getattr(default, name):
            continue
        raise InputError(name, f"left out; this training has {', '.join(names)}", options[name])
    return settings


def label_marks(codes: Int64Array, n_classes: int, ordinal: bool) -> FloatArray:
    """Return labels as 0 and 1, (n, n_classes); for ordinal classes, 1 up to the text's class."""
    if codes.ndim == 2:
        return codes.astype(np.float32)
    if ordinal:
        return (np.arange(n_classes) <= codes[:, None]).astype(np.float32)
    return np.eye(n_classes, dtype=np.float32)[codes]


def fit_few_shot(
    model: TextClassifier,
    labelled: LabelledTexts,
    held_out: LabelledTexts | None,
    class_weights: Float64Array | None,
    options: dict[str, Any],
    folder: Path,
) -> FittedHead:
    """Train an encoder on pairs of labelled texts, then fit a head on its vectors."""
    require_torch('method="few_shot"')
    settings = step_settings({**FEW_SHOT, **options}, "tokens_at_once")
    texts, codes = labelled.texts, labelled.codes
    marks = label_marks(codes, len(labelled.classes), model.head == "ordinal")
    _learn_pairs(model.encoder, texts, marks, settings, folder)
    # By torch: exporting the network takes longer than encoding a few texts.
    encoder = load_trained(folder, backend="torch")
    weights = sample_weights(codes, class_weights)
    head = fit_head(model.head, encoder.encode(texts), codes, DEFAULT_STRENGTH, weights)
    scores = np.empty((0, 0))
    if held_out is not None:
        scores = head.scores(encoder.encode(held_out.texts))
    message = f"The encoder read each of {len(codes):,} texts {settings.epochs:g} times, in pairs."
    decision = Decision("classification", "epochs", settings.epochs, message)
    return FittedHead(encoder, head, scores, codes[:0], (decision,))


def _paired_batches(marks: FloatArray, settings: TrainingSettings) -> list[Int64Array]:
    """Return the rows of each step: every text once an epoch, next to the most similar labels."""
    rng = np.random.default_rng(settings.random_state)
    similar = _jaccard_of(marks)
    n_batches = max(1, round(len(marks) / settings.batch_size))
    n_steps = settings.max_steps or max(1, round(settings.epochs * n_batches))
    batches: list[Int64Array] = []
    while len(batches) < n_steps:
        rest, pairs = rng.permutation(len(marks)), []
        while len(rest) > 3:
            pair = [0, 1 + int(similar[rest[0], rest[1:]].argmax())]
            pairs.append(rest[pair])
            rest = np.delete(rest, pair)
        pairs.append(rest)
        parts = np.array_split(rng.permutation(len(pairs)), min(n_batches, len(pairs)))
        batches += [np.concatenate([pairs[i] for i in part]) for part in parts]
    return batches[:n_steps]


def _jaccard_of(marks: FloatArray) -> FloatArray:
    """Return the Jaccard similarity of the labels of every two texts, (n, n)."""
    both = marks @ marks.T
    either = marks.sum(axis=1)[:, None] + marks.sum(axis=1) - both
    return np.where(either > 0, both / np.maximum(either, 1), 1.0).astype(np.float32)


def _learn_pairs(
    encoder: Any, texts: list[str], marks: FloatArray, settings: TrainingSettings, folder: Path
) -> None:
    """Train an encoder whose cosines are the Jaccard similarities of the labels."""
    import torch

    from embedtopics.training.objectives import _trainable as models
    from embedtopics.training.trainer._batching import BatchEncoder, tokens_held

    device = _device(settings)
    trainable = models.trainable_of(encoder, settings)
    network: Any = trainable.model.to(device)
    ids = trainable.tokenize_texts(texts)
    batches = _paired_batches(marks, settings)
    reader = BatchEncoder(
        lambda rows: network(trainable.features(rows))["sentence_embedding"].float(),
        settings.tokens_at_once or tokens_held(network, device),
    )

    def learn(step: int) -> Any:
        similar = torch.as_tensor(_jaccard_of(marks[batches[step]]), device=device)
        columns = [[ids[row] for row in batches[step]]]
        seed = settings.random_state * 1_000 + step
        return reader.learn(columns, partial(_pair_loss, similar), torch.Tensor.backward, seed)

    with _used_tokens(trainable, ids):
        _take_steps(network, len(batches), learn, settings)
    models.save_trainable(trainable, folder)


@contextmanager
def _used_tokens(trainable: Trainable, ids: list[list[int]]) -> Iterator[None]:
    """Train the embeddings of used tokens only: the whole vocabulary takes 14 % of a step."""
    import torch

    transformer: Any = None if trainable.is_static else trainable.model[0].model
    table = transformer and transformer.get_input_embeddings()
    if table is None or not table.weight.requires_grad:
        yield
        return
    device = table.weight.device
    tokens = torch.tensor(sorted({trainable.pad_id, *chain.from_iterable(ids)}), device=device)
    row_of = torch.zeros(len(table.weight), dtype=torch.long, device=device)
    row_of[tokens] = torch.arange(len(tokens), device=device)
    rows = table.weight.detach()[tokens]
    part = torch.nn.Embedding(len(rows), rows.shape[1], _weight=rows)
    part.register_forward_pre_hook(lambda _, inputs: (row_of[inputs[0]],))
    transformer.set_input_embeddings(part)
    yield
    transformer.set_input_embeddings(table.cpu())
    with torch.no_grad():
        table.weight[tokens.cpu()] = part.weight.cpu()


def load_trained(folder: Path, backend: str | None = None) -> SentenceEncoder:
    """Return a trained encoder in full precision; long texts are chunked."""
    return SentenceEncoder(folder, precision="float32", long_texts="chunk", backend=backend)


def _take_steps(
    network: Any, n_steps: int, learn: Callable[[int], Any], settings: TrainingSettings
) -> None:
    """Run AdamW with linear decay; `learn` adds the gradients of a step and returns its loss."""
    import torch

    n_warm = max(1, round(settings.warmup * n_steps))
    weights = [weight for weight in network.parameters() if weight.requires_grad]
    optimizer = torch.optim.AdamW(weights, weight_decay=settings.weight_decay, fused=True)
    show = settings.show_progress
    bar = progress_bar(total=n_steps, unit="step", description="Training", show=show)
    network.train()
    with bar, torch.random.fork_rng():
        for step in range(n_steps):
            decay = (n_steps - step) / max(1, n_steps - n_warm)
            for group in optimizer.param_groups:
                group["lr"] = settings.learning_rate * min((step + 1) / n_warm, decay)
            optimizer.zero_grad()
            torch.manual_seed(settings.random_state * 1_000 + step)
            if not bool(torch.isfinite(learn(step))):
                expected = f"low enough for a finite loss in step {step + 1}"
                raise InputError("learning_rate", expected, settings.learning_rate)
            torch.nn.utils.clip_grad_norm_(network.parameters(), settings.max_gradient)
            optimizer.step()
            bar.update(1)
    network.eval().to("cpu")


def learn_batches(
    network: Any,
    lengths: Sequence[int],
    loss_of: Callable[[list[int], str], Any],
    settings: TrainingSettings,
) -> None:
    """Train a network in batches of similar lengths; `loss_of` takes rows and the device."""
    from embedtopics.training.trainer._batching import StepPlan

    device = _device(settings)
    network.to(device)
    plan = StepPlan(lengths, settings.batch_size, settings.random_state)
    n_steps = settings.max_steps or max(1, round(settings.epochs * len(plan)))
    batches = [b for epoch in range(-(-n_steps // len(plan))) for b in plan.of_epoch(epoch)]

    def learn(step: int) -> Any:
        loss = loss_of(batches[step], device)
        loss.backward()
        return loss.detach()

    _take_steps(network, n_steps, learn, settings)


def _device(settings: TrainingSettings) -> str:
    import torch

    device = settings.device or ("cuda" if torch.cuda.is_available() else "cpu")
    check_device(device)
    return device


def _pair_loss(similar: Any, vectors: Any) -> Any:
    """Return the loss of Tunstall et al. (2022) over all pairs of a batch."""
    import torch

    units = torch.nn.functional.normalize(torch.cat(list(vectors)), dim=1)
    upper = torch.triu(torch.ones_like(similar), diagonal=1) > 0
    target = similar[upper]
    losses = ((units @ units.T)[upper] - target).square()
    # Similar and dissimilar pairs have equal weight for any number of classes.
    positive, negative = losses[target > 0.5], losses[target <= 0.5]
    return torch.stack([part.mean() for part in (positive, negative) if len(part)]).mean()
