"""Contextualization: how much the vectors of a word depend on its context, layer by layer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from embedtopics._utils.checks import checked_count, resolve_seed
from embedtopics._utils.machine import one_blas_thread
from embedtopics.decisions import Decision
from embedtopics.errors import InputError
from embedtopics.evaluation._bootstrap import interval, resampled_counts
from embedtopics.probing._layers import Space, lengths_of, open_space
from embedtopics.probing.results import Contextualization, GeometryScore, HiddenStates
from embedtopics.probing.words._uses import numbered, refuse_texts, types_of
from embedtopics.protocols import Float64Array, Int64Array, RandomState

MAX_USES, N_WORDS, N_SENTENCES = 20, 1000, 1000
"""Uses of a word, words and sentences that are compared for contextualization."""


@dataclass(frozen=True, eq=False)
class UsesSample:
    """Uses of some words, those of a word together, no two of one word in equal sentences."""

    words: tuple[str, ...]
    rows: Int64Array  # (n_uses,)
    counts: Int64Array  # (n_words,)
    random: Int64Array  # (n_uses,), as many uses drawn from all words
    sentences: list[Int64Array]  # the units of different sentences
    n_able: int  # words with enough uses


def draw_sample(states: HiddenStates, min_uses: int, seed: int) -> UsesSample:
    """UsesSample words that occur in enough different sentences, uses of each, and sentences."""
    begins = np.flatnonzero(np.diff(states.sentences, prepend=-1))
    ends = np.append(begins[1:], len(states))
    bounds = list(zip(begins.tolist(), ends.tolist(), strict=True))
    wordings = numbered([" ".join(states.words[begin:end]) for begin, end in bounds])
    wording = np.repeat(wordings, ends - begins)
    text = numbered(states.texts)[states.of_text]
    names, types = types_of(states)
    has_letter = np.array([any(map(str.isalpha, name)) for name in names], dtype=bool)
    rows = np.flatnonzero(~states.missing & has_letter[types])
    rows = rows[np.lexsort((states.position[rows], text[rows], wording[rows], types[rows]))]
    # Of uses in equal sentences, which are adjacent, the first.
    keys = np.stack([types[rows], wording[rows]])
    rows = rows[(np.diff(keys, axis=1, prepend=-1) != 0).any(axis=0)]
    n_uses = np.bincount(types[rows], minlength=len(names))
    eligible = np.flatnonzero(n_uses >= min_uses)
    if len(eligible) < 2:
        raise InputError("min_uses", "reached by at least two words", min_uses)
    rng = np.random.default_rng(seed)
    drawn = np.sort(rng.choice(eligible, min(N_WORDS, len(eligible)), replace=False))
    counts = np.minimum(n_uses[drawn], MAX_USES)
    first_use = np.searchsorted(types[rows], drawn)
    places = [
        begin + np.sort(rng.choice(n, n_drawn, replace=False))
        for begin, n, n_drawn in zip(first_use, n_uses[drawn], counts, strict=True)
    ]
    order = np.lexsort((text[begins], wordings))
    _, firsts = np.unique(wordings[order], return_index=True)
    units = [np.arange(*bounds[which]) for which in order[firsts].tolist()]
    units = [one for one in (one[~states.missing[one]] for one in units) if len(one) > 1]
    if not units:
        raise InputError("states", "with a sentence of two words", found="none")
    chosen = rng.choice(len(units), min(N_SENTENCES, len(units)), replace=False)
    return UsesSample(
        words=tuple(names[word] for word in drawn.tolist()),
        rows=rows[np.concatenate(places)],
        counts=counts,
        random=np.concatenate([rng.choice(counts.sum(), n, replace=False) for n in counts]),
        sentences=[units[which] for which in np.sort(chosen).tolist()],
        n_able=len(eligible),
    )


def contextualization(
    states: HiddenStates,
    *,
    min_uses: int = 5,
    random_state: RandomState = 0,
) -> Contextualization:
    """Measure how much the vectors of a word depend on its context.

    Self-similarity is the mean cosine of two uses of a word in different sentences: 1 for static
    vectors. Intra-sentence similarity is the mean cosine of a word with the mean of its sentence.
    Maximum explainable variance is the share of the first squared singular value of the uses of a
    word. All three are also high if all vectors lie in a narrow cone. Hence two baselines: the
    mean cosine of two different words (anisotropy; every word has the same weight), and the maximum
    explainable variance of as many uses drawn from all words. "corrected" scores are the
    differences from the baselines.

    Parameters
    ----------
    states : HiddenStates
        States of words or tokens, in sentences.
    min_uses : int
        Number of different sentences in which a word must occur. Sentences with the same wording
        are one context. Words without a letter are left out. At most 20 uses of a word, 1,000
        words and 1,000 sentences are compared.
    random_state : int, Generator or None

    Returns
    -------
    Contextualization

    Raises
    ------
    InputError
        If fewer than two words occur in `min_uses` sentences.

    References
    ----------
    Ethayarajh (2019), "How contextual are contextualized word representations?", section 3.
    """
    refuse_texts(states)
    checked_count(min_uses, "min_uses", 2)
    seed = resolve_seed(random_state)
    sample = draw_sample(states, min_uses, seed)
    scores, similarity, explainable = [], [], []
    with one_blas_thread():
        for number in states.layers:
            measures = _measure(open_space(states, number), sample)
            scores += _scores(number, measures, seed)
            similarity.append(measures.similarity)
            explainable.append(measures.explainable)
    message = (
        f"{len(sample.words):,} of {sample.n_able:,} words in at least {min_uses} different "
        f"sentences, {len(sample.rows):,} uses of them, and {len(sample.sentences):,} sentences "
        "were compared."
    )
    decision = Decision("probing", "words_drawn", len(sample.words), message)
    return Contextualization(
        encoder=states.encoder,
        layers=states.layers,
        rows=tuple(scores),
        words=sample.words,
        n_uses=sample.counts.astype(np.int32),
        self_similarity=np.array(similarity),
        explainable=np.array(explainable),
        decisions=(*states.decisions, decision),
    )


@dataclass(frozen=True, eq=False)
class _Measured:
    """Of one layer: of each word, of each two words, and of each sentence."""

    similarity: Float64Array
    explainable: Float64Array
    chance: Float64Array
    between: Float64Array
    within_sentence: Float64Array


def _measure(space: Space, sample: UsesSample) -> _Measured:
    raw = space.raw(sample.rows)
    counts = sample.counts.astype(np.float64)
    ends = np.cumsum(sample.counts)
    starts = ends - sample.counts
    explainable = _first_shares(raw, starts, ends)
    chance = _first_shares(raw[sample.random], starts, ends)
    raw /= lengths_of(raw)[:, None]
    sums = np.add.reduceat(raw, starts, axis=0)
    alone = np.add.reduceat(np.einsum("ij,ij->i", raw, raw), starts)
    similarity = (np.einsum("ij,ij->i", sums, sums) - alone) / (counts * (counts - 1))
    means = sums / counts[:, None]
    between = means @ means.T
    np.fill_diagonal(between, 0.0)
    return _Measured(similarity, explainable, chance, between, _within(space, sample.sentences))


def _first_shares(raw: Float64Array, starts: Int64Array, ends: Int64Array) -> Float64Array:
    """Return the share of the largest squared singular value of each stretch of rows."""
    shares = np.full(len(starts), np.nan)
    for i, (begin, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
        gram = raw[begin:end] @ raw[begin:end].T
        total = float(np.trace(gram))
        if total > 0:
            shares[i] = float(np.linalg.eigvalsh(gram)[-1]) / total
    return shares


def _within(space: Space, sentences: list[Int64Array]) -> Float64Array:
    """Return the mean cosine of the words of each sentence with their mean."""
    cosine_means = np.empty(len(sentences))
    for i, rows in enumerate(sentences):
        raw = space.raw(rows)
        mean = raw.mean(axis=0)
        lengths = np.sqrt(np.einsum("ij,ij->i", raw, raw) * np.einsum("j,j->", mean, mean))
        cosines = np.einsum("ij,j->i", raw, mean)
        cosine_means[i] = np.mean(cosines / np.where(lengths > 0, lengths, 1.0))
    return cosine_means


def _scores(layer: int, measures: _Measured, seed: int) -> list[GeometryScore]:
    n_words, n_sentences = len(measures.similarity), len(measures.within_sentence)
    once = np.ones((1, n_words))
    drawn: dict[str, list[Float64Array]] = {}
    for times in (once, *resampled_counts(n_words, seed=seed)):
        for name, figures in _of_words(measures, times).items():
            drawn.setdefault(name, []).append(figures)
    joined = {name: np.concatenate(parts) for name, parts in drawn.items()}
    # Sentences and words are resampled independently.
    of_sentences = [
        times @ measures.within_sentence / n_sentences
        for times in resampled_counts(n_sentences, seed=seed + 1)
    ]
    name = "intra-sentence similarity"
    joined[name] = np.concatenate([[measures.within_sentence.mean()], *of_sentences])
    joined[f"corrected {name}"] = joined[name] - joined["anisotropy"]
    scores = []
    for name in sorted(joined):
        n = n_sentences if "sentence" in name else n_words
        value, (low, high) = float(joined[name][0]), map(float, interval(joined[name][1:], n))
        scores.append(GeometryScore(name, layer, value, low, high, n))
    return scores


def _of_words(measures: _Measured, times: Float64Array) -> dict[str, Float64Array]:
    """Return the scores over resampled words, each of shape (n_resamples,)."""
    pairs = np.square(times.sum(axis=1)) - np.square(times).sum(axis=1)
    anisotropy = np.full(len(times), np.nan)
    between = np.einsum("ij,ij->i", times @ measures.between, times)
    np.divide(between, pairs, out=anisotropy, where=pairs > 1e-9)
    similarity = times @ measures.similarity / times.sum(axis=1)
    is_defined = ~np.isnan(measures.explainable) & ~np.isnan(measures.chance)
    explainable, chance = (
        times[:, is_defined] @ one[is_defined] / np.maximum(times[:, is_defined].sum(axis=1), 1)
        for one in (measures.explainable, measures.chance)
    )
    return {
        "self-similarity": similarity,
        "anisotropy": anisotropy,
        "corrected self-similarity": similarity - anisotropy,
        "maximum explainable variance": explainable,
        "chance variance": chance,
        "corrected maximum explainable variance": explainable - chance,
    }
