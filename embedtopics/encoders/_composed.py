"""Encoders made of other encoders: joined ones, a language-agnostic one, and a cascade."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from heapq import nsmallest
from typing import Any, Self
from zlib import crc32

import numpy as np

from embedtopics._utils.checks import checked_count
from embedtopics.corpus._corpus import Corpus
from embedtopics.corpus._languages import language_of
from embedtopics.corpus.results import Encoding
from embedtopics.decisions import Decision
from embedtopics.encoders._base import check_texts, unit_vectors
from embedtopics.encoders._contract import BaseEncoder, WrappedEncoder, arguments_of, as_encoder
from embedtopics.encoders.sentence._backend import bundled_texts
from embedtopics.encoders.static._encoder import StaticEncoder
from embedtopics.encoders.static._student import (
    FEWEST_TEXTS,
    encode_with,
    gather,
    learn_student,
    project,
)
from embedtopics.encoders.static._student_table import StudentSettings
from embedtopics.errors import InputError
from embedtopics.protocols import FloatArray, Int64Array

# In the directions in which the mean vectors of the languages differ, every vector gets the mean of
# all texts. If all classes have one mean, no linear classifier separates them (Belrose et al. 2023,
# "LEACE: perfect linear concept erasure in closed form", section 3). The language of a new text
# need not be known. On translations (multi30k, 1,000 pairs of captions, and xnli, 830 premises;
# English and French) with multilingual-e5-small, 0.75 of the pairs are in one topic as they are,
# 0.84 if each language's mean is subtracted, 0.80 by erasure around 0 and 0.88 by this; on xnli
# 0.59, 0.54, 0.55 and 0.71.

MIN_TEXTS, MAX_TEXTS = 20, 2_000
"""Minimum number of texts of a language for a reliable mean, and maximum number for all means."""


class AcrossLanguagesEncoder(WrappedEncoder):
    """Removes the directions of the languages, learned from texts, from an encoder's vectors."""

    # Mean of the texts, (n_dimensions,), and orthonormal axes to remove, (n, n_dimensions).
    _erased: tuple[FloatArray, FloatArray]

    def __init__(self, encoder: Any) -> None:
        self._arguments = arguments_of(locals())
        self._encoder = as_encoder(encoder)

    @property
    def is_fitted(self) -> bool:
        """Whether the directions of the languages are known."""
        return hasattr(self, "_erased")

    @property
    def settings(self) -> dict[str, Any] | None:
        """Arguments of this encoder before its fit; None if it cannot be made again."""
        settings = self._encoder.settings
        return None if settings is None else {"kind": "across languages", "encoder": settings}

    @property
    def fingerprint(self) -> str | None:
        """SHA-256 of the wrapped encoder's fingerprint and of what is removed."""
        fingerprint = self._encoder.fingerprint
        if fingerprint is None:
            return None
        self._check_fitted()
        parts = (fingerprint.encode(), *(np.round(a, 4).tobytes() for a in self._erased))
        return hashlib.sha256(b"".join(parts)).hexdigest()

    def fit(self, X: Iterable[str], y: Any = None) -> Self:
        """Learn the directions in which the languages of the texts differ."""
        texts = check_texts(X)
        self._encoder = self._encoder.fitted_to(texts)
        texts = texts[:: max(1, len(texts) // MAX_TEXTS)][:MAX_TEXTS]
        codes = np.array([language_of(text) or "" for text in texts])
        vectors = self._plain(texts, False).embeddings
        named, counts = np.unique(codes, return_counts=True)
        frequent = [c for c, n in zip(named, counts, strict=True) if c and n >= MIN_TEXTS]
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
        self._check_fitted()
        mean, axes = self._erased
        report = self._plain(texts, show_progress)
        vectors = report.embeddings
        without = vectors - ((vectors - mean) @ axes.T) @ axes
        without[~vectors.any(axis=1)] = 0.0  # nothing is known of the text
        return replace(report, embeddings=unit_vectors(without))

    def _plain(self, texts: Sequence[str], show_progress: bool | None) -> Encoding:
        """Return the unit vectors of the wrapped encoder."""
        report = self._encoder.encode_with_report(texts, show_progress=show_progress)
        if hasattr(report.embeddings, "toarray"):
            raise InputError("encoder", "an encoder of dense vectors", self._encoder)
        vectors = unit_vectors(np.asarray(report.embeddings, dtype=np.float32))
        return replace(report, embeddings=vectors)


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
        """Arguments from which this encoder can be made again."""
        return {"kind": "joined", "encoders": [part.settings for part in self.parts]}

    @property
    def fingerprint(self) -> str | None:
        """SHA-256 of the fingerprints of both; None if one has none."""
        return _hash_of([part.fingerprint for part in self.parts])

    @property
    def space(self) -> str | None:
        """SHA-256 of the spaces of both; None if one has none."""
        return _hash_of([part.space for part in self.parts])

    max_length = None  # each of the encoders has its own

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
        return replace(least, embeddings=joined)

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


N_LEARNED, N_CENTROIDS, AGREEMENT = 20_000, 50, 0.9
"""Number of texts that the student learns from, number of centroids that define where it is unsure,
and the required share of held-out texts whose nearest centroid is the teacher's; chosen on 60,000
titles (benchmarks, student_topics)."""

AGAIN_TEXTS, AGAIN_SHARE = 50_000, 0.05
"""Maximum number of texts that the teacher reads after its student, or their share where that is
more."""

HELD_OUT = 20
"""One of this many texts is held out."""


@dataclass(frozen=True, eq=False)
class _CascadeState:
    """Result of a fit."""

    student: StaticEncoder  # in the teacher's space
    centroids: FloatArray  # (n_centroids, n_dimensions), of length 1
    margin: float  # a text whose margin is not above it is unsure
    n_texts: int
    share: float  # of held-out texts that are unsure
    before: float  # share of held-out texts nearest to the teacher's centroid, by the student
    after: float  # and by the cascade


class CascadeEncoder(WrappedEncoder):
    """Encode texts with a static student, and with its teacher if the student is unsure.

    The student learns from the teacher's vectors of a sample and is rotated into the teacher's
    space. It is unsure about a text whose vector is nearly equidistant from the two nearest
    centroids of a k-means clustering of the teacher's vectors. The threshold is chosen on held-out
    texts: the teacher reads as few texts as needed for nine tenths of them to have the
    teacher's nearest centroid, and at most 50,000 texts of the fit, or a twentieth. The vector of a
    text does not depend on other texts.

    Parameters
    ----------
    teacher : SentenceEncoder or CachedEncoder
    n_learned : int
    """

    _learned: _CascadeState

    def __init__(self, teacher: Any, n_learned: int = N_LEARNED) -> None:
        self._arguments = arguments_of(locals())
        self._n = checked_count(n_learned, "n_learned", FEWEST_TEXTS)
        self.teacher, self._encoder = teacher, as_encoder(teacher)

    @property
    def name(self) -> str:
        """Name of the teacher, and how it is used."""
        return f"{self._encoder.name} with a static student"

    @property
    def is_fitted(self) -> bool:
        """Whether the student has been fitted."""
        return hasattr(self, "_learned")

    @property
    def settings(self) -> dict[str, Any]:
        """Arguments from which this encoder can be made again, before it is fitted."""
        return {"kind": "cascade", "teacher": self._encoder.settings, "n_learned": self._n}

    @property
    def fingerprint(self) -> str:
        """SHA-256 of both fingerprints and of the threshold."""
        student, margin = self.student, self._learned.margin
        parts = str(self._encoder.fingerprint), student.fingerprint, f"{margin:.4f}"
        return hashlib.sha256(":".join(parts).encode()).hexdigest()

    @property
    def student(self) -> StaticEncoder:
        """The student alone; its vectors lie in the teacher's space."""
        self._check_fitted()
        return self._learned.student

    @property
    def decisions(self) -> list[Decision]:
        """Agreement of the cascade with the teacher, and how to use the teacher alone."""
        self._check_fitted()
        learned, teacher = self._learned, self._encoder.name
        message = (
            f"A static student of {teacher}, trained on {learned.n_texts:,} of the texts, encoded "
            f"all texts. {teacher} encoded again the {learned.share:.0%} about which the student "
            f"was unsure. {learned.after:.0%} of held-out texts have the same nearest of "
            f"{len(learned.centroids)} centroids as with {teacher} alone ({learned.before:.0%} "
            f'with the student alone). To use it alone: TopicModel(encoder="{teacher}").'
        )
        decision = Decision("encoder", "cascade", round(learned.after, 4), message)
        return [*self._encoder.decisions, decision]

    def fit(self, X: Iterable[str], y: Any = None) -> Self:
        """Fit the student to a sample of the texts, independent of their order."""
        distinct = set(check_texts(X))
        most = max(AGAIN_SHARE, AGAIN_TEXTS / max(1, len(distinct)))
        # A checksum samples texts pseudo-randomly, and is faster than the hash of their content.
        some = nsmallest(self._n, distinct, key=lambda text: (_checksum(text), text))
        texts = Corpus.of(some).document_texts()  # ordered by content hash
        vectors = unit_vectors(encode_with(self._encoder, texts, None))
        is_held = np.arange(len(texts)) % HELD_OUT == 0
        training_texts = [text for text, is_out in zip(texts, is_held, strict=True) if not is_out]
        held_texts = texts[::HELD_OUT]
        settings = StudentSettings()
        gathered = gather(training_texts, None, settings)
        learned = learn_student(self._encoder, gathered, settings, vectors=vectors[~is_held])
        student = in_space_of(learned.encoder, training_texts, vectors[~is_held])
        centroids = _centroids(vectors[~is_held])
        nearest, margins = _nearest(student.encode(held_texts, show_progress=False), centroids)
        is_right = nearest == _nearest(vectors[is_held], centroids)[0]
        order = np.argsort(margins, kind="stable")
        # Number of right answers after the teacher has read the first 0, 1, 2 ... texts.
        right = is_right.sum() + np.append(0, np.cumsum(~is_right[order]))
        n_needed = int(np.argmax(right >= AGREEMENT * len(held_texts)))
        n = min(n_needed, int(most * len(held_texts)))
        self._learned = _CascadeState(
            student=student,
            centroids=centroids,
            margin=float(margins[order[n - 1]]) if n else -1.0,
            n_texts=len(training_texts),
            share=n / len(held_texts),
            before=float(is_right.mean()),
            after=float(right[n] / len(held_texts)),
        )
        return self

    def encode_with_report(
        self, texts: Sequence[str], *, show_progress: bool | None = None
    ) -> Encoding:
        """Return one unit vector per text, and how much of each text was read."""
        report = self.student.encode_with_report(texts, show_progress=show_progress)
        margins = _nearest(report.embeddings, self._learned.centroids)[1]
        unsure = np.flatnonzero(margins <= self._learned.margin)
        if not len(unsure):
            return report
        again = self._encoder.encode_with_report(
            [texts[row] for row in unsure.tolist()], show_progress=show_progress
        )
        report.embeddings[unsure] = unit_vectors(again.embeddings)
        for name in ("n_tokens", "n_seen", "n_unknown"):
            getattr(report, name)[unsure] = getattr(again, name)
        return replace(report, n_cached=again.n_cached)


def _checksum(text: str) -> int:
    return crc32(text.encode("utf-8", "surrogatepass"))


def in_space_of(student: StaticEncoder, texts: Sequence[str], targets: FloatArray) -> StaticEncoder:
    """Return a student rotated into the space of vectors (n_texts, n_dimensions) of the texts.

    The rotation minimizes the squared distances to these vectors (Schoenemann 1966, "A generalized
    solution of the orthogonal Procrustes problem").
    """
    vectors = student.encode(texts, show_progress=False)
    left, _, right = np.linalg.svd(
        project(vectors.T, targets).astype(np.float64), full_matrices=False
    )
    return student.with_table(project(student.table, (left @ right).astype(np.float32)))


def _centroids(vectors: FloatArray) -> FloatArray:
    """Return unit centroids of unit vectors, deterministically on one thread."""
    from sklearn.cluster import KMeans
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1):
        means = KMeans(min(N_CENTROIDS, len(vectors) // 2), n_init=1, max_iter=30, random_state=0)
        return np.asarray(unit_vectors(means.fit(vectors).cluster_centers_))


def _nearest(vectors: FloatArray, centroids: FloatArray) -> tuple[Int64Array, FloatArray]:
    """Return the nearest centroid of each vector, and its margin over the second nearest."""
    # Row by row: the last bits of a matrix product depend on its number of rows.
    similarities = (vectors[:, None, :] @ centroids.T)[:, 0]
    best = np.partition(similarities, -2, axis=1)[:, -2:]
    return similarities.argmax(axis=1), best[:, 1] - best[:, 0]
