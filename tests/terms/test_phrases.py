"""Phrases of words that are everywhere: terms if only some topics use them."""

import numpy as np
import pytest

import embedtopics as et
from embedtopics.terms._counts import count_terms
from embedtopics.terms._phrases import common_phrases, phrases_of
from embedtopics.terms._stop_words import function_words
from embedtopics.terms._tokens import tokenize

N_EACH = 150
OWN = ("court law judge", "wheat field rain", "ship port sea", "school pupil book")


def speeches(first="climate", second="change", *, n_together=N_EACH):
    """Return texts of four subjects that all use two words; the first uses them as a phrase.

    `n_together` texts of the first subject have the phrase, the others the words apart.
    """
    rng = np.random.default_rng(4)
    texts, labels = [], []
    for row in range(4 * N_EACH):
        topic = row % 4
        own = list(rng.permutation(OWN[topic].split()))
        is_together = topic == 0 and row // 4 < n_together
        pair = f"{first} {second}" if is_together else f"{second} {own.pop()} {first}"
        texts.append(" ".join([own[0], pair, *own[1:]]))
        labels.append(topic)
    return texts, np.array(labels)


def phrases_in(texts, labels, left_out=()):
    tokens = tokenize(texts)
    return common_phrases(tokens, labels, function_words(tokens, labels, ["en"]), left_out)


def test_a_phrase_that_one_topic_uses_is_found():
    assert phrases_in(*speeches()) == ("climate change",)
    assert phrases_in(*speeches("droits", "humains")) == ("droits humains",)


def test_a_phrase_that_all_topics_use_is_not_found():
    texts, labels = speeches()
    together = [f"{text} climate change" for text in texts]
    assert phrases_in(together, labels) == ()
    # Nor are words of a list, or of people, that are to be left out.
    assert phrases_in(texts, labels, left_out=["Change"]) == ()


def test_a_phrase_of_few_texts_or_of_one_topic_is_not_found():
    assert phrases_in(*speeches(n_together=9)) == ()
    texts, labels = speeches()
    assert phrases_in(texts, np.zeros_like(labels)) == ()
    assert phrases_in(texts, np.full_like(labels, -1)) == ()


def test_no_phrase_crosses_the_end_of_a_sentence_or_of_a_text():
    texts, labels = speeches()
    apart = [text.replace("climate change", "climate. Change") for text in texts]
    assert phrases_in(apart, labels) == ()
    # Each text that ends with the first word stands before one that begins with the second.
    ends = [half for text in texts for half in (f"{text[:4]} climate", f"change {text[:4]}")]
    assert phrases_in(ends, np.repeat(labels, 2)) == ()


def test_a_frequent_word_and_a_function_word_are_a_phrase():
    texts, labels = speeches()
    # "climate" is in all texts of one subject and in a third of the others: it tells them apart.
    rarer = [
        text if label == 0 or row % 3 == 0 else text.replace("climate", "")
        for row, (text, label) in enumerate(zip(texts, labels, strict=True))
    ]
    tokens = tokenize(rarer)
    functions = function_words(tokens, labels, ["en"])

    assert "climate" not in functions and "change" in functions
    assert common_phrases(tokens, labels, functions) == ("climate change",)


def test_phrases_are_terms_beside_the_others():
    texts, _ = speeches()
    tokens = tokenize(texts)
    plain = count_terms(tokens, function_words=["climate", "change"])
    counts = count_terms(
        tokens, function_words=["climate", "change"], phrases=["Climate change", "not there"]
    )

    assert set(counts.terms) - set(plain.terms) == {"climate change"}
    column = counts.counts[:, counts.terms.index("climate change")].toarray().ravel()
    assert column.tolist() == [text.count("climate change") for text in texts]
    assert phrases_of(counts) == ("climate change",) and phrases_of(plain) == ()
    longer = count_terms(
        tokens, function_words=["climate", "change"], phrases=["climate change"], ngram_range=(1, 3)
    )
    assert set(counts.terms) <= set(longer.terms)


@pytest.fixture(scope="module")
def result():
    texts, labels = speeches()
    texts = [f"{text} n{row}" for row, text in enumerate(texts)]
    vectors = np.eye(6)[labels] + 0.05 * np.random.default_rng(1).normal(size=(len(texts), 6))
    model = et.TopicModel(languages=["en"], n_topics=4, random_state=0)
    return model.fit(texts, embeddings=vectors).result_


def topics_with_phrase(result):
    return [topic.topic_id for topic in result.topics if "climate change" in topic.keywords]


def test_a_fit_names_the_topic_of_the_phrase_and_says_so(result):
    (topic,) = topics_with_phrase(result)
    assert all(
        "climate change" in result.corpus.texts[row] for row in result.topics[topic].representatives
    )
    (note,) = [one for one in result.decisions if one.name == "function_words"]
    assert {"climate", "change"} <= set(note.value)
    assert "terms: climate change." in note.message


def test_edits_keep_the_phrase(result):
    assert len(topics_with_phrase(et.topics.update_terms(result, n_keywords=5))) == 1
    single = et.topics.update_terms(result, ngram_range=(1, 1))
    assert topics_with_phrase(single) == []
    assert len(topics_with_phrase(et.topics.update_terms(single, ngram_range=(1, 2)))) == 1
    without = et.topics.update_terms(result, extra_stop_words=["change"])
    assert topics_with_phrase(without) == []
    assert len(topics_with_phrase(et.topics.update_terms(without, stop_words="auto"))) == 1


def test_an_extension_keeps_the_phrase(result):
    row = result.topics[topics_with_phrase(result)[0]].representatives[0]
    more = [f"{result.corpus.texts[row]} strange"]
    vectors = result.embeddings[[result.distinct.of_row[row]]]
    grown = et.topics.extend(result, more, embeddings=vectors).result
    assert len(topics_with_phrase(grown)) == 1
