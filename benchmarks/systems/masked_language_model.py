"""Pre-train a small BERT in one of two systems; started with a job file, prints its figures."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np


def main() -> None:
    """Do the job, and print what came of it."""
    import torch
    from transformers import AutoTokenizer, BertConfig, BertForMaskedLM

    from embedtopics import SentenceEncoder

    torch.set_num_threads(1)
    job = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    start = Path(job["folder"]) / "start"
    tokenizer = AutoTokenizer.from_pretrained(SentenceEncoder().recipe.checkpoint.folder)
    torch.manual_seed(job["seed"])
    config = BertConfig(
        vocab_size=len(tokenizer), hidden_size=256, num_hidden_layers=4, num_attention_heads=4,
        intermediate_size=1024, max_position_embeddings=job["length"],
    )  # fmt: skip
    BertForMaskedLM(config).save_pretrained(start)
    tokenizer.model_max_length = job["length"]
    tokenizer.save_pretrained(start)
    run = ours if job["system"] == "embedtopics" else theirs
    found = run(job, start, tokenizer)
    print(json.dumps({
        "system": job["system"], "seed": job["seed"], "steps": job["steps"],
        "seconds": found.seconds, "processor_seconds": found.processor_seconds,
        "tokens_per_second": found.n_tokens / found.seconds,
        "tokens_per_processor_second": found.n_tokens / found.processor_seconds,
        "training_loss": [round(loss, 4) for loss in found.losses],
        "loss": held_out_loss(job, Path(job["folder"]) / "out"),
    }))  # fmt: skip


class Trained(NamedTuple):
    """What the steps took, and the loss of each."""

    seconds: float
    processor_seconds: float
    n_tokens: float
    losses: list[float]


def parts_of(job: dict[str, Any]) -> tuple[list[str], list[str]]:
    """Return texts to learn from, and held-out ones."""
    return job["texts"][100:], job["texts"][:100]


def settings_of(job: dict[str, Any]) -> dict[str, Any]:
    """Return what both systems train with."""
    return {
        "max_steps": job["steps"], "learning_rate": 1e-3, "weight_decay": 0.01,
    }  # fmt: skip


def ours(job: dict[str, Any], start: Path, tokenizer: Any) -> Trained:
    """Pre-train with this package; its seconds are those of the steps."""
    from embedtopics.pretraining import pretrain
    from embedtopics.training.trainer import _running

    _running.LEAST_VALIDATIONS = 1
    used: list[float] = []

    class Clock:
        """Reads the processor's clock where the run reads the time: at the ends of steps."""

        def perf_counter(self) -> float:
            used.append(time.process_time())
            return time.perf_counter()

    _running.time = Clock()  # type: ignore[assignment]
    learned, held_out = parts_of(job)
    out = Path(job["folder"]) / "out"
    result = pretrain(
        start, learned, validation=held_out, out=out,
        settings={
            "batch_size": job["batch"], "patience": None, "sample_size": 0,
            "precision": "float32", "random_state": job["seed"], "show_progress": False,
            "validations_per_epoch": 0.01, **settings_of(job),
        },
    )  # fmt: skip
    report = result.report
    of_block = report.data["n_tokens"] / report.data["n_learned_from"]
    processor = sum(end - begin for begin, end in zip(used[::2], used[1::2], strict=False))
    n_tokens = of_block * job["batch"] * report.n_steps
    return Trained(report.seconds, processor, n_tokens, report.curves.training_loss.tolist())


def theirs(job: dict[str, Any], start: Path, tokenizer: Any) -> Trained:
    """Pre-train with transformers' Trainer, its collator padding each batch."""
    from transformers import (
        BertForMaskedLM,
        DataCollatorForLanguageModeling,
        Trainer,
        TrainerCallback,
        TrainingArguments,
    )

    learned, _ = parts_of(job)
    read = tokenizer(
        learned, truncation=True, max_length=job["length"], return_special_tokens_mask=True,
        return_overflowing_tokens=True,
    )  # fmt: skip
    names = ("input_ids", "attention_mask", "special_tokens_mask")
    blocks = [
        dict(zip(names, row, strict=True)) for row in zip(*(read[n] for n in names), strict=True)
    ]
    n_tokens = float(np.mean([len(block["input_ids"]) for block in blocks]))
    moments: list[tuple[float, float]] = []
    losses: list[float] = []

    class Clock(TrainerCallback):
        def on_step_begin(self, *_: Any, **__: Any) -> None:
            moments.append((time.perf_counter(), time.process_time()))

        def on_step_end(self, *_: Any, **__: Any) -> None:
            moments.append((time.perf_counter(), time.process_time()))

        def on_log(self, *_: Any, logs: Any = None, **__: Any) -> None:
            losses.extend([logs["loss"]] if "loss" in logs else [])

    arguments = TrainingArguments(
        output_dir=job["folder"], per_device_train_batch_size=job["batch"], use_cpu=True,
        warmup_steps=int(np.ceil(0.1 * job["steps"])), lr_scheduler_type="linear",
        save_strategy="no", logging_strategy="steps", logging_steps=1, report_to="none",
        disable_tqdm=True,
        seed=job["seed"], dataloader_pin_memory=False, **settings_of(job),
    )  # fmt: skip
    collator = DataCollatorForLanguageModeling(tokenizer, mlm_probability=0.15, seed=job["seed"])
    trainer = Trainer(
        BertForMaskedLM.from_pretrained(start), arguments, collator, blocks, callbacks=[Clock()]
    )
    trainer.train()
    out = Path(job["folder"]) / "out"
    trainer.save_model(out)
    tokenizer.save_pretrained(out)
    wall, processor = (last - first for first, last in zip(moments[0], moments[-1], strict=True))
    return Trained(wall, processor, n_tokens * job["batch"] * job["steps"], losses)


def held_out_loss(job: dict[str, Any], folder: Path) -> float:
    """Return the loss under fixed masks, measured by the same code for both."""
    from embedtopics import SentenceEncoder
    from embedtopics.pretraining._masking import RandomMasking
    from embedtopics.pretraining._pretrain import _prepare
    from embedtopics.training._settings import TrainingSettings

    texts, settings = parts_of(job)[1], TrainingSettings(random_state=0, precision="float32")
    encoder = SentenceEncoder(folder, precision="float32")
    prepared = _prepare(encoder, texts, texts, RandomMasking(), settings)
    return prepared.data.measure(prepared.data.batch_encoder(4096), prepared.held, 16)[0]


if __name__ == "__main__":
    main()
