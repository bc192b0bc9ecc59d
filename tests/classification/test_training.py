"""Encoders that learn from labelled texts: pairs, all weights, and going on."""

from contextlib import nullcontext
from functools import partial
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
import torch
from tokenizers import Tokenizer

import embedtopics as et
from embedtopics import SentenceEncoder, TextClassifier
from embedtopics.classification import _pairs, _training, evaluate
from embedtopics.classification._heads import LinearHead
from embedtopics.classification._pairs import (
    _jaccard_of,
    _pair_loss,
    _paired_batches,
    joined_pairs,
    settings_mapping,
    step_settings,
)
from embedtopics.classification._storage import recorded_settings
from embedtopics.classification._training import _head_loss, _linear, _optimizers, _Ulmfit
from embedtopics.encoders.sentence._running import read_together
from embedtopics.training import TrainingSettings
from embedtopics.training.objectives._trainable import trainable_of
from embedtopics.training.trainer._running import _Training
from tests.factories import refuses

THEMES = {"pets": "cat dog sat mat".split(), "water": "river blue stone".split(),
          "light": "light red sound".split()}  # fmt: skip
QUICK = {"epochs": 3, "learning_rate": 3e-3, "batch_size": 8, "show_progress": False}

FEW = {**QUICK, "epochs": 25, "batch_size": 16}
SLOW = {**QUICK, "epochs": 12, "learning_rate": 2e-2, "validations_per_epoch": 0.5}


@pytest.fixture(scope="module")
def themed():
    rng = np.random.default_rng(0)
    themes = [list(THEMES)[i] for i in rng.integers(0, 3, 72)]
    ends = [f"{'abcdefghij'[i % 10]} in {'klmnopqr'[i // 10]}" for i in range(72)]
    chosen = [" ".join(rng.choice(THEMES[theme], 3)) for theme in themes]
    texts = [f"the {words} {end}" for words, end in zip(chosen, ends, strict=True)]
    return texts, themes


@pytest.mark.parametrize("n", [1, 2, 7, 20])
def test_each_text_is_read_once_an_epoch_beside_one_of_its_label(n):
    marks = np.eye(3, dtype=np.float32)[np.repeat([0, 1, 2], n)]
    batches = _paired_batches(marks, TrainingSettings(epochs=2, batch_size=8))
    rows = np.concatenate(batches)
    assert np.array_equal(np.sort(rows[: 3 * n]), np.arange(3 * n)) and len(rows) == 6 * n
    without = [row for b in batches for row in b if (marks[b] @ marks[row]).sum() < 2]
    assert len(without) <= 2 * (6 if n == 1 else 3)  # at most one a label is left over


def test_the_loss_of_pairs_by_hand():
    vectors = torch.tensor([[1.0, 0.0], [0.0, 2.0], [1.0, 0.0], [1.0, 1.0]])
    marks = np.array([[1.0, 0], [0, 1], [1, 0], [0, 1]])
    found = _pair_loss(torch.from_numpy(_jaccard_of(marks)), [vectors])
    half = 0.5**0.5
    near = ((1 - 1) ** 2 + (half - 1) ** 2) / 2
    far = (0 + half**2 + 0 + half**2) / 4
    assert np.isclose(float(found), (near + far) / 2)


SLOWLY = [pytest.param(head, marks=pytest.mark.slow) for head in ("ordinal", "multilabel")]


@pytest.mark.parametrize("head", ["softmax", *SLOWLY])
@pytest.mark.parametrize("method", ["few_shot", "fine_tune"])
def test_an_encoder_learns_labels(tmp_path, tiny_bert, themed, method, head):
    texts, themes = themed
    y = [[t] for t in themes] if head == "multilabel" else themes
    model = TextClassifier(
        tiny_bert, method=method, head=head, classes=list(THEMES), class_weight="balanced",
        settings=FEW if method == "few_shot" else SLOW,
        calibration="temperature" if method == "fine_tune" else None,
    ).fit(texts[:48], y[:48])  # fmt: skip
    if method == "few_shot":
        numbers = np.array([list(THEMES).index(theme) for theme in themes])
        assert (model.predict_proba(texts[48:]).argmax(axis=1) == numbers[48:]).mean() > 0.6
    else:  # a tiny model with random weights learns slowly
        losses = model.training_report_.curves.training_loss
        assert losses[-10:].mean() < 0.97 * losses[:10].mean()
    model.save(tmp_path / "model")
    again = TextClassifier.load(tmp_path / "model")
    assert np.allclose(again.predict_proba(texts), model.predict_proba(texts), atol=1e-6)
    if method == "fine_tune":
        assert again.training_report_.curves.metric_name in ("macro F1", "quadratic kappa")


def test_vectors_of_the_tokens_that_occur_are_learned_as_if_with_all(
    tiny_bert, themed, monkeypatch
):
    texts, themes = themed
    training = {**QUICK, "weight_decay": 0.0}
    options = {"method": "few_shot", "settings": training, "calibration": None}
    make = partial(TextClassifier, tiny_bert, **options)
    alone = make().fit(texts[:24], themes[:24])
    monkeypatch.setattr(_pairs, "_used_tokens", lambda *_: nullcontext())
    whole = make().fit(texts[:24], themes[:24])
    assert np.allclose(alone._vectors(texts), whole._vectors(texts), atol=1e-4)


@pytest.mark.slow
@pytest.mark.smoke
def test_a_run_that_was_interrupted_goes_on(tmp_path, tiny_bert, themed, monkeypatch):
    settings = {**QUICK, "layer_decay": 0.5}
    make = partial(TextClassifier, tiny_bert, method="fine_tune", settings=settings)
    whole = make().fit(*themed, out=tmp_path / "whole")
    write, steps = _Training.write_checkpoint, []

    def stop_later(run, trainer, step):
        write(run, trainer, step)
        steps.append(step)
        if len(steps) == 4:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(_Training, "write_checkpoint", stop_later)
        with pytest.raises(KeyboardInterrupt):
            make().fit(*themed, out=tmp_path / "part")
    again = make().fit(*themed, out=tmp_path / "part")
    assert any(decision.name == "resumed" for decision in again.decisions_)
    assert np.array_equal(again.predict_proba(themed[0]), whole.predict_proba(themed[0]))
    with refuses("out"):
        make().fit(*themed, out=tmp_path / "part")


@pytest.mark.parametrize("kind", ["softmax", "ordinal", "multilabel"])
def test_training_of_all_weights_begins_with_the_head_of_frozen_vectors(kind):
    rng = np.random.default_rng(0)
    n_outputs = 2 if kind == "ordinal" else 3
    slopes, bias = rng.normal(size=(n_outputs, 5)), np.array([2.0, -1.0, 0.5])[:n_outputs]
    if kind == "ordinal":
        slopes[1:] = slopes[0]
    head = LinearHead(kind, slopes, bias)
    again = _linear(kind, _head_loss(head, 3, None, dropout=0.1))
    assert np.allclose(again.weights, slopes, atol=1e-6) and np.allclose(again.bias, bias)
    # No training text has the last class.
    absent = _linear(kind, _head_loss(head, 4, None, dropout=0.1))
    vectors = rng.normal(size=(20, 5))
    assert np.allclose(absent.scores(vectors)[:, :n_outputs], head.scores(vectors), atol=1e-5)
    assert (absent.scores(vectors)[:, n_outputs] < -15).all()


@pytest.mark.parametrize(
    ("n_texts", "options", "n_steps"),
    [(300, {}, 120), (6400, {}, 1200), (300, {"epochs": 2}, None), (300, {"max_steps": 7}, 7)],
)
def test_steps_and_rate_follow_from_texts_and_width(tiny_bert, n_texts, options, n_steps):
    settings = _training._settings(options, SentenceEncoder(tiny_bert), n_texts, n_texts // 10)
    assert settings.max_steps == n_steps and settings.learning_rate == 0.04 / 16
    assert settings.keep == ("best" if n_texts == 6400 else "last")
    if not options:  # 12 validations, in 120 / (300 / 16) epochs and in 3
        n_epochs = n_steps * 16 / n_texts
        assert settings.validations_per_epoch == pytest.approx(12 / n_epochs)


def test_auto_takes_the_method_that_predicts_left_out_texts_best(tmp_path, tiny_bert, themed):
    texts, themes = themed
    train, test = (texts[:48], themes[:48]), (texts[48:], themes[48:])
    training = {**QUICK, "epochs": 2}
    model = TextClassifier(tiny_bert, method="auto", settings=training).fit(*train)
    (decision,) = (one for one in model.decisions_ if one.name == "method")
    assert decision.value.keys() == {"frozen", "few_shot", "fine_tune"}
    assert decision.value[model.method_] == max(decision.value.values())
    # The probabilities of texts that were left out are those that the choice was made by.
    guess = model.left_out_scores_.argmax(axis=1)
    truth = np.unique(themes, return_inverse=True)[1][:48]
    assert np.array_equal(model.left_out_codes_, truth)
    assert (guess == truth).mean() == pytest.approx(decision.value[model.method_], abs=0.1)
    again = TextClassifier(tiny_bert, method=model.method_, settings=training, calibration=None)
    assert np.allclose(again.fit(*train).head_.weights, model.head_.weights, atol=1e-6)
    model.save(tmp_path / "model")
    loaded = TextClassifier.load(tmp_path / "model")
    assert loaded.method_ == model.method_ and loaded.encoder.name == str(tiny_bert)
    report = evaluate(loaded, test, train)
    assert decision.message in [one.message for one in report.decisions]
    assert ("frozen" in set(report.to_frame()["of"])) == (model.method_ != "frozen")


def test_auto_leaves_out_methods_that_take_too_long(tiny_bert, themed, monkeypatch):
    monkeypatch.setattr(_training, "FLOPS", 1.0)
    model = TextClassifier(tiny_bert, method="auto").fit(*themed)
    assert model.method_ == "frozen"
    (decision,) = (one for one in model.decisions_ if one.name == "method")
    assert list(decision.value) == ["frozen"] and "fine_tune was not tried" in decision.message
    tfidf = TextClassifier("tfidf", method="auto").fit(*themed)
    assert tfidf.method_ == "frozen" and "not tried" not in tfidf.decisions_[0].message


def test_rates_by_layer_and_step(tiny_bert):
    class Data:
        model = trainable_of(tiny_bert, TrainingSettings()).model
        loss = torch.nn.Linear(16, 3)

    class Arguments:
        learning_rate, weight_decay, max_steps, warmup_steps = 0.01, 0.1, 20, 2

    extra = _Ulmfit(layer_decay=0.5, slanted=True, unfreezing=True)
    optimizer, schedule = _optimizers(extra, Data, Arguments, 4)
    sizes = sum(w.numel() for group in optimizer.param_groups for w in group["params"])
    pooler = sum(w.numel() for w in Data.model[0].model.pooler.parameters())
    assert sizes == sum(w.numel() for w in [*Data.model.parameters(), *Data.loss.parameters()])
    assert pooler  # it stays in the encoder, unused
    rates = []
    for _ in range(20):
        rates.append(schedule.get_last_lr())
        optimizer.step()
        schedule.step()
    top, second, bottom = (np.array(rates)[:, place] for place in (0, 2, -1))
    assert (
        top[0] == 0 and np.isclose(top[2], 0.01) and np.isclose(top[11], 0.01 * (1 + 31 / 2) / 32)
    )
    assert (second[:4] == 0).all() and np.isclose(second[6] / top[6], 0.5)
    assert (bottom[:12] == 0).all() and np.isclose(bottom[13] / top[13], 0.125)
    assert _optimizers(_Ulmfit(), Data, Arguments, 4) is None


@pytest.mark.parametrize(
    ("parameter", "options", "method"),
    [
        ("layer_decay", {"layer_decay": 2.0}, "fine_tune"),
        ("patience", {"patience": 3}, "few_shot"),
        ("learning_rate", {"learning_rate": 1e30, "epochs": 20}, "few_shot"),
    ],
)
def test_bad_training_options_are_refused(tiny_bert, themed, parameter, options, method):
    with refuses(parameter):
        TextClassifier(tiny_bert, method=method, settings=options).fit(*themed)


def test_what_cannot_be_trained_is_refused(themed, tiny_bert):
    with refuses("encoder"):
        TextClassifier("tfidf", method="fine_tune").fit(*themed)
    with refuses("validation"):
        TextClassifier(tiny_bert, method="few_shot").fit(*themed, validation=themed)
    with refuses("y", row=1):
        TextClassifier(tiny_bert, method="fine_tune").fit(
            *themed, validation=(["a", "b"], ["pets", "x"])
        )


@pytest.fixture
def pairs(themed):
    """Pairs of texts, and whether they have one theme."""
    texts, themes = themed
    y = ["same" if a == b else "other" for a, b in pairwise(themes)]
    return list(pairwise(texts)), y


def test_vectors_of_pairs_by_hand(counted, pairs, tmp_path):
    X, y = pairs
    model = TextClassifier(counted, pairs=True).fit(X, y)
    a, b = (counted.encode(texts) for texts in zip(*X, strict=True))
    vectors = model.encoder_.encode(joined_pairs(X))
    np.testing.assert_array_equal(vectors, np.hstack([a, b, abs(a - b), a * b]))
    predicted = model.predict(X)
    frame = pd.DataFrame(X, columns=["a", "b"])
    for same in (frame, et.Corpus(frame, text=["a", "b"]), joined_pairs(X)):
        np.testing.assert_array_equal(model.predict(same), predicted)
    model.save(tmp_path / "model")
    loaded = TextClassifier.load(tmp_path / "model", encoder=counted)
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    scores = evaluate(model, (X, y), (X, y)).to_frame()
    assert set(scores.query("metric == 'accuracy'")["n"]) == {len(X)}
    for row in (["a cat"], [("a", " ")], [("a", "b", "c")], ["a\n\nb\n\nc"], [("a", None)]):
        with refuses("X"):
            model.predict(row)
    with refuses("method"):
        TextClassifier(counted, method="few_shot", pairs=True).fit(X, y)


@pytest.mark.parametrize("lengths", [(2, 3), (3, 40), (40, 3), (40, 40)])
def test_a_pair_is_read_as_the_tokenizer_reads_pairs(tiny_bert, tiny_roberta, lengths):
    for folder in (tiny_bert, tiny_roberta):
        encoder = SentenceEncoder(folder)
        tokenizer = Tokenizer.from_str(encoder.tokenizer_json)
        first, second = (" ".join(["cat"] * n) for n in lengths)
        [read] = read_together(encoder, [first, second])
        tokenizer.enable_truncation(encoder.max_seq_length, strategy="longest_first")
        expected = tokenizer.encode(first, second).tokens
        assert tokenizer.encode(read).tokens == expected


def test_all_weights_read_pairs_together(tiny_bert, pairs, tmp_path):
    X, y = pairs
    model = TextClassifier(tiny_bert, method="fine_tune", pairs=True, settings=QUICK).fit(X, y)
    assert model.encoder_.encode(joined_pairs(X)).shape == (len(X), 16)
    model.save(tmp_path / "model")
    loaded = TextClassifier.load(tmp_path / "model")
    np.testing.assert_allclose(loaded.predict_proba(X), model.predict_proba(X), atol=1e-5)
    swapped = model.predict_proba([(b, a) for a, b in X])
    assert not np.allclose(swapped, model.predict_proba(X), atol=1e-4)


def test_an_object_of_settings_sets_all_but_the_seed():
    settings = settings_mapping(TrainingSettings(epochs=2, random_state=5))
    assert settings["epochs"] == 2 and settings["learning_rate"] == 2e-5
    assert "random_state" not in settings  # that of the classifier

    # What a method does not use is refused only if it was set.
    assert step_settings(settings).epochs == 2
    with refuses("patience"):
        step_settings(settings_mapping(TrainingSettings(patience=3)))


def test_recorded_settings_are_read_by_their_present_names():
    recorded = {"max_length": 64, "epochs": 2.0}
    assert recorded_settings(recorded) == {"max_seq_length": 64, "epochs": 2.0}
    assert recorded_settings(None) is None
