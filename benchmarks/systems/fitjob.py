"""The job that every system is given, and the account that it gives back.

A system is a script started as ``python SCRIPT JOB.json STARTED`` in an interpreter of its own.
`STARTED` is the reading of ``time.monotonic()`` just before the process was started; that clock
is the same for all processes, so the script knows how long ago its interpreter was launched.
Nothing but the standard library is imported here before the clock of "imports" runs.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

__all__ = ["Job"]


class Job:
    """One fit: its texts and embeddings, its options, and a stopwatch.

    Parameters
    ----------
    file : Path
        JSON object with the keys `texts` (a .jsonl file, one JSON string a line), `embeddings`
        (a float32 .npy file), `outcome` (an existing folder) and `options`. Paths may be
        relative to the file.
    started : float
        ``time.monotonic()`` when the process was started.
    """

    def __init__(self, file: Path, started: float) -> None:
        self._started = started
        self._stages = {"interpreter": time.monotonic() - started}
        description = json.loads(file.read_text("utf-8"))
        self._texts = file.parent / description["texts"]
        self._embeddings = file.parent / description["embeddings"]
        self._outcome = file.parent / description["outcome"]
        self.options: dict[str, Any] = description["options"]

    @classmethod
    def from_arguments(cls) -> Job:
        """Return the job that the command line names."""
        return cls(Path(sys.argv[1]), float(sys.argv[2]))

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time a part of the work."""
        began = time.monotonic()
        yield
        self._stages[name] = time.monotonic() - began

    def load(self, mmap_mode: Any = None) -> tuple[list[str], Any]:
        """Return the texts, and their embeddings as an array of shape (n_texts, n_dimensions).

        With a `mmap_mode` (see `numpy.load`), these stay on disk until they are read.
        """
        import numpy as np

        with self._texts.open(encoding="utf-8") as stream:
            texts = [json.loads(line) for line in stream]
        return texts, np.load(self._embeddings, mmap_mode=mmap_mode)

    def finish(
        self,
        labels: Any,
        words: Sequence[Sequence[str]],
        timings: Mapping[str, float] | None = None,
    ) -> None:
        """Stop the clock, and write what was found.

        Parameters
        ----------
        labels : array_like of int, shape (n_texts,)
            Topic of each text; noise is -1.
        words : sequence of sequence of str
            Words of each topic, best first, in the order of the topics' numbers.
        timings : mapping of str to float, optional
            Seconds by stage, as the system itself reports them.
        """
        seconds = time.monotonic() - self._started
        import numpy as np

        np.save(self._outcome / "labels.npy", np.asarray(labels, dtype=np.int64))
        self.report(
            {
                "seconds": seconds,
                "stages": self._stages,
                "timings": dict(timings or {}),
                "peak_rss_mb": _peak_rss_mb(),
                "words": [list(topic) for topic in words],
            }
        )

    def report(self, content: Mapping[str, Any]) -> None:
        """Write what was found, for jobs that ask for something else than one fit."""
        (self._outcome / "report.json").write_text(json.dumps(content), "utf-8")


def _peak_rss_mb() -> float:
    """Return the largest resident set, of this process or of a child it has waited for.

    On Linux ``ru_maxrss`` does not start at zero but at the mark of whoever started the process,
    so the kernel's figure for this address space is taken there.
    """
    unit = 1 if sys.platform == "darwin" else 1024
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    status = Path("/proc/self/status")
    if status.exists():
        fields = dict(line.split(":", 1) for line in status.read_text().splitlines())
        own = int(fields["VmHWM"].split()[0]) * 1024
    children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * unit
    return max(own, children) / 1e6
