"""Simulated coders: accuracy by labels, rare texts found, and shares of taught studies."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from benchmarks.classification import _read
from benchmarks.corpora import load_labelled
from benchmarks.options import Options
from benchmarks.rendering import markdown_table

__all__ = ["measure", "render"]

ENCODER = "all-MiniLM-L6-v2"
N_POOL, N_TEST = 1_500, 1_000
BUDGETS = (20, 50, 100, 200)
CURVES = ("random", "uncertainty", "diversity")
RARE_SHARE, N_RARE = 0.02, 200
N_SEEDS, N_STUDIES, N_TEXTS, N_LABELS = 5, 500, 400, 60
"""Seeds of curves; of simulated shares the studies, texts in each, and labels, half taught."""

N_SCREENED, RELEVANT, LOOK, CORPORA = 1_000, 50, 20, ("subjectivity", "sst2", "trec_questions")
"""Texts of a simulated search for all relevant ones, how many are, and labels between two looks."""

LARGE = 50_000


def measure(options: Options) -> dict[str, Any]:
    """Label with coders who make no mistake."""
    n_seeds = 1 if options.quick else N_SEEDS
    n_studies = 4 if options.quick else N_STUDIES
    corpora = {"ag_news": _ag_news(), **{name: _encoded(name) for name in CORPORA}}
    curves = [
        {"corpus": name, "strategy": strategy, "seed": seed,
         "accuracy": dict(zip(map(str, BUDGETS), _curve(*data, strategy, seed), strict=True))}
        for name, data in corpora.items() for strategy in CURVES for seed in range(n_seeds)
    ]  # fmt: skip
    rare = [
        {"strategy": strategy, "seed": seed, "found": _rare(*corpora["ag_news"], strategy, seed)}
        for strategy in ("random", "uncertainty") for seed in range(2 * n_seeds)
    ]  # fmt: skip
    covered, widths = [], []
    for seed in range(n_studies):
        hits, ratio = _share(*corpora["ag_news"], seed)
        covered.append(hits)
        widths.append(ratio)
    return {
        "curves": curves, "rare": rare, "n_pool": N_POOL, "n_test": N_TEST,
        "rare_share": RARE_SHARE, "rare_labels": N_RARE,
        "stopping": [_stopped(seed) for seed in range(4 if options.quick else N_STUDIES)],
        "n_studies": n_studies, "coverage": np.mean(covered, axis=0).tolist(),
        "width_beside_labels_alone": float(np.mean(widths)), "study_texts": N_TEXTS,
        "study_labels": N_LABELS, "refit_seconds": _refit(LARGE), "refit_texts": LARGE,
    }  # fmt: skip


def _ag_news() -> tuple[np.ndarray, np.ndarray]:
    read = load_labelled("ag_news")
    return np.asarray(read.embeddings, dtype=np.float32), np.asarray(read.classes)


def _encoded(corpus: str) -> tuple[np.ndarray, np.ndarray]:
    from embedtopics import SentenceEncoder
    from embedtopics.encoders import CachedEncoder

    texts, labels, *_ = _read(corpus)
    n = N_POOL + N_TEST
    return CachedEncoder(SentenceEncoder(ENCODER)).encode(texts[:n]), labels[:n]


def _study(
    folder: str, vectors: np.ndarray, classes: list[str], strategy: str, teach: float, seed: int
) -> Any:
    from embedtopics import AnnotationProject

    texts = [f"text {row}" for row in range(len(vectors))]
    return AnnotationProject(
        texts,
        classes,
        folder,
        encoder=vectors,
        strategy=strategy,
        teach=teach,
        n_test=0,
        random_state=seed,
    )


def _code(study: Any, truth: np.ndarray, n: int) -> None:
    for _ in range(n):
        text = study.next()
        study.label(text.key, truth[int(text.text.split()[1])])


def _curve(vectors: np.ndarray, labels: np.ndarray, strategy: str, seed: int) -> list[float]:
    """Return the accuracy on other texts after each budget of labels."""
    rows = np.random.default_rng(seed).permutation(len(labels))[: N_POOL + N_TEST]
    truth = np.array([f"class {one}" for one in labels])
    pool, test = rows[:N_POOL], rows[N_POOL:]
    found, units = [], vectors[test] / np.linalg.norm(vectors[test], axis=1, keepdims=True)
    with tempfile.TemporaryDirectory() as folder:
        study = _study(folder, vectors[pool], sorted(set(truth)), strategy, 1.0, seed)
        for budget, before in zip(BUDGETS, (0, *BUDGETS), strict=False):
            _code(study, truth[pool], budget - before)
            study.loop.learn()
            model = study.loop.model
            scores = model.linear_.scores(units)
            if scores.shape[1] < len(model.classes):
                scores = np.hstack([scores, np.full((len(units), 1), -30.0)])
            guess = np.array(model.classes)[scores.argmax(axis=1)]
            found.append(float((guess == truth[test]).mean()))
        study.close()
    return found


def _rare(vectors: np.ndarray, labels: np.ndarray, strategy: str, seed: int) -> int:
    """Return how many texts of a class of 2 % were found."""
    rng = np.random.default_rng(seed)
    is_rare = labels == labels[0]
    n_rare = round(N_POOL * RARE_SHARE)
    some, others = (rng.permutation(np.flatnonzero(one)) for one in (is_rare, ~is_rare))
    rows = np.concatenate([some[:n_rare], others[: N_POOL - n_rare]])
    truth = np.where(is_rare, "yes", "no")[rows]
    with tempfile.TemporaryDirectory() as folder:
        study = _study(folder, vectors[rows], ["yes", "no"], strategy, 1.0, seed)
        _code(study, truth, N_RARE)
        found = int((study.labels() == "yes").sum())
        study.close()
    return found


def _share(vectors: np.ndarray, labels: np.ndarray, seed: int) -> tuple[list[bool], float]:
    """Return whether each share's interval holds the truth, and its width beside labels alone.

    Each study is of texts drawn from the collection: the truth is that of the collection, of
    which the texts are a sample, and that of the texts themselves.
    """
    from embedtopics.inference import shares

    rng = np.random.default_rng(1000 + seed)
    rows = rng.permutation(len(labels))[:N_TEXTS]
    is_one = labels == labels[0]
    truth = np.where(is_one, "yes", "no")
    with tempfile.TemporaryDirectory() as folder:
        study = _study(folder, vectors[rows], ["yes", "no"], "uncertainty", 0.5, seed)
        _code(study, truth[rows], N_LABELS)
        one = shares(study).to_frame().iloc[0]
        study.close()
    holds = [bool(one.low <= true <= one.high) for true in (is_one.mean(), is_one[rows].mean())]
    return holds, (one.high - one.low) / (one.gold_high - one.gold_low)


def _stopped(seed: int) -> tuple[float, float]:
    """Look for all relevant texts with a ranking of random quality, until the test says enough.

    Half of the labels are the ranking's, half drawn at random; the test is made every 20 labels.
    Returns the recall reached at the first look that says so, and the share of texts that
    were labelled then.
    """
    from embedtopics.annotation._estimates import recall_test

    rng = np.random.default_rng(seed)
    relevant = np.arange(N_SCREENED) < RELEVANT
    scores = rng.normal(size=N_SCREENED) + rng.uniform(1, 4) * relevant
    ranked, drawn = np.argsort(-scores).tolist(), rng.permutation(N_SCREENED).tolist()
    taught: set[int] = set()
    counted: set[int] = set()
    for n in range(LOOK, N_SCREENED + 1, LOOK):
        for order, held in ((ranked, taught), (drawn, counted)):
            fresh = (row for row in order if row not in taught and row not in counted)
            held.update(row for row, _ in zip(fresh, range(LOOK // 2), strict=False))
        found = [int(relevant[list(held)].sum()) for held in (taught, counted)]
        test = recall_test(N_SCREENED, len(taught), found[0], len(counted), found[1])
        if test.enough:
            return sum(found) / RELEVANT, n / N_SCREENED
    return 1.0, 1.0


def _refit(n: int) -> float:
    """Return the seconds of a refit, the scores of all texts and the next picks."""
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(n, 384)).astype(np.float32)
    truth = np.where(vectors[:, 0] > 0, "yes", "no")
    with tempfile.TemporaryDirectory() as folder:
        study = _study(folder, vectors, ["yes", "no"], "uncertainty", 0.5, 0)
        for row in rng.permutation(n)[:200].tolist():
            study.label(
                study.keys[row], truth[int(study.state.texts.documents.texts[row].split()[1])]
            )
        begun = time.perf_counter()
        study.loop.learn()
        seconds = time.perf_counter() - begun
        study.close()
    return seconds


def render(result: Mapping[str, Any]) -> str:
    """Return tables of accuracy and of rare texts, and a paragraph on shares."""
    rows = []
    for corpus, strategy in dict.fromkeys((o["corpus"], o["strategy"]) for o in result["curves"]):
        of = [o["accuracy"] for o in result["curves"]
              if (o["corpus"], o["strategy"]) == (corpus, strategy)]  # fmt: skip
        means = [np.mean([one[str(n)] for one in of]) for n in BUDGETS]
        rows.append([corpus, strategy, *(f"{mean:.1%}" for mean in means), str(len(of))])
    header = ["corpus", "strategy", *(f"{n} labels" for n in BUDGETS), "seeds"]
    found = []
    for strategy in dict.fromkeys(one["strategy"] for one in result["rare"]):
        of = [one["found"] for one in result["rare"] if one["strategy"] == strategy]
        found.append([strategy, f"{np.mean(of):.1f}", str(len(of))])
    n_rare = round(result["n_pool"] * result["rare_share"])
    of_all, of_texts = result["coverage"]
    stops = result["stopping"]
    kept = np.mean([recall >= 0.95 for recall, _ in stops])
    return (
        f"Accuracy on {result['n_test']:,} other texts, labels picked from "
        f"{result['n_pool']:,}:\n\n"
        f"{markdown_table(header, rows)}\n\nOf {n_rare} texts of a rare class, found with "
        f"{result['rare_labels']} labels:\n\n"
        f"{markdown_table(['strategy', 'found', 'seeds'], found)}\n\n"
        f"Over {result['n_studies']} studies of {result['study_texts']} texts with "
        f"{result['study_labels']} labels, half of them taught by uncertainty, 95 % intervals hold "
        f"the share of the collection in {of_all:.1%}, and that of the study's own texts in "
        f"{of_texts:.1%}; they are {result['width_beside_labels_alone']:.2f} times as wide as "
        f"those of the count labels alone. A refit at {result['refit_texts']:,} texts with the "
        f"scores of all and the next picks takes {result['refit_seconds']:.2f} s on one thread.\n\n"
        f"Stopping: {len(stops)} simulated searches for {RELEVANT} relevant texts of "
        f"{N_SCREENED:,}, ranked more or less well, half of the labels the ranking's and half "
        f"random, ended at the first of all looks ({LOOK} labels apart) that promises a recall of "
        f".95: it was reached in {kept:.1%} of them, with {np.mean([n for _, n in stops]):.0%} of "
        f"the texts labelled on average (mean recall {np.mean([r for r, _ in stops]):.3f})."
    )
