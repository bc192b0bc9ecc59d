"""A cascade: a static student encodes all texts; its teacher reads the uncertain ones again."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from heapq import nsmallest
from typing import Any, Self
from zlib import crc32

import numpy as np
from sklearn.exceptions import NotFittedError

from embedtopics._utils.checks import checked_count
from embedtopics.corpus._corpus import Corpus
from embedtopics.corpus.results import Encoding
from embedtopics.decisions import Decision
from embedtopics.encoders._base import check_texts, unit_vectors
from embedtopics.encoders._contract import WrappedEncoder, arguments_of, as_encoder
from embedtopics.encoders.static._encoder import StaticEncoder
from embedtopics.encoders.static._student import FEWEST_TEXTS, encode_with, gather, learn_student
from embedtopics.encoders.static._student_table import StudentSettings
from embedtopics.encoders.static._vocabulary import project
from embedtopics.protocols import FloatArray, Int64Array

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

    def __init__(self, teacher: Any, n_learned: int = N_LEARNED) -> None:
        self._arguments = arguments_of(locals())
        self._n = checked_count(n_learned, "n_learned", FEWEST_TEXTS)
        self.teacher, self._encoder = teacher, as_encoder(teacher)
        self._learned: _CascadeState | None = None

    @property
    def name(self) -> str:
        """Name of the teacher, and how it is used."""
        return f"{self._encoder.name} with a static student"

    @property
    def is_fitted(self) -> bool:
        """Whether the student has been fitted."""
        return self._learned is not None

    @property
    def settings(self) -> dict[str, Any]:
        """Arguments from which this encoder can be made again, before it is fitted."""
        return {
            "kind": "cascade",
            "teacher": self._encoder.settings,
            "n_learned": self._n,
        }

    @property
    def fingerprint(self) -> str:
        """SHA-256 of both fingerprints and of the threshold."""
        learned = self._fitted()
        parts = str(self._encoder.fingerprint), learned.student.fingerprint, f"{learned.margin:.4f}"
        return hashlib.sha256(":".join(parts).encode()).hexdigest()

    @property
    def student(self) -> StaticEncoder:
        """The student alone; its vectors lie in the teacher's space."""
        return self._fitted().student

    @property
    def decisions(self) -> list[Decision]:
        """Agreement of the cascade with the teacher, and how to use the teacher alone."""
        learned, teacher = self._fitted(), self._encoder.name
        message = (
            f"A static student of {teacher}, trained on {learned.n_texts:,} of the texts, encoded "
            f"all texts. {teacher} encoded again the {learned.share:.0%} about which the student "
            f"was unsure. {learned.after:.0%} of held-out texts have the same nearest of "
            f"{len(learned.centroids)} centroids as with {teacher} alone ({learned.before:.0%} "
            f'with the student alone). To use it alone: TopicModel(encoder="{teacher}").'
        )
        return [
            *self._encoder.decisions,
            Decision("encoder", "cascade", round(learned.after, 4), message),
        ]

    def fit(self, X: Iterable[str], y: Any = None) -> Self:
        """Fit the student to a sample of the texts, independent of their order."""
        distinct = set(check_texts(X))
        most = most_read_again(len(distinct))
        some = nsmallest(self._n, distinct, key=lambda text: (_checksum(text), text))
        texts = Corpus.of(some).document_texts()  # ordered by content hash
        vectors = unit_vectors(encode_with(self._encoder, texts, "texts", None))
        is_held = np.arange(len(texts)) % HELD_OUT == 0
        vector_of = dict(zip(texts, vectors, strict=True))

        def encode(some: Sequence[str], what: str) -> FloatArray:
            if all(text in vector_of for text in some):
                return np.array([vector_of[text] for text in some])
            return encode_with(self._encoder, some, what, None)

        training_texts = [text for text, is_out in zip(texts, is_held, strict=True) if not is_out]
        settings = StudentSettings()
        gathered = gather(training_texts, None, settings)
        student = learn_student(self._encoder, gathered, settings, encode=encode).encoder
        student = in_space_of(student, training_texts, vectors[~is_held])
        centroids = _centroids(vectors[~is_held])
        held_texts = [text for text, is_out in zip(texts, is_held, strict=True) if is_out]
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
        learned = self._fitted()
        report = learned.student.encode_with_report(texts, show_progress=show_progress)
        unsure = np.flatnonzero(_nearest(report.embeddings, learned.centroids)[1] <= learned.margin)
        if not len(unsure):
            return report
        again = self._encoder.encode_with_report(
            [texts[row] for row in unsure.tolist()], show_progress=show_progress
        )
        report.embeddings[unsure] = unit_vectors(again.embeddings)
        for name in ("n_tokens", "n_seen", "n_unknown"):
            getattr(report, name)[unsure] = getattr(again, name)
        return replace(report, n_cached=again.n_cached)

    def _fitted(self) -> _CascadeState:
        if self._learned is None:
            raise NotFittedError("this encoder has learned from no texts yet; call fit(texts)")
        return self._learned


def most_read_again(n_texts: int) -> float:
    """Return the maximum share of texts that the teacher reads after its student."""
    return max(AGAIN_SHARE, AGAIN_TEXTS / max(1, n_texts))


def _checksum(text: str) -> int:
    """Return a checksum that samples texts pseudo-randomly, faster than a content hash."""
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
