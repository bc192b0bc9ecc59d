"""Classifiers: few labels, all weights and words beside peers, and intervals of shares."""

from __future__ import annotations

import datetime
import gzip
import json
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import classification_pairs, classification_training
from benchmarks.corpora import DATA
from benchmarks.machine import describe_machine
from benchmarks.options import Options
from benchmarks.rendering import markdown_table

__all__ = ["measure", "render"]

ENCODER = "all-MiniLM-L6-v2"
RESULT = Path(__file__).parent / "results" / "classification.json"
N_TEST = 500
CORPORA = ("sst2", "subjectivity", "trec_questions", "ag_news")
SECONDS, SETFIT_SECONDS = 1_200, 600
"""No further draw of few labels begins after so long, on one thread of a machine that is shared."""

OURS = ("TF-IDF", "frozen", "few_shot")
DRAWS = {8: 10, 16: 3, 64: 2}
"""By labels of a class."""

SIMULATED = [
    (p, n, accuracy) for p, n in ((0.5, 200), (0.02, 500)) for accuracy in (0.6, 0.8, 0.95)
]


def measure(options: Options) -> dict[str, Any]:
    """Measure the sections that were asked for; others stay as they were measured."""
    kept: dict[str, Any] = {}
    if options.sections and not options.quick and RESULT.exists():
        kept = json.loads(RESULT.read_text("utf-8"))["sections"]
    for name in options.sections or SECTIONS:
        rows = list(SECTIONS[name](options.quick))
        about = {"date": datetime.date.today().isoformat(), "machine": describe_machine()}
        kept[name] = {**about, "rows": rows}
    return {"sections": {name: kept[name] for name in SECTIONS if name in kept}, "n_test": N_TEST}


def _shares(quick: bool) -> Iterator[dict[str, Any]]:
    """Simulate labels of a random sample and of known chances, and classifiers."""
    from tests.classification.test_prevalence import covered

    n_draws = 20 if quick else 500
    for by_design in (False, True):
        for p, n, accuracy in SIMULATED:
            cover, ratio = covered(p, accuracy, n, n_draws, seed=2, by_design=by_design)
            yield {
                "design": "known chances" if by_design else "random sample", "prevalence": p,
                "n_labels": n, "accuracy": accuracy, "n_draws": n_draws,
                "coverage": float(cover), "width_beside_labels_alone": float(ratio),
            }  # fmt: skip


def _few_labels(
    n: int, n_draws: int, only: tuple[str, ...], quick: bool
) -> Iterator[dict[str, Any]]:
    """Draw few labels and let some of the methods take turns, draw by draw."""
    methods = {name: fit for name, fit in _methods().items() if name in only}
    for fit in methods.values():  # imports are nobody's time
        fit(["ripe plums", "late trains", "sweet pears", "slow trains"], np.array([0, 1, 0, 1]))
    begun = time.process_time()
    most = SETFIT_SECONDS if "SetFit 1.2" in only else SECONDS
    for draw in range(1 if quick else n_draws):
        for corpus in CORPORA[: 1 if quick else None]:
            if time.process_time() - begun < most:
                yield from _one_draw(corpus, n, draw, methods)


def _read(corpus: str) -> tuple[list[str], np.ndarray, list[str], np.ndarray]:
    """Return texts and labels to draw from, and those of the test."""
    keys = {"ag_news": ("description", "label"), "trec_questions": ("text", "coarse"),
            "masakhanews_eng": ("headline", "label")}  # fmt: skip
    text, label = keys.get(corpus, ("text", "label"))
    names = {"ag_news": "train_4000", "subjectivity": "subjectivity", "emotion": "emotion_train",
             "masakhanews_eng": "train_fewshot50"}  # fmt: skip
    folder, tested = ("tweet_eval", "emotion_test") if corpus == "emotion" else (corpus, "test")
    parts = [_rows(folder, names.get(corpus, "train"))]
    if corpus == "subjectivity":
        order = np.random.default_rng(0).permutation(len(parts[0]))
        shuffled = [parts[0][row] for row in order]
        parts = [shuffled[N_TEST:], shuffled[:N_TEST]]
    else:
        parts.append(_rows(folder, tested))
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


def _one_draw(
    corpus: str, n: int, draw: int, methods: Mapping[str, Callable[..., Any]]
) -> Iterator[dict[str, Any]]:
    texts, labels, test, truth = _read(corpus)
    rng = np.random.default_rng(draw)
    rows = np.concatenate(
        [rng.choice(np.flatnonzero(labels == one), n, replace=False) for one in np.unique(labels)]
    )
    chosen, y = [texts[row] for row in rows], labels[rows]
    for method, fit in methods.items():
        begun = time.process_time()
        predict = fit(chosen, y)
        fitted = time.process_time()
        accuracy = float(np.mean(np.asarray(predict(test)) == truth))
        yield {
            "corpus": corpus, "draw": draw, "method": method, "accuracy": accuracy,
            "cpu_seconds": fitted - begun, "predict_cpu_seconds": time.process_time() - fitted,
        }  # fmt: skip


def _methods() -> dict[str, Callable[[list[str], np.ndarray], Any]]:
    from embedtopics import TextClassifier

    def ours(encoder: str, method: str) -> Callable[[list[str], np.ndarray], Any]:
        return lambda texts, y: TextClassifier(
            encoder, method=method, calibration=None
        ).fit(texts, y).predict  # fmt: skip

    return {
        "TF-IDF": ours("tfidf", "frozen"),
        "frozen": ours(ENCODER, "frozen"),
        "few_shot": ours(ENCODER, "few_shot"),
        "SetFit 1.2": _setfit,
    }


def _setfit(texts: list[str], y: np.ndarray) -> Any:
    """Train with the same encoder and SetFit's pairs: ten of each text, five alike, five not."""
    from datasets import Dataset
    from setfit import SetFitModel, Trainer, TrainingArguments

    from embedtopics import SentenceEncoder

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


SECTIONS: dict[str, Callable[[bool], Iterator[dict[str, Any]]]] = {
    **{f"few_labels_{n}": partial(_few_labels, n, DRAWS[n], OURS) for n in DRAWS},
    **{f"setfit_{n}": partial(_few_labels, n, 5, ("few_shot", "SetFit 1.2")) for n in (8, 16)},
    "small": classification_training.small,
    "fine_tune": classification_training.fine_tune,
    "ulmfit": classification_training.ulmfit,
    "words": classification_training.words,
    "pairs": classification_pairs.pairs,
    "pairs_trained": partial(
        classification_pairs.pairs, corpora=("snli_counterfactual",), trained=True
    ),
    "shares": _shares,
}


def render(result: Mapping[str, Any]) -> str:
    """Return a table for each section, and when it was measured."""
    parts = [f"Accuracy is on {result['n_test']} test texts, the encoder all-MiniLM-L6-v2."]
    for name, section in result["sections"].items():
        rows = section["rows"]
        if name.startswith(("few_labels", "setfit")):
            n = name.rpartition("_")[2]
            parts.append(f"{n} labels of a class (mean ± deviation of the draws; in brackets CPU "
                         "seconds to fit, and to predict the test texts):")  # fmt: skip
            parts.append(_few_table(rows))
        elif name in DRAWN:
            parts += [DRAWN[name], _mean_table(rows)]
        else:
            title, columns = TABLES[name]
            cells = [[show(row) for show in columns.values()] for row in rows]
            parts += [title, markdown_table(list(columns), cells)]
        on = " with one ".join(section["machine"][kind] for kind in ("cpu", "gpu")
                               if kind in section["machine"])  # fmt: skip
        parts.append(f"Measured on {section['date']}: {on}.")
    return "\n\n".join(parts)


def _few_table(found: list[dict[str, Any]]) -> str:
    methods = list(dict.fromkeys(one["method"] for one in found))
    rows = []
    for corpus in dict.fromkeys(one["corpus"] for one in found):
        cells, times = [corpus], {}
        for method in methods:
            of = [o for o in found if (o["corpus"], o["method"]) == (corpus, method)]
            reached = [o["accuracy"] for o in of]
            spread = f" ± {100 * np.std(reached, ddof=1):.1f}" if len(of) > 1 else ""
            fit, more = (
                np.mean([o[f"{kind}cpu_seconds"] for o in of]) for kind in ("", "predict_")
            )
            cells.append(f"{np.mean(reached):.1%}{spread} ({fit:,.1f} + {more:,.1f} s)")
            times[method] = fit, fit + more
        cells.append(str(len(of)))
        if "SetFit 1.2" in times:
            both = zip(times["SetFit 1.2"], times["few_shot"], strict=True)
            cells.append(" and ".join(f"{theirs / ours:.1f}" for theirs, ours in both))
        rows.append(cells)
    more = ["SetFit's time to fit, and to fit and predict, beside few_shot's"]
    header = ["corpus", *methods, "draws", *(more if "SetFit 1.2" in methods else [])]
    return markdown_table(header, rows)


def _mean_table(rows: list[dict[str, Any]]) -> str:
    """Return the mean of the draws, and in brackets the least and the largest, by method."""
    score = "macro_f1" if "macro_f1" in rows[0] else "accuracy"
    by_case: dict[tuple[Any, ...], dict[str, list[float]]] = {}
    for row in rows:
        case = by_case.setdefault((row.get("corpus", "trec_questions"), row.get("n", 320)), {})
        case.setdefault(row.get("method", row.get("options")), []).append(row[score])
    methods = list(dict.fromkeys(name for case in by_case.values() for name in case))
    cells = [
        [corpus, str(n), *(_spread(case[name]) if name in case else "" for name in methods)]
        for (corpus, n), case in by_case.items()
    ]
    return markdown_table(["corpus", "labels", *methods], cells)


def _spread(scores: list[float]) -> str:
    ends = f" ({min(scores):.3f} to {max(scores):.3f})" if len(scores) > 1 else ""
    return f"{np.mean(scores):.3f}{ends}"


def _interval(row: Mapping[str, Any], name: str) -> str:
    return f"{row[name]:.3f} [{row['low']:.3f}, {row['high']:.3f}]"


DRAWN = {
    "small": "Macro F1 of up to 300 test texts after so many labels of a random sample: mean of "
    "three draws, in brackets least and largest. Numbers without brackets are one draw.",
    "ulmfit": "ULMFiT's options at a peak rate of 1e-4, 40 steps: accuracy of three draws.",
}
Shown = tuple[str, dict[str, Callable[[Mapping[str, Any]], str]]]
PAIRS: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "corpus": lambda row: row["corpus"],
    "draw": lambda row: str(row["seed"]),
    "method": lambda row: row["method"],
    "accuracy": lambda row: f"{row['accuracy']:.3f}",
    "macro F1": lambda row: f"{row['macro_f1']:.3f}",
    "CPU s": lambda row: f"{row['cpu_seconds']:.0f}",
}
TABLES: dict[str, Shown] = {
    "pairs": (
        "Classes of two texts after 600 labelled pairs; TF-IDF of both reads them as one text:",
        PAIRS,
    ),
    "pairs_trained": (
        "The first draw by 60 steps of 16 pairs at a peak rate of 1e-4. CrossEncoder is that of "
        "sentence-transformers, from the same checkpoint:",
        PAIRS,
    ),
    "fine_tune": (
        "All weights at equal steps, beside transformers' Trainer; both measure 100 other texts "
        "once an epoch and keep the best weights:",
        {
            "corpus": lambda row: row["corpus"],
            "method": lambda row: row["method"],
            "seed": lambda row: str(row["seed"]),
            "steps": lambda row: str(row["n_steps"]),
            "accuracy": lambda row: f"{row['accuracy']:.1%}",
            "examples a CPU second": lambda row: f"{row['n_examples'] / row['cpu_seconds']:.1f}",
        },
    ),
    "words": (
        "Words: the share of right tags on ud_english_ewt, F1 of entities on wnut17; "
        '"transformers" is a plain loop with the same rates, steps and batches:',
        {
            "corpus": lambda row: row["corpus"],
            "method": lambda row: row["method"],
            "sentences": lambda row: str(row["n_train"]),
            "F1": lambda row: _interval(row, "f1"),
            "CPU s": lambda row: f"{row['cpu_seconds']:.0f}",
        },
    ),
    "shares": (
        "Intervals of shares over 500 draws of labels and of 5,000 other texts, whose classifier "
        "has such an accuracy at even shares:",
        {
            "labels": lambda row: row["design"],
            "prevalence": lambda row: f"{row['prevalence']:.0%}",
            "n": lambda row: str(row["n_labels"]),
            "accuracy": lambda row: f"{row['accuracy']:.0%}",
            "coverage of 95 %": lambda row: f"{row['coverage']:.1%}",
            "width beside labels alone": lambda row: f"{row['width_beside_labels_alone']:.2f}",
        },
    ),
}
