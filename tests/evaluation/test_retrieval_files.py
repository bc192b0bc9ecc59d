"""Files of queries, rankings and judgements."""

import gzip
import json

import pytest
import pytrec_eval

from embedtopics.errors import InputError
from embedtopics.evaluation import retrieval
from embedtopics.evaluation._retrieval_files import read_qrels, read_queries, read_run

EXPECTED = {"q1": {"d 1": 2.0, "d2": -1.0}, "q2": {"d2": 0.0}}
TREC = "q1 0 d1 2\nq1\t0\td2\t-1\n\nq2 Q0 d2 0\n"
BEIR = "query-id\tcorpus-id\tscore\nq1\td 1\t2\nq1\td2\t-1\nq2\td2\t0\n"
RUN = "q1 Q0 d1 1 0.5 name\nq1 Q0 d2 2 0.75 name\r\n\nq2 Q0 d2 1 -3e1 name\n"


def written(folder, name, content):
    path = folder / name
    if name.endswith(".gz"):
        path.write_bytes(gzip.compress(content.encode()))
    else:
        path.write_bytes(content.encode())
    return path


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_judgements_of_all_forms(tmp_path, suffix):
    trec = written(tmp_path, "qrels.txt" + suffix, TREC)
    lines = TREC.split("\n")
    assert read_qrels(trec) == pytrec_eval.parse_qrel([line for line in lines if line])
    assert read_qrels(written(tmp_path, "test.tsv" + suffix, BEIR)) == EXPECTED
    keys = (("query_id", "doc_id", "relevance"), ("query-id", "corpus-id", "score"))
    for names in keys:
        records = [(q, d, g) for q, found in EXPECTED.items() for d, g in found.items()]
        content = "\n".join(json.dumps(dict(zip(names, one, strict=True))) for one in records)
        assert read_qrels(written(tmp_path, "qrels.jsonl" + suffix, content)) == EXPECTED


def test_ids_are_texts_and_equal_repetitions_are_one(tmp_path):
    content = '{"query_id": 1, "doc_id": 7, "relevance": 1}\n' * 2
    assert read_qrels(written(tmp_path, "q.jsonl", content)) == {"1": {"7": 1.0}}


def test_runs(tmp_path):
    run = read_run(written(tmp_path, "run.txt", RUN))
    lines = [line for line in RUN.split("\n") if line.strip()]
    assert run == pytrec_eval.parse_run(lines)
    qrels = written(tmp_path, "qrels.txt", TREC)
    found = retrieval(tmp_path / "run.txt", str(qrels), [1], n_resamples=0)
    assert found.scores["mrr"].value == 0.25  # d2 is before d1; q2 has no relevant document


@pytest.mark.parametrize(
    ("reader", "content", "message"),
    [
        (read_qrels, "", "empty"),
        (read_qrels, "q1 0 d1 2\nq1 0 d2\n", "line 2: expected 4 columns .* got 3"),
        (read_qrels, "q1 0 d1 2\nq1 0 d2 high\n", "line 2: .* grade, got 'high'"),
        (read_qrels, "q1 0 d1 nan\n", "line 1: .* got 'nan'"),
        (read_qrels, "q1 0 d1 1_0\n", "line 1: .* got '1_0'"),
        (read_qrels, "q1 0 d1 2\n\nq1 0 d1 1\n", "line 3: .* grade 1 here and 2 above"),
        (read_qrels, "query-id\tcorpus-id\tscore\n", "below the header, got none"),
        (read_qrels, BEIR + "q3\td3\n", "line 5: expected 3 columns"),
        (read_qrels, BEIR + "q3\t\t1\n", "line 5: expected 3 columns"),
        (read_qrels, "q1\td1\t1\n", "line 1: expected 4 columns .* header line"),
        (read_qrels, '{"query_id": "1"}\n', "line 1: .* query_id, doc_id and relevance"),
        (read_qrels, '{"query_id": "1", "doc_id": "2", "relevance": 1}\n[1]\n', "line 2: .* got"),
        (read_qrels, '{"query_id": \n', "line 1: expected a JSON object"),
        (read_run, "", "empty"),
        (read_run, "q1 Q0 d1 1 0.5\n", "line 1: expected 6 columns .* got 5"),
        (read_run, "q1 Q0 d1 1 x n\n", "line 1: .* score, got 'x'"),
        (read_run, "q1 Q0 d1 1 1 n\nq1 Q0 d1 2 1 n\n", "line 2: .* 'd1' twice"),
    ],
)
def test_broken_lines_are_named(tmp_path, reader, content, message):
    path = written(tmp_path, "given.txt", content)
    with pytest.raises(InputError, match=f"^given.txt.*{message}"):
        reader(path)


def test_files_that_are_not_there(tmp_path):
    (tmp_path / "qrels.tsv").write_text(BEIR)
    with pytest.raises(InputError, match=r"did you mean 'qrels.tsv'"):
        read_qrels(tmp_path / "qrel.tsv")
    with pytest.raises(InputError, match="got a folder"):
        read_run(tmp_path)
    (tmp_path / "latin").write_bytes("q1 0 é 1".encode("latin-1"))
    with pytest.raises(InputError, match="byte 0xe9 at offset 5"):
        read_qrels(tmp_path / "latin")


def test_queries(tmp_path):
    expected = {"2": "second, with a comma", "10": "first"}
    rows = [("2", "second, with a comma"), ("10", "first")]
    for name, content in (
        ("q.csv", 'id,text\n2,"second, with a comma"\n10,first\n'),
        ("q.tsv", "qid\tquery\n2\tsecond, with a comma\n10\tfirst\n"),
        ("q.jsonl", "\n".join(json.dumps({"_id": int(i), "text": t, "title": ""})
                              for i, t in rows)),
        ("q.jsonl.gz", "\n".join(json.dumps({"query_id": i, "query": t}) for i, t in rows)),
    ):  # fmt: skip
        found = read_queries(written(tmp_path, name, content))
        assert found == expected and list(found) == ["2", "10"], name
    # One column cannot be both.
    with pytest.raises(InputError, match="expected a column 'text' or"):
        read_queries(written(tmp_path, "o.tsv", "query_id\twords\n2\ta\n"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("17\twhat is a query\n18\tother\n", "expected a column 'id' or .* header line"),
        ("id\ttext\n1\ta\n1\tb\n", "different in every row"),
        ("id\ttext\n1\ta\n2\t\n", r"row 2 \(line 3\): expected the text of a query"),
    ],
)
def test_broken_queries(tmp_path, content, message):
    with pytest.raises(InputError, match=message):
        read_queries(written(tmp_path, "queries.tsv", content))
