"""`SearchIndex`: a collection of documents that can be searched."""

from __future__ import annotations

import os
import shutil
import threading
import weakref
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy.typing as npt

from embedtopics.corpus import Corpus
from embedtopics.errors import CorruptFileError
from embedtopics.protocols import Encoder
from embedtopics.results import Decision, DuplicateGroups, SearchHits
from embedtopics.retrieval import answering, attaching, maintaining, relating
from embedtopics.retrieval.collection import Collection
from embedtopics.retrieval.encoding import stored_encoder
from embedtopics.retrieval.maintaining import listed
from embedtopics.retrieval.numerals import with_numbers
from embedtopics.retrieval.opened import Opened, open_snapshot

if TYPE_CHECKING:
    from embedtopics.results import TopicResult
    from embedtopics.retrieval.fusing import FusionSettings
    from embedtopics.retrieval.stores import VectorStore

__all__ = ["SearchIndex"]


class SearchIndex:
    """Documents that are found by meaning, by words, or by both, under filters on their metadata.

    Make one with `build`, or `load` one that was saved. It lives in a folder from the beginning: a
    temporary one, unless `build` was given another. Every change is on disk when the call returns,
    and a process that is killed leaves the folder as it was before, or after. One process may
    write while others search; a search sees the newest version.

    Attributes
    ----------
    decisions : tuple of Decision
        What was decided, or noticed, when documents were added or exported in this process.

    Examples
    --------
    >>> import embedtopics as et
    >>> texts = ["Cats purr.", "Dogs bark.", "A purring cat."]
    >>> index = et.SearchIndex.build(texts)  # doctest: +SKIP
    >>> [hit.text for hit in index.search("cats", k=2).hits[0]]  # doctest: +SKIP
    ['Cats purr.', 'A purring cat.']
    """

    def __init__(
        self, collection: Collection, *, encoder: Encoder | None = None, mmap: bool = True
    ) -> None:
        self._collection = collection
        self._encoder = encoder
        self._mmap = mmap
        self._opened: Opened | None = None
        self._lock = threading.RLock()
        self.decisions: tuple[Decision, ...] = ()

    @classmethod
    def build(
        cls,
        data: Any,
        out: str | os.PathLike[str] | None = None,
        *,
        encoder: Any = "all-MiniLM-L6-v2",
        embeddings: npt.ArrayLike | None = None,
        passages: bool = True,
        kind: str = "auto",
        recall: float = 0.95,
        memory_limit: int | None = None,
        languages: Iterable[str] | None = None,
        stop_words: Iterable[str] | None = None,
        stems: bool = True,
        overwrite: bool = False,
        random_state: int = 0,
        show_progress: bool | None = None,
    ) -> SearchIndex:
        """Index a corpus.

        Parameters
        ----------
        data : Corpus, list of str, DataFrame or path
            What `Corpus.of` takes. Rows without text are kept; no query finds them. Columns of a
            csv file that hold nothing but numerals become numbers.
        out : path, optional
            Folder, which appears when it is whole. By default a temporary one.
        encoder : str, path or Encoder
        embeddings : array_like of shape (n_rows, n_dimensions), optional
            Vectors of the rows, made by `encoder` before; texts are not cut into passages then.
        passages : bool
            Index a text that is longer than what the encoder reads as overlapping passages of
            whole sentences. A document counts once, with its best passage. Otherwise the encoder
            sees the beginning of a long text only.
        kind : {"auto", "flat", "hnsw", "ivf", "ivfpq", "sq"}
            Of the dense index, see `DenseSettings`; "auto" goes by size, memory and recall.
        recall : float
            Share of the ten nearest passages that an index that is not exact has to find.
        memory_limit : int, optional
            Bytes that vectors and dense index may take in memory.
        languages, stop_words : iterable of str, optional
            ISO 639-1 codes, by default those of a sample; stop words in place of their lists.
        stems : bool
            Whether lexical search takes inflections of a word for that word.
        overwrite : bool
            Replace an index at `out`.
        random_state : int
        show_progress : bool, optional

        Returns
        -------
        SearchIndex

        Raises
        ------
        InputError
            If an argument is bad, or a row has no id or one that is taken; the message names it.
        ModelLoadError
            If the encoder cannot be loaded.
        """
        wish = maintaining.BuildWish(
            passages=passages, kind=kind, recall=recall, memory_limit=memory_limit,
            languages=None if languages is None else tuple(listed(languages, "languages")),
            stop_words=None if stop_words is None else tuple(listed(stop_words, "stop_words")),
            stems=stems, random_state=random_state,
        )  # fmt: skip
        corpus = with_numbers(Corpus.of(data), {})
        target = None if out is None else Path(out)
        built = maintaining.build(
            corpus, target, encoder, embeddings, wish, overwrite, show_progress
        )
        index = cls(built.collection, encoder=built.encoder)
        index.decisions = built.decisions
        if target is None:
            weakref.finalize(index, shutil.rmtree, built.collection.folder.parent, True)
        return index

    @classmethod
    def load(
        cls,
        folder: str | os.PathLike[str],
        *,
        encoder: Any = None,
        mmap: bool = True,
        verify: bool = False,
    ) -> SearchIndex:
        """Open an index.

        Parameters
        ----------
        folder : path
        encoder : str, path or Encoder, optional
            By default the one that is recorded, which is loaded when a query first needs it.
        mmap : bool
            Map files rather than read them: opening takes no time, and processes share memory.
        verify : bool
            Compare all files with their checksums first; otherwise their sizes only.

        Raises
        ------
        InputError
            If there is no such index, or the encoder is another one.
        CorruptFileError
            If a file is missing or damaged; the message names it.
        """
        collection = Collection.open(Path(folder), verify=verify)
        given = None if encoder is None else stored_encoder(collection.settings(), encoder)
        return cls(collection, encoder=given, mmap=mmap)

    @property
    def folder(self) -> Path:
        """Where the index lives."""
        return self._collection.folder

    @property
    def settings(self) -> Mapping[str, Any]:
        """What the index was made with."""
        return self._collection.settings()

    @property
    def columns(self) -> dict[str, str]:
        """Columns of the metadata, and what they hold: what filters may ask."""
        return self._collection.columns()

    @property
    def measured(self) -> list[dict[str, Any]]:
        """What was measured of each segment when it was built: kind, recall@10, speed, bytes."""
        return [dict(segment.about) for segment in self.opened().dense]

    @property
    def encoder(self) -> Encoder:
        """The encoder of documents and queries."""
        with self._lock:
            if self._encoder is None:
                self._encoder = stored_encoder(self._collection.settings())
            return self._encoder

    def __len__(self) -> int:
        """Return the number of documents."""
        return self.opened().snapshot.n_documents

    def __repr__(self) -> str:
        snapshot = self.opened().snapshot
        kinds = sorted({segment.kind for segment in self.opened().dense})
        return (
            f"SearchIndex({snapshot.n_documents:,} documents, {snapshot.n_passages:,} passages, "
            f"{' and '.join(kinds) or 'empty'}, {snapshot.settings['encoder'] or 'no encoder'})"
        )

    def opened(self) -> Opened:
        """Return the newest version, with its files open."""
        with self._lock:
            if self._opened is None or self._opened.snapshot.stamp != self._collection.stamp():
                while True:
                    snapshot = self._collection.snapshot()
                    try:
                        self._opened = open_snapshot(snapshot, self._mmap, self._opened)
                        break
                    except CorruptFileError:  # or compacted by another process meanwhile
                        if self._collection.stamp() == snapshot.stamp:
                            raise
            return self._opened

    def search(
        self,
        queries: str | Sequence[str],
        k: int = 10,
        mode: Literal["dense", "hybrid", "lexical"] = "hybrid",
        where: str | Mapping[str, Any] | None = None,
        *,
        vectors: npt.ArrayLike | None = None,
        fusion: FusionSettings | None = None,
        diversity: float = 0.0,
        reranker: Any = None,
        candidates: int = 100,
    ) -> SearchHits:
        """Find the documents that answer queries best.

        Parameters
        ----------
        queries : str or sequence of str
        k : int
            Documents for each.
        mode : {"dense", "hybrid", "lexical"}
            By cosine of vectors, by words (BM25), or by both.
        where : str or mapping, optional
            Filter on metadata, such as ``year >= 2020 and source == 'Le Monde'`` or
            ``{"source": ["Le Monde", "Libération"]}``; see `filters.parse_filter`.
        vectors : array_like of shape (n_queries, n_dimensions), optional
            Of the queries, made by the index's encoder before.
        fusion : FusionSettings, optional
            How the orders of a hybrid search become one.
        diversity : float
            From 0, the best, to 1, the least alike: maximal marginal relevance among `candidates`.
        reranker : str, path or object, optional
            A cross-encoder checkpoint, or an object with ``predict(pairs)``, which reorders the
            best `candidates`.
        candidates : int
            Documents that `diversity` and `reranker` choose among; see also `FusionSettings.depth`.

        Returns
        -------
        SearchHits

        Raises
        ------
        InputError
            If an argument is bad, or the filter cannot be read; the message shows the place.
        """
        asked = answering.read_queries(queries)
        wish = answering.AnswerWish(k, mode, fusion, diversity, reranker, candidates)
        return answering.answer(self, self._collection, asked, where, vectors, wish)

    def similar(
        self, id: object, k: int = 10, where: str | Mapping[str, Any] | None = None
    ) -> SearchHits:
        """Find the documents whose passages are most like those of a document, itself left out.

        Raises
        ------
        InputError
            If there is no such document, or it has no text.
        """
        return relating.similar(self, self._collection, id, k, where)

    def duplicates(self, threshold: float = 0.95) -> DuplicateGroups:
        """Find groups of documents that are near-copies of each other.

        Parameters
        ----------
        threshold : float
            Least cosine of two documents, each the mean of its passages.
        """
        return relating.duplicates(self.opened(), self._collection, threshold)

    def topics(self, result: TopicResult) -> SearchIndex:
        """Attach topics: hits carry their topic and place on the map, and filters may ask them.

        Documents get the columns ``topic``, ``topic_name``, ``map_x`` and ``map_y``, in place of
        those that were attached before. Documents that the result does not know have none.

        Parameters
        ----------
        result : TopicResult
            Of the same documents; they are matched by id.

        Raises
        ------
        InputError
            If no id matches, or the metadata has such a column of its own.
        """
        attaching.attach_topics(self._collection, result)
        return self

    def add(
        self,
        data: Any,
        *,
        embeddings: npt.ArrayLike | None = None,
        update: bool = False,
        show_progress: bool | None = None,
    ) -> int:
        """Add documents, without rebuilding what is there.

        Parameters
        ----------
        data : Corpus, list of str, DataFrame or path
        embeddings : array_like of shape (n_rows, n_dimensions), optional
        update : bool
            Replace documents whose ids are there already; otherwise these are refused.
        show_progress : bool, optional

        Returns
        -------
        int
            Documents that were added.
        """
        corpus = with_numbers(Corpus.of(data), self.columns)
        encoder = None if embeddings is not None else self.encoder
        notes = maintaining.add(
            self._collection, corpus, encoder, embeddings, update, show_progress
        )
        self.decisions = (*self.decisions, *notes)
        return len(corpus)

    def remove(
        self, ids: Iterable[object], *, missing: Literal["raise", "ignore"] = "raise"
    ) -> int:
        """Remove documents by id, and return how many there were.

        Raises
        ------
        InputError
            If ids are not there and `missing` is "raise"; nothing is removed then.
        """
        wanted = [relating.id_of(value) for value in listed(ids, "ids")]
        with self._collection.writing() as writer:
            return writer.remove(wanted, missing=missing)

    def compact(self) -> bool:
        """Write all segments as one, without what was removed; False where nothing was to do."""
        return maintaining.compact(self._collection)

    def save(self, folder: str | os.PathLike[str], *, overwrite: bool = False) -> SearchIndex:
        """Copy the index to a folder, and return the copy.

        Raises
        ------
        InputError
            If something else is there.
        """
        copy = self._collection.copy_to(Path(folder), overwrite=overwrite)
        return SearchIndex(copy, encoder=self._encoder, mmap=self._mmap)

    def export(self, target: str | os.PathLike[str] | VectorStore) -> int:
        """Write all passages with their vectors and metadata to a Parquet file, or to a store.

        Parameters
        ----------
        target : path or VectorStore
            Such as ``QdrantStore(path="articles.qdrant")``.

        Returns
        -------
        int
            Passages that were written.
        """
        n, notes = maintaining.export(self._collection, self.opened(), target)
        self.decisions = (*self.decisions, *notes)
        return n
