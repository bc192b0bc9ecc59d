"""What learns from pairs of texts: encoders of few labels, and scorers of query and passage."""

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
    USUAL_STRENGTH,
    LinearHead,
    fit_head,
    grouped_folds,
    n_folds_for,
    near_copies,
    sample_weights,
)
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
"""Each text is read once an epoch, beside one of its label: the cost grows with the texts, not
with their square. Six passes were as accurate as the twenty that SetFit's usual pairs make."""

PAIR_SCORER = {"batch_size": 32}
"""Beside the usual settings: 3 epochs and a peak learning rate of 2e-5."""

OF_BOTH = (
    "epochs", "max_steps", "batch_size", "learning_rate", "weight_decay", "warmup", "max_gradient",
    "max_length", "device", "random_state", "show_progress",
)  # fmt: skip
OF_FEW_SHOT = (*OF_BOTH, "tokens_at_once")
"""The settings of training without validations on the way."""

CALIBRATION_FOLDS = 3
SCORER = "pair scorer"
PAIRS_AT_ONCE = 32
MOST_TOKENS = 512
LEAST_QUERIES = 10
"""With fewer none is held out: their scores would say nothing."""


@dataclass(frozen=True, eq=False)
class PairScorer:
    """A cross-encoder that was trained; give it, or its folder, as `reranker=`.

    Attributes
    ----------
    folder : Path
        What sentence-transformers' ``CrossEncoder`` and `load_cross_encoder` read.
    before, after : RetrievalScores or None
        Of the rankings of the examples of held-out queries, before and after training; None with
        fewer than ten queries.
    decisions : tuple of Decision
    """

    folder: Path
    before: RetrievalScores | None
    after: RetrievalScores | None
    decisions: tuple[Decision, ...]

    def predict(self, pairs: Sequence[tuple[str, str]]) -> FloatArray:
        """Return a number for each pair of query and passage, (n_pairs,); higher is better."""
        network, tokenizer = self._loaded
        return _logits(network, tokenizer, pairs)

    @cached_property
    def _loaded(self) -> tuple[Any, Any]:
        return _cross_encoder(self.folder, TrainingSettings())


def settings_of(options: Mapping[str, Any], known: Sequence[str]) -> TrainingSettings:
    """Return settings; those that this training does not have are refused."""
    settings: TrainingSettings = settings_from(TrainingSettings, options)
    for name in sorted(set(options) - set(known)):
        raise InputError(name, f"left out here, where {', '.join(known)} count", options[name])
    return settings


def label_marks(codes: Int64Array, n_classes: int, ordinal: bool) -> FloatArray:
    """Return labels as 0 and 1, (n, n_classes); of ordered classes, all up to a text's."""
    if codes.ndim == 2:
        return codes.astype(np.float32)
    if ordinal:
        return (np.arange(n_classes) <= codes[:, None]).astype(np.float32)
    return np.eye(n_classes, dtype=np.float32)[codes]


def fit_few_shot(
    model: TextClassifier,
    texts: list[str],
    codes: Int64Array,
    of_class: Float64Array | None,
    options: dict[str, Any],
    folder: Path,
) -> None:
    settings = settings_of({**FEW_SHOT, **options}, OF_FEW_SHOT)
    weights = sample_weights(codes, of_class)
    model.groups_ = near_copies(texts, None)
    n_classes = len(model.classes_)

    def trained(rows: Int64Array, place: Path) -> tuple[SentenceEncoder, LinearHead]:
        marks = label_marks(codes[rows], n_classes, model.head == "ordinal")
        chosen = [texts[row] for row in rows.tolist()]
        _learn_pairs(model.encoder, chosen, marks, settings, place)
        # By torch: to export the network takes longer than to encode so few texts.
        encoder = opened(place, runtime="torch")
        of_rows = None if weights is None else weights[rows]
        vectors = encoder.encode(chosen)
        return encoder, fit_head(model.head, vectors, codes[rows], USUAL_STRENGTH, of_rows)

    scores = np.empty((0, 0))
    if model.calibration is not None:
        n_folds = n_folds_for(codes, CALIBRATION_FOLDS)
        folds = grouped_folds(codes, model.groups_, n_folds, settings.random_state)
        scores = np.full((len(codes), n_classes - (model.head == "ordinal")), -30.0)
        for fold in np.unique(folds).tolist():
            rows, others = np.flatnonzero(folds == fold), np.flatnonzero(folds != fold)
            with tempfile.TemporaryDirectory() as made:
                encoder, head = trained(others, Path(made) / "encoder")
                found = head.scores(encoder.encode([texts[row] for row in rows.tolist()]))
                scores[rows, : found.shape[1]] = found
    model._left_out(scores, codes)
    model.head_ = trained(np.arange(len(texts)), folder)[1]
    model.encoder_ = opened(folder)
    text = f"The encoder read each of {len(texts):,} texts {settings.epochs:g} times, in pairs."
    model._note("epochs", settings.epochs, text)


def _in_batches(marks: FloatArray, settings: TrainingSettings) -> list[Int64Array]:
    """Return the texts of each step: all once an epoch, each beside one that shares most labels."""
    rng = np.random.default_rng(settings.random_state)
    similar = _jaccard_of(marks)
    n_batches = max(1, round(len(marks) / settings.batch_size))
    n_steps = settings.max_steps or max(1, round(settings.epochs * n_batches))
    batches: list[Int64Array] = []
    while len(batches) < n_steps:
        left, couples = rng.permutation(len(marks)), []
        while len(left) > 3:
            couple = [0, 1 + int(similar[left[0], left[1:]].argmax())]
            couples.append(left[couple])
            left = np.delete(left, couple)
        couples.append(left)
        parts = np.array_split(rng.permutation(len(couples)), min(n_batches, len(couples)))
        batches += [np.concatenate([couples[place] for place in part]) for part in parts]
    return batches[:n_steps]


def _jaccard_of(marks: FloatArray) -> FloatArray:
    """Return the share of their labels that two texts have in common, (n, n)."""
    both = marks @ marks.T
    either = marks.sum(axis=1)[:, None] + marks.sum(axis=1) - both
    return np.where(either > 0, both / np.maximum(either, 1), 1.0).astype(np.float32)


def _learn_pairs(
    encoder: Any, texts: list[str], marks: FloatArray, settings: TrainingSettings, folder: Path
) -> None:
    """Train an encoder so that the cosine of texts is how many of their labels they share."""
    import torch

    from embedtopics.training.objectives import _trainable as models
    from embedtopics.training.trainer._batching import BatchEncoder, tokens_held

    device = _device(settings)
    trainable = models.trainable_of(encoder, settings)
    network: Any = trainable.model.to(device)
    ids = trainable.tokenize_texts(texts)
    batches = _in_batches(marks, settings)
    reader = BatchEncoder(
        lambda rows: network(trainable.features(rows))["sentence_embedding"].float(),
        settings.tokens_at_once or tokens_held(network, device),
    )

    def learn(step: int) -> Any:
        similar = torch.as_tensor(_jaccard_of(marks[batches[step]]), device=device)
        columns = [[ids[row] for row in batches[step]]]
        seed = settings.random_state * 1_000 + step
        return reader.learn(columns, partial(_pair_loss, similar), torch.Tensor.backward, seed)

    with _tokens_alone(trainable, ids):
        _take_steps(network, len(batches), learn, settings)
    models.save_trainable(trainable, folder)


@contextmanager
def _tokens_alone(trainable: Trainable, ids: list[list[int]]) -> Iterator[None]:
    """Learn vectors of the tokens that occur: those of a whole vocabulary take 14 % of a step."""
    import torch

    transformer: Any = None if trainable.is_static else trainable.model[0].model
    table = transformer and transformer.get_input_embeddings()
    if table is None or not table.weight.requires_grad:
        yield
        return
    device = table.weight.device
    tokens = torch.tensor(sorted({trainable.pad_id, *chain.from_iterable(ids)}), device=device)
    place = torch.zeros(len(table.weight), dtype=torch.long, device=device)
    place[tokens] = torch.arange(len(tokens), device=device)
    rows = table.weight.detach()[tokens]
    part = torch.nn.Embedding(len(rows), rows.shape[1], _weight=rows)
    part.register_forward_pre_hook(lambda _, given: (place[given[0]],))
    transformer.set_input_embeddings(part)
    yield
    transformer.set_input_embeddings(table.cpu())
    with torch.no_grad():
        table.weight[tokens.cpu()] = part.weight.cpu()


def opened(folder: Path, runtime: str | None = None) -> SentenceEncoder:
    return SentenceEncoder(folder, precision="float32", long_texts="chunk", runtime=runtime)


def _take_steps(
    network: Any, n_steps: int, learn: Callable[[int], Any], settings: TrainingSettings
) -> None:
    """Take the steps of AdamW; `learn` adds the gradients of a step and returns its loss."""
    import torch

    n_warm = max(1, round(settings.warmup * n_steps))
    learned = [weight for weight in network.parameters() if weight.requires_grad]
    optimizer = torch.optim.AdamW(learned, weight_decay=settings.weight_decay, fused=True)
    show = settings.show_progress
    bar = progress_bar(total=n_steps, unit="step", description="Training", show=show)
    network.train()
    with bar, torch.random.fork_rng():
        for step in range(n_steps):
            falls = (n_steps - step) / max(1, n_steps - n_warm)
            for group in optimizer.param_groups:
                group["lr"] = settings.learning_rate * min((step + 1) / n_warm, falls)
            optimizer.zero_grad()
            torch.manual_seed(settings.random_state * 1_000 + step)
            if not bool(torch.isfinite(learn(step))):
                wanted = f"one whose loss stays finite, unlike that of step {step + 1}"
                raise InputError("learning_rate", wanted, settings.learning_rate)
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
    """Train a network on examples of some lengths; `loss_of` takes rows and the device."""
    from embedtopics.training.trainer._batching import BatchPlan

    device = _device(settings)
    network.to(device)
    plan = BatchPlan(lengths, settings.batch_size, settings.random_state)
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
    """Return the loss of Tunstall et al. (2022), over all pairs of a batch and not some."""
    import torch

    units = torch.nn.functional.normalize(torch.cat(list(vectors)), dim=1)
    upper = torch.triu(torch.ones_like(similar), diagonal=1) > 0
    wanted = similar[upper]
    losses = ((units @ units.T)[upper] - wanted).square()
    # Similar and dissimilar pairs count the same, however many classes there are.
    near, far = losses[wanted > 0.5], losses[wanted <= 0.5]
    return torch.stack([part.mean() for part in (near, far) if len(part)]).mean()


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
    """Train a cross-encoder to say how well passages answer queries.

    It is a `reranker` of `SearchIndex.search`. Binary cross-entropy, relevant passages weighted so
    that they count as much as all others (Nogueira and Cho 2019, "Passage re-ranking with BERT").

    Parameters
    ----------
    model : str or path
        Name or folder of the encoder to begin with, or the folder of a cross-encoder.
    examples : Examples
        Query and passage with a judgement ("graded" or "binary"); or with negatives ("triplets");
        or "pairs" as `make_pairs` makes them of a collection, whose negatives are mined.
    miner, corpus, num_negatives
        Of "pairs", as `embedtopics.training.mine_hard_negatives` takes them.
    out : path, optional
        Folder of the trained model, which `load_cross_encoder` reads; by default a temporary one.
    training : mapping, optional
        Fields of `embedtopics.training.TrainingSettings`, such as ``{"epochs": 3}``.

    Returns
    -------
    PairScorer

    Raises
    ------
    InputError
        For examples of another kind, a model that is no transformer, and other settings.
    """
    settings = settings_of({**PAIR_SCORER, **(training or {})}, OF_BOTH)
    kind = getattr(examples, "kind", None)
    if kind not in ("graded", "binary", "pairs", "triplets"):
        raise InputError("examples", "graded, binary, pairs or triplets of read_examples", examples)
    if kind == "pairs":
        examples = mine_hard_negatives(examples, miner, num_negatives=num_negatives, corpus=corpus)
    pairs, labels = _judged(examples)
    folder = Path(out or Path(tempfile.mkdtemp(prefix="embedtopics-scorer-")) / "model")
    folder = check_output_folder(folder.expanduser(), SCORER)
    queries = sorted({query for query, _ in pairs})
    rng = np.random.default_rng(settings.random_state)
    n_held = max(2, len(queries) // 10) if len(queries) >= LEAST_QUERIES else 0
    held = {queries[place] for place in rng.permutation(len(queries))[:n_held]}
    is_held = np.array([query in held for query, _ in pairs])
    network, tokenizer = _cross_encoder(model, settings)
    rank = partial(_ranked, network, tokenizer, pairs, labels, np.flatnonzero(is_held))
    before = rank()
    _learn_judgements(network, tokenizer, pairs, labels, np.flatnonzero(~is_held), settings)
    after = rank()
    with replacing_folder(folder, SCORER) as fresh, silent_transformers():
        network.save_pretrained(fresh)
        tokenizer.save_pretrained(fresh)
        write_manifest(fresh, SCORER, 1)
    text = f"{n_held:,} of {len(queries):,} queries were held out to measure what was learned."
    note = Decision("classification", "held_out", n_held, text)
    made = PairScorer(folder, before, after, (*examples.decisions, note))
    if out is None:  # the folder goes with what reads it
        weakref.finalize(made, shutil.rmtree, folder.parent, ignore_errors=True)
    return made


def _judged(examples: Examples) -> tuple[list[tuple[str, str]], FloatArray]:
    """Return distinct pairs of query and passage, and how relevant each is, from 0 to 1."""
    queries, passages, *negatives = examples.columns
    labels = np.ones(len(queries)) if examples.labels is None else examples.labels
    relevance: dict[tuple[str, str], float] = {}
    for column in negatives:
        relevance |= {pair: 0.0 for pair in zip(queries, column, strict=True)}
    for pair, label in zip(zip(queries, passages, strict=True), labels.tolist(), strict=True):
        relevance[pair] = max(relevance.get(pair, 0.0), float(label))
    return list(relevance), np.array(list(relevance.values()), dtype=np.float32)


def _cross_encoder(model: str | os.PathLike[str], settings: TrainingSettings) -> tuple[Any, Any]:
    """Return a model that gives one number a pair, and its tokenizer."""
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    folder = Path(model).expanduser()
    if not folder.is_dir():
        folder = transformer_of(model, "model").recipe.checkpoint.folder
    local: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
    with torch.random.fork_rng(), silent_transformers():
        torch.manual_seed(settings.random_state)  # of a head that is new
        try:
            network: Any = AutoModelForSequenceClassification.from_pretrained(
                folder, num_labels=1, use_safetensors=True, dtype=torch.float32, **local
            )
            tokenizer: Any = AutoTokenizer.from_pretrained(folder, **local)
        except (OSError, RuntimeError, ValueError) as error:
            raise InputError("model", "a transformer with safetensors weights", model) from error
    limit = position_limit(network.config.to_dict()) or MOST_TOKENS
    most = (MOST_TOKENS, limit, tokenizer.model_max_length, settings.max_length or limit)
    tokenizer.model_max_length = min(most)
    return network.eval(), tokenizer


def _logits(network: Any, tokenizer: Any, pairs: Sequence[tuple[str, str]]) -> FloatArray:
    import torch

    found = np.empty(len(pairs), dtype=np.float32)
    order = sorted(range(len(pairs)), key=lambda row: len(pairs[row][1]))
    for begin in range(0, len(order), PAIRS_AT_ONCE):
        rows = order[begin : begin + PAIRS_AT_ONCE]
        with torch.no_grad():
            found[rows] = network(**_features(tokenizer, [pairs[row] for row in rows])).logits[:, 0]
    return found


def _features(tokenizer: Any, pairs: Sequence[tuple[str, str]]) -> Any:
    return tokenizer(*map(list, zip(*pairs, strict=True)), truncation=True, padding=True,
                     return_tensors="pt")  # fmt: skip


def _ranked(
    network: Any, tokenizer: Any, pairs: list[tuple[str, str]], labels: FloatArray, rows: Int64Array
) -> RetrievalScores | None:
    """Measure the ranking of the examples of some queries."""
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
    import torch

    share = float(labels[rows].mean())
    weight = torch.tensor((1 - share) / share if 0 < share < 1 else 1.0)

    def loss_of(places: list[int], device: str) -> Any:
        chosen = rows[places]
        features = _features(tokenizer, [pairs[row] for row in chosen.tolist()]).to(device)
        return torch.nn.functional.binary_cross_entropy_with_logits(
            network(**features).logits[:, 0], torch.as_tensor(labels[chosen], device=device),
            pos_weight=weight.to(device),
        )  # fmt: skip

    lengths = [sum(map(len, pairs[row])) for row in rows.tolist()]
    learn_batches(network, lengths, loss_of, settings)
