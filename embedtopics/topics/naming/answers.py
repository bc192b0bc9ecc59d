"""From what a language model answers to a name, or to the reason why it is none."""

from __future__ import annotations

import re
import unicodedata
from typing import Any

from embedtopics.topics.naming.endpoint import Failure

__all__ = ["content_of", "name_in", "name_key", "tokens_of"]

_THOUGHT = re.compile(r"\A\s*<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL | re.IGNORECASE)
_PREFIX = re.compile(r"\A(?:the )?(?:topic|name|label|title)(?: name)?\s*:\s*", re.IGNORECASE)
_MARKUP = re.compile(r"[<>`{}\\|]|\]\s*\(|://|\bwww\.|\bjavascript:", re.IGNORECASE)
_REFUSAL = re.compile(
    r"\A(?:i['\u2019]?m sorry|i am sorry|sorry\b|i can(?:no|['\u2019])t\b|i cannot|i am unable"
    r"|i['\u2019]m unable|as an ai\b)",
    re.IGNORECASE,
)
_PAIRS = {'"': '"', "'": "'", "\u201c": "\u201d", "\u2018": "\u2019", "\u00ab": "\u00bb",
          "\u201e": "\u201c", "\u300c": "\u300d", "*": "*", "_": "_"}  # fmt: skip
_JOINERS = "\u200c\u200d"


def content_of(answer: dict[str, Any]) -> str:
    """Return the text of an answer.

    Raises
    ------
    Failure
        Where the model refused, the text was cut, or there is none.
    """
    choices = answer.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    message = first.get("message") if isinstance(first, dict) else None
    if not isinstance(message, dict):
        raise Failure("the answer holds no choice with a message")
    assert isinstance(first, dict)
    if first.get("finish_reason") == "content_filter":
        raise Failure("the model's content filter refused")
    if message.get("refusal"):
        raise Failure("the model refused")
    content = message.get("content")
    if isinstance(content, list):  # some servers answer in parts
        content = "".join(
            part["text"]
            for part in content
            if isinstance(part, dict) and isinstance(part.get("text"), str)
        )
    if first.get("finish_reason") == "length":
        raise Failure("the answer was cut at max_tokens")
    if not isinstance(content, str) or not content.strip():
        raise Failure("the answer is empty")
    return content


def name_in(content: str, longest: int) -> str:
    """Return the name that an answer consists of.

    Quotation marks, emphasis, a heading such as "Topic:", a full stop at the end and, in front, a
    model's thoughts between tags are taken off.

    Parameters
    ----------
    content : str
    longest : int
        Characters of a name at most.

    Raises
    ------
    Failure
        Where it is no name: several lines, too long, markup, control characters, no letter, or a
        refusal.

    Examples
    --------
    >>> name_in('Topic: "Interest rates."', 60)
    'Interest rates'
    """
    lines = [line for line in _THOUGHT.sub("", content).strip().splitlines() if line.strip()]
    if len(lines) != 1:
        raise Failure(f"the answer has {len(lines)} lines in place of one")
    name = unicodedata.normalize("NFC", lines[0])
    hidden = next((c for c in name if _is_hidden(c)), None)
    if hidden is not None:
        raise Failure(f"the answer holds the control character U+{ord(hidden):04X}")
    name = _undressed(" ".join(name.split()))
    if _REFUSAL.match(name):
        raise Failure("the model refused")
    if _MARKUP.search(name):
        raise Failure("the answer holds markup or an address")
    if not any(map(str.isalpha, name)):
        raise Failure("the answer holds no letter")
    if len(name) > longest:
        raise Failure(f"the answer is longer than {longest} characters")
    return name


def _is_hidden(character: str) -> bool:
    """Tell whether a character is for control and not for reading."""
    if character in _JOINERS or character == "\t":
        return False
    return unicodedata.category(character)[0] == "C"


def _undressed(name: str) -> str:
    """Take off, in any order, what stands around a name."""
    before = None
    while name != before:
        before = name
        name = _PREFIX.sub("", name.strip())
        if len(name) > 1 and _PAIRS.get(name[0]) == name[-1]:
            name = name[1:-1]
        if name.endswith(".") and not re.search(r"\b\w\.\Z|\.\w+\.\Z", name):
            name = name[:-1]
    return name


def name_key(name: str) -> str:
    """Return what two names have in common that a reader takes for one.

    Examples
    --------
    >>> name_key("Climate-Change!") == name_key("climate change")
    True
    """
    folded = unicodedata.normalize("NFKC", name).casefold()
    return " ".join("".join(c if c.isalnum() else " " for c in folded).split())


def tokens_of(answer: dict[str, Any]) -> int | None:
    """Return the tokens that a server says to have used."""
    usage = answer.get("usage")
    total = usage.get("total_tokens") if isinstance(usage, dict) else None
    return total if isinstance(total, int) and not isinstance(total, bool) else None
