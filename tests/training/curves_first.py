"""Learning curves of five kinds, drawn from formulas: what the reader of curves is held to.

FROZEN. This file was written and committed before anything read a curve, so that the reader is
fitted to what runs look like and not the runs to the reader. It is not to be changed; where a draw
looks wrong, a further generator says so beside it.

Progress is a function of the learning done, not of the step: the learning rate rises over a warm-up
and falls to zero in a straight line, and the sum of it up to a step, 1 at the end of the plan, is
the clock of all shapes. A run that could learn more therefore flattens over its last steps as
every other does.

just right      the losses fall by a tenth to six tenths of their scale and are within some per cent
                of their floor at the end, the sample's at most an eighth of the fall below.
could learn more  the same with a clock many times slower: the last third of the learning still
                brings about a fifth of the whole gain, or more.
learns nothing  the losses and the metric stay where they were, but for noise.
chaotic         from validation to validation the losses swing by more than a tenth of their scale,
                as the weights do: sample, validation and metric together.
overlearning    the validation loss turns and rises by a fifth to one and a half of its fall while
                the sample's and the training loss go on falling; the metric turns or stalls.

Noise: the validation examples are the same each time, so that the error of measurement is mostly
one shift for the whole curve, and what differs from time to time is a small part of it, correlated
from one validation to the next. The training loss is a mean over few batches, with dropout.
"""

from __future__ import annotations

import numpy as np

from embedtopics.training.results import Curves

KINDS = ("just right", "could learn more", "learns nothing", "chaotic", "overlearning")

SCALES = {  # typical loss at the start, and its standard deviation over examples
    "softmax": (1.1, 0.5),
    "cosine": (0.05, 0.06),
    "ranking": (3.0, 1.2),
    "cosent": (5.0, 2.0),
}


def draw(kind: str, seed: int) -> Curves:
    """Return one run of a kind; the same seed, the same run."""
    rng = np.random.default_rng([seed, KINDS.index(kind), 20240])
    steps_per_epoch = int(rng.choice([12, 40, 150, 600, 2500]) * rng.uniform(0.8, 1.25))
    planned = max(60, int(steps_per_epoch * rng.choice([1, 2, 3, 4, 6, 10])))
    n_validations = int(rng.integers(6, 41))
    stops = {"just right": 0.15, "could learn more": 0.15, "learns nothing": 0.2,
             "chaotic": 0.2, "overlearning": 0.5}[kind]  # fmt: skip
    end = planned
    if rng.random() < stops:
        end = int(planned * rng.uniform(0.6, 0.95))
    validation_steps = np.unique(np.linspace(0, end, n_validations).round().astype(np.int64))
    n_notes = int(rng.integers(15, 150))
    training_steps = np.unique(np.linspace(0, end, n_notes + 1).round().astype(np.int64))[1:]
    warmup = float(rng.choice([0.0, 0.06, 0.1, 0.2]))

    scale, spread = SCALES[str(rng.choice(list(SCALES)))]
    scale *= rng.uniform(0.8, 1.25)
    n_validation = int(np.exp(rng.uniform(np.log(100), np.log(1500))))
    n_sample = int(min(256, rng.integers(100, 400)))

    at_validation = learning(validation_steps, planned, warmup)
    at_training = learning(training_steps, planned, warmup)
    shapes = SHAPES[kind](rng, at_validation, at_training)
    validation, sample, training, rise = shapes

    fluctuation = rng.uniform(0.05, 0.2)
    validation_loss = scale * validation + measured(
        rng, len(validation_steps), spread / np.sqrt(n_validation), fluctuation
    )
    sample_loss = scale * sample + measured(
        rng, len(validation_steps), spread / np.sqrt(n_sample), fluctuation
    )
    batches = rng.uniform(1.0, 10.0)
    noise = spread / np.sqrt(32 * batches) * rng.uniform(0.7, 1.5)
    training_loss = scale * (training + rng.uniform(0.0, 0.08))
    training_loss = training_loss + noise * rng.normal(size=len(training_steps))

    metric_name, start, gain = metric_scale(rng)
    error = np.sqrt(max(start * (1 - start), 0.04) / n_validation)
    metric = start + gain * rise + measured(
        rng, len(validation_steps), error, rng.uniform(0.15, 0.4)
    )  # fmt: skip
    if rng.random() < 0.15:
        metric, metric_name = np.full(len(validation_steps), np.nan), ""
    if rng.random() < 0.2:
        sample_loss, n_sample = np.full(len(validation_steps), np.nan), 0
    return Curves(
        training_steps=training_steps,
        training_loss=np.maximum(training_loss, 1e-4 * scale),
        validation_steps=validation_steps,
        validation_loss=np.maximum(validation_loss, 1e-4 * scale),
        sample_loss=np.maximum(sample_loss, 1e-4 * scale),
        metric=np.minimum(metric, 1.0),
        metric_name=metric_name,
        steps_per_epoch=steps_per_epoch,
        n_steps_planned=planned,
        n_validation=n_validation,
        n_sample=n_sample,
    )


def learning(steps, planned, warmup):
    """Return the sum of the learning rate up to each step; 1 at the end of the plan."""
    fine = np.linspace(0.0, 1.0, 2001)
    rate = 1.0 - fine if warmup == 0 else np.minimum(fine / warmup, (1.0 - fine) / (1.0 - warmup))
    total = np.concatenate([[0.0], np.cumsum((rate[1:] + rate[:-1]) / 2)])
    return np.interp(np.asarray(steps) / planned, fine, total / total[-1])


def measured(rng, n, error, fluctuation):
    """Return errors of measurement on one set: a shift, and correlated noise around it."""
    correlation = rng.uniform(0.0, 0.6)
    noise = rng.normal(size=n)
    for i in range(1, n):
        noise[i] = correlation * noise[i - 1] + np.sqrt(1 - correlation**2) * noise[i]
    return error * (rng.normal() + fluctuation * noise)


def metric_scale(rng):
    """Return a metric, where it starts, and how much a good run would gain."""
    name, low, high, least, most = [
        ("Accuracy", 0.33, 0.5, 0.15, 0.4),
        ("Spearman correlation", 0.3, 0.7, 0.08, 0.25),
        ("Spearman correlation", 0.78, 0.88, 0.03, 0.08),
        ("Average precision", 0.5, 0.8, 0.08, 0.18),
    ][rng.integers(4)]
    return name, rng.uniform(low, high), rng.uniform(least, most)


def decay(rng, fast):
    """Return a function of the learning done that falls from 1, exponentially or as a power."""
    if rng.random() < 0.5:
        k = rng.uniform(4.5, 9.0) if fast else rng.uniform(0.3, 1.3)
        return lambda done: np.exp(-k * done)
    a, p = (
        (rng.uniform(25, 60), rng.uniform(1.2, 2.0))
        if fast
        else (rng.uniform(0.3, 1.0), rng.uniform(0.5, 1.0))
    )
    return lambda done: (1.0 + a * done) ** -p


def _falling(rng, at_validation, at_training, fast):
    shape = decay(rng, fast)
    fall = rng.uniform(0.1, 0.6) if fast else rng.uniform(0.1, 0.5)
    whole = 1.0 - shape(1.0)  # what is gained by the end of the plan is `fall`
    gap = rng.uniform(0.0, 0.125)
    gained = (1.0 - shape(at_validation)) / whole
    gained_in_training = (1.0 - shape(at_training)) / whole
    rise = gained ** rng.uniform(0.8, 1.2)
    return (
        1.0 - fall * gained,
        1.0 - fall * (1.0 + gap) * gained,
        1.0 - fall * (1.0 + gap) * gained_in_training,
        rise,
    )


def just_right(rng, at_validation, at_training):
    return _falling(rng, at_validation, at_training, True)


def could_learn_more(rng, at_validation, at_training):
    return _falling(rng, at_validation, at_training, False)


def learns_nothing(rng, at_validation, at_training):
    flat = np.ones(len(at_validation))
    return flat, flat, np.ones(len(at_training)), np.zeros(len(at_validation))


def chaotic(rng, at_validation, at_training):
    validation, sample, training, rise = _falling(
        rng, at_validation, at_training, bool(rng.random() < 0.7)
    )
    n = len(at_validation)
    size = rng.uniform(0.12, 0.5)
    correlation = rng.uniform(-0.4, 0.3)
    swing = rng.standard_t(5, size=n) if rng.random() < 0.4 else rng.normal(size=n)
    for i in range(1, n):
        swing[i] = correlation * swing[i - 1] + np.sqrt(1 - correlation**2) * swing[i]
    settles = 0.4 + 0.6 * np.sqrt(1.0 - at_validation)  # as the learning rate falls
    swing = size * settles * swing
    swing[0] = 0.0  # before training
    swing = np.where(validation + swing < 0.1, 0.3 * np.abs(swing), swing)
    beside = 0.15 * size * rng.normal(size=n)
    beside[0] = 0.0
    sensitivity = rng.uniform(0.5, 1.2) / 0.5
    in_training = size * 0.7 * rng.normal(size=len(at_training))
    return (
        validation + swing,
        np.maximum(sample + swing + beside, 0.02),
        np.maximum(training + in_training, 0.05),
        rise - sensitivity * swing,
    )


def overlearning(rng, at_validation, at_training):
    shape = decay(rng, True)
    slow = rng.uniform(1.0, 3.0)
    turn = rng.uniform(0.1, 0.45)
    fall = rng.uniform(0.1, 0.4)
    rises = fall * rng.uniform(0.2, 1.5)
    power = rng.uniform(1.0, 1.8)

    def later(done):
        return np.clip((done - turn) / (1.0 - turn), 0.0, None) ** power

    beyond = rng.uniform(0.3, 0.9) * (1.0 - fall)

    def learned(done):
        by_heart = beyond * (1.0 - np.exp(-slow * done)) / (1.0 - np.exp(-slow))
        return 1.0 - fall * (1.0 - shape(done)) - by_heart * np.clip(done / turn, 0.0, 1.0)

    rise = 1.0 - shape(at_validation)
    if rng.random() < 0.5:
        rise = rise - rng.uniform(0.2, 0.8) * later(at_validation)
    end = later(at_validation[-1:])[0]
    validation = 1.0 - fall * (1.0 - shape(at_validation))
    # A run that stopped early has its whole rise by then.
    validation = validation + rises * later(at_validation) / end
    return validation, learned(at_validation), learned(at_training), rise


SHAPES = {
    "just right": just_right,
    "could learn more": could_learn_more,
    "learns nothing": learns_nothing,
    "chaotic": chaotic,
    "overlearning": overlearning,
}
