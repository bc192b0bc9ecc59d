"""`pretrain`: what it learns, keeps, writes and refuses."""

import numpy as np
import pytest
import torch
from transformers import AutoModelForMaskedLM, AutoTokenizer

from embedtopics.encoders import StaticEncoder
from embedtopics.errors import InputError
from embedtopics.pretraining import _pretrain as module
from embedtopics.pretraining import pretrain
from embedtopics.pretraining._blocks import cut_into_blocks
from embedtopics.pretraining._masking import RandomMasking
from embedtopics.pretraining._pretrain import _prepare
from embedtopics.training import read_examples
from embedtopics.training._settings import TrainingSettings
from tests.encoders.conftest import table, tokenizer  # noqa: F401
from tests.factories import FULL_DISK, each, exact_encoder, raising, refuses
from tests.pretraining.conftest import save_checkpoint, sentences

QUICK = {"epochs": 2, "batch_size": 8, "learning_rate": 3e-3, "patience": None, "random_state": 42,
         "sample_size": 0, "precision": "float32", "show_progress": False}  # fmt: skip
FAMILIES = ("bert", "roberta", "deberta", "modernbert", "xlm", "distilbert")


def prepared(folder, texts, objective="mlm", **options):
    settings = TrainingSettings(**{**QUICK, **options})
    return _prepare(exact_encoder(folder), texts, RandomMasking(), settings, objective)


def features_of(run, batch):
    """What a model of transformers takes of a batch."""
    features = run.trainable.features(batch.rows.shown)
    width = features["input_ids"].shape[1]
    truth = [row + [-100] * (width - len(row)) for row in batch.rows.truth]
    return features, torch.tensor(truth)


def weights_of(folder):
    return AutoModelForMaskedLM.from_pretrained(folder).state_dict()


@pytest.mark.parametrize("family", FAMILIES)
def test_loss_and_gradients_are_those_of_transformers(checkpoint, family):
    folder = checkpoint(family)
    run = prepared(folder, sentences(30), batch_size=6)
    data, places = run.data, [0, 3, 7, 9, 12, 15]
    data.model.eval(), data.loss.eval()
    batch = data.batch(data.examples, places, np.random.default_rng(5))
    encoder = data.batch_encoder(60)  # several groups
    loss = encoder.learn(batch, lambda parts: parts[0], lambda part: part.backward(), 1)

    model = AutoModelForMaskedLM.from_pretrained(folder).eval()
    features, labels = features_of(run, batch)
    expected = model(
        input_ids=features["input_ids"], attention_mask=features["attention_mask"], labels=labels
    ).loss
    expected.backward()
    assert float(loss) == pytest.approx(expected.item(), rel=1e-5)
    theirs = dict(model.base_model.named_parameters())
    n_compared = 0
    for name, weight in data.body.named_parameters():
        if name in theirs and theirs[name].grad is not None:
            close = torch.allclose(weight.grad, theirs[name].grad, atol=1e-5, rtol=1e-3)
            assert close, name
            n_compared += 1
    assert n_compared > 10


@pytest.mark.parametrize(
    "family", [FAMILIES[0], *(pytest.param(name, marks=pytest.mark.slow) for name in FAMILIES[1:])]
)
def test_every_family_learns_and_is_read_by_transformers(checkpoint, tmp_path, family):
    texts = sentences(80)
    out = tmp_path / "out"
    result = pretrain(checkpoint(family), texts, out=out, settings=QUICK)
    loss = result.held_out.loc["loss"]
    assert loss["after"] < loss["before"] and not result.report.decisions
    assert result.held_out.loc["perplexity", "after"] == pytest.approx(np.exp(loss["after"]))
    assert result.diagnosis is result.report.diagnosis and result.report.curves.metric_name
    before, after = weights_of(checkpoint(family)), weights_of(out)
    assert before.keys() == after.keys()
    assert sum(not torch.equal(before[name], after[name]) for name in before) > 10
    # The folder is a masked language model, and an encoder with the same body.
    model = AutoModelForMaskedLM.from_pretrained(out, output_hidden_states=True).eval()
    read_as = {"return_tensors": "pt", "truncation": True, "max_length": 32}
    tokens = AutoTokenizer.from_pretrained(out)(texts[0], **read_as)
    tokens.pop("token_type_ids", None)
    with torch.no_grad():
        states = model(**tokens).hidden_states[-1][0]
    vector = torch.nn.functional.normalize(states.mean(dim=0), dim=0).numpy()
    found = exact_encoder(out).encode(texts[:1])[0]
    if family != "modernbert":  # whose last state is behind a norm that is no part of the list
        assert found == pytest.approx(vector, abs=1e-4)
    assert result.encoder.encode(texts[:1]).shape == (1, 16)


def test_the_kept_weights_are_those_of_the_lowest_loss_and_predict_held_out_texts(
    checkpoint, tmp_path
):
    result = pretrain(checkpoint("bert"), sentences(90), out=tmp_path / "out", settings=QUICK)
    curves = result.report.curves
    best = int(np.argmin(curves.validation_loss))
    assert curves.validation_steps[best] == result.report.best_step
    loss, accuracy = result.report.before_after[:2].itertuples()
    assert -loss.before == pytest.approx(curves.validation_loss[0])
    assert -loss.after == pytest.approx(curves.validation_loss[best])
    assert accuracy.after == pytest.approx(curves.metric[best])
    assert loss.verdict == "better" and loss.low < loss.difference < loss.high


def test_masks_are_drawn_anew_and_stay_fixed_where_it_is_measured(checkpoint):
    run = prepared(checkpoint("bert"), sentences(40))
    data = run.data
    first, second = (data.batch(data.examples, [1, 2], np.random.default_rng(n)) for n in (1, 2))
    assert first.rows.shown != second.rows.shown
    encoder = data.batch_encoder(4096)
    some = run.held, run.held.take([1, 0])
    once, again = (data.scores(encoder, blocks)["masked"] for blocks in some)
    assert once.loss[:2] == pytest.approx(again.loss[::-1], rel=1e-6)
    assert once.n_predicted.sum() == again.n_predicted.sum() + once.n_predicted[2:].sum()


def test_a_head_is_learned_first_and_the_body_stays(checkpoint, tmp_path, monkeypatch):
    seen = []
    original = module._geometry

    def noting(data):
        seen.append({k: v.clone() for k, v in data.body.state_dict().items()})
        return original(data)

    monkeypatch.setattr(module, "_geometry", noting)
    result = pretrain(
        checkpoint("bert", False), sentences(80), out=tmp_path / "out", keep_geometry=True,
        settings={**QUICK, "learning_rate": 1e-9},
    )  # fmt: skip
    text = result.report.decisions[0]
    assert text.name == "head_learned" and "no head" in text.message
    after = result.encoder
    before = exact_encoder(checkpoint("bert", False))
    texts = sentences(5, seed=9)
    assert after.encode(texts) == pytest.approx(before.encode(texts), abs=2e-3)
    model = AutoModelForMaskedLM.from_pretrained(tmp_path / "out")
    weights = model.get_input_embeddings().weight
    assert weights is model.get_output_embeddings().weight and len(seen) == 1


def test_geometry_keeps_the_vectors(checkpoint, tmp_path):
    texts = sentences(40)
    before = exact_encoder(checkpoint("bert"))
    vectors, moved = before.encode(texts), {}
    for name, keep in {"kept": True, "free": False}.items():
        result = pretrain(before, texts, out=tmp_path / name, keep_geometry=keep, settings=QUICK)
        moved[name] = 1 - np.mean(np.sum(vectors * result.encoder.encode(texts), axis=1))
    assert moved["kept"] < 0.3 * moved["free"]


def test_sentence_encoders_keep_their_geometry_and_pooling(make_sentence_folder, tmp_path):
    folder = make_sentence_folder("max", max_length=16)
    result = pretrain(folder, sentences(30), out=tmp_path / "out", settings={**QUICK, "epochs": 1})
    assert result.report.settings["keep_geometry"]
    assert result.encoder.settings["pooling"] == exact_encoder(folder).settings["pooling"]
    again = pretrain(tmp_path / "out", sentences(30), settings={**QUICK, "epochs": 1})
    assert "head_learned" not in {decision.name for decision in again.report.decisions}


def test_nothing_of_a_long_text_is_lost_and_no_block_is_of_two(checkpoint):
    pieces = AutoTokenizer.from_pretrained(checkpoint("bert")).backend_tokenizer
    texts = [" ".join(sentences(12)), "the cat sat on the mat", "cat", ""]
    blocks = cut_into_blocks(texts, pieces, 16)
    assert max(blocks.lengths) == 16 and set(blocks.text_of.tolist()) == {0, 1}
    pieces.no_truncation()
    plain = pieces.encode(texts[0], add_special_tokens=False).ids
    of_first = [one.ids[1:-1] for one in blocks.take(np.flatnonzero(blocks.text_of == 0)).tokens]
    joined = np.concatenate(of_first).tolist()
    assert joined == plain[: len(joined)] and len(plain) - 4 < len(joined)
    last = blocks.tokens[-1]
    assert last.surfaces == ("", "the", "cat", "sat", "on", "the", "mat", "")
    assert last.words.tolist() == [-1, 0, 1, 2, 3, 4, 5, -1]


def test_the_encoders_are_compared_on_what_the_user_cares_for(checkpoint, tmp_path):
    texts = sentences(80)
    rows = [
        (a, b, float(i % 5)) for i, (a, b) in enumerate(zip(texts[:25], texts[25:50], strict=True))
    ]
    test = read_examples(rows, "graded", scale=(0, 4))
    result = pretrain(
        checkpoint("bert"), texts, out=tmp_path / "out", test=test, settings={**QUICK, "epochs": 1}
    )
    assert set(result.report.before_after["task"]) == {"held-out texts", "test"}


@pytest.mark.parametrize(
    ("name", "value"),
    each(
        masking=["every"], epochs=[0],
        corpus=[["the cat", "a dog sat"]], device=["nowhere"],
    ),
)  # fmt: skip
def test_bad_input_is_refused_and_nothing_is_written(checkpoint, tmp_path, name, value):
    given = {"corpus": sentences(40), "settings": QUICK}
    if name in ("epochs", "device"):
        given["settings"] = {**QUICK, name: value}
    else:
        given[name] = value
    with pytest.raises(ValueError) as caught:
        pretrain(checkpoint("bert"), **given, out=tmp_path / "out")
    parameter = getattr(caught.value, "parameter", None)
    assert parameter == name or name in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_a_corpus_to_compare_on_is_read_before_training(checkpoint, tmp_path):
    with refuses("corpus"):
        pretrain(checkpoint("bert"), sentences(40), compare_on=["a cat"], out=tmp_path / "out")
    assert not list(tmp_path.iterdir())


def test_encoders_that_predict_no_tokens_are_refused(tmp_path, tokenizer, table):  # noqa: F811
    with refuses("encoder"):
        pretrain(StaticEncoder.from_arrays(table, tokenizer), sentences(40))
    folder = save_checkpoint(tmp_path / "bert", "bert")
    file = folder / "tokenizer.json"
    file.write_text(file.read_text().replace("[MASK]", "[HIDDEN]"))
    config = folder / "tokenizer_config.json"
    config.write_text(config.read_text().replace("[MASK]", "[HIDDEN]"))
    with refuses("encoder"):
        pretrain(folder, sentences(40), out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_full_disk_leaves_no_half_written_encoder(checkpoint, tmp_path, monkeypatch):
    from embedtopics.pretraining._head import TokenHead

    monkeypatch.setattr(TokenHead, "save", raising(FULL_DISK))
    with pytest.raises(InputError, match="No space left"):
        pretrain(
            checkpoint("bert"),
            sentences(40),
            out=tmp_path / "out",
            settings={**QUICK, "max_steps": 1},
        )
    assert not (tmp_path / "out").exists()
