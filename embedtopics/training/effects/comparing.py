"""The tuned encoder beside the one that it came from."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

import numpy as np
import numpy.typing as npt

from embedtopics._checks import checked_count
from embedtopics.encoders import resolve_encoder
from embedtopics.errors import InputError
from embedtopics.protocols import Int64Array
from embedtopics.results import Change
from embedtopics.training.effects import on_corpus
from embedtopics.training.effects.embedding import Embedded, embed
from embedtopics.training.effects.intervals import CONFIDENCE, Difference, compare_scores, holm
from embedtopics.training.effects.looks import add_look
from embedtopics.training.effects.scoring import SCORED, figures_of, in_order, units_of
from embedtopics.training.examples import Examples

__all__ = ["Judged", "compare_before_after", "judge"]

FEW_UNITS = 30
"""Examples below which a note says that an interval is rough."""

Register = str | os.PathLike[str] | None


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
    units: str | npt.ArrayLike | None = "texts",
    max_documents: int = on_corpus.MOST_DOCUMENTS,
    n_resamples: int = 2000,
    seed: int = 0,
    count_looks: bool = True,
    register: Register = None,
) -> tuple[Change, ...]:
    """Compare a tuned encoder with the one that it came from, on what it did not learn from.

    Did training help where it should, did the encoder forget what it knew, and what becomes of the
    neighbours and topics of one's own texts? Every difference has a 95 % interval, from the same
    examples drawn anew for both encoders.

    Parameters
    ----------
    before, after : Encoder, or its name or folder
        Read alike, with the same precision and `long_texts`; where they are not, notes say so.
    test : Examples, or mapping of name to Examples, optional
        Held out from training. Graded examples: Spearman's and Pearson's correlation of cosine and
        score. Inference: how often an entailed hypothesis is nearer to its premise than a
        contradicted one of the same premise, and of all premises (AUC). Triplets: how often the
        positive is nearer than all negatives. Binary: average precision of the cosine. Pairs: mean
        reciprocal rank of the second text among all second texts (0 behind rank 10), and how
        often it is the first. Of other kinds nothing can be told.
    general : Examples, or mapping of name to Examples, optional
        Of another field, such as a benchmark of similarity, to see what was forgotten.
    corpus : Corpus, or what `Corpus.of` reads, optional
        How many of the ten nearest neighbours of a text stay (by chance: see the note), and how
        far topics of two runs agree: before, two runs of the encoder before training, which is
        what an encoder that does not change reaches; after, one run of each encoder.
    classes : str or array_like, optional
        Column of the corpus, or a class for each row: how well the neighbours of a text vote on
        its class, and how much the topics tell of the classes.
    units : {"texts"}, array_like of shape (n,), or None
        What is drawn anew: by default all examples that share a text, directly or by way of
        others, are drawn together, since they are right or wrong together: on the test set of
        the STS benchmark, 1,379 pairs in 1,179 groups, that makes intervals a quarter wider. None
        draws each example alone; an array says which examples of `test`, a single set, belong
        together.
    max_documents : int
        Texts of the corpus that are looked at; of more, a sample.
    n_resamples : int
    seed : int
    count_looks : bool
        Whether `Change.n_looks` counts how often examples were scored, on disk: who tries until
        a test says yes has trained for the test.
    register : path, optional
        Where looks are counted; by default the cache folder.

    Returns
    -------
    tuple of Change
        Of test, general and corpus, in this order. "better" and "worse" only where the interval
        leaves 0 out, and where differences that are all due to a few examples pass an exact test,
        too. Each verdict stands for itself: among many, one in twenty differs by chance. Where one
        would not outlast the correction of Holm (1979) for all figures of the call, its
        note says so.

    Raises
    ------
    InputError
        Where there is nothing to compare on, labels leave nothing to tell, or an encoder does not
        return one finite vector a text.

    Notes
    -----
    Intervals are of other examples of the same kind, drawn as these were; they do not hold that
    another seed of the training would have made another encoder.

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
            raise InputError(f"two sets have the name {name!r}; give them different ones")
        sets[name] = examples
    if test is None and general is None and corpus is None:
        raise InputError("expected test, general or a corpus to compare on; got none of them")
    _check(sets, corpus, classes, units, n_resamples, max_documents, seed)
    texts = None if corpus is None else on_corpus.corpus_texts(corpus, classes, max_documents)
    columns = [column for examples in sets.values() for column in examples.columns]
    if texts is not None:
        columns.append(texts.texts)
    encoders = resolve_encoder(before), resolve_encoder(after)
    embedded = embed(encoders[0], columns, "before"), embed(encoders[1], columns, "after")
    unlike = _unlike(*encoders)
    judged: list[Judged] = []
    for task, examples in sets.items():
        of_set = _score(task, examples, embedded, units, n_resamples, seed)
        if count_looks:
            of_set = _with_looks(of_set, examples, encoders[1], embedded[1], register)
        judged += of_set
    described: list[Change] = []
    if texts is not None:
        rows = embedded[0].of(texts.texts), embedded[1].of(texts.texts)
        described, figures = on_corpus.score_neighborhoods(rows, texts, n_resamples, seed)
        judged += [
            judge(on_corpus.TASK, metric, found, found.n_units, texts.note)
            for metric, found in figures
        ]
    return tuple(_with_note(c, unlike) for c in (*_with_multiplicity(judged), *described))


def _unlike(before: Any, after: Any) -> str:
    """Say where two encoders are read in different ways, which is no effect of training."""
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
    """Return the sets by name that something can be told of."""
    if given is None:
        return {}
    sets = dict(given) if isinstance(given, Mapping) else {name: given}
    for key, examples in sets.items():
        if not isinstance(examples, Examples):
            raise InputError(
                f"expected {name} to be Examples, or a dict of name -> Examples; got "
                f"{type(examples).__name__}"
            )
        if not isinstance(key, str) or not key.strip():
            raise InputError(f"expected names of {name} sets to be strings that show; got {key!r}")
    return {key: each for key, each in sets.items() if each.kind in SCORED and len(each)}


def _check(
    sets: Mapping[str, Examples],
    corpus: Any,
    classes: Any,
    units: Any,
    n_resamples: int,
    max_documents: int,
    seed: int,
) -> None:
    checked_count(n_resamples, "n_resamples", 100)
    checked_count(seed, "seed", 0)
    checked_count(max_documents, "max_documents", on_corpus.GRAPH + 2)
    if classes is not None and corpus is None:
        raise InputError("expected a corpus with the classes; got none; give corpus=, too")
    if isinstance(units, str) and units != "texts":
        raise InputError(f'expected units to be "texts", None or an array; got {units!r}')
    if not (units is None or isinstance(units, str)):
        shape = np.shape(units)
        n = [len(examples) for examples in sets.values()]
        if len(n) != 1 or shape != (n[0],):
            raise InputError(
                "expected an array of units with one test set, an entry for each example; got "
                f"shape {shape} and sets of {', '.join(map(str, n)) or 'no'} examples"
            )
        for place, unit in enumerate(np.asarray(units, dtype=object)):
            if unit is None or unit != unit:
                raise InputError(
                    f"expected a unit for each example; example {place} has none: give those that "
                    "stand alone a unit of their own"
                )


def _score(
    task: str,
    examples: Examples,
    embedded: tuple[Embedded, Embedded],
    units: Any,
    n_resamples: int,
    seed: int,
) -> list[Judged]:
    order = in_order(examples)
    ordered = examples.take(order)
    found: Int64Array = np.arange(len(order))
    note = ""
    if isinstance(units, str):
        found, note = units_of(ordered)
    elif units is not None:
        # Numbered by their first example in order, whatever they are called.
        first: dict[Any, int] = {}
        named = np.asarray(units, dtype=object)[order]
        found = np.array([first.setdefault(unit, place) for place, unit in enumerate(named)])
    return [
        judge(task, figure.metric, compare_scores(figure, n_resamples, seed), len(figure.before),
               note)
        for figure in figures_of(ordered, *embedded, found)
    ]  # fmt: skip


def judge(task: str, metric: str, found: Difference, n: int, note: str) -> Judged:
    """Say of a difference whether it is one.

    Parameters
    ----------
    task, metric : str
    found : Difference
    n : int
        Examples; fewer are independent where some share a text.
    note : str
        What is to be said of the figure whatever comes out.

    Returns
    -------
    Judged
    """
    said = [note] if note else []
    verdict = "no difference shown"
    outside = found.low > 0 or found.high < 0
    if outside and found.p <= 1 - CONFIDENCE:
        verdict = "better" if found.low > 0 else "worse"
    elif outside and found.exact > 1 - CONFIDENCE:
        said.append(
            f"The interval leaves 0 out, but the exact test on the {found.n_changed:,} of "
            f"{found.n_units:,} independent examples in which the encoders differ does not "
            f"(p = {found.exact:.3f})."
        )
    elif outside:
        said.append("The interval leaves 0 out by less than so few examples can tell.")
    if math.isnan(found.before) or math.isnan(found.after):
        said.append("An encoder gives all examples the same similarity.")
    if found.n_units == 1:
        said.append("There is no interval from 1 independent example.")
    elif found.n_units < FEW_UNITS:
        said.append(f"The interval is rough, from {found.n_units} independent examples.")
    elif found.n_units < n:
        said.append(f"{found.n_units:,} groups of examples with common texts were drawn anew.")
    difference = found.after - found.before
    change = Change(
        task, metric, found.before, found.after, difference, found.low, found.high, n, verdict, 0,
        " ".join(said),
    )  # fmt: skip
    return Judged(change, found.p)


def _with_looks(
    judged: list[Judged], examples: Examples, encoder: Any, made: Embedded, register: Register
) -> list[Judged]:
    """Count a look at the examples, and note what the looks so far mean."""
    fingerprint = getattr(encoder, "fingerprint", None)
    if not isinstance(fingerprint, str):
        texts = sorted({text for column in examples.columns for text in column})
        fingerprint = sha256(np.round(made.of(texts), 4).tobytes()).hexdigest()
    name = str(getattr(encoder, "name", type(encoder).__name__))
    looks = add_look(examples, name, fingerprint, register)
    return [
        replace(each, change=_with_note(replace(each.change, n_looks=looks.n), looks.note))
        for each in judged
    ]


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
