"""The page that introduces a shared result: what it is, how to use it, what it found."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping
from typing import Any

from embedtopics.results import NOISE, TopicResult
from embedtopics.topics.recorded import LEFT_OUT, TEXTS

__all__ = ["model_card"]

MOST_TOPICS = 500
"""Topics in the table; what is longer nobody reads."""

MARKUP = re.compile(r"([\\`*_{}\[\]()#+\-.!|~$:@^=/])")


def model_card(result: TopicResult, name: str, license: str | None = None) -> str:
    """Write the README.md of a shared result.

    Labels and keywords come from texts that anybody may have written. In the page they are plain
    text, whatever they hold.

    Parameters
    ----------
    result : TopicResult
        As it is shared.
    name : str
        "user/name" on the hub.
    license : str, optional
        Identifier of the licence, such as "cc-by-4.0".

    Returns
    -------
    str
        Markdown with a head in YAML.
    """
    has_text = result.documents.of_row >= 0
    n_outside = int((result.labels[has_text] == NOISE).sum())
    found = f"{result.n_topics:,} topics in {int(has_text.sum()):,} texts"
    if result.settings.get(TEXTS) == LEFT_OUT:
        texts = (
            "The texts are **not** part of it: every text reads as empty, and what needs the words "
            "of the texts is refused. Embeddings and content hashes are part of it."
        )
    else:
        texts = "The texts are part of it."
    parts = [
        _head(result, license),
        f"# {plain(name.rpartition('/')[2])}",
        f"A topic model made with embedtopics: {found}, {n_outside:,} of them in no topic. {texts}",
        "## How to use it",
        "```python\nfrom embedtopics import topics\n\n"
        f"result = topics.from_pretrained({json.dumps(name)})\n"
        'topics.table(result)\ntopics.assign(result, ["a new text"]).labels\n```',
        "## Topics",
        _table(result),
        "## Settings",
        _list(result.settings),
        "## Versions",
        _list(result.versions),
    ]
    return "\n\n".join(parts) + "\n"


def plain(value: Any, length: int = 200) -> str:
    r"""Return a value as one line of Markdown that shows it as it is, cut at a length.

    Examples
    --------
    >>> print(plain("<b>*x*</b> | y"))
    &lt;b&gt;\*x\*&lt;\/b&gt; \| y
    """
    line = "".join(c if c.isprintable() else " " for c in " ".join(str(value).split()))
    line = line if len(line) <= length else line[: length - 1] + "…"
    return html.escape(MARKUP.sub(r"\\\1", line), quote=False)


def _head(result: TopicResult, license: str | None) -> str:
    """Return the head in YAML; quoted as JSON, which YAML reads alike."""
    languages = result.settings.get("languages") or ()
    codes = [code for code in languages if re.fullmatch("[a-z]{2,3}", str(code))]
    lines = ["library_name: embedtopics", 'tags: ["embedtopics", "topic-modeling"]']
    if codes:
        lines.append(f"language: {json.dumps(codes)}")
    if license is not None:
        lines.append(f"license: {json.dumps(license)}")
    return "\n".join(["---", *lines, "---"])


def _table(result: TopicResult) -> str:
    if not result.topics:
        return "There are none."
    rows = [
        f"| {topic.topic_id} | {topic.size:,} | {topic.share:.1%} | {plain(topic.label)} "
        f"| {plain(', '.join(topic.keywords))} |"
        for topic in result.topics[:MOST_TOPICS]
    ]
    head = "| Topic | Texts | Share | Name | Keywords |\n| ---: | ---: | ---: | --- | --- |\n"
    rest = result.n_topics - len(rows)
    return head + "\n".join(rows) + (f"\n\nAnd {rest:,} more." if rest > 0 else "")


def _list(values: Mapping[str, Any]) -> str:
    return "\n".join(f"- {plain(name)}: {plain(value)}" for name, value in values.items())
