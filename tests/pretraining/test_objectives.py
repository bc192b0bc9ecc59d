"""Next sentence, sentence order and replaced tokens: what is drawn, and the losses."""

import numpy as np
import pytest
import torch

from embedtopics.pretraining import pretrain
from embedtopics.pretraining._blocks import Segments, cut_into_blocks
from tests.factories import refuses
from tests.pretraining.conftest import sentences
from tests.pretraining.test_pretrain import FAMILIES, QUICK, features_of, prepared, weights_of


def texts_of_sentences(n):
    """Distinct texts of two sentences of known words."""
    parts = sentences(100)
    pairs = [(parts[i % len(parts)], parts[(7 * i + i // len(parts) + 3) % len(parts)])
             for i in range(2 * n)]  # fmt: skip
    return list(dict.fromkeys(f"{a} . {b} ." for a, b in pairs))[:n]


def drawn(folder, kind, n_texts=40, repeats=25, max_length=32):
    """Return blocks, and pairs of them drawn so many times, with the block of each."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder).backend_tokenizer
    segments = Segments.of(f"mlm+{kind}", tokenizer, max_length)
    cut = cut_into_blocks(texts_of_sentences(n_texts), tokenizer, max_length - 1)
    blocks = segments.usable(cut)
    rngs = [
        [np.random.default_rng((seed, i)) for i in range(len(blocks))] for seed in range(repeats)
    ]
    return blocks, [segments.draw(blocks, blocks, some) for some in rngs]


def parts(tokens, begin):
    """Return the ids of both segments, special tokens at their ends left out."""
    return tuple(tokens.ids[1 : begin - 1].tolist()), tuple(tokens.ids[begin:-1].tolist())


@pytest.mark.parametrize("kind", ["nsp", "sop"])
def test_half_of_the_partners_are_random_and_no_text_is_its_own(checkpoint, kind):
    blocks, rounds = drawn(checkpoint("bert"), kind)
    cls, sep = blocks.tokens[0].ids[[0, -1]].tolist()
    true = [
        (tuple(b.ids[1:m].tolist()), tuple(b.ids[m:-1].tolist()))
        for b, m in zip(blocks.tokens, blocks.middles.tolist(), strict=True)
    ]
    owners = {}
    for place, (_, second) in enumerate(true):
        owners.setdefault(second, set()).add(int(blocks.text_of[place]))
    labels = []
    for found in rounds:
        for place, (tokens, begin, label) in enumerate(zip(*found, strict=True)):
            first, second = parts(tokens, begin)
            labels.append(label)
            assert tokens.ids[0] == cls and tokens.ids[begin - 1] == tokens.ids[-1] == sep
            assert len(tokens) <= 32 and (np.diff(tokens.words[tokens.words >= 0]) >= 0).all()
            if not label:
                assert (first, second) == true[place]
            elif kind == "sop":
                assert (second, first) == true[place]
            else:  # cut to the length that the model reads
                whole = {one for one in owners if one[: len(second)] == second}
                assert first == true[place][0] and whole
                assert any(owners[one] - {int(blocks.text_of[place])} for one in whole)
    n = len(labels)
    assert np.mean(labels) == pytest.approx(0.5, abs=4 * 0.5 / np.sqrt(n))
    assert rounds[0].labels != rounds[1].labels


def test_a_corpus_of_one_text_has_no_random_partners(checkpoint):
    blocks, rounds = drawn(checkpoint("bert"), "nsp", n_texts=1)
    assert len(blocks) and not any(sum(found.labels) for found in rounds)


@pytest.mark.parametrize(
    ("text", "second"),
    [
        ("the cat sat on a mat. the dog ran to a river", "the dog"),
        ("the cat sat on the mat 3.5 the dog ran. a cat sat on", "a cat"),
        ("the cat sat on the mat the dog ran", "the mat the dog"),
    ],
)
def test_segments_part_at_a_sentence_near_the_middle_else_at_a_word(checkpoint, text, second):
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(checkpoint("bert")).backend_tokenizer
    blocks = cut_into_blocks([text], tokenizer, 64)
    middle, block = int(blocks.middles[0]), blocks.tokens[0]
    assert block.words[middle] != block.words[middle - 1]
    names = dict(zip(block.words[middle:-1].tolist(), block.surfaces[middle:-1], strict=True))
    assert " ".join(names.values()).startswith(second)


@pytest.mark.parametrize("kind", ["nsp", "sop"])
def test_the_loss_of_pairs_is_that_of_transformers(checkpoint, kind):
    from transformers import BertForNextSentencePrediction, BertForPreTraining

    folder = checkpoint("bert")
    run = prepared(folder, texts_of_sentences(40), f"mlm+{kind}", max_seq_length=32)
    data, head = run.data, run.data.loss
    data.model.eval(), head.eval()
    batch = data.batch(data.examples, range(12), np.random.default_rng(5))
    assert 0 < sum(batch.rows.labels) < 12
    loss = data.batch_encoder(60).learn(batch, lambda p: p[0], lambda part: part.backward(), 1)
    features, labels = features_of(run, batch)
    width, begins = labels.shape[1], torch.tensor(batch.rows.begins)[:, None]
    inputs = {k: features[k] for k in ("input_ids", "attention_mask")}
    inputs["token_type_ids"] = (torch.arange(width) >= begins) & features["attention_mask"].bool()
    inputs["token_type_ids"] = inputs["token_type_ids"].long()
    second = inputs["input_ids"][inputs["token_type_ids"].bool()]
    sep = run.data.examples.tokens[0].ids[-1]
    assert (second == sep).sum() == 12  # `b [SEP]` of each is of the second segment
    for family in (BertForPreTraining, BertForNextSentencePrediction):
        theirs = family.from_pretrained(folder).eval()
        theirs.bert.pooler.dense.load_state_dict(head.pair.pooler.state_dict())
        theirs.cls.seq_relationship.load_state_dict(head.pair.scores.state_dict())
        target = torch.tensor(batch.rows.labels)
        if family is BertForNextSentencePrediction:
            made = data.predictions(batch.rows, True)["pair"].losses.mean().item()
            expected = theirs(**inputs, labels=target).loss
            assert made == pytest.approx(expected.item(), rel=1e-5)
            continue
        expected = theirs(**inputs, labels=labels, next_sentence_label=target).loss
        expected.backward()
        assert float(loss) == pytest.approx(expected.item(), rel=1e-5)
        wanted = dict(theirs.bert.named_parameters())
        both = [(w, wanted[name]) for name, w in data.body.named_parameters() if name in wanted]
        both.append((head.pair.pooler.weight, theirs.bert.pooler.dense.weight))
        both = [(own.grad, other.grad) for own, other in both if own.grad is not None]
        assert len(both) > 20
        assert all(torch.allclose(*grads, atol=1e-5, rtol=1e-3) for grads in both)


@pytest.fixture
def detection(checkpoint):
    """A run that learns to detect replaced tokens, without dropout."""
    run = prepared(checkpoint("bert"), sentences(40), "rtd")
    run.data.model.eval()
    run.data.loss.eval()
    return run


def batch_of(run, places):
    return run.data.batch(run.data.examples, places, np.random.default_rng(5))


def inputs_of(run, batch):
    """Return the inputs of a model of transformers, and the hidden tokens, -100 elsewhere."""
    features, truth = features_of(run, batch)
    return {name: features[name] for name in ("input_ids", "attention_mask")}, truth


def test_the_generator_learns_by_the_cross_entropy_of_hidden_tokens(detection):
    batch = batch_of(detection, range(9))
    losses = detection.data.predictions(batch.rows, True)["masked"].losses

    inputs, truth = inputs_of(detection, batch)
    is_hidden = truth != -100
    logits = detection.data.loss.generator(**inputs).logits
    expected = torch.nn.functional.cross_entropy(logits[is_hidden], truth[is_hidden])
    assert losses.mean().item() == pytest.approx(expected.item(), rel=1e-5)


def test_the_loss_of_replaced_tokens_is_that_of_electra(detection):
    from transformers import ElectraConfig, ElectraForPreTraining

    data = detection.data
    head = data.loss
    batch = batch_of(detection, range(9))
    torch.manual_seed(3)
    losses = data.predictions(batch.rows, True)["replaced-token"].losses

    # The same draws from the generator, made by hand.
    inputs, truth = inputs_of(detection, batch)
    is_hidden = truth != -100
    torch.manual_seed(3)
    logits = head.generator(**inputs).logits
    probabilities = logits[is_hidden].detach().softmax(dim=1)
    ids = inputs["input_ids"].clone()
    ids[is_hidden] = torch.multinomial(probabilities, 1)[:, 0]
    was_replaced = is_hidden & (ids != truth)
    assert 0 < was_replaced.sum() <= is_hidden.sum()

    # The discriminator of transformers with our weights, on our hidden states.
    config = ElectraConfig(vocab_size=logits.shape[2], hidden_size=16, num_hidden_layers=2,
                           num_attention_heads=2, intermediate_size=32)  # fmt: skip
    discriminator = ElectraForPreTraining(config).discriminator_predictions.eval()
    discriminator.dense.load_state_dict(head.dense.state_dict())
    discriminator.dense_prediction.load_state_dict(head.scores.state_dict())
    states = data.body(**{**inputs, "input_ids": ids}).last_hidden_state
    is_text = inputs["attention_mask"] == 1
    expected = torch.nn.functional.binary_cross_entropy_with_logits(
        discriminator(states)[is_text], was_replaced[is_text].float()
    )
    assert losses.mean().item() == pytest.approx(expected.item(), rel=1e-5)


def test_the_generator_shares_the_token_embeddings_of_the_encoder(detection):
    generator = detection.data.loss.generator
    embeddings = detection.data.body.get_input_embeddings().weight
    assert generator.get_input_embeddings().weight is embeddings
    assert generator.generator_lm_head.weight is embeddings


def test_weights_learn_from_both_losses_the_second_fifty_times(detection):
    data = detection.data
    head = data.loss.train()
    batch = batch_of(detection, [4] * 9)  # one text nine times: a single group of one length
    embeddings = data.body.get_input_embeddings().weight
    weights = [embeddings, head.dense.weight, *data.body.encoder.layer[0].parameters()]

    torch.manual_seed(1 * 1024)  # the seed of step 1, group 0
    parts = data.predictions(batch.rows, True)
    total = parts["masked"].losses.mean() + 50 * parts["replaced-token"].losses.mean()
    total.backward()
    expected = [weight.grad.clone() for weight in weights]

    data.learned().zero_grad()
    encoder = data.batch_encoder(10_000)
    loss = encoder.learn(batch, lambda losses: losses[0], lambda part: part.backward(), 1)
    assert float(loss) == pytest.approx(total.item(), rel=1e-5)
    for weight, gradient in zip(weights, expected, strict=True):
        assert torch.allclose(weight.grad, gradient, atol=1e-5, rtol=1e-3)


def test_the_generator_learns_nothing_from_replaced_tokens(detection):
    detection.data.loss.train()
    batch = batch_of(detection, [4] * 9)
    losses = detection.data.predictions(batch.rows, True)["replaced-token"].losses
    losses.mean().backward()
    assert detection.data.loss.generator.generator_predictions.dense.weight.grad is None


@pytest.mark.parametrize("objective", ["mlm+nsp", "mlm+sop", "rtd"])
@pytest.mark.parametrize(
    "family", ["bert", *(pytest.param(name, marks=pytest.mark.slow) for name in FAMILIES[1:])]
)
def test_every_family_learns_every_objective(checkpoint, tmp_path, objective, family):
    out, texts = tmp_path / "out", texts_of_sentences(50)
    result = pretrain(checkpoint(family), texts, objective=objective, out=out, settings=QUICK)
    found = result.held_out
    assert found.loc["loss", "after"] < found.loc["loss", "before"]
    rows = {"mlm+nsp": ["pair loss", "pair accuracy"], "mlm+sop": ["pair loss", "pair accuracy"]}
    expected = ["loss", "perplexity", "accuracy", *rows.get(objective, [])]
    assert list(found.index) == [name for name in expected
                                 if objective != "rtd" or name != "perplexity"]  # fmt: skip
    assert result.encoder.encode(texts[:1]).shape == (1, 16)
    assert result.report.objective.endswith(": RandomMasking")
    if objective != "rtd":
        assert weights_of(out).keys() == weights_of(checkpoint(family)).keys()


@pytest.mark.parametrize("objective", ["mlm+sop", "rtd"])
def test_sentence_encoders_learn_a_head_first(make_sentence_folder, tmp_path, objective):
    options = {"settings": {**QUICK, "max_steps": 3}, "objective": objective}
    result = pretrain(
        make_sentence_folder("mean", max_length=32), texts_of_sentences(60), **options
    )
    assert "head_learned" in {decision.name for decision in result.report.decisions}
    assert result.report.settings["keep_geometry"]


@pytest.mark.parametrize("objective", ["mlm+nsp", "rtd"])
def test_an_interrupted_run_goes_on_to_the_same_weights(
    checkpoint, tmp_path, monkeypatch, objective
):
    from embedtopics.training.trainer._running import _Training

    texts, options = texts_of_sentences(40), {"settings": QUICK, "objective": objective}
    pretrain(checkpoint("bert"), texts, out=tmp_path / "whole", **options)
    original = _Training.after_step

    def interrupted(self, *arguments):
        goes_on = original(self, *arguments)
        if self.steps_here == 5:
            raise KeyboardInterrupt
        return goes_on

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(_Training, "after_step", interrupted)
        pretrain(checkpoint("bert"), texts, out=tmp_path / "parts", **options)
    pretrain(checkpoint("bert"), texts, out=tmp_path / "parts", **options)
    name = "model.safetensors"
    assert (tmp_path / "parts" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_an_unknown_objective_is_refused(checkpoint, tmp_path):
    with refuses("objective"):
        pretrain(checkpoint("bert"), sentences(40), objective="nsp", out=tmp_path / "out")
    assert not list(tmp_path.iterdir())
