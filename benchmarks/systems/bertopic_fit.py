"""Fit BERTopic with its defaults, but for what the job asks (see fitjob.py).

Options: `random_state` (an integer, or null for BERTopic's default, which is unseeded),
`stop_words` (what CountVectorizer takes, or null for its default, which keeps them), and
`n_held_out` (the last texts are not fitted, but predicted afterwards).
"""

from __future__ import annotations

from fitjob import Job

N_WORDS = 10


def main() -> None:
    job = Job.from_arguments()
    with job.stage("imports"):
        from bertopic import BERTopic
        from sklearn.feature_extraction.text import CountVectorizer
        from umap import UMAP
    with job.stage("loading"):
        texts, embeddings = job.load()
    with job.stage("fit"):
        stages = {}
        if job.options["stop_words"] is not None:
            stages["vectorizer_model"] = CountVectorizer(stop_words=job.options["stop_words"])
        if job.options["random_state"] is not None:
            # BERTopic has no seed of its own; these are its settings of UMAP, and a seed.
            stages["umap_model"] = UMAP(
                n_neighbors=15,
                n_components=5,
                min_dist=0.0,
                metric="cosine",
                low_memory=False,
                random_state=job.options["random_state"],
            )
        model = BERTopic(**stages)
        n_fitted = len(texts) - job.options["n_held_out"]
        labels, _ = model.fit_transform(texts[:n_fitted], embeddings[:n_fitted])
    if n_fitted < len(texts):
        with job.stage("predict"):
            held_out, _ = model.transform(texts[n_fitted:], embeddings[n_fitted:])
        labels = [*labels, *held_out]
    # Topics with fewer words than asked for are padded with empty strings.
    words = [
        [word for word, _ in model.get_topic(topic)[:N_WORDS] if word]
        for topic in sorted(set(model.topics_) - {-1})
    ]
    job.finish(labels, words)


if __name__ == "__main__":
    main()
