"""Token sequences through a transformer, and the tokens of all its layers pooled to units."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np

from embedtopics.encoders.batching import longest_first, token_batches
from embedtopics.probing.opening import Layered
from embedtopics.probing.planning import Run
from embedtopics.protocols import FloatArray, Int32Array, Int64Array

if TYPE_CHECKING:
    import torch

__all__ = ["POOLINGS", "pool_block"]

POOLINGS = ("first", "last", "max", "mean", "sum")


def pool_block(
    layered: Layered,
    runs: Sequence[Run],
    n_pieces: Int32Array,
    *,
    first_row: int,
    layers: Sequence[int],
    pooling: str,
    pad_id: int,
    tokens_per_batch: int,
    progress: Callable[[int], object],
) -> FloatArray:
    """Return the vectors of consecutive units at some layers.

    Parameters
    ----------
    layered : Layered
    runs : sequence of Run
        All those that the units have tokens in.
    n_pieces : int32 ndarray of shape (n_units,)
        Tokens of each unit.
    first_row : int
        Number of the first unit, among all.
    layers : sequence of int
    pooling : str
        Of "first" and "last", `runs` hold one token a unit.
    pad_id, tokens_per_batch : int
    progress : callable
        Told the tokens of each batch.

    Returns
    -------
    float32 ndarray of shape (n_layers, n_units, width)
        Zero for a unit without tokens.
    """
    pooled = np.zeros((len(layers), len(n_pieces), layered.width), dtype=np.float32)
    if pooling == "max":
        pooled[:] = -np.inf
    ids = [run.ids for run in runs]
    order = longest_first(ids, range(len(runs)))
    batches = [
        [runs[k] for k in order[batch]]
        for batch in token_batches([len(ids[k]) // 4 for k in order], tokens_per_batch)
    ]

    def work(chosen: list[Run]) -> tuple[np.ndarray, list[FloatArray]]:
        return _pool_batch(layered, chosen, layers, pad_id, pooling == "max")

    for chosen, (rows, found) in _worked_on(work, batches, layered.device):
        for layer, vectors in enumerate(found):
            # A unit may have tokens in several windows, and so in several batches.
            if pooling == "max":
                pooled[layer, rows - first_row] = np.maximum(
                    pooled[layer, rows - first_row], vectors
                )
            else:
                pooled[layer, rows - first_row] += vectors
        progress(sum(len(run.ids) // 4 for run in chosen))
    if pooling == "max":
        pooled[:, n_pieces == 0] = 0.0
    if pooling == "mean":
        pooled /= np.maximum(n_pieces, 1).astype(np.float32)[:, None]
    return pooled


def _worked_on(
    work: Callable[[list[Run]], tuple[np.ndarray, list[FloatArray]]],
    batches: list[list[Run]],
    device: str,
) -> Iterator[tuple[list[Run], tuple[np.ndarray, list[FloatArray]]]]:
    """Give each batch with its result, in order; on a CPU several batches are worked on at once.

    A core for each batch is faster than all cores for one, whose many small steps wait for each
    other; and no sum depends on the number of cores.
    """
    import torch

    n_threads = torch.get_num_threads()
    if device != "cpu":
        yield from ((batch, work(batch)) for batch in batches)
        return
    executor = ThreadPoolExecutor(n_threads, initializer=torch.set_num_threads, initargs=(1,))
    waiting: deque[Future[tuple[np.ndarray, list[FloatArray]]]] = deque()
    try:
        for number, batch in enumerate(batches):
            waiting.append(executor.submit(work, batch))
            if len(waiting) > 2 * n_threads:  # what is done and not taken fills memory
                first = number + 1 - len(waiting)
                yield batches[first], waiting.popleft().result()
        for number in range(len(batches) - len(waiting), len(batches)):
            yield batches[number], waiting.popleft().result()
    finally:
        executor.shutdown(cancel_futures=True)
        torch.set_num_threads(n_threads)  # of the whole process, for some of its libraries


def _pool_batch(
    layered: Layered, runs: Sequence[Run], layers: Sequence[int], pad_id: int, by_maximum: bool
) -> tuple[np.ndarray, list[FloatArray]]:
    """Return the units that a batch has tokens of, and at each layer what it adds to them."""
    import torch

    n_tokens = len(runs[0].ids) // 4
    ids = np.full((len(runs), n_tokens), pad_id, dtype=np.int64)
    mask = np.zeros_like(ids)
    for row, run in enumerate(runs):
        own = np.frombuffer(run.ids, dtype=np.int32)
        ids[row, : len(own)] = own
        mask[row, : len(own)] = 1
    places = np.concatenate([run.places + row * n_tokens for row, run in enumerate(runs)])
    rows = np.concatenate([run.rows for run in runs])
    order = np.argsort(rows, kind="stable")
    units, sizes = np.unique(rows, return_counts=True)
    places = places[order].astype(np.int64)
    with torch.inference_mode():
        output = layered.model(
            input_ids=torch.from_numpy(ids).to(layered.device),
            attention_mask=torch.from_numpy(mask).to(layered.device),
            output_hidden_states=True,
        )
        if layered.device == "cpu" and not by_maximum:
            reduce = _adder(places, sizes)
        else:
            reduce = _segment_reducer(places, sizes, layered.device, by_maximum)
        return units, [reduce(output.hidden_states[n].flatten(0, 1).float()) for n in layers]


def _adder(places: Int64Array, sizes: Int64Array) -> Callable[[torch.Tensor], FloatArray]:
    """Return what adds up the tokens of each unit, the first first.

    Most words are one token, so that nearly all is done by taking rows: several times as fast as
    adding token by token.
    """
    starts = np.cumsum(sizes) - sizes
    first = places[starts]
    later = []
    for step in range(1, int(sizes.max(initial=0))):
        units = np.flatnonzero(sizes > step)
        later.append((units, places[starts[units] + step]))

    def add(tokens: torch.Tensor) -> FloatArray:
        vectors: FloatArray = tokens.numpy()
        total: FloatArray = vectors[first]
        for units, at in later:
            total[units] += vectors[at]
        return total

    return add


def _segment_reducer(
    places: Int64Array, sizes: Int64Array, device: str, by_maximum: bool
) -> Callable[[torch.Tensor], FloatArray]:
    """Return what adds up the tokens of each unit, or takes their maximum, where they are."""
    import torch

    at, lengths = (torch.from_numpy(array).to(device) for array in (places, sizes))

    def reduce(tokens: torch.Tensor) -> FloatArray:
        # On a GPU, adding by index has no fixed order, and so no fixed last bit.
        chosen = tokens.index_select(0, at)
        how = "max" if by_maximum else "sum"
        found: FloatArray = torch.segment_reduce(chosen, how, lengths=lengths, axis=0).cpu().numpy()
        return found

    return reduce
