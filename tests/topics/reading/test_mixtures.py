"""Mixtures against windows written out, and what must not change them."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from embedtopics import topics
from embedtopics.terms._counts import count_by_topic, count_terms
from embedtopics.terms._tokens import tokenize
from embedtopics.topics import ClassTfidf
from embedtopics.topics.reading import _mixtures
from tests.factories import make_result, refuses, topic_counts


def windows_over(n, window):
    """Return where windows begin and end, one word after the other."""
    return [(b, min(b + window, n)) for b in range(max(n - window, 0) + 1)] if n else []


def written_out(result, words, *, window=4, least=0.1, weighting=None):
    """Return what each word contributes, and the mixture, for one text."""
    weighting = weighting or ClassTfidf()
    idf = weighting.fit(topic_counts(result)).idf_
    column = {term: i for i, term in enumerate(result.term_counts.terms)}
    edges = {w for term in column for w in (term.split(" ")[0], term.split(" ")[-1])}
    places = [i for i, word in enumerate(words) if word in edges]
    rows = result.topic_terms.toarray()
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    rows = rows / np.where(lengths > 0, lengths, 1)
    credit, total = np.zeros((len(words), result.n_topics)), np.zeros(result.n_topics)
    longest = int(result.term_counts.lengths.max(initial=1))
    for begin, end in windows_over(len(places), window):
        inside = set(places[begin:end])
        counts, found = np.zeros(len(idf)), []
        for n in range(1, longest + 1):
            for first in range(len(words) - n + 1):
                term = " ".join(words[first : first + n])
                if term in column and {first, first + n - 1} <= inside:
                    counts[column[term]] += 1
                    found.append((column[term], [i for i in places if first <= i < first + n]))
        vector = counts * idf
        similarity = rows @ vector / (np.linalg.norm(vector) or 1)
        similarity[similarity < least] = 0
        total += similarity
        for t, holders in found:
            share = vector[t] / counts[t] / np.linalg.norm(vector) / len(holders)
            credit[holders] += share * rows[:, t] * (similarity > 0)
    return credit, total / (total.sum() or 1)


@pytest.fixture(scope="module")
def phrased():
    """A result whose terms are words and phrases of up to three, stop words inside."""
    result = make_result(200, 4, seed=2)
    counts = count_terms(
        result.tokens, ngram_range=(1, 3), min_df=2, stop_words=["people", "often", "later"]
    )
    labels, weights = result.clustering.labels, result.distinct.weights
    by_topic = count_by_topic(counts.counts, labels, 4, weights)
    settings = {**result.settings, "ngram_range": [1, 3]}
    return replace(
        result,
        term_counts=counts,
        topic_terms=ClassTfidf().fit_transform(by_topic),
        settings=settings,
    )


def words_of(result, row):
    document = result.distinct.of_row[row]
    begin, end = result.tokens.offsets[document : document + 2]
    return [result.tokens.words[i] for i in result.tokens.ids[begin:end]]


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"window": 1},
        {"window": 6},
        {"window": 60},
        {"least": 0.0},
        {"least": 0.4},
        {"weighting": ClassTfidf(bm25=True), "window": 12},
    ],
)
def test_equal_windows_written_out(phrased, arguments, monkeypatch):
    rows = [0, 3, 50, 150]
    names = {"least": "MIN_SIMILARITY"}
    for name in arguments.keys() - {"weighting"}:
        monkeypatch.setattr(_mixtures, names.get(name, name.upper()), arguments[name])
    if weighting := arguments.get("weighting"):
        phrased = topics.update_terms(phrased, weighting=weighting)
    found = topics.mixtures(phrased, rows=rows).toarray()
    for place, row in enumerate(rows):
        credit, shares = written_out(phrased, words_of(phrased, row), **arguments)
        np.testing.assert_allclose(found[place], shares, atol=1e-6)
        shown = topics.mixture(phrased, row)
        assert list(shown.tokens) == words_of(phrased, row)
        assert [word.lower().rstrip(".,") for word in shown.written] == list(shown.tokens)
        np.testing.assert_allclose(shown.weights.toarray(), credit, rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(shown.shares, found[place])
        added = shown.weights.toarray().sum(axis=0)  # the words add up to the mixture
        np.testing.assert_allclose(added / (added.sum() or 1), shares, atol=1e-5)


def test_rows_of_one_text_and_rows_without(phrased):
    everything = topics.mixtures(phrased)
    of_row = phrased.distinct.of_row
    assert everything.shape == (len(of_row), 4) and everything.dtype == np.float32
    assert everything[np.flatnonzero(of_row < 0)].nnz == 0
    repeated = np.flatnonzero(of_row == np.argmax(phrased.distinct.weights))
    assert len(repeated) > 1
    assert np.ptp(everything[repeated].toarray(), axis=0).max() == 0
    empty = int(np.flatnonzero(of_row < 0)[0])
    chosen = topics.mixtures(phrased, rows=[7, empty, 7])
    np.testing.assert_array_equal(chosen.toarray(), everything[[7, empty, 7]].toarray())
    assert topics.mixtures(phrased, rows=[]).shape == (0, 4)
    assert topics.mixtures(phrased, rows=[empty]).nnz == 0
    silent = topics.mixture(phrased, empty)
    assert silent.tokens == () and silent.weights.shape == (0, 4) and not silent.shares.any()
    assert len(silent.to_frame()) == 0


def test_no_topics_one_topic_and_no_terms():
    none = make_result(30, 0)
    assert topics.mixtures(none).shape == (len(none.corpus), 0)
    assert topics.mixture(none, 0).to_frame()["topic"].eq(-1).all()
    one = topics.mixtures(make_result(30, 1)).toarray()
    assert set(np.unique(one)) == {0.0, 1.0}
    result = make_result(60, 3)
    lacking = result.topic_terms.toarray()
    lacking[1] = 0
    found = topics.mixtures(replace(result, topic_terms=csr_matrix(lacking)))
    assert found[:, 1].nnz == 0 and found.nnz
    stream = tokenize(["" for _ in range(len(result.distinct))])
    counts = count_terms(stream)
    mute = replace(result, tokens=stream, term_counts=counts, topic_terms=csr_matrix((3, 0)))
    assert topics.mixtures(mute).nnz == 0
    assert topics.mixture(mute, 0).weights.nnz == 0


def test_frame_names_the_topic_of_each_word(phrased):
    shown = topics.mixture(phrased, 0)
    frame = shown.to_frame()
    dense = shown.weights.toarray()
    assert frame["token"].tolist() == list(shown.tokens)
    np.testing.assert_array_equal(frame["weight"], dense.max(axis=1))
    held = dense.max(axis=1) > 0
    np.testing.assert_array_equal(frame["topic"][held], dense.argmax(axis=1)[held])
    assert (frame["topic"][~held] == -1).all() and held.any()


def test_bad_rows(phrased):
    for rows in ([-1], [10_000]):
        with refuses("rows"):
            topics.mixtures(phrased, rows=rows)
    with refuses("row"):
        topics.mixture(phrased, 10_000)


@pytest.mark.parametrize("batch_size", [7, 50])
def test_rows_sum_to_one_or_nothing_in_any_batch(phrased, batch_size, monkeypatch):
    found = topics.mixtures(phrased)
    sums = np.asarray(found.sum(axis=1)).ravel()
    assert np.all((np.abs(sums - 1) < 1e-6) | (sums == 0)) and (found.data >= 0).all()
    monkeypatch.setattr(_mixtures, "BATCH_SIZE", batch_size)
    assert (found != topics.mixtures(phrased)).nnz == 0
    alone = topics.mixtures(phrased, rows=[9])
    assert (found[9] != alone).nnz == 0
