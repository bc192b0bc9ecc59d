"""Words of BERTopic's topics at several numbers of topics (see fitjob.py).

Options: `random_state`, `n_topics` (numbers of topics to reduce one fit to, each from the fit
anew) and `n_fitted` (the first texts, which are fitted). ``BERTopic(nr_topics=n)`` does the same
reduction at the end of its fit; here the fit is shared. UMAP has BERTopic's settings and the seed.
"""

from __future__ import annotations

import copy

from fitjob import Job

N_WORDS = 10


def main() -> None:
    from bertopic import BERTopic
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
        words = [
            [word for word, _ in reduced.get_topic(topic)[:N_WORDS] if word]
            for topic in sorted(set(reduced.topics_) - {-1})
        ]
        labels = [int(label) for label in reduced.topics_]
        found.append({"n_topics": wanted, "labels": labels, "words": {"words": words}})
    job.report({"levels": found})


if __name__ == "__main__":
    main()
