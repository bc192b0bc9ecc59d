"""`SearchIndex`: a collection of documents that can be searched."""

from __future__ import annotations

import os
import shutil
import weakref
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from embedtopics._utils.fitted import FittedTopics, result_of
from embedtopics._utils.keywords import names_keywords
from embedtopics.corpus._columns import read_id
from embedtopics.encoders._contract import BaseEncoder
from embedtopics.errors import InputError
from embedtopics.results import Decision
from embedtopics.retrieval import _build
from embedtopics.retrieval._arguments import check_corpus, checked_path
from embedtopics.retrieval._build import BuildOptions, as_list, read_documents, read_more
from embedtopics.retrieval._contents import IndexContents
from embedtopics.retrieval._export import export_parquet
from embedtopics.retrieval._fusion import WEIGHT
from embedtopics.retrieval._reader import IndexReader, stored_encoder
from embedtopics.retrieval._records import check_settings
from embedtopics.retrieval._search import MIN_RELEVANCE, SearchOptions, Where, facets, search
from embedtopics.retrieval._similar import attach_topics, find_duplicates, find_similar
from embedtopics.retrieval.dense._segment import DenseSettings
from embedtopics.retrieval.results import DuplicateGroups, SearchHits
from embedtopics.retrieval.storage._checks import problem_table
from embedtopics.retrieval.storage._collection import Collection

if TYPE_CHECKING:
    import pandas as pd


class SearchIndex(IndexContents):
    """Index of documents for search by meaning, by words or by both, with filters on metadata.

    `build` makes an index, `load` opens a saved one. An index is a folder, a temporary one by
    default. Every change is on disk when the call returns; a process that is killed leaves the
    folder as it was before or after the change. One process may write while others search, and a
    search reads the newest version.

    ``len(index)`` is the number of documents, iteration yields them, and ``id in index`` and
    ``index.get(id)`` look one up.

    Attributes
    ----------
    decisions : tuple of Decision
        Decisions made when documents were added in this process.

    Examples
    --------
    >>> import embedtopics as et
    >>> texts = ["Cats purr.", "Dogs bark.", "A purring cat."]
    >>> index = et.SearchIndex.build(texts)
    >>> index
    SearchIndex(3 documents, 3 passages, flat, all-MiniLM-L6-v2)
    >>> [hit.text for hit in index.search("cats", k=2)]
    ['Cats purr.', 'A purring cat.']
    """

    _kind = "index"

    def __init__(self, collection: Collection, *, encoder: BaseEncoder | None = None) -> None:
        if not isinstance(collection, Collection):
            expected = "the collection of a saved index"
            remedy = "call et.SearchIndex.build(corpus), or et.SearchIndex.load(folder)"
            raise InputError("collection", expected, collection, remedy)
        self._reader = IndexReader(collection, encoder)
        self.decisions: tuple[Decision, ...] = ()

    @classmethod
    @names_keywords
    def build(
        cls,
        corpus: Any,
        out: str | os.PathLike[str] | None = None,
        *,
        text: str | Sequence[str] | None = None,
        id: str | None = None,
        time: str | None = None,
        encoder: Any = "all-MiniLM-L6-v2",
        embeddings: npt.ArrayLike | None = None,
        passages: bool = True,
        kind: str = "auto",
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
        corpus : Corpus, list of str, list of dict, DataFrame or path
            Rows without text are stored, but no query finds them.
        out : path, optional
            Folder of the index, which appears when it is complete; by default a temporary one.
        text, id, time : str, optional
            Columns of a table or file: texts (guessed by default), ids (made from the texts by
            default) and dates. Other columns, which may hold lists of texts, are metadata for
            filters. Several text columns, such as ``["title", "abstract"]``, are joined; all but
            the last are metadata as well.
        encoder : str, path, Encoder or None
            With None and without `embeddings`, only lexical search is possible.
        embeddings : array_like of shape (n_rows, n_dimensions), optional
            Vectors of the rows from `encoder`; texts are then not split into passages. The encoder
            encodes a sample of the texts, and vectors in another order are refused.
        passages : bool
            Split a text that exceeds the maximum length of the encoder into overlapping passages
            of whole sentences. A document appears once, with its best passage. If False, the
            encoder reads only the beginning of a long text.
        kind : {"auto", "flat", "ivf"}
            Kind of the dense index. "flat" compares a query with every vector; "ivf" finds
            candidates by short codes in the nearest inverted lists and compares the query with
            these; it finds at least 95 % of the ten nearest passages. "auto" is "flat" up to 80 MB
            of vectors.
        languages, stop_words : iterable of str, optional
            ISO 639-1 codes, by default those of a sample of the texts. Stop words replace the
            lists of these languages; "auto" among them adds the lists.
        stems : bool
            Whether lexical search matches inflections of a word: those of `languages`, and of
            English if every text is too short to recognize its language.
        words : str or list of str
            Definition of a word, as in `TopicModel`. With pairs of characters, a query also finds
            a word inside a longer one.
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
            If a parameter is invalid, or an id is missing or repeated.
        ModelLoadError
            If the encoder cannot be loaded.

        Examples
        --------
        >>> import embedtopics as et
        >>> corpus = et.Corpus("embedtopics:demo", limit=100)
        >>> index = et.SearchIndex.build(corpus, encoder=None)
        >>> len(index)
        100
        >>> index.columns
        {'date': 'date', 'source': 'text', 'language': 'text', 'theme': 'text'}
        """
        columns = {"text": text, "id": id, "time": time}
        options = BuildOptions(
            encoder=encoder,
            embeddings=embeddings,
            passages=passages,
            dense=DenseSettings(kind, random_state),
            languages=None if languages is None else tuple(as_list(languages, "languages")),
            stop_words=None if stop_words is None else tuple(as_list(stop_words, "stop_words")),
            stems=stems,
            words=words,
            columns=columns,
            show_progress=show_progress,
        )

        check_corpus(corpus)
        documents = read_documents(corpus, columns)
        target = None if out is None else checked_path(out, "out")
        built = _build.build(documents, target, options, overwrite)

        index = cls(built.collection, encoder=built.encoder)
        index.decisions = built.decisions
        if target is None:
            weakref.finalize(index, shutil.rmtree, built.collection.folder.parent, True)
        return index

    @classmethod
    def load(
        cls, folder: str | os.PathLike[str], *, encoder: Any = None, verify: bool | None = None
    ) -> SearchIndex:
        """Open an index.

        Parameters
        ----------
        folder : path
        encoder : str, path or Encoder, optional
            By default the recorded encoder, loaded when a query first needs it.
        verify : bool, optional
            None checks the files of a segment by their checksums when it is first used. True checks
            everything now. False checks only the sizes of files.
            Documents are always checked when they are read.

        Raises
        ------
        InputError
            If there is no index, or `encoder` does not fit its vectors.
        CorruptFileError
            If a file is missing or damaged.

        Examples
        --------
        >>> import tempfile
        >>> import embedtopics as et
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     built = et.SearchIndex.build(["Cats purr."], f"{folder}/index", encoder=None)
        ...     loaded = et.SearchIndex.load(f"{folder}/index")
        ...     print([hit.text for hit in loaded.search("cat")])
        ['Cats purr.']
        """
        collection = Collection.open(checked_path(folder), verify=verify)
        check_settings(collection.settings())
        resolved = None if encoder is None else stored_encoder(collection, encoder)
        return cls(collection, encoder=resolved)

    @classmethod
    def check(cls, folder: str | os.PathLike[str]) -> pd.DataFrame:
        """Check a whole index for damage.

        The check reads every file and every document, and compares them with the sizes and
        checksums recorded at writing. It also serves an index that is too damaged to be loaded.

        Parameters
        ----------
        folder : path

        Returns
        -------
        pandas.DataFrame
            A row for each problem, with columns file, problem, remedy; none for an intact index.
            Folders that a killed writer left are included.

        Raises
        ------
        InputError
            If the folder does not exist or cannot be read.

        Examples
        --------
        >>> import embedtopics as et
        >>> index = et.SearchIndex.build(["Cats purr.", "Dogs bark."], encoder=None)
        >>> len(et.SearchIndex.check(index.folder))
        0
        """
        return problem_table(checked_path(folder))

    @names_keywords
    def search(
        self,
        queries: str | Sequence[str],
        k: int = 10,
        *,
        mode: Literal["dense", "hybrid", "lexical"] = "hybrid",
        where: Where = None,
        vectors: npt.ArrayLike | None = None,
        weight: float = WEIGHT,
        diversity: float = 0.0,
        reranker: Any = None,
        min_score: float | None = None,
    ) -> SearchHits:
        """Search for documents.

        Parameters
        ----------
        queries : str or sequence of str
            Documents must hold each ``"phrase in quotes"`` and no ``-excluded`` word or
            ``-"phrase"``, exactly as written. Dense search does not interpret quotes and signs.
            Decisions of the hits name other signs, such as ``NOT``, which have no effect.
        k : int
            Maximum number of documents for each query.
        mode : {"dense", "hybrid", "lexical"}
            By cosine of vectors, by words (BM25, also "bm25"), or by both. Without vectors in the
            index, hybrid search is lexical.
        where : str or mapping, optional
            Filter on metadata, such as ``year >= 2020 and source == 'Le Monde'``. A list passes if
            one of its texts passes: ``tags == 'law'``, ``'law' in tags``. A mapping such as
            ``{"year": [2019, 2020], "source": "Le Monde"}`` holds the values that each column may
            have; None stands for no value. Its values are never parsed.
        vectors : array_like of shape (n_queries, n_dimensions), optional
            Vectors of the queries from the encoder of the index.
        weight : float
            Weight of the cosine in the mean of both scores of a hybrid search, from 0 (words only)
            to 1 (meaning only).
        diversity : float
            Maximal marginal relevance among the best hundred documents: 0 ranks by score only, 1
            by dissimilarity only.
        reranker : str, path or object, optional
            A cross-encoder checkpoint, an object with ``predict(pairs)``, or a function of pairs,
            which reorders the best hundred documents.
        min_score : float, optional
            Minimum `relevance` of a hit, from 0 to 1; see `Hit`.

        Returns
        -------
        SearchHits
            For one query, a sequence of its hits.

        Raises
        ------
        InputError
            If a parameter is invalid, or the filter has a syntax error.

        Examples
        --------
        >>> import embedtopics as et
        >>> rows = [{"text": "A river flooded.", "year": 2019, "source": "press"},
        ...         {"text": "Floods again!", "year": 2021, "source": "blog"},
        ...         {"text": "Bees swarm.", "year": 2021, "source": "press"}]
        >>> index = et.SearchIndex.build(rows, encoder=None, languages=["en"])
        >>> [hit.text for hit in index.search("flood", where="year >= 2020")]
        ['Floods again!']
        >>> [hit.text for hit in index.search("flood", where={"source": "press"})]
        ['A river flooded.']
        >>> str(index.search("flood")[0].snippet)
        'Floods again!'
        """
        options = SearchOptions(k, mode, weight, diversity, reranker, min_score)
        return search(self._reader, queries, where, vectors, options)

    def facets(
        self,
        query: str | None = None,
        by: str | Sequence[str] = (),
        where: Where = None,
        *,
        k: int = 1000,
        mode: Literal["dense", "hybrid", "lexical"] = "hybrid",
        min_score: float = MIN_RELEVANCE,
    ) -> pd.DataFrame:
        """Count the values of columns among documents.

        Parameters
        ----------
        query : str, optional
            Count among the relevant documents that a search finds, at most `k`; by default among
            all documents.
        by : str or sequence of str
            Columns of the metadata. Lists count once for each text, dates by year.
        where, k, mode, min_score
            See `search`.

        Returns
        -------
        pandas.DataFrame
            Columns column, value, count (of documents), most frequent first; no missing values.

        Examples
        --------
        >>> import embedtopics as et
        >>> index = et.SearchIndex.build(et.Corpus("embedtopics:demo"), encoder=None)
        >>> counts = index.facets(by="source")
        >>> counts.head(2)
           column  value  count
        0  source  press    193
        1  source  forum    176
        """
        names = [by] if isinstance(by, str) else as_list(by, "by")
        options = SearchOptions(k, mode, WEIGHT, 0.0, None, min_score)
        return facets(self._reader, query, names, where, options)

    def similar(
        self,
        id: Any = (),
        k: int = 10,
        where: Where = None,
        *,
        passage: str | None = None,
        unlike: Iterable[object] = (),
    ) -> SearchHits:
        """Find the documents most similar to others.

        Parameters
        ----------
        id : object or list
            Id of a document, whose passages are compared with those of the others, or several ids.
        k, where
            See `search`.
        passage : str, optional
            Another text that the hits resemble.
        unlike : iterable
            Ids of documents that the hits do not resemble.

        Notes
        -----
        Several documents form one query vector: the mean of their unit vectors minus half the
        mean of those in `unlike` (Rocchio 1971). The hits do not include these documents.

        Raises
        ------
        InputError
            If a document does not exist or has no text, or the index has no vectors.

        Examples
        --------
        >>> import embedtopics as et
        >>> texts = ["The cat sleeps.", "A dog barks.", "The cat sleeps a lot."]
        >>> index = et.SearchIndex.build(texts, encoder="random")
        >>> [hit.text for hit in index.similar(index.ids[0], k=1)]
        ['The cat sleeps a lot.']
        """
        several = isinstance(id, list | tuple | set | frozenset | np.ndarray)
        ids = [_checked_id(value) for value in (as_list(id, "id") if several else [id])]
        others = [_checked_id(value) for value in as_list(unlike, "unlike")]
        return find_similar(self._reader, ids, k, where, passage, others)

    def duplicates(self, threshold: float = 0.95) -> DuplicateGroups:
        """Find groups of documents with a cosine of at least `threshold`.

        The vector of a document is the mean of its passages. Each document is compared with its 15
        nearest neighbors; those of a group are linked by chains of neighbors.

        Examples
        --------
        >>> import embedtopics as et
        >>> texts = ["The cat sleeps.", "A dog barks.", "The cat sleeps!"]
        >>> index = et.SearchIndex.build(texts, encoder="random")
        >>> groups = index.duplicates()
        >>> groups
        DuplicateGroups(1 groups of 2 among 3 documents, cosine from 0.95)
        >>> len(groups.to_frame())
        2
        """
        return find_duplicates(self._reader, threshold)

    def attach_topics(self, result: FittedTopics) -> SearchIndex:
        """Attach topics, which hits show and filters may use.

        Documents get the columns ``topic``, ``topic_name``, ``map_x`` and ``map_y``, which replace
        those attached before. Documents outside the result have missing values.

        Parameters
        ----------
        result : TopicResult or fitted TopicModel
            Topics of the same documents, matched by id.

        Raises
        ------
        InputError
            If no id matches, or the metadata already has such a column.

        Examples
        --------
        >>> import embedtopics as et
        >>> corpus = et.Corpus("embedtopics:demo")
        >>> model = et.TopicModel("tfidf").fit(corpus)
        >>> index = et.SearchIndex.build(corpus, encoder=None).attach_topics(model)
        >>> hits = index.search("pump", where="topic >= 0")
        >>> bool((hits.to_frame()["topic"] >= 0).all())
        True
        """
        attach_topics(self._reader.collection, result_of(result))
        return self

    @names_keywords
    def add(
        self,
        corpus: Any,
        *,
        text: str | Sequence[str] | None = None,
        id: str | None = None,
        time: str | None = None,
        embeddings: npt.ArrayLike | None = None,
        update: bool = False,
        show_progress: bool | None = None,
    ) -> int:
        """Add documents without rebuilding the index.

        Parameters
        ----------
        corpus : Corpus, list of str, list of dict, DataFrame or path
        text, id, time : str, optional
            Columns of a table or file; by default those of the build.
        embeddings : array_like of shape (n_rows, n_dimensions), optional
        update : bool
            Replace documents with the same ids, which are otherwise refused.
        show_progress : bool, optional

        Returns
        -------
        int
            Number of documents added.

        Raises
        ------
        InputError
            If an id is in the index, or a table does not show which column holds ids or texts.

        Examples
        --------
        >>> import embedtopics as et
        >>> rows = [{"id": "a", "text": "Cats purr."}]
        >>> index = et.SearchIndex.build(rows, id="id", encoder=None)
        >>> index.add([{"id": "b", "text": "Dogs bark."}])
        1
        >>> index.add([{"id": "a", "text": "Owls hoot."}], update=True)
        1
        >>> [document.text for document in index]
        ['Dogs bark.', 'Owls hoot.']
        """
        columns = {"text": text, "id": id, "time": time}
        check_corpus(corpus)
        documents = read_more(self._reader, corpus, columns, update)
        notes = _build.add(self._reader, documents, embeddings, update, show_progress)
        self.decisions = (*self.decisions, *notes)
        return len(documents)

    def remove(self, ids: Iterable[object]) -> int:
        """Remove documents by id, and return their number.

        Raises
        ------
        InputError
            If an id is not in the index; nothing is removed then.

        Examples
        --------
        >>> import embedtopics as et
        >>> index = et.SearchIndex.build(["Cats purr.", "Dogs bark."], encoder=None)
        >>> index.remove([index.ids[0]])
        1
        >>> [document.text for document in index]
        ['Dogs bark.']
        """
        names = [_checked_id(value) for value in as_list(ids, "ids")]
        with self._reader.collection.writing() as writer:
            return writer.remove(names)

    def compact(self) -> bool:
        """Merge all segments, and drop removed documents; return False if nothing changed."""
        return _build.compact(self._reader.collection)

    def save(self, folder: str | os.PathLike[str], *, overwrite: bool = False) -> SearchIndex:
        """Copy the index to a folder, and return the copy.

        Raises
        ------
        InputError
            If the folder is not empty, and not an index to overwrite.
        """
        copy = self._reader.collection.copy_to(checked_path(folder), overwrite=overwrite)
        return SearchIndex(copy, encoder=self._reader.given_encoder)

    def export(self, path: str | os.PathLike[str]) -> int:
        """Write all passages with their vectors and metadata to a Parquet file.

        Parameters
        ----------
        path : path
            Such as ``passages.parquet``. Columns of the metadata with names that the file needs,
            such as "text", get a suffix.

        Returns
        -------
        int
            Number of passages written.
        """
        target = checked_path(path, "path")
        return export_parquet(self._reader.collection, self._reader.newest(), target)


def _checked_id(value: object) -> str:
    """Return an id as an index stores it: a text, as in a `Corpus`."""
    name = read_id(value)
    if not name:
        raise InputError("id", "the id of a document", value)
    return name
