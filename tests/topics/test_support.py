"""Informative topics, and the number of topics."""

import math
import statistics

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.sparse import csr_matrix

import embedtopics as et
from embedtopics.corpus._corpus import as_corpus
from embedtopics.neighbors.results import NeighborGraph
from embedtopics.terms.results import TermCounts
from embedtopics.topics import _support as subject
from embedtopics.topics._support import (
    Judge,
    Level,
    best_level,
    n_themes,
    numbers_to_try,
    uninformative_topics,
    word_gains,
)
from embedtopics.topics.results import Reason


def counts_of(matrix, lengths=None):
    matrix = np.asarray(matrix, dtype=np.int32)
    n_terms = matrix.shape[1]
    lengths = np.ones(n_terms) if lengths is None else np.asarray(lengths)
    terms = tuple(f"term {i}" for i in range(n_terms))
    return TermCounts(csr_matrix(matrix), terms, lengths.astype(np.int8))


def by_definition(matrix, labels, n_topics, judged):
    """Work out the gains document by document and word by word."""
    held = [{w for w, count in enumerate(row) if count} for row in matrix]
    n_terms = len(matrix[0])
    total = [sum(w in words for words in held) for w in range(n_terms)]
    mean_length = max(1.0, sum(total) / len(held))
    gains, n_words = [], []
    for topic in range(n_topics):
        members = [d for d, label in enumerate(labels) if label == topic]
        n_words.append(sum(len(held[d]) for d in members))
        elsewhere = [total[w] - sum(w in held[d] for d in members) + 0.5 for w in range(n_terms)]
        best = -math.inf
        for documents in (30, 100, 1000):
            prior, of_documents = documents * mean_length, []
            for d in members[:judged]:
                others = [o for o in members if o % 2 != d % 2]
                n_others = sum(len(held[o]) for o in others)
                gain = []
                for w in held[d]:
                    outside = elsewhere[w] / sum(elsewhere)
                    count = sum(w in held[o] for o in others)
                    mixture = (count + prior * outside) / (n_others + prior)
                    gain.append(math.log(mixture / outside))
                of_documents.append(statistics.fmean(gain) if gain else 0.0)
            best = max(best, statistics.median(of_documents) if of_documents else math.inf)
        gains.append(math.inf if n_words[-1] >= sum(total) else best)
    return gains, n_words


small = hnp.arrays(
    np.int32, st.tuples(st.integers(1, 14), st.integers(1, 8)), elements=st.integers(0, 2)
)


@settings(deadline=None, max_examples=150)
@given(small, st.integers(0, 4), st.integers(1, 20), st.data())
def test_gains_equal_the_definition(matrix, n_topics, judged, data):
    labels = data.draw(hnp.arrays(np.int32, len(matrix), elements=st.integers(-1, n_topics - 1)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subject, "MAX_DOCUMENTS", judged)
        gains, n_words = word_gains(counts_of(matrix), labels, n_topics)
    expected_gains, expected_words = by_definition(
        matrix.tolist(), labels.tolist(), n_topics, judged
    )
    np.testing.assert_allclose(gains, expected_gains, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(n_words, expected_words)


def test_a_hand_calculation():
    # Two documents with the word of the topic, two with another; each of one word.
    counts = counts_of([[1, 0], [1, 0], [0, 1], [0, 1]])
    gains, n_words = word_gains(counts, np.array([0, 0, 1, 1]), 2)
    # Elsewhere the word is counted half a time and the other 2.5: a sixth. Of the other half's
    # one word all are this one, beside a prior of 30 words.
    expected = math.log((1 + 30 / 6) / (1 + 30) / (1 / 6))
    np.testing.assert_allclose(gains, [expected, expected])
    assert n_words.tolist() == [2, 2]


def test_phrases_and_repeats_within_a_document_do_not_count():
    rng = np.random.default_rng(0)
    words = rng.integers(0, 2, (40, 12))
    phrases = rng.integers(0, 2, (40, 5))
    labels = rng.integers(-1, 3, 40).astype(np.int32)
    alone = word_gains(counts_of(words), labels, 3)
    both = word_gains(counts_of(np.hstack([phrases, 7 * words]), [2] * 5 + [1] * 12), labels, 3)
    np.testing.assert_array_equal(alone[0], both[0])
    np.testing.assert_array_equal(alone[1], both[1])


def drawn(rng, n_documents, n_words, chances):
    """Return documents of words drawn by chance."""
    rows = [rng.choice(len(chances), n_words, p=chances) for _ in range(n_documents)]
    return np.array([np.bincount(row, minlength=len(chances)) for row in rows])


def mixed_corpus(n_shuffled, n_words=20):
    """Three vocabularies of 40 words, and documents of words from all of them; in random order."""
    rng = np.random.default_rng(4)
    chances = 1.0 / np.arange(1, 41)
    parts, labels = [], []
    for topic in range(3):
        own = np.zeros(120)
        own[40 * topic : 40 * (topic + 1)] = chances / chances.sum()
        parts.append(drawn(rng, 80, n_words, own))
        labels += [topic] * 80
    everything = np.vstack(parts).sum(axis=0)
    parts.append(drawn(rng, n_shuffled, n_words, everything / everything.sum()))
    labels += [3] * n_shuffled
    order = rng.permutation(len(labels))
    return np.vstack(parts)[order], np.array(labels, dtype=np.int32)[order]


def test_shuffled_words_are_no_subject_and_vocabularies_are():
    matrix, labels = mixed_corpus(60)
    gains, n_words = word_gains(counts_of(matrix), labels, 4)
    assert (gains[:3] > 0.3).all() and gains[3] < 0.01
    assert (n_words >= 300).all()
    assert np.flatnonzero(uninformative_topics(counts_of(matrix), labels, 4)).tolist() == [3]


def test_few_words_are_not_judged():
    matrix, labels = mixed_corpus(14)
    gains, n_words = word_gains(counts_of(matrix), labels, 4)
    assert gains[3] < subject.MIN_GAIN and n_words[3] < 300
    assert not uninformative_topics(counts_of(matrix), labels, 4).any()


def test_the_whole_corpus_cannot_be_judged():
    matrix, _ = mixed_corpus(60)
    labels = np.zeros(len(matrix), dtype=np.int32)
    gains, n_words = word_gains(counts_of(matrix), labels, 1)
    assert gains.tolist() == [np.inf] and n_words[0] == (matrix > 0).sum()
    assert not uninformative_topics(counts_of(matrix), labels, 1).any()


@pytest.mark.parametrize(
    ("matrix", "labels", "n_topics"),
    [
        (np.zeros((4, 0)), [0, 0, 1, -1], 2),  # no words at all
        (np.zeros((4, 3)), [0, 0, 1, -1], 2),
        (np.ones((4, 3)), [-1, -1, -1, -1], 0),  # no topics
        (np.ones((4, 3)), [-1, -1, -1, -1], 2),  # topics without documents
    ],
)
def test_nothing_to_judge(matrix, labels, n_topics):
    labels = np.array(labels, dtype=np.int32)
    gains, n_words = word_gains(counts_of(matrix), labels, n_topics)
    assert gains.shape == n_words.shape == (n_topics,)
    assert (n_words == 0).all() and not np.isnan(gains).any()
    assert not uninformative_topics(counts_of(matrix), labels, n_topics).any()


N_EACH, N_SHUFFLED = 70, 60
SUBJECTS = {
    "sea": "harbor anchor sailor tide vessel wharf captain lighthouse rope storm deck cargo",
    "oven": "flour butter yeast oven dough crust sugar recipe whisk pastry cinnamon loaf",
    "court": "judge verdict lawyer witness jury appeal statute trial evidence oath prison bail",
}


@pytest.fixture(scope="module")
def collection():
    """Texts on three subjects, then texts of words from all of them; each group a direction."""
    rng = np.random.default_rng(11)
    texts = [
        " ".join(rng.choice(words.split(), 9, replace=False))
        for words in SUBJECTS.values()
        for _ in range(N_EACH)
    ]
    pool = [word for text in texts for word in text.split()]
    texts += [" ".join(rng.choice(pool, 9)) for _ in range(N_SHUFFLED)]
    directions = np.linalg.qr(rng.normal(size=(16, 4)))[0].T
    group = np.repeat([0, 1, 2, 3], [N_EACH] * 3 + [N_SHUFFLED])
    return texts, directions[group] + 0.08 * rng.normal(size=(len(group), 16)), group


@pytest.fixture(scope="module")
def model(collection):
    texts, vectors, _ = collection
    fitted = et.TopicModel(languages=["en"], min_cluster_size=35, random_state=0)
    return fitted.fit(texts, embeddings=vectors)


def test_shuffled_texts_are_no_topic(model, collection):
    _, _, group = collection
    result = model.result_
    assert result.n_topics == 3
    assert (result.labels[group == 3] == -1).all()
    reasons = result.reasons[group == 3]
    assert (reasons == Reason.UNINFORMATIVE).mean() > 0.9
    # Each subject is a topic, and its words are the topic's.
    assert len({*zip(result.labels[group < 3], group[group < 3], strict=True)}) == 3
    for topic in result.topics:
        subject = list(SUBJECTS.values())[group[result.labels == topic.topic_id][0]]
        assert set(" ".join(topic.keywords).split()) <= set(subject.split())


def test_it_is_told(model):
    noted = {d.name: d for d in model.result_.decisions}
    assert noted["uninformative"].value == 1
    assert noted["outside"].value >= 0.9 * N_SHUFFLED
    table = et.topics.documents(model.result_)
    assert (table["reason"] == "uninformative").sum() > 0.9 * N_SHUFFLED
    assert not table.loc[table["reason"] == "uninformative", "core"].any()


@pytest.mark.parametrize("parameters", [{"min_cluster_size": 50}, {"coverage": 1.0}])
def test_at_another_resolution_and_coverage(model, collection, parameters):
    _, _, group = collection
    read = et.topics.recluster(model.result_, **{"min_cluster_size": 35, **parameters})
    assert (read.labels[group == 3] == -1).mean() > 0.9


def test_with_a_clusterer_of_ones_own(collection):
    texts, vectors, group = collection

    class Known:
        def fit_predict(self, X, y=None):
            return self.labels

    known = Known()
    corpus = as_corpus(texts)
    known.labels = group[corpus.distinct().first_rows]
    model = et.TopicModel(languages=["en"], clusterer=known)
    result = model.fit(corpus, embeddings=vectors).result_
    assert result.n_topics == 3 and (result.labels[group == 3] == -1).all()
    assert set(result.reasons[group == 3]) == {Reason.UNINFORMATIVE}


def test_texts_without_shared_words_are_not_judged():
    """Of texts that have no word in common nothing can be said, so that they stay topics."""
    rng = np.random.default_rng(0)
    vectors = np.repeat(np.eye(2, 8), 40, axis=0) + 0.05 * rng.normal(size=(80, 8))
    model = et.TopicModel(languages=["en"], min_cluster_size=20)
    model.fit([f"word{i}" for i in range(80)], embeddings=vectors)
    assert model.result_.n_topics == 2


def test_gain_and_share_by_hand():
    """Four documents of one word each; those of a topic share their word."""
    words = csr_matrix(np.eye(2, dtype=np.int32)[[0, 0, 1, 1]])
    counts = TermCounts(words, ("a", "b"), np.ones(2, dtype=np.int8))
    indices = np.array([[1, 2], [0, 2], [3, 0], [2, 0]], dtype=np.int32)
    graph = NeighborGraph(indices, np.ones((4, 2), dtype=np.float32), "exact", 1.0)
    judge = Judge(counts, graph, np.ones(4, dtype=bool))
    level = judge.level(np.array([0, 0, 1, 1]))
    assert level.n_topics == 2 and level.neighbor_share == 0.5
    # The other half of a topic holds one word, this one; the corpus has it at one half. The prior
    # weighs 30 documents of one word.
    assert level.word_gain == pytest.approx(np.log((1 / 0.5 + 30) / (1 + 30)))
    apart = judge.level(np.array([0, 1, 0, 1]))
    # The halves of a topic are even and odd documents: nothing is in the other half here.
    assert apart.word_gain == 0.0


def test_the_automatic_number_is_where_words_gain_no_more_or_neighbors_part():
    def levels(gains, shares):
        return [Level(n, *pair) for n, pair in enumerate(zip(gains, shares, strict=True), start=2)]

    gains = [0.1, 0.5, 0.96, 0.99, 1.0]
    assert best_level(levels(gains, [1.0, 0.95, 0.9, 0.85, 0.8])) == 2
    assert best_level(levels(gains, [0.9, 0.8, 0.6, 0.5, 0.4])) == 1
    assert best_level(levels(gains, [0.6, 0.5, 0.4, 0.3, 0.2])) == 0


def test_numbers_to_try_grow_by_a_fifth():
    assert numbers_to_try(1) == []
    assert numbers_to_try(12) == [2, 3, 4, 5, 6, 7, 8, 10, 11]


def test_themes_end_where_a_merge_is_high():
    heights = np.array([1.0] * 14 + [5.0] * 5)  # twenty topics: six after the low merges
    assert n_themes(heights) == 6
    assert n_themes(np.ones(6)) == 7


@pytest.mark.parametrize("n_groups", [3, 12, 30])
def test_planted_groups_are_the_topics(n_groups):
    rng = np.random.default_rng(n_groups)
    group = np.repeat(np.arange(n_groups), 40)
    vectors = rng.normal(size=(n_groups, 32))[group] + 0.4 * rng.normal(size=(len(group), 32))
    texts = [
        " ".join(f"word{g}x{i}" for i in rng.integers(0, 6, 8)) + f" all{rng.integers(50)}"
        for g in group
    ]
    model = et.TopicModel(languages=[], show_progress=False)
    result = model.fit(texts, embeddings=vectors).result_
    assert result.n_topics == n_groups
    coarse = et.topics.recluster(result, "coarse").n_topics
    assert coarse == n_groups if n_groups < 8 else 4 <= coarse <= 12


def test_vectors_without_groups_are_no_topics():
    rng = np.random.default_rng(0)
    texts = [" ".join(f"w{i}" for i in rng.integers(0, 300, 12)) for _ in range(2_000)]
    model = et.TopicModel(languages=[], show_progress=False)
    result = model.fit(texts, embeddings=rng.normal(size=(2_000, 64))).result_
    assert result.n_topics <= 1
