"""What encoders know of labelled corpora, what they cost, and whose neighbours they share.

The baselines need no checkpoint, "static" is distilled once from the sentence encoder, and the
vectors of the sentence encoder lie ready: only its time is taken here, on a sample.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Mapping
from typing import Any

from benchmarks.corpora import FRENCH, LabelledCorpus, load_labelled
from benchmarks.options import Options
from benchmarks.rendering import figure, markdown_table
from embedtopics import SentenceEncoder, comparison
from embedtopics.comparison.results import Comparison
from embedtopics.training import distill

__all__ = ["measure", "render"]

CORPORA = ("bbc_news", "ag_news", "20newsgroups", FRENCH)
QUICK = ("bbc_news",)
BASELINES = ("tfidf", "lsa", "fasttext", "random")
"""Their time includes that of learning from the corpus, where they learn."""
STATIC = "static"
SENTENCE = "all-MiniLM-L6-v2"
SEED = 42
N_TIMED = 256
"""Texts by which the time of the sentence encoder is estimated."""
N_WARM = 500
"""Texts of a comparison that is thrown away: imports and compilation are nobody's time."""
MEASURES = {
    "knn_accuracy": "k-NN accuracy",
    "probe_accuracy": "probe accuracy",
    "silhouette": "silhouette",
    "trustworthiness": "trustworthiness",
    "continuity": "continuity",
}


def measure(options: Options) -> dict[str, Any]:
    """Compare the encoders on every corpus."""
    sentence = SentenceEncoder(SENTENCE, precision="float32")
    began = time.perf_counter()
    static = distill(sentence, show_progress=False)
    distilling = time.perf_counter() - began
    names = QUICK if options.quick else CORPORA
    _compare(_head(load_labelled(names[0]), N_WARM), static)
    found = []
    for name in names:
        corpus = load_labelled(name)
        result = _compare(corpus, static)
        found.append(record(corpus, result, estimate_seconds(sentence, result)))
        print(f"  {name}\n{result.summary()}", file=sys.stderr)
    return {
        "random_state": SEED,
        "sentence_encoder": sentence.name,
        "distill_seconds": round(distilling, 1),
        "corpora": found,
    }


def _head(corpus: LabelledCorpus, n: int) -> LabelledCorpus:
    """Return every so-manieth text: a file may be in the order of its classes."""
    rows = slice(None, None, max(1, len(corpus.texts) // n))
    return LabelledCorpus(
        corpus.name, corpus.texts[rows], corpus.classes[rows], corpus.embeddings[rows]
    )


def _compare(corpus: LabelledCorpus, static: Any) -> Comparison:
    encoders = {name: name for name in BASELINES} | {STATIC: static, SENTENCE: corpus.embeddings}
    return comparison.compare_encoders(
        encoders,
        corpus.texts,
        corpus.classes,
        n_moves=0,
        random_state=SEED,
        show_progress=False,
    )


def estimate_seconds(encoder: Any, result: Comparison) -> float:
    """Return the time to encode all documents, from that for the first: their order is random."""
    texts = result.corpus.document_texts()
    sample = texts[:N_TIMED]
    encoder.encode(sample[:4])  # what is done once only is not the texts' time
    began = time.perf_counter()
    encoder.encode(sample)
    return (time.perf_counter() - began) * len(texts) / len(sample)


def record(corpus: LabelledCorpus, result: Comparison, estimated: float) -> dict[str, Any]:
    """Return all that one comparison says.

    Parameters
    ----------
    corpus : LabelledCorpus
    result : Comparison
    estimated : float
        Seconds of the encoders whose vectors were given.

    Returns
    -------
    dict of str
        What JSON can hold; what is unknown is None.
    """
    n_documents = len(result.distinct)
    encoders = []
    for view in result.encoders:
        is_estimate = math.isnan(view.seconds)
        seconds = estimated if is_estimate else view.seconds
        own = result.scores[result.scores["encoder"] == view.name].set_index("measure")
        scores = own.drop(index=["documents_per_second", "megabytes"])
        encoders.append(
            {
                "encoder": view.name,
                "dimensions": view.dimensions,
                "n_without_neighbors": int((~view.has_neighbors).sum()),
                "seconds": round(seconds, 3),
                "is_estimate": is_estimate,
                "documents_a_second": round(n_documents / seconds, 1),
                "megabytes": round(view.megabytes, 2),
                "scores": {
                    measure: {
                        **{key: _rounded(row[key]) for key in ("value", "low", "high")},
                        "n": int(row["n"]),
                    }
                    for measure, row in scores.iterrows()
                },
            }
        )
    return {
        "corpus": corpus.name,
        "n_rows": len(corpus.texts),
        "n_documents": n_documents,
        "n_classes": len(result.group_names),
        "k": result.settings["k"],
        "n_resamples": result.settings["n_resamples"],
        "languages": result.settings["languages"],
        "encoders": encoders,
        "differences": _records(result.differences()),
        "overlaps": _records(result.overlaps()),
        "decisions": [decision.message for decision in result.decisions],
    }


def _records(table: Any) -> list[dict[str, Any]]:
    return [
        {str(key): _rounded(value) if isinstance(value, float) else value for key, value in row}
        for row in (record.items() for record in table.to_dict("records"))
    ]


def _rounded(value: float) -> float | None:
    return None if math.isnan(value) else round(float(value), 6)


def render(result: Mapping[str, Any]) -> str:
    """Return a table of scores and costs, and one of neighbours in common."""
    parts = [_score_table(result), _overlap_table(result)]
    parts.append(
        f"Making the static encoder took {figure(result['distill_seconds'], 1)} s, once for all "
        "corpora. An asterisk marks what was estimated from a sample."
    )
    return "\n\n".join(parts)


def _score_table(result: Mapping[str, Any]) -> str:
    rows = []
    for corpus in result["corpora"]:
        name = f"{corpus['corpus']} ({figure(corpus['n_documents'])} texts)"
        for encoder in corpus["encoders"]:
            mark = "*" if encoder["is_estimate"] else ""
            seconds, speed = encoder["seconds"], encoder["documents_a_second"]
            rows.append(
                [
                    name,
                    encoder["encoder"],
                    *(_interval(encoder["scores"].get(measure)) for measure in MEASURES),
                    f"{figure(seconds, 0 if seconds >= 100 else 1)}{mark}",
                    f"{figure(speed)}{mark}",
                    figure(encoder["megabytes"], 1),
                ]
            )
    return markdown_table(["corpus", "encoder", *MEASURES.values(), "s", "texts/s", "MB"], rows)


def _overlap_table(result: Mapping[str, Any]) -> str:
    """Put the corpora side by side, a row for every two encoders."""
    corpora = result["corpora"]
    pairs = [(row["first"], row["second"]) for row in corpora[0]["overlaps"]]
    rows = [[f"{first}, {second}"] for first, second in pairs] + [["by chance"]]
    for corpus in corpora:
        by_pair = {(row["first"], row["second"]): row for row in corpus["overlaps"]}
        for row, pair in zip(rows[:-1], pairs, strict=True):
            found = by_pair[pair]
            row.append(
                _interval(
                    {
                        "value": found["jaccard"],
                        "low": found["jaccard_low"],
                        "high": found["jaccard_high"],
                    }
                )
            )
        rows[-1].append(figure(by_pair[pairs[0]]["jaccard_chance"], 4))
    return markdown_table(["neighbours in common", *(c["corpus"] for c in corpora)], rows)


def _interval(score: Mapping[str, float | None] | None) -> str:
    """Return a score with its interval, or n/a."""
    if score is None or score["value"] is None:
        return "n/a"
    if score["low"] is None:
        return figure(score["value"], 3)
    return f"{score['value']:.3f} [{score['low']:.3f}, {score['high']:.3f}]"
