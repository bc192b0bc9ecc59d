"""The labelling page of a study, on a local server."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from typing import Any

from embedtopics._utils.local_server import LocalServer, Post
from embedtopics.annotation._bodies import (
    HintBody,
    LabelBody,
    NextBody,
    QueueBody,
    SearchBody,
    SkipBody,
    UndoBody,
)
from embedtopics.annotation._codebook import as_json, checked_annotator
from embedtopics.annotation._estimates import COLUMN_AFTER, N_FURTHER
from embedtopics.annotation._project import AnnotationProject
from embedtopics.annotation._topics import SheetStudy
from embedtopics.errors import EmbedTopicsError, InputError
from embedtopics.inference import shares as measured_shares

log = logging.getLogger(__name__)

ESTIMATE_EVERY = 5
"""Count labels after which quality and shares are estimated again."""

# Texts of a list, and characters of each.
MAX_HITS = 50
EXCERPT = 240


class AnnotationServer(LocalServer):
    """A local server of the labelling page of a study, whose model learns in the background."""

    def __init__(self, study: AnnotationProject, annotator: str, port: int) -> None:
        self.study = study
        self.annotator = checked_annotator(annotator)
        self._estimates: dict[str, Any] = {}
        self._estimated_at = -1
        self._estimating = threading.Lock()

        posts = {
            "/api/next": Post(NextBody, self.next),
            "/api/label": Post(LabelBody, self.label),
            "/api/skip": Post(SkipBody, self.skip),
            "/api/undo": Post(UndoBody, self.undo),
            "/api/search": Post(SearchBody, self.search),
            "/api/queue": Post(QueueBody, self.queue),
            "/api/hint": Post(HintBody, self.hint),
        }
        gets = {"/api/state": self.state, "/api/noted": self.noted}
        super().__init__("embedtopics.annotation", port, gets, posts)

        study.loop.start_background()

    def state(self, _: Mapping[str, Any]) -> dict[str, Any]:
        """Return the codebook, the progress and the latest estimates."""
        study = self.study
        return {
            "annotator": self.annotator,
            "kind": study.kind,
            "pairs": study.state.records.pairs,
            "is_sheet": isinstance(study, SheetStudy),
            "labels": as_json(study.codebook),
            **self._status(),
        }

    def _status(self) -> dict[str, Any]:
        progress = self.study.progress()
        sample = progress["sample"]
        is_estimated = sample >= 10 and not isinstance(self.study, SheetStudy)
        if is_estimated and sample // ESTIMATE_EVERY != self._estimated_at:
            self._estimated_at = sample // ESTIMATE_EVERY
            threading.Thread(target=self._estimate, daemon=True).start()
        return {"progress": progress, "estimates": self._estimates}

    def _estimate(self) -> None:
        """Estimate quality and shares, in one thread at a time; labels do not wait for it."""
        with self._estimating:
            try:
                shares = measured_shares(self.study).to_frame().set_index("class")
                quality = self.study.quality()
                stopping = self.study.stopping()
            except EmbedTopicsError as error:
                log.info("nothing was estimated: %s", error)
                return
            accuracy = quality[quality["metric"] == "accuracy"].iloc[0]
            classes = [
                {
                    "name": row["class"],
                    "share": _number(shares.loc[row["class"], "estimate"]),
                    "low": _number(shares.loc[row["class"], "low"]),
                    "high": _number(shares.loc[row["class"], "high"]),
                    "width_after": _number(row[COLUMN_AFTER]),
                    "further": N_FURTHER,
                    "recall_bound": _number(row["recall_bound"]),
                }
                for row in stopping.to_frame().to_dict("records")
            ]
            ends = [round(float(accuracy[name]), 4) for name in ("value", "low", "high")]
            self._estimates = {"accuracy": ends, "n": int(accuracy["n"]), "classes": classes}

    def next(self, body: NextBody) -> dict[str, Any]:
        """Return the next text for a tab."""
        if body.fresh:
            self.study.loop.release(body.tab)
        text = self.study.next(by=self.annotator, holder=body.tab)
        return {"next": text and vars(text)}

    def label(self, body: LabelBody) -> dict[str, Any]:
        """Record a label; the response confirms that it is on disk."""
        labels = () if body.spans else body.labels
        self.study.label(
            body.key,
            labels,
            by=self.annotator,
            unsure=body.unsure,
            note=body.note,
            stream=body.stream,
            spans=body.spans,
        )
        return self._status()

    def noted(self, _: Mapping[str, Any]) -> dict[str, Any]:
        """Return the annotator's texts with a note or marked as unsure, the latest first."""
        records = self.study.state.records
        with self.study.state.lock:
            answers = [records.current(key).get(self.annotator) for key in records.answers]
        noted = [one for one in answers if one is not None and (one.note or one.unsure)]
        noted.sort(key=lambda one: -one.number)
        return {"found": [self._hit(one.text) for one in noted[:MAX_HITS]]}

    def search(self, body: SearchBody) -> dict[str, Any]:
        """Return the texts that contain all words of the query, unanswered texts first."""
        words = body.query.casefold().split()
        if not words:
            return {"found": [], "n": 0}
        texts, answered = self.study.state.texts, self.study.state.records.answers
        folded = zip(texts.keys, (text.casefold() for text in texts.documents.texts), strict=True)
        keys = [key for key, text in folded if all(word in text for word in words)]
        keys.sort(key=lambda key: key in answered)
        return {"found": [self._hit(key, words[0]) for key in keys[:MAX_HITS]], "n": len(keys)}

    def _hit(self, key: str, word: str = "") -> dict[str, Any]:
        """Return an excerpt of a text around a word, with the annotator's answer."""
        texts = self.study.state.texts
        is_present = key in texts.row_of
        text = texts.text(key) if is_present else ""
        begin = max(0, text.casefold().find(word) - EXCERPT // 3) if word else 0
        answer = self.study.state.records.current(key).get(self.annotator)
        labels = None if answer is None or answer.labels is None else list(answer.labels)
        return {
            "key": key,
            "id": texts.to_label(key, "").id if is_present else "",
            "text": ("… " if begin else "") + " ".join(text[begin : begin + EXCERPT].split()),
            "labels": labels,
            "note": "" if answer is None else answer.note,
            "unsure": answer is not None and answer.unsure,
        }

    def queue(self, body: QueueBody) -> dict[str, Any]:
        """Put texts at the head of the queue."""
        return {"waiting": self.study.queue(body.keys)}

    def hint(self, body: HintBody) -> dict[str, Any]:
        """Return the label that the model suggests."""
        state = self.study.state
        key = body.key
        with state.lock:
            chances = self.study.loop.probabilities
            names = state.records.names
        if key not in state.texts.row_of or chances is None:
            return {"label": None, "probability": None}
        of_text = chances[state.texts.row_of[key]]
        best = int(of_text.argmax())
        return {"label": names[best], "probability": _number(of_text[best])}

    def skip(self, body: SkipBody) -> dict[str, Any]:
        """Skip a text."""
        self.study.skip(body.key, by=self.annotator, note=body.note)
        return self._status()

    def undo(self, body: UndoBody) -> dict[str, Any]:
        """Undo the last answer and return its text."""
        text = self.study.undo(by=self.annotator, holder=body.tab)
        return {"next": text and vars(text), **self._status()}


def _number(value: float) -> float | None:
    """Return a number for JSON, None for NaN."""
    return None if value != value else round(float(value), 5)


def serve(
    project: AnnotationProject, *, annotator: str = "annotator", port: int = 0
) -> AnnotationServer:
    """Return a server of the labelling page; its `run` serves until an interrupt.

    It listens on this machine only. It answers requests of its own page that know the token in its
    address, `url`; `close` ends it.

    Parameters
    ----------
    project : AnnotationProject
    annotator : str
        Name of the person who labels.
    port : int
        0 for a free port.

    Returns
    -------
    AnnotationServer

    Raises
    ------
    InputError
        The port is in use.
    MissingExtraError
        The extra `page` is not installed.

    Examples
    --------
    >>> import tempfile
    >>> import embedtopics as et
    >>> texts = ["ripe plums", "late trains", "sweet pears", "slow trains"]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with et.AnnotationProject(texts, ["fruit", "rail"], folder, encoder="lsa") as project:
    ...         server = et.annotation.serve(project, annotator="ana")
    ...         print(server.url.partition("?")[0].startswith("http://127.0.0.1:"))  # server.run()
    ...         server.close()
    True
    """
    if not isinstance(project, AnnotationProject):
        remedy = "make one: et.AnnotationProject(corpus, codebook, folder)"
        raise InputError("project", "an AnnotationProject", project, remedy)
    return AnnotationServer(project, annotator, port)
