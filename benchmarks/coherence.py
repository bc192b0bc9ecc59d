"""How long the coherence of fifty topics takes, here and in gensim, on the same words and texts."""

from __future__ import annotations

import importlib.metadata
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from benchmarks.corpora import LabelledCorpus, load_labelled
from benchmarks.options import Options
from benchmarks.rendering import figure, markdown_table
from benchmarks.topic_quality import word_tokens
from embedtopics.evaluation._coherence import c_v, npmi, u_mass
from embedtopics.terms._counts import count_by_topic
from embedtopics.terms._stop_words import stop_words_for
from embedtopics.terms.results import TokenStream
from embedtopics.topics import ClassTfidf

__all__ = ["measure", "render", "topic_words"]

CORPORA = ("bbc_news", "20newsgroups")
QUICK = ("bbc_news",)
N_TOPICS = 50
N_WORDS = 10
ROUNDS = 3
MEASURES: dict[str, Callable[..., np.ndarray]] = {
    "c_npmi": npmi,
    "c_v": c_v,
    "u_mass": u_mass,
}


def measure(options: Options) -> dict[str, Any]:
    """Time both in turns, in one process, on lists and dictionaries that lie ready."""
    found = []
    for name in QUICK if options.quick else CORPORA:
        corpus = load_labelled(name)
        tokens = word_tokens(corpus.texts)
        topics = topic_words(corpus, tokens)
        rows = compare(topics, tokens, 1 if options.quick else ROUNDS)
        print(f"  {name} {rows}", file=sys.stderr)
        found.append(
            {
                "corpus": name,
                "n_documents": len(tokens),
                "n_tokens": len(tokens.ids),
                "n_topics": len(topics),
                "measures": rows,
            }
        )
    return {"gensim": importlib.metadata.version("gensim"), "corpora": found}


def topic_words(corpus: LabelledCorpus, tokens: TokenStream) -> list[list[str]]:
    """Return the best words of fifty k-means clusters, by class-TF-IDF without stop words."""
    from scipy.sparse import csr_matrix
    from sklearn.cluster import KMeans

    n = min(N_TOPICS, len(corpus.texts))
    labels = KMeans(n, n_init=1, random_state=0).fit_predict(corpus.embeddings)
    counts = csr_matrix(
        (np.ones(len(tokens.ids), np.int32), tokens.ids, tokens.offsets),
        shape=(len(tokens), len(tokens.words)),
    )
    counts.sum_duplicates()
    stop_words = set(stop_words_for(["en"]))
    kept = np.array([word not in stop_words for word in tokens.words])
    weights = ClassTfidf().fit_transform(count_by_topic(counts, labels, n).multiply(kept))
    best = [np.argsort(-row.toarray().ravel(), kind="stable")[:N_WORDS] for row in weights]
    return [[tokens.words[i] for i in ids.tolist()] for ids in best]


def compare(topics: list[list[str]], tokens: TokenStream, n_rounds: int) -> list[dict[str, Any]]:
    """Return, for each measure, the seconds of both and by how much their values differ."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # gensim is not ours to mend
        from gensim.corpora import Dictionary
        from gensim.models import CoherenceModel

    words = np.array(tokens.words, dtype=object)[tokens.ids].tolist()
    texts = [words[begin:end] for begin, end in pairwise(tokens.offsets.tolist())]
    dictionary = Dictionary(texts)

    def by_gensim(name: str) -> np.ndarray:
        model = CoherenceModel(
            topics=topics, texts=texts, dictionary=dictionary, coherence=name, processes=1
        )
        with np.errstate(all="ignore"):
            return np.array(model.get_coherence_per_topic())

    npmi(topics[:2], tokens)  # what is done once only is nobody's time
    rows = []
    for name, ours in MEASURES.items():
        seconds: dict[str, list[float]] = {"gensim": [], "embedtopics": []}
        for number in range(n_rounds):
            turns = [
                ("gensim", lambda name=name: by_gensim(name)),
                ("embedtopics", lambda ours=ours: ours(topics, tokens)),
            ]
            values = {}
            for system, run in turns if number % 2 else turns[::-1]:
                began = time.perf_counter()
                values[system] = run()
                seconds[system].append(time.perf_counter() - began)
        apart = np.abs(values["gensim"] - values["embedtopics"])
        rows.append(
            {
                "measure": name,
                "seconds": {s: [round(t, 4) for t in times] for s, times in seconds.items()},
                "largest_difference": float(np.nanmax(apart)),
                "mean": round(float(np.nanmean(values["embedtopics"])), 4),
            }
        )
    return rows


def render(result: Mapping[str, Any]) -> str:
    """Return the table of a result."""
    rows = []
    for corpus in result["corpora"]:
        name = f"{corpus['corpus']} ({figure(corpus['n_documents'])} documents)"
        for row in corpus["measures"]:
            theirs, ours = (statistics.median(row["seconds"][s]) for s in ("gensim", "embedtopics"))
            rows.append(
                [name, row["measure"], figure(theirs, 2), figure(ours, 3), figure(theirs / ours),
                 f"{row['largest_difference']:.0e}"]
            )  # fmt: skip
    header = ["corpus", "measure", "gensim, s", "embedtopics, s", "ratio", "largest difference"]
    return f"{markdown_table(header, rows)}\n\ngensim {result['gensim']}."
