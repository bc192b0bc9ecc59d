"""The estimator: a thin scikit-learn face on the pipeline."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClusterMixin, clone
from sklearn.exceptions import NotFittedError

from embedtopics._checks import checked_count, is_count
from embedtopics._randomness import resolve_seed
from embedtopics.clustering import DensityClusterer
from embedtopics.corpus import Corpus
from embedtopics.encoders import fitted, resolve_encoder
from embedtopics.errors import InputError
from embedtopics.protocols import (
    Clusterer,
    Encoder,
    Int32Array,
    RandomState,
    Reducer,
    TermWeighting,
)
from embedtopics.results import Decision, TopicResult
from embedtopics.terms import ClassTfidf
from embedtopics.topics.assign import Assignment, assign, known_documents
from embedtopics.topics.cores import Resolution
from embedtopics.topics.describe import TermSettings
from embedtopics.topics.guidance import Guidance
from embedtopics.topics.memberships import checked_coverage
from embedtopics.topics.pipeline import Stages, fit_topics
from embedtopics.topics.recorded import describe_weighting, lost_stages
from embedtopics.topics.sharing import from_pretrained, push_to_hub
from embedtopics.topics.storage import load_result, save_result
from embedtopics.topics.vectors import recorded_encoder

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

__all__ = ["TopicModel"]

DEFAULT_ENCODER = "all-MiniLM-L6-v2"
RESTORED = (
    "n_neighbors", "n_components", "n_topics", "coverage", "languages", "stop_words", "ngram_range",
    "min_df",
)  # fmt: skip
"""Parameters that a loaded model takes from the settings of its result."""

LABELS_NOT_USED = Decision(
    "corpus", "y", False,
    "y was given and is not used; for topics that follow labels give guidance=Labels(y).",
)  # fmt: skip


class TopicModel(ClusterMixin, BaseEstimator):
    """Finds the topics of a collection of texts.

    Parameters
    ----------
    encoder : str or object with ``encode(texts)``, optional
        Name or folder of a checkpoint, or any encoder; by default all-MiniLM-L6-v2. The vectors
        of a checkpoint that is named are kept on disk (`CachedEncoder`); give
        ``SentenceEncoder(name)`` to keep none.
    n_topics : {"auto", "fine", "coarse"} or int
        How fine the topics shall be; an integer is met exactly, by merging the nearest. Another
        answer can be had from the result later, see `embedtopics.topics.at_resolution`.
    coverage : "auto" or float
        Share of the rows with text that is to be in a topic. Texts outside the dense cores join a
        topic to which their neighbours lead; "auto" leaves out those that lead to two alike or to
        none, 0 keeps the cores alone, 1 leaves out none that lead to any topic.
    n_neighbors : int
        Neighbours of each document on the graph.
    n_components : int
        Dimensions of the space in which documents are clustered.
    min_cluster_size : "auto" or int
        Fewest texts in the dense core of a topic, in place of `n_topics`; "auto" is set by the
        size of the collection, see `embedtopics.clustering.automatic_min_cluster_size`.
    reducer : object with ``fit_transform(embeddings)``, optional
        Makes the coordinates in place of the layout of the neighbour graph.
    clusterer : object with ``fit_predict(coordinates)``, optional
        Makes the cores in place of `DensityClusterer`; `n_topics` and `min_cluster_size` then
        stay "auto".
    weighting : object with ``fit_transform(topic_counts)``, optional
        Weighs the terms in place of `ClassTfidf`.
    guidance : object with ``prepare(material)`` and ``describe()``, optional
        What is known beforehand: `SeedWords`, `ZeroShot` names, `Labels`, `MustNotLink` pairs or
        `ManualLabels`; see `embedtopics.topics.guidance`.
    languages : "auto" or sequence of str
        ISO 639-1 codes of the languages of the texts, for stop words and stems.
    stop_words : "auto" or sequence of str
        Words that are no terms; "auto" takes the languages' lists and finds the words that
        this corpus uses alike everywhere.
    ngram_range : (int, int)
        Shortest and longest term in words.
    min_df : int, float or None
        Documents that must hold a term; None chooses by the size of the collection.
    random_state : int, numpy.random.Generator or None
        The same embeddings and integer give the same result, bit for bit; None draws a seed
        and records it.
    show_progress : bool or None
        None shows progress where a terminal or a notebook listens.

    Attributes
    ----------
    result_ : TopicResult
        What the fit found; every question is a function of it.
    labels_ : int32 ndarray of shape (n_rows,)
        Topic of each row, -1 for none.

    Examples
    --------
    >>> import numpy as np
    >>> points = np.repeat([[1.0, 0.0], [0.0, 1.0]], 20, axis=0)
    >>> points = points + 0.1 * np.random.default_rng(0).normal(size=points.shape)
    >>> texts = [f"{'apple pie' if i < 20 else 'train station'} {i}" for i in range(40)]
    >>> model = TopicModel(languages=["en"]).fit(texts, embeddings=points)
    >>> model.result_.n_topics
    2
    """

    def __init__(
        self,
        encoder: str | Encoder | None = None,
        *,
        n_topics: int | str = "auto",
        coverage: float | str = "auto",
        n_neighbors: int = 15,
        n_components: int = 5,
        min_cluster_size: int | str = "auto",
        reducer: Reducer | None = None,
        clusterer: Clusterer | None = None,
        weighting: TermWeighting | None = None,
        guidance: Guidance | None = None,
        languages: str | Sequence[str] = "auto",
        stop_words: str | Sequence[str] = "auto",
        ngram_range: tuple[int, int] = (1, 2),
        min_df: int | float | None = None,
        random_state: RandomState = 0,
        show_progress: bool | None = None,
    ) -> None:
        self.encoder = encoder
        self.n_topics = n_topics
        self.coverage = coverage
        self.n_neighbors = n_neighbors
        self.n_components = n_components
        self.min_cluster_size = min_cluster_size
        self.reducer = reducer
        self.clusterer = clusterer
        self.weighting = weighting
        self.guidance = guidance
        self.languages = languages
        self.stop_words = stop_words
        self.ngram_range = ngram_range
        self.min_df = min_df
        self.random_state = random_state
        self.show_progress = show_progress

    def fit(self, X: Any, y: Any = None, *, embeddings: npt.ArrayLike | None = None) -> TopicModel:
        """Find the topics.

        Parameters
        ----------
        X : Corpus, list of str, Series, frame, datasets.Dataset or path of a file
        y : object, optional
            Not used, as in scikit-learn's clusterers: in a pipeline the labels that are to be
            foretold must not make the topics. That one was given is recorded. For topics that
            follow labels give ``guidance=Labels(y)``.
        embeddings : array_like of shape (n_rows, n_dimensions), optional
            Vectors of the rows, in their order; the encoder is then not used for them.

        Returns
        -------
        TopicModel
            Itself.

        Raises
        ------
        InputError
            Where the texts, the embeddings or a parameter cannot be worked with.
        """
        self._check_parameters()
        self._of_fit: tuple[Any, Encoder] | None = None
        resolution = Resolution(self.n_topics, self.min_cluster_size)
        stages = Stages(
            make_encoder=self._make_encoder,
            reducer=_fresh(self.reducer),
            clusterer=_fresh(self.clusterer) or DensityClusterer(self.min_cluster_size),
            resolution=resolution if self.clusterer is None else None,
            coverage=checked_coverage(self.coverage),
            weighting=_fresh(self.weighting) or ClassTfidf(),
            terms=TermSettings(self.stop_words, self.ngram_range, self.min_df),
            n_neighbors=self.n_neighbors,
            n_components=self.n_components,
            languages=self.languages,
            seed=resolve_seed(self.random_state),
            show_progress=self.show_progress,
            guidance=self.guidance,
            has_encoder=self.encoder is not None,
        )
        result = fit_topics(Corpus.of(X), embeddings, stages, self._settings())
        notes = [] if y is None else [LABELS_NOT_USED]
        if hasattr(self, "_loaded_settings"):
            notes += lost_stages(self._loaded_settings, result, self.get_params(deep=False))
        self.result_ = dataclasses.replace(result, decisions=(*result.decisions, *notes))
        return self

    @property
    def labels_(self) -> Int32Array:
        """Topic of each row of the fit, shape (n_rows,); -1 for none."""
        return self._fitted().labels

    def fit_predict(
        self, X: Any, y: Any = None, *, embeddings: npt.ArrayLike | None = None
    ) -> Int32Array:
        """Fit, and return the labels of the rows, shape (n_rows,)."""
        return self.fit(X, y, embeddings=embeddings).labels_

    def predict(self, X: Any, *, embeddings: npt.ArrayLike | None = None) -> Int32Array:
        """Return the topic of each text, shape (n_texts,); -1 for none.

        Texts of the fit get their label of the fit; others the vote of their nearest
        documents. See `embedtopics.topics.assign`.
        """
        return self._assign(X, embeddings).labels

    def transform(self, X: Any, *, embeddings: npt.ArrayLike | None = None) -> csr_matrix:
        """Return the share of each topic in each text, shape (n_texts, n_topics), sparse."""
        return self._assign(X, embeddings).memberships

    def save(self, folder: str | Path) -> Path:
        """Save the result; see `embedtopics.topics.save_result`."""
        return save_result(self._fitted(), folder)

    @classmethod
    def load(cls, folder: str | Path, *, encoder: str | Encoder | None = None) -> TopicModel:
        """Load a saved model.

        It answers as the saved one did. Guidance and stages of the user's own (encoder, reducer,
        clusterer, weighting) are not among its parameters: fitted again, it goes without unless
        they are given anew, which the new result's decisions say.

        Parameters
        ----------
        folder : str or Path
        encoder : Encoder or str, optional
            Who encodes new texts; by default the encoder of the fit, loaded when it is needed.
        """
        return cls._of_result(load_result(folder), encoder)

    @classmethod
    def from_pretrained(
        cls, name: str | Path, *, encoder: str | Encoder | None = None, **options: Any
    ) -> TopicModel:
        """Load a model from the Hugging Face hub or a folder; see `topics.from_pretrained`."""
        return cls._of_result(from_pretrained(name, **options), encoder)

    def push_to_hub(self, repo_id: str, **options: Any) -> str:
        """Upload the result, by default private and without texts; see `topics.push_to_hub`."""
        return push_to_hub(self._fitted(), repo_id, **options)

    @classmethod
    def _of_result(cls, result: TopicResult, encoder: str | Encoder | None) -> TopicModel:
        kept = {name: result.settings[name] for name in RESTORED if name in result.settings}
        if "ngram_range" in kept:
            kept["ngram_range"] = tuple(kept["ngram_range"])
        model = cls(encoder=encoder, random_state=result.settings.get("seed", 0), **kept)
        model.result_ = result
        model._loaded_settings = result.settings
        return model

    def _make_encoder(self, texts: Sequence[str]) -> Encoder:
        """Load the encoder once, let it learn where it has to, and keep it for later texts."""
        wanted = DEFAULT_ENCODER if self.encoder is None else self.encoder
        kept = getattr(self, "_loaded", None)
        if kept is None or kept[0] is not wanted:
            self._loaded = (wanted, resolve_encoder(wanted, cached=True))
        encoder = fitted(self._loaded[1], texts)
        self._of_fit = (self.encoder, encoder)
        return encoder

    def _encoder_of_fit(self) -> Encoder:
        """Return the encoder that is kept from the fit, or make it again."""
        kept = getattr(self, "_of_fit", None)
        if kept is None or kept[0] is not self.encoder:
            if self.encoder is not None:
                return self._make_encoder(self._fitted().corpus.document_texts())
            kept = self._of_fit = (None, recorded_encoder(self._fitted()))
        return kept[1]

    def _assign(self, X: Any, embeddings: npt.ArrayLike | None) -> Assignment:
        result = self._fitted()
        if embeddings is not None or self._knows_all(X):
            return assign(result, X, embeddings=embeddings)
        return assign(result, X, encoder=self._encoder_of_fit())

    def _knows_all(self, X: Any) -> bool:
        """Tell whether all texts are of the fit, so that no encoder need be loaded."""
        return bool(np.all(known_documents(self._fitted(), Corpus.of(X)) >= 0))

    def _fitted(self) -> TopicResult:
        if not hasattr(self, "result_"):
            raise NotFittedError("this TopicModel is not fitted yet; call fit(texts) first")
        return self.result_

    def _check_parameters(self) -> None:
        for name in ("n_neighbors", "n_components"):
            checked_count(getattr(self, name), name)
        for name, method in (
            ("reducer", "fit_transform"),
            ("clusterer", "fit_predict"),
            ("weighting", "fit_transform"),
            ("guidance", "prepare"),
            ("guidance", "describe"),
        ):
            stage = getattr(self, name)
            if stage is not None and not callable(getattr(stage, method, None)):
                raise InputError(f"{name} must have a method {method}; got {stage!r}")
        fixed = self.n_topics == "auto" and self.min_cluster_size == "auto"
        if self.clusterer is not None and not fixed:
            raise InputError(
                f"n_topics and min_cluster_size are the default clusterer's; with a clusterer of "
                f'your own ({type(self.clusterer).__name__}) leave them at "auto" and set it there'
            )
        span = self.ngram_range
        if len(tuple(span)) != 2 or not is_count(span[0], 1) or not is_count(span[1], span[0]):
            raise InputError(f"ngram_range must be (shortest, longest) from 1 up; got {span!r}")
        if not isinstance(self.languages, (str, list, tuple)):
            raise InputError(f'languages must be "auto" or a list of codes; got {self.languages!r}')
        if self.min_df is not None and not (
            is_count(self.min_df, 1)
            or (isinstance(self.min_df, float) and 0.0 <= self.min_df <= 1.0)
        ):
            raise InputError(
                "min_df must be None, a number of documents from 1 up or a share from 0 to 1; "
                f"got {self.min_df!r}"
            )
        if isinstance(self.stop_words, str) and self.stop_words != "auto":
            raise InputError(f'stop_words must be "auto" or a list; got {self.stop_words!r}')

    def _settings(self) -> dict[str, Any]:
        """Return the parameters in a form that can be written down."""
        settings: dict[str, Any] = {}
        for name, value in self.get_params(deep=False).items():
            if name in ("encoder", "random_state", "show_progress", "languages"):
                continue
            if name == "weighting":
                settings[name] = describe_weighting(value)
                continue
            if name == "guidance":
                settings[name] = None if value is None else dict(value.describe())
                continue
            if isinstance(value, np.generic):
                value = value.item()
            if isinstance(value, (tuple, list)):
                value = list(value)
            elif not isinstance(value, (str, int, float, type(None))):
                value = repr(value)
            settings[name] = value
        return settings


def _fresh(stage: Any) -> Any:
    """Return an unfitted copy, so that a fit leaves the caller's object as it was."""
    if stage is None:
        return None
    return clone(stage) if hasattr(stage, "get_params") else stage
