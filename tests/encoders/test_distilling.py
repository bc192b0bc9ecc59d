"""Distilling: rows by hand, whole words of a corpus, weights, and the quality on real pairs."""

import gzip
import json
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import spearmanr

from embedtopics import Corpus, SentenceEncoder
from embedtopics.encoders._base import unit_vectors
from embedtopics.encoders.static._vocabulary import add_words, plain_vocabulary
from embedtopics.errors import InputError
from embedtopics.training import _tokens, distill
from embedtopics.training._tokens import frequent_split_words
from tests.factories import refuses

SPECIALS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
TEXTS = [
    "Covid spread; the covidian crowd: COVID.",
    "the covid wave, a wave and the crowd",
    "a wave of crowds and crowded waves covid",
    "the crowd ran in the park, the cat sat",
]


@pytest.fixture
def unweighted(monkeypatch):
    """Let every token weigh the same."""
    monkeypatch.setattr(_tokens, "COEFFICIENTS", {"zipf": 1e15, "corpus": 1e15})


@pytest.fixture
def few_counts(monkeypatch):
    """Let words of a small corpus be added."""
    monkeypatch.setattr(_tokens, "MIN_COUNT", 2)


def vocabulary_of(encoder):
    numbered = encoder._tokenizer.get_vocab()
    return tuple(sorted(numbered, key=numbered.__getitem__))


def row(encoder, token):
    return encoder.table[vocabulary_of(encoder).index(token)]


def test_rows_are_the_tokens_encoded_alone(tiny_encoder, unweighted):
    static = distill(tiny_encoder, dimensions=None)
    pieces = {"the": "the", "cat": "cat", "##x": "x", "b": "b"}
    for token, text in pieces.items():
        np.testing.assert_allclose(row(static, token), tiny_encoder.encode([text])[0], atol=1e-6)
    for token in SPECIALS:
        assert not row(static, token).any()
    mean = tiny_encoder.encode(["the", "cat"]).mean(axis=0, keepdims=True)
    np.testing.assert_allclose(static.encode(["The cat"]), unit_vectors(mean), atol=1e-6)
    # What looks like a special token is text like any other.
    np.testing.assert_array_equal(
        static.encode_with_report(["[SEP] cat", "[ sep ] cat"]).n_tokens, [6, 6]
    )


def test_components_and_weights_by_a_library(tiny_encoder, monkeypatch, unweighted):
    from sklearn.decomposition import PCA

    plain = distill(tiny_encoder, dimensions=None)
    monkeypatch.setitem(_tokens.COEFFICIENTS, "zipf", 0.01)
    static = distill(tiny_encoder, dimensions=4)
    assert static.made_from["encoder_fingerprint"] == tiny_encoder.fingerprint
    kept = [place for place, token in enumerate(vocabulary_of(plain)) if token not in SPECIALS]
    oracle = PCA(4, svd_solver="full").fit(plain.table[kept].astype(np.float64))
    zipf = 1 / np.arange(2, len(kept) + 2)
    zipf /= zipf.sum()
    expected = oracle.transform(plain.table[kept]) * (0.01 / (0.01 + zipf))[:, None]
    signs = np.sign((expected * static.table[kept]).sum(axis=0))
    np.testing.assert_allclose(static.table[kept], expected * signs, atol=1e-5)
    share = oracle.explained_variance_ratio_.sum()
    assert abs(static.made_from["explained_variance"] - share) < 1e-3


def test_the_same_bits_every_time(tiny_encoder, few_counts):
    from threadpoolctl import threadpool_limits

    first = distill(tiny_encoder, TEXTS)
    with threadpool_limits(limits=1):
        again = distill(tiny_encoder, TEXTS[::-1])
    assert again.fingerprint == first.fingerprint


def test_words_of_a_corpus_get_rows(tiny_encoder, few_counts, unweighted):
    static = distill(tiny_encoder, TEXTS, dimensions=None)
    assert vocabulary_of(static)[-3:] == ("covid", "crowd", "wave")
    assert static.made_from["n_words"] == 3
    for word in ("covid", "crowd", "wave"):
        expected = tiny_encoder.encode([word])[0]
        np.testing.assert_allclose(row(static, word), expected, atol=1e-6)
    # Alone, in capitals, beside punctuation: the row. Inside another word: its pieces as before.
    for text in ("covid", "COVID!", "(Covid)"):
        ids = static._tokenizer.encode(text, add_special_tokens=False).tokens
        assert "covid" in ids
    plain = distill(tiny_encoder, dimensions=None)
    others = ["covidian crowded", "the cat sat", "xcovid waves"]
    np.testing.assert_allclose(static.encode(others), plain.encode(others), atol=1e-6)


def test_words_are_ordered_by_frequency_and_limited(tiny_bert):
    vocabulary = plain_vocabulary((tiny_bert / "tokenizer.json").read_text("utf-8"))
    found = frequent_split_words(vocabulary, TEXTS, max_words=9, min_count=1)
    assert found[:3] == ["covid", "crowd", "wave"]
    assert found[3:] == ["covidian", "crowded", "crowds", "of", "spread", "waves"]
    assert frequent_split_words(vocabulary, TEXTS, max_words=2, min_count=1) == found[:2]
    assert frequent_split_words(vocabulary, ["zz 日本 12 l'a"], max_words=9, min_count=1) == ["zz"]


def test_byte_level_tokenizers(tiny_roberta, few_counts):
    vocabulary = plain_vocabulary((tiny_roberta / "tokenizer.json").read_text("utf-8"))
    texts = ["the café, the wave", "a café wave", "café wave the"]
    words = frequent_split_words(vocabulary, texts, max_words=9, min_count=2)
    assert words == ["wave", "café"]
    more = add_words(vocabulary, words)
    from tokenizers import Tokenizer

    before, after = Tokenizer.from_str(vocabulary.tokenizer), Tokenizer.from_str(more.tokenizer)
    for text in ("the the", "waves the", "thewave"):
        assert after.encode(text).ids == before.encode(text).ids
    expected = [*before.encode("the").ids, after.token_to_id("café"), *before.encode(" the").ids]
    assert after.encode("the café the").ids == expected
    static = distill(SentenceEncoder(tiny_roberta), texts)
    assert vocabulary_of(static)[-2:] == ("wave", "café")


def test_probabilities_of_a_corpus(tiny_encoder, monkeypatch, unweighted):
    """By hand: counts of the corpus, and Zipf's law as a million tokens more."""
    corpus = Corpus(["the cat", "the dog", ""])
    plain = distill(tiny_encoder, corpus, dimensions=None)
    monkeypatch.setitem(_tokens.COEFFICIENTS, "corpus", 0.5)
    static = distill(tiny_encoder, corpus, dimensions=None)
    kept = [place for place, token in enumerate(vocabulary_of(plain)) if token not in SPECIALS]
    zipf = 1 / np.arange(2, len(kept) + 2)
    counts = {"the": 2, "cat": 1, "dog": 1}
    seen = np.array([counts.get(vocabulary_of(plain)[place], 0) for place in kept])
    p = (seen + 1e6 * zipf / zipf.sum()) / (4 + 1e6)
    np.testing.assert_allclose(
        static.table[kept], plain.table[kept] * (0.5 / (0.5 + p))[:, None], rtol=1e-5
    )
    assert static.made_from["n_tokens"] == 4
    assert static.made_from["probabilities"] == "corpus"


def test_lower_casing_of_the_checkpoint(tiny_bert, tmp_path, make_sentence_folder):
    folder = make_sentence_folder()
    lengths = {"max_seq_length": 12, "do_lower_case": True}
    (folder / "sentence_bert_config.json").write_text(json.dumps(lengths))
    content = json.loads((folder / "tokenizer.json").read_text("utf-8"))
    content["normalizer"] = None
    (folder / "tokenizer.json").write_text(json.dumps(content))
    static = distill(SentenceEncoder(folder))
    np.testing.assert_array_equal(static.encode(["CAT"]), static.encode(["cat"]))
    assert static.encode(["CAT"]).any()


def test_bad_input_is_refused(tiny_encoder):
    with refuses("dimensions"):
        distill(tiny_encoder, dimensions=0)
    with pytest.raises(InputError, match="text"):
        distill(tiny_encoder, [""])
    with refuses("encoder"):
        distill(SimpleNamespace(encode=lambda texts: np.ones((len(texts), 2))))


def test_a_folder_is_a_teacher(tiny_bert):
    named = distill(str(tiny_bert), dimensions=4)
    given = distill(SentenceEncoder(tiny_bert), dimensions=4)
    np.testing.assert_array_equal(named.table, given.table)


@pytest.mark.slow
@pytest.mark.benchmark_data
def test_the_default_model_keeps_what_words_mean(data_folder):
    """Spearman correlations of cosines with judgements on the STS benchmark, development part.

    78.2 was measured; the mean of the model's input vectors, not weighted, has 64.5.
    """
    with gzip.open(data_folder / "stsb" / "en_dev.jsonl.gz", "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    static = distill(SentenceEncoder(local_files_only=True))
    first, second = (
        static.encode([row[key] for row in rows]) for key in ("sentence1", "sentence2")
    )
    cosines = np.einsum("ij,ij->i", first, second)
    rho = spearmanr(cosines, [row["score"] for row in rows]).statistic
    assert len(rows) == 1500
    assert 100 * rho > 77.7
    assert static.table.shape == (30_522, 256)
