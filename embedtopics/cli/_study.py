"""The command ``study``: a frozen plan over all its choices, with every departure marked."""

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
from embedtopics.cli import _display as show
from embedtopics.errors import InputError

if TYPE_CHECKING:
    from embedtopics.corpus._corpus import Corpus
    from embedtopics.topics.results import Specifications

RECORD, ENOUGH = "study.json", 0.9
"""File of a run, and share of the specifications from which a hypothesis is called supported."""
COLUMNS = ("text", "id", "time", "group")
CHOICES = ("encoders", "n_topics", "seeds", "words", "truncation")
KEYS = ("title", "date", "corpus", *COLUMNS, "question", "choices", "exclude", "hypotheses")
HYPOTHESIS, SIGNS = ("name", "topic", "quantity", "conclusion"), ("above 0", "below 0")


def study(
    plan: Annotated[Path, Argument(help="The plan, a TOML file; see the guide After the fit.")],
    out: Annotated[
        Path, Option(help="Folder; runs after the first one get folders of their own in it.")
    ] = Path("study"),
) -> None:
    """Run a frozen plan: answer its question with all choices, and test its hypotheses."""
    from embedtopics.corpus._table_files import write_table
    from embedtopics.encoders._registry import resolve_encoder
    from embedtopics.plots import specifications as draw
    from embedtopics.topics import TopicModel, specifications

    content, digest = _read(plan)
    first = json.loads((out / RECORD).read_text("utf-8")) if (out / RECORD).is_file() else None
    if first is None and out.exists() and any(out.iterdir()):
        raise InputError(f"{out} holds other files; choose another folder with --out")
    target = out if first is None else out / f"run-{len([*out.glob('run-*')]) + 2}"
    corpus, excluded = _corpus(plan, content)
    choices = {name: content["choices"].get(name, ["auto"]) for name in CHOICES}
    choices["seeds"] = content["choices"].get("seeds", [0])
    if empty := [name for name, values in choices.items() if not values]:
        raise InputError(empty[0], "a list with at least one choice", [])
    encoder, n_topics, seed, words, truncation = (values[0] for values in choices.values())
    options = {} if truncation == "auto" else {"long_texts": truncation}
    encoder = resolve_encoder(encoder, cached=True, **options)
    model = TopicModel(encoder, n_topics=n_topics, words=words, random_state=seed).fit(corpus)
    main = model.result_
    answers = specifications(corpus, **choices, question=content["question"], main=main)
    texts = hashlib.sha256(main.documents.hashes.tobytes()).hexdigest()
    departures = [
        *_departures(plan, content, first, texts),
        *(
            f"{row.encoder} has {row.n_fitted} topics, not {row.n_topics}"
            for row in answers.choices.drop_duplicates(["encoder", "n_topics"]).itertuples()
            if isinstance(row.n_topics, int) and row.n_fitted != row.n_topics
        ),
    ]
    hypotheses = [_tested(answers, one) for one in content.get("hypotheses", ())]
    show.write_results_folder(main, target, title=content.get("title"))
    summary = answers.summary.assign(departures="; ".join(departures))
    for name, table in (("specifications", answers.to_frame()), ("summary", summary)):
        write_table(table, target / f"{name}.csv")
    draw(answers, *(hypotheses[0]["shown"] if hypotheses else ())).write_html(target / "curve.html")
    record = {
        "plan_sha256": digest, "date": content["date"], "run": datetime.date.today(),
        "texts_sha256": texts, "excluded": excluded, "departures": departures,
        "hypotheses": hypotheses, "verdict": answers.verdict, "plan": content,
    }  # fmt: skip
    (target / RECORD).write_text(json.dumps(record, indent=1, default=str) + "\n", "utf-8")
    shutil.copyfile(plan, target / "plan.toml")
    show.say(f"plan of {content['date']} (sha256 {digest[:12]}): {answers!r}")
    show.print_notes(f"departure from the plan: {one}" for one in departures)
    for one in hypotheses or [{"said": sentence} for sentence in answers.verdict]:
        show.say(f"\n{one['said']}")
    typer.echo(f"\nwritten to {show.printable(str(target))}")


def _read(plan: Path) -> tuple[dict[str, Any], str]:
    """Return the content of a plan with all its keys checked, and its hash."""
    try:
        raw = plan.read_bytes()
        content = tomllib.loads(raw.decode("utf-8"))
    except (OSError, ValueError) as error:
        reason = f"{plan} ({error})"
        raise InputError("plan", "a TOML file that can be read", found=reason) from None
    if missing := sorted({"date", "corpus", "question", "choices"} - {*content}):
        raise InputError("plan", "one with this key", found=f"no {missing[0]}")
    parts = [("plan", KEYS, content), ("choices", CHOICES, content["choices"])]
    parts += [("hypotheses", HYPOTHESIS, one) for one in content.get("hypotheses", ())]
    for name, keys, part in parts:
        if wrong := sorted(part.keys() - {*keys}):
            raise InputError(name, f"of the keys {', '.join(keys)}", found=wrong[0])
        checked_choice(part.get("conclusion", SIGNS[0]), "conclusion", SIGNS)
    if not isinstance(content["date"], datetime.date):
        raise InputError("date", "a date without quotation marks, 2026-11-28", content["date"])
    return content, hashlib.sha256(raw).hexdigest()


def _corpus(plan: Path, content: Mapping[str, Any]) -> tuple[Corpus, dict[str, int]]:
    """Return the texts without the excluded rows, and how many each rule excludes."""
    import numpy as np

    from embedtopics.corpus import Corpus

    options = {name: content[name] for name in COLUMNS if name in content}
    corpus = Corpus.from_file(plan.parent / content["corpus"], **options)
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


def _tested(answers: Specifications, hypothesis: Mapping[str, Any]) -> dict[str, Any]:
    """Return in how many specifications a hypothesis holds, and say so."""
    from embedtopics.topics import find

    topic = int(find(answers.main, hypothesis["topic"], n_topics=1, by="terms")["topic"].iloc[0])
    rows = answers.estimates[answers.estimates["topic"] == topic]
    rows = rows[rows["quantity"].str.startswith(hypothesis["quantity"])]
    if rows.empty:
        expected = f"the beginning of one of {', '.join(answers.summary['quantity'].unique())}"
        raise InputError("quantity", expected, hypothesis["quantity"])
    quantity, label = rows["quantity"].iloc[0], rows["label"].iloc[0]
    rows = rows[rows["quantity"] == quantity]
    sign = hypothesis.get("conclusion", SIGNS[0])
    share = float((rows["low"] > 0 if sign == SIGNS[0] else rows["high"] < 0).mean())
    name, verdict = hypothesis.get("name", label), "not " * (share < ENOUGH) + "supported"
    place = answers.summary.query("topic == @topic and quantity == @quantity").index[0]
    claim = f"{name} ({label}; {quantity}; {sign}): in {share:.0%} of {len(rows)} specifications, "
    claim += f"{verdict}. In detail: {answers.verdict[place]}"
    return {**hypothesis, "share": share, "said": claim, "shown": (topic, quantity)}
