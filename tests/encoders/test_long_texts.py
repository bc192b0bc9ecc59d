"""Texts that are longer than the encoder reads."""

from itertools import pairwise

import numpy as np
import pytest

import embedtopics as et
from embedtopics.corpus._corpus import as_corpus
from embedtopics.encoders import CachedEncoder
from tests.factories import exact_encoder, refuses

LONG = "The cat sat on the mat. A dog ran in the park. The blue river and the red stone. Light."


@pytest.fixture(scope="module")
def chunking(tiny_bert):
    return exact_encoder(tiny_bert, max_seq_length=12, long_texts="chunk")


def test_windows_are_sentences_that_fit(chunking):
    [spans, short] = chunking.windows([LONG, "the cat"])
    # Ten tokens beside [CLS] and [SEP]; an overlap of one token holds no sentence.
    assert [LONG[a:b] for a, b in spans] == [
        "The cat sat on the mat.", "A dog ran in the park.",
        "The blue river and the red stone. Light.",
    ]  # fmt: skip
    assert short == [(0, 7)]


def test_a_long_text_is_the_mean_of_its_windows_by_their_tokens(chunking, tiny_encoder):
    report = chunking.encode_with_report([LONG, "the cat"])
    parts = ["The cat sat on the mat.", "A dog ran in the park.",
             "The blue river and the red stone. Light."]  # fmt: skip
    alone = tiny_encoder.encode_with_report(parts)
    expected = (alone.embeddings * alone.n_seen[:, None]).sum(axis=0) / alone.n_seen.sum()
    np.testing.assert_allclose(report.embeddings[0], expected / np.linalg.norm(expected), atol=1e-6)
    np.testing.assert_allclose(report.embeddings[1], tiny_encoder.encode(["the cat"])[0], atol=1e-6)
    assert report.n_tokens.tolist() == report.n_seen.tolist() == [alone.n_seen.sum(), 2]
    assert report.truncated_share == 0


def test_chunking_is_told_apart_and_does_not_touch_short_texts(chunking, tiny_encoder, texts):
    assert chunking.fingerprint != tiny_encoder.fingerprint
    short = [text for text in texts if len(text.split()) < 8]
    np.testing.assert_array_equal(chunking.encode(short), tiny_encoder.encode(short))


def test_the_batch_and_the_order_change_nothing(chunking, texts):
    mixed = [LONG, *texts, LONG.upper(), "", "cat " * 100]
    together = chunking.encode(mixed)
    alone = np.vstack([chunking.encode([text]) for text in mixed])
    np.testing.assert_allclose(together, alone, atol=1e-6)
    np.testing.assert_array_equal(chunking.encode(mixed[::-1]), together[::-1])


def test_a_megabyte_without_spaces_is_read_whole(chunking):
    report = chunking.encode_with_report(["cat" * 3000, "\ud800\0 " * 50])
    assert np.isfinite(report.embeddings).all()
    assert (report.n_seen == report.n_tokens).all()


def test_passages_of_a_corpus_are_what_the_encoder_reads(chunking, tiny_encoder):
    corpus = as_corpus([LONG, None, "the cat"])
    passages = corpus.passages(chunking)
    assert passages.ids[-1].endswith("#1")
    assert len(passages) == 5
    assert tiny_encoder.count_tokens(list(passages.texts)).truncated_share == 0


@pytest.mark.parametrize("prompt", [None, "the cat "])
def test_tokens_are_counted_once_where_windows_overlap(tiny_bert, prompt):
    encoder = exact_encoder(tiny_bert, max_seq_length=24, long_texts="chunk", prompt=prompt)
    texts = ["zebra cat, " * 40, "zebra", "the cat"]
    report, counted = encoder.encode_with_report(texts), encoder.count_tokens(texts)
    spans = encoder.windows(texts[:1])[0]
    assert any(second[0] < first[1] for first, second in pairwise(spans))
    # Each time an unknown word, a known one, and a comma, which is unknown, too.
    assert report.n_tokens.tolist() == report.n_seen.tolist() == [120, 1, 2]
    assert report.n_unknown.tolist() == [80, 1, 0]
    for name in ("n_tokens", "n_seen", "n_unknown"):
        np.testing.assert_array_equal(getattr(counted, name), getattr(report, name))


def test_texts_are_read_to_their_ends_where_a_third_of_them_would_not_be(tiny_bert, tmp_path):
    encoder, long = exact_encoder(tiny_bert, max_seq_length=12), [LONG, LONG.upper(), "the cat"]
    found = encoder.reading_to_ends(long)
    assert (encoder.recipe.long_texts, found.recipe.long_texts) == ("truncate", "chunk")
    assert (found.max_seq_length, found.settings["precision"]) == (12, "float32")
    cached = CachedEncoder(encoder, folder=tmp_path).reading_to_ends(long)
    assert (cached.folder, cached.fingerprint) == (tmp_path, found.fingerprint)
    # 27 tokens, of which ten are read; beside enough of short texts they are less than a third.
    for texts in ([], ["the cat"] * 3, ["the cat sat on the mat"] * 9 + long[:1]):
        assert encoder.reading_to_ends(texts) is encoder
    for named in ("truncate", "chunk"):
        as_asked = exact_encoder(tiny_bert, max_seq_length=12, long_texts=named)
        assert as_asked.reading_to_ends(long) is as_asked
        assert as_asked.reading_as({"encoder_settings": found.settings}) is as_asked
    assert encoder.reading_as({"encoder_settings": found.settings}).space == found.space
    for described in ({}, {"encoder_settings": None}, {"encoder_settings": encoder.settings}):
        assert encoder.reading_as(described) is encoder


def test_topics_of_long_texts(tiny_bert, tmp_path):
    words = "cat dog mat park red blue river stone light sound".split()
    drawn = np.random.default_rng(3).choice(words, size=(40, 30))
    texts = [" ".join(row) + "." for row in drawn]
    encoder, options = exact_encoder(tiny_bert, max_seq_length=12), {"languages": ["en"]}
    model = et.TopicModel(encoder, **options).fit(texts)
    said = {decision.name: decision for decision in model.result_.decisions}
    assert said["long_texts"].value == "chunk"
    # Of 31 tokens; how many are special the model alone knows, hence at least.
    assert f"at least {19 / 31:.1%} of all tokens" in said["long_texts"].message
    assert model.result_.settings["encoder_settings"]["long_texts"] == "chunk"
    folder, new = model.save(tmp_path / "model"), [texts[0] + " a new text"]
    expected = model.predict(new)
    for given in (None, encoder, exact_encoder(tiny_bert, max_seq_length=12, long_texts="chunk")):
        loaded = et.TopicModel.load(folder, encoder=given)
        np.testing.assert_array_equal(loaded.predict(new), expected)
    cut = exact_encoder(tiny_bert, max_seq_length=12, long_texts="truncate")
    with refuses("encoder"):
        et.TopicModel.load(folder, encoder=cut).predict(new)
    model = et.TopicModel(cut, **options).fit(texts)
    [advice] = [d.message for d in model.result_.decisions if d.name == "truncated"]
    assert 'long_texts="chunk"' in advice
    loaded = et.TopicModel.load(model.save(tmp_path / "cut"), encoder=encoder)
    np.testing.assert_array_equal(loaded.predict(new), model.predict(new))
