"""A collection of documents in a folder: one writes it, many read it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from embedtopics.errors import InputError
from embedtopics.protocols import Int64Array
from embedtopics.retrieval.collection.batches import DocumentId
from embedtopics.retrieval.collection.catalog import Moved, ask, read_meta, reading
from embedtopics.retrieval.collection.checking import check_presence, require_whole
from embedtopics.retrieval.collection.copying import (
    copy_collection,
    create_folder,
    find_folder,
)
from embedtopics.retrieval.collection.foreseeing import check_new
from embedtopics.retrieval.collection.metadata import read_columns
from embedtopics.retrieval.collection.reading import (
    PassageCache,
    StoredDocument,
    fetch_batch,
    fetch_documents,
    find_candidates,
    find_numbers,
    read_snapshot,
)
from embedtopics.retrieval.collection.views import Snapshot
from embedtopics.retrieval.collection.writing import Writer, open_writer

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Collection"]


class Collection:
    """Documents, their metadata, and the segments in which their passages are indexed.

    Make one with `create` or `open`. Every question is answered from one version; threads may ask
    at the same time, a process may write at the same time, and the folder may be read-only.

    Attributes
    ----------
    folder : Path

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> folder = Path(tempfile.mkdtemp()) / "articles.index"
    >>> collection = Collection.create(folder, {"encoder": "tf-idf"})
    >>> with collection.writing() as writer:
    ...     writer.add(["a", 7], ["One.", "Two."], None, ([0, 1], [(0, 4), (0, 4)]),
    ...                lambda folder, documents, spans, sources: None)
    array([1, 2])
    >>> collection.documents([2])
    [StoredDocument(number=2, id=7, text='Two.', metadata={})]
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._passages: PassageCache = {}

    @classmethod
    def create(cls, folder: str | Path, settings: Mapping[str, Any]) -> Collection:
        """Make an empty collection.

        Parameters
        ----------
        folder : str or Path
            Missing or empty.
        settings : mapping
            What JSON can hold.

        Raises
        ------
        InputError
            If something is there, nothing can be written, or the settings are not JSON.
        """
        try:
            text = json.dumps(dict(settings), allow_nan=False)
        except (TypeError, ValueError) as error:
            raise InputError(f"settings must be what JSON can hold: {error}") from error
        path = Path(os.path.realpath(folder))
        create_folder(path, text)
        return cls(path)

    @classmethod
    def open(cls, folder: str | Path, *, verify: bool = False) -> Collection:
        """Open a collection.

        Parameters
        ----------
        folder : str or Path
        verify : bool
            Read and compare everything; otherwise only that all files are there with their sizes.

        Raises
        ------
        InputError
            If there is no such folder, or it cannot be read.
        CorruptFileError
            If it is no collection, is of a newer format, or is damaged.
        """
        path = find_folder(folder)
        check_presence(path)
        if verify:
            require_whole(path)
        return cls(path)

    def snapshot(self) -> Snapshot:
        """Return the newest version.

        Where a later compaction deletes a segment before its other files are opened, opening them
        raises FileNotFoundError: take a new snapshot then.
        """
        return read_snapshot(self.folder, self._passages)

    def version(self) -> int:
        """Return the number of the newest version; it goes up with every write."""
        return ask(self.folder, lambda connection: int(read_meta(connection, "version")))

    def stamp(self) -> str:
        """Return what names the newest version's content, in this and in any other folder.

        Another collection that takes the folder's place may have the same version number, but
        never the same stamp; a copy has the stamp of what it was copied from.
        """
        return ask(self.folder, lambda connection: str(read_meta(connection, "stamp")))

    def settings(self) -> dict[str, Any]:
        """Return what the collection was made with."""
        return dict(ask(self.folder, lambda c: json.loads(read_meta(c, "settings"))))

    def documents(self, numbers: Sequence[int]) -> list[StoredDocument | None]:
        """Return documents by number, None for each that is not there (any more)."""
        return ask(self.folder, lambda connection: fetch_documents(connection, numbers))

    def numbers(self, ids: Sequence[object]) -> dict[DocumentId, int]:
        """Return the number of each id that there is; others are left out.

        Raises
        ------
        InputError
            If an id is neither text nor a number.
        """
        return ask(self.folder, lambda connection: find_numbers(connection, ids))

    def check_new(
        self, ids: Iterable[object], metadata: pd.DataFrame | None = None, *, update: bool = False
    ) -> None:
        """Refuse ids and metadata that a writer would refuse, before vectors are made.

        Raises
        ------
        InputError
            If an id is there and `update` is false, or a column cannot be stored or holds another
            kind of values than before.
        """
        ask(self.folder, lambda connection: check_new(connection, ids, metadata, update))

    def batches(self, size: int = 10_000) -> Iterator[list[StoredDocument]]:
        """Give all documents of one version, in the order of their numbers.

        Parameters
        ----------
        size : int
            Documents at once.

        Raises
        ------
        InputError
            If `size` is less than 1; or if nothing can be locked from here and another writes
            meanwhile.
        """
        if size < 1:
            raise InputError(f"size must be an integer from 1 up; got {size}")
        return self._batches(size)

    def _batches(self, size: int) -> Iterator[list[StoredDocument]]:
        try:
            with reading(self.folder) as connection:
                after = -1
                while batch := fetch_batch(connection, after, size):
                    yield batch
                    after = batch[-1].number
        except Moved:
            raise InputError(
                f"{self.folder} was written while it was read from where it cannot be locked; "
                "begin again when its writer is done"
            ) from None

    def columns(self) -> dict[str, str]:
        """Return the kind of each column of the metadata.

        Returns
        -------
        dict of str to str
            "text", "integer", "real", "boolean" (0 and 1 in SQL), "date" (in SQL ISO text as
            `date_text` gives it), or "missing" where no document has a value.
        """
        columns = ask(self.folder, read_columns)
        return {name: column.kind for name, column in columns.items()}

    def column_sql(self, name: str) -> str:
        """Return what a column of the metadata is called in conditions of `candidates`.

        Raises
        ------
        InputError
            If there is none of this name.
        """
        columns = ask(self.folder, read_columns)
        if name not in columns:
            raise InputError(
                f"the metadata have no column {name!r}; there are "
                + (", ".join(map(repr, columns)) or "none at all")
            )
        return columns[name].sql

    def candidates(self, condition: str, parameters: Sequence[Any] = ()) -> Int64Array:
        """Return the numbers of the documents that meet a condition.

        Parameters
        ----------
        condition : str
            SQL, with ``?`` for values, over columns as `column_sql` calls them, ``documents.id``
            and ``documents.text``. It is run as it is: what a user wrote must not be part of it.
            Nothing can be written with it.
        parameters : sequence
            Values for ``?``.

        Returns
        -------
        int64 ndarray
            Ascending.
        """
        return ask(self.folder, lambda c: find_candidates(c, condition, parameters))

    def writing(self) -> AbstractContextManager[Writer]:
        """Be the one writer of the collection, of all processes.

        Raises
        ------
        InputError
            On entering, if another writes it, or nothing can be written there.
        """
        return open_writer(self.folder)

    def copy_to(self, folder: str | Path, *, overwrite: bool = False) -> Collection:
        """Copy the newest version to another folder.

        It appears there whole or not at all. Files of segments, which never change, are hard links
        where the file system has them.

        Parameters
        ----------
        folder : str or Path
            Missing or empty; or a collection.
        overwrite : bool
            Replace a collection that is there.

        Raises
        ------
        InputError
            If something else is there, another writes there, or nothing can be written.
        """
        path = find_folder(folder)
        copy_collection(self.folder, path, overwrite)
        return Collection(path)
