"""Whether distances between vectors are those of the dependency tree."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from embedtopics._checks import checked_count
from embedtopics._randomness import resolve_seed
from embedtopics.errors import InputError
from embedtopics.evaluation.bootstrap import resampled_sums
from embedtopics.evaluation.estimates import estimate
from embedtopics.probing.combining import chosen_layers
from embedtopics.probing.probes.asking import check_twin
from embedtopics.probing.probes.features import Features
from embedtopics.probing.probes.fitting import Plan, batches_of, falling, run_side_by_side
from embedtopics.probing.probes.labels import check_unit, label_of_each_unit, labelled_units
from embedtopics.probing.probes.parts import DEV, TEST, TRAIN, numbered_sentences, parts_of
from embedtopics.probing.probes.scoring import N_RESAMPLES, score
from embedtopics.probing.probes.trees import (
    Tree,
    edges_found,
    mean_rank_correlation,
    read_trees,
)
from embedtopics.protocols import Int64Array, RandomState
from embedtopics.results import Decision, HiddenStates, LayerScores, ProbeScore, ProbeTask

__all__ = ["fit_distances", "structural_probe"]

PLAN = Plan(n_epochs=10, least_steps=600, rate=0.02, largest_batch=32, n_looks=10)
MOST_RANK = 64
"""Hewitt and Manning (2019, figure 5) find no gain beyond it."""
SHORTEST, LONGEST = 5, 50
FIRST_DISTANCE = 4.0
"""Mean squared distance that the first weights give, about that of a tree."""

Float64Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class _Trees:
    """Sentences of one part, and the text group of each."""

    trees: list[Tree]
    group: Int64Array

    @property
    def n_words(self) -> int:
        return sum(len(tree.rows) for tree in self.trees)


def structural_probe(
    states: HiddenStates,
    heads: ProbeTask | Sequence[Any],
    *,
    layers: int | str | Sequence[int] = "all",
    rank: int | None = None,
    punctuation: bool = False,
    random_states: HiddenStates | None = None,
    parts: Sequence[str] | None = None,
    test_share: float = 0.2,
    dev_share: float = 0.1,
    random_state: RandomState = 0,
    show_progress: bool | None = None,
) -> LayerScores:
    """Measure at which layer distances between words are those of their dependency tree.

    For each layer a matrix B is learnt, so that the squared length of B(u - v) is the number of
    edges between the words of u and v (Hewitt and Manning 2019, "A structural probe for finding
    syntax in word representations", equation 2).

    Parameters
    ----------
    states : HiddenStates
        Of words.
    heads : ProbeTask, or one sequence of heads a text, or one head a word
        The place of a word's head in its sentence, from 1, and 0 for the root. Sentences without
        heads (empty strings or None) are left out.
    layers : int, sequence of int, "all" or "last N"
    rank : int, optional
        Rows of B; 64, or the width where that is less.
    punctuation : bool
        Whether words of nothing but punctuation count among the edges; by custom they do not.
    random_states : HiddenStates, optional
        Of the same texts, from an encoder with random weights.
    parts : sequence of str, optional
        "train", "dev" or "test" of each text.
    test_share, dev_share : float
        Of the words, where sentences are dealt out.
    random_state : int, Generator or None
    show_progress : bool, optional

    Returns
    -------
    LayerScores
        "spearman": the correlation of distances from a word with the true ones, averaged over the
        words of sentences of one length, and over the lengths from 5 to 50. "uuas": the share of
        edges that the least spanning tree has. Beside "probe" stand "embedding layer" (layer 0),
        "linear chain" (distance in the sentence) and "random model"; 95 % intervals are of test
        sentences drawn anew.

    Raises
    ------
    InputError
        If heads are no trees or not one for one with the words, or a part is empty.
    """
    seed = resolve_seed(random_state)
    if states.unit != "word":
        raise InputError(f"expected states of words; these are of {states.unit}s")
    if rank is not None and checked_count(rank, "rank") > states.width:
        raise InputError(f"expected a rank of at most the width, {states.width}; got {rank}")
    n_rows = rank or min(MOST_RANK, states.width)
    wanted = sorted(set(chosen_layers(states, layers)))
    dealt, decisions = _dealt_trees(
        states, heads, parts, test_share, dev_share, seed, punctuation=punctuation
    )
    sources = [("probe", layer, states.layer(layer)) for layer in wanted]
    if 0 in states.layers and 0 not in wanted:
        sources.append(("embedding layer", 0, states.layer(0)))
    if random_states is not None:
        check_twin(states, random_states)
        found = chosen_layers(random_states, wanted)
        sources += [("random model", layer, random_states.layer(layer)) for layer in found]

    def work(source: tuple[str, int, npt.NDArray[Any]]) -> list[ProbeScore]:
        what, layer, vectors = source
        predict = fit_distances(vectors, dealt[TRAIN].trees, dealt[DEV].trees, n_rows, PLAN, seed)
        return _measured(what, layer, [predict(tree) for tree in dealt[TEST].trees], dealt, seed)

    done = run_side_by_side(
        work, sources, description="training structural probes", show_progress=show_progress
    )
    scores = [one for own in done for one in own]
    scores += [
        ProbeScore("embedding layer", 0, one.metric, one.value, one.low, one.high, one.n)
        for one in scores
        if one.what == "probe" and one.layer == 0
    ]
    chains = [np.abs(np.subtract.outer(t.rows, t.rows)).astype(float) for t in dealt[TEST].trees]
    scores += _measured("linear chain", None, chains, dealt, seed)
    return LayerScores(
        task="tree distance",
        encoder=states.encoder,
        labels=(),
        scores=tuple(scores),
        n_train=dealt[TRAIN].n_words,
        n_dev=dealt[DEV].n_words,
        n_test=dealt[TEST].n_words,
        decisions=decisions,
    )


def fit_distances(
    vectors: npt.NDArray[Any],
    train: Sequence[Tree],
    dev: Sequence[Tree],
    rank: int,
    plan: Plan,
    seed: int,
) -> Callable[[Tree], Float64Array]:
    """Learn a matrix whose squared distances are those of the trees.

    The loss of a sentence is the mean absolute difference over its pairs of words (Hewitt and
    Manning 2019, section 3.2). The best of several looks at the dev part is kept.

    Parameters
    ----------
    vectors : ndarray of shape (n_rows, width)
    train, dev : sequence of Tree
    rank : int
    plan : Plan
    seed : int

    Returns
    -------
    callable
        From a tree to the distances of its words, float64 of shape (n_words, n_words).
    """
    rows = np.concatenate([tree.rows for tree in train])
    bare = Features(vectors, np.arange(len(vectors))[:, None])
    features = bare.standardised(rows)
    width = features.width
    generator = torch.Generator().manual_seed(seed)
    matrix = torch.randn(width, rank, generator=generator)
    matrix *= float(np.sqrt(FIRST_DISTANCE / (2 * width * rank)))
    matrix.requires_grad_()
    n_steps, batches = batches_of(np.arange(len(train)), plan, seed)
    optimizer = torch.optim.Adam([matrix], lr=plan.rate / np.sqrt(width), betas=(0.9, 0.99))
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: falling(step, n_steps))
    looks = {round(n_steps * (i + 1) / plan.n_looks) for i in range(plan.n_looks)}
    best, least = matrix.detach().clone(), np.inf
    for step, chosen in enumerate(batches, start=1):
        loss = _loss(features, matrix, [train[i] for i in chosen.tolist()]).mean()
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        schedule.step()
        if step in looks:
            with torch.no_grad():
                pieces = [dev[begin : begin + 64] for begin in range(0, len(dev), 64)]
                losses = [_loss(features, matrix, piece) for piece in pieces]
                found = float(torch.cat(losses).double().mean())
            if found < least:
                best, least = matrix.detach().clone(), found

    def predict(tree: Tree) -> Float64Array:
        seen = features.take(tree.rows) @ best
        return np.asarray((seen[:, None] - seen[None]).square().sum(dim=2).double().numpy())

    return predict


def _loss(features: Features, matrix: torch.Tensor, trees: Sequence[Tree]) -> torch.Tensor:
    """Return the mean absolute difference of distances of each sentence."""
    sizes = torch.tensor([len(tree.rows) for tree in trees])
    longest = int(sizes.max())
    seen = features.take(np.concatenate([tree.rows for tree in trees])) @ matrix
    is_word = torch.arange(longest)[None, :] < sizes[:, None]
    padded = seen.new_zeros(len(trees), longest, seen.shape[1])
    padded = padded.masked_scatter(is_word[:, :, None], seen)
    squares = padded.square().sum(dim=2)
    products = padded @ padded.transpose(1, 2)
    distances = squares[:, :, None] + squares[:, None, :] - 2 * products
    wanted = torch.zeros(len(trees), longest, longest)
    for place, tree in enumerate(trees):
        n = len(tree.rows)
        wanted[place, :n, :n] = torch.from_numpy(tree.distances)
    is_pair = is_word[:, :, None] & is_word[:, None, :]
    wrong = ((distances - wanted).abs() * is_pair).sum(dim=(1, 2))
    return wrong / sizes.square()


def _dealt_trees(
    states: HiddenStates,
    heads: ProbeTask | Sequence[Any],
    parts: Sequence[str] | None,
    test_share: float,
    dev_share: float,
    seed: int,
    *,
    punctuation: bool,
) -> tuple[list[_Trees], tuple[Decision, ...]]:
    """Read all trees and deal them out, in an order that comes from their words alone."""
    if isinstance(heads, ProbeTask):
        check_unit(states, heads)
    of_unit = label_of_each_unit(states, heads.labels if isinstance(heads, ProbeTask) else heads)
    labelled = labelled_units(states, heads, parts)
    trees = read_trees(states, of_unit, punctuation=punctuation)
    of_row = numbered_sentences(states, seed)
    part, decisions = parts_of(labelled, of_row[labelled.rows[:, 0]], test_share, dev_share)
    part_of_row = dict(zip(labelled.rows[:, 0].tolist(), part.tolist(), strict=True))
    dealt = []
    for which, name in enumerate(("train", "dev", "test")):
        own = [tree for tree in trees if part_of_row[int(tree.rows[0])] == which]
        own.sort(key=lambda tree: (of_row[tree.rows[0]], tree.distances.tobytes()))
        if not own:
            raise InputError(f"expected sentences of two words or more in the {name} part")
        dealt.append(_Trees(own, np.array([of_row[tree.rows[0]] for tree in own])))
    n_measured = sum(SHORTEST <= len(tree.rows) <= LONGEST for tree in dealt[TEST].trees)
    message = (
        f"The rank correlation is over {n_measured:,} of {len(dealt[TEST].trees):,} test "
        f"sentences: those of {SHORTEST} to {LONGEST} words."
    )
    told = Decision("probing", "sentence_lengths", n_measured, message)
    return dealt, (*labelled.decisions, *decisions, told)


def _measured(
    what: str,
    layer: int | None,
    predicted: Sequence[Float64Array],
    dealt: Sequence[_Trees],
    seed: int,
) -> list[ProbeScore]:
    """Return both figures of what was predicted for the test sentences."""
    trees, group = dealt[TEST].trees, dealt[TEST].group
    numbered = np.unique(group, return_inverse=True)[1]
    n_lengths = LONGEST - SHORTEST + 1
    # By sentence group: edges found and there are; then sums and numbers of sentences by length.
    sums = np.zeros((int(numbered.max()) + 1, 2 + 2 * n_lengths))
    for at, tree, own in zip(numbered.tolist(), trees, predicted, strict=True):
        sums[at, :2] += edges_found(tree, own), len(tree.edges)
        length = len(tree.rows) - SHORTEST
        if 0 <= length < n_lengths:
            sums[at, 2 + length] += mean_rank_correlation(tree, own)
            sums[at, 2 + n_lengths + length] += 1
    whole = sums.sum(axis=0, keepdims=True)
    drawn = np.empty((0, sums.shape[1]))
    if len(sums) > 1:
        drawn = resampled_sums(sums, N_RESAMPLES, seed)
    n_sentences, n_edges = int(whole[0, 2 + n_lengths :].sum()), int(whole[0, 1])
    return [
        score(what, layer, metric, estimate(float(of(whole, whole)[0]), of(drawn, whole), n))
        for metric, of, n in (("spearman", _by_length, n_sentences), ("uuas", _edges, n_edges))
    ]


def _by_length(sums: Float64Array, whole: Float64Array) -> Float64Array:
    """Average over the words of a length, and then over lengths.

    A length of which no sentence was drawn keeps the mean of all its sentences: left out, it would
    shift the figure, since long sentences are rare and hard.
    """
    (total, n), (of_all, n_of_all) = (np.split(one[:, 2:], 2, axis=1) for one in (sums, whole))
    there = n_of_all[0] > 0
    if not there.any():
        return np.full(len(sums), np.nan)
    means = np.tile(of_all[:, there] / n_of_all[:, there], (len(sums), 1))
    np.divide(total[:, there], n[:, there], out=means, where=n[:, there] > 0)
    return np.asarray(means.mean(axis=1))


def _edges(sums: Float64Array, whole: Float64Array) -> Float64Array:
    found = np.full(len(sums), np.nan)
    np.divide(sums[:, 0], sums[:, 1], out=found, where=sums[:, 1] > 0)
    return found
