"""Compare a trained encoder with the one that it came from."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy.typing as npt

from embedtopics._utils.checks import checked_count, resolve_seed
from embedtopics.encoders._registry import resolve_encoder
from embedtopics.errors import InputError
from embedtopics.training import _corpus_changes as on_corpus
from embedtopics.training._examples import Examples
from embedtopics.training._figures import (
    CONFIDENCE,
    Difference,
    Embedded,
    compare_scores,
    embed,
    figures_of,
    holm,
    units_of,
)
from embedtopics.training._split import in_order
from embedtopics.training.results import Change

SCORED = ("graded", "nli", "triplets", "binary", "pairs")
"""Kinds of examples that similarities can be right or wrong about."""

FEW_UNITS = 30
"""Examples below which a note says that an interval is rough."""


@dataclass(frozen=True)
class Judged:
    """A change that may be better or worse, with its p-value."""

    change: Change
    p: float


def compare_before_after(
    before: Any,
    after: Any,
    *,
    test: Examples | Mapping[str, Examples] | None = None,
    general: Examples | Mapping[str, Examples] | None = None,
    corpus: Any = None,
    classes: str | npt.ArrayLike | None = None,
    max_documents: int = on_corpus.MOST_DOCUMENTS,
    n_resamples: int = 2000,
    random_state: Any = 0,
) -> tuple[Change, ...]:
    """Compare a trained encoder with the one that it came from, on what it did not learn from.

    Every difference has a 95 % interval, from the same examples resampled for both encoders.
    Examples that share a text, directly or by way of others, are drawn together: on the test set of
    the STS benchmark, 1,379 pairs in 1,179 groups, that makes intervals a quarter wider.

    Parameters
    ----------
    before, after : Encoder, or its name or folder
        Read with the same precision and `long_texts`; where they are not, notes say so.
    test : Examples, or mapping of name to Examples, optional
        Held out from training. Graded examples: Spearman's and Pearson's correlation of cosine and
        score. Inference: how often an entailed hypothesis is nearer to its premise than a
        contradicted one of the same premise, and of all premises (AUC). Triplets: how often the
        positive is nearer than all negatives. Binary: average precision of the cosine. Pairs: mean
        reciprocal rank of the second text among all second texts (0 behind rank 10), and how
        often it is the first. Other kinds are left out.
    general : Examples, or mapping of name to Examples, optional
        Of another domain, to see what was forgotten.
    corpus : Corpus, or what `Corpus.of` takes, optional
        How many of the ten nearest neighbors of a text stay (by chance: see the note), and how far
        topics of two runs agree: before, two runs of the encoder before training, which is what an
        encoder that does not change reaches; after, one run of each encoder.
    classes : str or array_like, optional
        Column of the corpus, or a class for each row: accuracy of the vote of the neighbors, and
        information of the topics on the classes.
    max_documents : int
        Texts of the corpus that are compared; of more, a sample.
    n_resamples : int
    random_state : int, Generator or None

    Returns
    -------
    tuple of Change
        Of test, general and corpus, in this order. "better" and "worse" only where the interval
        excludes 0, and where differences that are all due to a few examples pass an exact test,
        too. Each verdict stands for itself: among many, one in twenty differs by chance. The notes
        of those that would not survive the correction of Holm (1979) say so.

    Raises
    ------
    InputError
        Where there is nothing to compare on, all labels are equal, or an encoder does not return
        one finite vector a text.

    Notes
    -----
    Intervals are of other examples of the same kind; they do not hold that another random state of
    the training would have made another encoder.

    References
    ----------
    Efron and Tibshirani (1993), "An Introduction to the Bootstrap", chapter 8 on paired data.
    Berg-Kirkpatrick, Burkett and Klein (2012), "An Empirical Investigation of Statistical
    Significance in NLP".

    Examples
    --------
    >>> compare_before_after("all-MiniLM-L6-v2", "my-encoder", test=held_out)  # doctest: +SKIP
    """
    sets = _named(test, "test")
    for name, examples in _named(general, "general").items():
        if name in sets:
            raise InputError("general", "of other names than test", name)
        sets[name] = examples
    if test is None and general is None and corpus is None:
        raise InputError("test", "given, or general or a corpus", None)
    seed = resolve_seed(random_state)
    checked_count(n_resamples, "n_resamples", 100)
    checked_count(max_documents, "max_documents", on_corpus.GRAPH + 2)
    if classes is not None and corpus is None:
        raise InputError("corpus", "given with classes", None)
    texts = None if corpus is None else on_corpus.corpus_texts(corpus, classes, max_documents)
    columns = [column for examples in sets.values() for column in examples.columns]
    if texts is not None:
        columns.append(texts.texts)
    encoders = resolve_encoder(before), resolve_encoder(after)
    embedded = embed(encoders[0], columns, "before"), embed(encoders[1], columns, "after")
    judged: list[Judged] = []
    for task, examples in sets.items():
        judged += [
            replace(each, change=replace(each.change, n_looks=1))
            for each in _score(task, examples, embedded, n_resamples, seed)
        ]
    described: list[Change] = []
    if texts is not None:
        rows = embedded[0].of(texts.texts), embedded[1].of(texts.texts)
        described, figures = on_corpus.score_neighborhoods(rows, texts, n_resamples, seed)
        judged += [
            judge(on_corpus.TASK, metric, found, found.n_units, texts.note)
            for metric, found in figures
        ]
    unlike = _unlike(*encoders)
    return tuple(_with_note(c, unlike) for c in (*_with_multiplicity(judged), *described))


def _unlike(before: Any, after: Any) -> str:
    """Return a note where two encoders are read in different ways: no effect of training."""
    ways = [
        settings if isinstance(settings, Mapping) else {}
        for settings in (getattr(encoder, "settings", None) for encoder in (before, after))
    ]
    return " ".join(
        f"Part of the difference may come from {name.replace('_', ' ')} {ways[0][name]} before and "
        f"{ways[1][name]} after."
        for name in ("precision", "long_texts")
        if name in ways[0] and name in ways[1] and ways[0][name] != ways[1][name]
    )


def _with_note(change: Change, note: str) -> Change:
    return replace(change, note=f"{change.note} {note}".strip()) if note else change


def _named(given: Any, name: str) -> dict[str, Examples]:
    """Return the sets by name that can be scored."""
    sets = dict(given) if isinstance(given, Mapping) else {} if given is None else {name: given}
    for key, examples in sets.items():
        if not isinstance(examples, Examples):
            raise InputError(name, "Examples, or a dict of name -> Examples", examples)
        if not isinstance(key, str) or not key.strip():
            raise InputError(name, "of sets with names", key)
    return {key: each for key, each in sets.items() if each.kind in SCORED and len(each)}


def _score(
    task: str,
    examples: Examples,
    embedded: tuple[Embedded, Embedded],
    n_resamples: int,
    seed: int,
) -> list[Judged]:
    ordered = examples.take(in_order(examples))
    units, note = units_of(ordered)
    return [
        judge(task, each.metric, compare_scores(each, n_resamples, seed), len(each.before), note)
        for each in figures_of(ordered, *embedded, units)
    ]


def judge(task: str, metric: str, found: Difference, n: int, note: str) -> Judged:
    """Return a difference with its verdict, and what is to be noted of it."""
    notes = [note] if note else []
    verdict = "no difference shown"
    outside = found.low > 0 or found.high < 0
    if outside and found.p <= 1 - CONFIDENCE:
        verdict = "better" if found.low > 0 else "worse"
    elif outside and found.exact > 1 - CONFIDENCE:
        notes.append(
            f"The interval excludes 0, but the exact test on the {found.n_changed:,} of "
            f"{found.n_units:,} independent examples in which the encoders differ does not "
            f"(p = {found.exact:.3f})."
        )
    elif outside:
        notes.append("The interval excludes 0 by less than so few examples can show.")
    if math.isnan(found.before) or math.isnan(found.after):
        notes.append("An encoder gives all examples the same similarity.")
    if found.n_units == 1:
        notes.append("There is no interval from 1 independent example.")
    elif found.n_units < FEW_UNITS:
        notes.append(f"The interval is rough, from {found.n_units} independent examples.")
    elif found.n_units < n:
        notes.append(f"{found.n_units:,} groups of examples with common texts were drawn anew.")
    difference = found.after - found.before
    figures = (found.before, found.after, difference, found.low, found.high)
    return Judged(Change(task, metric, *figures, n, verdict, 0, " ".join(notes)), found.p)


def _with_multiplicity(judged: list[Judged]) -> list[Change]:
    """Note which verdicts do not outlast the correction for so many figures."""
    adjusted = holm([each.p for each in judged])
    changes = []
    for each, p in zip(judged, adjusted, strict=True):
        change = each.change
        if change.verdict != "no difference shown" and p > 1 - CONFIDENCE:
            said = (
                f"Among {len(judged)} figures this may be chance: p = {each.p:.3f}, and {p:.2f} "
                "after the correction of Holm."
            )
            change = _with_note(change, said)
        changes.append(change)
    return changes
