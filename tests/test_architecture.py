"""The layout's promises: who imports whom, how long things grow, how light the import is."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "embedtopics"
FILES = sorted(PACKAGE.rglob("*.py"))
BASE = {"errors", "protocols", "results", "corpus"}
EVERY_ROOM = {p.name for p in PACKAGE.iterdir() if p.is_dir() and (p / "__init__.py").exists()}
MAY_IMPORT = {
    "neighbors": set(),
    "reduction": set(),
    "clustering": set(),
    "terms": set(),
    "evaluation": set(),
    "encoders": {"terms"},
    "retrieval": {"encoders", "neighbors", "terms", "evaluation"},
    "training": {"encoders", "neighbors", "evaluation", "comparison"},
    "probing": {"encoders", "neighbors", "reduction", "clustering", "evaluation"},
    "topics": {"encoders", "neighbors", "reduction", "clustering", "terms", "evaluation"},
    "comparison": {"encoders", "neighbors", "reduction", "clustering", "terms", "evaluation"},
    "plots": set(),
    "report": {"plots", "evaluation"},
    "cli": EVERY_ROOM - {"cli"},
    **{room: set() for room in BASE},
}
HEAVY = {
    "torch", "transformers", "sentence_transformers", "onnxruntime", "faiss", "numba", "umap",
    "hdbscan", "fast_hdbscan", "gensim", "plotly", "sklearn", "scipy", "pandas", "pyarrow",
}  # fmt: skip


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported_rooms(tree: ast.AST) -> set[str]:
    modules = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            modules.add(node.module)
            if node.module == "embedtopics":
                modules |= {f"embedtopics.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
    return {m.split(".")[1] for m in modules if m.startswith("embedtopics.")}


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_follow_the_table(path):
    room = room_of(path)
    if room == "__init__" or room == "__main__":
        return
    used = imported_rooms(ast.parse(path.read_text()))
    private = {name for name in used if name.startswith("_")}
    allowed = MAY_IMPORT.get(room, set()) | BASE | private | {room}
    assert used <= allowed, f"{room} may not import {sorted(used - allowed)}"


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_files_and_functions_stay_short(path):
    source = path.read_text()
    assert source.count("\n") <= 400
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            body = node.body[1:] if ast.get_docstring(node) else node.body
            length = body[-1].end_lineno - body[0].lineno + 1 if body else 0
            assert length <= 60, f"{node.name} has {length} lines"


def test_import_loads_nothing_heavy():
    code = "import sys, embedtopics; print(*sorted(sys.modules))"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert not HEAVY & set(loaded)
