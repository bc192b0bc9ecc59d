"""The public names are there, documented, few, and no others are shown."""

import importlib
import inspect
from pathlib import Path
from types import ModuleType

import pytest

import embedtopics

SUBPACKAGES = [
    name for name in embedtopics.__all__ if isinstance(getattr(embedtopics, name), ModuleType)
]


@pytest.mark.parametrize("name", ["embedtopics", *(f"embedtopics.{s}" for s in SUBPACKAGES)])
def test_public_names_are_documented_and_all_that_is_shown(name):
    module = importlib.import_module(name)
    assert module.__doc__ and dir(module) == sorted(set(module.__all__))
    for public in module.__all__:
        value = getattr(module, public)
        if inspect.isclass(value) or inspect.isfunction(value):
            assert inspect.getdoc(value), f"{name}.{public} has no docstring"
    with pytest.raises(AttributeError, match="nothing"):
        module.nothing  # noqa: B018


def test_subpackages_have_no_public_modules_but_results():
    package = Path(embedtopics.__file__).parent
    public = [
        path.relative_to(package)
        for path in package.rglob("*.py")
        if not path.name.startswith("_") and "_utils" not in path.parts
    ]
    assert {path.name for path in public} == {
        "decisions.py",
        "errors.py",
        "protocols.py",
        "results.py",
    }
