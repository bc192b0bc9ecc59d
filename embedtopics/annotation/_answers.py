"""The answers of a study, as its events leave them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from embedtopics.annotation._codebook import (
    MULTILABEL,
    Label,
    StudyDesign,
    read_labels,
    spell_name,
)
from embedtopics.annotation._events import AnswerEvent, Event, StudyEvent, UndoEvent
from embedtopics.errors import CorruptFileError, InputError


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

    def __init__(self, events: list[Event]) -> None:
        """Apply the events of a journal; the first begins the study."""
        header, *others = events
        if not isinstance(header, StudyEvent):
            raise _damaged(header, "it does not begin a study")
        try:
            self.labels: tuple[Label, ...] = read_labels(
                [Label(**label.model_dump()) for label in header.labels]
            )
            self.design = StudyDesign(**header.design.model_dump()).checked()
        except InputError as error:
            raise _damaged(header, str(error)) from error

        self.kind: str = header.labels_kind
        self.pairs: bool = header.pairs
        self.test: frozenset[str] = frozenset(header.test)

        # What the other events change.
        self.answers: dict[str, dict[str, list[Answer]]] = {}  # by text and annotator
        self.texts_by: dict[str, list[str]] = {}  # texts of each annotator, in order
        self.stream_of: dict[str, str] = {}  # stream of the first answer to a text
        self.n_by_stream: Counter[str] = Counter()
        self.version = 0

        for event in others:
            self.apply(event)

    def apply(self, event: Event) -> None:
        """Apply one event; an answer that no study of these labels has means damage."""
        if isinstance(event, AnswerEvent):
            self._check(event)
            self._add(event)
        elif isinstance(event, UndoEvent):
            self._undo(event.by)
        else:
            raise _damaged(event, "it begins another study")
        self.version += 1

    def _check(self, event: AnswerEvent) -> None:
        labels = event.labels or ()
        names = {*labels, *(label for label, _, _ in event.spans)}
        unknown = {spell_name(name) for name in names} - {*self.names}
        if unknown:
            raise _damaged(event, f"its label {min(unknown)[:100]!r} is not in the codebook")
        is_single = self.kind not in MULTILABEL
        if is_single and event.labels is not None and len(labels) != 1:
            raise _damaged(event, f"it has {len(labels)} labels in place of one")

    def _add(self, event: AnswerEvent) -> None:
        labels = None
        if event.labels is not None:
            labels = tuple(spell_name(label) for label in event.labels)

        answer = Answer(
            text=event.text,
            id=event.id,
            by=event.by,
            labels=labels,
            stream=event.stream,
            unsure=event.unsure,
            note=event.note,
            time=event.time,
            number=event.n,
            spans=tuple((spell_name(label), begin, end) for label, begin, end in event.spans),
        )

        if answer.text not in self.stream_of:
            self.stream_of[answer.text] = answer.stream
            self.n_by_stream[answer.stream] += 1

        of_text = self.answers.setdefault(answer.text, {})
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
        answers = [answer for answer in self.current(text).values() if answer.labels is not None]
        ballots = Counter((tuple(sorted(answer.labels or ())), answer.spans) for answer in answers)
        votes = ballots.most_common(2)
        if not votes or (len(votes) == 2 and votes[0][1] == votes[1][1]):
            return None
        return votes[0][0][0]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the labels, in the codebook's order."""
        return tuple(label.name for label in self.labels)


def _damaged(event: Event, problem: str) -> CorruptFileError:
    place = f"event {event.n} of the journal, or line {event.n + 1} of journal.jsonl,"
    return CorruptFileError(f"{place} is damaged: {problem}; restore it from a copy")
