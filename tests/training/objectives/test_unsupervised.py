"""SimCSE and TSDAE: views of the texts, and losses that are those of sentence-transformers."""

import numpy as np
import pytest
import torch
from sentence_transformers.sentence_transformer import losses as st

from embedtopics.encoders import StaticEncoder
from embedtopics.training.objectives._losses import simcse, tsdae
from embedtopics.training.objectives._objective import stand_in
from embedtopics.training.objectives._trainable import trainable_of
from tests.factories import exact_encoder, refuses
from tests.training.objectives.losses import FIRST, SECOND, check_equal
from tests.training.tables import examples_of

TEXTS = [*FIRST, *SECOND, "the riverzebra stood still"]


def test_simcse(encoder):
    objective = simcse(examples_of("texts", (FIRST,)))
    check_equal(objective, encoder, st.MultipleNegativesRankingLoss)
    assert objective.in_batch_negatives and objective.metric is None
    first, second = objective.views(([[1, 2]],), np.random.default_rng(0))
    assert first == second == [[1, 2]]


def test_the_two_views_differ_by_dropout(encoder):
    objective = simcse(examples_of("texts", (FIRST,)))
    trainee = trainable_of(encoder)
    ids = trainee.tokenize_texts(FIRST)
    loss = objective.make_loss(trainee.model, stand_in(16))

    def value():
        views = objective.views((ids,), np.random.default_rng(0))
        columns = [trainee.model(trainee.features(view)) for view in views]
        return float(loss(columns, None).detach())

    trainee.model.eval()
    same = value()
    trainee.model.train()
    assert value() > same + 1e-4


def test_simcse_without_dropout_is_refused(encoder):
    trainee = trainable_of(encoder)
    for part in trainee.model.modules():
        if isinstance(part, torch.nn.Dropout):
            part.p = 0.0
    with refuses("encoder"):
        simcse(examples_of("texts", (FIRST,))).make_loss(trainee.model, stand_in(16))


@pytest.mark.parametrize("family", ["tiny_bert", "tiny_roberta"])
def test_tsdae(family, request):
    encoder = exact_encoder(request.getfixturevalue(family))
    objective = tsdae(examples_of("texts", (TEXTS,)), trainable_of(encoder))
    assert objective.n_encoded == 1 and not objective.in_batch_negatives
    check_equal(objective, encoder, st.DenoisingAutoEncoderLoss)


def test_tsdae_starts_from_the_weights_that_the_encoder_has_now(encoder):
    trainee = trainable_of(encoder)
    with torch.no_grad():
        for weight in trainee.model.parameters():
            weight.add_(0.25)
    before = {name: weight.clone() for name, weight in trainee.model.state_dict().items()}
    objective = tsdae(examples_of("texts", (TEXTS,)), trainee)
    loss = objective.make_loss(trainee.model, stand_in(16))
    for name, weight in trainee.model.state_dict().items():
        assert torch.equal(weight, before[name]), name
    shared = {id(weight) for weight in loss.parameters()}
    assert sum(id(weight) in shared for weight in trainee.model.parameters()) > 20


def words_of(tokens):
    """Pieces put together to words."""
    words = []
    for token in tokens:
        if token.startswith("##"):
            words[-1] += token[2:]
        else:
            words.append(token)
    return words


def test_words_are_deleted_whole(encoder):
    trainee = trainable_of(encoder)
    objective = tsdae(examples_of("texts", (TEXTS,)), trainee)
    ids = trainee.tokenize_texts(TEXTS)
    tokenizer = trainee.model.tokenizer
    rng = np.random.default_rng(0)
    n_before = n_after = 0
    for _ in range(150):
        damaged, whole = objective.views((ids,), rng)
        assert whole == ids
        for short, long in zip(damaged, whole, strict=True):
            assert (short[0], short[-1]) == (long[0], long[-1])
            kept = words_of(tokenizer.convert_ids_to_tokens(short[1:-1]))
            full = words_of(tokenizer.convert_ids_to_tokens(long[1:-1]))
            rest = iter(full)
            assert kept and all(word in rest for word in kept)  # in their order
            if len(full) > 4:
                n_before, n_after = n_before + len(full), n_after + len(kept)
    assert n_after / n_before == pytest.approx(0.42, abs=0.03)  # .4, and one word at the least
    again = objective.views((ids,), np.random.default_rng(1))[0]
    assert again == objective.views((ids,), np.random.default_rng(1))[0] != ids


def test_what_has_no_decoder_is_refused(encoder, tiny_bert):
    examples = examples_of("texts", (FIRST,))
    static = StaticEncoder.from_arrays(np.eye(72), encoder.tokenizer_json)
    with refuses("encoder"):
        tsdae(examples, trainable_of(static))
    with refuses("encoder"):
        tsdae(examples, trainable_of(exact_encoder(tiny_bert, pooling=["mean", "max"])))
    with refuses("deleted"):
        tsdae(examples, trainable_of(encoder), deleted=1)
