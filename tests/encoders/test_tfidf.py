from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import issparse
from sklearn.decomposition import TruncatedSVD
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from threadpoolctl import threadpool_limits

from embedtopics.encoders import CachedEncoder, TfidfEncoder
from embedtopics.encoders._registry import encoder_from_settings
from embedtopics.errors import InputError
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
@pytest.mark.parametrize("sublinear_tf", [True, False])
def test_vectors_are_those_of_scikit_learn(ngram_range, sublinear_tf):
    ours = TfidfEncoder(
        stop_words=[], min_df=1, ngram_range=ngram_range, sublinear_tf=sublinear_tf
    ).fit(TEXTS)
    theirs = TfidfVectorizer(
        ngram_range=ngram_range, sublinear_tf=sublinear_tf, token_pattern=r"\w+"
    ).fit(TEXTS)
    # A single letter is no term here, nor is an n-gram that begins or ends with one.
    kept = [i for i, term in enumerate(theirs.get_feature_names_out())
            if "a" not in (term.split()[0], term.split()[-1])]  # fmt: skip
    assert ours.dimensions == len(kept)
    if ngram_range == (1, 1):
        theirs = TfidfVectorizer(sublinear_tf=sublinear_tf).fit(TEXTS)
        kept = slice(None)
        expected = theirs.transform(TEXTS + NEW).toarray()
    else:
        counts = theirs.transform(TEXTS + NEW).toarray()[:, kept]
        norms = np.linalg.norm(counts, axis=1, keepdims=True)
        expected = np.divide(counts, norms, out=np.zeros_like(counts), where=norms > 0)
    found = ours.encode(TEXTS + NEW)
    assert issparse(found) and found.dtype == np.float32
    np.testing.assert_allclose(found.toarray(), expected, atol=1e-6)


def test_min_df_max_df_and_max_features_leave_terms_out_as_scikit_learn_does():
    for parameters in ({"min_df": 2}, {"min_df": 1, "max_df": 0.4}):
        ours = TfidfEncoder(stop_words=["the"], **parameters).fit(TEXTS)
        theirs = TfidfVectorizer(stop_words=["the"], sublinear_tf=True, **parameters).fit(TEXTS)
        expected = theirs.transform(NEW).toarray()
        np.testing.assert_allclose(ours.encode(NEW).toarray(), expected, atol=1e-6)
    # In two or more texts: and 3, the 3, markets 3; the others less.
    few = TfidfEncoder(stop_words=[], min_df=1, max_features=3).fit(TEXTS)
    assert few.dimensions == 3
    assert few.encode(["markets"]).nnz == few.encode(["and"]).nnz == 1


def test_projection_is_that_of_scikit_learn():
    ours = TfidfEncoder(3, stop_words=[], min_df=1).fit(TEXTS)
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
    encoder = TfidfEncoder(300, stop_words=[], min_df=1).fit([*TEXTS, TEXTS[0]])
    assert encoder.dimensions == len(TEXTS)
    plain = TfidfEncoder(stop_words=[], min_df=1).fit([*TEXTS, TEXTS[0]])
    # Nothing is lost of the texts of the fit.
    full = plain.encode(TEXTS).toarray()
    found = encoder.encode(TEXTS)
    np.testing.assert_allclose(found @ found.T, full @ full.T, atol=1e-5)


@settings(max_examples=15, deadline=None)
@given(order=st.permutations(range(len(TEXTS))))
def test_what_is_learnt_does_not_depend_on_the_order_of_the_texts(order):
    shuffled = [TEXTS[i] for i in order]
    for n_components in (None, 3):
        one = TfidfEncoder(n_components, stop_words=[], min_df=1).fit(TEXTS)
        other = TfidfEncoder(n_components, stop_words=[], min_df=1).fit(shuffled)
        assert one.fingerprint == other.fingerprint
        difference = one.encode(NEW) - other.encode(NEW)
        assert not difference.any() if n_components else difference.nnz == 0


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
    encoder = TfidfEncoder(min_df=1).fit(texts)
    report = encoder.encode_with_report(["les de la et", "les arbres et les moutons"])
    assert report.embeddings[0].nnz == 0 and report.embeddings[1].nnz == 1
    # Stop words are left out on purpose: only the sheep are unknown.
    assert report.n_tokens.tolist() == report.n_seen.tolist() == [4, 5]
    assert report.n_unknown.tolist() == [0, 1]
    counted = encoder.count_tokens(["les de la et", "les arbres et les moutons"])
    assert counted.n_unknown.tolist() == [0, 1] and counted.embeddings.shape == (2, 0)


@pytest.mark.parametrize("n_components", [None, 2])
def test_any_text_can_be_encoded(n_components):
    encoder = TfidfEncoder(n_components, stop_words=[], min_df=1).fit(TEXTS)
    odd = ["", "   ", "...", "12 13", "\ud800", "\0", "cats\ud800 \0chase", "cats " * 200_000]
    found = encoder.encode(odd)
    found = found.toarray() if issparse(found) else found
    assert found.any(axis=1).tolist() == [False] * 6 + [True] * 2
    np.testing.assert_allclose(np.linalg.norm(found[6:], axis=1), 1, atol=1e-6)
    assert encoder.encode([]).shape == (0, encoder.dimensions)


def test_settings_make_it_again():
    first = TfidfEncoder(2, stop_words=["the"], ngram_range=(1, 2), min_df=1, sublinear_tf=False)
    again = encoder_from_settings(first.settings)
    assert not again.is_fitted and again.settings == first.settings
    assert again.fit(TEXTS).fingerprint == first.fit(TEXTS).fingerprint
    others = [{"n_components": 3}, {"stop_words": []}, {"sublinear_tf": True}, {"max_df": 0.5}]
    made = [encoder_from_settings(first.settings | other).fit(TEXTS) for other in others]
    assert len({first.fingerprint, *(encoder.fingerprint for encoder in made)}) == 5
    assert first.fit(TEXTS[:-1]).fingerprint != again.fingerprint


def test_what_needs_texts_says_so_before_the_fit():
    encoder = TfidfEncoder()
    for ask in (
        lambda: encoder.fingerprint, lambda: encoder.dimensions, lambda: encoder.encode(TEXTS),
        lambda: encoder.count_tokens(TEXTS),
    ):  # fmt: skip
        with pytest.raises(NotFittedError, match=r"TfidfEncoder .* call fit\(texts\) first"):
            ask()
    with pytest.raises(InputError, match="fingerprint"):
        CachedEncoder(encoder)


def test_a_cache_takes_projections_and_refuses_sparse_vectors(tmp_path):
    projected = TfidfEncoder(2, stop_words=[], min_df=1).fit(TEXTS)
    found = CachedEncoder(projected, folder=tmp_path).encode(NEW)
    np.testing.assert_array_equal(found, projected.encode(NEW))
    plain = TfidfEncoder(stop_words=[], min_df=1).fit(TEXTS)
    with pytest.raises(InputError, match=r"cache keeps arrays, and TfidfEncoder.* makes sparse"):
        CachedEncoder(plain, folder=tmp_path).encode(NEW)


@pytest.mark.parametrize(
    ("parameters", "texts", "parameter"),
    [
        ({"n_components": 0}, TEXTS, "n_components"),
        ({"n_components": True}, TEXTS, "n_components"),
        ({"max_features": 1.5}, TEXTS, "max_features"),
        ({"stop_words": "english"}, TEXTS, "stop_words"),
        ({"ngram_range": (1, 2, 3)}, TEXTS, "ngram_range"),
        ({"ngram_range": (2, 1)}, TEXTS, "ngram_range"),
        ({"min_df": -1}, TEXTS, "min_df"),
        ({}, [], "texts"),
        ({}, "one text", "texts"),
        ({}, ["a text", None], "texts"),
        ({}, ["...", "12"], "texts"),
        ({"min_df": 7}, TEXTS, "texts"),
    ],
)
def test_bad_input_is_refused(parameters, texts, parameter):
    with refuses(parameter):
        TfidfEncoder(**parameters).fit(texts)
