"""The page on which people label: one process, on this machine alone, of the standard library."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from typing import Any

import numpy as np

from embedtopics._utils.local_server import LocalServer
from embedtopics.annotation._codebook import checked_annotator
from embedtopics.annotation._project import AnnotationProject
from embedtopics.annotation.results import TextToLabel
from embedtopics.classification import class_terms
from embedtopics.errors import EmbedTopicsError, InputError

log = logging.getLogger(__name__)

EVERY = 5
"""Answers after which quality and shares are estimated again."""


MOST_FOUND, SHORT, N_HINTS, MOST_POINTS = 50, 240, 50, 20_000
"""Texts of a list, their characters, words that speak for a label, and points of the map."""


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
            "/api/undo": self.undo, "/api/search": self.search, "/api/queue": self.queue,
            "/api/hint": self.hint,
        }  # fmt: skip
        gets = {"/api/state": self.state, "/api/noted": self.noted, "/api/map": self.map}
        self._places: list[list[int]] | None = None
        super().__init__("embedtopics.annotation", port, gets, posts)
        study.learn_in_background()

    # What the page asks

    def state(self, _: Mapping[str, Any]) -> dict[str, Any]:
        """Return the codebook, progress, and the latest estimates."""
        study = self.study
        labels = [
            {"name": one.name, "key": one.key, "definition": one.definition,
             "examples": list(one.examples), "scheme": one.scheme}
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
        spans = asked.get("spans", [])
        if not isinstance(spans, list):
            raise InputError("spans", "a list of label, begin and end", spans)
        self.study.label(
            _name(asked, "key"), [] if spans else labels, by=self.annotator,
            unsure=asked.get("unsure") is True, note=_text(asked, "note"), stream=_stream(asked),
            spans=spans,
        )  # fmt: skip
        return self._status()

    def noted(self, _: Mapping[str, Any]) -> dict[str, Any]:
        """Return the texts with a note, or of which the annotator was unsure, the latest first."""
        with self.study._lock:
            stacks = self.study._records.stacks
            own = [self.study._records.answers(key).get(self.annotator) for key in stacks]
        kept = [one for one in own if one is not None and (one.note or one.unsure)]
        kept.sort(key=lambda one: -one.number)
        return {"found": [self._found(one.text) for one in kept[:MOST_FOUND]]}

    def search(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Return texts that hold all words that are asked for; those without an answer first."""
        words = _text(asked, "query").casefold().split()
        if not words:
            return {"found": [], "n": 0}
        texts = self.study._documents.texts
        folded = (text.casefold() for text in texts)
        rows = [row for row, text in enumerate(folded) if all(word in text for word in words)]
        answered = self.study._records.stacks
        rows.sort(key=lambda row: self.study.keys[row] in answered)
        keys = [self.study.keys[row] for row in rows[:MOST_FOUND]]
        return {"found": [self._found(key, words[0]) for key in keys], "n": len(rows)}

    def _found(self, key: str, word: str = "") -> dict[str, Any]:
        """Return a text in short, around a word, with what the annotator said of it."""
        row = self.study._row.get(key)
        text = "" if row is None else self.study._documents.texts[row]
        begin = max(0, text.casefold().find(word) - SHORT // 3) if word else 0
        said = self.study._records.answers(key).get(self.annotator)
        return {
            "key": key, "id": "" if row is None else self.study._documents.ids[row],
            "text": ("… " if begin else "") + " ".join(text[begin : begin + SHORT].split()),
            "labels": None if said is None or said.labels is None else list(said.labels),
            "note": "" if said is None else said.note, "unsure": said is not None and said.unsure,
        }  # fmt: skip

    def map(self, _: Mapping[str, Any]) -> dict[str, Any]:
        """Return texts by their first two principal components, with label and prediction.

        Points are key, x and y from 0 to 1,000, and the numbers of the label and of the prediction
        in the codebook, -1 for none.
        """
        study = self.study
        if self._places is None:
            vectors = study._vectors.matrix[:MOST_POINTS]
            centred = vectors - vectors.mean(axis=0)
            _values, directions = np.linalg.eigh(centred.T @ centred)
            flat = centred @ directions[:, -2:]
            low, high = np.quantile(flat, [0.005, 0.995], axis=0)
            scaled = 1000 * (flat - low) / np.maximum(high - low, 1e-12)
            self._places = np.clip(scaled, 0, 1000).astype(int).tolist()
        with study._lock:
            known = dict(zip(*study._labelled(), strict=True))
            guess = study._probabilities
            number = {name: i for i, name in enumerate(study._records.names)}
        best = [-1] * len(study.keys) if guess is None else guess.argmax(axis=1).tolist()
        points = [
            [key, *place, number[known[key][0]] if known.get(key) else -1, predicted]
            for key, place, predicted in zip(study.keys, self._places, best, strict=False)
        ]
        return {"points": points}

    def queue(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Let texts come next."""
        keys = asked.get("keys")
        if not isinstance(keys, list) or not all(isinstance(one, str) for one in keys):
            raise InputError("keys", "a list of keys", keys)
        return {"waiting": self.study.queue(keys)}

    def hint(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Return the label that the model suggests for a text, and words that speak for it."""
        study, key = self.study, _name(asked, "key")
        with study._lock:
            probabilities, names = study._probabilities, study._records.names
            known = dict(zip(*study._labelled(), strict=True))
        if key not in study._row or probabilities is None:
            return {"label": None, "probability": None, "words": []}
        of_text = probabilities[study._row[key]]
        best = int(of_text.argmax())
        texts = [study._documents.texts[study._row[one]] for one in known if one != key]
        speaks = [names[best] in label for one, label in known.items() if one != key]
        words: list[str] = []
        if len(set(speaks)) == 2:
            terms = class_terms(texts, ["for" if one else "against" for one in speaks],
                                n_terms=N_HINTS, min_texts=2)  # fmt: skip
            words = terms.loc[(terms["class"] == "for") & (terms["z"] > 0), "term"].tolist()
        return {"label": names[best], "probability": _plain(of_text[best]), "words": words}

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
