"""Classes of two texts, beside a cross-encoder of sentence-transformers and words."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from benchmarks.corpora import _read_rows

__all__ = ["pairs"]

ENCODER = "all-MiniLM-L6-v2"
N_TRAIN, N_TEST, STEPS, RATE = 600, 300, 60, 1e-4
"""Pairs to learn from and of the test; steps of 16 pairs, and rate, of those that train."""
SEEDS = 3
CORPORA = {
    "snli_counterfactual": ("train", "test", "premise", "hypothesis", ENCODER),
    "rte": ("train", "dev", "premise", "hypothesis", ENCODER),
    "fr_parlement": ("stance_pairs", "", "amendment_summary", "speech", "multilingual-e5-small"),
}
"""Files to learn from and of the test, columns, and encoder; without a file of the test, a third of
the debates is left for it."""

Pairs = tuple[list[tuple[str, str]], np.ndarray]


def _draw(corpus: str, seed: int) -> tuple[Pairs, Pairs]:
    """Return pairs to learn from and of the test."""
    train, test, first, second, _ = CORPORA[corpus]
    rng = np.random.default_rng(seed)
    learned = _read_rows(f"{corpus}/{train}.jsonl.gz")
    if test:
        tested = _read_rows(f"{corpus}/{test}.jsonl.gz")
    else:
        debates = sorted({row["debate"] for row in learned})
        left = set(rng.choice(debates, len(debates) // 3, replace=False).tolist())
        tested = [row for row in learned if row["debate"] in left]
        learned = [row for row in learned if row["debate"] not in left]

    def part(rows: list[dict[str, str]], n: int) -> Pairs:
        drawn = [rows[row] for row in rng.permutation(len(rows))[:n]]
        return [(row[first], row[second]) for row in drawn], np.array([r["label"] for r in drawn])

    return part(learned, N_TRAIN), part(tested, N_TEST)


def _ours(encoder: str, method: str, train: Pairs, test: Pairs, seed: int) -> np.ndarray:
    from embedtopics import TextClassifier

    training = {"max_steps": STEPS, "learning_rate": RATE, "epochs": 9, "show_progress": False}
    options = {} if method == "frozen" else {"training": training}
    model = TextClassifier(encoder, method=method, pairs=True, random_state=seed, **options)
    return model.fit(*train).predict(test[0])


def _words(train: Pairs, test: Pairs, seed: int) -> np.ndarray:
    """Classify the words of both texts together, in scikit-learn."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    model = make_pipeline(TfidfVectorizer(sublinear_tf=True), LogisticRegression(C=3, max_iter=500))
    model.fit([" ".join(pair) for pair in train[0]], train[1])
    return np.asarray(model.predict([" ".join(pair) for pair in test[0]]))


def _cross_encoder(train: Pairs, test: Pairs, seed: int) -> np.ndarray:
    """Train a cross-encoder of sentence-transformers with the same numbers."""
    from datasets import Dataset
    from sentence_transformers.cross_encoder import (
        CrossEncoder,
        CrossEncoderTrainer,
        CrossEncoderTrainingArguments,
    )
    from sentence_transformers.cross_encoder.losses import CrossEntropyLoss

    from embedtopics import SentenceEncoder

    names = np.unique(train[1])
    folder = str(SentenceEncoder(ENCODER).recipe.checkpoint.folder)
    model = CrossEncoder(folder, num_labels=len(names), device="cpu")
    first, second = zip(*train[0], strict=True)
    labels = np.searchsorted(names, train[1]).tolist()
    rows = Dataset.from_dict({"a": list(first), "b": list(second), "label": labels})
    with tempfile.TemporaryDirectory() as out:
        arguments = CrossEncoderTrainingArguments(
            out, max_steps=STEPS, per_device_train_batch_size=16, learning_rate=RATE,
            warmup_steps=0.1, weight_decay=0.01, seed=seed, report_to="none", disable_tqdm=True,
            save_strategy="no", logging_strategy="no", use_cpu=True,
        )  # fmt: skip
        CrossEncoderTrainer(
            model=model, args=arguments, train_dataset=rows, loss=CrossEntropyLoss(model)
        ).train()
    return names[model.predict(test[0], show_progress_bar=False).argmax(axis=1)]


def pairs(
    quick: bool = False,
    corpora: Sequence[str] = ("rte", "snli_counterfactual", "fr_parlement"),
    trained: bool = False,
) -> Iterator[dict[str, Any]]:
    """Fit the methods to pairs of texts; those that train have one draw."""
    from sklearn.metrics import f1_score

    for corpus in corpora[: 1 if quick else None]:
        methods: dict[str, Callable[[Pairs, Pairs, int], np.ndarray]] = {
            "TF-IDF of both": _words,
            "TF-IDF, pairs=True": partial(_ours, "tfidf", "frozen"),
            "frozen": partial(_ours, CORPORA[corpus][-1], "frozen"),
        }
        if trained:
            methods = {
                "fine_tune": partial(_ours, ENCODER, "fine_tune"),
                "CrossEncoder": _cross_encoder,
            }
        for seed in range(1 if quick or trained else SEEDS):
            train, test = _draw(corpus, seed)
            for name, predict in methods.items():
                begun = time.process_time()
                guess = predict(train, test, seed)
                yield {"corpus": corpus, "seed": seed, "method": name, "n_train": len(train[0]),
                       "n_test": len(test[0]), "cpu_seconds": time.process_time() - begun,
                       "accuracy": float(np.mean(guess == test[1])),
                       "macro_f1": float(f1_score(test[1], guess, average="macro"))}  # fmt: skip
