"""Edits repeated on other results."""

import dataclasses

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import embedtopics as et
from embedtopics import topics
from embedtopics.errors import InputError
from embedtopics.topics import ClassTfidf
from embedtopics.topics._relabel import marks_of
from embedtopics.topics.editing._labels import EDITS, find_topic
from embedtopics.topics.results import Edit, TopicMark
from tests.factories import make_result, refuses, topic_counts
from tests.topics.editing.altering import assert_same, assert_same_topics, assert_untouched, frozen

ANY = st.integers(0, 99)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("merge"), ANY, ANY),
        st.tuples(st.just("split"), ANY, st.sampled_from(["auto", 2, 3])),
        st.tuples(st.just("remove"), ANY),
        st.tuples(st.just("rename"), ANY, st.sampled_from(["One", "Two", "Three"])),
        st.tuples(st.just("reduce_outliers"), st.sampled_from(["graph", "terms", "embeddings"])),
        st.tuples(st.just("merge nearest"), ANY, st.sampled_from(["terms", "embeddings"])),
        st.tuples(st.just("update_terms"), st.sampled_from([(1, 1), (1, 2)]), st.integers(3, 8)),
        st.tuples(st.just("recluster"), st.sampled_from(["fine", "coarse", 5])),
    ),
    min_size=1,
    max_size=5,
)


def do(result, step):
    """Do a random edit; return None where it cannot be done."""
    (name, *arguments), n = step, max(result.n_topics, 1)
    edits = {
        "merge": lambda one, other: topics.merge(result, [one % n, other % n]),
        "split": lambda topic, parts: topics.split(result, topic % n, parts),
        "remove": lambda topic: topics.remove(result, topic % n),
        "rename": lambda topic, label: topics.rename(result, {topic % n: label}),
        "reduce_outliers": lambda strategy: topics.reduce_outliers(result, strategy),
        "merge nearest": lambda fewer, space: topics.merge(
            result, n_topics=2 + fewer % n, space=space
        ),
        "update_terms": lambda span, number: topics.update_terms(
            result, ngram_range=span, n_keywords=number
        ),
        "recluster": lambda level: topics.recluster(result, level),
    }
    try:
        return edits[name](*arguments)
    except InputError:
        return None


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps=STEPS)
def test_on_the_same_fit_the_outcome_is_the_same_to_the_bit(branched, steps):
    edited = branched
    for step in steps:
        edited = do(edited, step) or edited
    assert_same(topics.replay(branched, edited), edited)


@pytest.fixture(scope="module")
def refitted(branches):
    """Another fit of most of the texts, in another order, with other numbers for the topics."""
    texts, vectors = branches
    kept = np.random.default_rng(1).permutation(len(texts))[: int(0.8 * len(texts))]
    model = et.TopicModel(languages=[], random_state=9)
    return model.fit([texts[i] for i in kept], embeddings=vectors[kept]).result_


def test_topics_are_found_by_their_documents(branched, refitted):
    edited = topics.merge(topics.rename(branched, {3: "Named"}), [0, 1])
    done = topics.replay(refitted, edited)
    assert done.n_topics == refitted.n_topics - 1
    named = next(topic for topic in done.topics if topic.is_named)
    assert named.name == "Named"
    assert set(named.keywords) & set(branched.topics[3].keywords)
    merged = {d for m in edited.history[1].marks for d in m.documents}
    held = [f"{a:016x}{b:016x}" in merged for a, b in done.distinct.hashes.tolist()]
    labels = done.clustering.labels[np.flatnonzero(held)]
    assert len(set(labels[labels >= 0].tolist())) == 1


def test_or_by_their_keywords(branched):
    (mark,) = marks_of(branched, [4])
    unknown = dataclasses.replace(mark, documents=("0" * 32, "f" * 32))
    assert find_topic(branched, unknown) == 4
    half = dataclasses.replace(unknown, keywords=(*mark.keywords[:5], "x", "y"))
    assert find_topic(branched, half) == 4
    little = dataclasses.replace(unknown, keywords=(*mark.keywords[:3], *"abcdefg"))
    assert find_topic(branched, little) is None
    assert find_topic(branched, TopicMark(0, "", (), ())) is None
    assert find_topic(make_result(40, 0), mark) is None


def test_most_documents_must_be_in_one_topic(branched):
    one, two = marks_of(branched, [1, 2])
    mixed = TopicMark(1, "", (), one.documents[:6] + two.documents[:5])
    assert find_topic(branched, mixed) == 1
    even = TopicMark(1, "", two.keywords, one.documents[:6] + two.documents[:6])
    assert find_topic(branched, even) == 2  # by the keywords
    removed = topics.remove(branched, 1)
    assert find_topic(removed, dataclasses.replace(one, keywords=())) is None


def test_a_topic_that_is_missing_is_named(branched):
    stranger = TopicMark(7, "Volcanoes", ("lava", "ash"), ("0" * 32,))
    unknown = Edit("rename", {"labels": {"7": "Fire"}}, "called 7 'Fire'", (stranger,))
    remark = Edit("note", message="looked at it")
    edits = [unknown, remark, *topics.rename(branched, {0: "Kept"}).history]
    with pytest.raises(InputError, match="Volcanoes"):
        topics.replay(branched, edits)
    done = topics.replay(branched, edits, missing="skip")
    assert done.topics[0].name == "Kept" and len(done.history) == 1
    missing, left_out = [d for d in done.decisions if d.name == "replay"]
    assert missing.value == 1 and "Volcanoes" in missing.message
    assert left_out.value == 2 and "it is a remark" in left_out.message


def test_topics_that_are_one_already_are_left_so(branched):
    edited = topics.merge(branched, [0, 1])
    again = topics.replay(edited, edited, missing="skip")
    assert again.n_topics == edited.n_topics and again.history == edited.history
    assert "are one here already" in again.decisions[-1].message
    named = topics.rename(branched, {0: "a", 1: "b"})
    with pytest.raises(InputError, match="two of its topics"):
        topics.replay(edited, named)


def test_a_history_of_a_file_can_call_no_other_function(branched):
    sending = {"endpoint": "http://127.0.0.1:9/v1", "model": "m", "audit": None, "retries": 0}
    for name in ("TopicResult", "table", "TopicModel", "__doc__", "name_topics", "replay"):
        for parameters in ({"folder": "/tmp/x"}, sending):
            with pytest.raises(InputError, match=f"there is no edit '{name}'"):
                topics.replay(branched, [Edit(name, parameters)])


def test_a_weighting_of_ones_own_is_kept_through_edits(branched):
    class Counts:
        def fit(self, counts, terms=None):
            return self

        def transform(self, counts):
            return counts

    own = Counts()
    edited = topics.merge(branched, n_topics=8)  # still by the weighting of the fit
    edited = topics.update_terms(edited, weighting=own)
    edited = topics.rename(topics.merge(edited, [0, 1]), {0: "x"})
    assert (edited.topic_terms != topic_counts(edited)).nnz == 0
    assert_same(topics.replay(branched, edited), edited)
    with pytest.raises(InputError, match="custom object"):
        topics.replay(branched, edited.history)  # which no longer holds it
    loaded = dataclasses.replace(edited, weighting=None)
    with pytest.raises(InputError, match="custom object"):
        topics.merge(loaded, [0, 1])
    assert_same_topics(topics.update_terms(loaded, weighting=own), edited)


def test_bad_histories(branched):
    with pytest.raises(InputError, match="no record"):
        topics.replay(branched, [Edit("remove", {"topics": [2]})])
    with refuses("missing"):
        topics.replay(branched, [], missing="ignore")


def test_every_edit_of_the_package_can_be_done_again(branched, tmp_path):
    """Also those of other subpackages; whoever adds one adds it to `EDITS`, and here."""
    edits = {
        "rename": lambda r: topics.rename(r, {0: "Zero", 4: "Four"}),
        "with_keywords": lambda r: topics.with_keywords(
            r, {t: [(word, 1.0) for word in reversed(r.topics[t].keywords)] for t in (1, 2)}
        ),
        "update_terms": lambda r: topics.update_terms(
            r, extra_stop_words=[r.topics[1].keywords[0].split()[0]], n_keywords=4,
            weighting=ClassTfidf(bm25=True),
        ),
        "merge": lambda r: topics.merge(r, [[1, 2], [5, 7]]),
        "split": lambda r: topics.split(r, 0, 2),
        "reduce_outliers": lambda r: topics.reduce_outliers(r, "embeddings"),
        "merge nearest": lambda r: topics.merge(
            r, n_topics=r.n_topics - 1, space="embeddings"
        ),
        "remove": lambda r: topics.remove(r, [3]),
        "recluster": lambda r: topics.recluster(r, 5, coverage=1.0),
    }  # fmt: skip
    assert {name.split()[0] for name in edits} == set(EDITS)
    edited, before = branched, frozen(branched)
    for name, edit in edits.items():
        edited = edit(edited)
        assert edited.history[-1].name == name.split()[0]
        assert_same(topics.replay(branched, edited), edited)
    for name, result in (("fit", branched), ("edited", edited)):
        result.save(tmp_path / name)
    assert_same(
        topics.replay(*(et.TopicResult.load(tmp_path / n) for n in ("fit", "edited"))), edited
    )
    assert_untouched(branched, before)
    assert edited.settings["n_keywords"] == 4
    assert {len(topic.keywords) for topic in edited.topics} == {4}


def test_longer_lists_of_another_method_do_not_lengthen_others(branched):
    terms = branched.term_counts.terms[:25]
    longer = topics.with_keywords(branched, {2: [(term, 1.0) for term in terms]})
    assert len(longer.topics[2].keywords) == 25
    assert max(len(topic.keywords) for topic in topics.merge(longer, [0, 1]).topics) == 10
