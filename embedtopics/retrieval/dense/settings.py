"""How a segment's vectors are to be searched, and which kind of index that takes."""

from __future__ import annotations

from dataclasses import dataclass

from embedtopics._checks import checked_count, checked_share, optional_count
from embedtopics.errors import InputError

__all__ = ["KINDS", "DenseSettings", "choose_kind"]

KINDS = ("flat", "hnsw", "ivf", "ivfpq", "sq")

FLAT_BYTES = 80_000_000
"""Bytes of vectors that one core reads in about 10 ms. A size and not a stop-watch decides, so that
the same vectors get the same kind of index on every machine, and under any load."""

LEAST_CODED = 256
"""Vectors from which codes can be learnt; fewer are compared one by one."""


@dataclass(frozen=True)
class DenseSettings:
    """What is wanted of the search, and, for those who know better, how it is done.

    Parameters
    ----------
    kind : {"auto", "flat", "hnsw", "ivf", "ivfpq", "sq"}
        "flat" compares a query with every vector. The others look for candidates, and compare the
        query with these in full: "hnsw" along a graph of neighbours (Malkov and Yashunin 2020),
        where equal vectors, if there are many, are each other's only neighbours, and other queries
        may find no way among them; "ivf" and "ivfpq" in the nearest of many lists, by codes of two
        bits a dimension (Jégou, Douze and Schmid 2011; André, Kermarrec and Le Scouarnec 2015),
        and "ivfpq" keeps the vectors themselves in float16; "sq" among all vectors, by codes of
        four bits a dimension, the vectors in float16. "auto" is "flat" up to `flat_bytes`, then
        "ivf", or "ivfpq" where the memory limit asks for that.
    recall : float
        Share of the ten nearest that is to be found.
    memory_limit : int, optional
        Bytes that vectors and index may take in memory together. It guides "auto".
    seed : int
        Of the samples from which codes and lists are learnt, and on which recall is measured.
    flat_bytes : int
        Up to so many bytes of vectors "auto" compares with every one.
    M, ef_construction : int
        Of the graph: neighbours of a vector, and candidates for them.
    ef_search : int, optional
        Breadth of the walk along the graph; by default the least that gives the recall.
    n_lists : int, optional
        By default twice the root of the number of vectors.
    n_probe : int, optional
        Lists that are looked into; by default the fewest that give the recall.
    n_candidates : int, optional
        Vectors that are compared in full where ten are wanted; by default as many as are needed.
    kept_variance : float
        Share of the variance that the dimensions have to hold that "ivf" and "ivfpq" code.

    Raises
    ------
    InputError
        If one of these is something else.
    """

    kind: str = "auto"
    recall: float = 0.95
    memory_limit: int | None = None
    seed: int = 0
    flat_bytes: int = FLAT_BYTES
    M: int = 32
    ef_construction: int = 80
    ef_search: int | None = None
    n_lists: int | None = None
    n_probe: int | None = None
    n_candidates: int | None = None
    kept_variance: float = 0.95

    def __post_init__(self) -> None:
        if self.kind not in ("auto", *KINDS):
            raise InputError(
                f"expected a kind of index among auto, {', '.join(KINDS)}; got {self.kind!r}"
            )
        checked_share(self.recall, "recall")
        checked_share(self.kept_variance, "kept_variance")
        checked_count(self.seed, "seed", 0)
        checked_count(self.flat_bytes, "flat_bytes", 0)
        checked_count(self.M, "M", 2)
        checked_count(self.ef_construction, "ef_construction")
        for name in ("memory_limit", "ef_search", "n_lists", "n_probe", "n_candidates"):
            optional_count(getattr(self, name), name)


def choose_kind(n: int, d: int, settings: DenseSettings) -> tuple[str, str]:
    """Return the kind of index for so many vectors, and why it is that.

    Parameters
    ----------
    n, d : int
        Vectors and dimensions.
    settings : DenseSettings

    Returns
    -------
    kind, why : str
    """
    asked = settings.kind
    if asked in ("ivf", "ivfpq", "sq") and n < LEAST_CODED:
        return "flat", f"{n:,} vectors are too few to learn codes from; {asked!r} was asked for"
    if asked != "auto":
        return asked, "asked for"
    size = 4 * n * d
    limit = settings.memory_limit
    if n < LEAST_CODED:
        return "flat", f"{n:,} vectors are too few to learn codes from"
    if settings.recall == 1.0:
        return "flat", "only a comparison with every vector finds all of the nearest"
    if size <= settings.flat_bytes and (limit is None or size <= limit):
        return "flat", (
            f"{size:,} bytes of vectors are read in a few milliseconds; "
            f"up to {settings.flat_bytes:,} every vector is compared"
        )
    # Codes of two bits a dimension, and eight bytes for the number of a vector.
    whole = size + n * (d // 4 + 8)
    if limit is None or whole <= limit:
        return "ivf", f"{size:,} bytes of vectors are more than {settings.flat_bytes:,}"
    reason = f"vectors in float32 and their codes would take {whole:,} bytes of {limit:,}"
    if whole - size // 2 > limit:
        reason += "; those in float16 are above the limit too, and stay on disk"
    return "ivfpq", reason
