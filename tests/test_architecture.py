"""The layout's promises: who imports whom, how long things grow, how light the import is."""

import ast
from pathlib import Path

import pytest

from tests.factories import python

PACKAGE = Path(__file__).parents[1] / "embedtopics"
TREES = {
    path.relative_to(PACKAGE): ast.parse(path.read_text("utf-8"))
    for path in sorted(PACKAGE.rglob("*.py"))
}
BASE = {"errors", "protocols", "decisions", "_utils", "corpus"}
SUBPACKAGES = {path.parts[0] for path in TREES if len(path.parts) > 1}
MAY_IMPORT = {
    "neighbors": set(),
    "reduction": set(),
    "clustering": set(),
    "terms": set(),
    "evaluation": set(),
    "encoders": {"terms"},
    "retrieval": {"encoders", "neighbors", "terms", "evaluation"},
    "training": {"encoders", "neighbors", "reduction", "clustering", "evaluation"},
    "pretraining": {"encoders", "training", "terms", "evaluation", "neighbors"},
    "classification": {"encoders", "neighbors", "terms", "training", "evaluation"},
    "annotation": {"classification", "encoders", "neighbors", "retrieval", "evaluation"},
    "probing": {"encoders", "neighbors", "reduction", "clustering", "evaluation"},
    "topics": {"encoders", "neighbors", "reduction", "clustering", "terms", "evaluation"},
    "comparison": {"encoders", "neighbors", "reduction", "clustering", "terms", "evaluation"},
    "plots": set(),
    "report": {"plots", "evaluation"},
    "distributed": {"encoders", "topics", "terms", "retrieval", "classification"},
    "cli": SUBPACKAGES - {"cli"},
    **{name: set() for name in BASE},
}
HEAVY = {
    "torch", "transformers", "sentence_transformers", "onnxruntime", "faiss", "numba", "umap",
    "hdbscan", "fast_hdbscan", "gensim", "plotly", "sklearn", "scipy", "pandas", "pyarrow",
}  # fmt: skip
LONGEST_FILE, LONGEST_FUNCTION, MOST_FILES_IN_FOLDER = 900, 60, 21


def imported_modules(tree):
    """Return the parts of the modules of this package that a file imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("embedtopics"):
            parts = node.module.split(".")[1:]
            yield from ([*parts, alias.name] for alias in node.names) if not parts else [parts]
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.startswith("embedtopics."):
                    yield alias.name.split(".")[1:]


def test_imports_follow_the_table():
    wrong = []
    for path, tree in TREES.items():
        subpackage = path.parts[0].removesuffix(".py")
        if subpackage in ("__init__", "__main__"):
            continue
        allowed = MAY_IMPORT[subpackage] | BASE | {subpackage, "__version__"}
        wrong += [
            f"{path} imports {'.'.join(parts)}"
            for parts in imported_modules(tree)
            if parts[0] not in allowed and parts[-1] != "results"
        ]
    assert not wrong


def test_files_functions_and_folders_stay_small():
    wrong = []
    for path, tree in TREES.items():
        n_lines = (PACKAGE / path).read_text("utf-8").count("\n")
        if n_lines > LONGEST_FILE:
            wrong.append(f"{path} has {n_lines} lines")
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                body = node.body[1:] if ast.get_docstring(node) else node.body
                length = body[-1].end_lineno - body[0].lineno + 1 if body else 0
                if length > LONGEST_FUNCTION:
                    wrong.append(f"{path}: {node.name} has {length} lines")
    folders = [path.parent for path in TREES]
    wrong += [
        f"{folder} has {folders.count(folder)} files"
        for folder in set(folders)
        if folders.count(folder) > MOST_FILES_IN_FOLDER
    ]
    assert not wrong


LATER = {
    f"embedtopics.{name}"
    for name in (
        "topics.editing", "topics.mixture._", "topics.naming", "topics.reading", "topics.tree._",
        "topics.trends._", "topics._report_card", "evaluation._", "plots._", "comparison._",
    )
}  # fmt: skip


@pytest.mark.parametrize(
    ("code", "absent"),
    [
        ("import embedtopics", HEAVY),
        ("import embedtopics.encoders", {"tokenizers", "huggingface_hub", *HEAVY}),
        ("import embedtopics.corpus", {"py3langid"}),
        ("from embedtopics.retrieval import SearchIndex", {"lark"}),
        ("from embedtopics import TopicModel", LATER),
        ("from embedtopics.cli._app import app; app(['--help'])", {"numpy", *HEAVY}),
    ],
)
def test_imports_load_nothing_heavy_and_nothing_that_is_needed_later(code, absent):
    shown = python(f"import sys, atexit; atexit.register(lambda: print(*sys.modules)); {code}")
    loaded = shown.splitlines()[-1].split()
    assert "embedtopics" in loaded
    assert not [name for name in loaded if name.startswith(tuple(absent))]
