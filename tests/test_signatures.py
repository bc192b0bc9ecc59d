"""The public signatures follow the rules of the API, and every public name has an example."""

import importlib
import inspect
from collections import Counter
from pathlib import Path

import pytest

import embedtopics
from embedtopics.encoders._contract import PUBLIC_MEMBERS, BaseEncoder

SUBPACKAGES = [
    name for name in embedtopics.__all__ if hasattr(getattr(embedtopics, name), "__path__")
]
FORMER_NAMES = (Path(__file__).parent / "former_names.txt").read_text("utf-8").split()
"""Public names of the package before each name got one place."""

LAST = ("random_state", "show_progress")
"""Parameters that come last, in this order."""

OF_OTHER_LIBRARIES = {
    "encode": "sentence-transformers",
    "encode_document": "sentence-transformers",
    "encode_query": "sentence-transformers",
    "mine_hard_negatives": "sentence-transformers",
    "set_params": "scikit-learn",
}
"""Functions that keep the parameters of another library."""

NOT_WORDS = {
    "among", "classes_", "colors", "covariates", "data_", "document", "group_column", "groups",
    "label", "labelled", "least", "least_words", "max_length", "most", "most_per_document",
    "n", "options", "replicates", "runtime", "seed", "seeds", "source_", "tags", "truncation",
}  # fmt: skip
"""Words for which the API has others, such as ``n_replicates`` and ``labels``."""

OTHER_MEANINGS = {
    ("embedtopics.plots.by_group", "groups"): "the TopicGroups that are drawn",
    ("embedtopics.topics.SeedWords", "seeds"): "seed words, no random seeds",
    ("embedtopics.training.read_examples", "label"): "the one column of classes or scores",
}


def public_names():
    """Yield the dotted name and the object of each public function and class."""
    for module_name in ("embedtopics", *(f"embedtopics.{name}" for name in SUBPACKAGES)):
        module = importlib.import_module(module_name)
        for name in module.__all__:
            value = getattr(module, name)
            if callable(value):
                yield f"{module_name}.{name}", value


def methods_of(name, value):
    """Yield the public methods of a class; encoders say which of theirs are."""
    names = PUBLIC_MEMBERS if issubclass(value, BaseEncoder) else dir(value)
    for method_name in names:
        if not hasattr(value, method_name):
            continue
        method = inspect.getattr_static(value, method_name)
        method = getattr(method, "__func__", method)
        is_ours = str(getattr(method, "__module__", "")).startswith("embedtopics")
        if inspect.isfunction(method) and is_ours and not method_name.startswith("_"):
            yield f"{name}.{method_name}", method


def parameters_of(value):
    parameters = inspect.signature(value).parameters.values()
    return [one for one in parameters if one.name not in ("self", "cls")]


def is_record(value):
    """Return whether the constructor of a class has a parameter for each field."""
    fields = getattr(value, "__dataclass_fields__", None)
    return fields is not None and [one.name for one in parameters_of(value)] == [
        field.name for field in fields.values() if field.init
    ]


def is_foreign(name):
    """Return whether a function keeps the parameters of another library."""
    return name.split(".")[-1] in OF_OTHER_LIBRARIES


PUBLIC = dict(public_names())
CALLABLES = {
    **PUBLIC,
    **{
        method_name: method
        for name, value in PUBLIC.items()
        if inspect.isclass(value)
        for method_name, method in methods_of(name, value)
    },
}


def test_at_most_three_parameters_are_positional():
    offences = {}
    for name, value in CALLABLES.items():
        positional = [
            one.name
            for one in parameters_of(value)
            if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)
        ]
        if len(positional) > 3 and not is_record(value) and not is_foreign(name):
            offences[name] = positional
    assert not offences


def test_every_keyword_is_written_out():
    offences = [
        f"{name}(*{one.name})"
        for name, value in CALLABLES.items()
        for one in parameters_of(value)
        if one.kind in (one.VAR_KEYWORD, one.VAR_POSITIONAL) and not is_foreign(name)
    ]
    assert not offences


def test_the_seed_and_the_progress_come_last_and_the_seed_is_zero():
    offences = []
    for name, value in CALLABLES.items():
        names = [one.name for one in parameters_of(value)]
        last = [one for one in LAST if one in names]
        if last and not is_foreign(name) and names[-len(last) :] != last:
            offences.append(f"{name}({', '.join(names)})")
        seeds = [one for one in parameters_of(value) if one.name == "random_state"]
        if any(one.default not in (0, one.empty) for one in seeds):
            offences.append(f"{name}(random_state={seeds[0].default})")
    assert not offences


def test_one_word_stands_for_each_thing():
    offences = [
        f"{name}({one.name})"
        for name, value in CALLABLES.items()
        for one in parameters_of(value)
        if one.name in NOT_WORDS and (name, one.name) not in OTHER_MEANINGS
    ]
    assert not offences


def test_each_name_has_one_place():
    places = Counter(id(value) for value in PUBLIC.values())
    assert not [name for name, value in PUBLIC.items() if places[id(value)] > 1]


@pytest.mark.parametrize("name", FORMER_NAMES)
def test_a_former_name_is_there_or_says_where_it_is(name):
    module_name, _, attribute = name.rpartition(".")
    try:
        getattr(resolve(module_name), attribute)
    except AttributeError as error:
        place = str(error).partition("; it is ")[2].removesuffix(" now").partition("(")[0]
        resolve(place)


OBJECTS = {
    "result": embedtopics.TopicResult,
    "states": embedtopics.probing.results.HiddenStates,
}
"""Classes of the objects on which a former function is a method now."""


def resolve(dotted):
    """Return the object with a dotted name, as users reach it."""
    first, *parts = dotted.split(".")
    value = OBJECTS.get(first, embedtopics)
    for part in parts:
        value = getattr(value, part)
    return value


def test_every_public_name_has_an_example():
    assert not [name for name, value in PUBLIC.items() if ">>>" not in (value.__doc__ or "")]


def test_no_example_is_skipped():
    sources = Path(embedtopics.__file__).parent.rglob("*.py")
    assert not [path.name for path in sources if "doctest: +SKIP" in path.read_text("utf-8")]
