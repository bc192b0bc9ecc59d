"""Objectives for examples that people have labelled: which of two texts belong together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from embedtopics.errors import InputError
from embedtopics.training.examples import Examples
from embedtopics.training.objectives.measures import (
    average_precision,
    head_accuracy,
    mean_reciprocal_rank,
    rank_correlation,
    share_nearer,
)
from embedtopics.training.objectives.objective import Objective
from embedtopics.training.objectives.triplets import one_negative_each, triplets_of_inferences

__all__ = [
    "checked_kind",
    "contrastive",
    "graded_cosent",
    "graded_cosine",
    "nli_ranking",
    "nli_softmax",
    "pairs_ranking",
    "ranking_loss",
    "triplet",
]

SCALE = 20.0
"""Factor of cosines before the softmax, 1 / temperature, as in the published recipes."""


def nli_softmax(examples: Examples) -> Objective:
    """Learn to tell the relation of two sentences from their vectors u and v.

    A linear head reads u, v and |u - v| (Reimers and Gurevych, 2019, "Sentence-BERT", section 3);
    it is thrown away afterwards. The metric is its accuracy.

    Parameters
    ----------
    examples : Examples
        Of kind "nli".

    Returns
    -------
    Objective

    Raises
    ------
    InputError
        If the examples are of another kind, none, or all of one class.
    """
    checked_kind(examples, "nli_softmax", ("nli",))
    n_classes = len(examples.names)
    if n_classes < 2:
        raise InputError(
            f"expected examples of at least 2 classes, got {n_classes}: "
            f"{', '.join(examples.names) or 'none'}; give the others, too"
        )

    def make_loss(model: Any, given: Any) -> Any:
        from sentence_transformers.sentence_transformer.losses import SoftmaxLoss

        # The head is made where the model is; the stand-in has no device.
        loss = SoftmaxLoss(model, int(given.get_embedding_dimension()), n_classes)
        loss.model = given
        return loss

    return Objective(
        name="nli: softmax",
        examples=examples,
        make_loss=make_loss,
        metric_name="accuracy",
        metric=head_accuracy,
    )


def nli_ranking(examples: Examples, *, scale: float = SCALE, both_ways: bool = True) -> Objective:
    """Learn that a premise is nearer to what it entails than to what contradicts it.

    For each premise with both, what it entails shall be nearer than its contradiction and than
    the sentences of the other examples of the batch (Henderson et al., 2017, "Efficient natural
    language response suggestion", section 4.4; with hard negatives as in Gao et al., 2021,
    "SimCSE", equation 5). The metric is the share of triplets where it is nearer than the
    contradiction.

    Parameters
    ----------
    examples : Examples
        Of kind "nli", with classes named after entailment and contradiction. Premises without
        both, and neutral hypotheses, are left out; the counts are among the decisions.
    scale : float
        Factor of the cosines before the softmax.
    both_ways : bool
        Whether the premise shall also be nearest to what it entails among all premises of the
        batch. It costs nothing: no text is encoded more often.

    Returns
    -------
    Objective
        Its examples are triplets.

    Raises
    ------
    InputError
        If the examples are of another kind, or no premise has both.
    """
    checked_kind(examples, "nli_ranking", ("nli",))
    return Objective(
        name="nli: ranking",
        examples=triplets_of_inferences(examples),
        make_loss=ranking_loss(scale, both_ways),
        metric_name="share nearer",
        metric=share_nearer,
        in_batch_negatives=True,
    )


def graded_cosine(examples: Examples) -> Objective:
    """Learn that the cosine of two texts is their score, by mean squared error.

    Reimers and Gurevych (2019), "Sentence-BERT", section 3, "regression objective". The metric is
    Spearman's correlation.

    Parameters
    ----------
    examples : Examples
        Of kind "graded".

    Returns
    -------
    Objective

    Raises
    ------
    InputError
        If the examples are of another kind, or all scores are one and the same.
    """
    _check_graded(examples, "graded_cosine")

    def make_loss(model: Any, given: Any) -> Any:
        from sentence_transformers.sentence_transformer.losses import CosineSimilarityLoss

        return CosineSimilarityLoss(given)

    return Objective("graded: cosine", examples, make_loss, "Spearman", rank_correlation)


def graded_cosent(examples: Examples, *, scale: float = SCALE) -> Objective:
    """Learn that of two pairs the one with the higher score has the higher cosine.

    Only the order of the scores counts (Su, 2022, "CoSENT"), which is what Spearman's
    correlation, the metric, measures.

    Parameters
    ----------
    examples : Examples
        Of kind "graded".
    scale : float
        Factor of the cosines.

    Returns
    -------
    Objective

    Raises
    ------
    InputError
        If the examples are of another kind, or all scores are one and the same.
    """
    _check_graded(examples, "graded_cosent")
    _check_positive("scale", scale)

    def make_loss(model: Any, given: Any) -> Any:
        from sentence_transformers.sentence_transformer.losses import CoSENTLoss

        return CoSENTLoss(given, scale=scale)

    return Objective("graded: CoSENT", examples, make_loss, "Spearman", rank_correlation)


def pairs_ranking(
    examples: Examples, *, scale: float = SCALE, both_ways: bool = False
) -> Objective:
    """Learn that a text is nearer to its partner than to the partners of the others.

    Henderson et al. (2017), "Efficient natural language response suggestion", section 4.4. The
    metric is the mean reciprocal rank, to rank 10, of a text's nearest partner among the partners
    (and negatives) of all validation examples; no partner of its own counts as wrong.

    Parameters
    ----------
    examples : Examples
        Of kind "pairs", or "triplets" for pairs with hard negatives.
    scale : float
        Factor of the cosines before the softmax.
    both_ways : bool
        Whether the first text shall also be found from the second.

    Returns
    -------
    Objective

    Raises
    ------
    InputError
        If the examples are of another kind.
    """
    checked_kind(examples, "pairs_ranking", ("pairs", "triplets"))
    name = "pairs: ranking, both ways" if both_ways else "pairs: ranking"
    return Objective(
        name=name if scale == SCALE else f"{name}, scale {scale:g}",
        examples=examples,
        make_loss=ranking_loss(scale, both_ways),
        metric_name="MRR@10",
        metric=mean_reciprocal_rank,
        in_batch_negatives=True,
    )


def triplet(
    examples: Examples,
    *,
    ranking: bool = False,
    margin: float = 0.2,
    scale: float = SCALE,
) -> Objective:
    """Learn that an anchor is nearer to its positive than to its negative, by a margin.

    Reimers and Gurevych (2019), "Sentence-BERT", section 3, "triplet objective", with 1 minus the
    cosine as distance, as vectors are compared everywhere else. Margins for Euclidean distances,
    1 in the paper and 5 in sentence-transformers, mean nothing on its scale from 0 to 2. The
    metric is the share of triplets where the positive is nearer.

    Parameters
    ----------
    examples : Examples
        Of kind "triplets". With several negatives, each makes a triplet of its own.
    ranking : bool
        Use the texts of the other examples of a batch as further negatives, as `pairs_ranking`
        does, in place of a margin.
    margin : float
        Without `ranking`: how much higher the cosine with the positive shall be. Triplets that
        have it already teach nothing.
    scale : float
        With `ranking`: factor of the cosines before the softmax.

    Returns
    -------
    Objective

    Raises
    ------
    InputError
        If the examples are of another kind, or a parameter is out of range.
    """
    checked_kind(examples, "triplet", ("triplets",))
    if ranking:
        make_loss = ranking_loss(scale, False)
        return Objective(
            "triplets: ranking", examples, make_loss, "share nearer", share_nearer, True
        )
    _check_positive("margin", margin)

    def make_margin_loss(model: Any, given: Any) -> Any:
        from sentence_transformers.sentence_transformer.losses import (
            TripletDistanceMetric,
            TripletLoss,
        )

        return TripletLoss(
            given, distance_metric=TripletDistanceMetric.COSINE, triplet_margin=margin
        )

    return Objective(
        name="triplets: margin",
        examples=one_negative_each(examples),
        make_loss=make_margin_loss,
        metric_name="share nearer",
        metric=share_nearer,
    )


def contrastive(examples: Examples, *, online: bool = True, margin: float = 0.5) -> Objective:
    """Learn that pairs which belong together are near, and others farther than a margin.

    Hadsell et al. (2006), "Dimensionality reduction by learning an invariant mapping", equation
    4, with cosine distances. The metric is the average precision of the cosine.

    Parameters
    ----------
    examples : Examples
        Of kind "binary".
    online : bool
        Learn only from the hard pairs of a batch: those apart that are nearer than the farthest
        together, and those together that are farther than the nearest apart.
    margin : float
        Cosine distance from which on a pair is far enough apart.

    Returns
    -------
    Objective

    Raises
    ------
    InputError
        If the examples are of another kind or all of one class, or the margin is out of range.
    """
    checked_kind(examples, "contrastive", ("binary",))
    found = set(np.asarray(examples.labels).tolist())
    if found != {0, 1}:
        raise InputError(
            "expected pairs that belong together (1) and pairs that do not (0), got only "
            f"{', '.join(map(str, sorted(found)))}; give some of the others, or learn from pairs "
            "that belong together alone with pairs_ranking"
        )
    _check_positive("margin", margin)

    def make_loss(model: Any, given: Any) -> Any:
        from sentence_transformers.sentence_transformer import losses

        chosen = losses.OnlineContrastiveLoss if online else losses.ContrastiveLoss
        return chosen(given, margin=margin)

    name = "binary: online contrastive" if online else "binary: contrastive"
    return Objective(name, examples, make_loss, "average precision", average_precision)


def checked_kind(examples: Examples, function: str, kinds: tuple[str, ...]) -> None:
    """Make sure that there are examples, and of a kind that an objective can learn from.

    Raises
    ------
    InputError
    """
    if not isinstance(examples, Examples) or examples.kind not in kinds:
        found = examples.kind if isinstance(examples, Examples) else type(examples).__name__
        raise InputError(
            f"expected examples of the kind {' or '.join(kinds)} for {function}, got {found}; "
            "choose the objective for that kind"
        )
    if not len(examples):
        raise InputError(f"expected at least one example for {function}, got none")


def _check_graded(examples: Examples, function: str) -> None:
    checked_kind(examples, function, ("graded",))
    scores = np.asarray(examples.labels)
    if len(scores) > 1 and scores.min() == scores.max():
        raise InputError(
            f"expected scores of which some are higher than others, got {scores[0]:g} for all "
            f"{len(scores)} pairs; there is nothing to learn from them"
        )


def _check_positive(name: str, value: float) -> None:
    if not 0 < value < np.inf:
        raise InputError(f"expected {name} to be a finite number above 0; got {value!r}")


def ranking_loss(scale: float, both_ways: bool) -> Callable[[Any, Any], Any]:
    """Return what makes the loss that ranks the texts of a batch by their cosine."""
    _check_positive("scale", scale)

    def make_loss(model: Any, given: Any) -> Any:
        from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

        if not both_ways:
            return MultipleNegativesRankingLoss(given, scale=scale)
        return MultipleNegativesRankingLoss(
            given,
            scale=scale,
            directions=("query_to_doc", "doc_to_query"),
            partition_mode="per_direction",
        )

    return make_loss
