"""The same topics in both: BERTopic with the labels, the vectors and the words of a result."""

import copy

import numpy as np
import pandas as pd
import pytest
from sklearn.feature_extraction.text import CountVectorizer

import embedtopics as et
from embedtopics.terms._tokens import tokenize
from tests import bertopic_oracle

SUBJECTS = (
    "river engine garden market violin planet harbor recipe senate glacier orchard mirror".split()
)
PARTS = "line field season price group study report night colour number letter answer".split()
COMMON = "often found another around later enough".split()


class Hashed:
    """An encoder of words: each has a random direction of its own, a text is their sum."""

    name = "hashed words"
    fingerprint = "hashed-words-1"

    def encode(self, texts):
        made = np.zeros((len(texts), 48), dtype=np.float32)
        for row, text in enumerate(texts):
            for word in text.lower().split():
                seed = int.from_bytes(word.encode()[:6].ljust(6, b"_"), "big")
                made[row] += np.random.default_rng(seed).normal(size=48)
        lengths = np.linalg.norm(made, axis=1, keepdims=True)
        return made / np.where(lengths > 0, lengths, 1.0)


def make_frame(n_each=(47, 41, 36, 32, 28, 22, 19, 15), seed=4):
    """Return 240 texts of eight subjects with dates over three years, in one of three sources.

    Each has 14 words, one of them "people", so that the mean number of words in a topic is whole,
    be there 8, 7, 6 or 5 topics: BERTopic cuts that number off at the point.
    """
    rng = np.random.default_rng(seed)
    rows = []
    for subject, n in enumerate(n_each):
        own = SUBJECTS[subject]
        # Neighbours share a word, so that some topics are nearer to each other than others.
        shared = f"{SUBJECTS[subject // 2]}s{subject // 2}"
        for i in range(n):
            words = [own] * 4 + [shared] * 2 + [f"{own}{part}" for part in rng.choice(PARTS, 4)]
            words += ["people", *rng.choice(COMMON, 2), f"w{subject}x{i}"]
            day = int(rng.integers(0, 3 * 365))
            rows.append((" ".join(rng.permutation(words)), day, "abc"[int(rng.integers(0, 3))]))
    frame = pd.DataFrame(rows, columns=["text", "day", "source"])
    frame["date"] = pd.Timestamp("2020-01-01") + pd.to_timedelta(frame.pop("day"), unit="D")
    return frame.sample(frac=1.0, random_state=seed).reset_index(drop=True)


@pytest.fixture(scope="session")
def frame():
    return make_frame()


@pytest.fixture(scope="session")
def corpus(frame):
    return et.Corpus(frame, text="text", time="date", group="source")


@pytest.fixture(scope="session")
def model(corpus):
    """A fit in which every text is in a topic, with single words and no stop words."""
    model = et.TopicModel(
        Hashed(), n_topics=8, coverage=1.0, languages=[], stop_words=[], ngram_range=(1, 1),
        min_df=1, random_state=0,
    ).fit(corpus)  # fmt: skip
    assert model.result_.n_topics == 8 and model.result_.coverage == 1.0
    return model


@pytest.fixture(scope="session")
def result(model):
    return model.result_


@pytest.fixture(scope="session")
def fitted(result):
    return fit_bertopic(result)


@pytest.fixture
def topic_model(fitted):
    """A copy that may be changed, as BERTopic's methods change it."""
    return copy.deepcopy(fitted)


def fit_bertopic(result):
    """Return BERTopic on the texts, vectors and labels of a result, with our tokeniser."""
    from bertopic.backend import BaseEmbedder

    class Backend(BaseEmbedder):
        def embed(self, documents, verbose=False):
            return Hashed().encode(documents)

    vectors = result.by_row(result.embeddings, 0.0)
    words = CountVectorizer(tokenizer=split_words, token_pattern=None)
    model = bertopic_oracle.fit_bertopic(
        result.corpus.texts, vectors, result.labels,
        embedding_model=Backend(), vectorizer_model=words,
    )  # fmt: skip
    assert list(model.topics_) == result.labels.tolist()
    return model


def split_words(text):
    """Return the words that the package sees in a text."""
    stream = tokenize([text])
    return [stream.words[i] for i in stream.ids]
