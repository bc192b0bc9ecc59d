"""The answers of a study, reconstructed from the events of its journal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from embedtopics.annotation._codebook import Label, StudyDesign, read_labels
from embedtopics.errors import CorruptFileError


@dataclass(frozen=True)
class Answer:
    """The answer of one annotator to one text; `labels` is None for a skipped text."""

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
    """The answers of a study by text and annotator, and its codebook."""

    def __init__(self, header: Mapping[str, Any]) -> None:
        self.kind: str = header["labels_kind"]
        self.labels: tuple[Label, ...] = read_labels(header["labels"])
        self.design = StudyDesign(**header["design"])
        self.test: frozenset[str] = frozenset(header["test"])
        self.answers: dict[str, dict[str, list[Answer]]] = {}  # by text and annotator
        self.texts_by: dict[str, list[str]] = {}  # texts of each annotator, in order
        self.stream_of: dict[str, str] = {}  # stream of the first answer to a text
        self.n_by_stream: Counter[str] = Counter()
        self.version = 0

    def apply(self, event: Mapping[str, Any]) -> None:
        """Apply one event; a missing or invalid field means a damaged journal."""
        try:
            self._apply(event)
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            message = f"event {event.get('n')!r} of the journal is damaged: {error}"
            raise CorruptFileError(f"{message}; restore it from a copy") from error
        self.version += 1

    def _apply(self, event: Mapping[str, Any]) -> None:
        if event["event"] == "answer":
            spans = tuple((str(name), int(a), int(b)) for name, a, b in event.get("spans", ()))
            answer = Answer(
                text=event["text"],
                id=event["id"],
                by=event["by"],
                labels=None if event["labels"] is None else tuple(map(str, event["labels"])),
                stream=event["stream"],
                unsure=bool(event["unsure"]),
                note=str(event["note"]),
                time=event["time"],
                number=int(event["n"]),
                spans=spans,
            )
            self._add(answer)
        elif event["event"] == "undo":
            self._undo(event["by"])
        elif event["event"] != "study":
            raise ValueError(f"the event {event['event']!r} is unknown")

    def _add(self, answer: Answer) -> None:
        of_text = self.answers.setdefault(answer.text, {})
        if answer.text not in self.stream_of:
            self.stream_of[answer.text] = answer.stream
            self.n_by_stream[answer.stream] += 1
        of_text.setdefault(answer.by, []).append(answer)
        self.texts_by.setdefault(answer.by, []).append(answer.text)

    def _undo(self, by: str) -> None:
        """Remove the last answer of an annotator."""
        if not self.texts_by.get(by):
            return
        text = self.texts_by[by].pop()
        of_text = self.answers[text]
        of_text[by].pop()
        if not of_text[by]:
            del of_text[by]
        if not of_text:
            del self.answers[text]
            self.n_by_stream[self.stream_of.pop(text)] -= 1

    def current(self, text: str) -> dict[str, Answer]:
        """Return the latest answer of each annotator to a text."""
        return {by: answers[-1] for by, answers in self.answers.get(text, {}).items()}

    def label_of(self, text: str) -> tuple[str, ...] | None:
        """Return the labels that most annotators gave; None for a tie."""
        answers = [one for one in self.current(text).values() if one.labels is not None]
        ballots = Counter((tuple(sorted(one.labels or ())), one.spans) for one in answers)
        votes = ballots.most_common(2)
        if not votes or (len(votes) == 2 and votes[0][1] == votes[1][1]):
            return None
        return votes[0][0][0]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the labels, in the codebook's order."""
        return tuple(label.name for label in self.labels)
