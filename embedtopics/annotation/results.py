"""What a study found: tests of recall, advice on stopping, and how far annotators agree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from embedtopics._utils.display import Displayed
from embedtopics.classification.results import Prevalence
from embedtopics.decisions import Decision

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class TextToLabel:
    """One text that waits for a label.

    Parameters
    ----------
    key : str
        Hash of the text, by which it is answered.
    id : str
        Of its first row in the corpus.
    text : str
    stream : str
        "teach" or "count".
    """

    key: str
    id: str
    text: str
    stream: str


@dataclass(frozen=True)
class RecallTest:
    """Whether enough relevant texts were found.

    Parameters
    ----------
    n_found : int
        Relevant texts with a label.
    p : float
        Of the hypothesis that recall is below the target.
    bound : float
        Lower bound of recall, one-sided.
    recall : float
        The target.
    enough : bool
        Whether the hypothesis is rejected.
    """

    n_found: int
    p: float
    bound: float
    recall: float
    enough: bool


@dataclass(frozen=True)
class StoppingOfClass:
    """What more labels would bring for one class.

    Parameters
    ----------
    name : str
    recall : RecallTest
    width : float
        Of the 95 % interval of the share; NaN before there is one.
    width_after : float
        To be expected after `further` more labels of the count stream.
    further : int
    """

    name: str
    recall: RecallTest
    width: float
    width_after: float
    further: int


@dataclass(frozen=True, eq=False, repr=False)
class Stopping(Displayed):
    """Advice on stopping, class by class.

    Parameters
    ----------
    classes : tuple of StoppingOfClass
    """

    classes: tuple[StoppingOfClass, ...]

    def to_frame(self) -> pd.DataFrame:
        """Return a row for each class."""
        import pandas as pd

        return pd.DataFrame([
            {"class": one.name, "n_found": one.recall.n_found, "p": one.recall.p,
             "recall_bound": one.recall.bound, "enough": one.recall.enough, "width": one.width,
             f"width_after_{one.further}": one.width_after}
            for one in self.classes
        ])  # fmt: skip

    def _summary(self) -> str:
        found = [f"{one.name}: at least {one.recall.bound:.0%} found" for one in self.classes[:3]]
        return ", ".join(found)


@dataclass(frozen=True, eq=False, repr=False)
class StudyReport(Displayed):
    """A study as it stands; `embedtopics.report.write_report` makes a page of it.

    Parameters
    ----------
    progress : dict of str to int
        As of `AnnotationProject.progress`.
    tables : dict of str to DataFrame
        By heading: the codebook, how well the model does, agreement, texts on which annotators
        differ, and examples of each label.
    shares : Prevalence or None
        None before there are enough count texts.
    decisions : tuple of Decision
    """

    progress: dict[str, int]
    tables: dict[str, pd.DataFrame]
    shares: Prevalence | None
    decisions: tuple[Decision, ...]

    def to_frame(self) -> pd.DataFrame:
        """Return the shares."""
        import pandas as pd

        return pd.DataFrame() if self.shares is None else self.shares.to_frame()

    def _summary(self) -> str:
        return "{labelled:,} of {texts:,} texts labelled".format(**self.progress)


@dataclass(frozen=True, eq=False, repr=False)
class AnnotatorAgreement(Displayed):
    """How far annotators agree on the texts that several of them labelled.

    Parameters
    ----------
    alpha : dict of str to float
        Krippendorff's alpha for nominal data (Krippendorff 2011): of the one label a text, or of
        each label where a text may have several. NaN where it is not defined.
    n_texts : int
        With labels of two annotators or more.
    disagreements : DataFrame
        Texts on which they differ: id, text, a column for each annotator, and what was decided.
    """

    alpha: dict[str, float]
    n_texts: int
    disagreements: pd.DataFrame

    def to_frame(self) -> pd.DataFrame:
        """Return the disagreements."""
        return self.disagreements

    def _summary(self) -> str:
        each = ", ".join(f"{name} {value:.2f}" for name, value in self.alpha.items())
        return f"alpha {each} on {self.n_texts:,} texts, {len(self.disagreements):,} differ"
