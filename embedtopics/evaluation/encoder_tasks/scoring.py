"""From the vectors of a set's texts to its figures."""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch
from typing import Any

import numpy as np

from embedtopics.errors import InputError
from embedtopics.evaluation.correlations import similarity_correlations
from embedtopics.evaluation.encoder_tasks.sets import (
    ClassedPairs,
    GradedPairs,
    InferencePairs,
    LabelledTexts,
    SearchSet,
    TaskSet,
    Translations,
)
from embedtopics.evaluation.estimates import mean_of_values
from embedtopics.evaluation.inference import inference_accuracy
from embedtopics.evaluation.label_probes import neighbor_votes
from embedtopics.evaluation.pair_classes import area_under_curve, score_pair_classes
from embedtopics.evaluation.ranking import rank_documents
from embedtopics.evaluation.search_scores import score_rankings
from embedtopics.evaluation.vector_pairs import pair_similarities
from embedtopics.results import Decision, Estimate

__all__ = ["score_set"]

VOTERS = 10
CUTS = (10, 100)
Resampling = dict[str, Any]


@singledispatch
def score_set(
    examples: TaskSet, vectors: Sequence[Any], how: Resampling, notes: list[Decision]
) -> dict[str, Estimate]:
    """Measure an encoder on one set.

    Parameters
    ----------
    examples : TaskSet
    vectors : sequence of array_like or csr_matrix
        Of the texts of each column.
    how : dict
        Keywords n_resamples and seed.
    notes : list of Decision
        What is to be known of the figures is added to it.

    Returns
    -------
    dict of str to Estimate
        By metric.
    """
    raise InputError(f"there is no measure for {type(examples).__name__}")


@score_set.register
def _(
    examples: GradedPairs, vectors: Sequence[Any], how: Resampling, notes: list[Decision]
) -> dict[str, Estimate]:
    found = similarity_correlations(vectors[0], vectors[1], examples.scores, **how)
    if any(np.isnan(one.value) for one in found.values()):
        message = (
            f"{examples.task}, {examples.file}: the cosine is equal for all {len(examples.scores)} "
            "pairs; a correlation with it is not defined."
        )
        name = f"{examples.task}_{examples.file}_not_defined"
        notes.append(Decision("evaluation", name, True, message))
    return found


@score_set.register
def _(
    examples: ClassedPairs, vectors: Sequence[Any], how: Resampling, notes: list[Decision]
) -> dict[str, Estimate]:
    near = pair_similarities(*vectors)
    found = score_pair_classes(near, examples.labels, **how)
    return {
        "average_precision": found.average_precision,
        "area_under_curve": found.area_under_curve,
        "best_accuracy": found.accuracy,
        "best_f1": found.f1,
    }


@score_set.register
def _(
    examples: InferencePairs, vectors: Sequence[Any], how: Resampling, notes: list[Decision]
) -> dict[str, Estimate]:
    """Measure a linear model on the vectors; and the cosines alone, which learn nothing."""
    train, test = (vectors[0], vectors[1]), (vectors[2], vectors[3])
    accuracy, converged = inference_accuracy(
        train, examples.train_labels, test, examples.labels, **how
    )
    if not converged:
        message = f"{examples.task}: the linear model stopped before it had settled."
        notes.append(Decision("evaluation", f"{examples.task}_not_converged", True, message))
    found = {"head_accuracy": accuracy}
    entailed = examples.names.index("entailment") if "entailment" in examples.names else None
    others = {"contradiction", "not_entailment"} & set(examples.names)
    if entailed is not None and others:
        other = examples.names.index(min(others))
        rows = np.flatnonzero(np.isin(examples.labels, (entailed, other)))
        if len(np.unique(examples.labels[rows])) < 2:
            message = (
                f"{examples.task}: there is no entailment_auc, for want of pairs of one of the "
                f"classes entailment and {min(others)}."
            )
            notes.append(Decision("evaluation", f"{examples.task}_one_class", True, message))
            return found
        near = pair_similarities(test[0][rows], test[1][rows])
        is_entailed = (examples.labels[rows] == entailed).astype(np.int64)
        found["entailment_auc"] = area_under_curve(near, is_entailed, **how)
    return found


@score_set.register
def _(
    examples: SearchSet, vectors: Sequence[Any], how: Resampling, notes: list[Decision]
) -> dict[str, Estimate]:
    ranked, _ = rank_documents(vectors[0], vectors[1], max(CUTS), tie_order=examples.tie_order)
    scores = score_rankings(ranked, examples.relevance, CUTS, **how)
    shown = ("ndcg@10", "mrr@10", "map@100", "recall@10", "recall@100", "precision@10")
    return {name: scores[name] for name in shown}


@score_set.register
def _(
    examples: Translations, vectors: Sequence[Any], how: Resampling, notes: list[Decision]
) -> dict[str, Estimate]:
    """Ask in both directions whether the nearest text is the translation, or equal to it."""
    found = {}
    ways = {"accuracy_forward": (0, 1), "accuracy_backward": (1, 0)}
    for name, (asked, among) in ways.items():
        texts = examples.columns[among]
        order = np.array(sorted(range(len(texts)), key=texts.__getitem__))
        places = np.empty(len(texts), dtype=np.int64)
        places[order] = np.arange(len(texts))
        ranked, _ = rank_documents(vectors[asked], vectors[among], 1, tie_order=places)
        right = [texts[place] == text for place, text in zip(ranked[:, 0], texts, strict=True)]
        found[name] = mean_of_values(np.array(right, float), **how)
    return found


@score_set.register
def _(
    examples: LabelledTexts, vectors: Sequence[Any], how: Resampling, notes: list[Decision]
) -> dict[str, Estimate]:
    """Let the nearest other texts vote on the class of each."""
    ranked, near = rank_documents(vectors[0], vectors[0], VOTERS + 1)
    itself = ranked == np.arange(len(ranked))[:, None]
    # Where many texts are equal, a text may not be among its own nearest: the last goes instead.
    itself[~itself.any(axis=1), -1] = True
    shape = (len(ranked), ranked.shape[1] - 1)
    votes = neighbor_votes(
        ranked[~itself].reshape(shape), near[~itself].reshape(shape), examples.labels
    )
    right = (votes == examples.labels).astype(np.float64)
    return {"knn_accuracy": mean_of_values(right, **how)}
