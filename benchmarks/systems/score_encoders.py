"""Score encoders on graded pairs in a fresh process; started as ``python ... SCORES.json``."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

__all__ = ["main"]


def main() -> None:
    """Print, for each encoder, its Spearman correlation on each test, paired with the first's."""
    job = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    print(json.dumps(scores_of(job["encoders"], job["tests"])))


def scores_of(encoders: list[Any], tests: dict[str, Any]) -> list[dict[str, Any]]:
    """Return figures, and the paired difference from the first encoder with its interval."""
    from train_encoder import examples_of

    from embedtopics.encoders._registry import resolve_exact
    from embedtopics.training._compare import compare_before_after

    examples = {name: examples_of(content) for name, content in tests.items()}
    opened = [resolve_exact(one) if isinstance(one, (str, Path)) else one for one in encoders]
    found: list[dict[str, Any]] = []
    for encoder in opened:
        changes = compare_before_after(opened[0], encoder, test=examples)
        found.append({
            change.task: {
                "spearman": change.after, "difference": change.difference, "low": change.low,
                "high": change.high, "n": change.n, "verdict": change.verdict,
            }
            for change in changes
            if "spearman" in change.metric.lower()
        })  # fmt: skip
    return found


if __name__ == "__main__":
    main()
