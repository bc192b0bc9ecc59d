"""What an index holds: its settings, columns and documents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn

from embedtopics._utils.habits import Habits
from embedtopics.corpus._columns import read_id
from embedtopics.encoders._contract import BaseEncoder
from embedtopics.errors import InputError
from embedtopics.retrieval._reader import IndexReader
from embedtopics.retrieval.results import Document


class IndexContents(Habits):
    """The part of `SearchIndex` that looks documents up, and describes them."""

    _reader: IndexReader

    @property
    def folder(self) -> Path:
        """Folder of the index."""
        return self._reader.collection.folder

    @property
    def settings(self) -> Mapping[str, Any]:
        """Settings of the build."""
        return self._reader.collection.settings()

    @property
    def columns(self) -> dict[str, str]:
        """Columns of the metadata, with the kind of their values."""
        return self._reader.collection.columns()

    @property
    def measured(self) -> list[dict[str, Any]]:
        """Measurements of each segment at its build: kind and recall@10."""
        version = self._reader.newest()
        return [
            {"segment": view.name, **segment.about}
            for view, segment in zip(version.segments, version.dense, strict=True)
        ]

    @property
    def encoder(self) -> BaseEncoder:
        """The encoder of documents and queries."""
        return self._reader.encoder

    @property
    def ids(self) -> tuple[str, ...]:
        """Ids of all documents, in the order of adding."""
        return tuple(self._reader.collection.ids().values())

    def __len__(self) -> int:
        """Return the number of documents."""
        return self._reader.newest().snapshot.n_documents

    def __iter__(self) -> Iterator[Document]:
        """Iterate over the documents in the order of adding."""
        for batch in self._reader.collection.batches():
            yield from batch

    def __contains__(self, id: object) -> bool:
        return read_id(id) in self._reader.collection.numbers([read_id(id)])

    def __repr__(self) -> str:
        version = self._reader.newest()
        snapshot = version.snapshot
        kinds = sorted({segment.kind for segment in version.dense})
        kinds = ["lexical only"] if version.words_only else kinds
        return (
            f"SearchIndex({snapshot.n_documents:,} documents, {snapshot.n_passages:,} passages, "
            f"{' and '.join(kinds) or 'empty'}, {snapshot.settings['encoder'] or 'no encoder'})"
        )

    def __reduce__(self) -> NoReturn:
        raise InputError(
            "A search index cannot be pickled or copied in memory; send the path index.folder to "
            "the other process and open it there with SearchIndex.load"
        )

    def get(self, id: object) -> Document | None:
        """Return a document by its id, or None if the index does not hold it."""
        collection = self._reader.collection
        numbers = list(collection.numbers([read_id(id)]).values())
        return collection.documents(numbers)[0] if numbers else None
