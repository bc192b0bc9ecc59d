import numpy as np
import pytest
from scipy.sparse import issparse
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import normalize
from threadpoolctl import threadpool_limits

from embedtopics.encoders import CachedEncoder, TfidfEncoder
from tests.factories import refuses

TEXTS = [
    "the cat sat near the cat and the dog",
    "dogs chase cats, and cats chase mice",
    "markets fell as the bank raised its rates",
    "rates rose again while markets and banks waited",
    "the orchestra played the symphony of the bank",
    "a symphony played at night near the markets",
]
NEW = ["the bank of cats", "night markets and more markets", "nothing known here"]


@pytest.mark.parametrize("ngram_range", [(1, 1), (1, 2), (2, 2)])
def test_vectors_are_those_of_scikit_learn(ngram_range):
    ours = TfidfEncoder(stop_words=[], ngram_range=ngram_range).fit(TEXTS)
    theirs = TfidfVectorizer(
        ngram_range=ngram_range, sublinear_tf=True, token_pattern=r"\w+", norm=None
    ).fit(TEXTS)
    # A single letter is no term here, nor is an n-gram that begins or ends with one, or that
    # crosses a comma.
    terms = theirs.get_feature_names_out()
    columns = [
        column
        for column, term in enumerate(terms)
        if "a" not in (term.split()[0], term.split()[-1]) and term != "cats and"
    ]
    expected = normalize(theirs.transform(TEXTS + NEW)[:, columns])
    vectors = ours.encode(TEXTS + NEW)
    assert issparse(vectors) and vectors.dtype == np.float32
    assert ours.dimensions == len(columns)
    np.testing.assert_allclose(vectors.toarray(), expected.toarray(), atol=1e-6)


def test_projection_is_that_of_scikit_learn():
    ours = TfidfEncoder(3, stop_words=[]).fit(TEXTS)
    theirs = TfidfVectorizer(sublinear_tf=True).fit(sorted(TEXTS))
    svd = TruncatedSVD(3, algorithm="arpack").fit(theirs.transform(sorted(TEXTS)))
    expected = svd.transform(theirs.transform(TEXTS + NEW[:2]))
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    axes = svd.components_
    expected *= np.sign(axes[np.arange(3), np.abs(axes).argmax(axis=1)])
    found = ours.encode(TEXTS + NEW[:2])
    assert found.dtype == np.float32 and found.shape == (8, 3) and ours.dimensions == 3
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_more_components_than_texts_are_as_many_as_there_are():
    encoder = TfidfEncoder(300, stop_words=[]).fit([*TEXTS, TEXTS[0]])
    assert encoder.dimensions == len(TEXTS)
    plain = TfidfEncoder(stop_words=[]).fit([*TEXTS, TEXTS[0]])
    # Nothing is lost of the texts of the fit.
    full = plain.encode(TEXTS).toarray()
    found = encoder.encode(TEXTS)
    np.testing.assert_allclose(found @ found.T, full @ full.T, atol=1e-5)


def test_a_vector_depends_neither_on_the_batch_nor_on_the_threads():
    rng = np.random.default_rng(0)
    words = [a + b for a in "bcdfgkl" for b in ("at", "en", "ol", "um", "ist", "orn")]
    texts = [" ".join(rng.choice(words, 30)) for _ in range(300)]
    encoder = TfidfEncoder(40, stop_words=[]).fit(texts)
    with threadpool_limits(limits=1):
        alone = TfidfEncoder(40, stop_words=[]).fit(texts)
    assert alone.fingerprint == encoder.fingerprint
    together = encoder.encode(texts)
    apart = np.vstack([encoder.encode([text]) for text in texts[:20]])
    assert (together[:20] == apart).all()


def test_stop_words_are_those_of_the_languages_of_the_texts():
    texts = [
        f"Les oiseaux de la ville et les arbres numéro {'i' * i} chantent" for i in range(2, 8)
    ]
    encoder = TfidfEncoder().fit(texts)
    report = encoder.encode_with_report(["les de la et", "les arbres et les moutons"])
    assert report.embeddings[0].nnz == 0 and report.embeddings[1].nnz == 1
    # Stop words are left out on purpose: only the sheep are unknown.
    assert report.n_tokens.tolist() == report.n_seen.tolist() == [4, 5]
    assert report.n_unknown.tolist() == [0, 1]
    more = TfidfEncoder(stop_words=["auto", "arbres"]).fit(texts)
    assert [row.nnz for row in more.encode(["les arbres", "la ville"])] == [0, 1]


def test_a_cache_takes_projections_and_refuses_sparse_vectors(tmp_path):
    projected = TfidfEncoder(2, stop_words=[]).fit(TEXTS)
    found = CachedEncoder(projected, folder=tmp_path).encode(NEW)
    np.testing.assert_array_equal(found, projected.encode(NEW))
    plain = TfidfEncoder(stop_words=[]).fit(TEXTS)
    with refuses("encoder"):
        CachedEncoder(plain, folder=tmp_path).encode(NEW)
