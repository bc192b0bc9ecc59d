"""What is wanted of a probe, checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from embedtopics._checks import checked_count
from embedtopics._randomness import resolve_seed
from embedtopics.errors import InputError
from embedtopics.probing.probes.architectures import Architecture, Linear, Perceptron
from embedtopics.probing.probes.fitting import Plan
from embedtopics.probing.probes.parts import Units
from embedtopics.protocols import RandomState
from embedtopics.results import Decision, HiddenStates

__all__ = ["BASELINES", "Asked", "check_twin", "checked", "checked_baselines", "told_of_control"]

BASELINES = ("majority", "word type", "embedding layer")
KINDS = ("linear", "mlp")
LOOKS = 8
"""How often a probe with a hidden layer, that may learn too long, is looked at."""


@dataclass(frozen=True)
class Asked:
    """What is wanted of a probe.

    Parameters
    ----------
    kind : {"linear", "mlp"}
    control : bool
    n_seeds, seed : int
    show_progress : bool or None
    """

    kind: str
    control: bool
    n_seeds: int
    seed: int
    show_progress: bool | None

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
        return Plan() if self.kind == "linear" else Plan(n_looks=LOOKS)

    @property
    def seeds(self) -> range:
        """Seeds of the fits: a linear probe has one optimum, whatever it begins with."""
        return range(1 if self.kind == "linear" else self.n_seeds)


def checked(
    kind: str, control: bool, n_seeds: int, random_state: RandomState, show_progress: bool | None
) -> Asked:
    """Return what is wanted, or refuse it."""
    if kind not in KINDS:
        raise InputError(f"expected probe to be one of {', '.join(KINDS)}; got {kind!r}")
    if not isinstance(control, bool):
        raise InputError(f"expected control to be True or False; got {control!r}")
    n_seeds = checked_count(n_seeds, "n_seeds")
    return Asked(kind, control, n_seeds, resolve_seed(random_state), show_progress)


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
    if "word type" in baselines and units.unit == "text":
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
