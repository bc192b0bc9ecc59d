"""Runs measured against judgements, beside trec_eval."""

import numpy as np
import pandas as pd
import pytest
import pytrec_eval
from hypothesis import given, settings
from hypothesis import strategies as st

from embedtopics.evaluation import _retrieval as module
from embedtopics.evaluation import compare_retrieval, retrieval
from embedtopics.evaluation._bootstrap import interval
from embedtopics.retrieval.results import Hit, SearchHits
from tests.factories import refuses

KS = (1, 2, 3, 10)
THEIRS = {f"ndcg_cut_{k}": f"ndcg@{k}" for k in KS}
THEIRS |= {f"recall_{k}": f"recall@{k}" for k in KS} | {f"P_{k}": f"precision@{k}" for k in KS}
THEIRS |= {"map": "map", "recip_rank": "mrr"}
ASKED = {name.rsplit("_", 1)[0] + "." + ",".join(map(str, KS)) for name in THEIRS if "_" in name}
ASKED = {name for name in ASKED if not name.startswith("recip")} | {"map", "recip_rank"}

documents = st.sampled_from(["a", "b", "B", "é", "z9", "z10", "\uffff", "\U0001f600", "1", "2"])
queries = st.sampled_from(["q1", "q2", "q10", "x"])
# Ties, in double and in single precision.
scores = st.sampled_from([0.0, -1.0, 0.5, 1.0, 1.0 + 1e-9, 1.0 - 1e-12, 1.0 + 1e-6, 1e-40, 3e5])
runs = st.dictionaries(queries, st.dictionaries(documents, scores, max_size=10), min_size=1)
judged = st.dictionaries(documents, st.integers(-2, 3), min_size=1, max_size=8)
judgements = st.dictionaries(queries, judged, min_size=1)


def of_trec_eval(run, qrels, level=1):
    """Return trec_eval's measures; it leaves out queries that the run does not have."""
    # Where all grades are negative it reads beyond its memory; nothing is relevant there.
    safe = {query: judged for query, judged in qrels.items() if max(judged.values()) >= 0}
    told = pytrec_eval.RelevanceEvaluator(safe, ASKED, relevance_level=level).evaluate(run)
    return {
        query: {ours: told.get(query, {}).get(theirs, 0.0) for theirs, ours in THEIRS.items()}
        for query in qrels
    }


@settings(max_examples=120, deadline=None)
@given(runs, judgements, st.integers(1, 3), st.booleans())
def test_measures_are_those_of_trec_eval(run, qrels, level, complete):
    if not set(run) & set(qrels):
        with refuses(""):
            retrieval(run, qrels, KS, n_resamples=0)
        return
    options = {"relevant_from": level, "n_resamples": 0, "complete": complete}
    found = retrieval(run, qrels, KS, **options)
    expected = of_trec_eval(run, qrels, level)
    if not complete:
        expected = {query: values for query, values in expected.items() if query in run}
    assert found.queries == tuple(sorted(expected)) and set(found.scores) == set(THEIRS.values())
    for name, values in found.by_query.items():
        for query, value in zip(found.queries, values, strict=True):
            assert value == pytest.approx(expected[query][name], abs=1e-9), (query, name)
        mean = np.mean([one[name] for one in expected.values()])
        assert found.scores[name].value == pytest.approx(mean, abs=1e-9)
        assert found.scores[name].n == len(expected)


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
    monkeypatch.setattr(module, "ENTRIES_AT_ONCE", 300)
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
    mrr = found.differences["mrr"]
    assert mrr.value == pytest.approx(expected.mean()) and mrr.n == 200
    # The interval is that of the differences themselves, drawn anew by another hand.
    drawn = rng.choice(expected, (2000, 200)).mean(axis=1)
    low, high = interval(drawn)
    assert mrr.low == pytest.approx(low, abs=0.006) and mrr.high == pytest.approx(high, abs=0.006)
    n_better = int(is_better.sum())
    assert (found.better["mrr"], found.worse["mrr"], found.equal["mrr"]) == (
        n_better, 0, 200 - n_better,
    )  # fmt: skip
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
        ({"q": {1: 0.5}}, {"q": {"1": 1}}, ""), ({1: {"a": 0.5}}, {"1": {"a": 1}}, ""),
        ({}, QRELS, ""), (RUN, {}, "qrels"), (RUN, {"q": {}}, "qrels"), (RUN, [1], "qrels"),
        (RUN, {"q1": ["a", "a"]}, "qrels"), (RUN, {"q1": {"a": None}}, ""),
        (RUN, {"q1": 3}, "qrels"), ([["a"]], QRELS, "run"), ({"q1": {"a": np.nan}}, QRELS, ""),
        ({"q1": {"a": "high"}}, QRELS, ""), ({"q1": ["a", "b", "a"]}, QRELS, "run"),
        ({"q1": [("a", 1.0), ("a", 2.0)]}, QRELS, "run"), ({"q1": {"a", "b"}}, QRELS, "run"),
        ({"q1": "a"}, QRELS, "run"), ({"q1": [None]}, QRELS, ""),
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
    assert compare_retrieval(plain, of_numpy).differences["mrr"].value == 0


def test_a_single_query_has_no_interval():
    one = retrieval({1: ["a"]}, {1: {"a": 1}}, [1])
    for found in (one.scores["mrr"], compare_retrieval(one, one).differences["mrr"]):
        assert found.n == 1 and np.isnan(found.low) and np.isnan(found.high)
    assert one.scores["mrr"].value == 1
