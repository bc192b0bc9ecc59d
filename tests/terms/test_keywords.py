"""Keywords: what is embedded, ranked, chosen and refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from embedtopics.terms import _keywords as topic_keywords
from embedtopics.terms._counts import count_by_topic, count_terms
from embedtopics.terms._keywords import (
    document_lifts,
    first_words,
    keywords,
    prefer_longer,
    select_keywords,
    term_embeddings,
    unique_labels,
)
from embedtopics.terms._stop_words import repeats, stems_of
from embedtopics.terms._tokens import tokenize
from embedtopics.terms.results import TermCounts
from embedtopics.topics import ClassTfidf


@pytest.mark.parametrize("origin", [0.0, np.full(8, 0.5)])
def test_term_embeddings_are_means_of_documents_seen_from_an_origin(origin):
    rng = np.random.default_rng(0)
    counts = csr_matrix(rng.poisson(0.6, size=(20, 6)))
    embeddings = rng.normal(size=(20, 8)).astype(np.float32)
    found = term_embeddings(counts, embeddings, [4, 1], origin=origin)
    for vector, term in zip(found, [4, 1], strict=True):
        mean = embeddings[counts.toarray()[:, term] > 0].mean(axis=0)
        np.testing.assert_allclose(
            vector, (mean - origin) / np.linalg.norm(mean - origin), atol=1e-5
        )
    assert found.dtype == np.float32
    # Documents that point to opposite sides, and a term of no document, have no direction.
    found = term_embeddings(csr_matrix([[1, 0], [1, 0]]), np.array([[1.0], [-1.0]]), [0, 1])
    assert found.tolist() == [[0.0], [0.0]]


def test_selection_breaks_ties_alphabetically_and_drops_what_has_no_weight():
    terms = ["delta", "beta", "alpha", "gamma"]
    assert select_keywords([1, 1, 1, 0], terms, n=9) == [2, 1, 0]
    assert select_keywords([0.0], ["a"]) == []
    assert select_keywords([], []) == []


def test_no_stem_twice():
    terms = ["rates", "rate", "interest rates", "rate cut", "bank of england", "house of lords"]
    chosen = select_keywords([6, 5, 4, 3, 2, 1], terms)
    assert [terms[i] for i in chosen] == ["rates", "bank of england", "house of lords"]
    french = ["cheval", "chevaux", "chevaliers"]
    assert select_keywords([3, 2, 1], french, languages=["fr"]) == [0, 2]
    assert select_keywords([2, 1], ["rate", "rates"], languages=["xx"]) == [0, 1]
    assert select_keywords([2, 1], ["rate", "rates"], languages=[]) == [0, 1]
    assert repeats(stems_of("rates", ["fr", "en"]), stems_of("rating", ["fr", "en"]))


def corpus():
    texts = [
        "hong kong market shares fell", "shares in hong kong rose again", "market shares rose",
        "hong kong shares traded", "bank shares and the market fell", "late goal won the match",
        "the match had no goal", "match ended after a late goal", "goal and match report",
        "the striker and the match",
    ] * 3  # fmt: skip
    labels = np.array([0, 0, 0, 0, 0, 1, 1, 1, 1, 1] * 3)
    rng = np.random.default_rng(1)
    embeddings = np.eye(2, 6)[labels] + 0.1 * rng.normal(size=(30, 6))
    counts = count_terms(tokenize(texts), stop_words=["the", "and", "in", "a", "had", "no"])
    return counts, labels, embeddings.astype(np.float32)


def test_keywords_of_a_small_corpus():
    counts, labels, embeddings = corpus()
    weights = ClassTfidf().fit_transform(count_by_topic(counts.counts, labels))
    found = keywords(weights, counts, embeddings, n=4, labels=labels)
    names = [[term for term, _ in topic] for topic in found]
    assert set(names[0]) >= {"shares", "hong kong"}
    assert not {"hong", "kong"} & set(names[0])
    assert set(names[1]) >= {"match", "goal"}
    for topic, row in zip(found, weights.toarray(), strict=True):
        for term, weight in topic:
            assert weight == row[counts.terms.index(term)]
    single = keywords(weights, counts, embeddings, n=4, ngram_range=(1, 1))
    assert all(" " not in term for topic in single for term, _ in topic)
    assert {"hong", "kong"} <= {term for term, _ in single[0]}
    assert found == keywords(weights, counts, embeddings, n=4, labels=labels)


def test_half_of_a_name_gives_way_to_its_phrases():
    """*al* begins phrases in 9 of 10 places, of which *al qaida* is 4; *state* in 6 of 10."""
    terms = ["al", "al qaida", "al nusra", "state", "state law"]
    relevance = np.array([5.0, 1.0, 2.0, 4.0, 3.0])
    replaced = prefer_longer(
        relevance, terms, np.array([10, 4, 3, 10, 5]), np.array([9, 0, 0, 6, 0])
    )
    assert replaced.tolist() == [0.0, 5.0, 2.0, 4.0, 3.0]
    counts = count_terms(tokenize(["al qaida", "al nusra", "state"]), min_df=1)
    assert (counts.counts @ first_words(counts)).toarray()[:, 0].tolist() == [1, 1, 0]


def test_shares_of_documents_inside_over_those_elsewhere():
    counts = csr_matrix([[3, 0], [1, 1], [0, 1], [0, 1], [1, 1]])
    lifts = document_lifts(counts, np.array([0, 0, 1, 1, -1]), 2)
    # Of topic 0 both hold the first term, of the other three texts one and a half of three and a
    # half; the second term is in one of two, and in three and a half of three and a half.
    assert lifts[0] == pytest.approx([1 / (1.5 / 3.5), 0.5 / (3.5 / 3.5)])
    assert lifts[1] == pytest.approx([0.0, 1 / (2.5 / 3.5)])


def test_ranking_by_hand():
    """Two topics and orthogonal documents: relevance = W * sqrt(d) * cos^3."""
    counts = TermCounts(
        counts=csr_matrix([[4, 1, 0], [0, 1, 0], [0, 0, 3], [0, 1, 1]]),
        terms=("burst", "steady", "other"),
        lengths=np.ones(3, dtype=np.int8),
    )
    embeddings = np.array([[1, 0], [1, 0], [-1, 0], [-1, 0]], dtype=np.float32)
    weights = csr_matrix([[0.5, 0.4, 0.0], [0.0, 0.1, 0.6]])
    # burst:  0.5 * sqrt(1) = 0.50, cosine 1
    # steady: 0.4 * sqrt(3) = 0.69, cosine 1 (two documents against one)
    found = keywords(weights, counts, embeddings, languages=[])
    assert [term for term, _ in found[0]] == ["steady", "burst"]
    # In the other topic "steady" points away from the topic, and comes last.
    assert found[1] == [("other", 0.6), ("steady", 0.1)]


def test_terms_above_average_in_many_topics_stand_behind():
    """Eight topics, one direction: *based* weighs most, but is above its mean in four of them."""
    based = [0.6, 0.6, 0.6, 0.6, 0.1, 0.1, 0.1, 0.1]
    weights = csr_matrix(np.column_stack([based, np.full(8, 0.5), 0.5 * np.eye(8)]))
    np.testing.assert_allclose(
        topic_keywords.rarity_of(weights), [np.log(2) / np.log(8), 0.02, *[1.0] * 8]
    )
    embeddings = np.vstack([np.ones((8, 2)), np.zeros((8, 2))]).astype(np.float32)
    names = ("based", "all", *(f"own{i}" for i in range(8)))
    counts = TermCounts(
        csr_matrix(np.vstack([np.ones((8, 10)), np.zeros((8, 10))])),
        names,
        np.ones(10, dtype=np.int8),
    )
    found = keywords(weights, counts, embeddings, n=3, languages=[])
    assert [term for term, _ in found[2]] == ["own2", "based", "all"]


@pytest.mark.parametrize("distinct", [0.3, 0.8, 1.0])
def test_the_strongest_keep_their_rank_and_others_stand_behind(distinct, monkeypatch):
    monkeypatch.setattr(topic_keywords, "_DISTINCT", distinct)
    rng = np.random.default_rng(3)
    places = [np.sort(rng.choice(12, 6, replace=False)) for _ in range(4)]
    ranked = [rng.random(6) for _ in range(4)]
    found = topic_keywords._demote_shared(ranked, places, 12)
    scaled = [one / one.max() for one in ranked]
    for topic, (one, place) in enumerate(zip(found, places, strict=True)):
        for value, term, own in zip(one, place, scaled[topic], strict=True):
            rivals = [s[list(p).index(term)] for s, p in zip(scaled, places, strict=True)
                      if term in p]  # fmt: skip
            expected = own if own >= distinct * max(rivals) else own * 0.4
            assert value == pytest.approx(expected)


def test_no_terms_and_a_single_topic():
    counts, _, embeddings = corpus()
    weights = ClassTfidf().fit_transform(count_by_topic(counts.counts, np.zeros(30, dtype=int)))
    by_weight = keywords(weights, counts, embeddings)[0]
    assert [term for term, _ in by_weight[:3]] == ["match", "shares", "goal"]
    assert len(by_weight) == 10
    assert len(keywords(weights, counts, np.ones_like(embeddings))[0]) == 10
    nothing = count_terms(tokenize([""] * 30))
    assert keywords(csr_matrix((2, 0)), nothing, embeddings) == [[], []]
    assert keywords(csr_matrix((0, 0)), nothing, embeddings) == []


def test_weights_below_zero_are_left_out_and_count_for_nothing():
    rng = np.random.default_rng(0)
    counts = csr_matrix(rng.poisson(0.6, size=(20, 6)))
    counted = TermCounts(counts, tuple("abcdef"), np.ones(6, dtype=np.int8))
    embeddings = rng.normal(size=(20, 8)).astype(np.float32)
    weights = rng.normal(size=(3, 6))  # columns that add up to little, to nothing, or to less
    weights[1, 0] = -weights[0, 0] - weights[2, 0]
    chosen = keywords(csr_matrix(weights), counted, embeddings, languages=[])
    positive = keywords(csr_matrix(np.maximum(weights, 0)), counted, embeddings, languages=[])
    assert chosen == positive
    assert [len(row) for row in chosen] == (weights > 0).sum(axis=1).tolist()


@given(st.lists(st.lists(st.sampled_from("abc"), max_size=5), max_size=8), st.integers(1, 4))
def test_labels_are_unique(keywords, n):
    labels = unique_labels(keywords, n)
    assert len(set(labels)) == len(keywords)
    assert unique_labels(["abcd", [], []]) == ["a, b, c", "no terms", "no terms (2)"]
    labels = unique_labels([["tax", "cut"], ["tax", "rise"], ["tax"], ["tax"], ["tax", "cut"]], 1)
    assert labels == ["tax", "tax, rise", "tax (2)", "tax (3)", "tax, cut"]
    assert unique_labels([["old 0"]], 1, reserved={"old 0"}) == ["old 0 (2)"]


def test_labels_of_the_same_words_in_another_order_are_one_label():
    orders = [
        ["rain", "field", "wheat"],
        ["wheat", "rain", "field", "farm"],
        ["field", "wheat rain"],
    ]
    labels = unique_labels(orders)
    assert labels == ["rain, field, wheat", "wheat, rain, field, farm", "field, wheat rain (2)"]

    assert unique_labels([["Tax", "Cut"]], 2, reserved=["cut, tax"]) == ["Tax, Cut (2)"]
    assert unique_labels([["tax", "cut", "vote"]], 2, reserved=["cut, tax"]) == ["tax, cut, vote"]
