"""Fit embedtopics with its defaults, the 2-d map and the topic table included (see fitjob.py).

Options: `random_state` (an integer or null) and `n_held_out` (the last texts are not fitted, but
predicted afterwards). `stop_words` is left to the pipeline, which finds the language and drops
that language's stop words.
"""

from __future__ import annotations

from fitjob import Job

N_WORDS = 10


def main() -> None:
    job = Job.from_arguments()
    with job.stage("imports"):
        import embedtopics as et
        from embedtopics.topics._describe import top_words
    with job.stage("loading"):
        texts, embeddings = job.load(mmap_mode="r")
    with job.stage("fit"):
        model = et.TopicModel(random_state=job.options["random_state"])
        n_fitted = len(texts) - job.options["n_held_out"]
        result = model.fit(texts[:n_fitted], embeddings=embeddings[:n_fitted]).result_
    with job.stage("tables"):
        et.topics.table(result)
        words = top_words(result, n_terms=N_WORDS)
    labels = result.labels
    if n_fitted < len(texts):
        with job.stage("predict"):
            held_out = model.predict(texts[n_fitted:], embeddings=embeddings[n_fitted:])
        labels = [*labels, *held_out]
    job.finish(labels, words, result.timings)


if __name__ == "__main__":
    main()
