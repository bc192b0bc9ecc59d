"""The static encoder: vectors against model2vec's and by hand, the report, and odd texts."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from model2vec import StaticModel
from tokenizers import Tokenizer

from embedtopics.encoders import StaticEncoder
from embedtopics.errors import InputError
from tests.factories import refuses


def oracle(table, tokenizer, texts, **options):
    return StaticModel(table, tokenizer, **options).encode(texts)


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("max_length", [None, 1, 3, 512])
def test_vectors_equal_model2vec(tokenizer, table, texts, normalize, max_length):
    options = {"normalize": normalize, "max_length": max_length}
    encoder = StaticEncoder.from_arrays(
        table, tokenizer, normalize=normalize, max_seq_length=max_length
    )
    ours = encoder.encode(texts)
    assert ours.dtype == np.float32
    np.testing.assert_allclose(ours, oracle(table, tokenizer, texts, **options), atol=1e-6)


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    texts=st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=1, max_size=6),
    max_length=st.none() | st.integers(1, 4),
)
def test_any_text_equals_model2vec(tokenizer, table, texts, max_length):
    texts = [text.replace("\0", "") for text in texts]
    ours = StaticEncoder.from_arrays(table, tokenizer, max_seq_length=max_length)
    expected = oracle(table, tokenizer, texts, normalize=True, max_length=max_length)
    np.testing.assert_allclose(ours.encode(texts), expected, atol=1e-6)


def test_a_vector_and_its_report_by_hand(tokenizer, table):
    ids = tokenizer.get_vocab()
    encoder = StaticEncoder.from_arrays(table, tokenizer, normalize=False)
    found = encoder.encode_with_report(["The cat zzz sat", "cats"])
    chosen = [ids["the"], ids["cat"], ids["sat"]]
    expected = table[chosen].sum(axis=0) / 3
    np.testing.assert_allclose(found.embeddings[0], expected, rtol=1e-6)
    np.testing.assert_array_equal(found.n_tokens, [4, 2])
    np.testing.assert_array_equal(found.n_seen, [4, 2])
    np.testing.assert_array_equal(found.n_unknown, [1, 0])
    counted = encoder.count_tokens(["The cat zzz sat", "cats"])
    assert counted.embeddings.shape == (2, 0) and counted.n_unknown.tolist() == [1, 0]


def test_what_is_cut_is_counted(tokenizer, table):
    whole = StaticEncoder.from_arrays(table, tokenizer)
    cut = StaticEncoder.from_arrays(table, tokenizer, max_seq_length=3)
    # Tokens of this vocabulary have a median of three characters: nine are looked at.
    texts = ["a a a a a a a a", "light river stone", "red", "a cat"]
    found, complete = cut.encode_with_report(texts), whole.encode_with_report(texts)
    np.testing.assert_array_equal(complete.n_tokens, [8, 3, 1, 2])
    np.testing.assert_array_equal(complete.n_seen, complete.n_tokens)
    np.testing.assert_array_equal(found.n_seen < found.n_tokens, [True, True, False, False])
    assert found.n_seen.max() == 3
    assert found.n_tokens[0] == 8
    np.testing.assert_array_equal(found.embeddings[2:], complete.embeddings[2:])


def test_a_vector_does_not_depend_on_its_company(tokenizer, table, texts, monkeypatch):
    encoder = StaticEncoder.from_arrays(table, tokenizer)
    together = encoder.encode(texts)
    for row, text in enumerate(texts):
        np.testing.assert_array_equal(encoder.encode([text])[0], together[row])
    np.testing.assert_array_equal(encoder.encode(texts[::-1])[::-1], together)
    monkeypatch.setattr("embedtopics.encoders._base._SLAB_CHARACTERS", 20)
    np.testing.assert_array_equal(encoder.encode(texts), together)
    monkeypatch.setenv("TOKENIZERS_PARALLELISM", "false")
    np.testing.assert_array_equal(encoder.encode(texts), together)


def test_odd_texts(tokenizer, table):
    encoder = StaticEncoder.from_arrays(table, tokenizer)
    unknown = encoder.encode_with_report(["", "  \n", "zzz", "日本", "zzz zzz"])
    assert not unknown.embeddings.any()
    np.testing.assert_array_equal(unknown.n_seen, unknown.n_unknown)
    megabyte = "the cat sat " * 90_000
    found = encoder.encode_with_report([megabyte, "cat\ud800", "ca\0t", "cat"])
    np.testing.assert_array_equal(found.n_seen[:1], [270_000])
    np.testing.assert_allclose(found.embeddings[0], encoder.encode(["the cat sat"])[0], atol=1e-6)
    assert np.isfinite(found.embeddings).all()
    assert encoder.encode([]).shape == (0, 8)
    with refuses("texts", row=1):
        encoder.encode(["cat", 3])
    np.testing.assert_array_equal(encoder.encode("cat"), encoder.encode(["cat"])[0])


def test_tables_are_read_only_copies(tokenizer, table):
    mine = table.copy()
    encoder = StaticEncoder.from_arrays(mine, tokenizer)
    before = encoder.encode(["cat"])
    mine[:] = 0
    np.testing.assert_array_equal(encoder.encode(["cat"]), before)
    with pytest.raises(ValueError, match="read-only"):
        encoder.table[0] = 1


def test_another_table_makes_another_encoder(tokenizer, table):
    encoder = StaticEncoder.from_arrays(table, tokenizer, normalize=False, max_seq_length=9)
    other = encoder.with_table(table[:, :2] + 1)
    np.testing.assert_allclose(
        other.encode(["cat the"]), (encoder.encode(["cat the"]) + 1)[:, :2], rtol=1e-5
    )
    assert (other.dimensions, other.max_seq_length) == (2, 9)
    assert encoder.dimensions == 8


def test_the_fingerprint_tells_all_that_matters(tokenizer, table):
    def fingerprint(**options):
        chosen = {"table": table, "tokenizer": tokenizer, **options}
        return StaticEncoder.from_arrays(**chosen).fingerprint

    more = Tokenizer.from_str(tokenizer.to_str())
    more.normalizer = None
    bent = table.copy()
    bent[3, 3] += 1e-3
    variants = [
        fingerprint(), fingerprint(table=bent),
        fingerprint(tokenizer=more), fingerprint(normalize=False), fingerprint(max_seq_length=7),
    ]  # fmt: skip
    assert len(set(variants)) == len(variants)
    assert fingerprint(name="other") == fingerprint(tokenizer=tokenizer.to_str()) == variants[0]


def test_bad_arguments(tokenizer, table):
    for change, message in (
        ({"table": np.ones((3, 4))}, "embeddings must be .* of the tokenizer"),
        ({"max_seq_length": 0}, "max_seq_length must be an integer from 1 up"),
    ):
        with pytest.raises(InputError, match=message):
            StaticEncoder.from_arrays(**{"table": table, "tokenizer": tokenizer, **change})
    for value in (np.nan, np.inf, 1e300):
        broken = table.astype(np.float64)
        broken[4, 1] = value
        with pytest.raises(InputError, match=r"embeddings must be finite numbers.* row 4"):
            StaticEncoder.from_arrays(broken, tokenizer)
