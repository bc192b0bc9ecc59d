# ruff: noqa: E501
"""Values of a wrong kind for every parameter of the public calls."""

import inspect
import sys
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

import embedtopics as et
from embedtopics import topics
from tests.attacks.trials import Trial
from tests.factories import make_result


class Nothing:
    """An object that can do nothing, and says so in few words."""

    def __repr__(self) -> str:
        return "Nothing()"


WRONG: dict[str, Any] = {
    "None": None, "True": True, "str": "nonsense", "empty": "", "bytes": b"x", "5": 5, "-1": -1,
    "0": 0, "half": 0.5, "1e308": 1e308, "nan": np.nan, "inf": np.inf, "-inf": -np.inf,
    "huge": 10**30, "2**63": 2**63, "surrogate": "\ud800", "NUL": "a\0b", "NaT": pd.NaT, "NA": pd.NA,
    "complex": 1 + 1j, "[]": [], "[None]": [None], "[object]": [Nothing()], "[[1]]": [[1]],
    "[-1]": [-1], "[huge]": [10**30], "[str, 5]": ["a", 5], "{}": {}, "{1: None}": {1: None},
    "{str: []}": {"a": []}, "set": {1}, "object": Nothing(), "type": Nothing, "function": len,
    "array 0": np.zeros(0), "array 3x3": np.zeros((3, 3)), "array nan": np.full((4, 2), np.nan),
    "array of objects": np.array([None, "a"], dtype=object), "frame": pd.DataFrame({"a": [1, 1]}),
}  # fmt: skip

TRUTHY = {
    "show_progress", "diverse", "keep_repeats", "global_tuning", "evolution_tuning", "keep_all",
    "by_topic", "choose", "safe", "update_terms", "stop_words", "overwrite", "update", "verify",
    "mmap", "passages", "stems", "strict", "trust_remote_code", "local_files_only", "normalize",
    "show_progress_bar", "normalize_embeddings", "convert_to_tensor",
}  # fmt: skip
"""Parameters of which only the truth is asked."""

LOOSE = {"y", "X", "data", "id", "api_key", "token"}
"""Parameters that take any object, or are only looked up."""

UNUSED = {
    "Corpus of a list": ("encoding", "limit"), "Corpus of a frame": ("encoding", "limit"),
    "TopicModel.predict": ("embeddings",), "TopicModel.transform": ("embeddings",),
    "assign": ("embeddings", "encoder"), "extend": ("encoder",), "inspect_corpus": ("encoder",),
}  # fmt: skip
"""Parameters that the call of the trial has no use for."""


def of(name: str, call: Any, /, *, but: tuple[str, ...] = (), **given: Any) -> Iterator[Trial]:
    """Yield a trial for each parameter of a call and each wrong value, the others as given."""
    for parameter, about in inspect.signature(call).parameters.items():
        if parameter in but or about.kind is about.VAR_KEYWORD:
            continue
        for kind, value in WRONG.items():
            no_sense = kind in ("object", "bytes") and parameter not in TRUTHY | LOOSE
            no_sense = no_sense and parameter not in UNUSED.get(name, ())
            yield Trial(
                f"{name}({parameter}={kind})", partial(call, **{**given, parameter: value}),
                "refuse" if no_sense else None,
            )  # fmt: skip


class Vectors:
    """An encoder of hashes, which is fast and needs no file."""

    name = "hashes"
    settings = None

    def encode(self, texts: Any, **_: Any) -> Any:
        rows = [
            np.random.default_rng([ord(c) for c in text[:40]] or 0).normal(size=8) for text in texts
        ]
        return np.array(rows, dtype=np.float32).reshape(len(rows), 8)


def of_topics() -> Iterator[Trial]:
    result = make_result(120, 4)
    corpus = result.corpus
    rows = np.zeros((len(corpus), result.embeddings.shape[1]), dtype=np.float32)
    given: dict[str, dict[str, Any]] = {
        "CannotLink": {"pairs": [(0, 1)]}, "ManualLabels": {"labels": [0, 1]},
        "PartialLabels": {"labels": ["a", None]}, "SeedWords": {"seeds": [["river"]]},
        "ZeroShot": {"names": ["river"]}, "at_level": {"n_topics": 2},
        "assign": {"texts": corpus},
        "combine": {"results": [result, result]}, "concordance": {"term": "river"},
        "effects": {"covariates": "source", "n_resamples": 5}, "export": {"path": "out.csv"},
        "extend": {"corpus": ["a river"], "embeddings": rows[:1] + 1},
        "find": {"query": "river", "by": "terms"}, "keyness": {"target": 0},
        "fit_sample": {"source": corpus, "n": 60, "embeddings": rows + 1},
        "merge": {"topics": [0, 1]}, "reduce": {"n_topics": 2}, "remove": {"topics": 0},
        "rename": {"labels": {0: "a"}}, "replay": {"history": result}, "sample_documents": {"topic": 0},
        "save_result": {"folder": "saved"}, "score_labels": {"encoder": Vectors()},
        "split": {"topic": 0}, "with_stability": {"n_replicates": 2},
        "suggest_resolution": {"n_replicates": 2}, "token_topics": {"document": 0},
        "validation_sheets": {"n_questions": 2}, "with_keywords": {"keywords": {0: ["river"]}},
        "lineage": {"old": result, "new": result}, "report_card": {"n_resamples": 5},
        "inspect_corpus": {"corpus": corpus}, "load_result": {"folder": "none"},
        "from_pretrained": {"name": "a/b"}, "changes": {"trends": None},
        "tree_text": {"hierarchy": None}, "adopt": {"extension": None},
    }  # fmt: skip
    for name in topics.__all__:
        call = getattr(topics, name)
        if name in ("Constraint", "TopicModel", "name_topics", "push_to_hub"):
            continue  # the last two wait for servers
        known = dict(given.get(name, {}))
        if name in ("changes", "tree_text", "adopt"):
            source = {
                "changes": ("trends", lambda: topics.over_time(result, time="date")),
                "tree_text": ("hierarchy", lambda: topics.hierarchy(result)),
                "adopt": (
                    "extension",
                    lambda: topics.extend(result, ["a b"], embeddings=rows[:1] + 1),
                ),
            }[name]
            try:
                known[source[0]] = source[1]()
            except Exception as error:  # seen as the failure of every trial
                sys.stderr.write(f"{name}: {error}\n")
        if "result" in inspect.signature(call).parameters:
            known["result"] = result
        yield from of(name, call, but=("result",), **known)
        for kind in ("None", "str", "5", "[]", "object", "frame") if "result" in known else ():
            wrong = partial(call, **{**known, "result": WRONG[kind]})
            yield Trial(f"{name}(result={kind})", wrong, None if name == "replay" else "refuse")


def _fit(texts: Any, points: Any, **settings: Any) -> Any:
    of_fit = {n: settings.pop(n) for n in ("X", "y", "embeddings") if n in settings}
    model = et.TopicModel(**{"languages": ["en"], **settings})
    return model.fit(of_fit.pop("X", texts), **{"embeddings": points, **of_fit}).result_


def of_model() -> Iterator[Trial]:
    points = np.repeat([[1.0, 0.0], [0.0, 1.0]], 20, axis=0)
    points = points + 0.1 * np.random.default_rng(0).normal(size=points.shape)
    texts = [f"{'apple pie' if i < 20 else 'train station'} {i}" for i in range(40)]
    _fit(texts, points)
    names = [*inspect.signature(et.TopicModel).parameters, "X", "y", "embeddings"]
    for parameter in names:
        for kind, value in WRONG.items():
            no_sense = kind in ("object", "bytes") and parameter not in ("y", "show_progress")
            yield Trial(
                f"TopicModel({parameter}={kind})",
                partial(_fit, texts, points, **{parameter: value}), "refuse" if no_sense else None,
            )  # fmt: skip
    model = et.TopicModel(languages=["en"]).fit(texts, embeddings=points)
    for method in ("predict", "transform", "save", "load", "from_pretrained"):
        yield from of(
            f"TopicModel.{method}",
            getattr(model, method),
            **(
                {"X": texts[:2]}
                if method in ("predict", "transform")
                else {"folder": "m"}
                if method in ("save", "load")
                else {"name": "m"}
            ),
        )


def of_index() -> Iterator[Trial]:
    texts = [f"text number {n} of the {'river' if n % 2 else 'town'}" for n in range(12)]
    frame = pd.DataFrame({"text": texts, "n": range(12), "day": ["2020-01-01"] * 12})
    index = et.SearchIndex.build(frame, encoder=Vectors(), languages=["en"])
    given: dict[str, dict[str, Any]] = {
        "search": {"queries": "river"}, "similar": {"id": index.ids[0]}, "get": {"id": 5},
        "duplicates": {}, "remove": {"ids": []}, "save": {"folder": "copy"}, "export": {"path": "a.parquet"},
        "topics": {"result": None}, "load": {"folder": str(index.folder)},
        "add": {"data": [{"text": "more"}], "update": True},
        "build": {"data": frame, "encoder": Vectors(), "languages": ["en"]},
    }  # fmt: skip
    for method, known in given.items():
        yield from of(f"SearchIndex.{method}", getattr(index, method), **known)


def of_corpus() -> Iterator[Trial]:
    texts = ["a text", None, "another", "a third"]
    frame = pd.DataFrame({"text": texts, "n": [1, 2, 3, 4], "day": "2020-01-01"})
    frame.to_csv("some.csv", index=False)
    for name, data in {"list": texts, "frame": frame, "file": "some.csv"}.items():
        yield from of(
            f"Corpus of a {name}", et.Corpus, data=data, but=("data",) if name != "list" else ()
        )
    corpus = et.Corpus(frame)
    for method in ("head", "sample", "take", "passages"):
        yield from of(f"Corpus.{method}", getattr(corpus, method))


def of_encoder() -> Iterator[Trial]:
    def made(**settings: Any) -> Any:
        return et.SentenceEncoder(**settings).encode(["a text"])

    for parameter in inspect.signature(et.SentenceEncoder).parameters:
        for kind, value in WRONG.items():
            no_sense = kind in ("object", "bytes") and parameter not in TRUTHY
            yield Trial(f"SentenceEncoder({parameter}={kind})", partial(made, **{parameter: value}),
                        "refuse" if no_sense else None)  # fmt: skip
    encoder = et.SentenceEncoder()
    yield from of("SentenceEncoder.encode", encoder.encode, texts=["a"])


def trials() -> Iterator[Trial]:
    """Yield all trials of parameters."""
    for family in (of_corpus, of_model, of_index, of_topics, of_encoder):
        yield from family()
