"""Write an encoder as the folder of a checkpoint, in the format of sentence-transformers."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from embedtopics._utils.folders import MANIFEST, replacing_folder, write_manifest
from embedtopics.encoders.sentence._checkpoint import (
    LENGTH_FILES,
    MODULES,
    PACKAGE,
    PROMPTS,
    Dense,
    Recipe,
    Scale,
)
from embedtopics.errors import InputError

KIND, FORMAT = "sentence encoder", 1


def write_checkpoint(folder: Path, recipe: Recipe) -> None:
    """Write weights, tokenizer, pooling and prompts atomically; the precision is not stored."""
    checkpoint, inner = recipe.checkpoint, recipe.checkpoint.folder
    for parameter, default in {"layers": 1, "dimensions": None, "trusts_code": False}.items():
        if (value := getattr(recipe, parameter)) != default:
            expected = "left out: the folder of a checkpoint does not hold it"
            raise InputError(parameter.replace("trusts", "trust_remote"), expected, value)
    steps = [*recipe.steps, *[Scale()] * recipe.normalize]
    kinds = ["Pooling", *("Dense" if isinstance(step, Dense) else "Normalize" for step in steps)]
    paths = ["", *(f"{at}_{kind}" for at, kind in enumerate(kinds, 1))]
    names = {key: words for key, words in checkpoint.prompts.items() if words == recipe.prompt}
    name = next(iter(names), "default") if recipe.prompt else None
    files: dict[str, Any] = {
        MODULES: [
            {"idx": at, "name": str(at), "path": path, "type": f"{PACKAGE}.models.{kind}"}
            for at, (kind, path) in enumerate(zip(["Transformer", *kinds], paths, strict=True))
        ],
        LENGTH_FILES[0]: {
            "max_seq_length": recipe.max_length, "do_lower_case": checkpoint.lower_case,
        },
        PROMPTS: {
            "prompts": {**checkpoint.prompts, **({name: recipe.prompt} if name else {})},
            "default_prompt_name": name, "similarity_fn_name": "cosine",
        },
        f"{paths[1]}/config.json": {
            "word_embedding_dimension": checkpoint.width, "pooling_mode": list(recipe.pooling),
            "include_prompt": checkpoint.head.pools_prompt,
        },
    }  # fmt: skip
    replaced = {MANIFEST, *files, *LENGTH_FILES}
    beside = {*inner.glob("*.json"), *checkpoint.weights, *checkpoint.tokenizer_files}
    with replacing_folder(folder, KIND) as fresh:
        for file in sorted(file for file in beside if file.name not in replaced):
            shutil.copyfile(file, fresh / file.name)
        for step, path in zip(steps, paths[2:], strict=True):
            (fresh / path).mkdir()
            if isinstance(step, Dense):
                for file in (step.file, step.file.parent / "config.json"):
                    shutil.copyfile(file, fresh / path / file.name)
        (fresh / paths[1]).mkdir()
        for place, content in files.items():
            (fresh / place).write_text(json.dumps(content, indent=1), "utf-8")
        write_manifest(fresh, KIND, FORMAT)
