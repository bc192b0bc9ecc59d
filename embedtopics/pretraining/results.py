"""Results of pre-training."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from embedtopics._utils.display import Displayed
from embedtopics.results import Decision
from embedtopics.training.results import Diagnosis, TrainingReport

if TYPE_CHECKING:
    import pandas as pd

    from embedtopics.encoders.sentence._encoder import SentenceEncoder

__all__ = ["ExtendedVocabulary", "PretrainingResult", "TokenizerReport"]

TASK = "held-out texts"
"""Task of the scores on held-out texts in a report."""


@dataclass(frozen=True, eq=False, repr=False)
class TokenizerReport(Displayed):
    """How a tokenizer splits the words of a corpus into pieces.

    Parameters
    ----------
    encoder : str
    n_texts, n_words, n_pieces, n_unknown : int
        Numbers of texts, words, pieces and unknown pieces; repeated texts count each time.
    words : DataFrame
        One row per distinct word: word, n (occurrences), n_documents, pieces (number), cut (the
        pieces), n_unknown, and cost (pieces beyond one, times occurrences); the costliest first.
    by_language : DataFrame
        language, n_texts, fertility, share_cut (words in three or more pieces), share_unknown.
    examples : tuple of tuple of str
        Beginnings of some texts as pieces and the parts between them, from few to many pieces.
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
        """Pieces per word (Rust et al. 2021, "How good is your tokenizer?", section 3.1)."""
        return self.n_pieces / max(self.n_words, 1)

    @property
    def share_cut(self) -> float:
        """Share of the words with three or more pieces."""
        cut = self.words.loc[self.words["pieces"] >= 3, "n"].sum()
        return float(cut) / max(self.n_words, 1)

    def to_frame(self) -> pd.DataFrame:
        """Return `words`."""
        return self.words

    def _summary(self) -> str:
        unknown = self.n_unknown / max(self.n_pieces, 1)
        return (
            f"{self.encoder}: {self.fertility:.2f} pieces a word, {self.share_cut:.1%} of words in "
            f"three or more, {unknown:.1%} of pieces unknown"
        )


@dataclass(frozen=True, eq=False, repr=False)
class ExtendedVocabulary(Displayed):
    """An encoder with added words.

    Parameters
    ----------
    encoder : SentenceEncoder
        Encoder of the folder that was written.
    words : DataFrame
        One row per added word: word, pieces (before), neighbors_before and neighbors_after.
    fertility : tuple of two float, optional
        Pieces per word of the corpus before and after, if there is a corpus.
    decisions : tuple of Decision
    agreement : tuple of two float, optional
        Mean cosine of held-out texts with new words to their former vectors: with the mean of the
        pieces, and with the fitted vectors. None without a corpus or with too few such texts.
    """

    encoder: SentenceEncoder
    words: pd.DataFrame
    fertility: tuple[float, float] | None = None
    decisions: tuple[Decision, ...] = ()
    agreement: tuple[float, float] | None = None

    def to_frame(self) -> pd.DataFrame:
        """Return `words`."""
        return self.words

    def _summary(self) -> str:
        summary = f"{len(self.words)} words added to {self.encoder.name}"
        if self.fertility is not None:
            summary += "; pieces a word: {:.2f} before, {:.2f} after".format(*self.fertility)
        if self.agreement is not None:
            summary += f"; texts with new words keep a cosine of {self.agreement[1]:.3f}"
        return summary


@dataclass(frozen=True, eq=False, repr=False)
class PretrainingResult(Displayed):
    """An encoder that was pre-trained further, with its report.

    Parameters
    ----------
    encoder : SentenceEncoder
        The encoder, with its former pooling and steps.
    report : TrainingReport
        Curves (the metric is the share of hidden tokens that are predicted correctly), their
        verdict, and changes.
    """

    encoder: SentenceEncoder
    report: TrainingReport

    @property
    def diagnosis(self) -> Diagnosis:
        """The verdict on the learning curves."""
        return self.report.diagnosis

    @property
    def held_out(self) -> pd.DataFrame:
        """Loss in nats, perplexity and accuracy on held-out texts, before and after.

        Pairs have separate rows; "rtd" is measured on tokens replaced by frequency.
        """
        import pandas as pd

        from embedtopics.training._rows import Change, rows_of

        rows: dict[str, list[float]] = {}
        for change in rows_of(self.report.before_after, Change):
            kind, _, measure = change.metric.partition(" ")
            if change.task != TASK:
                continue
            prefix = "pair " if kind == "pair" else ""
            ends = [change.before, change.after]
            if measure == "accuracy":
                rows[f"{prefix}accuracy"] = ends
                continue
            rows[f"{prefix}loss"] = [-end for end in ends]
            if kind == "masked":
                rows["perplexity"] = [math.exp(min(700.0, -end)) for end in ends]
        return pd.DataFrame(rows, ["before", "after"]).T

    def to_frame(self) -> pd.DataFrame:
        """Return `held_out`, with a column measure."""
        return self.held_out.rename_axis("measure").reset_index()

    def _summary(self) -> str:
        return repr(self.report)
