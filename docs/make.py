"""Write what is made from the code: the table of the tree in CONTRIBUTING.md.

``python docs/make.py`` writes it; ``python docs/make.py --check`` fails where it is out of date.
The pages of the reference are made here too, when the site is built (docs/conf.py).
"""

from __future__ import annotations

import importlib
import inspect
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


def reference_pages() -> dict[str, str]:
    """Return for each public subpackage a page that documents its names, for `docs/conf.py`."""
    pages = {}
    homes = public_modules()
    for name, module in homes.items():
        title = "embedtopics" if name == "." else f"embedtopics.{name}"
        names = public_names(module)
        if not names:
            continue
        lines = [title, "=" * len(title), "", inspect.getdoc(module) or "", ""]
        lines += [f".. currentmodule:: {title}", "", ".. autosummary::", ""]
        lines += [f"   {public}" for public in names] + [""]
        for public in names:
            value = getattr(module, public)
            parts = getattr(value, "__module__", "").split(".")
            home = homes.get(parts[1]) if name == "." and len(parts) > 2 else None
            index = "   :no-index:\n" if public in getattr(home, "__all__", ()) else ""
            kind = "class" if inspect.isclass(value) else "function"
            kind = kind if callable(value) else "data"
            lines += [f".. auto{kind}:: {public}", index]
        pages["embedtopics" if name == "." else name] = "\n".join(lines)
    return pages


def made() -> dict[Path, str]:
    """Return what each file has to hold."""
    contributing = ROOT / "CONTRIBUTING.md"
    text = contributing.read_text("utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return {
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
