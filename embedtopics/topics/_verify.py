"""Verification: the texts of a study are analysed again, and compared with what was saved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_matrix

from embedtopics._utils.display import spell_count
from embedtopics._utils.fitted import FittedTopics, result_of
from embedtopics._utils.folders import MANIFEST, changed_files
from embedtopics._utils.machine import package_versions
from embedtopics.clustering.results import NOISE
from embedtopics.corpus._corpus import Corpus, as_corpus
from embedtopics.encoders._registry import GIVEN, encoder_from_settings
from embedtopics.errors import InputError
from embedtopics.protocols import Encoder, FloatArray, Int64Array
from embedtopics.results import Decision
from embedtopics.topics._describe import LEFT_OUT, TEXTS, recorded_weighting
from embedtopics.topics._model import NAMED, TopicModel
from embedtopics.topics._propagation import find_documents
from embedtopics.topics.constraints._apply import FitContext
from embedtopics.topics.editing._labels import replay
from embedtopics.topics.results import TopicConstraints, TopicResult, Verification

ROUNDING = 1e-5
"""Largest difference between entries of unit vectors, and share of the largest weight of a term,
that other processors and threads make by rounding."""

SAME, ROUNDED, DIFFERS, NOT_COMPUTED = "same bits", "within rounding", "differs", "not computed"
MOST_ROWS = 10


class Part(NamedTuple):
    """A row of the table of a `Verification`."""

    part: str
    outcome: str
    compared: int
    different: int = 0
    message: str = ""

    @classmethod
    def of(cls, part: str, compared: int, different: int, message: str = "") -> Part:
        return cls(part, DIFFERS if different else SAME, compared, different, message)


def verify(
    result: FittedTopics | str | Path,
    corpus: Any = None,
    *,
    encoder: Encoder | str | None = None,
    show_progress: bool | None = None,
) -> Verification:
    """Analyse the texts of a study again, and compare every part with what was saved.

    The texts are encoded without the cache, fitted with the recorded parameters and seed, and
    edited as the history says. A topic here is compared with that of the study which shares most
    of its texts.

    Parameters
    ----------
    result : TopicResult, fitted TopicModel, str or Path
        The study: a result, or a folder of `TopicResult.save` or of ``embedtopics topics``.
    corpus : Corpus, list of str, Series, frame or path, optional
        The texts, in the rows of the study; by default those that the folder holds.
    encoder : str or object with ``encode(texts)``, optional
        By default the encoder of the settings. Given vectors are taken as they are without it.
    show_progress : bool or None

    Returns
    -------
    Verification
        A row for each part: same bits, within rounding, or how many items differ.

    Raises
    ------
    InputError
        If the study holds no texts and none are given, if it has added texts, or if the fit used
        objects that files do not hold.

    Examples
    --------
    >>> import embedtopics as et
    >>> model = et.TopicModel("tfidf", n_topics=4).fit(et.Corpus("embedtopics:demo", limit=120))
    >>> et.topics.verify(model)
    Verification(it comes out again)
    """
    folder = Path(result) if isinstance(result, str | Path) else None
    saved = result_of(result) if folder is None else TopicResult.load(folder)
    if saved.added is not None:
        expected = "a fit without texts that extend or fit_sample added"
        raise InputError("result", expected, found=f"one with {int(saved.added.sum()):,}")
    if corpus is None and saved.settings.get(TEXTS) == LEFT_OUT:
        raise InputError("corpus", "given, because the study was saved without its texts")
    rows = saved.corpus if corpus is None else as_corpus(corpus)
    parts = [_texts(saved, rows)]
    if folder is not None and (folder / MANIFEST).is_file():
        edited = sorted(changed_files(folder))
        message = f"changed after the study was written: {', '.join(edited)}" if edited else ""
        parts.append(Part.of("files", 1, len(edited), message))
    fresh = _fitted_again(saved, rows, encoder, show_progress)
    if saved.history:
        fresh = replay(fresh, saved, missing="skip")
        skipped = [note.message for note in fresh.decisions if note.name == "replay"]
        parts.append(Part.of("edits", len(saved.history), len(skipped), " ".join(skipped)))
    pair = _Pair.of(saved, fresh)
    parts += [_vectors(pair, encoder), _neighbors(pair), _topics(pair), _names(pair), _terms(pair)]
    then, now = saved.versions, package_versions()
    versions = {name: (then.get(name, "none"), now.get(name, "none")) for name in {**then, **now}}
    changed = {name: pair for name, pair in versions.items() if pair[0] != pair[1]}
    return Verification(pd.DataFrame(parts), changed, fresh)


@dataclass(frozen=True)
class _Recorded:
    """The constraints of a study, for the same documents in another corpus."""

    constraints: TopicConstraints
    hashes: npt.NDArray[np.uint64]
    description: Mapping[str, Any]

    def prepare(self, context: FitContext) -> tuple[TopicConstraints, Sequence[Decision]]:
        places = find_documents(context.documents.hashes, self.hashes)
        inside = np.flatnonzero(places >= 0)
        return self.constraints.of(inside).among(places[inside], len(context.documents)), ()

    def describe(self) -> dict[str, Any]:
        return dict(self.description)


def _fitted_again(
    saved: TopicResult, rows: Corpus, encoder: Any, show_progress: bool | None
) -> TopicResult:
    """Fit the rows with the parameters of a study."""
    settings = saved.settings
    vectors = None
    for stage, names in NAMED.items():
        if settings.get(stage) is not None and settings[stage] not in names:
            expected = f"a fit of stages that have a name; files do not hold the {stage}"
            raise InputError("result", expected, found=settings[stage])

    if encoder is None and settings.get("encoder") == GIVEN:
        places = find_documents(saved.distinct.hashes, rows.hashes)
        if (places[rows.distinct().of_row >= 0] < 0).any():
            expected = "given, because the vectors of the study were given and these texts are new"
            raise InputError("encoder", expected)
        vectors = saved.embeddings[places]
    elif encoder is None:
        recorded = settings.get("encoder_settings")
        if not isinstance(recorded, dict):
            name = settings.get("encoder")
            expected = f"given, because that of the study ({name}) cannot be made by its name"
            raise InputError("encoder", expected)
        encoder = encoder_from_settings(recorded)

    model = TopicModel.from_result(saved, encoder=encoder).set_params(
        **settings.get("asked", {}),
        weighting=recorded_weighting(settings.get("weighting")),
        show_progress=show_progress,
    )

    if saved.constraints is not None:
        description = settings.get("constraints") or {}
        recorded_groups = _Recorded(saved.constraints, saved.distinct.hashes, description)
        model.set_params(constraints=recorded_groups)

    result: TopicResult = model.fit(rows, embeddings=vectors).result_
    return result


def _texts(saved: TopicResult, rows: Corpus) -> Part:
    """Compare the texts row by row, by their hashes."""
    n_rows = len(saved.distinct.of_row)
    if len(rows) != n_rows:
        message = f"{n_rows:,} rows in the study, {len(rows):,} here"
        return Part.of("texts", n_rows, abs(n_rows - len(rows)), message)
    then, has_text = saved.by_row(saved.distinct.hashes, 0), rows.distinct().of_row >= 0
    now = np.where(has_text[:, None], rows.hashes, np.uint64(0))
    different = np.flatnonzero((then != now).any(axis=1)).tolist()
    message = f"rows {', '.join(map(str, different[:MOST_ROWS]))}" if different else ""
    message += " ..." * (len(different) > MOST_ROWS)
    return Part.of("texts", n_rows, len(different), message)


@dataclass(frozen=True)
class _Pair:
    """A study and its repetition: the documents and the topics of both that belong together."""

    then: TopicResult
    now: TopicResult
    before: Int64Array  # (n_shared,), documents of the study
    after: Int64Array  # (n_shared,), the same in the repetition
    topic: Int64Array  # (n_topics of the repetition + 1,), topic of the study; the last is none

    @staticmethod
    def of(then: TopicResult, now: TopicResult) -> _Pair:
        places = find_documents(now.distinct.hashes, then.distinct.hashes)
        before = np.flatnonzero(places >= 0)
        after = places[before]
        labels = now.clustering.labels[after], then.clustering.labels[before]
        both = (labels[0] != NOISE) & (labels[1] != NOISE)
        shared = np.zeros((now.n_topics, then.n_topics), dtype=np.int64)
        np.add.at(shared, (labels[0][both], labels[1][both]), then.distinct.weights[before][both])
        topic = np.full(now.n_topics + 1, then.n_topics, dtype=np.int64)  # one that is not there
        first, second = linear_sum_assignment(-shared)
        topic[first], topic[-1] = second, NOISE
        return _Pair(then, now, before, after, topic)

    def topics(self) -> list[tuple[int, int]]:
        """Return the pairs of topics of both, (study, repetition)."""
        pairs = zip(self.topic[:-1].tolist(), range(self.now.n_topics), strict=True)
        return [(then, now) for then, now in pairs if then < self.then.n_topics]


def _vectors(pair: _Pair, encoder: Any) -> Part:
    then, now = pair.then.embeddings[pair.before], pair.now.embeddings[pair.after]
    if encoder is None and pair.then.settings.get("encoder") == GIVEN:
        return Part("vectors", NOT_COMPUTED, len(then), message="the vectors were given")
    if then.shape != now.shape:
        message = f"{then.shape[1]} dimensions in the study, {now.shape[1]} here"
        return Part("vectors", DIFFERS, len(then), len(then), message)
    return _compared("vectors", then, now, ROUNDING)


def _compared(name: str, then: FloatArray, now: FloatArray, tolerance: float) -> Part:
    """Compare the rows of two arrays (n, any)."""
    if np.array_equal(then, now):
        return Part(name, SAME, len(then))
    gaps = np.abs(then - now).max(axis=1, initial=0.0)
    n_different = int((gaps > tolerance).sum())
    message = f"largest difference {gaps.max():.1g}"
    return Part(name, DIFFERS if n_different else ROUNDED, len(then), n_different, message)


def _neighbors(pair: _Pair) -> Part:
    """Compare the sets of neighbors of each document."""
    here = np.full(len(pair.then.distinct), NOISE, dtype=np.int64)
    here[pair.before] = pair.after
    then = np.sort(here[pair.then.graph.indices[pair.before]], axis=1)
    now = np.sort(pair.now.graph.indices[pair.after], axis=1)
    is_same = then.shape == now.shape and (then == now).all(axis=1)
    return Part.of("neighbors", len(then), len(then) - int(np.sum(is_same)))


def _topics(pair: _Pair) -> Part:
    """Compare the topic of each text; those that differ have a margin to the next topic."""
    weights = pair.then.distinct.weights[pair.before]
    then = pair.then.clustering.labels[pair.before]
    differs = then != pair.topic[pair.now.clustering.labels[pair.after]]
    n_texts, n_different = int(weights.sum()), int(weights[differs].sum())
    message = ""
    if pair.then.n_topics != pair.now.n_topics:
        message = f"{pair.then.n_topics} topics in the study, {pair.now.n_topics} here"
    elif n_different:
        rows = pair.before[differs]
        none = pair.then.none_shares[rows, None]
        shares = np.sort(np.hstack([pair.then.memberships[rows].toarray(), none]), axis=1)
        widest = float((shares[:, -1] - shares[:, -2]).max())
        message = f"all within {max(widest, 0.001):.3f} of a border"
    outcome = DIFFERS if n_different or pair.then.n_topics != pair.now.n_topics else SAME
    return Part("topics", outcome, n_texts, n_different, message)


def _names(pair: _Pair) -> Part:
    """Compare the labels and keywords of topics."""
    changed, pairs = [], pair.topics()
    for before, after in pairs:
        then, now = pair.then.topics[before], pair.now.topics[after]
        if then.name != now.name:
            changed.append(f"{then.name!r} is {now.name!r}")
        elif then.keywords != now.keywords:
            changed.append(f"other keywords of {then.name!r}")
    message = "; ".join(changed[:3]) + "; ..." * (len(changed) > 3)
    return Part.of("names", len(pairs), len(changed), message)


def _terms(pair: _Pair) -> Part:
    """Compare the weights of the terms of each topic."""
    places = {term: place for place, term in enumerate(pair.then.term_counts.terms)}
    terms = pair.now.term_counts.terms
    if set(terms) != places.keys():
        n_different = len(set(terms) ^ places.keys())
        message = f"{spell_count(n_different, 'term is', 'terms are')} in one of both alone"
        return Part("terms", DIFFERS, len(places), n_different, message)
    pairs = np.array(pair.topics(), dtype=np.int64).reshape(-1, 2)
    order = np.array([places[term] for term in terms], dtype=np.int64)
    then: csr_matrix = pair.then.topic_terms[pairs[:, 0]][:, order]
    now = pair.now.topic_terms[pairs[:, 1]]
    largest = max(float(then.max()), 1e-12) if len(pairs) else 1.0
    return _compared("terms", then.toarray(), now.toarray(), ROUNDING * largest)
