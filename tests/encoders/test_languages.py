import numpy as np
import pytest

from embedtopics import TopicModel
from embedtopics.corpus.results import LanguageShares
from embedtopics.encoders import _registry
from embedtopics.encoders._base import known_languages, language_warning
from embedtopics.encoders._contract import BaseEncoder
from embedtopics.encoders._foreign import as_encoder
from embedtopics.encoders._registry import resolve_encoder
from embedtopics.encoders.results import Encoding


class Named(BaseEncoder):
    """Encodes nothing."""

    name, languages = "all-MiniLM-L6-v2", None

    def __init__(self, languages):
        self.languages = languages


ENGLISH = Named(("en",))


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
    for word in (
        "all-MiniLM-L6-v2",
        "30%",
        "fr 60%",
        'encoder="multilingual-e5-small"',
        "fasttext",
    ):
        assert word in decision.message
    assert "\n" not in decision.message


@pytest.mark.parametrize(
    ("encoder", "shares"),
    [
        (ENGLISH, {"en": 0.9, "fr": 0.1}),
        (ENGLISH, {}),
        (ENGLISH, {"en": 0.4, "fr": 0.04}),  # texts that could not be judged do not count
        (Named(("multilingual",)), {"fr": 1.0}),
        (Named(None), {"fr": 1.0}),
    ],
)
def test_no_warning_where_there_is_no_reason(encoder, shares):
    assert language_warning(encoder, LanguageShares(shares, 100)) is None


FRENCH = ["Le conseil municipal se réunira jeudi pour examiner le budget de la ville."] * 2
ENGLISH_TEXT = "The committee will meet again on Thursday to discuss the new budget."


@pytest.mark.parametrize(
    ("texts", "is_installed", "expected"),
    [
        (FRENCH, True, "multilingual-e5-small"),
        (FRENCH, False, "all-MiniLM-L6-v2"),
        ([ENGLISH_TEXT], True, "all-MiniLM-L6-v2"),
        ([ENGLISH_TEXT, FRENCH[0]], True, "multilingual-e5-small"),
    ],
)
def test_auto_becomes_the_encoder_of_the_texts(monkeypatch, texts, is_installed, expected):
    asked = []

    class Recorded:
        languages = ("en",)

        def __init__(self, name):
            self.name = name

        def encode(self, texts):
            raise AssertionError

    def resolve(name, **options):
        asked.append(options)
        return as_encoder(Recorded(name))

    automatic = resolve_encoder("auto", cached=True, precision="int8")
    monkeypatch.setattr(_registry, "resolve_encoder", resolve)
    monkeypatch.setattr(_registry, "find_spec", lambda name: object() if is_installed else None)
    assert automatic.fitted_to(texts).name == expected
    assert asked[-1] == {"cached": True, "precision": "int8"}


def test_a_fit_warns_of_languages_and_of_what_is_not_read(toy):
    class Short:
        name, languages, max_length = "short", ("en",), 4

        def encode_with_report(self, texts, **_):
            n = np.full(len(texts), 12)
            vectors = np.random.default_rng(0).normal(size=(len(texts), 8))
            return Encoding(vectors, n, n // 3, n * 0)

        def encode(self, texts):
            return self.encode_with_report(texts).embeddings

    texts = [f"{FRENCH[0]} {text}" for text in toy[0][:40]]
    with pytest.warns(UserWarning) as caught:
        TopicModel(Short(), languages=["fr"]).fit(texts)
    said = " ".join(str(warning.message) for warning in caught)
    assert "was trained on en" in said
    assert "67% of all tokens" in said
