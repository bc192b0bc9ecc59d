"""Regression of the uses of words: layers, null p-values, power, coverage, speed, and answers.

The layers were chosen on half of the words of CoarseWSD-20, and are checked on the other half, on
WiC, and with another encoder.
"""

from __future__ import annotations

import gzip
import json
import os
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import kstest

import embedtopics as et
from benchmarks.options import Options
from benchmarks.rendering import figure, markdown_table
from embedtopics.probing._layers import layer_numbers
from embedtopics.probing.results import HiddenStates
from embedtopics.probing.words._regression import _least_squares, _measure, _vectors

__all__ = ["measure", "render"]

MODEL, OTHER_MODEL = "all-MiniLM-L6-v2", "multilingual-e5-small"
DATA = Path(os.environ.get("EMBEDTOPICS_DATA", Path(__file__).parents[2] / "shared" / "data"))
SETS = {
    "last 2 (default)": "last 2",
    "last": 6,
    "last but one": 5,
    "middle (3)": 3,
    "0 (static)": 0,
}
USES_OF_WORD, GROUP, SHIFTS = 80, 50, (0.0, 0.2, 0.4)
SHUFFLES, PERMUTATIONS, REPEATS = 500, 199, 12
LARGE = 10_000


def _rows(name: str) -> pd.DataFrame:
    with gzip.open(DATA / name, "rt", encoding="utf-8") as file:
        return pd.DataFrame([json.loads(line) for line in file])


@cache
def _senses(model: str = MODEL) -> tuple[HiddenStates, pd.DataFrame]:
    """Return states of sentences with ambiguous nouns, and the row, word and sense of each noun."""
    table = _rows("coarsewsd20/test.jsonl.gz")
    table = table.groupby("word", group_keys=False).apply(
        lambda one: one.assign(word=one.name).sample(min(len(one), USES_OF_WORD), random_state=0)
    )
    states = et.probing.hidden_states(model, list(table["text"].str.split()))
    begins = np.searchsorted(states.of_text, np.arange(len(table)))
    table["row"] = begins + table["index"].to_numpy()
    return states, table[~states.missing[table["row"]]].reset_index(drop=True)


def _separation(layers: Any, words: Sequence[str], model: str) -> tuple[float, float]:
    """Return the accuracy of the nearest use, and the share of variance between senses."""
    states, table = _senses(model)
    read, *_ = _vectors(states, layer_numbers(layers, states.layers), ["no word"])
    figures = []
    for word in words:
        of_word = table[table["word"] == word]
        v, sense = read(of_word["row"].to_numpy()).astype(float), of_word["sense"].to_numpy()
        unit = v / np.linalg.norm(v, axis=1, keepdims=True)
        cosines = unit @ unit.T - 9 * np.eye(len(unit))
        names = np.unique(sense)
        within = sum(np.square(v[sense == s] - v[sense == s].mean(axis=0)).sum() for s in names)
        total = np.square(v - v.mean(axis=0)).sum() / (len(v) - 1)
        figures.append(
            ((sense[cosines.argmax(axis=1)] == sense).mean(),
             1 - within / (len(v) - len(names)) / total)
        )  # fmt: skip
    accuracy, share = np.mean(figures, axis=0)
    return float(accuracy), float(share)


@cache
def _pairs(model: str) -> tuple[HiddenStates, pd.DataFrame]:
    """Return states of the sentences of WiC, and the pairs with the rows of both uses."""
    parts = {part: _rows(f"wic/{part}.jsonl.gz") for part in ("dev", "test")}
    table = pd.concat(parts, names=["part"]).reset_index("part", drop=False)
    texts = [text.split() for side in (1, 2) for text in table[f"sentence{side}"]]
    states = et.probing.hidden_states(model, texts)
    begins = np.searchsorted(states.of_text, np.arange(len(texts))).reshape(2, -1)
    for side in (1, 2):
        table[f"row{side}"] = begins[side - 1] + table[f"index{side}"].astype(int).to_numpy()
    return states, table.assign(same=table["label"].astype(str) == "True")


def _wic(layers: Any, model: str) -> float:
    """Return how often a cosine tells a pair of one meaning; the threshold is that of dev."""
    states, table = _pairs(model)
    read, *_ = _vectors(states, layer_numbers(layers, states.layers), ["no word"])
    one, other = (read(table[f"row{side}"].to_numpy()).astype(float) for side in (1, 2))
    lengths = np.linalg.norm(one, axis=1) * np.linalg.norm(other, axis=1)
    cosine = (one * other).sum(axis=1) / np.maximum(lengths, 1e-12)
    is_dev, same = (table["part"] == "dev").to_numpy(), table["same"].to_numpy()
    thresholds = np.sort(cosine[is_dev])
    right = [np.mean((cosine[is_dev] >= t) == same[is_dev]) for t in thresholds]
    threshold = thresholds[int(np.argmax(right))]
    return float(np.mean((cosine[~is_dev] >= threshold) == same[~is_dev]))


def _planted(layers: Any, n_repeats: int) -> list[dict[str, Any]]:
    """Draw two groups that use two senses in different shares, and look for the difference."""
    states, table = _senses()
    read, *_ = _vectors(states, layer_numbers(layers, states.layers), ["no word"])
    rng = np.random.default_rng(0)
    rows = []
    for shift in SHIFTS:
        p, covers, ratios = [], [], []
        for _, of_word in table.groupby("word"):
            common = of_word["sense"].value_counts().index[:2]
            pools = [read(of_word.loc[of_word["sense"] == s, "row"].to_numpy())
                     for s in common]  # fmt: skip
            if len(pools) < 2 or min(map(len, pools)) < 20:
                continue
            apart = float(np.linalg.norm(pools[0].mean(axis=0) - pools[1].mean(axis=0)))
            for _ in range(n_repeats):
                x = np.repeat([0.0, 1.0], GROUP)
                is_first = rng.random(2 * GROUP) < 0.5 + shift * (x - 0.5)
                y = np.array([pools[1 - int(one)][rng.integers(len(pools[1 - int(one)]))]
                              for one in is_first])  # fmt: skip
                design = np.column_stack([np.ones(len(x)), x])
                fit = _least_squares(design, y, np.arange(len(x)), "word")
                norm, low, high, value = _measure(fit, np.eye(2)[[1]], PERMUTATIONS, len(p))
                p.append(value)
                covers.append(low - 1e-9 <= shift * apart <= high + 1e-9)
                ratios.append(norm / apart)
        rows.append({
            "shift": shift, "draws": len(p), "power": float(np.mean(np.array(p) <= 0.05)),
            "recovered": float(np.median(ratios)), "coverage": float(np.mean(covers)),
        })  # fmt: skip
    return rows


def _null(n_shuffles: int) -> dict[str, float]:
    """Shuffle a covariate among units of three uses, and test the p-values for uniformity."""
    states, table = _senses()
    read, *_ = _vectors(states, layer_numbers("last 2", states.layers), ["no word"])
    of_word = table[table["word"] == "seal"].sort_values("sense")[:60]
    y, unit = read(of_word["row"].to_numpy()), np.arange(len(of_word)) // 3
    rng = np.random.default_rng(0)
    p = []
    for draw in range(n_shuffles):
        covariate = rng.permutation(np.arange(unit.max() + 1) % 2)[unit]
        design = np.column_stack([np.ones(len(y)), covariate])
        fit = _least_squares(design, y, unit, "seal")
        p.append(_measure(fit, np.eye(2)[[1]], PERMUTATIONS, draw)[3])
    spread = np.array(p) - rng.uniform(0, 1 / (PERMUTATIONS + 1), len(p))
    return {"shuffles": n_shuffles, "KS p": float(kstest(spread, "uniform").pvalue),
            "share at 0.05": float(np.mean(np.array(p) <= 0.05))}  # fmt: skip


def _seconds() -> float:
    """Time a regression of many uses with an interaction and a spline, after the extraction."""
    rng = np.random.default_rng(0)
    of_text = np.arange(LARGE, dtype=np.int32)
    states = HiddenStates(
        texts=tuple(f"tax {i}" for i in range(LARGE)), words=("tax",) * LARGE, layers=(5, 6),
        vectors=tuple(rng.normal(size=(2, LARGE, 384)).astype(np.float16)), of_text=of_text,
        position=0 * of_text, sentences=of_text, spans=np.tile(np.int32([0, 3]), (LARGE, 1)),
        n_pieces=0 * of_text + 1, unit="word", encoder="drawn", fingerprint="",
    )  # fmt: skip
    data = pd.DataFrame({"party": rng.choice(["a", "b"], LARGE), "year": rng.uniform(0, 9, LARGE)})
    begin = time.perf_counter()
    et.probing.regress_uses(states, "tax", "party * bs(year, df=3)", data=data)
    return time.perf_counter() - begin


def _answers(name: str, table: pd.DataFrame, words: Any, covariates: str, units: str,
             sides: Sequence[dict[str, Any]], encoder: str = MODEL) -> dict[str, Any]:  # fmt: skip
    """Return the effects on some words, and what sets two profiles apart in words and passages."""
    corpus = et.Corpus(table.reset_index(drop=True), text="text")
    uses = et.probing.regress_uses(
        corpus, words, covariates, units=units, encoder=encoder, show_progress=False
    )
    effects = json.loads(uses.to_frame().round(4).to_json(orient="records"))
    differences = []
    for word in words:
        for one in vars(uses.difference(*sides, word, k=6)).values():
            sentences = one.uses["sentence"].head(2)
            passages = [" ".join(sentence.split())[:240] for sentence in sentences]
            differences.append({"word": word, "profile": one.label, "words": list(one.words),
                                "passages": passages})  # fmt: skip
    return {"corpus": name, "covariates": covariates, "effects": effects, "difference": differences}


def _us() -> pd.DataFrame:
    table = _rows("us_presidential_addresses/addresses.jsonl.gz")
    table = table[table["kind"] == "state_of_the_union"]
    is_republican = table["president"].str.contains("Eisenhower|Nixon|Ford|Reagan|Bush")
    return table.assign(party=np.where(is_republican, "Republican", "Democratic"))


WEST, EAST = "USA GBR FRA DEU CAN ITA NOR AUS JPN".split(), "RUS UKR POL BGR MNG CUB ROU".split()


def _un() -> pd.DataFrame:
    """Return speeches of 1970-1989 of West and East, every second year."""
    table = _rows("un_general_debate/un_general_debate.jsonl.gz")
    table = table[table["year"].between(1970, 1989) & (table["year"] % 2 == 0)]
    table = table[table["country"].isin([*WEST, *EAST])]
    return table.assign(bloc=np.where(table["country"].isin(WEST), "West", "East"))


CAMPS = {
    "MITTERRAND": "left", "JOSPIN": "left", "ROYAL": "left", "GISCARD": "right", "CHIRAC": "right",
    "SARKOZY": "right", "MACRON": "Macron", "LE PEN": "Le Pen",
}  # fmt: skip


def _french() -> pd.DataFrame:
    """Return the turns of candidates; the transcript of 2012 does not tell them apart."""
    table = _rows("fr_debats_presidentiels/debates.jsonl.gz")
    speaker = table.groupby("debate")["speaker"].ffill().fillna("").str.upper()
    table["camp"] = [next((c for k, c in CAMPS.items() if k in one), None) for one in speaker]
    table = table[table["camp"].notna() & (table["year"] != 2012)]
    return table.assign(candidate=table["debate"] + " " + table["camp"])


def measure(options: Options) -> dict[str, Any]:
    """Measure what the regression finds, and how sure it is."""
    words = sorted(_senses()[1]["word"].unique())
    separation = []
    for name, layers in SETS.items():
        for model in (MODEL, OTHER_MODEL) if name == "last 2 (default)" else (MODEL,):
            row: dict[str, Any] = {"encoder": model, "layers": name, "wic": _wic(layers, model)}
            for half, several in (("chosen on", words[::2]), ("checked on", words[1::2])):
                row[half], row[f"variance, {half}"] = _separation(layers, several, model)
            separation.append(row)
    n_repeats = 2 if options.quick else REPEATS
    result: dict[str, Any] = {
        "separation": separation,
        "null": _null(50 if options.quick else SHUFFLES),
        "planted": {name: _planted(SETS[name], n_repeats)
                    for name in ("last 2 (default)", "0 (static)")},
        "seconds": _seconds(),
    }  # fmt: skip
    if not options.quick:
        result["answers"] = [
            _answers("US addresses 1945-2006", _us(), ["welfare", "freedom"], "party + year",
                     "president", [{"year": 1950}, {"year": 2000}]),
            _answers("UN speeches 1970-1988", _un(), ["terrorism", "development", "sovereignty"],
                     "bloc + year", "country", [{"bloc": "East"}, {"bloc": "West"}]),
            _answers("French debates 1981-2022", _french(),
                     {"travail": ["travail", "travailler"],
                      "Europe": ["europe", "européen", "européenne"], "France": ["france"]},
                     "camp + year", "candidate", [{"camp": "Le Pen"}, {"camp": "Macron"}],
                     OTHER_MODEL),
        ]  # fmt: skip
    return result


def render(result: dict[str, Any]) -> str:
    """Return the tables of a result."""
    separation = markdown_table(
        ["encoder", "layers", "nearest use has the sense, chosen on", "checked on",
         "variance between senses, chosen on", "checked on", "WiC"],
        [[r["encoder"], r["layers"], *(figure(r[key], 3) for key in (
            "chosen on", "checked on", "variance, chosen on", "variance, checked on", "wic"))]
         for r in result["separation"]],
    )  # fmt: skip
    planted = markdown_table(
        ["layers", "difference of the shares", "found (p <= 0.05)", "recovered", "covered"],
        [[name, figure(r["shift"], 1), figure(r["power"], 3), figure(r["recovered"], 3),
          figure(r["coverage"], 3)] for name, rows in result["planted"].items() for r in rows],
    )  # fmt: skip
    null = result["null"]
    share = null["share at 0.05"]
    text = (
        f"Of {null['shuffles']} shuffles of a covariate, {share:.1%} have p <= 0.05 (p of "
        f"Kolmogorov and Smirnov {null['KS p']:.2f}). A regression of {LARGE:,} uses takes "
        f"{result['seconds']:.0f} s after the extraction."
    )
    return f"{separation}\n\n{planted}\n\n{text}"
