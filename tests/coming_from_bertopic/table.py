"""The tables of docs/coming_from.md that say what becomes of each call of another library."""

import re
from pathlib import Path

PAGE = (Path(__file__).parents[2] / "docs" / "coming_from.md").read_text("utf-8")
HEADING = "## Coming from BERTopic"


def rows(heading=HEADING):
    """Return (theirs, ours), the code of each row, in order."""
    section = PAGE.split(heading, 1)[1].split("\n## ", 1)[0]
    found = []
    for line in section.splitlines():
        cells = re.split(r"(?<!\\)\|", line)[1:-1]
        forms = (r"\s*`([^`]+)`.*", r"\s*`(.+)`\s*")  # theirs may go on in words
        code = [re.fullmatch(form, cell) for form, cell in zip(forms, cells, strict=False)]
        if len(code) == 2 and all(code):
            found.append(tuple(match[1].replace("\\|", "|") for match in code))
    return found


def method_of(theirs):
    """Return the BERTopic method, or argument, that a row is about."""
    called = re.match(r"(?:topic_model|BERTopic)\.(\w+)", theirs)
    if called:
        return called[1]
    argument = re.match(r"BERTopic\((\w*)", theirs)
    return argument[1]


def habit_of(theirs):
    """Return the object and the attribute of a row, such as ("topic_model", "get_topics")."""
    called = re.match(r"(topic_model|model|corpus|encoder|embeddings)\.(\w+)", theirs)
    return called.groups() if called else None


def names_the_call(message, ours):
    """Return whether an error names what a row calls, whatever the arguments."""
    calls = re.findall(r"et\.[a-z]+\.\w+(?=\()|\.\w+(?=\()|\blen(?=\()", ours)
    attributes = re.findall(r"\.\w+$", ours)
    rows_taken = ["corpus["] * ours.startswith("corpus[")
    return any(name in message for name in [*calls, *attributes, *rows_taken])
