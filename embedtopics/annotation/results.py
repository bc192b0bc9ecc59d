"""Results of a study: recall tests, advice on stopping, agreement, and labels by a model."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from embedtopics._utils.display import Displayed
from embedtopics.corpus._table_files import write_csv
from embedtopics.errors import InputError
from embedtopics.inference.results import MeasuredShares
from embedtopics.results import Decision

if TYPE_CHECKING:
    import pandas as pd

    from embedtopics.annotation._topics import SheetStudy, TopicStudy

__all__ = [
    "AnnotatorAgreement",
    "Coding",
    "Sheet",
    "SheetScore",
    "SheetStudy",
    "Stopping",
    "StudyReport",
    "TextToLabel",
    "TopicStudy",
]


def __getattr__(name: str) -> Any:
    """Return a class of studies, whose module is imported when it is first used."""
    if name in ("SheetStudy", "TopicStudy"):
        from embedtopics.annotation import _topics

        return getattr(_topics, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


@dataclass(frozen=True)
class TextToLabel:
    """A text to label.

    Parameters
    ----------
    key : str
        Hash of the text, an argument of `AnnotationProject.label`.
    id : str
        Id of the first row with this text.
    text : str
    stream : {"teach", "count"}

    Examples
    --------
    >>> import tempfile
    >>> import embedtopics as et
    >>> texts = ["ripe plums", "late trains", "sweet pears", "slow trains"]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     project = et.AnnotationProject(
    ...         texts, ["fruit", "rail"], folder, encoder="lsa", teach=0.0
    ...     )
    ...     text = project.next()
    ...     project.close()
    >>> text.stream, text.text in texts
    ('count', True)
    """

    key: str
    id: str
    text: str
    stream: str


@dataclass(frozen=True, eq=False, repr=False)
class Stopping(Displayed):
    """Advice on stopping, a row for each class.

    Parameters
    ----------
    table : DataFrame
        See `to_frame`.
    decisions : tuple of Decision

    Examples
    --------
    >>> import tempfile
    >>> import embedtopics as et
    >>> texts = [f"{fruit} number {row}" for row in range(20) for fruit in ("plum", "pear")]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with et.AnnotationProject(texts, ["plum", "pear"], folder, encoder="lsa") as project:
    ...         for _ in range(20):
    ...             text = project.next()
    ...             project.label(text.key, text.text.split()[0])
    ...         stopping = project.stopping()
    >>> stopping.to_frame()[["class", "enough"]]
      class  enough
    0  plum   False
    1  pear   False
    """

    table: pd.DataFrame
    decisions: tuple[Decision, ...] = ()

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each class.

        Returns
        -------
        DataFrame
            Columns class; n_found, the number of labelled relevant texts; p, the p-value of the
            hypothesis that recall is below the target; recall_bound, a one-sided lower bound of
            recall; enough, whether the test rejects the hypothesis; width of the 95 % interval of
            the share, NaN before the first estimate, and width_after_50, the width to be expected
            after 50 more count labels.
        """
        return self.table.copy()

    def _summary(self) -> str:
        rows = self.table.head(3).to_dict("records")
        bounds = [f"{row['class']}: recall at least {row['recall_bound']:.0%}" for row in rows]
        return ", ".join(bounds)


@dataclass(frozen=True, eq=False, repr=False)
class StudyReport(Displayed):
    """The current state of a study; `embedtopics.report.write_report` writes it as a page.

    Parameters
    ----------
    progress : dict of str to int
        See `AnnotationProject.progress`.
    tables : dict of str to DataFrame
        By heading: codebook, quality of the model, agreement, texts that annotators disagree on,
        and examples of each label.
    shares : MeasuredShares or None
        None before there are enough count texts.
    decisions : tuple of Decision

    Examples
    --------
    >>> import tempfile
    >>> import embedtopics as et
    >>> texts = [f"{fruit} number {row}" for row in range(20) for fruit in ("plum", "pear")]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with et.AnnotationProject(texts, ["plum", "pear"], folder, encoder="lsa") as project:
    ...         for _ in range(20):
    ...             text = project.next()
    ...             project.label(text.key, text.text.split()[0])
    ...         report = project.report()
    >>> report
    StudyReport(20 of 40 texts labelled)
    >>> list(report.tables)
    ['Codebook', 'Quality of the model on texts that it was not fitted on', 'Examples']
    """

    progress: dict[str, int]
    tables: dict[str, pd.DataFrame]
    shares: MeasuredShares | None
    decisions: tuple[Decision, ...]

    def to_frame(self) -> pd.DataFrame:
        """Return the shares."""
        import pandas as pd

        return pd.DataFrame() if self.shares is None else self.shares.to_frame()

    def _summary(self) -> str:
        return "{labelled:,} of {texts:,} texts labelled".format(**self.progress)


@dataclass(frozen=True, eq=False, repr=False)
class AnnotatorAgreement(Displayed):
    """Agreement of annotators on the texts that two or more of them labelled.

    Parameters
    ----------
    alpha : dict of str to float
        Krippendorff's alpha (Krippendorff 2011), for ordinal data if the labels are: one value for
        kinds with one label a text, otherwise one for each label. For spans, the units are the
        words of the texts, each inside or outside of a part with the label. NaN if undefined.
    n_texts : int
        Number of texts with labels of two or more annotators.
    disagreements : DataFrame
        Texts that they disagree on: id, key, text, one column for each annotator, and the resolved
        label in "decided".
    intervals : dict of str to (float, float)
        95 % interval of each alpha, from resampled texts.

    Examples
    --------
    >>> import tempfile
    >>> import embedtopics as et
    >>> texts = ["ripe plums", "late trains", "sweet pears", "slow trains"]
    >>> ana = ["fruit", "rail", "fruit", "rail"]
    >>> bo = ["fruit", "rail", "rail", "rail"]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with et.AnnotationProject(texts, ["fruit", "rail"], folder, encoder="lsa") as project:
    ...         for row, key in enumerate(project.keys):
    ...             project.label(key, ana[row], by="ana")
    ...             project.label(key, bo[row], by="bo")
    ...         agreement = project.agreement()
    >>> agreement
    AnnotatorAgreement(alpha label 0.53 on 4 texts, 1 differ)
    >>> agreement.to_frame()[["text", "ana", "bo"]]
             text    ana    bo
    0  ripe plums  fruit  rail
    """

    alpha: dict[str, float]
    n_texts: int
    disagreements: pd.DataFrame
    intervals: dict[str, tuple[float, float]]

    def to_frame(self) -> pd.DataFrame:
        """Return the disagreements."""
        return self.disagreements

    def _summary(self) -> str:
        each = ", ".join(f"{name} {value:.2f}" for name, value in self.alpha.items())
        return f"alpha {each} on {self.n_texts:,} texts, {len(self.disagreements):,} differ"


@dataclass(frozen=True, eq=False, repr=False)
class Coding(Displayed):
    """The labels that a language model gave to texts; they are predictions, never gold.

    Parameters
    ----------
    model : str
    names : tuple of str
        The labels of the codebook.
    table : DataFrame
        Aligned with the texts: label (None for none), answer, and the reason for no label.

    Examples
    --------
    >>> import pandas as pd
    >>> from embedtopics.annotation.results import Coding
    >>> labels = ["fruit", "rail", None, "rail"]  # what a LanguageModelCoder answered
    >>> coding = Coding("gemma", ("fruit", "rail"), pd.DataFrame({"label": labels}))
    >>> coding
    Coding(3 of 4 texts labelled by gemma)
    >>> scores = coding.agreement(["fruit", "rail", "fruit", "fruit"])  # with what people say
    >>> scores.query("metric == 'accuracy'")[["metric", "value", "n"]]
         metric  value  n
    0  accuracy    0.5  4
    """

    model: str
    names: tuple[str, ...]
    table: pd.DataFrame

    @property
    def labels(self) -> pd.Series:
        """The label of each text, None for none."""
        return self.table["label"].rename(self.model)

    def to_frame(self) -> pd.DataFrame:
        """Return the table."""
        return self.table

    def agreement(self, gold: Any) -> pd.DataFrame:
        """Compare the labels with those of people.

        Parameters
        ----------
        gold : sequence of str or None
            People's label of each text, None for texts that nobody read.

        Returns
        -------
        DataFrame
            Accuracy and Krippendorff's alpha; recall, precision and alpha of each label: columns
            class (None for all), metric, value, low, high (95 % intervals) and n. A text that the
            model gave no label counts as wrong; alpha leaves it out.
        """
        from embedtopics.annotation._estimates import agreement_with_people

        return agreement_with_people(self.names, self.table["label"], gold)

    def _summary(self) -> str:
        n_labelled = int(self.table["label"].notna().sum())
        return f"{n_labelled:,} of {len(self.table):,} texts labelled by {self.model}"


@dataclass(frozen=True, eq=False, repr=False)
class Sheet(Displayed):
    """Questions for coders, and their key in a second table.

    Parameters
    ----------
    task : {"word_intrusion", "document_intrusion", "optimal_label", "topic_fit"}
    questions : DataFrame
        Columns task, question (an id), perhaps text, the options, and answer (empty).
    key : DataFrame
        The solution of each question.
    """

    task: str
    questions: pd.DataFrame
    key: pd.DataFrame

    def __len__(self) -> int:
        """Return the number of questions."""
        return len(self.questions)

    def _summary(self) -> str:
        return f"{self.task!r}, {len(self)} questions"

    def to_frame(self) -> pd.DataFrame:
        """Return the questions."""
        return self.questions

    @property
    def prompts(self) -> pd.Series:
        """Each question with its numbered options, as people or a language model read it."""
        from embedtopics.annotation._sheets import TASKS

        def spell(row: Any) -> str:
            options = [row[name] for name in row.index if name.startswith("option_")]
            lines = [f"{number}. {option}" for number, option in enumerate(options, start=1)]
            return "\n\n".join(filter(None, [TASKS[self.task], row.get("text"), "\n".join(lines)]))

        return self.questions.apply(spell, axis=1).set_axis(self.questions["question"])

    def write(self, folder: str | Path) -> tuple[Path, Path]:
        """Write the questions to a folder, and the key to the folder "keys" below it.

        Each coder fills in the column "answer" of a copy. Spreadsheets run no cell as a formula.

        Raises
        ------
        InputError
            If a file exists, which may hold answers, or cannot be written.
        """
        from embedtopics.annotation._sheets import KEYS

        folder = Path(folder)
        paths = folder / f"{self.task}.csv", folder / KEYS / f"{self.task}.csv"
        for path, table in zip(paths, (self.questions, self.key), strict=True):
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                with path.open("x", encoding="utf-8-sig", newline="") as stream:
                    write_csv(stream, table)
            except OSError as error:
                problem = f"{path}: {error.strerror or error}"
                remedy = "files there may hold answers"
                raise InputError(
                    "folder", "a new or empty folder", remedy=remedy, found=problem
                ) from error
        return paths


@dataclass(frozen=True, eq=False, repr=False)
class SheetScore(Displayed):
    """The share of correct answers to a sheet: intruders identified, or texts that fit.

    Parameters
    ----------
    task : str
    precision, low, high : float
        Model precision (Chang et al. 2009): share of the answers that name the intruder; for
        "topic_fit", that say that a text of the topic fits well or fully. The interval is over
        answers for one coder, and over resampled questions for several coders, whose answers to
        one question are not independent.
    chance : float
        Expected precision of guessing; for "topic_fit", that of texts of other topics.
    n_answers, n_questions, n_coders : int
    by_topic : pandas.DataFrame
        Columns topic, n (answers), hits, precision, low, high, chance (mean over the questions)
        and p_value (one-sided binomial test against chance). The intervals describe other coders
        on these questions, not other questions.
    alpha : float
        Krippendorff's alpha of the coders; NaN for one coder.
    """

    task: str
    precision: float
    low: float
    high: float
    chance: float
    n_answers: int
    n_questions: int
    n_coders: int
    by_topic: pd.DataFrame
    alpha: float

    def to_frame(self) -> pd.DataFrame:
        """Return the scores by topic."""
        return self.by_topic

    def _summary(self) -> str:
        return (
            f"{self.task!r}, precision {self.precision:.2f} [{self.low:.2f}, {self.high:.2f}], "
            f"chance {self.chance:.2f}, {self.n_answers:,} answers"
        )
