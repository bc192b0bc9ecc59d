"""Run benchmarks, keep their figures as JSON, and make the tables of README.md from these."""

from __future__ import annotations

import argparse
import datetime
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import (
    after_the_fit,
    annotation,
    batch,
    classification,
    coherence,
    cold_start,
    comparison,
    domain_adaptation,
    encoder_training,
    encoding,
    explorer,
    growth,
    inference,
    inference_training,
    language_detection,
    languages,
    layers,
    learning_curves,
    meaning,
    million,
    pretraining,
    pretraining_adaptation,
    pretraining_from_nothing,
    search_quality,
    search_speed,
    specifications,
    static_encoder,
    static_student,
    student_topics,
    topic_names,
    topic_number,
    topic_partition,
    topic_predict,
    topic_quality,
    topic_speed,
    topic_stability,
    topic_words,
    trends,
    vector_cache,
)
from benchmarks.corpora import CACHE
from benchmarks.jobs import BERTOPIC, EMBEDTOPICS
from benchmarks.machine import describe_environment, describe_machine
from benchmarks.options import Options
from benchmarks.rendering import describe, replace_tables

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results"
README = HERE / "README.md"
BENCHMARKS = {
    "encoding": encoding,
    "vector_cache": vector_cache,
    "topic_quality": topic_quality,
    "topic_words": topic_words,
    "after_the_fit": after_the_fit,
    "topic_number": topic_number,
    "topic_partition": topic_partition,
    "topic_names": topic_names,
    "topic_predict": topic_predict,
    "topic_stability": topic_stability,
    "topic_speed": topic_speed,
    "cold_start": cold_start,
    "static_encoder": static_encoder,
    "static_student": static_student,
    "student_topics": student_topics,
    "encoder_training": encoder_training,
    "inference_training": inference_training,
    "domain_adaptation": domain_adaptation,
    "pretraining": pretraining,
    "pretraining_adaptation": pretraining_adaptation,
    "pretraining_from_nothing": pretraining_from_nothing,
    "learning_curves": learning_curves,
    "layers": layers,
    "search_quality": search_quality,
    "search_speed": search_speed,
    "comparison": comparison,
    "languages": languages,
    "language_detection": language_detection,
    "coherence": coherence,
    "classification": classification,
    "annotation": annotation,
    "explorer": explorer,
    "trends": trends,
    "specifications": specifications,
    "inference": inference,
    "meaning": meaning,
    "growth": growth,
    "million": million,
    "batch": batch,
}
SYSTEMS = {system.name: system for system in (BERTOPIC, EMBEDTOPICS)}


def main() -> None:
    arguments = _parse()
    if arguments.tables:
        write_readme()
        return
    options = Options(
        systems=tuple(SYSTEMS[name] for name in arguments.systems),
        quick=arguments.quick,
        seeded=arguments.seeded,
        repeats=arguments.repeats,
        sections=tuple(arguments.sections),
    )
    # What is not the whole comparison must not take the place of figures that were.
    is_whole = not options.quick and len(options.systems) == len(SYSTEMS)
    folder = RESULTS if is_whole else CACHE / "benchmarks"
    folder.mkdir(parents=True, exist_ok=True)
    environments = {system.name: describe_environment(system) for system in options.systems}
    for name in arguments.names or BENCHMARKS:
        print(f"{name} ...", file=sys.stderr)
        result = {
            "benchmark": name,
            "date": datetime.date.today().isoformat(),
            "machine": describe_machine(),
            "environments": environments,
            **BENCHMARKS[name].measure(options),
        }
        file = folder / f"{name}.json"
        file.write_text(json.dumps(result, indent=1, allow_nan=False) + "\n", "utf-8")
        print(f"{file}\n\n{render(result)}\n")
    if is_whole:
        write_readme()


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help=f"of {', '.join(BENCHMARKS)}; all by default")
    parser.add_argument(
        "--quick", action="store_true", help="smallest size or corpus only; kept apart"
    )
    parser.add_argument("--seeded", action="store_true", help="time seeded fits too")
    parser.add_argument("--repeats", type=int, default=1, help="timings, and seeds, per figure")
    parser.add_argument(
        "--systems",
        nargs="+",
        choices=SYSTEMS,
        default=list(SYSTEMS),
        help="with fewer than all: kept apart",
    )
    parser.add_argument(
        "--sections",
        nargs="+",
        choices=[*classification.SECTIONS, *inference.SECTIONS],
        default=[],
        help="of classification or inference: those to measure again; all by default",
    )
    parser.add_argument("--tables", action="store_true", help="only make the tables again")
    arguments = parser.parse_args()
    unknown = sorted(set(arguments.names) - set(BENCHMARKS))
    if unknown:
        parser.error(f"expected names of {', '.join(BENCHMARKS)}; got {', '.join(unknown)}")
    if arguments.repeats < 1:
        parser.error(f"expected --repeats of at least 1; got {arguments.repeats}")
    return arguments


def render(result: Mapping[str, Any]) -> str:
    """Return a result's tables, and what they were measured on."""
    return f"{BENCHMARKS[result['benchmark']].render(result)}\n\n{describe(result)}"


def rendered_readme() -> str:
    """Return README.md with the tables of all kept results."""
    tables = {}
    for name in BENCHMARKS:
        file = RESULTS / f"{name}.json"
        tables[name] = (
            render(json.loads(file.read_text("utf-8"))) if file.exists() else "Not measured yet."
        )
    return replace_tables(README.read_text("utf-8"), tables)


def write_readme() -> None:
    """Bring the tables of README.md up to date."""
    README.write_text(rendered_readme(), "utf-8")


if __name__ == "__main__":
    main()
