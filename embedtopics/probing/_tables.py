"""Tables of scores and of uses of words: their columns, and the type of each number."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

SCORE = {"value": "float64", "low": "float64", "high": "float64", "n": "int64"}

PROBE_SCORES = {"task": "", "what": "", "layer": "Int64", "metric": "", **SCORE}
"""Columns of the scores of probes; scores of no single layer have no layer."""

LAYER_MEASURES = {"measure": "", "layer": "Int64", **SCORE}
"""Columns of measures of layers; a baseline has no layer."""

USE_EFFECTS = {
    "word": "",
    "term": "",
    "level": "",
    "norm": "float64",
    "low": "float64",
    "high": "float64",
    "p": "float64",
    "q": "float64",
    "n": "int64",
    "n_units": "int64",
}
"""Columns of the effects of covariates on the uses of words."""

WORD_USES = {
    "row": "int64",
    "text": "int64",
    "position": "int64",
    "word": "",
    "start": "int64",
    "end": "int64",
    "sentence": "",
    "offset": "int64",
}
"""Columns of uses of words: row of the hidden states, text, place among the units of the text, the
word as written, its first character in the text and the position after the last, its sentence, and
its first character there."""


def make_table(rows: Sequence[Mapping[str, Any]], columns: Mapping[str, str]) -> pd.DataFrame:
    """Return a row for each mapping, with some columns of some types."""
    cells = [[row[name] for name in columns] for row in rows]
    frame = pd.DataFrame(cells, columns=list(columns))
    return frame.astype({name: kind for name, kind in columns.items() if kind})
