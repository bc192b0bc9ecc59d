"""Write what is made from the code: docs/api.md, and the table of the tree in CONTRIBUTING.md.

``python docs/make.py`` writes both; ``python docs/make.py --check`` fails where one is out of date.
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "embedtopics"
BEGIN, END = "<!-- tree: made by docs/make.py -->", "<!-- end of tree -->"

# Lines, files and public names of version 0.1.0, before the package was laid out anew.
BEFORE = {
    ".": (1776, 19, 40), "cli": (4898, 35, 1), "clustering": (1343, 9, 9),
    "comparison": (1813, 10, 8), "corpus": (2540, 13, 15), "encoders": (7044, 35, 13),
    "evaluation": (7123, 37, 70), "neighbors": (998, 7, 5), "plots": (6397, 33, 27),
    "probing": (9253, 49, 28), "reduction": (823, 5, 7), "report": (1174, 8, 4),
    "results": (3993, 25, 78), "retrieval": (11018, 63, 12), "terms": (2721, 20, 19),
    "topics": (19623, 119, 71), "training": (11660, 65, 35),
}  # fmt: skip


def tree_table() -> str:
    """Return lines, files and public names of each subpackage, before and now, as Markdown."""
    sizes: dict[str, list[int]] = {}
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(PACKAGE).parts
        size = sizes.setdefault(parts[0] if len(parts) > 1 else ".", [0, 0])
        size[0] += path.read_text("utf-8").count("\n")
        size[1] += 1
    names = {name: len(public_names(module)) for name, module in public_modules().items()}
    rows = [
        "| subpackage | lines | files | public names | lines before | files | names |",
        "| :-- | --: | --: | --: | --: | --: | --: |",
    ]
    total = [0] * 6
    for name in sorted(set(sizes) | set(BEFORE)):
        now = [*sizes.get(name, (0, 0)), names.get(name, 0)]
        row = [*now, *BEFORE.get(name, (0, 0, 0))]
        total = [a + b for a, b in zip(total, row, strict=True)]
        rows.append(f"| {name} | " + " | ".join(f"{value:,}" for value in row) + " |")
    rows.append("| in all | " + " | ".join(f"{value:,}" for value in total) + " |")
    return "\n".join(rows)


def public_modules() -> dict[str, ModuleType]:
    """Return the package, as ".", and its public subpackages."""
    package = importlib.import_module("embedtopics")
    found = {".": package}
    for name in package.__all__:
        if isinstance(getattr(package, name), ModuleType):
            found[name] = getattr(package, name)
    return found


def public_names(module: ModuleType) -> list[str]:
    """Return the public names of a module that are no subpackages."""
    return [n for n in module.__all__ if not isinstance(getattr(module, n), ModuleType)]


def api_page() -> str:
    """Return the reference of all public names as Markdown, from their docstrings."""
    lines = ["# Reference", "", "Made from the docstrings by `docs/make.py`.", ""]
    for name, module in public_modules().items():
        title = "embedtopics" if name == "." else f"embedtopics.{name}"
        names = public_names(module)
        if not names:
            continue
        summary = inspect.getdoc(module) or ""
        lines += [f"## {title}", "", summary.split("\n\n")[0].replace("\n", " "), ""]
        for public in names:
            value = getattr(module, public)
            home = getattr(value, "__module__", "")
            if name == "." and home.count(".") > 1 and _subpackage(home) in public_modules():
                if public in getattr(public_modules()[_subpackage(home)], "__all__", ()):
                    lines += [f"- `{public}`: see `embedtopics.{_subpackage(home)}.{public}`", ""]
                    continue
            lines += [f"### {title}.{public}{_signature(value)}", "", "```text"]
            lines += [_documented(value), "```", ""]
            if inspect.isclass(value):
                for method, function in _methods(value):
                    first = (inspect.getdoc(function) or "").split("\n\n")[0].replace("\n", " ")
                    lines.append(f"- `{method}{_signature(function)}`: {first}")
                lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def _subpackage(module: str) -> str:
    return module.split(".")[1]


def _documented(value: object) -> str:
    if inspect.isclass(value) or callable(value):
        return inspect.getdoc(value) or ""
    return repr(value)


def _signature(value: object) -> str:
    if not callable(value):
        return ""
    try:
        text = str(inspect.signature(value))
    except (TypeError, ValueError):
        return ""
    text = re.sub(r"'([^']*)'", r"\1", re.sub(r"<object object at 0x[0-9a-f]+>", "...", text))
    return text if len(text) < 400 else "(...)"


def _methods(cls: type) -> list[tuple[str, object]]:
    return [
        (name, value)
        for name, value in vars(cls).items()
        if not name.startswith("_") and inspect.isfunction(value)
    ]


def made() -> dict[Path, str]:
    """Return what each file has to hold."""
    contributing = ROOT / "CONTRIBUTING.md"
    text = contributing.read_text("utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return {
        ROOT / "docs" / "api.md": api_page(),
        contributing: f"{before}{BEGIN}\n{tree_table()}\n{END}{after}",
    }


def main(arguments: list[str]) -> int:
    """Write the files, or with --check say which are out of date."""
    files = made()
    stale = [path for path in files if not path.exists() or path.read_text("utf-8") != files[path]]
    for path in stale:
        if "--check" in arguments:
            sys.stderr.write(f"{path.relative_to(ROOT)} is out of date; run python docs/make.py\n")
        else:
            path.write_text(files[path], "utf-8")
    return int(bool(stale) and "--check" in arguments)


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    sys.exit(main(sys.argv[1:]))
