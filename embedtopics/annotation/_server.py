"""The page on which people label: one process, on this machine alone, of the standard library."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from typing import Any

from embedtopics._utils.local_server import LocalServer
from embedtopics.annotation._codebook import checked_annotator
from embedtopics.annotation._project import AnnotationProject
from embedtopics.annotation.results import TextToLabel
from embedtopics.errors import EmbedTopicsError, InputError

log = logging.getLogger(__name__)

EVERY = 5
"""Answers after which quality and shares are estimated again."""


class AnnotationServer(LocalServer):
    """Serves the page of a study until it is closed.

    Parameters
    ----------
    study : AnnotationProject
        Its model learns in the background from now on.
    annotator : str
        Who labels.
    port : int
        0 for one that is free.
    """

    def __init__(self, study: AnnotationProject, annotator: str, port: int) -> None:
        self.study, self.annotator = study, checked_annotator(annotator)
        self._estimates: dict[str, Any] = {}
        self._estimated = -1
        self._estimating = threading.Lock()
        posts = {
            "/api/next": self.next, "/api/label": self.label, "/api/skip": self.skip,
            "/api/undo": self.undo,
        }  # fmt: skip
        super().__init__("embedtopics.annotation", port, {"/api/state": self.state}, posts)
        study.learn_in_background()

    # What the page asks

    def state(self, _: Mapping[str, Any]) -> dict[str, Any]:
        """Return the codebook, progress, and the latest estimates."""
        study = self.study
        labels = [
            {"name": one.name, "key": one.key, "definition": one.definition,
             "examples": list(one.examples)}
            for one in study.codebook
        ]  # fmt: skip
        return {
            "annotator": self.annotator, "kind": study.kind, "labels": labels,
            "teach": study.design.teach, **self._status(),
        }  # fmt: skip

    def _status(self) -> dict[str, Any]:
        progress = self.study.progress()
        sample = progress["sample"]
        if sample >= 10 and sample // EVERY != self._estimated:
            self._estimated = sample // EVERY
            threading.Thread(target=self._estimate, daemon=True).start()
        return {"progress": progress, "estimates": self._estimates}

    def _estimate(self) -> None:
        """Estimate quality and shares; one thread at a time, the next label does not wait."""
        with self._estimating:
            try:
                shares = {one.name: one for one in self.study.prevalence().shares}
                quality = self.study.quality()
                stopping = self.study.stopping()
            except EmbedTopicsError as error:
                log.info("nothing was estimated: %s", error)
                return
            accuracy = quality[quality["metric"] == "accuracy"].iloc[0]
            self._estimates = {
                "accuracy": [round(float(accuracy[name]), 4) for name in ("value", "low", "high")],
                "n": int(accuracy["n"]),
                "classes": [
                    {
                        "name": one.name, "share": _plain(shares[one.name].share),
                        "low": _plain(shares[one.name].low), "high": _plain(shares[one.name].high),
                        "width_after": _plain(one.width_after), "further": one.further,
                        "recall_bound": _plain(one.recall.bound), "n_found": one.recall.n_found,
                    }
                    for one in stopping.classes
                ],
            }  # fmt: skip

    def next(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Return the next text for a tab."""
        tab = _name(asked, "tab")
        if asked.get("fresh"):
            self.study.release(tab)
        return {"next": _shown(self.study.next(by=self.annotator, holder=tab))}

    def label(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Record a label; the answer says that it is on disk."""
        labels = asked.get("labels")
        if not isinstance(labels, list) or not all(isinstance(one, str) for one in labels):
            raise InputError("labels", "a list of labels", labels)
        self.study.label(
            _name(asked, "key"), labels, by=self.annotator, unsure=asked.get("unsure") is True,
            note=_text(asked, "note"), stream=_stream(asked),
        )  # fmt: skip
        return self._status()

    def skip(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Put a text aside."""
        self.study.skip(_name(asked, "key"), by=self.annotator, note=_text(asked, "note"))
        return self._status()

    def undo(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Take back the last answer; return its text."""
        text = self.study.undo(by=self.annotator, holder=_name(asked, "tab"))
        return {"next": _shown(text), **self._status()}


def _plain(value: float) -> float | None:
    """Return a number as JSON holds it."""
    return None if value != value else round(float(value), 5)


def _shown(text: TextToLabel | None) -> dict[str, str] | None:
    return None if text is None else vars(text)


def _name(asked: Mapping[str, Any], field: str) -> str:
    value = asked.get(field)
    if not isinstance(value, str) or not 0 < len(value) <= 100:
        raise InputError(field, "text of 1 to 100 characters", value)
    return value


def _text(asked: Mapping[str, Any], field: str) -> str:
    value = asked.get(field, "")
    if not isinstance(value, str):
        raise InputError(field, "text", value)
    return value


def _stream(asked: Mapping[str, Any]) -> str | None:
    value = asked.get("stream")
    if value not in ("teach", "count", None):
        return None  # decided by who gave it out
    return value


def serve(
    study: AnnotationProject, *, annotator: str = "annotator", port: int = 0
) -> AnnotationServer:
    """Return a server of the page of a study; its `run` serves until an interrupt.

    It listens on this machine alone, and answers only requests of its own page that know the
    token in its address.

    Parameters
    ----------
    study : AnnotationProject
    annotator : str
    port : int
        0 for one that is free.

    Returns
    -------
    AnnotationServer
        With `url`, `run()` and `close()`.

    Raises
    ------
    InputError
        Where the port is not free.
    """
    return AnnotationServer(study, annotator, port)
