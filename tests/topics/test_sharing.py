"""What a result without texts still knows."""

import numpy as np
import pytest

import embedtopics as et
from embedtopics.errors import InputError
from embedtopics.topics import assign, extend, load_result, save_result, without_texts
from embedtopics.topics._relabel import regrouped, relabeled


@pytest.fixture(scope="module")
def blank(branched):
    return without_texts(branched)


def test_topics_labels_and_places_stay(branched, blank, tmp_path):
    loaded = load_result(save_result(blank, tmp_path / "blank"))
    for result in (blank, loaded):
        assert set(result.corpus.texts) == {""} and len(result.corpus) == len(branched.corpus)
        assert repr(result.topics) == repr(branched.topics)
        np.testing.assert_array_equal(result.labels, branched.labels)
        np.testing.assert_array_equal(result.map, branched.map)
        np.testing.assert_array_equal(result.documents.hashes, branched.documents.hashes)
        assert (result.topic_terms != branched.topic_terms).nnz == 0
        assert len(result.tokens.ids) == 0 and result.tokens.words == ()
        assert result.term_counts.counts.nnz == 0 and len(result.tokens) == len(result.documents)
        assert result.decisions[-1].name == "texts_left_out"
    assert branched.corpus.texts[0]  # the caller's result stays as it was


def test_texts_of_the_fit_are_known_again(branched, branches, blank, tmp_path):
    texts, vectors = branches
    loaded = load_result(save_result(blank, tmp_path / "blank"))
    for result in (blank, loaded):
        found = assign(result, texts)
        np.testing.assert_array_equal(found.labels, branched.labels)
        new = assign(result, ["new"], embeddings=vectors[:1] + 0.1)
        expected = assign(branched, ["new"], embeddings=vectors[:1] + 0.1)
        np.testing.assert_array_equal(new.memberships.toarray(), expected.memberships.toarray())


def test_documents_can_be_added_with_the_terms_as_they_are(branched, branches, blank, tmp_path):
    texts, vectors = branches
    loaded = load_result(save_result(blank, tmp_path / "blank"))
    new = [texts[0], texts[1] + " and more", "other"]
    one, two = (
        extend(result, new, embeddings=vectors[:3] + 0.01, update_terms=False)
        for result in (branched, loaded)
    )
    assert str(one) == str(two) and one.n_known == 1
    np.testing.assert_array_equal(one.result.labels, two.result.labels)
    np.testing.assert_array_equal(one.result.map, two.result.map)
    assert two.result.corpus.texts[-1] == "other"


def test_what_needs_words_or_would_be_measured_wrongly_is_refused(branches, blank):
    one = np.zeros(blank.n_topics, dtype=int)
    together = np.minimum(blank.clustering.labels, 0), regrouped(blank.memberships, one, 1), [None]
    for ask in (
        lambda: extend(blank, ["new"], embeddings=branches[1][:1]),
        lambda: et.topics.at_resolution(blank, 4),
        lambda: et.topics.with_stability(blank, 1),
        lambda: relabeled(blank, *together, name="merge", parameters={}, message="all"),
    ):
        with pytest.raises(InputError, match="shared without its texts"):
            ask()


def test_labels_that_were_given_to_documents_are_no_part_of_it(branches):
    texts, vectors = branches
    labels = ["secret" if number % 3 == 0 else None for number in range(len(texts))]
    model = et.TopicModel(languages=[], random_state=2, constraints=et.topics.PartialLabels(labels))
    result = model.fit(texts, embeddings=vectors).result_
    assert result.constraints is not None and without_texts(result).constraints is None


def test_an_encoder_that_learnt_from_the_texts_is_asked_for(toy):
    shared = without_texts(et.TopicModel("lsa", languages=["en"]).fit(toy[0][:80]).result_)
    with pytest.raises(InputError, match="texts that were left out"):
        assign(shared, ["another apple in the orchard"])
