"""Encoders for collections in several languages: joined ones, and a language-agnostic one."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, Self

import numpy as np
from sklearn.exceptions import NotFittedError

from embedtopics.corpus._languages import language_of
from embedtopics.corpus.results import Encoding
from embedtopics.decisions import Decision
from embedtopics.encoders._base import check_texts, unit_vectors
from embedtopics.encoders._contract import BaseEncoder, WrappedEncoder, arguments_of, as_encoder
from embedtopics.encoders.sentence._backend import bundled_texts
from embedtopics.errors import InputError
from embedtopics.protocols import FloatArray

# In the directions in which the mean vectors of the languages differ, every vector gets the mean of
# all texts. If all classes have one mean, no linear classifier separates them (Belrose et al. 2023,
# "LEACE: perfect linear concept erasure in closed form", section 3). The language of a new text
# need not be known. On translations (multi30k, 1,000 pairs of captions, and xnli, 830 premises;
# English and French) with multilingual-e5-small, 0.75 of the pairs are in one topic as they are,
# 0.84 if each language's mean is subtracted, 0.80 by erasure around 0 and 0.88 by this; on xnli
# 0.59, 0.54, 0.55 and 0.71.

FEWEST_TEXTS = 20
"""Minimum number of texts of a language for a reliable mean."""

MOST_TEXTS = 2_000
"""Maximum number of texts for the means."""


class AcrossLanguagesEncoder(WrappedEncoder):
    """Removes the directions of the languages, learned from texts, from an encoder's vectors."""

    def __init__(self, encoder: Any) -> None:
        self._arguments = arguments_of(locals())
        self._encoder = as_encoder(encoder)
        # Mean of the texts, (n_dimensions,), and orthonormal axes to remove, (n, n_dimensions).
        self._erased: tuple[FloatArray, FloatArray] | None = None

    @property
    def is_fitted(self) -> bool:
        """Whether the directions of the languages are known."""
        return self._erased is not None

    @property
    def settings(self) -> dict[str, Any] | None:
        """What makes this encoder again, before its fit; None if it cannot be made again."""
        settings = self._encoder.settings
        return None if settings is None else {"kind": "across languages", "encoder": settings}

    @property
    def fingerprint(self) -> str | None:
        """SHA-256 of the wrapped encoder's fingerprint and of what is removed."""
        fingerprint = self._encoder.fingerprint
        if fingerprint is None:
            return None
        parts = (fingerprint.encode(), *(np.round(a, 4).tobytes() for a in self._fitted()))
        return hashlib.sha256(b"".join(parts)).hexdigest()

    def fit(self, X: Iterable[str], y: Any = None) -> Self:
        """Learn the directions in which the languages of the texts differ."""
        texts = check_texts(X)
        self._encoder = self._encoder.fitted_to(texts)
        texts = texts[:: max(1, len(texts) // MOST_TEXTS)][:MOST_TEXTS]
        codes = np.array([language_of(text) or "" for text in texts])
        vectors = self._plain(texts, False).embeddings
        named, counts = np.unique(codes, return_counts=True)
        frequent = [c for c, n in zip(named, counts, strict=True) if c and n >= FEWEST_TEXTS]
        mean = vectors.mean(axis=0)
        axes = np.zeros((0, vectors.shape[1]), dtype=np.float32)
        if len(frequent) > 1:
            means = np.array([vectors[codes == code].mean(axis=0) for code in frequent]) - mean
            _, sizes, rows = np.linalg.svd(means - means.mean(axis=0), full_matrices=False)
            axes = rows[: len(frequent) - 1][sizes[: len(frequent) - 1] > 1e-6]
        self._erased = mean, axes
        return self

    def encode_with_report(
        self, texts: Sequence[str], *, show_progress: bool | None = None
    ) -> Encoding:
        """Return one vector per text, and how much of each text was read."""
        mean, axes = self._fitted()
        report = self._plain(texts, show_progress)
        vectors = report.embeddings
        without = vectors - ((vectors - mean) @ axes.T) @ axes
        without[~vectors.any(axis=1)] = 0.0  # nothing is known of the text
        return dataclasses.replace(report, embeddings=unit_vectors(without))

    def _plain(self, texts: Sequence[str], show_progress: bool | None) -> Encoding:
        """Return the unit vectors of the wrapped encoder."""
        report = self._encoder.encode_with_report(texts, show_progress=show_progress)
        if hasattr(report.embeddings, "toarray"):
            raise InputError("encoder", "an encoder of dense vectors", self._encoder)
        vectors = unit_vectors(np.asarray(report.embeddings, dtype=np.float32))
        return dataclasses.replace(report, embeddings=vectors)

    def _fitted(self) -> tuple[FloatArray, FloatArray]:
        if self._erased is None:
            raise NotFittedError("this encoder is not fitted yet; call fit(texts) first")
        return self._erased


# Vectors of multilingual-e5-small lie in nearly one direction (their mean has length 0.89), so that
# next to those of all-MiniLM-L6-v2 they would hardly count; relative to the mean of some texts they
# do. AMI of topics with the classes for MiniLM, e5 and both: 0.44, 0.43 and 0.50 on masakhanews_eng
# and _fra together, 0.81, 0.89 and 0.91 on the demo. On corpora that the constants were not chosen
# on: laws and BBC news 0.75, 0.74 and 0.77; French and BBC news 0.59, 0.60 and 0.63; French news
# and AG News 0.46, 0.50 and 0.50; debates and addresses by speaker 0.38, 0.36 and 0.36. Removing
# the languages from both by default would put translations together, but harms themes of one
# language (0.61 on laws and BBC news, 0.86 on the demo); hence `across_languages`.

TEXTS_OF_MIDDLE = 10
"""The centre is the mean of one in this many of the bundled texts, English and French."""


class JoinedEncoder(WrappedEncoder):
    """Concatenates the vectors of two encoders; those of the second are centred first."""

    def __init__(self, encoders: Sequence[Any]) -> None:
        self._arguments = arguments_of(locals())
        self.parts = tuple(as_encoder(encoder) for encoder in encoders)
        self._encoder = self.parts[1]  # it reads more languages

    @property
    def name(self) -> str:
        """Names of both."""
        return " + ".join(part.name for part in self.parts)

    @property
    def settings(self) -> dict[str, Any]:
        """What makes this encoder again."""
        return {"kind": "joined", "encoders": [part.settings for part in self.parts]}

    @property
    def fingerprint(self) -> str | None:
        """SHA-256 of the fingerprints of both; None if one has none."""
        return _hash_of([part.fingerprint for part in self.parts])

    @property
    def space(self) -> str | None:
        """SHA-256 of the spaces of both; None if one has none."""
        return _hash_of([part.space for part in self.parts])

    @property
    def max_length(self) -> int | None:
        """None: each of the encoders has its own."""
        return None

    @property
    def decisions(self) -> list[Decision]:
        """Decisions of both, and why they are joined."""
        message = (
            f"The vectors of {' and '.join(part.name for part in self.parts)} are concatenated, "
            "because the texts are in the languages of both encoders. Encoding takes the time of "
            "both. To put translations into one topic, set across_languages=True in the model."
        )
        decisions: list[Decision] = []
        for part in self.parts:
            decisions += [decision for decision in part.decisions if decision not in decisions]
        return [*decisions, Decision("encoder", "joined", self.name, message)]

    @cached_property
    def uncached(self) -> JoinedEncoder:
        """The same encoder without a cache on disk."""
        return JoinedEncoder([part.uncached for part in self.parts])

    @property
    def for_search(self) -> BaseEncoder:
        """The second encoder alone: a search finds texts of its languages with it as well."""
        return self.parts[1]

    def reading(self, kind: str) -> JoinedEncoder:
        """Return both with their prompts for a "query" or a "document"."""
        return JoinedEncoder([part.reading(kind) for part in self.parts])

    def encode_with_report(
        self, texts: Sequence[str], *, show_progress: bool | None = None
    ) -> Encoding:
        """Return one vector per text, and the report of the encoder that reads less."""
        reports = [one.encode_with_report(texts, show_progress=show_progress) for one in self.parts]
        first, second = (unit_vectors(report.embeddings) for report in reports)
        seen = unit_vectors(second - self._centre)
        seen[~second.any(axis=1)] = 0.0  # nothing is known of the text
        joined = unit_vectors(np.hstack([first, seen]))
        least: Encoding = max(reports, key=lambda report: report.unseen_token_share)
        return dataclasses.replace(least, embeddings=joined)

    @cached_property
    def _centre(self) -> FloatArray:
        """Mean vector of some of the bundled texts, (n_dimensions,)."""
        vectors = self.parts[1].reading("document").encode(bundled_texts()[::TEXTS_OF_MIDDLE])
        centre: FloatArray = unit_vectors(vectors).mean(axis=0)
        return centre


def _hash_of(hashes: Sequence[str | None]) -> str | None:
    if None in hashes:
        return None
    return hashlib.sha256(f"joined:{':'.join(map(str, hashes))}".encode()).hexdigest()
