"""Few labels beside SetFit, TF-IDF and frozen vectors; and intervals of shares in simulations."""

from __future__ import annotations

import gzip
import json
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.corpora import DATA
from benchmarks.options import Options
from benchmarks.rendering import markdown_table

__all__ = ["measure", "render"]

ENCODER = "all-MiniLM-L6-v2"
N_TEST = 500
SECONDS = 1_700
"""No further draw of few labels begins after so long, on one thread."""

CORPORA = ("sst2", "subjectivity", "trec_questions", "ag_news")
PLAN = [
    *((corpus, 8, draw) for draw in range(3) for corpus in CORPORA),
    *((corpus, 16, draw) for draw in range(3) for corpus in CORPORA),
]
"""Corpus, labels of a class, and draw, in the order in which they are measured."""

SIMULATED = [
    (p, n, accuracy) for p, n in ((0.5, 200), (0.02, 500)) for accuracy in (0.6, 0.8, 0.95)
]


def measure(options: Options) -> dict[str, Any]:
    """Draw few labels and measure each method; then simulate shares."""
    from tests.classification.test_prevalence import covered

    n_draws = 20 if options.quick else 500
    shares = []
    for by_design in (False, True):
        for p, n, accuracy in SIMULATED:
            cover, ratio = covered(p, accuracy, n, n_draws, seed=2, by_design=by_design)
            shares.append({
                "design": "known chances" if by_design else "random sample", "prevalence": p,
                "n_labels": n, "accuracy": accuracy, "n_draws": n_draws,
                "coverage": float(cover), "width_beside_labels_alone": float(ratio),
            })  # fmt: skip
    for fit in _methods().values():  # imports are nobody's time
        fit(["ripe plums", "late trains", "sweet pears", "slow trains"], np.array([0, 1, 0, 1]))
    begun, found = time.monotonic(), []
    for corpus, n, draw in PLAN[: 1 if options.quick else None]:
        if time.monotonic() - begun < SECONDS:
            found += list(_few_labels(corpus, n, draw))
    return {"shares": shares, "few_labels": found, "n_test": N_TEST}


def _read(corpus: str) -> tuple[list[str], np.ndarray, list[str], np.ndarray]:
    """Return texts and labels to draw from, and those of the test."""
    keys = {"ag_news": ("description", "label"), "trec_questions": ("text", "coarse")}
    text, label = keys.get(corpus, ("text", "label"))
    names = {"ag_news": "train_4000", "subjectivity": "subjectivity"}
    parts = [_rows(corpus, names.get(corpus, "train"))]
    if corpus == "subjectivity":
        order = np.random.default_rng(0).permutation(len(parts[0]))
        shuffled = [parts[0][row] for row in order]
        parts = [shuffled[N_TEST:], shuffled[:N_TEST]]
    else:
        parts.append(_rows(corpus, "test"))
        order = np.random.default_rng(0).permutation(len(parts[1]))[:N_TEST]
        parts[1] = [parts[1][row] for row in order]
    if corpus == "ag_news":
        for part in parts:
            for row in part:
                row["description"] = f"{row['title']}. {row['description']}"
    (train, test) = parts
    return (
        [row[text] for row in train], np.array([row[label] for row in train]),
        [row[text] for row in test], np.array([row[label] for row in test]),
    )  # fmt: skip


def _rows(corpus: str, name: str) -> list[dict[str, Any]]:
    with gzip.open(Path(DATA) / corpus / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def _few_labels(corpus: str, n: int, draw: int) -> Iterator[dict[str, Any]]:
    texts, labels, test, truth = _read(corpus)
    rng = np.random.default_rng(draw)
    rows = np.concatenate(
        [rng.choice(np.flatnonzero(labels == one), n, replace=False) for one in np.unique(labels)]
    )
    chosen, y = [texts[row] for row in rows], labels[rows]
    for method, fit in _methods().items():
        begun = time.monotonic(), time.process_time()
        predict = fit(chosen, y)
        seconds, cpu = time.monotonic() - begun[0], time.process_time() - begun[1]
        accuracy = float(np.mean(np.asarray(predict(test)) == truth))
        yield {
            "corpus": corpus, "labels_of_a_class": n, "draw": draw, "method": method,
            "accuracy": accuracy, "seconds": seconds, "cpu_seconds": cpu,
        }  # fmt: skip


def _methods() -> dict[str, Callable[[list[str], np.ndarray], Any]]:
    from embedtopics.classification import TextClassifier

    def ours(encoder: str, method: str) -> Callable[[list[str], np.ndarray], Any]:
        return lambda texts, y: TextClassifier(
            encoder, method, calibration=None
        ).fit(texts, y).predict  # fmt: skip

    methods = {
        "TF-IDF": ours("tfidf", "frozen"),
        "frozen": ours(ENCODER, "frozen"),
        "few_shot": ours(ENCODER, "few_shot"),
    }
    try:
        import setfit  # noqa: F401
    except ImportError:
        return methods
    return {**methods, "SetFit 1.2": _setfit}


def _setfit(texts: list[str], y: np.ndarray) -> Any:
    """Train with the same encoder and SetFit's pairs: ten of each text, five alike, five not."""
    from datasets import Dataset
    from setfit import SetFitModel, Trainer, TrainingArguments

    from embedtopics.encoders import SentenceEncoder

    folder = str(SentenceEncoder(ENCODER).recipe.checkpoint.folder)
    names = np.unique(y)
    model = SetFitModel.from_pretrained(folder, local_files_only=True)
    arguments = TrainingArguments(
        output_dir=tempfile.mkdtemp(),
        batch_size=16,
        num_epochs=1,
        num_iterations=5,
        report_to="none",
        show_progress_bar=False,
    )
    data = Dataset.from_dict({"text": texts, "label": np.searchsorted(names, y).tolist()})
    Trainer(model=model, args=arguments, train_dataset=data).train()
    return lambda test: names[np.asarray(model.predict(test, as_numpy=True))]


def render(result: Mapping[str, Any]) -> str:
    """Return two tables: few labels, and intervals of shares."""
    found = result["few_labels"]
    methods = list(dict.fromkeys(one["method"] for one in found))
    rows = []
    for corpus, n in dict.fromkeys((o["corpus"], o["labels_of_a_class"]) for o in found):
        cells = [corpus, str(n)]
        draws, times = 0, {}
        for method in methods:
            of = [o for o in found if (o["corpus"], o["labels_of_a_class"], o["method"])
                  == (corpus, n, method)]  # fmt: skip
            draws = max(draws, len(of))
            reached = [o["accuracy"] for o in of]
            spread = f" ± {100 * np.std(reached, ddof=1):.1f}" if len(of) > 1 else ""
            seconds = np.mean([o["cpu_seconds"] for o in of])
            cells.append(f"{np.mean(reached):.1%}{spread} ({seconds:,.1f} s)" if of else "")
            times[method] = float(np.sum([o["cpu_seconds"] for o in of]))
        ratio = times.get("SetFit 1.2", np.nan) / times["few_shot"]
        rows.append([*cells, f"{ratio:.1f}", str(draws)])
    few = markdown_table(
        ["corpus", "labels of a class", *methods, "SetFit's time / few_shot's", "draws"], rows
    )
    shares = markdown_table(
        ["labels", "prevalence", "n", "accuracy", "coverage of 95 %", "width beside labels alone"],
        [
            [one["design"], f"{one['prevalence']:.0%}", str(one["n_labels"]),
             f"{one['accuracy']:.0%}", f"{one['coverage']:.1%}",
             f"{one['width_beside_labels_alone']:.2f}"]
            for one in result["shares"]
        ],
    )  # fmt: skip
    return (
        f"Accuracy on {result['n_test']} test texts (mean ± deviation of the draws), and CPU "
        "seconds to fit, all-MiniLM-L6-v2:\n\n"
        f"{few}\n\nIntervals of shares over {result['shares'][0]['n_draws']} draws of labels and of"
        f" 5,000 other texts, whose classifier has such an accuracy at even shares:\n\n{shares}"
    )
