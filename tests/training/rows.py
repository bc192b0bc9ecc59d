"""Rows to read, and what is said of them."""

import pandas as pd
import pytest

from embedtopics.errors import InputError
from embedtopics.training import read_examples

NLI = [
    ("A dog runs.", "An animal moves.", "entailment"),
    ("A dog runs.", "It is brown.", "neutral"),
    ('He said "yes", twice', "He said\nno.", "contradiction"),
]
ORDER = ("entailment", "neutral", "contradiction")


def refused(source, kind, **options):
    with pytest.raises(InputError) as error:
        read_examples(source, kind, **options)
    return error.value.parameter


def told(examples):
    return {decision.name: decision.value for decision in examples.decisions}


def frame(rows, names=("premise", "hypothesis", "label")):
    return pd.DataFrame(rows, columns=list(names))
