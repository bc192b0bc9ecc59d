"""Words of BERTopic's topics at several numbers of topics (see fitjob.py).

Options: `random_state`, `n_topics` (numbers of topics to reduce one fit to, each from the fit
anew) and `n_fitted` (the first texts, which are fitted). ``BERTopic(nr_topics=n)`` does the same
reduction at the end of its fit; here the fit is shared. UMAP has BERTopic's settings and the seed.
Two lists of words are reported: "words", by BERTopic's defaults, and "without_stop_words", of the
same topics with scikit-learn's English stop words left out.
"""

from __future__ import annotations

import copy
from typing import Any

from fitjob import Job

N_WORDS = 10


def main() -> None:
    from bertopic import BERTopic
    from sklearn.feature_extraction.text import CountVectorizer
    from umap import UMAP

    job = Job.from_arguments()
    texts, embeddings = job.load()
    texts, embeddings = texts[: job.options["n_fitted"]], embeddings[: job.options["n_fitted"]]
    layout = UMAP(
        n_neighbors=15,
        n_components=5,
        min_dist=0.0,
        metric="cosine",
        low_memory=False,
        random_state=job.options["random_state"],
    )
    model = BERTopic(umap_model=layout).fit(texts, embeddings)
    found = []
    for wanted in job.options["n_topics"]:
        reduced = copy.deepcopy(model)
        reduced.reduce_topics(texts, nr_topics=wanted)
        words = {"words": _words(reduced)}
        labels = [int(label) for label in reduced.topics_]
        reduced.update_topics(texts, vectorizer_model=CountVectorizer(stop_words="english"))
        words["without_stop_words"] = _words(reduced)
        found.append({"n_topics": wanted, "labels": labels, "words": words})
    job.report({"levels": found})


def _words(model: Any) -> list[list[str]]:
    return [
        [word for word, _ in model.get_topic(topic)[:N_WORDS] if word]
        for topic in sorted(set(model.topics_) - {-1})
    ]


if __name__ == "__main__":
    main()
