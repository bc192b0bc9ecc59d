"""Synthetic results whose parts agree with one another, for tests of what comes after a fit."""

import subprocess
import sys
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import combinations

import numba
import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix

from embedtopics import Corpus, SentenceEncoder
from embedtopics.clustering.results import NOISE, Clustering
from embedtopics.comparison.results import Comparison, EncoderView, Overlap
from embedtopics.errors import InputError
from embedtopics.neighbors.results import NeighborGraph
from embedtopics.results import Decision
from embedtopics.terms._counts import count_by_topic
from embedtopics.terms.results import TermCounts, TokenStream
from embedtopics.topics._storage import read_arrays
from embedtopics.topics.results import Reason, Stability, Topic, TopicResult
from tests.noise import jittered

_STEMS = "river engine garden market violin planet harbor recipe senate glacier".split()
_PARTS = "line field season price group study report night".split()
_COMMON = "people often found another around later enough".split()


exact_encoder = partial(SentenceEncoder, precision="float32")
"""Whose vectors are compared with those of other libraries; by default a CPU computes in int8."""

PATIENCE = 600
"""Seconds to wait for a process, an answer or a condition: more than a busy machine needs."""


class Table:
    """An encoder of known texts."""

    def __init__(self, vectors):
        self.vectors = vectors
        self.asked = []

    def encode(self, texts):
        self.asked.append(list(texts))
        return np.array([self.vectors[text] for text in texts])


def encodes(vectors_of):
    """Return an encoder by a function of texts."""
    encoder = Table({})
    encoder.encode = vectors_of
    return encoder


@contextmanager
def refuses(parameter, *, row=None, line=None):
    """Assert that an InputError names a parameter, and a row or line where one is at fault."""
    with pytest.raises(InputError) as caught:
        yield caught
    assert caught.value.parameter == parameter
    assert row is None or caught.value.row == row
    assert line is None or caught.value.line == line


def fields(results):
    """Return all fields of dataclasses as text, for NaN is not NaN."""
    return repr([vars(result) for result in results])


def raising(error):
    """Return a function that raises, whatever it is called with: a full disk, an interrupt."""

    def function(*_, **__):
        raise error

    return function


def python(code, *arguments, **options):
    """Run code in an interpreter of its own, and return what it printed."""
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, **options
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def with_threads(make):
    """Yield what a function makes with one thread of Numba, then with more, up to four."""
    before = numba.get_num_threads()
    try:
        for n_threads in range(1, min(numba.config.NUMBA_NUM_THREADS, 4) + 1):
            numba.set_num_threads(n_threads)
            yield make()
            assert numba.get_num_threads() == n_threads
    finally:
        numba.set_num_threads(before)


@contextmanager
def full_disk():
    """Let no file of this process have more than 4 KB."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def contents(folder):
    """Return the bytes of all files below a folder, by their names there."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def saved_arrays(path):
    """Read arrays of a saved result."""
    with path.open("rb") as stream:
        return read_arrays(stream)


def topic_counts(result):
    """Return how often each term stands in the rows of each topic."""
    labels, weights = result.clustering.labels, result.distinct.weights
    return count_by_topic(result.term_counts.counts, labels, result.n_topics, weights)


FULL_DISK = OSError(28, "No space left on device")


def each(**wrong):
    """Return pairs of a parameter and a wrong value for it, to parametrize a test with."""
    return [(name, value) for name, values in wrong.items() for value in values]


def make_result(
    n_documents=300, n_topics=6, seed=0, texts=(), *, topic_labels=(), dated=True, **changes
):
    """Return a TopicResult of blobs: about 15% noise, some duplicates and one empty row.

    Of the documents in a topic some are in its dense core, and some joined it.

    `texts` replace the texts of the first rows, `topic_labels` the names of the first topics,
    and `changes` any field of the result.
    """
    rng = np.random.default_rng(seed)
    truth, positions, spread = _blobs(n_documents, n_topics, rng)
    drafts = [*texts, *_texts(truth, rng)[len(texts) :]]
    n_repeats = n_documents // 25
    repeats = rng.integers(0, n_documents, n_repeats)
    row_texts = [*drafts, *(drafts[i] for i in repeats), ""]
    corpus = _corpus(row_texts, dated=dated)
    documents = corpus.distinct()
    draft = documents.first_rows  # a draft is its own row, so this is the draft of each document
    labels, sizes = _by_size(truth[draft], documents.weights, n_topics)
    stream, counts = _count([drafts[i] for i in draft])
    topic_terms = _weigh(counts.counts, labels, n_topics)
    in_core = (labels != NOISE) & (spread[draft] < 1.5)
    probabilities = np.where(in_core, np.exp(-0.3 * spread[draft]), 0.0).astype(np.float32)
    result = TopicResult(
        corpus=corpus,
        distinct=documents,
        embeddings=_embed(positions[draft]),
        graph=_neighbors(_embed(positions[draft])),
        coordinates=positions[draft],
        map=positions[draft, :2].copy(),
        clustering=Clustering(
            labels, probabilities, np.linspace(0.6, 0.1, n_topics), _reasons(labels)
        ),
        memberships=_memberships(labels, n_topics, rng),
        tokens=stream,
        term_counts=counts,
        topic_terms=topic_terms,
        topics=_topics(labels, sizes, probabilities, documents, topic_terms, counts.terms),
        decisions=(
            Decision("corpus", "empty", 1, "1 of the rows holds no text and is in no topic."),
            Decision("corpus", "duplicates", n_repeats, f"{n_repeats} rows repeat another's text."),
            Decision("encoder", "truncated", 0.02, "2.0% of the documents were cut."),
            Decision("terms", "stop_words", ["the", "of", "and"], "English stop words left out."),
        ),
        settings={"encoder": "synthetic", "random_state": seed, "clusterer": {"min_size": 5}},
        versions={"embedtopics": "0.1.0", "numpy": np.__version__},
        timings={"encoder": 4.2, "neighbors": 0.3, "reduction": 2.9, "clustering": 0.4},
    )
    named = tuple(
        replace(topic, name=name) for topic, name in zip(result.topics, topic_labels, strict=False)
    )
    return replace(result, topics=named + result.topics[len(named) :], **changes)


def _blobs(n_documents, n_topics, rng):
    """Return labels, 5-d positions, and distances from the blob's centre, of uneven blobs."""
    share = 1.0 / np.arange(1, n_topics + 1) ** 0.7
    truth = rng.choice(n_topics, n_documents, p=share / share.sum()) if n_topics else None
    if truth is None:
        truth = np.full(n_documents, NOISE)
    first = min(n_documents, 4 * n_topics)  # every topic has members, however small
    truth[:first] = np.arange(first) % max(n_topics, 1)
    truth[first:][rng.random(n_documents - first) < 0.15] = NOISE
    centres = rng.uniform(-1, 1, (n_topics, 5)) * 3.0 * max(n_topics, 1) ** 0.5
    noise = rng.normal(size=(n_documents, 5))
    scattered = rng.uniform(-1, 1, (n_documents, 5)) * 3.2 * max(n_topics, 1) ** 0.5
    in_topic = (truth != NOISE)[:, None]
    around = centres[truth] + noise if n_topics else scattered
    return truth, np.where(in_topic, around, scattered).astype(np.float32), abs(noise[:, 0])


def _texts(truth, rng):
    """Return a text for each document, with its topic's words in it and a number of its own."""
    texts = []
    for i, topic in enumerate(truth.tolist()):
        stem = _STEMS[topic % len(_STEMS)] + (str(topic // len(_STEMS)) if topic > 9 else "")
        own = [f"{stem} {_PARTS[j]}" for j in rng.integers(0, len(_PARTS), 6)]
        words = (own if topic != NOISE else []) + list(rng.choice(_COMMON, 8))
        texts.append(" ".join(words[j] for j in rng.permutation(len(words))) + f" no{i}")
    return texts


def _corpus(texts, *, dated):
    """Return the rows as a corpus, of a dated table or of a list."""
    if not dated:
        return Corpus(texts)
    dates = pd.date_range("2021-01-01", periods=len(texts))
    frame = pd.DataFrame({"text": pd.Series(texts, dtype=object), "date": dates})
    return Corpus(frame, text="text", time="date")


def _by_size(truth, weights, n_topics):
    """Return labels numbered from the largest topic down, and the rows in each."""
    rows = np.bincount(truth[truth >= 0], weights[truth >= 0], minlength=n_topics).astype(int)
    order = np.argsort(-rows, kind="stable")
    renumber = np.empty(n_topics + 1, dtype=np.int32)
    renumber[order] = np.arange(n_topics)
    renumber[NOISE] = NOISE
    return renumber[truth], rows[order]


def _reasons(labels):
    """Return the reasons of noise, each as often as the other."""
    noise = np.where(np.arange(len(labels)) % 2, Reason.BETWEEN, Reason.ISOLATED)
    return np.where(labels == NOISE, noise, Reason.IN_TOPIC).astype(np.int8)


def _memberships(labels, n_topics, rng):
    """Return shares that are largest where the label is: of a topic, or of none."""
    shares = rng.dirichlet(np.ones(n_topics + 1), len(labels))  # the last is that of none
    shares = 0.4 * shares + 0.6 * (labels[:, None] % (n_topics + 1) == np.arange(n_topics + 1))
    return csr_matrix(shares[:, :n_topics].astype(np.float32))


def _embed(positions):
    """Return unit vectors that keep the blobs apart."""
    raised = np.hstack([positions, np.ones((len(positions), 1), dtype=np.float32)])
    units = raised / np.linalg.norm(raised, axis=1, keepdims=True)
    return jittered(units.astype(np.float32))


def _neighbors(embeddings, k=5):
    """Return an exact graph."""
    k = min(k, len(embeddings) - 1)
    similarities = embeddings @ embeddings.T
    np.fill_diagonal(similarities, -np.inf)
    indices = np.argsort(-similarities, axis=1, kind="stable")[:, :k]
    near = np.einsum("id,ikd->ik", embeddings, embeddings[indices])
    return NeighborGraph(indices.astype(np.int32), near.astype(np.float32))


def _count(texts):
    """Return the token stream and the document-term counts of texts split at spaces."""
    split = [text.split() for text in texts]
    words = tuple(sorted({word for document in split for word in document}))
    number = {word: i for i, word in enumerate(words)}
    ids = np.array([number[word] for document in split for word in document], dtype=np.int32)
    offsets = np.concatenate([[0], np.cumsum([len(document) for document in split])])
    counts = csr_matrix(
        (np.ones(len(ids), dtype=np.int32), ids.copy(), offsets), shape=(len(texts), len(words))
    )
    counts.sum_duplicates()
    lengths = np.ones(len(words), dtype=np.int8)
    return TokenStream(ids, offsets.astype(np.int64), words), TermCounts(counts, words, lengths)


def _weigh(counts, labels, n_topics):
    """Return class-TF-IDF weights."""
    member = np.flatnonzero(labels != NOISE)
    sums = csr_matrix(
        (np.ones(len(member)), (labels[member], member)), shape=(n_topics, len(labels))
    )
    by_topic = (sums @ counts).toarray().astype(float)
    frequency = np.maximum(by_topic.sum(axis=0), 1.0)
    mean = by_topic.sum() / max(n_topics, 1)
    length = np.maximum(by_topic.sum(axis=1, keepdims=True), 1.0)
    return csr_matrix(by_topic / length * np.log1p(mean / frequency))


def _topics(labels, sizes, probabilities, documents, topic_terms, terms):
    """Return the rows of the topic table."""
    topics = []
    for topic_id, size in enumerate(sizes.tolist()):
        weights = topic_terms[topic_id].toarray().ravel()
        best = np.argsort(-weights, kind="stable")[:10]
        members = np.flatnonzero(labels == topic_id)
        central = members[np.argsort(-probabilities[members], kind="stable")[:3]]
        keywords = tuple(terms[i] for i in best)
        topics.append(
            Topic(
                topic_id=topic_id,
                name=", ".join(keywords[:3]),
                size=size,
                share=size / int(documents.weights.sum()),
                keywords=keywords,
                weights=tuple(weights[best].tolist()),
                representatives=tuple(documents.first_rows[central].tolist()),
                persistence=0.6 - 0.5 * topic_id / max(len(sizes), 1),
            )
        )
    return tuple(topics)


def with_stability(result, recurrence=None, chance=None):
    """Return the result as if its stability was measured: topics come back, or as often as told."""
    recurrence = np.ones(result.n_topics) if recurrence is None else np.array(recurrence)
    agreement = np.ones(len(result.distinct), dtype=np.float32)
    measured = Stability(
        recurrence, recurrence - 0.1, recurrence + 0.05, agreement, np.array([0.4, 0.6]), 3, chance
    )
    return replace(result, stability=measured)


def make_comparison(n_documents=300, n_groups=4, n_encoders=3, seed=0, texts=(), **changes):
    """Return a Comparison whose encoders see the same blobs, each a little less clearly.

    The documents of no group are those of no topic in `make_result`, and `changes` any field.
    """
    result = make_result(n_documents, n_groups, seed, texts)
    rng = np.random.default_rng(seed + 1)
    encoders = []
    for number in range(n_encoders):
        blur = rng.normal(size=result.coordinates.shape) * number
        seen = (result.coordinates + blur).astype(np.float32)
        graph = _neighbors(_embed(seen), k=6)
        encoders.append(
            EncoderView(f"encoder {number}", graph, seen[:, :2].copy(), 5 + number, 1.5 + number,
                        0.25 * (number + 1), {"name": f"encoder {number}"})
        )  # fmt: skip
    pairs = list(combinations(range(n_encoders), 2))
    comparison = Comparison(
        corpus=result.corpus,
        distinct=result.distinct,
        encoders=tuple(encoders),
        groups=result.clustering.labels,
        group_names=tuple(_STEMS[g % len(_STEMS)] for g in range(n_groups)),
        grouped_by='label "theme"',
        scores=_scores([view.name for view in encoders], n_documents),
        neighbor_overlaps=tuple(_overlap(a, b, encoders) for a, b in pairs),
        moved=pd.DataFrame(
            [
                (document, a, b, 0.1, ("engine line", "river"), ("garden",))
                for a, b in pairs
                for document in range(min(3, n_documents))
            ],
            columns=["document", "first", "second", "jaccard", "gained", "lost"],
        ),
        decisions=(Decision("encoder", "truncated", 0.02, "2.0% of the documents were cut."),),
        settings={"k": 6, "random_state": seed},
        versions={"embedtopics": "0.1.0", "numpy": np.__version__},
        tokens=result.tokens,
        term_counts=result.term_counts,
    )
    return replace(comparison, **changes)


def _scores(names, n):
    """Return two measures: one with a clear leader, and one that leaves it open."""
    rows = []
    for place, name in enumerate(names):
        rows.append((name, "neighbours share a label", 0.9 - 0.1 * place, 0.03, n))
        rows.append((name, "topic coherence", 0.5 + 0.02 * place, 0.05, n))
    frame = pd.DataFrame(rows, columns=["encoder", "measure", "value", "half", "n"])
    frame["low"], frame["high"] = frame["value"] - frame["half"], frame["value"] + frame["half"]
    return frame.drop(columns="half")


def _overlap(first, second, encoders):
    """Return the Jaccard overlap of two encoders' neighbours, and the same for the other."""
    one, other = (encoders[place].graph.indices.tolist() for place in (first, second))
    jaccard = [
        len(set(a) & set(b)) / len(set(a) | set(b)) if a else 0.0
        for a, b in zip(one, other, strict=True)
    ]
    jaccard = np.array(jaccard, dtype=np.float32)
    return Overlap(first, second, jaccard, np.minimum(1.2 * jaccard, 1.0).astype(np.float32))


def rows_of(shares, **conditions):
    """Return the rows of measured shares, of a class (`name`) or a group, with fields."""
    table = shares.to_frame().rename(columns={"class": "name"})
    for column, value in conditions.items():
        table = table[[cell == value for cell in table[column]]]
    return list(table.itertuples(index=False))
