"""The tables of search, from figures made by hand, and the sets that it is measured on."""

from __future__ import annotations

import pytest

from benchmarks import search_quality, search_speed


def row(mode, value, gain=None):
    measures = {name: {"value": value, "low": value - 0.01, "high": value + 0.01}
                for name in ("ndcg@10", "map", "recall@100")}  # fmt: skip
    return {"set": "scifact", "setting": "as published", "mode": mode, "n_documents": 3,
            "n_queries": 2, "scores": measures, "gain": gain}  # fmt: skip


def test_the_table_of_quality_by_hand():
    gain = {"over": "lexical", "value": 0.05, "low": 0.03, "high": 0.07}
    lines = search_quality.render(
        {"rows": [row("dense", 0.645), row("ranks", 0.68), row("hybrid", 0.7, gain)]}
    ).splitlines()
    assert lines[2].startswith("| scifact | as published | dense | 0.6450 [0.635, 0.655] | 0.645 |")
    assert "| hybrid by ranks | 0.6800 [0.670, 0.690] |  |" in lines[3]
    assert lines[4].endswith("| +0.0500 [+0.030, +0.070] lexical |")


def test_the_tables_of_speed_by_hand():
    kind = {"seconds": 20.0, "kind": "flat", "recall": 1.0, "milliseconds": 10.0,
            "bytes": {"memory": 300_000_000}}  # fmt: skip
    result = {
        "n": 200_000,
        "dense": {
            "rounds": {"batch": [{"flat": 90.0, "bare": 100.0}],
                       "single": [{"flat": 10.0, "bare": 9.0}]},
            "kinds": {
                "flat": kind,
                "auto": {**kind, "kind": "ivf", "recall": 0.96, "milliseconds": 0.25,
                         "bytes": {"memory": 75_000_000}},
            },
            "float32_bytes": 300_000_000,
        },
        "memory": {"flat": {"own": 0, "mapped": 300_000_000},
                   "auto": {"own": 20_000_000, "mapped": 60_000_000}},
        "build": {"seconds": 30.0},
        "search": {
            "load_seconds": 0.04, "n_passing": 2_000, "filtered_recall": 1.0,
            "filtered_full": True, "milliseconds": {"hybrid": {"median": 12.0, "p95": 15.0}},
        },
        "vicinity": {"hnsw": {"seconds": 5.0, "recall": 0.9, "milliseconds": 0.5},
                     "usearch": {"failed": "not there"}},
    }  # fmt: skip
    lines = search_speed.render(result).splitlines()
    assert "a batch of 64 queries takes 90.0 ms, a bare IndexFlatIP 100.0 (0.90 times" in lines[0]
    assert "10.00 ms and 9.00 (1.11 times)" in lines[0]
    assert "| auto (ivf) | 0.9600 | 0.250 | 40.0 | 75 | 0.25 | 20 | 60 | 20 |" in lines
    assert "| vicinity, hnsw | 0.9000 | 0.500 | 20.0 |  |  |  |  | 5 |" in lines
    assert "| vicinity, usearch | not there |  |  |  |  |  |  |  |" in lines
    assert any("opens in 0.040 s" in line and "every query gets 10" in line for line in lines)
    assert "| hybrid | 12.0 | 15.0 |" in lines


@pytest.mark.benchmark_data
@pytest.mark.parametrize(
    ("name", "n_documents", "n_queries", "n_relevant"),
    [("scifact", 5_183, 300, 339), ("cranfield", 1_400, 225, 1_612)],
)
def test_the_sets_are_those_of_the_published_figures(
    benchmark_data, name, n_documents, n_queries, n_relevant
):
    ids, texts, queries, qrels = search_quality.read_set(name)
    assert len(set(ids)) == len(ids) == len(texts) == n_documents and len(queries) == n_queries
    assert sum(grade > 0 for judged in qrels.values() for grade in judged.values()) == n_relevant
