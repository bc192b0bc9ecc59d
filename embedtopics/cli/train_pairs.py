"""``embedtopics train pairs``: texts that belong together, from a file or made from a corpus."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from embedtopics.cli.guard import guarded
from embedtopics.cli.train_options import (
    ExamplesFile,
    HeldOutOptions,
    columns_of,
    names_in,
    takes,
)
from embedtopics.cli.train_running import (
    Read,
    prepared,
    reader,
    run_and_tell,
    spoken,
    starting_encoder,
)
from embedtopics.errors import InputError

if TYPE_CHECKING:
    from embedtopics.corpus import Corpus
    from embedtopics.training import Examples

__all__ = ["pairs"]


@guarded
@takes(HeldOutOptions)
def pairs(
    file: ExamplesFile,
    anchor: Annotated[str | None, typer.Option(help="Column of anchors.")] = None,
    positive: Annotated[str | None, typer.Option(help="Column of their partners.")] = None,
    from_titles: Annotated[
        str | None,
        typer.Option(help="Pair titles with texts: columns of both, TITLE,BODY."),
    ] = None,
    neighbouring_sentences: Annotated[
        str | None, typer.Option(help="Pair sentences that follow one another in this column.")
    ] = None,
    same_group: Annotated[
        str | None,
        typer.Option(help="Pair documents of one group: its column, such as author."),
    ] = None,
    cites: Annotated[
        str | None, typer.Option(help="Pair documents with those whose ids stand in this column.")
    ] = None,
    id: Annotated[str | None, typer.Option(help="Column of ids, for --cites.")] = None,
    hard_negatives: Annotated[
        int,
        typer.Option(min=0, help="Texts to find for each pair, near and no partner."),
    ] = 0,
    negatives_by: Annotated[
        str | None, typer.Option(help="Encoder that finds them; the one to start from.")
    ] = None,
    *,
    options: HeldOutOptions,
) -> None:
    """Learn from texts that belong together; from a file of documents, such pairs can be made."""
    with spoken("--anchor and --positive"):
        settings = prepared(options)
        makers = {
            "--from-titles": from_titles,
            "--neighbouring-sentences": neighbouring_sentences,
            "--same-group": same_group,
            "--cites": cites,
        }
        columns = columns_of({"--anchor": anchor, "--positive": positive})
        chosen = [name for name, value in makers.items() if value is not None]
        if len(chosen) + (columns is not None) > 1:
            raise InputError(
                f"expected one way to pairs, got {' and '.join(chosen)}"
                f"{' beside columns of pairs' if columns is not None else ''}; choose one"
            )
        read = (
            _maker(options, chosen[0], str(makers[chosen[0]]), id)
            if chosen
            else reader(options, "pairs", columns)
        )
        if hard_negatives and same_group is not None:
            raise InputError(
                "--hard-negatives would find documents of a group that --same-group pairs; leave "
                "one of them out"
            )
        from embedtopics.training import fit_pairs

        encoder = starting_encoder(options)
        learned, validation = read(file), None
        if hard_negatives:
            learned, validation = _mined(
                learned, options, read, negatives_by or encoder, hard_negatives
            )
        run_and_tell(
            options, settings, fit_pairs, (encoder, learned), read, validation=validation,
            documents=file if chosen else None,
        )  # fmt: skip


def _maker(options: HeldOutOptions, way: str, column: str, id: str | None) -> Read:
    """Return what reads a file of documents and makes pairs of them."""

    def corpus_of(path: Path, text: str | None) -> Corpus:
        from embedtopics.corpus import Corpus

        return Corpus.from_file(path, text=text, id=id, encoding=options.encoding)

    def read(path: Path) -> Examples:
        from embedtopics import training

        if way == "--from-titles":
            title, *body = names_in(column)
            if len(body) > 1:
                raise InputError(f"expected --from-titles TITLE,BODY; got {column!r}")
            return training.title_pairs(corpus_of(path, body[0] if body else options.text), title)
        if way == "--neighbouring-sentences":
            return training.sentence_pairs(corpus_of(path, column), seed=options.seed)
        corpus = corpus_of(path, options.text)
        if way == "--same-group":
            return training.group_pairs(corpus, column, seed=options.seed)
        return training.citation_pairs(corpus, column)

    return read


def _mined(
    learned: Examples, options: HeldOutOptions, read: Read, miner: Any, n: int
) -> tuple[Examples, Examples]:
    """Return training and validation examples with hard negatives, found among their like.

    They are held apart before: by its negatives, each pair hangs together with others.
    """
    from embedtopics.encoders import resolve_encoder
    from embedtopics.training import mine_hard_negatives, refuse_overlap, split
    from embedtopics.training.runs import HELD_OUT

    if options.validation is None:
        learned, validation = split(learned, HELD_OUT, options.seed)
    else:
        validation = read(options.validation)
        refuse_overlap(learned, validation, allow=options.allow_overlap, what="validation")
    finder = resolve_encoder(miner)
    depth = max(100, 2 * n)
    return (
        mine_hard_negatives(learned, finder, n_negatives=n, depth=depth),
        mine_hard_negatives(validation, finder, n_negatives=n, depth=depth),
    )
