"""What pre-training returns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from embedtopics._utils.display import Displayed
from embedtopics.decisions import Decision

if TYPE_CHECKING:
    import pandas as pd

    from embedtopics.encoders import SentenceEncoder


@dataclass(frozen=True, eq=False, repr=False)
class TokenizerReport(Displayed):
    """Into how many pieces an encoder's tokenizer cuts the words of a corpus.

    Parameters
    ----------
    encoder : str
    n_texts, n_words, n_pieces, n_unknown : int
        Texts, their words, the pieces of these, and how many pieces are unknown; a text that is
        repeated counts as often.
    words : DataFrame
        A distinct word a row: word, n (occurrences), n_documents, pieces (how many), cut (the
        pieces), n_unknown, and cost, the pieces beyond one for each occurrence; the costliest
        first.
    by_language : DataFrame
        language, n_texts, fertility, share_cut (words in three or more pieces), share_unknown.
    examples : tuple of tuple of str
        Beginnings of some texts, from those cut least to those cut most, as the parts that become
        one piece each, with what lies between them.
    """

    encoder: str
    n_texts: int
    n_words: int
    n_pieces: int
    n_unknown: int
    words: pd.DataFrame
    by_language: pd.DataFrame
    examples: tuple[tuple[str, ...], ...]

    @property
    def fertility(self) -> float:
        """Pieces a word (Rust et al. 2021, "How good is your tokenizer?", section 3.1)."""
        return self.n_pieces / max(self.n_words, 1)

    @property
    def share_cut(self) -> float:
        """Share of the words that become three or more pieces."""
        cut = self.words.loc[self.words["pieces"] >= 3, "n"].sum()
        return float(cut) / max(self.n_words, 1)

    @property
    def share_unknown(self) -> float:
        """Share of the pieces that are unknown."""
        return self.n_unknown / max(self.n_pieces, 1)

    def to_frame(self) -> pd.DataFrame:
        """Return `words`."""
        return self.words

    def _summary(self) -> str:
        return (
            f"{self.encoder}: {self.fertility:.2f} pieces a word, {self.share_cut:.1%} of words in "
            f"three or more, {self.share_unknown:.1%} of pieces unknown"
        )


@dataclass(frozen=True, eq=False, repr=False)
class ExtendedVocabulary(Displayed):
    """An encoder that knows more words.

    Parameters
    ----------
    encoder : SentenceEncoder
        Reads the folder that was written.
    words : DataFrame
        An added word a row: word, pieces (those it was cut into), similar (the words whose mean
        its vector starts with, where it is not that of its pieces), and the words nearest to it
        before and after.
    fertility : tuple of two float, optional
        Pieces a word of the corpus before and after, where there is one.
    decisions : tuple of Decision
    """

    encoder: SentenceEncoder
    words: pd.DataFrame
    fertility: tuple[float, float] | None = None
    decisions: tuple[Decision, ...] = field(default=())

    def to_frame(self) -> pd.DataFrame:
        """Return `words`."""
        return self.words

    def _summary(self) -> str:
        summary = f"{len(self.words)} words added to {self.encoder.name}"
        if self.fertility is None:
            return summary
        return "{}; pieces a word: {:.2f} before, {:.2f} after".format(summary, *self.fertility)
