from types import SimpleNamespace

import pytest

from embedtopics.corpus.results import LanguageShares
from embedtopics.encoders._base import known_languages, language_warning

ENGLISH = SimpleNamespace(name="all-MiniLM-L6-v2", languages=("en",))


@pytest.mark.parametrize(
    ("name", "languages"),
    [
        ("all-MiniLM-L6-v2", ("en",)),
        ("sentence-transformers/all-mpnet-base-v2", ("en",)),
        ("/models/all-MiniLM-L12-v2", ("en",)),
        ("BAAI/bge-small-en-v1.5", ("en",)),
        ("intfloat/e5-base-v2", ("en",)),
        ("sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2", ("multilingual",)),
        ("intfloat/multilingual-e5-small", ("multilingual",)),
        ("Alibaba-NLP/gte-multilingual-base", ("multilingual",)),
        ("BAAI/bge-m3", ("multilingual",)),
        ("sentence-transformers/LaBSE", ("multilingual",)),
        ("FacebookAI/xlm-roberta-base", ("multilingual",)),
        ("dangvantuan/sentence-camembert-large", None),
        ("out/my-fine-tuned-model", None),
    ],
)
def test_known_languages(name, languages):
    assert known_languages(name) == languages


def test_a_french_corpus_is_warned_about():
    decision = language_warning(ENGLISH, LanguageShares({"fr": 0.6, "en": 0.3, "de": 0.1}, 500))
    assert (decision.stage, decision.name, decision.value) == ("encoder", "language", 0.3)
    for word in (
        "all-MiniLM-L6-v2",
        "30%",
        "fr 60%",
        "multilingual-e5-small",
        "TF-IDF",
        "fastText",
    ):
        assert word in decision.message
    assert "\n" not in decision.message


def test_texts_that_could_not_be_judged_do_not_count():
    assert language_warning(ENGLISH, LanguageShares({"en": 0.4, "fr": 0.05}, 100)) is None
    assert language_warning(ENGLISH, LanguageShares({"en": 0.4, "fr": 0.2}, 100)) is not None


@pytest.mark.parametrize(
    ("encoder", "shares"),
    [
        (ENGLISH, {"en": 0.8, "fr": 0.2}),
        (ENGLISH, {}),
        (SimpleNamespace(languages=("multilingual",)), {"fr": 1.0}),
        (SimpleNamespace(languages=None), {"fr": 1.0}),
        (object(), {"fr": 1.0}),
    ],
)
def test_no_warning_where_there_is_no_reason(encoder, shares):
    assert language_warning(encoder, LanguageShares(shares, 100)) is None
