"""``embedtopics probe``: what can be read from each layer of an encoder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from embedtopics.cli.guard import guarded

if TYPE_CHECKING:
    from embedtopics.results import HiddenStates, ProbeTask

__all__ = ["probe"]


@guarded
def probe(
    file: Annotated[
        Path,
        typer.Argument(
            readable=False,  # a file that cannot be read has an error of its own
            help="CoNLL-U; a tsv or csv file of one word a line; or jsonl with a labelled text, or "
            "pair, a line (each also .gz).",
        ),
    ],
    task: Annotated[
        str,
        typer.Option(
            help="A column (upos, xpos, deprel, tag), a key (feats:Number), head distance; or of "
            "whole sentences: sentence length, word content, tree depth, root dependents, bigram "
            "shift, tense, subject number, object number; of jsonl, the column of the labels, or "
            "word in context."
        ),
    ] = "upos",
    encoder: Annotated[
        str, typer.Option(help="Name or folder of a checkpoint.")
    ] = "all-MiniLM-L6-v2",
    out: Annotated[Path | None, typer.Option(help="Folder for scores and figure.")] = None,
    dev: Annotated[Path | None, typer.Option(help="File to choose penalties by.")] = None,
    test: Annotated[
        Path | None, typer.Option(help="File to measure on; a share of FILE if left out.")
    ] = None,
    layers: Annotated[str, typer.Option(help='all, "last 4", or numbers with commas.')] = "all",
    probe: Annotated[str, typer.Option(help="linear, or mlp with one hidden layer.")] = "linear",
    control: Annotated[
        bool, typer.Option("--control", help="Probe labels at random, too: selectivity.")
    ] = False,
    random: Annotated[
        bool, typer.Option("--random", help="Probe the same model with random weights, too.")
    ] = False,
    pooling: Annotated[
        str, typer.Option(help="Of a word's tokens: mean, first, last, max or sum.")
    ] = "mean",
    entity_types: Annotated[
        bool, typer.Option("--entity-types", help="Leave B- and I- out of the labels.")
    ] = False,
    word: Annotated[str | None, typer.Option(help="Column of words, of a tsv or csv file.")] = None,
    text: Annotated[str, typer.Option(help="Column of texts, of a jsonl file.")] = "text",
    states: Annotated[
        Path | None, typer.Option(help="Folder to keep the vectors in, for another probe.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Random seed.")] = 0,
) -> None:
    """Probe an encoder: what its layers know of words, sentences or pairs of words."""
    from embedtopics import probing
    from embedtopics.cli.probe_display import print_scores
    from embedtopics.cli.probe_folder import check_probe_folder, write_probe_folder
    from embedtopics.errors import InputError

    if probe not in ("linear", "mlp"):
        raise InputError(f"--probe must be linear or mlp; got {probe!r}")
    if out is not None:
        check_probe_folder(out)
    wanted = _layers(layers)
    asked = _task(file, dev, test, task, word, text, entity_types, seed)
    read = wanted if isinstance(wanted, str) or min(wanted) < 0 else sorted({0, *wanted})
    found = _states(asked, encoder, read, pooling, states)
    twin = None
    if random:
        twin = _states(asked, probing.random_twin(encoder, seed), read, pooling, None)
    scores = probing.probe(
        found, asked, layers=wanted, probe=probe, control=control, random_states=twin,
        random_state=seed,
    )  # fmt: skip
    # Written before anything is printed: a closed pipe must not cost the results.
    if out is not None:
        files = {"file": file, "dev": dev, "test": test}
        settings = {
            **{name: None if path is None else str(path) for name, path in files.items()},
            "task": task, "encoder": encoder, "layers": layers, "probe": probe,
            "control": control, "random": random, "pooling": pooling,
            "entity_types": entity_types, "word": word, "text": text, "seed": seed,
        }  # fmt: skip
        write_probe_folder(scores, out, settings, found.fingerprint)
    print_scores(scores, out)


def _layers(given: str) -> str | list[int]:
    """Return layers as they are named in Python."""
    from embedtopics.errors import InputError

    if any(map(str.isalpha, given)):
        return given
    try:
        numbers = [int(one) for one in given.split(",") if one.strip()]
    except ValueError:
        numbers = []
    if not numbers:
        raise InputError(
            f'expected --layers as all, "last 4" or numbers such as 0,3,6; got {given!r}'
        )
    return numbers


def _task(
    file: Path,
    dev: Path | None,
    test: Path | None,
    what: str,
    word: str | None,
    text: str,
    entity_types: bool,
    seed: int,
) -> ProbeTask:
    """Read the files, and make the task that is asked for."""
    from embedtopics import probing
    from embedtopics.errors import InputError

    if dev is not None and test is None:
        raise InputError("--dev needs --test: name the file to measure on, too")
    given = {"train": file, "dev": dev, "test": test}
    files = {part: path for part, path in given.items() if path is not None}
    kinds = {_kind(path) for path in files.values()}
    if len(kinds) > 1:
        raise InputError(f"expected files of one kind, got {' and '.join(sorted(kinds))}")
    kind = kinds.pop()
    if kind == "jsonl":
        source = files if test is not None else file
        if what == "word in context":
            return probing.pair_task(source, seed=seed)
        return probing.text_task(source, text=text, label=what, seed=seed)
    banks = {
        part: probing.read_conllu(path)
        if kind == "conllu"
        else probing.read_token_table(path, word=word)
        for part, path in files.items()
    }
    given_parts = banks if test is not None else banks["train"]
    if what in probing.SENTENCE_TASKS:
        return probing.sentence_task(given_parts, what, seed=seed)
    return probing.token_task(given_parts, what, entity_types=entity_types, seed=seed)


def _kind(path: Path) -> str:
    """Tell the kind of a file by its name."""
    name = path.name.lower().removesuffix(".gz")
    if name.endswith((".jsonl", ".ndjson", ".json")):
        return "jsonl"
    return "table" if name.endswith((".tsv", ".csv", ".txt")) else "conllu"


def _states(
    task: ProbeTask, encoder: object, layers: str | list[int], pooling: str, out: Path | None
) -> HiddenStates:
    from embedtopics import probing

    made = probing.hidden_states(task, encoder, layers=layers, pooling=pooling, out=out)
    return probing.pooled(made, by="text") if task.unit == "text" else made
