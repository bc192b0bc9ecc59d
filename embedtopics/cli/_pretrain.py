"""``embedtopics pretrain``: an encoder that has read your texts, and whether that helped."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from embedtopics.cli._display import guarded
from embedtopics.cli._options import DocumentsFile
from embedtopics.cli._train_options import RunOptions, takes
from embedtopics.cli._train_running import prepared, run_and_tell, spoken, starting_encoder


@guarded
@takes(RunOptions)
def pretrain(
    file: DocumentsFile,
    masking: Annotated[
        str, typer.Option(help="random, whole-word or span: which tokens are hidden.")
    ] = "random",
    keep_geometry: Annotated[
        bool | None,
        typer.Option(
            "--keep-geometry/--free",
            help="Keep vectors near those of before; if left out, for sentence encoders.",
        ),
    ] = None,
    *,
    options: RunOptions,
) -> None:
    """Let an encoder predict hidden words of your texts, which need no labels.

    --test has pairs with scores, --corpus texts with --classes: they show whether it helped.
    """
    from embedtopics.corpus._corpus import Corpus
    from embedtopics.pretraining._pretrain import pretrain as go_on

    def learn(encoder: Any, texts: Any, *, corpus: Any = None, **given: Any) -> Any:
        return go_on(encoder, texts, masking.replace("-", "_"), compare_on=corpus, **given).report

    with spoken("--text"):
        settings = prepared(options)
        texts = Corpus.from_file(file, text=options.text, encoding=options.encoding)
        more: dict[str, Any] = {"documents": file, "keep_geometry": keep_geometry}
        run_and_tell(options, settings, learn, (starting_encoder(options), texts), None, **more)
