"""A corpus -> passages, vectors and postings: what a segment of a collection is made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from embedtopics.corpus.hashing import TEXT
from embedtopics.corpus.passages import split_into_passages
from embedtopics.protocols import Encoder, FloatArray, Int32Array, Int64Array
from embedtopics.results import Decision
from embedtopics.retrieval.collection.segments import MakeSegment, Sources
from embedtopics.retrieval.dense import DenseSettings, build_dense
from embedtopics.retrieval.encoding import encode_texts, given_vectors
from embedtopics.retrieval.lexical import LexicalSettings, build_lexical
from embedtopics.retrieval.opened import write_sum

if TYPE_CHECKING:
    import pandas as pd

    from embedtopics.corpus import Corpus

__all__ = ["Prepared", "prepare", "segment_maker"]


@dataclass(frozen=True, eq=False)
class Prepared:
    """Documents that are ready to be written.

    Parameters
    ----------
    ids, texts : tuple of str
        Of each document.
    metadata : pandas.DataFrame
    positions : int64 ndarray of shape (n_passages,)
        The document of each passage.
    spans : int32 ndarray of shape (n_passages, 2)
    vectors : float32 ndarray of shape (n_passages, n_dimensions)
        Of unit length; zeros for a passage without text.
    decisions : tuple of Decision
    """

    ids: tuple[str, ...]
    texts: tuple[str, ...]
    metadata: pd.DataFrame
    positions: Int64Array
    spans: Int32Array
    vectors: FloatArray
    decisions: tuple[Decision, ...]

    @property
    def passages(self) -> list[str]:
        """The text of each passage."""
        return [
            self.texts[position][start:stop]
            for position, (start, stop) in zip(
                self.positions.tolist(), self.spans.tolist(), strict=True
            )
        ]


def prepare(
    corpus: Corpus,
    encoder: Encoder | None,
    *,
    passages: bool,
    embeddings: npt.ArrayLike | None = None,
    width: int = 0,
    show_progress: bool | None = None,
) -> Prepared:
    """Cut documents into passages, and encode these; every different passage once.

    Parameters
    ----------
    corpus : Corpus
    encoder : Encoder or None
        None where `embeddings` are given.
    passages : bool
        Whether a text that is longer than what the encoder reads becomes several passages. Of an
        encoder that does not say how much it reads, a passage has 180 words.
    embeddings : array_like of shape (n_rows, n_dimensions), optional
        Vectors of whole documents, made before.
    width : int
        Of the collection's vectors; used where there is no text to encode.
    show_progress : bool, optional

    Returns
    -------
    Prepared
    """
    decisions = list(corpus.notes)
    if passages and embeddings is None:
        can_cut = callable(getattr(encoder, "windows", None))
        _, rows, spans = split_into_passages(corpus, encoder if can_cut else None)
    else:
        rows = list(range(len(corpus)))
        spans = [(0, len(text)) for text in corpus.texts]
    has_text = np.asarray(corpus.status) == TEXT
    # Blanks have a length, too; by its empty span a search knows what it must not find.
    spans = [span if has_text[row] else (0, 0) for row, span in zip(rows, spans, strict=True)]
    if embeddings is None:
        assert encoder is not None
        texts = [
            corpus.texts[row][start:stop] for row, (start, stop) in zip(rows, spans, strict=True)
        ]
        vectors, notes = _vectors_of(encoder, texts, width, show_progress)
        decisions += notes
    else:
        vectors = given_vectors(embeddings, len(corpus))
    n_empty = int((~has_text).sum())
    if n_empty:
        decisions.append(Decision(
            "retrieval", "without text", n_empty,
            f"{n_empty:,} of {len(corpus):,} documents have no text: they are kept, and filters "
            "pass them, but no query finds them.",
        ))  # fmt: skip
    return Prepared(
        ids=corpus.ids,
        texts=corpus.texts,
        metadata=corpus.metadata.reset_index(drop=True),
        positions=np.array(rows, dtype=np.int64),
        spans=np.array(spans, dtype=np.int32).reshape(-1, 2),
        vectors=vectors,
        decisions=tuple(decisions),
    )


def _vectors_of(
    encoder: Encoder, texts: Sequence[str], width: int, show_progress: bool | None
) -> tuple[FloatArray, list[Decision]]:
    """Encode passages, and say what the encoder did not see of them."""
    numbers: dict[str, int] = {}
    places = np.array(
        [numbers.setdefault(text, len(numbers)) if text else -1 for text in texts], dtype=np.int64
    )
    if not numbers:
        return np.zeros((len(texts), width), dtype=np.float32), []
    vectors, report = encode_texts(encoder, list(numbers), show_progress=show_progress)
    if len(numbers) < len(texts):  # else they are in order already, and stay where they are
        vectors = vectors[places]
        vectors[places < 0] = 0.0
    notes = []
    n_cut = 0 if report is None else int((report.n_seen < report.n_tokens).sum())
    if n_cut:
        notes.append(Decision(
            "retrieval", "truncated", n_cut,
            f"Of {n_cut:,} passages the encoder reads only the beginning; dense search does not "
            "see the rest, lexical search does.",
        ))  # fmt: skip
    return vectors, notes


def segment_maker(
    vectors: Callable[[Sources | None], npt.NDArray[Any]],
    texts: Callable[[Int64Array, Int32Array], Sequence[str]],
    dense: DenseSettings,
    lexical: LexicalSettings,
    measured: list[Mapping[str, Any]],
) -> MakeSegment:
    """Return what writes a segment's vectors, dense index and postings.

    Parameters
    ----------
    vectors : callable
        From where the passages were before (None for new ones) to their vectors.
    texts : callable
        From documents and spans to the texts of passages.
    dense : DenseSettings
    lexical : LexicalSettings
    measured : list
        What was measured of the dense index is appended to it.
    """

    def make(
        folder: Path, documents: Int64Array, spans: Int32Array, sources: Sources | None
    ) -> None:
        found = vectors(sources)
        measured.append(build_dense(folder, found, dense))
        write_sum(folder, found)
        (folder / "lexical").mkdir(exist_ok=True)
        build_lexical(folder / "lexical", texts(documents, spans), lexical)

    return make
