"""The objectives: losses of sentence-transformers, the examples they take, and their metrics."""

import inspect
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from embedtopics._utils.checks import checked_between, checked_choice
from embedtopics.errors import InputError
from embedtopics.results import Decision
from embedtopics.training._examples import Examples
from embedtopics.training.objectives._objective import (
    Metric,
    Objective,
    TokenColumns,
    head_accuracy,
    mean_reciprocal_rank,
    rank_correlation,
    share_nearer,
)

SCALE = 20.0
"""Factor of cosines before the softmax, 1 / temperature, as in the published recipes."""


def library_loss(name: str, **options: Any) -> Callable[[Any, Any], Any]:
    """Return a function that makes a loss of sentence-transformers."""

    def make_loss(model: Any, stand_in: Any) -> Any:
        from sentence_transformers.sentence_transformer import losses

        return getattr(losses, name)(stand_in, **options)

    return make_loss


def ranking_loss(scale: float, both_ways: bool) -> Callable[[Any, Any], Any]:
    """Return a function that makes the ranking loss over the texts of a batch."""
    options: dict[str, Any] = {"scale": checked_between(scale, "scale", 0, np.inf)}
    if both_ways:
        directions = ("query_to_doc", "doc_to_query")
        options |= {"directions": directions, "partition_mode": "per_direction"}
    return library_loss("MultipleNegativesRankingLoss", **options)


def nli_ranking(
    examples: Examples, _: Any = None, *, scale: float = SCALE, both_ways: bool = True
) -> Objective:
    """Learn that a premise is nearest to what it entails (Gao et al. 2021, equation 5)."""
    triplets = triplets_of_inferences(examples)
    loss = ranking_loss(scale, both_ways)
    return Objective(
        "nli: ranking", triplets, loss, "share nearer", share_nearer, in_batch_negatives=True
    )


def triplets_of_inferences(examples: Examples) -> Examples:
    """Make triplets of a premise, an entailed and a contradicted hypothesis."""
    names = examples.names or ("entailment", "neutral", "contradiction")
    classes = [[n.strip().lower().startswith(s) for n in names] for s in ("entail", "contradict")]
    if sum(classes[0]) != 1:
        raise InputError("names", "classes with one entailment", names)
    entails, contradicts = (each.index(True) if any(each) else -1 for each in classes)
    premises, hypotheses = examples.columns
    sides_of: dict[str, tuple[dict[str, int], dict[str, int]]] = {}
    spare: list[tuple[int, str, str]] = []  # how well it serves as a negative, and of what
    for place, label in enumerate(np.asarray(examples.labels).tolist()):
        premise, hypothesis = premises[place], hypotheses[place]
        order = {contradicts: 0, entails: 2}.get(label, 1)
        spare.append((order, hypothesis, premise))
        if label in (entails, contradicts):
            of_premise = sides_of.setdefault(premise, ({}, {}))
            of_premise[int(label == contradicts)].setdefault(hypothesis, place)
    sides_of = {premise: sides for premise, sides in sides_of.items() if sides[0]}
    place_of = {(premises[place], hypotheses[place]): place for place in range(len(examples))}
    # Contradictions of these premises are negatives already.
    contradictions = {(premise, text) for premise, sides in sides_of.items() for text in sides[1]}
    fillers = _fillers([each for each in sorted(set(spare)) if each[:0:-1] not in contradictions])
    triplets: list[tuple[str, str, str, int]] = []
    used: set[int] = set()
    for premise, (entailed, contradicted) in sides_of.items():
        # Sorted by text, so that triplets do not depend on the order of the rows.
        near, far = sorted(entailed), [(premise, text) for text in sorted(contradicted)]
        far = far or [fillers(premise, entailed) for _ in near]
        for turn in range(max(len(near), len(far))):
            positive, negative = near[turn % len(near)], far[turn % len(far)]
            triplets.append(
                (premise, positive, negative[1], int(examples.rows[entailed[positive]]))
            )
            used |= {entailed[positive], place_of[negative]}
    if not triplets:
        raise InputError("train", "inference pairs with entailments", found="none")
    anchors, positives, negatives, rows = zip(*triplets, strict=True)
    n_used = f"{len(used):,} of {len(examples):,}"
    message = f"{len(triplets):,} triplets were made of {n_used} inference pairs."
    return Examples(
        kind="triplets",
        columns=(anchors, positives, negatives),
        labels=None,
        rows=np.array(rows, dtype=np.int64),
        source=examples.source,
        decisions=(
            *examples.decisions,
            Decision("training", "triplets", len(triplets), message),
            Decision("training", "examples_used", len(used), f"{len(used):,} examples are used."),
        ),
    )


def _fillers(
    spare: list[tuple[int, str, str]],
) -> Callable[[str, Mapping[str, int]], tuple[str, str]]:
    """Return a function that returns the next pair of another premise as a negative."""
    waiting = deque((premise, text) for _, text, premise in spare)

    def choose(premise: str, entailed: Mapping[str, int]) -> tuple[str, str]:
        for _ in range(len(waiting)):
            waiting.rotate(-1)
            other, text = waiting[-1]
            if other != premise and text != premise and text not in entailed:
                return other, text
        raise InputError("train", "inference pairs of two premises or more", found=repr(premise))

    return choose


def nli_softmax(examples: Examples, _: Any = None) -> Objective:
    """Classify relations from u, v and |u - v| (Reimers and Gurevych 2019, section 3)."""
    n_classes = len(examples.names)
    if n_classes < 2:
        raise InputError("names", "of at least 2 classes", examples.names)

    def make_loss(model: Any, stand_in: Any) -> Any:
        from sentence_transformers.sentence_transformer.losses import SoftmaxLoss

        # The head is made where the model is; the stand-in has no device.
        loss = SoftmaxLoss(model, int(stand_in.get_embedding_dimension()), n_classes)
        loss.model = stand_in
        return loss

    return Objective("nli: softmax", examples, make_loss, "accuracy", head_accuracy)


def graded_cosine(examples: Examples, _: Any = None) -> Objective:
    """Learn cosines that equal the scores (Reimers and Gurevych 2019, section 3)."""
    return _graded("cosine", examples, library_loss("CosineSimilarityLoss"))


def graded_cosent(examples: Examples, _: Any = None, *, scale: float = SCALE) -> Objective:
    """Learn that the pair with the higher score has the higher cosine (Su 2022)."""
    loss = library_loss("CoSENTLoss", scale=checked_between(scale, "scale", 0, np.inf))
    return _graded("CoSENT", examples, loss)


def _graded(name: str, examples: Examples, loss: Callable[[Any, Any], Any]) -> Objective:
    labels = np.unique(np.asarray(examples.labels))
    if len(labels) < 2 < len(examples):
        got = f"{labels[0]:g} for all {len(examples)} pairs"
        raise InputError("labels", "different", found=got)
    return Objective(f"graded: {name}", examples, loss, "Spearman", rank_correlation)


def pairs_ranking(
    examples: Examples, _: Any = None, *, scale: float = SCALE, both_ways: bool = True
) -> Objective:
    """Learn that a text is nearest to its partner (Henderson et al. 2017, section 4.4)."""
    name = "pairs: ranking, both ways" if both_ways else "pairs: ranking"
    name = name if scale == SCALE else f"{name}, scale {scale:g}"
    loss = ranking_loss(scale, both_ways)
    return Objective(name, examples, loss, "MRR@10", mean_reciprocal_rank, in_batch_negatives=True)


def triplet_ranking(examples: Examples, _: Any = None, *, scale: float = SCALE) -> Objective:
    """Learn that a positive is nearer than the negatives, and than the texts of the batch."""
    loss = ranking_loss(scale, False)
    return Objective(
        "triplets: ranking", examples, loss, "share nearer", share_nearer, in_batch_negatives=True
    )


def triplet(examples: Examples, _: Any = None, *, margin: float = 0.2) -> Objective:
    """Learn that a positive is nearer than the negative by a margin (Reimers and Gurevych 2019)."""
    from sentence_transformers.sentence_transformer.losses import TripletDistanceMetric

    checked_between(margin, "margin", 0, np.inf)
    # By cosine, for which their margin of 1 is too large.
    options = {"distance_metric": TripletDistanceMetric.COSINE, "triplet_margin": margin}
    loss, triplets = library_loss("TripletLoss", **options), one_negative_each(examples)
    return Objective("triplets: margin", triplets, loss, "share nearer", share_nearer)


def one_negative_each(examples: Examples) -> Examples:
    """Make one triplet for each negative of an example."""
    anchors, positives, *negatives = examples.columns
    times = len(negatives)
    if times == 1:
        return examples
    message = f"{len(examples):,} examples became {len(examples) * times:,}, one for each negative."
    triplets = replace(
        examples,
        columns=(anchors * times, positives * times, tuple(t for c in negatives for t in c)),
        rows=np.tile(examples.rows, times),
    )
    return triplets._noting(Decision("training", "negatives", times, message))


def simcse(examples: Examples, _: Any = None, *, scale: float = SCALE) -> Objective:
    """Learn that a text is nearest to itself with other units dropped out (Gao et al. 2021)."""
    ranking = ranking_loss(scale, False)

    def make_loss(model: Any, stand_in: Any) -> Any:
        from torch import nn

        if not any(isinstance(part, nn.Dropout) and part.p > 0 for part in model.modules()):
            expected = "a checkpoint with dropout, without which both views of a text are equal"
            raise InputError("encoder", expected, remedy="pre-train it instead")
        return ranking(model, stand_in)

    def twice(columns: TokenColumns, rng: np.random.Generator) -> TokenColumns:
        return columns[0], columns[0]

    return Objective("texts: SimCSE", examples, make_loss, in_batch_negatives=True, views=twice)


_METRICS: dict[str, tuple[str, Metric | None]] = {
    "graded": ("Spearman", rank_correlation),
    "pairs": ("MRR@10", mean_reciprocal_rank),
    "triplets": ("share nearer", share_nearer),
}


def passed_through(loss_of: Any, examples: Examples, _: Any = None) -> Objective:
    """Return an objective from a loss class, or from a function of the model."""
    name = getattr(loss_of, "__name__", type(loss_of).__name__)
    if not callable(loss_of) or (hasattr(loss_of, "forward") and not inspect.isclass(loss_of)):
        expected = (
            "a name, a loss class, or a function that takes the model, such as lambda model: "
        )
        raise InputError("objective", f"{expected}CoSENTLoss(model)", loss_of)
    if name.startswith("Cached"):
        remedy = "take the loss without cache: tokens_at_once bounds the memory of all"
        raise InputError("objective", "a loss without cache", name, remedy)

    def make_loss(model: Any, stand_in: Any) -> Any:
        from torch import nn

        loss: Any = loss_of(model)
        if not isinstance(loss, nn.Module):
            raise InputError("objective", "a loss module", loss)
        # The stand-in replaces the model, also in nested losses.
        for part in list(loss.modules()):
            if part is not model and getattr(part, "model", None) is model:
                part.model = stand_in
        return loss

    metric_name, metric = _METRICS.get(examples.kind, ("", None))
    in_batch = examples.kind in ("pairs", "triplets")
    name = f"{examples.kind}: {name}"
    return Objective(name, examples, make_loss, metric_name, metric, in_batch_negatives=in_batch)


OBJECTIVES: dict[str, dict[str, Callable[..., Objective]]] = {
    "nli": {"ranking": nli_ranking, "softmax": nli_softmax},
    "graded": {"cosine": graded_cosine, "cosent": graded_cosent},
    "pairs": {"ranking": pairs_ranking},
    "triplets": {"ranking": triplet_ranking, "triplet": triplet, "margin": triplet},
    "texts": {"simcse": simcse},
}
"""Objectives by kind of examples; the first is the default."""


def selecting_by(objective: Objective, metric: str | None) -> Objective:
    """Return an objective whose best weights are those of another metric, by its name."""
    if metric is None or metric == objective.metric_name:
        return objective
    names = ["loss", *[objective.metric_name] * bool(objective.metric_name)]
    if objective.examples.kind in ("pairs", "triplets"):
        names.append("MRR@10")
    checked_choice(metric, "metric", names)
    if metric == "loss":
        return replace(objective, keeps_lowest_loss=True)
    return replace(objective, metric_name=metric, metric=mean_reciprocal_rank)


def find_objective(objective: Any, kind: str) -> tuple[Callable[..., Objective], list[str]]:
    """Return the function that makes an objective of examples, and its own parameters."""
    checked_choice(kind, "kind", OBJECTIVES)
    names = OBJECTIVES[kind]
    if objective is None:
        objective = next(iter(names))
    if not isinstance(objective, str):
        return partial(passed_through, objective), []
    if objective not in names:
        expected = f"one of {', '.join(names)} for {kind}, or a loss class"
        raise InputError("objective", expected, objective)
    make = names[objective]
    fixed = make.keywords if isinstance(make, partial) else {}
    parameters = inspect.signature(make).parameters.values()
    return make, [p.name for p in parameters if p.kind is p.KEYWORD_ONLY and p.name not in fixed]
