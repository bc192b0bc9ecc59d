"""Positions on axes between seed words: ``python benchmarks/meaning_scales.py``.

Correlation of positions with people's labels, over draws of twenty seeds from forty, beside what is
simpler: counts of the seeds, static vectors of the corpus (fastText), latent semantic scaling, and
ridge regressions on labels. The layer and the two parts of the axis were chosen on `CHOSEN_ON`; the
other corpora check the choice. Then two corpora with known positions: speeches for and against
amendments of the French parliament, and speeches of East and West at the United Nations, 1970-89.
"""

from __future__ import annotations

import datetime
import json
import sys
import time
import warnings
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.metrics import roc_auc_score

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import embedtopics as et
from benchmarks.corpora import _read_rows
from benchmarks.machine import describe_machine

RESULT = Path(__file__).resolve().parent / "results" / "meaning_scales.json"

N_TEXTS, N_SEEDS, N_DRAWS = 1_500, 10, 5
CHOSEN_ON = ("sst2_train", "tweets_validation")
POSITIVE = (
    "good great excellent wonderful best nice happy beautiful love amazing brilliant enjoy perfect "
    "fun pleasant fantastic superb success strong positive"
).split()
NEGATIVE = (
    "bad terrible awful horrible worst nasty sad ugly hate boring stupid fail poor dull unpleasant "
    "disappointing waste failure weak negative"
).split()
SUBJECTIVE = (
    "funny entertaining dull clever boring moving smart predictable enjoyable performances comedy "
    "screenplay acting cinematic script audience sentimental charming silly witty"
).split()
OBJECTIVE = (
    "discovers father mother brother police murder town village husband wife killed meets decides "
    "daughter returns soldiers escape school sister kidnapped"
).split()
FOR = (
    "favorable soutenons voterons adopter utile salue bienvenue nécessaire accord indispensable"
).split()
AGAINST = (
    "défavorable rejet contre retrait inutile supprimer refuser dangereux excessif hostile".split()
)
FREE = "freedom democracy liberty individual free democratic elections pluralism prosperity".split()
SOCIALIST = (
    "imperialism imperialist socialist socialism colonialism militarist reactionary monopolies "
    "progressive"
).split()
WEST, EAST = "USA GBR FRA DEU CAN ITA NOR AUS JPN".split(), "RUS UKR POL BGR MNG CUB ROU".split()


def labelled(name: str, file: str, values: dict[str, float], sides: Any) -> tuple[Any, ...]:
    """Return a name, texts drawn at random, their labels as numbers, and the seeds."""
    frame = pd.DataFrame(_read_rows(file)).drop_duplicates("text")
    frame = frame[frame["label"].isin(values)]
    frame = frame.sample(min(N_TEXTS, len(frame)), random_state=0)
    return name, list(frame["text"]), frame["label"].map(values).to_numpy(), sides


def corpora() -> list[tuple[Any, ...]]:
    feeling = (POSITIVE, NEGATIVE)
    two, three = {"positive": 1, "negative": 0}, {"positive": 1, "neutral": 0, "negative": -1}
    kinds = {"subjective": 1, "objective": 0}
    return [
        labelled("sst2_train", "sst2/train.jsonl.gz", two, feeling),
        labelled("tweets_validation", "tweet_eval/sentiment_val.jsonl.gz", three, feeling),
        labelled("sst2_test", "sst2/test.jsonl.gz", two, feeling),
        labelled("tweets_test", "tweet_eval/sentiment_test.jsonl.gz", three, feeling),
        labelled(
            "subjectivity", "subjectivity/subjectivity.jsonl.gz", kinds, (SUBJECTIVE, OBJECTIVE)
        ),
    ]


def latent_semantic_scaling(texts: Sequence[str], seeds: Sequence[Sequence[str]]) -> Any:
    """Place texts by the mean polarity of their words in 300 dimensions (Watanabe 2021)."""
    counts = CountVectorizer(min_df=3).fit(texts)
    matrix = counts.transform(texts)
    words = TruncatedSVD(min(300, matrix.shape[1] - 1), random_state=0).fit(matrix)
    vectors = (words.components_ * words.singular_values_[:, None]).T
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1), 1e-12)[:, None]
    sides = [[vectors[counts.vocabulary_[w]] for w in side if w in counts.vocabulary_]
             for side in seeds]  # fmt: skip
    polarity = vectors @ (np.mean(sides[0], axis=0) - np.mean(sides[1], axis=0))
    return matrix @ polarity / np.maximum(np.asarray(matrix.sum(axis=1)).ravel(), 1)


def count_seeds(texts: Sequence[str], seeds: Sequence[Sequence[str]]) -> Any:
    """Place texts by the share of positive seeds among words, less that of negative ones."""
    counts = CountVectorizer(token_pattern=r"(?u)\b\w+\b", vocabulary=[*seeds[0], *seeds[1]])
    n = counts.transform(texts).toarray()
    length = np.array([max(1, len(text.split())) for text in texts])
    return (n[:, : len(seeds[0])].sum(axis=1) - n[:, len(seeds[0]) :].sum(axis=1)) / length


def correlation(x: Any, y: Any) -> float:
    return float(np.corrcoef(x, y)[0, 1]) if np.std(x) > 0 else 0.0


def occurring(texts: Sequence[str], seeds: Sequence[str]) -> list[str]:
    counts = CountVectorizer(token_pattern=r"(?u)\b\w+\b").fit(texts).vocabulary_
    return [one for one in seeds if one in counts]


def of_seeds(texts: list[str], y: Any, sides: Any, encoder: str, n_draws: int) -> dict[str, Any]:
    """Return the correlation of each method with labels, by draw of the seeds."""
    pools = [occurring(texts, side) for side in sides]
    both, sentences = (
        et.probing.Scale(encoder=encoder),
        et.probing.Scale(encoder=encoder, layer=None),
    )
    words = et.probing.Scale(encoder=et.encoders.FastTextEncoder(random_state=0))
    rng, scores, checks, begin = np.random.default_rng(0), {}, [], time.perf_counter()
    for _ in range(n_draws):
        seeds = [list(rng.choice(pool, min(N_SEEDS, len(pool)), replace=False)) for pool in pools]
        for name, scale in (("both", both), ("sentences", sentences), ("fasttext", words)):
            started = time.perf_counter()
            scale.set_params(positive=seeds[0], negative=seeds[1]).fit(texts)
            scores.setdefault(name, []).append(correlation(scale.positions_.values, y))
            if name == "both":
                seconds = time.perf_counter() - started
        own = float(both.seeds_["own_side"].mean())
        checks.append([own, both.explained_, both.random_explained_, seconds])
        scores.setdefault("counts", []).append(correlation(count_seeds(texts, seeds), y))
        scores.setdefault("lss", []).append(correlation(latent_semantic_scaling(texts, seeds), y))
        for n_labels in (50, 200):
            rows = rng.choice(len(y), n_labels, replace=False)
            known = np.full(len(y), np.nan)
            known[rows] = y[rows]
            ridge = sentences.set_params(positive=None, negative=None).fit(texts, known)
            rest = np.isnan(known)
            value = correlation(ridge.positions_.values[rest], y[rest])
            scores.setdefault(f"ridge_{n_labels}_labels", []).append(value)
    noise = []
    frequent = [word for word in both.words_["word"] if word.isalpha()]
    for _ in range(n_draws):
        drawn = list(rng.choice(frequent, 2 * N_SEEDS, replace=False))
        both.set_params(positive=drawn[:N_SEEDS], negative=drawn[N_SEEDS:]).fit(texts)
        noise.append([float(both.seeds_["own_side"].mean()), len(both.decisions_) > 0])
    return {
        "n_texts": len(texts),
        "correlation": {name: np.round(values, 4).tolist() for name, values in scores.items()},
        "mean": {name: round(float(np.mean(values)), 3) for name, values in scores.items()},
        "own_side_explained_random_seconds": np.round(checks, 5).tolist(),
        "random_seeds_own_side_warned": noise,
        "seconds": round(time.perf_counter() - begin, 1),
    }


def stance() -> dict[str, Any]:
    """Return how positions of French speeches tell for from against, all and by group."""
    frame = pd.DataFrame(_read_rows("fr_parlement/stance_pairs.jsonl.gz")).drop_duplicates("speech")
    frame = frame.sample(400, random_state=0).reset_index(drop=True)
    frame["speech"] = frame["speech"].str[:1000]
    y = (frame["label"] == "POUR").to_numpy(dtype=float)
    scores = of_seeds(list(frame["speech"]), y, (FOR, AGAINST), "multilingual-e5-small", 3)
    seeds = [occurring(frame["speech"], side) for side in (FOR, AGAINST)]
    scale = et.probing.Scale(*seeds, encoder="multilingual-e5-small", layer=None)
    positions = scale.fit(et.Corpus(frame, text="speech")).positions_
    groups = et.inference.shares(positions, "speaker_group").to_frame()[
        ["group", "n", "estimate", "low", "high"]
    ]
    shares = frame.assign(y=y).groupby("speaker_group")["y"].mean()
    groups["for"] = groups["group"].map(shares)
    large = groups[groups["n"] >= 10]
    scores["groups"] = large.round(3).to_dict("records")
    scores["group_correlation"] = round(correlation(large["estimate"], large["for"]), 3)
    return scores


def east_and_west() -> dict[str, Any]:
    """Return how well positions of states tell East from West at the United Nations, 1970-89."""
    frame = pd.DataFrame(_read_rows("un_general_debate/un_general_debate.jsonl.gz"))
    frame = frame[(frame["year"] < 1990) & frame["country"].isin(WEST + EAST)]
    passages = et.Corpus(frame.reset_index(drop=True), text="text").passages(max_words=120)
    rows = pd.DataFrame({"speech": passages.metadata["passage_of"]}).sample(frac=1, random_state=0)
    scores: dict[str, Any] = {}
    for layer, per_speech in (("middle", 3), (None, 12)):
        few = passages.take(np.sort(rows.groupby("speech").head(per_speech).index.to_numpy()))
        seeds = [occurring(few.texts, side) for side in (FREE, SOCIALIST)]
        scale = et.probing.Scale(*seeds, layer=layer).fit(few)
        table = (
            et.inference.shares(scale.positions_.measurement(units="year"), "country")
            .to_frame()
            .sort_values("estimate")
        )
        is_west = table["group"].isin(WEST)
        counted = count_seeds(list(few.texts), seeds)
        by_count = pd.Series(counted).groupby(few.metadata["country"].to_numpy()).mean()
        scores["both" if layer else "sentences"] = {
            "n_passages": len(few),
            "auc": round(float(roc_auc_score(is_west, table["estimate"])), 3),
            "auc_counts": round(float(roc_auc_score(by_count.index.isin(WEST), by_count)), 3),
            "own_side": float(scale.seeds_["own_side"].mean()),
            "order": table[["group", "estimate", "low", "high"]].round(3).to_dict("records"),
        }
    return scores


def main() -> None:
    """Measure the sections that are named, by default all, and keep each as soon as it is there."""
    result = json.loads(RESULT.read_text("utf-8")) if RESULT.is_file() else {}
    sections: dict[str, Any] = {
        name: partial(of_seeds, texts, y, sides, "all-MiniLM-L6-v2", N_DRAWS)
        for name, texts, y, sides in corpora()
    }
    sections |= {"stance_pairs": stance, "un_east_west": east_and_west}
    for name in sys.argv[1:] or sections:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result[name] = sections[name]()
        about = {"benchmark": "meaning_scales", "date": datetime.date.today().isoformat()}
        about |= {"machine": describe_machine(), "chosen_on": CHOSEN_ON}
        RESULT.write_text(json.dumps(result | about, indent=1, allow_nan=False) + "\n", "utf-8")
        print(name, json.dumps(result[name].get("mean", result[name]))[:2000], flush=True)


if __name__ == "__main__":
    main()
