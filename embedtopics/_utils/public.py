"""Public names of a package: they are imported when they are first used, and say if they moved."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import lazy_loader


def attach(
    package: str, file: str, moved: Mapping[str, str] | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` of a package.

    The names and their modules stand in the stub beside `file`, with the ending ``.pyi``.

    Parameters
    ----------
    package : str
        ``__name__`` of the package.
    file : str
        ``__file__`` of the package.
    moved : mapping of str to str, optional
        What to use now instead of former names: ``{"reassign": "et.topics.reduce_outliers"}``.
    """
    import_name, list_names, names = lazy_loader.attach_stub(package, file)
    replacements = moved or {}

    def get_name(name: str) -> Any:
        if name in replacements:
            message = f"{package} has no attribute {name!r}; it is {replacements[name]} now"
            raise AttributeError(message)
        if name in names or name.startswith("_"):
            return import_name(name)

        from embedtopics._utils.habits import hint_of_name

        message = f"{package} has no attribute {name!r}"
        if hint := hint_of_name(package, name):
            message += f"; {hint}"
        raise AttributeError(message)

    return get_name, list_names, names


def places_of(package: str, moved: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a private package: it says where its former names are."""

    def get_name(name: str) -> Any:
        message = f"module {package!r} has no attribute {name!r}"
        if name in moved:
            message += f"; it is {moved[name]} now"
        raise AttributeError(message)

    return get_name
