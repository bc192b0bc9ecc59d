"""The report of topics for reviewers: what was done and checked, and what was not."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from embedtopics._utils.checks import is_whole
from embedtopics._utils.display import Displayed, excerpt, spell_count
from embedtopics.annotation.results import SheetScore
from embedtopics.corpus._classes import spell_column
from embedtopics.corpus._texts import EMPTY, MISSING
from embedtopics.plots._colors import topic_colors
from embedtopics.protocols import BoolArray
from embedtopics.report._documents import Section, Table, asset, fill, text
from embedtopics.results import Decision
from embedtopics.topics.results import Edit, Reason, Topic, TopicResult

if TYPE_CHECKING:
    import pandas as pd

STAGES = ("corpus", "encoder", "neighbors", "reduction", "clustering", "terms")
N_GROUPS, N_PERIODS = 6, 6
"""Groups and periods of the tables of shares."""

SOURCES = {"bert": "reimers2019", "minilm": "reimers2019", "e5": "wang2024"}
SOURCES |= {"fasttext": "bojanowski2017", "lsa": "deerwester1990"}
"""Sources of encoders, by a part of their names."""

_part = partial(fill, "topics.html")

IN_METHODS = (
    "rows_taken", "sample", "passages", "empty", "duplicates", "truncated", "long_texts",
    "labels", "manual_labels", "seed_words", "names", "names_without_texts", "guided_topics",
    "seeds_without_topic", "labels_respected", "n_topics", "languages", "boilerplate",
    "accounts", "closing_words", "stop_words", "function_words",
)  # fmt: skip
"""Decisions whose messages belong to the methods."""


class Checks(NamedTuple):
    """What was done to validate a result; see `write_report`."""

    evaluation: pd.DataFrame | None = None
    scores: Sequence[SheetScore] = ()
    tables: Mapping[str, pd.DataFrame] = MappingProxyType({})
    computed: Mapping[str, Displayed] = MappingProxyType({})  # by heading


def study_sections(
    result: TopicResult, checks: Checks, *, is_page: bool = True
) -> tuple[list[Section], list[str]]:
    """Return the report and its references in BibTeX; a page has its own table of topics."""
    keys = _references_of(result, checks)
    entries = re.split(r"\n(?=@)", asset("references.bib"))
    entry_of = {re.findall(r"\w+", entry)[1]: entry for entry in entries}
    order = "The order of the checks follows ValiTex (Birkenmaier et al. 2024)."
    sections = [
        Section("Methods", [methods_text(result)]),
        Section("Sample and exclusions", [_sample(result)]),
        Section("Topics", _topics_on_page(result) if is_page else _topics(result)),
        *_over_time(result),
        *_by_group(result),
        *_checked(result, checks),
        *record_sections(result.decisions, result.history, result.settings, result.versions),
        Section("Checklist", [order, _checklist(result, checks)]),
        Section("References", [[_cited(entry_of[key]) for key in keys]]),
    ]
    return sections, [entry_of[key] for key in keys]


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
    values = [pair for pair in _flatten(settings) if pair[1] is not None]
    tables = {
        "Decisions": Table(["stage", "decision", "values"], rows),
        "Edits after the fit": Table(["edit"], [(edit.message,) for edit in history]),
        "Settings": Table(["parameter", "value"], values),
        "Software": Table(["package", "version"], list(versions.items())),
    }
    return [Section(heading, [table]) for heading, table in tables.items() if table.rows]


def _flatten(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield nested settings as (dotted name, value) pairs."""
    for name, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from _flatten(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def encoder_name(result: TopicResult) -> str:
    """Return the name of the encoder."""
    name = _stage(result.settings.get("encoder"))
    return "given embeddings" if name == "given" else name


def _stage(setting: Any) -> str:
    """Return the name of a stage, or nothing."""
    is_mapping = isinstance(setting, Mapping)
    return str((setting.get("name") or setting.get("class") if is_mapping else setting) or "")


def methods_text(result: TopicResult) -> str:
    """Return a citable paragraph on the methods."""
    settings, documents = result.settings, result.distinct
    reader, vectors = encoder_name(result), f"vectors of {result.embeddings.shape[1]:,} dimensions"
    coverage = settings.get("coverage", "auto")
    stages = {name: _stage(settings.get(name)) for name in ("reducer", "clusterer", "weighting")}
    is_manual = (settings.get("constraints") or {}).get("kind") == "manual_labels"
    seed, number = settings.get("seed"), settings.get("n_topics", "auto")
    number = f"set to {number}" if is_whole(number) else f"chosen by the program ({number})"
    messages = {one.name: one.message for one in result.decisions}
    sentences = [
        f"The corpus has {len(documents.of_row):,} rows with {len(documents):,} distinct texts.",
        f"Texts were represented by precomputed {vectors}." if reader == "given embeddings"
        else f"Texts were represented by {vectors} (encoder: {reader}).",
        "Neighbours were found by cosine (FAISS"
        + (f", {settings['n_neighbors']} of each text)" if "n_neighbors" in settings else ")")
        + f"; vectors were reduced to {result.coordinates.shape[1]:,} dimensions by "
        + (stages["reducer"] or "principal components that were averaged over neighbours") + ".",
        "People gave the topics of the texts." if is_manual
        else f"Topics were found by {stages['clusterer']}." if stages["clusterer"]
        else "The centers of the topics come from the dense clusters of HDBSCAN's hierarchy "
        f"(Campello et al. 2013); k-means then assigns the texts. Their number was {number}.",
        "" if is_manual else "Outliers were not assigned." if coverage == 0
        else f"Label propagation assigned outliers (coverage: {coverage}).",
        f"{result.n_topics:,} topics contain {result.coverage:.1%} of the rows with text; the "
        "other rows are outliers.",
        "Topics are described by class-based TF-IDF (Grootendorst 2022)."
        if stages["weighting"] in ("", "ClassTfidf")
        else f"Topics are described by the weights of {stages['weighting']}.",
        *(messages[name] for name in IN_METHODS if name in messages),
        *(f"After the fit: {edit.message}." for edit in result.history),
        "The map is a UMAP layout (McInnes et al. 2018); large distances are not meaningful.",
        "" if seed is None else f"Seed {seed}.",
    ]  # fmt: skip
    if program := result.versions.get("embedtopics", ""):
        names = ("numpy", "scikit-learn", "faiss-cpu", "python")
        others = ", ".join(f"{name} {result.versions.get(name, '')}" for name in names)
        sentences.append(f"Made with embedtopics {program} ({others}).")
    return " ".join(filter(None, sentences))


def _sample(result: TopicResult) -> Table:
    """Count rows, exclusions and texts in no topic."""
    status, of_row = result.corpus.status, result.distinct.of_row
    n_texts, reasons = int((of_row >= 0).sum()), result.reasons
    rows = [
        ("rows read", len(of_row)),
        ("rows with a missing text", int((status == MISSING).sum())),
        ("rows with an empty text", int((status == EMPTY).sum())),
        ("rows with text", n_texts),
        ("of these, repeated texts", n_texts - len(result.distinct)),
        ("texts in a topic", int((result.labels >= 0).sum())),
        *(
            (f"texts in no topic: {reason.text}", int((reasons == reason).sum()))
            for reason in Reason
            if reason not in (Reason.IN_TOPIC, Reason.NO_TEXT) and (reasons == reason).any()
        ),
    ]
    return Table(["texts", "number"], rows)


def _topics_on_page(result: TopicResult) -> list[str]:
    """Return the table of topics with keywords and representative documents."""
    if not result.topics:
        return ["No topics were found: no cluster of documents is dense enough."]
    if (stability := result.stability) is None:
        measure, note = "Persistence", _part("persistence")
        figures = [_figure(topic.persistence) for topic in result.topics]
    else:
        measure = "Recurrence"
        note = _part("recurrence", n_replicates=stability.n_replicates)
        ends = zip(stability.recurrence, stability.low, stability.high, strict=True)
        figures = [
            f'{_figure(mean)} <span class="nowrap">({_figure(low)}&ndash;{_figure(high)})</span>'
            for mean, low, high in ends
        ]
    largest = max(topic.share for topic in result.topics) or 1.0
    colors, rows = topic_colors(result), []
    for theme in result._themes:
        if len(result._themes) < result.n_topics:
            label, n = text(theme.label, 80), spell_count(len(theme.topics), "topic", "topics")
            rows.append(_part("theme", theme=theme, label=label, n=n))
        for topic in (result.topics[i] for i in theme.topics):
            row = _part(
                "row",
                topic=topic,
                label=text(topic.name, 80),
                color=colors[topic.topic_id],
                filled=100 * topic.share / largest,
                measure=measure,
                figure=figures[topic.topic_id],
                keywords=_keywords(topic, colors[topic.topic_id]),
                representatives=_representatives(result, topic),
            )
            rows.append(row)
    return [_part("table", note=note, measure=measure, rows="\n".join(rows))]


def _keywords(topic: Topic, color: str) -> str:
    largest = max(topic.weights, default=0.0) or 1.0
    keyword = partial(_part, "keyword", color=color)
    return " ".join(
        keyword(term=text(term, 60), weight=weight, filled=100 * weight / largest)
        for term, weight in zip(topic.keywords, topic.weights, strict=True)
    )


def _figure(value: float) -> str:
    """Return a figure from 0 to 1, or a dash if it is unknown."""
    return "&ndash;" if math.isnan(value) else f"{value:.2f}"


def _representatives(result: TopicResult, topic: Topic) -> str:
    if not topic.representatives:
        return ""
    corpus, quotes = result.corpus, []
    for row in topic.representatives:
        origin = f"row {row:,}"
        if corpus.time is not None and not corpus.time.isna().iloc[row]:
            origin += f", {corpus.time.iloc[row].date().isoformat()}"
        quotes.append(_part("quote", text=text(corpus.texts[row], 400), origin=origin))
    heading = spell_count(len(quotes), "representative document", "representative documents")
    return _part("quotes", heading=heading, quotes="".join(quotes))


def _topics(result: TopicResult) -> list[Any]:
    """Return the topics with terms, and their representative texts."""
    theme_of = {topic: theme.label for theme in result._themes for topic in theme.topics}
    topics = [
        (t.topic_id, t.name, theme_of[t.topic_id], f"{t.share:.1%}", t.keywords[:8])
        for t in result.topics
    ]
    texts = [
        (t.topic_id, t.name, excerpt(result.corpus.texts[t.representatives[0]], 300))
        for t in result.topics
        if t.representatives
    ]
    by_hand = ", ".join(topic.name for topic in result.topics if topic.is_named)
    named = f"Named by people: {by_hand}." if by_hand else "All names were made from the texts."
    return [
        f"{named} Shares are of the rows with text.",
        Table(["topic", "name", "theme", "share", "terms"], topics),
        "The most representative text of each topic:",
        Table(["topic", "name", "text"], texts),
    ]


def _over_time(result: TopicResult) -> list[Section]:
    """Return the share of each topic in up to six periods, if there are dates."""
    times = result.corpus.time
    if times is None or not result.topics:
        return []
    days = times.to_numpy(dtype="datetime64[D]")
    is_dated = (result.distinct.of_row >= 0) & ~np.isnat(days)
    if len(np.unique(days[is_dated])) < 2:
        return []
    n_days = int(np.ptp(days[is_dated]).astype(int))
    unit = "D" if n_days <= 62 else "M" if n_days <= 1830 else "Y"
    units = days.astype(f"datetime64[{unit}]")
    present = np.unique(units[is_dated])
    periods = {
        " to ".join(dict.fromkeys(map(str, (part[0], part[-1])))): is_dated & np.isin(units, part)
        for part in np.array_split(present, min(N_PERIODS, len(present)))
    }
    note = f"Share of the topic in the rows; {is_dated.sum():,} rows have a date."
    return [Section("Over time", [note, _shares(result, periods)])]


def _by_group(result: TopicResult) -> list[Section]:
    """Return the share of each topic in the largest groups, if there are groups."""
    groups = result.corpus.group
    if groups is None or not result.topics:
        return []
    names = spell_column(groups).where(result.distinct.of_row >= 0)
    sizes = names.value_counts().sort_index().sort_values(ascending=False, kind="stable")
    if len(sizes) < 2:
        return []
    largest = {name: (names == name).to_numpy() for name in sizes.index[:N_GROUPS]}
    n_more = len(sizes) - len(largest)
    more = f" Smaller groups left out: {n_more:,}." if n_more else ""
    note = f"Share of the topic in the rows of each {result.corpus.group_column}.{more}"
    return [Section("By group", [note, _shares(result, largest)])]


def _shares(result: TopicResult, parts: Mapping[str, BoolArray]) -> Table:
    """Return the share of each topic in parts of the rows, which masks select."""
    heads = [f"{name} (n = {is_in.sum():,})" for name, is_in in parts.items()]
    labels = [result.labels[is_in] for is_in in parts.values()]
    rows = [
        (topic.name, *(f"{np.mean(one == topic.topic_id):.1%}" for one in labels))
        for topic in result.topics
    ]
    return Table(["topic", *heads], rows)


def _checked(result: TopicResult, checks: Checks) -> list[Section]:
    """Return what was done to validate the topics."""
    scores, stability = checks.scores, result.stability
    shares = [_spell(score.precision, score.low, score.high) for score in scores]
    rows = [
        (s.task.replace("_", " "), share, f"{s.chance:.2f}", s.n_answers, s.n_coders, s.alpha)
        for s, share in zip(scores, shares, strict=True)
    ]
    heads = ["task", "correct", "by chance", "answers", "people", "agreement (alpha)"]
    sections = [Section("Validation by people", [Table(heads, rows) if rows else "Not done."])]
    precisions = [score.by_topic.set_index("topic")["precision"].to_dict() for score in scores]
    by_topic = [
        (
            t.topic_id,
            t.name,
            t.size,
            None if stability is None else float(stability.recurrence[t.topic_id]),
            t.name_auc and t.name_auc[0],
            *(of.get(t.topic_id) for of in precisions),
        )
        for t in result.topics
    ]
    heads = ["topic", "name", "rows", "recurrence", "AUC of the name", *(s.task for s in scores)]
    note = "Scores of people are the shares of correct answers."
    sections.append(Section("Checks of each topic", [note, Table(heads, by_topic)]))
    if checks.evaluation is not None:
        measures: Any = checks.evaluation.itertuples()
        of_all = [(m.meaning, _spell(m.value, m.low, m.high), m.n) for m in measures]
        note, table = "Brackets contain 95 % intervals.", Table(["measure", "value", "n"], of_all)
        sections.append(Section("Measures", [note, table]))
    sections += [Section(heading, [frame]) for heading, frame in checks.tables.items()]
    for heading, content in checks.computed.items():
        sections.append(Section(heading, [repr(content), content.to_frame()]))
    return sections


def _spell(value: float, low: float, high: float) -> str:
    if value != value:
        return "unknown"
    shown = f"{value:,.2f}".removesuffix(".00")
    return shown if low != low else f"{shown} [{low:.2f}, {high:.2f}]"


def _checklist(result: TopicResult, checks: Checks) -> Table:
    """Return each check with what the report holds on it."""
    has_text, evidence = result.distinct.of_row >= 0, {}
    n_named = sum(topic.is_named for topic in result.topics)
    if n_named:
        evidence["names"] = f"{n_named:,} of {result.n_topics:,} topics"
    for score in checks.scores:
        spelled = _spell(score.precision, score.low, score.high)
        evidence[score.task] = f"{spelled} correct, {score.chance:.2f} by chance"
    if checks.evaluation is not None:
        value = checks.evaluation.set_index("measure")["value"]
        evidence["coherence"] = f"NPMI {value['npmi']:.2f}, diversity {value['diversity']:.2f}"
        if "ami" in value:
            evidence["classes"] = f"adjusted mutual information {value['ami']:.2f}"
    for name in checks.tables:
        key, task = (name, "") if name == "Choices" else ("coded", "for the authors to say: ")
        evidence[key] = f"{task}see {name}"
    if result.stability is not None:
        mean, n = np.nanmean(result.stability.recurrence), result.stability.n_replicates
        evidence["stability"] = f"mean recurrence {mean:.2f} in {n} resamples"
    evidence |= {heading: repr(content) for heading, content in checks.computed.items()}
    facts: dict[str, Any] = {"encoder": encoder_name(result), "n_topics": result.n_topics}
    facts |= {"n_empty": np.sum(~has_text), "n_repeated": has_text.sum() - len(result.distinct)}
    rows = [
        (kind, check, evidence.get(key) or state.format(**facts))
        for kind, check, key, state in json.loads(asset("checklist.json"))
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
    keys |= {"roder2015", "venna2001"} if checks.evaluation is not None else set()
    keys |= {"hoyle2025" if s.task == "topic_fit" else "chang2009" for s in checks.scores}
    return [*sorted(keys), "embedtopics"]


def _cited(entry: str) -> str:
    """Return a reference in BibTeX as a line."""
    fields = {name: value.strip("{}") for name, value in re.findall(r"(\w+) = (\{.*\})", entry)}
    names = fields["author"].split(" and ")
    people = ", ".join(" ".join(reversed(name.split(", "))) for name in names)
    where = next((fields[k] for k in ("journal", "booktitle", "institution") if k in fields), "")
    parts = ", ".join(filter(None, [where, fields.get("volume", ""), fields.get("pages", "")]))
    doi = f"doi:{fields['doi']}" if "doi" in fields else ""
    return ". ".join(filter(None, [f"{people} ({fields['year']})", fields["title"], parts, doi]))
