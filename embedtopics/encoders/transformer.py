"""The sentence encoder: a transformer checkpoint that turns texts into vectors."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from embedtopics._progress import progress_bar
from embedtopics.encoders.batching import distinct_rows, longest_first, token_batches
from embedtopics.encoders.checkpoint import Checkpoint
from embedtopics.encoders.languages import known_languages
from embedtopics.encoders.loading import load_model, load_tokenizer
from embedtopics.encoders.pooling import POOLINGS, pool, to_unit_length
from embedtopics.encoders.resolve import DEFAULT_MODEL, hash_file, resolve_model
from embedtopics.encoders.tokenizing import TokenizedTexts, check_texts, tokenize
from embedtopics.errors import InputError
from embedtopics.protocols import FloatArray
from embedtopics.results import Encoding

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["SentenceEncoder"]


class SentenceEncoder:
    """Turns texts into vectors with a transformer checkpoint.

    The checkpoint is looked for in a folder of that name, in the local hub cache, in the
    installed model package (the default model only), and at last on the hub, by one announced
    download. Only safetensors weights are read. A vector does not depend on the other texts of
    the call, nor on their order (to 1e-6, the noise of float32 sums), and equal texts get equal
    vectors.

    Parameters
    ----------
    name : str or path
        Folder of a sentence-transformers or Hugging Face checkpoint, or its hub name.
    revision : str, optional
        Commit, branch or tag on the hub. The default model is pinned, others are at "main".
    pooling : {"mean", "cls", "max"}, optional
        How token vectors become one vector; as the checkpoint says, else "mean".
    normalize : bool, optional
        Whether vectors are scaled to length 1; as a sentence-transformers checkpoint says,
        else True.
    max_length : int, optional
        Most tokens read of a text, special tokens included; as the checkpoint says.
    device : str, optional
        As in torch; the first CUDA device where there is one, else the CPU.
    tokens_per_batch : int
        Tokens in a batch, padding included. 512 was the fastest on a CPU of two cores; a GPU
        wants tens of thousands.
    trust_remote_code : bool
        Whether a checkpoint may run Python code of its own.
    local_files_only : bool
        Never ask the network.

    Raises
    ------
    InputError
        If a parameter is out of range.
    ModelLoadError
        If the checkpoint cannot be found, read or verified.

    Examples
    --------
    >>> encoder = SentenceEncoder()  # doctest: +SKIP
    >>> encoder.encode(["a sentence", "another"]).shape  # doctest: +SKIP
    (2, 384)
    """

    def __init__(
        self,
        name: str | os.PathLike[str] = DEFAULT_MODEL,
        *,
        revision: str | None = None,
        pooling: str | None = None,
        normalize: bool | None = None,
        max_length: int | None = None,
        device: str | None = None,
        tokens_per_batch: int = 512,
        trust_remote_code: bool = False,
        local_files_only: bool = False,
    ) -> None:
        if pooling is not None and pooling not in POOLINGS:
            raise InputError(f"expected pooling to be one of {POOLINGS}, got {pooling!r}")
        _check_count("tokens_per_batch", tokens_per_batch, minimum=1)
        files = resolve_model(
            name,
            revision=revision,
            local_files_only=local_files_only,
            with_code=trust_remote_code,
        )
        self._checkpoint = files.checkpoint
        self._name = os.fspath(name)
        self._revision = revision
        self._source = files.source
        self._pooling = pooling or files.checkpoint.pooling
        self._normalize = files.checkpoint.normalize if normalize is None else bool(normalize)
        self._max_length = _choose_length(max_length, files.checkpoint)
        self._tokens_per_batch = tokens_per_batch
        self._model = load_model(files.checkpoint, device, trust_remote_code)
        self._tokenizer, self._pad_id, self._unknown_id = load_tokenizer(
            files.checkpoint, self._max_length, trust_remote_code
        )

    def __repr__(self) -> str:
        return f"SentenceEncoder({self._name!r})"

    @property
    def name(self) -> str:
        """Name or folder that was asked for."""
        return self._name

    @property
    def source(self) -> str:
        """Where the weights were found: "path", "hub cache", "package ..." or "hub"."""
        return self._source

    @property
    def dimensions(self) -> int:
        """Length of a vector."""
        return int(self._model.config.hidden_size)

    @property
    def max_length(self) -> int:
        """Most tokens read of a text, special tokens included."""
        return self._max_length

    @property
    def languages(self) -> tuple[str, ...] | None:
        """ISO 639-1 codes, ``("multilingual",)``, or None where the name does not tell."""
        return known_languages(self._name)

    @property
    def settings(self) -> dict[str, Any]:
        """Arguments that make this encoder again."""
        return {
            "name": self._name,
            "revision": self._revision,
            "pooling": self._pooling,
            "normalize": self._normalize,
            "max_length": self._max_length,
        }

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 over all that a vector depends on: weights, vocabulary and how they are used."""
        checkpoint = self._checkpoint
        files = [hash_file(path) for path in (*checkpoint.weights, checkpoint.tokenizer_file)]
        settings = [self._pooling, self._normalize, self._max_length]
        settings += [checkpoint.lower_case, checkpoint.prompt]
        return hashlib.sha256(repr((files, settings)).encode()).hexdigest()

    def encode(self, texts: Sequence[str], *, show_progress: bool | None = None) -> FloatArray:
        """Return one vector a text.

        Parameters
        ----------
        texts : sequence of str
            Empty strings are allowed. What lies behind `max_length` tokens is not read;
            `encode_with_report` counts it.
        show_progress : bool, optional
            None shows a bar where stderr is a terminal or a notebook listens.

        Returns
        -------
        float32 ndarray of shape (n_texts, n_dimensions)

        Raises
        ------
        InputError
            If a row is no string.
        """
        return self.encode_with_report(texts, show_progress=show_progress).embeddings

    def encode_with_report(
        self, texts: Sequence[str], *, show_progress: bool | None = None
    ) -> Encoding:
        """Return one vector a text, and how much of each text was read.

        Parameters and errors are those of `encode`.

        Returns
        -------
        Encoding
        """
        tokens = self._tokenize(texts, show_progress)
        embeddings = self._embed(tokens.ids, show_progress)
        return Encoding(embeddings, tokens.n_tokens, tokens.n_seen, tokens.n_unknown)

    def count_tokens(self, texts: Sequence[str]) -> Encoding:
        """Return how much of each text would be read, without encoding it.

        Useful to estimate time and losses before the work.

        Returns
        -------
        Encoding
            Its embeddings have no columns.
        """
        tokens = self._tokenize(texts, False)
        none = np.empty((len(tokens.ids), 0), dtype=np.float32)
        return Encoding(none, tokens.n_tokens, tokens.n_seen, tokens.n_unknown)

    def _tokenize(self, texts: Sequence[str], show_progress: bool | None) -> TokenizedTexts:
        return tokenize(
            self._tokenizer,
            check_texts(texts),
            unknown_id=self._unknown_id,
            prompt=self._checkpoint.prompt,
            show_progress=show_progress,
        )

    def _embed(self, ids: list[bytes], show_progress: bool | None) -> FloatArray:
        import torch

        first = distinct_rows(ids)
        # A tokenizer without special tokens makes nothing of an empty text: a vector of zeros.
        order = longest_first(
            ids, [row for row in range(len(ids)) if first[row] == row and ids[row]]
        )
        lengths = [len(ids[row]) // 4 for row in order]
        embeddings = np.zeros((len(ids), self.dimensions), dtype=np.float32)
        with (
            progress_bar(
                total=sum(lengths), unit="token", description="Encoding", show=show_progress
            ) as bar,
            torch.inference_mode(),
        ):
            for batch in token_batches(lengths, self._tokens_per_batch):
                vectors = self._forward([ids[row] for row in order[batch]])
                embeddings[order[batch]] = vectors.float().cpu().numpy()
                bar.update(sum(lengths[batch]))
        repeated = [row for row in range(len(ids)) if first[row] != row]
        embeddings[repeated] = embeddings[[first[row] for row in repeated]]
        return embeddings

    def _forward(self, batch: list[bytes]) -> Tensor:
        """Return the vectors of a batch whose first text is the longest."""
        import torch

        ids = np.full((len(batch), len(batch[0]) // 4), self._pad_id, dtype=np.int64)
        mask = np.zeros_like(ids)
        for row, text in enumerate(batch):
            tokens = np.frombuffer(text, dtype=np.int32)
            ids[row, : len(tokens)] = tokens
            mask[row, : len(tokens)] = 1
        device = self._model.device
        attention_mask = torch.from_numpy(mask).to(device)
        output = self._model(
            input_ids=torch.from_numpy(ids).to(device), attention_mask=attention_mask
        )
        vectors = pool(output.last_hidden_state, attention_mask, self._pooling)
        return to_unit_length(vectors) if self._normalize else vectors


def _check_count(name: str, value: Any, *, minimum: int) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < minimum:
        raise InputError(f"expected {name} to be an integer of at least {minimum}, got {value!r}")


def _choose_length(wanted: int | None, checkpoint: Checkpoint) -> int:
    if wanted is None:
        return checkpoint.max_length
    _check_count("max_length", wanted, minimum=3)
    if checkpoint.position_limit is not None and wanted > checkpoint.position_limit:
        raise InputError(
            f"expected max_length to be at most {checkpoint.position_limit}, all that this model "
            f"can read, got {wanted}; give a smaller one or choose a model for longer texts"
        )
    return int(wanted)
