"""Everything that code written for sentence-transformers asks of an encoder, against that library.

BERTopic runs where it is installed.
"""

import re
import sys
import types
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

import embedtopics as et
from embedtopics.encoders._registry import encoder_from_settings
from tests.factories import exact_encoder, refuses

pytestmark = pytest.mark.filterwarnings("default")
TEXTS = ["the cat sat on the mat", "a dog ran in the park", "red and blue", "the river " * 3]


def model_of(folder):
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(folder), device="cpu")


@pytest.fixture
def pair(make_sentence_folder):
    folder = make_sentence_folder(legacy=False)
    return exact_encoder(folder), model_of(folder)


@pytest.mark.parametrize(
    "options",
    [
        {"normalize_embeddings": True, "truncate_dim": 5}, {"show_progress_bar": False},
        {"precision": "ubinary"}, {"precision": "binary", "batch_size": 2},
        {"convert_to_tensor": True}, {"convert_to_numpy": False},
        {"output_value": "token_embeddings", "device": "cpu"},
    ],
)  # fmt: skip
@pytest.mark.parametrize("texts", [TEXTS, TEXTS[1]])
def test_encode_takes_its_keywords(pair, texts, options):
    ours, theirs = (one.encode(texts, **options) for one in pair)
    rows = [(ours, theirs)] if isinstance(texts, str) else zip(ours, theirs, strict=True)
    for one, other in rows:
        np.testing.assert_allclose(one, np.asarray(other), atol=1e-5)
    if "output_value" not in options:
        assert type(ours) is type(theirs)
    with refuses("precision"):
        pair[0].encode(texts, precision="int4")


@pytest.mark.parametrize("texts", [TEXTS, TEXTS[1]])
def test_encode_takes_its_positions_and_returns_features(pair, texts):
    rest = ("sentence_embedding", "float32", True, False, "cpu", True)
    ours, theirs = (one.encode(texts, None, "the cat ", 2, False, *rest) for one in pair)
    np.testing.assert_allclose(ours, theirs, atol=1e-5)
    features = [one.encode(texts, output_value=None, prompt="a ") for one in pair]
    rows = features if isinstance(texts, list) else [[one] for one in features]
    for one, other in zip(*rows, strict=True):
        for name, values in one.items():
            expected = other[name][: len(values)]  # theirs are padded
            assert values.dtype == expected.dtype
            np.testing.assert_allclose(values, expected, atol=1e-5)


def test_similarity_of_arrays_and_tensors(pair):
    encoder, model = pair
    for options in ({}, {"convert_to_tensor": True}):
        first, second = (encoder.encode(texts, **options) for texts in (TEXTS, TEXTS[::-1]))
        for name in ("similarity", "similarity_pairwise"):
            expected = getattr(model, name)(first, second)
            found = getattr(encoder, name)(first, second)
            assert type(found) is type(first)
            np.testing.assert_allclose(found, expected, atol=1e-6)


def test_its_evaluators_and_utilities_run(pair):
    from sentence_transformers import util
    from sentence_transformers.sentence_transformer.evaluation import (
        EmbeddingSimilarityEvaluator,
    )

    evaluate = EmbeddingSimilarityEvaluator(TEXTS, TEXTS[::-1], [0.1, 0.5, 0.4, 0.2])
    mined, scores = [], []
    for model in pair:
        scores.append(list(evaluate(model).values()))
        mined.append(np.array(util.paraphrase_mining(model, TEXTS)))
        hits = util.semantic_search(model.encode("a dog", convert_to_tensor=True),
                                    model.encode(TEXTS, convert_to_tensor=True))  # fmt: skip
        mined[-1] = [*mined[-1].ravel(), *(hit["score"] for hit in hits[0])]
    np.testing.assert_allclose(*scores, atol=1e-5)
    np.testing.assert_allclose(*mined, atol=1e-5)


@pytest.mark.parametrize(
    "options", [{}, {"pooling": ["cls", "max"], "max_seq_length": 9, "normalize": False},
                {"prompts": {"query": "the cat "}, "prompt": "query"}, {"precision": "auto"}],
)  # fmt: skip
def test_a_saved_folder_gives_both_libraries_the_vectors(pair, tmp_path, options):
    encoder = exact_encoder(pair[0].name, **options)
    encoder.save(tmp_path / "mine")
    encoder.save(tmp_path / "mine")  # replaces what it wrote
    loaded = et.SentenceEncoder(tmp_path / "mine", precision=encoder.recipe.precision)
    np.testing.assert_array_equal(loaded.encode(TEXTS), encoder.encode(TEXTS))
    assert loaded.fingerprint == encoder.fingerprint and loaded.prompts == encoder.prompts
    expected = model_of(tmp_path / "mine").encode(TEXTS)
    np.testing.assert_allclose(encoder.exact().encode(TEXTS), expected, atol=1e-5)
    made_again = encoder_from_settings(encoder.settings)
    np.testing.assert_array_equal(made_again.encode_query("a"), encoder.encode_query("a"))


def test_small_doors(pair, tmp_path):
    encoder, model = pair
    assert encoder.tokenizer(TEXTS).input_ids == model.tokenizer(TEXTS).input_ids
    assert encoder.to("cpu") is encoder
    assert encoder.get_sentence_embedding_dimension() == encoder.dimensions == 16
    assert encoder.get_embedding_dimension() == 16
    assert encoder.max_seq_length == model.max_seq_length
    documents = encoder.embed_documents(TEXTS)
    np.testing.assert_array_equal(np.float32(documents), encoder.encode_document(TEXTS))
    assert encoder.embed_query("a cat") == encoder.encode_query("a cat").tolist()
    with pytest.raises(et.errors.InputError, match="has no prompts; got 'query'; use prompt="):
        encoder.encode(TEXTS, prompt_name="query")
    et.training.distill(encoder, dimensions=4).save(tmp_path / "static")
    with pytest.raises(et.errors.ModelLoadError, match=r"use StaticEncoder\('"):
        et.SentenceEncoder(tmp_path / "static")


def test_the_length_can_be_set(pair):
    encoder = exact_encoder(pair[0].name)
    shorter = exact_encoder(pair[0].name, max_seq_length=5)
    encoder.max_seq_length = 5
    assert encoder.max_seq_length == 5
    assert encoder.get_params()["max_seq_length"] == 5
    assert clone(encoder).max_seq_length == 5
    assert encoder.fingerprint == shorter.fingerprint
    np.testing.assert_array_equal(encoder.encode(TEXTS), shorter.encode(TEXTS))

    with refuses("max_seq_length"):
        encoder.max_seq_length = 10_000
    assert encoder.max_seq_length == 5
    with pytest.raises(AttributeError):
        et.encoders.TfidfEncoder().max_seq_length = 5


class BaseEmbedding:
    """The part of LlamaIndex's base class that asks an embedding for vectors."""

    def __init__(self, **fields):
        self.__dict__.update(fields)

    def get_text_embedding_batch(self, texts):
        vectors = []
        for begin in range(0, len(texts), self.embed_batch_size):
            vectors += self._get_text_embeddings(texts[begin : begin + self.embed_batch_size])
        return vectors

    def get_query_embedding(self, query):
        return self._get_query_embedding(query)


def test_the_recipe_for_llama_index_asks_the_encoder(pair, monkeypatch):
    module = types.ModuleType("llama_index.core.embeddings")
    module.BaseEmbedding = BaseEmbedding
    for name in ("llama_index", "llama_index.core"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    monkeypatch.setitem(sys.modules, "llama_index.core.embeddings", module)
    page = (Path(__file__).parents[2] / "docs" / "encoders.md").read_text("utf-8")
    [recipe] = re.findall(r"```python\n(from typing.*?llama_index.*?)\n```", page, re.DOTALL)
    names = {"encoder": pair[0]}

    exec(recipe, names)
    embedding = names["embedding"]

    vectors = embedding.get_text_embedding_batch(TEXTS)
    np.testing.assert_allclose(vectors, pair[0].encode(TEXTS), atol=1e-6)
    assert embedding.get_query_embedding("a cat") == pair[0].embed_query("a cat")


@pytest.fixture
def wrapped(pair):
    return et.encoders.to_sentence_transformer(pair[0])


def test_an_encoder_becomes_a_model_of_theirs(pair, wrapped):
    encoder, model = pair
    for options in ({}, {"prompt": "the cat "}):
        found, expected = wrapped.encode(TEXTS, **options), model.encode(TEXTS, **options)
        np.testing.assert_allclose(found, expected, atol=1e-5)
    static = et.training.distill(encoder, dimensions=4)
    theirs = et.encoders.to_sentence_transformer(static)
    np.testing.assert_allclose(theirs.encode(TEXTS), static.encode(TEXTS), atol=1e-6)
    with refuses("encoder"):
        et.encoders.to_sentence_transformer("tfidf")


@pytest.mark.slow
@pytest.mark.smoke
def test_bertopic_embeds_with_it(wrapped):
    bertopic = pytest.importorskip("bertopic", reason="BERTopic is not installed")
    embedder = bertopic.BERTopic(embedding_model=wrapped, language=None)
    embedder.embedding_model = bertopic.backend._utils.select_backend(wrapped)
    vectors = embedder._extract_embeddings(TEXTS, method="document")
    np.testing.assert_allclose(vectors, wrapped.encode(TEXTS), atol=1e-6)
