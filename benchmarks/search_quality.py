"""How good search is on queries whose relevant documents are known."""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Mapping
from typing import Any

from benchmarks.corpora import DATA, _existing
from benchmarks.options import Options
from benchmarks.rendering import markdown_table

__all__ = ["PUBLISHED", "SETS", "measure", "render"]

ENCODER = "all-MiniLM-L6-v2"
SETS = ("scifact", "cranfield")
PUBLISHED = {
    "scifact": {"dense": 0.645, "lexical": 0.662},
    "cranfield": {"dense": 0.400, "lexical": 0.369},
}
"""nDCG@10 of the encoder, as published, and of bm25s with its English stop words."""

K = 100
MODES = ("dense", "lexical", "hybrid")


def measure(options: Options) -> dict[str, Any]:
    """Index each set as published and by default, and search in every mode."""
    from bm25s.stopwords import STOPWORDS_EN

    settings: dict[str, dict[str, Any]] = {
        "as published": {"passages": False, "stems": False, "stop_words": list(STOPWORDS_EN)},
        "default": {},
    }
    rows = []
    for name in SETS[-1:] if options.quick else SETS:
        ids, texts, queries, qrels = read_set(name)
        if options.quick:
            queries = dict(list(queries.items())[:20])
        for setting, named in settings.items():
            rows += _searched(name, setting, ids, texts, queries, qrels, named)
    return {"rows": rows}


def read_set(
    name: str,
) -> tuple[list[str], list[str], dict[str, str], dict[str, dict[str, int]]]:
    """Return ids, texts (title and body), test queries by id, and judgements by query."""
    corpus = _rows(f"{name}/corpus.jsonl.gz")
    ids = [str(row["doc_id"]) for row in corpus]
    texts = [f"{row.get('title') or ''} {row.get('text') or ''}".strip() for row in corpus]
    qrels: dict[str, dict[str, int]] = {}
    for row in _rows(f"{name}/qrels.jsonl.gz"):
        if row.get("split", "test") == "test":
            # Of Cranfield's codes, only their sign is used: its grades are read both ways round.
            grade = int(row["code"] > 0) if "code" in row else int(row["relevance"])
            qrels.setdefault(str(row["query_id"]), {})[str(row["doc_id"])] = grade
    asked = {str(row["query_id"]): row["text"] for row in _rows(f"{name}/queries.jsonl.gz")}
    return ids, texts, {query: asked[query] for query in qrels if query in asked}, qrels


def _searched(
    name: str,
    setting: str,
    ids: list[str],
    texts: list[str],
    queries: dict[str, str],
    qrels: dict[str, dict[str, int]],
    named: dict[str, Any],
) -> list[dict[str, Any]]:
    from embedtopics import Corpus, SearchIndex, evaluation

    index = SearchIndex.build(Corpus(texts, ids=ids), encoder=ENCODER, languages=["en"], **named)
    judged = {query: qrels[query] for query in queries}
    scores = {}
    for mode in MODES:
        hits = index.search(list(queries.values()), K, mode=mode)  # type: ignore[arg-type]
        scores[mode] = evaluation.evaluate_run(hits, judged, (10, K), query_ids=list(queries))
    better = max(("dense", "lexical"), key=lambda mode: scores[mode].scores["ndcg@10"].value)
    compared = evaluation.compare_runs(scores[better], scores["hybrid"])
    (gain,) = compared.to_frame().query("measure == 'ndcg@10'").itertuples()
    rows = []
    for mode, found in scores.items():
        figures = {
            measure: {"value": e.value, "low": e.low, "high": e.high}
            for measure, e in found.scores.items()
        }
        rows.append({
            "set": name, "setting": setting, "mode": mode, "n_documents": len(ids),
            "n_queries": len(queries), "scores": figures,
            "gain": {"over": better, "value": gain.difference, "low": gain.low, "high": gain.high}
            if mode == "hybrid" else None,
        })  # fmt: skip
        print(f"  {name} {setting} {mode} {found.scores['ndcg@10'].value:.4f}", file=sys.stderr)
    return rows


def _rows(file: str) -> list[dict[str, Any]]:
    with gzip.open(_existing(DATA / file, "EMBEDTOPICS_DATA"), "rt", encoding="utf-8") as stream:
        return [json.loads(line) for line in stream]


def render(result: Mapping[str, Any]) -> str:
    """Return the table of a result."""
    shown = []
    for row in result["rows"]:
        scores = row["scores"]
        ndcg = scores["ndcg@10"]
        known = PUBLISHED[row["set"]].get(row["mode"])
        gain = row["gain"]
        shown.append([
            row["set"], row["setting"],
            "hybrid by ranks" if row["mode"] == "ranks" else row["mode"],
            f"{ndcg['value']:.4f} [{ndcg['low']:.3f}, {ndcg['high']:.3f}]",
            "" if known is None or row["setting"] != "as published" else f"{known:.3f}",
            f"{scores['map']['value']:.4f}", f"{scores[f'recall@{K}']['value']:.4f}",
            "" if gain is None
            else f"{gain['value']:+.4f} [{gain['low']:+.3f}, {gain['high']:+.3f}] {gain['over']}",
        ])  # fmt: skip
    header = [
        "set", "setting", "mode", "nDCG@10", "published", "MAP", "recall@100",
        "hybrid over the better part",
    ]  # fmt: skip
    return markdown_table(header, shown)
