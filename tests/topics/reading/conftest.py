"""Small results made by hand, of which every figure is known."""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix

from embedtopics import Corpus
from embedtopics.clustering.results import Clustering
from embedtopics.corpus._corpus import as_corpus
from embedtopics.neighbors._graph import unit_rows
from embedtopics.neighbors.results import NeighborGraph
from embedtopics.terms._counts import count_terms
from embedtopics.terms._tokens import tokenize
from embedtopics.topics import ClassTfidf
from embedtopics.topics._describe import TermSettings, describe_topics
from embedtopics.topics.results import TopicResult


def _build(
    data, topics, *, vectors=None, memberships=None, probabilities=None, stop_words=(),
    ngram_range=(1, 2), reasons=None, settings=None, **columns,
):  # fmt: skip
    """Return a result; `topics`, `vectors`, `memberships`, `probabilities`: one a row."""
    corpus = Corpus(data, **columns) if hasattr(data, "columns") else as_corpus(data)
    documents = corpus.distinct()
    rows = documents.first_rows
    n = len(rows)
    topics = np.asarray(topics, dtype=np.int32)
    labels = topics[rows]
    n_topics = int(labels.max(initial=-1)) + 1
    if vectors is None:
        vectors = np.eye(4)[topics + 1]
    embeddings = unit_rows(np.asarray(vectors, dtype=np.float32))[rows]
    if memberships is None:
        shares = np.zeros((n, n_topics), dtype=np.float32)
        inside = np.flatnonzero(labels >= 0)
        shares[inside, labels[inside]] = 1.0
    else:
        shares = np.asarray(memberships, dtype=np.float32)[rows]
    probabilities = np.ones(len(corpus)) if probabilities is None else np.asarray(probabilities)
    clustering = Clustering(
        labels,
        np.where(labels >= 0, probabilities[rows], 0.0).astype(np.float32),
        np.full(n_topics, np.nan),
        None if reasons is None else np.asarray(reasons, dtype=np.int8)[rows],
    )
    tokens = tokenize(corpus.document_texts())
    counts = count_terms(tokens, ngram_range=ngram_range, min_df=1, stop_words=stop_words)
    weighting = ClassTfidf()
    found, topic_terms = describe_topics(
        counts, embeddings, clustering, documents, weighting, TermSettings(), []
    )
    empty = NeighborGraph(np.zeros((n, 0), np.int32), np.zeros((n, 0), np.float32))
    return TopicResult(
        corpus=corpus, distinct=documents, embeddings=embeddings, graph=empty,
        coordinates=np.zeros((n, 5), np.float32), map=np.zeros((n, 2), np.float32),
        clustering=clustering, memberships=csr_matrix(shares), tokens=tokens, term_counts=counts,
        topic_terms=topic_terms, topics=found, settings={"encoder": "given", **(settings or {})},
    )  # fmt: skip


@pytest.fixture(scope="session")
def build():
    return _build


@pytest.fixture(scope="session")
def press():
    """Two topics, two papers, three years; a repeated text, an empty one, one in no topic."""
    frame = pd.DataFrame(
        [
            ("Le Monde", "2020-03-01", "tax cut tax cut budget"),
            ("Le Monde", "2020-07-01", "tax rise budget vote"),
            ("Le Figaro", "2021-01-05", "tax cut tax cut budget"),
            ("Le Figaro", "2021-12-31", "river flood river bank"),
            ("Le Figaro", "2022-02-02", "river bank boat"),
            ("Le Monde", "2022-05-05", ""),
            ("Le Figaro", None, "odd one out"),
        ],
        columns=["source", "date", "text"],
        index=pd.Index([f"row{i}" for i in range(7)], name="key"),
    )
    return _build(frame, [0, 0, 0, 1, 1, -1, -1], text="text", time="date", group="source")
