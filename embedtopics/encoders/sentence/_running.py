"""Texts to token ids to vectors, in batches on all cores; and alignment of tokens with words."""

from __future__ import annotations

import ctypes
import logging
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from embedtopics._utils.display import progress_bar
from embedtopics.encoders._base import readable, slabs
from embedtopics.encoders.sentence._graph import WORDS, Graph
from embedtopics.protocols import FloatArray, Int32Array, Int64Array

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from embedtopics.encoders.sentence._torch import TorchRuntime


@dataclass(frozen=True, eq=False)
class TokenizedTexts:
    """Token ids of each text, as bytes; counts are (n_texts,)."""

    ids: list[bytes]
    n_tokens: Int32Array
    n_seen: Int32Array
    n_unknown: Int32Array


def tokenize(
    tokenizer: Tokenizer,
    texts: Sequence[str],
    *,
    unknown_id: int,
    prompt: str = "",
    show_progress: bool | None = None,
) -> TokenizedTexts:
    """Tokenize texts, one slab at a time."""
    # The tokens of a prompt are not counted. The space at its end is a token in some vocabularies,
    # and part of the first token of the text in others.
    empty = tokenizer.encode(prompt.rstrip()).ids
    n_special, special_unknown = len(empty), empty.count(unknown_id)
    n_ends = len(tokenizer.encode("").ids)
    ids: list[bytes] = []
    counts = np.zeros((3, len(texts)), dtype=np.int32)
    row = 0
    with progress_bar(
        total=len(texts), unit="text", description="Tokenising", show=show_progress
    ) as bar:
        for slab in slabs(texts):
            prompted = [prompt + readable(text) for text in slab]
            for text, encoding in zip(slab, tokenizer.encode_batch_fast(prompted), strict=True):
                token_ids = encoding.ids
                ids.append(np.array(token_ids, dtype=np.int32).tobytes())
                seen = len(token_ids) - n_special if text else 0
                unknown = token_ids.count(unknown_id) - special_unknown
                seen, unknown = max(seen, 0), max(unknown, 0)
                # The tokenizer returns truncated tokens as further sequences.
                n_cut = sum(len(part) - n_ends for part in encoding.overflowing)
                counts[:, row] = seen + n_cut, seen, unknown
                row += 1
            bar.update(len(slab))
    return TokenizedTexts(ids, counts[0], counts[1], counts[2])


def n_leading(tokenizer: Tokenizer, prompt: str) -> int:
    """Return the number of tokens before the text: prompt and opening special tokens."""
    if not prompt:
        return 0
    encoding = tokenizer.encode(prompt)
    opening = [place for place, special in enumerate(encoding.special_tokens_mask) if not special]
    return opening[-1] + 1 if opening else 0


TokenArray = npt.NDArray[np.int64]

TOKENS_ON_CPU = 512
"""Fastest batch size on a CPU: its caches hold the activations."""

_logger = logging.getLogger("embedtopics")


def onnx_session(graph: Graph) -> Any:
    """Open a model on one thread of the CPU."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4  # errors are raised; they need not be printed
    # Spinning threads would take the cores from other work.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    tensor = onnxruntime.OrtValue.ortvalue_from_numpy(graph.words)
    options.add_external_initializers([WORDS], [tensor])
    return onnxruntime.InferenceSession(graph.model, options, providers=["CPUExecutionProvider"])


class OnnxRuntime:
    """Run a model on the CPU with one thread per batch: sharing a batch costs waiting."""

    name = "onnx"
    note = ""  # reason for a fallback
    tokens_per_batch = TOKENS_ON_CPU

    def __init__(self, graph: Graph) -> None:
        self._session = onnx_session(graph)
        self._words = graph.words  # the session reads them where they lie
        self._inputs = [value.name for value in self._session.get_inputs()]

    @cached_property
    def n_workers(self) -> int:
        """Number of concurrent calls: one on each physical core."""
        from joblib import cpu_count

        with warnings.catch_warnings():
            # joblib warns if it cannot distinguish threads from cores, which does not matter here.
            warnings.simplefilter("ignore")
            return max(1, int(cpu_count(only_physical_cores=True)))

    def __call__(self, ids: TokenArray, mask: TokenArray, pooled: TokenArray) -> FloatArray:
        """Return pooled vectors of shape (n_texts, n_pooled); all arrays (n_texts, n_tokens)."""
        arrays = {"input_ids": ids, "attention_mask": mask, "pooled_mask": pooled}
        vectors: FloatArray = self._session.run(
            None, {name: arrays[name] for name in self._inputs}
        )[0]
        return vectors


Runtime: TypeAlias = "OnnxRuntime | TorchRuntime"


def has_gpu() -> bool:
    """Return whether torch can use a CUDA device; torch is not loaded without a driver."""
    try:
        ctypes.CDLL("libcuda.so.1" if os.name == "posix" else "nvcuda.dll")
    except OSError:
        return False
    if find_spec("torch") is None:
        return False
    import torch

    return bool(torch.cuda.is_available())


def longest_first(keys: Sequence[bytes], rows: Sequence[int]) -> list[int]:
    """Order rows by length, longest first; ties by content."""
    # Sorting by length leaves next to no padding. Breaking ties by content instead of position
    # makes the batches, and so every bit of the result, independent of the order of the input.
    # The longest come first so that too little memory shows at once and not at the end.
    return sorted(rows, key=lambda row: (-len(keys[row]), keys[row]))


def token_batches(lengths: Sequence[int], tokens_per_batch: int) -> Iterator[slice]:
    """Split texts, longest first, into batches of at most `tokens_per_batch` padded tokens."""
    start = 0
    while start < len(lengths):
        stop = start + max(1, tokens_per_batch // max(1, lengths[start]))
        yield slice(start, min(stop, len(lengths)))
        start = stop


def embed(
    run: Runtime,
    ids: Sequence[bytes],
    *,
    pad_id: int,
    n_unpooled: int,
    tokens_per_batch: int,
    finish: Callable[[FloatArray], FloatArray],
    dimensions: int,
    show_progress: bool | None,
) -> FloatArray:
    """Return one vector per text, (n_texts, dimensions)."""
    row_of: dict[bytes, int] = {}
    first = [row_of.setdefault(text, row) for row, text in enumerate(ids)]
    # Without special tokens, an empty text has no tokens and gets a zero vector.
    order = longest_first(ids, [row for text, row in row_of.items() if text])
    lengths = [len(ids[row]) // 4 for row in order]
    vectors = np.zeros((len(ids), dimensions), dtype=np.float32)

    def work(batch: slice) -> tuple[slice, FloatArray]:
        arrays = _padded([ids[row] for row in order[batch]], pad_id, n_unpooled)
        return batch, finish(run(*arrays))

    batches = list(token_batches(lengths, tokens_per_batch))
    with progress_bar(
        total=sum(lengths), unit="token", description="Encoding", show=show_progress
    ) as bar:
        for batch, batch_vectors in _side_by_side(work, batches, run):
            vectors[order[batch]] = batch_vectors
            bar.update(sum(lengths[batch]))
    repeated = [row for row, source in enumerate(first) if source != row]
    vectors[repeated] = vectors[[first[row] for row in repeated]]
    return vectors


def token_vectors(run: Runtime, ids: bytes, width: int | None) -> FloatArray:
    """Return the hidden states of a text, (n_tokens, width), by pooling each token alone."""
    tokens = np.frombuffer(ids, dtype=np.int32).astype(np.int64)
    repeated = np.tile(tokens, (len(tokens), 1))
    return run(repeated, np.ones_like(repeated), np.eye(len(tokens), dtype=np.int64))[:, :width]


def _side_by_side(
    work: Callable[[slice], tuple[slice, FloatArray]], batches: Sequence[slice], run: Runtime
) -> Iterator[tuple[slice, FloatArray]]:
    if len(batches) < 2 or run.n_workers < 2:
        yield from map(work, batches)
        return
    with ThreadPoolExecutor(run.n_workers) as pool:
        futures = [pool.submit(work, batch) for batch in batches]
        try:
            for future in futures:
                yield future.result()
        finally:  # finished, or interrupted by an error
            pool.shutdown(wait=True, cancel_futures=True)


def _padded(
    texts: Sequence[bytes], pad_id: int, n_unpooled: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return ids, mask and pooled mask of a batch whose first text is the longest."""
    ids = np.full((len(texts), len(texts[0]) // 4), pad_id, dtype=np.int64)
    mask = np.zeros_like(ids)
    for row, text in enumerate(texts):
        tokens = np.frombuffer(text, dtype=np.int32)
        ids[row, : len(tokens)] = tokens
        mask[row, : len(tokens)] = 1
    pooled = mask
    if n_unpooled:
        pooled = mask.copy()
        pooled[:, :n_unpooled] = 0
    return ids, mask, pooled


def align(
    spans: npt.NDArray[np.integer],
    offsets: npt.NDArray[np.integer],
    stretches: Sequence[int | None],
) -> Int64Array:
    """Return the word of each token, the one with most of its characters; -1 between words.

    A token without characters of a word, such as a mark for a space, belongs to the word of the
    next token, else of the previous one, within one piece of the pre-tokenizer.
    """
    spans, offsets = spans.astype(np.int64), offsets.astype(np.int64)
    widths = spans[:, 1] - spans[:, 0]
    owners = np.repeat(np.arange(len(spans)), widths)
    inside = np.repeat(spans[:, 0] - np.cumsum(widths) + widths, widths) + np.arange(len(owners))
    first = np.searchsorted(inside, offsets[:, 0])
    behind = np.searchsorted(inside, offsets[:, 1])
    words = np.full(len(offsets), -1, dtype=np.int64)
    holds = behind > first
    words[holds] = owners[first[holds]]
    shared = np.flatnonzero(holds)[owners[first[holds]] != owners[behind[holds] - 1]]
    for token in shared.tolist():
        candidates = owners[first[token] : behind[token]]
        words[token] = candidates[0] + np.bincount(candidates - candidates[0]).argmax()
    alone = np.flatnonzero(words < 0).tolist()
    for order, step in ((reversed(alone), 1), (alone, -1)):
        for token in order:
            near = token + step
            is_inside = 0 <= near < len(words) and stretches[token] is not None
            if words[token] < 0 and is_inside and stretches[near] == stretches[token]:
                words[token] = words[near]
    return words


def read_together(encoder: Any, texts: Sequence[str], most: int | None = None) -> list[str]:
    """Join each of the first half of texts to one of the other by [SEP], cut to `most` tokens."""
    from tokenizers import Tokenizer

    tokenizer, n = Tokenizer.from_str(encoder.tokenizer_json), len(texts) // 2
    marked = tokenizer.encode("a", "a")
    first, *_, last = (place for place, side in enumerate(marked.sequence_ids) if side is not None)
    separator = "".join(marked.tokens[first + 1 : last])
    prompt = tokenizer.encode(encoder.transformer.recipe.prompt, add_special_tokens=False)
    tokenizer.enable_truncation((most or encoder.max_seq_length) - len(prompt))  # the longer text
    pairs, joined = list(zip(texts[:n], texts[n:], strict=True)), []
    for pair, read in zip(pairs, tokenizer.encode_batch(pairs), strict=True):
        ends = dict(zip(read.sequence_ids, (end for _, end in read.offsets), strict=True))
        joined.append(separator.join(text[: ends.get(side, 0)] for side, text in enumerate(pair)))
    return joined
