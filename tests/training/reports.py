"""A report of a run, with everything in it that may stand in one."""

import math

import numpy as np
import pandas as pd

from embedtopics.results import Decision
from embedtopics.training._rows import Change, Evidence, frame_of
from embedtopics.training.results import Curves, Diagnosis, TrainingReport

HOSTILE = (
    "# heading\n\n| a | b |\n|---|---|\n<script>alert(1)</script> [link](javascript:alert(1)) "
    "![i](http://evil.example/x.png) **bold** `code` $x$ \\| www.evil.example\n---\nlicense: evil\n"
    "\u202eturned\u202c \x00 \ud800 &lt; 1) 2. - + = https://evil.example"
)


NO_CHANGES = frame_of((), Change)
NO_EVIDENCE = frame_of((), Evidence)


def make_report(**changes):
    nan = math.nan
    curves = Curves(
        training_steps=np.array([1, 2, 3, 4]),
        training_loss=np.array([1.0, 0.1 + 0.2, math.inf, 1e-300]),
        validation_steps=np.array([0, 2, 4]),
        validation_loss=np.array([1.0, 0.5, 0.625]),
        sample_loss=np.array([nan, 0.25, 0.125]),
        metric=np.array([0.5, 0.75, 0.7]),
        metric_name="Spearman correlation",
        steps_per_epoch=2,
        n_steps_planned=4,
        n_validation=100,
        n_sample=50,
    )
    diagnosis = Diagnosis(
        "overlearning",
        0.9,
        {"overlearning": 0.9, "just right": 0.1},
        frame_of(
            [Evidence("gap", 0.3, 0.1, 0.5, nan, "The validation loss rises by 0.125.")], Evidence
        ),
        ("Train for one epoch.", HOSTILE),
    )
    before_after = (
        Change("test", "Spearman correlation", 0.81, 0.8456, 0.0356, 0.012, 0.05, 1379, "better", 3,
               "These examples were scored 3 times."),
        Change("stsb", "Spearman correlation", 0.82, 0.75, -0.07, -0.09, -0.05, 1379, "worse", 1),
        Change("test", "Pearson correlation", 0.8, nan, nan, nan, nan, 20, "no difference shown"),
        Change("corpus", "topics of two runs agree (ARI)", 0.9, 0.5, -0.4, -0.45, -0.35, 500,
               "descriptive", 0, "These examples were scored 3 times."),
    )  # fmt: skip
    fields = {
        "objective": "sts: cosine",
        "base": "all-MiniLM-L6-v2",
        "folder": "/home/somebody/secret/my-encoder",
        "settings": {"epochs": 3.0, "keep": "best", "learning_rate": 2e-05},
        "data": {
            "n_train": 5749,
            "train": "/home/somebody/data/train.csv",
            "hostile": HOSTILE,
            "shares": (0.5, nan),
            1: "a key that is no string",
        },
        "curves": curves,
        "diagnosis": diagnosis,
        "before_after": frame_of(before_after, Change),
        "best_step": 2,
        "n_steps": 4,
        "stopped": "no improvement",
        "seconds": 12.5,
        "examples_per_second": 100.0,
        "decisions": (Decision("training", "duplicates", ["a", "b"], HOSTILE),),
        "versions": {"torch": "2.13", "numpy": "2.0"},
    }
    return TrainingReport(**{**fields, **changes})


def same(one, other):
    """Tell whether two values are equal, NaN of one being that of the other, types included."""
    if isinstance(one, np.generic):
        one = one.item()
    if isinstance(one, float) and math.isnan(one):
        return isinstance(other, float) and math.isnan(other)
    if isinstance(one, np.ndarray):
        return (
            isinstance(other, np.ndarray)
            and one.dtype == other.dtype
            and np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
        )
    if type(one) is not type(other):
        return False
    if isinstance(one, pd.DataFrame):
        return one.equals(other) and one.dtypes.equals(other.dtypes)
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if hasattr(one, "__dataclass_fields__"):
        return all(same(getattr(one, n), getattr(other, n)) for n in one.__dataclass_fields__)
    return one == other
