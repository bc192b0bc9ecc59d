"""Labels of a corpus' rows as groups of its documents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from embedtopics._utils.display import spell_count
from embedtopics.clustering.results import NOISE
from embedtopics.corpus._corpus import Corpus
from embedtopics.corpus.results import DistinctDocuments
from embedtopics.decisions import Decision
from embedtopics.errors import InputError
from embedtopics.protocols import Int32Array


@dataclass(frozen=True, eq=False)
class Groups:
    """Labels or topics of the documents, (n_documents,), as places in `names`; -1 for none.

    The largest group comes first, ties by name; `grouped_by` names their source.
    """

    of_document: Int32Array
    names: tuple[str, ...]
    grouped_by: str


def groups_of(labels: Any, corpus: Corpus, decisions: list[Decision]) -> Groups:
    """Read the labels of the rows, (n_rows,): a text gets the most frequent one, ties by name."""
    if isinstance(labels, str):
        columns = list(corpus.metadata.columns)
        if labels not in columns:
            shown = ", ".join(repr(column) for column in columns[:30]) or "none"
            raise InputError("labels", f"a column of {corpus.source} ({shown})", labels)
        values, grouped_by = corpus.metadata[labels].to_numpy(dtype=object), f'label "{labels}"'
    else:
        values, grouped_by = np.asarray(labels, dtype=object), "labels given"
        if values.shape != (len(corpus),):
            expected = f"a column's name, or one label for each of the {len(corpus):,} rows"
            raise InputError("labels", expected, found=f"shape {values.shape}")
    documents = corpus.distinct()
    of_document, n_conflicts = _labels_of_documents([_spell(v) for v in values], documents)
    if n_conflicts:
        decisions.append(
            Decision(
                "comparison",
                "conflicting_labels",
                n_conflicts,
                f"{spell_count(n_conflicts, 'repeated text has', 'repeated texts have')} "
                "different labels; the most frequent label applies.",
            )
        )
    sizes = Counter(label for label in of_document if label is not None)
    if len(sizes) < 2:
        raise InputError("labels", "of at least two kinds", found=f"{len(sizes)}")
    n_missing = of_document.count(None)
    if n_missing:
        decisions.append(
            Decision(
                "comparison",
                "unlabelled",
                n_missing,
                f"{n_missing:,} of {len(documents):,} texts have no label. They are on the maps, "
                "but not in scores by label.",
            )
        )
    names = tuple(sorted(sizes, key=lambda label: (-sizes[label], label)))
    place: dict[str | None, int] = {name: i for i, name in enumerate(names)}
    place[None] = NOISE
    return Groups(np.array([place[v] for v in of_document], dtype=np.int32), names, grouped_by)


def _spell(value: Any) -> str | None:
    """Return a label as a string; None if it is missing."""
    if value is None or type(value).__name__ in ("NAType", "NaTType") or value != value:
        return None
    if isinstance(value, (float, np.floating)) and value.is_integer():
        value = int(value)  # a column of whole numbers with gaps comes as 1.0, 2.0
    return " ".join(str(value).split()) or None


def _labels_of_documents(
    rows: Sequence[str | None], documents: DistinctDocuments
) -> tuple[list[str | None], int]:
    """Return the label of each document, and of how many the rows differ."""
    labels: list[str | None] = [rows[row] for row in documents.first_rows.tolist()]
    votes: dict[int, Counter[str]] = {}
    repeated = documents.weights[documents.of_row] > 1
    for row in np.flatnonzero(repeated & (documents.of_row >= 0)).tolist():
        label = rows[row]
        counter = votes.setdefault(int(documents.of_row[row]), Counter())
        if label is not None:
            counter[label] += 1
    for document, counter in votes.items():
        labels[document] = min(counter, key=lambda label: (-counter[label], label), default=None)
    return labels, sum(len(counter) > 1 for counter in votes.values())


def scored_classes(groups: Groups, decisions: list[Decision]) -> Int32Array:
    """Return the class of each document for the scores: those of one document have none."""
    sizes = np.bincount(groups.of_document[groups.of_document >= 0], minlength=len(groups.names))
    single = np.flatnonzero(sizes == 1)
    if np.count_nonzero(sizes >= 2) < 2:
        raise InputError(
            "labels", "at least two with two texts each", found=f"{np.count_nonzero(sizes >= 2)}"
        )
    if len(single):
        names = [groups.names[i] for i in single.tolist()]
        shown = ", ".join([*names[:5], *["..."] * (len(names) > 5)])
        decisions.append(
            Decision(
                "comparison",
                "single_labels",
                names,
                f"{spell_count(len(single), 'label has', 'labels have')} a single text ({shown}). "
                "Such texts are on the maps, but not in scores.",
            )
        )
    return np.where(np.isin(groups.of_document, single), NOISE, groups.of_document).astype(np.int32)
