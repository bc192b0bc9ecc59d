"""Segments whose files can be computed from what the collection holds; a disk that fills up."""

import errno
import hashlib
import itertools
import os

import numpy as np
import pandas as pd

from embedtopics.errors import InputError
from embedtopics.retrieval.storage._checks import check
from embedtopics.retrieval.storage._collection import Collection

VECTORS = "vectors.f32"
NESTED = "dense/index.bin"


def vector(number, start, end):
    """Return a row that tells which passage it was made for."""
    return np.array([number, start, end, number * 31 + start], dtype=np.float32)


def make_segment(folder, documents, spans, sources):
    """Compute vectors of new passages; copy those of passages that were there before."""
    if sources is None:
        rows = [vector(n, *span) for n, span in zip(documents, spans, strict=True)]
    else:
        files = [read_vectors(view) for view in sources.segments]
        rows = [files[at][row] for at, row in zip(sources.segment, sources.row, strict=True)]
    np.array(rows, dtype=np.float32).tofile(folder / VECTORS)
    (folder / "dense").mkdir()
    (folder / NESTED).write_bytes(hashlib.sha256(documents.tobytes()).digest())


def read_vectors(view):
    return np.fromfile(view.folder / VECTORS, dtype=np.float32).reshape(-1, 4)


def passages_of(texts):
    """Cut each text into one to three passages."""
    positions, spans = [], []
    for position, text in enumerate(texts):
        cuts = np.linspace(0, len(text), 2 + len(text) % 3).astype(int)
        for start, end in itertools.pairwise(cuts):
            positions.append(position)
            spans.append((start, end))
    return positions, np.array(spans, dtype=np.int64).reshape(-1, 2)


def add(writer, ids, texts, metadata=None, make=make_segment, **others):
    """Add documents with passages of them; ids are texts."""
    frame = pd.DataFrame(index=range(len(texts))) if metadata is None else metadata
    positions, spans = passages_of(texts)
    ids = [str(id) for id in ids]
    writer.add(ids, texts, frame, np.array(positions, np.int64), spans, make, **others)


def small(folder, n=6):
    """Make a collection of two segments, with one document of the first removed."""
    collection = Collection.create(folder, {"encoder": "fake"})
    with collection.writing() as writer:
        add(writer, [f"d{i}" for i in range(n)], [f"Text number {i}." for i in range(n)])
        add(writer, [100, 1.5], ["Another one.", "The last of them."])
        writer.remove(["d1"])
    return collection


def state(collection):
    """Return texts and metadata by id; every passage is held against its document and vector."""
    snapshot = collection.snapshot()
    documents = [document for batch in collection.batches(3) for document in batch]
    by_number = {document.number: document for document in documents}
    assert len(by_number) == len(documents) == snapshot.n_documents
    found = {}
    for view in snapshot.segments:
        vectors = read_vectors(view)
        assert len(vectors) == len(view.documents) == len(view.spans) == len(view.alive)
        for number, span, row in zip(
            view.documents[view.alive], view.spans[view.alive], vectors[view.alive], strict=True
        ):
            np.testing.assert_array_equal(row, vector(number, *span))
            found.setdefault(int(number), []).append(tuple(span))
    assert found.keys() == by_number.keys()
    for number, spans in found.items():
        expected = passages_of([by_number[number].text])[1]
        np.testing.assert_array_equal(spans, expected)
    return {document.id: (document.text, dict(document.metadata)) for document in documents}


def assert_clean(collection):
    assert check(collection.folder) == []


class Disk:
    """Stands before functions that write, and fails at one of their calls."""

    def __init__(self, monkeypatch):
        self.left = None
        for module, name in (
            (os, "fsync"), (os, "mkdir"), (np, "save"), (np, "savez"), (os, "link"),
        ):  # fmt: skip
            monkeypatch.setattr(module, name, self.failing(getattr(module, name)))

    def failing(self, function):
        def wrapped(*args, **others):
            if self.left is not None:
                self.left -= 1
                if self.left < 0:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return function(*args, **others)

        return wrapped

    def fails_at(self, step, write):
        """Return whether a write fails at a step, as it has to where the disk is full."""
        self.left = step
        try:
            write()
        except InputError as error:
            assert "No space left" in str(error), error
            return True
        finally:
            self.left = None
        return False
