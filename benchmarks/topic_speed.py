"""How long from the start of a process to topics, and in how much memory.

Both systems get the same embeddings of the same arXiv abstracts, or titles for the largest size.
BERTopic runs with its defaults and makes no map; embedtopics makes its 2-d map and its tables in
the time shown.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.corpora import load_encoded, sample_rows
from benchmarks.jobs import System, fit, run_python, write_inputs
from benchmarks.options import Options
from benchmarks.rendering import figure, markdown_table

__all__ = ["measure", "render"]

SIZES = {
    5_000: "arxiv_abstracts",
    10_000: "arxiv_abstracts",
    60_000: "arxiv_abstracts",
    226_000: "arxiv_titles",
}

QUICK_SIZES = {2_000: "arxiv_abstracts"}
SEED = 42
IMPORTS = {
    "bertopic": ("import bertopic",),
    # The package is lazy: its bare import says little, so the model's is shown beside it.
    "embedtopics": ("import embedtopics", "from embedtopics import TopicModel"),
}

Run = Mapping[str, Any]


def measure(options: Options) -> dict[str, Any]:
    """Time every system at every size.

    Each system gets a folder of its own for compiled functions. The folder is empty in the run
    that is called cold and kept for all runs after it.
    """
    sizes = QUICK_SIZES if options.quick else SIZES
    runs: list[dict[str, Any]] = []
    imports: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        caches = {system.name: folder / f"numba-{system.name}" for system in options.systems}
        for size, corpus in sizes.items():
            inputs = folder / str(size)
            inputs.mkdir()
            texts, embeddings = load_encoded(corpus)
            rows = sample_rows(len(texts), size)
            write_inputs(inputs, [texts[row] for row in rows], embeddings[rows])
            del texts, embeddings
        for plan in _plan(options, tuple(sizes)):
            system: System = plan.pop("system")
            outcome = fit(
                system,
                folder / str(plan["n_documents"]),
                random_state=plan["random_state"],
                numba_cache=caches[system.name],
            )
            runs.append(
                {
                    "system": system.name,
                    "corpus": sizes[plan["n_documents"]],
                    **plan,
                    **outcome.costs(),
                    "n_topics": outcome.n_topics,
                    "coverage": round(outcome.coverage, 4),
                }
            )
            print(f"  {runs[-1]}", file=sys.stderr)
        for system in options.systems:
            for statement in IMPORTS[system.name]:
                seconds = [_time_import(system, statement, caches[system.name]) for _ in range(3)]
                imports.append({"system": system.name, "code": statement, "seconds": seconds})
    return {"runs": runs, "imports": imports}


def _plan(options: Options, sizes: Sequence[int]) -> Iterator[dict[str, Any]]:
    """Yield the runs in their order: the systems take turns, so that both meet the same weather."""
    cold = {"n_documents": sizes[0], "random_state": None, "numba_cache": "cold"}
    for system in options.systems:
        yield {"system": system, **cold}
    for size in sizes:
        for random_state in (None, SEED) if options.seeded else (None,):
            warm = {"n_documents": size, "random_state": random_state, "numba_cache": "warm"}
            for _ in range(options.repeats):
                for system in options.systems:
                    yield {"system": system, **warm}


def _time_import(system: System, statement: str, numba_cache: Path) -> float:
    """Return the seconds of a process that does nothing else."""
    began = time.monotonic()
    run_python(system, "-c", statement, environment={"NUMBA_CACHE_DIR": str(numba_cache)})
    return round(time.monotonic() - began, 3)


def render(result: Mapping[str, Any]) -> str:
    """Return the tables of a result: totals, parts, our stages, imports."""
    runs = result["runs"]
    cases = list(
        dict.fromkeys((r["n_documents"], r["random_state"], r["numba_cache"]) for r in runs)
    )
    cases.sort(key=lambda case: (case[2] == "cold", case[1] is not None, case[0]))
    tables = [_totals(runs, cases), _parts(runs, cases)]
    stages = _stages(runs, cases)
    return "\n\n".join([*tables, *([stages] if stages else []), _imports(result["imports"])])


def _median_run(runs: Sequence[Run], system: str, case: tuple[Any, ...]) -> Run | None:
    """Return the run in the middle, so that all figures shown belong together."""
    own = [
        r
        for r in runs
        if r["system"] == system and (r["n_documents"], r["random_state"], r["numba_cache"]) == case
    ]
    return sorted(own, key=lambda r: r["seconds"])[(len(own) - 1) // 2] if own else None


def _name(case: tuple[Any, ...]) -> list[str]:
    size, random_state, numba_cache = case
    return [figure(size), "none" if random_state is None else str(random_state), numba_cache]


def _totals(runs: Sequence[Run], cases: Sequence[tuple[Any, ...]]) -> str:
    header = [
        "documents", "seed", "compiled cache", "BERTopic, s", "embedtopics, s", "ratio",
        "BERTopic, MB", "embedtopics, MB", "BERTopic, topics", "embedtopics, topics",
    ]  # fmt: skip
    rows = []
    for case in cases:
        pair = [_median_run(runs, system, case) or {} for system in ("bertopic", "embedtopics")]
        theirs, ours = (run.get("seconds") for run in pair)
        ratio = theirs / ours if theirs and ours else None
        rows.append(
            _name(case)
            + [figure(theirs, 1), figure(ours, 1), figure(ratio, 1)]
            + [figure(run.get("peak_rss_mb")) for run in pair]
            + [figure(run.get("n_topics")) for run in pair]
        )
    return markdown_table(header, rows)


def _parts(runs: Sequence[Run], cases: Sequence[tuple[Any, ...]]) -> str:
    parts = ("interpreter", "imports", "loading", "fit", "tables")
    rows = []
    for case in cases:
        for system in ("bertopic", "embedtopics"):
            run = _median_run(runs, system, case)
            if run:
                seconds = [figure(run["stages"].get(part), 2) for part in parts]
                rows.append([*_name(case), system, *seconds])
    header = ["documents", "seed", "compiled cache", "system", *(f"{part}, s" for part in parts)]
    return markdown_table(header, rows)


def _stages(runs: Sequence[Run], cases: Sequence[tuple[Any, ...]]) -> str:
    """Return the seconds that embedtopics reports by stage; empty without any."""
    found = [(case, _median_run(runs, "embedtopics", case)) for case in cases]
    stages = list(dict.fromkeys(stage for _, run in found if run for stage in run["timings"]))
    if not stages:
        return ""
    header = ["documents", "seed", "compiled cache", *(f"{stage}, s" for stage in stages)]
    rows = [
        _name(case) + [figure(run["timings"].get(stage), 2) for stage in stages]
        for case, run in found
        if run
    ]
    return markdown_table(header, rows)


def _imports(imports: Sequence[Mapping[str, Any]]) -> str:
    rows = [[f"`{i['code']}`", figure(statistics.median(i["seconds"]), 2)] for i in imports]
    return markdown_table(["a process that only runs", "s"], rows)
