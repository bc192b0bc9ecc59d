"""BERTopic on the same labels and counts: the same tree, the same terms, the same mixtures."""

from __future__ import annotations

import importlib.util
import warnings

import numpy as np
import pytest

import embedtopics as et
from embedtopics import topics
from tests.topics.conftest import branching

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(importlib.util.find_spec("bertopic") is None, reason="needs BERTopic"),
]


@pytest.fixture(scope="module")
def both():
    """Texts, our result, and BERTopic's model of the same topics and vocabulary.

    All texts have twelve words and there are twelve topics, so that the mean length of a topic is
    a whole number, to which BERTopic would round it down.
    """
    texts, vectors = branching(n_scattered=0)
    begins = np.cumsum([0, *[40 + 5 * (twig % 3) for twig in range(11)]])
    # No two topics of one size, which might be numbered otherwise there; one text three times.
    kept = [begin + i for twig, begin in enumerate(begins) for i in range(28 + twig)]
    kept += [kept[-1]] * 2
    texts, vectors = [texts[i] for i in kept], vectors[kept]
    result = (
        et.TopicModel(
            languages=[], n_topics=12, ngram_range=(1, 1), stop_words=(), min_df=1, random_state=2
        )
        .fit(texts, embeddings=vectors)
        .result_
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from bertopic import BERTopic
        from bertopic.cluster import BaseCluster
        from bertopic.dimensionality import BaseDimensionalityReduction
        from sklearn.feature_extraction.text import CountVectorizer

        theirs = BERTopic(
            umap_model=BaseDimensionalityReduction(),
            hdbscan_model=BaseCluster(),
            vectorizer_model=CountVectorizer(vocabulary=list(result.term_counts.terms)),
        )
        theirs.fit(texts, embeddings=vectors, y=result.labels)
        yield texts, result, theirs


def test_topics_are_the_same(both):
    _, result, theirs = both
    assert (result.clustering.labels >= 0).all() and result.n_topics == 12
    np.testing.assert_array_equal(theirs.topics_, result.labels)
    apart = abs(theirs.c_tf_idf_[theirs._outliers :] - result.topic_terms).max()
    assert apart < 1e-12


@pytest.mark.parametrize("linkage", ["ward", "average", "complete"])
def test_tree_is_the_same(both, linkage):
    from scipy.cluster import hierarchy

    texts, result, theirs = both
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        frame = theirs.hierarchical_topics(
            texts, linkage_function=lambda x: hierarchy.linkage(x, linkage, optimal_ordering=True)
        )
    frame = frame.sort_values("Parent_ID", key=lambda ids: ids.astype(int))
    tree = topics.hierarchy(result, linkage=linkage, diverse=False, n_terms=10_000)
    children = frame[["Child_Left_ID", "Child_Right_ID"]].astype(int).to_numpy()
    np.testing.assert_array_equal(tree.merges, children)
    np.testing.assert_allclose(tree.distances, frame["Distance"].to_numpy(dtype=float))
    for merge, row in enumerate(frame.itertuples()):
        assert tree.topics_under(12 + merge) == tuple(sorted(row.Topics))
        node = tree.nodes[12 + merge]
        weight = dict(zip(node.terms, node.weights, strict=True))
        # Words with one weight stand in any order there.
        assert [weight[w] for w in row.Parent_Name.split("_")] == pytest.approx(node.weights[:5])


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"window": 3, "min_similarity": 0.05},
        {"window": 5, "min_similarity": 0.0},
        {"window": 20},
    ],
)
def test_mixtures_are_the_same(both, arguments):
    texts, result, theirs = both
    asked = [*texts[:200], "words unknown here", f"{texts[0]} or {texts[300]}", ""]
    expected, _ = theirs.approximate_distribution(asked, **arguments)
    found = topics.mixtures(result, asked, over="words", **arguments).toarray()
    np.testing.assert_allclose(found, expected, atol=1e-6)
    stored = topics.mixtures(result, rows=range(200), over="words", **arguments).toarray()
    np.testing.assert_allclose(stored, expected[:200], atol=1e-6)
