"""Train on pairs of texts: few-shot encoders, and cross-encoders for reranking."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from embedtopics._utils.folders import check_output_folder, replacing_folder, write_manifest
from embedtopics._utils.progress import progress_bar
from embedtopics.classification._heads import (
    DEFAULT_STRENGTH,
    FittedHead,
    LinearHead,
    fit_head,
    grouped_folds,
    n_folds_for,
    near_duplicates,
    sample_weights,
)
from embedtopics.classification._targets import LabelledTexts
from embedtopics.decisions import Decision
from embedtopics.encoders.sentence._checkpoint import position_limit
from embedtopics.encoders.sentence._encoder import SentenceEncoder
from embedtopics.encoders.sentence._loading import check_device, silent_transformers
from embedtopics.errors import InputError
from embedtopics.evaluation._retrieval import retrieval
from embedtopics.evaluation.results import RetrievalScores
from embedtopics.protocols import Float64Array, FloatArray, Int64Array
from embedtopics.training._examples import Examples
from embedtopics.training._pairs import mine_hard_negatives
from embedtopics.training._settings import TrainingSettings, settings_from
from embedtopics.training.objectives._trainable import transformer_of

if TYPE_CHECKING:
    from embedtopics.classification._classifier import TextClassifier
    from embedtopics.training.objectives._trainable import Trainable

FEW_SHOT = {"epochs": 6.0, "batch_size": 16, "learning_rate": 1e-4}
"""An epoch reads each text once, paired with a text of the same label, so that the cost is linear
in the texts. Six epochs were as accurate as the twenty pairs a text of SetFit's default."""

PAIR_SCORER = {"batch_size": 32}
"""Added to the defaults: 3 epochs and a peak learning rate of 2e-5."""

STEP_SETTINGS = (
    "epochs",
    "max_steps",
    "batch_size",
    "learning_rate",
    "weight_decay",
    "warmup",
    "max_gradient",
    "max_length",
    "device",
    "random_state",
    "show_progress",
)
"""Settings of training without validation during the run."""

CALIBRATION_FOLDS = 3
KIND = "pair scorer"
PAIRS_AT_ONCE = 32
MAX_TOKENS = 512
MIN_QUERIES = 10
"""With fewer queries, none is held out: too few to measure a ranking."""


@dataclass(frozen=True, eq=False)
class PairScorer:
    """A trained cross-encoder; pass it, or its folder, as `reranker=`.

    Attributes
    ----------
    folder : Path
        Folder that `load_cross_encoder` and sentence-transformers' ``CrossEncoder`` read.
    before, after : RetrievalScores or None
        Ranking of the passages of held-out queries before and after training; None with fewer than
        ten queries.
    decisions : tuple of Decision
    """

    folder: Path
    before: RetrievalScores | None
    after: RetrievalScores | None
    decisions: tuple[Decision, ...]

    def predict(self, pairs: Sequence[tuple[str, str]]) -> FloatArray:
        """Return the relevance of each pair of query and passage, (n_pairs,); higher is better."""
        network, tokenizer = self._loaded
        return _logits(network, tokenizer, pairs)

    @cached_property
    def _loaded(self) -> tuple[Any, Any]:
        return _cross_encoder(self.folder, TrainingSettings())


def step_settings(options: Mapping[str, Any], *also: str) -> TrainingSettings:
    """Return training settings; refuse those that `STEP_SETTINGS` and `also` do not name."""
    settings: TrainingSettings = settings_from(TrainingSettings, options)
    names = (*STEP_SETTINGS, *also)
    for name in sorted(set(options) - set(names)):
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
    class_weights: Float64Array | None,
    options: dict[str, Any],
    folder: Path,
) -> FittedHead:
    """Train an encoder on pairs of labelled texts, then fit a head on its vectors."""
    settings = step_settings({**FEW_SHOT, **options}, "tokens_at_once")
    codes, n_classes = labelled.codes, len(labelled.classes)
    weights = sample_weights(codes, class_weights)
    is_ordinal = model.head == "ordinal"

    def train(rows: Int64Array, target: Path) -> tuple[SentenceEncoder, LinearHead]:
        part = labelled.take(rows)
        marks = label_marks(part.codes, n_classes, is_ordinal)
        _learn_pairs(model.encoder, part.texts, marks, settings, target)
        # By torch: exporting the network takes longer than encoding a few texts.
        encoder = load_trained(target, runtime="torch")
        of_rows = None if weights is None else weights[rows]
        vectors = encoder.encode(part.texts)
        return encoder, fit_head(model.head, vectors, part.codes, DEFAULT_STRENGTH, of_rows)

    scores = np.empty((0, 0))
    if model.calibration is not None:
        groups, n_folds = (
            near_duplicates(labelled.texts, None),
            n_folds_for(codes, CALIBRATION_FOLDS),
        )
        folds = grouped_folds(codes, groups, n_folds, settings.random_state)
        scores = np.full((len(codes), n_classes - is_ordinal), -30.0)
        for fold in np.unique(folds).tolist():
            rows, others = np.flatnonzero(folds == fold), np.flatnonzero(folds != fold)
            with tempfile.TemporaryDirectory() as temporary:
                encoder, head = train(others, Path(temporary) / "encoder")
                of_fold = head.scores(encoder.encode(labelled.take(rows).texts))
                scores[rows, : of_fold.shape[1]] = of_fold
    head = train(np.arange(len(codes)), folder)[1]
    message = f"The encoder read each of {len(codes):,} texts {settings.epochs:g} times, in pairs."
    decision = Decision("classification", "epochs", settings.epochs, message)
    return FittedHead(load_trained(folder), head, scores, codes[: len(scores)], (decision,))


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


def load_trained(folder: Path, runtime: str | None = None) -> SentenceEncoder:
    """Return a trained encoder in full precision; long texts are chunked."""
    return SentenceEncoder(folder, precision="float32", long_texts="chunk", runtime=runtime)


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


def fit_pair_scorer(
    model: str | os.PathLike[str],
    examples: Examples,
    *,
    miner: Any = "lsa",
    corpus: Sequence[str] | None = None,
    num_negatives: int = 4,
    out: str | os.PathLike[str] | None = None,
    training: Mapping[str, Any] | None = None,
) -> PairScorer:
    """Train a cross-encoder to score how well passages answer queries.

    The result is a `reranker` of `SearchIndex.search`. The loss is binary cross-entropy; relevant
    passages together weigh as much as all others (Nogueira and Cho 2019, "Passage re-ranking with
    BERT").

    Parameters
    ----------
    model : str or path
        Name or folder of a checkpoint to start from: an encoder or a cross-encoder.
    examples : Examples
        Queries and passages with judgements ("graded" or "binary") or with negatives ("triplets").
        "pairs", as `make_pairs` returns, get mined negatives.
    miner, corpus, num_negatives
        Passed to `embedtopics.training.mine_hard_negatives` for "pairs".
    out : path, optional
        Folder of the trained model; by default a temporary folder.
    training : mapping, optional
        Fields of `embedtopics.training.TrainingSettings`, such as ``{"epochs": 3}``.

    Returns
    -------
    PairScorer

    Raises
    ------
    InputError
        Examples of another kind, a model that is not a transformer, or unknown settings.
    """
    settings = step_settings({**PAIR_SCORER, **(training or {})})
    kind = getattr(examples, "kind", None)
    if kind not in ("graded", "binary", "pairs", "triplets"):
        raise InputError("examples", "graded, binary, pairs or triplets of read_examples", examples)
    if kind == "pairs":
        examples = mine_hard_negatives(examples, miner, num_negatives=num_negatives, corpus=corpus)
    pairs, labels = _judged(examples)
    folder = Path(out or Path(tempfile.mkdtemp(prefix="embedtopics-scorer-")) / "model")
    folder = check_output_folder(folder.expanduser(), KIND)
    queries = sorted({query for query, _ in pairs})
    rng = np.random.default_rng(settings.random_state)
    n_held_out = max(2, len(queries) // 10) if len(queries) >= MIN_QUERIES else 0
    held_out = {queries[i] for i in rng.permutation(len(queries))[:n_held_out]}
    is_held_out = np.array([query in held_out for query, _ in pairs])
    network, tokenizer = _cross_encoder(model, settings)
    rank = partial(_ranked, network, tokenizer, pairs, labels, np.flatnonzero(is_held_out))
    before = rank()
    _learn_judgements(network, tokenizer, pairs, labels, np.flatnonzero(~is_held_out), settings)
    after = rank()
    with replacing_folder(folder, KIND) as fresh, silent_transformers():
        network.save_pretrained(fresh)
        tokenizer.save_pretrained(fresh)
        write_manifest(fresh, KIND, 1)
    message = f"{n_held_out:,} of {len(queries):,} queries were held out to measure the ranking."
    decision = Decision("classification", "held_out", n_held_out, message)
    scorer = PairScorer(folder, before, after, (*examples.decisions, decision))
    if out is None:  # the temporary folder lives as long as the scorer
        weakref.finalize(scorer, shutil.rmtree, folder.parent, ignore_errors=True)
    return scorer


def _judged(examples: Examples) -> tuple[list[tuple[str, str]], FloatArray]:
    """Return the distinct pairs of query and passage and their relevance, from 0 to 1."""
    queries, passages, *negatives = examples.columns
    labels = np.ones(len(queries)) if examples.labels is None else examples.labels
    relevance: dict[tuple[str, str], float] = {}
    for column in negatives:
        relevance |= {pair: 0.0 for pair in zip(queries, column, strict=True)}
    for pair, label in zip(zip(queries, passages, strict=True), labels.tolist(), strict=True):
        relevance[pair] = max(relevance.get(pair, 0.0), float(label))
    return list(relevance), np.array(list(relevance.values()), dtype=np.float32)


def _cross_encoder(model: str | os.PathLike[str], settings: TrainingSettings) -> tuple[Any, Any]:
    """Return a network with one output, and its tokenizer."""
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    folder = Path(model).expanduser()
    if not folder.is_dir():
        folder = transformer_of(model, "model").recipe.checkpoint.folder
    local: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
    with torch.random.fork_rng(), silent_transformers():
        torch.manual_seed(settings.random_state)  # initializes a new head
        try:
            network: Any = AutoModelForSequenceClassification.from_pretrained(
                folder, num_labels=1, use_safetensors=True, dtype=torch.float32, **local
            )
            tokenizer: Any = AutoTokenizer.from_pretrained(folder, **local)
        except (OSError, RuntimeError, ValueError) as error:
            raise InputError("model", "a transformer with safetensors weights", model) from error
    limit = position_limit(network.config.to_dict()) or MAX_TOKENS
    limits = (MAX_TOKENS, limit, tokenizer.model_max_length, settings.max_length or limit)
    tokenizer.model_max_length = min(limits)
    return network.eval(), tokenizer


def _logits(network: Any, tokenizer: Any, pairs: Sequence[tuple[str, str]]) -> FloatArray:
    import torch

    logits = np.empty(len(pairs), dtype=np.float32)
    order = sorted(range(len(pairs)), key=lambda row: len(pairs[row][1]))
    for begin in range(0, len(order), PAIRS_AT_ONCE):
        rows = order[begin : begin + PAIRS_AT_ONCE]
        with torch.no_grad():
            features = _features(tokenizer, [pairs[row] for row in rows])
            logits[rows] = network(**features).logits[:, 0]
    return logits


def _features(tokenizer: Any, pairs: Sequence[tuple[str, str]]) -> Any:
    columns = map(list, zip(*pairs, strict=True))
    return tokenizer(*columns, truncation=True, padding=True, return_tensors="pt")


def _ranked(
    network: Any, tokenizer: Any, pairs: list[tuple[str, str]], labels: FloatArray, rows: Int64Array
) -> RetrievalScores | None:
    """Measure the ranking of passages by query, over some of the pairs."""
    if not len(rows):
        return None
    run: dict[str, dict[str, float]] = {}
    grades: dict[str, dict[str, float]] = {}
    scores = _logits(network, tokenizer, [pairs[row] for row in rows])
    for row, score in zip(rows.tolist(), scores.tolist(), strict=True):
        query, passage = pairs[row]
        run.setdefault(query, {})[passage] = score
        grades.setdefault(query, {})[passage] = float(labels[row])
    return retrieval(run, grades, relevant_from=0.5)


def _learn_judgements(
    network: Any,
    tokenizer: Any,
    pairs: list[tuple[str, str]],
    labels: FloatArray,
    rows: Int64Array,
    settings: TrainingSettings,
) -> None:
    """Train a cross-encoder on the relevance of some of the pairs."""
    import torch

    share = float(labels[rows].mean())
    weight = torch.tensor((1 - share) / share if 0 < share < 1 else 1.0)

    def loss_of(places: list[int], device: str) -> Any:
        batch = rows[places]
        features = _features(tokenizer, [pairs[row] for row in batch.tolist()]).to(device)
        logits, target = network(**features).logits[:, 0], torch.as_tensor(labels[batch])
        return torch.nn.functional.binary_cross_entropy_with_logits(
            logits, target.to(device), pos_weight=weight.to(device)
        )

    lengths = [sum(map(len, pairs[row])) for row in rows.tolist()]
    learn_batches(network, lengths, loss_of, settings)
