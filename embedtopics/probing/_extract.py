"""What an encoder computes inside: hidden states of all layers, and attention weights."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from embedtopics._utils.checks import checked_choice, optional_count
from embedtopics._utils.folders import MANIFEST, check_output_folder, only_writer
from embedtopics._utils.progress import progress_bar
from embedtopics.decisions import Decision, counted
from embedtopics.encoders._base import readable
from embedtopics.encoders.sentence._loading import DEFAULT_MODEL, PlainVocabulary, load_vocabulary
from embedtopics.encoders.sentence._running import longest_first, token_batches
from embedtopics.errors import InputError, ModelLoadError
from embedtopics.probing._layers import Layers, layer_numbers
from embedtopics.probing._open import (
    CheckpointSource,
    LayeredModel,
    load_layers,
    random_model,
    source_of,
)
from embedtopics.probing._plan import (
    ExtractionPlan,
    Reading,
    TokenSequence,
    cut_into_blocks,
    make_plan,
    number_sentences,
    read_texts,
)
from embedtopics.probing._storage import KIND, StatesWriter, assemble, open_store, unfinished_about
from embedtopics.probing.results import Attention, HiddenStates
from embedtopics.protocols import FloatArray, Int32Array, Int64Array

if TYPE_CHECKING:
    import torch

POOLINGS = ("first", "last", "max", "mean", "sum")
_BLOCK_BYTES = 128_000_000
"""Vectors that are held in memory and written at once."""
_TOKENS_PER_BATCH = {"cpu": 512}
_ON_A_GPU = 16_384

_DIFFERENCES = ("weights", "texts", "max_length", "layers", "unit", "pooling", "dtype")

Pooled = tuple[Int64Array, list[FloatArray]]
"""The units with tokens in a batch, and at each layer the pooled tokens of each."""


def pool_block(
    loaded: LayeredModel,
    runs: Sequence[TokenSequence],
    n_pieces: Int32Array,
    *,
    first_row: int,
    layers: Sequence[int],
    pooling: str,
    pad_id: int,
    tokens_per_batch: int,
    progress: Callable[[int], object],
) -> FloatArray:
    """Return the vectors of consecutive units at some layers, (n_layers, n_units, width)."""
    by_maximum = pooling == "max"
    start = -np.inf if by_maximum else 0.0
    pooled = np.full((len(layers), len(n_pieces), loaded.width), start, dtype=np.float32)
    order = longest_first([run.ids for run in runs], range(len(runs)))
    batches = [
        [runs[k] for k in order[batch]]
        for batch in token_batches([len(runs[k]) for k in order], tokens_per_batch)
    ]

    def run(batch_runs: list[TokenSequence]) -> Pooled:
        return _pool_batch(loaded, batch_runs, layers, pad_id, by_maximum)

    # A unit may have tokens in several windows, and so in several batches.
    merge = np.maximum if by_maximum else np.add
    for batch_runs, (rows, by_layer) in _results_of(run, batches, loaded.device):
        for layer, vectors in enumerate(by_layer):
            pooled[layer, rows - first_row] = merge(pooled[layer, rows - first_row], vectors)
        progress(sum(map(len, batch_runs)))
    if by_maximum:
        pooled[:, n_pieces == 0] = 0.0
    if pooling == "mean":
        pooled /= np.maximum(n_pieces, 1).astype(np.float32)[:, None]
    return pooled


def _results_of(
    work: Callable[[list[TokenSequence]], Pooled], batches: list[list[TokenSequence]], device: str
) -> Iterator[tuple[list[TokenSequence], Pooled]]:
    """Yield each batch with its result, in order; a CPU runs several at once, one core for each."""
    import torch

    n_threads = torch.get_num_threads()
    if device != "cpu":
        yield from ((batch, work(batch)) for batch in batches)
        return
    executor = ThreadPoolExecutor(n_threads, initializer=torch.set_num_threads, initargs=(1,))
    waiting: deque[tuple[list[TokenSequence], Future[Pooled]]] = deque()
    try:
        for batch in batches:
            waiting.append((batch, executor.submit(work, batch)))
            if len(waiting) > 2 * n_threads:  # results not yet taken fill memory
                first, result = waiting.popleft()
                yield first, result.result()
        for first, result in waiting:
            yield first, result.result()
    finally:
        executor.shutdown(cancel_futures=True)
        torch.set_num_threads(n_threads)  # of the whole process, for some of its libraries


def _pool_batch(
    loaded: LayeredModel,
    runs: Sequence[TokenSequence],
    layers: Sequence[int],
    pad_id: int,
    by_maximum: bool,
) -> Pooled:
    import torch

    n_tokens = len(runs[0])
    ids = np.full((len(runs), n_tokens), pad_id, dtype=np.int64)
    mask = np.zeros_like(ids)
    for row, run in enumerate(runs):
        ids[row, : len(run)] = np.frombuffer(run.ids, dtype=np.int32)
        mask[row, : len(run)] = 1
    places = np.concatenate([run.places + row * n_tokens for row, run in enumerate(runs)])
    rows = np.concatenate([run.rows for run in runs])
    places = places[np.argsort(rows, kind="stable")].astype(np.int64)
    units, sizes = np.unique(rows, return_counts=True)
    token_places, lengths = (torch.from_numpy(array).to(loaded.device) for array in (places, sizes))

    def reduce(tokens: torch.Tensor) -> FloatArray:
        """Sum the tokens of each unit, or take their maximum, (n_units, width)."""
        # On a GPU, adding by index has no fixed order, and so no fixed last bit.
        selected = tokens.float().index_select(0, token_places)
        kind = "max" if by_maximum else "sum"
        reduced = torch.segment_reduce(selected, kind, lengths=lengths, axis=0)
        return np.asarray(reduced.cpu().numpy())

    with torch.inference_mode():
        output = loaded.model(
            input_ids=torch.from_numpy(ids).to(loaded.device),
            attention_mask=torch.from_numpy(mask).to(loaded.device),
            output_hidden_states=True,
        )
        return units, [reduce(output.hidden_states[n].flatten(0, 1)) for n in layers]


def hidden_states(
    texts: Any,
    encoder: Any = DEFAULT_MODEL,
    *,
    layers: Layers = "all",
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

    The vectors are written to disk block by block, and memory-mapped. A second call with the same
    arguments resumes an interrupted extraction, and opens a finished one.

    Parameters
    ----------
    texts : sequence of str, sequence of sequences of str, or ProbeTask
        Whole texts, or lists of words. A rule splits whole texts into words: letters with their
        marks and apostrophes, numbers, and single punctuation marks. The encoder reads lists of
        words with single spaces between them. A list of words, or a text of a task, is one
        sentence.
    encoder : str, path or SentenceEncoder
        Name or folder of a checkpoint of a transformer, such as a BERT.
    layers : int, sequence of int, "all" or "last N"
        0 is the embedding layer; negative numbers count from the last.
    words : bool
        Whether the units are words, or the tokens of the encoder.
    pooling : {"mean", "first", "last", "max", "sum"}
        How the tokens of a word become one vector.
    out : path, optional
        Folder for the result; by default a temporary one, removed with the result.
    dtype : {"float16", "float32"}
    max_length : int, optional
        Maximum number of tokens per sequence; by default the checkpoint's. Longer texts are read
        in overlapping windows; each token takes its vector from the window in which the shorter
        side of its context is longest.
    tokens_per_batch : int, optional
        Padding included; by default 512 on a CPU and 16,384 on a GPU.
    device : str, optional
        As in torch; by default the first CUDA device if there is one, else the CPU.
    show_progress : bool, optional
        None shows a bar in terminals and notebooks.

    Returns
    -------
    HiddenStates
        `decisions` lists missing words and long texts.

    Raises
    ------
    InputError
        If an argument is invalid, `out` holds other files or states, another process writes to
        it, or the disk is full.
    ModelLoadError
        If the checkpoint cannot be loaded, or does not return its layers.
    CorruptFileError
        If a file of a finished or unfinished store is damaged.

    Notes
    -----
    A token belongs to the word that has most of its characters. A word without a token, such as a
    zero-width space, has vectors of zeros and is `missing`. Before rounding to float16, vectors
    equal those of transformers for the text alone to 1e-5.

    Examples
    --------
    >>> states = hidden_states(["They play chess.", "A play in two acts."])  # doctest: +SKIP
    >>> [word for word in states.words if word == "play"], states.layers  # doctest: +SKIP
    (['play', 'play'], (0, 1, 2, 3, 4, 5, 6))
    """
    checked_choice(pooling, "pooling", POOLINGS)
    checked_choice(dtype, "dtype", ("float16", "float32"))
    optional_count(tokens_per_batch, "tokens_per_batch")
    options = _Options(layers, bool(words), pooling, dtype, tokens_per_batch, device, show_progress)
    reading = read_texts(texts)
    source = source_of(encoder, max_length)
    if out is not None:
        return _extract(reading, source, options, Path(os.path.abspath(out)))
    root = tempfile.mkdtemp(prefix="embedtopics-states-")
    try:
        states = replace(_extract(reading, source, options, Path(root) / "states"), folder="")
    except BaseException:  # an interrupt too
        shutil.rmtree(root, ignore_errors=True)
        raise
    weakref.finalize(states, shutil.rmtree, root, ignore_errors=True)
    return states


def random_states(
    texts: Any, encoder: Any = DEFAULT_MODEL, *, random_state: int = 0, **options: Any
) -> HiddenStates:
    """Return hidden states of an encoder with the same architecture and random weights.

    Pass them to `probe` as `random_states`. Their scores show how well the task can be solved
    without any training of the encoder (Zhang & Bowman 2018; Conneau et al. 2018).

    Parameters
    ----------
    texts, encoder
        As for `hidden_states`.
    random_state : int
        Seed of the weights, which are initialized as before training.
    **options
        As for `hidden_states`.

    Returns
    -------
    HiddenStates

    Raises
    ------
    InputError, ModelLoadError
        As `hidden_states`.
    """
    with random_model(encoder, random_state) as model:
        return hidden_states(texts, model, **options)


@dataclass(frozen=True)
class _Options:
    """How vectors are computed, by the names of the parameters of `hidden_states`."""

    layers: Layers
    words: bool
    pooling: str
    dtype: str
    tokens_per_batch: int | None
    device: str | None
    show_progress: bool | None

    def layer_numbers(self, n_layers: int) -> list[int]:
        """Return the layers of an encoder, ascending, each once."""
        return sorted(set(layer_numbers(self.layers, range(n_layers))))


_CAUSAL = Decision(
    "probing",
    "causal",
    True,
    "The model is a decoder: the vectors of a word depend only on the words before it.",
)


def _extract(
    reading: Reading, source: CheckpointSource, options: _Options, out: Path
) -> HiddenStates:
    description = {
        "weights": source.digest(),
        "texts": reading.digest(),
        "max_length": source.max_length,
        "unit": "word" if options.words else "token",
        "pooling": options.pooling if options.words else "none",
        "dtype": options.dtype,
    }
    if not (out / MANIFEST).is_file():
        check_output_folder(out, KIND)
        with only_writer(out):
            if not (out / MANIFEST).is_file():  # another process has finished it meanwhile
                return _write(reading, source, options, out, description)
    states, about = open_store(out)
    _refuse_other_states(about, description, options, out)
    return states


def _refuse_other_states(
    about: dict[str, Any], description: dict[str, Any], options: _Options, out: Path
) -> None:
    """Refuse a store of other states; layers can be compared if the encoder is the same."""
    same = about.get("weights") == description["weights"] and "n_layers" in about
    layers = options.layer_numbers(about["n_layers"]) if same else about.get("layers")
    description = {**description, "layers": layers}
    differs = [name for name in _DIFFERENCES if about.get(name) != description[name]]
    if differs:
        hashed = {"weights": "another encoder", "texts": "other texts"}
        named = [
            hashed.get(name, f"{name} {about.get(name)!r}, not {description[name]!r}")
            for name in differs
        ]
        expected = f"a folder for these states, {str(out)!r} is not"
        raise InputError("out", expected, found=f"those of {', '.join(named)}")


def _write(
    reading: Reading,
    source: CheckpointSource,
    options: _Options,
    out: Path,
    description: dict[str, Any],
) -> HiddenStates:
    begun = unfinished_about(out)
    if begun is not None:
        _refuse_other_states(begun, description, options, out)
    loaded = load_layers(source, options.device)
    vocabulary = load_vocabulary(source.checkpoint, source.trusts_code)
    description["n_layers"] = loaded.n_layers
    description["layers"] = options.layer_numbers(loaded.n_layers)
    tokens = options.tokens_per_batch or _TOKENS_PER_BATCH.get(loaded.device, _ON_A_GPU)
    # Other batches have other last bits: a resumed extraction keeps its batches.
    description["tokens_per_batch"] = tokens if begun is None else begun["tokens_per_batch"]
    plan = make_plan(
        reading,
        vocabulary.tokenizer,
        words=options.words,
        pooling=options.pooling,
        max_length=source.max_length,
        show_progress=options.show_progress,
    )
    parts = [description[key] for key in ("weights", "max_length", "unit", "pooling")]
    empty = assemble(
        reading.texts,
        {
            "of_text": plan.of_text,
            "sentences": number_sentences(reading, plan.of_text, plan.spans[:, 0]),
            "spans": plan.spans,
            "n_pieces": plan.n_pieces,
        },
        layers=tuple(description["layers"]),
        vectors=(),
        unit=description["unit"],
        pooling=description["pooling"],
        encoder=source.name,
        fingerprint=hashlib.sha256(repr(parts).encode()).hexdigest(),
    )
    writer = StatesWriter(out, empty, loaded.width, options.dtype, description)
    writer.begin()
    n_clipped = _write_blocks(writer, loaded, vocabulary, plan, options.show_progress)
    decisions = list(source.decisions)
    if loaded.is_causal:
        decisions.append(_CAUSAL)
    note = partial(counted, "probing")
    n_missing = int((plan.n_pieces == 0).sum())
    decisions += note("missing_words", n_missing, "words have no token, and so no vector.")
    if options.words:
        message = "tokens between words belong to no word."
        decisions += note("tokens_between_words", plan.n_between, message)
    decisions += note("long_texts", plan.n_long, "texts were read in overlapping windows.")
    message = "numbers exceeded float16, and were clipped to 65,504."
    decisions += note("clipped", n_clipped, message)
    return writer.finish(decisions)


def _write_blocks(
    writer: StatesWriter,
    loaded: LayeredModel,
    vocabulary: PlainVocabulary,
    plan: ExtractionPlan,
    show_progress: bool | None,
) -> int:
    """Run the blocks that remain; return how many numbers float16 could not hold."""
    n_units, n_clipped = writer.done()
    layers = writer.empty.layers
    most_tokens = max(1, _BLOCK_BYTES // (4 * len(layers) * loaded.width))
    todo = [block for block in cut_into_blocks(plan, most_tokens) if block.end_unit > n_units]
    sizes = [len(run) for run in plan.runs]
    bar = progress_bar(total=sum(sizes), unit="token", description="Extracting", show=show_progress)
    with bar, ThreadPoolExecutor(1) as writing:
        # A block is written while the next is computed.
        written: Future[int] | None = None
        bar.update(sum(sizes[: todo[0].first_run] if todo else sizes))
        for block in todo:
            vectors = pool_block(
                loaded,
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
            written = writing.submit(writer.append, vectors, block.end_unit, n_clipped)
        return n_clipped if written is None else written.result()


def attention(
    text: str | Sequence[str],
    encoder: Any = DEFAULT_MODEL,
    *,
    layers: Layers = "all",
    device: str | None = None,
) -> Attention:
    """Return the attention weights of one text.

    Attention weights show where information can flow; they do not explain predictions (Jain &
    Wallace 2019).

    Parameters
    ----------
    text : str or sequence of str
        One text, or the words of one.
    encoder : str, path or SentenceEncoder
    layers : "all", int or sequence of int
        From 1: the embedding layer has no attention; negative numbers count from the last.
    device : str, optional

    Returns
    -------
    Attention
        Special tokens included.

    Raises
    ------
    InputError
        If the text is empty or longer than the encoder's maximum, or a layer does not exist.
    ModelLoadError
        If the checkpoint cannot be loaded, or does not return its attention.
    """
    import torch

    [whole] = read_texts([text]).texts
    source = source_of(encoder)
    vocabulary = load_vocabulary(source.checkpoint, source.trusts_code)
    encoding = vocabulary.tokenizer.encode(readable(whole))
    if all(encoding.special_tokens_mask):
        raise InputError("text", "a text with at least one token", whole)
    if len(encoding) > source.max_length:
        expected = f"of at most {source.max_length} tokens for {source.name}"
        raise InputError("text", expected, found=f"{len(encoding)} tokens")
    # Other implementations do not keep the weights.
    loaded = load_layers(source, device, attention="eager")
    numbers = tuple(sorted(set(layer_numbers(layers, range(1, loaded.n_layers)))))
    ids = torch.tensor([encoding.ids], device=loaded.device)
    mask = torch.ones_like(ids)
    with torch.inference_mode():
        output = loaded.model(input_ids=ids, attention_mask=mask, output_attentions=True)
    attentions = getattr(output, "attentions", None) or ()
    weights = [layer[0].float().cpu().numpy() for layer in attentions if layer is not None]
    if len(weights) != loaded.n_layers - 1:
        returned = f"the attention of {len(weights)} of {loaded.n_layers - 1} layers"
        raise ModelLoadError(f"{source.name} returns {returned}; choose another checkpoint")
    # Tokens as they are written in the text, special ones by name.
    named = zip(encoding.tokens, encoding.offsets, encoding.special_tokens_mask, strict=True)
    tokens = tuple(
        token if special else whole[begin:end].strip() or token
        for token, (begin, end), special in named
    )
    stacked = np.stack([weights[layer - 1] for layer in numbers])
    return Attention(whole, tokens, numbers, stacked, source.name)
