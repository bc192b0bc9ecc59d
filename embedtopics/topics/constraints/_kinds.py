"""Constraints from labels of rows, from seed words, and from names of topics."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from embedtopics._utils.checks import is_whole
from embedtopics._utils.display import spell_count
from embedtopics.corpus._alignment import align_values
from embedtopics.corpus._classes import read_classes
from embedtopics.corpus._texts import replace_surrogates
from embedtopics.errors import InputError
from embedtopics.neighbors._graph import unit_rows
from embedtopics.protocols import Float64Array, FloatArray, Int32Array, Int64Array
from embedtopics.results import Decision
from embedtopics.terms._tokens import find_phrase, words_of
from embedtopics.topics.constraints._apply import FitContext, first_of, note
from embedtopics.topics.results import TopicConstraints

UNKNOWN = -1
LABEL_WEIGHT = 0.5
"""Weight of the labels against the embeddings, 0 to 1."""


def _read(label: Any, row: int) -> str | int | None:
    """Return a label, or None if it is unknown."""
    if label is None or isinstance(label, str):
        return label
    if isinstance(label, bool) or (is_whole(label) and label >= UNKNOWN):
        return None if label == UNKNOWN else int(label)
    expected = "strings or integers from 0 up, with -1 or None for unknown labels"
    raise InputError("labels", expected, label, row=row)


class _LabelsOfRows:
    """Labels of rows: ascending `classes`, and `codes` (n_rows,) into them, -1 for none."""

    kind: str

    def __init__(self, labels: Any) -> None:
        column = read_classes(labels)
        self._notes = column.notes("clustering", "the labels")
        values = [_read(value, row) for row, value in enumerate(column.values)]
        _refuse_two_types(values)
        self.classes = tuple(sorted({value for value in values if value is not None}))
        code_of = {value: code for code, value in enumerate(self.classes)}
        codes = [UNKNOWN if value is None else code_of[value] for value in values]
        self.codes: Int64Array = np.array(codes, dtype=np.int64)
        self._index = labels.index if isinstance(labels, pd.Series) else None

    def __repr__(self) -> str:
        n_known = int((self.codes >= 0).sum())
        labels = f"{len(self.classes)} classes on {n_known} of {len(self.codes)} rows"
        return f"{type(self).__name__}({labels})"

    def describe(self) -> dict[str, Any]:
        """Return the description for the settings of the result."""
        n_labeled = int((self.codes >= 0).sum())
        return {"kind": self.kind, "classes": list(self.classes), "n_labeled": n_labeled}

    def _of_documents(self, context: FitContext) -> tuple[Int32Array, list[Decision]]:
        """Return the most frequent class of each document's rows, and decisions."""
        documents = context.documents
        of_row = documents.of_row
        if len(self.codes) != len(of_row):
            expected = f"one for each of the {len(of_row):,} rows"
            remedy = "use -1 or None for rows without a label"
            raise InputError("labels", expected, remedy=remedy, found=f"{len(self.codes):,}")

        codes = self.codes
        if self._index is not None:
            codes_of_labels = pd.Series(codes, index=self._index)
            codes = align_values(codes_of_labels, context.corpus, "labels").to_numpy()

        has_label = (of_row >= 0) & (codes >= 0)
        if not has_label.any():
            raise InputError("labels", "known for at least one row with text", found="none")

        # The most frequent class of each document.
        pairs, votes = np.unique(
            np.column_stack([of_row[has_label], codes[has_label]]), axis=0, return_counts=True
        )
        order = np.lexsort((pairs[:, 1], -votes, pairs[:, 0]))
        labelled, first, n_labels = np.unique(
            pairs[order, 0], return_index=True, return_counts=True
        )
        classes = np.full(len(documents), UNKNOWN, dtype=np.int32)
        classes[labelled] = pairs[order][first, 1]

        notes = list(self._notes)
        if n_conflicts := int((n_labels > 1).sum()):
            message = spell_count(n_conflicts, "repeated text has", "repeated texts have")
            message += " different labels; the most frequent label applies to all its rows."
            notes.append(note("conflicting_labels", n_conflicts, message))
        if n_filled := int(((codes < 0) & (of_row >= 0) & np.isin(of_row, labelled)).sum()):
            message = spell_count(n_filled, "unlabelled row repeats", "unlabelled rows repeat")
            message += " the text of a labelled row and got its label."
            notes.append(note("shared_labels", n_filled, message))

        return classes, notes


def _refuse_two_types(labels: Sequence[str | int | None]) -> None:
    """Refuse strings beside integers, whose order is not known."""
    first = next((label for label in labels if label is not None), None)
    for row, label in enumerate(labels):
        if label is not None and isinstance(label, str) != isinstance(first, str):
            raise InputError("labels", "all strings or all integers", label, row=row)


class PartialLabels(_LabelsOfRows):
    """Let the topics follow labels of some or all rows.

    The fuzzy graph behind the coordinates gets edges between labelled documents and the nearest
    others of their class, and its edges between classes are weakened. Documents without a label
    follow their neighbors. A class may hold several topics.

    Parameters
    ----------
    labels : sequence of str or int
        One label per row; -1, None, NaN or an empty string if unknown. Rows with the same text get
        their most frequent label. A Series is aligned by its index with texts that have one.

    Notes
    -----
    Each document gets edges of weight 0.25 to the nearest others of its class. Then, as in
    umap-learn with a weight of 0.5, edges between two classes are multiplied by exp(-5), edges to
    unlabelled documents by exp(-1), and each document's strongest edge is scaled to 1. Of 4,000
    posts of 20 Newsgroups in 20 topics, 57% are in a topic of their newsgroup; with labels for 30%
    of them it is 69% of the others (58% without the added edges, as in umap-learn).

    References
    ----------
    McInnes, Healy and Melville (2018), "UMAP: Uniform Manifold Approximation and Projection
    for Dimension Reduction", section 6 (supervised reduction by intersection of fuzzy sets).

    Examples
    --------
    >>> PartialLabels(["sport", None, "politics"]).describe()["classes"]
    ['politics', 'sport']
    """

    kind = "labels"

    def prepare(self, context: FitContext) -> tuple[TopicConstraints, Sequence[Decision]]:
        """Return the classes of the documents."""
        classes, notes = self._of_documents(context)
        n_rows = int(context.documents.weights[classes >= 0].sum())
        n_classes = len(self.classes)
        message = spell_count(n_rows, "text has", "texts have")
        message += f" one of {n_classes:,} labels, and the coordinates follow them."

        constraints = TopicConstraints(
            groups=classes,
            names=tuple(map(str, self.classes)),
            probabilities=(classes >= 0).astype(np.float32),
            attraction=LABEL_WEIGHT / 2,
            separation=LABEL_WEIGHT,
        )
        return constraints, [note("labels", n_rows, message), *notes]


class ManualLabels(_LabelsOfRows):
    """Use labels as topics, without clustering.

    All later stages are the same. Topics are numbered from the largest down; the decisions of the
    result list the topic of each label.

    Parameters
    ----------
    labels : sequence of str or int
        One label per row. Strings become the names of the topics; -1, None, NaN or an empty string
        stand for no topic. Rows with the same text get their most frequent label. A Series is
        aligned by its index with texts that have one.

    Examples
    --------
    >>> ManualLabels([3, 3, -1, 0]).describe()["classes"]
    [0, 3]
    """

    kind = "manual_labels"

    def prepare(self, context: FitContext) -> tuple[TopicConstraints, Sequence[Decision]]:
        """Return the labels as topics."""
        classes, notes = self._of_documents(context)
        has_label = classes >= 0
        weights = context.documents.weights[has_label]
        sizes = np.bincount(classes[has_label], weights, minlength=len(self.classes))

        # Topics are numbered from the largest down, by rows.
        present = np.flatnonzero(sizes)
        order = present[np.argsort(-sizes[present], kind="stable")]
        number = np.full(len(sizes) + 1, -1, dtype=np.int32)
        number[order] = np.arange(len(order), dtype=np.int32)

        names = [str(self.classes[code]) for code in order.tolist()]
        pairs = [f"{name} -> {topic}" for topic, name in enumerate(names)]
        message = f"The topics are the given labels (label -> topic): {first_of(pairs)}."

        has_names = bool(names) and isinstance(self.classes[0], str)
        constraints = TopicConstraints(
            groups=number[classes],
            names=tuple(names) if has_names else ("",) * len(names),
            probabilities=has_label.astype(np.float32),
            is_fixed=True,
            is_complete=True,
        )
        return constraints, [note("manual_labels", pairs, message), *notes]


def checked_name(name: Any) -> str:
    """Return a name with single spaces, or refuse an empty one."""
    if not name.strip():
        raise InputError("names", "strings that are not empty", name)
    return " ".join(replace_surrogates(name).split())


ROUNDS = 2
"""Rounds of averaging a similarity over neighbors. Of BBC News the best name is right for 78%
without, 89% with one round, 91% with two."""

LEAST_MATCH = 1.5
"""Smallest similarity of a match above its mean over all documents, in units of the spread of
similarities to a random direction."""

LEAST_PEAK = 2.25
"""Smallest peak of the similarity to a name above its mean, in the same units. In BBC News the five
sections reach 2.5 to 5; gardening, knitting, chemistry and cooking, which it lacks, 1.5 to 1.9."""

LEAST_LEAD = 0.75
"""Smallest lead of the best name over the next, in the same units."""

LEAST_OF_WORDS = (0.25, 0.2, 0.1)
"""Peak, match and lead for vectors that count words. With TF-IDF, 91% of the BBC News texts that
match one of four sections, described in four to six words each, are of that section."""

OF_PEAK = 0.5
"""Smallest similarity of a match, as a share of the name's peak. In the demo corpus *chess* also
matched football: 32% of its texts were about chess without this limit, 95% with it. Of BBC News,
whose sections are broad, 49% of the texts match instead of 55%."""

BOOST = 0.5
"""Weight of the edges between a document and the nearest others of its seed. The edge to its
nearest neighbor has weight 1, other edges less."""

FEWEST = 5
"""Smallest number of matching documents of a name; fewer are often chance."""


class SeedWords:
    """Attract documents that use the same seed words.

    A document belongs to the seed with most of its words in the text, if its embedding is nearer to
    the mean of the documents with these words than to the mean of all. The fuzzy graph gets edges
    between a document and the nearest others of its seed; embeddings and neighbors do not change.

    Parameters
    ----------
    seeds : mapping of str to sequence of str, or sequence of sequences of str
        Words and phrases, by the name of the seed.

    Examples
    --------
    >>> SeedWords({"money": ["bank", "interest rate"]}).describe()
    {'kind': 'seed_words', 'seeds': {'money': ['bank', 'interest rate']}}
    """

    def __init__(self, seeds: Mapping[str, Sequence[str]] | Sequence[Sequence[str]]) -> None:
        named = seeds.items() if isinstance(seeds, Mapping) else ((None, words) for words in seeds)
        self.seeds: dict[str, tuple[str, ...]] = {}
        for seed_name, words in named:
            if isinstance(words, str) or not words:
                raise InputError("seeds", "lists of words", words)
            unique = tuple(dict.fromkeys(" ".join(word.split()) for word in words))
            name = checked_name(", ".join(unique[:3]) if seed_name is None else seed_name)
            if name in self.seeds:
                raise InputError("seeds", "of different names", name)
            self.seeds[name] = unique

    def __repr__(self) -> str:
        return f"SeedWords({list(self.seeds)})"

    def describe(self) -> dict[str, Any]:
        """Return the description that the settings of the result hold."""
        seeds = {name: list(words) for name, words in self.seeds.items()}
        return {"kind": "seed_words", "seeds": seeds}

    def prepare(self, context: FitContext) -> tuple[TopicConstraints, Sequence[Decision]]:
        """Return the documents of each seed; refuse a seed whose words no document holds."""
        stream = context.tokens()
        n_words = np.zeros((len(context), len(self.seeds)), dtype=np.int32)
        missing = []
        for number, (name, words) in enumerate(self.seeds.items()):
            for word in words:
                holders = np.unique(find_phrase(stream, words_of(word, stream.rules))[1])
                n_words[holders, number] += 1
                if not len(holders):
                    missing.append(word)
            if not n_words[:, number].any():
                remedy = "look at the terms of the texts, or leave the seed out"
                raise InputError("seeds", f"words of the texts ({name!r})", words, remedy)
        embeddings = context.embeddings
        means = [*(_mean(embeddings[column > 0]) for column in n_words.T), _mean(embeddings)]
        directions = np.stack(means, axis=1)
        similarities = np.einsum("ij,jk->ik", embeddings.astype(np.float64), directions)
        most = n_words.max(axis=1, keepdims=True)
        to_seeds = np.where((n_words == most) & (most > 0), similarities[:, :-1], -np.inf)
        is_nearer = to_seeds.max(axis=1) >= similarities[:, -1]  # than to the mean of all
        groups = np.where(is_nearer, to_seeds.argmax(axis=1), -1).astype(np.int32)
        names = tuple(self.seeds)
        notes = [_counted("seed_words", "Texts with seed words", context, groups, names)]
        if missing:
            message = f"No text holds these seed words: {', '.join(missing)}."
            notes.append(note("missing_seed_words", missing, message))
        probabilities = (groups >= 0).astype(np.float32)
        return TopicConstraints(groups, names, probabilities, attraction=BOOST), notes


def _counted(
    name: str, about: str, context: FitContext, groups: Int32Array, names: Sequence[str]
) -> Decision:
    """Return a decision on the number of texts in each group."""
    inside = groups >= 0
    weights = context.documents.weights[inside]
    n_rows = np.bincount(groups[inside], weights, minlength=len(names))
    counts = ", ".join(f"{one} {int(n):,}" for one, n in zip(names, n_rows, strict=True))
    return note(name, int(n_rows.sum()), f"{about}: {counts or 'none'}.")


def _mean(vectors: FloatArray) -> Any:
    """Return the direction of the mean of unit vectors; zeros if they cancel out."""
    mean = vectors.mean(axis=0, dtype=np.float64)
    length = np.sqrt(np.einsum("i,i->", mean, mean))
    return mean / length if length > 0 else mean


class ZeroShot:
    """Name topics before the fit, and find the other topics of the texts.

    Documents that match a name become its seeded topic: its label is the name, and no automatic
    step merges or renames it. The rest is clustered. Label propagation assigns outliers to both
    (see `TopicModel`'s `coverage`).

    Parameters
    ----------
    names : sequence of str, or mapping of str to str
        Names, or names with descriptions, which replace the names in comparisons.
    min_similarity : "auto" or float
        Smallest cosine of a document and its best name, -1 to 1. "auto" compares similarities
        averaged over neighbors; see Notes.
    embeddings : array_like of shape (n_names, n_dimensions), optional
        Vectors of the names, from the encoder of the documents; by default the names are encoded.

    Notes
    -----
    Cosines of names and texts differ between encoders and names. "auto" subtracts the mean over all
    documents and averages over neighbors, twice. A document matches its best name with at least 1.5
    units and a lead of 0.75 units; a unit is the spread of similarities to a random direction,
    `sqrt((1 - |m|²) / d)` with m the mean vector and d its dimensions. A name with a peak below
    2.25 units or fewer than five matches is left out, with a decision. For a name that all texts
    match, pass a number.

    For vectors without negative numbers, such as TF-IDF, the unit is the mean similarity of the
    documents that share a word with the name, and 2.25, 1.5 and 0.75 become 0.25, 0.2 and 0.1.
    Describe such names in several words.

    With the five sections of BBC News as names, all-MiniLM-L6-v2 matches 49% of the texts, 97% of
    them to their section; with assigned outliers 58%, at 95%.

    Examples
    --------
    >>> ZeroShot(["sport", "politics"]).describe()["names"]
    {'sport': 'sport', 'politics': 'politics'}
    """

    def __init__(
        self,
        names: Sequence[str] | Mapping[str, str],
        *,
        min_similarity: float | str = "auto",
        embeddings: npt.ArrayLike | None = None,
    ) -> None:
        if isinstance(names, str):
            raise InputError("names", "a list of names, or names with descriptions", names)
        pairs = names.items() if isinstance(names, Mapping) else ((name, name) for name in names)
        self.names: dict[str, str] = {}
        for text, description in pairs:
            name = checked_name(text)
            if name.casefold() in map(str.casefold, self.names):
                raise InputError("names", "different", found=f"{name!r} twice")
            self.names[name] = description
        if not self.names:
            raise InputError("names", "at least one name", found="none")
        self.min_similarity = min_similarity
        self.embeddings: FloatArray | None = None
        if embeddings is not None:
            self.embeddings = unit_rows(np.asarray(embeddings), what="the embeddings of names")

    def __repr__(self) -> str:
        return f"ZeroShot({list(self.names)}, min_similarity={self.min_similarity!r})"

    def describe(self) -> dict[str, Any]:
        """Return the description that the settings of the result hold."""
        return {
            "kind": "zero_shot",
            "names": dict(self.names),
            "min_similarity": self.min_similarity,
            "embeddings": None if self.embeddings is None else "given",
        }

    def prepare(self, context: FitContext) -> tuple[TopicConstraints, Sequence[Decision]]:
        """Return the documents that match each name."""
        vectors = self._vectors(context)
        # Not by BLAS: its order of summation depends on its threads.
        similarities = np.einsum("ij,kj->ik", context.embeddings, vectors, dtype=float)
        has_vector = (vectors != 0).any(axis=1)
        if self.min_similarity == "auto":
            matched, probabilities = _clear_matches(similarities, context)
            fewest = FEWEST
        else:
            # A name without a vector matches nothing, although its similarity is 0.
            similarities[:, ~has_vector] = -np.inf
            matched, top, fewest = similarities.argmax(axis=1), similarities.max(axis=1), 1
            matched = np.where(top >= float(self.min_similarity), matched, -1).astype(np.int32)
            largest = float(top[matched >= 0].max(initial=0.0))
            probabilities = np.clip(top / largest, 1e-3, 1.0) if largest > 0 else np.ones(len(top))
        matched[~(context.embeddings != 0).any(axis=1)] = -1
        n_matching = np.bincount(matched[matched >= 0], minlength=len(self.names))
        matching = np.flatnonzero(n_matching >= fewest)
        number = np.full(len(self.names) + 1, -1, dtype=np.int32)
        number[matching] = np.arange(len(matching), dtype=np.int32)
        groups = number[matched]
        names = list(self.names)
        constraints = TopicConstraints(
            groups,
            tuple(names[i] for i in matching.tolist()),
            np.where(groups >= 0, probabilities, 0.0).astype(np.float32),
            is_fixed=True,
        )
        lost = [n for i, n in enumerate(names) if has_vector[i] and n_matching[i] < fewest]
        unknown = [name for i, name in enumerate(names) if not has_vector[i]]
        notes = [_counted("names", "Texts that match a name", context, groups, constraints.names)]
        remedy = "describe them in several words that the texts use"
        if lost:
            why = f"Too few texts match these names, which were left out: {', '.join(lost)}"
            message = f"{why}; {remedy}, or pass min_similarity."
            notes.append(note("names_without_texts", lost, message))
        if unknown:
            why = "The encoder knows no word of these names, which were left out: "
            message = f"{why}{', '.join(unknown)}; {remedy}."
            notes.append(note("names_without_vector", unknown, message))
        for decision in notes[1:]:
            warnings.warn(decision.message, stacklevel=2)
        return constraints, notes

    def _vectors(self, context: FitContext) -> FloatArray:
        """Return the vectors of the names, shape (n_names, n_dimensions)."""
        vectors = self.embeddings
        if vectors is None:
            vectors = context.encode(list(self.names.values()))
        if vectors.shape[1] != context.embeddings.shape[1]:
            expected = f"of {context.embeddings.shape[1]} dimensions, like those of the texts"
            shape = f"{vectors.shape[1]} dimensions"
            raise InputError("embeddings", expected, remedy="use one encoder", found=shape)
        return vectors


def _clear_matches(
    similarities: Float64Array, context: FitContext
) -> tuple[Int32Array, Float64Array]:
    """Return the name that each document clearly matches, or -1, and its relative lead."""
    # The standard deviation of the cosines with a random direction.
    n, n_dimensions = context.embeddings.shape
    mean = context.embeddings.mean(axis=0, dtype=np.float64)
    vectors = context.embeddings
    squares = float(np.einsum("ij,ij->", vectors, vectors, dtype=np.float64))
    variance = squares / n - float(np.einsum("i,i->", mean, mean))
    unit: float | Float64Array = float(np.sqrt(max(variance, 1e-12) / n_dimensions))
    least_peak, least_match, least_lead = LEAST_PEAK, LEAST_MATCH, LEAST_LEAD
    if context.embeddings.min(initial=0.0) >= 0.0:  # words are counted
        least_peak, least_match, least_lead = LEAST_OF_WORDS
        # The mean similarity to a name of the documents that share a word with it.
        n_sharing = (similarities > 0).sum(axis=0)
        sums = np.einsum("ij->j", similarities)
        unit = np.where(n_sharing > 0, sums / np.maximum(n_sharing, 1), 1.0)
    centered = (similarities - similarities.mean(axis=0)) / unit
    for _ in range(ROUNDS):
        total = centered.copy()
        for column in context.graph.indices.T:
            total += centered[column]
        centered = total / (context.graph.k + 1)
    # A name that no document reaches must not reduce the lead of another.
    reached = np.flatnonzero(centered.max(axis=0) >= least_peak)
    if not len(reached):
        return np.full(len(centered), -1, dtype=np.int32), np.zeros(len(centered))
    centered = centered[:, reached]
    ordered = np.sort(centered, axis=1)
    lead = ordered[:, -1] - ordered[:, -2] if len(reached) > 1 else ordered[:, -1]
    best = centered.argmax(axis=1)
    peaks = np.sort(centered, axis=0)[-FEWEST:].mean(axis=0)
    matches = (ordered[:, -1] >= least_match) & (lead >= least_lead)
    matches &= ordered[:, -1] >= OF_PEAK * peaks[best]
    probabilities = np.clip(lead / max(float(lead.max()), 1e-12), 1e-3, 1.0)
    return np.where(matches, reached[best], -1).astype(np.int32), probabilities
