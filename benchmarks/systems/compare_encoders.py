"""Compare an encoder before and after training in a fresh process: ``python ... COMPARE.json``."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path

from train_encoder import examples_of

__all__ = ["main"]


def main() -> None:
    """Print the changes."""
    from embedtopics.training._compare import compare_before_after

    job = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    general = {name: examples_of(content) for name, content in job["general"].items()}
    changes = compare_before_after(
        job["before"], job["after"], corpus=job["texts"], labels=job["classes"],
        general=general, max_documents=len(job["texts"]),
    )  # fmt: skip
    print(json.dumps([asdict(change) for change in changes]))


if __name__ == "__main__":
    main()
