import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import embedtopics as et
from embedtopics.topics import CannotLink, at_resolution
from embedtopics.topics.results import Reason
from tests.factories import refuses


def violations(result, pairs):
    one, other = result.labels[np.array(pairs)].T
    return int(((one == other) & (one >= 0)).sum())


def distinct_pairs(texts, rng, n, most):
    drawn = rng.integers(0, most, (4 * n, 2))
    return [(a, b) for a, b in drawn.tolist() if texts[a] != texts[b]][:n]


@settings(max_examples=10, deadline=None)
@given(st.integers(1, 300), st.integers(20, 540), st.integers(0, 2**32 - 1))
def test_no_pair_is_ever_in_one_topic(branches, branched, fit, n, most, seed):
    texts, _ = branches
    pairs = distinct_pairs(texts, np.random.default_rng(seed), n, most)
    if not pairs:
        return
    result = fit(branches, CannotLink(pairs))
    readings = [result, at_resolution(result, 2), at_resolution(result, "fine", coverage=1.0)]
    for reading in readings:
        assert violations(reading, pairs) == 0
        assert (np.bincount(reading.clustering.labels + 1)[1:] > 0).all()
        shares = reading.memberships.toarray()
        labels = reading.clustering.labels
        np.testing.assert_array_equal(shares[labels >= 0].argmax(axis=1), labels[labels >= 0])
        assert (shares[labels < 0].sum(axis=1) <= 0.4 + 1e-6).all()
    np.testing.assert_array_equal(et.topics.assign(result, texts).labels, result.labels)


def test_the_deeper_stays_and_the_rest_of_the_topics_too(toy, fit):
    plain = fit(toy, n_topics=3)
    probabilities = plain.by_row(plain.clustering.probabilities, 0)
    fruit = np.flatnonzero(plain.labels == 0)
    deep = int(fruit[probabilities[fruit].argmax()])
    shallow = int(fruit[probabilities[fruit].argmin()])
    assert probabilities[deep] > probabilities[shallow]
    result = fit(toy, CannotLink([(shallow, deep)]), n_topics=3)
    assert result.labels[deep] == 0 and result.labels[shallow] != 0
    others = np.setdiff1d(np.arange(135), [shallow])
    np.testing.assert_array_equal(result.labels[others], plain.labels[others])
    # Its neighbours are all of its own theme, so that it clearly leads nowhere else.
    assert result.labels[shallow] == -1
    assert result.reasons[shallow] == Reason.CANNOT_LINK
    assert next(d for d in result.decisions if d.name == "cannot_link_outside").value == 1


def test_of_documents_that_all_exclude_one_another_one_stays(toy, fit):
    pairs = [(a, b) for a in range(8) for b in range(a)]
    assert set(fit(toy, n_topics=3).labels[:8]) == {0}
    result = fit(toy, CannotLink(pairs), n_topics=3)
    assert sorted(result.labels[:8].tolist()) == [-1] * 7 + [0]


def test_a_document_that_many_bar_moves_and_they_stay(fit):
    rng = np.random.default_rng(1)
    centers = np.array([[1.0, 0, 0, 0], [0, 1.0, 0, 0]])
    vectors = np.repeat(centers, 40, axis=0) + 0.15 * rng.normal(size=(80, 4))
    vectors = np.vstack([vectors, 0.55 * centers[0] + 0.45 * centers[1]])
    texts = [f"text {i} of {'one' if i < 40 else 'two'}" for i in range(81)]
    plain = fit((texts, vectors), coverage=1.0, n_topics=2)
    mates = [int(row) for row in np.flatnonzero(plain.labels == plain.labels[80]) if row != 80]
    assert len(mates) > 30
    pairs = [(80, row) for row in mates]
    result = fit((texts, vectors), CannotLink(pairs), coverage=1.0, n_topics=2)
    assert violations(result, pairs) == 0
    assert len(set(result.labels[mates])) == 1 and result.labels[mates[0]] >= 0
    other = next(row for row in range(80) if plain.labels[row] == 1 - plain.labels[80])
    assert result.labels[80] in (-1, result.labels[other])


def test_ids_name_documents_too(toy, fit):
    corpus = et.Corpus.of(toy[0])
    pair = (corpus.ids[3], corpus.ids[9])
    by_id = fit((corpus, toy[1]), CannotLink([pair]))
    by_row = fit(toy, CannotLink(np.array([[9, 3]])))
    np.testing.assert_array_equal(by_id.labels, by_row.labels)
    np.testing.assert_array_equal(by_id.constraints.cannot_link, by_row.constraints.cannot_link)


def test_pairs_that_cannot_be(toy, fit):
    texts, vectors, _ = toy
    rows = [*texts, " " + texts[5], ""]
    given = np.vstack([vectors, vectors[5:6], np.ones((1, 16))])
    for pairs in ([(0, 1), (5, 135)], [(0, 137)], [("nobody", "else")]):
        with refuses("pairs"):
            fit((rows, given), CannotLink(pairs))
    result = fit((rows, given), CannotLink([(0, 136), (0, 1)]))
    assert next(d for d in result.decisions if d.name == "pairs_without_text").value == 1
    assert violations(result, [(0, 1)]) == 0


@pytest.mark.parametrize(
    "pairs", [[], "ab", [(1, 2, 3)], [(1, "a")], [(1.0, 2.0)], [(4, 4)], [("a", "a")]]
)
def test_what_are_no_pairs_is_refused(pairs):
    with refuses("pairs"):
        CannotLink(pairs)
