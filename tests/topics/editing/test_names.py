"""Names of topics after edits, and topics that are named by their labels."""

import numpy as np
import pytest

import embedtopics as et
from embedtopics.topics import (
    concordance,
    extend,
    merge,
    recluster,
    reduce_outliers,
    remove,
    rename,
    sample_documents,
    split,
    update_terms,
)
from tests.factories import refuses


def label_of_documents(result):
    """Return the label of each topic by the set of its documents, known by their hashes."""
    hashes = result.distinct.hashes
    return {
        frozenset(map(tuple, hashes[result.clustering.labels == topic.topic_id].tolist())): (
            topic.name
        )
        for topic in result.topics
    }


def words_of_label(label):
    return frozenset(label.replace(",", " ").split())


EDITS = {
    "merge": lambda result: merge(result, [1, 3]),
    "merge groups": lambda result: merge(result, [[0, 2], [4, 5]]),
    "remove": lambda result: remove(result, [0, 2]),
    "merge nearest": lambda result: merge(result, n_topics=result.n_topics - 2),
    "split": lambda result: split(result, 0, 2),
    "reduce_outliers": lambda result: reduce_outliers(result),
    "same resolution": lambda result: recluster(result, result.n_topics),
    "merge after split": lambda result: merge(split(result, 1, 2), [0, 2]),
    "remove after merge": lambda result: remove(merge(result, [0, 1]), [2]),
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_a_topic_with_the_same_documents_keeps_its_name(edit, branched):
    before = label_of_documents(branched)
    edited = edit(branched)
    after = label_of_documents(edited)

    untouched = before.keys() & after.keys()
    assert untouched
    assert {documents: after[documents] for documents in untouched} == {
        documents: before[documents] for documents in untouched
    }
    assert len({words_of_label(label) for label in after.values()}) == edited.n_topics


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_a_topic_with_the_same_documents_keeps_a_name_that_its_words_do_not_make(edit, branched):
    """A name from before an update of the terms shows that names are kept, not made again."""
    only_words = update_terms(branched, ngram_range=(1, 1), n_keywords=3)
    named = update_terms(only_words, extra_stop_words=[only_words.topics[0].keywords[0]])
    before = label_of_documents(named)
    after = label_of_documents(edit(named))

    assert all(after[documents] == before[documents] for documents in before.keys() & after.keys())


def test_automatic_names_follow_an_update_of_the_terms(branched):
    first_word = branched.topics[2].keywords[0]
    updated = update_terms(branched, extra_stop_words=[first_word])

    assert first_word in branched.topics[2].name
    assert first_word not in updated.topics[2].name
    assert words_of_label(updated.topics[2].name) >= {
        word for term in updated.topics[2].keywords[:3] for word in term.split()
    }


def test_the_same_resolution_keeps_names_of_people(branched):
    named = rename(branched, {1: "Late trains"})
    again = recluster(named, named.n_topics)

    np.testing.assert_array_equal(again.labels, named.labels)
    assert [topic.name for topic in again.topics] == [topic.name for topic in named.topics]
    assert again.topics[1].is_named
    assert "dropped" not in again.history[-1].message


def test_topics_without_new_texts_keep_their_names_in_an_extension(branched, branches):
    texts, vectors = branches
    members = np.flatnonzero(branched.labels == 2)[:8]
    more = [f"{texts[row]} strange unheard" for row in members]
    extension = extend(branched, more, embeddings=vectors[members])
    grown = extension.result

    for topic in range(branched.n_topics):
        if topic != 2:
            assert grown.topics[topic].name == branched.topics[topic].name
    adopted = extend(branched, more, adopt=True, embeddings=vectors[members]).result
    assert adopted.topics[0].name == branched.topics[0].name


def test_topics_are_named_by_their_labels(branched):
    labels = [topic.name for topic in branched.topics]

    def same(one, two):
        assert one.history == two.history
        np.testing.assert_array_equal(one.labels, two.labels)

    same(merge(branched, [labels[3], labels[1]]), merge(branched, [1, 3]))
    same(merge(branched, [[labels[0], 2], [5, labels[4]]]), merge(branched, [[0, 2], [4, 5]]))
    same(merge(branched, (labels[0], np.int64(2))), merge(branched, [0, 2]))
    same(remove(branched, labels[2]), remove(branched, 2))
    same(remove(branched, [labels[2], 0]), remove(branched, [0, 2]))
    same(remove(branched, {labels[2]}), remove(branched, np.array([2])))
    same(split(branched, labels[0], 2), split(branched, 0, 2))
    same(rename(branched, {labels[1]: "x"}), rename(branched, {1: "x"}))


def test_topics_to_read_are_named_by_their_labels(branched):
    topic = branched.topics[4]
    word = topic.keywords[0]

    by_label = sample_documents(branched, topic.name, strategy="random")
    assert by_label.equals(sample_documents(branched, 4, strategy="random"))
    for selection in (topic.name, [topic.name], [4, topic.name]):
        found = concordance(branched, word, topics=selection, n_occurrences=None)
        assert found.equals(concordance(branched, word, topics=4, n_occurrences=None))


def test_topics_to_draw_are_named_by_their_labels(branched):
    drawn = et.plots.terms(branched, topics=[branched.topics[3].name, 1])
    assert drawn == et.plots.terms(branched, topics=[3, 1])
    assert et.plots.terms(branched, topics=2) == et.plots.terms(branched, topics=[2])
    for topics in ("nothing", ["nothing"], [0, "0"], [None], 1.5, [-1]):
        with refuses("topics"):
            et.plots.terms(branched, topics=topics)


@pytest.mark.parametrize(
    "topics", ["no topic", ["no topic", 1], ["0", "1"], [0, True], [0, None], [0, 1.0], 3, None, []]
)
def test_what_names_no_topics_to_merge_is_refused(topics, branched):
    with refuses("topics"):
        merge(branched, topics)


def test_a_label_that_no_topic_has_is_quoted(branched):
    first = branched.topics[0].name
    for edit in (lambda: merge(branched, [first, "Trains"]), lambda: remove(branched, "Trains")):
        with refuses("topics") as refusal:
            edit()
        assert "'Trains'" in str(refusal.value)


def test_groups_and_topics_are_not_mixed(branched):
    with refuses("topics"):
        merge(branched, [0, [1, 2]])
    with refuses("topics"):
        merge(branched, [[0, 1], branched.topics[2].name])


@pytest.mark.parametrize("labels", [["a", "b"], "a", None, 3])
def test_new_labels_without_topics_are_refused(labels, branched):
    with refuses("names"):
        rename(branched, labels)


def test_two_labels_for_one_topic_are_refused(branched):
    with refuses("names"):
        rename(branched, {0: "a", branched.topics[0].name: "b"})
