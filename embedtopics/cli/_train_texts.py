"""``embedtopics train`` from texts alone, or from what a teacher makes of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from embedtopics.cli._display import PAGE, check_target
from embedtopics.cli._errors import options_named
from embedtopics.cli._options import names_in, whole_numbers_in
from embedtopics.cli._train_options import (
    ExamplesFile,
    HeldOutOptions,
    RunOptions,
    StudentOptions,
    columns_of,
    takes,
)
from embedtopics.cli._train_running import (
    Read,
    prepared,
    reader,
    run_and_tell,
    starting_encoder,
)
from embedtopics.errors import InputError

if TYPE_CHECKING:
    from embedtopics.training._examples import Examples


Teacher = Annotated[str, typer.Option(help="Name or folder of the encoder to learn from.")]


@takes(HeldOutOptions)
def unsupervised(
    file: ExamplesFile,
    method: Annotated[str, typer.Option(help="simcse or tsdae.")] = "simcse",
    *,
    options: HeldOutOptions,
) -> None:
    """Learn from texts alone; --test has pairs with scores, which say whether it helped."""
    with options_named(columns="--text"):
        settings = prepared(options)
        validation = None if options.validation is None else _texts(options, options.validation)
        learned = starting_encoder(options), _texts(options, file)
        more: dict[str, Any] = {"validation": validation, "documents": file, "method": method}
        run_and_tell(options, settings, "fit_unsupervised", learned, None, **more)


@takes(RunOptions)
def distill(
    file: ExamplesFile,
    teacher: Teacher,
    keep_layers: Annotated[
        str | None,
        typer.Option(help="Layers that the student keeps: how many (3), or which (0,2,5)."),
    ] = None,
    *,
    options: RunOptions,
) -> None:
    """Make a smaller encoder that gives the vectors of a larger one.

    The student starts from --encoder, or from the teacher with fewer layers.
    """
    with options_named(columns="--text"):
        settings = prepared(options)
        kept: int | tuple[int, ...] | None = None
        if keep_layers is not None:
            kept = whole_numbers_in(keep_layers, "--keep-layers")
            kept = kept[0] if len(names_in(keep_layers)) == 1 else kept
        elif options.encoder in (None, teacher):
            raise InputError(
                "expected a student that differs from its teacher; name one with --encoder, or "
                "say with --keep-layers how many layers of the teacher it keeps"
            )
        examples = _texts(options, file)
        learned = options.encoder or teacher, teacher, examples.columns[0]
        more: dict[str, Any] = {"notes": examples.decisions, "documents": file, "keep_layers": kept}
        run_and_tell(options, settings, "fit_distilled", learned, None, **more)


@takes(StudentOptions)
def student(file: ExamplesFile, teacher: Teacher, *, options: StudentOptions) -> None:
    """Make a table of token vectors that reads tens of thousands of texts a second.

    It has then read all of these texts: score it on others.
    """
    from embedtopics.cli._train_display import print_report
    from embedtopics.corpus._corpus import Corpus
    from embedtopics.training._student import fit_static_student
    from embedtopics.training.trainer._checkpoints import refuse_finished

    check_target(options.figure, PAGE, "--figure")
    settings, encoding, out = options.settings(), options.encoding, options.out
    refuse_finished(out, options.overwrite)
    texts = Corpus.from_file(file, text=options.text, encoding=encoding)
    others = None
    if options.general is not None:
        others = Corpus.from_file(options.general, text=options.general_text, encoding=encoding)
    settings |= {"general": others, "out": out, "overwrite": options.overwrite}
    report = fit_static_student(teacher, texts, **settings).report
    shown: dict[str, Any] = {"documents": file, "text": options.text}
    print_report(report, out, figure=options.figure, **shown)


def _texts(options: RunOptions, path: Path) -> Examples:
    columns = None if options.text is None else [options.text]
    return reader(options, "texts", columns)(path)


@takes(HeldOutOptions)
def pairs(
    file: ExamplesFile,
    anchor: Annotated[str | None, typer.Option(help="Column of anchors.")] = None,
    positive: Annotated[str | None, typer.Option(help="Column of their partners.")] = None,
    from_titles: Annotated[
        str | None, typer.Option(help="Pair titles with texts: columns of both, TITLE,BODY.")
    ] = None,
    neighbouring_sentences: Annotated[
        str | None, typer.Option(help="Pair sentences that follow one another in this column.")
    ] = None,
    same_group: Annotated[
        str | None, typer.Option(help="Pair documents of one group: its column, such as author.")
    ] = None,
    cites: Annotated[
        str | None, typer.Option(help="Pair documents with those whose ids stand in this column.")
    ] = None,
    id: Annotated[str | None, typer.Option(help="Column of ids, for --cites.")] = None,
    hard_negatives: Annotated[
        int, typer.Option(min=0, help="Texts to find for each pair, near and no partner.")
    ] = 0,
    negatives_by: Annotated[
        str | None, typer.Option(help="Encoder that finds them; the one to start from.")
    ] = None,
    *,
    options: HeldOutOptions,
) -> None:
    """Learn from texts that belong together; from a file of documents, such pairs can be made."""
    with options_named(columns="--anchor and --positive", num_negatives="--hard-negatives"):
        settings = prepared(options)
        makers = dict(
            zip(_WAYS, (from_titles, neighbouring_sentences, same_group, cites), strict=True)
        )
        columns = columns_of({"--anchor": anchor, "--positive": positive})
        chosen = [name for name, value in makers.items() if value is not None]
        if len(chosen) + (columns is not None) > 1:
            raise InputError(
                f"expected one way to pairs, got {' and '.join(chosen)}"
                f"{' beside columns of pairs' if columns is not None else ''}; choose one"
            )
        read = reader(options, "pairs", columns)
        if chosen:
            read = _maker(options, chosen[0], str(makers[chosen[0]]), id)
        if hard_negatives and same_group is not None:
            raise InputError(
                "--hard-negatives would find documents of a group that --same-group pairs; leave "
                "one of them out"
            )
        encoder = starting_encoder(options)
        learned, validation = read(file), None
        if hard_negatives:
            miner = negatives_by or encoder
            learned, validation = _mined(learned, options, read, miner, hard_negatives)
        more: dict[str, Any] = {"validation": validation, "documents": file if chosen else None}
        run_and_tell(options, settings, "fit_pairs", (encoder, learned), read, **more)


_WAYS = {
    "--from-titles": "title",
    "--neighbouring-sentences": "sentences",
    "--same-group": "group",
    "--cites": "citations",
}


def _maker(options: HeldOutOptions, way: str, column: str, id: str | None) -> Read:
    """Return what reads a file of documents and makes pairs of them."""
    by, text, named = _WAYS[way], options.text, column
    if by == "title":
        named, *body = names_in(column)
        if len(body) > 1:
            raise InputError(f"expected --from-titles TITLE,BODY; got {column!r}")
        text = body[0] if body else text
    seed = {"random_state": options.given["random_state"]} if by in ("sentences", "group") else {}

    def read(path: Path) -> Examples:
        from embedtopics.corpus._corpus import Corpus
        from embedtopics.training._pairs import make_pairs

        texts = column if by == "sentences" else text
        corpus = Corpus.from_file(path, text=texts, id=id, encoding=options.encoding)
        return make_pairs(corpus, by, None if by == "sentences" else named, **seed)

    return read


def _mined(
    learned: Examples, options: HeldOutOptions, read: Read, miner: Any, n: int
) -> tuple[Examples, Examples]:
    """Return training and validation examples with hard negatives, held apart before the mining."""
    from embedtopics.encoders._registry import resolve_exact
    from embedtopics.training._fit import HELD_OUT
    from embedtopics.training._pairs import mine_hard_negatives
    from embedtopics.training._split import refuse_overlap, split

    if options.validation is None:
        learned, validation = split(learned, HELD_OUT, options.given["random_state"])
    else:
        validation = read(options.validation)
        refuse_overlap(learned, validation, allow=options.allow_overlap, what="validation")
    finder = resolve_exact(miner)
    negatives: dict[str, Any] = {"num_negatives": n, "range_max": max(100, 2 * n)}
    return (
        mine_hard_negatives(learned, finder, **negatives),
        mine_hard_negatives(validation, finder, **negatives),
    )
