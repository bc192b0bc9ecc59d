"""The public names are there, documented, and no others."""

from __future__ import annotations

import ast
import importlib
import inspect
import subprocess
import sys

import pytest

import embedtopics

ROOMS = [
    "clustering", "comparison", "corpus", "encoders", "evaluation", "neighbors", "plots",
    "probing", "reduction", "report", "retrieval", "terms", "topics", "training",
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


LAZY = ["encoders", "probing", "retrieval", "topics", "training"]


@pytest.mark.parametrize("room", LAZY)
def test_lazy_names_have_the_homes_that_type_checkers_are_told(room):
    module = importlib.import_module(f"embedtopics.{room}")
    told = {
        alias.name: node.module
        for node in ast.walk(ast.parse(inspect.getsource(module)))
        if isinstance(node, ast.ImportFrom) and node.module.startswith(f"{module.__name__}.")
        for alias in node.names
    }
    homes = {name: f"{module.__name__}.{home}" for name, home in module._HOME.items()}
    assert homes == told and set(homes) == set(module.__all__)
    assert dir(module) == sorted(module.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        module.nothing  # noqa: B018


@pytest.mark.parametrize("room", ROOMS)
def test_no_submodule_hides_a_function_of_its_name(room):
    """In a process of its own, in which the submodules are imported first."""
    code = f"""if True:
        import importlib, pkgutil, sys, types
        import embedtopics.{room} as room
        for found in pkgutil.walk_packages(room.__path__, room.__name__ + "."):
            importlib.import_module(found.name)
        for name in room.__all__:
            assert not isinstance(getattr(room, name), types.ModuleType), name
        from embedtopics.{room} import *
        assert not any(isinstance(globals()[n], types.ModuleType) for n in room.__all__)
        print(len(room.__all__))
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout, done.stderr


def test_a_model_loads_nothing_of_what_is_asked_after_the_fit():
    code = "import sys; from embedtopics import TopicModel; print(*sorted(sys.modules))"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    later = ("editing", "mixtures", "naming", "reading", "tree", "trends", "report_card")
    later = tuple(f"embedtopics.topics.{name}" for name in later)
    later += ("embedtopics.evaluation", "embedtopics.plots", "embedtopics.comparison.")
    assert not [name for name in loaded if name.startswith(later)]
