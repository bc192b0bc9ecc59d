"""Learning curves of five kinds that are no formula: small networks, really trained.

FROZEN, like the first generator: written and committed before anything read a curve, and not
changed since.

A student network learns from examples labelled by another network, or from noise. Its settings are
drawn from a range that provokes the kind: a step too small, too large, too few labels, labels that
have nothing to do with the input. Settings provoke, they do not prove; so the truth is looked up
where no user can look, on 3,000 fresh examples and by training once more for twice as long, and
a run that is not of the kind it was meant to be is drawn anew:

just right      it learned; twice the training would add less than 6 % of what it gained on
                fresh examples; the loss there ends within 3 % of the gain from its least.
could learn more  it learned; twice the training would add more than 20 % of what it gained.
learns nothing  no fresh loss is further from the first than 1 % of it.
chaotic         the mean step of the fresh loss from one validation to the next is more than a
                tenth of its range, changes direction at least at a third of the validations, and
                is larger than 3 % of the loss before training.
overlearning    after its least the fresh loss rises by 15 % of its fall or more, and
                the loss on the training examples goes on falling by that much.
"""

from __future__ import annotations

import numpy as np

from embedtopics.training.results import Curves

KINDS = ("just right", "could learn more", "learns nothing", "chaotic", "overlearning")


def draw(kind: str, seed: int) -> Curves:
    """Return one run of a kind; the same seed, the same run."""
    for attempt in range(50):
        rng = np.random.default_rng([seed, KINDS.index(kind), attempt, 777])
        run = Run(rng, SETTINGS[kind](rng))
        curves, fresh = run.train(1.0)
        if TRUE[kind](run, fresh):
            return curves
    raise AssertionError(f"no run of the kind {kind!r} in 50 attempts of seed {seed}")


def enough(rng):
    return {
        "n_train": int(rng.integers(1500, 4000)), "n_inputs": int(rng.integers(6, 16)),
        "n_hidden": int(rng.integers(8, 24)), "noise": rng.uniform(0.1, 0.5),
        "epochs": int(rng.integers(4, 9)), "batch": int(rng.choice([16, 32, 64])),
        "rate": np.exp(rng.uniform(np.log(0.01), np.log(0.03))), "signal": 1.0,
    }  # fmt: skip


def too_short(rng):
    found = enough(rng)
    if rng.random() < 0.5:
        return {**found, "rate": found["rate"] / rng.uniform(8, 25)}
    return {**found, "rate": found["rate"] / rng.uniform(3, 8), "epochs": int(rng.integers(1, 3))}


def in_vain(rng):
    found = enough(rng)
    if rng.random() < 0.5:
        return {**found, "rate": found["rate"] * 1e-5}
    return {**found, "signal": 0.0, "rate": found["rate"] / 30, "n_hidden": 0}


def too_fast(rng):
    found = enough(rng)
    return {
        **found, "rate": np.exp(rng.uniform(np.log(0.3), np.log(2.0))),
        "batch": int(rng.choice([4, 8])), "n_train": int(rng.integers(500, 1500)),
        "epochs": int(rng.integers(2, 6)),
    }  # fmt: skip


def too_few(rng):
    return {
        "n_train": int(rng.integers(60, 250)), "n_inputs": int(rng.integers(15, 40)),
        "n_hidden": int(rng.integers(30, 80)), "noise": rng.uniform(0.3, 1.0),
        "epochs": int(rng.integers(30, 80)), "batch": 16,
        "rate": np.exp(rng.uniform(np.log(0.003), np.log(0.02))), "signal": 1.0,
    }  # fmt: skip


SETTINGS = {
    "just right": enough,
    "could learn more": too_short,
    "learns nothing": in_vain,
    "chaotic": too_fast,
    "overlearning": too_few,
}


class Run:
    """One student, its teacher and its examples."""

    def __init__(self, rng, settings):
        self.settings = settings
        self.classes = int(rng.choice([0, 2, 3]))  # 0 learns a score
        self.n_outputs = max(1, self.classes)
        d = settings["n_inputs"]
        self.teacher = rng.normal(size=(d, 12)) / np.sqrt(d), rng.normal(size=(12, self.n_outputs))
        self.n_validation = int(np.exp(rng.uniform(np.log(100), np.log(1500))))
        self.training = self.examples(rng, settings["n_train"])
        self.validation = self.examples(rng, self.n_validation)
        self.fresh = self.examples(rng, 3000)
        self.n_sample = int(min(256, settings["n_train"]))
        self.n_validations = int(rng.integers(6, 41))
        self.first = self.student(rng)
        self.seed = int(rng.integers(2**31))
        self.optimizer = "adam" if rng.random() < 0.7 else "momentum"
        self.measures_sample = rng.random() < 0.8

    def examples(self, rng, n):
        x = rng.normal(size=(n, self.settings["n_inputs"]))
        scores = self.settings["signal"] * np.tanh(x @ self.teacher[0]) @ self.teacher[1]
        scores = scores + 3 * self.settings["noise"] * rng.normal(size=scores.shape)
        if self.settings["signal"] == 0:
            scores = rng.normal(size=scores.shape)
        if self.classes:
            return x, np.eye(self.classes)[scores.argmax(axis=1)]
        return x, scores / 3

    def student(self, rng):
        d, h, o = self.settings["n_inputs"], self.settings["n_hidden"], self.n_outputs
        if h == 0:
            return [np.zeros((d, o)), np.zeros(o)]
        first = rng.normal(size=(d, h)) / np.sqrt(d)
        return [first, np.zeros(h), 0.3 * rng.normal(size=(h, o)) / np.sqrt(h), np.zeros(o)]

    def forward(self, weights, x):
        if len(weights) == 2:
            return None, x @ weights[0] + weights[1]
        hidden = np.tanh(x @ weights[0] + weights[1])
        return hidden, hidden @ weights[2] + weights[3]

    def loss(self, weights, x, y):
        output = self.forward(weights, x)[1]
        if not self.classes:
            return float(np.mean((output - y) ** 2)), output
        output = output - output.max(axis=1, keepdims=True)
        log = output - np.log(np.exp(output).sum(axis=1, keepdims=True))
        return float(-np.mean((log * y).sum(axis=1))), log

    def gradients(self, weights, x, y):
        hidden, output = self.forward(weights, x)
        if self.classes:
            output = output - output.max(axis=1, keepdims=True)
            share = np.exp(output)
            share /= share.sum(axis=1, keepdims=True)
            loss = -np.log(np.maximum((share * y).sum(axis=1), 1e-300)).mean()
            error = (share - y) / len(x)
        else:
            loss = np.mean((output - y) ** 2)
            error = 2 * (output - y) / len(x)
        if hidden is None:
            return float(loss), [x.T @ error, error.sum(axis=0)]
        below = (error @ weights[2].T) * (1 - hidden**2)
        return float(loss), [x.T @ below, below.sum(axis=0), hidden.T @ error, error.sum(axis=0)]

    def metric(self, output, y):
        if self.classes:
            return float(np.mean(output.argmax(axis=1) == y.argmax(axis=1)))
        if output.std() < 1e-12:
            return 0.0
        return float(np.corrcoef(output[:, 0], y[:, 0])[0, 1])

    def train(self, times):
        """Train for `times` the epochs; return the curves, and the losses no user can see."""
        s = self.settings
        rng = np.random.default_rng(self.seed)
        per_epoch = -(-s["n_train"] // s["batch"])
        planned = round(per_epoch * s["epochs"] * times)
        looks = np.unique(np.linspace(0, planned, self.n_validations).round().astype(np.int64))
        notes = set(np.linspace(0, planned, 61).round().astype(int).tolist()) - {0}
        weights = [w.copy() for w in self.first]
        moments = [np.zeros_like(w) for w in weights], [np.zeros_like(w) for w in weights]
        rows, seen, noted, since = [], set(looks.tolist()), [], []
        order = np.empty(0, dtype=np.int64)
        for step in range(planned + 1):
            if step in seen:
                rows.append(self.look(weights))
            if step == planned:
                break
            if len(order) == 0:
                order = rng.permutation(s["n_train"])
            batch, order = order[: s["batch"]], order[s["batch"] :]
            loss, gradient = self.gradients(weights, *(part[batch] for part in self.training))
            since.append(loss)
            warm = 0.1 * planned
            rate = s["rate"] * min((step + 1) / warm, (planned - step) / (planned - warm))
            self.step(weights, gradient, moments, rate, step + 1)
            if step + 1 in notes:
                noted.append((step + 1, np.mean(since)))
                since = []
        return self.curves(looks, np.array(rows), np.array(noted), per_epoch, planned)

    def step(self, weights, gradient, moments, rate, t):
        for w, g, m, v in zip(weights, gradient, *moments, strict=True):
            if self.optimizer == "adam":
                m *= 0.9
                m += 0.1 * g
                v *= 0.999
                v += 0.001 * g * g
                w -= rate * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
            else:
                m *= 0.9
                m += g
                w -= rate * m

    def look(self, weights):
        validation, output = self.loss(weights, *self.validation)
        sample = self.loss(weights, *(part[: self.n_sample] for part in self.training))[0]
        fresh = self.loss(weights, *self.fresh)[0]
        whole = self.loss(weights, *self.training)[0]
        return validation, sample, self.metric(output, self.validation[1]), fresh, whole

    def curves(self, looks, rows, noted, per_epoch, planned):
        sample = rows[:, 1] if self.measures_sample else np.full(len(rows), np.nan)
        curves = Curves(
            training_steps=noted[:, 0].astype(np.int64),
            training_loss=noted[:, 1],
            validation_steps=looks,
            validation_loss=rows[:, 0],
            sample_loss=sample,
            metric=rows[:, 2],
            metric_name="Accuracy" if self.classes else "Pearson correlation",
            steps_per_epoch=per_epoch,
            n_steps_planned=planned,
            n_validation=self.n_validation,
            n_sample=self.n_sample if self.measures_sample else 0,
        )
        return curves, rows[:, 3:]


def learned(fresh):
    return fresh[0, 0] - fresh[:, 0].min() > 0.05 * fresh[0, 0]


def added(run, fresh):
    """Return what twice the training would add, as a share of what was gained."""
    longer = run.train(2.0)[1]
    return (fresh[-1, 0] - longer[-1, 0]) / (fresh[0, 0] - fresh[-1, 0])


def swings(fresh):
    steps = np.diff(fresh[:, 0])
    mean = np.abs(steps).mean()
    turns = np.mean(np.sign(steps[1:]) != np.sign(steps[:-1]))
    return bool(
        np.isfinite(mean)
        and mean > 0.1 * np.ptp(fresh[:, 0])
        and turns > 1 / 3
        and mean > 0.03 * fresh[0, 0]
    )


def is_just_right(run, fresh):
    gain = fresh[0, 0] - fresh[-1, 0]
    return (
        learned(fresh)
        and not swings(fresh)
        and fresh[-1, 0] - fresh[:, 0].min() < 0.03 * gain
        and abs(added(run, fresh)) < 0.06
    )


def is_unfinished(run, fresh):
    return learned(fresh) and not swings(fresh) and added(run, fresh) > 0.2


def is_flat(run, fresh):
    return np.abs(fresh[:, 0] / fresh[0, 0] - 1).max() < 0.01


def is_chaotic(run, fresh):
    return swings(fresh)


def is_overlearned(run, fresh):
    best = fresh[:, 0].argmin()
    fall = fresh[0, 0] - fresh[best, 0]
    return (
        learned(fresh)
        and not swings(fresh)
        and fresh[-1, 0] - fresh[best, 0] > 0.15 * fall
        and fresh[best, 1] - fresh[-1, 1] > 0.15 * fall
    )


TRUE = {
    "just right": is_just_right,
    "could learn more": is_unfinished,
    "learns nothing": is_flat,
    "chaotic": is_chaotic,
    "overlearning": is_overlearned,
}
