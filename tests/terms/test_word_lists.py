"""Stop words by list, function words by statistic."""

import gzip
import json

import numpy as np
import pytest

from embedtopics.terms._stop_words import (
    account_names,
    function_words,
    general_words,
    information_bound,
    stop_words_for,
)
from embedtopics.terms._tokens import tokenize


def test_stop_words_are_words_of_the_tokeniser():
    english = stop_words_for(["en"])
    assert {"the", "don't", "aren't", "of"} <= set(english)
    assert not {"computer", "research", "microsoft"} & set(english)
    assert list(english) == sorted(set(english))
    french = stop_words_for(["fr"])
    assert {"d", "qu", "l", "où", "the"} <= set(french)
    assert set(stop_words_for(["en", "fr"])) == set(english) | set(french)
    for word in english:
        assert tokenize([word]).words == (word,)
    # Each library has one of the two words of a language.
    assert {"και", "που", "είναι", "ότι"} <= set(stop_words_for(["el"])) and {"של", "אבל"} <= {
        *stop_words_for(["he"])
    }
    assert {"није", "још", "kroz", "кроз", "biti"} <= set(stop_words_for(["sr"]))
    assert "вода" not in stop_words_for(["ru"])
    assert stop_words_for([]) == stop_words_for(["xx"]) == ()


def test_words_that_any_text_has_are_no_terms_but_can_be_searched_for():
    french = stop_words_for(["fr"])
    assert {"heures", "ans", "jour", "aujourd'hui", "dit", "deux"} <= set(french)
    assert not {"grève", "santé", "personnes", "premier", "#", "fr"} & set(french)
    searched = stop_words_for(["fr"], general=False)
    assert not {"heures", "ans", "jour"} & set(searched)
    for code, listed in general_words().items():
        words = listed.split()
        if code not in ("ja", "km", "lo", "my", "th", "zh"):  # whose words segmenters find
            assert list(tokenize([listed]).words) == sorted(set(words))
        assert len(words) == len(set(words))
        assert set(stop_words_for([code])) > set(stop_words_for([code], general=False))


def two_topics(n_documents, seed=0):
    """Documents on two subjects, with a word for each and one that both use."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n_documents) % 2
    texts = []
    for label in labels:
        text = ["always", ("ball", "vote")[label]]
        text += ["filler"] if rng.random() < 0.5 else []
        text += ["leaning"] if rng.random() < (0.35, 0.65)[label] else []
        texts.append(" ".join(text))
    return tokenize(texts), labels


def test_finds_words_that_all_topics_use_equally():
    stream, labels = two_topics(2000)
    noisy = np.where(np.arange(2000) < 200, -1, labels)
    for numbers in (labels, labels * 7 + 3, noisy):  # neither numbers nor noise matter
        assert function_words(stream, numbers) == ("always", "filler")


def test_a_language_without_a_list_loses_words_that_no_topic_prefers():
    """Six topics of 20 texts: *i* in 8 of each, *vino* in 12 of one, *rare* in 5 of all 120."""
    texts = [
        f"tema{topic} {'i' * (n < 8)} {'vino' * (topic == 0 and n < 12)} "
        f"{'rare' * (topic < 5 and n == 9)}"
        for topic in range(6)
        for n in range(20)
    ]
    labels = np.repeat(np.arange(6), 20)
    assert function_words(tokenize(texts), labels, ["mk"]) == ("i",)
    assert function_words(tokenize(texts), labels, ["en"]) == ()
    two = np.minimum(labels, 1)  # the small topic has none of 20 words of the large one
    assert function_words(tokenize(texts), two, ["mk"]) == ("i",)


def test_few_documents_lose_no_words():
    for n_documents in (2, 5, 12, 40):
        stream, labels = two_topics(n_documents)
        assert function_words(stream, labels) == ()


def test_needs_two_topics():
    stream, _ = two_topics(2000)
    assert function_words(stream, np.zeros(2000, dtype=int)) == ()
    assert function_words(stream, np.full(2000, -1)) == ()
    assert function_words(stream, np.where(np.arange(2000) < 1000, 3, -1)) == ()
    assert function_words(tokenize([]), []) == ()


def test_bound_by_hand():
    """Two topics of 50; one word in 40 and 10 of them: the cells are .4, .1, .1, .4."""
    information = 0.8 * np.log(1.6) + 0.2 * np.log(0.4)
    variance = 0.8 * np.log(1.6) ** 2 + 0.2 * np.log(0.4) ** 2 - information**2
    error = np.sqrt(variance / 100 + 1 / 20_000)
    expected = (information - 1 / 200 + 1.645 * error) / (np.log(2) * np.log(2))
    bound = information_bound(np.array([[40.0], [10.0]]), np.array([50, 50]), 1.645)
    assert bound == pytest.approx([expected], rel=1e-12)


def test_names_of_accounts_are_words_that_mostly_stand_behind_an_at_sign():
    texts = [
        "@anna_news read the news, write to me@anna.example",
        "@Anna_News @bob news",
        "bob bob",
    ]
    assert account_names(texts, tokenize(texts)) == ("anna",)
    assert account_names(["me@anna.example"], tokenize(["me@anna.example"])) == ()


@pytest.mark.benchmark_data
@pytest.mark.slow
def test_on_newsgroups_only_words_without_a_subject(data_folder):
    path = data_folder / "20newsgroups" / "train.jsonl.gz"
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    labels = np.unique([row["label"] for row in rows], return_inverse=True)[1]
    found = set(
        function_words(tokenize([row["text"].partition("\n\n")[2] for row in rows]), labels)
    )
    assert {"like", "just", "know", "some", "time"} <= found
    subjects = "god windows game car space government gun team drive people jesus software key"
    assert not found & set(subjects.split())
