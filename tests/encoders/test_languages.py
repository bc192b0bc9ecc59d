from types import SimpleNamespace

import pytest

from embedtopics.corpus.results import LanguageShares
from embedtopics.encoders._base import known_languages, language_warning

ENGLISH = SimpleNamespace(name="all-MiniLM-L6-v2", languages=("en",))


@pytest.mark.parametrize(
    ("languages", "names"),
    [
        (("en",), "all-MiniLM-L6-v2 sentence-transformers/all-mpnet-base-v2 intfloat/e5-base-v2 "
         "/models/all-MiniLM-L12-v2 BAAI/bge-small-en-v1.5"),
        (("multilingual",), "sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2 "
         "intfloat/multilingual-e5-small Alibaba-NLP/gte-multilingual-base BAAI/bge-m3 "
         "sentence-transformers/LaBSE FacebookAI/xlm-roberta-base"),
        (None, "dangvantuan/sentence-camembert-large out/my-fine-tuned-model"),
    ],
)  # fmt: skip
def test_known_languages(languages, names):
    assert [known_languages(name) for name in names.split()] == [languages] * len(names.split())


def test_a_french_corpus_is_warned_about():
    decision = language_warning(ENGLISH, LanguageShares({"fr": 0.6, "en": 0.3, "de": 0.1}, 500))
    assert (decision.stage, decision.name, decision.value) == ("encoder", "language", 0.3)
    for word in ("all-MiniLM-L6-v2", "30%", "fr 60%", "multilingual-e5-small", "fastText"):
        assert word in decision.message
    assert "\n" not in decision.message


@pytest.mark.parametrize(
    ("encoder", "shares"),
    [
        (ENGLISH, {"en": 0.8, "fr": 0.2}),
        (ENGLISH, {}),
        (ENGLISH, {"en": 0.4, "fr": 0.05}),  # texts that could not be judged do not count
        (SimpleNamespace(languages=("multilingual",)), {"fr": 1.0}),
        (SimpleNamespace(languages=None), {"fr": 1.0}),
        (object(), {"fr": 1.0}),
    ],
)
def test_no_warning_where_there_is_no_reason(encoder, shares):
    assert language_warning(encoder, LanguageShares(shares, 100)) is None
