"""The report of topics for reviewers: what was done and checked, and what was not."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from embedtopics._utils.display import Displayed, excerpt
from embedtopics.corpus._texts import EMPTY, MISSING
from embedtopics.decisions import Decision
from embedtopics.evaluation.results import SheetScore
from embedtopics.report._documents import Markup, Section, Table
from embedtopics.report._markup import asset, flatten
from embedtopics.report._sections import encoder_name, methods_text, topics_section
from embedtopics.topics.results import Edit, Reason, TopicResult

if TYPE_CHECKING:
    import pandas as pd

STAGES = ("corpus", "encoder", "neighbors", "reduction", "clustering", "terms")
N_GROUPS, N_PERIODS = 6, 6
"""Groups and periods of the tables of shares."""

NOT_DONE, BY_AUTHORS = "not done", "to be written by the authors"
SOURCES = {"bert": "reimers2019", "minilm": "reimers2019", "e5": "wang2024"}
SOURCES |= {"fasttext": "bojanowski2017", "lsa": "deerwester1990"}
"""Sources of encoders, by a part of their names."""


class Checks(NamedTuple):
    """What was done to validate a result; see `write_report`."""

    measures: pd.DataFrame | None = None
    validation: Sequence[SheetScore] = ()
    choices: Displayed | None = None
    verification: Displayed | None = None
    tables: Mapping[str, pd.DataFrame] = MappingProxyType({})


def study_sections(
    result: TopicResult, checks: Checks, *, is_page: bool = True
) -> tuple[list[Section], list[str]]:
    """Return the report and its references in BibTeX; a page has its own table of topics."""
    keys = _references_of(result, checks)
    references = json.loads(asset("references.json"))
    order = "The order of the checks follows ValiTex (Birkenmaier et al. 2024)."
    sections = [
        Section("Methods", [methods_text(result)]),
        Section("Sample and exclusions", [_sample(result)]),
        Section("Topics", [Markup(topics_section(result))] if is_page else _topics(result)),
        *_over_time(result),
        *_by_group(result),
        *_checked(result, checks),
        *record_sections(result.decisions, result.history, result.settings, result.versions),
        Section("Checklist", [order, _checklist(result, checks)]),
        Section("References", [[_cited(references[key]) for key in keys]]),
    ]
    return sections, [_entry(key, references[key]) for key in keys]


def record_sections(
    decisions: Sequence[Decision],
    history: Sequence[Edit] = (),
    settings: Mapping[str, Any] = MappingProxyType({}),
    versions: Mapping[str, str] = MappingProxyType({}),
) -> list[Section]:
    """Return decisions, edits, parameters and versions, each if there are any."""
    order = [*dict.fromkeys([*STAGES, *(one.stage for one in decisions)])]
    rows = [
        (one.stage, one.message, one.value if isinstance(one.value, (list, tuple)) else "")
        for one in sorted(decisions, key=lambda one: order.index(one.stage))
    ]
    values = [pair for pair in flatten(settings) if pair[1] is not None]
    tables = {
        "Decisions": Table(["stage", "decision", "values"], rows),
        "Edits after the fit": Table(["edit"], [(edit.message,) for edit in history]),
        "Settings": Table(["parameter", "value"], values),
        "Software": Table(["package", "version"], list(versions.items())),
    }
    return [Section(heading, [table]) for heading, table in tables.items() if table.rows]


def _sample(result: TopicResult) -> Table:
    """Count rows, exclusions and texts in no topic."""
    status, of_row = result.corpus.status, result.documents.of_row
    n_texts, reasons = int((of_row >= 0).sum()), result.reasons
    rows = [
        ("rows read", len(of_row)),
        ("rows with a missing text", int((status == MISSING).sum())),
        ("rows with an empty text", int((status == EMPTY).sum())),
        ("rows with text", n_texts),
        ("of these, repeated texts", n_texts - len(result.documents)),
        ("texts in a topic", int((result.labels >= 0).sum())),
        *(
            (f"texts in no topic: {reason.text}", int((reasons == reason).sum()))
            for reason in Reason
            if reason not in (Reason.IN_TOPIC, Reason.NO_TEXT) and (reasons == reason).any()
        ),
    ]
    return Table(["texts", "number"], rows)


def _topics(result: TopicResult) -> list[Any]:
    """Return the topics with terms, and their representative texts."""
    theme_of = {topic: theme.label for theme in result.themes for topic in theme.topics}
    topics = [
        (t.topic_id, t.label, theme_of[t.topic_id], f"{t.share:.1%}", t.keywords[:8])
        for t in result.topics
    ]
    texts = [
        (t.topic_id, t.label, excerpt(result.corpus.texts[t.representatives[0]], 300))
        for t in result.topics
        if t.representatives
    ]
    by_hand = ", ".join(topic.label for topic in result.topics if topic.is_named)
    named = f"Named by people: {by_hand}." if by_hand else "All names were made from the texts."
    return [
        f"{named} Shares are of the rows with text.",
        Table(["topic", "label", "theme", "share", "terms"], topics),
        "The most representative text of each topic:",
        Table(["topic", "label", "text"], texts),
    ]


def _over_time(result: TopicResult) -> list[Section]:
    """Return the share of each topic in up to eight periods, if there are dates."""
    times = result.corpus.time
    if times is None:
        return []
    days = times.to_numpy(dtype="datetime64[D]")
    is_dated = (result.documents.of_row >= 0) & ~np.isnat(days)
    if not is_dated.any() or not result.topics:
        return []
    n_days = int(np.ptp(days[is_dated]).astype(int))
    unit = "day" if n_days <= 62 else "month" if n_days <= 1830 else "year"
    periods = days[is_dated].astype(f"datetime64[{unit[0].upper()}]")
    parts = np.array_split(np.unique(periods), min(N_PERIODS, len(np.unique(periods))))
    of_part = [result.labels[is_dated][np.isin(periods, part)] for part in parts]
    if len(parts) < 2:
        return []
    names = [" to ".join(dict.fromkeys(map(str, (part[0], part[-1])))) for part in parts]
    heads = [f"{name} (n = {len(of):,})" for name, of in zip(names, of_part, strict=True)]
    note = f"Share of the topic in the rows; {is_dated.sum():,} rows have a date."
    return [Section("Over time", [note, Table(["topic", *heads], _shares(result, of_part))])]


def _shares(result: TopicResult, of_part: Sequence[Any]) -> list[tuple[str, ...]]:
    """Return each topic with its share in parts of the rows, given the topics of their rows."""
    return [
        (t.label, *(f"{np.mean(of == t.topic_id):.1%}" for of in of_part)) for t in result.topics
    ]


def _by_group(result: TopicResult) -> list[Section]:
    """Return the share of each topic in the largest groups, if there are groups."""
    groups, has_text = result.corpus.group, result.documents.of_row >= 0
    if groups is None or not result.topics or groups[has_text].nunique() < 2:
        return []
    names, labels = groups[has_text].dropna().astype(str), result.labels[has_text]
    sizes = names.value_counts().sort_index().sort_values(ascending=False, kind="stable")
    shown = sizes.index[:N_GROUPS]
    of_group = [labels[groups[has_text].astype(str).to_numpy() == name] for name in shown]
    n_more = len(sizes) - N_GROUPS
    more = f" Smaller groups left out: {n_more:,}." if n_more > 0 else ""
    note = f"Share of the topic in the rows of each {result.corpus.group_column}.{more}"
    heads = ["topic", *(f"{name} (n = {sizes[name]:,})" for name in shown)]
    return [Section("By group", [note, Table(heads, _shares(result, of_group))])]


def _checked(result: TopicResult, checks: Checks) -> list[Section]:
    """Return what was done to validate the topics."""
    scores, stability = checks.validation, result.stability
    rows = [
        (
            score.task.replace("_", " "),
            _spell(score.precision, score.low, score.high),
            f"{score.chance:.2f}",
            score.n_answers,
            score.n_coders,
            score.alpha,
        )
        for score in scores
    ]
    heads = ["task", "correct", "by chance", "answers", "people", "agreement (alpha)"]
    sections = [Section("Validation by people", [Table(heads, rows) if rows else "Not done."])]
    precisions = [score.by_topic.set_index("topic")["precision"].to_dict() for score in scores]
    by_topic = [
        (
            t.topic_id,
            t.label,
            t.size,
            None if stability is None else float(stability.recurrence[t.topic_id]),
            t.label_auc and t.label_auc[0],
            *(of.get(t.topic_id) for of in precisions),
        )
        for t in result.topics
    ]
    heads = ["topic", "label", "rows", "recurrence", "AUC of the label", *(s.task for s in scores)]
    note = "Scores of people are the shares of correct answers."
    sections.append(Section("Checks of each topic", [note, Table(heads, by_topic)]))
    if checks.measures is not None:
        measures: Any = checks.measures.itertuples()
        of_all = [(m.meaning, _spell(m.value, m.low, m.high), m.n) for m in measures]
        note, table = "Brackets contain 95 % intervals.", Table(["measure", "value", "n"], of_all)
        sections.append(Section("Measures", [note, table]))
    sections += [Section(heading, [frame]) for heading, frame in checks.tables.items()]
    for heading, content in (("Choices", checks.choices), ("Computed again", checks.verification)):
        if content is not None:
            sections.append(Section(heading, [repr(content), content.to_frame()]))
    return sections


def _spell(value: float, low: float, high: float) -> str:
    if value != value:
        return "unknown"
    shown = f"{value:,.2f}".removesuffix(".00")
    return shown if low != low else f"{shown} [{low:.2f}, {high:.2f}]"


def _checklist(result: TopicResult, checks: Checks) -> Table:
    """Return each check with what the report holds on it."""
    n_named = sum(topic.is_named for topic in result.topics)
    has_text = result.documents.of_row >= 0
    n_repeated = int(has_text.sum()) - len(result.documents)
    evidence = {
        "author": BY_AUTHORS,
        "exclusions": f"{np.sum(~has_text):,} rows without text, {n_repeated:,} repeated texts",
        "preparation": "see Methods and Decisions",
        "method": f"encoder {encoder_name(result)}, {result.n_topics:,} topics; see Methods",
        "keywords": f"{result.n_topics:,} topics, see Topics",
        "examples": "see Topics",
    }
    if n_named:
        evidence["names"] = f"{n_named:,} of {result.n_topics:,} topics"
    for score in checks.validation:
        spelled = _spell(score.precision, score.low, score.high)
        evidence[score.task] = f"{spelled} correct, {score.chance:.2f} by chance"
    if checks.measures is not None:
        value = checks.measures.set_index("measure")["value"]
        evidence["coherence"] = f"NPMI {value['npmi']:.2f}, diversity {value['diversity']:.2f}"
        if "ami" in value:
            evidence["classes"] = f"adjusted mutual information {value['ami']:.2f}"
    for name in checks.tables:
        key, said = ("choices", "") if name == "Choices" else ("coded", "for the authors to say: ")
        evidence[key] = f"{said}see {name}"
    if result.stability is not None:
        mean, n = np.nanmean(result.stability.recurrence), result.stability.n_replicates
        evidence["stability"] = f"mean recurrence {mean:.2f} in {n} resamples"
    for name, content in (("choices", checks.choices), ("verification", checks.verification)):
        if content is not None:
            evidence[name] = repr(content)
    rows = [
        (kind, check, evidence.get(key, NOT_DONE))
        for kind, check, key in json.loads(asset("checklist.json"))
    ]
    return Table(["evidence", "check", "state"], rows)


def _references_of(result: TopicResult, checks: Checks) -> list[str]:
    """Return the keys of the methods that were used, in alphabetical order."""
    reader, settings = encoder_name(result).lower(), result.settings
    is_automatic = not settings.get("clusterer") and result.constraints is None
    keys = {"birkenmaier2024", "johnson2021", "mcinnes2018"}
    keys |= {key for part, key in SOURCES.items() if part in reader}
    keys |= {"campello2013"} if is_automatic else set()
    keys |= {"zhu2002"} if settings.get("coverage", "auto") != 0 else set()
    keys |= {"grootendorst2022"} if result.weighting is None else set()
    keys |= {"hennig2007", "hubert1985"} if result.stability is not None else set()
    keys |= {"roder2015", "venna2001"} if checks.measures is not None else set()
    for score in checks.validation:
        keys.add("hoyle2025" if score.task == "topic_fit" else "chang2009")
    return [*sorted(keys), "embedtopics"]


def _entry(key: str, fields: Mapping[str, str]) -> str:
    """Return a reference in BibTeX; braces keep the case of titles."""
    braced = {name: f"{{{field}}}" if name == "title" else field for name, field in fields.items()}
    lines = [f"  {name} = {{{field}}}" for name, field in braced.items() if name != "type"]
    return ",\n".join([f"@{fields['type']}{{{key}", *lines]) + "\n}\n"


def _cited(fields: Mapping[str, str]) -> str:
    """Return a reference as a line."""
    names = fields["author"].strip("{}").split(" and ")
    people = ", ".join(" ".join(reversed(name.split(", "))) for name in names)
    where = next((fields[k] for k in ("journal", "booktitle", "institution") if k in fields), "")
    parts = ", ".join(filter(None, [where, fields.get("volume", ""), fields.get("pages", "")]))
    doi = f"doi:{fields['doi']}" if "doi" in fields else ""
    return ". ".join(filter(None, [f"{people} ({fields['year']})", fields["title"], parts, doi]))
