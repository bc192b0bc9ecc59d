"""The result of a fit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from embedtopics._utils.display import html_table
from embedtopics._utils.habits import Habits
from embedtopics.clustering.results import NOISE, Clustering, SpanningTree
from embedtopics.corpus.results import DistinctDocuments
from embedtopics.neighbors.results import NeighborGraph
from embedtopics.protocols import FloatArray, Int32Array, TermWeighting
from embedtopics.results import Decision
from embedtopics.terms.results import TermCounts, TokenStream
from embedtopics.topics.results._constraints import TopicConstraints
from embedtopics.topics.results._edits import Edit
from embedtopics.topics.results._topics import Reason, Stability, Theme, Topic

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from embedtopics.corpus._corpus import Corpus


QUESTIONS = {
    "et.topics.over_time(result)": "change over time",
    "et.topics.by_group(result)": "differences between groups",
    'et.topics.find(result, "a query")': "topics near a query",
    "et.topics.sample_documents(result, 0)": "texts to read",
    "et.topics.recluster(result)": "another number of topics",
    'et.topics.rename(result, {0: "Name"})': "names of your own",
    "et.topics.merge(result, [0, 1])": "one topic of several",
    "et.plots.map(result)": "a map of the texts",
    'et.report.write_report(result, "report.html")': "a page with all of it",
}
"""Calls that answer questions about a result."""

ASK = (
    "Ask: et.topics.over_time(result), .by_group, .find, .sample_documents, .recluster, .rename, "
    ".merge · Draw: et.plots.map(result) · Write: et.report.write_report(result, ...)"
)
"""The same in a line."""


@dataclass(frozen=True, eq=False, repr=False)
class TopicResult(Habits):
    """Result of a fit: topics, labels, map, arrays. `embedtopics.topics` has functions for it.

    Parameters
    ----------
    corpus : Corpus
        The input, row by row.
    distinct : DistinctDocuments
        Rows of each distinct text, as `Corpus.distinct` returns.
    embeddings : float32 ndarray of shape (n_documents, n_dimensions)
        Unit vectors; zeros for a document without a vector.
    graph : NeighborGraph
    coordinates : float32 ndarray of shape (n_documents, n_components)
        Coordinates that were clustered.
    map : float32 ndarray of shape (n_documents, 2)
        Positions on the map.
    clustering : Clustering
        Topic of each document.
    memberships : csr_matrix of float32, shape (n_documents, n_topics)
        Share of each topic in each document; the rest to 1 is the share of no topic, see
        `none_shares`.
    tokens : TokenStream
    term_counts : TermCounts
    topic_terms : csr_matrix of float64, shape (n_topics, n_terms)
        Term weights.
    topics : tuple of Topic
        In the order of their ids, 0 to n_topics - 1; largest first, except after `extend`.
    decisions : tuple of Decision
        Defaults, fallbacks and losses of the fit, each in one sentence.
    settings : mapping
        Parameters of the fit, with resolved values for "auto".
    versions : mapping of str to str
        Versions of the packages used.
    timings : mapping of str to float
        Seconds that the fit waited for each stage, in order.
    history : tuple of Edit
        Edits after the fit, in order; `embedtopics.topics.replay` repeats them on another result.
    tree : SpanningTree or None
        The density hierarchy; None with another clusterer.
    stability : Stability or None
        Recurrence of the topics, if measured.
    constraints : TopicConstraints or None
        Constraints of the fit.
    added : bool ndarray of shape (n_documents,) or None
        Documents that `embedtopics.topics.extend` added; they do not count when further texts are
        assigned. None if there are none.
    weighting : TermWeighting or None
        A custom weighting of the terms, which files do not hold.

    Examples
    --------
    >>> import embedtopics as et
    >>> model = et.TopicModel("tfidf", n_topics=8).fit(et.Corpus("embedtopics:demo"))
    >>> result = model.result_
    >>> result.n_topics, len(result.labels)
    (8, 670)
    >>> [topic.topic_id for topic in result.topics][:3]
    [0, 1, 2]
    """

    _kind = "result"

    corpus: Corpus
    distinct: DistinctDocuments
    embeddings: FloatArray
    graph: NeighborGraph
    coordinates: FloatArray
    map: FloatArray
    clustering: Clustering
    memberships: csr_matrix
    tokens: TokenStream
    term_counts: TermCounts
    topic_terms: csr_matrix
    topics: tuple[Topic, ...]
    decisions: tuple[Decision, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    timings: Mapping[str, float] = field(default_factory=dict)
    history: tuple[Edit, ...] = ()
    tree: SpanningTree | None = None
    stability: Stability | None = None
    constraints: TopicConstraints | None = None
    added: npt.NDArray[np.bool_] | None = None
    weighting: TermWeighting | None = None

    def __repr__(self) -> str:
        n_texts = int(self.distinct.weights.sum())
        return (
            f"TopicResult({self.n_topics} topics, {n_texts:,} texts, {self.coverage:.0%} covered)"
        )

    def _repr_html_(self) -> str:
        return topics_as_html(self, "result")

    def to_frame(self) -> pd.DataFrame:
        """Return the table of topics, see `embedtopics.topics.table`.

        Examples
        --------
        >>> import embedtopics as et
        >>> result = et.TopicModel("tfidf").fit(et.Corpus("embedtopics:demo")).result_
        >>> result.to_frame().columns[:4].tolist()
        ['topic', 'name', 'terms', 'examples']
        """
        from embedtopics.topics._tables import table

        return table(self)

    def summary(self, n_topics: int = 10) -> str:
        """Return the largest topics, what was decided, and what can be asked next, as text.

        Parameters
        ----------
        n_topics : int
            Number of topics to list; the largest topic of each theme is listed as well.

        Returns
        -------
        str
            About a screen of lines.

        Examples
        --------
        >>> import embedtopics as et
        >>> result = et.TopicModel("tfidf").fit(et.Corpus("embedtopics:demo")).result_
        >>> for line in result.summary().splitlines()[-9:]:
        ...     print(line.strip())
        et.topics.over_time(result)                    change over time
        et.topics.by_group(result)                     differences between groups
        et.topics.find(result, "a query")              topics near a query
        et.topics.sample_documents(result, 0)          texts to read
        et.topics.recluster(result)                    another number of topics
        et.topics.rename(result, {0: "Name"})          names of your own
        et.topics.merge(result, [0, 1])                one topic of several
        et.plots.map(result)                           a map of the texts
        et.report.write_report(result, "report.html")  a page with all of it
        """
        lines = [repr(self)]
        for theme in self._themes:
            if len(self._themes) < self.n_topics:
                lines.append(f"     {theme.share:6.1%}  {theme.label} ({len(theme.topics)} topics)")
            for topic in (self.topics[i] for i in theme.topics):
                if topic.topic_id < n_topics or topic.topic_id == theme.topics[0]:
                    terms = ", ".join(w for w in topic.keywords[:8] if w not in topic.name)
                    lines.append(f"{topic.topic_id:4} {topic.share:6.1%}    {topic.name}: {terms}")
        lines += ["", *dict.fromkeys(decision.message for decision in self.decisions)]
        lines += ["", "Ask next:"]
        lines += [f"  {call:46} {answer}" for call, answer in QUESTIONS.items()]
        return "\n".join(lines)

    def save(self, folder: str | Path, *, texts: bool = True) -> Path:
        """Save the result, whole or without its texts.

        The files replace those of an earlier result in the folder only once all are written.

        Parameters
        ----------
        folder : str or Path
            A new folder, an empty one, or a saved result to replace.
        texts : bool
            Whether to save the texts. Without them the result can be shared where they cannot:
            left out are also their words, the term counts of each document, the constraints of
            the fit, and the ids, row labels and columns of the input. Topics, names, history, term
            weights, labels, memberships, map, embeddings and hashes of the texts are saved.

        Returns
        -------
        Path
            The folder.

        Raises
        ------
        InputError
            If the folder holds other files or cannot be written.

        Notes
        -----
        A result without texts is not anonymous. A hash confirms that a known text was in the
        corpus. An embedding reveals much of its text (Morris et al. 2023, "Text embeddings reveal
        (almost) as much as text"). Terms, names, settings, edits and decisions come from the texts.

        Examples
        --------
        >>> import tempfile
        >>> import embedtopics as et
        >>> result = et.TopicModel("tfidf").fit(et.Corpus("embedtopics:demo")).result_
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     saved = result.save(f"{folder}/study")
        ...     loaded = et.TopicResult.load(saved)
        >>> (loaded.labels == result.labels).all()
        np.True_
        """
        from embedtopics.topics._storage import save_result, without_texts

        return save_result(self if texts else without_texts(self), folder)

    @classmethod
    def load(cls, folder: str | Path) -> TopicResult:
        """Load a saved result; every file is checked against its recorded checksum.

        Parameters
        ----------
        folder : str or Path
            Where `save`, or ``embedtopics topics`` on the command line, wrote.

        Returns
        -------
        TopicResult
            Equal to the saved one, bit for bit. Columns of the input that Parquet cannot hold come
            back as text.

        Raises
        ------
        InputError
            If the folder does not exist.
        CorruptFileError
            If it is not a saved result, was damaged, or has a newer format.
        """
        from embedtopics.topics._storage import load_result

        return load_result(folder)

    @property
    def n_topics(self) -> int:
        """Number of topics, without noise."""
        return len(self.topics)

    @cached_property
    def _themes(self) -> tuple[Theme, ...]:
        """4 to 12 groups of topics, the largest first; fewer than 8 topics are their own themes."""
        from embedtopics.topics.reading._hierarchy import group_topics

        return group_topics(self)

    def _single_words(self, n_terms: int) -> list[list[str]]:
        """Return the best single words of each topic, best first."""
        from embedtopics.topics._describe import top_words

        return top_words(self, n_terms) if self.topics else []

    @property
    def labels(self) -> Int32Array:
        """Topic of each row, shape (n_rows,); -1 for noise and for rows without text."""
        return self.by_row(self.clustering.labels, NOISE)

    @property
    def none_shares(self) -> FloatArray:
        """Share of no topic in each document, (n_documents,): 1 less its memberships."""
        inside = np.asarray(self.memberships.sum(axis=1), dtype=np.float64).ravel()
        return np.clip(1.0 - inside, 0.0, 1.0).astype(np.float32)

    @property
    def reasons(self) -> npt.NDArray[np.int8]:
        """Why each row is in no topic, a `Reason`, shape (n_rows,); 0 for rows in a topic."""
        reasons = self.clustering.reasons
        if reasons is None:
            is_noise = self.clustering.labels == NOISE
            reasons = np.where(is_noise, Reason.ISOLATED, Reason.IN_TOPIC).astype(np.int8)
        return self.by_row(reasons, Reason.NO_TEXT)

    @property
    def coverage(self) -> float:
        """Share of the rows with text in a topic."""
        has_text = self.distinct.of_row >= 0
        return float(np.mean(self.labels[has_text] != NOISE)) if has_text.any() else 0.0

    def by_row(self, values: npt.NDArray[Any], missing: float) -> npt.NDArray[Any]:
        """Return values of rows from those of documents; `missing` for rows without text."""
        of_row = self.distinct.of_row
        spread = np.full((len(of_row), *values.shape[1:]), missing, dtype=values.dtype)
        spread[of_row >= 0] = values[of_row[of_row >= 0]]
        return spread


def topics_as_html(result: TopicResult, name: str) -> str:
    """Return the table of topics, and below it what can be asked next.

    Parameters
    ----------
    result : TopicResult
    name : {"result", "model"}
        What the calls are made with.
    """
    rows = [
        (
            topic.topic_id,
            topic.size,
            f"{topic.share:.1%}",
            topic.name,
            ", ".join(topic.keywords[:8]),
        )
        for topic in result.topics
    ]
    frame = pd.DataFrame(rows, columns=["topic", "size", "share", "name", "terms"])
    calls = ASK.replace("(result", f"({name}")
    return f"{html_table(frame, repr(result))}<p>{escape(calls)}</p>"
