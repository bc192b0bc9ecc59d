import json
from shutil import copytree

import numpy as np
import pytest

from embedtopics.errors import ModelLoadError
from embedtopics.retrieval._rerank import load_cross_encoder, rerank, resolve_reranker
from tests.factories import refuses


def length(pairs):
    return [len(passage) - len(query) for query, passage in pairs]


class Recorder:
    def predict(self, pairs):
        return np.array(length(pairs), dtype=np.float32)[:, None]


def scores_of(reranker, query, passages):
    """Return the score of each passage."""
    order, scores = rerank(resolve_reranker(reranker), query, passages)
    return scores[np.argsort(order)].tolist()


def test_scores_stay_with_their_passages():
    passages = ["ccc", "a", "bb", "a", "dddd"]
    for reranker in (Recorder(), length):
        assert scores_of(reranker, "q", passages) == [2, 0, 1, 0, 3]
        assert scores_of(reranker, "q", []) == []


def test_the_best_come_first_and_ties_stay():
    order, scores = rerank(length, "", ["a", "ccc", "b", "dd", "c"])
    assert order.tolist() == [1, 3, 0, 2, 4]
    assert scores.tolist() == [3, 2, 1, 1, 1]


@pytest.mark.parametrize(
    "reranker",
    [
        3, Recorder, lambda pairs: [1.0], lambda pairs: [[1.0, 2.0]] * len(pairs),
        lambda pairs: ["x"] * len(pairs), lambda pairs: [1.0, float("nan")],
        lambda pairs: [float("inf"), 1.0],
    ],
)  # fmt: skip
def test_bad_rerankers_are_refused(reranker):
    with refuses("reranker"):
        scores_of(reranker, "q", ["a", "bb"])


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Tiny checkpoints with random weights: with one score a pair, with three, without a head."""
    import torch
    from transformers import BertConfig, BertForSequenceClassification, BertModel, BertTokenizer

    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefgh"]
    made = {}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        for name, model, labels in (
            ("one", BertForSequenceClassification, 1),
            ("three", BertForSequenceClassification, 3),
            ("none", BertModel, 1),
        ):
            made[name] = tmp_path_factory.mktemp("cross-encoders") / name
            config = BertConfig(
                vocab_size=len(words), hidden_size=16, num_hidden_layers=2, num_labels=labels,
                num_attention_heads=2, intermediate_size=32, max_position_embeddings=32,
                initializer_range=0.7,
            )  # fmt: skip
            model(config).save_pretrained(made[name])
            vocabulary = {word: i for i, word in enumerate(words)}
            BertTokenizer(vocab=vocabulary).save_pretrained(made[name])
    return made


def test_a_checkpoint_scores_as_transformers_does(folders):
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    passages = ["c d", "e", "a b c d e f", "h h"]
    found = scores_of(str(folders["one"]), "a b", passages)
    model = AutoModelForSequenceClassification.from_pretrained(folders["one"]).eval()
    tokenizer = AutoTokenizer.from_pretrained(folders["one"])
    for passage, score in zip(passages, found, strict=True):
        with torch.inference_mode():
            logit = model(**tokenizer("a b", passage, return_tensors="pt")).logits[0, 0]
        assert score == pytest.approx(float(torch.sigmoid(logit)), abs=1e-5)
    assert len(set(np.round(found, 4))) == len(passages)


def test_checkpoints_that_cannot_rank_are_refused(folders, tmp_path):
    from safetensors.numpy import load_file, save_file

    with pytest.raises(ModelLoadError, match="outputs: 3"):
        load_cross_encoder(folders["three"])
    with pytest.raises(ModelLoadError, match=r"BertModel.*not a cross-encoder"):
        load_cross_encoder(folders["none"])
    headless = copytree(folders["one"], tmp_path / "headless")
    weights = load_file(headless / "model.safetensors")
    del weights["classifier.weight"]
    save_file(weights, headless / "model.safetensors", {"format": "pt"})
    with pytest.raises(ModelLoadError, match=r"lacks weights: classifier\.weight"):
        load_cross_encoder(headless)
    for name in (tmp_path, "./nowhere", "nobody/nothing"):
        with pytest.raises(ModelLoadError, match="expected a cross-encoder that"):
            load_cross_encoder(name)


CODE = """
from pathlib import Path
Path(__file__).with_name("ran").touch()
from transformers import BertConfig, BertForSequenceClassification
class OddConfig(BertConfig):
    model_type = "odd"
class OddForSequenceClassification(BertForSequenceClassification):
    config_class = OddConfig
"""


def test_code_of_a_checkpoint_is_not_run_and_nobody_is_asked(folders, tmp_path, monkeypatch):
    copy = copytree(folders["one"], tmp_path / "copy")
    (copy / "odd.py").write_text(CODE)
    kinds = {
        "AutoConfig": "odd.OddConfig",
        "AutoModelForSequenceClassification": "odd.OddForSequenceClassification",
    }
    config = json.loads((copy / "config.json").read_text())
    config |= {"model_type": "odd", "auto_map": kinds}
    (copy / "config.json").write_text(json.dumps(config))
    asked = []
    monkeypatch.setattr("builtins.input", lambda *given: asked.append(given) or "y")
    with pytest.raises(ModelLoadError, match="can load"):
        load_cross_encoder(copy)
    assert not asked and not list(copy.rglob("ran"))
