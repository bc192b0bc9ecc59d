"""Base of the encoders that read words."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any, Self

import numpy as np

from embedtopics._utils.progress import progress_bar
from embedtopics.corpus.results import Encoding
from embedtopics.encoders._base import check_texts
from embedtopics.encoders._contract import BaseEncoder
from embedtopics.errors import InputError
from embedtopics.protocols import BoolArray
from embedtopics.terms._tokens import PLAIN, tokenize
from embedtopics.terms.results import TokenStream

TEXTS_A_SLAB = 4096
"""Number of texts processed at a time."""


class WordEncoder(BaseEncoder):
    """Base of the encoders that read words; a subclass defines `_embed` and `_known`.

    One that learns defines `_learn` as well, which sets `_fingerprint`; others set it when made.
    """

    _kind = ""
    _lowercase = True
    _rules = PLAIN
    _fingerprint: str | None = None

    @property
    def name(self) -> str:
        """Name under which the encoder can be chosen."""
        return self._kind

    @property
    def settings(self) -> dict[str, Any]:
        """Kind and arguments from which this encoder can be made again, before it is fitted."""
        return {"kind": self._kind, **self._arguments}

    @property
    def learns(self) -> bool:
        """Whether the encoder learns from the corpus."""
        return type(self)._learn is not WordEncoder._learn

    @property
    def is_fitted(self) -> bool:
        """Whether the encoder can encode without a call of `fit`."""
        return self._fingerprint is not None

    @property
    def fingerprint(self) -> str:
        """SHA-256 of everything that a vector depends on."""
        self._check_fitted()
        return str(self._fingerprint)

    def fit(self, X: Iterable[str], y: Any = None, *, show_progress: bool | None = None) -> Self:
        """Learn from texts, independent of their order.

        Parameters
        ----------
        X : iterable of str
        y : None
            Ignored.
        show_progress : bool, optional
            None shows a progress bar in terminals and notebooks.

        Returns
        -------
        Self

        Raises
        ------
        InputError
            If there are no texts, a row is not a string, or the texts have too few words.
        """
        texts = check_texts(X)
        if self.learns:
            if not texts:
                raise InputError("texts", "at least one text to learn from", found="none")
            self._learn(sorted(texts), show_progress)
        return self

    def encode_with_report(
        self, texts: Sequence[str], *, show_progress: bool | None = None
    ) -> Encoding:
        """Return one vector per text, and how many of its words are known."""
        from scipy.sparse import issparse, vstack

        texts = check_texts(texts)
        self._check_fitted()
        blocks, reports = [], []
        with progress_bar(
            total=len(texts), unit="text", description="Encoding", show=show_progress
        ) as bar:
            # Without texts there is one empty slab, which has the number of columns.
            for begin in range(0, max(1, len(texts)), TEXTS_A_SLAB):
                tokens = self._tokenize(texts[begin : begin + TEXTS_A_SLAB])
                blocks.append(self._embed(tokens))
                reports.append(self._count(tokens))
                bar.update(len(tokens))
        embeddings = vstack(blocks, "csr") if issparse(blocks[0]) else np.concatenate(blocks)
        n_words = np.concatenate([report.n_tokens for report in reports])
        n_unknown = np.concatenate([report.n_unknown for report in reports])
        return Encoding(embeddings, n_words, n_words, n_unknown)

    def count_tokens(self, texts: Sequence[str]) -> Encoding:
        """Return how many words each text has and how many are known, without encoding."""
        self._check_fitted()
        return self._count(self._tokenize(check_texts(texts)))

    def _tokenize(self, texts: list[str]) -> TokenStream:
        return tokenize(texts, lowercase=self._lowercase, rules=self._rules)

    def _count(self, tokens: TokenStream) -> Encoding:
        is_unknown = ~self._known(tokens.words)[tokens.ids]
        unknown_before = np.concatenate([[0], np.cumsum(is_unknown, dtype=np.int64)])
        n_tokens = np.diff(tokens.offsets).astype(np.int32)
        n_unknown = np.diff(unknown_before[tokens.offsets]).astype(np.int32)
        return Encoding(np.empty((len(tokens), 0), np.float32), n_tokens, n_tokens, n_unknown)

    def _learn(self, texts: list[str], show_progress: bool | None) -> None:
        """Learn from sorted texts."""

    def _embed(self, tokens: TokenStream) -> Any:
        """Return vectors, (n_texts, n_dimensions)."""
        raise NotImplementedError

    def _known(self, words: Sequence[str]) -> BoolArray:
        """Return whether words are known, (n_words,)."""
        raise NotImplementedError


def hash_of(*parts: object) -> str:
    """Return SHA-256 of arrays and of anything else by its representation."""
    digest = hashlib.sha256()
    for part in parts:
        if isinstance(part, np.ndarray):
            digest.update(np.ascontiguousarray(part).data)
        else:
            digest.update(repr(part).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()
