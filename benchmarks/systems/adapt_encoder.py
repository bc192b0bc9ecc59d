"""Pre-train an encoder further, and compare it with before: ``python ... JOB.json``."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict
from pathlib import Path

from train_encoder import examples_of


def main() -> None:
    """Do the job, and print what came of it."""
    from embedtopics.pretraining import (
        SelectiveMasking,
        extend_vocabulary,
        pretrain,
        tokenizer_report,
    )
    from embedtopics.training._compare import compare_before_after

    job = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    begun, used = time.perf_counter(), time.process_time()
    encoder, masking = job["encoder"], "random"
    if job["n_words"]:
        out = f"{job['out']}-words"
        made = extend_vocabulary(encoder, corpus=job["learned"], n_words=job["n_words"], out=out)
        encoder = made.encoder
    if job["terms_of"]:
        masking = SelectiveMasking.of_corpus(job["learned"], job["terms_of"])
    fertility = [
        tokenizer_report(one, job["held_out"]).fertility for one in (job["encoder"], encoder)
    ]
    result = pretrain(
        encoder, job["learned"], masking, validation=job["held_out"], out=job["out"],
        settings={
            "patience": None, "sample_size": 0, "precision": "float32", "show_progress": False,
            "random_state": 42, **job["settings"],
        },
    )  # fmt: skip
    seconds, processor = time.perf_counter() - begun, time.process_time() - used
    changes = compare_before_after(
        job["encoder"], result.encoder, corpus=job["texts"], labels=job["classes"],
        test={"titles by abstract": examples_of(job["pairs"])} if job["pairs"] else None,
        general={"STS-B test": examples_of(job["general"])},
    )  # fmt: skip
    report = result.report
    print(json.dumps({
        "fertility": fertility, "seconds": seconds, "processor_seconds": processor,
        "n_steps": report.n_steps,
        "best_step": report.best_step, "verdict": result.diagnosis.verdict,
        "decisions": [decision.message for decision in report.decisions],
        "changes": report.before_after.to_dict("records") + [asdict(change) for change in changes],
    }))  # fmt: skip


if __name__ == "__main__":
    main()
