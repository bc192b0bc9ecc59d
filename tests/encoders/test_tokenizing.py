import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedtopics.encoders import _base
from embedtopics.encoders._base import check_texts
from embedtopics.encoders.sentence._running import tokenize
from embedtopics.errors import InputError

pytest.importorskip("tokenizers")


@pytest.fixture(scope="module")
def cutting(tiny_encoder):
    return tiny_encoder._cutting  # cuts at 12 tokens, 10 without [CLS] and [SEP]


def ids_of(tokens):
    return [np.frombuffer(ids, dtype=np.int32).tolist() for ids in tokens.ids]


def test_counts_by_hand(cutting):
    # "zebra": z is not in the vocabulary, so the whole word is unknown.
    texts = ["", "the cat sat", "zebra the zebra", "cat " * 25, "cat " * 9 + "zebra zebra"]
    tokens = tokenize(cutting, texts, unknown_id=1)
    assert tokens.n_tokens.tolist() == [0, 3, 3, 25, 11]
    assert tokens.n_seen.tolist() == [0, 3, 3, 10, 10]
    assert tokens.n_unknown.tolist() == [0, 0, 2, 0, 1]
    assert ids_of(tokens)[0] == [2, 3]
    assert [len(ids) for ids in ids_of(tokens)] == [2, 5, 5, 12, 12]
    assert all(ids[0] == 2 and ids[-1] == 3 for ids in ids_of(tokens))


def test_slabs_change_nothing(cutting, monkeypatch):
    texts = ["the cat", "dog " * 30, "", "a", "red river " * 2, "stone"]
    whole = tokenize(cutting, texts, unknown_id=1)
    monkeypatch.setattr(_base, "_SLAB_CHARACTERS", 8)
    slabs = tokenize(cutting, texts, unknown_id=1)
    assert slabs.ids == whole.ids
    np.testing.assert_array_equal(slabs.n_tokens, whole.n_tokens)


def test_the_prompt_comes_first(cutting):
    assert tokenize(cutting, ["zebra"], unknown_id=-1).n_unknown.tolist() == [0]
    with_prompt = tokenize(cutting, ["cat"], unknown_id=1, prompt="the ")
    assert with_prompt.ids == tokenize(cutting, ["the cat"], unknown_id=1).ids


@given(texts=st.lists(st.text(st.characters(codec=None), max_size=20), max_size=5))
def test_any_text_can_be_tokenised(cutting, texts):
    tokens = tokenize(cutting, texts, unknown_id=1)
    assert len(tokens.ids) == len(texts)
    assert (tokens.n_unknown <= tokens.n_seen).all()
    assert (tokens.n_seen == np.minimum(tokens.n_tokens, 10)).all()


@pytest.mark.parametrize("bad", [None, 3.5, b"bytes", float("nan"), ["nested"]])
def test_a_row_that_is_no_string_is_named(bad):
    with pytest.raises(InputError, match=rf"got {type(bad).__name__} in row 2;"):
        check_texts(["a", "", bad, None])


def test_what_is_a_sequence_of_texts_and_what_is_not():
    for bad in ("one string", b"bytes", None, 7):
        with pytest.raises(InputError, match=type(bad).__name__):
            check_texts(bad)
    for table in ({"text": ["a"]}, pd.DataFrame({"text": ["a"]}), np.array([["a"]])):
        with pytest.raises(InputError, match="give one column"):
            check_texts(table)
    texts = ["a\0b"]
    assert check_texts(texts) is not texts
    for column in (np.array(["x", "y"]), pd.Series(["x", "y"], index=[7, 3])):
        assert check_texts(column) == ["x", "y"]


def test_the_space_behind_a_prompt_is_no_token_of_its_own():
    from tokenizers import Tokenizer, models, pre_tokenizers

    pieces = ["?", "▁", "▁query", ":", "▁cat", "▁dog"]
    tokenizer = Tokenizer(models.Unigram([(piece, -1.0) for piece in pieces], unk_id=0))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.enable_truncation(4)
    found = tokenize(tokenizer, ["cat dog", "", "cat dog cat"], unknown_id=0, prompt="query: ")
    assert found.n_tokens.tolist() == [2, 0, 3]
    assert found.n_seen.tolist() == [2, 0, 2]
    assert found.n_unknown.tolist() == [0, 0, 0]
