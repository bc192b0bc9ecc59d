"""Sentences of SIB-200, cut at any character and mixed, pass every step that reads texts."""

import gzip
import json
import unicodedata
import warnings
from functools import cache

import numpy as np
import pytest
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st

import embedtopics as et
from embedtopics.terms._languages import language_of
from embedtopics.terms._tokens import _LETTER_FORMS, clean, tokenize, words_of

pytestmark = [pytest.mark.benchmark_data, pytest.mark.slow]
# A sentence, the number of its first character, and the number of characters.
FRAGMENT = st.tuples(st.integers(0, 41_819), st.integers(0, 120), st.integers(1, 60))
BETWEEN = st.sampled_from(["", " ", "\n", ". ", "-", "'"])
TEXTS = st.lists(st.tuples(st.lists(FRAGMENT, max_size=4), BETWEEN), min_size=30, max_size=60)


@cache
def sentences(folder):
    with gzip.open(folder / "sib200" / "test.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line)["text"] for line in lines]


def mixed(folder, drawn):
    """Join the fragments of each text."""
    parts = sentences(folder)
    return [
        between.join(parts[row][begin:][:length] for row, begin, length in fragments)
        for fragments, between in drawn
    ]


@given(drawn=TEXTS)
def test_words_and_languages(data_folder, drawn):
    texts = mixed(data_folder, drawn)
    tokens = tokenize(texts)
    for text, begin, end in zip(texts, tokens.offsets, tokens.offsets[1:], strict=False):
        words = [tokens.words[word_id] for word_id in tokens.ids[begin:end]]
        assert words == words_of(text)
        plain = clean(text, lowercase=True)
        for form, letter in _LETTER_FORMS.items():
            plain = plain.replace(form, letter)
        plain = unicodedata.normalize("NFC", plain)
        assert all(word and word in plain for word in words)
        assert language_of(text) is None or isinstance(language_of(text), str)
    languages = et.topics.inspect(et.Corpus([*texts, "text"])).languages
    assert 0 <= sum(languages.shares.values()) <= 1 + 1e-9


@settings(phases=[Phase.generate])  # to shrink an example would take many fits
@given(drawn=TEXTS, seed=st.integers(0, 9))
def test_topics_search_and_explorer(data_folder, tmp_path_factory, drawn, seed):
    texts, folder = mixed(data_folder, drawn), tmp_path_factory.mktemp("mixed")
    assume(len({text.strip() for text in texts}) > 10)
    rng = np.random.default_rng(seed)
    vectors = np.eye(3, 8)[rng.integers(0, 3, len(texts))] + rng.normal(0, 0.05, (len(texts), 8))
    is_empty = np.array([not text.strip() for text in texts])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "Number of distinct clusters")  # of few groups
        corpus = et.Corpus([*texts, "text"])
        vectors = np.vstack([vectors, vectors[:1]])
        model = et.TopicModel(clusterer="kmeans", n_topics=3, min_df=1, random_state=0)
        result = model.fit(corpus, embeddings=vectors).result_
        assert (result.labels[:-1][is_empty] == -1).all()
        for topic in result.topics:
            rows = np.flatnonzero(result.labels == topic.topic_id)
            rules = result.tokens.rules
            words = {word for row in rows for word in words_of(corpus.texts[row], rules)}
            assert topic.name and (topic.keywords or words <= {*result.term_counts.stop_words})
            assert {word for term in topic.keywords for word in term.split(" ")} <= words
        et.report.write_report(result, folder / "explorer.html")
        index = et.SearchIndex.build(corpus, folder / "index", encoder=None, languages=[])
        for row, text in enumerate(texts):
            for word in words_of(text)[:2]:
                hits = index.search(f'"{word}"', k=len(texts), mode="lexical")
                assert text in [hit.text for hit in hits], (row, word)
