"""Students learn a teacher's vectors; shorter vectors, fewer layers, low-rank additions."""

import json

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer import losses as st

from embedtopics.encoders import RandomProjectionEncoder, StaticEncoder
from embedtopics.training import TrainingSettings
from embedtopics.training.objectives._losses import (
    distillation_examples,
    distilled,
    graded_cosent,
    lengths_of,
    nli_softmax,
    pairs_ranking,
    triplet,
    tsdae,
    with_matryoshka,
)
from embedtopics.training.objectives._objective import stand_in
from embedtopics.training.objectives._trainable import (
    fewer_layers,
    merge_adapters,
    save_trainable,
    trainable_of,
    with_lora,
)
from tests.factories import exact_encoder, refuses
from tests.training.objectives.losses import (
    FIRST,
    SECOND,
    THIRD,
    check_equal,
    ours_with,
    width,
)
from tests.training.tables import examples_of


@pytest.fixture(scope="module")
def encoder(tiny_bert):
    return exact_encoder(tiny_bert)


class Teacher:
    """As many numbers as wanted, in few directions."""

    def __init__(self, width):
        self.width = width

    def encode(self, texts):
        rng = np.random.default_rng(len(texts))
        return rng.normal(size=(len(texts), self.width)).astype(np.float32)


@pytest.mark.parametrize("translations", [None, {"de": SECOND, "fr": THIRD}])
def test_taught(translations, encoder):
    examples = distillation_examples(Teacher(16), FIRST, translations)
    assert (examples.kind, len(examples.columns)) == ("distilled", 1 if translations is None else 3)
    np.testing.assert_array_equal(examples.labels, Teacher(16).encode(FIRST))
    check_equal(distilled(examples, width(16)), encoder, st.MSELoss)


def test_the_metric_is_the_cosine_with_the_teacher(encoder):
    objective = distilled(distillation_examples(Teacher(16), FIRST, SECOND), width(16))
    loss = objective.make_loss(trainable_of(encoder).model, stand_in(16))
    rng = np.random.default_rng(0)
    columns = [rng.normal(size=(4, 16)).astype(np.float32) for _ in range(2)]
    labels = objective.examples.labels
    expected = np.mean([
        column[row] @ labels[row] / np.linalg.norm(column[row]) / np.linalg.norm(labels[row])
        for column in columns
        for row in range(4)
    ])  # fmt: skip
    assert objective.metric(columns, labels, loss, None) == pytest.approx(expected, abs=1e-6)


def test_a_shorter_student_learns_principal_directions(encoder):
    rng = np.random.default_rng(4)
    basis = np.linalg.qr(rng.normal(size=(40, 16)))[0].T
    vectors = (rng.normal(size=(60, 16)) * np.linspace(4, 1, 16)) @ basis  # 16 directions of 40
    examples = examples_of("distilled", ([f"the stone {n}" for n in range(60)],))
    examples = type(examples)(
        "distilled", examples.columns, vectors.astype(np.float32), examples.rows
    )
    objective = distilled(examples, width(16))
    (note,) = objective.examples.decisions
    assert note.name == "teacher_dimensions" and "100.0%" in note.message
    loss = objective.make_loss(trainable_of(encoder).model, stand_in(16))
    targets = loss.targets(torch.from_numpy(examples.labels)).numpy()
    # As many directions as there are: all inner products are kept.
    np.testing.assert_allclose(targets @ targets.T, vectors @ vectors.T, atol=2e-3)
    assert objective.metric([targets], examples.labels, loss, None) == pytest.approx(1, abs=1e-6)
    few = distilled(examples, width(3)).make_loss(trainable_of(encoder).model, stand_in(3))
    singular = np.linalg.svd(vectors)[2][:3]
    kept = few.directions.numpy()
    np.testing.assert_allclose(np.abs(singular @ kept), np.eye(3), atol=1e-4)
    short = few.targets(torch.from_numpy(examples.labels)).norm(dim=1).numpy()
    np.testing.assert_allclose(short, np.linalg.norm(vectors, axis=1), rtol=1e-5)
    check_equal(
        distilled(distillation_examples(Teacher(24), FIRST * 5), width(16)), encoder, projected_loss
    )


def projected_loss(model):
    """What sentence-transformers makes of labels that were shortened by hand."""
    labels = Teacher(24).encode(FIRST * 5)
    directions = np.linalg.svd(labels.astype(np.float64))[2][:16].T
    made = labels @ directions @ np.diag(np.sign(
        directions[np.abs(directions).argmax(axis=0), np.arange(16)]
    ))  # fmt: skip
    made *= np.linalg.norm(labels, axis=1)[:, None] / np.linalg.norm(made, axis=1)[:, None]

    class Shortened(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.loss = st.MSELoss(model)

        def forward(self, features, labels):
            return self.loss(features, torch.from_numpy(made.astype(np.float32)))

    return Shortened()


def test_a_longer_student_learns_through_a_layer(encoder):
    objective = distilled(distillation_examples(Teacher(6), FIRST), width(16))
    trainee = trainable_of(encoder)
    _, of_model, of_loss, _ = ours_with(objective, trainee)
    assert set(of_loss) == {"loss.projection.weight", "loss.projection.bias"} and of_model
    loss = objective.make_loss(trainee.model, stand_in(16))
    u = np.random.default_rng(0).normal(size=(4, 16)).astype(np.float32)
    seen = loss.loss.projection(torch.from_numpy(u)).detach().numpy()
    lengths = np.linalg.norm(seen, axis=1) * np.linalg.norm(objective.examples.labels, axis=1)
    expected = np.mean((seen * objective.examples.labels).sum(axis=1) / lengths)
    found = objective.metric([u], objective.examples.labels, loss, None)
    assert found == pytest.approx(expected, abs=1e-6)  # single precision, near 0


def test_bad_training_data(encoder):
    with refuses("translations"):
        distillation_examples(Teacher(16), FIRST, {"de": FIRST[:3]})
    with refuses("texts"):
        distilled(distillation_examples(Teacher(16), FIRST), width(10))
    teacher = Teacher(16)
    teacher.encode = lambda texts: np.full((len(texts), 16), np.nan, np.float32)
    with refuses("teacher"):
        distillation_examples(teacher, FIRST)
    assert len(distillation_examples(RandomProjectionEncoder(), FIRST)) == 4
    with refuses("teacher"):
        distillation_examples("tfidf", [*FIRST, *FIRST])
    # It has learned from no texts yet, and learns from these.
    assert len(distillation_examples("lsa", [*FIRST, *FIRST]).labels) == 8


@pytest.mark.parametrize(
    ("objective", "inner"),
    [
        (
            pairs_ranking(examples_of("pairs", (FIRST, SECOND)), both_ways=False),
            st.MultipleNegativesRankingLoss,
        ),
        (graded_cosent(examples_of("graded", (FIRST, SECOND), [0.1, 0.8, 0.3, 1])), st.CoSENTLoss),
        (
            triplet(examples_of("triplets", (FIRST, SECOND, THIRD)), margin=0.9),
            lambda model: st.TripletLoss(model, st.TripletDistanceMetric.COSINE, 0.9),
        ),
        (distilled(distillation_examples(Teacher(16), FIRST, SECOND), width(16)), st.MSELoss),
    ],
)
def test_matryoshka(objective, inner, encoder):
    made = with_matryoshka(objective, (16, 8, 4))
    check_equal(made, encoder, lambda model: st.MatryoshkaLoss(model, inner(model), [16, 8, 4]))
    assert made.name.endswith(", matryoshka")
    assert made.in_batch_negatives == objective.in_batch_negatives
    assert [note.name for note in made.examples.decisions][-1] == "matryoshka"


def test_the_metric_under_matryoshka_is_that_of_whole_vectors(encoder):
    objective = distilled(distillation_examples(Teacher(16), FIRST), width(16))
    wrapped = with_matryoshka(objective, (16, 4))
    model = trainable_of(encoder).model
    u = [np.random.default_rng(0).normal(size=(4, 16)).astype(np.float32)]
    both = [
        o.metric(u, o.examples.labels, o.make_loss(model, stand_in(16)), None)
        for o in (objective, wrapped)
    ]
    assert both[0] == both[1] != 0


def test_lengths_that_cannot_be():
    assert lengths_of((4, 8, 16), 16) == (16, 8, 4)
    with refuses("matryoshka"):
        lengths_of((32,), 16)
    names = ("entailment", "neutral")
    softmax = nli_softmax(examples_of("nli", (FIRST, SECOND), [0, 1, 0, 1], names))
    for objective in (softmax, distilled(distillation_examples(Teacher(20), FIRST * 4), width(16))):
        with refuses("objective"):
            with_matryoshka(objective, (16, 4))


def test_lengths_are_kept_with_the_model(encoder, tmp_path):
    save_trainable(trainable_of(encoder), tmp_path / "model", matryoshka=(16, 8))
    config = json.loads((tmp_path / "model" / "config_sentence_transformers.json").read_text())
    assert config["embedtopics"] == {"matryoshka_dims": [16, 8]}
    read = SentenceTransformer(str(tmp_path / "model"), device="cpu", local_files_only=True)
    np.testing.assert_allclose(read.encode(FIRST), encoder.encode(FIRST), atol=1e-5)
    static = StaticEncoder.from_arrays(np.eye(72), encoder.tokenizer_json, made_from={"a": 1})
    save_trainable(trainable_of(static), tmp_path / "static", matryoshka=(16,))
    again = StaticEncoder(tmp_path / "static")
    assert again.made_from == {"a": 1, "matryoshka_dims": [16]}
    np.testing.assert_allclose(again.encode(FIRST), static.encode(FIRST), atol=1e-6)


@pytest.fixture(scope="module")
def deep(tmp_path_factory, tiny_bert):
    """A BERT with five layers."""
    from transformers import AutoConfig, BertModel

    folder = tmp_path_factory.mktemp("deep") / "bert"
    config = AutoConfig.from_pretrained(tiny_bert, num_hidden_layers=5)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        BertModel(config).save_pretrained(folder)
    for file in tiny_bert.glob("*token*"):
        (folder / file.name).write_bytes(file.read_bytes())
    return folder


def test_fewer_layers(deep, tmp_path):
    whole = exact_encoder(deep)
    trainee = fewer_layers(whole, 3)
    assert trainee.name.endswith("layers 0, 2, 4") and trainee.fingerprint != whole.fingerprint
    assert trainee.decisions[-1].value == ["0", "2", "4"]
    # By hand: the hidden states go through the layers that were kept.
    states = trainable_of(whole).model[0].model
    ids = trainee.features(trainee.tokenize_texts(FIRST[:1]))["input_ids"]
    with torch.no_grad():
        hidden = states.embeddings(ids)
        for place in (0, 2, 4):
            out = states.encoder.layer[place](hidden)
            hidden = out[0] if isinstance(out, tuple) else out
    expected = hidden[0].mean(dim=0).numpy()
    expected /= np.linalg.norm(expected)
    np.testing.assert_allclose(trainee.model.encode(FIRST[:1])[0], expected, atol=1e-5)
    save_trainable(trainee, tmp_path / "small")
    again = exact_encoder(tmp_path / "small")
    np.testing.assert_allclose(again.encode(FIRST), trainee.model.encode(FIRST), atol=1e-5)
    assert again.recipe.checkpoint.n_layers == 4
    assert trainable_of(trainee, TrainingSettings()) is trainee
    with refuses("encoder"):
        tsdae(examples_of("texts", (FIRST,)), trainee)


def test_layers_by_their_places(deep):
    assert fewer_layers(deep, [4, 1]).decisions[-1].value == ["1", "4"]
    for keep in (5, 0, [5]):
        with refuses("keep_layers"):
            fewer_layers(deep, keep)
    with refuses("student"):
        fewer_layers(exact_encoder(deep, layers=2), 3)


@pytest.mark.parametrize("family", ["tiny_bert", "tiny_roberta"])
def test_low_rank_additions(family, request, tmp_path):
    encoder = exact_encoder(request.getfixturevalue(family))
    expected = encoder.encode(FIRST)
    trainee = with_lora(trainable_of(encoder), 2, random_state=3)
    assert trainee.has_adapters and trainee.decisions[-1].value == 2
    np.testing.assert_allclose(trainee.model.encode(FIRST), expected, atol=1e-5)
    learned = {name for name, w in trainee.model.named_parameters() if w.requires_grad}
    assert len(learned) == 2 * 2 * 6  # A and B of six linear layers in each of two layers
    assert all("lora_" in name and "pooler" not in name for name in learned)
    again = with_lora(trainable_of(encoder), 2, random_state=3)
    for (name, one), two in zip(
        trainee.model.named_parameters(), again.model.parameters(), strict=True
    ):
        assert torch.equal(one, two), name
    with torch.no_grad():
        for name, weight in trainee.model.named_parameters():
            if "lora_B" in name:
                weight.add_(torch.linspace(-1, 1, weight.numel()).reshape(weight.shape))
    changed = trainee.model.encode(FIRST)
    assert np.abs(changed - expected).max() > 0.05
    save_trainable(trainee, tmp_path / "saved")
    assert trainee.has_adapters  # training may go on
    keys = set(load_file(tmp_path / "saved" / "model.safetensors"))
    assert not any("lora" in key or "base_layer" in key for key in keys)
    np.testing.assert_allclose(exact_encoder(tmp_path / "saved").encode(FIRST), changed, atol=1e-5)
    merge_adapters(trainee.model)
    assert not trainee.has_adapters
    np.testing.assert_allclose(trainee.model.encode(FIRST), changed, atol=1e-5)


def test_low_rank_additions_that_cannot_be(encoder, monkeypatch):
    static = StaticEncoder.from_arrays(np.eye(72), encoder.tokenizer_json)
    with refuses("lora_rank"):
        with_lora(trainable_of(static), 2)
    with refuses("lora_rank"):
        with_lora(trainable_of(encoder), 0)
    with refuses("encoder"):
        with_lora(with_lora(trainable_of(encoder), 1), 1)
    monkeypatch.setitem(__import__("sys").modules, "peft", None)
    with pytest.raises(ImportError, match=r"peft.*embedtopics\[train\]"):
        with_lora(trainable_of(encoder), 1)
