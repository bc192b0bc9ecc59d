"""Hidden states of all layers of an encoder, on disk: vectors by layer, and their units.

::

    <folder>/
        about.json              encoder, settings and decisions
        texts.json              the texts
        index.npz               of_text, sentences, spans, n_pieces
        layer-00.f16 ...        n_units x width little-endian numbers
        manifest.json           sizes and checksums of all these
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np

from embedtopics._utils.checks import checked_choice, checked_count
from embedtopics._utils.display import progress_bar
from embedtopics._utils.folders import (
    MANIFEST,
    parse_json,
    read_manifest,
    replacing_folder,
    write_manifest,
)
from embedtopics._utils.records import read_record
from embedtopics.encoders._base import load_error, readable, require_torch
from embedtopics.encoders._foreign import can_encode
from embedtopics.encoders._registry import resolve_encoder
from embedtopics.encoders.sentence._checkpoint import Recipe
from embedtopics.encoders.sentence._encoder import SentenceEncoder
from embedtopics.encoders.sentence._loading import load_vocabulary
from embedtopics.encoders.sentence._running import (
    TOKENS_ON_CPU,
    has_gpu,
    longest_first,
    token_batches,
)
from embedtopics.encoders.sentence._torch import TOKENS_ON_GPU, load_model, silent_transformers
from embedtopics.errors import CorruptFileError, InputError
from embedtopics.probing._layers import Layers, layer_numbers
from embedtopics.probing._plan import (
    ExtractionPlan,
    Reading,
    TokenSequence,
    cut_into_blocks,
    make_plan,
    number_sentences,
    read_texts,
)
from embedtopics.probing._records import StatesRecord
from embedtopics.probing.results import HiddenStates
from embedtopics.protocols import FloatArray, Int64Array
from embedtopics.results import Decision, counted

if TYPE_CHECKING:
    import torch
    from tokenizers import Tokenizer

T = TypeVar("T")
R = TypeVar("R")

KIND = "hidden states"
VERSION = 1
_INDEX = ("of_text", "sentences", "spans", "n_pieces")
_MOST = float(np.finfo(np.float16).max)
_EXTENSIONS = {"float16": "f16", "float32": "f32"}
_BLOCK_BYTES = 128_000_000
"""Vectors that are held in memory and written at once."""


@dataclass(frozen=True, eq=False)
class LayeredModel:
    """A loaded transformer; in a causal one, a word knows nothing of what comes after it."""

    model: Any
    device: str
    n_layers: int
    width: int
    is_causal: bool = False


def transformer_of(encoder: Any) -> SentenceEncoder:
    """Return the transformer of an encoder."""
    transformer: SentenceEncoder | None = resolve_encoder(encoder).transformer
    if transformer is None:
        expected = "a checkpoint of a transformer, its folder or a SentenceEncoder"
        raise InputError("encoder", expected, encoder)
    return transformer


def load_layers(recipe: Recipe) -> LayeredModel:
    """Load a transformer, and see on two sequences that it has all layers, and whether causal."""
    device = "cuda" if has_gpu() else "cpu"
    model: Any = load_model(recipe.checkpoint, trust_remote_code=recipe.trusts_code).to(device)
    import torch

    padding = getattr(model.config, "pad_token_id", None)
    one, two, three = [token for token in range(4) if token != padding][:3]
    ids = torch.tensor([[one, two], [one, three]], device=device)
    mask = torch.ones_like(ids)
    with torch.inference_mode():
        states = model(input_ids=ids, attention_mask=mask, output_hidden_states=True).hidden_states
    shapes = {tuple(layer.shape) for layer in states}
    if len(shapes) != 1 or states[0].shape[:2] != ids.shape:
        expected = f"layers of one shape in {recipe.checkpoint.folder}"
        raise load_error(expected, sorted(shapes), "choose another checkpoint")
    is_causal = torch.equal(states[-1][0, 0], states[-1][1, 0])
    return LayeredModel(model, device, len(states), int(states[0].shape[2]), is_causal)


def one_core_each(work: Callable[[T], R], jobs: Iterable[T]) -> Iterator[R]:
    """Do jobs on as many threads as torch has, each on one; yield the results in order."""
    torch = require_torch("a model")
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)  # the order of its sums depends on their number
    try:
        with ThreadPoolExecutor(n_threads, "probing", torch.set_num_threads, (1,)) as pool:
            yield from pool.map(work, jobs)
    finally:
        torch.set_num_threads(n_threads)


@contextmanager
def random_model(encoder: Any, random_state: int) -> Iterator[SentenceEncoder]:
    """Yield an encoder with the same architecture and vocabulary, and freshly drawn weights."""
    torch = require_torch("a random model")
    from transformers import AutoConfig, AutoModel

    seed = checked_count(random_state, "random_state", 0)
    recipe = transformer_of(encoder).recipe
    checkpoint = recipe.checkpoint
    trusts_code, architecture = recipe.trusts_code, cast(Any, AutoModel)  # it has no types
    with tempfile.TemporaryDirectory(prefix="embedtopics-random-") as root:
        folder = Path(root) / "model"
        folder.mkdir()
        # All but the weights that a tokenizer may be made of.
        for path in (*checkpoint.tokenizer_files, *checkpoint.folder.glob("*_config.json")):
            shutil.copyfile(path, folder / path.name)
        with silent_transformers(), torch.random.fork_rng(devices=[]):
            config = AutoConfig.from_pretrained(
                checkpoint.folder, local_files_only=True, trust_remote_code=trusts_code
            )
            torch.default_generator.manual_seed(seed)  # not those of GPUs
            model = architecture.from_config(
                config, dtype=torch.float32, trust_remote_code=trusts_code
            )
            model.save_pretrained(folder)
        encoder = SentenceEncoder(folder, max_seq_length=recipe.max_length)
        name = f"{recipe.name} (random weights, random_state {seed})"
        encoder.recipe = replace(encoder.recipe, name=name)
        yield encoder


def pool_block(
    loaded: LayeredModel,
    plan: ExtractionPlan,
    of_block: slice,
    units: slice,
    layers: Sequence[int],
    pad_id: int,
    progress: Callable[[int], object],
) -> FloatArray:
    """Return the vectors of consecutive units at some layers, (n_layers, n_units, width)."""
    runs, n_pieces = plan.runs[of_block], plan.n_pieces[units]
    pooled = np.zeros((len(layers), len(n_pieces), loaded.width), dtype=np.float32)
    is_on_cpu = loaded.device == "cpu"
    most_tokens = TOKENS_ON_CPU if is_on_cpu else TOKENS_ON_GPU
    order = longest_first([run.ids for run in runs], range(len(runs)))
    batches = [
        [runs[k] for k in order[batch]]
        for batch in token_batches([len(runs[k]) for k in order], most_tokens)
    ]
    run = partial(_pool_batch, loaded, layers, pad_id)
    results = one_core_each(run, batches) if is_on_cpu else map(run, batches)
    # A unit may have tokens in several windows, and so in several batches.
    for batch_runs, (rows, by_layer) in zip(batches, results, strict=True):
        for layer, vectors in enumerate(by_layer):
            pooled[layer, rows - units.start] += vectors
        progress(sum(map(len, batch_runs)))
    pooled /= np.maximum(n_pieces, 1).astype(np.float32)[:, None]
    return pooled


def _pool_batch(
    loaded: LayeredModel, layers: Sequence[int], pad_id: int, runs: Sequence[TokenSequence]
) -> tuple[Int64Array, list[FloatArray]]:
    """Return the units with tokens in a batch, and at each layer the summed tokens of each."""
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
        """Sum the tokens of each unit, (n_units, width)."""
        # On a GPU, adding by index has no fixed order, and so no fixed last bit.
        selected = tokens.float().index_select(0, token_places)
        reduced = torch.segment_reduce(selected, "sum", lengths=lengths, axis=0)
        return np.asarray(reduced.cpu().numpy())

    with torch.inference_mode():
        output = loaded.model(
            input_ids=torch.from_numpy(ids).to(loaded.device),
            attention_mask=torch.from_numpy(mask).to(loaded.device),
            output_hidden_states=True,
        )
        return units, [reduce(output.hidden_states[n].flatten(0, 1)) for n in layers]


def hidden_states(
    encoder: Any,
    texts: Any,
    *,
    layers: Layers = "all",
    words: bool = True,
    random_weights: bool = False,
    out: str | os.PathLike[str] | None = None,
    dtype: str = "float16",
    random_state: int = 0,
    show_progress: bool | None = None,
) -> HiddenStates:
    """Return the vectors of all words of texts at all layers of an encoder.

    The vectors are written to disk block by block, and memory-mapped. A second call with the same
    arguments and the same `out` opens the finished states.

    Parameters
    ----------
    encoder : str, path or SentenceEncoder
        Name or folder of a checkpoint of a transformer, such as a BERT. Texts longer than its
        maximum length are read in overlapping windows; each token takes its vector from the window
        in which the shorter side of its context is longest.
    texts : sequence of str, sequence of sequences of str, or ProbeTask
        Whole texts, or lists of words. A rule splits whole texts into words: letters with their
        marks and apostrophes, numbers, and single punctuation marks. The encoder reads lists of
        words with single spaces between them. A list of words, or a text of a task, is one
        sentence.
    layers : int, sequence of int, "all" or "last N"
        0 is the embedding layer; negative numbers count from the last.
    words : bool
        Whether the units are words, with the mean vector of their tokens, or the tokens of the
        encoder.
    random_weights : bool
        Whether to draw the weights anew, as before training: an encoder with the same architecture
        and vocabulary. Pass these states to `probe` as `baseline`. Their scores show how well the
        task can be solved without any training of the encoder (Zhang & Bowman 2018; Conneau et al.
        2018).
    out : path, optional
        Folder for the result; by default a temporary one, removed with the result.
    dtype : {"float16", "float32"}
    random_state : int
        Seed of random weights.
    show_progress : bool, optional
        None shows a bar in terminals and notebooks.

    Returns
    -------
    HiddenStates
        `decisions` lists missing words and long texts.

    Raises
    ------
    InputError
        If an argument is invalid, `out` holds other files or states, or the disk is full.
    ModelLoadError
        If the checkpoint cannot be loaded, or does not return its layers.
    CorruptFileError
        If a file in `out` is damaged.

    Notes
    -----
    A token belongs to the word that has most of its characters. A word without a token, such as a
    zero-width space, has vectors of zeros and is `missing`. Before rounding to float16, vectors
    equal those of transformers for the text alone to 1e-5.

    Examples
    --------
    >>> import embedtopics as et
    >>> texts = ["They play chess.", "A play in two acts.", "The band will play."]
    >>> states = et.probing.hidden_states("all-MiniLM-L6-v2", texts, show_progress=False)
    >>> states
    HiddenStates(15 words of 3 texts, 7 layers of width 384, all-MiniLM-L6-v2)
    >>> states.words[:4], states.layer(6).shape
    (('They', 'play', 'chess', '.'), (15, 384))
    """
    checked_choice(dtype, "dtype", ("float16", "float32"))
    _refuse_swapped(encoder, texts)
    reading = read_texts(texts)
    if not random_weights:
        return _read_layers(
            transformer_of(encoder), reading, layers, words, out, dtype, show_progress
        )
    with random_model(encoder, random_state) as model:
        return _read_layers(model, reading, layers, words, out, dtype, show_progress)


def _refuse_swapped(encoder: Any, texts: Any) -> None:
    """Refuse texts as the first argument, or an encoder as the second."""
    is_encoder = isinstance(encoder, str | os.PathLike) or can_encode(encoder)
    if is_encoder and not can_encode(texts):
        return
    parameter, value = ("texts", texts) if is_encoder else ("encoder", encoder)
    expected = "a list of texts" if is_encoder else "an encoder, or the name or folder of one"
    remedy = "call et.probing.hidden_states(encoder, texts)"
    raise InputError(parameter, expected, remedy=remedy, found=f"a {type(value).__name__}")


def _read_layers(
    encoder: SentenceEncoder,
    reading: Reading,
    layers: Layers,
    words: bool,
    out: str | os.PathLike[str] | None,
    dtype: str,
    show_progress: bool | None,
) -> HiddenStates:
    """Return the states of a transformer, from the folder `out` if it holds them already."""
    recipe = encoder.recipe
    contents = (recipe.checkpoint.contents, recipe.checkpoint.lower_case)
    description = {
        "weights": hashlib.sha256(repr(contents).encode()).hexdigest(),
        "texts": reading.digest(),
        "max_length": recipe.max_length,
        "unit": "word" if words else "token",
        "pooling": "mean" if words else "none",
        "dtype": dtype,
    }

    if out is None:
        root = Path(tempfile.mkdtemp(prefix="embedtopics-states-"))
        try:
            empty, shape = _extract(reading, recipe, layers, description, root, show_progress)
        except BaseException:  # an interrupt too
            shutil.rmtree(root, ignore_errors=True)
            raise
        states = replace(empty, vectors=map_vectors(root, empty.layers, shape, dtype))
        weakref.finalize(states, shutil.rmtree, root, ignore_errors=True)
        return states

    out = Path(os.path.abspath(out))
    if (out / MANIFEST).is_file():
        states = _open_same(out, layers, description)
        tokenizer = load_vocabulary(recipe.checkpoint, recipe.trusts_code).tokenizer
        return replace(states, forms=forms_of(tokenizer, states.words))

    with replacing_folder(out, KIND) as fresh:
        empty, shape = _extract(reading, recipe, layers, description, fresh, show_progress)
        write_store(fresh, empty, description)
    return replace(empty, vectors=map_vectors(out, empty.layers, shape, dtype))


def _open_same(out: Path, layers: Layers, description: dict[str, Any]) -> HiddenStates:
    """Open a folder, and refuse states of another encoder, other texts or other options."""
    states, about = open_store(out)
    differs = [name for name, value in description.items() if about.get(name) != value]
    if not differs and layer_numbers(layers, range(about["n_layers"])) != states.layers:
        differs = ["layers"]
    if differs:
        raise InputError(
            "out",
            "a new folder, or the folder of the same states",
            found=f"{str(out)!r}, which holds states of other {', '.join(differs)}",
            remedy="choose another folder",
        )
    return states


def _extract(
    reading: Reading,
    recipe: Recipe,
    layers: Layers,
    description: dict[str, Any],
    folder: Path,
    show_progress: bool | None,
) -> tuple[HiddenStates, tuple[int, int]]:
    """Write vectors to a folder; return the states without them, and the shape of a layer."""
    loaded = load_layers(recipe)
    vocabulary = load_vocabulary(recipe.checkpoint, recipe.trusts_code)
    numbers = layer_numbers(layers, range(loaded.n_layers))
    description |= {"n_layers": loaded.n_layers, "width": loaded.width}

    plan = make_plan(
        reading,
        vocabulary.tokenizer,
        words=description["unit"] == "word",
        max_length=recipe.max_length,
        show_progress=show_progress,
    )

    dtype = description["dtype"]
    pad_id = vocabulary.pad_id
    n_clipped = _write_blocks(folder, numbers, dtype, loaded, pad_id, plan, show_progress)

    decisions = []
    if recipe.prompt:
        message = f"The prompt {recipe.prompt!r} is not prepended to the texts."
        decisions.append(Decision("probing", "prompt", recipe.prompt, message))
    if loaded.is_causal:
        message = "The model is a decoder: a vector depends on its word and those before it."
        decisions.append(Decision("probing", "causal", True, message))

    note = partial(counted, "probing")
    n_missing = int((plan.n_pieces == 0).sum())
    decisions += note("missing_words", n_missing, "words have no token, and so no vector.")
    if description["unit"] == "word":
        message = "tokens between words belong to no word."
        decisions += note("tokens_between_words", plan.n_between, message)
    decisions += note("long_texts", plan.n_long, "texts were read in overlapping windows.")
    message = "numbers exceeded float16, and were clipped to 65,504."
    decisions += note("clipped", n_clipped, message)

    parts = [description[key] for key in ("weights", "max_length", "unit", "pooling")]
    index = {"of_text": plan.of_text, "spans": plan.spans, "n_pieces": plan.n_pieces}
    index["sentences"] = number_sentences(reading, plan.of_text, plan.spans[:, 0])
    empty = assemble(
        reading.texts,
        index,
        layers=numbers,
        vectors=(),
        unit=description["unit"],
        encoder=recipe.name,
        fingerprint=hashlib.sha256(repr(parts).encode()).hexdigest(),
        decisions=tuple(decisions),
    )

    empty = replace(empty, forms=forms_of(vocabulary.tokenizer, empty.words))
    return empty, (len(plan.of_text), loaded.width)


def forms_of(tokenizer: Tokenizer, words: Iterable[str]) -> dict[str, str]:
    """Return the words that the normalizer of a tokenizer changes, and what they become."""
    if tokenizer.normalizer is None:
        return {}
    forms = {}
    for word in sorted(set(words)):
        # SentencePiece puts a mark before each word.
        form = tokenizer.normalizer.normalize_str(readable(word)).replace("\u2581", " ").strip()
        if form and form != word:
            forms[word] = form
    return forms


def _write_blocks(
    folder: Path,
    layers: Sequence[int],
    dtype: str,
    loaded: LayeredModel,
    pad_id: int,
    plan: ExtractionPlan,
    show_progress: bool | None,
) -> int:
    """Run and write all blocks; return how many numbers float16 could not hold."""
    n_clipped, total = 0, sum(map(len, plan.runs))
    most_tokens = max(1, _BLOCK_BYTES // (4 * len(layers) * loaded.width))
    with progress_bar(
        total=total, unit="token", description="Extracting", show=show_progress
    ) as bar:
        for runs, units in cut_into_blocks(plan, most_tokens):
            vectors = pool_block(loaded, plan, runs, units, layers, pad_id, bar.update)
            for number, layer in zip(layers, vectors, strict=True):
                if dtype == "float16":
                    n_clipped += int((np.abs(layer) > _MOST).sum())
                    np.clip(layer, -_MOST, _MOST, out=layer)
                with (folder / f"layer-{number:02d}.{_EXTENSIONS[dtype]}").open("ab") as file:
                    file.write(layer.astype(np.dtype(dtype).newbyteorder("<")).data)
    return n_clipped


def map_vectors(
    folder: Path, layers: Sequence[int], shape: tuple[int, int], dtype: str
) -> tuple[Any, ...]:
    """Map the file of each layer into memory."""
    kind = np.dtype(dtype).newbyteorder("<")
    if not shape[0]:  # an empty file cannot be mapped
        return tuple(np.zeros(shape, dtype=kind) for _ in layers)
    paths = [folder / f"layer-{layer:02d}.{_EXTENSIONS[dtype]}" for layer in layers]
    return tuple(np.memmap(path, dtype=kind, mode="r", shape=shape) for path in paths)


def write_store(folder: Path, states: HiddenStates, description: Mapping[str, Any]) -> None:
    """Write all but the vectors."""
    content = {
        **description,
        "encoder": states.encoder,
        "fingerprint": states.fingerprint,
        "layers": states.layers,
        "decisions": [vars(decision) for decision in states.decisions],
        "forms": dict(states.forms),
    }
    (folder / "about.json").write_text(json.dumps(content), "utf-8")
    (folder / "texts.json").write_text(json.dumps(states.texts), "utf-8")
    np.savez(folder / "index.npz", **{name: getattr(states, name) for name in _INDEX})
    write_manifest(folder, KIND, VERSION)


def open_store(folder: Path) -> tuple[HiddenStates, dict[str, Any]]:
    """Check all files of a folder; return hidden states, and the description of their store."""
    read_manifest(folder, KIND, VERSION)
    try:
        path = folder / "about.json"
        about = read_record(StatesRecord, path.read_bytes(), path)
        texts = tuple(parse_json((folder / "texts.json").read_bytes()))
        with np.load(folder / "index.npz", allow_pickle=False) as arrays:
            index = {name: arrays[name] for name in _INDEX}

        of_text = index["of_text"]
        if len(of_text) and not 0 <= of_text.min() <= of_text.max() < len(texts):
            raise ValueError("its rows are of texts that it does not hold")

        shape = (len(of_text), about.width)
        layers = tuple(about.layers)
        if max(layers) >= about.n_layers:
            raise ValueError(f"it has the layer {max(layers)} of {about.n_layers} layers")
        states = assemble(
            texts,
            index,
            layers=layers,
            vectors=map_vectors(folder, layers, shape, about.dtype),
            decisions=tuple(record.decision() for record in about.decisions),
            forms=about.forms,
            unit=about.unit,
            encoder=about.encoder,
            fingerprint=about.fingerprint,
        )
        return states, about.model_dump()
    except CorruptFileError:
        raise
    except (
        ArithmeticError, AttributeError, LookupError, TypeError, ValueError, OSError
    ) as error:  # fmt: skip
        raise CorruptFileError(f"{folder} is damaged ({error}); extract again") from error


def assemble(texts: tuple[str, ...], index: Mapping[str, Any], **others: Any) -> HiddenStates:
    """Return hidden states, with the words and positions that follow from the index."""
    of_text, spans = index["of_text"], index["spans"]
    begins = np.searchsorted(of_text, np.arange(len(texts)))
    sizes = np.diff(begins, append=len(of_text))
    return HiddenStates(
        texts=texts,
        words=tuple(
            texts[text][begin:end]
            for text, (begin, end) in zip(of_text.tolist(), spans.tolist(), strict=True)
        ),
        position=(np.arange(len(of_text)) - np.repeat(begins, sizes)).astype(np.int32),
        **index,
        **others,
    )
