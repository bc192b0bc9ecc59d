"""`SearchIndex`: a collection of documents that can be searched."""

from __future__ import annotations

import os
import shutil
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from embedtopics._utils.hub import PushToHub
from embedtopics.corpus._columns import read_id
from embedtopics.decisions import Decision
from embedtopics.encoders._contract import BaseEncoder
from embedtopics.errors import InputError
from embedtopics.retrieval import _build
from embedtopics.retrieval._build import BuildOptions, as_list, read_documents, read_more
from embedtopics.retrieval._export import export_parquet
from embedtopics.retrieval._fusion import WEIGHT
from embedtopics.retrieval._reader import IndexReader, stored_encoder
from embedtopics.retrieval._search import SearchOptions, facets, search
from embedtopics.retrieval._similar import attach_topics, find_duplicates, find_similar
from embedtopics.retrieval.dense._segment import DenseSettings
from embedtopics.retrieval.results import Document, DuplicateGroups, SearchHits
from embedtopics.retrieval.storage._collection import Collection

if TYPE_CHECKING:
    import pandas as pd

    from embedtopics.topics.results import TopicResult


class SearchIndex(PushToHub):
    """Documents that are found by meaning, by words, or by both, under filters on their metadata.

    Make one with `build`, or `load` one that was saved. It lives in a folder from the beginning: a
    temporary one, unless `build` was given another. Every change is on disk when the call returns,
    and a process that is killed leaves the folder as it was before, or after. One process may
    write while others search; a search sees the newest version.

    It has a length and iterates over its documents, ``id in index`` and ``index.get(id)`` look one
    up, and it is pickled by its folder.

    Attributes
    ----------
    decisions : tuple of Decision
        What was decided, or noticed, when documents were added or exported in this process.

    Examples
    --------
    >>> import embedtopics as et
    >>> texts = ["Cats purr.", "Dogs bark.", "A purring cat."]
    >>> index = et.SearchIndex.build(texts)  # doctest: +SKIP
    >>> [hit.text for hit in index.search("cats", k=2)]  # doctest: +SKIP
    ['Cats purr.', 'A purring cat.']
    """

    def __init__(
        self, collection: Collection, *, encoder: BaseEncoder | None = None, mmap: bool = True
    ) -> None:
        self._reader = IndexReader(collection, encoder, mmap)
        self.decisions: tuple[Decision, ...] = ()

    @classmethod
    def build(
        cls,
        data: Any,
        out: str | os.PathLike[str] | None = None,
        *,
        text: str | Sequence[str] | None = None,
        id: str | None = None,
        time: str | None = None,
        encoder: Any = "all-MiniLM-L6-v2",
        embeddings: npt.ArrayLike | None = None,
        passages: bool = True,
        kind: str = "auto",
        recall: float = 0.95,
        memory_limit: int | None = None,
        languages: Iterable[str] | None = None,
        stop_words: Iterable[str] | None = None,
        stems: bool = True,
        words: str | Sequence[str] = "characters",
        overwrite: bool = False,
        random_state: int = 0,
        show_progress: bool | None = None,
    ) -> SearchIndex:
        """Index a corpus.

        Parameters
        ----------
        data : Corpus, list of str, list of dict, DataFrame or path
            Rows without text are kept; no query finds them.
        out : path, optional
            Folder, which appears when it is whole. By default a temporary one.
        text, id, time : str, optional
            Columns of a table or file: of texts (guessed if left out), of ids (made of the texts
            if left out) and of dates. Other columns are metadata to filter by; they may hold lists
            of texts. Several columns of texts, such as ``["title", "abstract"]``, are joined; all
            but the last are metadata as well.
        encoder : str, path, Encoder or None
            None, without embeddings, makes an index of words alone, which needs no encoder.
        embeddings : array_like of shape (n_rows, n_dimensions), optional
            Vectors of the rows, made by `encoder` before; texts are not cut into passages then.
        passages : bool
            Index a text that is longer than what the encoder reads as overlapping passages of
            whole sentences. A document counts once, with its best passage. Otherwise the encoder
            sees the beginning of a long text only.
        kind : {"auto", "flat", "ivf"}
            Of the dense index: "flat" compares a query with every vector, "ivf" looks for
            candidates by short codes in the nearest of many lists and compares with these in full.
            "auto" is "flat" up to 80 MB of vectors.
        recall : float
            Share of the ten nearest passages that an index that is not exact has to find.
        memory_limit : int, optional
            Bytes that vectors and dense index may take in memory; above it "ivf" keeps the vectors
            in half precision on disk.
        languages, stop_words : iterable of str, optional
            ISO 639-1 codes, by default those of a sample; stop words in place of their lists, or
            beside these where "auto" is among them.
        stems : bool
            Whether lexical search takes inflections of a word for that word.
        words : str or list of str
            What words are, as in `TopicModel`. By pairs of characters a query finds a word within
            a longer one, too, which a library may not have cut there.
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
        columns = {"text": text, "id": id, "time": time}
        options = BuildOptions(
            passages=passages,
            dense=DenseSettings(kind, recall, memory_limit, random_state),
            languages=None if languages is None else tuple(as_list(languages, "languages")),
            stop_words=None if stop_words is None else tuple(as_list(stop_words, "stop_words")),
            stems=stems,
            words=words,
            columns=columns,
        )
        corpus = read_documents(data, columns)
        target = None if out is None else Path(out)
        built = _build.build(corpus, target, encoder, embeddings, options, overwrite, show_progress)
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
        verify: bool | None = None,
    ) -> SearchIndex:
        """Open an index.

        Parameters
        ----------
        folder : path
        encoder : str, path or Encoder, optional
            By default the one that is recorded, which is loaded when a query first needs it.
        mmap : bool
            Map files rather than read them: opening takes no time, and processes share memory.
        verify : bool, optional
            By default the pages of the catalogue are looked at now, and the files of each segment
            are compared with their checksums when it is first used; documents always are. True
            compares everything now, False the sizes of files alone.

        Raises
        ------
        InputError
            If there is no such index, or the encoder is another one.
        CorruptFileError
            If a file is missing or damaged; the message names it.
        """
        collection = Collection.open(Path(folder), verify=verify)
        given = None if encoder is None else stored_encoder(collection, encoder)
        return cls(collection, encoder=given, mmap=mmap)

    def __reduce__(self) -> tuple[Any, ...]:
        return _open_again, (str(self.folder), self._reader.given_encoder, self._reader.mmap)

    @property
    def folder(self) -> Path:
        """Where the index lives."""
        return self._reader.collection.folder

    @property
    def settings(self) -> Mapping[str, Any]:
        """What the index was built with."""
        return self._reader.collection.settings()

    @property
    def columns(self) -> dict[str, str]:
        """Columns of the metadata that filters may use, and what they hold."""
        return self._reader.collection.columns()

    @property
    def measured(self) -> list[dict[str, Any]]:
        """What was measured of each segment when it was built: kind, recall@10, speed, bytes."""
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
        """Ids of all documents, in the order in which they were added."""
        return tuple(self._reader.collection.ids())

    def __len__(self) -> int:
        """Return the number of documents."""
        return self._reader.newest().snapshot.n_documents

    def __iter__(self) -> Iterator[Document]:
        """Iterate over the documents, in the order in which they were added."""
        for batch in self._reader.collection.batches():
            yield from batch

    def __contains__(self, id: object) -> bool:
        return read_id(id) in self._reader.collection.numbers([read_id(id)])

    def __repr__(self) -> str:
        version = self._reader.newest()
        snapshot = version.snapshot
        kinds = sorted({segment.kind for segment in version.dense})
        kinds = ["words alone"] if version.words_only else kinds
        return (
            f"SearchIndex({snapshot.n_documents:,} documents, {snapshot.n_passages:,} passages, "
            f"{' and '.join(kinds) or 'empty'}, {snapshot.settings['encoder'] or 'no encoder'})"
        )

    def get(self, id: object) -> Document | None:
        """Return a document by its id, or None where there is none."""
        collection = self._reader.collection
        numbers = list(collection.numbers([read_id(id)]).values())
        return collection.documents(numbers)[0] if numbers else None

    def search(
        self,
        queries: str | Sequence[str],
        k: int = 10,
        mode: Literal["dense", "hybrid", "lexical"] = "hybrid",
        where: str | Mapping[str, Any] | None = None,
        *,
        vectors: npt.ArrayLike | None = None,
        fusion: Literal["scores", "ranks"] = "scores",
        weight: float = WEIGHT,
        diversity: float = 0.0,
        reranker: Any = None,
        candidates: int = 100,
        min_score: float | None = None,
    ) -> SearchHits:
        """Find the documents that answer queries best.

        Parameters
        ----------
        queries : str or sequence of str
            Documents must hold ``"phrases in quotes"`` and must not hold ``-excluded`` words or
            ``-"phrases"``, as they are written; dense search reads a query as it is.
        k : int
            Documents for each.
        mode : {"dense", "hybrid", "lexical"}
            By cosine of vectors, by words (BM25), or by both. An index of words alone has no
            vectors: its hybrid search is lexical.
        where : str or mapping, optional
            Filter on metadata, such as ``year >= 2020 and source == 'Le Monde'`` or
            ``{"source": ["Le Monde", "Libération"]}``. A column of lists passes a test that one
            of its texts passes: ``tags == 'law'``, ``'law' in tags``.
        vectors : array_like of shape (n_queries, n_dimensions), optional
            Of the queries, made by the index's encoder before.
        fusion : {"scores", "ranks"}
            How hybrid search orders candidates: by the weighted mean of both scores, or by
            reciprocal rank fusion.
        weight : float
            Share of the cosine in that mean, from 0 (words alone) to 1 (meaning alone).
        diversity : float
            From 0, the best, to 1, the least similar: maximal marginal relevance among
            `candidates`.
        reranker : str, path or object, optional
            A cross-encoder checkpoint, an object with ``predict(pairs)``, or a function of pairs,
            which reorders the best `candidates`.
        candidates : int
            Documents that `diversity` and `reranker` choose among.
        min_score : float, optional
            Of the `k` best only hits of at least this `relevance` (see `Hit`), from 0 to 1, which
            is worked out only where this is given.

        Returns
        -------
        SearchHits
            Of one query a sequence of its hits.

        Raises
        ------
        InputError
            If an argument is bad, or the filter cannot be read; the message shows the place.
        """
        options = SearchOptions(k, mode, fusion, weight, diversity, reranker, candidates, min_score)
        return search(self._reader, queries, where, vectors, options)

    def facets(
        self,
        query: str | None = None,
        by: str | Sequence[str] = (),
        where: str | Mapping[str, Any] | None = None,
        *,
        k: int = 1000,
        mode: Literal["dense", "hybrid", "lexical"] = "hybrid",
        min_score: float | None = None,
    ) -> pd.DataFrame:
        """Count the values of columns among documents.

        Parameters
        ----------
        query : str, optional
            Count among the `k` documents that a search finds; by default among all.
        by : str or sequence of str
            Columns of the metadata. Of lists each text is counted, of dates their years.
        where, k, mode, min_score
            See `search`.

        Returns
        -------
        pandas.DataFrame
            Columns column, value, count (of documents); the most frequent first, missing left out.
        """
        names = [by] if isinstance(by, str) else as_list(by, "by")
        options = SearchOptions(k, mode, "scores", WEIGHT, 0.0, None, 100, min_score)
        return facets(self._reader, query, names, where, options)

    def similar(
        self,
        id: Any = (),
        k: int = 10,
        where: str | Mapping[str, Any] | None = None,
        *,
        passage: str | None = None,
        unlike: Iterable[object] = (),
    ) -> SearchHits:
        """Find the documents that are most similar to others.

        Parameters
        ----------
        id : object or list
            Id of a document, whose passages are compared with those of the others; or several.
        k, where
            See `search`.
        passage : str, optional
            A text to be similar to, too.
        unlike : iterable
            Ids of documents not to be similar to.

        Notes
        -----
        Several are one vector: the mean of the unit vectors wanted, less half the mean of those in
        `unlike` (Rocchio 1971). The documents named are not among the hits.

        Raises
        ------
        InputError
            If there is no such document, or it has no text, or the index has words alone.
        """
        several = isinstance(id, list | tuple | set | frozenset | np.ndarray)
        ids = [_checked_id(one) for one in (as_list(id, "id") if several else [id])]
        others = [_checked_id(one) for one in as_list(unlike, "unlike")]
        return find_similar(self._reader, ids, k, where, passage, others)

    def duplicates(self, threshold: float = 0.95) -> DuplicateGroups:
        """Find groups of documents that are near-copies of each other.

        Parameters
        ----------
        threshold : float
            Least cosine of two documents, each the mean of its passages.
        """
        return find_duplicates(self._reader, threshold)

    def topics(self, result: TopicResult) -> SearchIndex:
        """Attach topics: hits carry their topic and place on the map, and filters may use them.

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
        attach_topics(self._reader.collection, result)
        return self

    def add(
        self,
        data: Any,
        *,
        text: str | Sequence[str] | None = None,
        id: str | None = None,
        time: str | None = None,
        embeddings: npt.ArrayLike | None = None,
        update: bool = False,
        show_progress: bool | None = None,
    ) -> int:
        """Add documents, without rebuilding what is there.

        Parameters
        ----------
        data : Corpus, list of str, list of dict, DataFrame or path
        text, id, time : str, optional
            Columns of a table or file; by default those that the index was built with.
        embeddings : array_like of shape (n_rows, n_dimensions), optional
        update : bool
            Replace documents whose ids are there already; otherwise these are refused.
        show_progress : bool, optional

        Returns
        -------
        int
            Documents that were added.

        Raises
        ------
        InputError
            If an id is there already; or if a table does not show which column holds the ids or
            the texts: name it.
        """
        columns = {"text": text, "id": id, "time": time}
        corpus = read_more(self._reader, data, columns, update)
        notes = _build.add(self._reader, corpus, embeddings, update, show_progress)
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
        wanted = [_checked_id(value) for value in as_list(ids, "ids")]
        with self._reader.collection.writing() as writer:
            return writer.remove(wanted, missing=missing)

    def compact(self) -> bool:
        """Write all segments as one, without what was removed; False where nothing was to do."""
        return _build.compact(self._reader.collection)

    def save(self, folder: str | os.PathLike[str], *, overwrite: bool = False) -> SearchIndex:
        """Copy the index to a folder, and return the copy.

        Raises
        ------
        InputError
            If something else is there.
        """
        copy = self._reader.collection.copy_to(Path(folder), overwrite=overwrite)
        return SearchIndex(copy, encoder=self._reader.given_encoder, mmap=self._reader.mmap)

    _hub_content = "a search index"
    _hub_delete = ("segments/*",)
    """Segments of the version before have other names."""

    def _hub_folder(self, fresh: Path) -> Path:
        return Path(self.save(fresh).folder)

    def export(self, path: str | os.PathLike[str]) -> int:
        """Write all passages with their vectors and metadata to a Parquet file.

        Parameters
        ----------
        path : path
            Such as ``passages.parquet``.

        Returns
        -------
        int
            Passages that were written.
        """
        n, notes = export_parquet(self._reader.collection, self._reader.newest(), Path(path))
        self.decisions = (*self.decisions, *notes)
        return n


def _checked_id(value: object) -> str:
    """Return an id as an index keeps it: as text, as a `Corpus` reads it."""
    name = read_id(value)
    if not name:
        raise InputError("id", "that of a document", value)
    return name


def _open_again(folder: str, encoder: BaseEncoder | None, mmap: bool) -> SearchIndex:
    return SearchIndex(Collection.open(folder), encoder=encoder, mmap=mmap)
