"""Collections of few texts that many rows repeat: answers of a survey, templates, form letters."""

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

import embedtopics as et
from embedtopics.topics import merge, recluster, with_stability
from embedtopics.topics._repetition import is_repetitive, texts_to_learn

ANSWERS = {
    "es": "muy caro|tarda demasiado|gente amable|llegó roto|buen precio|no funciona|sin opinión",
    "it": "troppo caro|consegna lenta|personale gentile|arrivato rotto|prezzo giusto|niente",
    "ru": "слишком дорого|долго везли|вежливые люди|пришло сломанным|хорошая цена|нет мнения",
    "ja": "値段が高い|配達が遅い|親切な店員|壊れて届いた|駐車場がない|店舗が遠い",
    "en": "queue was endless|doctor listened|room smelled|bill unclear|nurse was kind|no parking",
}
LETTERS = (
    "Your library card {} expires soon. Please bring a photo and a proof of address to the desk.",
    "The repair of bicycle {} is finished. You can collect it in our workshop until Saturday.",
    "Vaccination appointment {} is confirmed. Bring the certificate and come without fever.",
    "Parking permit {} was granted. Put the badge behind the windscreen where it can be seen.",
    "Membership {} of the choir ends in June. Tell the treasurer whether you sing on.",
)


def repeated(texts, counts):
    """Return the rows, and the number of the text of each row, in mixed order."""
    kinds = np.repeat(np.arange(len(texts)), counts)
    np.random.default_rng(8).shuffle(kinds)
    return [texts[kind] for kind in kinds], kinds


def fit(texts, **options):
    return et.TopicModel("tfidf", random_state=0, **options).fit(texts)


@pytest.mark.parametrize("language", ANSWERS)
@pytest.mark.parametrize("n_people", [6, 35])
def test_each_answer_of_many_people_is_a_topic(language, n_people):
    answers = ANSWERS[language].split("|")
    texts, kinds = repeated(answers, n_people)
    result = fit(texts).result_

    assert result.n_topics == len(answers)
    assert adjusted_rand_score(kinds, result.labels) == 1.0
    assert [topic.size for topic in result.topics] == [n_people] * len(answers)
    assert [one.name for one in result.decisions].count("repeated_texts") == 1


def test_topics_are_numbered_by_the_rows_of_their_answers():
    answers = ANSWERS["en"].split("|")
    counts = [9, 80, 5, 31, 14, 60]
    texts, kinds = repeated(answers, counts)
    result = fit(texts).result_

    assert [topic.size for topic in result.topics] == sorted(counts, reverse=True)
    np.testing.assert_array_equal(result.labels, np.argsort(np.argsort(-np.array(counts)))[kinds])


def test_thirty_answers_have_words_of_their_own():
    """Words that one answer alone has are not rare if many people gave it."""
    answers = [answer for some in ANSWERS.values() for answer in some.split("|")]
    texts, kinds = repeated(answers, 12)
    result = fit(texts).result_

    assert len(answers) == result.n_topics == 31
    assert adjusted_rand_score(kinds, result.labels) == 1.0
    assert not any(topic.name.startswith("“") for topic in result.topics)


def test_a_collection_repeats_itself_if_few_texts_hold_nearly_all_rows():
    assert is_repetitive(np.array([5, 5]))
    assert is_repetitive(np.array([40] * 39))
    assert is_repetitive(np.array([10, 10, *[1] * 5]))
    assert not is_repetitive(np.array([40] * 40))  # as many as ten texts in each of four topics
    assert not is_repetitive(np.array([10, 10, *[1] * 6]))
    assert not is_repetitive(np.array([4] * 12))
    assert not is_repetitive(np.array([100, 1, 1]))
    assert not is_repetitive(np.array([], dtype=int))
    assert texts_to_learn(["a", "b", "c"], np.array([5, 5, 1])) == ["a", "b", "c", "a", "b"]
    assert texts_to_learn(["a", "b"], np.array([1, 1])) == ["a", "b"]


@pytest.mark.parametrize("n_letters", [12, 70])
def test_letters_with_a_number_that_varies_are_topics(n_letters):
    rng = np.random.default_rng(2)
    kinds = rng.permutation(np.repeat(np.arange(len(LETTERS)), n_letters))
    texts = [LETTERS[kind].format(rng.integers(1_000, 99_999)) for kind in kinds]
    result = fit(texts).result_

    assert result.n_topics == len(LETTERS)
    assert adjusted_rand_score(kinds, result.labels) == 1.0


@pytest.mark.parametrize("n_letters", [60, 150])
def test_letters_with_a_name_that_varies_are_topics_too(n_letters):
    """More variants than there may be topics: the letters are clearly separate groups of them."""
    names = "Ada Bo Cem Dora Eli Fay Gus Hana Ivo Jun Kai Lea".split()
    rng = np.random.default_rng(2)
    kinds = rng.permutation(np.repeat(np.arange(len(LETTERS)), n_letters))
    texts = [LETTERS[kind].format(names[rng.integers(12)]) for kind in kinds]
    result = fit(texts).result_

    assert result.n_topics == len(LETTERS)
    assert adjusted_rand_score(kinds, result.labels) == 1.0


def test_texts_without_a_known_word_are_no_answer():
    texts, _ = repeated([*ANSWERS["en"].split("|"), "?!"], 20)
    result = fit(texts).result_

    is_empty = np.array([text == "?!" for text in texts])
    assert (result.labels[is_empty] == -1).all()
    assert result.n_topics == 6 and (result.labels[~is_empty] >= 0).all()


def test_other_numbers_of_topics_are_met_and_texts_stay_whole():
    answers = ANSWERS["es"].split("|")
    texts, kinds = repeated(answers, 20)
    result = fit(texts).result_
    for n_topics in (2, 4, 7):
        fewer = recluster(result, n_topics)
        assert fewer.n_topics == n_topics == fit(texts, n_topics=n_topics).result_.n_topics
        assert len({*zip(kinds, fewer.labels.tolist(), strict=True)}) == len(answers)
    np.testing.assert_array_equal(recluster(result, "fine").labels, result.labels)
    assert fit(texts, min_cluster_size=21).result_.n_topics == 0


def test_results_of_answers_serve_as_others_do(tmp_path):
    texts, _ = repeated([answer for some in ANSWERS.values() for answer in some.split("|")], 9)
    model = fit(texts)
    result = model.result_
    model.save(tmp_path / "model")
    loaded = et.TopicModel.load(tmp_path / "model")

    np.testing.assert_array_equal(model.predict(texts), result.labels)
    # The encoder that is made again knows the same words.
    similar = ["the nurse was very kind", "слишком слишком дорого"]
    np.testing.assert_array_equal(loaded.predict(similar), model.predict(similar))
    assert (model.predict(similar) >= 0).all()
    assert merge(result, [0, 1]).n_topics == result.n_topics - 1
    assert with_stability(result, 3).stability.n_replicates == 3


def test_a_seldom_repeated_answer_is_said_to_be_no_topic():
    result = fit([answer for answer in ANSWERS["en"].split("|") for _ in range(2)]).result_

    assert result.n_topics == 0
    (note,) = [one for one in result.decisions if one.name == "no_topics"]
    assert "min_cluster_size" in note.message


def test_copies_of_many_texts_change_no_topics(branches):
    """Texts by the hundred are clustered as before, however often each of them occurs."""
    texts, vectors = branches
    once = et.TopicModel(languages=[], random_state=2).fit(texts, embeddings=vectors).result_
    often = et.TopicModel(languages=[], random_state=2).fit(
        texts * 6, embeddings=np.tile(vectors, (6, 1))
    )
    np.testing.assert_array_equal(often.labels_, np.tile(once.labels, 6))
