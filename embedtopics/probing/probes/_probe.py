"""Probes of all layers, with their baselines and controls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from embedtopics._utils.checks import resolve_seed
from embedtopics.errors import InputError
from embedtopics.evaluation._bootstrap import difference_of
from embedtopics.probing._layers import Layers, check_states, layer_numbers
from embedtopics.probing._tables import PROBE_SCORES, make_table
from embedtopics.probing.probes._fit import Features, Fit, fit, log_probabilities, run_side_by_side
from embedtopics.probing.probes._scores import (
    Answers,
    ProbedVectors,
    baseline_answers,
    code_lengths,
    control_target,
    measure_mix,
    measured,
    score,
)
from embedtopics.probing.probes._units import DEV, TEST, TRAIN, Units, label_units
from embedtopics.probing.results import HiddenStates, LayerScores, ProbeTask
from embedtopics.protocols import Int64Array, RandomState
from embedtopics.results import Decision


def probe(
    states: HiddenStates,
    labels: ProbeTask | Sequence[Any],
    *,
    layers: Layers = "all",
    control: bool = False,
    baseline: HiddenStates | None = None,
    vectors: npt.ArrayLike | None = None,
    mix: bool = False,
    description_length: bool = False,
    random_state: RandomState = 0,
    show_progress: bool | None = None,
) -> LayerScores:
    """Measure how well labels can be predicted from the vectors of each layer.

    A probe is a multinomial logistic regression on the vectors of a single layer (Belinkov 2022,
    "Probing classifiers: promises, shortcomings, and advances"). It is trained on the train part
    and measured once on the test part; the dev part selects the penalty of its weights for each
    layer.
    Where a task has no parts, a tenth of the units is for dev and a fifth for the test, whole
    sentences at a time, by their text and `random_state`. An accuracy needs baselines and controls
    to compare with: the word type, the vectors before any attention, an encoder with random
    weights, and a control task that only memorization solves.

    Parameters
    ----------
    states : HiddenStates
        States of words or whole texts. For a task on texts, states of words are averaged, as by
        `HiddenStates.pooled`.
    labels : ProbeTask, one sequence of labels per text, or one label per unit
        An empty string or None is no label: the unit is left out.
    layers : int, sequence of int, "all" or "last N"
        Negative numbers count from the last.
    control : bool
        Whether to train the same probe on a control task, which assigns each word type a random
        label, and to report the selectivity: the accuracy minus that of the control (Hewitt and
        Liang 2019).
    baseline : HiddenStates, optional
        States of the same texts with ``random_weights=True``, for the scores of "random model".
    vectors : array_like of float, shape (n_units, n_dimensions), optional
        Vectors to probe instead of the layers, such as several layers side by side.
    mix : bool
        Whether to learn the weight of each layer (Peters et al. 2018, equation 1), by linear
        probes of a "scalar mix" of all standardised layers. The scores are means over three
        initial weights.
    description_length : bool
        Whether to report the bits per label in an online code, and the compression over a uniform
        code (Voita and Titov 2020).
    random_state : int, Generator or None
        Seed of the parts, control labels, initial weights, batches and resamples.
    show_progress : bool, optional

    Returns
    -------
    LayerScores
        Scores of "probe" (of `vectors`: "combination"), "control", "scalar mix" and baselines,
        with metrics "accuracy", "macro F1", "selectivity", "bits per label" and "compression".
        Baselines are "majority", the most frequent class of the train part; "word type", the most
        frequent class of the word in the train part, and the majority for a new word; and
        "embedding layer", layer 0. Texts have no word type. 95 % intervals are over resampled test
        sentences, without refitting.

    Raises
    ------
    InputError
        If labels and units do not match, all labels are equal, a part is empty, or a layer does not
        exist.


    Examples
    --------
    >>> import embedtopics as et
    >>> nouns = ["cats", "dogs", "birds", "horses", "children", "teachers", "farmers", "boats"]
    >>> verbs = ["sleep", "wait", "arrive", "sing", "return"]
    >>> sentences = [[noun, verb] for noun in nouns for verb in verbs]
    >>> states = et.probing.hidden_states("all-MiniLM-L6-v2", sentences, layers=[0, 3])
    >>> tags = [["NOUN", "VERB"] for _ in sentences]
    >>> scores = et.probing.probe(states, tags)
    >>> float(scores.best()["value"])
    1.0
    """
    check_states(states)
    if baseline is not None:
        check_states(baseline, "baseline")
    if isinstance(labels, ProbeTask) and labels.unit == "text":
        states = _of_texts(states)
        baseline = None if baseline is None else _of_texts(baseline)

    seed, numbers = resolve_seed(random_state), layer_numbers(layers, states.layers)
    if mix and (len(numbers) < 2 or vectors is not None):
        raise InputError("mix", "False without at least two layers", mix)
    if control and states.unit == "text":
        raise InputError("control", "False for labels of texts, which have no word types", control)
    units = label_units(states, labels, seed)
    probed = [ProbedVectors("probe", layer, states.layer(layer)) for layer in numbers]
    if vectors is not None:
        array = np.asarray(vectors)
        if array.ndim != 2 or len(array) != len(states) or array.dtype.kind != "f":
            expected = f"floats, a row for each of the {len(states):,} {states.unit}s"
            raise InputError("vectors", expected, found=f"shape {array.shape} of {array.dtype}")
        probed = [ProbedVectors("combination", None, array)]
    is_layer_0_probed = any(one.layer == 0 for one in probed)
    sources = [*probed, *_baseline_vectors(states, baseline, numbers, is_layer_0_probed)]
    targets = _targets(units, control, seed)
    trained = run_side_by_side(
        lambda one: _train(one, units, targets, seed), sources, "training probes", show_progress
    )
    answers = [one for source in trained for one in source.answers]
    if is_layer_0_probed:
        first = next(one for one in answers if one.layer == 0)
        answers.append(replace(first, what="embedding layer"))
    answers += baseline_answers(units)
    learned = None
    if mix:
        fits = [one.fit for one in trained[: len(probed)]]
        stored = [one.vectors for one in probed]
        mixed, learned = measure_mix(stored, fits, numbers, units, seed, show_progress)
        answers.append(mixed)
    scores = _scores(answers, units, seed)
    if description_length:
        encode = partial(code_lengths, units=units, target=targets, seed=seed)
        lengths = run_side_by_side(encode, probed, "encoding labels", show_progress)
        scores += chain.from_iterable(lengths)
    known_types = [_known_types(units)] if control else []
    return LayerScores(
        task=units.name,
        encoder=states.encoder,
        labels=units.classes,
        table=make_table([{"task": units.name, **row} for row in scores], PROBE_SCORES),
        n_train=len(units.of(TRAIN)),
        n_dev=len(units.of(DEV)),
        n_test=len(units.of(TEST)),
        decisions=(*units.decisions, _penalties(trained), *known_types),
        mix=learned,
        chosen_layer=_chosen_layer(trained),
    )


def _of_texts(states: HiddenStates) -> HiddenStates:
    """Return one vector per text, the mean of its words where the states are of words."""
    return states if states.unit == "text" else states.pooled()


class _Trained(NamedTuple):
    """The answers of the probes of one source, to the task and the control, and their fit."""

    source: ProbedVectors
    answers: Sequence[Answers]
    fit: Fit


def _baseline_vectors(
    states: HiddenStates, baseline: HiddenStates | None, layers: Sequence[int], probes_0: bool
) -> list[ProbedVectors]:
    """Return the vectors of the embedding layer, unless it is probed, and of a random model."""
    sources = []
    if 0 in states.layers and not probes_0:
        sources.append(ProbedVectors("embedding layer", 0, states.layer(0), is_baseline=True))
    if baseline is None:
        return sources
    if baseline.words != states.words or baseline.texts != states.texts:
        expected = (
            f"states of the same {len(states):,} {states.unit}s of {len(states.texts):,} texts"
        )
        problem = f"{len(baseline):,} of {len(baseline.texts):,}"
        raise InputError("baseline", expected, found=problem)
    return sources + [
        ProbedVectors("random model", layer, baseline.layer(layer), is_baseline=True)
        for layer in layer_numbers(layers, baseline.layers)
    ]


def _targets(units: Units, control: bool, seed: int) -> Int64Array:
    """Return the class of each unit in the task, and in the control if any, (n_units, n_tasks)."""
    if not control:
        return units.target[:, None]
    counts = np.bincount(units.target[units.of(TRAIN)], minlength=len(units.classes))
    return np.column_stack([units.target, control_target(units.types, counts, seed)])


def _train(source: ProbedVectors, units: Units, targets: Int64Array, seed: int) -> _Trained:
    """Train the probes of one source, and predict the test part."""
    train, dev, test = (units.of(part) for part in (TRAIN, DEV, TEST))
    features = Features(source.vectors, units.rows).standardised(train)
    labels = targets[:, :1] if source.is_baseline else targets
    fitted = fit(features, labels, len(units.classes), train, dev, seed=seed)
    answers = []
    for column, weights in enumerate(fitted.parameters):
        predicted = log_probabilities(features, test, weights).argmax(axis=1)
        what = "control" if column else source.what
        answers.append(Answers(what, source.layer, predicted[None], targets[test, column]))
    return _Trained(source, answers, fitted)


def _scores(answers: Sequence[Answers], units: Units, seed: int) -> list[dict[str, Any]]:
    """Return the accuracy and macro F1 of all answers, and the selectivity of probes."""
    estimates = measured(answers, units.group[units.of(TEST)], len(units.classes), seed)
    keys = [(one.what, one.layer) for one in answers]
    accuracies = {key: accuracy for key, (accuracy, _) in zip(keys, estimates, strict=True)}
    scores = []
    for (what, layer), (accuracy, macro) in zip(keys, estimates, strict=True):
        scores.append(score(what, layer, "accuracy", accuracy))
        scores.append(score(what, layer, "macro F1", macro))
        control = accuracies.get(("control", layer))
        if what in ("probe", "combination") and control is not None:
            scores.append(score(what, layer, "selectivity", difference_of(accuracy, control)))
    return scores


def _known_types(units: Units) -> Decision:
    """Report how much of the control can be known at all."""
    seen = {units.types[i] for i in units.of(TRAIN).tolist()}
    share = float(np.mean([units.types[i] in seen for i in units.of(TEST).tolist()]))
    message = (
        f"{share:.1%} of the test {units.unit}s are of types in the train part. A control task "
        "can be solved only for these."
    )
    return Decision("probing", "known_types", share, message)


def _penalties(trained: Sequence[_Trained]) -> Decision:
    listed = []
    for source, _, one_fit in trained:
        layer = "" if source.layer is None else f", layer {source.layer}"
        listed.append(f"{source.what}{layer}: {one_fit.penalties[0]:.1e}")
    message = f"Penalties chosen by the cross-entropy on the dev part: {'; '.join(listed)}."
    return Decision("probing", "penalties", listed, message)


def _chosen_layer(trained: Sequence[_Trained]) -> int | None:
    """Return the layer with the least cross-entropy on dev; of equal ones the first."""
    losses = {
        source.layer: float(one_fit.losses[0].min())
        for source, _, one_fit in trained
        if not source.is_baseline and source.layer is not None
    }
    return min(losses, key=losses.__getitem__, default=None)
