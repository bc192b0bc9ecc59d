"""Runs measured against judgements, compared with ir_measures; and files of them."""

import gzip
import json

import ir_measures
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embedtopics.errors import InputError
from embedtopics.evaluation import _retrieval as module
from embedtopics.evaluation import compare_retrieval, retrieval
from embedtopics.evaluation._bootstrap import interval
from embedtopics.evaluation._files import read_qrels, read_queries, read_run
from embedtopics.retrieval.results import Hit, SearchHits
from tests.factories import refuses

KS = (1, 2, 3, 10)


def theirs(level):
    """Our names of the measures of ir_measures."""
    measures = {f"ndcg@{k}": ir_measures.nDCG @ k for k in KS}
    measures |= {f"recall@{k}": ir_measures.R(rel=level) @ k for k in KS}
    measures |= {f"precision@{k}": ir_measures.P(rel=level) @ k for k in KS}
    return measures | {"map": ir_measures.AP(rel=level), "mrr": ir_measures.RR(rel=level)}


documents = st.sampled_from(["a", "b", "B", "é", "z9", "z10", "\uffff", "\U0001f600", "1", "2"])
queries = st.sampled_from(["q1", "q2", "q10", "x"])
# Ties, in double and in single precision.
scores = st.sampled_from([0.0, -1.0, 0.5, 1.0, 1.0 + 1e-9, 1.0 - 1e-12, 1.0 + 1e-6, 1e-40, 3e5])
runs = st.dictionaries(queries, st.dictionaries(documents, scores, max_size=10), min_size=1)
judged = st.dictionaries(documents, st.integers(-2, 3), min_size=1, max_size=8)
judgements = st.dictionaries(queries, judged, min_size=1)


def of_ir_measures(run, qrels, level=1):
    """Return the measures of each query; those of queries that the run lacks are 0."""
    # Where all grades are negative trec_eval reads beyond its memory; nothing is relevant there.
    safe = {query: judged for query, judged in qrels.items() if max(judged.values()) >= 0}
    names = {str(measure): name for name, measure in theirs(level).items()}
    values = {query: dict.fromkeys(names.values(), 0.0) for query in qrels}
    for one in ir_measures.iter_calc(list(theirs(level).values()), safe, run) if safe else ():
        values[one.query_id][names[str(one.measure)]] = one.value
    return values


@settings(max_examples=60, deadline=None)
@given(runs, judgements, st.integers(1, 3), st.booleans())
def test_measures_are_those_of_ir_measures(run, qrels, level, complete):
    if not set(run) & set(qrels):
        with refuses("run"):
            retrieval(run, qrels, KS, n_resamples=0)
        return
    options = {"relevant_from": level, "n_resamples": 0, "complete": complete}
    scores = retrieval(run, qrels, KS, **options)
    expected = of_ir_measures(run, qrels, level)
    if not complete:
        expected = {query: values for query, values in expected.items() if query in run}
    assert scores.queries == tuple(sorted(expected))
    assert set(scores.scores) == set(theirs(level))
    for name, values in scores.by_query.items():
        for query, value in zip(scores.queries, values, strict=True):
            assert value == pytest.approx(expected[query][name], abs=1e-9), (query, name)
        mean = np.mean([one[name] for one in expected.values()])
        assert scores.scores[name].value == pytest.approx(mean, abs=1e-9)
        assert scores.scores[name].n == len(expected)


QRELS = {"q1": {"a": 2, "b": 1, "c": 0}, "q2": {"a": 0}, "q3": {"c": 1}}
RUN = {"q1": {"b": 3.0, "x": 2.0, "a": 1.0}, "q2": {"a": 1.0}, "q9": {"a": 1.0}}


def test_decisions_say_what_counts():
    found = retrieval(RUN, QRELS, [2, 5], complete=True)
    told = {one.name: one.value for one in found.decisions}
    assert told == {"queries_missing": 1, "queries_left_out": 1, "queries_without_relevant": 1,
                    "documents_unjudged": 1, "documents_ranked": 3}  # fmt: skip
    # By hand: q1 has precision 1 and 2/3 at its relevant documents; q2 and q3 count as 0.
    assert found.scores["map"].value == pytest.approx((1 + 2 / 3) / 2 / 3)
    best = 2 + 1 / np.log2(3)
    assert found.scores["ndcg@2"].value == pytest.approx(1 / best / 3)
    assert not retrieval({"q": ["a"]}, {"q": {"a": 1}}, [1]).decisions
    frame = retrieval(RUN, QRELS, [2]).by_query_frame()
    assert frame["query"].tolist() == ["q1", "q2"] and frame["mrr"].tolist() == [1, 0]


def test_queries_that_were_not_asked_do_not_count():
    hits = SearchHits(("one",), ((Hit("b", 1.0, 1.0, 0, 0, "", (0, 0)),),), "dense", 1)
    found = retrieval(hits, QRELS, [1], query_ids=["q1"])
    assert found.queries == ("q1",) and found.scores["precision@1"].value == 1.0
    assert {one.name: one.value for one in found.decisions} == {"queries_missing": 2}
    assert "1 queries" in repr(found) and "precision@1" in found._repr_html_()
    complete = retrieval(hits, QRELS, [1], query_ids=["q1"], complete=True)
    assert complete.scores["precision@1"].value == pytest.approx(1 / 3)
    with refuses("second"):
        compare_retrieval(found, complete)
    assert "RetrievalComparison" in repr(compare_retrieval(found, found))


def test_all_forms_of_run_and_judgements_mean_the_same():
    order = {"q1": ["b", "x", "a"], "q2": ["a"], "q9": ["a"]}
    pairs = {q: [(d, s) for d, s in reversed(found.items())] for q, found in RUN.items()}
    rows = [(q, d, s) for q, found in RUN.items() for d, s in found.items()]
    table = pd.DataFrame(rows, columns=["query_id", "doc_id", "score"])
    hits = SearchHits(
        ("one", "two", "nine"),
        tuple(tuple(Hit(d, s, s, s, s, "", (0, 0)) for d, s in found.items())
              for found in RUN.values()),
        "dense", 10,
    )  # fmt: skip
    expected = retrieval(RUN, QRELS, n_resamples=20)
    graded = pd.DataFrame(
        [(q, d, g) for q, found in QRELS.items() for d, g in found.items()],
        columns=["query-id", "corpus-id", "score"],
    )
    for run in (order, pairs, table, table.sample(frac=1, random_state=1)):
        for qrels in (QRELS, graded, graded.iloc[::-1]):
            found = retrieval(run, qrels, n_resamples=20)
            pd.testing.assert_frame_equal(found.to_frame(), expected.to_frame())
            assert found.settings == expected.settings
    found = retrieval(hits, QRELS, n_resamples=20, query_ids=["q1", "q2", "q9"])
    pd.testing.assert_frame_equal(found.to_frame(), expected.to_frame())
    binary = retrieval(RUN, {"q1": ["a", "b"]}, [2], n_resamples=0)
    assert binary.scores["ndcg@2"].value == pytest.approx(1 / (1 + 1 / np.log2(3)))


def test_hits_keep_their_order_and_their_frame_is_a_run():
    found = tuple(Hit(d, 1.0, 1.0, 0, 0, "", (0, 0)) for d in (1, 2))
    hits = SearchHits(("text",), (found,), "dense", 2)
    assert retrieval(hits, {7: {1: 1}}, query_ids=np.array([7])).scores["mrr"].value == 1
    # Of a table only the scores are known, and of equal ones the higher id comes first.
    assert retrieval(hits.to_frame(), {0: {1: 1}}).scores["mrr"].value == 0.5


def test_parts_measured_one_by_one_are_the_whole(monkeypatch):
    rng = np.random.default_rng(0)
    run = {q: {d: float(rng.random()) for d in range(rng.integers(0, 40))} for q in range(30)}
    qrels = {q: {d: int(rng.integers(0, 3)) for d in rng.permutation(50)[:9].tolist()}
             for q in range(30)}  # fmt: skip
    whole = retrieval(run, qrels)
    monkeypatch.setattr(module, "RANKS_AT_ONCE", 300)
    parts = retrieval(dict(reversed(run.items())), dict(reversed(qrels.items())))
    for name, values in whole.by_query.items():
        np.testing.assert_array_equal(values, parts.by_query[name])
        np.testing.assert_array_equal(whole.scores[name].drawn, parts.scores[name].drawn)


def test_differences_are_paired():
    rng = np.random.default_rng(3)
    qrels = {q: {0: 1} for q in range(200)}
    ranks = rng.integers(0, 9, 200)
    first = {q: [d + 1 for d in range(ranks[q])] + [0] for q in range(200)}
    # One rank better for three of four queries that can be.
    is_better = (ranks > 0) & (rng.random(200) < 0.75)
    second = {q: first[q][1:] if is_better[q] else first[q] for q in range(200)}
    one, other = (retrieval(run, qrels, [3], n_resamples=50) for run in (first, second))
    found = compare_retrieval(one, other)
    expected = 1 / (ranks + 1 - is_better) - 1 / (ranks + 1)
    by_number = np.argsort([str(q) for q in range(200)])
    np.testing.assert_allclose(
        other.by_query["mrr"] - one.by_query["mrr"], expected[by_number], atol=1e-12
    )
    [mrr] = found.of(measure="mrr")
    assert mrr.difference == pytest.approx(expected.mean()) and mrr.n == 200
    # The interval is that of the differences themselves, drawn anew by another hand.
    drawn = rng.choice(expected, (2000, 200)).mean(axis=1)
    low, high = interval(drawn, 200)
    assert mrr.low == pytest.approx(low, abs=0.006) and mrr.high == pytest.approx(high, abs=0.006)
    n_better = int(is_better.sum())
    assert (mrr.better, mrr.worse, mrr.equal) == (n_better, 0, 200 - n_better)
    back = compare_retrieval(other, one).to_frame().set_index("measure")
    assert back.loc["mrr", "worse"] == n_better and back.loc["mrr", "high"] < 0
    assert list(back.columns) == ["first", "second", "difference", "low", "high", "better",
                                  "worse", "equal", "n"]  # fmt: skip


def test_only_what_was_measured_alike_is_compared():
    one = retrieval(RUN, QRELS, [2])
    for other in (
        retrieval(RUN, QRELS, [3]),
        retrieval(RUN, {**QRELS, "q2": {"a": 1}}, [2]),
        retrieval(RUN, QRELS, [2], relevant_from=2),
    ):
        with refuses("second"):
            compare_retrieval(one, other)


def table(**columns):
    return pd.DataFrame({"query": ["q1"] * len(columns["document"]), **columns})


@pytest.mark.parametrize(
    ("run", "qrels", "parameter"),
    [
        ({"q": {1: 0.5}}, {"q": {"1": 1}}, "run"), ({1: {"a": 0.5}}, {"1": {"a": 1}}, "run"),
        ({}, QRELS, "run"), (RUN, {}, "qrels"), (RUN, {"q": {}}, "qrels"), (RUN, [1], "qrels"),
        (RUN, {"q1": ["a", "a"]}, "qrels"), (RUN, {"q1": {"a": None}}, "qrels"),
        ([["a"]], QRELS, "run"), ({"q1": {"a": np.nan}}, QRELS, "run"),
        ({"q1": ["a", "b", "a"]}, QRELS, "run"), ({"q1": [("a", 1.0), ("a", 2.0)]}, QRELS, "run"),
        ({"q1": {"a", "b"}}, QRELS, "run"), ({"q1": "a"}, QRELS, "run"),
        (table(document=["a"]), QRELS, "run"),
        (table(document=["a", "a"], score=[1, 2]), QRELS, "run"),
        (table(document=["a"], score=[np.nan]), QRELS, "run"),
        (SearchHits(("a",), ((),), "dense", 1), QRELS, "query_ids"),
    ],
)  # fmt: skip
def test_forms_that_cannot_be_measured(run, qrels, parameter):
    with refuses(parameter):
        retrieval(run, qrels)


@pytest.mark.parametrize(
    ("parameter", "value"),
    [("ks", []), ("ks", [0]), ("ks", [10**6]), ("relevant_from", 0), ("confidence", 1),
     ("random_state", -1), ("n_resamples", -1), ("query_ids", ["q1"])],
)  # fmt: skip
def test_bad_parameters(parameter, value):
    with refuses(parameter):
        retrieval(RUN, QRELS, **{parameter: value})
    with refuses("query_ids"):
        hits = SearchHits(("a",) * 2, ((),) * 2, "dense", 1)
        retrieval(hits, QRELS, query_ids=["q1", "q1"])


def test_ids_of_numpy_are_those_of_python():
    plain = retrieval({1: [7]}, {1: {7: 1}}, [1])
    of_numpy = retrieval({np.int64(1): np.array([7])}, {np.int64(1): {np.int64(7): 1}}, np.int64(1))
    assert of_numpy.settings == plain.settings and repr(of_numpy.queries) == "(1,)"
    assert compare_retrieval(plain, of_numpy).of(measure="mrr")[0].difference == 0


def test_a_single_query_has_no_interval():
    one = retrieval({1: ["a"]}, {1: {"a": 1}}, [1])
    for found in (one.scores["mrr"], *compare_retrieval(one, one).of(measure="mrr")):
        assert found.n == 1 and np.isnan(found.low) and np.isnan(found.high)
    assert one.scores["mrr"].value == 1


EXPECTED = {"q1": {"d 1": 2.0, "d2": -1.0}, "q2": {"d2": 0.0}}
TREC = "q1 0 d1 2\nq1\t0\td2\t-1\n\nq2 Q0 d2 0\n"
BEIR = "query-id\tcorpus-id\tscore\nq1\td 1\t2\nq1\td2\t-1\nq2\td2\t0\n"
RUN_FILE = "q1 Q0 d1 1 0.5 name\nq1 Q0 d2 2 0.75 name\r\n\nq2 Q0 d2 1 -3e1 name\n"


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
    assert read_qrels(trec) == {"q1": {"d1": 2, "d2": -1}, "q2": {"d2": 0}}
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
    run = read_run(written(tmp_path, "run.txt", RUN_FILE))
    assert run == {"q1": {"d1": 0.5, "d2": 0.75}, "q2": {"d2": -30.0}}
    qrels = written(tmp_path, "qrels.txt", TREC)
    found = retrieval(tmp_path / "run.txt", str(qrels), [1], n_resamples=0)
    assert found.scores["mrr"].value == 0.25  # d2 is before d1; q2 has no relevant document


@pytest.mark.parametrize(
    ("reader", "content"),
    [
        (read_qrels, ""), (read_qrels, "q1 0 d1 2\nq1 0 d2\n"),
        (read_qrels, "q1 0 d1 2\nq1 0 d2 high\n"), (read_qrels, "q1 0 d1 nan\n"),
        (read_qrels, "q1 0 d1 1_0\n"), (read_qrels, "q1 0 d1 2\n\nq1 0 d1 1\n"),
        (read_qrels, "query-id\tcorpus-id\tscore\n"), (read_qrels, BEIR + "q3\td3\n"),
        (read_qrels, BEIR + "q3\t\t1\n"), (read_qrels, "q1\td1\t1\n"),
        (read_qrels, '{"query_id": "1"}\n'), (read_qrels, '{"query_id": \n'),
        (read_qrels, '{"query_id": "1", "doc_id": "2", "relevance": 1}\n{"query_id": "1"}\n'),
        (read_run, ""), (read_run, "q1 Q0 d1 1 0.5\n"), (read_run, "q1 Q0 d1 1 x n\n"),
        (read_run, "q1 Q0 d1 1 1 n\nq1 Q0 d1 2 2 n\n"),
    ],
)  # fmt: skip
def test_broken_files_are_named(tmp_path, reader, content):
    with refuses("given.txt"):
        reader(written(tmp_path, "given.txt", content))


def test_files_that_are_not_there(tmp_path):
    (tmp_path / "qrels.tsv").write_text(BEIR)
    with pytest.raises(InputError, match="no such file"):
        read_qrels(tmp_path / "qrel.tsv")
    with refuses("path"):
        read_run(tmp_path)
    (tmp_path / "latin").write_bytes("q1 0 é 1".encode("latin-1"))
    with pytest.raises(InputError, match="byte 0xe9"):
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
    with refuses("o.tsv"):
        read_queries(written(tmp_path, "o.tsv", "query_id\twords\n2\ta\n"))


@pytest.mark.parametrize(
    ("content", "parameter"),
    [
        ("17\twhat is a query\n18\tother\n", "queries.tsv"),
        ("id\ttext\n1\ta\n2\t\n", "text in queries.tsv"),
    ],
)
def test_broken_queries(tmp_path, content, parameter):
    with refuses(parameter):
        read_queries(written(tmp_path, "queries.tsv", content))


def test_ids_of_queries_are_different(tmp_path):
    with pytest.raises(InputError, match="different in every row"):
        read_queries(written(tmp_path, "queries.tsv", "id\ttext\n1\ta\n1\tb\n"))
