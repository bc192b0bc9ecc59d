"""Topics from a static student's vectors, beside those from all vectors of its teacher.

Titles and abstracts of arXiv papers with their primary categories as classes, and questions of
Stack Overflow with their tags. The student learns from a part of the same texts. All get the same
fit, cut into as many topics as the teacher's vectors give.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from benchmarks.corpora import CACHE, _read_rows, hash_texts, sample_rows
from benchmarks.options import Options
from benchmarks.rendering import figure, markdown_table
from benchmarks.student_texts import titles_and_categories
from embedtopics.corpus._texts import normalize_text

__all__ = ["measure", "render"]

RUNS = {
    ("titles", 60_000): ("teacher", "student", "distilled", "lsa", "teacher, another seed"),
    ("titles", 226_000): ("teacher", "student"),
    ("abstracts", 60_000): ("teacher", "student"),
    ("questions", 20_000): ("teacher", "student"),
}
N_LEARNED = 20_000
"""Texts that the teacher reads for the student; a third of a smaller collection."""
AT_ONCE = 20_000
KEPT = CACHE / "student_topics"


def measure(options: Options) -> dict[str, Any]:
    """Fit each encoder's vectors of each size; all figures of seconds are of the processor.

    What is measured is kept in the cache, and not measured again: a run can be broken off. A part
    is measured by ``python -m benchmarks.student_topics CORPUS SIZE ENCODER``.
    """
    runs = {("titles", 2_000): RUNS["titles", 60_000]} if options.quick else RUNS
    return {"rows": [_row(*of, name) for of, names in runs.items() for name in names]}


def _texts(corpus: str) -> list[tuple[str, str]]:
    """Return all classes and texts of a corpus."""
    if corpus == "titles":
        return titles_and_categories()
    if corpus == "abstracts":
        rows = _read_rows("arxiv_abstracts/arxiv_abstracts.jsonl.gz")
        return [(row["primary_cat"], row["abstract"]) for row in rows]
    rows = _read_rows("stackoverflow_titles/stackoverflow_titles.jsonl.gz")
    return [(row["label"], row["text"]) for row in rows]


def _row(corpus: str, size: int, name: str) -> dict[str, Any]:
    """Measure one encoder at one size, after the teacher, whose number of topics all have."""
    file = KEPT / f"{corpus}-{size}-{name.replace(' ', '-')}.json"
    if file.exists():
        kept: dict[str, Any] = json.loads(file.read_text("utf-8"))
        return kept
    first = None if name == "teacher" else _row(corpus, size, "teacher")
    pairs = _texts(corpus)
    chosen = [pairs[row] for row in sample_rows(len(pairs), size)]
    classes, texts = [c for c, _ in chosen], [t for _, t in chosen]
    teacher, n_learned = _Teacher(texts), min(N_LEARNED, size // 3)
    made: dict[str, Callable[[], tuple[np.ndarray, float]]] = {
        "teacher": teacher.all,
        "teacher, another seed": teacher.all,
        "student": partial(_student, teacher, texts, n_learned),
        "distilled": partial(_distilled, texts),
        "lsa": partial(_lsa, texts),
    }
    vectors, seconds = made[name]()
    seed = 1 if name == "teacher, another seed" else 0
    labels, about = _topics(texts, vectors, None if first is None else first["n_topics"], seed)
    reference = KEPT / f"{corpus}-{size}-labels.npz"
    if first is None:
        np.savez(reference, **labels)
    row = {
        "corpus": corpus,
        "n_texts": size,
        "n_learned": n_learned,
        "encoder": name,
        "seconds_to_encode": round(seconds, 1),
        **about,
        **_scores(classes, labels, np.load(reference)),
    }
    print(f"  {row}", file=sys.stderr)
    file.write_text(json.dumps(row), "utf-8")
    return row


class _Teacher:
    """The default encoder, whose vectors of these texts and seconds are kept in the cache."""

    def __init__(self, texts: Sequence[str]) -> None:
        from embedtopics import SentenceEncoder

        self._encoder: Any = SentenceEncoder()
        self._place = {normalize_text(text): place for place, text in enumerate(texts)}
        file = KEPT / f"{hash_texts(texts)}.npz"
        if not file.exists():
            parts, seconds = [], 0.0
            for begin in range(0, len(texts), AT_ONCE):
                began = time.process_time()
                parts.append(self._encoder.encode(texts[begin : begin + AT_ONCE]))
                seconds += time.process_time() - began
            file.parent.mkdir(parents=True, exist_ok=True)
            np.savez(file, vectors=np.concatenate(parts), seconds=seconds)
        kept = np.load(file)
        self.vectors, self.seconds = kept["vectors"], float(kept["seconds"])

    def all(self) -> tuple[np.ndarray, float]:
        """Return the vectors of all texts, and the seconds that they took."""
        return self.vectors, self.seconds

    def __getattr__(self, name: str) -> Any:
        return getattr(self._encoder, name)

    def encode_with_report(self, texts: Sequence[str], *, show_progress: bool | None = None) -> Any:
        """Return kept vectors, as if nothing of a text were counted."""
        from embedtopics.encoders.results import Encoding

        return Encoding(self.encode(texts), *np.zeros((3, len(texts)), dtype=np.int32))

    def encode(self, texts: Sequence[str], *, show_progress: bool | None = None) -> np.ndarray:
        """Return kept vectors of titles; encode what is none, such as single tokens."""
        places = [self._place.get(normalize_text(text), -1) for text in texts]
        if min(places) >= 0:
            return np.asarray(self.vectors[places])
        return np.asarray(self._encoder.encode(texts, show_progress=show_progress))


def _student(teacher: _Teacher, texts: list[str], n_learned: int) -> tuple[np.ndarray, float]:
    """Return vectors by a student of the first texts by their content, and seconds."""
    from embedtopics import Corpus
    from embedtopics.training import distill

    began = time.process_time()
    some = Corpus(texts).document_texts()[:n_learned]
    made = distill(teacher, some, method="texts", show_progress=False)
    vectors = made.encode(texts, show_progress=False)
    return vectors, time.process_time() - began + teacher.seconds * n_learned / len(texts)


def _distilled(texts: list[str]) -> tuple[np.ndarray, float]:
    from embedtopics.training import distill

    began = time.process_time()
    vectors = distill("all-MiniLM-L6-v2", show_progress=False).encode(texts, show_progress=False)
    return vectors, time.process_time() - began


def _lsa(texts: list[str]) -> tuple[np.ndarray, float]:
    from embedtopics.encoders import TfidfEncoder

    began = time.process_time()
    vectors = TfidfEncoder(n_components=300).fit(texts).encode(texts)
    return np.asarray(vectors), time.process_time() - began


def _topics(
    texts: list[str], vectors: np.ndarray, n_topics: int | None, seed: int
) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Return labels as they are and with all texts in a topic, and what the fit cost."""
    from embedtopics import TopicModel
    from embedtopics.topics import recluster

    empty = ~vectors.any(axis=1)  # none of its words is known
    vectors = np.where(empty[:, None], np.float32(1), vectors)
    began = time.process_time()
    model = TopicModel(languages=["en"], random_state=seed, show_progress=False)
    result = model.fit(texts, embeddings=vectors).result_
    seconds, own = time.process_time() - began, result.n_topics
    if n_topics is not None:
        result = recluster(result, n_topics)
    whole = recluster(result, result.n_topics, coverage=1.0)
    about = {
        "seconds_to_fit": round(seconds, 1), "n_topics_of_its_own": own,
        "n_topics": result.n_topics, "coverage": round(result.coverage, 4),
    }  # fmt: skip
    return {"own": result.labels, "whole": whole.labels}, about


def _scores(
    classes: list[str], labels: Mapping[str, np.ndarray], reference: Mapping[str, np.ndarray]
) -> dict[str, float]:
    from sklearn.metrics import adjusted_mutual_info_score, adjusted_rand_score

    found = {}
    for kind, suffix in (("own", ""), ("whole", "_whole")):
        ami = adjusted_mutual_info_score(classes, labels[kind])
        ari = adjusted_rand_score(reference[kind], labels[kind])
        found |= {f"ami{suffix}": round(ami, 4), f"ari_with_teacher{suffix}": round(ari, 4)}
    return found


def render(result: Mapping[str, Any]) -> str:
    """Return the table of a result."""
    rows = []
    for row in result["rows"]:
        teacher = next(
            r for r in result["rows"] if r["encoder"] == "teacher"
            and (r["corpus"], r["n_texts"]) == (row["corpus"], row["n_texts"])
        )  # fmt: skip
        rows.append(
            [
                f"{figure(row['n_texts'])} {row['corpus']}",
                f"student of {figure(row['n_learned'])}" if row["encoder"] == "student"
                else row["encoder"] + (f" ({row['date']})" if "date" in row else ""),
                figure(row["seconds_to_encode"]),
                figure(row["seconds_to_fit"]), figure(row["n_topics_of_its_own"]),
                figure(row["n_topics"]), figure(row["coverage"], 3), figure(row["ami"], 3),
                figure(100 * row["ami"] / teacher["ami"]), figure(row["ami_whole"], 3),
                figure(100 * row["ami_whole"] / teacher["ami_whole"]),
                figure(row["ari_with_teacher"], 2), figure(row.get("ari_with_teacher_whole"), 2),
            ]
        )  # fmt: skip
    header = [
        "texts", "encoder", "encoding, s", "fit, s", "topics of its own", "topics", "coverage",
        "AMI", "% of the teacher", "AMI, coverage 1", "% of the teacher", "ARI with the teacher's",
        "at coverage 1",
    ]  # fmt: skip
    return markdown_table(header, rows)


if __name__ == "__main__":
    _row(sys.argv[1], int(sys.argv[2]), " ".join(sys.argv[3:]))
