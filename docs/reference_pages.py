"""Pages of the reference, made from the public names when the site is built (docs/conf.py)."""

from __future__ import annotations

import importlib
import inspect
from types import ModuleType


def public_modules() -> dict[str, ModuleType]:
    """Return the package, as ".", its public subpackages, and its errors."""
    package = importlib.import_module("embedtopics")
    modules = {".": package}
    for name in package.__all__:
        value = getattr(package, name)
        if isinstance(value, ModuleType):
            modules[name] = value
    return modules


def public_names(module: ModuleType) -> list[str]:
    """Return the public names of a module, without its subpackages."""
    names = getattr(module, "__all__", None) or [
        name for name, value in vars(module).items() if is_class_of(value, module)
    ]
    return [
        name
        for name in names
        if not isinstance(getattr(module, name), ModuleType) and is_at_home(name, module)
    ]


def is_at_home(name: str, module: ModuleType) -> bool:
    """Return whether a name is described here: names of the root are on its page alone."""
    package = importlib.import_module("embedtopics")
    return module is package or name not in package.__all__


def is_class_of(value: object, module: ModuleType) -> bool:
    """Return whether an object is a class that a module defines."""
    return inspect.isclass(value) and value.__module__ == module.__name__


def reference_pages() -> dict[str, str]:
    """Return a page of the reference for each public subpackage: its names, then its results."""
    pages = {}
    for name, module in public_modules().items():
        title = "embedtopics" if name == "." else f"embedtopics.{name}"
        lines = [*heading(title, "="), inspect.getdoc(module) or "", ""]
        lines += entries(title, module)
        results = getattr(module, "results", None)
        if results is not None:
            lines += heading("Results", "-")
            lines += [f"What the functions return; in Python ``{title}.results``.", ""]
            lines += entries(f"{title}.results", results, underline="~")
        pages["embedtopics" if name == "." else name] = "\n".join(lines)
    return pages


def heading(text: str, underline: str) -> list[str]:
    """Return the lines of a heading."""
    return [text, underline * len(text), ""]


def entries(title: str, module: ModuleType, underline: str = "") -> list[str]:
    """Return a table of the names of a module, then their docstrings, below headings if asked."""
    names = public_names(module)
    lines = [f".. currentmodule:: {title}", "", ".. autosummary::", ""]
    lines += [f"   {name}" for name in names] + [""]
    for name in names:
        value = getattr(module, name)
        kind = "class" if inspect.isclass(value) else "function" if callable(value) else "data"
        lines += heading(name, underline) if underline else []
        lines += [f".. auto{kind}:: {name}", ""]
    return lines
