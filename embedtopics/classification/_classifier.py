"""A text classifier with scikit-learn's protocol: an encoder and a calibrated linear head."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from embedtopics._utils.checks import checked_choice, resolve_seed
from embedtopics._utils.keywords import names_keywords
from embedtopics.classification._heads import (
    CALIBRATIONS,
    DEFAULT_STRENGTH,
    FittedHead,
    calibrate,
    cross_fit,
    fit_head,
    grouped_folds,
    n_folds_for,
    near_duplicates,
    probabilities,
    risk_coverage,
    sample_weights,
    threshold_for,
)
from embedtopics.classification._pairs import PairEncoder, fit_together, joined_pairs, split_pairs
from embedtopics.classification._targets import (
    HEADS,
    LabelledTexts,
    aligned_labels,
    labelled_texts,
    read_class_weights,
    read_targets,
    read_text_weights,
    require_learnable,
)
from embedtopics.classification.results import RiskCoverage
from embedtopics.corpus._alignment import align_values
from embedtopics.encoders._base import check_texts
from embedtopics.encoders._cache import keys_of
from embedtopics.encoders._registry import resolve_encoder
from embedtopics.errors import InputError
from embedtopics.protocols import Float64Array
from embedtopics.results import Decision

if TYPE_CHECKING:
    from embedtopics.inference import Measurement
    from embedtopics.training._settings import TrainingSettings

METHODS = ("frozen", "few_shot", "fine_tune", "auto")

LEAST_PROBABILITY = 1e-300
"""Below it, the logarithm of a probability would be infinite."""


class TextClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Predict the class of a text, learned from labelled texts.

    Parameters
    ----------
    encoder : str, path or Encoder
        Name or folder of a checkpoint, "tfidf", or any object with ``encode(texts)``.
    method : {"frozen", "few_shot", "fine_tune", "auto"}
        "frozen" fits a logistic regression on the encoder's vectors, which are cached;
        cross-validation chooses the strength of its penalty. "few_shot" first trains the encoder
        on pairs of labelled texts, then fits the head (SetFit, Tunstall et al. 2022). "fine_tune"
        trains all weights together with the head, which begins as that of "frozen" (Kumar et al.
        2022). "auto" cross-validates the three and takes the best; methods that would take more
        than a quarter of an hour, as predicted from the number of texts, are left out.
    head : {"softmax", "ordinal", "multilabel"}
        "softmax" predicts one class for each text, "ordinal" one of ordered classes (cumulative
        logits, McCullagh 1980), "multilabel" any number of labels.
    pairs : bool
        Whether two texts are classified together, such as a premise and a hypothesis. "frozen"
        learns from both vectors, their absolute difference and their product; "fine_tune" lets the
        encoder read both as one text (a cross-encoder). Other methods are refused.
    classes : sequence, optional
        The classes in their order, the lowest first. Required for named ordinal classes.
    class_weight : "balanced" or mapping of class to float, optional
        "balanced" gives rare classes the same total weight as frequent ones. A mapping gives each
        class its weight; classes that it leaves out weigh 1.
    calibration : {"temperature"}, optional
        Calibrate probabilities by temperature scaling (Guo et al. 2017) on texts that the head was
        not fitted on: by cross-fitting, or on the validation texts of "fine_tune". "few_shot"
        trains the encoder twice more for it. None keeps the probabilities of the head.
    settings : TrainingSettings or mapping, optional
        Settings of training; a mapping names some of them. By default "fine_tune" takes 3 epochs,
        but at least 120 steps, at a peak learning rate of 1e-4 for vectors of 384 dimensions, in
        inverse proportion to the width. It also takes the options of Howard and Ruder (2018):
        `layer_decay` (factor of the learning rate from each layer to the layer below), `slanted`
        (slanted triangular schedule) and `unfreezing` (one more layer in each epoch).
    random_state : int, Generator or None

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Columns of `predict_proba`.
    encoder_ : Encoder
        The encoder as given, or after training.
    method_ : str
        The method, or the one that "auto" took; `decisions_` names the scores of all.
    decisions_ : tuple of Decision
    training_report_ : TrainingReport or None
        Learning curves of "fine_tune" and their interpretation.

    Examples
    --------
    >>> import embedtopics as et
    >>> texts = ["ripe plums", "late trains", "sweet pears", "slow trains"]
    >>> model = et.TextClassifier("tfidf").fit(texts, ["fruit", "rail", "fruit", "rail"])
    >>> model.predict(["plums and pears"]).tolist()
    ['fruit']
    """

    @names_keywords
    def __init__(
        self,
        encoder: Any = "all-MiniLM-L6-v2",
        *,
        method: str = "frozen",
        head: str = "softmax",
        pairs: bool = False,
        classes: Sequence[Any] | None = None,
        class_weight: str | Mapping[Any, float] | None = None,
        calibration: str | None = "temperature",
        settings: TrainingSettings | Mapping[str, Any] | None = None,
        random_state: Any = 0,
    ) -> None:
        self.encoder = encoder
        self.method = method
        self.head = head
        self.pairs = pairs
        self.classes = classes
        self.class_weight = class_weight
        self.calibration = calibration
        self.settings = settings
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        sample_weight: Any = None,
        validation: tuple[Any, Any] | None = None,
        out: str | os.PathLike[str] | None = None,
    ) -> Self:
        """Learn from labelled texts.

        Parameters
        ----------
        X : sequence of str
            With `pairs`, pairs of str, a table of two columns, or a `Corpus` of two text columns.
        y : sequence of str or int
            One label for each text. Texts with None or NaN are left out, and so are texts that
            occur with different labels, which `decisions_` names. "multilabel" takes a list
            of labels for each text, or a table of 0 and 1 with one column for each class.
        sample_weight : array_like of shape (n_texts,), optional
            Weight of each text in the fit of the head and in its calibration, from 0 up; for
            "frozen" only. A weight of 2 counts as two rows with the text.
        validation : pair of texts and labels, optional
            "fine_tune" is measured on these texts, and keeps the weights that score best if there
            are at least 100, else the last. By default it holds out a tenth of the training texts.
        out : path, optional
            Folder of the trained encoder and of the checkpoints of "fine_tune", from which an
            interrupted run continues. By default a temporary folder.

        Returns
        -------
        TextClassifier

        Raises
        ------
        InputError
            Texts, labels or parameters are invalid; the message names the row.
        """
        for name, choices in (("method", METHODS), ("head", HEADS), ("calibration", CALIBRATIONS)):
            checked_choice(getattr(self, name), name, choices)
        options = {"validation": validation, "out": out, "settings": self.settings or None}
        for name, value in options.items():
            if self.method == "frozen" and value is not None:
                raise InputError(name, 'left out for method="frozen", which trains no encoder')
        if self.method != "frozen" and sample_weight is not None:
            expected = f'left out for method="{self.method}"'
            raise InputError("sample_weight", expected, remedy='use method="frozen"')
        if self.pairs and self.method not in ("frozen", "fine_tune"):
            raise InputError("method", '"frozen" or "fine_tune" for pairs', self.method)

        labelled = self._labelled(X, y, self.classes)
        if self.classes is None and self.head == "ordinal" and labelled.classes.dtype.kind == "U":
            expected = f"the classes in their order, such as {labelled.classes.tolist()}"
            raise InputError("classes", expected, None)

        # Texts without weight are left out.
        text_weights = None
        if sample_weight is not None:
            text_weights = read_text_weights(sample_weight, X, labelled.rows)
            labelled = labelled.take(np.flatnonzero(text_weights > 0))
            text_weights = text_weights[text_weights > 0]
        require_learnable(labelled)

        seed = resolve_seed(self.random_state)
        class_weights = read_class_weights(labelled, self.class_weight, text_weights)
        self.classes_ = labelled.classes

        if self.method == "frozen":
            result = self._fit_frozen(labelled, class_weights, seed, text_weights)
            self.method_ = "frozen"
        else:
            from embedtopics.classification._training import fit_trained

            held_out = validation and self._labelled(*validation, self.classes_, learned=True)
            fit = fit_together if self.pairs else fit_trained
            self.method_, result = fit(self, labelled, held_out, class_weights, seed, out)

        self.encoder_ = result.encoder
        self.head_ = result.head
        self.left_out_scores_ = result.left_out_scores
        self.left_out_codes_ = result.left_out_codes
        self.decisions_ = (*labelled.notes, *result.decisions)
        self.training_report_ = result.report
        self.calibration_ = calibrate(
            self.calibration,
            self.head,
            self.left_out_scores_,
            self.left_out_codes_,
            text_weights,
        )

        self.training_keys_ = keys_of(labelled.texts)
        self.test_log_: dict[str, int] = getattr(self, "test_log_", {})
        return self

    def _fit_frozen(
        self,
        labelled: LabelledTexts,
        class_weights: Float64Array | None,
        seed: int,
        text_weights: Float64Array | None = None,
    ) -> FittedHead:
        texts = labelled.texts
        codes = labelled.codes
        parts = split_pairs(texts) if self.pairs else texts
        resolved = resolve_encoder(self.encoder, cached=True, all_words=True)
        encoder = resolved.fitted_to(parts).reading_to_ends(parts)
        self.encoder_ = PairEncoder(encoder) if self.pairs else encoder

        vectors = self._vectors(texts)
        folds = grouped_folds(codes, near_duplicates(texts, vectors), n_folds_for(codes), seed)
        weights = sample_weights(codes, class_weights)
        if text_weights is not None:
            weights = text_weights if weights is None else weights * text_weights

        strength = DEFAULT_STRENGTH
        scores = np.empty((0, 0))
        if len(np.unique(folds)) > 1:
            strength, scores = cross_fit(
                self.head, vectors, codes, folds, weights, text_weights=text_weights
            )
        head = fit_head(self.head, vectors, codes, strength, weights, text_weights=text_weights)

        message = f"Cross-validation chose C = {strength:g} for the head."
        decision = Decision("classification", "strength", strength, message)
        notes = encoder.decisions if encoder.learns else []
        return FittedHead(self.encoder_, head, scores, codes[: len(scores)], (*notes, decision))

    def _labelled(self, X: Any, y: Any, classes: Any, learned: bool = False) -> LabelledTexts:
        if self.pairs:
            y = aligned_labels(X, y)
            X = joined_pairs(X)
        return labelled_texts(X, y, self.head, classes, learned=learned)

    def _vectors(self, texts: Sequence[str]) -> Any:
        """Encode texts, (n_texts, n_dimensions), dense or sparse."""
        encoded = self.encoder_.encode(list(texts))
        vectors = encoded.tocsr() if hasattr(encoded, "tocsr") else np.asarray(encoded)
        if vectors.ndim != 2 or vectors.shape[0] != len(texts):
            shape = f"shape {vectors.shape} for {len(texts)} texts"
            raise InputError("encoder", "an object that returns one vector per text", found=shape)
        return vectors

    def decision_function(self, X: Sequence[str]) -> Float64Array:
        """Return the scores of the head before calibration, as scikit-learn expects them.

        Two classes have one score for each text, (n_texts,): the log-odds of the second class.
        Otherwise there is one for each class, (n_texts, n_classes); those of an ordinal head are
        logarithms of probabilities.
        """
        scores = self._scores(X)
        if self.head == "multilabel":
            return scores
        if self.head == "ordinal":
            # The head scores thresholds, the log-odds of exceeding each.
            if len(self.classes_) == 2:
                return scores[:, 0]
            return np.log(np.maximum(probabilities(self.head, scores), LEAST_PROBABILITY))
        if len(self.classes_) == 2:
            return np.asarray(scores[:, 1] - scores[:, 0])
        return scores

    def _scores(self, X: Any) -> Float64Array:
        """Return the outputs of the head, (n_texts, n_outputs): of classes, or of thresholds."""
        check_is_fitted(self, "head_")
        texts = check_texts(joined_pairs(X) if self.pairs else X)
        if not texts:
            return np.empty((0, len(self.head_.bias)))
        return self.head_.scores(self._vectors(texts))

    def predict_proba(self, X: str | Sequence[str]) -> Float64Array:
        """Return the calibrated probability of each class, (n_texts, n_classes); of one text a row.

        Rows add up to 1, except for "multilabel".
        """
        if isinstance(X, str):
            return self.predict_proba([X])[0]  # type: ignore[no-any-return]
        scores = self._scores(X)
        return self.calibration_.apply(scores)

    def predict(self, X: str | Sequence[str], max_error: float | None = None) -> npt.NDArray[Any]:
        """Return the most probable class of each text.

        Parameters
        ----------
        X : str or sequence of str
        max_error : float, optional
            Largest share of errors among the predictions. Texts below the confidence that this
            requires get None. The bound holds in 95 % of the samples of labels, for texts of the
            same kind as the labelled ones (see `risk_coverage`).

        Returns
        -------
        ndarray of shape (n_texts,)
            Classes; of one text its class. "multilabel" returns 0 and 1, (n_texts, n_classes).
        """
        if isinstance(X, str):
            return self.predict([X], max_error)[0]  # type: ignore[no-any-return]
        probabilities = self.predict_proba(X)
        if self.head == "multilabel" and max_error is None:
            return (probabilities >= 0.5).astype(np.int64)
        labels: npt.NDArray[Any] = self.classes_[probabilities.argmax(axis=1)]
        if max_error is None:
            return labels
        labels = labels.astype(object)
        labels[probabilities.max(axis=1) < threshold_for(max_error, self.risk_coverage())] = None
        return labels

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy on labelled texts: the share whose label, or labels, are predicted.

        Parameters
        ----------
        X, y
            Texts and labels, as for `fit`; texts without a label do not count.
        sample_weight : array_like of shape (n_texts,), optional
        """
        check_is_fitted(self, "head_")
        labels = aligned_labels(X, y)
        targets = read_targets(labels, self.head, self.classes_, learned=True)
        predicted = self.predict(X)

        if self.head == "multilabel":
            is_right = (predicted == targets.codes).all(axis=1)
        else:
            is_right = predicted == self.classes_[targets.codes]

        weights = targets.has_label.astype(np.float64)
        if sample_weight is not None:
            weights *= np.asarray(align_values(sample_weight, X, "sample_weight"), np.float64)
        if not weights.sum() > 0:
            raise InputError("y", "labels of at least one text", found="none")
        return float(np.average(is_right, weights=weights))

    def risk_coverage(self) -> RiskCoverage:
        """Return the error among the most confident texts, on texts left out of the fit."""
        check_is_fitted(self, "head_")
        if not len(self.left_out_scores_):
            remedy = 'fit with calibration="temperature"'
            raise InputError("calibration", "by texts that were left out", None, remedy)
        if self.head == "multilabel":
            raise InputError("head", '"softmax" or "ordinal" for max_error', "multilabel")
        probabilities = self.calibration_.apply(self.left_out_scores_)
        is_right = probabilities.argmax(axis=1) == self.left_out_codes_
        return risk_coverage(probabilities.max(axis=1), is_right)

    def _measure(self, corpus: Any, gold: Any, **options: Any) -> Measurement:
        """Measure a corpus for `Measurement.from_classifier`, which imports no classifier."""
        from embedtopics.classification._measure import measure

        return measure(self, corpus, gold, **options)

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write the classifier to a folder as arrays and JSON; `load` reads it."""
        from embedtopics.classification._storage import save

        save(self, folder)

    @classmethod
    def load(cls, folder: str | os.PathLike[str], *, encoder: Any = None) -> Self:
        """Read a classifier that `save` wrote.

        Parameters
        ----------
        folder : path
        encoder : str, path or Encoder, optional
            The encoder of the fit, if the folder does not hold it: a custom object.

        Returns
        -------
        TextClassifier

        Raises
        ------
        InputError
            If the folder holds a `TokenClassifier`.
        CorruptFileError
            If the folder is damaged, was written by a newer version, or holds no classifier.
        """
        from embedtopics.classification._storage import read_classifier, refuse_other_kind

        path = Path(folder).expanduser()
        refuse_other_kind(path, "TextClassifier")
        parameters, attributes = read_classifier(path, encoder)
        model = cls(**parameters)
        for name, value in attributes.items():
            setattr(model, name, value)
        return model

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array = tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        tags.classifier_tags.multi_label = self.head == "multilabel"
        return tags


def check_classifier(classifier: Any, call: str) -> None:
    """Refuse another object than a fitted classifier; the remedy is the call to make."""
    if not isinstance(classifier, TextClassifier):
        raise InputError("classifier", "a fitted TextClassifier", classifier, f"call {call}")
    check_is_fitted(classifier, "head_")
