import dataclasses

import numpy as np
import pytest

import embedtopics as et
from embedtopics.terms._counts import count_terms
from embedtopics.terms._stop_words import function_words, stop_words_for
from embedtopics.topics import ClassTfidf, merge, recluster, rename, update_terms
from tests.factories import each, fields, refuses, topic_counts, with_stability
from tests.topics.editing.altering import assert_untouched, frozen

WORDS = "the of and to a bank rate cut tax vote law court river boat".split()


@pytest.fixture(scope="module")
def english():
    """A fit of English with stop words in it."""
    rng = np.random.default_rng(5)
    themes = (WORDS[5:9], WORDS[9:12], WORDS[12:])
    texts, vectors = [], []
    for i in range(150):
        theme = themes[i % 3]
        words = [*rng.choice(theme, 8), *rng.choice(WORDS[:5], 6), "people", f"n{i % 40}"]
        texts.append(" ".join(rng.permutation(words)))
        vectors.append(np.eye(8)[i % 3] + 0.1 * rng.normal(size=8))
    model = et.TopicModel(languages=["en"], random_state=0)
    return model.fit(texts, embeddings=np.array(vectors)).result_


def counted(result, **rules):
    return count_terms(result.tokens, **rules)


def assert_counts(result, expected):
    assert result.term_counts.terms == expected.terms
    assert (result.term_counts.counts != expected.counts).nnz == 0
    np.testing.assert_array_equal(result.term_counts.lengths, expected.lengths)
    assert result.term_counts.stop_words == expected.stop_words
    assert result.term_counts.function_words == expected.function_words


def test_more_stop_words_are_left_out_and_the_lists_stay(english):
    before = frozen(english)
    updated = update_terms(english, extra_stop_words=["bank", "Vote"])
    assert_untouched(english, before)
    assert {"of", "bank", "vote"} <= set(updated.term_counts.stop_words)
    expected = counted(
        english,
        stop_words=[*stop_words_for(["en"]), "bank", "vote"],
        function_words=english.term_counts.function_words,
    )
    assert_counts(updated, expected)
    assert not any({"bank", "vote"} & {t.split()[0], t.split()[-1]} for t in expected.terms)
    weighed = ClassTfidf().fit_transform(topic_counts(updated)).toarray()
    np.testing.assert_allclose(updated.topic_terms.toarray(), weighed)
    np.testing.assert_array_equal(updated.labels, english.labels)
    assert updated.history[-1].new_ids == tuple(range(english.n_topics))
    (noted,) = [d.value for d in updated.decisions if d.name == "stop_words"]
    assert "bank" in noted
    nowhere = update_terms(english, extra_stop_words=["zebra"])
    assert "no text holds zebra" in nowhere.history[-1].message


def test_stop_words_do_not_come_back(english):
    edited = update_terms(english, extra_stop_words="bank")
    edited = update_terms(edited, extra_stop_words=["vote", "bank"])
    assert edited.settings["extra_stop_words"] == ["bank", "vote"]
    for later in (
        merge(edited, [0, 1]),
        update_terms(edited, ngram_range=(1, 3)),
        update_terms(edited, min_df=1),
        update_terms(edited, weighting=ClassTfidf(bm25=True)),
        recluster(edited, 2),
    ):
        ends = {end for t in later.term_counts.terms for end in (t.split()[0], t.split()[-1])}
        assert not ends & {"bank", "vote", "the", "of"}
        shown = {word for topic in later.topics for k in topic.keywords for word in k.split()}
        assert shown and not shown & {"bank", "vote"}
    again = update_terms(edited, stop_words="auto")
    assert_counts(again, english.term_counts)
    assert again.settings["extra_stop_words"] == []


def test_lists_may_be_replaced(english):
    own = update_terms(english, stop_words=["tax"], extra_stop_words=["law"])
    assert_counts(own, counted(english, stop_words=["tax", "law"]))
    assert "of" in own.term_counts.terms
    none = update_terms(own, stop_words=[])
    assert_counts(none, counted(english))
    back = update_terms(none, stop_words="auto")
    common = function_words(english.tokens, english.clustering.labels)
    assert_counts(back, counted(
        english, stop_words=stop_words_for(["en"]), function_words=common
    ))  # fmt: skip
    both = update_terms(none, stop_words=["auto", "bank"], extra_stop_words=["Vote"])
    assert_counts(both, update_terms(english, extra_stop_words=["bank", "vote"]).term_counts)


@pytest.mark.parametrize(
    "rules",
    [
        {"ngram_range": (1, 1)}, {"ngram_range": (2, 2)}, {"ngram_range": (1, 3)}, {"min_df": 5},
        {"min_df": 1}, {"min_df": 0.2},
        {"min_df": 3, "ngram_range": (2, 3)},
    ],
)  # fmt: skip
def test_other_rules_equal_a_fresh_count(english, rules):
    updated = update_terms(english, **rules)
    expected = counted(
        english,
        stop_words=stop_words_for(["en"]),
        function_words=english.term_counts.function_words,
        **rules,
    )
    assert_counts(updated, expected)
    for name, value in rules.items():
        assert updated.settings[name] == (list(value) if isinstance(value, tuple) else value)
    later = merge(updated, [0, 1])
    assert later.term_counts is updated.term_counts


def test_names_and_stability_stay(english):
    named = with_stability(rename(english, {1: "Law"}))
    updated = update_terms(named, extra_stop_words=["court"], ngram_range=(1, 1))
    assert updated.topics[1].name == "Law" and updated.stability is named.stability
    assert all("court" not in topic.keywords for topic in updated.topics)


def test_a_given_function_word_is_taken_as_a_stop_word(english):
    rules = {"stop_words": stop_words_for(["en"]), "function_words": ["people"]}
    counts = counted(english, **rules)
    assert counts.function_words == ("people",)
    result = dataclasses.replace(english, term_counts=counts)
    kept = update_terms(result, extra_stop_words=["bank"], ngram_range=(1, 3))
    assert kept.term_counts.function_words == ("people",)
    updated = update_terms(result, extra_stop_words=["people"])
    assert "people" in updated.term_counts.stop_words
    assert updated.term_counts.function_words == ()


WRONG = each(
    stop_words=["english"],
    extra_stop_words=[["new york"], [""]],
    ngram_range=[(2, 1), (0, 1)],
    min_df=[-1, 1.5],
    n_keywords=[0, 2.0],
)


@pytest.mark.parametrize(("name", "value"), WRONG)
def test_bad_arguments(english, name, value):
    with refuses(name):
        update_terms(english, **{name: value})


def test_rules_that_leave_no_term_are_refused_and_none_change_nothing(english):
    with refuses("min_df"):
        update_terms(english, min_df=100_000)
    with refuses(""):
        update_terms(english, extra_stop_words=sorted(set(english.tokens.words)))
    same = update_terms(english)
    assert_counts(same, english.term_counts)
    assert fields(same.topics) == fields(english.topics)
