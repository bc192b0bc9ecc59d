"""Report how a tokenizer splits the words of a corpus."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any
from unicodedata import category

import numpy as np

from embedtopics.corpus._corpus import as_corpus
from embedtopics.encoders._foreign import can_encode
from embedtopics.encoders.sentence._loading import load_vocabulary
from embedtopics.errors import InputError
from embedtopics.pretraining.results import TokenizerReport
from embedtopics.terms._languages import detect_languages
from embedtopics.training.objectives._trainable import transformer_of

if TYPE_CHECKING:
    import pandas as pd
    from tokenizers import Encoding, Tokenizer

N_LANGUAGES = 1000
"""Texts whose language is detected, the first by hash."""

N_EXAMPLES, LONGEST_EXAMPLE = 6, 300
MOST_WORDS = 100_000
TEXTS_AT_ONCE = 1000


def tokenizer_report(encoder: Any, corpus: Any) -> TokenizerReport:
    """Report into how many pieces an encoder's tokenizer splits the words of a corpus.

    Many pieces per word mean that the checkpoint has hardly seen the words, and that less of each
    text is read.

    Parameters
    ----------
    encoder : SentenceEncoder or str
        Encoder, or name or folder of a checkpoint; only the tokenizer is loaded.
    corpus : Corpus, or what `Corpus` takes

    Returns
    -------
    TokenizerReport
        Words are letters and digits with apostrophes between them; case counts if the tokenizer
        is cased. Pieces outside words are not counted.

    Raises
    ------
    InputError
        If the encoder has no tokenizer, or no text holds a word.

    References
    ----------
    Rust et al. (2021), "How good is your tokenizer? On the monolingual performance of multilingual
    language models".

    Examples
    --------
    >>> import tempfile
    >>> import embedtopics as et
    >>> nouns, verbs = ["dog", "cat", "bird", "cow", "fish"], ["runs", "sleeps", "eats", "jumps"]
    >>> texts = [f"the {noun} {verb}" for noun in nouns for verb in verbs]
    >>> folder = tempfile.TemporaryDirectory()
    >>> tokenizer = et.pretraining.train_tokenizer(texts, vocab_size=80)
    >>> encoder = et.pretraining.new_encoder(
    ...     tokenizer, out=f"{folder.name}/empty", n_layers=1, dimensions=16
    ... )
    >>> report = et.pretraining.tokenizer_report(encoder, ["the dog runs", "a cow"])
    >>> report.n_words, report.n_unknown
    (5, 0)
    >>> folder.cleanup()
    """
    if not isinstance(encoder, (str, os.PathLike)) and not can_encode(encoder):
        remedy = "call et.pretraining.tokenizer_report(encoder, corpus)"
        raise InputError("encoder", "an encoder, or its name or folder", encoder, remedy)
    source = transformer_of(encoder)
    vocabulary = load_vocabulary(source.recipe.checkpoint, source.recipe.trusts_code)
    tokenizer = vocabulary.tokenizer
    read = as_corpus(corpus)
    texts, weights = read.document_texts(), read.distinct().weights
    table, per_text = _count(texts, weights, tokenizer, vocabulary.unknown_id)
    if not len(table):
        raise InputError("corpus", "texts that hold words", found=f"none in {len(texts)} texts")
    order = np.argsort(per_text[:, 1] / np.maximum(per_text[:, 0], 1), kind="stable")
    order = order[per_text[order, 0] > 0]
    rows = order[np.unique(np.linspace(0, len(order) - 1, N_EXAMPLES).round().astype(int))]
    totals = (per_text * weights[:, None]).sum(axis=0).tolist()
    return TokenizerReport(
        encoder=source.name,
        n_texts=int(weights.sum()),
        n_words=totals[0],
        n_pieces=totals[1],
        n_unknown=totals[3],
        words=table.head(MOST_WORDS),
        by_language=_by_language(texts, weights, per_text),
        examples=tuple(_cut(texts[row][:LONGEST_EXAMPLE], tokenizer) for row in rows.tolist()),
    )


def folds_case(tokenizer: Tokenizer) -> bool:
    """Return whether a tokenizer reads capital letters as small ones."""
    normalizer = tokenizer.normalizer
    return normalizer is not None and normalizer.normalize_str("A") == "a"


def cut_words(
    texts: Sequence[str], tokenizer: Tokenizer
) -> Iterator[tuple[int, list[str], Encoding, np.ndarray]]:
    """Yield the row, words and encoding of each text, and the word of each piece (-1: none)."""
    for begin in range(0, len(texts), TEXTS_AT_ONCE):
        some = texts[begin : begin + TEXTS_AT_ONCE]
        encodings = tokenizer.encode_batch(list(some), add_special_tokens=False)
        for row, (text, encoding) in enumerate(zip(some, encodings, strict=True), begin):
            matches = list(_word().finditer(text))
            starts = np.array([match.start() for match in matches], dtype=np.int64)
            ends = np.array([match.end() for match in matches], dtype=np.int64)
            # The last character counts, because a piece may begin with a space, or be one.
            last = np.array(
                [end - (not text[end - 1 : end].isspace()) for _, end in encoding.offsets],
                dtype=np.int64,
            )
            word = np.searchsorted(starts, last, side="right") - 1
            if len(starts):
                word[(word >= 0) & (last >= ends[word])] = -1
            yield row, [match.group() for match in matches], encoding, word


@cache
def _word() -> re.Pattern[str]:
    """Return the pattern of a word: letters with marks, digits, and apostrophes between them."""
    # In Python, vowel signs of Hindi or Thai and combining accents are not word characters.
    marks = "".join(chr(i) for i in range(0x300, 0x1F000) if category(chr(i)) in ("Mn", "Mc"))
    letter = rf"(?:[^\W_][{marks}]*)"
    return re.compile(rf"{letter}+(?:['\u2019]{letter}+)*")


def _count(
    texts: Sequence[str], weights: Any, tokenizer: Tokenizer, unknown_id: int
) -> tuple[pd.DataFrame, np.ndarray]:
    """Return the words, the costliest first, and words, pieces, cut and unknown of each text."""
    import pandas as pd

    folds = folds_case(tokenizer)
    counts: dict[str, list[Any]] = {}  # n, n_documents, pieces, n_unknown
    per_text = np.zeros((len(texts), 4), dtype=np.int64)
    for row, words, encoding, of_word in cut_words(texts, tokenizer):
        weight, seen = int(weights[row]), set()
        pieces: list[list[int]] = [[] for _ in words]
        for place, word in enumerate(of_word.tolist()):
            if word >= 0:
                pieces[word].append(place)
        ids, tokens = encoding.ids, encoding.tokens
        for word, places in zip(words, pieces, strict=True):
            n_unknown = sum(ids[place] == unknown_id for place in places)
            per_text[row] += (1, len(places), len(places) >= 3, n_unknown)
            key = word.lower() if folds else word
            cut = tuple(tokens[place] for place in places)
            entry = counts.setdefault(key, [0, 0, cut, n_unknown])
            entry[0] += weight
            entry[1] += 0 if key in seen else weight
            seen.add(key)
    rows = [
        (word, n, n_documents, len(cut), " ".join(cut), n_unknown, n * max(len(cut) - 1, 0))
        for word, (n, n_documents, cut, n_unknown) in counts.items()
    ]
    rows.sort(key=lambda row: (-row[-1], -row[1], row[0]))  # ties in alphabetical order
    names = ["word", "n", "n_documents", "pieces", "cut", "n_unknown", "cost"]
    return pd.DataFrame(rows, columns=names), per_text


def _by_language(texts: Sequence[str], weights: Any, per_text: Any) -> pd.DataFrame:
    """Return figures by language of a sample of texts, the most frequent first."""
    import pandas as pd

    rows_of: dict[str, list[int]] = {}
    for row, text in enumerate(texts[:N_LANGUAGES]):
        if per_text[row, 0]:
            code = next(iter(detect_languages([text]).shares), "unknown")
            rows_of.setdefault(code, []).append(row)
    rows = []
    for code, inside in rows_of.items():
        w = weights[inside]
        words, pieces, cut, unknown = (per_text[inside] * w[:, None]).sum(axis=0).tolist()
        rows.append((code, int(w.sum()), pieces / words, cut / words, unknown / max(pieces, 1)))
    rows.sort(key=lambda row: (-row[1], row[0]))
    names = ["language", "n_texts", "fertility", "share_cut", "share_unknown"]
    return pd.DataFrame(rows, columns=names)


def _cut(text: str, tokenizer: Tokenizer) -> tuple[str, ...]:
    """Return the parts of a text that become pieces, and the parts between them."""
    parts, end = [], 0
    for begin, stop in tokenizer.encode(text, add_special_tokens=False).offsets:
        # Several pieces may share one character, as the bytes of an emoji do.
        if stop <= end:
            continue
        if begin > end:
            parts.append(text[end:begin])
        parts.append(text[max(begin, end) : stop])
        end = stop
    return (*parts, text[end:]) if end < len(text) else tuple(parts)
