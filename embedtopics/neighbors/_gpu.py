"""The exact search of a graph by FAISS on a GPU, which has not been timed yet."""

from __future__ import annotations

import logging

import numpy as np

from embedtopics._utils.machine import has_cuda_driver
from embedtopics.neighbors._approximate import SPARE, Neighbors, keep_nearest, no_neighbors
from embedtopics.protocols import FloatArray, Int64Array

LEAST_ROWS = 10_000
"""Fewer take a second or less on two cores, and a GPU is not ready sooner."""

MOST_ROWS = 500_000
"""Documents up to which a GPU compares all pairs: at 384 dimensions these are 2e14 operations."""


def exact_on_gpu(
    embeddings: FloatArray, k: int, rows: Int64Array | None = None
) -> tuple[Neighbors | None, str]:
    """Find the k nearest of each unit vector (n_documents, n_dimensions), or of `rows` of them.

    Return None where there is no GPU for FAISS, or it fails, with the reason. Candidates are those
    of a search in float32, with the spare ones; what is said of the CPU's rounding holds for them.
    """
    # A FAISS for GPUs may end the process where it asks for some and there is no driver.
    if not has_cuda_driver():
        return None, ""
    import faiss

    if not hasattr(faiss, "StandardGpuResources") or faiss.get_num_gpus() < 1:
        return None, ""
    embeddings = embeddings if rows is None else embeddings[rows]
    n_candidates = min(k + 1 + SPARE, len(embeddings))
    try:
        candidates = faiss.knn_gpu(
            faiss.StandardGpuResources(), embeddings, embeddings, n_candidates,
            metric=faiss.METRIC_INNER_PRODUCT,
        )[1]  # fmt: skip
    except RuntimeError as error:  # its memory, or a GPU that this FAISS was not built for
        reason = " ".join(str(error).split())[:200]
        note = f"The CPU searched for neighbours, because the GPU could not ({reason})."
        logging.getLogger("embedtopics").warning(note)
        return None, note
    found = no_neighbors(len(embeddings), k)
    keep_nearest(found, embeddings, embeddings, candidates, itself=np.arange(len(embeddings)))
    return found, ""
