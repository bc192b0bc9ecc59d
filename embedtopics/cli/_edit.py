"""Commands for a folder of results: ``edit``, ``extend``, ``export`` and ``verify``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Option

from embedtopics.cli import _display as show
from embedtopics.cli import _options as opt
from embedtopics.errors import InputError


def edit(
    results: opt.ResultsFolder,
    names_from: Annotated[
        Path | None, Option(help="names.csv of RESULTS or a copy, with edited names.")
    ] = None,
    merge: Annotated[list[str] | None, Option(help="Topics to merge: 3,5 (repeatable).")] = None,
    rename: Annotated[list[str] | None, Option(help='Name: "4=Elections" (repeatable).')] = None,
    remove: Annotated[list[str] | None, Option(help="Topics to remove: 2,9 (repeatable).")] = None,
    reduce_outliers: Annotated[
        str | None, Option(help="Assign outliers: graph, terms, embeddings.")
    ] = None,
    out: opt.OutFolder = None,
) -> None:
    """Edit topics: name them as in a file, merge, rename, remove, assign outliers, in this order.

    Ids are those of RESULTS before the command.
    """
    from embedtopics import topics
    from embedtopics.topics._relabel import checked_topic_id
    from embedtopics.topics.editing._names_file import read_names

    if not (names_from or merge or rename or remove or reduce_outliers):
        raise InputError("no edit was given; add --merge, --rename or another option (see --help)")
    target = results if out is None else out
    before = show.read_results_folder(results)
    show.check_results_folder(target, reads_names=names_from is not None)

    after = before
    if names_from is not None and (names := read_names(names_from, before)):
        after = topics.rename(after, names)
    # Where each topic of before is after the edits so far; -1 if it is removed.
    new_ids = list(range(before.n_topics))
    if merge:
        after = topics.merge(after, [_ids(group, "--merge") for group in merge])
        new_ids = list(after.history[-1].new_ids or new_ids)
    if rename:
        names = {new_ids[checked_topic_id(before, t)]: name for t, name in map(_name, rename)}
        if len(names) < len(rename):
            raise InputError("--rename gives a topic two names; give it one")
        after = topics.rename(after, names)
    removed = [topic for group in remove or () for topic in _ids(group, "--remove")]
    if removed:
        after = topics.remove(after, [new_ids[checked_topic_id(before, t)] for t in removed])
        moved = after.history[-1].new_ids or ()
        new_ids = [moved[topic] for topic in new_ids]
    if reduce_outliers is not None:
        after = topics.reduce_outliers(after, reduce_outliers)
        renumbered = after.history[-1].new_ids
        new_ids = [renumbered[topic] if renumbered and topic >= 0 else topic for topic in new_ids]

    kept = _names_file_to_keep(names_from, target, merge or rename or remove or reduce_outliers)
    if len(after.history) == len(before.history):
        typer.echo(f"no name in {show.printable(str(names_from))} differs")
        if not (kept is not None and out is None and _is_changed(results)):
            return
    show.write_results_folder(after, target, names=kept)
    show.print_topics(after)
    typer.echo()
    for entry in after.history[len(before.history) :]:
        typer.echo(show.printable(entry.message))
    typer.echo(f"\n{after.n_topics} topics, {after.coverage:.0%} of the texts; written to {target}")
    show.say(_spell_new_ids(new_ids))


def _names_file_to_keep(names_from: Path | None, target: Path, others: Any) -> bytes | None:
    """Return the content of names.csv if the folder is to keep it as people edited it.

    They may have added columns and notes. After other edits, it is written anew.
    """
    if names_from is None or others or names_from.resolve() != (target / show.NAMES).resolve():
        return None
    return names_from.read_bytes()


def _is_changed(results: Path) -> bool:
    """Return whether people changed names.csv: until it is written, it bars other edits."""
    from embedtopics._utils.folders import changed_files

    return show.NAMES in changed_files(results)


def _spell_new_ids(new_ids: list[int]) -> str:
    """Say which topics of before have another id, and which are gone."""
    changed = [f"{old} is {new}" for old, new in enumerate(new_ids) if new not in (old, -1)]
    gone = [str(old) for old, new in enumerate(new_ids) if new == -1]
    if not changed and not gone:
        return "no topic id has changed"
    parts = []
    if changed:
        parts.append("topic ids have changed: " + ", ".join(changed))
    if gone:
        parts.append(f"removed: {', '.join(gone)}")
    return "; ".join(parts)


def _ids(text: str, option: str) -> list[int]:
    """Return the ids in a list with commas."""
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise InputError(f"{option} takes ids with commas, such as 3,5; got {text!r}") from None


def _name(text: str) -> tuple[int, str]:
    """Return the topic and the name in ``4=Elections``."""
    topic, equals, label = text.partition("=")
    try:
        number = int(topic)
    except ValueError:
        equals = ""
    if not equals:
        raise InputError(f'--rename takes an id and a name, such as "4=Elections"; got {text!r}')
    return number, label


def export(
    results: opt.ResultsFolder,
    out: Annotated[
        Path, Option(help="NAME.xlsx, .csv, .tsv, .parquet or .jsonl; or a folder for all tables.")
    ],
    what: Annotated[
        list[str] | None,
        Option(
            help="topics, documents, terms, shares (of topics in whole documents, for a corpus of "
            "passages), decisions, history or settings (repeatable); default: all, or documents if "
            "the file holds one table."
        ),
    ] = None,
) -> None:
    """Export the tables of a result."""
    from embedtopics.topics._tables import export

    exported = export(show.open_result(results), out, what=what or None)
    for path in exported.paths:
        typer.echo(f"written: {path}")
    show.print_notes(note.message for note in exported.decisions)


def extend(
    results: opt.ResultsFolder,
    file: opt.DocumentsFile,
    text: Annotated[str | None, Option(help="Column of texts; default: that of RESULTS.")] = None,
    id: opt.IdColumn = None,
    time: opt.TimeColumn = None,
    group: opt.GroupColumn = None,
    adopt: Annotated[bool, Option("--adopt", help="Make topics of groups of outliers.")] = False,
    encoder: Annotated[
        str | None, Option(help="Encoder of the fit, if RESULTS cannot load it by name.")
    ] = None,
    encoding: opt.FileEncoding = "utf-8",
    out: opt.OutFolder = None,
) -> None:
    """Add documents to a results folder, assign them to its topics, and report new themes."""
    from embedtopics.corpus._corpus import Corpus
    from embedtopics.topics.growing._extend import extend as extend_result

    target = results if out is None else out
    before = show.read_results_folder(results)
    show.check_results_folder(target)
    first = Corpus(file, text=text, encoding=encoding, limit=1)
    columns = {first.text_column, *first.metadata.columns}
    roles = {"text": text, "time": time, "group": group}
    # Columns keep the role that they have in the results.
    for role, column in roles.items():
        name = getattr(before.corpus, f"{role}_column")
        names = {*name} if isinstance(name, list) else {name}
        if column is None and name is not None and names <= columns:
            roles[role] = name
    added = Corpus(
        file,
        roles["text"],
        id=id,
        time=roles["time"],
        group=roles["group"],
        encoding=encoding,
    )
    extension = extend_result(before, added, adopt=adopt, encoder=encoder)
    result = extension.result
    show.write_results_folder(result, target)
    show.print_topics(result)
    typer.echo(f"\n{show.printable(extension.summary())}")
    if extension.is_alarming:
        typer.echo("This is more than chance explains: the topics no longer cover all themes.")
    for candidate in extension.to_frame().to_dict("records"):
        terms = ", ".join(candidate["terms"][:6])
        nearest = candidate["nearest_topic"]
        near = f", nearest to topic {nearest}" if nearest >= 0 else ""
        typer.echo(f"  {candidate['size']:,} texts: {show.printable(terms)}{near}")
    if len(extension.candidates) and not adopt:
        typer.echo("next: --adopt makes topics of these groups")
    typer.echo(f"\nwritten to {show.printable(str(target))}")


def verify(
    results: opt.ResultsFolder,
    corpus: Annotated[
        Path | None, Option(help="File of the same rows; default: the texts in the folder.")
    ] = None,
    text: opt.TextColumn = None,
    encoder: opt.EncoderName = None,
) -> None:
    """Analyse a study again, and say what comes out as it was saved."""
    from embedtopics.corpus._corpus import Corpus
    from embedtopics.topics import verify as verify_study

    texts = None if corpus is None else Corpus(corpus, text=text)
    verification = verify_study(results, texts, encoder=encoder)
    for name, (then, now) in verification.versions.items():
        show.say(f"{name}: {then} in the study, {now} here")
    columns = [("part", ""), ("outcome", ""), ("compared", "number"), ("different", "number")]
    rows = verification.parts.astype(str).to_numpy().tolist()
    show.print_table([*columns, ("", "words")], rows)
    different = [row[0] for row in rows if row[1] == "differs"]
    listed = f"Different: {', '.join(different)}."
    show.say(f"\n{listed if different else 'The study comes out again.'}")
    raise typer.Exit(bool(different))
