"""Queries and documents with judgements, read from a folder in the layout of BEIR."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from embedtopics.errors import InputError
from embedtopics.evaluation._files import TableFile, read_qrels, read_queries
from embedtopics.evaluation.results import RetrievalSet


def read_retrieval_set(folder: str | os.PathLike[str], *, split: str = "test") -> RetrievalSet:
    r"""Read queries, documents and judgements from a folder in the layout of BEIR.

    Parameters
    ----------
    folder : path
        With corpus.jsonl (_id, text and perhaps title), queries.jsonl (_id, text) and
        qrels/SPLIT.tsv (query-id, corpus-id, score), each possibly with .gz; or in another format
        of `Corpus` and `evaluate_run`, such as corpus.csv and qrels/test.txt.
    split : str

    Returns
    -------
    RetrievalSet
        The queries that have judgements.

    Raises
    ------
    InputError
        If a file is missing or cannot be read, or a judged document is not in the corpus.

    References
    ----------
    Thakur et al. (2021), "BEIR: A Heterogeneous Benchmark for Zero-shot Evaluation of Information
    Retrieval Models".

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import embedtopics as et
    >>> with tempfile.TemporaryDirectory() as name:
    ...     folder = Path(name)
    ...     (folder / "qrels").mkdir()
    ...     files = {
    ...         "corpus.csv": "_id,text\nd1,A river in flood\nd2,A game of chess\n",
    ...         "queries.csv": "_id,text\nq1,high water\n",
    ...         "qrels/test.tsv": "query-id\tcorpus-id\tscore\nq1\td1\t1\n",
    ...     }
    ...     for file, content in files.items():
    ...         _ = (folder / file).write_text(content)
    ...     judged = et.evaluation.read_retrieval_set(folder)
    >>> judged.to_frame()
            query          document  grade
    0  high water  A river in flood    1.0
    """
    from scipy.sparse import csr_matrix

    home = Path(folder).expanduser()
    qrels = read_qrels(_file_of(home, f"qrels/{split}"))
    queries = {q: text for q, text in read_queries(_file_of(home, "queries")).items() if q in qrels}
    corpus = TableFile(_file_of(home, "corpus"))
    ids = [str(cell) for cell in corpus.cells(corpus.first_of(["_id", "id", "doc_id"]))]
    row_of = {name: row for row, name in enumerate(ids)}
    if len(row_of) < len(ids):
        raise InputError("folder", f"with different ids in {corpus.path.name}")
    if not queries:
        raise InputError("folder", "with judgements of some of its queries", found="none")
    texts = corpus.texts("text", may_be_empty=True)
    if "title" in corpus.frame:
        titles = corpus.texts("title", may_be_empty=True)
        texts = tuple(f"{one} {two}".strip() for one, two in zip(titles, texts, strict=True))
    cells = [
        (row, row_of.get(str(document), -1), grade)
        for row, query in enumerate(queries)
        for document, grade in qrels[query].items()
    ]
    rows, places, grades = (np.array(column) for column in zip(*cells, strict=True))
    if (places < 0).any():
        expected = f"with judgements of documents in {corpus.path.name}"
        raise InputError("folder", expected, found=f"{(places < 0).sum():,} of others")
    order = np.empty(len(ids), dtype=np.int64)
    order[sorted(range(len(ids)), key=ids.__getitem__)] = np.arange(len(ids))
    return RetrievalSet(
        source=home.name,
        queries=tuple(queries.values()),
        documents=tuple(texts),
        relevance=csr_matrix((grades, (rows, places)), shape=(len(queries), len(ids))),
        tie_order=order,
    )


def _file_of(folder: Path, stem: str) -> Path:
    """Return the one file of a stem, whatever its format."""
    paths = sorted((folder / stem).parent.glob(f"{Path(stem).name}.*"))
    if len(paths) != 1:
        there = ", ".join(path.name for path in paths) or "none"
        raise InputError("folder", f"with one file {stem}.*, such as .jsonl or .tsv", found=there)
    return paths[0]
