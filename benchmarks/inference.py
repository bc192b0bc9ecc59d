"""Coverage of shares, differences and regressions on measured variables.

The first part simulates: the predictions of one group err more often than those of the other,
which is what biases a regression on predictions. The second part takes labelled corpora: the
figures of all labels are the truth, and each draw sees 200 labels and a classifier. The last part
has covariates without any effect, so that every interval without 0 is an error of the first kind.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import expit, logit
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from benchmarks.corpora import _read_rows, load_labelled
from benchmarks.options import Options
from benchmarks.rendering import figure, markdown_table
from embedtopics import TopicModel
from embedtopics.annotation._topics import EXPECTED
from embedtopics.annotation._topics import _strata as strata_of
from embedtopics.errors import InputError
from embedtopics.inference import Measurement, power, regress, shares
from embedtopics.inference._power import allocate

__all__ = ["measure", "render"]

RESULT = Path(__file__).parent / "results" / "inference.json"
SECTIONS = ("rows", "plans", "real", "null")

DRAWS, REAL_DRAWS, NULL_DRAWS, QUICK_DRAWS, POPULATION = 1_000, 500, 200, 20, 1_000_000
ERRORS = {"a": 0.6, "b": 1.6}
"""Factor of the errors of the predictions in each group."""

METHODS = ("corrected", "gold", "naive")
Ends = tuple[str, float, float]
"""A method, and the ends of its interval."""


class Case(NamedTuple):
    """Rows, gold rows, accuracy, prevalence, and rows of each unit."""

    n_rows: int
    n_gold: int
    accuracy: float
    prevalence: float
    unit_size: int = 1


CASES = (
    Case(5_000, 100, 0.9, 0.02),
    Case(5_000, 100, 0.8, 0.1),
    Case(5_000, 300, 0.85, 0.3),
    Case(20_000, 500, 0.95, 0.05),
    Case(10_000, 1_000, 0.6, 0.5),
    Case(5_000, 300, 0.9, 0.3, 20),
    Case(50_000, 1_000, 0.9, 0.1, 50),
)
PLANS = (Case(5_000, 0, 0.85, 0.3), Case(20_000, 0, 0.95, 0.05), Case(10_000, 0, 0.7, 0.5))
"""Cases in which `power` plans the gold rows."""


def measure(options: Options) -> dict[str, Any]:
    """Draw every case, and count the intervals that hold the truth; other sections stay."""
    n_draws, n_real, n_null = (
        (QUICK_DRAWS,) * 3 if options.quick else (DRAWS, REAL_DRAWS, NULL_DRAWS)
    )
    sections = {
        "rows": lambda: [row for case in CASES for row in _simulated(case, n_draws)],
        "plans": lambda: [_plan(case, n_draws) for case in PLANS],
        "real": lambda: (
            [row for name in CORPORA for row in _real(name, n_real)] + [*_politics(n_real)]
        ),
        "null": lambda: (
            [*_without_effect(n_null)]
            + [row for name in CORPORA for row in _real(name, n_null, shuffled=True)]
        ),
    }
    result: dict[str, Any] = {"draws": n_draws, "real_draws": n_real}
    if options.sections and not options.quick and RESULT.exists():
        result = json.loads(RESULT.read_text("utf-8"))
    return result | {name: sections[name]() for name in options.sections or SECTIONS}


def _simulated(case: Case, n_draws: int) -> Iterator[dict[str, Any]]:
    """Draw a case, and yield the coverage of its figures."""
    rng = np.random.default_rng(0)
    truth = _truths(_draw(case._replace(n_rows=POPULATION), rng))
    n_draws = n_draws if case.n_rows <= 20_000 else n_draws // 2
    draws = (_gold(_draw(case, rng), case.n_gold, rng) for _ in range(n_draws))
    for row in _coverage(draws, truth, SIMULATED):
        yield case._asdict() | row


def _coverage(draws: Any, truth: Mapping[str, float], figures: Any) -> Iterator[dict[str, Any]]:
    """Yield the coverage, the median width and the errors of each figure of truth."""
    hits, widths, zeros = (defaultdict(list) for _ in range(3))
    n_draws = 0
    for make in draws:
        n_draws += 1
        measured = None
        for what, figure_of in figures.items():
            try:
                measured = measured or make()
                ends = list(figure_of(measured))
            except InputError:  # no gold row of a class, or separated gold rows
                continue
            for method, low, high in ends:
                hits[what, method].append(low <= truth[what] <= high)
                zeros[what, method].append(low <= 0 <= high)
                widths[what, method].append(high - low)
    for what, value in truth.items():
        n_used = len(hits[what, "corrected"])
        row = {"what": what, "truth": value, "draws": n_used, "refused": n_draws - n_used}
        for method in METHODS:
            row[method] = float(np.mean(hits[what, method]))
            row[f"{method}_zero"] = float(np.mean(zeros[what, method]))
            row[f"{method}_width"] = float(np.median(widths[what, method]))
        yield row | {"width": row["corrected_width"] / row["gold_width"]}


def _without_effect(n_draws: int) -> Iterator[dict[str, Any]]:
    """Draw classes that depend on nothing; the errors of their predictions depend on the group."""
    figures = {what: SIMULATED[what] for what in ("linear", "logistic")}
    for case in (CASES[2], CASES[4]):
        rng = np.random.default_rng(2)
        draws = (_gold(_noise(case, rng), case.n_gold, rng) for _ in range(n_draws))
        for row in _coverage(draws, dict.fromkeys(figures, 0.0), figures):
            yield {"corpus": "simulated: errors differ by group"} | case._asdict() | row


def _noise(case: Case, rng: np.random.Generator) -> pd.DataFrame:
    frame = _draw(case, rng)
    y = rng.random(case.n_rows) < case.prevalence
    error = (1 - case.accuracy) * frame["group"].map(ERRORS).to_numpy()
    guess = np.where(rng.random(case.n_rows) < error, ~y, y)
    return frame.assign(y=y.astype(int), guess=guess.astype(int))


def _draw(case: Case, rng: np.random.Generator) -> pd.DataFrame:
    """Return rows with a class y, its prediction, and two covariates."""
    n = case.n_rows
    unit = np.arange(n) // case.unit_size
    shift = rng.normal(0, 0.5 * (case.unit_size > 1), unit.max() + 1)[unit]
    x, group = rng.normal(size=n), rng.choice(["a", "b"], n, p=[0.6, 0.4])
    chance = expit(logit(case.prevalence) - 0.3 + 0.5 * x + 0.5 * (group == "b") + shift)
    y = rng.random(n) < chance
    error = (1 - case.accuracy) * pd.Series(group).map(ERRORS).to_numpy()
    guess = np.where(rng.random(n) < error, ~y, y)
    columns = {"x": x, "group": group, "unit": unit, "y": y.astype(int), "guess": guess.astype(int)}
    return pd.DataFrame(columns)


def _gold(frame: pd.DataFrame, n_gold: int, rng: np.random.Generator) -> Any:
    """Return a function that makes a measurement with gold values of random rows."""
    gold = frame["y"].where(rng.permutation(len(frame)) < n_gold)
    options = {} if "unit" not in frame else {"units": frame["unit"]}
    data = frame.drop(columns=["y", "guess", "unit"], errors="ignore")
    fixed = {"sampling": "random", "name": "y", "data": data, **options}
    return lambda: Measurement(gold, frame["guess"], **fixed)


def _truths(population: pd.DataFrame) -> dict[str, float]:
    """Return the figures of a population that is large enough to know them."""
    x, y = population["x"].to_numpy(), population["y"].to_numpy()
    b = (population["group"] == "b").to_numpy().astype(float)
    columns = np.column_stack([np.ones(len(x)), x, b])
    return {
        "share": float(y.mean()),
        "difference": float(y[b == 1].mean() - y[b == 0].mean()),
        "linear": float(np.linalg.lstsq(columns, y, rcond=None)[0][2]),
        "logistic": float(_logit(columns, y)[2]),
        "covariate": _slope_of_class(x, y, np.column_stack([np.ones(len(x)), b])),
    }


def _logit(columns: np.ndarray, y: np.ndarray) -> np.ndarray:
    beta = np.zeros(columns.shape[1])
    for _ in range(25):
        mean = expit(columns @ beta)
        slope = columns.T @ (columns * (mean * (1 - mean))[:, None])
        beta += np.linalg.solve(slope, columns.T @ (y - mean))
    return beta


def _slope_of_class(x: np.ndarray, y: np.ndarray, others: np.ndarray) -> float:
    return float(np.linalg.lstsq(np.column_stack([others, y]), x, rcond=None)[0][-1])


def _share(measured: Measurement) -> Iterator[Ends]:
    row = shares(measured).to_frame().iloc[-1]  # of the last class
    yield "corrected", row.low, row.high
    yield "gold", row.gold_low, row.gold_high
    reach = 1.96 * np.sqrt(row.naive * (1 - row.naive) / row.n)
    yield "naive", row.naive - reach, row.naive + reach


def _difference(measured: Measurement) -> Iterator[Ends]:
    contrast = shares(measured, by="group").difference("b", "a")
    yield "corrected", contrast.low, contrast.high
    # The difference of shares is the linear model without x.
    yield from list(_fit(measured, "y ~ group", "group: b"))[1:]


def _fit(measured: Measurement, formula: str, term: str, **options: Any) -> Iterator[Ends]:
    if "group" in measured.data:
        options["reference"] = {"group": "a"}
    fit = regress(measured, formula, **options)
    place = [name for _, name in fit.names].index(term)
    for method in METHODS:
        one = getattr(fit, method)
        yield method, float(one.low[place]), float(one.high[place])


SIMULATED = {
    "share": _share,
    "difference": _difference,
    "linear": partial(_fit, formula="y ~ x + group", term="group: b"),
    "logistic": partial(_fit, formula="y ~ x + group", term="group: b", family="logistic"),
    "covariate": partial(_fit, formula="x ~ y + group", term="y: 1"),
}
REAL = {
    "share": _share,
    "logistic": partial(_fit, formula="y ~ x", term="x", family="logistic"),
    "covariate": partial(_fit, formula="x ~ y", term="y: 1"),
}
"""The figures, and their intervals by each method."""


def _plan(case: Case, n_draws: int) -> dict[str, Any]:
    """Plan for a width and for an effect, and return what the plans give."""
    rng = np.random.default_rng(1)
    population = _draw(case._replace(n_rows=POPULATION), rng)
    truth = _truths(population)
    share, width, effect = truth["share"], 0.4 * np.sqrt(truth["share"]) / 5, truth["difference"]
    plan = {"n_rows": case.n_rows, "share": share, "accuracy": case.accuracy}
    for_width = power(width=width, **plan)
    for_effect = power(effect=effect, group_share=0.4, **plan)
    widths, is_detected = [], []
    for _ in range(n_draws):
        frame = _draw(case, rng)
        row = shares(_gold(frame, int(for_width.labels), rng)()).to_frame().iloc[-1]
        widths.append(row.high - row.low)
        measured = _gold(frame, int(for_effect.labels), rng)()
        is_detected.append(shares(measured, by="group").difference("b", "a").p < 0.05)
    row = {**case._asdict(), "width": width, "labels": for_width.labels, "draws": n_draws}
    row |= {"mean_width": float(np.mean(widths)), "labels_alone": for_width.labels_alone}
    row |= {"effect": effect, "labels_effect": for_effect.labels}
    return row | {"power": float(np.mean(is_detected))}


def _parliament() -> pd.DataFrame:
    rows = pd.DataFrame(_read_rows("fr_parlement/stance_pairs.jsonl.gz"))
    covariate = (rows["speaker_government"] == "True").astype(float)
    return pd.DataFrame({"text": rows["speech"], "y": rows["label"] == "POUR", "x": covariate})


def _tweets(task: str) -> pd.DataFrame:
    parts = (f"tweet_eval/{task}_{part}.jsonl.gz" for part in ("train", "val", "test"))
    rows = pd.DataFrame([row for part in parts for row in _read_rows(part)])
    return pd.DataFrame({"text": rows["text"], "y": rows["label"] == task, "x": None})


def _news() -> pd.DataFrame:
    parts = ("train_fewshot50", "dev", "test")
    rows = pd.concat(
        pd.DataFrame(_read_rows(f"masakhanews_{language}/{part}.jsonl.gz")).assign(x=french)
        for french, language in enumerate(("eng", "fra"))
        for part in parts
    )
    politics = rows["label"] == "politics"
    return pd.DataFrame({"text": rows["headline"], "y": politics, "x": rows["x"]})


def _agency() -> pd.DataFrame:
    parts = ("train_4000", "test")
    rows = pd.DataFrame([r for part in parts for r in _read_rows(f"ag_news/{part}.jsonl.gz")])
    texts = rows["title"] + ". " + rows["description"]
    return pd.DataFrame({"text": texts, "y": rows["label"] == "Business", "x": None})


def _politics(n_draws: int) -> Iterator[dict[str, Any]]:
    """Take topics for a concept: one of the topics that split it, or these with another one."""
    corpus = load_labelled("bbc_news")
    rows = pd.DataFrame({"y": (np.array(corpus.classes) == "politics").astype(int)})
    rows["x"] = np.log1p([len(text) for text in corpus.texts])
    result = TopicModel(random_state=0).fit(corpus.texts, embeddings=corpus.embeddings).result_
    document = result.distinct.of_row
    tables = {name: np.bincount(result.labels[is_in], minlength=result.n_topics)
              for name, is_in in ((one, (np.array(corpus.classes) == one) & (result.labels >= 0))
                                  for one in ("politics", "business"))}  # fmt: skip
    sizes = np.bincount(result.labels[result.labels >= 0], minlength=result.n_topics)
    own = np.flatnonzero(2 * tables["politics"] > sizes).tolist()
    cases = {
        f"one of {len(own)} topics": (int(tables["politics"].argmax()),),
        f"{len(own)} topics and one of business": (*own, int(tables["business"].argmax())),
    }
    x, y = rows["x"].to_numpy(), rows["y"].to_numpy()
    truth = _real_truths(x, y)
    for name, ids in cases.items():
        rng = np.random.default_rng(0)
        inside = np.isin(result.labels, ids).astype(float)
        part = np.asarray(result.memberships[:, list(ids)].sum(axis=1)).ravel()[document]
        pool = rows.assign(topic=inside, part=part, stratum=strata_of(result, ids)[document])
        about = {"corpus": f"news: politics as {name}", "n_rows": len(rows), "n_gold": 200}
        about["accuracy"] = float((inside == y).mean())
        draws = (_coded(pool, rng) for _ in range(n_draws))
        for row in _coverage(draws, truth, REAL):
            yield about | row


def _coded(pool: pd.DataFrame, rng: np.random.Generator) -> Any:
    """Draw rows, and code 200 of them by strata."""
    rows = pool.sample(frac=1, replace=True, random_state=rng, ignore_index=True)
    strata = rows["stratum"].to_numpy()
    n_coded = allocate(200, np.bincount(strata, minlength=3), EXPECTED)
    drawn = [rng.permutation(np.flatnonzero(strata == one))[:n] for one, n in enumerate(n_coded)]
    gold = rows["y"].where(rows.index.isin(np.concatenate(drawn)))
    predictions, data = rows[["topic", "part"]], rows[["x"]]
    return lambda: Measurement(gold, predictions, strata=strata, name="y", data=data)


CORPORA = {
    "speeches: in favour ~ government": (_parliament, 400),
    "tweets: hate ~ length": (lambda: _tweets("hate"), 1_000),
    "tweets: offensive ~ length": (lambda: _tweets("offensive"), 1_000),
    "headlines: politics ~ French": (_news, 400),
    "agency news: business ~ length": (_agency, 1_000),
}
"""Rows of each corpus, and those that train its classifier; without x, it is the log length."""


def _real(name: str, n_draws: int, *, shuffled: bool = False) -> Iterator[dict[str, Any]]:
    """Draw rows of a corpus, 200 of them with their labels; the whole corpus has the truth.

    A shuffled covariate has no effect.
    """
    read, n_train = CORPORA[name]
    rng = np.random.default_rng(0)
    rows = read().sample(frac=1, random_state=0, ignore_index=True)
    if rows["x"].isna().any():
        rows["x"] = np.log1p(rows["text"].str.len())
    rows = rows.assign(y=rows["y"].astype(int), x=rows["x"].astype(float))
    classifier = make_pipeline(
        TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True), LogisticRegression(C=10)
    )
    classifier.fit(rows["text"][:n_train], rows["y"][:n_train])
    rows = rows[n_train:].reset_index(drop=True)
    rows["guess"] = classifier.predict_proba(rows["text"])[:, 1]
    y = rows["y"].to_numpy()
    truth = _real_truths(rows["x"].to_numpy(), y)
    rows = rows.drop(columns="text")

    def draw() -> pd.DataFrame:
        drawn = rows.sample(frac=1, replace=True, random_state=rng, ignore_index=True)
        return drawn.assign(x=rng.permutation(drawn["x"])) if shuffled else drawn

    figures = {what: REAL[what] for what in ("logistic", "covariate")} if shuffled else REAL
    truth = dict.fromkeys(figures, 0.0) if shuffled else truth
    draws = (_gold(draw(), 200, rng) for _ in range(n_draws))
    about = {"corpus": name, "n_rows": len(rows), "n_gold": 200}
    about["accuracy"] = float(((rows["guess"] > 0.5) == y).mean())
    for row in _coverage(draws, truth, figures):
        yield about | row


def _real_truths(x: np.ndarray, y: np.ndarray) -> dict[str, float]:
    constant = np.ones((len(x), 1))
    return {
        "share": float(y.mean()),
        "logistic": float(_logit(np.column_stack([constant, x]), y)[1]),
        "covariate": _slope_of_class(x, y, constant),
    }


def render(result: Mapping[str, Any]) -> str:
    """Return the tables: simulations, plans, and labelled corpora."""
    header = ["rows", "gold", "accuracy", "prevalence", "rows a unit", "figure", "corrected",
              "gold rows alone", "predictions alone", "width against gold alone"]  # fmt: skip
    rows = [
        [f"{row['n_rows']:,}", f"{row['n_gold']:,}", figure(row["accuracy"], 2),
         figure(row["prevalence"], 2), str(row["unit_size"]), row["what"],
         *(figure(row.get(method), 3) for method in METHODS), figure(row["width"], 2)]
        for row in result["rows"]
    ]  # fmt: skip
    plan_header = ["rows", "accuracy", "prevalence", "width asked for", "gold rows planned",
                   "without predictions", "width", "gold rows for a power of 0.8",
                   "power"]  # fmt: skip
    plans = [
        [f"{row['n_rows']:,}", figure(row["accuracy"], 2), figure(row["prevalence"], 2),
         figure(row["width"], 3), f"{row['labels']:,.0f}", f"{row['labels_alone']:,.0f}",
         figure(row["mean_width"], 3), f"{row['labels_effect']:,.0f}", figure(row["power"], 2)]
        for row in result["plans"]
    ]  # fmt: skip
    real_header = ["corpus", "rows", "accuracy", "figure", "corrected", "gold rows alone",
                   "predictions alone", "effect missed", "missed by gold rows alone",
                   "width against gold alone"]  # fmt: skip
    real = [
        [row["corpus"], f"{row['n_rows']:,}", figure(row["accuracy"], 2), row["what"],
         *(figure(row.get(method), 3) for method in METHODS),
         *(figure(row.get(f"{method}_zero"), 2) if row["what"] != "share" else ""
           for method in METHODS[:2]),
         figure(row["width"], 2)]
        for row in result["real"]
    ]  # fmt: skip
    null_header = ["corpus", "rows", "gold", "accuracy", "draws", "figure",
                   *(f"p < 0.05: {one}" for one in ("corrected", *header[7:9]))]  # fmt: skip
    null = [
        [row["corpus"], f"{row['n_rows']:,}", f"{row['n_gold']:,}", figure(row["accuracy"], 2),
         f"{row['draws']:,}", row["what"], *(figure(1 - row[method], 3) for method in METHODS)]
        for row in result.get("null", [])
    ]  # fmt: skip
    tables = [(header, rows), (plan_header, plans), (real_header, real)]
    tables += [(null_header, null)] if null else []
    return "\n\n".join(markdown_table(*table) for table in tables)
