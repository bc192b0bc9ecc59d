"""Prompts for queries and documents, against sentence-transformers on tiny checkpoints."""

import json

import numpy as np
import pytest

from embedtopics import SearchIndex, SentenceEncoder, TopicModel
from embedtopics.comparison import evaluate_encoders
from embedtopics.encoders import CachedEncoder
from embedtopics.encoders._registry import resolve_encoder, resolve_exact
from embedtopics.evaluation import read_retrieval_set
from tests.factories import exact_encoder, refuses

TEXTS = ["the cat sat", "a dog ran in the park", "red or blue", "a river", "stone and light"]
TWO = {"query": "cat dog ", "document": "the mat "}


@pytest.fixture
def folder_of(make_sentence_folder):
    def make(prompts, default=None):
        folder = make_sentence_folder(legacy=False)
        config = {"prompts": prompts, "default_prompt_name": default}
        (folder / "config_sentence_transformers.json").write_text(json.dumps(config))
        return folder

    return make


@pytest.fixture
def folder(folder_of):
    return folder_of(TWO)


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(
    ("prompts", "default"),
    [
        (TWO, None), (TWO, "document"), ({"query": "red "}, "query"),
        ({"document": "in ", "passage": "on "}, "passage"), ({"other": "red "}, None), ({}, None),
    ],
)  # fmt: skip
def test_vectors_equal_sentence_transformers(folder_of, prompts, default):
    from sentence_transformers import SentenceTransformer

    folder = folder_of(prompts, default)
    ours, theirs = exact_encoder(folder), SentenceTransformer(str(folder), device="cpu")
    asked = [("encode", {}), ("encode_query", {}), ("encode_document", {}),
             ("encode", {"prompt": "stone "}), ("encode_query", {"prompt": "stone "}),
             *(("encode", {"prompt_name": name}) for name in prompts)]  # fmt: skip
    for method, options in asked:
        expected = getattr(theirs, method)(TEXTS, **options)
        found = getattr(ours, method)(TEXTS, **options)
        np.testing.assert_allclose(found, expected, atol=1e-5, err_msg=f"{method} {options}")
    with refuses("prompt_name"):
        ours.encode(TEXTS, prompt_name="nowhere")


@pytest.mark.parametrize(
    ("prompts", "default", "expected"),
    [
        # sentence-transformers takes its own empty prompts for those that are not there.
        ({"query": "red ", "passage": "a ", "corpus": "in "}, None, ("red ", "a ")),
        ({"other": "red "}, "other", ("red ", "red ")),
    ],
)
def test_names_of_prompts(folder_of, prompts, default, expected):
    plain = exact_encoder(folder_of(prompts, default))
    assert tuple(plain.reading(k).recipe.prompt for k in ("query", "document")) == expected


def test_which_prompt_is_read_with(folder, cache):
    plain = SentenceEncoder(folder, precision="float32")
    document = resolve_encoder(plain)
    assert resolve_encoder(folder, precision="float32").fingerprint == document.fingerprint
    assert resolve_exact(plain).fingerprint == plain.fingerprint != document.fingerprint
    again = SentenceEncoder(**document.settings)
    query = plain.reading("query")
    assert len({plain.fingerprint, document.fingerprint, query.fingerprint}) == 3
    assert again.reading("query").fingerprint == query.fingerprint
    assert document.encode(TEXTS).tobytes() == plain.encode(TEXTS, prompt=TWO["document"]).tobytes()
    asked = SentenceEncoder(folder, precision="float32", prompt="query")
    assert asked.reading("document") is asked.reading("query") is asked
    kept = CachedEncoder(plain)
    np.testing.assert_array_equal(kept.encode_query(TEXTS), query.encode(TEXTS))
    assert kept.reading("query").transformer.recipe.prompt == TWO["query"]


def test_search_asks_with_the_prompt_for_queries(folder, cache, tmp_path):
    plain = SentenceEncoder(folder, precision="float32")
    index = SearchIndex.build(TEXTS, tmp_path / "index", encoder=folder, passages=False)
    cosines = plain.encode_query(TEXTS[1:2]) @ plain.encode_document(TEXTS).T
    for opened in (index, SearchIndex.load(tmp_path / "index", encoder=folder)):
        found = opened.search(TEXTS[1], k=5, mode="dense")
        assert found[0].text == TEXTS[cosines.argmax()]
    assert index.settings["encoder_settings"]["prompt"] == TWO["document"]
    assert "'the mat ' is put before each text, and 'cat dog ' before each query" in " ".join(
        decision.message for decision in index.decisions
    )


def test_evaluation_tells_queries_from_documents(folder, tmp_path):
    (tmp_path / "corpus.jsonl").write_text(
        "\n".join(json.dumps({"_id": str(i), "text": text}) for i, text in enumerate(TEXTS))
    )
    (tmp_path / "queries.jsonl").write_text(json.dumps({"_id": "q", "text": TEXTS[0]}))
    (tmp_path / "qrels").mkdir()
    (tmp_path / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq\t3\t1\n")
    encoder = exact_encoder(folder)
    asked = []
    encoder.encode_query = lambda texts, **_: asked.append(texts) or encoder.encode(texts)
    scores = evaluate_encoders(encoder, read_retrieval_set(tmp_path))
    assert asked[-1] == TEXTS[:1]
    assert list(scores.n_texts.values()) == [len(TEXTS)]


def test_topics_record_the_prompt(folder, toy):
    texts = toy[0][:60]
    result = TopicModel(encoder=str(folder), n_neighbors=5).fit(texts).result_
    assert result.settings["encoder_settings"]["prompt"] == TWO["document"]
    assert {d.value for d in result.decisions if d.name == "prompt"} == {TWO["document"]}
