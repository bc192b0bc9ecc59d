"""Words of embedtopics' topics at several numbers of topics (see fitjob.py).

Options: `random_state`, `n_topics` (numbers of topics to read one fit at) and `n_fitted` (the
first texts, which are fitted). Two lists of words are reported: "words", the keywords of the
topics, and "plain", the words with the largest class-TF-IDF weights.
"""

from __future__ import annotations

from fitjob import Job

N_WORDS = 10


def main() -> None:
    import numpy as np

    import embedtopics as et

    job = Job.from_arguments()
    texts, embeddings = job.load()
    texts, embeddings = texts[: job.options["n_fitted"]], embeddings[: job.options["n_fitted"]]
    model = et.TopicModel(random_state=job.options["random_state"])
    result = model.fit(texts, embeddings=embeddings).result_
    found = []
    for wanted in job.options["n_topics"]:
        read = et.topics.at_resolution(result, wanted)
        terms = read.term_counts.terms
        single = np.flatnonzero(read.term_counts.lengths == 1)
        weights = read.topic_terms[:, single].toarray()
        best = np.argsort(-weights, axis=1, kind="stable")[:, :N_WORDS]
        plain = [[terms[single[place]] for place in row] for row in best.tolist()]
        words = {"words": et.topics.top_words(read, n_terms=N_WORDS), "plain": plain}
        found.append({"n_topics": wanted, "labels": read.labels.tolist(), "words": words})
    job.report({"levels": found})


if __name__ == "__main__":
    main()
