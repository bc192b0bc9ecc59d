"""Topics of a systematic sample, and all other rows assigned to them."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.sparse import csr_matrix
from sklearn.base import clone

from embedtopics._utils.checks import checked_count, resolve_seed
from embedtopics._utils.display import progress_bar, spell_count
from embedtopics.clustering._resolution import FEWEST
from embedtopics.clustering.results import NOISE
from embedtopics.corpus._alignment import align_frame
from embedtopics.corpus._corpus import Corpus, as_corpus, require_text
from embedtopics.corpus._texts import normalize_text
from embedtopics.errors import InputError
from embedtopics.neighbors._graph import unit_rows
from embedtopics.protocols import FloatArray, Int32Array, Int64Array
from embedtopics.results import Decision
from embedtopics.topics._model import TopicModel
from embedtopics.topics._propagation import FAR, assign, closeness, find_documents, judge
from embedtopics.topics._relabel import own_shares
from embedtopics.topics._resolution import adjusted_rand, recluster
from embedtopics.topics._vectors import encode_documents, given_vectors
from embedtopics.topics.constraints._kinds import ManualLabels, PartialLabels
from embedtopics.topics.growing._extend import extend
from embedtopics.topics.growing._novelty import LOOSEST, adopt_candidates, find_candidates
from embedtopics.topics.results import Extension, SampleFit, TopicResult

SHARD = 20_000
"""Documents that are encoded and assigned together."""

RAREST = 1e-4
"""Smallest share of all documents in a topic from outside the sample: half of a topic of 0.02 %,
because some of its documents look like those of others."""

MOST_CHECKED, FEWEST_CHECKED = 20_000, 200
"""Largest and smallest size of the second sample, which measures the agreement."""

_NOT_LETTERS = re.compile(r"[\W\d_]+")


def fit_sample(
    model: TopicModel,
    corpus: Any,
    n_documents: int = 200_000,
    *,
    embeddings: npt.ArrayLike | None = None,
) -> SampleFit:
    """Find the topics of a sample, assign all other rows, and add topics that the sample lacks.

    The sample is systematic (Cochran 1977, "Sampling techniques", section 8): documents at equal
    steps in the order of their groups and dates, so that every group and time has its share. Texts
    that differ only in case, digits and punctuation count once. The other documents are encoded and
    assigned in shards, which stores only their topics. Groups outside the topics become topics, as
    with ``extend(..., adopt=True)``.

    A second sample measures how far the fit depends on the sample: it is fitted, cut into as many
    topics, and compared with the assigned topics of its documents; see the decisions.

    Parameters
    ----------
    model : TopicModel
        Parameters of the fit; the model itself stays as it is. Its constraints cannot be labels of
        rows.
    corpus : Corpus or anything that `Corpus` takes
    n_documents : int
        Documents in the sample. Every other document is compared with all of them.
    embeddings : array_like of shape (n_rows, n_dimensions), optional
        Vectors of all rows; a memory map (``np.load(file, mmap_mode="r")``) is read in parts.

    Returns
    -------
    SampleFit

    Raises
    ------
    InputError
        If no row has text, or a parameter is invalid.

    Examples
    --------
    >>> import embedtopics as et
    >>> model = et.TopicModel("tfidf", n_topics=4)
    >>> fit = et.topics.fit_sample(model, et.Corpus("embedtopics:demo", limit=120), 80)
    >>> fit.to_frame().shape
    (120, 6)
    """
    if not isinstance(model, TopicModel):
        remedy = "the model comes first: et.topics.fit_sample(et.TopicModel(), corpus)"
        raise InputError("model", "a TopicModel", model, remedy)
    corpus = as_corpus(corpus)
    require_text(corpus)
    n_documents = checked_count(n_documents, "n_documents", 2)
    if isinstance(model.constraints, PartialLabels | ManualLabels):
        raise InputError("constraints", "words or names, not labels of rows", model)
    if embeddings is not None:
        array: FloatArray = np.asanyarray(align_frame(embeddings, corpus, "embeddings"))
        embeddings = array
        given_vectors(embeddings, corpus, np.arange(1))  # checks the shape before the work

    model = clone(model)
    documents = corpus.distinct()
    ordered = np.arange(len(documents))
    if n_documents < len(documents):
        ordered = _ordered(corpus)

    rng = np.random.default_rng(resolve_seed(model.random_state))
    sample = np.sort(_every_nth(ordered, n_documents, rng))
    others = ordered[~np.isin(ordered, sample)]
    check = np.sort(_every_nth(others, min(MOST_CHECKED, n_documents), rng))

    rows = np.sort(documents.first_rows[sample])
    vectors = None if embeddings is None else embeddings[rows]
    result = model.fit(corpus.take(rows), embeddings=vectors).result_
    in_fit = assign(result, result.corpus)
    positions = find_documents(documents.hashes, result.corpus.hashes)
    topics = _DocumentTopics(*(np.zeros(len(documents), dtype=kind) for kind in ("i4", "f4", "f4")))
    topics.put(positions, in_fit.labels, in_fit.memberships, in_fit.novelty)
    stored = _assign_rest(model, corpus, topics, sample, check, embeddings)
    agreement, notes = _agreement(model, corpus, topics.labels, check, stored)

    if len(sample) < len(documents):
        message = f"The fit uses {len(sample):,} of {len(documents):,} distinct documents, "
        message += "at equal steps by group and date; the others were assigned to its topics."
        notes = [Decision("corpus", "sample", len(sample), message), *notes]

    grown = _with_novel(result, corpus, topics, stored)
    n_adopted = grown.n_topics - result.n_topics
    if n_adopted:
        listed = "; ".join(topic.name for topic in grown.topics[result.n_topics :])
        message = spell_count(n_adopted, "topic was", "topics were")
        message += f" found among documents outside the sample: {listed}."
        notes.append(Decision("clustering", "adopted", n_adopted, message))

    of_row = documents.of_row
    is_text = documents.of_row >= 0
    in_sample = np.isin(of_row, sample) & is_text

    return SampleFit(
        corpus=corpus,
        result=dataclasses.replace(grown, decisions=(*result.decisions, *notes)),
        labels=np.where(is_text, topics.labels[of_row], NOISE).astype(np.int32),
        memberships=np.where(is_text, topics.shares[of_row], 0).astype(np.float32),
        novelty=np.where(is_text, topics.novelty[of_row], np.nan).astype(np.float32),
        in_sample=in_sample,
        n_adopted=n_adopted,
        agreement=agreement,
    )


@dataclass(frozen=True, eq=False)
class _DocumentTopics:
    """Topic of each document, its share, and the novelty, (n_documents,) each."""

    labels: Int32Array
    shares: FloatArray
    novelty: FloatArray

    def put(
        self, documents: Int64Array, labels: Int32Array, shares: csr_matrix, novelty: FloatArray
    ) -> None:
        """Set the topics of some documents; `shares` (n_documents, n_topics) of all topics."""
        self.labels[documents], self.novelty[documents] = labels, novelty
        self.shares[documents] = own_shares(shares, labels)


def _ordered(corpus: Corpus) -> Int64Array:
    """Return documents by group, date and content, with the first of texts equal in letters."""
    first_rows = corpus.distinct().first_rows
    texts = (corpus.texts[row] for row in first_rows.tolist())
    letters = pd.Series([hash(_NOT_LETTERS.sub(" ", t).strip().casefold()) for t in texts])
    distinct = np.flatnonzero(~letters.duplicated())
    rows = first_rows[distinct]
    keys = [distinct]
    if corpus.time is not None:
        keys.append(corpus.time.to_numpy()[rows].astype("datetime64[ns]").astype(np.int64))
    if corpus.group is not None:
        keys.append(np.unique(corpus.group.astype(str).to_numpy()[rows], return_inverse=True)[1])
    return distinct[np.lexsort(keys)]


def _every_nth(ordered: Int64Array, n: int, rng: np.random.Generator) -> Int64Array:
    """Return n documents at equal steps from a random start, or all."""
    if n >= len(ordered):
        return ordered
    return ordered[((np.arange(n) + rng.random()) * (len(ordered) / n)).astype(np.int64)]


def _assign_rest(
    model: TopicModel,
    corpus: Corpus,
    topics: _DocumentTopics,
    sample: Int64Array,
    check: Int64Array,
    embeddings: npt.NDArray[Any] | None,
) -> dict[int, FloatArray]:
    """Assign documents outside the sample; return the vectors of outliers and of `check`."""
    rest = np.setdiff1d(np.arange(len(topics.labels)), sample)
    is_checked = np.isin(rest, check)
    stored: dict[int, FloatArray] = {}
    encoder: Any = model._of_fit[1] if model._of_fit else None
    bar = progress_bar(total=len(rest), unit="text", description="assign", show=model.show_progress)
    with bar:
        for begin in range(0, len(rest), SHARD):
            part = rest[begin : begin + SHARD]
            rows = corpus.distinct().first_rows[part]
            if embeddings is None:
                texts = [normalize_text(corpus.texts[row]) for row in rows.tolist()]
                vectors = encode_documents(encoder, texts, rows, False)[0]
            else:
                vectors = unit_rows(embeddings, rows=rows)
            judged = judge(model.result_, vectors)
            topics.put(part, judged.labels, judged.shares, judged.novelty)
            is_stored = (judged.labels == NOISE) | is_checked[begin : begin + SHARD]
            stored |= zip(part[is_stored].tolist(), vectors[is_stored], strict=True)
            bar.update(len(part))
    return stored


def _agreement(
    model: TopicModel,
    corpus: Corpus,
    labels: Int32Array,
    check: Int64Array,
    vectors: Mapping[int, FloatArray],
) -> tuple[float, list[Decision]]:
    """Return the adjusted Rand index with a fit of a second sample, and a decision on it."""
    if len(check) < FEWEST_CHECKED:
        return float("nan"), []
    rows = corpus.distinct().first_rows[check]  # ordered by content, as the documents of the fit
    second = clone(model).set_params(constraints=None, show_progress=False)
    array = np.array([vectors[document] for document in check.tolist()])
    order = np.argsort(rows)
    fit = second.fit(corpus.take(rows[order]), embeddings=array[order]).result_
    with suppress(InputError):  # another clusterer, or not enough topics
        fit = recluster(fit, model.result_.n_topics)
    agreement = adjusted_rand(labels[check], fit.clustering.labels)
    message = (
        f"A second fit of {len(check):,} documents outside the sample has {fit.n_topics} topics. "
        f"Its adjusted Rand index with their assigned topics is {agreement:.2f} (1: equal, 0: "
        "chance)."
    )
    return agreement, [Decision("clustering", "sample_agreement", round(agreement, 4), message)]


def _with_novel(
    result: TopicResult, corpus: Corpus, topics: _DocumentTopics, vectors: Mapping[int, FloatArray]
) -> TopicResult:
    """Return the result with topics of novel documents, and assign documents to them."""
    documents = corpus.distinct()
    min_size = max(FEWEST, round(RAREST * len(documents)))

    def extended(members: Int64Array, **options: Any) -> Extension:
        rows = documents.first_rows[members]
        order = np.argsort(rows)
        array = np.array([vectors[document] for document in members[order].tolist()])
        return extend(result, corpus.take(rows[order]), embeddings=array, **options)

    outside = np.array(sorted(vectors), dtype=np.int64)
    # Documents between topics, or slightly apart, are not novel: there would be hundreds of topics.
    outside = outside[(topics.labels[outside] == NOISE) & (topics.novelty[outside] > FAR)]
    if len(outside) < min_size:
        return result
    drafted = extended(outside, update_terms=False).result
    # Candidates must be as tight as most neighborhoods of the fit: a few mixed texts are as tight
    # as the loosest large topics.
    least = float(np.quantile(closeness(result.graph.similarities), LOOSEST))
    near = [one for one in find_candidates(drafted, min_size) if one.similarity >= least]
    if not near:
        return result
    # The result gets only documents of new topics: with the other outliers it would not represent
    # the collection.
    hashes = drafted.distinct.hashes
    groups = [hashes[list(one.documents)] for one in near]
    members = find_documents(documents.hashes, np.concatenate(groups))
    grown = extended(np.sort(members))
    candidates = [
        dataclasses.replace(
            candidate,
            documents=tuple(find_documents(grown.result.distinct.hashes, group).tolist()),
        )
        for candidate, group in zip(near, groups, strict=True)
    ]
    adopted = adopt_candidates(grown.result, candidates)
    judged = judge(adopted, np.array([vectors[document] for document in outside.tolist()]))
    is_new = judged.labels >= result.n_topics
    new = outside[is_new]
    topics.put(new, judged.labels[is_new], judged.shares[is_new], topics.novelty[new])
    labels = adopted.clustering.labels
    is_new = labels >= result.n_topics
    rows_of_new = find_documents(documents.hashes, adopted.distinct.hashes)[is_new]
    shares = adopted.memberships[is_new]
    topics.put(rows_of_new, labels[is_new], shares, topics.novelty[rows_of_new])
    # The history leaves out the extension by these rows, which were selected.
    return dataclasses.replace(adopted, history=(*result.history, adopted.history[-1]))
