"""The rules of the layout: who imports whom, how large files may grow, and names."""

import ast
from pathlib import Path

from tests.factories import python

PACKAGE = Path(__file__).parents[1] / "embedtopics"
SOURCES = {
    path.relative_to(PACKAGE): path.read_text("utf-8") for path in sorted(PACKAGE.rglob("*.py"))
}
TREES = {path: ast.parse(source) for path, source in SOURCES.items()}

BASE = {"errors", "protocols", "results", "_utils", "corpus"}
SUBPACKAGES = {path.parts[0] for path in TREES if len(path.parts) > 1}
MAY_IMPORT = {
    "neighbors": set(),
    "reduction": set(),
    "clustering": set(),
    "terms": set(),
    "evaluation": set(),
    "encoders": {"terms"},
    "retrieval": {"encoders", "neighbors", "terms", "evaluation"},
    "training": {"encoders", "neighbors", "evaluation"},
    "pretraining": {"encoders", "training", "terms", "evaluation"},
    "classification": {"encoders", "neighbors", "terms", "training", "evaluation", "inference"},
    "annotation": {
        "classification",
        "encoders",
        "neighbors",
        "terms",
        "retrieval",
        "evaluation",
        "inference",
    },
    "probing": {"encoders", "neighbors", "reduction", "clustering", "evaluation", "inference"},
    "inference": {"evaluation"},
    "topics": {
        "encoders",
        "neighbors",
        "reduction",
        "clustering",
        "terms",
        "evaluation",
        "inference",
    },
    "comparison": {
        "encoders",
        "neighbors",
        "reduction",
        "clustering",
        "terms",
        "evaluation",
        "training",
    },
    "plots": set(),
    "report": {"plots", "evaluation"},
    "batch": {"encoders", "topics", "terms", "retrieval", "classification"},
    "cli": SUBPACKAGES - {"cli"},
    **{name: set() for name in BASE},
}

LONGEST_FILE = 600

# Words that say nothing of what a variable holds.
NO_NAMES = {
    "found", "made", "own", "held", "given", "kept", "wanted", "chosen", "known", "said", "taken",
}  # fmt: skip
LARGEST_SHARE_OF_NO_NAMES = 0.03

HEAVY = {
    "torch", "transformers", "sentence_transformers", "onnxruntime", "faiss", "numba", "umap",
    "hdbscan", "fast_hdbscan", "gensim", "plotly", "sklearn", "scipy", "pandas", "pyarrow",
}  # fmt: skip


def imported_modules(tree):
    """Yield the modules of this package that a file imports, as lists of their parts."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("embedtopics"):
            parts = node.module.split(".")[1:]
            yield from ([*parts, alias.name] for alias in node.names) if not parts else [parts]
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.startswith("embedtopics."):
                    yield alias.name.split(".")[1:]


def functions(tree):
    return [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]


def test_imports_follow_the_table():
    offences = []
    for path, tree in TREES.items():
        subpackage = path.parts[0].removesuffix(".py")
        if subpackage in ("__init__", "__main__"):
            continue
        allowed = MAY_IMPORT[subpackage] | BASE | {subpackage, "__version__"}
        offences += [
            f"{path} imports {'.'.join(parts)}"
            for parts in imported_modules(tree)
            if parts[0] not in allowed and parts[-1] != "results"
        ]
    assert not offences


def test_figures_and_reports_get_the_result_of_a_model_from_result_of_alone():
    offences = [
        f"{path}:{node.lineno}"
        for path, tree in TREES.items()
        if path.parts[0] in ("plots", "report")
        for node in ast.walk(tree)
        if getattr(node, "attr", getattr(node, "value", None)) == "result_"
    ]
    assert not offences


def test_no_module_of_the_package_is_imported_by_a_string():
    offences = [
        f"{path}:{node.lineno}"
        for path, tree in TREES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and getattr(node.func, "attr", getattr(node.func, "id", ""))
        in ("import_module", "__import__")
        and any("embedtopics" in ast.unparse(argument) for argument in node.args)
    ]
    assert not offences


def test_files_stay_small():
    n_lines = {path: source.count("\n") for path, source in SOURCES.items()}
    assert not {path: n for path, n in n_lines.items() if n > LONGEST_FILE}


def test_no_two_classes_have_one_name():
    homes = {}
    for path, tree in TREES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                homes.setdefault(node.name, []).append(str(path))
    assert not {name: paths for name, paths in homes.items() if len(paths) > 1}


def test_encoders_alone_know_the_classes_and_attributes_of_encoders():
    """Others call what `BaseEncoder` promises."""
    offences = []
    for path, tree in TREES.items():
        if path.parts[0] in ("encoders", "protocols.py"):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in (
                "getattr", "hasattr", "isinstance",
            ):  # fmt: skip
                asked, *rest = map(ast.unparse, node.args)
                is_encoder = asked.split(".")[-1] in ("encoder", "uncached")
                if (is_encoder and node.func.id != "isinstance") or any(
                    name.strip("()").split(".")[-1].endswith("Encoder")
                    for argument in rest
                    for name in argument.split(",")
                ):
                    offences.append(f"{path}:{node.lineno}: {ast.unparse(node)}")
    assert not offences


def test_variables_are_called_after_what_they_hold():
    n_functions, offences = 0, []
    for path, tree in TREES.items():
        for function in functions(tree):
            n_functions += 1
            nested = {
                id(node)
                for inner in functions(function)
                if inner is not function
                for node in ast.walk(inner)
            }
            names = {
                node.id if isinstance(node, ast.Name) else node.arg
                for node in ast.walk(function)
                if id(node) not in nested
                and (
                    isinstance(node, ast.arg)
                    or (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
                )
            }
            if names & NO_NAMES:
                offences.append(f"{path}: {function.name} has {', '.join(names & NO_NAMES)}")
    assert len(offences) <= LARGEST_SHARE_OF_NO_NAMES * n_functions, offences


LATER = {
    f"embedtopics.{name}"
    for name in (
        "topics.editing", "topics.naming", "topics.reading",
        "topics.trends._", "topics._tables", "evaluation._", "plots._", "comparison._",
    )
}  # fmt: skip


STAGES = {
    "import embedtopics": HEAVY,
    "import embedtopics.encoders": {"tokenizers", "huggingface_hub", *HEAVY},
    "import embedtopics.corpus": {"py3langid"},
    "from embedtopics import TopicModel": LATER,
    "from embedtopics import SearchIndex": {"lark"},
}
"""Imports, one after the other, and what none of them may have loaded by then."""

COMMAND = "from embedtopics.cli._app import app; app(['--help'])"


def test_imports_load_nothing_heavy_and_nothing_that_is_needed_later():
    show = "; print(*sys.modules)\n"
    loaded = python(f"import sys; {show.join(STAGES)}{show}").splitlines()
    of_command = python(
        f"import sys, atexit; atexit.register(lambda: print(*sys.modules)); {COMMAND}"
    )
    stages = [*STAGES.items(), (COMMAND, {"numpy", *HEAVY})]
    offences = [
        (code, name)
        for (code, absent), names in zip(
            stages, [*loaded, of_command.splitlines()[-1]], strict=True
        )
        for name in names.split()
        if name.startswith(tuple(absent))
    ]
    assert not offences
