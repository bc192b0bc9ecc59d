"""Topics, edits, stability and trees say what they are on one line, and are tables."""

import numpy as np

from embedtopics import topics
from embedtopics.terms._keywords import keywords
from tests.factories import make_result, with_stability


def test_a_topic_is_a_line_and_a_table_of_its_keywords():
    result = make_result(120, 3)
    topic = topics.rename(result, {1: "Late trains"}).topics[1]

    assert repr(topic) == f"Topic(1, 'Late trains', {topic.size} rows)"
    table = topic.to_frame()
    assert table["term"].tolist() == list(topic.keywords)
    assert table["weight"].tolist() == list(topic.weights)
    assert "Late trains" in topic._repr_html_()


def test_an_edit_is_a_line_and_a_row():
    edit = topics.remove(topics.rename(make_result(120, 3), {1: "Late trains"}), 1).history[0]

    assert repr(edit) == "Edit(rename, \"renamed 1 'Late trains'\")"
    assert edit.to_frame().to_dict("records") == [
        {"edit": "rename", "message": "renamed 1 'Late trains'"}
    ]


def test_stability_is_a_line_and_a_row_for_each_topic():
    stability = with_stability(make_result(120, 3)).stability

    replicates = stability.n_replicates
    assert repr(stability) == f"Stability(3 topics, {replicates} replicates)"
    table = stability.to_frame()
    assert table["topic"].tolist() == [0, 1, 2]
    assert table["recurrence"].tolist() == stability.recurrence.tolist()
    assert {"low", "high"} <= set(table)


def test_a_tree_is_a_line():
    tree = topics.hierarchy(make_result(120, 3), space="terms")
    assert repr(tree) == "TopicHierarchy(3 topics merged by terms)"
    assert tree.space == "terms"


def test_a_fitted_model_stands_for_its_result():
    class Fitted:
        result_ = make_result(120, 3)

    edited = topics.remove(topics.rename(Fitted(), {0: "First"}), "First")
    replayed = topics.replay(Fitted(), edited)
    assert replayed.history == edited.history
    assert topics.history(Fitted()).empty
    assert topics.hierarchy(Fitted()).n_topics == 3
    assert len(topics.terms(Fitted(), n_terms=2)) == 6


def test_single_words_are_chosen_like_keywords_and_have_the_weights_of_terms():
    result = make_result(200, 4)

    words = topics.terms(result, n_terms=5, single_words=True)

    assert not words["term"].str.contains(" ").any()
    expected = keywords(
        result.topic_terms,
        result.term_counts,
        result.embeddings,
        n=5,
        languages=tuple(result.settings.get("languages", ())),
        ngram_range=(1, 1),
    )
    for topic, row in enumerate(expected):
        of_topic = words[words["topic"] == topic]
        assert of_topic["term"].tolist() == [term for term, _ in row]
        columns = [result.term_counts.terms.index(term) for term, _ in row]
        weights = result.topic_terms[[topic], columns]
        np.testing.assert_array_equal(of_topic["weight"], np.asarray(weights).ravel())
