"""A frozen plan over all its choices: its hypotheses are tested, and every departure is marked.

A plan is a TOML file. Its first run writes a folder; further runs write folders in it, and mark
what differs from the first.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import shutil
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from embedtopics._utils.checks import checked_choice
from embedtopics._utils.folders import parse_json, read_regular
from embedtopics.corpus._corpus import Corpus
from embedtopics.corpus._table_files import write_table
from embedtopics.encoders._registry import resolve_encoder
from embedtopics.errors import InputError
from embedtopics.topics._model import TopicModel
from embedtopics.topics._specifications import specifications
from embedtopics.topics.reading._find import find
from embedtopics.topics.results import PlanResult, Specifications, TopicResult

RECORD = "study.json"
"""File that records a run."""

SUPPORTED = 0.9
"""Smallest share of the specifications with which a hypothesis is called supported."""

# Keys of a plan, of its choices and of its hypotheses.
COLUMNS = ("text", "id", "time", "group")
KEYS = ("title", "date", "corpus", *COLUMNS, "question", "choices", "exclude", "hypotheses")
CHOICES = ("encoders", "n_topics", "random_states", "words", "long_texts")
FORMER_CHOICES = {"seeds": "random_states", "truncation": "long_texts"}
HYPOTHESIS = ("name", "topic", "quantity", "conclusion")
SIGNS = ("above 0", "below 0")

# Columns of the hypotheses of a `PlanResult`.
FINDINGS = (
    "name", "topic", "topic_name", "quantity", "conclusion", "n", "share", "supported", "finding",
)  # fmt: skip


def run_plan(plan: str | Path, out: str | Path = "plan") -> PlanResult:
    """Run a frozen plan: answer its question with all choices, and test its hypotheses.

    Parameters
    ----------
    plan : str or Path
        A TOML file with the keys date, corpus (a file beside the plan), text, id, time, group
        (columns), question, choices (lists of encoders, n_topics, random_states, words and
        long_texts, see `specifications`), exclude (values of columns, and shorter_than in words),
        hypotheses (name, topic, quantity, conclusion) and title. The main study takes the first of
        each list of choices.
    out : str or Path
        A new folder, or that of an earlier run of a plan: further runs get folders of their own in
        it. It holds the main study, ``specifications.csv``, ``summary.csv``, the plan and
        ``study.json`` with its digest and the departures.

    Returns
    -------
    PlanResult

    Raises
    ------
    InputError
        If the plan cannot be read, lacks a key or has an unknown one, or if the folder holds other
        files.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import embedtopics as et
    >>> folder = tempfile.TemporaryDirectory()
    >>> demo = et.Corpus("embedtopics:demo", limit=120).to_frame()
    >>> demo.to_csv(f"{folder.name}/demo.csv", index=False)
    >>> plan = Path(folder.name, "plan.toml")
    >>> written = plan.write_text('''
    ... date = 2100-01-01
    ... corpus = "demo.csv"
    ... text = "text"
    ... question = "shares"
    ... [choices]
    ... encoders = ["tfidf"]
    ... n_topics = [4, 5]
    ... ''')
    >>> et.topics.run_plan(plan, f"{folder.name}/run")
    PlanResult(2 specifications, 0 of 0 hypotheses supported, 0 departures)
    >>> folder.cleanup()
    """
    planned = evaluate_plan(plan, out)
    planned.folder.mkdir(parents=True, exist_ok=True)
    planned.result.save(planned.folder / "model")
    write_answers(planned, plan)
    return planned


def evaluate_plan(plan: str | Path, out: str | Path) -> PlanResult:
    """Answer the question of a plan and test its hypotheses, without writing anything."""
    plan = Path(plan)
    out = Path(out)
    content, digest = _read(plan)
    first = _first_run(out)
    folder = out
    if first is not None:
        folder = out / f"run-{len(list(out.glob('run-*'))) + 2}"

    # The main study takes the first of each list of choices; the specifications cross them all.
    corpus, excluded = _corpus(plan, content)
    choices = _choices(content["choices"])
    main = _fit(corpus, {name: values[0] for name, values in choices.items()})
    answers = specifications(corpus, **choices, question=content["question"], main=main)

    texts_digest = hashlib.sha256(main.distinct.hashes.tobytes()).hexdigest()
    departures = (*_departures(plan, content, first, texts_digest), *_missed_numbers(answers))
    tested = [_tested(answers, hypothesis) for hypothesis in content.get("hypotheses", ())]

    record = {
        "plan_sha256": digest,
        "date": content["date"],
        "run": datetime.date.today(),
        "texts_sha256": texts_digest,
        "excluded": excluded,
        "departures": departures,
        "hypotheses": tested,
        "verdict": answers.verdict,
        "plan": content,
    }
    return PlanResult(
        folder=folder,
        result=main,
        specifications=answers,
        hypotheses=_tabulate(tested, answers),
        departures=departures,
        excluded=excluded,
        record=record,
    )


def write_answers(planned: PlanResult, plan: str | Path) -> None:
    """Write the tables, the plan and the record of a run into its folder."""
    folder = planned.folder
    answers = planned.specifications
    write_table(answers.to_frame(), folder / "specifications.csv")
    summary = answers.summary.assign(departures="; ".join(planned.departures))
    write_table(summary, folder / "summary.csv")

    text = json.dumps(planned.record, indent=1, default=str)
    (folder / RECORD).write_text(text + "\n", "utf-8")
    shutil.copyfile(plan, folder / "plan.toml")


def _first_run(out: Path) -> Any:
    """Return the record of the first run in a folder; None if there is no run yet."""
    if (out / RECORD).is_file():
        return parse_json(read_regular(out / RECORD))
    if out.exists() and any(out.iterdir()):
        expected = "a new folder, or that of an earlier run"
        remedy = "choose another folder"
        raise InputError("out", expected, found=f"{out}, which holds other files", remedy=remedy)
    return None


def _present_names(choices: Mapping[str, Any]) -> dict[str, Any]:
    """Return the choices of a plan under their present names."""
    return {FORMER_CHOICES.get(name, name): values for name, values in choices.items()}


def _tabulate(tested: list[dict[str, Any]], answers: Specifications) -> pd.DataFrame:
    """Return a row for each hypothesis."""
    rows = []
    for hypothesis in tested:
        topic, quantity = hypothesis["shown"]
        topic_name = answers.main.topics[topic].name
        share = hypothesis["share"]
        rows.append(
            {
                "name": hypothesis.get("name", topic_name),
                "topic": topic,
                "topic_name": topic_name,
                "quantity": quantity,
                "conclusion": hypothesis.get("conclusion", SIGNS[0]),
                "n": len(answers.choices),
                "share": share,
                "supported": share >= SUPPORTED,
                "finding": hypothesis["said"],
            }
        )
    return pd.DataFrame(rows, columns=list(FINDINGS))


def _choices(planned: Mapping[str, list[Any]]) -> dict[str, Any]:
    """Return the choices of a plan, with the default of each that it leaves out."""
    choices = {name: planned.get(name, ["auto"]) for name in CHOICES}
    choices["random_states"] = planned.get("random_states", [0])
    for name, values in choices.items():
        if not values:
            raise InputError(name, "a list with at least one choice", [])
    return choices


def _fit(corpus: Corpus, choice: Mapping[str, Any]) -> TopicResult:
    """Fit the topics of the main study."""
    options = {}
    if choice["long_texts"] != "auto":
        options["long_texts"] = choice["long_texts"]
    model = TopicModel(
        resolve_encoder(choice["encoders"], cached=True, **options),
        n_topics=choice["n_topics"],
        words=choice["words"],
        random_state=choice["random_states"],
    )
    return model.fit(corpus).result_


def _read(plan: Path) -> tuple[dict[str, Any], str]:
    """Return the content of a plan with all its keys checked, and its hash."""
    try:
        raw = read_regular(plan)
        content = tomllib.loads(raw.decode("utf-8"))
    except (OSError, ValueError) as error:
        reason = f"{plan} ({error})"
        raise InputError("plan", "a TOML file that can be read", found=reason) from None

    choices = content.get("choices")
    if isinstance(choices, dict):
        content["choices"] = _present_names(choices)

    if missing := sorted({"date", "corpus", "question", "choices"} - {*content}):
        raise InputError("plan", "one with this key", found=f"no {missing[0]}")

    tables = [("plan", KEYS, content), ("choices", CHOICES, content["choices"])]
    tables += [
        ("hypotheses", HYPOTHESIS, hypothesis) for hypothesis in content.get("hypotheses", ())
    ]
    for name, keys, table in tables:
        if wrong := sorted(table.keys() - {*keys}):
            raise InputError(name, f"of the keys {', '.join(keys)}", found=wrong[0])
        checked_choice(table.get("conclusion", SIGNS[0]), "conclusion", SIGNS)

    if not isinstance(content["date"], datetime.date):
        raise InputError("date", "a date without quotation marks, 2026-11-28", content["date"])
    return content, hashlib.sha256(raw).hexdigest()


def _corpus(plan: Path, content: Mapping[str, Any]) -> tuple[Corpus, dict[str, int]]:
    """Return the texts without the excluded rows, and how many each rule excludes."""
    options = {name: content[name] for name in COLUMNS if name in content}
    corpus = Corpus(plan.parent / content["corpus"], **options)
    excluded: dict[str, int] = {}
    is_used = np.ones(len(corpus), dtype=bool)
    for name, value in content.get("exclude", {}).items():
        if name == "shorter_than":
            is_out = np.array([len(text.split()) < value for text in corpus.texts])
        elif name in corpus.metadata:
            is_out = corpus.metadata[name].isin(value if isinstance(value, list) else [value])
        else:
            raise InputError("exclude", "shorter_than (words) or a column of the corpus", name)
        excluded[name] = int(np.sum(is_out & is_used))
        is_used &= ~np.asarray(is_out, dtype=bool)
    return corpus[is_used], excluded


def _flat(content: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """Yield the values of a plan under their dotted names."""
    if isinstance(content, Mapping):
        for key, value in content.items():
            yield from _flat(value, f"{name}.{key}" if name else key)
    else:
        yield name, json.dumps(content, default=str)


def _departures(plan: Path, content: Mapping[str, Any], first: Any, texts: str) -> Iterator[str]:
    """Yield what differs from the first run, or, in the first run, from the date of the plan."""
    if first is None:
        changed = datetime.date.fromtimestamp(plan.stat().st_mtime)
        if changed > content["date"]:
            yield f"{plan.name} was changed on {changed}, after its date {content['date']}"
        return
    planned = {**first["plan"], "choices": _present_names(first["plan"]["choices"])}
    before, now = dict(_flat(planned)), dict(_flat(content))
    for name in {**before, **now}:
        if before.get(name) != now.get(name):
            yield f"{name} is {now.get(name, 'left out')}, planned {before.get(name, 'without it')}"
    if texts != first["texts_sha256"]:
        yield "the texts are not those of the first run"


def _missed_numbers(answers: Specifications) -> Iterator[str]:
    """Yield a departure for each planned number of topics that a fit did not reach."""
    rows = answers.choices.drop_duplicates(["encoder", "n_topics"])
    for row in rows.itertuples():
        if isinstance(row.n_topics, int) and row.n_fitted != row.n_topics:
            yield f"{row.encoder} has {row.n_fitted} topics, not {row.n_topics}"


def _tested(answers: Specifications, hypothesis: Mapping[str, Any]) -> dict[str, Any]:
    """Return a hypothesis with the share of the specifications in which it holds, in words too."""
    # The topic and the quantity that the plan names by their words.
    topic = int(find(answers.main, hypothesis["topic"], n_topics=1, space="terms")["topic"].iloc[0])
    rows = answers.estimates[answers.estimates["topic"] == topic]
    rows = rows[rows["quantity"].str.startswith(hypothesis["quantity"])]
    if rows.empty:
        expected = f"the beginning of one of {', '.join(answers.summary['quantity'].unique())}"
        raise InputError("quantity", expected, hypothesis["quantity"])
    quantity = rows["quantity"].iloc[0]
    topic_name = rows["topic_name"].iloc[0]
    rows = rows[rows["quantity"] == quantity]

    # It holds where the whole interval is on its side of 0.
    sign = hypothesis.get("conclusion", SIGNS[0])
    holds = rows["low"] > 0 if sign == "above 0" else rows["high"] < 0
    share = float(holds.mean())
    verdict = "supported" if share >= SUPPORTED else "not supported"

    name = hypothesis.get("name", topic_name)
    place = answers.summary.query("topic == @topic and quantity == @quantity").index[0]
    said = (
        f"{name} ({topic_name}; {quantity}; {sign}): in {share:.0%} of {len(rows)} specifications, "
        f"{verdict}. In detail: {answers.verdict[place]}"
    )
    return {**hypothesis, "share": share, "said": said, "shown": (topic, quantity)}
