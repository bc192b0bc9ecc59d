"""Losses are those of sentence-transformers, to value and gradients; metrics those of libraries."""

import numpy as np
import pytest
import torch
from sentence_transformers.sentence_transformer import losses as st

from embedtopics.training.objectives._losses import (
    graded_cosent,
    graded_cosine,
    nli_ranking,
    nli_softmax,
    pairs_ranking,
    passed_through,
    triplet,
    triplet_ranking,
)
from embedtopics.training.objectives._objective import (
    mean_reciprocal_rank,
    rank_correlation,
    share_nearer,
    stand_in,
)
from tests.factories import exact_encoder, refuses
from tests.training.objectives.losses import FIRST, SECOND, THIRD, check_equal, ours
from tests.training.tables import examples_of

NAMES = ("entailment", "neutral", "contradiction")


def test_accuracy_of_the_head_by_hand():
    objective = nli_softmax(examples_of("nli", (FIRST, SECOND), [0, 2, 1, 0], NAMES))

    class Anywhere:
        device = "cpu"

    loss = objective.make_loss(Anywhere(), stand_in(2))
    u, v = np.float32([[1, 0], [0, 1], [1, 1], [2, 0]]), np.float32([[0, 1]] * 4)
    with torch.no_grad():
        weight = torch.zeros(3, 6)
        weight[0, 0], weight[1, 1], weight[2, 4] = 1, 1.5, 0.9  # u1, u2, |u1 - v1|
        loss.classifier.weight.copy_(weight)
        loss.classifier.bias.zero_()
    # Scores (1, 0, .9), (0, 1.5, 0), (1, 1.5, .9), (2, 0, 1.8): classes 0, 1, 1, 0.
    assert objective.metric([u, v], np.array([0, 2, 1, 0]), loss, None) == 0.75


def test_nli_ranking(encoder):
    columns = (
        ["red cat", "red cat", "the dog", "the dog", "the dog", "stone", "a mat"],
        ["cat", "no cat", "dog", "animal", "no dog", "a stone", "no mat"],
    )
    examples = examples_of("nli", columns, [0, 2, 0, 0, 2, 0, 2], NAMES)
    objective = nli_ranking(examples)
    assert list(zip(*objective.examples.columns, strict=True)) == [
        ("red cat", "cat", "no cat"),
        ("the dog", "animal", "no dog"),
        ("the dog", "dog", "no dog"),
        ("stone", "a stone", "no mat"),  # a contradiction of another premise
    ]
    assert objective.examples.rows.tolist() == [0, 3, 2, 5]
    decisions = {each.name: each.value for each in objective.examples.decisions}
    assert decisions == {"triplets": 4, "examples_used": 7}
    assert objective.in_batch_negatives
    check_equal(
        objective,
        encoder,
        lambda model: st.MultipleNegativesRankingLoss(
            model, directions=("query_to_doc", "doc_to_query"), partition_mode="per_direction"
        ),
    )
    one_way = nli_ranking(examples, both_ways=False, scale=5.0)
    check_equal(one_way, encoder, lambda model: st.MultipleNegativesRankingLoss(model, scale=5.0))


def test_entailments_alone_are_enough_and_negatives_are_of_other_premises():
    premises = [f"premise {i}" for i in range(30)]
    columns = (premises, [f"follows {i}" for i in range(30)])
    labels = [0] * 20 + [1] * 10
    made = nli_ranking(examples_of("nli", columns, labels, NAMES)).examples
    assert len(made) == 20
    for anchor, positive, negative in zip(*made.columns, strict=True):
        assert positive[8:] == anchor[8:] != negative[8:]
    # Neutral sentences are taken before those that another premise entails.
    assert sum(int(text[8:]) >= 20 for text in made.columns[2]) == 10
    # Some contradictions: those without one share the rest, each as seldom as possible.
    labels = [0, 2] * 15
    made = nli_ranking(examples_of("nli", columns, labels, NAMES)).examples
    assert len(made) == 15 and len(set(made.columns[2])) == 15
    assert all(int(text[8:]) % 2 for text in made.columns[2])


def test_triplets_do_not_depend_on_the_order_of_the_rows():
    premises = ["p", "p", "p", "p", "q", "q", "q"]
    hypotheses = ["a", "b", "c", "d", "a", "b", "x"]
    examples = examples_of("nli", (premises, hypotheses), [0, 0, 2, 2, 2, 0, 1], NAMES)
    found = set(zip(*nli_ranking(examples).examples.columns, strict=True))
    assert found == {("p", "a", "c"), ("p", "b", "d"), ("q", "b", "a")}
    for order in ([6, 5, 4, 3, 2, 1, 0], [1, 3, 0, 6, 2, 4, 5]):
        again = nli_ranking(examples.take(order)).examples
        assert set(zip(*again.columns, strict=True)) == found


GRADED = examples_of("graded", (FIRST, SECOND), [0.1, 0.9, 0.4, 0.4])
PAIRS = examples_of("pairs", (FIRST, SECOND))
TRIPLETS = examples_of("triplets", (FIRST, SECOND, THIRD))
SEVERAL = examples_of("triplets", (FIRST, SECOND, THIRD, FIRST[::-1]))
NLI = examples_of("nli", (FIRST, SECOND), [0, 2, 1, 0], NAMES)


def ranking(model, scale=20.0):
    return st.MultipleNegativesRankingLoss(model, scale=scale)


def nearer(margin):
    metric = st.TripletDistanceMetric.COSINE
    return lambda model: st.TripletLoss(model, metric, margin)


def seven(model):
    return ranking(model, 7.0)


def in_lengths(model):
    return st.MatryoshkaLoss(model, ranking(model), [16, 4])


@pytest.mark.parametrize(
    ("objective", "loss_of"),
    [
        (nli_softmax(NLI), lambda model: st.SoftmaxLoss(model, 16, 3)),
        (graded_cosine(GRADED), st.CosineSimilarityLoss),
        (graded_cosent(GRADED), st.CoSENTLoss),
        (pairs_ranking(PAIRS, both_ways=False), ranking),
        (pairs_ranking(TRIPLETS, both_ways=False), ranking),
        (triplet_ranking(SEVERAL), ranking),
        (triplet(TRIPLETS), nearer(0.2)),
        (triplet(TRIPLETS, margin=0.7), nearer(0.7)),
        # Those that users bring.
        (passed_through(st.CosineSimilarityLoss, GRADED), st.CosineSimilarityLoss),
        (passed_through(seven, PAIRS), seven),
        (passed_through(in_lengths, PAIRS), in_lengths),
    ],
)
def test_losses_are_those_of_the_library(objective, loss_of, encoder):
    check_equal(objective, encoder, loss_of)
    compares = objective.name.startswith("pairs") or objective.name == "triplets: ranking"
    assert objective.in_batch_negatives == compares


@pytest.mark.parametrize(
    "settings",
    [
        {"pooling": "cls", "prompt": "the red: "},
        {"pooling": "max", "normalize": False},
        {"pooling": ["mean", "max"], "normalize": False},
        {"prompt": "the red: ", "normalize": False},
        {"truncate_dim": 8},
    ],
)
def test_losses_of_encoders_with_other_settings(settings, tiny_bert):
    encoder = exact_encoder(tiny_bert, **settings)
    check_equal(graded_cosent(GRADED, scale=5.0), encoder, lambda m: st.CoSENTLoss(m, scale=5.0))


@pytest.mark.parametrize("examples", [PAIRS, TRIPLETS], ids=["pairs", "triplets"])
def test_both_ways_is_the_mean_of_two_softmaxes(examples, encoder):
    """By hand: texts among the partners and negatives, and partners among the texts."""
    value, *_ = ours(pairs_ranking(examples, both_ways=True, scale=7.0), encoder)
    u, *others = (encoder.encode(column).astype(float) for column in examples.columns)
    there, back = 7 * u @ np.concatenate(others).T, 7 * others[0] @ u.T
    expected = np.mean([
        np.log(np.exp(there[row]).sum()) / 2 + np.log(np.exp(back[row]).sum()) / 2 - there[row, row]
        for row in range(4)
    ])  # fmt: skip
    assert float(value) == pytest.approx(expected, abs=1e-5)


def test_several_negatives_are_as_many_triplets():
    margin = triplet(SEVERAL).examples
    assert margin.columns == (tuple(FIRST * 2), tuple(SECOND * 2), (*THIRD, *FIRST[::-1]))
    assert margin.rows.tolist() == [0, 1, 2, 3] * 2
    assert [note.name for note in margin.decisions] == ["negatives"]


def vectors(rng, *shape):
    return rng.normal(size=shape).astype(np.float32)


def test_rank_correlation_is_scipys():
    from scipy.stats import spearmanr

    rng = np.random.default_rng(1)
    first, second, scores = vectors(rng, 60, 5), vectors(rng, 60, 5), rng.integers(0, 6, 60) / 5
    cosines = (first * second).sum(1) / np.linalg.norm(first, axis=1)
    cosines = cosines / np.linalg.norm(second, axis=1)
    assert rank_correlation([first, second], scores) == pytest.approx(
        spearmanr(cosines, scores).statistic, abs=1e-12
    )
    same = np.ones((60, 5), np.float32)
    assert rank_correlation([same, same], scores) == 0.0


def test_share_nearer_by_hand():
    anchor, positive = np.float32([[1, 0]] * 4), np.float32([[1, 0], [1, 1], [0, 1], [1, 1]])
    negative = np.float32([[0, 1], [1, 1], [1, 0], [1, 2]])
    assert share_nearer([anchor, positive, negative]) == 2.5 / 4
    nearest = np.float32([[3, 0]] * 4)
    assert share_nearer([anchor, positive, negative, nearest]) == 0.5 / 4


def test_mean_reciprocal_rank_is_that_of_brute_force():
    rng = np.random.default_rng(2)
    anchors, noise, negatives = (vectors(rng, 1100, 8) for _ in range(3))
    positives = anchors + noise
    candidates = np.concatenate([positives, negatives]).astype(np.float64)
    candidates /= np.linalg.norm(candidates, axis=1, keepdims=True)
    total = 0.0
    for row, anchor in enumerate(anchors.astype(np.float64)):
        cosines = candidates @ anchor / np.linalg.norm(anchor)
        rank = 1 + int((cosines > cosines[row]).sum())
        total += 1 / rank if rank <= 10 else 0.0
    found = mean_reciprocal_rank([anchors, positives, negatives])
    assert found == pytest.approx(total / 1100, abs=2e-3) and 0.1 < found < 0.9


@pytest.mark.parametrize("seed", range(8))
def test_mean_reciprocal_rank_with_several_partners_is_that_of_search(seed):
    """Anchors as queries, distinct texts as documents, all partners as relevant."""
    from embedtopics.evaluation._retrieval import measure_rankings, rank_documents

    rng = np.random.default_rng(seed)
    table = vectors(rng, 40, 3)
    rows = rng.integers(0, 40, (50, 3))
    rows = rows[(rows[:, 0] != rows[:, 1]) & (rows[:, 0] != rows[:, 2])]
    pairs = {(a, b) for a, b, _ in rows.tolist()} | {(b, a) for a, b, _ in rows.tolist()}
    asked, known = np.unique(rows[:, 0]), np.unique(rows[:, 1:])
    ranked = rank_documents(table[asked], table[known], len(known))[0]
    # A text does not compete for itself.
    ranked[known[ranked] == asked[:, None]] = -1
    places = np.argsort(ranked < 0, axis=1, kind="stable")
    ranked = np.take_along_axis(ranked, places, axis=1)
    relevance = np.array([[(a, b) in pairs for b in known.tolist()] for a in asked.tolist()])
    grades = np.where(ranked >= 0, np.take_along_axis(relevance, ranked, axis=1), 0.0)
    expected = measure_rankings(grades, list(relevance.astype(float)), [10])["mrr@10"].mean()
    embeddings = [table[rows[:, column]] for column in range(3)]
    assert mean_reciprocal_rank(embeddings, keys=rows) == pytest.approx(expected, abs=1e-12)
    # Examples that occur again, and another order, change nothing.
    again = rng.permutation(np.r_[rows, rows[:20]])
    embeddings = [table[again[:, column]] for column in range(3)]
    assert mean_reciprocal_rank(embeddings, keys=again) == pytest.approx(expected, abs=1e-12)


def test_the_same_vector_for_all_texts_is_worth_nothing():
    same = np.ones((100, 4), np.float32)
    assert mean_reciprocal_rank([same, same]) == 0.0
    assert share_nearer([same, same, same]) == 0.5


@pytest.mark.parametrize(
    ("make", "examples", "options", "parameter"),
    [
        (nli_ranking, examples_of("nli", (FIRST, SECOND), [2, 2, 1, 1], NAMES), {}, "train"),
        (nli_ranking, examples_of("nli", (["a"], ["b"]), [0], NAMES), {}, "train"),
        (nli_ranking, examples_of("nli", (["a"], ["b"]), [0], ("yes", "no")), {}, "names"),
        (graded_cosine, examples_of("graded", (FIRST, SECOND), [0.5] * 4), {}, "labels"),
        (triplet, TRIPLETS, {"margin": -1}, "margin"),
        (pairs_ranking, TRIPLETS, {"scale": 0}, "scale"),
    ],
)
def test_bad_examples_and_parameters(make, examples, options, parameter):
    with refuses(parameter):
        make(examples, **options)
