"""The documents of a collection, their metadata and its segments: what is on disk, and when.

::

    <folder>/
        catalog.sqlite              documents, metadata, names and checksums of all files below
        segments/000001/            never changed once the catalogue names it
            passages.npz            document and span of each passage
            ...                     vectors and indices of these passages
        segments/000002/ ...

The catalogue is SQLite because it is one file that Python reads without another library; its
commits survive a crash or a power cut, which decades of tests have shown; any filter becomes a
condition of SQL with bound parameters; and readers go on during a write (write-ahead log). Lance
and DuckDB store columns, which a search that fetches ten documents does not need, in formats that
are younger and each bring a library; files of our own would need a commit of our own.

A write puts its files on disk first and names them in one transaction. Killed at any moment it
leaves the collection as it was before or as it is after; what no version names, the next writer
deletes. A removed document loses its row at once; its passages stay in their segment, masked, until
`compact` writes the living ones to a new segment.
"""

from __future__ import annotations

from embedtopics.retrieval.collection.checking import Problem, check
from embedtopics.retrieval.collection.collection import Collection
from embedtopics.retrieval.collection.metadata import date_text
from embedtopics.retrieval.collection.reading import StoredDocument
from embedtopics.retrieval.collection.segments import Sources
from embedtopics.retrieval.collection.views import SegmentView, Snapshot
from embedtopics.retrieval.collection.writing import Writer

__all__ = [
    "Collection",
    "Problem",
    "SegmentView",
    "Snapshot",
    "Sources",
    "StoredDocument",
    "Writer",
    "check",
    "date_text",
]
