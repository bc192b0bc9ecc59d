"""Counts against plain Python on the same words."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from embedtopics.terms import _counts
from embedtopics.terms._counts import count_by_topic, count_terms
from embedtopics.terms._tokens import join_tokens, tokenize, words_of
from tests.factories import refuses


def count_naively(texts, shortest, longest, min_df, stops):
    documents = []
    for text in texts:
        words = text.split()
        spans = [
            (i, i + n) for n in range(shortest, longest + 1) for i in range(len(words) - n + 1)
        ]
        grams = [words[i:j] for i, j in spans if not {words[i], words[j - 1]} & set(stops)]
        documents.append(Counter(map(" ".join, grams)))
    held = Counter(term for document in documents for term in document)
    terms = sorted(term for term in held if held[term] >= min_df)
    return terms, [[document[term] for term in terms] for document in documents]


@given(
    texts=st.lists(
        st.lists(st.sampled_from(["aa", "bb", "cc", "dd"]), max_size=8).map(" ".join),
        min_size=1,
        max_size=5,
    ),
    lengths=st.sampled_from([(1, 1), (1, 2), (2, 2), (1, 3), (2, 4)]),
    min_df=st.integers(1, 3),
    stops=st.sampled_from([(), ("aa",), ("aa", "bb")]),
    at_once=st.sampled_from([1, 7, _counts._BLOCK_WORDS]),
    most_slots=st.sampled_from([0, 1, _counts._MAX_SLOT_BITS]),
    few=st.sampled_from([0, _counts._FEW_WORDS]),
)
def test_counts_equal_naive_counts(texts, lengths, min_df, stops, at_once, most_slots, few):
    min_df = min(min_df, len(texts))
    with pytest.MonkeyPatch.context() as patch:  # of few slots, all n-grams share one
        patch.setattr(_counts, "_BLOCK_WORDS", at_once)
        patch.setattr(_counts, "_MAX_SLOT_BITS", most_slots)
        patch.setattr(_counts, "_FEW_WORDS", few)  # more are numbered by compiled code
        found = count_terms(tokenize(texts), ngram_range=lengths, min_df=min_df, stop_words=stops)
    terms, counts = count_naively(texts, *lengths, min_df, stops)
    assert list(found.terms) == terms
    assert found.counts.toarray().tolist() == counts
    assert found.lengths.tolist() == [term.count(" ") + 1 for term in terms]
    assert found.counts.has_canonical_format


def test_what_makes_no_term():
    found = count_terms(
        tokenize(["Bank of England cut rates by 5 percent in 2004, x said"]),
        ngram_range=(1, 3),
        min_df=1,
        stop_words=["OF", "by", "in"],
        function_words=["said", "absent"],
    )
    assert set(found.terms) == {
        "bank", "england", "cut", "rates", "percent",
        "england cut", "cut rates", "bank of england", "england cut rates",
    }  # fmt: skip
    assert found.stop_words == ("by", "in", "of")
    assert found.function_words == ("said",)


def test_a_stop_word_begins_the_name_of_which_it_is_a_part():
    names = ["sheep in new zealand"] * 4 + ["zealand", "the wool of new zealand"]
    stops = ["the", "of", "in", "new"]
    for between, is_name in (("", True), ("new ", False)):  # which is too frequent
        texts = names + [f"the house {i} of the {between}street" for i in range(700)]
        terms = set(count_terms(tokenize(texts), stop_words=stops, min_df=2).terms)
        assert ("new zealand" in terms) == is_name
        assert "zealand" in terms and not terms & {"new", "the house", "in new", "new street"}
        extra = {"stop_words": stops[:3], "extra_stop_words": ["new"]}  # a user left it out
        assert "new zealand" not in count_terms(tokenize(texts), **extra, min_df=2).terms


def test_limits_count_documents():
    stream = tokenize(["aa aa aa bb", "bb cc", "bb cc"])
    assert count_terms(stream, min_df=2, ngram_range=(1, 1)).terms == ("bb", "cc")
    assert count_terms(stream, min_df=0.5, ngram_range=(1, 1)).terms == ("bb", "cc")


def test_phrases_do_not_cross_what_separates_words():
    texts = [
        "People's Republic, golden birds (St. Louis) http://a.b/c next — word",
        "the people's republic: golden\n\nbirds; St. Louis / next word",
    ]
    phrases = {term for term in count_terms(tokenize(texts), min_df=1).terms if " " in term}
    assert phrases == {"golden birds", "st louis", "next word", "the people"}
    both = join_tokens(tokenize(texts[:1]), tokenize(texts[1:]), np.array([1, 0]))
    assert both.segments.tolist() == tokenize(texts[::-1]).segments.tolist()
    assert words_of(texts[0]) == "people republic golden birds st louis next word".split()


@pytest.mark.parametrize(("n_documents", "min_df"), [(19, 1), (20, 2), (10_000, 2), (10_001, 5)])
def test_default_min_df_grows_with_the_corpus(n_documents, min_df):
    texts = ["filler"] * n_documents
    texts[:min_df] = ["enough"] * min_df
    texts[min_df : 2 * min_df - 1] = ["rare"] * (min_df - 1)
    assert count_terms(tokenize(texts), ngram_range=(1, 1)).terms == ("enough", "filler")


@pytest.mark.parametrize("texts", [[], [""], ["", "..."], ["the the"]])
def test_nothing_to_count(texts):
    found = count_terms(tokenize(texts), stop_words=["the"], ngram_range=(1, 3))
    assert found.counts.shape == (len(texts), 0)
    assert found.terms == ()
    assert found.lengths.shape == (0,)


def test_topics_are_sums_of_documents():
    rng = np.random.default_rng(0)
    counts = csr_matrix(rng.poisson(0.5, size=(30, 12)))
    labels = rng.integers(-1, 3, size=30)
    weights = rng.integers(1, 4, size=30)
    found = count_by_topic(counts, labels, 4, weights)
    repeated = np.repeat(counts.toarray(), weights, axis=0)
    expected = [repeated[np.repeat(labels, weights) == topic].sum(axis=0) for topic in range(4)]
    assert found.toarray().tolist() == np.array(expected).tolist()
    assert count_by_topic(counts, np.full(30, -1)).shape == (0, 12)


def test_bad_input():
    stream = tokenize(["a b"])
    for wrong in ({"ngram_range": (2, 1)}, {"min_df": 1.5}, {"min_df": -1}):
        with refuses(*wrong):
            count_terms(stream, **wrong)
