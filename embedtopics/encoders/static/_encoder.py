"""The static encoder: the vector of a text is the mean of its tokens' vectors in a table.

Its folder has the format of model2vec::

    config.json          model_type "model2vec", normalize, max_length, and what it was made from
    model.safetensors    embeddings (n_rows, n_dimensions); perhaps weights (n_vocabulary,), factors
                         of the tokens, and mapping (n_vocabulary,), the row of each token
    tokenizer.json       of the tokenizers library
    modules.json         lets sentence-transformers read the folder, too
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from embedtopics._utils.checks import optional_count
from embedtopics._utils.display import one_line, progress_bar
from embedtopics._utils.folders import (
    MANIFEST,
    open_regular,
    open_saved,
    parse_json,
    replacing_folder,
    write_manifest,
)
from embedtopics._utils.records import parse_record
from embedtopics.encoders._base import (
    check_texts,
    known_languages,
    load_error,
    modules_of,
    read_tokenizer,
    readable,
    slabs,
)
from embedtopics.encoders._contract import BaseEncoder
from embedtopics.encoders._similarity import cosine_instead
from embedtopics.encoders.results import Encoding
from embedtopics.errors import InputError
from embedtopics.protocols import FloatArray, Int32Array
from embedtopics.results import Decision

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix
    from tokenizers import Tokenizer

KIND, FORMAT = "static encoder", 1
CONFIG, TABLE, TOKENIZER = "config.json", "model.safetensors", "tokenizer.json"
SENTENCE = "config_sentence_transformers.json"
N_AT_ONCE = 2
"""Number of slabs read at a time: one is averaged on one core while another is tokenized on all. It
is one where TOKENIZERS_PARALLELISM is "false", as in workers of a batch."""

_RECORD = "embedtopics"
"""Key of config.json for entries that model2vec does not define."""


class StaticEncoder(BaseEncoder):
    """Turn texts into vectors with a table of token vectors, tens of thousands of texts per second.

    No transformer runs. A word has the same vector in every text, and word order does not matter.
    That is enough for topics and coarse search at a fraction of the cost. `distill` makes a static
    encoder from a `SentenceEncoder`. Folders have the format of model2vec and are read as data
    (safetensors and JSON). A vector does not depend on the other texts of a call.

    A text without any known token, such as the empty text, has a zero vector. In the report of
    `encode_with_report`, its `n_seen` equals its `n_unknown`.

    Parameters
    ----------
    folder : path
        Folder with config.json, model.safetensors and tokenizer.json; hub names are not resolved.

    Attributes
    ----------
    table : ndarray of shape (n_vocabulary, n_dimensions)
        Vectors of the tokens, read-only.
    normalize : bool
        Whether vectors are scaled to length 1.
    made_from : dict
        Record of how the table was made; empty if unknown.

    Raises
    ------
    ModelLoadError
        If a file is missing or damaged, or the tokenizer and the table do not match.
    CorruptFileError
        If a file has changed since `save` wrote it.

    Examples
    --------
    >>> import tempfile
    >>> import embedtopics as et
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     et.training.distill(et.SentenceEncoder(), dimensions=32).save(f"{folder}/static")
    ...     encoder = et.encoders.StaticEncoder(f"{folder}/static")
    >>> encoder.encode(["Cats purr.", "Dogs bark."]).shape
    (2, 32)
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        if not isinstance(folder, str | os.PathLike):
            remedy = "call et.training.distill(encoder), which makes a static encoder"
            raise InputError("folder", "the folder of a static encoder", folder, remedy)
        self._set_up(read_static(Path(folder).expanduser()), os.fspath(folder))

    @classmethod
    def from_arrays(
        cls,
        table: npt.ArrayLike,
        tokenizer: Tokenizer | str,
        *,
        normalize: bool = True,
        max_seq_length: int | None = None,
        name: str = "static",
        languages: Sequence[str] | None = None,
        made_from: Mapping[str, Any] | None = None,
    ) -> StaticEncoder:
        """Make an encoder from a table and a tokenizer.

        Parameters
        ----------
        table : array_like of shape (n_vocabulary, n_dimensions)
            Vectors of the tokens; copied.
        tokenizer : tokenizers.Tokenizer or str
            Tokenizer or its JSON. Special tokens, truncation and padding are ignored.
        normalize : bool
            Whether vectors are scaled to length 1.
        max_seq_length : int, optional
            Maximum number of tokens read of a text; no limit by default.
        name : str
        languages : sequence of str, optional
            ISO 639-1 codes, or ``("multilingual",)``.
        made_from : mapping, optional
            Record of how the table was made, in JSON types.

        Raises
        ------
        InputError
            If the table does not match the tokenizer or contains non-finite numbers.
        ModelLoadError
            If the tokenizer cannot be read.
        """
        text = tokenizer if isinstance(tokenizer, str) else str(tokenizer.to_str())
        n_tokens = parse_tokenizer(text).get_vocab_size()
        record = {
            "name": name,
            "languages": None if languages is None else list(languages),
            "made_from": dict(made_from or {}),
        }
        length = optional_count(max_seq_length, "max_seq_length")
        vectors = _checked("embeddings", table, (n_tokens, None))
        files = StaticFiles(vectors, text, bool(normalize), length, {_RECORD: record})
        return cls._of_files(files, name)

    @classmethod
    def _of_files(cls, files: StaticFiles, name: str) -> StaticEncoder:
        encoder = cls.__new__(cls)
        encoder._set_up(files, name)
        return encoder

    def _set_up(self, files: StaticFiles, name: str) -> None:
        self._arguments = {"folder": name}
        self._files = files
        self.name, self.settings = name, {"kind": "static", **self._arguments}
        self.table = files.table
        self.normalize = files.normalize
        self.dimensions = int(files.table.shape[1])
        self.similarity_fn_name = files.similarity
        record = files.config.get(_RECORD) or {}
        self.made_from = dict(record.get("made_from") or {})
        languages = record.get("languages")
        self.languages = tuple(languages) if languages else known_languages(name)
        self._tokenizer = parse_tokenizer(files.tokenizer)
        self._reader = TokenReader(self._tokenizer, files.max_length)

    @property
    def max_seq_length(self) -> int | None:
        """Maximum number of tokens read of a text; None for no limit."""
        return self._files.max_length

    @property
    def tokenizer_json(self) -> str:
        """Tokenizer as JSON of the tokenizers library, without truncation and padding."""
        return str(self._tokenizer.to_str())

    @property
    def decisions(self) -> list[Decision]:
        """How well a static student agrees with its teacher, and how vectors are compared."""
        decisions: list[Decision] = []
        if self.similarity_fn_name != "cosine" and not self.normalize:
            decisions.append(cosine_instead(self.name, self.similarity_fn_name))
        if self.made_from.get("method") != "static student":
            return decisions
        from embedtopics.encoders.static._configuration import Origin

        origin = parse_record(Origin, json.dumps(self.made_from))
        message = (
            f"The vectors are those of a static student of {origin.encoder}, which learned from "
            f"{origin.n_texts:,} texts; on others its cosine with the vectors of {origin.encoder} "
            f"is {origin.agreement:.2f} on average."
        )
        return [*decisions, Decision("encoder", "student", origin.agreement, message)]

    @property
    def static(self) -> StaticEncoder:
        """The encoder itself."""
        return self

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of everything that a vector depends on: table, weights, vocabulary, settings."""
        settings = (self.table.shape, self.normalize, self.max_seq_length)
        digest = hashlib.sha256(repr(settings).encode())
        digest.update(str(self._tokenizer.to_str()).encode())
        digest.update(self.table.astype("<f4", copy=False).tobytes() + b"none")
        return digest.hexdigest()

    def with_table(self, table: npt.ArrayLike) -> StaticEncoder:
        """Return an encoder with another table, (n_vocabulary, any)."""
        vectors = _checked("embeddings", table, (len(self.table), None))
        return StaticEncoder._of_files(replace(self._files, table=vectors), self.name)

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write a folder that this class, model2vec and sentence-transformers can read.

        sentence-transformers treats unknown tokens as known and truncates by tokens only.

        Parameters
        ----------
        folder : path
            Missing, empty, or an earlier result of `save`, which is replaced.
        """
        write_static(Path(folder).expanduser(), self._files)

    def encode_with_report(
        self, texts: Sequence[str], *, show_progress: bool | None = None
    ) -> Encoding:
        """Return one vector per text, and how much of each text was read."""
        return self._read(check_texts(texts), self.dimensions, show_progress)

    def count_tokens(self, texts: Sequence[str]) -> Encoding:
        """Return how much of each text would be read, as an Encoding without columns."""
        return self._read(check_texts(texts), 0, False)

    def _read(self, texts: list[str], n_columns: int, show_progress: bool | None) -> Encoding:
        vectors = np.empty((len(texts), n_columns), dtype=np.float32)
        counts: Int32Array = np.empty((3, len(texts)), dtype=np.int32)

        def work(begin: int, slab: Sequence[str]) -> None:
            bags = self._reader.read(slab)
            rows = slice(begin, begin + len(slab))
            counts[:, rows] = bags.n_tokens, bags.n_seen, bags.n_unknown
            if n_columns:
                vectors[rows] = mean_vectors(bags, self.table, normalize=self.normalize)
            bar.update(len(slab))

        n_at_once = 1 if os.environ.get("TOKENIZERS_PARALLELISM") == "false" else N_AT_ONCE
        begin, waiting = 0, iter(slabs(texts))
        with (
            progress_bar(
                total=len(texts), unit="text", description="Encoding", show=show_progress
            ) as bar,
            ThreadPoolExecutor(n_at_once) as threads,
        ):
            # A few slabs at a time: texts in a file become strings only while they are read.
            while some := list(islice(waiting, 4 * N_AT_ONCE)):
                begins = begin + np.cumsum([0, *map(len, some)])
                list(threads.map(work, begins[:-1].tolist(), some))
                begin = int(begins[-1])
        return Encoding(vectors, counts[0], counts[1], counts[2])


@dataclass(frozen=True, eq=False)
class TokenBags:
    """Known tokens of texts: ones in order, (n_texts, n_vocabulary); counts are (n_texts,)."""

    tokens: csr_matrix
    n_tokens: Int32Array
    n_seen: Int32Array
    n_unknown: Int32Array


def unknown_token(tokenizer: Tokenizer) -> int:
    """Return the id of the unknown token; -1 if there is none."""
    model = json.loads(tokenizer.to_str())["model"]
    if model.get("type") == "Unigram" or "unk_id" in model:
        unknown_id = model.get("unk_id")
    else:
        token = model.get("unk_token")
        unknown_id = None if token is None else tokenizer.token_to_id(token)
    return -1 if unknown_id is None else int(unknown_id)


class TokenReader:
    """Reads known tokens of texts, without special tokens.

    Of a text, at most `max_length` tokens are read; and `by_characters`, at most as many characters
    as these have in the median, as in model2vec.
    """

    def __init__(
        self, tokenizer: Tokenizer, max_length: int | None = None, *, by_characters: bool = True
    ) -> None:
        self.unknown_id = unknown_token(tokenizer)
        self._tokenizer, self._max_length = tokenizer, max_length
        self._max_characters: int | None = None
        if max_length is not None and by_characters:
            lengths = [len(token) for token in tokenizer.get_vocab()]
            self._max_characters = max_length * int(np.median(lengths))

    def read(self, texts: Sequence[str]) -> TokenBags:
        """Tokenize texts."""
        from scipy.sparse import csr_matrix

        encode, max_length = self._tokenizer.encode_batch_fast, self._max_length
        heads = [readable(text) for text in texts]
        n_behind = np.zeros(len(heads), dtype=np.int32)
        if (most := self._max_characters) is not None:
            long = [row for row, text in enumerate(heads) if len(text) > most]
            counted = encode([heads[row][most:] for row in long], add_special_tokens=False)
            n_behind[long] = [len(encoding) for encoding in counted]
            heads = [text[:most] for text in heads]
        token_ids = [encoding.ids for encoding in encode(heads, add_special_tokens=False)]
        lengths = np.fromiter(map(len, token_ids), dtype=np.int32, count=len(token_ids))
        n_seen = lengths
        if max_length is not None and (lengths > max_length).any():
            token_ids = [ids[:max_length] for ids in token_ids]
            n_seen = np.minimum(lengths, max_length).astype(np.int32)
        ids = np.fromiter(chain.from_iterable(token_ids), dtype=np.int32, count=int(n_seen.sum()))
        n_unknown = np.zeros(len(token_ids), dtype=np.int32)
        unknown = ids == self.unknown_id
        if unknown.any():
            of_text = np.repeat(np.arange(len(token_ids)), n_seen)
            n_unknown += np.bincount(of_text[unknown], minlength=len(token_ids)).astype(np.int32)
            ids = ids[~unknown]
        offsets = np.zeros(len(token_ids) + 1, dtype=np.int64)
        np.cumsum(n_seen - n_unknown, out=offsets[1:])
        ones = np.ones(len(ids), dtype=np.float32)
        shape = (len(token_ids), self._tokenizer.get_vocab_size())
        tokens = csr_matrix((ones, ids, offsets), shape=shape)
        return TokenBags(tokens, lengths + n_behind, n_seen, n_unknown)


def mean_vectors(bags: TokenBags, table: FloatArray, *, normalize: bool) -> FloatArray:
    """Return the means of token vectors, summed in float64 in text order."""
    from scipy.sparse import csr_matrix

    # Convert only the rows that occur: the whole table is much larger.
    is_used = np.zeros(len(table), dtype=np.bool_)
    is_used[bags.tokens.indices] = True
    used = np.flatnonzero(is_used)
    columns = (np.cumsum(is_used) - 1)[bags.tokens.indices]
    n_texts, offsets = bags.tokens.shape[0], bags.tokens.indptr
    tokens = csr_matrix((bags.tokens.data, columns, offsets), shape=(n_texts, len(used)))
    vectors = np.asarray(tokens @ table[used].astype(np.float64))
    vectors /= np.maximum(np.diff(offsets), 1)[:, None]
    if normalize:
        norms = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
        vectors /= np.where(norms > 0, norms, 1.0)[:, None]
    return vectors.astype(np.float32)


@dataclass(frozen=True, eq=False)
class StaticFiles:
    """Contents of a folder: `table` (n_vocabulary, n_dimensions)."""

    table: FloatArray
    tokenizer: str
    normalize: bool = True
    max_length: int | None = None
    config: dict[str, Any] = field(default_factory=dict)
    similarity: str = "cosine"


def holds_static_encoder(folder: Path) -> bool:
    """Return whether a folder contains a static encoder, by its configuration."""
    with suppress(OSError, ValueError, KeyError, TypeError), open_regular(folder / CONFIG) as file:
        return bool(parse_json(file.read())["model_type"] == "model2vec")
    return False


def read_static(folder: Path) -> StaticFiles:
    """Read a folder as safetensors and JSON; a `mapping` assigns a row to each token."""
    from safetensors.numpy import load

    from embedtopics.encoders.sentence._configuration import Prompts, check_links, read_file
    from embedtopics.encoders.static._configuration import Origin, StaticConfiguration

    names = (CONFIG, TOKENIZER, TABLE)
    for name in names:
        if not (folder / name).is_file():
            expected = "the folder of a static encoder"
            remedy = "pass that of a complete model"
            raise load_error(expected, f"{folder}, which has no file {name}", remedy)

    check_links(folder, folder)
    if (folder / MANIFEST).is_file():
        with open_saved(folder, KIND, FORMAT) as saved, _reading(folder / MANIFEST):
            contents = {name: saved.streams[name].read() for name in names}
    else:
        contents = {name: (folder / name).read_bytes() for name in names}

    with _reading(folder / CONFIG):
        read = parse_record(StaticConfiguration, contents[CONFIG])
        if read.embedtopics is not None and read.embedtopics.made_from is not None:
            parse_record(Origin, json.dumps(read.embedtopics.made_from))
        config = parse_json(contents[CONFIG])

    with _reading(folder / TOKENIZER):
        text = contents[TOKENIZER].decode()
    n_tokens = parse_tokenizer(text, folder / TOKENIZER).get_vocab_size()

    with _reading(folder / TABLE):
        tensors = load(contents.pop(TABLE))
        table = tensors["embeddings"]
        if "mapping" in tensors:
            mapping = tensors["mapping"]
            if mapping.shape != (n_tokens,) or mapping.min() < 0:
                raise ValueError(f"mapping must have a row for each of the {n_tokens} tokens")
            table = table[mapping]
        if "weights" in tensors:
            table = table * _checked("weights", tensors["weights"], (n_tokens,))[:, None]

        # Vectors are cut before they are scaled, as those of a transformer.
        sentence = read_file(Prompts, folder / SENTENCE)
        table = _checked("embeddings", table[:, : sentence.truncate_dim], (n_tokens, None))

    similarity = sentence.similarity_fn_name or "cosine"
    return StaticFiles(table, text, bool(read.normalize), read.max_length, config, similarity)


@contextmanager
def _reading(file: object) -> Iterator[None]:
    """Name the file in the error of whatever is wrong with it."""
    try:
        yield
    except Exception as error:  # libraries raise whatever a damaged number leads to
        actual = f"{file}: {one_line(error)}"
        remedy = "fetch or save the encoder again"
        raise load_error("a valid file of a static encoder", actual, remedy) from None


def parse_tokenizer(text: str, source: object = "the tokenizer") -> Tokenizer:
    """Return a tokenizer without truncation and padding."""
    with _reading(source):
        tokenizer = read_tokenizer(text)
        tokenizer.no_truncation()
        tokenizer.no_padding()
        if sorted(tokenizer.get_vocab().values()) != list(range(tokenizer.get_vocab_size())):
            raise ValueError("token ids must be consecutive and start at 0")
    return tokenizer


def _checked(name: str, values: npt.ArrayLike, shape: tuple[int | None, ...]) -> FloatArray:
    """Return a copy as a read-only float32 array; None in `shape` stands for any positive size."""
    with np.errstate(over="ignore"):
        array = np.array(values, dtype=np.float32, order="C")
    if array.ndim != len(shape) or len(array) != shape[0] or 0 in array.shape:
        expected = f"{len(shape)} axes and a row for each of the {shape[0]} tokens of the tokenizer"
        raise InputError(name, expected, found=f"shape {array.shape}")
    if not np.isfinite(array).all():
        row = int(np.argmin(np.isfinite(array.reshape(len(array), -1)).all(axis=1)))
        raise InputError(name, "finite numbers", found="another number", row=row)
    array.flags.writeable = False
    return array


def write_static(folder: Path, files: StaticFiles) -> None:
    """Write a folder atomically."""
    from safetensors.numpy import save_file

    config = {
        "model_type": "model2vec",
        "architectures": ["StaticModel"],
        "seq_length": 1_000_000,
        **files.config,
        "hidden_dim": int(files.table.shape[1]),
        "normalize": files.normalize,
        "max_length": files.max_length,
        "embedding_dtype": "float32",
    }
    config.pop("vocabulary_quantization", None)  # the mapping has been applied

    tokenizer = parse_tokenizer(files.tokenizer)
    if files.max_length is not None:
        tokenizer.enable_truncation(files.max_length)  # sentence-transformers relies on it

    modules = modules_of("StaticEmbedding", *["Normalize"] * files.normalize)
    modules[0]["path"] = "."

    with replacing_folder(folder, KIND) as fresh:
        save_file({"embeddings": files.table}, fresh / TABLE)
        (fresh / TOKENIZER).write_text(str(tokenizer.to_str()), "utf-8")
        (fresh / CONFIG).write_text(json.dumps(config, indent=4), "utf-8")
        (fresh / "modules.json").write_text(json.dumps(modules, indent=4), "utf-8")
        if files.similarity != "cosine":
            content = {"similarity_fn_name": files.similarity}
            (fresh / SENTENCE).write_text(json.dumps(content, indent=4), "utf-8")
        write_manifest(fresh, KIND, FORMAT)
