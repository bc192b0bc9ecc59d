"""Texts as averages of fastText's word vectors, trained on the corpus."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from embedtopics._utils.checks import optional_count, require
from embedtopics._utils.display import progress_bar
from embedtopics.encoders._base import unit_vectors
from embedtopics.encoders._contract import arguments_of
from embedtopics.encoders.words._counts import WordEncoder, hash_of
from embedtopics.errors import InputError
from embedtopics.protocols import BoolArray, FloatArray, Int64Array
from embedtopics.terms._counts import count_words
from embedtopics.terms._tokens import tokenize
from embedtopics.terms.results import TokenStream

SMOOTHING = 1e-3
"""Coefficient a of the weights a / (a + p) of words, as in the paper."""


LONGEST_SENTENCE = 10_000
"""Maximum number of words that gensim reads of a sentence; longer texts are split."""

LEARNING_RATE = 0.05
WINDOW = 5
"""Maximum number of context words on each side."""

MIN_COUNT = 2
"""Minimum count of a word; rarer words are composed from their n-grams."""

SUBSAMPLING = 1e-4
"""Relative frequency above which words are subsampled in training (Mikolov et al.
2013, "Distributed representations of words and phrases", equation 5)."""

NGRAMS = (4, 5)
"""Lengths of character n-grams. Lengths 3 and 6 take 50 % more time and were not better on news."""

WORDS_TO_TRAIN = 4_000_000
"""Number of words to read in all epochs together, within the limits of `EPOCHS`."""

EPOCHS = (5, 50)
MOST_BUCKETS = 2**18


class FastTextEncoder(WordEncoder):
    """Turn texts into averages of word vectors that are trained on the corpus.

    Words are those of `embedtopics.terms.tokenize`, in lower case. The skip-gram model of fastText
    learns vectors of words and of their character n-grams (Bojanowski et al. 2017, "Enriching word
    vectors with subword information"); unknown words are composed from their n-grams. The vector of
    a text is the mean of its words, each weighted by a / (a + p), where p is the relative frequency
    of the word ("smooth inverse frequency", Arora, Liang and Ma 2017, "A simple but tough-to-beat
    baseline for sentence embeddings"), scaled to length 1.

    A fit runs on one thread and does not depend on the order of the texts; it is bit-identical in
    every process on a machine.

    Parameters
    ----------
    dimensions : int, optional
        Default: 50 below 100,000 words, 100 up to ten million, and 200 above.
    epochs : int, optional
        Number of passes over the texts. Default: as many as read four million words, from 5 to 50.
    random_state : int

    Examples
    --------
    >>> texts = ["cold water and ice", "ice and snow", "hot coffee", "hot tea"] * 5
    >>> encoder = FastTextEncoder(dimensions=8, epochs=1).fit(texts)
    >>> encoder.encode(["icy water", "..."]).any(axis=1).tolist()
    [True, False]
    """

    _record_kind = name = "fasttext"

    def __init__(
        self,
        dimensions: int | None = None,
        *,
        epochs: int | None = None,
        random_state: int = 0,
    ) -> None:
        self._arguments = arguments_of(locals())
        self._dimensions = optional_count(dimensions, "dimensions")
        self._epochs = optional_count(epochs, "epochs")

    def epochs_for(self, n_words: int) -> int:
        """Return the number of epochs for texts of `n_words` words."""
        return self._epochs or int(np.clip(-(-WORDS_TO_TRAIN // n_words), *EPOCHS))

    def _learn(self, texts: list[str], show_progress: bool | None) -> None:
        tokens = tokenize(texts)
        counts = np.bincount(tokens.ids, minlength=len(tokens.words))
        if not (counts >= MIN_COUNT).any():
            expected = f"texts with a word that occurs {MIN_COUNT} times"
            raise InputError("texts", expected, found=f"{len(texts):,} texts without one")
        vectors = self._train(tokens, counts, show_progress)
        share_of = dict(zip(tokens.words, (counts / counts.sum()).tolist(), strict=True))
        frequencies = np.array([share_of[word] for word in vectors.index_to_key])
        self._vectors, self._frequencies = vectors, frequencies
        self.fingerprint = self._digest()

    def _digest(self) -> str:
        vectors = self._vectors
        return hash_of(
            sorted(self.settings.items()), vectors.index_to_key, vectors.vectors,
            self._frequencies, vectors.vectors_ngrams,
        )  # fmt: skip

    def state(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return what was learned, as words and arrays, for `restore`."""
        vectors = self._vectors
        n_ngrams = len(vectors.vectors_ngrams)
        trained = np.flatnonzero(vectors.vectors_ngrams.any(axis=1))
        arrays = {
            "vectors": vectors.vectors,
            "frequencies": self._frequencies,
            "ngrams": trained,
            "ngram_vectors": vectors.vectors_ngrams[trained],
        }
        return {"words": list(vectors.index_to_key), "n_ngrams": n_ngrams}, arrays

    def restore(
        self, words: list[str], left_out: list[str], n_ngrams: int, arrays: Mapping[str, Any]
    ) -> None:
        """Take over what `state` returned; ValueError if its parts do not fit together."""
        require("gensim", "a fastText encoder", "fasttext")
        from gensim.models.fasttext import FastTextKeyedVectors

        vectors = arrays["vectors"]
        frequencies = arrays["frequencies"]
        trained = arrays["ngrams"]
        ngram_vectors = arrays["ngram_vectors"]

        if vectors.ndim != 2 or vectors.shape[0] != len(words) or len(set(words)) < len(words):
            raise ValueError("its words do not fit their vectors")
        if frequencies.shape != (len(words),) or not 1 <= n_ngrams <= MOST_BUCKETS:
            raise ValueError("its words do not fit their frequencies")
        if ngram_vectors.shape != (len(trained), vectors.shape[1]):
            raise ValueError("its n-grams do not fit their vectors")
        if len(trained) and not (0 <= trained.min() and trained.max() < n_ngrams):
            raise ValueError("its n-grams are out of range")

        learned = FastTextKeyedVectors(vectors.shape[1], *NGRAMS, bucket=n_ngrams)
        learned.index_to_key = words
        learned.key_to_index = {word: row for row, word in enumerate(words)}
        learned.vectors = vectors
        learned.vectors_ngrams = np.zeros((n_ngrams, vectors.shape[1]), dtype=np.float32)
        learned.vectors_ngrams[trained] = ngram_vectors
        self._vectors = learned
        self._frequencies = frequencies
        self.fingerprint = self._digest()

    def _train(self, tokens: TokenStream, counts: Int64Array, show_progress: bool | None) -> Any:
        """Return gensim's vectors, with zeros for n-grams that were never trained."""
        require("gensim", "a fastText encoder", "fasttext")
        from gensim.models import FastText
        from gensim.models.callbacks import CallbackAny2Vec

        class Advance(CallbackAny2Vec):
            def on_epoch_end(self, model: Any) -> None:
                bar.update(1)

        n_words = len(tokens.ids)
        epochs = self.epochs_for(n_words)
        n_learned = int((counts >= MIN_COUNT).sum())
        by_size = 50 if n_words < 100_000 else 100 if n_words <= 10_000_000 else 200
        with progress_bar(
            total=epochs, unit="epoch", description="Learning words", show=show_progress
        ) as bar:
            model = FastText(
                _Sentences(tokens), sg=1, vector_size=self._dimensions or by_size,
                alpha=LEARNING_RATE, window=WINDOW, min_count=MIN_COUNT, sample=SUBSAMPLING,
                epochs=epochs, min_n=NGRAMS[0], max_n=NGRAMS[1],
                bucket=min(MOST_BUCKETS, 1 << (8 * n_learned - 1).bit_length()),
                # At least fifty batches: the learning rate falls from batch to batch.
                batch_words=int(np.clip(n_words // 50, 100, LONGEST_SENTENCE)),
                workers=1, seed=self._arguments["random_state"], hashfxn=_hash_word,
                callbacks=[Advance()],
            )  # fmt: skip
        vectors = model.wv
        is_trained = np.zeros(len(vectors.vectors_ngrams), dtype=np.bool_)
        is_trained[np.concatenate(vectors.buckets_word).astype(np.int64)] = True
        vectors.vectors_ngrams[~is_trained] = 0.0  # the others have their random initial values
        return vectors

    @property
    def dimensions(self) -> int:
        """Length of a vector, once fitted."""
        self._check_fitted()
        return int(self._vectors.vector_size)

    def _rows(self, words: Sequence[str]) -> Int64Array:
        """Return the row of each word; -1 if there is none."""
        rows = (self._vectors.key_to_index.get(word, -1) for word in words)
        return np.fromiter(rows, dtype=np.int64, count=len(words))

    def _known(self, words: Sequence[str]) -> BoolArray:
        return self._rows(words) >= 0

    def _embed(self, tokens: TokenStream) -> FloatArray:
        """Return the weighted means of word vectors, scaled to length 1, (n_texts, n_dimensions).

        Weights are a / (a + p) (Arora et al. 2017, algorithm 1), and 1 for unknown words, whose
        vectors are composed from their n-grams.
        """
        rows = self._rows(tokens.words)
        is_known = rows >= 0
        vectors = np.zeros((len(rows), self.dimensions))
        vectors[is_known] = self._vectors.vectors[rows[is_known]]
        for position in np.flatnonzero(~is_known).tolist():
            vectors[position] = self._vectors.get_vector(tokens.words[position])
        weights = np.ones(len(rows))
        weights[is_known] = 1.0 / (1.0 + self._frequencies[rows[is_known]] / SMOOTHING)
        counts = count_words(tokens).astype(np.float64)
        counts.data *= weights[counts.indices]
        averages: FloatArray = unit_vectors(counts @ vectors)
        return averages


class _Sentences:
    """The texts as gensim reads them in each epoch: lists of words of limited length."""

    def __init__(self, tokens: TokenStream) -> None:
        self._tokens = tokens

    def __iter__(self) -> Iterator[list[str]]:
        tokens, words = self._tokens, self._tokens.words
        for begin, end in pairwise(tokens.offsets.tolist()):
            for start in range(begin, end, LONGEST_SENTENCE):
                ids = tokens.ids[start : min(end, start + LONGEST_SENTENCE)].tolist()
                yield [words[i] for i in ids]


def _hash_word(word: str) -> int:
    """Return a hash that is the same in every process, unlike Python's own."""
    digest = hashlib.blake2b(word.encode("utf-8", "surrogatepass"), digest_size=4).digest()
    return int.from_bytes(digest, "little")
