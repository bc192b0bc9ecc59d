"""Documents are added; nothing that was there moves, and batches do not matter."""

import numpy as np
import pandas as pd
import pytest

import embedtopics as et
from embedtopics.clustering.results import NOISE
from embedtopics.corpus._corpus import as_corpus
from embedtopics.errors import InputError
from embedtopics.terms._counts import count_terms
from embedtopics.terms._tokens import tokenize
from embedtopics.topics import (
    assign,
    extend,
    recluster,
    update_terms,
)
from embedtopics.topics.growing._extend import place
from embedtopics.topics.results import Reason
from tests.factories import fields
from tests.topics.growing.conftest import CUT


@pytest.fixture(scope="module")
def extension(split):
    result, texts, vectors = split
    return extend(result, texts, embeddings=vectors)


def old_rows(result, grown):
    """Return the number in the grown result of each document."""
    return grown.distinct.of_row[result.distinct.first_rows]


def test_what_was_there_stays_bit_for_bit(split, extension):
    result, grown = split[0], extension.result
    old = old_rows(result, grown)
    for name in ("embeddings", "coordinates", "map"):
        np.testing.assert_array_equal(getattr(grown, name)[old], getattr(result, name))
    for name in ("labels", "probabilities", "reasons"):
        before = getattr(result.clustering, name)
        np.testing.assert_array_equal(getattr(grown.clustering, name)[old], before)
    np.testing.assert_array_equal(grown.memberships[old].toarray(), result.memberships.toarray())
    np.testing.assert_array_equal(grown.graph.similarities[old], result.graph.similarities)
    np.testing.assert_array_equal(grown.graph.indices[old], old[result.graph.indices])
    np.testing.assert_array_equal(grown.labels[:CUT], result.labels)
    assert not grown.added[old].any() and grown.added.sum() == len(extension.documents)


def test_new_documents_get_what_assign_gives_them(split, extension):
    result, texts, vectors = split
    found = assign(result, texts, embeddings=vectors)
    grown = extension.result
    np.testing.assert_array_equal(grown.labels[CUT:], found.labels)
    of_row = grown.distinct.of_row[CUT:]
    np.testing.assert_array_equal(grown.memberships[of_row].toarray(), found.memberships.toarray())
    new_rows = grown.distinct.first_rows[extension.documents]
    np.testing.assert_array_equal(extension.novelty, found.novelty[new_rows - CUT])
    assert (grown.clustering.probabilities[extension.documents] == 0).all()
    inside = grown.clustering.labels[extension.documents] != NOISE
    reasons = grown.clustering.reasons[extension.documents]
    assert set(reasons[inside]) == {Reason.IN_TOPIC}
    assert set(reasons[~inside]) <= {Reason.BETWEEN, Reason.ISOLATED, Reason.BEYOND_COVERAGE}


def test_the_grown_result_is_one_of_all_rows(split, extension):
    result, texts, _ = split
    grown = extension.result
    whole = as_corpus([*result.corpus.texts, *texts])
    distinct = whole.distinct()
    for name in ("hashes", "first_rows", "of_row", "weights"):
        expected = getattr(distinct, name)
        np.testing.assert_array_equal(getattr(grown.distinct, name), expected)
    tokens = tokenize(whole.document_texts())
    np.testing.assert_array_equal(grown.tokens.ids, tokens.ids)
    np.testing.assert_array_equal(grown.tokens.offsets, tokens.offsets)
    assert grown.tokens.words == tokens.words
    counted = count_terms(tokens, function_words=result.term_counts.function_words)
    assert grown.term_counts.terms == counted.terms
    assert (grown.term_counts.counts != counted.counts).nnz == 0
    assert grown.topic_terms.shape == (result.n_topics, len(counted.terms))
    sizes = np.bincount(grown.labels[grown.labels >= 0])
    assert [topic.size for topic in grown.topics] == sizes.tolist()
    assert [topic.topic_id for topic in grown.topics] == list(range(result.n_topics))
    total = len(whole.texts)
    assert [topic.share for topic in grown.topics] == [size / total for size in sizes.tolist()]


def test_new_neighbours_are_the_nearest_of_all(extension):
    grown = extension.result
    vectors, new = grown.embeddings.astype(np.float64), extension.documents
    similarities = vectors[new] @ vectors.T
    similarities[np.arange(len(new)), new] = -np.inf
    k = grown.graph.k
    best = -np.sort(-similarities, axis=1)[:, :k]
    np.testing.assert_allclose(grown.graph.similarities[new], best, atol=1e-6)
    chosen = np.take_along_axis(similarities, grown.graph.indices[new].astype(int), axis=1)
    np.testing.assert_allclose(chosen, best, atol=1e-6)
    assert (grown.graph.indices[new] != new[:, None]).all()
    assert (np.diff(grown.graph.similarities, axis=1) <= 0).all()


@pytest.mark.parametrize("update_terms", [True, False])
def test_in_one_go_or_one_after_the_other(split, update_terms):
    result, texts, vectors = split
    once = extend(result, texts, embeddings=vectors, update_terms=update_terms).result
    grown, options = result, {"update_terms": update_terms}
    for part in (slice(0, 70), slice(70, 71), slice(71, None)):
        grown = extend(grown, texts[part], embeddings=vectors[part], **options).result
    for name in ("labels", "map", "coordinates", "embeddings", "reasons", "added"):
        np.testing.assert_array_equal(getattr(grown, name), getattr(once, name))
    np.testing.assert_array_equal(grown.memberships.toarray(), once.memberships.toarray())
    assert grown.tokens.words == once.tokens.words and grown.corpus.texts == once.corpus.texts
    assert (grown.term_counts.counts != once.term_counts.counts).nnz == 0
    assert fields(grown.topics) == fields(once.topics)
    found = [assign(r, ["other"], embeddings=vectors[:1] + 0.05) for r in (grown, result)]
    assert (found[0].memberships != found[1].memberships).nnz == 0


def test_the_order_of_the_rows_does_not_matter(split, extension):
    result, texts, vectors = split
    order = np.random.default_rng(5).permutation(len(texts))
    one, two = extension, extend(result, [texts[i] for i in order], embeddings=vectors[order])
    for name in ("map", "embeddings", "coordinates"):
        np.testing.assert_array_equal(getattr(one.result, name), getattr(two.result, name))
    assert [t.name for t in one.result.topics] == [t.name for t in two.result.topics]
    assert str(one) == str(two)


def test_terms_may_stay_as_they_are(split, extension):
    result, texts, vectors = split
    grown = extend(result, texts, embeddings=vectors, update_terms=False).result
    assert grown.term_counts.terms == result.term_counts.terms
    assert (grown.topic_terms != result.topic_terms).nnz == 0
    assert [t.keywords for t in grown.topics] == [t.keywords for t in result.topics]
    assert [t.size for t in grown.topics] == [t.size for t in extension.result.topics]
    # The terms that both know are counted equally in every document.
    ours, theirs = grown.term_counts, extension.result.term_counts
    both = sorted({*ours.terms} & {*theirs.terms})
    one, two = (c.counts[:, [c.terms.index(term) for term in both]] for c in (ours, theirs))
    assert len(both) > 100 and (one != two).nnz == 0


def test_texts_that_were_there_weigh_more(split):
    result, _, _ = split
    row = int(np.flatnonzero(result.labels == 1)[0])
    known = [result.corpus.texts[row], "  " + result.corpus.texts[row], None, ""]
    said = extend(result, known, embeddings=np.full((4, 24), np.nan))
    grown = said.result
    document = result.distinct.of_row[row]
    assert len(said.documents) == 0 and said.n_known == 2 and said.p_value == 1.0
    assert grown.distinct.weights[document] == result.distinct.weights[document] + 2
    assert grown.topics[1].size == result.topics[1].size + 2
    assert grown.labels[-4:].tolist() == [1, 1, -1, -1]
    assert np.isnan(said.outside) and said.expected < 0.1 and not said.is_alarming
    assert "0 new documents; 2 rows repeat" in said.summary()


def test_the_hierarchy_holds_all_documents(split, extension):
    grown = extension.result
    n_documents = len(grown.distinct)
    tree = grown.tree
    assert tree.edges.shape == (n_documents - 1, 2) and (tree.edges[:, 0] < tree.edges[:, 1]).all()
    assert (np.diff(tree.distances) >= 0).all() and len(tree.core_distances) == n_documents
    assert set(np.unique(tree.edges)) == set(range(n_documents))
    read = recluster(grown, 4)
    assert read.n_topics == 4
    before = recluster(split[0], 4)
    both = (read.labels[:CUT] >= 0) & (before.labels >= 0)
    pairs = set(zip(read.labels[:CUT][both].tolist(), before.labels[both].tolist(), strict=True))
    assert both.mean() > 0.9 and len(pairs) == 4  # the four branches, as before


def test_stability_stays_with_those_that_had_it(split):
    result, texts, vectors = split
    measured = et.topics.with_stability(result, 2)
    grown = extend(measured, texts, embeddings=vectors).result
    old = old_rows(result, grown)
    np.testing.assert_array_equal(grown.stability.agreement[old], measured.stability.agreement)
    assert np.isnan(grown.stability.agreement[grown.added]).all()
    np.testing.assert_array_equal(grown.stability.recurrence, measured.stability.recurrence)


def test_places_by_hand():
    positions = np.array([[0, 0], [4, 0], [0, 4], [100, 100]], dtype=np.float32)
    labels = np.array([0, 0, 0, 1], dtype=np.int32)
    near = np.array([[0, 1, 2, 3]], dtype=np.int32)
    # Behind the nearest by 0, 1, 1 and 2 tenths, a tenth in the mean: weights 1, 1/e, 1/e, 1/e².
    similarities = np.array([[0.9, 0.8, 0.8, 0.7]], dtype=np.float32)
    w = np.exp(-1)
    inside = 4 * w / (1 + 2 * w)
    found = place(positions, near, similarities, labels, np.array([0], dtype=np.int32))
    np.testing.assert_allclose(found, [[inside, inside]], rtol=1e-5)
    # One in no topic lies among all of them.
    whole = (4 * w + 100 * w**2) / (1 + 2 * w + w**2)
    found = place(positions, near, similarities, labels, np.array([-1], dtype=np.int32))
    np.testing.assert_allclose(found, [[whole, whole]], rtol=1e-5)
    # A hash of zeros moves nothing, one of halves turns it half around; the circle holds half of
    # the weight, of which the nearest one alone has more (1 of 1.74).
    zero, half = (np.array([[value, value]], dtype=np.uint64) for value in (0, 2**63))
    of_topic = np.array([0], dtype=np.int32)
    found = place(positions, near, similarities, labels, of_topic, zero)
    np.testing.assert_allclose(found, [[inside, inside]], rtol=1e-5)
    radius = np.hypot(inside, inside) * np.sqrt(0.5)
    found = place(positions, near, similarities, labels, of_topic, half)
    np.testing.assert_allclose(found, [[inside - radius, inside]], rtol=1e-5)
    # The very vector of another has its place.
    same = np.array([[1.0, 0.8, 0.8, 0.7]], dtype=np.float32)
    found = place(positions, near, same, labels, of_topic, half)
    np.testing.assert_array_equal(found, [[0, 0]])


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_the_smallest_results(n):
    vectors = np.eye(6, dtype=np.float32)
    fit = et.TopicModel(languages=[]).fit([f"text {i}" for i in range(n)], embeddings=vectors[:n])
    said = extend(fit.result_, ["more", "and more", "text 0"], embeddings=vectors[3:6])
    grown = said.result
    assert len(grown.distinct) == n + 2 == len(grown.embeddings) and len(said.documents) == 2
    assert len(grown.map) == n + 2 and np.isfinite(grown.map).all()
    assert grown.n_topics == fit.result_.n_topics and grown.graph.indices.shape == (n + 2, n - 1)
    again = extend(grown, ["more", "again"], embeddings=vectors[:2])
    assert len(again.result.distinct) == n + 3 and str(again)


def test_rows_without_text_stay(split):
    result, texts, vectors = split
    frame = pd.DataFrame({"text": [None, texts[0], " "], "n": [1, 2, 3]}, index=["a", "b", "c"])
    said = extend(result, frame, embeddings=np.vstack([vectors[1], vectors[0], vectors[2]]))
    grown = said.result
    assert grown.corpus.index.tolist()[-3:] == ["a", "b", "c"]
    assert grown.reasons[-3:].tolist()[::2] == [Reason.NO_TEXT] * 2
    assert grown.corpus.metadata["n"].tolist()[-3:] == [1, 2, 3]
    assert grown.corpus.metadata["n"].isna().sum() == CUT


def test_bad_input(split):
    pair, one = ["a", "b"], ["a"]
    wrong = [(pair, np.ones((2, 23))), (pair, np.ones((3, 24))), (one, np.full((1, 24), np.nan))]
    for texts, vectors in (*wrong, (one, None), ([], None), ([None, ""], None)):
        with pytest.raises(InputError):
            extend(split[0], texts, embeddings=vectors)


def test_words_that_were_left_out_stay_out(split, extension):
    result, texts, vectors = split
    # Each of the words stands in most texts of some topic.
    gone = list(result.topics[0].keywords[:1])
    edited = update_terms(result, extra_stop_words=gone, min_df=3)
    grown = extend(edited, texts, embeddings=vectors).result
    counts = grown.term_counts
    assert not any(term.split()[0] in gone or term.split()[-1] in gone for term in counts.terms)
    assert gone[0] in counts.stop_words
    holders = np.bincount(counts.counts.indices, minlength=len(counts.terms))
    assert holders.min() >= 3
    # Nothing else than what choosing the terms after the extension gives.
    after = update_terms(extension.result, extra_stop_words=gone, min_df=3)
    assert counts.terms == after.term_counts.terms
    assert (counts.counts != after.term_counts.counts).nnz == 0


def test_an_encoder_that_learns_has_learnt_from_the_fit_alone(toy, tmp_path):
    texts = toy[0]
    result = et.TopicModel("lsa", languages=["en"]).fit(texts[:80]).result_
    queries = [texts[90] + " indeed", texts[95] + " indeed"]
    expected = assign(result, queries)
    one = extend(result, texts[80:85]).result
    two = extend(et.TopicResult.load(one.save(tmp_path / "one")), texts[83:90]).result
    found = assign(et.TopicResult.load(two.save(tmp_path / "two")), queries)
    np.testing.assert_array_equal(found.memberships.toarray(), expected.memberships.toarray())
    np.testing.assert_array_equal(found.novelty, expected.novelty)
    both = extend(result, texts[80:90]).result
    np.testing.assert_array_equal(both.embeddings, two.embeddings)
