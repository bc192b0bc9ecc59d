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
from embedtopics.evaluation import compare_runs, evaluate_run
from embedtopics.evaluation._bootstrap import interval
from embedtopics.evaluation._files import read_qrels, read_queries
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
@given(runs, judgements, st.integers(1, 3))
def test_measures_are_those_of_ir_measures(run, qrels, level):
    if not set(run) & set(qrels):
        with refuses("run"):
            evaluate_run(run, qrels, KS)
        return
    scores = evaluate_run(run, qrels, KS, relevant_from=level)
    expected = of_ir_measures(run, qrels, level)
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
    scores = evaluate_run(RUN, QRELS, [2, 5])
    assert {one.name: one.value for one in scores.decisions} == {
        "queries_missing": 1, "queries_left_out": 1, "queries_without_relevant": 1,
        "documents_unjudged": 1, "documents_ranked": 3,
    }  # fmt: skip
    # By hand: q1 has precision 1 and 2/3 at its relevant documents; q2 counts as 0.
    assert scores.scores["map"].value == pytest.approx((1 + 2 / 3) / 2 / 2)
    best = 2 + 1 / np.log2(3)
    assert scores.scores["ndcg@2"].value == pytest.approx(1 / best / 2)
    assert not evaluate_run({"q": ["a"]}, {"q": {"a": 1}}, [1]).decisions
    assert scores.queries == ("q1", "q2") and scores.by_query["mrr"].tolist() == [1, 0]
    assert "2 queries" in repr(scores) and "precision@2" in scores._repr_html_()
    assert "RunComparison" in repr(compare_runs(scores, scores))


def test_all_forms_of_run_and_judgements_mean_the_same(tmp_path):
    order = {"q1": ["b", "x", "a"], "q2": ["a"], "q9": ["a"]}
    hits = SearchHits(
        ("one", "two", "nine"),
        tuple(tuple(Hit(d, s, s, s, s, "", (0, 0)) for d, s in ranked.items())
              for ranked in RUN.values()),
        "dense", 10,
    )  # fmt: skip
    expected = evaluate_run(RUN, QRELS)
    lines = [f"{q} 0 {d} {g}\n" for q, judged in QRELS.items() for d, g in judged.items()]
    file = written(tmp_path, "qrels.txt", "".join(lines[::-1]))
    for run, options in ((order, {}), (hits, {"query_ids": ["q1", "q2", "q9"]})):
        for qrels in (QRELS, file):
            scores = evaluate_run(run, qrels, **options)
            pd.testing.assert_frame_equal(scores.to_frame(), expected.to_frame())
            assert scores.settings == expected.settings
    binary = evaluate_run(RUN, {"q1": ["a", "b"]}, [2])
    assert binary.scores["ndcg@2"].value == pytest.approx(1 / (1 + 1 / np.log2(3)))


def test_equal_hits_keep_their_order():
    found = tuple(Hit(d, 1.0, 1.0, 0, 0, "", (0, 0)) for d in (1, 2))
    hits = SearchHits(("text",), (found,), "dense", 2)
    assert evaluate_run(hits, {7: {1: 1}}, query_ids=np.array([7])).scores["mrr"].value == 1


def test_differences_are_paired():
    rng = np.random.default_rng(3)
    qrels = {q: {0: 1} for q in range(200)}
    ranks = rng.integers(0, 9, 200)
    first = {q: [d + 1 for d in range(ranks[q])] + [0] for q in range(200)}
    # One rank better for three of four queries that can be.
    is_better = (ranks > 0) & (rng.random(200) < 0.75)
    second = {q: first[q][1:] if is_better[q] else first[q] for q in range(200)}
    one, other = (evaluate_run(run, qrels, [3]) for run in (first, second))
    found = compare_runs(one, other)
    expected = 1 / (ranks + 1 - is_better) - 1 / (ranks + 1)
    by_number = np.argsort([str(q) for q in range(200)])
    np.testing.assert_allclose(
        other.by_query["mrr"] - one.by_query["mrr"], expected[by_number], atol=1e-12
    )
    mrr = found.to_frame().set_index("measure").loc["mrr"]
    assert mrr.difference == pytest.approx(expected.mean()) and mrr.n == 200
    # The interval is that of the differences themselves, drawn anew by another hand.
    drawn = rng.choice(expected, (2000, 200)).mean(axis=1)
    low, high = interval(drawn, 200)
    assert mrr.low == pytest.approx(low, abs=0.006) and mrr.high == pytest.approx(high, abs=0.006)
    n_better = int(is_better.sum())
    assert (mrr.better, mrr.worse, mrr.equal) == (n_better, 0, 200 - n_better)
    back = compare_runs(other, one).to_frame().set_index("measure")
    assert back.loc["mrr", "worse"] == n_better and back.loc["mrr", "high"] < 0
    assert list(back.columns) == ["first", "second", "difference", "low", "high", "better",
                                  "worse", "equal", "n"]  # fmt: skip


def test_only_what_was_measured_alike_is_compared():
    one = evaluate_run(RUN, QRELS, [2])
    for other in (
        evaluate_run(RUN, QRELS, [3]),
        evaluate_run(RUN, {**QRELS, "q2": {"a": 1}}, [2]),
        evaluate_run(RUN, QRELS, [2], relevant_from=2),
    ):
        with refuses("second"):
            compare_runs(one, other)
    with refuses("first") as caught:
        compare_runs(RUN, one)
    assert "evaluate_run" in str(caught.value)


@pytest.mark.parametrize(
    ("run", "qrels", "parameter"),
    [
        ({"q": {1: 0.5}}, {"q": {"1": 1}}, "run"), ({1: {"a": 0.5}}, {"1": {"a": 1}}, "run"),
        ({}, QRELS, "run"), (RUN, {}, "run"), (RUN, {"q": {}}, "run"),
        (RUN, {"q1": ["a", "a"]}, "qrels"), (RUN, {"q1": {"a": np.nan}}, "qrels"),
        ({"q1": {"a": np.nan}}, QRELS, "run"), ({"q1": ["a", "b", "a"]}, QRELS, "run"),
        ({"q1": {"a", "b"}}, QRELS, "run"), ({"q1": "a"}, QRELS, "run"),
        (SearchHits(("a",), ((),), "dense", 1), QRELS, "query_ids"),
    ],
)  # fmt: skip
def test_forms_that_cannot_be_measured(run, qrels, parameter):
    with refuses(parameter):
        evaluate_run(run, qrels)


def test_bad_parameters():
    for options in ({"ks": [0]}, {"relevant_from": 0}):
        with refuses(*options):
            evaluate_run(RUN, QRELS, **options)
    with refuses("query_ids"):
        hits = SearchHits(("a",) * 2, ((),) * 2, "dense", 1)
        evaluate_run(hits, QRELS, query_ids=["q1", "q1"])


def test_a_single_query_has_no_interval():
    one = evaluate_run({1: ["a"]}, {1: {"a": 1}}, [1])
    gain = compare_runs(one, one).to_frame().set_index("measure").loc["mrr"]
    for figure in (one.scores["mrr"], gain):
        assert figure.n == 1 and np.isnan(figure.low) and np.isnan(figure.high)
    assert one.scores["mrr"].value == 1


TREC = "q1 0 d1 2\nq1\t0\td2\t-1\n\nq2 Q0 d2 0\n"
BEIR = "query-id\tcorpus-id\tscore\nq1\td 1\t2\r\nq1\td2\t-1\nq2\td2\t0\n"


def written(folder, name, content):
    path = folder / name
    path.write_bytes(gzip.compress(content.encode()) if name.endswith(".gz") else content.encode())
    return path


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_judgements_of_all_forms(tmp_path, suffix):
    trec = written(tmp_path, "qrels.txt" + suffix, TREC)
    assert read_qrels(trec) == {"q1": {"d1": 2, "d2": -1}, "q2": {"d2": 0}}
    expected = {"q1": {"d 1": 2.0, "d2": -1.0}, "q2": {"d2": 0.0}}
    assert read_qrels(written(tmp_path, "test.tsv" + suffix, BEIR)) == expected
    plain = BEIR.partition("\n")[2]
    assert read_qrels(written(tmp_path, "plain.tsv" + suffix, plain)) == expected


@pytest.mark.parametrize(
    "content",
    ["", "q1 0 d1 2\nq1 0 d2\n", "q1 0 d1 2\nq1 0 d2 high\n", "q1 0 d1 nan\n",
     "q1 0 d1 2\n\nq1 0 d1 1\n", "query-id\tcorpus-id\tscore\n", BEIR + "q3\td3\n",
     BEIR + "q3\t\t1\n", '{"query_id": "1", "doc_id": "2", "relevance": 1}\n'],
)  # fmt: skip
def test_broken_judgements_are_named(tmp_path, content):
    with refuses("given.txt"):
        read_qrels(written(tmp_path, "given.txt", content))


def test_files_that_are_not_there(tmp_path):
    (tmp_path / "qrels.tsv").write_text(BEIR)
    with pytest.raises(InputError, match="no such file"):
        read_qrels(tmp_path / "qrel.tsv")
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
