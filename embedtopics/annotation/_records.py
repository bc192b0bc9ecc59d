"""What the events of a journal add up to: the answers that hold, by text and annotator."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from embedtopics.annotation._codebook import Label, StudyDesign, read_labels
from embedtopics.errors import CorruptFileError

ADJUDICATED = "adjudicated"
"""Stream of the answers that decide where annotators differ."""


@dataclass(frozen=True)
class Answer:
    """What one annotator said of one text; `labels` is None where it was skipped."""

    text: str
    id: str
    by: str
    labels: tuple[str, ...] | None
    stream: str
    unsure: bool = False
    note: str = ""
    time: str = ""
    number: int = -1
    spans: tuple[tuple[str, int, int], ...] = ()  # label, begin and end, in characters


class Records:
    """The state of a study, made of its events in their order."""

    def __init__(self, header: Mapping[str, Any]) -> None:
        self.kind: str = header["labels_kind"]
        self.labels: tuple[Label, ...] = read_labels(header["labels"])
        self.design = StudyDesign(**header["design"])
        self.test: frozenset[str] = frozenset(header["test"])
        self.stacks: dict[str, dict[str, list[Answer]]] = {}
        self.sequence: dict[str, list[str]] = {}
        self.first_streams: dict[str, str] = {}
        self.streams: Counter[str] = Counter()
        self.version = 0

    def apply(self, event: Mapping[str, Any]) -> None:
        """Take in one event; a field that is missing or wrong is a damaged journal."""
        try:
            self._apply(event)
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            message = f"event {event.get('n')!r} of the journal is damaged: {error}"
            raise CorruptFileError(f"{message}; restore it from a copy") from error
        self.version += 1

    def _apply(self, event: Mapping[str, Any]) -> None:
        if event["event"] == "answer":
            labels = None if event["labels"] is None else tuple(map(str, event["labels"]))
            self._add(Answer(
                event["text"], event["id"], event["by"], labels, event["stream"],
                bool(event["unsure"]), str(event["note"]), event["time"], int(event["n"]),
                tuple((str(name), int(a), int(b)) for name, a, b in event.get("spans", ())),
            ))  # fmt: skip
        elif event["event"] == "undo":
            self.undo(event["by"])
        elif event["event"] == "codebook":
            self.labels = read_labels(event["labels"])
            self._rename(event["renamed"])
        elif event["event"] != "study":
            raise ValueError(f"an event {event['event']!r} is not known")

    def _add(self, answer: Answer) -> None:
        stacks = self.stacks.setdefault(answer.text, {})
        if answer.text not in self.first_streams:
            self.first_streams[answer.text] = answer.stream
            self.streams[answer.stream] += 1
        stacks.setdefault(answer.by, []).append(answer)
        self.sequence.setdefault(answer.by, []).append(answer.text)

    def undo(self, by: str) -> str | None:
        """Take back the last answer of an annotator; return its text."""
        if not self.sequence.get(by):
            return None
        text = self.sequence[by].pop()
        self.stacks[text][by].pop()
        if not self.stacks[text][by]:
            del self.stacks[text][by]
        if not self.stacks[text]:
            del self.stacks[text]
            self.streams[self.first_streams.pop(text)] -= 1
        return text

    def _rename(self, renamed: Mapping[str, str]) -> None:
        for stacks in self.stacks.values():
            for stack in stacks.values():
                for place, answer in enumerate(stack):
                    if answer.labels is not None:
                        names = [renamed.get(name, name) for name in answer.labels]
                        spans = tuple((renamed.get(n, n), a, b) for n, a, b in answer.spans)
                        named = tuple(dict.fromkeys(names))
                        stack[place] = replace(answer, labels=named, spans=spans)

    def answers(self, text: str) -> dict[str, Answer]:
        """Return the answer of each annotator that holds."""
        return {by: stack[-1] for by, stack in self.stacks.get(text, {}).items()}

    def stream_of(self, text: str) -> str:
        """Return the stream from which a text first came."""
        return self.first_streams[text]

    def holding(self, text: str) -> Answer | None:
        """Return what was decided, else what most annotators said; None where they differ."""
        given = [one for one in self.answers(text).values() if one.labels is not None]
        decided = [one for one in given if one.stream == ADJUDICATED]
        if decided:
            return max(decided, key=lambda one: one.number)
        said = [(tuple(sorted(one.labels or ())), one.spans) for one in given]
        votes = Counter(said).most_common(2)
        if not votes or (len(votes) == 2 and votes[0][1] == votes[1][1]):
            return None
        return given[said.index(votes[0][0])]

    def label_of(self, text: str) -> tuple[str, ...] | None:
        """Return the labels of the answer that holds."""
        found = self.holding(text)
        return None if found is None or found.labels is None else tuple(sorted(found.labels))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the labels, in the codebook's order."""
        return tuple(label.name for label in self.labels)
