"""What is wanted of a probe, checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from embedtopics._checks import checked_count
from embedtopics._randomness import resolve_seed
from embedtopics.errors import InputError
from embedtopics.probing.probes.architectures import Architecture, Linear, Perceptron
from embedtopics.probing.probes.fitting import Fit, Plan
from embedtopics.probing.probes.parts import Units
from embedtopics.probing.probes.scoring import Answers
from embedtopics.protocols import RandomState
from embedtopics.results import Decision, HiddenStates

__all__ = [
    "BASELINES",
    "Asked",
    "Source",
    "Trained",
    "check_twin",
    "checked",
    "checked_baselines",
    "chosen_layer",
    "told_of_control",
]

BASELINES = ("majority", "word type", "embedding layer")
KINDS = ("linear", "mlp")
LOOKS = 8
"""How often a probe with a hidden layer, that may learn too long, is looked at."""
FEW_PENALTIES = (100.0, 1.0)
"""For a hidden layer, which costs more, and which stopping early holds back as well."""


@dataclass(frozen=True)
class Asked:
    """What is wanted of a probe.

    Parameters
    ----------
    kind : {"linear", "mlp"}
    control : bool
    n_seeds, seed : int
    show_progress : bool or None
    mix, description_length : bool
    """

    kind: str
    control: bool
    n_seeds: int
    seed: int
    show_progress: bool | None
    mix: bool = False
    description_length: bool = False

    @property
    def what(self) -> str:
        """What its figures are called."""
        return "probe" if self.kind == "linear" else "mlp"

    @property
    def architecture(self) -> Architecture:
        """What is trained."""
        return Linear() if self.kind == "linear" else Perceptron()

    @property
    def plan(self) -> Plan:
        """How it is trained."""
        return Plan() if self.kind == "linear" else Plan(n_looks=LOOKS, penalties=FEW_PENALTIES)

    @property
    def seeds(self) -> range:
        """Seeds of the fits: a linear probe has one optimum, whatever it begins with."""
        return range(1 if self.kind == "linear" else self.n_seeds)


@dataclass(frozen=True, eq=False)
class Source:
    """Vectors to be probed.

    Parameters
    ----------
    what : str
        What the figures are called.
    layer : int or None
    vectors : ndarray of shape (n_rows, width)
    is_asked : bool
        Whether they are what was asked for: a baseline has no control and no further figures.
    """

    what: str
    layer: int | None
    vectors: npt.NDArray[Any]
    is_asked: bool = True


@dataclass(frozen=True, eq=False)
class Trained:
    """Probes of one layer after training.

    Parameters
    ----------
    source : Source
    answers : tuple of Answers
        Of the task, and of the control where there is one.
    fits : tuple of Fit
        One for each seed.
    """

    source: Source
    answers: tuple[Answers, ...]
    fits: tuple[Fit, ...]

    @property
    def is_asked(self) -> bool:
        """Whether it is what was asked for."""
        return self.source.is_asked


def checked(
    kind: str,
    control: bool,
    n_seeds: int,
    random_state: RandomState,
    show_progress: bool | None,
    mix: bool = False,
    description_length: bool = False,
) -> Asked:
    """Return what is wanted, or refuse it."""
    if kind not in KINDS:
        raise InputError(f"expected probe to be one of {', '.join(KINDS)}; got {kind!r}")
    flags = {"control": control, "mix": mix, "description_length": description_length}
    for name, value in flags.items():
        if not isinstance(value, bool):
            raise InputError(f"expected {name} to be True or False; got {value!r}")
    n_seeds = checked_count(n_seeds, "n_seeds")
    seed = resolve_seed(random_state)
    return Asked(kind, control, n_seeds, seed, show_progress, mix, description_length)


def checked_baselines(
    states: HiddenStates, units: Units, baselines: Sequence[str]
) -> tuple[tuple[str, ...], tuple[Decision, ...]]:
    """Return the baselines that make sense here, and what was left out."""
    if isinstance(baselines, str) or not set(baselines) <= set(BASELINES):
        raise InputError(
            f"expected baselines among {', '.join(BASELINES)}; got {baselines!r} (a model with "
            "random weights is given by its random_states)"
        )
    why_not = {}
    if "embedding layer" in baselines and 0 not in states.layers:
        why_not["embedding layer"] = "layer 0 is not among the states"
    if "word type" in baselines and "text" in (units.unit, states.unit):
        why_not["word type"] = "whole texts do not recur as words do"
    decisions = tuple(
        Decision("probing", "no_baseline", name, f"There is no baseline {name!r}: {reason}.")
        for name, reason in why_not.items()
    )
    return tuple(one for one in baselines if one not in why_not), decisions


def check_twin(states: HiddenStates, other: HiddenStates) -> None:
    """Refuse states of a random model that are not of the same units."""
    if other.words != states.words or other.texts != states.texts:
        raise InputError(
            "expected random_states of the same texts and words; got "
            f"{len(other):,} {other.unit}s of {len(other.texts):,} texts, beside {len(states):,} "
            f"{states.unit}s of {len(states.texts):,}"
        )


def told_of_control(units: Units, train: Sequence[int], test: Sequence[int]) -> Decision:
    """Tell how much of the control can be known at all."""
    known = {units.types[i] for i in train}
    share = sum(units.types[i] in known for i in test) / len(test)
    message = (
        f"{share:.1%} of the {units.unit}s that are measured on are of types that the train part "
        "has: a control, whose labels are drawn by type, can know no others but by chance."
    )
    return Decision("probing", "known_types", share, message)


def chosen_layer(trained: Sequence[Trained]) -> int | None:
    """Return the layer whose probes, of all seeds, lose least on the dev part; of equals the first.

    The penalty of each layer was chosen there too.
    """
    losses = {
        one.source.layer: float(np.mean([found.losses[0].min() for found in one.fits]))
        for one in trained
        if one.is_asked and one.source.layer is not None
    }
    return min(losses, key=lambda layer: losses[layer]) if losses else None
