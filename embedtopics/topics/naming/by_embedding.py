"""Keywords by what they mean: near to the topic's typical documents, and unlike each other."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from embedtopics._checks import checked_count, checked_share
from embedtopics.encoders import resolve_encoder
from embedtopics.errors import InputError
from embedtopics.protocols import Encoder, FloatArray
from embedtopics.results import TopicResult
from embedtopics.terms import representatives, term_embeddings
from embedtopics.terms.selection import choose_diverse
from embedtopics.terms.stems import repeats, stems_of
from embedtopics.topics.naming.candidates import (
    Keywords,
    candidates_of,
    columns_of,
    first_distinct,
)
from embedtopics.topics.recorded import GIVEN, languages_of
from embedtopics.topics.vectors import (
    encode_documents,
    matching_encoder,
    recorded_encoder,
)

__all__ = ["keywords_by_embedding", "keywords_diverse"]

DOCUMENTS = "documents"
"""In place of an encoder: a term is the mean of the documents that hold it."""


def keywords_by_embedding(
    result: TopicResult,
    *,
    encoder: Encoder | str | None = None,
    n: int = 10,
    n_candidates: int = 100,
    n_documents: int | None = None,
    candidates: Any = None,
    keep_repeats: bool = False,
    show_progress: bool | None = None,
) -> Keywords:
    """Choose the terms whose embeddings are nearest to the topic's typical documents.

    Class-TF-IDF takes what a topic says often; this takes, of these terms, what stands for its
    documents: frequent but general words fall back, single precise ones come forward.

    Parameters
    ----------
    result : TopicResult
    encoder : Encoder or str, optional
        Who embeds the candidate terms, each once; by default the encoder of the fit, made again.
        "documents" takes none: a term is the mean of the documents that hold it, and both terms
        and topics are seen from the mean of all documents.
    n : int
        Keywords of each topic at most.
    n_candidates : int
        Terms of each topic that are looked at, those of highest weight.
    n_documents : int, optional
        Central documents whose mean is the topic's vector; by default the topic's representatives.
    candidates : sequence of sequence of (str, float), optional
        Lists of another road to choose from, such as `keywords_by_part_of_speech`.
    keep_repeats : bool
        Whether a keyword may share a stem at its ends with a better one.
    show_progress : bool or None
        Of the encoder.

    Returns
    -------
    list of list of (str, float)
        For each topic its keywords, best first, with their cosines; ties in the order of the
        candidates.

    Raises
    ------
    InputError
        Where the encoder cannot be made again or has other dimensions, or a parameter is bad.

    References
    ----------
    Grootendorst (2020), KeyBERT, doi:10.5281/zenodo.4461265; with the candidates, documents and
    embeddings of BERTopic's ``KeyBERTInspired`` and `keep_repeats`, the ranking is its.
    """
    n = checked_count(n, "n")
    lists = candidates_of(result, candidates, n_candidates)
    topic_vectors, term_vectors = _vectors(result, lists, encoder, n_documents, show_progress)
    chosen = []
    for row, topic, terms in zip(lists, topic_vectors, term_vectors, strict=True):
        cosines = np.einsum("id,d->i", terms, topic, dtype=np.float64)
        order = np.argsort(-cosines, kind="stable").tolist()
        ranked = [(row[i][0], float(cosines[i])) for i in order]
        chosen.append(first_distinct(result, ranked, n, keep_repeats))
    return chosen


def keywords_diverse(
    result: TopicResult,
    *,
    diversity: float = 0.3,
    encoder: Encoder | str | None = None,
    n: int = 10,
    n_candidates: int = 30,
    n_documents: int | None = None,
    candidates: Any = None,
    keep_repeats: bool = False,
    show_progress: bool | None = None,
) -> Keywords:
    """Choose terms that are near to the topic's typical documents, and unlike each other.

    The nearest term comes first. Then, each time, the term i is taken that has the highest

        (1 - diversity) * cos(i, topic) - diversity * max over chosen j of cos(i, j).

    Parameters
    ----------
    result : TopicResult
    diversity : float
        From 0 (nearness alone, as `keywords_by_embedding`) to 1.
    encoder, n, n_candidates, n_documents, candidates, keep_repeats, show_progress
        As in `keywords_by_embedding`.

    Returns
    -------
    list of list of (str, float)
        For each topic its keywords in the order of choice, with their cosines with the topic,
        which need not descend.

    Raises
    ------
    InputError
        As `keywords_by_embedding`.

    References
    ----------
    Carbonell and Goldstein (1998), "The use of MMR, diversity-based reranking for reordering
    documents and producing summaries".
    """
    n = checked_count(n, "n")
    diversity = checked_share(diversity, "diversity")
    lists = candidates_of(result, candidates, n_candidates)
    topic_vectors, term_vectors = _vectors(result, lists, encoder, n_documents, show_progress)
    languages = languages_of(result)
    chosen = []
    for row, topic, terms in zip(lists, topic_vectors, term_vectors, strict=True):
        cosines = np.einsum("id,d->i", terms, topic, dtype=np.float64)
        similarity = np.einsum("id,jd->ij", terms, terms, dtype=np.float64)
        stems = [stems_of(term, languages) for term, _ in row]
        picked = choose_diverse(
            cosines,
            similarity,
            n,
            diversity,
            lambda i, j, stems=stems: not keep_repeats and repeats(stems[i], stems[j]),  # type: ignore[misc]
            least=-1.0,
        )
        chosen.append([(row[i][0], float(cosines[i])) for i in picked])
    return chosen


def _vectors(
    result: TopicResult,
    lists: Keywords,
    encoder: Encoder | str | None,
    n_documents: int | None,
    show_progress: bool | None,
) -> tuple[list[FloatArray], list[FloatArray]]:
    """Return a unit vector for each topic, and one for each of its candidates."""
    pool, places = columns_of(result, lists)
    origin: npt.NDArray[np.float64] = np.zeros(result.embeddings.shape[1])
    if isinstance(encoder, str) and encoder == DOCUMENTS:
        if result.n_topics > 1:  # a single topic has nothing to differ from
            origin = result.embeddings.mean(axis=0, dtype=np.float64)
        of_terms = term_embeddings(
            result.term_counts.counts, result.embeddings, pool, origin=origin
        )
    else:
        # Made before anything else, so that it is refused whether or not there are candidates.
        maker = _encoder(result, encoder)
        of_terms = _encoded(result, maker, pool, show_progress)
    topics = []
    for members in _typical(result, n_documents):
        mean = result.embeddings[members].mean(axis=0, dtype=np.float64) - origin
        length = np.sqrt(np.einsum("d,d->", mean, mean))
        topics.append((mean / (length or 1.0)).astype(np.float32))
    return topics, [of_terms[place] for place in places]


def _encoder(result: TopicResult, encoder: Encoder | str | None) -> Encoder:
    """Return the encoder of the fit, made again or given."""
    if encoder is not None:
        return matching_encoder(resolve_encoder(encoder), result)
    if isinstance(result.settings.get("encoder_settings"), dict):
        return recorded_encoder(result)
    made_by = result.settings.get("encoder")
    came = "given embeddings" if made_by == GIVEN else f"an encoder of your own ({made_by})"
    raise InputError(
        f"expected an encoder for the terms, but the model was fitted on {came}; give it as "
        'encoder=, or encoder="documents" for the mean of the documents that hold a term'
    )


def _encoded(
    result: TopicResult,
    encoder: Encoder,
    pool: npt.NDArray[np.int64],
    show_progress: bool | None,
) -> FloatArray:
    """Return the vectors of terms, in the space of the documents."""
    width = result.embeddings.shape[1]
    if not len(pool):
        return np.zeros((0, width), dtype=np.float32)
    terms = [result.term_counts.terms[column] for column in pool.tolist()]
    made, _ = encode_documents(encoder, terms, np.arange(len(terms)), show_progress)
    if made.shape[1] != width:
        raise InputError(
            f"expected an encoder of {width} dimensions, as the documents have; "
            f"{getattr(encoder, 'name', type(encoder).__name__)} makes {made.shape[1]}; give the "
            "encoder of the fit"
        )
    return made


def _typical(result: TopicResult, n: int | None) -> list[npt.NDArray[np.int64]]:
    """Return the documents whose mean stands for each topic."""
    if n is None:
        of_row = result.documents.of_row
        labels = result.clustering.labels
        rows = [np.array(topic.representatives, dtype=np.int64) for topic in result.topics]
        return [
            of_row[found] if len(found) else np.flatnonzero(labels == topic)
            for topic, found in enumerate(rows)
        ]
    return representatives(
        result.embeddings,
        result.clustering.labels,
        result.clustering.strengths,
        n=checked_count(n, "n_documents"),
        n_topics=result.n_topics,
    )
