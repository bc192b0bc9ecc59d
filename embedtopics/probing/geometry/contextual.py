"""How much the vectors of a word depend on its context, layer by layer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from embedtopics._checks import checked_count
from embedtopics.errors import InputError
from embedtopics.evaluation import interval, resampled_counts
from embedtopics.probing.combining import chosen_layers
from embedtopics.probing.geometry.sampling import (
    DrawnUses,
    contexts_of,
    draw_sentences,
    draw_uses,
    in_one_sentence,
)
from embedtopics.probing.spaces import Space, blocks, open_space
from embedtopics.probing.words.finding import refuse_texts
from embedtopics.protocols import Int64Array
from embedtopics.results import Contextualization, Decision, GeometryScore, HiddenStates

__all__ = ["contextualization"]

Float64Array = npt.NDArray[np.float64]

PAIRS_AT_ONCE = 50_000


def contextualization(
    states: HiddenStates,
    *,
    layers: int | str | Sequence[int] = "all",
    min_uses: int = 5,
    max_uses: int = 20,
    n_words: int = 1000,
    n_sentences: int = 1000,
    n_resamples: int = 1000,
    match_case: bool = False,
    seed: int = 0,
) -> Contextualization:
    """Measure how much the vectors of a word depend on its context.

    Self-similarity is the mean cosine of two uses of a word in different sentences: 1 for static
    vectors. Intra-sentence similarity is the mean cosine of a word with the mean of its sentence.
    Maximum explainable variance is the share of the squared singular values of the uses of a word
    that is the first one's: how much one static vector could tell of them. All three are high as
    well where all vectors lie in one narrow cone; the baselines are the mean cosine of different
    words in different sentences, and the maximum explainable variance of as many uses drawn from
    all words. "corrected" figures are the differences.

    The anisotropy is that of all pairs of the uses that were drawn, each word counting the same.
    The baseline of the explainable variance is drawn at the number of uses of each word, since the
    figure is never below one over that number.

    Parameters
    ----------
    states : HiddenStates
        Of words or tokens, in sentences.
    layers : int, sequence of int, "all" or "last N"
    min_uses, max_uses : int
        Different sentences that a word must stand in, and uses of it that are looked at. Sentences
        of the same wording are one context. Words without a letter are left out.
    n_words, n_sentences : int
        That are drawn, where there are more. Memory grows with the square of `n_words`.
    n_resamples : int
        Of the intervals, over words (over sentences, for the intra-sentence similarity).
    match_case : bool
    seed : int

    Returns
    -------
    Contextualization

    Raises
    ------
    InputError
        If fewer than two words stand in so many sentences.

    References
    ----------
    Ethayarajh (2019), "How contextual are contextualized word representations?", section 3.
    """
    from threadpoolctl import threadpool_limits

    refuse_texts(states)
    checked_count(min_uses, "min_uses", 2)
    checked_count(max_uses, "max_uses", min_uses)
    checked_count(n_words, "n_words", 2)
    checked_count(n_sentences, "n_sentences")
    checked_count(n_resamples, "n_resamples")
    numbers = chosen_layers(states, layers)
    contexts = contexts_of(states)
    uses = draw_uses(
        states, contexts, min_uses=min_uses, max_uses=max_uses, n_words=n_words,
        match_case=match_case, seed=seed,
    )  # fmt: skip
    sentences = draw_sentences(states, contexts, n_sentences, seed)
    if len(uses.rows) == 0 or not sentences:
        raise InputError("expected at least one sentence of two words")
    plan = _plan(states, uses, sentences, seed)
    scores, similarity, explainable = [], [], []
    # On one thread: the order in which BLAS sums depends on how many it has.
    with threadpool_limits(limits=1, user_api="blas"):
        for number in numbers:
            measured = _measure(open_space(states, number), plan)
            scores += _scores(number, measured, plan, n_resamples, seed)
            similarity.append(measured.similarity)
            explainable.append(measured.explainable)
    decision = Decision(
        "probing", "words_drawn", len(uses.words),
        f"{len(uses.words):,} of {uses.n_able:,} words in at least {min_uses} different sentences, "
        f"{len(uses.rows):,} uses of them, and {len(sentences):,} sentences were looked at.",
    )  # fmt: skip
    return Contextualization(
        states.encoder, numbers, tuple(scores), uses.words, uses.counts.astype(np.int32),
        np.array(similarity), np.array(explainable), (*states.decisions, decision),
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Plan:
    """What is looked at, the same at every layer.

    `apart` counts, for each pair of words, the share of the pairs of their uses that stand in
    different sentences; `pairs` are those that do not.
    """

    uses: DrawnUses
    of_word: Int64Array
    pairs: Int64Array
    apart: Float64Array
    random: Int64Array
    sentences: list[Int64Array]


@dataclass(frozen=True, eq=False)
class _Measured:
    """Of one layer: of each word, of each two words, and of each sentence."""

    similarity: Float64Array
    explainable: Float64Array
    chance: Float64Array
    between: Float64Array
    within_sentence: Float64Array


def _plan(
    states: HiddenStates, uses: DrawnUses, sentences: list[Int64Array], seed: int
) -> _Plan:  # fmt: skip
    n_words = len(uses.words)
    of_word = np.repeat(np.arange(n_words), uses.counts)
    pairs = in_one_sentence(states, uses.rows)
    apart = np.ones((n_words, n_words))
    weights = 1 / (uses.counts[of_word[pairs[:, 0]]] * uses.counts[of_word[pairs[:, 1]]])
    np.subtract.at(apart, (of_word[pairs[:, 0]], of_word[pairs[:, 1]]), weights)
    np.fill_diagonal(apart, 0.0)
    rng = np.random.default_rng([seed, 2])
    random = [rng.choice(len(uses.rows), n, replace=False) for n in uses.counts.tolist()]
    return _Plan(uses, of_word, pairs, apart, np.concatenate(random), sentences)


def _measure(space: Space, plan: _Plan) -> _Measured:
    raw = space.raw(plan.uses.rows)
    starts, counts = plan.uses.starts, plan.uses.counts.astype(np.float64)
    ends = starts + plan.uses.counts
    explainable = _first_shares(raw, starts, ends)
    chance = _first_shares(raw[plan.random], starts, ends)
    lengths = np.sqrt(np.einsum("ij,ij->i", raw, raw))
    raw /= np.where(lengths > 0, lengths, 1.0)[:, None]
    sums = np.add.reduceat(raw, starts, axis=0)
    alone = np.add.reduceat(np.einsum("ij,ij->i", raw, raw), starts)
    similarity = (np.einsum("ij,ij->i", sums, sums) - alone) / (counts * (counts - 1))
    means = sums / counts[:, None]
    between = means @ means.T
    for part in blocks(len(plan.pairs), PAIRS_AT_ONCE):
        one, other = plan.pairs[part].T
        words = plan.of_word[one], plan.of_word[other]
        cosines = np.einsum("ij,ij->i", raw[one], raw[other])
        np.subtract.at(between, words, cosines / (counts[words[0]] * counts[words[1]]))
    np.fill_diagonal(between, 0.0)
    return _Measured(similarity, explainable, chance, between, _within(space, plan.sentences))


def _first_shares(raw: Float64Array, starts: Int64Array, ends: Int64Array) -> Float64Array:
    """Return the share of the largest squared singular value of each stretch of rows."""
    found = np.full(len(starts), np.nan)
    for i, (begin, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
        gram = raw[begin:end] @ raw[begin:end].T
        total = float(np.trace(gram))
        if total > 0:
            found[i] = float(np.linalg.eigvalsh(gram)[-1]) / total
    return found


def _within(space: Space, sentences: list[Int64Array]) -> Float64Array:
    """Return the mean cosine of the words of each sentence with their mean."""
    found = np.empty(len(sentences))
    for i, rows in enumerate(sentences):
        raw = space.raw(rows)
        mean = raw.mean(axis=0)
        lengths = np.sqrt(np.einsum("ij,ij->i", raw, raw) * np.einsum("j,j->", mean, mean))
        cosines = np.einsum("ij,j->i", raw, mean)
        found[i] = np.mean(cosines / np.where(lengths > 0, lengths, 1.0))
    return found


def _scores(
    layer: int, measured: _Measured, plan: _Plan, n_resamples: int, seed: int
) -> list[GeometryScore]:
    """Return all figures of a layer, from one set of resamples."""
    n_words, n_sentences = len(plan.uses.words), len(plan.sentences)
    once = np.ones((1, n_words))
    drawn: dict[str, list[Float64Array]] = {}
    for times in (once, *resampled_counts(n_words, n_resamples, seed)):
        for name, figures in _of_words(measured, plan, times).items():
            drawn.setdefault(name, []).append(figures)
    joined = {name: np.concatenate(parts) for name, parts in drawn.items()}
    # Sentences and words are drawn apart from one another.
    of_sentences = [
        times @ measured.within_sentence / n_sentences
        for times in resampled_counts(n_sentences, n_resamples, seed + 1)
    ]
    name = "intra-sentence similarity"
    joined[name] = np.concatenate([[measured.within_sentence.mean()], *of_sentences])
    joined[f"corrected {name}"] = joined[name] - joined["anisotropy"]
    scores = []
    for name in sorted(joined):
        low, high = interval(joined[name][1:])
        n = n_sentences if "sentence" in name else n_words
        scores.append(
            GeometryScore(name, layer, float(joined[name][0]), float(low), float(high), n)
        )
    return scores


def _of_words(measured: _Measured, plan: _Plan, times: Float64Array) -> dict[str, Float64Array]:
    """Return the figures over words that count so often, each of shape (n_resamples,)."""
    pairs = np.einsum("ij,ij->i", times @ plan.apart, times)
    anisotropy = np.full(len(times), np.nan)
    np.divide(
        np.einsum("ij,ij->i", times @ measured.between, times), pairs,
        out=anisotropy, where=pairs > 1e-9,
    )  # fmt: skip
    similarity = times @ measured.similarity / times.sum(axis=1)
    known = ~np.isnan(measured.explainable) & ~np.isnan(measured.chance)
    explainable, chance = (
        times[:, known] @ one[known] / np.maximum(times[:, known].sum(axis=1), 1)
        for one in (measured.explainable, measured.chance)
    )
    return {
        "self-similarity": similarity,
        "anisotropy": anisotropy,
        "corrected self-similarity": similarity - anisotropy,
        "maximum explainable variance": explainable,
        "chance variance": chance,
        "corrected maximum explainable variance": explainable - chance,
    }
