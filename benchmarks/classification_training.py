"""All weights beside transformers' Trainer, ULMFiT's options, and words."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.corpora import DATA

__all__ = ["fine_tune", "small", "ulmfit", "words"]

ENCODER = "all-MiniLM-L6-v2"
N_TRAIN, N_HELD, N_TEST, EPOCHS = 320, 100, 500, 2
"""Of classifiers with all weights: texts to learn from, to choose the weights, and of the test."""
ALL_LABELS = {"trec_questions": 5000, "sst2": 3000}
"""Texts to learn from, once, beside the Trainer."""

ULMFIT = {
    "none": {},
    "layer_decay": {"layer_decay": 1 / 2.6},
    "slanted": {"slanted": True, "warmup": 0.1},
    "unfreezing": {"unfreezing": True},
    "all three": {"layer_decay": 1 / 2.6, "slanted": True, "unfreezing": True},
}
TAGGED = {"ud_english_ewt": "upos", "wnut17": "tag"}
N_SENTENCES, N_TEST_SENTENCES = 320, 400

SMALL = ("trec_questions", "sst2", "ag_news", "banking77", "emotion", "subjectivity",
         "masakhanews_eng")  # fmt: skip
SMALL_SIZES = (100, 300, 1000)
METHODS = ("TF-IDF", "frozen", "few_shot", "fine_tune", "auto")
N_SEEDS, AUTO_SIZES = 3, (100, 300)
"""Draws of labels; "auto", which fits the others several times, has one, and few labels."""

N_SMALL_TEST = 300


def _folder() -> str:
    from embedtopics import SentenceEncoder

    return str(SentenceEncoder(ENCODER).recipe.checkpoint.folder)


def _sampled(
    corpus: str, seed: int, n: int = N_TRAIN, epochs: int = EPOCHS
) -> tuple[list[tuple[list[str], Any]], int]:
    """Return texts and labels to learn from, to choose the weights, and of the test; steps."""
    from benchmarks.classification import _read

    texts, labels, test, truth = _read(corpus)
    order = np.random.default_rng(seed).permutation(len(texts))[: n + N_HELD]
    parts = [([texts[row] for row in rows], labels[rows]) for rows in (order[:n], order[n:])]
    return [*parts, (test[:N_TEST], truth[:N_TEST])], epochs * -(-n // 16)


def _ours(parts: Any, seed: int, **training: Any) -> dict[str, Any]:
    from embedtopics import TextClassifier

    options = {"epochs": EPOCHS, "learning_rate": 2e-5, "validations_per_epoch": 1,
               "show_progress": False, **training}  # fmt: skip
    model = TextClassifier(ENCODER, method="fine_tune", settings=options, random_state=seed)
    begun = time.process_time()
    model.fit(*parts[0], validation=parts[1])
    seconds = time.process_time() - begun
    accuracy = float(np.mean(model.predict(parts[2][0]) == parts[2][1]))
    return {"accuracy": accuracy, "cpu_seconds": seconds}


def _trainer(parts: Any, seed: int, epochs: int) -> dict[str, Any]:
    """Train with transformers' Trainer and the same numbers, the best epoch's weights kept."""
    from datasets import Dataset
    from transformers import (
        AutoModelForSequenceClassification,
        AutoTokenizer,
        DataCollatorWithPadding,
        Trainer,
        TrainingArguments,
    )

    names = np.unique(parts[0][1])
    begun = time.process_time()
    tokenizer = AutoTokenizer.from_pretrained(_folder(), local_files_only=True)
    model = AutoModelForSequenceClassification.from_pretrained(
        _folder(), num_labels=len(names), local_files_only=True
    )
    sets = [
        Dataset.from_dict(
            {**tokenizer(texts, truncation=True), "labels": np.searchsorted(names, y).tolist()}
        )
        for texts, y in parts[:2]
    ]
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            folder, per_device_train_batch_size=16, num_train_epochs=epochs, learning_rate=2e-5,
            weight_decay=0.01, warmup_steps=0.1, eval_strategy="epoch", save_strategy="epoch",
            load_best_model_at_end=True, report_to="none", disable_tqdm=True, seed=seed,
            use_cpu=True, logging_strategy="no",
        )  # fmt: skip
        trainer = Trainer(
            model, arguments, train_dataset=sets[0], eval_dataset=sets[1],
            data_collator=DataCollatorWithPadding(tokenizer),
        )  # fmt: skip
        trainer.train()
        seconds = time.process_time() - begun
        test = Dataset.from_dict(dict(tokenizer(parts[2][0], truncation=True)))
        found = names[trainer.predict(test).predictions.argmax(axis=1)]
    return {"accuracy": float(np.mean(found == parts[2][1])), "cpu_seconds": seconds}


def fine_tune(quick: bool = False) -> Iterator[dict[str, Any]]:
    """Train all weights, and the same with transformers' Trainer, in turns."""
    for seed in range(1):
        for corpus in ("trec_questions",) if quick else ("trec_questions", "sst2"):
            parts, n_steps = _sampled(corpus, seed, 320 if quick else ALL_LABELS[corpus], epochs=1)
            about = {"corpus": corpus, "seed": seed, "n_steps": n_steps,
                     "n_examples": len(parts[0][0])}  # fmt: skip
            yield {**about, "method": "fine_tune", **_ours(parts, seed, epochs=1)}
            yield {**about, "method": "Trainer", **_trainer(parts, seed, epochs=1)}


def small(quick: bool = False) -> Iterator[dict[str, Any]]:
    """Fit the methods to random samples of labelled texts."""
    cases = [(seed, n, corpus) for seed in range(N_SEEDS) for n in SMALL_SIZES for corpus in SMALL]
    for seed, n, corpus in cases[: 1 if quick else None]:
        for method in METHODS:
            if method != "auto" or (seed == 0 and n in AUTO_SIZES):
                yield _small_fit(corpus, n, seed, method)


def _small_fit(corpus: str, n: int, seed: int, method: str) -> dict[str, Any]:
    from sklearn.metrics import f1_score

    from benchmarks.classification import _read
    from embedtopics import TextClassifier

    texts, labels, test, truth = _read(corpus)
    rows = np.random.default_rng(seed).permutation(len(texts))[:n]
    rows = [row for row in rows if (labels[rows] == labels[row]).sum() > 1]
    places = np.flatnonzero(np.isin(truth, labels[rows]))[:N_SMALL_TEST]
    name, encoder = ("frozen", "tfidf") if method == "TF-IDF" else (method, ENCODER)
    # On a GPU, too, the weights are trained as on a processor.
    training = {"precision": "float32"} if method == "fine_tune" else None
    model = TextClassifier(encoder, method=name, settings=training, random_state=seed)
    model.fit([texts[row] for row in rows], labels[rows])
    guess = model.predict([test[place] for place in places])
    score = float(f1_score(truth[places], guess, average="macro"))
    return {"corpus": corpus, "n": n, "seed": seed, "method": method, "macro_f1": score,
            "taken": model.method_}  # fmt: skip


def ulmfit(_: bool = False) -> Iterator[dict[str, Any]]:
    """Train with the options of Howard and Ruder (2018), alone and together."""
    for seed in range(N_SEEDS):
        parts, n_steps = _sampled("trec_questions", seed)
        for name, options in ULMFIT.items():
            made = _ours(parts, seed, learning_rate=1e-4, **options)
            yield {"options": name, "seed": seed, "n_steps": n_steps, **made}


def words(quick: bool = False) -> Iterator[dict[str, Any]]:
    """Tag words, and the same with a loop of transformers."""
    from embedtopics import TokenClassifier

    for corpus in ("wnut17",) if quick else TAGGED:
        train, test = (_sentences(corpus, part) for part in ("train", "test"))
        order = np.random.default_rng(0).permutation(len(train[0]))[:N_SENTENCES]
        train = tuple([column[row] for row in order] for column in train)
        test = tuple(column[:N_TEST_SENTENCES] for column in test)
        for method in ("frozen", "fine_tune"):
            begun = time.process_time()
            model = TokenClassifier(ENCODER, method=method).fit(*train)
            seconds = time.process_time() - begun
            yield _scored(corpus, method, test, model.predict(test[0]), seconds)
        begun = time.process_time()
        predict = _token_loop(*train)
        seconds = time.process_time() - begun
        yield _scored(corpus, "transformers", test, predict(test[0]), seconds)


def _scored(corpus: str, method: str, test: Any, found: Any, seconds: float) -> dict[str, Any]:
    from embedtopics.classification import evaluate_tokens

    row = evaluate_tokens(test[1], found).loc["all"]
    ends = {name: float(row[name]) for name in ("f1", "low", "high")}
    return {"corpus": corpus, "method": method, "cpu_seconds": seconds, **ends,
            "n_train": N_SENTENCES, "n_test": len(test[0])}  # fmt: skip


def _sentences(corpus: str, part: str) -> tuple[list[list[str]], list[list[str]]]:
    from embedtopics.probing import read_treebank

    read = read_treebank(Path(DATA) / corpus / f"{part}.tsv.gz").sentences
    return [list(one.words) for one in read], [list(one.columns[TAGGED[corpus]]) for one in read]


def _token_loop(sentences: Sequence[Sequence[str]], labels: Sequence[Sequence[str]]) -> Any:
    """Train with transformers alone: the loss at the first token of each word, no more."""
    import torch
    from transformers import AutoModelForTokenClassification, AutoTokenizer

    from embedtopics.classification._words import LEAST_STEPS

    names = sorted({label for row in labels for label in row})
    tokenizer = AutoTokenizer.from_pretrained(_folder(), local_files_only=True)
    torch.manual_seed(0)
    model = AutoModelForTokenClassification.from_pretrained(
        _folder(), num_labels=len(names), local_files_only=True
    )

    def batch(rows: Sequence[Sequence[str]], wanted: Any = None) -> tuple[Any, np.ndarray]:
        made = tokenizer([list(row) for row in rows], is_split_into_words=True, truncation=True,
                         padding=True, return_tensors="pt")  # fmt: skip
        codes = np.full(tuple(made["input_ids"].shape), -100)
        for place in range(len(rows)):
            owners = made.word_ids(place)
            for at, owner in enumerate(owners):
                if owner is not None and owner != owners[at - 1]:
                    label = wanted[place][owner] if wanted is not None else names[0]
                    codes[place, at] = names.index(label)
        return made, codes

    rng, size = np.random.default_rng(0), 16
    n_steps = max(LEAST_STEPS, 3 * -(-len(sentences) // size))
    n_epochs = -(-n_steps // -(-len(sentences) // size))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer,
        lambda step: min((step + 1) / (0.1 * n_steps), (n_steps - step) / (0.9 * n_steps)),
    )
    model.train()
    for _ in range(n_epochs):
        order = rng.permutation(len(sentences))
        for begin in range(0, len(order), size):
            rows = order[begin : begin + size]
            made, codes = batch([sentences[r] for r in rows], [labels[r] for r in rows])
            optimizer.zero_grad()
            model(**made, labels=torch.from_numpy(codes)).loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
    model.eval()

    def predict(test: Sequence[Sequence[str]]) -> list[list[str]]:
        found = []
        for row in test:
            made, codes = batch([row])
            with torch.no_grad():
                best = model(**made).logits[0].argmax(dim=1).numpy()[codes[0] >= 0]
            given = [names[code] for code in best]
            found.append(given + [max(names)] * (len(row) - len(given)))
        return found

    return predict
