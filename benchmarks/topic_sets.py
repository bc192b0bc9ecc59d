"""Seventeen labelled sets, and the fits of embedtopics and BERTopic.

A set has at most 5,000 texts, of which the first 700 characters are read.

Both fit the same vectors, those of the set's encoder, which stay in the encoder's cache on disk.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np

from benchmarks.corpora import _READERS, CACHE, _read_rows
from embedtopics import TopicModel
from embedtopics.topics.results import TopicResult

__all__ = ["CHOSEN_ON", "NAMED", "SETS", "Fit", "LatentWords", "fit_bertopic", "fit_set", "shown"]

MOST_TEXTS, MOST_CHARACTERS, N_DIMENSIONS = 5_000, 700, 100
SEED = 42
QUICK = ("sib200", "tweet")
CHOSEN_ON = (
    "sib200", "tweet", "google_news", "stackoverflow", "banking77", "biomedical", "octis_m10",
    "octis_dblp", "ag_news",
)  # fmt: skip
"""Sets on which the number of topics, the partition, the keywords or the labels were chosen."""

ENCODERS = {"gnad10": "multilingual-e5-small"}
SPELLED = {
    "alt.atheism": "atheism", "comp.graphics": "computer graphics",
    "comp.os.ms-windows.misc": "Microsoft Windows", "comp.windows.x": "X Window System",
    "comp.sys.ibm.pc.hardware": "IBM PC hardware", "misc.forsale": "items for sale",
    "comp.sys.mac.hardware": "Apple Macintosh hardware", "rec.autos": "cars",
    "rec.motorcycles": "motorcycles", "rec.sport.baseball": "baseball",
    "rec.sport.hockey": "ice hockey", "sci.crypt": "cryptography", "sci.med": "medicine",
    "sci.electronics": "electronics", "sci.space": "space",
    "soc.religion.christian": "Christianity", "talk.politics.guns": "gun politics",
    "talk.politics.mideast": "Middle East politics", "talk.politics.misc": "politics",
    "talk.religion.misc": "religion", "Etat": "Medien",
}  # fmt: skip
"""Names of classes whose own names are abbreviations."""

Rows = tuple[list[str], list[str]]


def _short_texts(name: str) -> Rows:
    rows = _read_rows(f"{name}.jsonl.gz")
    return [row["text"] for row in rows], [str(row["label"]) for row in rows]


def _sib200() -> Rows:
    rows = [row for row in _read_rows("sib200/test.jsonl.gz") if row["language"] == "eng_Latn"]
    return [row["text"] for row in rows], [row["label"] for row in rows]


def _banking77() -> Rows:
    parts = [_short_texts(f"banking77/{part}") for part in ("train", "test")]
    return parts[0][0] + parts[1][0], parts[0][1] + parts[1][1]


def _dbpedia14() -> Rows:
    texts, classes = _short_texts("dbpedia14/dbpedia14_7600")
    return [text.split("Text:", 1)[-1].strip() for text in texts], classes


def _reuters() -> Rows:
    rows = [row for row in _read_rows("reuters21578/reuters21578.jsonl.gz") if row["text"].strip()]
    rows = [row for row in rows if len(row["topics"]) == 1]
    return [f"{row['title']}. {row['text']}" for row in rows], [row["topics"][0] for row in rows]


def _arxiv() -> Rows:
    rows = _read_rows("arxiv_abstracts/arxiv_abstracts.jsonl.gz")
    texts = [f"{row['title']}. {row['abstract']}" for row in rows]
    return texts, [row["primary_cat"] for row in rows]


def _of_corpora(name: str) -> Rows:
    texts, classes, _ = _READERS[name]()
    return texts, classes


SETS: dict[str, Callable[[], Rows]] = {
    "sib200": _sib200,
    "tweet": partial(_short_texts, "short_text_clustering/tweet"),
    "google_news": partial(_short_texts, "short_text_clustering/google_news"),
    "stackoverflow": partial(_short_texts, "stackoverflow_titles/stackoverflow_titles"),
    "banking77": _banking77,
    **{name: partial(_of_corpora, name) for name in ("biomedical", "octis_m10", "octis_dblp")},
    **{name: partial(_of_corpora, name) for name in ("ag_news", "bbc_news", "20newsgroups")},
    "search_snippets": partial(_short_texts, "short_text_clustering/search_snippets"),
    "masakhanews_eng": partial(_of_corpora, "masakhanews_eng"),
    "dbpedia14": _dbpedia14,
    "reuters21578": _reuters,
    "gnad10": partial(_short_texts, "gnad10/gnad10_test"),
    "arxiv": _arxiv,
}
NAMED = (
    "sib200", "stackoverflow", "banking77", "ag_news", "bbc_news", "20newsgroups",
    "masakhanews_eng", "dbpedia14", "reuters21578", "gnad10",
)  # fmt: skip
"""Sets whose classes have names, not numbers."""


@dataclass(frozen=True, eq=False)
class Fit:
    """A set, or its fitted half, with the result of embedtopics and the texts of the other half."""

    name: str
    texts: list[str]
    classes: np.ndarray
    result: TopicResult
    held_out: list[str]

    @property
    def vectors(self) -> np.ndarray:
        """The vector of each text, (n_texts, n_dimensions)."""
        return self.result.embeddings[self.result.distinct.of_row]


@cache
def fit_set(name: str, is_half: bool = False) -> Fit:
    """Fit a set, or every second text of it, with the defaults of embedtopics."""
    texts, classes = SETS[name]()
    rows = np.array([row for row, text in enumerate(texts) if text.strip()])
    if len(rows) > MOST_TEXTS:
        rows = np.sort(np.random.default_rng(0).choice(rows, MOST_TEXTS, replace=False))
    fitted, rest = (rows[::2], rows[1::2]) if is_half else (rows, rows[:0])
    some, held_out = ([texts[row][:MOST_CHARACTERS] for row in part] for part in (fitted, rest))
    encoder = ENCODERS.get(name, "all-MiniLM-L6-v2")
    result = TopicModel(encoder, random_state=SEED, show_progress=False).fit(some).result_
    of_rows = np.array([SPELLED.get(classes[row], classes[row]) for row in fitted])
    return Fit(name, some, of_rows, result, held_out)


@dataclass
class _Layout:
    """A layout that BERTopic takes for its reduction."""

    places: np.ndarray

    def fit(self, *_: Any, y: Any = None) -> _Layout:
        return self

    def transform(self, _: Any) -> np.ndarray:
        return self.places


@cache
def _layout(fit: Fit) -> _Layout:
    vectors = np.ascontiguousarray(fit.vectors)
    file = CACHE / "layouts" / f"{hashlib.sha256(vectors).hexdigest()}.npy"
    if not file.exists():
        from umap import UMAP

        settings = {"n_neighbors": 15, "n_components": 5, "min_dist": 0.0, "metric": "cosine"}
        places = UMAP(random_state=SEED, **settings).fit_transform(vectors)
        file.parent.mkdir(parents=True, exist_ok=True)
        np.save(file, places)
    return _Layout(np.load(file))


@cache
def fit_bertopic(fit: Fit, n_topics: int | None = None) -> tuple[np.ndarray, list[list[str]]]:
    """Fit BERTopic: the topic of each text, -1 for none, and ten words of each topic.

    It has its settings of UMAP, a seed, and the stop words of embedtopics.
    """
    from bertopic import BERTopic
    from sklearn.feature_extraction.text import CountVectorizer

    words = CountVectorizer(stop_words=list(fit.result.term_counts.stop_words) or None)
    # One topic more, for BERTopic counts its outliers as one.
    wanted = None if n_topics is None else n_topics + 1
    model = BERTopic(umap_model=_layout(fit), vectorizer_model=words, nr_topics=wanted)
    labels, _ = model.fit_transform(fit.texts, fit.vectors)
    topics = range(max(labels) + 1)
    return np.asarray(labels), [[w for w, _ in model.get_topic(t) if w] for t in topics]


class LatentWords:
    """An encoder by latent semantic analysis of some texts; it chose nothing."""

    def __init__(self, texts: Sequence[str]) -> None:
        from sklearn.decomposition import TruncatedSVD
        from sklearn.feature_extraction.text import TfidfVectorizer

        self._words = TfidfVectorizer(sublinear_tf=True, min_df=2, max_df=0.5)
        counts = self._words.fit_transform(texts)
        n_dimensions = min(N_DIMENSIONS, counts.shape[1] - 1)
        self._reducer = TruncatedSVD(n_dimensions, random_state=SEED).fit(counts)

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Return unit vectors, zero where no word is known."""
        vectors = self._reducer.transform(self._words.transform(texts))
        return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)


def shown(name: str) -> str:
    """Return the name of a set, with a star if something was chosen on it."""
    return f"{name}*" if name in CHOSEN_ON else name
