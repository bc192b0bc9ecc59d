import numpy as np
import pytest

from embedtopics.errors import InputError
from embedtopics.topics import history, merge, remove, rename
from embedtopics.topics.results import Reason
from tests.factories import refuses, with_stability
from tests.topics.editing.altering import assert_untouched, frozen


def test_removed_documents_are_in_none_and_say_why(branched):
    before = frozen(branched)
    removed = remove(branched, [4, 1])
    assert_untouched(branched, before)
    gone = np.isin(branched.clustering.labels, [1, 4])
    assert (removed.clustering.labels[gone] == -1).all()
    assert (removed.clustering.reasons[gone] == Reason.REMOVED).all()
    assert not removed.clustering.probabilities[gone].any()
    ids = np.append(removed.history[-1].new_ids, -1)
    np.testing.assert_array_equal(removed.clustering.labels, ids[branched.clustering.labels])
    kept = [t for t in range(branched.n_topics) if t not in (1, 4)]
    np.testing.assert_array_equal(
        removed.memberships.toarray(), branched.memberships[:, kept].toarray()
    )
    shares = branched.memberships[:, [1, 4]].toarray().sum(axis=1)
    np.testing.assert_allclose(removed.none_shares - branched.none_shares, shares, atol=1e-6)
    n_texts = branched.topics[1].size + branched.topics[4].size
    assert f"{n_texts:,} texts are in no topic" in removed.history[-1].message
    assert [t.persistence for t in removed.topics] == [branched.topics[t].persistence for t in kept]


def test_all_may_be_removed(branched):
    none = remove(branched, range(branched.n_topics))
    assert none.n_topics == 0 and none.coverage == 0.0
    assert none.memberships.shape == (len(branched.distinct), 0)
    assert none.topic_terms.shape == (0, len(branched.term_counts.terms))
    assert (none.labels == -1).all()
    with pytest.raises(InputError):
        remove(none, 0)


def test_names_are_given_and_stay(branched):
    named = rename(branched, {3: "  Late \n trains ", 0: "Été"})
    assert named.topics[3].name == "Late trains" and named.topics[3].is_named
    assert named.topics[0].name == "Été" and not named.topics[1].is_named
    assert named.clustering is branched.clustering and named.topic_terms is branched.topic_terms
    edit = named.history[-1]
    assert edit.parameters == {"names": {"0": "Été", "3": "Late trains"}}
    assert edit.new_ids == tuple(range(branched.n_topics))
    later = remove(named, 1)
    ids = later.history[-1].new_ids
    assert [later.topics[ids[t]].name for t in (0, 3)] == ["Été", "Late trains"]
    fewer = merge(named, n_topics=3)
    assert {"Été"} <= {topic.name for topic in fewer.topics}


def test_a_function_names_the_topics(synthetic):
    named = rename(synthetic, lambda topic: f"{topic.topic_id}: {topic.keywords[0]}")
    assert [t.name for t in named.topics] == [
        f"{t.topic_id}: {t.keywords[0]}" for t in synthetic.topics
    ]
    assert all(t.is_named for t in named.topics)
    with refuses("names"):
        rename(synthetic, lambda topic: "the same")


def test_one_name_for_each_and_two_may_swap_them(synthetic):
    labels = [f"name {i}" for i in range(6)]
    named = rename(synthetic, dict(enumerate(labels)))
    assert [topic.name for topic in named.topics] == labels
    one, two = synthetic.topics[0].name, synthetic.topics[1].name
    swapped = rename(synthetic, {0: two, 1: one})
    assert [topic.name for topic in swapped.topics[:2]] == [two, one]


def test_bad_names(synthetic):
    taken = synthetic.topics[4].name
    alone = ({0: name} for name in ("", " \n", "\u200b", None, 5, b"x", taken))
    for names in (*alone, {0: "a", 2: "a"}, {0: "a", 2: " a "}):
        with refuses("names"):
            rename(synthetic, names)
    for topic in (6, -1):
        with refuses("topic"):
            rename(synthetic, {topic: "a"})


def test_names_leave_the_stability_and_merging_does_not(synthetic):
    measured = with_stability(synthetic)
    assert rename(measured, {0: "x"}).stability is measured.stability
    assert merge(measured, [0, 1]).stability is None


def test_history_is_a_table(synthetic):
    edited = remove(rename(synthetic, {2: "Two"}), 0)
    table = history(edited)
    assert table.columns.tolist() == ["step", "edit", "message"]
    assert table["step"].tolist() == [1, 2] and table["edit"].tolist() == ["rename", "remove"]
    assert table["message"][0] == "renamed 2 'Two'" == edited.history[0].message
    assert history(synthetic).empty
