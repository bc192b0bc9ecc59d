"""A variable that people measured for some rows and machines predicted for all."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from embedtopics._utils.checks import checked_choice, resolve_seed
from embedtopics._utils.display import spell_count
from embedtopics._utils.fitted import FittedTopics, result_of
from embedtopics.corpus._alignment import VALUE_OF_ROW, align_values, as_series
from embedtopics.corpus._classes import read_classes
from embedtopics.errors import InputError
from embedtopics.inference._predictions import (
    KINDS,
    columns_of,
    combine_predictions,
    is_missing,
    predictions_by_name,
    read_chances,
    read_codes,
    read_gold_classes,
    read_prediction,
    refuse_infinite,
    with_types_of_gold,
)
from embedtopics.inference._sample import Sample, balance_notes
from embedtopics.inference.results import PredictedLabel
from embedtopics.protocols import Float64Array, RandomState
from embedtopics.results import Decision
from embedtopics.topics.results import TopicResult

FEW_GOLD = 30


@dataclass(frozen=True, eq=False, init=False)
class Measurement:
    """A variable with gold values of some rows and predictions of all rows.

    The gold values are those of people, for rows drawn with known probabilities. The predictions
    can come from any classifier, dictionary or language model, or be the membership in a topic.
    They may err; what is estimated from a measurement holds all the same, and the better the
    predictions, the narrower its intervals.

    Parameters
    ----------
    gold : array_like of shape (n_rows,)
        Classes, or numbers; None or NaN for rows without a gold value.
    predictions : array_like, DataFrame, or mapping of str to array_like
        One prediction of every row, or several by name, so that nobody has to choose one. Each is
        of shape (n_rows,): classes, numbers, or with two classes the probability of the larger one;
        or of shape (n_rows, n_classes): probabilities, with the classes in ascending order. A
        DataFrame with one column a class holds probabilities; other DataFrames hold one prediction
        a column. Predictions must not come from a model that was trained on the gold rows. A row
        whose class in words is missing counts as the mean of the other rows' predictions.
    sampling : {"random"}, optional
        Says that the gold rows were drawn at random, all with the same probability.
    probability : array_like of shape (n_rows,), optional
        Probability of each row to be drawn for gold, if they differ.
    strata : array_like of shape (n_rows,), optional
        Stratum of each row; the gold rows were drawn at random within strata.
    units : array_like of shape (n_rows,), optional
        Independent unit of each row, such as its author; by default each row.
    data : DataFrame, optional
        Other columns of the rows: groups, dates and covariates.
    kind : {"auto", "class", "number"}
        What is measured. "auto" takes fractions, and more than ten whole numbers, as numbers.
    name : str
        Name of the variable in tables and formulas.
    random_state : int, numpy.random.Generator or None
        Seed of the folds of units in which several predictions are combined.

    Attributes
    ----------
    classes : tuple or None
        None for numbers.
    decisions : tuple of Decision
    draws : float64 ndarray of shape (n_rows, n_draws) or None
        Values that the gold numbers could have had, whose spread adds to the errors of `regress`.

    Raises
    ------
    InputError
        If it is not said how the gold rows were drawn, a probability is 0, a predicted class has no
        gold row, or lengths differ.

    Notes
    -----
    Several predictions are combined by ridge regression of the gold values, cross-fitted over
    units (Egami, Hinck, Stewart and Wei 2023, "Using imperfect surrogates for downstream
    inference").

    Examples
    --------
    >>> import embedtopics as et
    >>> gold = ["yes", "no", "yes", "no", None, None, None, None]
    >>> guess = ["yes", "no", "no", "no", "yes", "no", "no", "yes"]
    >>> et.inference.Measurement(gold, guess, sampling="random", name="hostile")
    Measurement('hostile': no, yes; 4 of 8 gold)
    """

    name: str
    classes: tuple[Any, ...] | None
    truth: Float64Array
    proxy: Float64Array
    naive: Float64Array
    sample: Sample
    data: pd.DataFrame
    decisions: tuple[Decision, ...]
    draws: Float64Array | None = None

    def __init__(
        self,
        gold: Any,
        predictions: Any,
        *,
        sampling: str | None = None,
        probability: Any = None,
        strata: Any = None,
        units: Any = None,
        data: pd.DataFrame | None = None,
        kind: str = "auto",
        name: str = "measured",
        random_state: RandomState = 0,
    ) -> None:
        values = list(gold)
        n = len(values)

        # All have the order of the gold values, whose rows are named by their index, or by data.
        rows: Any = gold if isinstance(gold, pd.Series) else values
        if data is not None:
            data = align_values(data, rows, "data", "a row for each gold value")
            rows = data

        for row, value in enumerate(values):
            if isinstance(value, PredictedLabel):
                remedy = "pass the labels of a language model as predictions"
                raise InputError("gold", "given by people", value, remedy, row=row)

        column = read_classes(values)
        values = column.values
        decisions = list(column.notes("inference", "gold"))
        is_gold = np.array([value is not None for value in values], dtype=np.bool_)
        refuse_infinite(values, "gold")
        if is_gold.sum() < 2:
            raise InputError("gold", "given for at least two rows", found=f"{is_gold.sum()}")
        classes = read_gold_classes(values, is_gold, checked_choice(kind, "kind", KINDS))

        unit = np.arange(n) if units is None else read_codes(units, rows, "units")
        stratum = None if strata is None else read_codes(strata, rows, "strata")
        if probability is not None:
            probability = align_values(probability, rows, "probability", VALUE_OF_ROW)
        chance = read_chances(is_gold, sampling, probability, stratum)
        weight = np.where(is_gold, 1 / chance, 0.0)
        sample = Sample.of(weight, np.zeros(n) if stratum is None else stratum, unit)
        truth = columns_of(values, classes, is_gold)

        expected = f"{n:,} rows, one for each gold value"
        by_name: dict[str, Any] = {}
        for key, given in predictions_by_name(predictions, rows, classes).items():
            aligned = align_values(given, rows, "predictions", expected)
            by_name[key], notes = with_types_of_gold(aligned, classes, key)
            decisions += notes
        columns = [read_prediction(given, classes, n, key) for key, given in by_name.items()]
        refuse_infinite(np.hstack(columns).sum(axis=1).tolist(), "predictions")
        is_absent = {key: is_missing(np.asarray(given)) for key, given in by_name.items()}
        for key, absent in is_absent.items():
            if n_absent := int(absent.sum()):
                message = spell_count(n_absent, "row has", "rows have")
                message += f" no prediction by {key}; the mean of its other predictions is used."
                decisions.append(Decision("inference", "no_prediction", n_absent, message))

        proxy = columns[0]
        if len(columns) > 1 or proxy.shape[1] != truth.shape[1]:
            proxy = combine_predictions(
                np.hstack(columns), truth, sample, resolve_seed(random_state)
            )
            message = (
                f"{len(columns)} predictions are combined by a regression on the gold values, "
                "which is fitted without the unit of the row."
            )
            decisions.append(Decision("inference", "predictions_combined", len(columns), message))

        # Scores have no classes of their own; those of the combined regression stand for them.
        naive = columns[0] if columns[0].shape[1] == truth.shape[1] else proxy
        if classes is not None:
            absent = next(iter(is_absent.values()))[:, None]
            naive = np.where(absent, naive, np.eye(len(classes))[naive.argmax(axis=1)])

        if is_gold.sum() < FEW_GOLD:
            n_gold = int(is_gold.sum())
            few = f"Intervals from fewer than {FEW_GOLD} gold rows"
            message = f"{few} are too narrow at times; there are {n_gold}."
            decisions.append(Decision("inference", "few_gold", n_gold, message))
        decisions += balance_notes(naive, classes, sample, chance, next(iter(by_name)))

        frame = pd.DataFrame(index=range(n)) if data is None else data.reset_index(drop=True)
        self._set(
            name=name,
            classes=classes,
            truth=truth,
            proxy=proxy,
            naive=naive,
            sample=sample,
            data=frame,
            decisions=tuple(decisions),
        )

    def _set(self, **fields: Any) -> None:
        """Set fields, which are frozen for callers."""
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    @classmethod
    def _of_columns(
        cls,
        *,
        name: str,
        classes: tuple[Any, ...] | None,
        truth: Float64Array,
        proxy: Float64Array,
        naive: Float64Array,
        sample: Sample,
        data: pd.DataFrame,
        decisions: tuple[Decision, ...] = (),
    ) -> Measurement:
        """Make a measurement of its fields, which are not checked."""
        measurement = cls.__new__(cls)
        measurement._set(
            name=name,
            classes=classes,
            truth=truth,
            proxy=proxy,
            naive=naive,
            sample=sample,
            data=data,
            decisions=decisions,
        )
        return measurement

    def with_draws(self, draws: Float64Array) -> Measurement:
        """Return the measurement with values that its gold numbers could have had.

        Parameters
        ----------
        draws : float64 ndarray of shape (n_rows, n_draws)
        """
        measurement = copy.copy(self)
        measurement._set(draws=draws)
        return measurement

    def _at_draw(self, draw: int) -> Measurement:
        """Return the measurement with the values of a draw; itself if it has none."""
        if self.draws is None:
            return self
        values = self.draws[:, [draw % self.draws.shape[1]]]
        return Measurement._of_columns(
            name=self.name,
            classes=None,
            truth=values,
            proxy=values,
            naive=values,
            sample=self.sample,
            data=self.data,
        )

    @classmethod
    def from_frame(
        cls,
        frame: pd.DataFrame,
        gold: str,
        predictions: str | Sequence[str],
        *,
        sampling: str | None = None,
        probability: str | None = None,
        strata: str | None = None,
        units: str | None = None,
        kind: str = "auto",
        name: str | None = None,
        random_state: RandomState = 0,
    ) -> Measurement:
        """Make a measurement of columns of a table.

        Parameters
        ----------
        frame : DataFrame
        gold : str
            Column of the gold values, with None or NaN in the other rows.
        predictions : str or sequence of str
            Columns of predictions.
        sampling : {"random"}, optional
            Says that the gold rows were drawn at random.
        probability, strata, units : str, optional
            Columns; see the class.
        kind : {"auto", "class", "number"}
        name : str, optional
            By default the name of the column `gold`.
        random_state : int, numpy.random.Generator or None

        Returns
        -------
        Measurement

        Raises
        ------
        InputError
            A column does not exist, or see the class.

        Examples
        --------
        >>> import pandas as pd
        >>> import embedtopics as et
        >>> rows = pd.DataFrame({"hostile": ["yes", "no", "yes", None]})
        >>> rows["coder"] = ["yes", "no", "no", "no"]
        >>> et.inference.Measurement.from_frame(rows, "hostile", "coder", sampling="random")
        Measurement('hostile': no, yes; 3 of 4 gold)
        """
        if not isinstance(frame, pd.DataFrame):
            raise InputError("frame", "a DataFrame", frame, "read it: pandas.read_csv(path)")
        names = [predictions] if isinstance(predictions, str) else list(predictions)
        picked = {"probability": probability, "strata": strata, "units": units}
        picked = {key: column for key, column in picked.items() if column is not None}
        for column in (gold, *names, *picked.values()):
            if column not in frame:
                raise InputError("frame", f"a table with the column {column!r}", list(frame))

        columns = {key: frame[column] for key, column in picked.items()}
        return cls(
            frame[gold],
            {column: frame[column] for column in names},
            sampling=sampling,
            **columns,
            data=frame,
            kind=kind,
            name=gold if name is None else name,
            random_state=random_state,
        )

    @classmethod
    def from_topics(
        cls,
        result: FittedTopics,
        topics: int | Sequence[int],
        gold: Any,
        *,
        sampling: str | None = None,
        probability: Any = None,
        strata: Any = None,
        units: Any = None,
        name: str = "measured",
        random_state: RandomState = 0,
    ) -> Measurement:
        """Take the membership in topics, which split and merge concepts, as prediction of one.

        Parameters
        ----------
        result : TopicResult or fitted TopicModel
        topics : int or sequence of int
            Ids of the topics that belong to the concept.
        gold : sequence of bool or None
            Whether each row of the corpus is about the concept, None for rows that nobody read.
        sampling, probability, strata
            How the rows that people read were drawn; see the class.
        units : array_like of shape (n_rows,), optional
            Independent unit of each row; by default equal texts are one unit.
        name : str
        random_state : int, numpy.random.Generator or None

        Returns
        -------
        Measurement
            Of the rows with text.

        Raises
        ------
        InputError
            There is no such topic, or see the class.

        Examples
        --------
        >>> import embedtopics as et
        >>> corpus = et.Corpus("embedtopics:demo")
        >>> model = et.TopicModel("tfidf").fit(corpus)
        >>> is_chess = corpus.metadata["theme"] == "chess"
        >>> topic = model.labels_[is_chess.argmax()]
        >>> gold = is_chess.where(is_chess.index % 3 == 0)  # what people say of a third of the rows
        >>> Measurement = et.inference.Measurement
        >>> Measurement.from_topics(model, int(topic), gold, sampling="random", name="chess")
        Measurement('chess': False, True; 224 of 670 gold)
        """
        result = result_of(result)
        ids = [topics] if isinstance(topics, int | np.integer) else list(topics)
        if not ids or not all(topic in range(result.n_topics) for topic in ids):
            raise InputError("topics", f"ids of topics, 0 to {result.n_topics - 1}", topics)

        rows = np.flatnonzero(result.distinct.of_row >= 0)
        document = result.distinct.of_row[rows]
        values = list(
            align_values(gold, result.corpus, "gold", "one value for each row of the corpus")
        )

        predictions = {
            "topic": np.isin(result.clustering.labels, ids)[document].astype(np.float64),
            "share": np.asarray(result.memberships[:, ids].sum(axis=1)).ravel()[document],
        }

        columns = {"probability": probability, "strata": strata, "units": units}
        for key, column in columns.items():
            if column is not None:
                columns[key] = as_series(column, result.corpus, key).to_numpy()[rows]
        if units is None:
            columns["units"] = document

        return cls(
            [values[row] for row in rows.tolist()],
            predictions,
            sampling=sampling,
            **columns,
            data=result.corpus.metadata.iloc[rows],
            name=name,
            random_state=random_state,
        )

    @classmethod
    def from_classifier(
        cls,
        classifier: Any,
        corpus: Any,
        gold: Any,
        *,
        probability: Any = None,
        units: Any = None,
        name: str = "class",
        random_state: RandomState = 0,
    ) -> Measurement:
        """Measure a corpus: labels of a random sample, and a classifier's predictions of all texts.

        Parameters
        ----------
        classifier : TextClassifier
            Fitted on any texts. Texts of the corpus that it learned from need not be a random
            sample: they are a stratum of their own, whose labels count for no other text, and are
            left out if fewer than two of them have a label here. Without a fit, or if nearly all
            labels are of such texts, it is cross-fitted on the labelled texts.
        corpus : Corpus, or any input of `Corpus`
        gold : sequence or str
            One label for each row, None for rows without a label; or the column of the labels. The
            labelled rows must have been drawn at random, those that the classifier learned from
            aside.
        probability : sequence or str, optional
            Probability of each row to be drawn for labelling, or its column, if it differs by row.
        units : sequence or str, optional
            Independent unit of each row, such as its author, or its column; by default each text.
            In a cross-fit, no row is predicted by a classifier that learned from its unit.
        name : str
        random_state : int, Generator or None
            Seed of folds.

        Returns
        -------
        Measurement
            Of the rows with text. Rows of one text are in one unit.

        Raises
        ------
        InputError
            If rows, labels or probabilities are invalid; the message names the row.

        Examples
        --------
        >>> import embedtopics as et
        >>> texts = ["ripe plums", "late trains", "sweet pears", "slow trains"]
        >>> classifier = et.TextClassifier("tfidf").fit(texts, ["fruit", "rail", "fruit", "rail"])
        >>> corpus = ["plums in a jar", "the night train", "sweet plums", "trains to Rome"]
        >>> gold = ["fruit", "rail", None, "rail"]
        >>> measured = et.inference.Measurement.from_classifier(classifier, corpus, gold)
        >>> measured
        Measurement('class': fruit, rail; 3 of 4 gold)
        """
        # The classifier knows how it predicts a corpus; inference imports no classifier.
        if not hasattr(classifier, "_measure") or isinstance(classifier, type):
            remedy = "make one: et.TextClassifier()"
            if hasattr(corpus, "_measure"):
                remedy = "pass it first: from_classifier(classifier, corpus, gold)"
            raise InputError("classifier", "a TextClassifier", classifier, remedy)
        measured: Measurement = classifier._measure(
            corpus,
            gold,
            probability=probability,
            units=units,
            name=name,
            random_state=random_state,
        )
        return measured

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.truth)

    def __repr__(self) -> str:
        """Return the name, the classes and the numbers of rows."""
        of = "a number" if self.classes is None else ", ".join(map(str, self.classes))
        n_gold = self.sample.is_gold.sum()
        return f"Measurement({self.name!r}: {of}; {n_gold:,} of {len(self):,} gold)"


def measurement_of(value: Any, parameter: str = "measurement") -> Measurement:
    """Return a measurement, or the measurement of an object that has one.

    Parameters
    ----------
    value : Measurement, or object with ``measurement()``
        Such as an `AnnotationProject` or the positions of texts on a scale.
    parameter : str
        Name of the argument, for the error.

    Raises
    ------
    InputError
        If it is another object; the remedy names the call that measures it.
    """
    if isinstance(value, Measurement):
        return value

    measured = None
    if hasattr(value, "measurement") and not isinstance(value, type):
        measured = value.measurement()
    if isinstance(measured, Measurement):
        return measured

    call = ""
    if isinstance(value, pd.DataFrame):
        call = 'from_frame(frame, gold, predictions, sampling="random")'
    elif hasattr(value, "_measure"):
        call = "from_classifier(classifier, corpus, gold)"
    elif isinstance(value, TopicResult) or hasattr(value, "result_"):
        call = 'from_topics(result, topics, gold, sampling="random")'
    remedy = f"measure first: et.inference.Measurement.{call}" if call else ""
    expected = "a Measurement, or an object that has one, such as an AnnotationProject"
    raise InputError(parameter, expected, value, remedy)
