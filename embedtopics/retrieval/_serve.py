"""A local page to search and read an index, and its JSON API."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from embedtopics._utils.checks import checked_between
from embedtopics._utils.display import plain
from embedtopics._utils.local_server import LocalServer, Refused
from embedtopics.errors import InputError

if TYPE_CHECKING:
    from embedtopics.retrieval._index import SearchIndex
    from embedtopics.retrieval.results import Document, SearchHits

MAX_HITS = 200
MAX_VALUES = 200
"""Distinct values of a column with facet counts."""


class SearchServer(LocalServer):
    """A local server of the search page and the API of an index; all its requests are GET."""

    def __init__(self, index: SearchIndex, port: int = 0) -> None:
        self.index = index
        self._lock = threading.Lock()
        gets = {
            "/about": self.about,
            "/search": self.search,
            "/similar": self.similar,
            "/facets": self.facets,
            "/documents/": self.document,
        }
        super().__init__("embedtopics.retrieval", port, gets, {}, page="search")

    def about(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return the number of documents, the search modes, the columns and the facets."""
        _options(request)
        settings, kinds = self.index.settings, ("text", "list", "boolean", "integer", "date")
        with self._lock:
            columns, n = self.index.columns, len(self.index)
            likely = [name for name, kind in columns.items() if kind in kinds]
            counts = self.index.facets(by=likely)
        fields = settings.get("columns", {}).get("text")
        sizes = counts.groupby("column")["value"].count()
        facets = [
            name
            for name in likely
            if 2 <= sizes.get(name, 0) <= min(MAX_VALUES, max(2, n // 2))
            and not (isinstance(fields, list) and name in fields)
            and not (name == "topic" and "topic_name" in columns)
        ]
        modes = ["lexical"] if settings.get("words_only") else ["hybrid", "dense", "lexical"]
        name = self.index.folder.name
        return {"name": name, "documents": n, "modes": modes, "columns": columns, "facets": facets}

    def search(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return the hits of a query."""
        options = _options(request, "q", "k", "mode", "where", "min_score")
        query = options.pop("q", None) or _one(request, "q")
        with self._lock:
            return _hits(self.index.search(query, **options))

    def similar(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return documents similar to some documents or a passage, and unlike others."""
        options = _options(request, "id", "unlike", "passage", "k", "where")
        ids, unlike = list(request.get("id", [])), list(request.get("unlike", []))
        with self._lock:
            return _hits(self.index.similar(ids, unlike=unlike, **options))

    def facets(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return the counts of the values of columns."""
        options = _options(request, "q", "by", "mode", "where", "min_score")
        query, columns = options.pop("q", "") or None, list(request.get("by", []))
        with self._lock:
            counts = self.index.facets(query, columns, **options)
        facets: dict[str, list[list[Any]]] = {name: [] for name in columns}
        for name, value, n in counts.itertuples(index=False):
            facets[name].append([plain(value), int(n)])
        return {"facets": {name: values[:MAX_VALUES] for name, values in facets.items()}}

    def document(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return a whole document."""
        _options(request, "id")
        document: Document | None = self.index.get(request["id"]) if request["id"].strip() else None
        if document is None:
            raise Refused(404, "no such document")
        return {"id": document.id, "text": document.text, "metadata": plain(document.metadata)}


def _hits(hits: SearchHits) -> dict[str, Any]:
    names = "id score relevance similarity bm25 span terms field topic metadata".split()
    return {
        "hits": [
            {
                **{name: plain(getattr(hit, name)) for name in names},
                "snippet": [*hit.snippet.pieces()],
            }
            for hit in hits
        ],
        "suggestions": dict(hits.suggestions),
        "notes": [decision.message for decision in hits.decisions],
    }


def _options(request: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """Return the parameters that have one value; a misspelled one must not be ignored silently."""
    for name in request:
        if name not in (*names, "token"):
            raise InputError("parameter", f"one of {', '.join(names) or 'none'}", name[:100])
    options = {}
    for name in READERS.keys() & request.keys():
        read, text = READERS[name], _one(request, name)
        try:
            options[name] = read(text)
        except ValueError:
            kind = "an integer" if read is int else "a number"
            raise InputError(name, kind, text) from None
    checked_between(options.get("k", 1), "k", 1, MAX_HITS, closed=True)
    return options


def _one(request: Mapping[str, Any], name: str) -> str:
    values = request.get(name, [])
    if len(values) != 1:
        raise InputError(name, "given once", found=f"{len(values)} times")
    return str(values[0])


READERS: dict[str, Callable[[str], Any]] = {
    "q": str, "k": int, "mode": str, "where": str, "min_score": float, "passage": str
}  # fmt: skip
"""What reads the parameters that have one value."""


def serve(index: SearchIndex, *, port: int = 0) -> SearchServer:
    """Return a server of the search page of an index; its `run` serves until an interrupt.

    It listens on this machine only, and answers only clients that know the token in its address.

    Parameters
    ----------
    index : SearchIndex
    port : int
        0 for a free port.

    Returns
    -------
    SearchServer
        With `url`, `token`, `run()` and `close()`.

    Raises
    ------
    InputError
        `index` is no index, or the port is in use.
    MissingExtraError
        The extra `page` is not installed.

    Examples
    --------
    >>> import embedtopics as et
    >>> index = et.SearchIndex.build(["Cats purr.", "Dogs bark."], encoder=None)
    >>> server = et.retrieval.serve(index)
    >>> server.url.startswith("http://127.0.0.1:")
    True
    >>> server.close()
    """
    from embedtopics.retrieval._index import SearchIndex

    if not isinstance(index, SearchIndex):
        is_path = isinstance(index, str | os.PathLike)
        call = f"load({os.fspath(index)!r})" if is_path else "build(corpus)"
        raise InputError("index", "a SearchIndex", index, f"call et.SearchIndex.{call} first")
    return SearchServer(index, port)
