"""The promises of the architecture, for small collections of any kind.

Same answer for any order of the rows and any number of threads; a text gets what it got in the
fit, whatever is asked beside it; nothing is lost and nothing is changed.
"""

import os

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score

import embedtopics as et
from embedtopics.topics.results import Reason
from tests.factories import PATIENCE, python

WORDS = "oak elm ash fig yew fir bay box may tea rye oat".split()

some = settings(deadline=None, max_examples=25, suppress_health_check=list(HealthCheck))


@st.composite
def collections(draw):
    """Texts, some of them repeated, empty or missing, with vectors in a few directions.

    The vectors of repeated texts may differ, and those of different texts be alike.
    """
    n = draw(st.integers(2, 45))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_groups = draw(st.integers(1, 4))
    centers = 2 * rng.normal(size=(n_groups, 6))
    vectors = centers[rng.integers(0, n_groups, n)]
    vectors = vectors + draw(st.sampled_from([0.05, 0.3, 2.0])) * rng.normal(size=(n, 6))
    texts: list[str | None] = [f"{' '.join(rng.choice(WORDS, 5))} {i}" for i in range(n)]
    for row in draw(st.lists(st.integers(1, n - 1), max_size=n // 2)):
        kind = draw(
            st.sampled_from(["repeat", "repeat with the vector", "vector", "empty", "missing"])
        )
        other = draw(st.integers(0, row - 1))
        if kind in ("repeat", "repeat with the vector"):
            texts[row] = texts[other]
        if kind in ("vector", "repeat with the vector"):
            vectors[row] = vectors[other]
        if kind in ("empty", "missing"):
            texts[row] = {"empty": "  ", "missing": None}[kind]
    if not any(text and text.strip() for text in texts):
        texts[0] = "at least one"
    vectors[[not (text and text.strip()) for text in texts]] = np.nan
    return texts, vectors.astype(np.float32)


parameters = st.fixed_dictionaries(
    {
        "n_topics": st.sampled_from(["auto", "auto", "fine", "coarse", 1, 2, 3]),
        "coverage": st.sampled_from(["auto", "auto", 0.0, 0.7, 1.0]),
        "n_neighbors": st.sampled_from([3, 15]),
    }
)


def fit(collection, **chosen):
    texts, vectors = collection
    model = et.TopicModel(languages=["en"], random_state=4, **chosen)
    return model.fit(texts, embeddings=vectors)


def by_row(result):
    """Return everything that is said of the rows."""
    topics = result.memberships.toarray()
    return {
        "labels": result.labels,
        "reasons": result.reasons,
        "map": result.by_row(result.map, np.nan),
        "coordinates": result.by_row(result.coordinates, np.nan),
        "probabilities": result.by_row(result.clustering.probabilities, np.nan),
        "memberships": result.by_row(topics, np.nan),
        "none": result.by_row(result.none_shares, np.nan),
    }


@some
@given(collections(), parameters, st.randoms(use_true_random=False))
def test_the_order_of_rows_changes_nothing(collection, chosen, random):
    texts, vectors = collection
    order = list(range(len(texts)))
    random.shuffle(order)
    one = fit(collection, **chosen).result_
    two = fit(([texts[i] for i in order], vectors[order]), **chosen).result_
    expected = by_row(one)
    for name, values in by_row(two).items():
        np.testing.assert_array_equal(values, expected[name][order], err_msg=name)
    np.testing.assert_array_equal(one.topic_terms.toarray(), two.topic_terms.toarray())
    assert [t.keywords for t in one.topics] == [t.keywords for t in two.topics]
    assert [t.size for t in one.topics] == [t.size for t in two.topics]
    assert one.settings == two.settings
    # The texts that stand for a topic are the same, by their content.
    ours, theirs = (
        [[" ".join(r.corpus.texts[row].split()) for row in t.representatives] for t in r.topics]
        for r in (one, two)
    )
    assert ours == theirs


@some
@given(collections(), parameters)
def test_rows_of_a_text_share_everything_and_count(collection, chosen):
    texts, _ = collection
    result = fit(collection, **chosen).result_
    groups = pd.Series(np.arange(len(texts))).groupby(
        pd.Series([" ".join(text.split()) if text else "" for text in texts])
    )
    said = by_row(result)
    for rows in groups.indices.values():
        for values in said.values():
            np.testing.assert_array_equal(values[rows], np.repeat(values[rows[:1]], len(rows), 0))
    assert [t.size for t in result.topics] == [
        int((result.labels == t.topic_id).sum()) for t in result.topics
    ]
    assert result.distinct.weights.sum() == sum(bool(text and text.strip()) for text in texts)


@some
@given(collections(), st.data())
def test_repeating_rows_changes_neither_graph_nor_map(collection, data):
    texts, vectors = collection
    n_extra = data.draw(st.integers(1, 20))
    # Of the first row of each text, so that its vector is that of the text.
    first = [texts.index(text) for text in texts if text and text.strip()]
    extra = data.draw(st.lists(st.sampled_from(first), min_size=n_extra, max_size=n_extra))
    repeated = [*texts, *(f" {texts[i]}" for i in extra)]
    one = fit(collection).result_
    chosen = one.distinct.first_rows[one.distinct.of_row[extra]]
    two = fit((repeated, np.vstack([vectors, vectors[chosen]]))).result_
    if any(d.name == "conflicting_embeddings" for d in (*one.decisions, *two.decisions)):
        return  # which vector is taken is told elsewhere
    for name in ("embeddings", "map", "coordinates"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
    np.testing.assert_array_equal(one.graph.indices, two.graph.indices)
    np.testing.assert_array_equal(one.graph.similarities, two.graph.similarities)
    assert len(two.distinct) == len(one.distinct)
    assert two.distinct.weights.sum() == one.distinct.weights.sum() + n_extra


@some
@given(collections(), parameters)
def test_predicting_the_texts_of_the_fit_gives_its_labels(collection, chosen):
    texts, vectors = collection
    model = fit(collection, **chosen)
    for result in (model.result_, *_other_readings(model.result_)):
        found = et.topics.assign(result, texts)
        np.testing.assert_array_equal(found.labels, result.labels)
        kept = result.by_row(result.memberships.toarray(), 0.0)
        np.testing.assert_array_equal(found.memberships.toarray(), kept)
    np.testing.assert_array_equal(model.predict(texts[::-1]), model.labels_[::-1])
    np.testing.assert_array_equal(model.predict(texts, embeddings=vectors), model.labels_)


def _other_readings(result):
    if result.tree is None:
        return
    yield et.topics.recluster(result, "fine", coverage=1.0)
    most = max(et.topics.levels(result)["n_topics"], default=0)
    if most:
        yield et.topics.recluster(result, max(1, most // 2), coverage=0.0)


@some
@given(collections(), parameters, st.integers(1, 12), st.integers(0, 2**32 - 1))
def test_a_new_text_gets_the_same_beside_any_others(collection, chosen, n, seed):
    texts, vectors = collection
    result = fit(collection, **chosen).result_
    rng = np.random.default_rng(seed)
    names = [f"unseen {i}" for i in range(n)]
    queries = np.nan_to_num(vectors[rng.integers(0, len(vectors), n)], nan=1.0)
    queries = (queries + 0.2 * rng.normal(size=(n, 6))).astype(np.float32)
    together = et.topics.assign(result, [*texts, *names], embeddings=np.vstack([vectors, queries]))
    for row in range(n):
        alone = et.topics.assign(result, names[row : row + 1], embeddings=queries[row : row + 1])
        at = len(texts) + row
        assert alone.labels[0] == together.labels[at]
        assert alone.novelty[0] == together.novelty[at]
        np.testing.assert_array_equal(
            alone.memberships.toarray()[0], together.memberships[at].toarray()[0]
        )


@some
@given(collections(), parameters)
def test_nothing_is_lost_and_nothing_is_changed(collection, chosen):
    texts, vectors = collection
    index = pd.Index([f"row {i}" for i in range(len(texts))])
    frame = pd.DataFrame({"text": texts, "n": np.arange(len(texts))}, index=index)
    before, bytes_before = frame.copy(deep=True), vectors.tobytes()
    vectors.setflags(write=False)
    corpus = et.Corpus(frame, text="text")
    model = et.TopicModel(languages=["en"], **chosen).fit(corpus, embeddings=vectors)
    pd.testing.assert_frame_equal(frame, before)
    assert vectors.tobytes() == bytes_before

    result, table = model.result_, et.topics.documents(model.result_)
    assert table.index.equals(index) and table["n"].tolist() == list(range(len(texts)))
    has_text = np.array([bool(text and text.strip()) for text in texts])
    assert set(result.labels) <= {-1, *range(result.n_topics)}
    np.testing.assert_array_equal(result.reasons == Reason.NO_TEXT, ~has_text)
    np.testing.assert_array_equal(result.reasons == Reason.IN_TOPIC, result.labels >= 0)
    assert (result.labels[~has_text] == -1).all()
    assert np.isfinite(result.map).all() and np.isfinite(result.coordinates).all()
    total = result.none_shares + result.memberships.toarray().sum(axis=1)
    np.testing.assert_allclose(total, 1.0, atol=1e-6)
    sizes = [topic.size for topic in result.topics]
    assert sizes == sorted(sizes, reverse=True)
    assert sum(sizes) + int((result.labels[has_text] < 0).sum()) == has_text.sum()
    assert et.topics.table(result)["size"].sum() == has_text.sum()
    assert result.coverage == sum(sizes) / has_text.sum()


@pytest.mark.slow
def test_same_bits_in_any_process_with_any_number_of_threads(tmp_path):
    code = """
import sys, numpy as np, embedtopics as et
rng = np.random.default_rng(0)
centers = rng.normal(size=(15, 32))
vectors = centers[rng.integers(0, 15, 4500)] + 0.4 * rng.normal(size=(4500, 32))
texts = [f"text {i} of {'abc'[i % 3]}" for i in range(4500)]
r = et.TopicModel(languages=["en"], random_state=0).fit(texts, embeddings=vectors).result_
np.savez(sys.argv[1], labels=r.labels, map=r.map, coordinates=r.coordinates,
         shares=r.memberships.toarray(), similarities=r.graph.similarities,
         terms=r.topic_terms.toarray())
"""
    found = []
    for threads in ("1", "2"):
        path = tmp_path / f"{threads}.npz"
        names = ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
        environment = {**os.environ, **dict.fromkeys(names, threads)}
        python(code, str(path), env=environment, timeout=PATIENCE)
        found.append(np.load(path))
    assert found[0]["labels"].max() >= 5
    for name in found[0].files:
        np.testing.assert_array_equal(found[0][name], found[1][name], err_msg=name)


QUESTIONS = {
    "evaluate": lambda r: et.topics.evaluate(r, n_resamples=50),
    "stability": lambda r: pd.Series(
        vars(et.topics.with_stability(r, 4, random_state=3).stability)
    ),
    "keyness": lambda r: et.topics.keyness(r, 0, 1),
    "effects": lambda r: et.topics.effects(
        r, {"vowels": [text.count("a") for text in r.corpus.texts]}
    ).to_frame().round(9),
    "concordance": lambda r: pd.Series(
        sorted(et.topics.concordance(r, r.topics[0].keywords[0], n_occurrences=9)["id"])
    ),
    "sample_documents": lambda r: et.topics.sample_documents(r, 0, strategy="random")["text"],
}  # fmt: skip


@pytest.fixture(scope="module")
def turned(branches):
    texts, vectors = branches
    order = np.random.default_rng(5).permutation(len(texts))
    model = et.TopicModel(languages=[], random_state=2)
    return model.fit([texts[i] for i in order], embeddings=vectors[order]).result_


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_last_bits_and_other_seeds_leave_the_topics_where_they_were(seed):
    """Another CPU, or another batch, is noise of the last bits; groups here overlap."""
    rng = np.random.default_rng(seed)
    centers = rng.normal(size=(9, 24))
    vectors = centers[rng.integers(0, 9, 600)] + 0.9 * rng.normal(size=(600, 24))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    texts = [f"{' '.join(rng.choice(WORDS, 5))} {i}" for i in range(600)]

    def labels(moved, **parameters):
        made = et.TopicModel(languages=[], **parameters)
        return made.fit_predict(texts, embeddings=moved.astype(np.float32))

    first = labels(vectors, random_state=0)
    assert first.max() > 1
    np.testing.assert_array_equal(labels(vectors, random_state=9), first)
    for _ in range(3):
        again = labels(vectors + 1e-6 * rng.normal(size=vectors.shape), random_state=0)
        assert again.max() == first.max() and adjusted_rand_score(first, again) > 0.97


@pytest.mark.parametrize("question", QUESTIONS)
def test_questions_have_the_same_answer_for_any_order_of_the_rows(branched, turned, question):
    one, two = (QUESTIONS[question](result) for result in (branched, turned))
    for part, other in zip(one.items(), two.items(), strict=True):
        np.testing.assert_array_equal(part[1], other[1], err_msg=str(part[0]))
