"""A page to search and read a collection, and its JSON API, on this machine alone."""

from __future__ import annotations

import datetime
import math
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from embedtopics._utils.local_server import LocalServer, Refused
from embedtopics.errors import InputError

if TYPE_CHECKING:
    from embedtopics.retrieval.results import Document, Hit, SearchHits

MOST_HITS = 200
MOST_VALUES = 200
"""Different values of a column that is counted for all to see."""
LEAST_RELEVANCE = 0.1
"""Of the documents whose values are counted for a query: without it, the nearest 1,000 whatever."""


class SearchServer(LocalServer):
    """Serves the page and the API of an index until it is closed.

    Parameters
    ----------
    index : SearchIndex
    port : int
        0 for one that is free.

    Notes
    -----
    All answers are to GET. Parameters are named as those of `SearchIndex`; `docs/search.md`
    describes each answer.
    """

    def __init__(self, index: Any, port: int = 0) -> None:
        self.index = index
        self._lock = threading.Lock()
        gets = {
            "/about": self.about, "/search": self.search, "/similar": self.similar,
            "/facets": self.facets, "/documents/": self.document,
        }  # fmt: skip
        super().__init__("embedtopics.report", port, gets, {}, page="search")

    def about(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Return how many documents there are, the modes, the columns, and those to count."""
        _check_names(asked, ())
        with self._lock:
            columns, n = self.index.columns, len(self.index)
            words_only = bool(self.index.settings.get("words_only"))
            kinds = ("text", "list", "boolean", "integer", "date")
            likely = [name for name, kind in columns.items() if kind in kinds]
            counts = self.index.facets(by=likely)
        fields = self.index.settings.get("columns", {}).get("text")
        sizes = counts.groupby("column")["value"].count()
        facets = [
            name
            for name in likely
            if 2 <= sizes.get(name, 0) <= min(MOST_VALUES, max(2, n // 2))
            and not (isinstance(fields, list) and name in fields)
            and not (name == "topic" and "topic_name" in columns)
        ]
        modes = ["lexical"] if words_only else ["hybrid", "dense", "lexical"]
        return {"name": self.index.folder.name, "documents": n, "modes": modes,
                "columns": columns, "facets": facets}  # fmt: skip

    def search(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Answer a query."""
        _check_names(asked, ("q", "k", "mode", "where", "min_score"))
        with self._lock:
            found = self.index.search(
                _one(asked, "q"), _count(asked), _mode(asked), _where(asked),
                min_score=_share(asked, 0.0),
            )  # fmt: skip
        return _hits(found)

    def similar(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Answer with documents like some, or a passage, and not like others."""
        _check_names(asked, ("id", "unlike", "passage", "k", "where"))
        with self._lock:
            found = self.index.similar(
                list(asked.get("id", [])), _count(asked), _where(asked),
                passage=_one(asked, "passage") if "passage" in asked else None,
                unlike=list(asked.get("unlike", [])),
            )  # fmt: skip
        return _hits(found)

    def facets(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Answer with how often columns have each value."""
        _check_names(asked, ("q", "by", "mode", "where", "min_score"))
        query = _one(asked, "q", "") or None
        with self._lock:
            counts = self.index.facets(
                query, list(asked.get("by", [])), _where(asked), mode=_mode(asked),
                min_score=_share(asked, LEAST_RELEVANCE),
            )  # fmt: skip
        made: dict[str, list[list[Any]]] = {name: [] for name in asked.get("by", [])}
        for name, value, n in counts.itertuples(index=False):
            made[name].append([_plain(value), int(n)])
        return {"facets": {name: values[:MOST_VALUES] for name, values in made.items()}}

    def document(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Answer with a whole document."""
        _check_names(asked, ("id",))
        document: Document | None = self.index.get(asked["id"]) if asked["id"].strip() else None
        if document is None:
            raise Refused(404, "there is no such document")
        return {"id": document.id, "text": document.text, "metadata": _plain(document.metadata)}


def _hits(found: SearchHits) -> dict[str, Any]:
    return {
        "hits": [_hit(hit) for hit in found],
        "suggestions": dict(found.suggestions),
        "notes": [decision.message for decision in found.decisions],
    }


def _hit(hit: Hit) -> dict[str, Any]:
    shown = {name: getattr(hit, name) for name in (
        "id", "score", "relevance", "similarity", "bm25", "span", "terms", "field", "topic",
        "metadata",
    )}  # fmt: skip
    snippet = [[piece, marked] for piece, marked in hit.snippet.pieces()]
    return {**{name: _plain(value) for name, value in shown.items()}, "snippet": snippet}


def _plain(value: Any) -> Any:
    """Return a value as JSON holds it; a day without a time is only a day."""
    if isinstance(value, Mapping):
        return {str(name): _plain(one) for name, one in value.items()}
    if isinstance(value, datetime.datetime):
        return value.isoformat().removesuffix("T00:00:00")
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _check_names(asked: Mapping[str, Any], known: tuple[str, ...]) -> None:
    """Refuse a parameter that is not known: a filter that is spelled wrong would not act."""
    for name in asked:
        if name not in (*known, "token"):
            names = ", ".join(known) or "none"
            raise InputError("parameter", f"one of {names}", name[:100])


def _one(asked: Mapping[str, Any], name: str, default: str | None = None) -> str:
    values = asked.get(name, [] if default is None else [default])
    if len(values) != 1:
        raise InputError(name, "given once", found=f"{len(values)} times")
    return str(values[0])


def _where(asked: Mapping[str, Any]) -> str | None:
    return _one(asked, "where", "") or None


def _mode(asked: Mapping[str, Any]) -> Any:
    return _one(asked, "mode", "hybrid")


def _count(asked: Mapping[str, Any]) -> int:
    text = _one(asked, "k", "10")
    if not (text.isascii() and text.isdigit() and len(text) < 5 and 1 <= int(text) <= MOST_HITS):
        raise InputError("k", f"an integer from 1 to {MOST_HITS}", text)
    return int(text)


def _share(asked: Mapping[str, Any], default: float) -> float:
    text = _one(asked, "min_score", str(default))
    try:
        return float(text)
    except ValueError:
        raise InputError("min_score", "a number from 0 to 1", text) from None


def serve_index(index: Any, *, port: int = 0) -> SearchServer:
    """Return a server of a page to search and read an index; its `run` serves until an interrupt.

    It listens on this machine alone, and answers only who knows the token in its address.

    Parameters
    ----------
    index : SearchIndex
    port : int
        0 for one that is free.

    Returns
    -------
    SearchServer
        With `url`, `token`, `run()` and `close()`.

    Raises
    ------
    InputError
        Where the port is not free.
    """
    return SearchServer(index, port)
