"""Words in their contexts: uses, neighbours, senses, and change between groups of texts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from embedtopics.errors import InputError
from embedtopics.protocols import FloatArray, Int32Array
from embedtopics.results.inputs import Decision

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "NeighborTable",
    "SenseCount",
    "SenseScore",
    "SenseSeparation",
    "StaticNeighbors",
    "WordNeighbors",
    "WordSenses",
    "WordUse",
]

Float64Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class WordUse:
    """One use of a word.

    Parameters
    ----------
    row : int
        Of the hidden states.
    text, position : int
        The text it stands in, and its place among the units of that text.
    word : str
        As it is written there.
    span : tuple of int
        First character in the text, and the one behind the last.
    sentence : str
        The sentence that it stands in.
    start : int
        First character of the word in `sentence`.
    """

    row: int
    text: int
    position: int
    word: str
    span: tuple[int, int]
    sentence: str
    start: int

    @property
    def parts(self) -> tuple[str, str, str]:
        """What stands before the word in its sentence, the word, and what follows."""
        end = self.start + self.span[1] - self.span[0]
        return self.sentence[: self.start], self.sentence[self.start : end], self.sentence[end:]


@dataclass(frozen=True, eq=False)
class WordNeighbors:
    """The uses of words that lie nearest to one use of a word.

    Parameters
    ----------
    query : WordUse
    uses : tuple of WordUse
        Nearest first.
    similarities : float64 ndarray of shape (n_neighbors,)
        Cosines.
    layer : int
    encoder : str
    among : {"all", "same word", "other words"}
    adjust : {"none", "center", "standardize"}
        What was done to the space first.
    n_compared : int
        Uses that were looked at.
    decisions : tuple of Decision
    """

    query: WordUse
    uses: tuple[WordUse, ...]
    similarities: Float64Array
    layer: int
    encoder: str
    among: str
    adjust: str
    n_compared: int
    decisions: tuple[Decision, ...] = field(default=())

    def to_frame(self) -> pd.DataFrame:
        """Return a row a neighbour: rank, word, similarity, text, position, start, end, sentence.

        `start` and `end` are those of the word in its text.
        """
        import pandas as pd

        rows = [
            (rank, use.word, float(similarity), use.text, use.position, *use.span, use.sentence)
            for rank, (use, similarity) in enumerate(
                zip(self.uses, self.similarities, strict=True), start=1
            )
        ]
        columns = ["rank", "word", "similarity", "text", "position", "start", "end", "sentence"]
        return pd.DataFrame(rows, columns=columns)


@dataclass(frozen=True, eq=False)
class StaticNeighbors:
    """The words whose mean vectors lie nearest to that of a word.

    Parameters
    ----------
    word : str
    n_uses : int
        Of the word.
    words : tuple of str
        Nearest first.
    similarities : float64 ndarray of shape (n_neighbors,)
        Cosines of the means.
    counts : int32 ndarray of shape (n_neighbors,)
        Uses of each neighbour.
    layer : int
    encoder : str
    min_count : int
        Words of fewer uses were left out.
    adjust : str
    n_compared : int
        Words that were looked at.
    """

    word: str
    n_uses: int
    words: tuple[str, ...]
    similarities: Float64Array
    counts: Int32Array
    layer: int
    encoder: str
    min_count: int
    adjust: str
    n_compared: int

    def to_frame(self) -> pd.DataFrame:
        """Return a row a neighbour: rank, word, similarity and count."""
        import pandas as pd

        rows = zip(self.words, self.similarities.tolist(), self.counts.tolist(), strict=True)
        frame = pd.DataFrame(list(rows), columns=["word", "similarity", "count"])
        frame.insert(0, "rank", np.arange(1, len(frame) + 1))
        return frame


@dataclass(frozen=True, eq=False)
class NeighborTable:
    """What a word is near to whatever its context, beside what each of its uses is near to.

    Parameters
    ----------
    word : str
    static : StaticNeighbors
    contextual : tuple of WordNeighbors
        One a use.
    """

    word: str
    static: StaticNeighbors
    contextual: tuple[WordNeighbors, ...]

    def to_frame(self) -> pd.DataFrame:
        """Return a row a source and neighbour: source, rank, neighbor, similarity.

        The source is the word alone, in the rows of its static neighbours, and the sentence of a
        use in those of its contextual ones; there the neighbour is a sentence too.
        """
        import pandas as pd

        rows: list[tuple[str, int, str, float]] = []
        near = zip(self.static.words, self.static.similarities.tolist(), strict=True)
        rows += [(self.word, rank, word, s) for rank, (word, s) in enumerate(near, start=1)]
        for found in self.contextual:
            pairs = zip(found.uses, found.similarities.tolist(), strict=True)
            rows += [
                (found.query.sentence, rank, use.sentence, s)
                for rank, (use, s) in enumerate(pairs, start=1)
            ]
        return pd.DataFrame(rows, columns=["source", "rank", "neighbor", "similarity"])


@dataclass(frozen=True)
class SenseCount:
    """How well some number of senses fits.

    Parameters
    ----------
    n_senses : int
    silhouette : float
        Mean over the uses; NaN for one sense, and where no such clusters were found.
    by_chance : float
        Mean of the same over single clouds of the same covariance.
    share : float
        Of the resamples, how many would have chosen this number; NaN without resamples.
    """

    n_senses: int
    silhouette: float
    by_chance: float
    share: float


@dataclass(frozen=True, eq=False)
class WordSenses:
    """The uses of a word in clusters, each a candidate for a sense.

    Parameters
    ----------
    word : str
    layer : int
    encoder : str
    adjust : str
    uses : tuple of WordUse
    labels : int32 ndarray of shape (n_uses,)
        The sense of each use, from 0, the largest first.
    similarities : float64 ndarray of shape (n_uses,)
        Cosine of each use with the centre of its sense.
    silhouettes : float64 ndarray of shape (n_uses,)
        How much nearer each use is to its own sense than to the next; NaN with one sense.
    centers : float32 ndarray of shape (n_senses, width)
        Of length one.
    counts : tuple of SenseCount
        How well other numbers of senses fit.
    p : float
        Share of single clouds, of the same covariance, that part at least as well; NaN where this
        was not asked.
    stability : float64 ndarray of shape (n_senses,)
        How well each sense is found again in resamples of the texts: mean of the largest Jaccard
        coefficient with a cluster found there, from 0 to 1; NaN without resamples.
    chosen : bool
        Whether the number of senses was chosen here, not given.
    decisions : tuple of Decision
    """

    word: str
    layer: int
    encoder: str
    adjust: str
    uses: tuple[WordUse, ...]
    labels: Int32Array
    similarities: Float64Array
    silhouettes: Float64Array
    centers: FloatArray
    counts: tuple[SenseCount, ...]
    p: float
    stability: Float64Array
    chosen: bool
    decisions: tuple[Decision, ...] = field(default=())

    @property
    def n_senses(self) -> int:
        """Number of senses."""
        return len(self.centers)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of uses of each sense."""
        return tuple(np.bincount(self.labels, minlength=self.n_senses).tolist())

    def examples(self, sense: int, n: int = 5) -> tuple[WordUse, ...]:
        """Return the uses nearest to the centre of a sense; of several in one sentence, one.

        Raises
        ------
        InputError
            If there is no such sense.
        """
        if not 0 <= sense < self.n_senses:
            raise InputError(f"expected a sense from 0 to {self.n_senses - 1}; got {sense}")
        members = np.flatnonzero(self.labels == sense)
        order = members[np.argsort(-self.similarities[members], kind="stable")]
        found: dict[str, WordUse] = {}
        for place in order.tolist():
            found.setdefault(self.uses[place].sentence, self.uses[place])
            if len(found) == n:
                break
        return tuple(found.values())[:n]

    def to_frame(self) -> pd.DataFrame:
        """Return a row a use: sense, similarity, silhouette, text, position, word, sentence."""
        import pandas as pd

        columns = {
            "sense": self.labels,
            "similarity": self.similarities,
            "silhouette": self.silhouettes,
            "text": [use.text for use in self.uses],
            "position": [use.position for use in self.uses],
            "word": [use.word for use in self.uses],
            "sentence": [use.sentence for use in self.uses],
        }
        return pd.DataFrame(columns)


@dataclass(frozen=True)
class SenseScore:
    """How well one layer keeps the given senses of a word apart.

    Parameters
    ----------
    word : str
        Empty for the mean over words.
    layer : int or None
        None for the baseline.
    measure : {"1-NN accuracy", "centroid accuracy", "silhouette", "majority"}
    value, low, high : float
        The figure, and its 95 % interval over texts.
    n : int
        Uses.
    """

    word: str
    layer: int | None
    measure: str
    value: float
    low: float
    high: float
    n: int


@dataclass(frozen=True, eq=False)
class SenseSeparation:
    """How well each layer keeps given senses apart.

    Parameters
    ----------
    encoder : str
    words : tuple of str
    n_senses : tuple of int
        Of each word.
    scores : tuple of SenseScore
    adjust : str
    decisions : tuple of Decision
    """

    encoder: str
    words: tuple[str, ...]
    n_senses: tuple[int, ...]
    scores: tuple[SenseScore, ...]
    adjust: str
    decisions: tuple[Decision, ...] = field(default=())

    def of(self, measure: str, word: str = "") -> tuple[SenseScore, ...]:
        """Return the figures of one measure by layer; without a word, the means over words."""
        found = [s for s in self.scores if s.measure == measure and s.word == word]
        return tuple(sorted(found, key=lambda s: -1 if s.layer is None else s.layer))

    def to_frame(self) -> pd.DataFrame:
        """Return the figures as a table: word, layer, measure, value, low, high and n."""
        import pandas as pd

        rows = [(s.word, s.layer, s.measure, s.value, s.low, s.high, s.n) for s in self.scores]
        columns = ["word", "layer", "measure", "value", "low", "high", "n"]
        return pd.DataFrame(rows, columns=columns).astype({"layer": "Int64"})
