"""A step of label propagation along neighbors, compiled by Numba and kept in its cache."""

from collections.abc import Callable
from functools import cache

import numba
import numpy as np

from embedtopics._utils.compiling import compiled
from embedtopics.protocols import FloatArray, Int32Array


@numba.njit(inline="always")
def _keep_largest(ids: Int32Array, shares: FloatArray, topic: int, share: np.float32) -> None:
    """Insert a topic into a short list that descends by share, and by topic among equals."""
    last = ids.shape[0] - 1
    if share < shares[last] or (share == shares[last] and ids[last] >= 0 and topic > ids[last]):
        return
    place = last
    while place > 0 and (
        shares[place - 1] < share or (shares[place - 1] == share and ids[place - 1] > topic)
    ):
        ids[place] = ids[place - 1]
        shares[place] = shares[place - 1]
        place -= 1
    ids[place] = topic
    shares[place] = share


@numba.njit(inline="always")
def _scale_to(shares: FloatArray, total: np.float32) -> None:
    """Scale shares to a total, which distributes the dropped ones in proportion."""
    total_kept = np.float32(0.0)
    for slot in range(len(shares)):
        total_kept += shares[slot]
    if total_kept > np.float32(0.0):
        for slot in range(len(shares)):
            shares[slot] *= total / total_kept


@compiled(
    numba.void(
        numba.int64, numba.int64,
        numba.int32[:, ::1], numba.float32[:, ::1], numba.int32[::1], numba.int32[::1],
        numba.float32[:, ::1], numba.float32[:, ::1],
    ),
    nogil=True,
)  # fmt: skip
def mix(
    first: int,
    end: int,
    indices: Int32Array,
    weights: FloatArray,
    passing: Int32Array,
    labels: Int32Array,
    shares: FloatArray,
    new_shares: FloatArray,
) -> None:
    """Write, for some documents, the weighted mean of their neighbors' shares, a column per topic.

    The shares of labelled documents are not read.
    """
    n_topics = shares.shape[1]
    for place in range(first, end):
        document = passing[place]
        for topic in range(n_topics):
            new_shares[document, topic] = np.float32(0.0)
        for neighbor in range(indices.shape[1]):
            weight = weights[document, neighbor]
            other = indices[document, neighbor]
            if labels[other] >= 0:
                new_shares[document, labels[other]] += weight
            elif labels[other] == -1:
                for topic in range(n_topics):
                    new_shares[document, topic] += weight * shares[other, topic]


@compiled(numba.void(numba.float32[:, ::1], numba.int32[:, ::1], numba.float32[:, ::1]))
def keep_largest(shares: FloatArray, ids: Int32Array, largest: FloatArray) -> None:
    """Write the largest shares of each document and their topics; `ids` hold -1, `largest` 0."""
    for row in range(len(shares)):
        total = np.float32(0.0)
        for topic in range(shares.shape[1]):
            if shares[row, topic] > np.float32(0.0):
                total += shares[row, topic]
                _keep_largest(ids[row], largest[row], topic, shares[row, topic])
        _scale_to(largest[row], total)


@cache
def step_of_many() -> Callable[..., None]:
    """Return a step for many documents and topics, which few corpora need to compile."""

    @compiled(
        numba.void(
            numba.int64, numba.int64,
            numba.int32[:, ::1], numba.float32[:, ::1], numba.int32[::1],
            numba.int32[:, ::1], numba.float32[:, ::1],
            numba.int32[:, ::1], numba.float32[:, ::1], numba.int64,
        ),
        nogil=True,
    )  # fmt: skip
    def step(
        first: int,
        end: int,
        indices: Int32Array,
        weights: FloatArray,
        passing: Int32Array,
        ids: Int32Array,
        shares: FloatArray,
        new_ids: Int32Array,
        new_shares: FloatArray,
        n_topics: np.int64,
    ) -> None:
        """Write, for some documents, the weighted mean of its neighbors' shares."""
        n_slots = ids.shape[1]
        collected = np.zeros(n_topics, dtype=np.float32)
        touched = np.empty(n_topics, dtype=np.int32)
        for place in range(first, end):
            document = passing[place]
            n_touched = 0
            for neighbor in range(indices.shape[1]):
                weight = weights[document, neighbor]
                other = indices[document, neighbor]
                for slot in range(n_slots):
                    topic = ids[other, slot]
                    amount = weight * shares[other, slot]
                    # Shares descend. A share that underflows must not mark its topic as touched.
                    if topic < 0 or amount <= np.float32(0.0):
                        break
                    if collected[topic] == np.float32(0.0):
                        touched[n_touched] = topic
                        n_touched += 1
                    collected[topic] += amount
            own_ids = new_ids[document]
            own_shares = new_shares[document]
            for slot in range(n_slots):
                own_ids[slot] = -1
                own_shares[slot] = np.float32(0.0)
            total = np.float32(0.0)
            for seen in range(n_touched):
                topic = touched[seen]
                total += collected[topic]
                _keep_largest(own_ids, own_shares, topic, collected[topic])
                collected[topic] = np.float32(0.0)
            _scale_to(own_shares, total)

    return step
