"""BERTopic on the labels of a result, as an oracle."""

import dataclasses
import warnings

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer

from embedtopics.clustering.results import NOISE
from embedtopics.terms._counts import count_by_topic
from embedtopics.topics import ClassTfidf
from tests.bertopic_oracle import fit_bertopic
from tests.factories import make_result


@pytest.fixture(scope="module")
def result():
    return make_result()


@pytest.fixture(scope="session")
def oracle():
    """A result whose class-TF-IDF is that of BERTopic, and a BERTopic with the same labels.

    BERTopic cuts the mean number of words in a topic to an integer, and counts noise as a topic:
    here the mean is whole and there is no noise.
    """
    for seed in range(100):
        result = make_result(n_documents=200, n_topics=5, seed=seed)
        labels = np.where(result.clustering.labels == NOISE, 4, result.clustering.labels)
        weights = result.distinct.weights
        sizes = np.bincount(labels, weights)
        order = np.argsort(-sizes, kind="stable")
        labels = np.argsort(order)[labels].astype(np.int32)
        counts = count_by_topic(result.term_counts.counts, labels, 5, weights)
        if counts.sum() % 5 == 0 and len(set(sizes)) == 5:
            break
    result = dataclasses.replace(
        result,
        clustering=dataclasses.replace(result.clustering, labels=labels),
        topic_terms=ClassTfidf().fit_transform(counts),
    )
    rows = np.flatnonzero(result.distinct.of_row >= 0)
    texts = [result.corpus.texts[row] for row in rows]
    words = CountVectorizer(vocabulary=result.term_counts.terms, lowercase=False)
    model = fit_bertopic(
        texts, np.zeros((len(texts), 2)), result.labels[rows].tolist(), vectorizer_model=words
    )
    assert model.topics_ == result.labels[rows].tolist()
    return result, model, rows, texts


def weights_of(model, method, *arguments, **options):
    """Return the weights behind BERTopic's words, one matrix a bin or class; and its table."""
    seen = []
    extract = type(model)._extract_words_per_topic

    def look(words, selection, c_tf_idf, **given):
        seen.append((sorted(selection.Topic.unique()), c_tf_idf.toarray()))
        return extract(model, words, selection, c_tf_idf, **given)

    model._extract_words_per_topic = look
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = getattr(model, method)(*arguments, **options)
    del model._extract_words_per_topic
    return seen, table


def assert_weights(terms, cell, present, expected):
    for row, topic in enumerate(present):
        found = np.zeros(expected.shape[1])
        held = terms.ids[topic, cell] >= 0
        found[terms.ids[topic, cell][held]] = terms.weights[topic, cell][held]
        assert found == pytest.approx(np.maximum(expected[row], 0.0), abs=1e-6)
