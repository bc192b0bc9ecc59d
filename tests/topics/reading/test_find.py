import numpy as np
import pytest
from sklearn.metrics.pairwise import cosine_similarity

import embedtopics as et
from embedtopics.topics import find
from tests.factories import make_result, refuses


class Turned:
    """An encoder of the user's own: vectors of the fit, or the same in another space."""

    def __init__(self, result, turn=None):
        texts = result.corpus.document_texts()
        self.vectors = dict(zip(texts, result.embeddings, strict=True))
        self.turn = np.eye(result.embeddings.shape[1]) if turn is None else turn

    def encode(self, texts):
        first = next(iter(self.vectors.values()))
        return np.array([self.vectors.get(text, first) for text in texts]) @ self.turn


def test_similarity_is_the_cosine_with_the_weighted_centroid(branched):
    queries = branched.embeddings[[3, 70, 200]]
    texts = branched.corpus.document_texts()
    names = [texts[3], texts[70], texts[200]]
    found = find(branched, names, encoder=Turned(branched), n_topics=4)
    labels, probabilities = branched.clustering.labels, branched.clustering.probabilities
    middles = np.array([
        np.average(branched.embeddings[labels == t], axis=0, weights=probabilities[labels == t])
        for t in range(branched.n_topics)
    ])  # fmt: skip
    oracle = cosine_similarity(queries, middles)
    for place, name in enumerate(names):
        rows = found[found["query"] == name]
        best = np.argsort(-oracle[place])[:4]
        assert rows["topic"].tolist() == best.tolist() and rows["rank"].tolist() == [1, 2, 3, 4]
        np.testing.assert_allclose(rows["similarity"], oracle[place][best], atol=1e-6)
        assert rows["label"].tolist() == [branched.topics[t].label for t in best]
    assert (found["by"] == "embeddings").all()
    assert found["terms"][0] == list(branched.topics[found["topic"][0]].keywords)


def test_terms_find_the_topics_that_hold_them(press):
    found = find(press, "River!", n_topics=5)
    assert found["topic"].tolist() == [1] and (found["by"] == "terms").all()
    weights = press.topic_terms.toarray()
    column = press.term_counts.terms.index("river")
    expected = weights[1, column] / np.linalg.norm(weights[1])
    assert found["similarity"][0] == pytest.approx(expected)
    both = find(press, ["tax CUT", "boat"], by="terms")
    assert both["topic"].tolist() == [0, 1] and both["query"].tolist() == ["tax CUT", "boat"]
    columns = [press.term_counts.terms.index(t) for t in ("tax", "cut", "tax cut")]
    expected = weights[0, columns].sum() / np.linalg.norm(weights[0]) / np.sqrt(3)
    assert both["similarity"][0] == pytest.approx(expected)


def test_the_encoder_of_the_fit_is_made_again(toy):
    texts, _, themes = toy
    result = et.TopicModel("lsa", languages=["en"], random_state=1).fit(texts).result_
    found = find(result, ["checkmate with a rook", "a ripe pear"], n_topics=1)
    assert (found["by"] == "embeddings").all()
    labels = result.labels
    for query, theme in (("checkmate with a rook", 2), ("a ripe pear", 0)):
        topic = found.set_index("query").loc[query, "topic"]
        assert np.bincount(themes[labels == topic]).argmax() == theme
    fitted = find(result, texts[0], encoder="lsa", n_topics=1)
    known = find(result, texts[0], encoder=Turned(result), n_topics=1)
    assert fitted["topic"][0] == known["topic"][0]
    assert fitted["similarity"][0] == pytest.approx(known["similarity"][0], abs=1e-5)
    with refuses("query"):
        find(result, "zzz")


def test_an_encoder_of_another_space_than_the_given_embeddings_is_refused(toy):
    texts = toy[0]
    vectors = np.random.default_rng(0).normal(size=(len(texts), 32))
    result = et.TopicModel(languages=["en"]).fit(texts, embeddings=vectors).result_
    assert len(find(result, texts[0], encoder=Turned(result)))
    other = Turned(result, np.roll(np.eye(32), 1, axis=0))
    for encoder in (other, "random"):
        with refuses("encoder"):
            find(result, texts[0], encoder=encoder)
        with refuses("encoder"):
            et.topics.assign(result, ["a text that is new"], encoder=encoder)


def test_without_topics_nothing_is_found():
    result = make_result(30, 0)
    assert len(find(result, "people", by="terms")) == 0
    found = find(result, "x", encoder=Turned(result))
    assert len(found) == 0
    assert list(found.columns) == ["query", "rank", "topic", "label", "similarity", "terms", "by"]


@pytest.mark.parametrize(
    ("query", "arguments", "parameter"),
    [
        *((query, {}, "query") for query in ("rivar", "zzzz", "  ")),
        ("tax", {"by": "magic"}, "by"),
        ("tax", {"by": "embeddings"}, "embeddings"),
    ],
)
def test_bad_queries(press, query, arguments, parameter):
    with refuses(parameter) as caught:
        find(press, query, **arguments)
    assert query != "rivar" or "similar terms are 'river'" in str(caught.value)
