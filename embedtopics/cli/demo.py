"""``embedtopics demo``: the main job on the bundled corpus."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from embedtopics.cli.guard import guarded

__all__ = ["demo"]


@guarded
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the results.")] = Path("demo-results"),
    seed: Annotated[int, typer.Option(help="Random seed.")] = 42,
) -> None:
    """Find the topics of the bundled corpus: 631 short texts, English and French."""
    from embedtopics._demo import demo_path
    from embedtopics.cli.topics import run_topics
    from embedtopics.corpus import Corpus

    corpus = Corpus.from_file(demo_path(), text="text", id="id", time="date", group="source")
    run_topics(corpus, out=out, encoder=None, replicates=20, random_state=seed)
