"""How coherent and how varied the topics' words are, by the protocol of the BERTopic paper.

For 10 to 50 topics in steps of ten, and several seeds, the ten best words of each topic are scored
by NPMI over the corpus, and by the share of words that are not repeated; the figures are means
over all of these (Grootendorst 2022, "BERTopic: Neural topic modeling with a class-based TF-IDF
procedure", section 4). Beside that, C_V, and both again for topics that were found in four fifths
of the documents and are scored on the others.
"""

from __future__ import annotations

import dataclasses
import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.corpora import load_encoded, load_labelled, sample_rows
from benchmarks.jobs import ROOT, System, answer, write_inputs
from benchmarks.options import Options
from benchmarks.rendering import figure, markdown_table
from benchmarks.topic_quality import word_tokens
from embedtopics.evaluation import c_v, diversity, npmi
from embedtopics.terms.results import TokenStream

__all__ = ["measure", "render", "score"]

CORPORA = ("octis_bbc", "trump_tweets")
QUICK = ("octis_bbc",)
N_TOPICS = (10, 20, 30, 40, 50)
FITTED_SHARE = 0.8
PROTOCOL_SEEDS = 3
"""Seeds of the protocol, whatever number of repeats is asked for."""
SCRIPTS = {
    "bertopic": ROOT / "benchmarks" / "systems" / "bertopic_words.py",
    "embedtopics": ROOT / "benchmarks" / "systems" / "embedtopics_words.py",
}
NAMES = {
    ("bertopic", "words"): "BERTopic",
    ("bertopic", "without_stop_words"): "BERTopic, without stop words",
    ("embedtopics", "words"): "embedtopics",
    ("embedtopics", "plain"): "embedtopics, largest weights",
}
_MEASURES = ("n_topics", "coverage", "npmi", "diversity", "c_v")


def measure(options: Options) -> dict[str, Any]:
    """Fit every corpus with every seed, in whole and in part."""
    corpora = []
    for name in QUICK if options.quick else CORPORA:
        texts, embeddings = _load(name)
        fitted = sample_rows(len(texts), round(FITTED_SHARE * len(texts)))
        order = np.concatenate([fitted, np.setdiff1d(np.arange(len(texts)), fitted)])
        texts, embeddings = [texts[row] for row in order], embeddings[order]
        parts = {
            "all": (len(texts), word_tokens(texts)),
            "held out": (len(fitted), word_tokens(texts[len(fitted) :])),
        }
        runs = []
        with tempfile.TemporaryDirectory() as folder:
            write_inputs(Path(folder), texts, embeddings)
            for seed in range(1 if options.quick else PROTOCOL_SEEDS):
                for part, (n_fitted, tokens) in parts.items():
                    for system in options.systems:
                        asked = {"random_state": seed, "n_topics": N_TOPICS, "n_fitted": n_fitted}
                        found = answer(_with_words(system), Path(folder), asked)
                        rows = _rows(found["levels"], tokens)
                        runs += [
                            {"system": system.name, "random_state": seed, "scored_on": part, **row}
                            for row in rows
                        ]
                        print(f"  {name} {runs[-1]}", file=sys.stderr)
        corpora.append({"corpus": name, "n_documents": len(texts), "runs": runs})
    return {"n_topics": N_TOPICS, "corpora": corpora}


def _load(name: str) -> tuple[list[str], np.ndarray]:
    if name == "trump_tweets":
        return load_encoded(name)
    corpus = load_labelled(name)
    return corpus.texts, corpus.embeddings


def _with_words(system: System) -> System:
    return dataclasses.replace(system, script=SCRIPTS[system.name])


def _rows(levels: Sequence[Mapping[str, Any]], tokens: TokenStream) -> list[dict[str, Any]]:
    """Score the words of each number of topics."""
    return [
        {
            "words": kind,
            "wanted": level["n_topics"],
            "coverage": round(float(np.mean(np.array(level["labels"]) >= 0)), 4),
            **score(words, tokens),
        }
        for level in levels
        for kind, words in level["words"].items()
    ]


def score(words: Sequence[Sequence[str]], tokens: TokenStream) -> dict[str, Any]:
    """Return the measures of the topics' words; those with less than two known ones are out."""
    return {
        "n_topics": len(words),
        "npmi": round(float(np.nanmean(npmi(words, tokens))), 4),
        "diversity": round(diversity(words), 4),
        "c_v": round(float(np.nanmean(c_v(words, tokens))), 4),
    }


def render(result: Mapping[str, Any]) -> str:
    """Return one table: a row for each corpus, system and part that was scored."""
    header = [
        "corpus", "scored on", "system", "topics", "coverage", "NPMI", "spread", "diversity", "C_V"
    ]  # fmt: skip
    rows = []
    for corpus in result["corpora"]:
        for part in ("all", "held out"):
            for (system, kind), shown in NAMES.items():
                runs = [
                    run
                    for run in corpus["runs"]
                    if (run["system"], run["words"], run["scored_on"]) == (system, kind, part)
                ]
                if runs:
                    means = {key: statistics.fmean(run[key] for run in runs) for key in _MEASURES}
                    rows.append(
                        [f"{corpus['corpus']} ({corpus['n_documents']:,})", part, shown,
                         figure(means["n_topics"], 1), figure(means["coverage"], 3),
                         figure(means["npmi"], 3), _spread(runs), figure(means["diversity"], 3),
                         figure(means["c_v"], 3)]
                    )  # fmt: skip
    return markdown_table(header, rows)


def _spread(runs: Sequence[Mapping[str, Any]]) -> str:
    """Return the smallest and the largest mean NPMI of a seed."""
    by_seed: dict[int, list[float]] = {}
    for run in runs:
        by_seed.setdefault(run["random_state"], []).append(run["npmi"])
    means = [statistics.fmean(values) for values in by_seed.values()]
    return f"{figure(min(means), 3)} to {figure(max(means), 3)}"
