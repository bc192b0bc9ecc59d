"""Triplets that are made of other examples: of inference pairs, and of several negatives."""

from __future__ import annotations

import numpy as np

from embedtopics.errors import InputError
from embedtopics.results import Decision
from embedtopics.training.examples import Examples

__all__ = ["one_negative_each", "triplets_of_inferences"]


def triplets_of_inferences(examples: Examples) -> Examples:
    """Make triplets of a premise, what it entails, and what contradicts it.

    A premise with several of them takes them in turn, so that each sentence that it entails, and
    each that contradicts it, is in a triplet. Premises without both are left out, and so are
    neutral hypotheses: that a text is neutral to another does not say that it is far from it.

    Parameters
    ----------
    examples : Examples
        Of kind "nli"; classes are told by the beginning of their names.

    Returns
    -------
    made : Examples
        Of kind "triplets", in the order in which the premises occur; `rows` are those of the
        entailments.

    Raises
    ------
    InputError
        If there is no such class, or no premise has both.
    """
    entails, contradicts = (_class_of(examples.names, start) for start in ("entail", "contradict"))
    premises, hypotheses = examples.columns
    labels = np.asarray(examples.labels).tolist()
    found: dict[str, tuple[dict[str, int], dict[str, int]]] = {}
    for place, (premise, hypothesis, label) in enumerate(
        zip(premises, hypotheses, labels, strict=True)
    ):
        if label in (entails, contradicts):
            of_premise = found.setdefault(premise, ({}, {}))
            of_premise[int(label == contradicts)].setdefault(hypothesis, place)
    made: list[tuple[str, str, str, int]] = []
    used: set[int] = set()
    for premise, (entailed, contradicted) in found.items():
        if not entailed or not contradicted:
            continue
        # By their text, so that who meets whom does not depend on the order of the rows.
        near, far = sorted(entailed), sorted(contradicted)
        for turn in range(max(len(near), len(far))):
            positive, negative = near[turn % len(near)], far[turn % len(far)]
            row = int(examples.rows[entailed[positive]])
            made.append((premise, positive, negative, row))
            used |= {entailed[positive], contradicted[negative]}
    if not made:
        raise InputError(
            f"expected premises with both an entailment and a contradiction, got none among "
            f'{len(found)} premises; learn from these examples with objective="softmax"'
        )
    anchors, positives, negatives, rows = zip(*made, strict=True)
    note = Decision(
        "training",
        "triplets",
        len(made),
        f"{len(made):,} triplets were made of {len(used):,} of {len(examples):,} inference pairs; "
        "pairs that are neutral, twice there, or of premises without both an entailment and a "
        "contradiction were left out.",
    )
    return Examples(
        kind="triplets",
        columns=(anchors, positives, negatives),
        labels=None,
        rows=np.array(rows, dtype=np.int64),
        source=examples.source,
        decisions=(*examples.decisions, note),
    )


def one_negative_each(examples: Examples) -> Examples:
    """Make triplets of examples with several negatives: one for each.

    Returns
    -------
    made : Examples
        Those of the first negative first; what was given where there is one negative.
    """
    anchors, positives, *negatives = examples.columns
    times = len(negatives)
    if times == 1:
        return examples
    note = Decision(
        "training",
        "negatives",
        times,
        f"{len(examples):,} examples with {times} negatives each became "
        f"{len(examples) * times:,} triplets.",
    )
    return Examples(
        kind="triplets",
        columns=(anchors * times, positives * times, tuple(t for c in negatives for t in c)),
        labels=None,
        rows=np.tile(examples.rows, times),
        source=examples.source,
        decisions=(*examples.decisions, note),
    )


def _class_of(names: tuple[str, ...], start: str) -> int:
    found = [place for place, name in enumerate(names) if name.strip().lower().startswith(start)]
    if len(found) != 1:
        raise InputError(
            f"expected one class whose name begins with {start!r}, got the classes "
            f"{', '.join(names) or 'none'}; name them entailment, neutral and contradiction, or "
            'learn from these examples with objective="softmax"'
        )
    return found[0]
