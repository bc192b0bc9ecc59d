"""Whether a word is used differently in two groups of texts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from embedtopics.results.inputs import Decision

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["MEASURES", "ChangeMeasure", "RareWord", "SemanticChange", "WordChange"]

MEASURES = ("apd", "excess", "prototype")


@dataclass(frozen=True)
class ChangeMeasure:
    """One measure of change.

    Parameters
    ----------
    value, low, high : float
        The figure, and its 95 % interval over texts; NaN bounds of the excess where a group has
        three texts or fewer, of which too many draws hold one alone.
    by_chance : float
        Its mean when texts are dealt to the groups at random.
    p, q : float
        Probability of a value as large by such dealing, and the false discovery rate over words.
    """

    value: float
    low: float
    high: float
    by_chance: float
    p: float
    q: float


@dataclass(frozen=True)
class WordChange:
    """How differently a word is used in two groups.

    Parameters
    ----------
    word : str
    n_uses, n_texts : tuple of int
        In the first and the second group.
    apd : ChangeMeasure
        Average pairwise distance: mean cosine distance of a use in one group to one in the other.
        Large for words of many senses too, whether they changed or not.
    excess : ChangeMeasure
        By how much that is above the mean distance within the groups; 0 on average where nothing
        changed.
    prototype : ChangeMeasure
        Cosine distance of the mean vectors.
    exact : bool
        Whether all ways of dealing the texts were tried.
    """

    word: str
    n_uses: tuple[int, int]
    n_texts: tuple[int, int]
    apd: ChangeMeasure
    excess: ChangeMeasure
    prototype: ChangeMeasure
    exact: bool


@dataclass(frozen=True)
class RareWord:
    """A word that occurs too seldom to be tested.

    Parameters
    ----------
    word : str
    n_uses, n_texts : tuple of int
        In the first and the second group.
    """

    word: str
    n_uses: tuple[int, int]
    n_texts: tuple[int, int]


@dataclass(frozen=True, eq=False)
class SemanticChange:
    """Words in two groups of texts, the most changed first.

    Parameters
    ----------
    groups : tuple of str
        Names of both.
    words : tuple of WordChange
        By the excess, descending.
    too_rare : tuple of RareWord
    layer : int
    encoder : str
    adjust : str
    n_permutations : int
        That were asked for.
    decisions : tuple of Decision
    """

    groups: tuple[str, str]
    words: tuple[WordChange, ...]
    too_rare: tuple[RareWord, ...]
    layer: int
    encoder: str
    adjust: str
    n_permutations: int
    decisions: tuple[Decision, ...] = field(default=())

    def to_frame(self) -> pd.DataFrame:
        """Return a row a word, those too rare last and without figures.

        Returns
        -------
        DataFrame
            Columns word, n_first, n_second, texts_first, texts_second; for each measure its value
            (apd, excess, prototype) and, with its name before them, _low, _high, _by_chance, _p
            and _q; exact.
        """
        import pandas as pd

        rows = []
        for word in self.words:
            row: dict[str, object] = _counts(word)
            for name in MEASURES:
                measure: ChangeMeasure = getattr(word, name)
                row[name] = measure.value
                for part in ("low", "high", "by_chance", "p", "q"):
                    row[f"{name}_{part}"] = getattr(measure, part)
            rows.append(row | {"exact": word.exact})
        parts = ("", "_low", "_high", "_by_chance", "_p", "_q")
        names = [f"{name}{part}" for name in MEASURES for part in parts]
        rows += [_counts(rare) for rare in self.too_rare]
        columns = ["word", "n_first", "n_second", "texts_first", "texts_second", *names, "exact"]
        return pd.DataFrame(rows, columns=columns).astype({"exact": "boolean"})


def _counts(word: WordChange | RareWord) -> dict[str, object]:
    return {
        "word": word.word, "n_first": word.n_uses[0], "n_second": word.n_uses[1],
        "texts_first": word.n_texts[0], "texts_second": word.n_texts[1],
    }  # fmt: skip
