"""Building a segment's index, and measuring it."""

from __future__ import annotations

import os
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy.typing as npt

from embedtopics.errors import InputError
from embedtopics.protocols import FloatArray
from embedtopics.retrieval.dense.calibrating import calibrated, measured, samples
from embedtopics.retrieval.dense.codes import CODE_FILES, build_codes
from embedtopics.retrieval.dense.files import (
    ABOUT,
    FORMAT,
    checked_vectors,
    file_sizes,
    read_vectors,
    write_about,
    write_vectors,
)
from embedtopics.retrieval.dense.graph import GRAPH_FILES, Graph, build_graph_index
from embedtopics.retrieval.dense.segment import DenseSegment, open_index
from embedtopics.retrieval.dense.settings import DenseSettings, choose_kind

__all__ = ["build_dense"]


def build_dense(
    folder: str | Path,
    vectors: npt.ArrayLike,
    settings: DenseSettings | None = None,
    queries: npt.ArrayLike | None = None,
) -> dict[str, Any]:
    """Write the vectors of a segment and an index of them, and measure how good that is.

    How far the index looks is found on a sample of queries, as the least that reaches the wanted
    recall with a margin; the recall and speed that are returned are measured on other queries.
    By default both are vectors of the segment, each left out of its own answer, and none of them
    zero: of a segment of zero vectors alone nothing is measured ("n_queries" is 0). Real queries
    may be of another kind than documents, such as questions, and then recall may be lower: give
    some.

    The files and the answers depend on vectors, settings and queries alone, whatever the number
    of threads; only the times that are returned do not.

    Parameters
    ----------
    folder : str or Path
        Of the segment; must exist. ``vectors.f32`` or ``vectors.f16`` and ``dense/`` are written.
    vectors : float32 array of shape (n, d)
        Unit vectors; zero vectors are let in.
    settings : DenseSettings, optional
    queries : float32 array of shape (n_queries, d), optional
        Real queries, two at least, of length 1.

    Returns
    -------
    dict
        For JSON, as in ``dense/dense.json``: "kind" and "why" it was chosen, "asked" for;
        "parameters"; "measured": recall at "k", whether it "reached" what was wanted, and
        queries a second one by one on one thread, beside those of the comparison with every
        vector; "bytes" of vectors, index and, of these, what must be in memory for that speed;
        "seconds" that it took.

    Raises
    ------
    InputError
        If vectors or queries are not as said.
    """
    start = time.perf_counter()
    folder = Path(folder)
    settings = settings or DenseSettings()
    values = checked_vectors(vectors)
    asking = _checked_queries(queries, values.shape[1])
    n, d = values.shape
    kind, why = choose_kind(n, d, settings)
    (folder / "dense").mkdir(exist_ok=True)
    name = write_vectors(folder, values, half=kind in ("ivfpq", "sq"))
    files = [name, *_build_index(folder / "dense", values, kind, settings)]
    stored = read_vectors(folder, name, n, d, mmap=True)
    segment = DenseSegment(kind, stored, open_index(folder, kind, stored, True), 1, 1, {})
    calibration, held_out = samples(values, asking, settings.seed)
    segment = calibrated(segment, calibration, values, settings)
    found = measured(segment, held_out, values)
    sizes = file_sizes(folder, files)
    about = {
        "format": FORMAT,
        "kind": kind,
        "why": why,
        "asked": settings.kind,
        "n": n,
        "d": d,
        "vectors": name,
        "files": sizes,
        "settings": asdict(settings),
        "parameters": _parameters(segment, settings),
        "measured": {
            **found,
            "queries": "vectors of the segment" if asking is None else "given",
            "reached": bool(found["recall"] >= settings.recall),
        },
        "bytes": _bytes(kind, name, sizes),
        "seconds": round(time.perf_counter() - start, 3),
    }
    write_about(folder, about)
    return about


def _checked_queries(queries: npt.ArrayLike | None, d: int) -> FloatArray | None:
    if queries is None:
        return None
    asking = checked_vectors(queries)
    if asking.shape[1] != d or len(asking) < 2:
        raise InputError(
            f"expected two queries or more with {d} dimensions to calibrate on; got shape "
            f"{asking.shape}"
        )
    return asking


def _build_index(
    folder: Path, vectors: FloatArray, kind: str, settings: DenseSettings
) -> list[str]:
    """Write the files of the index, remove those of another, and return their names."""
    wanted: tuple[str, ...] = ()
    if kind == "hnsw":
        build_graph_index(folder, vectors, settings)
        wanted = GRAPH_FILES
    elif kind != "flat":
        build_codes(folder, vectors, kind, settings)
        wanted = CODE_FILES
    for name in {*CODE_FILES, *GRAPH_FILES} - set(wanted):
        (folder / name).unlink(missing_ok=True)
    for name in wanted:
        with (folder / name).open("rb") as stream:
            os.fsync(stream.fileno())
    return [f"{Path(ABOUT).parent}/{name}" for name in wanted]


def _parameters(segment: DenseSegment, settings: DenseSettings) -> dict[str, Any]:
    """Return what the index was built with, by the field's names, and how far it looks."""
    index = segment.index
    if index is None:
        return {}
    about: dict[str, Any] = {"breadth": segment.breadth, "n_candidates": segment.n_candidates}
    if isinstance(index, Graph):
        return {
            **about, "ef_search": segment.breadth, "M": settings.M,
            "ef_construction": settings.ef_construction,
        }  # fmt: skip
    return {
        **about, "n_probe": segment.breadth, "n_lists": index.widest,
        "n_dimensions_coded": len(index.axes), "bytes_per_code": int(index.index.pq.M) // 2,
    }  # fmt: skip


def _bytes(kind: str, name: str, sizes: dict[str, int]) -> dict[str, int]:
    """Return sizes; of vectors in float16, a search reads no more than its candidates."""
    index = sum(size for file, size in sizes.items() if file != name)
    resident = index if kind in ("ivfpq", "sq") else index + sizes[name]
    return {"vectors": sizes[name], "index": index, "memory": resident}
