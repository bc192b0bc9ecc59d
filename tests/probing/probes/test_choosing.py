"""Which layer is called the best, and by what; what is refused because it would choose wrongly."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from embedtopics import probing
from embedtopics.probing._tables import PROBE_SCORES, make_table
from embedtopics.probing.probes._fit import Fit
from embedtopics.probing.probes._probe import ProbedVectors, _chosen_layer, _Trained
from embedtopics.probing.probes._units import TEST, label_units
from embedtopics.probing.results import LayerScores
from tests.factories import refuses
from tests.probing.made import random_states, rows_of
from tests.probing.probes.problems import tagged_states

STATES, TAGGED = tagged_states(n_texts=40, signals=(0.0, 1.0, 3.0))


def scores_of(*figures, **others):
    """Scores of (what, layer, metric, value)."""
    made = [
        {
            **dict(zip(("what", "layer", "metric", "value"), one, strict=True)),
            **{"task": "made", "low": float("nan"), "high": float("nan"), "n": 10},
        }
        for one in figures
    ]
    table = make_table(made, PROBE_SCORES)
    sizes = {"n_train": 10, "n_dev": 10, "n_test": 10}
    return LayerScores(
        table=table, task="made", encoder="made", labels=("A", "B"), **sizes, **others
    )


pytestmark = pytest.mark.usefixtures("few_steps")


@pytest.fixture
def scores():
    return probing.probe(STATES, TAGGED)


def test_of_equals_the_lowest_layer_is_the_best_and_unknown_figures_are_not():
    nan = float("nan")
    values = {0: nan, 1: 0.5, 2: 0.9, 3: 0.9, 4: nan, 5: 0.5}
    found = scores_of(*(("probe", n, "spearman", v) for n, v in values.items()))
    assert found.best("spearman")["layer"] == 2
    found = scores_of(*(("probe", n, "bits per label", v) for n, v in values.items()))
    assert found.best("bits per label")["layer"] == 1
    with refuses("metric"):
        scores_of(("probe", 0, "uuas", nan)).best("uuas")


def test_the_chosen_layer_loses_least_on_the_dev_part(scores):
    assert scores.chosen_layer == 2
    (expected,) = rows_of(scores, what="probe", metric="accuracy", layer=2)
    assert scores.chosen().to_dict() == expected._asdict()
    made = [
        _Trained(ProbedVectors("", layer, None, is_baseline), (), Fit((), (), np.array([losses])))
        for layer, is_baseline, losses in [
            (0, True, [0.1, 0.1]), (3, False, [0.9, 0.5]), (1, False, [0.4, 0.9]),
            (None, False, [0.0, 0.0]),
        ]
    ]  # fmt: skip
    # Layer 3: 0.5 at its best penalty; layer 1: 0.4.
    assert _chosen_layer(made) == 1
    assert _chosen_layer(made[3:]) is None


def test_the_best_score_is_a_row_of_the_table_which_is_copied(scores):
    table = scores.to_frame()
    best = scores.best("accuracy")
    pd.testing.assert_series_equal(best, table.loc[best.name])
    assert best["task"] == "labels"
    assert best["low"] <= best["value"] <= best["high"]
    table["value"] = 0.0
    assert scores.best("accuracy")["value"] == best["value"] > 0.0


def test_the_test_part_has_no_say_in_the_layer_chosen(scores):
    units = label_units(STATES, TAGGED, 0)
    flat = [tag for own in TAGGED for tag in own]
    for row in units.rows[units.of(TEST)].tolist():
        flat[row] = "NOUN"  # told by no vector
    other = probing.probe(STATES, flat)
    assert other.chosen_layer == scores.chosen_layer == 2
    assert other.chosen()["value"] < scores.chosen()["value"]


def test_what_chose_no_layer_names_none():
    made = scores_of(("combination", None, "accuracy", 0.5))
    with refuses("what"):
        made.chosen(what="combination")
    made = replace(made, chosen_layer=1)
    with refuses("what"):
        made.chosen(what="combination")
    with refuses("metric"):
        made.chosen(what="probe")


def test_copies_of_a_sentence_in_other_texts_stand_in_the_order_of_their_texts():
    """Their vectors differ, by what stands around them."""
    texts = [f"s{i} s{i} x y" for i in range(9)]

    def order(chosen):
        states = random_states([texts[i] for i in chosen])
        second = 2 * states.of_text + (states.position > 1)
        states = replace(states, sentences=second.astype(np.int32))
        units = label_units(states, [["A", "A", "B", "C"]] * 9, 0)
        return [(states.texts[states.of_text[row]], int(states.position[row]))
                for row in units.rows.tolist()]  # fmt: skip

    assert order(range(9)) == order([3, 8, 0, 1, 7, 2, 6, 5, 4])
