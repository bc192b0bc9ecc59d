"""Pages of the reference, made from the public names when the site is built (docs/conf.py)."""

from __future__ import annotations

import importlib
import inspect
from types import ModuleType


def public_modules() -> dict[str, ModuleType]:
    """Return the package, as ".", and its public subpackages."""
    package = importlib.import_module("embedtopics")
    modules = {".": package}
    for name in package.__all__:
        value = getattr(package, name)
        if isinstance(value, ModuleType) and hasattr(value, "__path__"):
            modules[name] = value
    return modules


def public_names(module: ModuleType) -> list[str]:
    """Return the public names of a module, without its subpackages."""
    return [n for n in module.__all__ if not isinstance(getattr(module, n), ModuleType)]


def reference_pages() -> dict[str, str]:
    """Return a page of the reference for each public subpackage."""
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
