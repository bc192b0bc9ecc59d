"""How good the topics are: against known classes, and by their words.

Both systems get the same embeddings, and one evaluator reads the labels and words of both.
"""

from __future__ import annotations

import math
import re
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.corpora import LABELLED, LabelledCorpus, load_labelled
from benchmarks.jobs import Outcome, fit, write_inputs
from benchmarks.options import Options
from benchmarks.rendering import figure, markdown_table
from embedtopics.evaluation import agreement, diversity, npmi
from embedtopics.terms.results import TokenStream

__all__ = ["measure", "render", "score", "word_tokens"]

QUICK = ("bbc_news",)
FIRST_SEED = 42
WINDOW = 10
# What scikit-learn's vectorizers take for a word, and thus BERTopic.
_WORD = re.compile(r"\b\w\w+\b")
_MEASURES = ("coverage", "nmi", "ari", "ami", "npmi", "diversity")


def measure(options: Options) -> dict[str, Any]:
    """Fit every system to every corpus, seeded so that the figures can be had again."""
    found = []
    for name in QUICK if options.quick else LABELLED:
        corpus = load_labelled(name)
        tokens = word_tokens(corpus.texts)
        runs: dict[str, list[dict[str, Any]]] = {system.name: [] for system in options.systems}
        with tempfile.TemporaryDirectory() as folder:
            write_inputs(Path(folder), corpus.texts, corpus.embeddings)
            for seed in range(FIRST_SEED, FIRST_SEED + options.repeats):
                for system in options.systems:
                    outcome = fit(system, Path(folder), random_state=seed, stop_words="english")
                    run = {"random_state": seed, **score(outcome, corpus, tokens)}
                    runs[system.name].append(run | outcome.costs())
                    print(f"  {name} {system.name} {run}", file=sys.stderr)
        found.append(
            {
                "corpus": name,
                "n_documents": len(corpus.texts),
                "n_empty": sum(not text for text in corpus.texts),
                "n_classes": len(set(corpus.classes)),
                "runs": runs,
            }
        )
    return {"npmi_window": WINDOW, "corpora": found}


def word_tokens(texts: Sequence[str]) -> TokenStream:
    """Return the lower-cased words of the texts: the reference in which topics are scored."""
    documents = [_WORD.findall(text.lower()) for text in texts]
    words = sorted({word for document in documents for word in document})
    id_of = {word: i for i, word in enumerate(words)}
    lengths = [len(document) for document in documents]
    return TokenStream(
        ids=np.array([id_of[word] for document in documents for word in document], np.int32),
        offsets=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        words=tuple(words),
    )


def score(outcome: Outcome, corpus: LabelledCorpus, tokens: TokenStream) -> dict[str, Any]:
    """Return the measures of one fit.

    Coverage, NMI, ARI and AMI are on all documents, empty ones included, with noise as one more
    class. NPMI is the mean over the topics of which the reference knows at least two words;
    `n_topics_unscored` counts the others, and `known_words` is the share of all words known.
    """
    found = agreement(corpus.classes, outcome.labels)
    coherence = npmi(outcome.words, tokens, window=WINDOW)
    scored = coherence[~np.isnan(coherence)]
    vocabulary = set(tokens.words)
    known = [word in vocabulary for topic in outcome.words for word in topic]
    figures = {
        "coverage": found.coverage,
        "nmi": found.nmi,
        "ari": found.ari,
        "ami": found.ami,
        "npmi": float(scored.mean()) if len(scored) else math.nan,
        "diversity": diversity(outcome.words),
        "known_words": float(np.mean(known)) if known else math.nan,
    }
    return {
        "n_topics": outcome.n_topics,
        **{k: None if math.isnan(v) else round(v, 4) for k, v in figures.items()},
        "n_topics_unscored": len(coherence) - len(scored),
        "example_topics": outcome.words[:3],
    }


def render(result: Mapping[str, Any]) -> str:
    """Return the table of a result: the mean over the seeds, for each corpus and system."""
    rows = []
    for corpus in result["corpora"]:
        size, n_classes = figure(corpus["n_documents"]), corpus["n_classes"]
        name = f"{corpus['corpus']} ({size} documents, {n_classes} classes)"
        for system, runs in corpus["runs"].items():
            scores = [_mean([run[measure] for run in runs]) for measure in _MEASURES]
            n_topics = figure(_mean([run["n_topics"] for run in runs]))
            rows.append([name, system, str(len(runs)), n_topics, *(figure(s, 3) for s in scores)])
    header = [
        "corpus", "system", "seeds", "topics",
        "coverage", "NMI", "ARI", "AMI", "NPMI", "diversity",
    ]  # fmt: skip
    return markdown_table(header, rows)


def _mean(values: Sequence[float | None]) -> float | None:
    """Return the mean of what is known."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
