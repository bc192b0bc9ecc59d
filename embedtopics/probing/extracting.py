"""Hidden states of all layers of an encoder, for the words of texts."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import weakref
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from embedtopics._checks import checked_count, is_whole
from embedtopics._files import MANIFEST
from embedtopics._locking import only_writer
from embedtopics._progress import progress_bar
from embedtopics.encoders.loading import Vocabulary, load_vocabulary
from embedtopics.encoders.resolve import DEFAULT_MODEL
from embedtopics.errors import InputError
from embedtopics.probing.opening import Layered, Source, chosen_device, open_layered, source_of
from embedtopics.probing.planning import Plan, cut_into_blocks, make_plan
from embedtopics.probing.reading import Reading, number_sentences, read_texts
from embedtopics.probing.running import POOLINGS, pool_block
from embedtopics.probing.storing import (
    Writer,
    assemble,
    begin_store,
    check_folder,
    open_store,
    refuse_another,
    unfinished_about,
)
from embedtopics.results import Decision, HiddenStates

__all__ = ["hidden_states", "layer_numbers"]

_BLOCK_BYTES = 128_000_000
"""Vectors that are held in memory, and written at a time."""

_TOKENS_PER_BATCH = {"cpu": 512}
_ON_A_GPU = 16_384


@dataclass(frozen=True)
class _Wish:
    """How units are made, by the names of the parameters."""

    layers: int | str | Sequence[int]
    words: bool
    pooling: str
    dtype: str
    tokens_per_batch: int | None
    device: str | None
    show_progress: bool | None


def hidden_states(
    texts: Any,
    encoder: Any = DEFAULT_MODEL,
    *,
    layers: int | str | Sequence[int] = "all",
    words: bool = True,
    pooling: str = "mean",
    out: str | os.PathLike[str] | None = None,
    dtype: str = "float16",
    max_length: int | None = None,
    tokens_per_batch: int | None = None,
    device: str | None = None,
    show_progress: bool | None = None,
) -> HiddenStates:
    """Return the vectors of all words of texts at all layers of an encoder.

    They are written to disk as they are made, and mapped into memory: of a corpus, only the texts
    and the places of their words and tokens are held. An extraction that was killed goes on where
    it was when it is called again with the same arguments; one that is finished is opened.

    Parameters
    ----------
    texts : sequence of str, sequence of sequences of str, or ProbeTask
        Whole texts, whose words are found by a rule (letters with the marks and apostrophes in
        them, numbers, and each mark by itself); or texts that are split into words. The encoder
        reads split texts with single spaces between their words. Each text that is split, or of a
        task, is one sentence.
    encoder : str, path or SentenceEncoder
        Name or folder of a checkpoint that is an encoder, such as a BERT.
    layers : "all", "last N", int or sequence of int
        0 is the embedding layer; negative numbers count from the last.
    words : bool
        Whether the units are words, or the tokens of the encoder.
    pooling : {"mean", "first", "last", "max", "sum"}
        How the tokens of a word become one vector.
    out : path, optional
        Folder for the result; by default a temporary one, which goes away with the result.
    dtype : {"float16", "float32"}
        float16 takes half of the space and keeps three digits of each number.
    max_length : int, optional
        Tokens that are read together; as the checkpoint says. Longer texts are read in overlapping
        windows, each token in that where it has most context on the side where it has less.
    tokens_per_batch : int, optional
        Tokens in a batch, padding included; by default 512 on a CPU and 16,384 on a GPU.
    device : str, optional
        As in torch; the first CUDA device where there is one, else the CPU.
    show_progress : bool, optional
        None shows a bar where stderr is a terminal or a notebook listens.

    Returns
    -------
    HiddenStates
        `decisions` tells of missing words and long texts.

    Raises
    ------
    InputError
        If an argument is bad; the message names the row. If `out` holds other files, or states of
        another encoder, of other texts or settings: the message says what differs. If another
        process writes it, or the disk is full.
    ModelLoadError
        If the checkpoint cannot be loaded, or is no encoder.
    CorruptFileError
        If a file of a finished or unfinished store is damaged.

    Notes
    -----
    A token belongs to one word, that with most of its characters. A word without a token, such as
    a zero-width space, has vectors of zeros and is `missing`. Vectors are those that transformers
    gives for the text alone, to 1e-5 before they become float16.

    Examples
    --------
    >>> states = hidden_states(["They play chess.", "A play in two acts."])  # doctest: +SKIP
    >>> [word for word in states.words if word == "play"], states.layers  # doctest: +SKIP
    (['play', 'play'], (0, 1, 2, 3, 4, 5, 6))
    """
    wish = _Wish(layers, bool(words), pooling, dtype, tokens_per_batch, device, show_progress)
    _check(wish)
    reading = read_texts(texts)
    source = source_of(encoder, max_length)
    if out is not None:
        return _extract(reading, source, wish, Path(os.path.abspath(out)))
    root = tempfile.mkdtemp(prefix="embedtopics-states-")
    try:
        states = replace(_extract(reading, source, wish, Path(root) / "states"), folder="")
    except BaseException:  # an interrupt too
        shutil.rmtree(root, ignore_errors=True)
        raise
    weakref.finalize(states, shutil.rmtree, root, ignore_errors=True)
    return states


def layer_numbers(layers: int | str | Sequence[int], n_layers: int) -> tuple[int, ...]:
    """Return the layers that are meant, ascending, each once.

    Raises
    ------
    InputError
        If there is no such layer, or none is meant.
    """
    if isinstance(layers, str):
        said = layers.split()
        if said == ["all"]:
            return tuple(range(n_layers))
        if len(said) != 2 or said[0] != "last" or not said[1].isdecimal() or said[1] == "0":
            raise InputError(f'expected layers as numbers, "all" or "last 4"; got {layers!r}')
        wanted: list[Any] = [-1 - k for k in range(int(said[1]))]
    else:
        wanted = [layers] if is_whole(layers) else list(layers)  # type: ignore[arg-type]
    if not wanted:
        raise InputError("expected at least one layer, got none")
    for layer in wanted:
        if not is_whole(layer) or not -n_layers <= layer < n_layers:
            raise InputError(
                f"expected layers from 0, that of the embeddings, to {n_layers - 1}, the last, or "
                f"negative numbers from -1, the last; got {layer!r}"
            )
    return tuple(sorted({int(layer) % n_layers for layer in wanted}))


def _check(wish: _Wish) -> None:
    if wish.pooling not in POOLINGS:
        raise InputError(
            f"expected pooling to be one of {', '.join(POOLINGS)}; got {wish.pooling!r}"
        )
    if wish.dtype not in ("float16", "float32"):
        raise InputError(f"expected dtype to be float16 or float32; got {wish.dtype!r}")
    if wish.tokens_per_batch is not None:
        checked_count(wish.tokens_per_batch, "tokens_per_batch")
    if not isinstance(wish.layers, (str, Sequence)) and not is_whole(wish.layers):
        raise InputError(f'expected layers as numbers, "all" or "last 4"; got {wish.layers!r}')


def _extract(reading: Reading, source: Source, wish: _Wish, out: Path) -> HiddenStates:
    description = _describe(reading, source, wish)
    if not (out / MANIFEST).is_file():
        check_folder(out)
        with only_writer(out):
            if not (out / MANIFEST).is_file():  # another has finished it meanwhile
                return _make(reading, source, wish, out, description)
    states, about = open_store(out)
    refuse_another(about, _with_layers(description, about, wish), out)
    return states


def _make(
    reading: Reading, source: Source, wish: _Wish, out: Path, description: dict[str, Any]
) -> HiddenStates:
    begun = unfinished_about(out)
    if begun is not None:
        refuse_another(begun, _with_layers(description, begun, wish), out)
    layered = open_layered(source, chosen_device(wish.device))
    vocabulary = load_vocabulary(source.checkpoint, source.trusts_code)
    description["n_layers"] = layered.n_layers
    description["layers"] = list(layer_numbers(wish.layers, layered.n_layers))
    tokens = wish.tokens_per_batch or _TOKENS_PER_BATCH.get(layered.device, _ON_A_GPU)
    # Other batches have other last bits: what was begun with some is finished with the same.
    description["tokens_per_batch"] = tokens if begun is None else begun["tokens_per_batch"]
    plan = make_plan(
        reading, vocabulary.tokenizer, words=wish.words, pooling=wish.pooling,
        max_length=source.max_length, show_progress=wish.show_progress,
    )  # fmt: skip
    writer = Writer(
        folder=out,
        empty=_without_vectors(reading, plan, source, description),
        width=layered.width,
        dtype=wish.dtype,
        description=description,
    )
    begin_store(writer)
    n_clipped = _write_blocks(writer, layered, vocabulary, plan, wish.show_progress)
    return writer.finish((*source.decisions, *_decisions(plan, n_clipped, wish.words)))


def _describe(reading: Reading, source: Source, wish: _Wish) -> dict[str, Any]:
    return {
        "weights": source.digest(),
        "texts": reading.digest(),
        "max_length": source.max_length,
        "unit": "word" if wish.words else "token",
        "pooling": wish.pooling if wish.words else "none",
        "dtype": wish.dtype,
    }


def _with_layers(description: dict[str, Any], found: dict[str, Any], wish: _Wish) -> dict[str, Any]:
    """Add the layers that are meant, where the encoder is the same and so has as many."""
    same = found.get("weights") == description["weights"] and "n_layers" in found
    layers = list(layer_numbers(wish.layers, found["n_layers"])) if same else found.get("layers")
    return {**description, "layers": layers}


def _without_vectors(
    reading: Reading, plan: Plan, source: Source, description: dict[str, Any]
) -> HiddenStates:
    parts = [description[key] for key in ("weights", "max_length", "unit", "pooling")]
    index = {
        "of_text": plan.of_text,
        "sentences": number_sentences(reading, plan.of_text, plan.spans[:, 0]),
        "spans": plan.spans,
        "n_pieces": plan.n_pieces,
    }
    return assemble(
        reading.texts, index, layers=tuple(description["layers"]), vectors=(),
        unit=description["unit"], pooling=description["pooling"], encoder=source.name,
        fingerprint=hashlib.sha256(repr(parts).encode()).hexdigest(),
    )  # fmt: skip


def _write_blocks(
    writer: Writer,
    layered: Layered,
    vocabulary: Vocabulary,
    plan: Plan,
    show_progress: bool | None,
) -> int:
    """Run what is not done yet; return how many numbers float16 could not hold."""
    n_units, n_clipped = writer.done()
    layers = writer.empty.layers
    most_tokens = max(1, _BLOCK_BYTES // (4 * len(layers) * layered.width))
    todo = [block for block in cut_into_blocks(plan, most_tokens) if block.end_unit > n_units]
    sizes = [len(run.ids) // 4 for run in plan.runs]
    with (
        progress_bar(
            total=sum(sizes), unit="token", description="Extracting", show=show_progress
        ) as bar,
        ThreadPoolExecutor(1) as aside,
    ):
        # A block is written while the next is worked on.
        written: Future[int] | None = None
        bar.update(sum(sizes[: todo[0].first_run] if todo else sizes))
        for block in todo:
            vectors = pool_block(
                layered,
                plan.runs[block.first_run : block.end_run],
                plan.n_pieces[block.first_unit : block.end_unit],
                first_row=block.first_unit,
                layers=layers,
                pooling=writer.empty.pooling,
                pad_id=vocabulary.pad_id,
                tokens_per_batch=writer.description["tokens_per_batch"],
                progress=bar.update,
            )
            n_clipped = n_clipped if written is None else written.result()
            written = aside.submit(writer.append, vectors, block.end_unit, n_clipped)
        return n_clipped if written is None else written.result()


def _decisions(plan: Plan, n_clipped: int, words: bool) -> list[Decision]:
    n_missing = int((plan.n_pieces == 0).sum())
    found = [
        (n_missing, "missing_words", "{:,} words have no token, and so no vector."),
        (
            plan.n_between * words,
            "tokens_between_words",
            "{:,} tokens stand for white space between words, and are in no word.",
        ),
        (plan.n_long, "long_texts", "{:,} texts were read in overlapping windows."),
        (n_clipped, "clipped", "{:,} numbers were too large for float16, and were cut to 65,504."),
    ]
    return [
        Decision("probing", name, value, message.format(value))
        for value, name, message in found
        if value
    ]
