"""A classifier of texts with scikit-learn's protocol: an encoder, a head, calibrated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin

from embedtopics._utils.checks import checked_choice, resolve_seed
from embedtopics.classification._heads import (
    CALIBRATIONS,
    USUAL_STRENGTH,
    LinearHead,
    calibrate,
    confidences,
    cross_fit,
    fit_head,
    grouped_folds,
    n_folds_for,
    near_copies,
    risk_coverage,
    sample_weights,
    threshold_for,
)
from embedtopics.classification._targets import (
    HEADS,
    Targets,
    balanced_weights,
    check_rows,
    read_targets,
    require_learnable,
)
from embedtopics.classification.results import RiskCoverage
from embedtopics.decisions import Decision
from embedtopics.encoders._base import check_texts
from embedtopics.encoders._cache import keys_of
from embedtopics.encoders._registry import resolve_encoder
from embedtopics.errors import InputError
from embedtopics.protocols import Float64Array, Int64Array

if TYPE_CHECKING:
    import os

METHODS = ("frozen", "few_shot", "fine_tune")


class TextClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Gives texts the classes that it has learned from labelled ones.

    Parameters
    ----------
    encoder : str, path or Encoder
        Name or folder of a checkpoint, "tfidf", or any object with ``encode(texts)``.
    method : {"frozen", "few_shot", "fine_tune"}
        "frozen": logistic regression on the encoder's vectors, its strength chosen by
        cross-validation; vectors are cached. "few_shot": the encoder learns from pairs of the
        labelled texts which belong together, then a head is fitted (SetFit, Tunstall et al. 2022).
        "fine_tune": all weights are trained with the head.
    head : {"softmax", "ordinal", "multilabel"}
        One class a text; one of ordered classes (cumulative logits, McCullagh 1980); or any number
        of labels a text.
    classes : sequence, optional
        The classes in their order, the lowest first; needed for ordered classes with names.
    class_weight : "balanced", optional
        Texts of rare classes count as much as those of frequent ones.
    calibration : {"temperature", "isotonic"}, optional
        How probabilities are calibrated, on texts that their head was not fitted on: by
        cross-fitting, or on the validation texts of "fine_tune". For "few_shot" the encoder is
        trained three more times. None leaves the head's own.
    training : mapping, optional
        Fields of `embedtopics.training.TrainingSettings`, and for "fine_tune" `layer_decay` (factor
        of the learning rate from each layer to the one below), `slanted` (triangular schedule) and
        `unfreezing` (one more layer each epoch), after Howard and Ruder (2018).
    random_state : int, Generator or None

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Columns of `predict_proba`.
    encoder_ : Encoder
        As it was given, or as it was trained.
    decisions_ : tuple of Decision
    training_report_ : TrainingReport or None
        Learning curves, and what they say.

    Examples
    --------
    >>> texts = ["ripe plums", "late trains", "sweet pears", "slow trains"]
    >>> model = TextClassifier("tfidf").fit(texts, ["fruit", "rail", "fruit", "rail"])
    >>> model.predict(["plums and pears"]).tolist()
    ['fruit']
    """

    def __init__(
        self,
        encoder: Any = "all-MiniLM-L6-v2",
        method: str = "frozen",
        head: str = "softmax",
        *,
        classes: Sequence[Any] | None = None,
        class_weight: str | None = None,
        calibration: str | None = "temperature",
        training: Mapping[str, Any] | None = None,
        random_state: Any = 0,
    ) -> None:
        self.encoder = encoder
        self.method = method
        self.head = head
        self.classes = classes
        self.class_weight = class_weight
        self.calibration = calibration
        self.training = training
        self.random_state = random_state

    def fit(
        self,
        X: Sequence[str],
        y: Any,
        *,
        validation: tuple[Sequence[str], Any] | None = None,
        out: str | os.PathLike[str] | None = None,
        resume: bool = True,
    ) -> Self:
        """Learn from labelled texts.

        Parameters
        ----------
        X : sequence of str
        y : sequence of str or int
            A label for each; texts of None or NaN are left out. For several labels a text, a list
            of labels each, or a table of 0 and 1 with a column for each class.
        validation : pair of texts and labels, optional
            Of "fine_tune", to choose the weights that are kept; by default a tenth of the texts.
        out, resume : path, optional, and bool
            Folder for the trained encoder, and for the checkpoints of "fine_tune" beside it, from
            which an interrupted run goes on. By default a temporary one.

        Returns
        -------
        TextClassifier

        Raises
        ------
        InputError
            Where texts, labels or parameters cannot be used: the message names the row.
        """
        for name, choices in (("method", METHODS), ("head", HEADS), ("calibration", CALIBRATIONS)):
            checked_choice(getattr(self, name), name, choices)
        given = {"validation": validation, "out": out, "training": self.training or None}
        for name, value in given.items():
            if self.method == "frozen" and value is not None:
                raise InputError(name, 'left out for method="frozen", which trains no encoder')
        texts, targets = self._read(X, y)
        seed = resolve_seed(self.random_state)
        self.classes_ = targets.classes
        self.decisions_: tuple[Decision, ...] = ()
        self.training_report_: Any = None
        of_class = balanced_weights(targets, self.class_weight)
        if self.method == "frozen":
            self._fit_frozen(texts, targets.codes, of_class, seed)
        else:
            from embedtopics.classification._training import fit_trained

            held = None if validation is None else self._read(*validation, self.classes_)
            fit_trained(self, texts, targets, held, of_class, seed, out, resume)
        self.calibration_ = calibrate(
            self.calibration, self.head, self.left_out_scores_, self.left_out_codes_
        )
        self.training_keys_ = keys_of(texts)
        self.test_log_: dict[str, int] = getattr(self, "test_log_", {})
        return self

    def _read(self, X: Any, y: Any, known: Any = None) -> tuple[list[str], Targets]:
        """Return the texts that have labels, and these; of classes that are `known`."""
        given = self.classes if known is None else known
        targets = read_targets(y, self.head, given, learned=known is not None)
        texts = check_rows(X, targets)
        if given is None and self.head == "ordinal" and targets.classes.dtype.kind == "U":
            remedy = f"such as classes={targets.classes.tolist()}"
            raise InputError(
                "classes", "the classes in their order, the lowest first", None, remedy
            )
        if known is None:
            require_learnable(targets)
        rows = np.flatnonzero(targets.known)
        kept = replace(targets, codes=targets.codes[rows], known=targets.known[rows])
        return [texts[row] for row in rows.tolist()], kept

    def _fit_frozen(
        self, texts: list[str], codes: Int64Array, of_class: Float64Array | None, seed: int
    ) -> None:
        resolved = resolve_encoder(self.encoder, cached=True)
        self.encoder_: Any = resolved.fitted_to(texts).reading_to_ends(texts)
        vectors = self._vectors(texts)
        self.groups_ = near_copies(texts, vectors)
        folds = grouped_folds(codes, self.groups_, n_folds_for(codes), seed)
        weights = sample_weights(codes, of_class)
        strength, scores = USUAL_STRENGTH, np.empty((0, 0))
        if len(np.unique(folds)) > 1:
            strength, scores = cross_fit(self.head, vectors, codes, folds, weights)
        self._left_out(scores, codes)
        self.head_: LinearHead = fit_head(self.head, vectors, codes, strength, weights)
        self._note("strength", strength, f"The head has C = {strength:g}, by cross-validation.")

    def _left_out(self, scores: Float64Array, codes: Int64Array) -> None:
        """Keep the scores of texts that their heads were not fitted on: of all or of none."""
        self.left_out_scores_, self.left_out_codes_ = scores, codes[: len(scores)]
        self.left_out_rows_ = np.arange(len(scores))

    def _note(self, name: str, value: Any, message: str) -> None:
        self.decisions_ = (*self.decisions_, Decision("classification", name, value, message))

    def _vectors(self, texts: Sequence[str]) -> Any:
        vectors = self.encoder_.encode(list(texts))
        made = vectors.tocsr() if hasattr(vectors, "tocsr") else np.asarray(vectors)
        if made.ndim != 2 or made.shape[0] != len(texts):
            found = f"shape {made.shape} for {len(texts)} texts"
            raise InputError("encoder", "an object that returns one vector a text", found=found)
        return made

    def decision_function(self, X: Sequence[str]) -> Float64Array:
        """Return the scores of the head, (n_texts, n_outputs): before calibration.

        An output for each class, but for each threshold between two of an ordinal head.
        """
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self, "head_")
        texts = check_texts(X)
        if not texts:
            return np.empty((0, len(self.head_.bias)))
        return self.head_.scores(self._vectors(texts))

    def predict_proba(self, X: Sequence[str]) -> Float64Array:
        """Return the calibrated probability of each class, (n_texts, n_classes).

        Rows add up to 1, but for several labels a text.
        """
        scores = self.decision_function(X)
        return self.calibration_.apply(scores)

    def predict(self, X: Sequence[str], max_error: float | None = None) -> npt.NDArray[Any]:
        """Return the likeliest class of each text.

        Parameters
        ----------
        X : sequence of str
        max_error : float, optional
            Predict only as many of the surest texts as have at most this share of errors; others
            get None. It holds in 95 % of the samples of labels, for texts of the same kind as the
            labelled ones (see `risk_coverage`).

        Returns
        -------
        ndarray of shape (n_texts,)
            Of the classes; or for several labels a text, 0 and 1 of shape (n_texts, n_classes).
        """
        found = self.predict_proba(X)
        if self.head == "multilabel":
            if max_error is not None:
                confidences(found, np.empty((0, 2), dtype=np.int64))
            return (found >= 0.5).astype(np.int64)
        best: npt.NDArray[Any] = self.classes_[found.argmax(axis=1)]
        if max_error is None:
            return best
        best = best.astype(object)
        best[found.max(axis=1) < threshold_for(max_error, self.risk_coverage())] = None
        return best

    def risk_coverage(self) -> RiskCoverage:
        """Return the error among the surest texts, on texts that were left out of the fit."""
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self, "head_")
        if not len(self.left_out_scores_):
            remedy = 'fit with calibration="temperature"'
            raise InputError("calibration", "by texts that were left out", None, remedy)
        found = self.calibration_.apply(self.left_out_scores_)
        return risk_coverage(*confidences(found, self.left_out_codes_))

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write the classifier to a folder as arrays and JSON; `load_classifier` reads it."""
        from embedtopics.classification._storage import save

        save(self, folder)

    def export(self, folder: str | os.PathLike[str]) -> None:
        """Write a "fine_tune" model as a checkpoint of transformers.

        ``AutoModelForSequenceClassification`` loads it; its logits are those of
        `decision_function`, before calibration.

        Raises
        ------
        InputError
            For other methods, and for families of encoders that transformers builds otherwise.
        """
        from embedtopics.classification._storage import export

        export(self, folder)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array = tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        tags.classifier_tags.multi_label = self.head == "multilabel"
        return tags
