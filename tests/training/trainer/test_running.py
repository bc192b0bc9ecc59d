"""Whole runs of a tiny encoder: against a plain loop, interrupted, and gone wrong."""

import random

import numpy as np
import pytest
import torch

from embedtopics.errors import InputError
from embedtopics.training._examples import Examples
from embedtopics.training._settings import TrainingSettings
from embedtopics.training.objectives._losses import pairs_ranking
from embedtopics.training.objectives._trainable import trainable_of
from embedtopics.training.trainer import _running as running
from embedtopics.training.trainer._batching import (
    BatchEncoder,
    StepPlan,
    TrainingData,
    prepare,
    tokenized,
)
from embedtopics.training.trainer._running import train
from embedtopics.training.trainer._trainer import device_and_precision
from tests.training.trainer.conftest import CONTENT

ABOUT = {"encoder": "tiny", "objective": "pairs", "training examples": "these", "settings": {}}


def settings(**changes):
    base = {"epochs": 2, "batch_size": 8, "learning_rate": 1e-3, "validations_per_epoch": 2,
            "random_state": 1, "device": "cpu", "show_progress": False,
            "patience": None}  # fmt: skip
    return TrainingSettings(**base | changes)


def weights_of(data):
    return {name: tensor.clone() for name, tensor in data.weights().items()}


def trained(data_of, folder, options=None, **how):
    """Return what was trained in a folder, and the run."""
    options = options or settings()
    data, validation = data_of(options, **how)
    return data, train(data, validation, options, folder, ABOUT)


def same(first, second):
    return first.keys() == second.keys() and all(
        torch.equal(first[name], second[name]) for name in first
    )


def by_a_plain_loop(data, options):
    """Learn as the textbook says: pad each column, AdamW, a triangle of learning rates."""
    model = data.model.train()
    decayed = [p for n, p in model.named_parameters() if "LayerNorm" not in n and "bias" not in n]
    others = [p for n, p in model.named_parameters() if "LayerNorm" in n or "bias" in n]
    optimizer = torch.optim.AdamW(
        [{"params": decayed, "weight_decay": options.weight_decay},
         {"params": others, "weight_decay": 0.0}], lr=options.learning_rate,
    )  # fmt: skip
    plan = StepPlan(data.examples.lengths, options.batch_size, options.random_state)
    epochs = int(options.epochs)
    n_steps = epochs * len(plan) // options.accumulation
    n_warm = -(-options.warmup * n_steps // 1)
    batches = [batch for epoch in range(epochs) for batch in plan.of_epoch(epoch)]
    losses = []
    for step in range(int(n_steps)):
        share = step / n_warm if step < n_warm else (n_steps - step) / (n_steps - n_warm)
        for group in optimizer.param_groups:
            group["lr"] = options.learning_rate * share
        optimizer.zero_grad()
        total = 0.0
        for places in batches[step * options.accumulation : (step + 1) * options.accumulation]:
            batch = data.batch(data.examples, places, np.random.default_rng(0))
            u, v = (model(data.trainable.features(c))["sentence_embedding"] for c in batch.columns)
            loss = ((torch.cosine_similarity(u, v) - batch.labels) ** 2).mean()
            (loss / options.accumulation).backward()
            total += float(loss.detach()) / options.accumulation
        torch.nn.utils.clip_grad_norm_(model.parameters(), options.max_gradient)
        optimizer.step()
        losses.append(total)
    return losses


@pytest.mark.parametrize("accumulation", [1, 2])
def test_a_run_is_the_plain_loop(data_of, tmp_path, accumulation):
    options = settings(accumulation=accumulation)
    data, validation = data_of(options, dropout=0.0)
    oracle, _ = data_of(options, dropout=0.0)
    losses = by_a_plain_loop(oracle, options)
    ends = []
    original = running._Training.validate

    def noting(self, step):
        original(self, step)
        ends.append(weights_of(self.data))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(running._Training, "validate", noting)
        run = train(data, validation, options, tmp_path / "run", ABOUT)
    np.testing.assert_allclose(run.curves.training_loss, losses, rtol=2e-4)
    for name, expected in oracle.weights().items():
        # The gradient of a key's bias is zero but for rounding, which Adam divides by itself.
        if not name.endswith("key.bias"):
            torch.testing.assert_close(ends[-1][name], expected, rtol=1e-3, atol=1e-4)


def test_training_learns_and_keeps_the_best(data_of, tmp_path):
    options = settings(epochs=6)
    data, validation = data_of(options)
    before = weights_of(data)
    run = train(data, validation, options, tmp_path / "run", ABOUT)
    curves = run.curves
    best = int(np.argmin(curves.validation_loss))
    assert curves.validation_steps[0] == 0 and curves.validation_steps[-1] == run.n_steps == 36
    assert run.best_step == curves.validation_steps[best]
    assert curves.sample_loss[-1] < 0.7 * curves.sample_loss[0]
    assert run.stopped == "finished" and run.examples_per_second > 0
    assert run.best_step > 0 and not same(before, weights_of(data))
    written = {path.suffix for path in (tmp_path / "run").rglob("*") if path.is_file()}
    assert written == {".safetensors", ".json"}  # no pickle


def test_a_seed_gives_the_same_weights_and_leaves_random_states_alone(data_of, tmp_path):
    found = []
    for place in ("one", "two"):
        torch.manual_seed(len(place))
        data, validation = data_of(settings())
        states = random.getstate(), np.random.get_state()[1].copy(), torch.get_rng_state()  # noqa: NPY002
        train(data, validation, settings(), tmp_path / place, ABOUT)
        assert random.getstate() == states[0]
        np.testing.assert_array_equal(np.random.get_state()[1], states[1])  # noqa: NPY002
        assert torch.equal(torch.get_rng_state(), states[2])
        found.append(weights_of(data))
    assert same(*found)
    data, _ = trained(data_of, tmp_path / "three", settings(random_state=2))
    assert not same(found[0], weights_of(data))


def test_early_stopping_counts_validations_without_a_gain(data_of, tmp_path):
    # A step so small that nothing changes: no validation is better than that before training.
    options = settings(learning_rate=1e-12, patience=3, epochs=4)
    data, validation = data_of(options)
    before = weights_of(data)
    run = train(data, validation, options, tmp_path / "run", ABOUT)
    assert run.stopped == "no improvement"
    assert len(run.curves.validation_steps) == 4 and run.n_steps == 9 and run.best_step == 0
    assert same(before, weights_of(data))


def test_a_run_is_validated_often_enough_to_be_read(data_of, tmp_path, monkeypatch):
    monkeypatch.setattr(running, "LEAST_VALIDATIONS", 8)
    rare = settings(sample_size=0, max_steps=48, validations_per_epoch=0.5)
    assert len(data_of(rare)[1]) * 8 == rare.max_steps * rare.batch_size
    _, run = trained(data_of, tmp_path / "run", rare)
    assert run.curves.validation_steps.tolist() == list(range(0, 49, 6))
    assert np.isnan(run.curves.sample_loss).all() and run.curves.n_sample == 0
    # Nor does it read more texts to validate than to learn, but three times.
    _, run = trained(data_of, tmp_path / "costly")
    assert run.curves.validation_steps.tolist() == [0, 3, 6, 9, 12]
    _, run = trained(data_of, tmp_path / "short", settings(epochs=0.5))
    assert run.curves.validation_steps.tolist() == [0, 1, 2, 3]


def test_the_first_validation_is_done_with_the_numbers_of_the_others(data_of, tmp_path):
    options = settings(precision="bfloat16", epochs=1)
    data, validation = data_of(options)
    seen = []
    original = TrainingData.measure

    def noting(data, *arguments, **named):
        found = []
        layer = data.model[0].auto_model.encoder.layer[0].attention.self.query
        hook = layer.register_forward_hook(lambda _, __, output: found.append(output.dtype))
        measured = original(data, *arguments, **named)
        hook.remove()
        seen.append(set(found))
        return measured

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TrainingData, "measure", noting)
        train(data, validation, options, tmp_path / "run", ABOUT)
    assert len(seen) == 6 and all(dtypes == {torch.bfloat16} for dtypes in seen)
    assert {tensor.dtype for tensor in data.weights().values()} <= {torch.float32, torch.int64}


def test_gradients_of_a_losss_own_weights_are_forgotten_after_a_step(data_of, tmp_path):
    data, validation = data_of(settings(epochs=1))
    own = torch.nn.Parameter(torch.ones(1))
    data.loss.register_parameter("own", own)
    original = type(data).loss_of
    found = []

    def with_own(self, batch, vectors):
        if torch.is_grad_enabled():
            found.append(None if own.grad is None else float(own.grad))
        return original(self, batch, vectors) + own.sum()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(data), "loss_of", with_own)
        # Older trainers leave it to the model, which does not know the loss.
        patch.setattr(torch.optim.AdamW, "zero_grad", lambda *_, **__: None)
        train(data, validation, settings(epochs=1), tmp_path / "run", ABOUT)
    assert found == [None] * 6


def test_examples_without_room_in_a_batch_are_left_out_of_the_mean(tiny_bert):
    # Every text belongs to one of two classes: a batch has room for one of each.
    texts = [f"{a} {b}" for a in CONTENT[:5] for b in CONTENT[5:10]][:24]
    classes = [CONTENT[10 + place % 2] for place in range(24)]
    examples = Examples("pairs", (tuple(texts), tuple(classes)), None, np.arange(24))
    trainee = trainable_of(tiny_bert, TrainingSettings())
    data = prepare(trainee, pairs_ranking(examples, both_ways=False), 0)
    held_out = tokenized(trainee, examples)
    encoder = BatchEncoder(data.forward, 4096)
    loss, _ = data.measure(encoder, held_out, 8, with_metric=False)

    trainee.model.eval()
    with torch.no_grad():

        def encoded(some):
            return torch.nn.functional.normalize(data.forward(trainee.tokenize_texts(some)), dim=1)

        cosines = 20 * encoded(texts) @ encoded(CONTENT[10:12]).T
    own = [place % 2 for place in range(24)]
    losses = torch.nn.functional.cross_entropy(cosines, torch.tensor(own), reduction="none")
    # Three batches of a text of either class: which ones, the fixed seed of the plan says.
    assert float(losses.min()) <= loss <= float(losses.max())
    chosen = [place for batch in StepPlan(np.zeros(24), 8, 0, held_out.keys) for place in batch]
    assert len(chosen) == 6
    assert loss == pytest.approx(float(losses[chosen].mean()), rel=1e-5)


@pytest.fixture()
def gpu(monkeypatch):
    """Make believe that there are GPUs, of a generation that has bfloat16 or imitates it."""

    def make(there=True, has_bfloat=True):
        monkeypatch.setattr(torch.cuda, "is_available", lambda: there)
        monkeypatch.setattr(
            torch.cuda, "is_bf16_supported",
            lambda including_emulation=True: there and (has_bfloat or including_emulation),
        )  # fmt: skip

    return make


@pytest.mark.parametrize(
    ("there", "has_bfloat", "named", "expected"),
    [
        (False, False, {}, ("cpu", "float32")),
        (True, True, {}, ("cuda", "bfloat16")),
        (True, False, {}, ("cuda", "float32")),
        (True, True, {"device": "cpu"}, ("cpu", "float32")),
        (True, True, {"device": "cuda:0"}, ("cuda:0", "bfloat16")),
        (True, True, {"precision": "float32"}, ("cuda", "float32")),
        (True, False, {"precision": "float16"}, ("cuda", "float16")),
        (False, False, {"precision": "bfloat16"}, ("cpu", "bfloat16")),
    ],
)
def test_the_best_there_is_unless_asked_otherwise(gpu, there, has_bfloat, named, expected):
    gpu(there, has_bfloat)
    assert device_and_precision(TrainingSettings(**named)) == expected


@pytest.mark.parametrize(
    ("there", "has_bfloat", "named", "said"),
    [
        (False, False, {"device": "gpu"}, "gpu"),
        (False, False, {"device": "cuda"}, "here: cpu; got 'cuda'"),
        (False, False, {"device": "meta"}, "got 'meta'"),
        (True, True, {"device": "cuda:1"}, "CUDA_VISIBLE_DEVICES=1"),
        (False, False, {"precision": "float16"}, "float16"),
        (True, True, {"precision": "float16", "device": "cpu"}, "float16"),
        (True, False, {"precision": "bfloat16"}, "bfloat16"),
    ],
)
def test_what_is_not_there_is_named(gpu, there, has_bfloat, named, said):
    gpu(there, has_bfloat)
    with pytest.raises(InputError) as error:
        device_and_precision(TrainingSettings(**named))
    assert said in str(error.value)
