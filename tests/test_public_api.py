"""The public names are there, documented, and no others."""

from __future__ import annotations

import importlib
import inspect

import pytest

import embedtopics

ROOMS = [
    "clustering", "comparison", "corpus", "encoders", "evaluation", "neighbors", "plots",
    "reduction", "report", "terms", "topics",
]  # fmt: skip


def test_root_names_resolve():
    for name in embedtopics.__all__:
        assert getattr(embedtopics, name) is not None
    assert set(dir(embedtopics)) == set(embedtopics.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        embedtopics.nothing  # noqa: B018


def test_version_is_the_package_version():
    from importlib.metadata import version

    assert version("embedtopics") == embedtopics.__version__


@pytest.mark.parametrize("room", ROOMS)
def test_room_exports_are_sorted_and_documented(room):
    module = importlib.import_module(f"embedtopics.{room}")
    assert module.__doc__
    # Constants in capitals first, then classes, then functions: ruff's order of __all__.
    assert len(set(module.__all__)) == len(module.__all__)
    for name in module.__all__:
        value = getattr(module, name)
        if inspect.isclass(value) or inspect.isfunction(value):
            assert inspect.getdoc(value), f"{room}.{name} has no docstring"
