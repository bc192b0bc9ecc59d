"""The sentence encoder: a transformer checkpoint that turns texts into vectors."""

from __future__ import annotations

import copy
import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from embedtopics._utils.checks import checked_choice, checked_count, optional_count
from embedtopics._utils.folders import sha256
from embedtopics._utils.keywords import names_keywords
from embedtopics._utils.machine import computed_once
from embedtopics.corpus._windows import Span, windows
from embedtopics.encoders._base import check_texts, default_folder, known_languages, readable
from embedtopics.encoders._contract import BaseEncoder, EncodeOptions, arguments_of
from embedtopics.encoders._similarity import cosine_instead
from embedtopics.encoders.results import Encoding
from embedtopics.encoders.sentence._backend import (
    LoadedModel,
    Precision,
    check_machine,
    known_precision,
    number_format,
    open_model,
)
from embedtopics.encoders.sentence._checkpoint import (
    LEAST_LENGTH,
    POOLINGS,
    Dense,
    Recipe,
    UnitLength,
    finish,
    write_checkpoint,
)
from embedtopics.encoders.sentence._loading import DEFAULT_MODEL, resolve_model
from embedtopics.encoders.sentence._running import (
    TokenizedTexts,
    embed,
    has_gpu,
    n_leading,
    token_vectors,
    tokenize,
)
from embedtopics.errors import InputError
from embedtopics.protocols import FloatArray
from embedtopics.results import Decision

if TYPE_CHECKING:
    from tokenizers import Tokenizer


PRECISIONS = ("auto", "float32", "int8", "float16", "bfloat16")
LONG_TEXTS = ("auto", "truncate", "chunk")

_OPEN = (
    "_loaded", "_cutting", "_whole", "_where", "_chosen_precision", "_n_unpooled", "fingerprint",
    "space",
)  # fmt: skip

AUTO_INT8 = (
    "The encoder computes in int8: on a CPU 2 to 3 times as fast as float32, with the same "
    'accuracy on benchmarks. Set precision="float32" for exact vectors.'
)
"""With all-MiniLM-L6-v2, int8 against float32: Spearman 0.8202 and 0.8203 on the test of STS-B,
0.7715 and 0.7715 on that of SICK, 0.7036 and 0.7033 in the mean of ten sets of 2012 to 2014; AMI of
topics with the classes 0.526 and 0.530 at the number of topics found, 0.584 and 0.584 at that of
the classes (means of four corpora, each whole and in three samples of 80 %; single fits differ
by up to 0.06, either way). Nothing was chosen on these figures but the default."""

AUTO_HALF = 'The encoder computes in float16 on a GPU. Set precision="float32" for exact vectors.'

OVERLAP = 8
"""Windows of a long text share up to an eighth of their tokens with the next."""

UNREAD, TEXTS_TO_COUNT = 1 / 3, 500
"""Texts are read in windows if truncation loses more than this share of all tokens; and the number
of texts that it is estimated from. On news and messages, where it loses 49 to 85 %, windows gave
topics an AMI with the classes of 0.553 in place of 0.526 (bbc_news 0.671 and 0.667,
masakhanews_eng 0.580 and 0.537, masakhanews_fra 0.460 and 0.417, 4,000 of 20newsgroups 0.501 and
0.481; each whole and in three samples of 80 %; lower in 2 of 16 fits), and of 0.609 in place of
0.584 at the number of classes, for 1.9 to 6.7 times the tokens to encode."""


class SentenceEncoder(BaseEncoder):
    """Turn texts into vectors with a transformer checkpoint.

    The encoder looks for the checkpoint in a folder of that name, in the local hub cache, in the
    installed model package (the default model only), and finally on the hub, which it announces.
    It reads weights from safetensors alone. A vector does not depend on the other texts of a call
    or on their order, up to rounding (1e-6), and equal texts get equal vectors.

    On a CPU, ONNX Runtime runs the model. The first use builds its graph from the weights, which
    takes seconds, and stores it in the cache folder (``EMBEDTOPICS_CACHE``). PyTorch runs families
    whose graph is not known. Nothing is loaded before the first text is encoded.

    Parameters
    ----------
    name : str or path
        Folder of a sentence-transformers or Hugging Face checkpoint, or its hub name.
    revision : str, optional
        Commit, branch or tag on the hub. The default model is pinned, others are at "main".
    pooling : str or sequence of str, optional
        How token vectors become one vector: "mean", "cls", "max", "mean_sqrt_len_tokens",
        "weightedmean" or "lasttoken". The vectors of several poolings are concatenated. Default:
        the checkpoint's pooling, else "mean".
    normalize : bool, optional
        Whether vectors are scaled to length 1. Default: as in a sentence-transformers checkpoint,
        else True.
    truncate_dim : int, optional
        Length to which vectors are cut before scaling, for checkpoints trained for it (Kusupati
        et al., 2022, "Matryoshka representation learning"). Default: the checkpoint's
        ``truncate_dim``, else all dimensions.
    max_seq_length : int, optional
        Maximum number of tokens read of a text, special tokens included. Default: the checkpoint's.
        It can be set later: ``encoder.max_seq_length = 256``.
    prompt : str, optional
        Name of one of the checkpoint's `prompts`, or a string, to put before every text. By
        default `encode` uses the checkpoint's default prompt; `encode_query`, `encode_document`,
        topics, search, comparison and evaluation use its prompts for queries and documents.
    prompts : mapping of str to str, optional
        Prompts by their names, in addition to the checkpoint's.
    long_texts : {"auto", "truncate", "chunk"}
        How texts longer than `max_seq_length` are read. "truncate" reads the beginning. "chunk"
        reads overlapping windows of whole sentences and averages their vectors, weighted by tokens.
        "auto" truncates; topics and comparisons use "chunk" instead if more than a third of all
        tokens would not be read.
    precision : {"auto", "float32", "int8", "float16", "bfloat16"}
        Precision of the computation; vectors are always float32. "auto" is "int8" on a CPU and
        "float16" on a CUDA device if the checkpoint's vectors stay nearly the same (checked once),
        else "float32"; see `decisions`. "int8" is 2 to 3 times as fast on a CPU and turns
        vectors by a few degrees; its ranges are fixed once, so that a vector does not depend on its
        batch (cosine 0.99999). "float16" and "bfloat16" need a GPU and round with the batch.
    device : str, optional
        Device as in torch. "auto" and None choose the first CUDA device, else the CPU. If a GPU
        runs out of memory, batches are halved; if one text is too much, the CPU takes over.
    backend : {"onnx", "torch"}, optional
        Library that runs the model. Default: ONNX Runtime on a CPU if it can, else torch.
    trust_remote_code : bool
        Whether the checkpoint may run its own Python code.
    local_files_only : bool
        Whether to stay off the network.

    Raises
    ------
    ModelLoadError
        If the checkpoint cannot be found, read or verified; with some, when a text is encoded.
    MissingExtraError
        If the model needs PyTorch and it is not installed.

    Examples
    --------
    >>> import embedtopics as et
    >>> encoder = et.SentenceEncoder("all-MiniLM-L6-v2")
    >>> encoder.dimensions, encoder.max_seq_length
    (384, 256)
    >>> encoder.max_seq_length = 128
    >>> encoder.encode(["Cats purr.", "Dogs bark."]).shape
    (2, 384)
    """

    @names_keywords
    def __init__(
        self,
        name: str | os.PathLike[str] = DEFAULT_MODEL,
        *,
        revision: str | None = None,
        pooling: str | Sequence[str] | None = None,
        normalize: bool | None = None,
        truncate_dim: int | None = None,
        max_seq_length: int | None = None,
        prompt: str | None = None,
        prompts: Mapping[str, str] | None = None,
        long_texts: str = "auto",
        precision: str = "auto",
        device: str | None = None,
        backend: str | None = None,
        trust_remote_code: bool = False,
        local_files_only: bool = False,
    ) -> None:
        self._arguments = arguments_of(locals())
        device = None if device in (None, "auto") else str(device)
        check_machine(device, backend, precision)
        checked_choice(precision, "precision", PRECISIONS)
        checked_choice(long_texts, "long_texts", LONG_TEXTS)

        modes: Sequence[str] = ()
        if isinstance(pooling, str):
            modes = (pooling,)
        elif pooling is not None:
            modes = pooling
        for mode in modes:
            checked_choice(mode, "pooling", POOLINGS)

        checkpoint, source = resolve_model(
            name, revision=revision, local_files_only=local_files_only, with_code=trust_remote_code
        )
        if prompts:
            checkpoint = replace(checkpoint, prompts={**checkpoint.prompts, **prompts})

        steps, limit = checkpoint.steps, checkpoint.position_limit
        ends_scaled = bool(steps) and isinstance(steps[-1], UnitLength)
        max_length = checkpoint.max_length if max_seq_length is None else max_seq_length
        max_length = checked_count(max_length, "max_seq_length", LEAST_LENGTH)
        if limit is not None and max_length > limit:
            most = f"at most {limit}, all that this model can read"
            remedy = "or choose a model for longer texts"
            raise InputError("max_seq_length", most, max_length, remedy)

        # Everything that a vector depends on.
        self.recipe = Recipe(
            name=os.fspath(name),
            revision=revision,
            checkpoint=checkpoint,
            pooling=tuple(modes) or checkpoint.pooling,
            steps=steps[:-1] if ends_scaled else steps,
            normalize=ends_scaled if normalize is None else bool(normalize),
            dimensions=optional_count(truncate_dim, "truncate_dim") or checkpoint.dimensions,
            max_length=max_length,
            prompt=checkpoint.prompt if prompt is None else checkpoint.prompts.get(prompt, prompt),
            precision=precision,
            long_texts="truncate" if long_texts == "auto" else long_texts,
            trusts_code=trust_remote_code,
        )

        self.name = self.recipe.name
        self.source = source
        self.languages = known_languages(self.name)
        self.prompts = dict(checkpoint.prompts)
        self.similarity_fn_name = checkpoint.similarity
        self._device = device
        self._backend = backend
        self._lender: SentenceEncoder | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the loaded model: a copy, in this process or another, loads it again."""
        return {key: value for key, value in vars(self).items() if key not in _OPEN}

    def reading(self, kind: str) -> SentenceEncoder:
        """Return the encoder with the prompt for a "query" or a "document"."""
        asked, document = self._arguments["prompt"], self._prompt_for("document")
        # An encoder of documents also serves their queries.
        if asked is not None and not (kind == "query" and asked == document):
            return self
        return self._with_prompt(self._prompt_for(kind))

    def reading_to_ends(self, texts: Sequence[str]) -> SentenceEncoder:
        """Return an encoder that reads whole texts if truncation would lose too many tokens."""
        if self._arguments["long_texts"] != "auto":
            return self
        sample = texts[:: max(1, len(texts) // TEXTS_TO_COUNT)][:TEXTS_TO_COUNT]
        if (
            max(map(len, sample), default=0) < self.max_seq_length
        ):  # a token has a character at least
            return self
        is_unread = self.count_tokens(sample).unseen_token_share > UNREAD
        return self._with_params(long_texts="chunk") if is_unread else self

    def reading_as(self, settings: Mapping[str, Any]) -> SentenceEncoder:
        """Return an encoder with the recorded `long_texts`, unless its own was set explicitly."""
        reads_on = (settings.get("encoder_settings") or {}).get("long_texts") == "chunk"
        is_open = self._arguments["long_texts"] == "auto"
        return self._with_params(long_texts="chunk") if reads_on and is_open else self

    def exact(self) -> SentenceEncoder:
        """Return an encoder that computes in float32, unless its precision was set explicitly."""
        return self._with_params(precision="float32") if self.recipe.precision == "auto" else self

    def _with_params(self, **params: Any) -> SentenceEncoder:
        """Return an encoder of the same checkpoint with other arguments."""
        return SentenceEncoder(**{**self._arguments, **params})

    def _prompt_for(self, kind: str) -> str:
        prompts, of_documents = self.prompts, ("document", "passage", "corpus")
        if not any(name in prompts for name in ("query", *of_documents)):
            return self.recipe.checkpoint.prompt
        names = of_documents if kind == "document" else ("query",)
        return next((prompts[name] for name in names if name in prompts), "")

    def _with_prompt(self, prompt: str) -> SentenceEncoder:
        """Return an encoder with another prompt that shares the loaded model."""
        if prompt == self.recipe.prompt:
            return self
        encoder = copy.copy(self)
        encoder.recipe = replace(self.recipe, prompt=prompt)
        encoder._arguments = {**self._arguments, "prompt": prompt}
        encoder._lender = self._lender or self
        return encoder

    def _with_call(
        self, prompt_name: str | None, prompt: str | None, device: str | None
    ) -> SentenceEncoder:
        if device not in (None, self._device):
            self.to(str(device))
        if prompt is None and prompt_name is not None:
            if not self.prompts:
                expected = "left out: this checkpoint has no prompts"
                raise InputError("prompt_name", expected, prompt_name, "use prompt=")
            checked_choice(prompt_name, "prompt_name", tuple(self.prompts))
            prompt = self.prompts[prompt_name]
        return self if prompt is None else self._with_prompt(prompt)

    def _encode_as(
        self,
        texts: Sequence[str],
        options: EncodeOptions,
        batch_size: int | None,
        show_progress: bool | None,
    ) -> Any:
        if options.output_value is not None:
            return super()._encode_as(texts, options, batch_size, show_progress)
        of_texts = replace(options, output_value="sentence_embedding", convert_to_tensor=True)
        vectors = super()._encode_as(texts, of_texts, batch_size, show_progress)
        return self._features(check_texts(texts), vectors)

    @property
    def max_seq_length(self) -> int:
        """Maximum number of tokens read of a text; setting it is `set_params`."""
        return self.recipe.max_length

    @max_seq_length.setter
    def max_seq_length(self, value: int | None) -> None:
        self.set_params(max_seq_length=value)

    @cached_property
    def dimensions(self) -> int:
        """Length of a vector."""
        width = self.recipe.width
        if width is None:
            one = np.ones((1, 1), dtype=np.int64)
            width = int(self._loaded.run(one, one, one).shape[1])
        return width if self.recipe.dimensions is None else min(width, self.recipe.dimensions)

    @property
    def backend(self) -> str:
        """Library that runs the model: "onnx" or "torch"."""
        return self._loaded.run.name

    @property
    def precision(self) -> str:
        """Precision of the computation, with "auto" resolved."""
        return self._chosen_precision.name

    @property
    def decisions(self) -> list[Decision]:
        """The chosen precision, why torch runs a loaded model if it does, and the prompt."""
        decisions = []
        if self.recipe.precision == "auto":
            precision, reason = self._chosen_precision
            notes = {"int8": AUTO_INT8, "float16": AUTO_HALF}
            note = notes.get(precision, f"The encoder computes in float32: {reason}.")
            decisions.append(Decision("encoder", "precision", precision, note))

        opened: LoadedModel | None = vars(self).get("_loaded")
        if opened is not None and opened.run.note:
            decisions.append(Decision("encoder", "backend", "torch", f"{opened.run.note}."))

        if self.similarity_fn_name != "cosine" and not self.recipe.normalize:
            decisions.append(cosine_instead(self.name, self.similarity_fn_name))

        prompt = self.recipe.prompt
        if prompt:
            of_query = self.reading("query").recipe.prompt
            of_queries = f", and {of_query!r} before each query" if of_query != prompt else ""
            message = f"The prompt {prompt!r} is put before each text{of_queries}."
            decisions.append(Decision("encoder", "prompt", prompt, message))
        return decisions

    @property
    def transformer(self) -> SentenceEncoder:
        """The encoder itself."""
        return self

    @property
    def tokenizer_json(self) -> str:
        """Tokenizer as JSON of the tokenizers library, without truncation and padding."""
        return str(self._whole.to_str())

    @property
    def settings(self) -> dict[str, Any]:
        """Arguments from which this encoder can be made again."""
        recipe = self.recipe
        return {
            # An absolute path is valid in every working directory.
            "name": os.path.abspath(recipe.name) if self.source == "path" else recipe.name,
            "revision": recipe.revision,
            "pooling": recipe.pooling[0] if len(recipe.pooling) == 1 else list(recipe.pooling),
            "normalize": recipe.normalize,
            "truncate_dim": recipe.dimensions,
            "max_seq_length": recipe.max_length,
            "prompt": recipe.prompt,
            **({"prompts": dict(given)} if (given := self._arguments["prompts"]) else {}),
            "precision": self.precision,
            "long_texts": recipe.long_texts,
        }

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of everything that a vector depends on: weights, vocabulary and settings."""
        return self._digest(number_format(self.precision))

    @cached_property
    def space(self) -> str:
        """Fingerprint in float32; vectors of encoders with equal spaces can be compared."""
        return self._digest("float32")

    def _digest(self, numbers: str) -> str:
        recipe, checkpoint = self.recipe, self.recipe.checkpoint
        steps = [
            (sha256(step.file), step.activation) if isinstance(step, Dense) else "scale"
            for step in recipe.steps
        ]
        how = (
            recipe.pooling, 1, recipe.normalize, recipe.dimensions, recipe.max_length,
            recipe.prompt, checkpoint.pools_prompt, checkpoint.lower_case, recipe.long_texts,
            numbers,
        )  # fmt: skip
        parts = (checkpoint.contents, steps, how)
        return hashlib.sha256(repr(parts).encode()).hexdigest()

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write a folder, for this class and sentence-transformers; weights stay in float32."""
        write_checkpoint(Path(folder).expanduser(), self.recipe)

    save_pretrained = save

    def to(self, device: str) -> SentenceEncoder:
        """Move the encoder to a device, as in torch, and return it."""
        return self.set_params(device=device)

    @property
    def tokenizer(self) -> Any:
        """The tokenizer of transformers."""
        from embedtopics.encoders.sentence._torch import wrapped_tokenizer

        return wrapped_tokenizer(self.recipe.checkpoint, self.recipe.trusts_code)

    def _token_vectors(self, texts: list[str]) -> list[FloatArray]:
        run, width = self._loaded.run, self.recipe.checkpoint.width
        return [token_vectors(run, ids, width) for ids in self._tokenize(texts, False).ids]

    def _features(self, texts: list[str], vectors: Any) -> list[dict[str, Any]]:
        """Return the tensors of each text by their names in sentence-transformers."""
        import torch

        ids = [np.frombuffer(one, dtype=np.int32) for one in self._tokenize(texts, False).ids]
        return [
            {"input_ids": torch.tensor(tokens.astype(np.int64)),
             "token_embeddings": torch.as_tensor(states), "sentence_embedding": vector}
            for tokens, states, vector in zip(ids, self._token_vectors(texts), vectors, strict=True)
        ]  # fmt: skip

    def encode_with_report(
        self,
        texts: Sequence[str],
        *,
        batch_size: int | None = None,
        show_progress: bool | None = None,
    ) -> Encoding:
        """Return one vector per text, and how much of each text was read."""
        texts = check_texts(texts)
        tokens_per_batch = self._loaded.run.tokens_per_batch
        if batch_size is not None:
            most = checked_count(batch_size, "batch_size") * self.max_seq_length
            tokens_per_batch = min(tokens_per_batch, most)
        tokens = self._tokenize(texts, show_progress)
        if self.recipe.long_texts == "chunk" and (tokens.n_seen < tokens.n_tokens).any():
            return self._encode_windows(texts, tokens, tokens_per_batch, show_progress)
        embeddings = self._embed(tokens.ids, tokens_per_batch, show_progress)
        return Encoding(embeddings, tokens.n_tokens, tokens.n_seen, tokens.n_unknown)

    def _encode(
        self, texts: Sequence[str], batch_size: int | None, show_progress: bool | None
    ) -> Encoding:
        return self.encode_with_report(texts, batch_size=batch_size, show_progress=show_progress)

    def count_tokens(self, texts: Sequence[str]) -> Encoding:
        """Return how much of each text would be read, as an Encoding without columns."""
        texts = check_texts(texts)
        tokens = self._tokenize(texts, False)
        n_seen, n_unknown = tokens.n_seen, tokens.n_unknown.copy()
        if self.recipe.long_texts == "chunk":
            for row in np.flatnonzero(n_seen < tokens.n_tokens).tolist():
                n_unknown[row] = self._cut(texts[row])[1]
            n_seen = tokens.n_tokens
        return Encoding(np.empty((len(texts), 0), np.float32), tokens.n_tokens, n_seen, n_unknown)

    def windows(self, texts: Sequence[str]) -> list[list[Span]]:
        """Return the spans, in characters, of the windows of whole sentences of each text."""
        return [self._cut(text)[0] for text in check_texts(texts)]

    def _cut(self, text: str) -> tuple[list[Span], int]:
        """Return the windows of a text, and the number of its unknown tokens."""
        text = readable(text)
        most = max(1, self.max_seq_length - len(self._cutting.encode(self.recipe.prompt).ids))
        encoding = self._whole.encode(text, add_special_tokens=False)
        n_unknown = encoding.ids.count(self._loaded.vocabulary.unknown_id)
        if len(encoding) <= most:
            return [(0, len(text))], n_unknown
        starts = np.maximum.accumulate([start for start, _ in encoding.offsets])
        return windows(text, starts, most, most // OVERLAP), n_unknown

    def _encode_windows(
        self,
        texts: list[str],
        tokens: TokenizedTexts,
        tokens_per_batch: int,
        show_progress: bool | None,
    ) -> Encoding:
        is_long = tokens.n_seen < tokens.n_tokens
        rows = np.flatnonzero(is_long).tolist()
        cuts = [self._cut(texts[row]) for row in rows]
        of_part = np.repeat(rows, [len(spans) for spans, _ in cuts])
        spans = chain.from_iterable(spans for spans, _ in cuts)
        parts = [texts[row][slice(*span)] for row, span in zip(of_part, spans, strict=True)]
        in_parts = self._tokenize(parts, False)
        ids = [b"" if long else text for text, long in zip(tokens.ids, is_long, strict=True)]
        vectors = self._embed([*ids, *in_parts.ids], tokens_per_batch, show_progress)
        embeddings, windowed = vectors[: len(texts)], vectors[len(texts) :]
        weights = np.maximum(in_parts.n_seen, 1).astype(np.float32)
        np.add.at(embeddings, of_part, windowed * weights[:, None])
        embeddings[rows] /= np.bincount(of_part, weights, len(texts))[rows, None].astype(np.float32)
        if self.recipe.normalize:
            embeddings[rows] = finish(embeddings[rows], (UnitLength(),))
        # A window may be truncated: alone, its text can have more tokens than in the document.
        cut = np.bincount(of_part, in_parts.n_tokens - in_parts.n_seen, len(texts)).astype(np.int32)
        seen = np.where(is_long, np.maximum(tokens.n_tokens - cut, 0), tokens.n_seen)
        unknown = tokens.n_unknown.copy()
        unknown[rows] = np.minimum([n_unknown for _, n_unknown in cuts], seen[rows])
        return Encoding(embeddings, tokens.n_tokens, seen.astype(np.int32), unknown)

    @cached_property
    def _where(self) -> tuple[str, str | None, Path]:
        """Device, backend and cache folder."""
        may_use_gpu = self.recipe.precision != "int8" and self._backend != "onnx"
        device = self._device or ("cuda" if may_use_gpu and has_gpu() else "cpu")
        check_machine(device, self._backend, self.recipe.precision)
        return device, self._backend, default_folder()

    @computed_once
    def _chosen_precision(self) -> Precision:
        precision = known_precision(self.recipe, *self._where)
        return self._loaded.precision if precision is None else precision

    @computed_once
    def _loaded(self) -> LoadedModel:
        if self._lender is not None:
            return self._lender._loaded
        return open_model(self.recipe, *self._where)

    @computed_once
    def _cutting(self) -> Tokenizer:
        tokenizer = self._loaded.vocabulary.tokenizer
        tokenizer.enable_truncation(self.max_seq_length)
        prompt = self.recipe.prompt
        if prompt and len(tokenizer.encode(prompt).ids) >= self.max_seq_length:
            remedy = "give a shorter one or a larger max_seq_length"
            expected = f"one that leaves some of the {self.max_seq_length} tokens to the text"
            raise InputError("prompt", expected, prompt, remedy)
        return tokenizer

    @computed_once
    def _whole(self) -> Tokenizer:
        if self._lender is not None:
            return self._lender._whole
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_str(self._cutting.to_str())
        tokenizer.no_truncation()
        return tokenizer

    @cached_property
    def _n_unpooled(self) -> int:
        if self.recipe.checkpoint.pools_prompt:
            return 0
        return n_leading(self._cutting, self.recipe.prompt)

    def _tokenize(self, texts: Sequence[str], show_progress: bool | None) -> TokenizedTexts:
        return tokenize(
            self._cutting, texts, unknown_id=self._loaded.vocabulary.unknown_id,
            prompt=self.recipe.prompt, show_progress=show_progress,
        )  # fmt: skip

    def _embed(self, ids: list[bytes], tokens_per_batch: int, show: bool | None) -> FloatArray:
        return embed(
            self._loaded.run, ids, pad_id=self._loaded.vocabulary.pad_id,
            n_unpooled=self._n_unpooled, tokens_per_batch=tokens_per_batch,
            finish=self._finish, dimensions=self.dimensions, show_progress=show,
        )  # fmt: skip

    def _finish(self, pooled: FloatArray) -> FloatArray:
        vectors = finish(pooled, self.recipe.steps)[:, : self.recipe.dimensions]
        return finish(vectors, (UnitLength(),)) if self.recipe.normalize else vectors
