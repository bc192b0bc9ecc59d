"""fastText, trained on the corpus: word vectors, and texts as averages of their words."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from embedtopics._utils.checks import checked_count, optional_count
from embedtopics._utils.progress import progress_bar
from embedtopics.encoders._contract import arguments_of
from embedtopics.encoders.words._base import (
    LearningEncoder,
    WordTable,
    average_words,
    check_smoothing,
    common_direction,
    hash_table,
    look_up,
    remove_direction,
)
from embedtopics.errors import InputError, Remedy
from embedtopics.protocols import BoolArray, Float64Array, FloatArray, Int64Array
from embedtopics.terms._tokens import tokenize
from embedtopics.terms.results import TokenStream

LONGEST_SENTENCE = 10_000
"""Maximum number of words that gensim reads of a sentence; longer texts are split."""

LEARNING_RATE = 0.05
SUBSAMPLING = 1e-4
"""Relative frequency above which words are subsampled in training (Mikolov et al.
2013, "Distributed representations of words and phrases", equation 5)."""

NGRAMS = (4, 5)
"""Lengths of character n-grams. Lengths 3 and 6 take 50 % more time and were not better on news."""

WORDS_TO_TRAIN = 4_000_000
"""Number of words to read in all epochs together, within the limits of `EPOCHS`."""

EPOCHS = (5, 50)
MOST_BUCKETS = 2**18


@dataclass(frozen=True, eq=False)
class _FastTextState:
    """Fitted state; `common` is the removed direction, shape (n_dimensions,)."""

    table: WordTable
    common: Float64Array | None
    fingerprint: str


class FastTextEncoder(LearningEncoder):
    """Turn texts into averages of word vectors that are trained on the corpus.

    Words are those of `embedtopics.terms.tokenize`, in lower case. The skip-gram model of fastText
    learns vectors of words and of their character n-grams (Bojanowski et al. 2017, "Enriching word
    vectors with subword information"); unknown words are composed from their n-grams. The vector of
    a text is the mean of its words, each weighted by a / (a + p), where p is the relative frequency
    of the word ("smooth inverse frequency", Arora, Liang and Ma 2017, "A simple but tough-to-beat
    baseline for sentence embeddings"), scaled to length 1.

    A fit does not depend on the order of the texts. On one thread it is bit-identical in every
    process on a machine. Several threads update the same values concurrently, which is faster and
    not reproducible.

    Parameters
    ----------
    dimensions : int, optional
        Default: 50 below 100,000 words, 100 up to ten million, and 200 above.
    epochs : int, optional
        Number of passes over the texts. Default: as many as read four million words, from 5 to 50.
    window : int
        Maximum number of context words on each side.
    min_count : int
        Minimum count of a word; rarer words are composed from their n-grams.
    smoothing : float
        Coefficient a of the weights; smaller values down-weight frequent words more.
    remove_common : bool
        Whether the first singular vector of the texts is removed, as in the paper. On news it made
        no difference to neighbours.
    reproducible : bool
        Whether the same texts give the same vectors; False allows several threads.
    n_workers : int, optional
        Number of threads. Default: 1 if `reproducible`, else the number of processors.
    random_state : int

    Raises
    ------
    InputError
        If a parameter is out of range, or if `reproducible` is combined with several workers.

    Examples
    --------
    >>> texts = ["cold water and ice", "ice and snow", "hot coffee", "hot tea"] * 5
    >>> encoder = FastTextEncoder(dimensions=8, epochs=1).fit(texts)
    >>> encoder.encode(["icy water", "..."]).any(axis=1).tolist()
    [True, False]
    """

    _kind = "fasttext"

    def __init__(
        self,
        dimensions: int | None = None,
        *,
        epochs: int | None = None,
        window: int = 5,
        min_count: int = 2,
        smoothing: float = 1e-3,
        remove_common: bool = False,
        reproducible: bool = True,
        n_workers: int | None = None,
        random_state: int = 0,
    ) -> None:
        self._arguments = arguments_of(locals())
        for name in ("dimensions", "epochs", "n_workers"):
            optional_count(self._arguments[name], name)
        checked_count(window, "window")
        checked_count(min_count, "min_count")
        checked_count(random_state, "random_state", 0)
        check_smoothing(smoothing)
        if reproducible and n_workers not in (None, 1):
            remedy = "several workers do not give the same vectors twice: set reproducible=False"
            raise InputError("n_workers", "1 where reproducible", n_workers, remedy)
        self._settings: dict[str, Any] = {
            **self._arguments,
            "smoothing": float(smoothing),
            "remove_common": bool(remove_common),
            "reproducible": bool(reproducible),
        }

    def __repr__(self) -> str:
        return f"FastTextEncoder({self._settings['dimensions']})"

    @property
    def dimensions(self) -> int:
        """Length of a vector, once fitted."""
        return int(self._fitted().table.dimensions)

    def epochs_for(self, n_words: int) -> int:
        """Return the number of epochs for texts of `n_words` words."""
        epochs = self._settings["epochs"] or np.clip(-(-WORDS_TO_TRAIN // n_words), *EPOCHS)
        return int(epochs)

    def _learn(self, texts: list[str], show_progress: bool | None) -> _FastTextState:
        tokens = tokenize(texts)
        counts = np.bincount(tokens.ids, minlength=len(tokens.words))
        min_count = self._settings["min_count"]
        if not (counts >= min_count).any():
            actual = f"{len(texts):,} texts without one"
            expected = f"texts with a word that occurs {min_count} times"
            remedy = Remedy("min_count", 1, "give more texts")
            raise InputError("texts", expected, found=actual, remedy=remedy)
        table = self._train(tokens, counts, show_progress)
        common = None
        if self._settings["remove_common"]:
            smoothing = self._settings["smoothing"]
            common = common_direction(average_words(tokens, table, smoothing, None)[0])
        fingerprint = hash_table(table, sorted(self.settings.items()), common)
        return _FastTextState(table, common, fingerprint)

    def _embed(self, tokens: TokenStream) -> tuple[FloatArray, BoolArray]:
        learned = self._fitted()
        smoothing = self._settings["smoothing"]
        averages, is_known = average_words(tokens, learned.table, smoothing, None)
        return remove_direction(averages, learned.common), is_known

    def _known(self, words: Sequence[str]) -> BoolArray:
        return look_up(self._fitted().table, words)[2]

    def _train(
        self, tokens: TokenStream, counts: Int64Array, show_progress: bool | None
    ) -> WordTable:
        from gensim.models import FastText
        from gensim.models.callbacks import CallbackAny2Vec

        class Advance(CallbackAny2Vec):
            def on_epoch_end(self, model: Any) -> None:
                bar.update(1)

        settings = self._settings
        at_most = 1 if settings["reproducible"] else os.cpu_count() or 1
        n_workers = settings["n_workers"] or at_most
        n_words = len(tokens.ids)
        epochs = self.epochs_for(n_words)
        n_learned = int((counts >= settings["min_count"]).sum())
        with progress_bar(
            total=epochs, unit="epoch", description="Learning words", show=show_progress
        ) as bar:
            model = FastText(
                _Sentences(tokens),
                sg=1, vector_size=settings["dimensions"] or _dimensions_for(n_words),
                alpha=LEARNING_RATE, window=settings["window"], min_count=settings["min_count"],
                sample=SUBSAMPLING, epochs=epochs, min_n=NGRAMS[0], max_n=NGRAMS[1],
                bucket=min(MOST_BUCKETS, 1 << (8 * n_learned - 1).bit_length()),
                # At least fifty batches: the learning rate falls from batch to batch.
                batch_words=int(np.clip(n_words // 50, 100, LONGEST_SENTENCE)),
                workers=n_workers, seed=settings["random_state"], hashfxn=_hash_word,
                callbacks=[Advance()],
            )  # fmt: skip
        return _table_of(model.wv, tokens, counts)


class _Sentences:
    """The texts as gensim reads them in each epoch: lists of words of limited length."""

    def __init__(self, tokens: TokenStream) -> None:
        self._tokens = tokens

    def __iter__(self) -> Iterator[list[str]]:
        tokens, words = self._tokens, self._tokens.words
        bounds = tokens.offsets.tolist()
        for begin, end in pairwise(bounds):
            for start in range(begin, end, LONGEST_SENTENCE):
                ids = tokens.ids[start : min(end, start + LONGEST_SENTENCE)].tolist()
                yield [words[i] for i in ids]


def _table_of(vectors: Any, tokens: TokenStream, counts: Int64Array) -> WordTable:
    """Return gensim's vectors, with zeros for n-grams that were never trained."""
    parts = np.array(vectors.vectors_ngrams, dtype=np.float32)
    used = np.zeros(len(parts), dtype=np.bool_)
    used[np.concatenate(vectors.buckets_word).astype(np.int64)] = True
    # The others still have their random initial values.
    parts[~used] = 0.0
    share = dict(zip(tokens.words, (counts / counts.sum()).tolist(), strict=True))
    words = vectors.index_to_key
    rows = np.array(vectors.vectors, dtype=np.float32)
    frequencies = np.array([share[word] for word in words])
    return WordTable({w: row for row, w in enumerate(words)}, rows, frequencies, parts, *NGRAMS)


def _dimensions_for(n_words: int) -> int:
    return 50 if n_words < 100_000 else 100 if n_words <= 10_000_000 else 200


def _hash_word(word: str) -> int:
    """Return a hash that is the same in every process, unlike Python's own."""
    digest = hashlib.blake2b(word.encode("utf-8", "surrogatepass"), digest_size=4).digest()
    return int.from_bytes(digest, "little")
