"""Structural probes: distances between vectors that match those in a dependency tree."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from embedtopics._utils.checks import checked_count, resolve_seed
from embedtopics.decisions import Decision
from embedtopics.errors import InputError
from embedtopics.evaluation._bootstrap import estimate, resampled_sums
from embedtopics.probing._layers import Layers, layer_numbers
from embedtopics.probing._tasks import PARTS
from embedtopics.probing.probes._fit import Features, Plan, batches_of, run_side_by_side, stepper
from embedtopics.probing.probes._probe import Source, baseline_sources
from embedtopics.probing.probes._scores import N_RESAMPLES, score
from embedtopics.probing.probes._units import (
    DEV,
    TEST,
    TRAIN,
    label_of_each_unit,
    labelled_units,
    number_sentences,
    parts_of,
    start_of,
)
from embedtopics.probing.results import HiddenStates, LayerScores, ProbeScore, ProbeTask
from embedtopics.protocols import BoolArray, Float64Array, Int64Array, RandomState

PLAN = Plan(n_epochs=10, least_steps=600, rate=0.02, largest_batch=32, n_evaluations=10)
MOST_RANK = 64
"""Hewitt and Manning (2019, figure 5) find no gain beyond it."""
SHORTEST, LONGEST = 5, 50
FIRST_DISTANCE = 4.0
"""Mean squared distance under the first weights, about that of a tree."""


@dataclass(frozen=True, eq=False)
class Tree:
    """The dependency tree of one sentence."""

    rows: Int64Array  # (n_words,)
    distances: Float64Array  # (n_words, n_words), in edges
    edges: frozenset[tuple[int, int]]  # places in `rows`, the lower first, without punctuation
    counts: BoolArray  # (n_words,), False for punctuation


def read_trees(states: HiddenStates, heads: Sequence[str]) -> list[Tree]:
    """Read the tree of each sentence that has heads, and two words or more with a vector."""
    begins = np.flatnonzero(np.diff(states.sentences, prepend=states.sentences[0] - 1))
    is_missing = states.missing
    trees = []
    for begin, end in zip(begins.tolist(), [*begins[1:].tolist(), len(states)], strict=True):
        if not any(heads[begin:end]):
            continue
        own = _checked_heads(heads[begin:end], states, begin)
        distances = tree_distances(own)
        kept = np.flatnonzero(~is_missing[begin:end])
        if len(kept) < 2:
            continue
        words = [states.words[begin + i] for i in kept.tolist()]
        counts = [any(unicodedata.category(c)[0] != "P" for c in word) for word in words]
        number = {int(place): i for i, place in enumerate(kept) if counts[i]}
        links = [(place, head - 1) for place, head in enumerate(own) if head]
        edges = frozenset(
            (min(number[a], number[b]), max(number[a], number[b]))
            for a, b in links
            if a in number and b in number
        )
        trees.append(Tree(begin + kept, distances[np.ix_(kept, kept)], edges, np.array(counts)))
    return trees


def tree_distances(heads: Sequence[int]) -> Float64Array:
    """Return the number of edges between any two words, shape (n, n)."""
    from scipy.sparse.csgraph import shortest_path

    links = np.zeros((len(heads), len(heads)))
    for place, head in enumerate(heads):
        if head:
            links[place, head - 1] = 1
    return np.asarray(shortest_path(links, directed=False, unweighted=True))


def edges_found(tree: Tree, distances: Float64Array) -> int:
    """Return how many edges of a tree are in the minimum spanning tree of other distances."""
    from scipy.sparse.csgraph import minimum_spanning_tree

    counted = np.flatnonzero(tree.counts)
    if len(counted) < 2:
        return 0
    # All above 0, which scipy takes for no edge.
    found = minimum_spanning_tree(distances[np.ix_(counted, counted)] + 1.0)
    edges = np.sort(counted[np.argwhere(found.toarray())], axis=1)
    return sum((a, b) in tree.edges for a, b in edges.tolist())


def mean_rank_correlation(tree: Tree, distances: Float64Array) -> float:
    """Return the mean over words of the rank correlation of distances, 0 where all are equal."""
    from scipy.stats import rankdata

    found, wanted = (
        ranks - ranks.mean(axis=1, keepdims=True)
        for ranks in (rankdata(distances, axis=1), rankdata(tree.distances, axis=1))
    )
    below = np.sqrt(np.square(found).sum(axis=1) * np.square(wanted).sum(axis=1))
    above = (found * wanted).sum(axis=1)
    return float(np.divide(above, below, out=np.zeros_like(above), where=below > 0).mean())


def _checked_heads(own: Sequence[str], states: HiddenStates, begin: int) -> list[int]:
    text = int(states.of_text[begin])
    where = f" in {start_of(states.texts[text])}"
    for place, head in enumerate(own, start=1):
        if not head.isdecimal() or int(head) > len(own) or int(head) == place:
            expected = f"from 0 to {len(own)}, and not the word itself,{where}"
            raise InputError("heads", expected, found=f"{head!r} of word {place}", row=text)
    heads = [int(head) for head in own]
    n_roots, apart = heads.count(0), np.isinf(tree_distances(heads)).any()
    if n_roots != 1 or apart:
        found = "a cycle" if n_roots == 1 else f"{n_roots} roots"
        raise InputError("heads", f"a tree{where}", found=found, row=text)
    return heads


def structural_probe(
    states: HiddenStates,
    heads: ProbeTask | Sequence[Any],
    *,
    layers: Layers = "all",
    rank: int | None = None,
    random_states: HiddenStates | None = None,
    parts: Sequence[str] | None = None,
    test_share: float = 0.2,
    dev_share: float = 0.1,
    random_state: RandomState = 0,
    show_progress: bool | None = None,
) -> LayerScores:
    """Measure at which layer distances between words match those in their dependency tree.

    For each layer a matrix B is learned, so that the squared length of B(u - v) is the number of
    edges between the words of u and v (Hewitt and Manning 2019, "A structural probe for finding
    syntax in word representations", equation 2).

    Parameters
    ----------
    states : HiddenStates
        Of words.
    heads : ProbeTask, or one sequence of heads a text, or one head a word
        The number of a word's head in its sentence, from 1, and 0 for the root. Sentences without
        heads (empty strings or None) are left out.
    layers : int, sequence of int, "all" or "last N"
    rank : int, optional
        Rows of B; by default 64, or the width where that is less.
    random_states : HiddenStates, optional
        From `embedtopics.probing.random_states`, of the same texts.
    parts : sequence of str, optional
        "train", "dev" or "test" of each text.
    test_share, dev_share : float
        Of the words, where sentences are split.
    random_state : int, Generator or None
    show_progress : bool, optional

    Returns
    -------
    LayerScores
        "spearman": the correlation of distances from a word with the true ones, averaged over the
        words of sentences of one length, and over the lengths from 5 to 50. "uuas": the share of
        edges, without those to punctuation, in the minimum spanning tree. Baselines are "embedding
        layer" (layer 0), "linear chain" (distance in the sentence) and "random model"; 95 %
        intervals are over resampled test sentences.

    Raises
    ------
    InputError
        If heads are no trees or do not match the words, or a part is empty.
    """
    seed = resolve_seed(random_state)
    if states.unit != "word":
        raise InputError("states", "of words", found=f"those of {states.unit}s")
    if rank is not None and checked_count(rank, "rank") > states.width:
        raise InputError("rank", f"at most the width, {states.width}", rank)
    n_rows = rank or min(MOST_RANK, states.width)
    wanted = sorted(set(layer_numbers(layers, states.layers)))
    split, group, decisions = _split_trees(states, heads, parts, test_share, dev_share, seed)
    sources = [Source("probe", layer, states.layer(layer)) for layer in wanted]
    baselines = ["embedding layer"] if 0 in states.layers else []
    sources += baseline_sources(states, random_states, baselines, wanted, True)

    def work(source: Source) -> list[ProbeScore]:
        what, layer, vectors, _ = source
        predict = fit_distances(vectors, split[TRAIN], split[DEV], n_rows, PLAN, seed)
        predicted = [predict(tree) for tree in split[TEST]]
        return _measured(what, layer, predicted, split[TEST], group, seed)

    done = run_side_by_side(
        work, sources, description="training structural probes", show_progress=show_progress
    )
    scores = [one for own in done for one in own]
    first = [one for one in scores if one.what == "probe" and one.layer == 0]
    scores += [replace(one, what="embedding layer") for one in first]
    chains = [np.abs(np.subtract.outer(t.rows, t.rows)).astype(float) for t in split[TEST]]
    scores += _measured("linear chain", None, chains, split[TEST], group, seed)
    n_train, n_dev, n_test = (sum(len(tree.rows) for tree in trees) for trees in split)
    return LayerScores(
        task="tree distance",
        encoder=states.encoder,
        labels=(),
        rows=tuple(scores),
        n_train=n_train,
        n_dev=n_dev,
        n_test=n_test,
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
    """Learn a matrix whose squared distances are those of trees (Hewitt and Manning 2019, 3.2)."""
    rows = np.concatenate([tree.rows for tree in train])
    features = Features(vectors, np.arange(len(vectors))[:, None]).standardised(rows)
    width = features.width
    generator = torch.Generator().manual_seed(seed)
    matrix = torch.randn(width, rank, generator=generator)
    matrix *= float(np.sqrt(FIRST_DISTANCE / (2 * width * rank)))
    matrix.requires_grad_()
    n_steps, batches = batches_of(np.arange(len(train)), plan, seed)
    take_step = stepper([{"params": [matrix], "lr": plan.rate / np.sqrt(width)}], n_steps)
    evaluated = plan.evaluated(n_steps)
    best, least = matrix.detach().clone(), np.inf
    for step, chosen in enumerate(batches, start=1):
        take_step(_loss(features, matrix, [train[i] for i in chosen.tolist()]).mean())
        if step in evaluated:
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
    parts = list(torch.split(seen, sizes.tolist()))
    padded = torch.nn.utils.rnn.pad_sequence(parts, batch_first=True)
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


def _split_trees(
    states: HiddenStates,
    heads: ProbeTask | Sequence[Any],
    parts: Sequence[str] | None,
    test_share: float,
    dev_share: float,
    seed: int,
) -> tuple[list[list[Tree]], Int64Array, tuple[Decision, ...]]:
    """Return the trees of each part, by their words alone, and the groups of those of the test."""
    of_unit = label_of_each_unit(states, heads)
    labelled = labelled_units(states, heads, parts)
    trees = read_trees(states, of_unit)
    of_row = number_sentences(states, seed)
    part, decisions = parts_of(labelled, of_row[labelled.rows[:, 0]], test_share, dev_share)
    part_of_row = dict(zip(labelled.rows[:, 0].tolist(), part.tolist(), strict=True))
    split = []
    for which, name in enumerate(PARTS):
        own = [tree for tree in trees if part_of_row[int(tree.rows[0])] == which]
        own.sort(key=lambda tree: (of_row[tree.rows[0]], tree.distances.tobytes()))
        if not own:
            raise InputError("heads", f"of sentences of two words or more in {name}", found="none")
        split.append(own)
    group = np.array([of_row[tree.rows[0]] for tree in split[TEST]])
    n_measured = sum(SHORTEST <= len(tree.rows) <= LONGEST for tree in split[TEST])
    message = (
        f"The rank correlation is over {n_measured:,} of {len(group):,} test sentences, those "
    )
    message += f"of {SHORTEST} to {LONGEST} words."
    lengths = Decision("probing", "sentence_lengths", n_measured, message)
    return split, group, (*labelled.decisions, *decisions, lengths)


def _measured(
    what: str,
    layer: int | None,
    predicted: Sequence[Float64Array],
    trees: Sequence[Tree],
    group: Int64Array,
    seed: int,
) -> list[ProbeScore]:
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
    drawn = resampled_sums(sums, N_RESAMPLES, seed) if len(sums) > 1 else sums[:0]
    n_sentences, n_edges = int(whole[0, 2 + n_lengths :].sum()), int(whole[0, 1])
    # The fewest rank correlations are -1.
    figures = (("spearman", _by_length, n_sentences, -1.0), ("uuas", _edge_share, n_edges, 0.0))
    found = []
    for metric, of, n, least in figures:
        value, again = float(of(whole, whole)[0]), of(drawn, whole)
        figure = estimate(value, again, n, n_units=len(sums), bounds=(least, 1.0))
        found.append(score(what, layer, metric, figure))
    return found


def _by_length(sums: Float64Array, whole: Float64Array) -> Float64Array:
    """Average over the words of a length, then over lengths; those not drawn stay as they are."""
    (total, n), (of_all, n_of_all) = (np.split(one[:, 2:], 2, axis=1) for one in (sums, whole))
    there = n_of_all[0] > 0
    if not there.any():
        return np.full(len(sums), np.nan)
    means = np.tile(of_all[:, there] / n_of_all[:, there], (len(sums), 1))
    np.divide(total[:, there], n[:, there], out=means, where=n[:, there] > 0)
    return np.asarray(means.mean(axis=1))


def _edge_share(sums: Float64Array, _: Float64Array) -> Float64Array:
    n_edges = np.where(sums[:, 1] > 0, sums[:, 1], np.nan)
    return np.asarray(sums[:, 0] / n_edges)
