"""Texts become tokens, and tokens batches."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedtopics.encoders._base import check_texts
from embedtopics.encoders.sentence._running import longest_first, token_batches, tokenize
from embedtopics.errors import InputError

pytest.importorskip("tokenizers")


@pytest.fixture(scope="module")
def cutting(tiny_encoder):
    return tiny_encoder._cutting  # cuts at 12 tokens, 10 without [CLS] and [SEP]


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
    for bad in ("one string", b"bytes"):
        with pytest.raises(InputError, match=type(bad).__name__):
            check_texts(bad)
    for table in ({"text": ["a"]}, pd.DataFrame({"text": ["a"]}), np.array([["a"]])):
        with pytest.raises(InputError, match="pass one column"):
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


KEYS = st.lists(st.binary(max_size=6), max_size=40)


@given(st.lists(st.integers(1, 50), max_size=60), st.integers(1, 200))
def test_batches_hold_every_text_once_within_the_budget(lengths, budget):
    lengths = sorted(lengths, reverse=True)
    batches = list(token_batches(lengths, budget))
    assert [row for batch in batches for row in range(len(lengths))[batch]] == list(
        range(len(lengths))
    )
    for batch in batches:
        padded = len(lengths[batch]) * lengths[batch.start]
        assert padded <= budget or len(lengths[batch]) == 1


@given(KEYS, st.randoms())
def test_order_depends_on_content_alone(keys, random):
    rows = list(range(len(keys)))
    ordered = [keys[row] for row in longest_first(keys, rows)]
    shuffled = list(keys)
    random.shuffle(shuffled)
    assert ordered == [shuffled[row] for row in longest_first(shuffled, rows)]
    lengths = [len(key) for key in ordered]
    assert lengths == sorted(lengths, reverse=True)
