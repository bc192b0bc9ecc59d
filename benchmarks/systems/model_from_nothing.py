"""Pre-train a small BERT in one of two systems, with hidden words and next sentences."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np


def main() -> None:
    """Do the job, and print what came of it."""
    import torch

    torch.set_num_threads(1)
    job = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    texts = json.loads(Path(job["texts"]).read_text("utf-8"))
    run = {"embedtopics": ours, "transformers": theirs}[job["system"]]
    begun = time.process_time()
    found = run(job, texts["learned"], texts["held_out"])
    print(json.dumps({"processor_seconds": time.process_time() - begun, **found}))


def settings_of(job: dict[str, Any]) -> dict[str, Any]:
    """Return what both systems train with."""
    return {"max_steps": job["steps"], "learning_rate": job["learning_rate"], "weight_decay": 0.01}


def ours(job: dict[str, Any], learned: list[str], held_out: list[str]) -> dict[str, Any]:
    """Pre-train with this package; with a masking, measured on words drawn at random."""
    from embedtopics.pretraining import pretrain

    objective = job.get("objective", "mlm+nsp")
    masking = job.get("masking", "random")
    result = pretrain(
        job["start"], learned, masking_of(masking, learned), objective=objective,
        validation=held_out, out=job["out"], keep_geometry=False,
        settings={
            "batch_size": job["batch"], "max_seq_length": job["length"], "patience": None,
            "sample_size": 0, "precision": "float32", "random_state": job["seed"],
            "show_progress": False, "validations_per_epoch": 0.01, **settings_of(job),
        },
    )  # fmt: skip
    report = result.report
    n_tokens = report.data["n_tokens"] / report.data["n_learned_from"] * job["batch"] * job["steps"]
    found = {"n_tokens": n_tokens, "verdict": result.diagnosis.verdict}
    if "masking" in job:
        ends = [measured_at_random(job, folder, held_out) for folder in (job["start"], job["out"])]
        names = ("random_loss", "random_accuracy", "neighbors")
        return found | dict(zip(names, zip(*ends, strict=True), strict=True))
    kept = result.held_out["after"]
    names = {"masked_accuracy": "accuracy", "masked_loss": "loss",
             "pair_accuracy": "pair accuracy"}  # fmt: skip
    return found | {name: float(kept[row]) for name, row in names.items()}


def masking_of(name: str, texts: list[str]) -> Any:
    """Return a masking by name; the words of "selective" are those that abstracts say often."""
    from embedtopics.pretraining import SelectiveMasking

    if name != "selective":
        return name
    is_article = ["encyclopedia" if "\n" in text else "science" for text in texts]
    return SelectiveMasking.of_corpus(texts, is_article)


def measured_at_random(
    job: dict[str, Any], encoder: str, held_out: list[str]
) -> tuple[float, float, float]:
    """Return loss and accuracy of words drawn at random, and of categories by ten neighbors."""
    from sklearn.model_selection import cross_val_score
    from sklearn.neighbors import KNeighborsClassifier

    from benchmarks.corpora import _read_rows
    from embedtopics import SentenceEncoder

    data, held = prepared({**job, "seed": 0}, encoder, held_out, held_out, "mlm")
    loss, accuracy = data.measure(data.batch_encoder(4096), held, 16)
    rows = _read_rows("arxiv_abstracts/arxiv_abstracts.jsonl.gz")[-2000:]
    vectors = SentenceEncoder(encoder).encode([row["title"] for row in rows], show_progress=False)
    classes = np.array([row["primary_cat"] for row in rows])
    by_neighbors = KNeighborsClassifier(10, metric="cosine")
    return loss, accuracy, float(cross_val_score(by_neighbors, vectors, classes).mean())


def theirs(job: dict[str, Any], learned: list[str], held_out: list[str]) -> dict[str, Any]:
    """Pre-train `BertForPreTraining` with transformers' Trainer, on pairs that are drawn once."""
    import torch
    from transformers import (
        AutoTokenizer,
        BertForPreTraining,
        DataCollatorForLanguageModeling,
        Trainer,
        TrainingArguments,
    )

    data, held = prepared(job, job["start"], learned, held_out)
    assert data.segments is not None
    rng = np.random.default_rng(job["seed"])
    # As many pairs as there are steps for: no more would be read.
    most = job["steps"] * job["batch"]
    chosen = data.examples.take(rng.permutation(len(data.examples))[:most])
    pairs = data.segments.draw(chosen, data.examples, [rng] * len(chosen))
    blocks = [
        {"input_ids": one.ids.tolist(), "next_sentence_label": label,
         "token_type_ids": [int(place >= begin) for place in range(len(one))]}
        for one, begin, label in zip(pairs.tokens, pairs.begins, pairs.labels, strict=True)
    ]  # fmt: skip
    tokenizer = AutoTokenizer.from_pretrained(job["start"])
    torch.manual_seed(job["seed"])
    model = BertForPreTraining.from_pretrained(job["start"])
    arguments = TrainingArguments(
        output_dir=job["out"], per_device_train_batch_size=job["batch"], use_cpu=True,
        warmup_steps=int(np.ceil(0.1 * job["steps"])), lr_scheduler_type="linear",
        save_strategy="no", logging_strategy="no", report_to="none", disable_tqdm=True,
        seed=job["seed"], dataloader_pin_memory=False, **settings_of(job),
    )  # fmt: skip
    collator = DataCollatorForLanguageModeling(tokenizer, mlm_probability=0.15, seed=job["seed"])
    Trainer(model, arguments, collator, blocks).train()
    # The encoder, and the head for hidden words, as the other system saves them.
    from transformers import BertForMaskedLM

    plain = BertForMaskedLM(model.config)
    plain.load_state_dict(model.state_dict(), strict=False)
    plain.save_pretrained(job["out"])
    tokenizer.save_pretrained(job["out"])
    data, held = prepared(job, job["out"], learned[:50], held_out)
    pair = data.loss.pair
    pair.pooler.load_state_dict(model.bert.pooler.dense.state_dict())
    pair.scores.load_state_dict(model.cls.seq_relationship.state_dict())
    found = data.scores(data.batch_encoder(4096), held)
    of = {kind: one.n_predicted.sum() for kind, one in found.items()}
    return {
        "masked_accuracy": float(found["masked"].n_right.sum() / of["masked"]),
        "masked_loss": float(found["masked"].loss.sum() / of["masked"]),
        "pair_accuracy": float(found["pair"].n_right.sum() / of["pair"]),
    }


def prepared(
    job: dict[str, Any],
    encoder: str,
    learned: list[str],
    held_out: list[str],
    objective: str = "mlm+nsp",
) -> Any:
    """Return blocks to learn from and held-out ones, as this package makes and hides them."""
    from embedtopics.pretraining._masking import RandomMasking
    from embedtopics.pretraining._pretrain import _prepare
    from embedtopics.training._settings import TrainingSettings

    settings = TrainingSettings(
        random_state=job["seed"], precision="float32", max_seq_length=job["length"]
    )
    found = _prepare(encoder, learned, held_out, RandomMasking(), settings, objective)
    return found.data, found.held


if __name__ == "__main__":
    main()
