"""The command ``run-plan``: a frozen plan over all its choices, with every departure marked."""

from __future__ import annotations

import datetime
import hashlib
import json
import shutil
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from embedtopics._utils.checks import checked_choice
from embedtopics._utils.folders import parse_json, read_regular
from embedtopics.cli import _display as show
from embedtopics.errors import InputError

if TYPE_CHECKING:
    from embedtopics.corpus._corpus import Corpus
    from embedtopics.topics.results import Specifications, TopicResult

RECORD = "study.json"
"""File that records a run."""

SUPPORTED = 0.9
"""Smallest share of the specifications with which a hypothesis is called supported."""

# Keys of a plan, of its choices and of its hypotheses.
COLUMNS = ("text", "id", "time", "group")
KEYS = ("title", "date", "corpus", *COLUMNS, "question", "choices", "exclude", "hypotheses")
CHOICES = ("encoders", "n_topics", "seeds", "words", "truncation")
HYPOTHESIS = ("name", "topic", "quantity", "conclusion")
SIGNS = ("above 0", "below 0")


def run_plan(
    plan: Annotated[Path, Argument(help="The plan, a TOML file; see the guide After the fit.")],
    out: Annotated[
        Path, Option(help="Folder; runs after the first one get folders of their own in it.")
    ] = Path("plan"),
) -> None:
    """Run a frozen plan: answer its question with all choices, and test its hypotheses."""
    from embedtopics.topics import specifications

    content, digest = _read(plan)
    first = _first_run(out)
    target = out
    if first is not None:
        target = out / f"run-{len(list(out.glob('run-*'))) + 2}"

    # The main study takes the first of each list of choices; the specifications cross them all.
    corpus, excluded = _corpus(plan, content)
    choices = _choices(content["choices"])
    main = _fit(corpus, {name: values[0] for name, values in choices.items()})
    answers = specifications(corpus, **choices, question=content["question"], main=main)

    texts_digest = hashlib.sha256(main.distinct.hashes.tobytes()).hexdigest()
    departures = [*_departures(plan, content, first, texts_digest), *_missed_numbers(answers)]
    hypotheses = [_tested(answers, hypothesis) for hypothesis in content.get("hypotheses", ())]

    record = {
        "plan_sha256": digest,
        "date": content["date"],
        "run": datetime.date.today(),
        "texts_sha256": texts_digest,
        "excluded": excluded,
        "departures": departures,
        "hypotheses": hypotheses,
        "verdict": answers.verdict,
        "plan": content,
    }

    show.write_results_folder(main, target, title=content.get("title"))
    _write_answers(target, answers, record)
    shutil.copyfile(plan, target / "plan.toml")

    show.say(f"plan of {content['date']} (sha256 {digest[:12]}): {answers!r}")
    show.print_notes(f"departure from the plan: {departure}" for departure in departures)
    findings = [hypothesis["said"] for hypothesis in hypotheses] or answers.verdict
    for finding in findings:
        show.say(f"\n{finding}")
    typer.echo(f"\nwritten to {show.printable(str(target))}")


def _first_run(out: Path) -> Any:
    """Return the record of the first run in a folder; None if there is no run yet."""
    if (out / RECORD).is_file():
        return parse_json(read_regular(out / RECORD))
    if out.exists() and any(out.iterdir()):
        raise InputError(f"{out} holds other files; choose another folder with --out")
    return None


def _choices(planned: Mapping[str, list[Any]]) -> dict[str, Any]:
    """Return the choices of a plan, with the default of each that it leaves out."""
    choices = {name: planned.get(name, ["auto"]) for name in CHOICES}
    choices["seeds"] = planned.get("seeds", [0])
    for name, values in choices.items():
        if not values:
            raise InputError(name, "a list with at least one choice", [])
    return choices


def _fit(corpus: Corpus, choice: Mapping[str, Any]) -> TopicResult:
    """Fit the topics of the main study."""
    from embedtopics.encoders._registry import resolve_encoder
    from embedtopics.topics._model import TopicModel

    options = {}
    if choice["truncation"] != "auto":
        options["long_texts"] = choice["truncation"]
    model = TopicModel(
        resolve_encoder(choice["encoders"], cached=True, **options),
        n_topics=choice["n_topics"],
        words=choice["words"],
        random_state=choice["seeds"],
    )
    return model.fit(corpus).result_


def _write_answers(target: Path, answers: Specifications, record: Mapping[str, Any]) -> None:
    """Write the tables, the curve and the record of a run."""
    from embedtopics.corpus._table_files import write_table
    from embedtopics.plots import specifications as draw

    write_table(answers.to_frame(), target / "specifications.csv")
    summary = answers.summary.assign(departures="; ".join(record["departures"]))
    write_table(summary, target / "summary.csv")

    # The curve shows the first hypothesis, without one the first answer.
    topic = None
    quantity = None
    if record["hypotheses"]:
        topic, quantity = record["hypotheses"][0]["shown"]
    draw(answers, topic=topic, quantity=quantity).write_html(target / "curve.html")

    text = json.dumps(record, indent=1, default=str)
    (target / RECORD).write_text(text + "\n", "utf-8")


def _read(plan: Path) -> tuple[dict[str, Any], str]:
    """Return the content of a plan with all its keys checked, and its hash."""
    try:
        raw = read_regular(plan)
        content = tomllib.loads(raw.decode("utf-8"))
    except (OSError, ValueError) as error:
        reason = f"{plan} ({error})"
        raise InputError("plan", "a TOML file that can be read", found=reason) from None

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
    import numpy as np

    from embedtopics.corpus._corpus import Corpus

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
    before, now = dict(_flat(first["plan"])), dict(_flat(content))
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
    from embedtopics.topics import find

    # The topic and the quantity that the plan names by their words.
    topic = int(find(answers.main, hypothesis["topic"], n_topics=1, space="terms")["topic"].iloc[0])
    rows = answers.estimates[answers.estimates["topic"] == topic]
    rows = rows[rows["quantity"].str.startswith(hypothesis["quantity"])]
    if rows.empty:
        expected = f"the beginning of one of {', '.join(answers.summary['quantity'].unique())}"
        raise InputError("quantity", expected, hypothesis["quantity"])
    quantity = rows["quantity"].iloc[0]
    label = rows["label"].iloc[0]
    rows = rows[rows["quantity"] == quantity]

    # It holds where the whole interval is on its side of 0.
    sign = hypothesis.get("conclusion", SIGNS[0])
    holds = rows["low"] > 0 if sign == "above 0" else rows["high"] < 0
    share = float(holds.mean())
    verdict = "supported" if share >= SUPPORTED else "not supported"

    name = hypothesis.get("name", label)
    place = answers.summary.query("topic == @topic and quantity == @quantity").index[0]
    said = (
        f"{name} ({label}; {quantity}; {sign}): in {share:.0%} of {len(rows)} specifications, "
        f"{verdict}. In detail: {answers.verdict[place]}"
    )
    return {**hypothesis, "share": share, "said": said, "shown": (topic, quantity)}
