"""Topics of a sample: what it is drawn from, what is assigned, and what it would have missed."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import adjusted_rand_score

from embedtopics import Corpus, TopicModel
from embedtopics.topics import PartialLabels, assign, fit_sample
from embedtopics.topics.growing._sample import _every_nth, _ordered
from tests.factories import refuses

MODEL = TopicModel(languages=[], random_state=0, show_progress=False)


def planted(n, n_rare, n_topics, width=32):
    """Return texts, vectors and topics of a collection with a rare topic, the last number."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, n_topics, n)
    truth[rng.choice(n, n_rare, replace=False)] = n_topics
    means = rng.normal(size=(n_topics + 1, width))
    spread = np.where(truth == n_topics, 0.25, 0.35)[:, None]
    vectors = means[truth] + spread * rng.normal(size=(n, width))
    texts = [
        " ".join(f"{chr(97 + one)}word{chr(97 + word)}" for word in rng.integers(0, 12, 8))
        for one in truth.tolist()
    ]
    return texts, vectors, truth


def check_rare(fit, truth, n_rare):
    """Assert that the topics are those planted, and the rare one of its documents."""
    assert fit.n_adopted == 1 and fit.result.n_topics == truth.max() + 1
    found, rare = fit.labels == truth.max(), truth == truth.max()
    assert (found & rare).sum() >= 0.8 * (rare & ~fit.in_sample).sum() >= 0.4 * n_rare
    assert (found & ~rare).sum() <= 2
    assert adjusted_rand_score(truth, fit.labels) > 0.95
    made = {one.name: one for one in fit.result.decisions}
    assert made["adopted"].value == 1 and made["sample_agreement"].value > 0.9
    assert fit.agreement == pytest.approx(made["sample_agreement"].value, abs=1e-4)


@pytest.mark.slow
def test_a_topic_of_two_in_ten_thousand_is_found_again():
    texts, vectors, truth = planted(50_000, 10, 8)
    check_rare(fit_sample(MODEL, texts, 8_000, embeddings=vectors), truth, 10)


def test_a_topic_that_the_sample_lacks_is_found_among_the_rest(monkeypatch):
    texts, vectors, truth = planted(2000, 10, 4)
    rows = [*texts, None, texts[0]]
    given = np.vstack([vectors, vectors[:1], vectors[:1]])
    fit = fit_sample(MODEL, rows, 500, embeddings=given)
    check_rare(fit, np.append(truth, [-1, truth[0]]), 10)
    assert fit.labels[-2] == -1 and fit.labels[-1] == fit.labels[0] and np.isnan(fit.novelty[-2])
    # What the sample's own result answers is what stands in the table.
    with monkeypatch.context() as patch:
        patch.setattr("embedtopics.topics.growing._sample.RAREST", 0.5)
        plain = fit_sample(MODEL, rows, 500, embeddings=given)
    assert plain.n_adopted == 0 and len(plain.result.corpus) == 500 == plain.in_sample.sum()
    known = assign(plain.result, rows, embeddings=given)
    np.testing.assert_array_equal(known.labels, plain.labels)
    np.testing.assert_allclose(known.novelty, plain.novelty)
    own = np.asarray(known.memberships[np.arange(2002), plain.labels]).ravel()
    np.testing.assert_allclose(plain.memberships, np.where(plain.labels < 0, 0, own))
    frame = plain.to_frame()
    assert list(frame) == ["id", "topic", "topic_name", "membership", "novelty", "in_sample"]
    assert frame["topic_name"].iloc[-2] == "(no topic)" and len(frame) == 2002
    # In another order of the rows each keeps its topic.
    order = np.random.default_rng(1).permutation(len(rows))
    moved = fit_sample(MODEL, [rows[i] for i in order], 500, embeddings=given[order])
    np.testing.assert_array_equal(moved.labels, fit.labels[order])


def test_a_sample_has_of_each_group_and_time_what_the_collection_has():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({
        "text": ["of " + "".join(chr(97 + int(digit)) for digit in str(i)) for i in range(1000)],
        "year": np.sort(rng.choice(["2001", "2002", "2003"], 1000, p=[0.7, 0.25, 0.05])),
        "source": rng.choice(["a", "b"], 1000, p=[0.9, 0.1]),
    })  # fmt: skip
    copies = frame.assign(text=frame["text"].str.upper() + " 12!")
    corpus = Corpus(pd.concat([frame, copies]), text="text", time="year", group="source")
    documents = corpus.distinct()
    ordered = _ordered(corpus)
    assert len(ordered) == 1000 and len(documents) == 2000  # near-copies count once
    taken = _every_nth(ordered, 100, np.random.default_rng(0))
    assert len(set(taken.tolist())) == 100
    rows = frame.iloc[documents.first_rows[taken] % 1000]
    wanted = frame.groupby(["source", "year"]).size() / 10
    assert (rows.groupby(["source", "year"]).size() - wanted).abs().max() <= 1


def test_everything_is_fitted_where_the_sample_would_hold_it_and_an_encoder_is_asked_in_shards():
    texts, _, truth = planted(300, 0, 3)
    whole = fit_sample(TopicModel("tfidf", languages=[], random_state=0), texts, 300)
    assert whole.in_sample.all() and np.isnan(whole.agreement)
    np.testing.assert_array_equal(whole.labels, whole.result.labels)
    part = fit_sample(TopicModel("tfidf", languages=[], random_state=0), texts, 150)
    assert adjusted_rand_score(truth, part.labels) > 0.9


@pytest.mark.parametrize(
    ("parameter", "wrong"),
    [
        ("n_documents", {"n_documents": 1}),
        ("embeddings", {"embeddings": np.ones((3, 2))}),
        ("model", {"model": ["one text"]}),
        ("constraints", {"model": TopicModel(constraints=PartialLabels(["a", None]))}),
    ],
)
def test_what_cannot_be_is_refused_before_the_work(parameter, wrong):
    with refuses(parameter):
        fit_sample(**{"model": MODEL, "corpus": ["one text", "another text"], **wrong})
