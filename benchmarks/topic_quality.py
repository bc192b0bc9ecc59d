"""How well topics divide the documents, beside everything else that divides vectors.

Every system gets the same vectors and the same number of topics: the one that embedtopics chooses,
and the number of classes. All documents with text get a topic. Each figure is the mean over seeds;
noise of 1e-6 on the vectors stands for another CPU.
"""

from __future__ import annotations

import math
import re
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
from sklearn.cluster import AgglomerativeClustering, KMeans
from sklearn.metrics import adjusted_mutual_info_score, adjusted_rand_score

from benchmarks.corpora import LabelledCorpus, load_labelled
from benchmarks.options import Options
from benchmarks.rendering import figure, markdown_table
from embedtopics import TopicModel
from embedtopics.terms.results import TokenStream
from embedtopics.topics import merge, recluster
from embedtopics.topics.results import TopicResult

__all__ = ["measure", "render", "word_tokens"]

QUICK = ("bbc_news",)
CORPORA = (
    "bbc_news", "ag_news", "octis_m10", "20newsgroups", "octis_dblp", "masakhanews_fra",
    "masakhanews_eng", "biomedical", "trec_questions",
)  # fmt: skip
UNSEEN = ("octis_dblp", "masakhanews_eng", "biomedical", "trec_questions")
"""Corpora on which nothing was chosen."""
FIRST_SEED = 42
LEAST_SEEDS = 3
NOISE = 1e-6
FEW_ROWS = 20_000
"""Documents up to which systems that lay out or compare all pairs are run with every seed."""

_WORD = re.compile(r"\b\w\w+\b")
"""What scikit-learn's vectorizers take for a word, and thus BERTopic."""


@dataclass
class Case:
    """A corpus, its vectors, and what has been fitted to them."""

    texts: list[str]
    vectors: np.ndarray
    seed: int
    fitted: dict[str, Any] = field(default_factory=dict)

    def once(self, name: str, make: Callable[[], Any]) -> Any:
        """Return what is fitted once for every number of topics."""
        if name not in self.fitted:
            self.fitted[name] = make()
        return self.fitted[name]

    @property
    def result(self) -> TopicResult:
        """The fit of embedtopics, with its defaults."""
        return self.once("embedtopics", self.fit)

    def fit(self, **parameters: Any) -> TopicResult:
        """Fit a model of embedtopics to the vectors."""
        model = TopicModel(random_state=self.seed, show_progress=False, **parameters)
        return model.fit(self.texts, embeddings=self.vectors).result_


def embedtopics(case: Case, n_topics: int) -> np.ndarray:
    is_chosen = n_topics == case.result.n_topics
    wanted = "auto" if is_chosen else n_topics
    return recluster(case.result, wanted, coverage=1.0).labels


def textbook(case: Case, n_topics: int) -> np.ndarray:
    """umap-learn and hdbscan inside embedtopics, reduced."""
    result = case.once(
        "textbook", lambda: case.fit(reducer="umap", clusterer="hdbscan", coverage=1.0)
    )
    return merge(result, n_topics=n_topics).labels if result.n_topics > n_topics else result.labels


def bertopic(case: Case, n_topics: int) -> np.ndarray:
    """BERTopic, reduced, its outliers put in the topic of the nearest mean vector."""
    from bertopic import BERTopic
    from sklearn.feature_extraction.text import CountVectorizer
    from umap import UMAP

    layout = case.once(
        "bertopic",
        lambda: UMAP(
            n_neighbors=15, n_components=5, min_dist=0.0, metric="cosine", low_memory=False,
            random_state=case.seed,
        ).fit(case.vectors),
    )  # fmt: skip
    words = CountVectorizer(stop_words="english")
    # One topic more, for BERTopic counts its outliers as one.
    model = BERTopic(umap_model=layout, vectorizer_model=words, nr_topics=n_topics + 1)
    labels, _ = model.fit_transform(case.texts, case.vectors)
    if -1 in labels:
        labels = model.reduce_outliers(
            case.texts, labels, strategy="embeddings", embeddings=case.vectors
        )
    return np.asarray(labels)


def k_means(case: Case, n_topics: int) -> np.ndarray:
    return KMeans(n_topics, n_init=1, random_state=case.seed).fit_predict(case.vectors)


def k_means_of_coordinates(case: Case, n_topics: int) -> np.ndarray:
    coordinates = _coordinates(case)
    return KMeans(n_topics, n_init=1, random_state=case.seed).fit_predict(coordinates)


def ward_of_coordinates(case: Case, n_topics: int) -> np.ndarray:
    """Ward's tree of all documents in the coordinates of embedtopics, linked by its graph."""
    from scipy.sparse import csr_matrix

    graph, of_row = case.result.graph, case.result.distinct.of_row
    n_documents, k = graph.indices.shape
    starts = np.repeat(np.arange(n_documents), k)
    links = csr_matrix(
        (np.ones(n_documents * k), (starts, graph.indices.ravel())),
        shape=(n_documents, n_documents),
    )
    tree = AgglomerativeClustering(n_topics, linkage="ward", connectivity=links + links.T)
    return tree.fit_predict(case.result.coordinates)[of_row]


def leiden(case: Case, n_topics: int) -> np.ndarray:
    """Leiden's modularity on the neighbour graph, at the resolution of the nearest number."""
    import igraph
    import leidenalg

    graph, of_row = case.result.graph, case.result.distinct.of_row
    starts = np.repeat(np.arange(len(graph)), graph.k)
    edges = np.stack([starts, graph.indices.ravel()], axis=1).tolist()
    weights = np.maximum(graph.similarities.ravel(), 1e-6).tolist()
    network = igraph.Graph(len(graph), edges)
    best, low, high = None, 1e-3, 10.0
    for _ in range(12):
        resolution = math.sqrt(low * high)
        found = leidenalg.find_partition(
            network, leidenalg.RBConfigurationVertexPartition, weights=weights, seed=case.seed,
            resolution_parameter=resolution, n_iterations=2,
        )  # fmt: skip
        if best is None or abs(len(found) - n_topics) < abs(len(best) - n_topics):
            best = found
        low, high = (resolution, high) if len(found) < n_topics else (low, resolution)
        if len(found) == n_topics:
            break
    assert best is not None
    return np.asarray(best.membership)[of_row]


def evoc(case: Case, n_topics: int) -> np.ndarray:
    """EVoC at the nearest number; its noise is put to the nearest mean vector."""
    from evoc import EVoC

    model = EVoC(approx_n_clusters=n_topics, random_state=case.seed)
    labels = np.asarray(model.fit_predict(case.vectors))
    if (labels >= 0).any() and (labels < 0).any():
        means = np.stack([case.vectors[labels == t].mean(0) for t in range(labels.max() + 1)])
        means /= np.linalg.norm(means, axis=1)[:, None]
        labels = np.where(labels < 0, (case.vectors @ means.T).argmax(1), labels)
    return labels


def _coordinates(case: Case) -> np.ndarray:
    return case.result.coordinates[case.result.distinct.of_row]


@dataclass(frozen=True)
class System:
    """How a system divides, and whether it takes minutes for many documents."""

    name: str
    divide: Callable[[Case, int], np.ndarray]
    is_slow: bool = False
    packages: Sequence[str] = ()


SYSTEMS = (
    System("embedtopics", embedtopics),
    System('embedtopics, "umap" and "hdbscan"', textbook, is_slow=True),
    System("BERTopic, reduced", bertopic, is_slow=True, packages=("bertopic",)),
    System("k-means of the vectors", k_means),
    System("k-means of our coordinates", k_means_of_coordinates),
    System("Ward in our coordinates", ward_of_coordinates),
    System("Leiden on our graph", leiden, is_slow=True, packages=("leidenalg",)),
    System("EVoC", evoc, packages=("evoc",)),
)


def measure(options: Options) -> dict[str, Any]:
    """Divide every corpus by every system that is installed."""
    from importlib.util import find_spec

    n_seeds = max(LEAST_SEEDS, options.repeats)
    there = [one for one in SYSTEMS if all(find_spec(name) for name in one.packages)]
    cases = []
    for name in QUICK if options.quick else CORPORA:
        corpus = load_labelled(name)
        cases += _cases(corpus, range(FIRST_SEED, FIRST_SEED + n_seeds), there)
    return {"n_seeds": n_seeds, "noise": NOISE, "unseen": UNSEEN, "cases": cases}


def _cases(corpus: LabelledCorpus, seeds: range, systems: Sequence[System]) -> list[dict[str, Any]]:
    """Return the figures at the chosen number of topics, and at that of the classes."""
    kept = [row for row, text in enumerate(corpus.texts) if text]
    texts, classes = [corpus.texts[row] for row in kept], [corpus.classes[row] for row in kept]
    vectors = corpus.embeddings[kept]
    plain = [Case(texts, vectors, seed) for seed in seeds]
    noisy = [Case(texts, _noisy(vectors, seed), FIRST_SEED) for seed in seeds]
    chosen = [case.result.n_topics for case in plain]
    found: list[dict[str, Any]] = [
        {
            "corpus": corpus.name,
            "n_documents": len(texts),
            "n_topics": n_topics,
            "is_chosen": is_chosen,
            "coverage": round(float(np.mean([case.result.coverage for case in plain])), 4),
            "n_chosen": chosen,
            "n_under_noise": [case.result.n_topics for case in noisy],
            "systems": {},
        }
        for is_chosen, n_topics in ((True, chosen[0]), (False, len(set(classes))))
    ]
    for system in systems:
        most = 1 if system.is_slow and len(texts) > FEW_ROWS else len(seeds)
        for one in found:
            n_topics, begin = one["n_topics"], time.perf_counter()
            labels = [system.divide(case, n_topics) for case in plain[:most]]
            moved = [] if system.is_slow else [system.divide(case, n_topics) for case in noisy]
            one["systems"][system.name] = _figures(classes, labels, moved)
            took = f"{time.perf_counter() - begin:.0f} s"
            print(corpus.name, n_topics, system.name, one["systems"][system.name], took, sep="  ",
                  file=sys.stderr)  # fmt: skip
    return found


def _noisy(vectors: np.ndarray, seed: int) -> np.ndarray:
    noise = np.random.default_rng(seed).normal(scale=NOISE, size=vectors.shape)
    return (vectors + noise).astype(np.float32)


def _figures(
    classes: list[str], labels: list[np.ndarray], moved: list[np.ndarray]
) -> dict[str, Any]:
    """Return the mean agreement with the classes, between seeds, and under noise."""

    def mean(values: list[float]) -> float | None:
        return round(float(np.mean(values)), 4) if values else None

    among = [adjusted_rand_score(one, other) for one, other in combinations(labels, 2)]
    return {
        "n_topics": [len(np.unique(one)) for one in labels],
        "ami": mean([adjusted_mutual_info_score(classes, one) for one in labels]),
        "ari": mean([adjusted_rand_score(classes, one) for one in labels]),
        "between_seeds": mean(among),
        "under_noise": mean([adjusted_rand_score(labels[0], one) for one in moved]),
    }


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


def render(result: Mapping[str, Any]) -> str:
    """Return two tables: AMI and ARI of each system by corpus, and how stable each system is."""
    cases = result["cases"]
    names = [system.name for system in SYSTEMS if system.name in cases[0]["systems"]]
    tables = []
    for measure_ in ("ami", "ari"):
        rows = []
        for case in cases:
            star = "" if case["corpus"] in result["unseen"] else "*"
            number = f"{case['n_topics']} ({'chosen' if case['is_chosen'] else 'classes'})"
            values = [figure(case["systems"][name][measure_], 3) for name in names]
            size = f"{case['corpus']}{star} ({figure(case['n_documents'])})"
            rows.append([size, number, *values])
        for is_chosen in (True, False):
            some = [case["systems"] for case in cases if case["is_chosen"] is is_chosen]
            means = [np.mean([one[name][measure_] for one in some]) for name in names]
            what = "chosen" if is_chosen else "classes"
            rows.append(["mean", what, *(figure(float(value), 3) for value in means)])
        tables.append(markdown_table([measure_.upper(), "topics", *names], rows))
    rows = []
    for name in names:
        values = []
        for key, pick in (("between_seeds", np.mean), ("between_seeds", min),
                          ("under_noise", np.mean), ("under_noise", min)):  # fmt: skip
            known = [case["systems"][name][key] for case in cases]
            known = [value for value in known if value is not None]
            values.append(figure(float(pick(known)) if known else None, 3))
        rows.append([name, *values])
    header = ["ARI", "between seeds: mean", "least", "under noise: mean", "least"]
    tables.append(markdown_table(header, rows))
    first = [case for case in cases if case["is_chosen"]]
    n_fits = sum(len(case["n_under_noise"]) for case in first)
    n_same = sum(n == case["n_topics"] for case in first for n in case["n_under_noise"])
    coverages = ", ".join(f"{case['corpus']} {case['coverage']:.3f}" for case in first)
    tables.append(
        f"By itself embedtopics finds the same number of topics under noise in {n_same} of "
        f"{n_fits} fits. Coverage by default: {coverages}."
    )
    return "\n\n".join(tables)
