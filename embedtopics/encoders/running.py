"""Token ids to vectors: batch after batch, on as many cores as there are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from embedtopics._progress import progress_bar
from embedtopics.encoders.batching import distinct_rows, longest_first, token_batches
from embedtopics.encoders.runtime import Runtime
from embedtopics.protocols import FloatArray

__all__ = ["embed"]


def embed(
    run: Runtime,
    ids: Sequence[bytes],
    *,
    pad_id: int,
    n_unpooled: int,
    tokens_per_batch: int,
    finish: Callable[[FloatArray], FloatArray],
    dimensions: int,
    show_progress: bool | None,
) -> FloatArray:
    """Return one vector a text.

    Parameters
    ----------
    run : Runtime
    ids : sequence of bytes
        Token ids of each text, int32 as bytes.
    pad_id : int
    n_unpooled : int
        Tokens at the beginning of each text, those of a prompt, that are read but not pooled.
    tokens_per_batch : int
    finish : callable
        What is done to pooled vectors of shape (n_texts, n_pooled).
    dimensions : int
        Length of a vector.
    show_progress : bool or None

    Returns
    -------
    float32 ndarray of shape (n_texts, dimensions)
    """
    first = distinct_rows(ids)
    # A tokenizer without special tokens makes nothing of an empty text: a vector of zeros.
    order = longest_first(ids, [row for row in range(len(ids)) if first[row] == row and ids[row]])
    lengths = [len(ids[row]) // 4 for row in order]
    vectors = np.zeros((len(ids), dimensions), dtype=np.float32)

    def work(batch: slice) -> tuple[slice, FloatArray]:
        arrays = _padded([ids[row] for row in order[batch]], pad_id, n_unpooled)
        return batch, finish(run(*arrays))

    batches = list(token_batches(lengths, tokens_per_batch))
    with progress_bar(
        total=sum(lengths), unit="token", description="Encoding", show=show_progress
    ) as bar:
        for batch, made in _side_by_side(work, batches, run):
            vectors[order[batch]] = made
            bar.update(sum(lengths[batch]))
    repeated = [row for row in range(len(ids)) if first[row] != row]
    vectors[repeated] = vectors[[first[row] for row in repeated]]
    return vectors


def _side_by_side(
    work: Callable[[slice], tuple[slice, FloatArray]], batches: Sequence[slice], run: Runtime
) -> Iterator[tuple[slice, FloatArray]]:
    if len(batches) < 2 or run.n_workers < 2:
        yield from map(work, batches)
        return
    with ThreadPoolExecutor(run.n_workers) as pool:
        futures = [pool.submit(work, batch) for batch in batches]
        try:
            for future in futures:
                yield future.result()
        finally:  # nothing is left to do, or an error or an interrupt came through
            pool.shutdown(wait=True, cancel_futures=True)


def _padded(
    texts: Sequence[bytes], pad_id: int, n_unpooled: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return ids, mask and pooled mask of a batch whose first text is the longest."""
    ids = np.full((len(texts), len(texts[0]) // 4), pad_id, dtype=np.int64)
    mask = np.zeros_like(ids)
    for row, text in enumerate(texts):
        tokens = np.frombuffer(text, dtype=np.int32)
        ids[row, : len(tokens)] = tokens
        mask[row, : len(tokens)] = 1
    pooled = mask
    if n_unpooled:
        pooled = mask.copy()
        pooled[:, :n_unpooled] = 0
    return ids, mask, pooled
