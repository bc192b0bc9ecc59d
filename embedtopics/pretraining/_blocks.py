"""A corpus as blocks of tokens: each is of one text, and no longer than the model reads.

No text sees another. Instead of several texts in one block with a mask of attention for each, which
not every family of models takes, blocks of like length go through the model together: that
leaves as little padding, and is exact for all of them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, islice, zip_longest
from typing import TYPE_CHECKING, Any

import numpy as np

from embedtopics.corpus._corpus import Corpus, require_text
from embedtopics.encoders._base import readable, slabs
from embedtopics.errors import InputError
from embedtopics.pretraining._masking import Tokens, surface_of
from embedtopics.pretraining._segments import middle_of
from embedtopics.protocols import Int64Array

if TYPE_CHECKING:
    from tokenizers import Tokenizer

FEWEST_TOKENS = 4
"""Tokens of a block, special ones not counted, below which there is no context to predict from."""

_SENTENCE_END = re.compile(r"[.!?\u2026]\s|[\u3002\uff01\uff1f]")


@dataclass(frozen=True, eq=False)
class Blocks:
    """Blocks in the form that the trainer takes examples in."""

    tokens: list[Tokens]
    numbers: Int64Array  # (n_blocks,), their own, by which fixed masks are drawn
    text_of: Int64Array  # (n_blocks,), which text each is of
    middles: Int64Array  # (n_blocks,), where a second segment would begin; -1 for nowhere

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def lengths(self) -> Int64Array:
        """Tokens of each block."""
        return np.array([len(one) for one in self.tokens], dtype=np.int64)

    def take(self, places: Any) -> Blocks:
        """Return some of the blocks."""
        chosen = np.asarray(places, dtype=np.int64)
        tokens = [self.tokens[place] for place in chosen.tolist()]
        return Blocks(tokens, self.numbers[chosen], self.text_of[chosen], self.middles[chosen])


def cut_into_blocks(texts: Sequence[str], tokenizer: Tokenizer, max_length: int) -> Blocks:
    """Tokenize texts, and cut those that are longer than the model reads: nothing is lost."""
    tokenizer.no_padding()
    tokenizer.enable_truncation(max_length)
    interned: dict[str, str] = {}
    blocks: list[Tokens] = []
    text_of: list[int] = []
    middles: list[int] = []
    for text_id, (text, encoding) in enumerate(_encoded(texts, tokenizer)):
        for part in [encoding, *encoding.overflowing]:
            words = np.array([-1 if w is None else w for w in part.word_ids], dtype=np.int64)
            if (words >= 0).sum() < FEWEST_TOKENS:
                continue
            spans: dict[int, tuple[int, int]] = {}
            for word, (begin, end) in zip(words.tolist(), part.offsets, strict=True):
                first, last = spans.get(word, (begin, end))
                spans[word] = min(first, begin), max(last, end)
            names = {word: surface_of(text[a:b]) for word, (a, b) in spans.items() if word >= 0}
            found = (names.get(word, "") for word in words.tolist())
            surfaces = tuple(interned.setdefault(name, name) for name in found)
            blocks.append(Tokens(np.array(part.ids, dtype=np.int64), words, surfaces))
            text_of.append(text_id)
            ends = [_SENTENCE_END.match(text, max(0, b - 1)) is not None for _, b in part.offsets]
            middles.append(middle_of(words, ends))
    places = (np.array(found, dtype=np.int64) for found in (text_of, middles))
    return Blocks(blocks, np.arange(len(blocks)), *places)


def _encoded(texts: Sequence[str], tokenizer: Tokenizer) -> Any:
    for slab in slabs(texts):
        clean = [readable(text) for text in slab]
        yield from zip(clean, tokenizer.encode_batch(clean), strict=True)


def texts_of(corpus: Any, name: str = "corpus") -> tuple[list[str], str]:
    """Return the distinct texts of a corpus, whose order is not that of its rows, and its name."""
    read = Corpus.of(corpus)
    require_text(read)
    return list(dict.fromkeys(read.document_texts())), read.source


def words_of_classes(corpus: Any, classes: Any, n_words: int) -> list[str]:
    """Return words by class-TF-IDF, each class giving its next best one in turn."""
    from embedtopics.terms._counts import count_by_topic, count_terms
    from embedtopics.terms._stop_words import function_words
    from embedtopics.terms._tokens import tokenize
    from embedtopics.terms._weighting import ClassTfidf

    read = Corpus.of(corpus)
    require_text(read)
    if isinstance(classes, str):
        if classes not in read.metadata:
            raise InputError("classes", "a column of the corpus", classes)
        classes = read.metadata[classes]
    names = np.asarray(classes, dtype=object).astype(str)
    if len(names) != len(read) or len(set(names.tolist())) < 2:
        found = f"{len(set(names.tolist()))} classes for {len(names):,} rows"
        raise InputError("classes", "at least two, one for each row of the corpus", found=found)
    _, labels = np.unique(names, return_inverse=True)
    tokens = tokenize(read.texts)
    plain = function_words(tokens, labels)
    counted = count_terms(tokens, ngram_range=(1, 1), function_words=plain)
    weights = ClassTfidf(bm25=True).fit_transform(count_by_topic(counted.counts, labels)).toarray()
    ranked = [np.argsort(-row, kind="stable")[: (row > 0).sum()].tolist() for row in weights]
    turns = chain.from_iterable(zip_longest(*ranked))
    found_words = dict.fromkeys(counted.terms[place] for place in turns if place is not None)
    if not found_words:
        raise InputError("corpus", "one with words for the classes")
    return list(islice(found_words, n_words))
