"""Normalisation, content hashes and distinct documents."""

import unicodedata
from hashlib import blake2b

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embedtopics import Corpus
from embedtopics.corpus._texts import (
    EMPTY,
    MISSING,
    TEXT,
    content_ids,
    find_distinct,
    is_missing,
    normalize_text,
)

any_text = st.text(alphabet=st.characters(exclude_categories=()), max_size=30)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("  a \t b\r\n\nc ", "a b c"),
        ("a\x00b\x1fc\x7fd\x85e", "a b c d e"),
        ("a\u00a0\u2003\u3000b", "a b"),
        ("e\u0301te\u0301", "\u00e9t\u00e9"),
        ("\ufb01n", "\ufb01n"),  # a ligature is no canonical equivalent of its letters
        ("x\ud800y", "x\ufffdy"),
        ("\ud83d\ude00", "\U0001f600"),
        ("שלום \u200f עולם", "שלום \u200f עולם"),
        ("👩\u200d🔬 नि\u200dक", "👩\u200d🔬 नि\u200dक"),
        ("Straße IS Not strasse", "Straße IS Not strasse"),
        (" \x00\n", ""),
    ],
)
def test_normalize_text(text, expected):
    assert normalize_text(text) == expected


@given(any_text)
def test_normalisation_is_idempotent_and_writable(text):
    once = normalize_text(text)
    assert normalize_text(once) == once
    assert once.encode("utf-8").decode("utf-8") == once
    assert unicodedata.is_normalized("NFC", once)


@pytest.mark.parametrize(
    ("value", "missing"),
    [
        *(
            (v, True)
            for v in (None, np.nan, np.float32("nan"), pd.NA, pd.NaT, np.datetime64("NaT"))
        ),
        *((v, False) for v in ("", "NaN", 0, 0.0, False, [], np.datetime64("2021"))),
    ],
)
def test_missing_values(value, missing):
    assert is_missing(value) is missing


def test_hashes_are_blake2b_of_the_normal_form():
    corpus = Corpus(["  Été  comme hiver "])
    digest = blake2b("Été comme hiver".encode(), digest_size=16).digest()
    assert corpus.hashes.tolist() == [
        [int.from_bytes(digest[:8], "big"), int.from_bytes(digest[8:], "big")]
    ]
    assert corpus.ids == (digest.hex()[:16],)


def test_content_ids_number_repeats_in_the_order_of_the_rows():
    hashes = np.array([[10, 1], [255, 2], [10, 1], [10, 3]], dtype=np.uint64)
    assert tuple(content_ids(hashes)) == (
        "000000000000000a",
        "00000000000000ff",
        "000000000000000a-2",
        "000000000000000a-3",  # equal in the first 64 bits only: still another id
    )


def test_distinct_documents_by_hand():
    hashes = np.array([[9, 0], [3, 5], [3, 4], [9, 0], [1, 1], [3, 5]], dtype=np.uint64)
    status = np.array([TEXT, TEXT, TEXT, TEXT, MISSING, TEXT], dtype=np.int8)
    found = find_distinct(hashes, status)
    assert found.hashes.tolist() == [[3, 4], [3, 5], [9, 0]]
    assert found.first_rows.tolist() == [2, 1, 0]
    assert found.of_row.tolist() == [2, 1, 0, 2, -1, 1]
    assert found.weights.tolist() == [1, 2, 2]


rows_of_texts = st.lists(st.none() | st.sampled_from(["a", " a", "b\n", "b", "", "\u200b", "é"]))


@settings(deadline=None)
@given(rows_of_texts)
def test_distinct_agrees_with_a_dictionary(texts):
    corpus = Corpus(texts)
    found = corpus.distinct()
    rows_of = {}
    for row, text in enumerate(texts):
        if normalize_text(text or "") not in ("", "\u200b"):
            rows_of.setdefault(normalize_text(text), []).append(row)
    documents = corpus.document_texts()
    assert sorted(documents) == sorted(rows_of)
    assert found.weights.tolist() == [len(rows_of[text]) for text in documents]
    assert found.first_rows.tolist() == [rows_of[text][0] for text in documents]
    for document, text in enumerate(documents):
        assert np.flatnonzero(found.of_row == document).tolist() == rows_of[text]
    keys = [tuple(pair) for pair in found.hashes.tolist()]
    assert keys == sorted(keys)


@settings(deadline=None)
@given(rows_of_texts, st.randoms(use_true_random=False))
def test_documents_do_not_depend_on_the_order_of_the_rows(texts, random):
    shuffled = random.sample(texts, len(texts))
    one, other = Corpus(texts), Corpus(shuffled)
    assert one.document_texts() == other.document_texts()
    assert np.array_equal(one.distinct().hashes, other.distinct().hashes)
    assert np.array_equal(one.distinct().weights, other.distinct().weights)
    assert sorted(one.ids) == sorted(other.ids)


def test_status():
    texts = ["a", "", " \n\t", "\x00", "\u200b\ufeff", None, float("nan"), pd.NA, "\ud800", "!"]
    expected = [TEXT, EMPTY, EMPTY, EMPTY, EMPTY, MISSING, MISSING, MISSING, TEXT, TEXT]
    corpus = Corpus(texts)
    assert corpus.status.tolist() == expected
    assert corpus.status.dtype == np.int8
    assert corpus.texts[5:8] == ("", "", "")
    assert corpus.texts[2] == " \n\t"


@given(
    st.text("a\u00e9e\u0301 \u2000\u00a0\n\x00\x85\ud800\u200b", max_size=12) | st.text(max_size=12)
)
def test_normal_form_by_its_definition(text):
    joined = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    composed = unicodedata.normalize("NFC", joined)
    spaced = "".join(" " if unicodedata.category(c) == "Cc" else c for c in composed)
    assert normalize_text(text) == " ".join(spaced.split())
