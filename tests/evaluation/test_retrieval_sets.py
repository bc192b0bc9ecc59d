"""Queries and documents in the layout of BEIR: what is read, and what is refused."""

import pytest

from embedtopics.evaluation import read_retrieval_set
from tests.evaluation.task_data import write_retrieval
from tests.factories import refuses


def test_a_folder_holds_queries_documents_and_judgements(tmp_path):
    searched = read_retrieval_set(write_retrieval(tmp_path / "tiny"))
    # The ninth query has no judgement.
    assert len(searched.queries) == 8 and len(searched.documents) == 12
    table = searched.to_frame()
    assert list(table) == ["query", "document", "grade"] and len(table) == 8
    assert (table["query"] == table["document"]).all()
    assert set(table["grade"]) == {1.0, 2.0}
    assert repr(searched) == "RetrievalSet('tiny', 8 queries, 12 documents, 8 judgements)"

    zipped = read_retrieval_set(write_retrieval(tmp_path / "zipped", ".gz"))
    assert zipped.to_frame().equals(table)


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("qrels/test.tsv", "query-id\tcorpus-id\tscore\nq1\tnowhere\t1\n"),
        ("qrels/test.tsv", "query-id\tcorpus-id\tscore\nq99\td1\t1\n"),
        ("corpus.jsonl", '{"_id": "d1", "text": "a"}\n{"_id": "d1", "text": "b"}\n'),
        ("corpus.csv", "_id,text\n"),
    ],
)
def test_retrieval_sets_that_cannot_be_measured(tmp_path, file, content):
    (write_retrieval(tmp_path) / file).write_text(content)
    with refuses("folder"):
        read_retrieval_set(tmp_path)
    with refuses("folder"):
        read_retrieval_set(tmp_path, split="dev")
