"""Train an encoder in a fresh process, with embedtopics or with sentence-transformers' trainer.

Started as ``python train_encoder.py JOB.json``; prints one line of JSON. The job::

    system      "embedtopics" or "sentence-transformers"
    objective   "cosine", "cosent", "softmax", "ranking" or "pairs"
    encoder     name or folder to start from
    train, dev  {"kind", "columns", "labels", "names"}
    out         folder for the tuned encoder
    settings    of `TrainingSettings`; the trainer reads those that both know
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["main"]


def main() -> None:
    """Train, and say how it went."""
    job = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    trained = _embedtopics(job) if job["system"] == "embedtopics" else _trainer(job)
    print(json.dumps(trained))


def examples_of(content: dict[str, Any]) -> Any:
    """Return examples as the package takes them."""
    from embedtopics.training import Examples

    columns = tuple(tuple(column) for column in content["columns"])
    labels = content.get("labels")
    array = None
    if labels is not None:
        array = np.asarray(labels, np.int64 if content["kind"] == "nli" else np.float64)
    names = tuple(content.get("names", ()))
    return Examples(content["kind"], columns, array, np.arange(len(columns[0])), names, "benchmark")


def _embedtopics(job: dict[str, Any]) -> dict[str, Any]:
    from embedtopics import training

    train, dev = examples_of(job["train"]), examples_of(job["dev"])
    objective = job["objective"]
    if objective == "pairs":
        objective = "ranking"
    began = time.perf_counter()
    report = training.fit(
        job["encoder"], train, objective, validation=dev, out=job["out"], resume=False,
        settings={"random_state": 42, "show_progress": False, **job["settings"]},
    )  # fmt: skip
    curves = report.curves
    return {
        "seconds": report.seconds,
        "examples_per_second": report.examples_per_second,
        "wall_seconds": time.perf_counter() - began,
        "n_steps": report.n_steps,
        "best_step": report.best_step,
        "n_learned_from": report.data["n_learned_from"],
        "metric": curves.metric.round(5).tolist(),
        "metric_name": curves.metric_name,
        "verdict": report.diagnosis.verdict,
        "confidence": report.diagnosis.confidence,
    }


def _trainer(job: dict[str, Any]) -> dict[str, Any]:
    """Do the same with sentence-transformers alone, in its own way."""
    from datasets import Dataset
    from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer
    from sentence_transformers.sentence_transformer import losses

    settings = job["settings"]
    model = SentenceTransformer(_folder_of(job["encoder"]), device="cpu")
    if settings.get("max_length"):
        model.max_seq_length = settings["max_length"]
    first, second = job["train"]["columns"]
    data = Dataset.from_dict({"a": first, "b": second, "score": job["train"]["labels"]})
    n_steps = round(settings["epochs"] * -(-len(data) // settings["batch_size"]))
    measured: list[float] = []
    spent: list[float] = []
    chosen = {"cosine": losses.CosineSimilarityLoss, "cosent": losses.CoSENTLoss}
    trainer = SentenceTransformerTrainer(
        model=model, args=_arguments(job, n_steps), train_dataset=data,
        evaluator=_timed_evaluator(job["dev"], measured, spent),
        loss=chosen[job["objective"]](model),
    )  # fmt: skip
    saving = _time_saving(trainer)
    began = time.perf_counter()
    trainer.train()
    wall = time.perf_counter() - began
    seconds = wall - sum(spent) - sum(saving)
    model.save(job["out"], create_model_card=False)
    return {
        "seconds": seconds,
        "examples_per_second": len(data) * settings["epochs"] / seconds,
        "wall_seconds": wall,
        "n_steps": n_steps,
        "metric": [round(float(value), 5) for value in measured],
    }


def _arguments(job: dict[str, Any], n_steps: int) -> Any:
    """Return the trainer's arguments for a job."""
    from sentence_transformers import SentenceTransformerTrainingArguments

    settings = job["settings"]
    every = max(1, round(n_steps / (settings["epochs"] * settings["validations_per_epoch"])))
    return SentenceTransformerTrainingArguments(
        output_dir=f"{job['out']}.checkpoints",
        num_train_epochs=settings["epochs"],
        per_device_train_batch_size=settings["batch_size"],
        learning_rate=settings["learning_rate"],
        weight_decay=0.01,
        warmup_steps=-(-n_steps // 10),
        bf16=settings.get("precision") == "bfloat16",
        seed=settings["seed"],
        use_cpu=True,
        eval_strategy="steps",
        eval_steps=every,
        save_strategy="steps",
        save_steps=every,
        save_total_limit=1,
        load_best_model_at_end=True,
        metric_for_best_model="eval_dev_spearman_cosine",
        report_to="none",
        disable_tqdm=True,
        logging_strategy="no",
    )


def _timed_evaluator(dev: dict[str, Any], measured: list[float], spent: list[float]) -> Any:
    """Return an evaluator that notes each figure, and the seconds it took."""
    from sentence_transformers.sentence_transformer.evaluation import EmbeddingSimilarityEvaluator

    class Timed(EmbeddingSimilarityEvaluator):
        def __call__(self, *arguments: Any, **named: Any) -> Any:
            began = time.perf_counter()
            found = super().__call__(*arguments, **named)
            spent.append(time.perf_counter() - began)
            measured.append(found["dev_spearman_cosine"])
            return found

    return Timed(*dev["columns"], dev["labels"], name="dev")


def _time_saving(trainer: Any) -> list[float]:
    spent: list[float] = []
    original = trainer._save_checkpoint

    def timed(*arguments: Any, **named: Any) -> Any:
        began = time.perf_counter()
        try:
            return original(*arguments, **named)
        finally:
            spent.append(time.perf_counter() - began)

    trainer._save_checkpoint = timed
    return spent


def _folder_of(name: str) -> str:
    """Return the folder of a checkpoint that the package finds by name."""
    from embedtopics import SentenceEncoder

    return str(SentenceEncoder(name).recipe.checkpoint.folder)


if __name__ == "__main__":
    main()
