"""Contextualization: how much the vectors of a word depend on its context, layer by layer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from embedtopics._utils.checks import checked_count, resolve_seed
from embedtopics._utils.machine import one_blas_thread
from embedtopics.decisions import Decision
from embedtopics.errors import InputError
from embedtopics.evaluation._bootstrap import interval, resampled_counts
from embedtopics.probing._layers import Space, blocks, lengths_of, open_space
from embedtopics.probing.results import Contextualization, GeometryScore, HiddenStates
from embedtopics.probing.words._uses import refuse_texts, types_of
from embedtopics.protocols import Float64Array, Int64Array, RandomState

MAX_USES, N_WORDS, N_SENTENCES = 20, 1000, 1000
"""Uses of a word, words and sentences that are compared for contextualization."""

PAIRS_AT_ONCE = 50_000

Contexts = tuple[Int64Array, Int64Array]
"""The rank of each sentence by its content, and the number of its wording."""


@dataclass(frozen=True, eq=False)
class DrawnUses:
    """Uses of some words, those of a word together, no two of one word in equal sentences."""

    words: tuple[str, ...]
    rows: Int64Array
    starts: Int64Array
    counts: Int64Array
    n_able: int


def contexts_of(states: HiddenStates) -> Contexts:
    """Return the contexts of all sentences, by their numbers."""
    numbers, first = np.unique(states.sentences, return_index=True)
    texts = states.of_text[first]
    is_first = np.diff(texts, prepend=-1) > 0
    begins = np.where(is_first, 0, states.spans[first, 0]).tolist()
    # A sentence ends where the next one of its text begins.
    ends = [None if new else begin for new, begin in zip(is_first[1:], begins[1:], strict=True)]
    wordings = [
        states.texts[text][begin:end].strip()
        for text, begin, end in zip(texts.tolist(), begins, [*ends, None], strict=True)
    ]
    order = sorted(range(len(numbers)), key=lambda i: (wordings[i], states.texts[texts[i]], i))
    names = {wording: number for number, wording in enumerate(sorted(set(wordings)))}
    size = int(numbers[-1]) + 1 if len(numbers) else 0
    rank, content = np.zeros(size, dtype=np.int64), np.full(size, -1, dtype=np.int64)
    rank[numbers[order]] = np.arange(len(numbers))
    content[numbers] = [names[wording] for wording in wordings]
    return rank, content


def draw_uses(
    states: HiddenStates,
    contexts: Contexts,
    *,
    min_uses: int,
    seed: int,
) -> DrawnUses:
    """Sample words that occur in enough different sentences, and uses of each."""
    names, types = types_of(states)
    has_letter = np.array([any(map(str.isalpha, name)) for name in names], dtype=bool)
    rows = np.flatnonzero(~states.missing & has_letter[types])
    sentences = states.sentences[rows]
    rank, content = contexts
    rows = rows[np.lexsort((states.position[rows], rank[sentences], types[rows]))]
    # Of uses in equal sentences, which are adjacent, the first.
    keys = np.stack([types[rows], content[states.sentences[rows]]])
    rows = rows[(np.diff(keys, axis=1, prepend=-1) != 0).any(axis=0)]
    counts = np.bincount(types[rows], minlength=len(names))
    eligible = np.flatnonzero(counts >= min_uses)
    if len(eligible) < 2:
        raise InputError("min_uses", "reached by at least two words", min_uses)
    rng = np.random.default_rng(seed)
    drawn = np.sort(rng.choice(eligible, min(N_WORDS, len(eligible)), replace=False))
    begins = np.searchsorted(types[rows], drawn)
    rows_by_word = []
    for begin, count in zip(begins.tolist(), counts[drawn].tolist(), strict=True):
        places = np.arange(count)
        if count > MAX_USES:
            places = np.sort(rng.choice(count, MAX_USES, replace=False))
        rows_by_word.append(rows[begin + places])
    sizes = np.array([len(one) for one in rows_by_word], dtype=np.int64)
    return DrawnUses(
        tuple(names[i] for i in drawn.tolist()),
        np.concatenate(rows_by_word),
        np.cumsum(sizes) - sizes,
        sizes,
        len(eligible),
    )


def draw_sentences(states: HiddenStates, contexts: Contexts, seed: int) -> list[Int64Array]:
    """Return the units of some different sentences, each of two units or more."""
    rows = np.flatnonzero(~states.missing)
    sentences = states.sentences[rows]
    numbers, starts, sizes = np.unique(sentences, return_index=True, return_counts=True)
    eligible = np.flatnonzero(sizes >= 2)
    rank, content = contexts
    eligible = eligible[np.argsort(rank[numbers[eligible]], kind="stable")]
    _, first = np.unique(content[numbers[eligible]], return_index=True)
    eligible = eligible[np.sort(first)]
    rng = np.random.default_rng([seed, 1])
    drawn = np.sort(rng.choice(len(eligible), min(N_SENTENCES, len(eligible)), replace=False))
    return [rows[starts[i] : starts[i] + sizes[i]] for i in eligible[drawn].tolist()]


def in_one_sentence(states: HiddenStates, rows: Int64Array) -> Int64Array:
    """Return all ordered pairs of different places in `rows` in the same sentence, shape (n, 2)."""
    order = np.argsort(states.sentences[rows], kind="stable")
    _, starts, sizes = np.unique(
        states.sentences[rows][order], return_index=True, return_counts=True
    )
    pairs = []
    for size in np.unique(sizes[sizes > 1]).tolist():
        places = order[starts[sizes == size][:, None] + np.arange(size)]
        one, other = np.nonzero(~np.eye(size, dtype=bool))
        pairs.append(np.stack([places[:, one].ravel(), places[:, other].ravel()], axis=1))
    return np.concatenate(pairs) if pairs else np.empty((0, 2), dtype=np.int64)


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
    mean cosine of different words in different sentences (anisotropy; every word has the same
    weight), and the maximum explainable variance of as many uses drawn from all words. "corrected"
    scores are the differences from the baselines.

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
    contexts = contexts_of(states)
    uses = draw_uses(states, contexts, min_uses=min_uses, seed=seed)
    sentences = draw_sentences(states, contexts, seed)
    if len(uses.rows) == 0 or not sentences:
        raise InputError("states", "with a sentence of two words", found="none")
    plan = _plan(states, uses, sentences, seed)
    scores, similarity, explainable = [], [], []
    with one_blas_thread():
        for number in states.layers:
            measures = _measure(open_space(states, number), plan)
            scores += _scores(number, measures, plan, seed)
            similarity.append(measures.similarity)
            explainable.append(measures.explainable)
    message = (
        f"{len(uses.words):,} of {uses.n_able:,} words in at least {min_uses} different sentences, "
        f"{len(uses.rows):,} uses of them, and {len(sentences):,} sentences were compared."
    )
    decision = Decision("probing", "words_drawn", len(uses.words), message)
    return Contextualization(
        encoder=states.encoder,
        layers=states.layers,
        rows=tuple(scores),
        words=uses.words,
        n_uses=uses.counts.astype(np.int32),
        self_similarity=np.array(similarity),
        explainable=np.array(explainable),
        decisions=(*states.decisions, decision),
    )


@dataclass(frozen=True, eq=False)
class _Plan:
    """The samples that are measured at every layer."""

    uses: DrawnUses
    of_word: Int64Array  # (n_uses,), the word of each
    pairs: Int64Array  # (n_pairs, 2), uses of two words in one sentence
    apart: Float64Array  # (n_words, n_words), share of the pairs in different sentences
    random: Int64Array  # (n_uses,), as many uses drawn from all words
    sentences: list[Int64Array]


@dataclass(frozen=True, eq=False)
class _Measured:
    """Of one layer: of each word, of each two words, and of each sentence."""

    similarity: Float64Array
    explainable: Float64Array
    chance: Float64Array
    between: Float64Array
    within_sentence: Float64Array


def _plan(states: HiddenStates, uses: DrawnUses, sentences: list[Int64Array], seed: int) -> _Plan:
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
    raw /= lengths_of(raw)[:, None]
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


def _scores(layer: int, measures: _Measured, plan: _Plan, seed: int) -> list[GeometryScore]:
    n_words, n_sentences = len(plan.uses.words), len(plan.sentences)
    once = np.ones((1, n_words))
    drawn: dict[str, list[Float64Array]] = {}
    for times in (once, *resampled_counts(n_words, seed=seed)):
        for name, figures in _of_words(measures, plan, times).items():
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


def _of_words(measures: _Measured, plan: _Plan, times: Float64Array) -> dict[str, Float64Array]:
    """Return the scores over resampled words, each of shape (n_resamples,)."""
    pairs = np.einsum("ij,ij->i", times @ plan.apart, times)
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
