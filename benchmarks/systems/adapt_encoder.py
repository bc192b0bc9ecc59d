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
    from embedtopics.pretraining import pretrain
    from embedtopics.training import compare_before_after

    job = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    begun, used = time.perf_counter(), time.process_time()
    result = pretrain(
        job["encoder"], job["learned"], validation=job["held_out"], out=job["out"],
        patience=None, sample_size=0, precision="float32", show_progress=False, **job["settings"],
    )  # fmt: skip
    seconds, processor = time.perf_counter() - begun, time.process_time() - used
    changes = compare_before_after(
        job["encoder"], result.encoder, corpus=job["texts"], classes=job["classes"],
        test={"titles by abstract": examples_of(job["pairs"])},
        general={"STS-B test": examples_of(job["general"])},
    )  # fmt: skip
    report = result.report
    print(json.dumps({
        "seconds": seconds, "processor_seconds": processor, "n_steps": report.n_steps,
        "best_step": report.best_step, "verdict": result.diagnosis.verdict,
        "decisions": [decision.message for decision in report.decisions],
        "changes": [asdict(change) for change in (*report.before_after, *changes)],
    }))  # fmt: skip


if __name__ == "__main__":
    main()
