"""Probes of all layers, beside their baselines and controls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from embedtopics.errors import InputError
from embedtopics.evaluation.estimates import difference_of
from embedtopics.probing.combining import chosen_layers
from embedtopics.probing.probes.asking import (
    BASELINES,
    Asked,
    Source,
    Trained,
    check_twin,
    checked,
    checked_baselines,
    chosen_layer,
    told_of_control,
)
from embedtopics.probing.probes.baselines import (
    control_target,
    most_frequent,
    most_frequent_of_type,
)
from embedtopics.probing.probes.describing import described
from embedtopics.probing.probes.features import Features
from embedtopics.probing.probes.fitting import Fit, fit, log_probabilities, run_side_by_side
from embedtopics.probing.probes.labels import labelled_units
from embedtopics.probing.probes.mixing import measured_mixes, with_mixes
from embedtopics.probing.probes.parts import DEV, TEST, TRAIN, Units, dealt_out
from embedtopics.probing.probes.scoring import Answers, figures, score
from embedtopics.protocols import Int64Array, RandomState
from embedtopics.results import (
    Decision,
    Estimate,
    HiddenStates,
    LayerScores,
    ProbeScore,
    ProbeTask,
)

__all__ = ["probe", "probe_vectors"]


OF_EMBEDDINGS = ("probe", "mlp", "embedding layer")


def probe(
    states: HiddenStates,
    tags: ProbeTask | Sequence[Any],
    *,
    layers: int | str | Sequence[int] = "all",
    probe: str = "linear",
    control: bool = False,
    baselines: Sequence[str] = BASELINES,
    random_states: HiddenStates | None = None,
    mix: bool = False,
    description_length: bool = False,
    parts: Sequence[str] | None = None,
    test_share: float = 0.2,
    dev_share: float = 0.1,
    n_seeds: int = 3,
    random_state: RandomState = 0,
    show_progress: bool | None = None,
) -> LayerScores:
    """Measure what can be read from the vectors of each layer, beside baselines and controls.

    A probe is a small classifier that sees one layer's vectors alone (Belinkov 2022, "Probing
    classifiers: promises, shortcomings, and advances"). It learns from some sentences, and is
    measured once on others; a third part chooses the penalty of its weights, for each layer by
    itself. An accuracy means little alone: beside it stand what the word itself tells, what the
    vectors before any attention tell, what an encoder of the same shape with random weights
    tells, and what the probe can learn by heart.

    Parameters
    ----------
    states : HiddenStates
        Of words, of whole texts, or for a task on pairs of either.
    tags : ProbeTask, or one sequence of labels a text, or one label a unit
        An empty string or None is no label: the unit is left out.
    layers : int, sequence of int, "all" or "last N"
        Negative numbers count from the last.
    probe : {"linear", "mlp"}
        Multinomial logistic regression, or one hidden layer of 64 rectified units.
    control : bool
        Whether to train the same probe on labels that each word type was given at random, and to
        report the selectivity: by how much the accuracy is above that of the control (Hewitt and
        Liang 2019). Words of the test part that the train part does not have count as all others.
    baselines : sequence of str
        Of "majority", the most frequent class of the train part; "word type", the most frequent
        class of the word there, and the majority for a new word; "embedding layer", layer 0.
    random_states : HiddenStates, optional
        Of the same texts, from an encoder with random weights: the baseline "random model".
    mix : bool
        Whether to learn how much of each layer the task takes (Peters et al. 2018, equation 1),
        and where it is solved on average (Tenney et al. 2019, equations 3 and 4): linear probes of
        a "scalar mix" of all layers, and of a "cumulative mix" of those up to each. Layers are
        standardised before they are mixed; of pairs, their features are mixed.
    description_length : bool
        Whether to report how many bits a label takes when the probe learns as it is told the
        labels, and how much shorter that is than telling them plainly (Voita and Titov 2020).
    parts : sequence of str, optional
        "train", "dev" or "test" of each text (pairs: of each pair). Those of the task count
        otherwise; where there are none, whole sentences are dealt out by their text and the seed,
        equal ones together.
    test_share, dev_share : float
        Of the units, where they are dealt out.
    n_seeds : int
        Of what depends on where it begins, such as probes with a hidden layer: figures are the
        mean over as many fits. A linear probe has one optimum, and is fitted once.
    random_state : int, Generator or None
        Of parts, control labels, first weights, batches and the draws of the intervals.
    show_progress : bool, optional

    Returns
    -------
    LayerScores
        Figures "probe" or "mlp", "control", mixes and the baselines, with metrics "accuracy",
        "macro F1", "selectivity", "bits per label" and "compression"; their 95 % intervals are of
        sentences drawn anew. They hold the fit for given, and do not cover what another train part
        would change.

    Raises
    ------
    InputError
        If labels and units do not match, all labels are equal, a part is empty, or a layer or
        baseline is not there.

    Examples
    --------
    >>> scores = probe(states, tags, control=True)  # doctest: +SKIP
    >>> scores.best().layer, scores.of("word type", "accuracy")[0].value  # doctest: +SKIP
    (3, 0.862)
    """
    asked = checked(probe, control, n_seeds, random_state, show_progress, mix, description_length)
    wanted = sorted(set(chosen_layers(states, layers)))
    if mix and len(wanted) < 2:
        raise InputError(f"a mix needs at least two layers; got layers={layers!r}")
    units = _units_of(states, tags, parts, test_share, dev_share, asked)
    sources = [Source(asked.what, layer, states.layer(layer)) for layer in wanted]
    bare, decisions = checked_baselines(states, units, baselines)
    if "embedding layer" in bare and 0 not in wanted:
        sources.append(Source("embedding layer", 0, states.layer(0), is_asked=False))
    if random_states is not None:
        check_twin(states, random_states)
        sources += [
            Source("random model", layer, random_states.layer(layer), is_asked=False)
            for layer in chosen_layers(random_states, wanted)
        ]
    return _measured(states, units, sources, bare, asked, decisions)


def probe_vectors(
    vectors: npt.ArrayLike,
    states: HiddenStates,
    tags: ProbeTask | Sequence[Any],
    *,
    probe: str = "linear",
    control: bool = False,
    baselines: Sequence[str] = BASELINES,
    parts: Sequence[str] | None = None,
    test_share: float = 0.2,
    dev_share: float = 0.1,
    n_seeds: int = 3,
    random_state: RandomState = 0,
    show_progress: bool | None = None,
) -> LayerScores:
    """Measure what can be read from any vectors of the units, such as several layers combined.

    With the same tags, parts and seed, units are dealt out as by `probe`, and the intervals are of
    the same sentences drawn anew.

    Parameters
    ----------
    vectors : array_like of float, shape (n_units, n_dimensions)
        One for each row of the states, such as what `combine` returns.
    states : HiddenStates
        What the units are.
    tags, probe, control, baselines, parts, test_share, dev_share, n_seeds, random_state, \
    show_progress
        As of `probe`.

    Returns
    -------
    LayerScores
        Figures "combination" of no single layer.

    Raises
    ------
    InputError
        As `probe`, and if the vectors are not one for one with the units.

    Examples
    --------
    >>> last_four = combine(states, "last 4", "concat")  # doctest: +SKIP
    >>> probe_vectors(last_four, states, tags).best(what="combination")  # doctest: +SKIP
    """
    asked = checked(probe, control, n_seeds, random_state, show_progress)
    given = np.asarray(vectors)
    if given.ndim != 2 or len(given) != len(states) or given.dtype.kind != "f":
        raise InputError(
            f"expected a vector of floats for each of the {len(states):,} {states.unit}s; got "
            f"shape {given.shape} of {given.dtype}"
        )
    units = _units_of(states, tags, parts, test_share, dev_share, asked)
    bare, decisions = checked_baselines(states, units, baselines)
    sources = [Source("combination", None, given)]
    if "embedding layer" in bare:
        sources.append(Source("embedding layer", 0, states.layer(0), is_asked=False))
    return _measured(states, units, sources, bare, asked, decisions)


def _measured(
    states: HiddenStates,
    units: Units,
    sources: Sequence[Source],
    bare: Sequence[str],
    asked: Asked,
    decisions: tuple[Decision, ...],
) -> LayerScores:
    """Train all probes, and measure them and the baselines on the test part."""
    target = _targets(units, asked)
    trained = _trained(sources, units, target, asked)
    answers = [one for source in trained for one in source.answers]
    if "embedding layer" in bare:
        (first,) = [one for one in answers if one.layer == 0 and one.what in OF_EMBEDDINGS][:1]
        if first.what != "embedding layer":  # probed already, as one of the layers
            answers.append(replace(first, what="embedding layer"))
    answers += _bare_answers(units, bare)
    mixes = None
    if asked.mix:
        mixes = measured_mixes([one for one in trained if one.is_asked], units, asked)
        answers += mixes.answers
    scores, drawn = _scores(answers, units, asked)
    if asked.description_length:
        scores += described([one for one in sources if one.is_asked], units, target, asked)
    told = [_told_of_penalties(trained)]
    if asked.control:
        told.append(told_of_control(units, units.of(TRAIN).tolist(), units.of(TEST).tolist()))
    n_train, n_dev, n_test = (len(units.of(part)) for part in (TRAIN, DEV, TEST))
    found = LayerScores(
        task=units.name,
        encoder=states.encoder,
        labels=units.classes,
        scores=tuple(scores),
        n_train=n_train,
        n_dev=n_dev,
        n_test=n_test,
        decisions=(*units.decisions, *decisions, *told),
        chosen_layer=chosen_layer(trained),
    )
    return with_mixes(found, mixes, drawn) if mixes else found


def _trained(
    sources: Sequence[Source], units: Units, target: Int64Array, asked: Asked
) -> list[Trained]:
    """Train the probes of all layers, and ask them about the test part."""
    jobs = [(source, seed) for source in sources for seed in asked.seeds]
    done = run_side_by_side(
        lambda job: _answers_of(job[0], units, target, asked, job[1]),
        jobs,
        description="training probes",
        show_progress=asked.show_progress,
    )
    trained = []
    n_seeds = len(asked.seeds)
    for at, source in enumerate(sources):
        own = done[at * n_seeds : (at + 1) * n_seeds]
        names = [source.what, "control"][: len(own[0][0])]
        answers = [
            Answers(
                what,
                source.layer,
                np.stack([predicted[task] for predicted, _ in own]),
                target[units.of(TEST), task],
            )
            for task, what in enumerate(names)
        ]
        trained.append(Trained(source, tuple(answers), tuple(found for _, found in own)))
    return trained


def _answers_of(
    source: Source, units: Units, target: Int64Array, asked: Asked, seed: int
) -> tuple[list[Int64Array], Fit]:
    """Train the probes of one layer, and ask them about the test part."""
    train, dev, test = (units.of(part) for part in (TRAIN, DEV, TEST))
    features = Features(source.vectors, units.rows).standardised(train)
    n_tasks = target.shape[1] if source.is_asked else 1
    found = fit(
        features,
        target[:, :n_tasks],
        len(units.classes),
        train,
        dev,
        asked.architecture,
        asked.plan,
        seed=asked.seed + seed,
    )
    predicted = [
        log_probabilities(features, test, asked.architecture, own).argmax(axis=1)
        for own in found.parameters
    ]
    return predicted, found


def _told_of_penalties(trained: Sequence[Trained]) -> Decision:
    chosen = []
    for one in trained:
        where = "" if one.source.layer is None else f", layer {one.source.layer}"
        penalties = ", ".join(f"{found.penalties[0]:.1e}" for found in one.fits)
        chosen.append(f"{one.source.what}{where}: {penalties}")
    message = (
        "The penalty of the squared weights was chosen on the dev part, by its cross-entropy: "
        f"{'; '.join(chosen)}."
    )
    return Decision("probing", "penalties", chosen, message)


def _scores(
    answers: Sequence[Answers], units: Units, asked: Asked
) -> tuple[list[ProbeScore], dict[tuple[str, int | None], Estimate]]:
    """Return all figures, and the accuracies with what sentences drawn anew make of them."""
    group = units.group[units.of(TEST)]
    found = figures(answers, group, len(units.classes), asked.seed)
    scores = []
    controls = {
        one.layer: figure
        for one, figure in zip(answers, found, strict=True)
        if one.what == "control"
    }
    for one, (accuracy, macro) in zip(answers, found, strict=True):
        scores.append(score(one.what, one.layer, "accuracy", accuracy))
        scores.append(score(one.what, one.layer, "macro F1", macro))
        if one.what in (asked.what, "combination") and one.layer in controls:
            above = difference_of(accuracy, controls[one.layer][0])
            scores.append(score(one.what, one.layer, "selectivity", above))
    drawn = {(one.what, one.layer): own[0] for one, own in zip(answers, found, strict=True)}
    return scores, drawn


def _targets(units: Units, asked: Asked) -> Int64Array:
    """Return the classes that are asked for, and beside them those of the control."""
    if not asked.control:
        return units.target[:, None]
    counts = np.bincount(units.target[units.of(TRAIN)], minlength=len(units.classes))
    return np.column_stack([units.target, control_target(units.types, counts, asked.seed)])


def _bare_answers(units: Units, baselines: Sequence[str]) -> list[Answers]:
    """Answer without any vector."""
    train, test = units.of(TRAIN), units.of(TEST)
    learnt, n_classes = units.target[train], len(units.classes)
    found = {}
    if "majority" in baselines:
        found["majority"] = most_frequent(learnt, n_classes, len(test))
    if "word type" in baselines:
        known, new = ([units.types[i] for i in part.tolist()] for part in (train, test))
        found["word type"] = most_frequent_of_type(known, learnt, new, n_classes)
    return [
        Answers(what, None, predicted[None, :], units.target[test])
        for what, predicted in found.items()
    ]


def _units_of(
    states: HiddenStates,
    tags: ProbeTask | Sequence[Any],
    parts: Sequence[str] | None,
    test_share: float,
    dev_share: float,
    asked: Asked,
) -> Units:
    labelled = labelled_units(states, tags, parts)
    if asked.control and "text" in (labelled.unit, states.unit):
        raise InputError(
            "a control task gives each word type a label at random, and whole texts do not recur "
            "as words do; expected control=False for labels of texts"
        )
    return dealt_out(states, labelled, test_share=test_share, dev_share=dev_share, seed=asked.seed)
