"""What completion shows of an encoder, and nothing else."""

import pytest

import embedtopics as et

SHOWN = {
    "name", "dimensions", "max_seq_length", "languages", "prompts", "fingerprint", "settings",
    "decisions", "is_fitted", "encode", "encode_query", "encode_document", "encode_with_report",
    "count_tokens", "similarity", "similarity_pairwise", "get_embedding_dimension",
    "embed_documents", "embed_query", "fit", "transform", "fit_transform", "get_params",
    "set_params",
}  # fmt: skip


@pytest.fixture
def encoders(tiny_bert):
    return {
        "sentence": et.SentenceEncoder(tiny_bert),
        "tfidf": et.encoders.TfidfEncoder(),
        "random": et.encoders.RandomProjectionEncoder(8),
        "fasttext": et.encoders.FastTextEncoder(),
    }


def test_the_public_members(encoders):
    for kind, encoder in encoders.items():
        shown = {name for name in dir(encoder) if not name.startswith("_")}
        expected = SHOWN
        if kind == "sentence":
            expected = SHOWN | {"tokenizer", "save"}
        assert shown == expected, kind
