"""How often a test set was looked at: each look tells a little, until one trains for the test.

::

    <cache folder>/looks-1/<fingerprint of the examples>/<time>-<random>.json     one look

A look is a file of its own, written beside its place and moved there when it is whole: processes
that look at the same time need no lock, and damage to one file loses what that one says alone.

What is counted are looks at one and the same set. A part of it, or the set with a row more, has a
count of its own, that begins anew: to see that sets overlap, the register would have to keep a
mark of each example, from which texts that can be guessed could be told. Who draws smaller test
sets from a large one has looked more often than is counted.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from embedtopics.encoders.store import default_folder
from embedtopics.results import Decision
from embedtopics.training.examples import Examples

__all__ = ["Looks", "add_look", "count_looks"]

FORMAT = "looks-1"
"""Folder of this format below the cache folder."""

LONGEST_NAME = 200


@dataclass(frozen=True)
class Looks:
    """Who has looked at a set of examples.

    Parameters
    ----------
    n : int
        Times that an encoder was scored on it.
    encoders : tuple of str
        Names of the different encoders, in the order of their first look; "unknown" for a look of
        which no more is known.
    decisions : tuple of Decision
        Where looks could not be written or read.
    """

    n: int
    encoders: tuple[str, ...] = ()
    decisions: tuple[Decision, ...] = ()

    @property
    def note(self) -> str:
        """What the looks mean for an interval, in a sentence; empty for the first look."""
        said = [decision.message for decision in self.decisions]
        if self.n > 1 and len(self.encoders) > 1:
            said.append(
                f"These examples were scored {self.n} times, with {len(self.encoders)} encoders: "
                "where one of them was chosen by that, its figure is too high and its interval too "
                "narrow."
            )
        elif self.n > 1:
            said.append(
                f"These examples were scored {self.n} times, always with this encoder: what was "
                "changed because of it makes the figure too high and the interval too narrow."
            )
        return " ".join(said)


def add_look(
    examples: Examples, name: str, fingerprint: str, register: str | os.PathLike[str] | None = None
) -> Looks:
    """Note that an encoder is scored on a set of examples.

    Parameters
    ----------
    examples : Examples
    name, fingerprint : str
        Of the encoder: for people, and to tell it from others.
    register : path, optional
        Folder of the register; by default the cache folder of the package.

    Returns
    -------
    Looks
        This one included, also where it could not be written.
    """
    folder = _folder(examples, register)
    look = {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "encoder": name[:LONGEST_NAME],
        "fingerprint": fingerprint,
        "examples": {"source": examples.source[:LONGEST_NAME], "n": len(examples)},
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%f")
        path = folder / f"{stamp}-{uuid.uuid4().hex[:8]}.json"
        fresh = path.with_suffix(".new")
        fresh.write_text(json.dumps({**look, "sha256": _digest(look)}), "utf-8")
        os.replace(fresh, path)
    except OSError as error:
        before = count_looks(examples, register)
        message = f"This look could not be counted in {folder} ({error.strerror or error})."
        missed = Decision("training", "look_not_counted", str(folder), message)
        known = before.encoders if name in before.encoders else (*before.encoders, name)
        return Looks(before.n + 1, known, (*before.decisions, missed))
    return count_looks(examples, register)


def count_looks(examples: Examples, register: str | os.PathLike[str] | None = None) -> Looks:
    """Return who has looked at a set of examples.

    The same examples in another order are the same set; part of them, or more, is another one.

    Parameters
    ----------
    examples : Examples
    register : path, optional
        As for `add_look`.

    Returns
    -------
    Looks
    """
    folder = _folder(examples, register)
    try:
        paths: Sequence[Path] = sorted(folder.glob("*.json"))
    except OSError:
        paths = ()
    encoders: dict[str, str] = {}
    n_damaged = 0
    for path in paths:
        look = _read(path)
        if look is None:
            n_damaged += 1
        else:
            encoders.setdefault(str(look["fingerprint"]), str(look["encoder"]))
    names = list(encoders.values())
    decisions: tuple[Decision, ...] = ()
    if n_damaged:
        names.append("unknown")
        message = (
            f"{n_damaged:,} of the looks in {folder} are damaged and were counted all the same."
        )
        decisions = (Decision("training", "damaged_looks", n_damaged, message),)
    return Looks(len(paths), tuple(names), decisions)


def _folder(examples: Examples, register: str | os.PathLike[str] | None) -> Path:
    root = default_folder() if register is None else Path(register)
    return root / FORMAT / examples.fingerprint[:32]


def _read(path: Path) -> dict[str, Any] | None:
    """Return a look, or None where it is not what was written."""
    try:
        look = json.loads(path.read_text("utf-8"))
        written = look.pop("sha256")
        return look if written == _digest(look) and "fingerprint" in look else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _digest(look: dict[str, Any]) -> str:
    return sha256(json.dumps(look, sort_keys=True).encode()).hexdigest()
