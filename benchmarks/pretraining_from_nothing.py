"""A small BERT from nothing: vocabulary, hidden words, next sentences; then few labels."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.classification import _read
from benchmarks.corpora import _read_rows
from benchmarks.jobs import EMBEDTOPICS, ROOT, run_python
from benchmarks.options import Options
from benchmarks.rendering import markdown_table

__all__ = ["measure", "render"]

SCRIPT = ROOT / "benchmarks" / "systems" / "model_from_nothing.py"
N_ARTICLES, N_ABSTRACTS, N_HELD_OUT = 600, 6000, 60
RUN = {"batch": 16, "length": 128, "learning_rate": 1e-3, "seed": 1}
STEPS, MOST_STEPS = 150, 700
"""Of both systems side by side; and of the run whose model is then used."""

VOCABULARY, LAYERS, WIDTH = 8000, 4, 256
CORPORA, N_LABELS, DRAWS = ("trec_questions", "ag_news"), (8, 16, 64), 2
MASKS, MASK_STEPS = ("random", "whole_word", "span", "selective"), 60


def measure(options: Options) -> dict[str, Any]:
    """Learn in both systems from the same weights; go on; then give the model few labels."""
    from embedtopics.pretraining import new_encoder, train_tokenizer

    texts, held_out = _texts(20 if options.quick else 1)
    systems: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "texts.json").write_text(json.dumps({"learned": texts, "held_out": held_out}))
        tokenizer = train_tokenizer(texts, "wordpiece", vocab_size=VOCABULARY)
        new_encoder(tokenizer, n_layers=LAYERS, dimensions=WIDTH, out=folder / "start")

        def run(system: str, out: str, steps: int, **more: Any) -> dict[str, Any]:
            file, steps = folder / "job.json", 10 if options.quick else steps
            job = {**RUN, "system": system, "steps": steps, "start": str(folder / "start"), **more}
            job |= {"texts": str(folder / "texts.json"), "out": str(folder / out)}
            file.write_text(json.dumps(job))
            found = json.loads(run_python(EMBEDTOPICS, str(SCRIPT), str(file)).splitlines()[-1])
            print(f"  {out}: {found}", file=sys.stderr)
            return {"steps": steps, **found}

        for system in ("embedtopics", "transformers"):
            systems[system] = run(system, system, STEPS)
        systems["embedtopics, longer"] = run("embedtopics", "longer", MOST_STEPS)
        go_on = {"start": str(folder / "longer"), "learning_rate": 3e-4, "seed": 2}
        masks = {
            mask: run("embedtopics", mask, MASK_STEPS, masking=mask, objective="mlm", **go_on)
            for mask in MASKS
        }
        models = {
            "TF-IDF, logistic regression": "tfidf",
            "random weights": str(folder / "start"),
            "pre-trained": str(folder / "longer"),
        }
        few = _few_labels(models, *((N_LABELS[:1], 1) if options.quick else (N_LABELS, DRAWS)))
    counts = {"n_texts": len(texts), "n_held_out": len(held_out)}
    return {"run": RUN, **counts, "systems": systems, "masks": masks, "few_labels": few}


def _texts(part: int) -> tuple[list[str], list[str]]:
    """Return articles of Wikipedia and abstracts of arXiv, and held-out ones."""
    texts, held_out = [], []
    for file, column, n in (
        ("enwiki_2015_sample/articles.jsonl.gz", "text", N_ARTICLES),
        ("arxiv_abstracts/arxiv_abstracts.jsonl.gz", "abstract", N_ABSTRACTS),
    ):
        rows = _read_rows(file)
        n_held_out = max(3, N_HELD_OUT * n // N_ABSTRACTS // 2)
        order = np.random.default_rng(0).permutation(len(rows))[: n // part]
        chosen = [rows[place][column] for place in order]
        texts += chosen[n_held_out:]
        held_out += chosen[:n_held_out]
    return texts, held_out


def _few_labels(
    models: Mapping[str, str], sizes: Sequence[int], n_draws: int
) -> list[dict[str, Any]]:
    """Return the accuracy of each model with few labels, fine-tuned; of TF-IDF, as it is."""
    from embedtopics import TextClassifier

    found = []
    for corpus in CORPORA:
        texts, labels, test, truth = _read(corpus)
        for n in sizes:
            for draw in range(n_draws):
                rng = np.random.default_rng(draw)
                rows = np.concatenate([
                    rng.permutation(np.flatnonzero(labels == one))[:n] for one in np.unique(labels)
                ])  # fmt: skip
                for name, encoder in models.items():
                    tuned: dict[str, Any] = {"method": "frozen"}
                    if encoder != "tfidf":
                        # Few texts, small models: more steps than the defaults, the same for all.
                        steps = {"epochs": 10.0, "learning_rate": 3e-4}
                        tuned = {"method": "fine_tune", "training": steps}
                    made = TextClassifier(
                        encoder, calibration=None, random_state=draw, **tuned
                    ).fit([texts[row] for row in rows], labels[rows])
                    found.append({
                        "corpus": corpus, "labels_of_a_class": n, "draw": draw, "model": name,
                        "accuracy": float(np.mean(made.predict(test) == truth)),
                    })  # fmt: skip
                    print(f"  {found[-1]}", file=sys.stderr)
    return found


def render(result: Mapping[str, Any]) -> str:
    """Return tables: what was learned without labels, by which masks, and with few labels."""
    run, few = result["run"], result["few_labels"]
    learned = markdown_table(
        ["system", "steps", "masked accuracy", "masked loss", "next sentence, accuracy",
         "processor seconds"],
        [[name, str(one["steps"]), f"{one['masked_accuracy']:.3f}", f"{one['masked_loss']:.2f}",
          f"{one['pair_accuracy']:.3f}", f"{one['processor_seconds']:,.0f}"]
         for name, one in result["systems"].items()],
    )  # fmt: skip
    masks = markdown_table(
        ["masks", "tokens", "loss of words drawn at random", "accuracy", "10-NN accuracy"],
        [[name, f"{one['n_tokens']:,.0f}", f"{one['random_loss'][0]:.3f} to "
          f"{one['random_loss'][1]:.3f}", f"{one['random_accuracy'][1]:.3f}",
          f"{one['neighbors'][0]:.3f} to {one['neighbors'][1]:.3f}"]
         for name, one in result["masks"].items()],
    )  # fmt: skip
    table = []
    cells = dict.fromkeys((one["corpus"], one["labels_of_a_class"]) for one in few)
    for model in dict.fromkeys(one["model"] for one in few):
        row = [model]
        for corpus, n in cells:
            of = [
                one["accuracy"]
                for one in few
                if (one["model"], one["corpus"], one["labels_of_a_class"]) == (model, corpus, n)
            ]
            row.append(", ".join(f"{accuracy:.1%}" for accuracy in of))
        table.append(row)
    header = ["model", *(f"{corpus}, {n} a class" for corpus, n in cells)]
    return "\n\n".join([
        learned,
        f"A BERT of {LAYERS} layers and {WIDTH} dimensions with a WordPiece vocabulary of "
        f"{VOCABULARY:,}, both learned from {result['n_texts']:,} texts (articles of Wikipedia and "
        f"abstracts of arXiv): {run['batch']} blocks of at most {run['length']} tokens a step, one "
        f"thread, one seed; {result['n_held_out']} other texts held out, the same hidden words and "
        "pairs for both.",
        masks,
        "The longer run gone on with each mask, at equal steps; before and after. The loss is that "
        "of the same words of held-out texts, drawn at random, whatever was learned from.",
        markdown_table(header, table),
        "Accuracy on 500 test texts with few labels, draw by draw; the networks are fine-tuned "
        "whole.",
    ])  # fmt: skip
