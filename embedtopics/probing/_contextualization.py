"""Contextualization: how much the vectors of a word depend on its context, layer by layer."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from embedtopics._utils.checks import checked_count, resolve_seed
from embedtopics._utils.machine import one_blas_thread
from embedtopics.errors import InputError
from embedtopics.evaluation._bootstrap import (
    N_RESAMPLES,
    difference_of,
    estimate,
    estimate_of_counts,
    means_of_columns,
)
from embedtopics.probing._layers import Space, lengths_of, open_space
from embedtopics.probing._tables import LAYER_MEASURES, make_table
from embedtopics.probing.results import Contextualization, HiddenStates
from embedtopics.probing.words._uses import numbered, refuse_texts, types_of
from embedtopics.protocols import Float64Array, Int64Array, RandomState
from embedtopics.results import Decision

MAX_USES, N_WORDS, N_SENTENCES = 20, 1000, 1000
"""Uses of a word, words and sentences that are compared for contextualization."""


def contextualization(
    states: HiddenStates, *, min_uses: int = 5, random_state: RandomState = 0
) -> Contextualization:
    """Measure how much the vectors of a word depend on its context.

    Self-similarity is the mean cosine of two uses of a word in different sentences: 1 for static
    vectors. Intra-sentence similarity is the mean cosine of a word with the mean of its sentence.
    Both are also high if all vectors lie in a narrow cone. Hence a baseline: the mean cosine of two
    different words (anisotropy; every word has the same weight). "corrected" scores are the
    differences from it.

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

    Examples
    --------
    >>> import embedtopics as et
    >>> texts = ["The cat sat.", "The cat ran.", "The dog sat.", "The dog ran.", "A cat and a dog."]
    >>> states = et.probing.hidden_states("all-MiniLM-L6-v2", texts, show_progress=False)
    >>> context = et.probing.contextualization(states, min_uses=2)
    >>> context
    Contextualization(5 words on 7 layers, all-MiniLM-L6-v2)
    """
    refuse_texts(states)
    checked_count(min_uses, "min_uses", 2)
    seed = resolve_seed(random_state)
    sample = draw_sample(states, min_uses, seed)
    scores: list[dict[str, Any]] = []
    with one_blas_thread():
        for number in states.layers:
            scores += _scores_of(open_space(states, number), sample, seed)
    message = (
        f"{len(sample.words):,} of {sample.n_able:,} words in at least {min_uses} different "
        f"sentences, {len(sample.rows):,} uses of them, and {len(sample.sentences):,} sentences "
        "were compared."
    )
    decision = Decision("probing", "words_drawn", len(sample.words), message)
    return Contextualization(
        encoder=states.encoder,
        layers=states.layers,
        table=make_table(scores, LAYER_MEASURES),
        words=sample.words,
        n_uses=sample.counts.astype(np.int32),
        decisions=(*states.decisions, decision),
    )


class _UsesSample(NamedTuple):
    """Uses of some words, those of a word together, no two of one word in equal sentences."""

    words: tuple[str, ...]
    rows: Int64Array  # (n_uses,)
    counts: Int64Array  # (n_words,)
    sentences: list[Int64Array]  # the units of different sentences
    n_able: int  # words with enough uses


def draw_sample(states: HiddenStates, min_uses: int, seed: int) -> _UsesSample:
    """Draw words that occur in enough different sentences, uses of each, and sentences."""
    begins = np.flatnonzero(np.diff(states.sentences, prepend=-1))
    ends = np.append(begins[1:], len(states))
    sentences = [np.arange(begin, end) for begin, end in zip(begins, ends, strict=True)]
    wordings = numbered([" ".join(states.words[one[0] : one[-1] + 1]) for one in sentences])
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
    units = [one[~states.missing[one]] for one in (sentences[i] for i in order[firsts])]
    units = [one for one in units if len(one) > 1]
    if not units:
        raise InputError("states", "with a sentence of two words", found="none")
    compared = rng.choice(len(units), min(N_SENTENCES, len(units)), replace=False)
    return _UsesSample(
        words=tuple(names[word] for word in drawn.tolist()),
        rows=rows[np.concatenate(places)],
        counts=counts,
        sentences=[units[i] for i in np.sort(compared).tolist()],
        n_able=len(eligible),
    )


def _scores_of(space: Space, sample: _UsesSample, seed: int) -> list[dict[str, Any]]:
    """Return a row for each measure of a layer; intervals are over words or sentences."""
    raw = space.raw(sample.rows)
    counts = sample.counts.astype(np.float64)
    starts = np.cumsum(sample.counts) - sample.counts
    raw /= lengths_of(raw)[:, None]
    sums = np.add.reduceat(raw, starts, axis=0)
    alone = np.add.reduceat(np.einsum("ij,ij->i", raw, raw), starts)
    similarity = (np.einsum("ij,ij->i", sums, sums) - alone) / (counts * (counts - 1))
    means = sums / counts[:, None]
    between = means @ means.T
    np.fill_diagonal(between, 0.0)

    def anisotropy(times: Float64Array) -> Float64Array:
        """Return the mean cosine of two different words; NaN where one alone was drawn."""
        cosines = np.einsum("ij,ij->i", times @ between, times)
        n_pairs = len(between) ** 2 - np.square(times).sum(axis=1)
        mean = np.full(len(times), np.nan)
        np.divide(cosines, n_pairs, out=mean, where=n_pairs > 0)
        return mean

    scores = means_of_columns({"self-similarity": similarity}, seed, bounds=None)
    other = estimate_of_counts(anisotropy, len(between), N_RESAMPLES, seed, bounds=None)
    scores["anisotropy"] = other
    scores["corrected self-similarity"] = difference_of(scores["self-similarity"], other)
    # Sentences and words are resampled independently.
    name = "intra-sentence similarity"
    scores |= means_of_columns({name: _within(space, sample.sentences)}, seed + 1, bounds=None)
    value, drawn = scores[name].value - other.value, scores[name].drawn - other.drawn
    scores[f"corrected {name}"] = estimate(value, drawn, scores[name].n, bounds=None)
    return [
        {
            "measure": name,
            "layer": space.layer,
            "value": score.value,
            "low": score.low,
            "high": score.high,
            "n": score.n,
        }
        for name, score in sorted(scores.items())
    ]


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
