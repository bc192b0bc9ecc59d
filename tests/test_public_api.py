"""The public names are there, documented, few, and no others are shown."""

import importlib
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import embedtopics
from embedtopics._utils.public import attach

PACKAGE = Path(embedtopics.__file__).parent
SUBPACKAGES = [
    name for name in embedtopics.__all__ if hasattr(getattr(embedtopics, name), "__path__")
]
PUBLIC_MODULES = [
    "errors",
    *SUBPACKAGES,
    *(f"{name}.results" for name in SUBPACKAGES
      if (PACKAGE / name / "results.py").exists() or (PACKAGE / name / "results").is_dir()),
]  # fmt: skip


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
    public = [
        path.relative_to(PACKAGE)
        for path in PACKAGE.rglob("*.py")
        if not path.name.startswith("_") and "_utils" not in path.parts
    ]
    assert {path.name for path in public} == {
        "errors.py",
        "protocols.py",
        "results.py",
    }


def test_public_modules_need_no_import_of_their_own():
    """In a new process, each of them is an attribute of the package that has just been imported."""
    program = "import embedtopics as et; from operator import attrgetter\n"
    program += f"for name in {PUBLIC_MODULES}: attrgetter(name)(et)"
    alone = [
        "import embedtopics as et; et.errors.InputError",
        "import embedtopics as et; et.topics.results.TopicResult",
        "import embedtopics as et; et.topics.ClassTfidf",
    ]
    assert len(PUBLIC_MODULES) > 25

    for code in (program, *alone):
        finished = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert not finished.returncode, finished.stderr


def test_a_name_that_moved_names_its_place():
    get_name, _, _ = attach(
        "embedtopics.topics", embedtopics.topics.__file__, {"reassign": "et.topics.reduce_outliers"}
    )

    with pytest.raises(AttributeError, match=r"'reassign'; it is et\.topics\.reduce_outliers now"):
        get_name("reassign")
    assert get_name("merge") is embedtopics.topics.merge
