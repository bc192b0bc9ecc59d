"""Vectors in Qdrant: in memory, in a folder, or on a server or cluster."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from uuid import UUID, uuid5

import numpy as np
import numpy.typing as npt

from embedtopics._checks import checked_count
from embedtopics.errors import InputError, MissingExtraError
from embedtopics.retrieval.filters import parse_filter
from embedtopics.retrieval.filters.checking import check_columns
from embedtopics.retrieval.stores.checking import (
    checked_ids,
    checked_payload,
    checked_vectors,
    id_kind,
)
from embedtopics.retrieval.stores.protocol import Found, Where
from embedtopics.retrieval.stores.qdrant_filters import METADATA, check_key, qdrant_filter

__all__ = ["QdrantStore", "point_id"]

NAMESPACE = UUID("b3c1d1f4-6f0e-5a57-9c57-0d6a3f1e7a42")
"""Of the UUIDs of points; another one would make other points of the same documents."""

MEMORY = ":memory:"
QUERIES_AT_ONCE = 64
_READERS: dict[str, Any] = {"text": str, "integer": int, "real": float}
_INDEXES = {
    "text": "keyword", "integer": "integer", "real": "float", "boolean": "bool", "date": "datetime",
}  # fmt: skip


def point_id(value: Hashable) -> str:
    """Return the UUID of an id: Qdrant takes no others but that and integers from 0 up.

    Examples
    --------
    >>> point_id(1) == point_id("1")
    False
    """
    return str(uuid5(NAMESPACE, f"{id_kind(value)}:{value}"))


class QdrantStore:
    """Hold vectors in a collection of Qdrant; a `VectorStore`.

    Each vector is a point whose payload has the id of the document as "id" (text), its type as
    "id_type", and the metadata below "metadata", dates in ISO 8601: other programs that read
    the collection find all of it. Nothing goes over a network unless `url` is given.

    A local folder is read and written by qdrant-client with pickle, so that whoever wrote a
    folder can run code where it is opened: open only folders of your own, with `trusted`.

    Parameters
    ----------
    name : str
        Of the collection; made where it is not there.
    n_dimensions : int
    columns : mapping of str to {"text", "integer", "real", "boolean", "date"}, optional
        Metadata that documents may have. On a server, each gets an index.
    path : str or Path, optional
        Folder of a local store; ":memory:" (default without `url`) for none.
    url : str, optional
        Of a server or cluster, such as "http://localhost:6333".
    api_key : str, optional
    similarity : {"cosine", "dot"}
    exact : bool
        Whether a server compares every vector rather than ask its graph; a local store always
        does.
    trusted : bool
        Whether the content of a folder that is there already may be unpickled.
    batch_size : int
        Points sent at once.
    timeout : int
        Seconds for one answer of a server.

    Raises
    ------
    MissingExtraError
        Where qdrant-client is not installed.
    InputError
        Where the store cannot be reached or opened, or its collection has another dimension or
        similarity.
    """

    def __init__(
        self,
        name: str,
        n_dimensions: int,
        *,
        columns: Mapping[str, str] | None = None,
        path: str | Path | None = None,
        url: str | None = None,
        api_key: str | None = None,
        similarity: str = "cosine",
        exact: bool = False,
        trusted: bool = False,
        batch_size: int = 256,
        timeout: int = 60,
    ) -> None:
        if similarity not in ("cosine", "dot"):
            raise InputError(f"vectors are compared by cosine or dot; got {similarity!r}")
        if path is not None and url is not None:
            raise InputError("a store is at a path or at a url; got both")
        if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9_-]{1,200}", name):
            raise InputError(f"a collection's name has letters, digits, - and _; got {name!r}")
        self.name = name
        self.n_dimensions = checked_count(n_dimensions, "n_dimensions")
        self.columns = dict(columns or {})
        check_columns(self.columns)
        for column in self.columns:
            check_key(column)
        self.similarity = similarity
        self.exact = exact
        self.batch_size = checked_count(batch_size, "batch_size")
        self._where = url if url is not None else str(MEMORY if path is None else path)
        self._is_remote = url is not None
        if path not in (None, MEMORY):
            _check_folder(Path(str(path)), trusted)
        self._client = _connect(self._where, self._is_remote, api_key, timeout)
        try:
            self._make_collection()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> QdrantStore:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def upsert(
        self,
        ids: Sequence[Hashable],
        vectors: npt.ArrayLike,
        payloads: Sequence[Mapping[str, Any]] | None = None,
    ) -> None:
        """Add vectors with metadata; an id that is there is replaced.

        Everything is checked before anything is sent; what was sent before a connection broke
        stays, and may be sent again.

        Raises
        ------
        InputError
            Where lengths, dimensions or types do not fit, or the server cannot be reached.
        """
        from qdrant_client import models

        names = checked_ids(ids)
        rows = checked_vectors(vectors, self.n_dimensions, len(names))
        given = [{}] * len(names) if payloads is None else list(payloads)
        if len(given) != len(names):
            raise InputError(f"expected metadata of {len(names)} documents; got {len(given)}")
        points = [
            {
                "id": str(name),
                "id_type": id_kind(name),
                METADATA: checked_payload(payload, self.columns, name),
            }
            for payload, name in zip(given, names, strict=True)
        ]
        for begin in range(0, len(names), self.batch_size):
            part = slice(begin, begin + self.batch_size)
            sent = [
                models.PointStruct(id=point_id(name), vector=row.tolist(), payload=payload)
                for name, row, payload in zip(names[part], rows[part], points[part], strict=True)
            ]
            with _explained(self._where):
                self._client.upsert(self.name, points=sent, wait=True)

    def remove(self, ids: Sequence[Hashable]) -> None:
        """Take out what has one of these ids."""
        from qdrant_client import models

        points: list[Any] = [point_id(one) for one in checked_ids(ids, distinct=False)]
        for begin in range(0, len(points), self.batch_size):
            selected = models.PointIdsList(points=points[begin : begin + self.batch_size])
            with _explained(self._where):
                self._client.delete(self.name, points_selector=selected, wait=True)

    def search(self, vectors: npt.ArrayLike, k: int, where: Where = None) -> list[Found]:
        """Return the nearest of each query among the documents that pass a filter.

        Raises
        ------
        InputError
            For queries of another dimension, k below 1, a filter that makes no sense or that
            Qdrant cannot answer, or a server that cannot be reached.
        """
        from qdrant_client import models

        queries = checked_vectors(vectors, self.n_dimensions)
        checked_count(k, "k")
        wanted = None if where is None else qdrant_filter(parse_filter(where, self.columns))
        requests = [
            models.QueryRequest(
                query=query.tolist(),
                limit=k,
                filter=wanted,
                params=models.SearchParams(exact=True) if self.exact and self._is_remote else None,
                with_payload=["id", "id_type"],
            )
            for query in queries
        ]
        made: list[Found] = []
        for begin in range(0, len(requests), QUERIES_AT_ONCE):
            with _explained(self._where):
                found = self._client.query_batch_points(
                    self.name, requests=requests[begin : begin + QUERIES_AT_ONCE]
                )
            made.extend(_as_found(one.points) for one in found)
        return made

    def count(self) -> int:
        """Return how many vectors are held."""
        with _explained(self._where):
            return int(self._client.count(self.name, exact=True).count)

    def close(self) -> None:
        """Let go of the folder or connection."""
        self._client.close()

    def _make_collection(self) -> None:
        from qdrant_client import models

        distance = models.Distance.COSINE if self.similarity == "cosine" else models.Distance.DOT
        with _explained(self._where):
            if self._client.collection_exists(self.name):
                found = self._client.get_collection(self.name).config.params.vectors
                size, kind = getattr(found, "size", None), getattr(found, "distance", None)
                if size != self.n_dimensions or kind != distance:
                    raise InputError(
                        f"the collection {self.name!r} in {self._where} holds vectors of {size} "
                        f"dimensions compared by {getattr(kind, 'value', kind)}; expected "
                        f"{self.n_dimensions} and {distance.value}; name another collection"
                    )
                return
            config = models.VectorParams(size=self.n_dimensions, distance=distance)
            self._client.create_collection(self.name, vectors_config=config)
            if self._is_remote:  # a local store has no indexes, and warns of it
                for column, kind in self.columns.items():
                    self._client.create_payload_index(
                        self.name, check_key(column), field_schema=_INDEXES[kind], wait=True
                    )


def _check_folder(path: Path, trusted: bool) -> None:
    if path.exists() and not path.is_dir():
        raise InputError(f"expected a folder for the store; {path} is a file; name another one")
    if not trusted and path.is_dir() and any(path.iterdir()):
        raise InputError(
            f"{path} holds files already, which qdrant-client would unpickle, and a pickle can run "
            "code; if you wrote them yourself, open the store with trusted=True"
        )


def _connect(where: str, is_remote: bool, api_key: str | None, timeout: int) -> Any:
    try:
        from qdrant_client import QdrantClient
    except ImportError as error:
        raise MissingExtraError(
            "a Qdrant store needs qdrant-client, which is not installed: "
            'pip install "embedtopics[qdrant]"'
        ) from error
    with _explained(where):
        if not is_remote:
            return QdrantClient(MEMORY) if where == MEMORY else QdrantClient(path=where)
        # Without its own look at the server's version, which warns where there is none.
        return QdrantClient(url=where, api_key=api_key, timeout=timeout, check_compatibility=False)


@contextmanager
def _explained(where: str) -> Iterator[None]:
    """Turn the errors of the client into ones that say what to do, in one sentence."""
    from qdrant_client.common.client_exceptions import QdrantException
    from qdrant_client.http.exceptions import ApiException, UnexpectedResponse

    try:
        yield
    except InputError:
        raise
    except UnexpectedResponse as error:
        said = ""
        with suppress(Exception):  # an answer that is not Qdrant's
            said = str(error.structured()["status"]["error"])
        raise InputError(
            f"Qdrant at {where} refused with status {error.status_code}"
            f"{_short(said)}; check the url, the key and the collection"
        ) from error
    except (ApiException, QdrantException, OSError) as error:
        reason = getattr(error, "source", None) or error
        raise InputError(
            f"Qdrant at {where} cannot be reached{_short(str(reason))}; start it, or check the "
            "path or url"
        ) from error
    except (RuntimeError, ValueError) as error:
        raise InputError(f"Qdrant at {where} cannot do this{_short(str(error))}") from error


def _short(said: str) -> str:
    text = " ".join(said.split())
    return f" ({text[:200]})" if text else ""


def _as_found(points: Sequence[Any]) -> Found:
    ids = tuple(_READERS[point.payload["id_type"]](point.payload["id"]) for point in points)
    return ids, np.array([point.score for point in points], dtype=np.float32)
