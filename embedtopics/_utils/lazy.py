"""Public names of a subpackage, each imported when it is first used (PEP 562)."""

from __future__ import annotations

import ast
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from sys import modules
from typing import Any

from embedtopics._utils.boundary import explained
from embedtopics._utils.names import OF_A_MODULE


def attach(
    package: str, file: str
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return `__getattr__`, `__dir__` and `__all__` for the `__init__` file of a package.

    The names are those that the file imports under ``if TYPE_CHECKING:``, so that type checkers,
    editors and Python read one list.
    """
    homes: dict[str, tuple[str, str | None]] = {}
    for block in ast.parse(Path(file).read_text(encoding="utf-8")).body:
        if isinstance(block, ast.If):
            for line in block.body:
                if isinstance(line, ast.ImportFrom) and line.module:
                    for alias in line.names:
                        is_package = line.module == package
                        home = f"{package}.{alias.name}" if is_package else line.module
                        homes[alias.asname or alias.name] = (
                            home, None if is_package else alias.name,
                        )  # fmt: skip
    names = sorted(homes)

    def load(name: str) -> Any:
        if name not in homes:
            hint = f"; use {OF_A_MODULE[name]}" if name in OF_A_MODULE else ""
            raise AttributeError(f"module {package!r} has no attribute {name!r}{hint}")
        home, attribute = homes[name]
        module = import_module(home)
        value = module if attribute is None else getattr(module, attribute)
        if attribute is not None:
            value = explained(value)
            setattr(module, attribute, value)  # one object, as pickle asks
        setattr(modules[package], name, value)
        return value

    return load, lambda: names, names
