"""Topics of long texts from those of their passages."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix

from embedtopics import topics
from embedtopics.corpus import Corpus
from embedtopics.errors import InputError
from tests.factories import make_result


@pytest.fixture(scope="module")
def passages():
    """Passages of four texts, the last without text, as a result."""
    long = [
        " ".join(f"{word} number {i}." for i in range(30)) for word in ("river", "engine", "planet")
    ]
    frame = pd.DataFrame({"text": [*long, ""], "name": ["a", "b", "c", "d"]})
    corpus = Corpus.from_frame(frame, text="text", id="name").passages(most=16, overlap=2)
    documents = corpus.distinct()
    result = make_result(len(documents), 3)
    rng = np.random.default_rng(0)
    shares = csr_matrix(rng.dirichlet(np.ones(4), len(documents))[:, :3].astype(np.float32))
    return replace(result, corpus=corpus, documents=documents, memberships=shares)


def test_shares_are_means_by_length(passages):
    found = topics.passage_topics(passages)
    frame = passages.corpus.metadata
    assert found.ids == ("a", "b", "c", "d")
    lengths = frame["passage_stop"] - frame["passage_start"]
    of_row = passages.documents.of_row
    for text, name in enumerate("abc"):
        rows = np.flatnonzero(frame["passage_of"] == name)
        expected = np.average(
            passages.memberships[of_row[rows]].toarray(), axis=0, weights=lengths[rows]
        )
        np.testing.assert_allclose(found.shares[text].toarray().ravel(), expected, rtol=1e-5)
        assert found.n_passages[text] == len(rows) > 3
    assert found.n_passages[3] == 0 and found.shares[3].nnz == 0


def test_frame_and_shares_of_the_callers_own(passages):
    n_rows = len(passages.corpus)
    given = csr_matrix((np.ones(n_rows), (np.arange(n_rows), np.arange(n_rows) % 2)), (n_rows, 3))
    found = topics.passage_topics(passages, given)
    frame = found.to_frame()
    assert frame["id"].tolist() == ["a", "b", "c", "d"]
    assert frame["topic"].tolist()[3] == -1 and set(frame["topic"][:3]) <= {0, 1}
    np.testing.assert_allclose(frame["share"][:3], found.shares[:3].toarray().max(axis=1))
    assert frame["n_topics"].tolist() == [2, 2, 2, 0]
    np.testing.assert_allclose(found.shares[:3].sum(axis=1), 1, rtol=1e-6)


def test_no_passages_and_wrong_shapes(passages):
    with pytest.raises(InputError, match="no column 'passage_of'"):
        topics.passage_topics(make_result())
    with pytest.raises(InputError, match="each of the"):
        topics.passage_topics(passages, csr_matrix((2, 3)))
