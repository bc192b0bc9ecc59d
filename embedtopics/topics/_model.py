"""The scikit-learn estimator of topics."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClusterMixin, TransformerMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import estimator_html_repr
from sklearn.utils._set_output import _get_output_config

from embedtopics._utils.checks import checked_choice, checked_count, resolve_seed
from embedtopics._utils.fitted import FittedTopics, result_of
from embedtopics._utils.habits import Habits
from embedtopics._utils.keywords import names_keywords
from embedtopics.clustering._density import DensityClusterer
from embedtopics.clustering._named import CLUSTERERS, named_clusterer
from embedtopics.corpus._corpus import as_corpus
from embedtopics.encoders._contract import BaseEncoder
from embedtopics.encoders._registry import resolve_encoder
from embedtopics.errors import InputError
from embedtopics.protocols import (
    Clusterer,
    Encoder,
    Int32Array,
    RandomState,
    Reducer,
    Segmenter,
    TermWeighting,
)
from embedtopics.reduction._components import SMOOTHED_COMPONENTS
from embedtopics.reduction._named import REDUCERS, named_reducer
from embedtopics.results import Decision
from embedtopics.terms._counts import checked_ngram_range, checked_stop_words
from embedtopics.terms._languages import checked_languages
from embedtopics.terms._rules import checked_words
from embedtopics.terms._weighting import ClassTfidf
from embedtopics.terms.results import WordRules
from embedtopics.topics._clusters import Resolution
from embedtopics.topics._describe import TermSettings, custom_weighting, describe_weighting
from embedtopics.topics._pipeline import Stages, fit_topics
from embedtopics.topics._propagation import assign, checked_coverage, known_documents
from embedtopics.topics._storage import as_json
from embedtopics.topics._vectors import encoder_of_fit
from embedtopics.topics.constraints._apply import Constraint
from embedtopics.topics.results import Assignment, TopicResult
from embedtopics.topics.results._result import topics_as_html

DEFAULT_ENCODER = "all-MiniLM-L6-v2"
RESTORED = (
    "n_neighbors", "n_components", "n_topics", "coverage", "languages", "stop_words", "ngram_range",
    "min_df", "words",
)  # fmt: skip
"""Parameters of a loaded model that the settings of its result hold."""
ASKED = ("n_topics", "min_cluster_size", "coverage")
"""Parameters whose settings a fit or `recluster` resolves."""
NAMED = {"reducer": REDUCERS, "clusterer": CLUSTERERS}
"""Names of stages."""

Y_NOT_USED = Decision(
    "corpus", "y", False,
    "y is not used; for topics that follow labels pass constraints=PartialLabels(y).",
)  # fmt: skip


class TopicModel(Habits, ClusterMixin, TransformerMixin, BaseEstimator):
    """Find the topics of a collection of texts.

    Parameters
    ----------
    encoder : str or object with ``encode(texts)``, optional
        Name or folder of a checkpoint, or any encoder; by default all-MiniLM-L6-v2 for English.
        "auto" takes multilingual-e5-small if more than a tenth of the texts are in other languages
        and the extra ``multilingual`` is installed. Vectors of a named checkpoint are cached on
        disk; ``SentenceEncoder(name)`` does not cache.
    n_topics : {"auto", "fine", "coarse"} or int
        Number of topics; an integer is met exactly. "auto" takes as many as the words of the texts
        support, at most 100, see `embedtopics.topics.levels`; "fine" twice as many, "coarse" as
        many as there are themes. `embedtopics.topics.recluster` changes it after the fit.
    coverage : "auto" or float
        Share of the rows with text to assign to a topic. Label propagation assigns the texts
        outside the clusters. "auto" leaves out texts without a clear topic, 0 keeps the clusters
        alone, 1 leaves out only texts that propagation cannot reach.
    n_neighbors : int
        Neighbors of each document in the graph.
    n_components : int, optional
        Dimensions of the coordinates to cluster; by default 16, or 5 with a named reducer.
    min_cluster_size : "auto" or int
        Smallest number of texts in the cluster of a topic, instead of `n_topics`; "auto" depends
        on the number of texts.
    reducer : {"umap", "pca"} or object with ``fit_transform(embeddings)``, optional
        Computes the coordinates, by default principal components smoothed over the neighbor graph.
        "umap" is umap-learn's UMAP with BERTopic's settings (``min_dist=0.0``,
        ``metric="cosine"``), "pca" is scikit-learn's PCA.
    clusterer : {"hdbscan", "kmeans"} or object with ``fit_predict(coordinates)``, optional
        Clusters the coordinates; by default `DensityClusterer`. "hdbscan" is hdbscan's HDBSCAN with
        BERTopic's settings (``min_cluster_size=10``, excess of mass), "kmeans" is scikit-learn's
        KMeans with `n_topics` clusters, by default 8. With an object leave `n_topics` and
        `min_cluster_size` at "auto".
    weighting : object with ``fit(counts, terms=None)`` and ``transform(counts)``, optional
        Weights the terms; by default `ClassTfidf`.
    constraints : object with ``prepare(context)`` and ``describe()``, optional
        Constraints on the topics: `SeedWords`, `ZeroShot` names, `PartialLabels` or
        `ManualLabels`.
    languages : "auto" or sequence of str
        ISO 639-1 codes of the languages of the texts, for stop words and stems.
    words : {"auto", "characters", "lemmas", "social", "social-split", "social-drop"} or function
        Rules for words; a list combines several. "auto" uses installed segmenters for Chinese,
        Japanese, Thai, Lao, Khmer, Burmese and Korean (extras `multilingual`, `japanese`, `thai`,
        `korean`), otherwise pairs of characters for text without spaces, like "characters".
        "lemmas" replaces words by lemmas (simplemma). "social" keeps web addresses, @names, #tags
        and emoji; "social-split" splits names and tags at capitals; "social-drop" leaves all four
        out. By default names and tags are words without their sign; if most texts have no other
        words, all four are words. A function takes a text and returns the list of its words, see
        `embedtopics.protocols.Segmenter`.
    stop_words : "auto" or sequence of str
        Words to leave out; "auto", alone or with other words, takes the lists of the languages,
        the words that occur equally in all topics, names of accounts (@name), and lines that many
        texts repeat, such as signatures.
    ngram_range : (int, int)
        Shortest and longest term in words.
    min_df : int, float or None
        Smallest number of documents with a term; None depends on the size of the collection.
    random_state : int, numpy.random.Generator or None
        The same embeddings and integer give the same result, bit for bit; None draws a seed
        and records it.
    show_progress : bool or None
        None shows progress in a terminal or a notebook.

    Attributes
    ----------
    result_ : TopicResult
        Topics, labels, map and all other results of the fit.
    labels_ : int32 ndarray of shape (n_rows,)
        Topic of each row, -1 for none.

    Examples
    --------
    >>> import embedtopics as et
    >>> corpus = et.Corpus("embedtopics:demo")
    >>> model = et.TopicModel("tfidf", n_topics=8).fit(corpus)
    >>> model.result_.n_topics
    8
    >>> model.labels_.shape
    (670,)

    Vectors of your own replace the encoder:

    >>> import numpy as np
    >>> points = np.repeat([[1.0, 0.0], [0.0, 1.0]], 20, axis=0)
    >>> points = points + 0.1 * np.random.default_rng(0).normal(size=points.shape)
    >>> texts = [f"{'apple pie' if i < 20 else 'train station'} {i}" for i in range(40)]
    >>> et.TopicModel(languages=["en"]).fit(texts, embeddings=points).result_.n_topics
    2
    """

    _kind = "model"

    _result_was_given = False
    """Whether the caller chose the result, by `from_result`: then it is what shall be saved."""

    @names_keywords
    def __init__(
        self,
        encoder: str | Encoder | None = None,
        *,
        n_topics: int | str = "auto",
        coverage: float | str = "auto",
        n_neighbors: int = 15,
        n_components: int | None = None,
        min_cluster_size: int | str = "auto",
        reducer: Reducer | str | None = None,
        clusterer: Clusterer | str | None = None,
        weighting: TermWeighting | None = None,
        constraints: Constraint | None = None,
        languages: str | Sequence[str] = "auto",
        words: str | Sequence[str] | Segmenter = "auto",
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
        self.constraints = constraints
        self.languages = languages
        self.words = words
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
        y : sequence of shape (n_rows,), optional
            Labels that a later step of a scikit-learn pipeline learns from. They are not used here,
            which the decisions record; for topics that follow them pass
            ``constraints=PartialLabels(y)``. Anything else is refused.
        embeddings : array_like of shape (n_rows, n_dimensions), optional
            Vectors of the rows, in their order; they replace those of the encoder. If an encoder is
            given too, it encodes a sample of the texts, and vectors in another order are refused.

        Returns
        -------
        TopicModel
            The model itself.

        Raises
        ------
        InputError
            If the texts, the embeddings or a parameter cannot be used.
        """
        self._check_parameters()
        corpus = as_corpus(X)
        _check_labels(y, len(corpus))
        self._of_fit: tuple[Any, BaseEncoder] | None = None
        self._result_was_given = False
        resolution = Resolution(self.n_topics, self.min_cluster_size)
        seed = resolve_seed(self.random_state)

        reducer = _fresh(self.reducer)
        n_components = self.n_components
        if isinstance(reducer, str):
            checked_choice(reducer, "reducer", REDUCERS)
            reducer = named_reducer(reducer, self.n_neighbors, n_components or 5, seed)

        clusterer = _fresh(self.clusterer) or DensityClusterer(self.min_cluster_size)
        if isinstance(clusterer, str):
            checked_choice(clusterer, "clusterer", CLUSTERERS)
            clusterer = named_clusterer(clusterer, self.n_topics, self.min_cluster_size, seed)

        stages = Stages(
            make_encoder=self._make_encoder,
            reducer=reducer,
            clusterer=clusterer,
            resolution=resolution if self.clusterer is None else None,
            coverage=checked_coverage(self.coverage),
            weighting=_fresh(self.weighting) or ClassTfidf(),
            terms=TermSettings(self.stop_words, self.ngram_range, self.min_df),
            n_neighbors=self.n_neighbors,
            n_components=n_components or SMOOTHED_COMPONENTS,
            languages=self.languages,
            words=self.words,
            seed=seed,
            show_progress=self.show_progress,
            constraints=self.constraints,
            has_encoder=self.encoder is not None,
        )

        result = fit_topics(corpus, embeddings, stages, self._settings())
        notes = [] if y is None else [Y_NOT_USED]
        self.result_ = dataclasses.replace(
            result,
            decisions=(*result.decisions, *notes),
            weighting=custom_weighting(stages.weighting),
        )
        return self

    def _html_repr(self) -> str:
        """Return the table of topics for a notebook; the parameters if the model is not fitted.

        scikit-learn shows what this method returns.
        """
        if not self.__sklearn_is_fitted__():
            diagram: str = estimator_html_repr(self)
            return diagram
        return topics_as_html(self.result_, "model")

    def _hint(self, name: str) -> str:
        """Return what to do instead of reading an attribute that the model does not have."""
        hint = super()._hint(name)
        is_of_result = name in TopicResult.__dataclass_fields__ or hasattr(TopicResult, name)
        return f"it is model.result_.{name}" if is_of_result and not hint else hint

    def __sklearn_is_fitted__(self) -> bool:
        return "result_" in vars(self)

    @property
    def labels_(self) -> Int32Array:
        """Topic of each row of the fit, shape (n_rows,); -1 for none."""
        return self._fitted().labels

    def fit_predict(
        self, X: Any, y: Any = None, *, embeddings: npt.ArrayLike | None = None
    ) -> Int32Array:
        """Fit, and return the topic of each row, shape (n_rows,)."""
        return self.fit(X, y, embeddings=embeddings).labels_

    def fit_transform(
        self, X: Any, y: Any = None, *, embeddings: npt.ArrayLike | None = None
    ) -> Any:
        """Fit, and return the share of each topic in each row; see `transform`."""
        fitted = self.fit(X, y, embeddings=embeddings)
        return fitted.transform(fitted.result_.corpus, embeddings=embeddings)

    @names_keywords
    def predict(self, X: Any, embeddings: npt.ArrayLike | None = None) -> Int32Array:
        """Return the topic of each text, shape (n_texts,); -1 for none.

        Texts of the fit keep their topic; the nearest documents decide for others. See
        `embedtopics.topics.assign`.

        Examples
        --------
        >>> import embedtopics as et
        >>> corpus = et.Corpus("embedtopics:demo")
        >>> model = et.TopicModel("tfidf").fit(corpus)
        >>> (model.predict(corpus) == model.labels_).all()
        np.True_
        """
        return self._assign(X, embeddings).labels

    @names_keywords
    def transform(self, X: Any, embeddings: npt.ArrayLike | None = None) -> Any:
        """Return the share of each topic in each text, shape (n_texts, n_topics).

        Sparse, or a frame with one column per topic after ``set_output(transform="pandas")``.

        Examples
        --------
        >>> import embedtopics as et
        >>> corpus = et.Corpus("embedtopics:demo")
        >>> model = et.TopicModel("tfidf", n_topics=8).fit(corpus)
        >>> model.transform(corpus).shape
        (670, 8)
        >>> frame = model.set_output(transform="pandas").transform(corpus)
        >>> (frame.columns == et.topics.table(model)["name"][:8]).all()
        np.True_
        """
        shares = self._assign(X, embeddings).memberships
        is_frame = _get_output_config("transform", self)["dense"] != "default"
        return shares.toarray() if is_frame else shares

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[Any]:
        """Return the names of the topics, the columns of `transform`."""
        return np.array([topic.name for topic in self._fitted().topics], dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array = tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags

    def save(self, folder: str | Path, *, texts: bool = True) -> Path:
        """Save the result of the fit, as `TopicResult.save` does.

        The model does not know of edits, which return results of their own. If there are any, a
        warning says so; `from_result` makes a model of an edited result.
        """
        from embedtopics.topics._relabel import has_edits

        result = self._fitted()
        if has_edits(result) and not self._result_was_given:
            warnings.warn(
                "the model saves the result of its fit, without the edits made since; to save an "
                "edited result, call edited.save(folder)",
                stacklevel=2,
            )
        return result.save(folder, texts=texts)

    @classmethod
    def load(
        cls,
        folder: str | Path,
        *,
        encoder: str | Encoder | None = None,
        words: Segmenter | None = None,
    ) -> TopicModel:
        """Load a saved model.

        Constraints and stages given as objects (encoder, reducer, clusterer, weighting) are not
        restored. To fit again, pass them again.

        Parameters
        ----------
        folder : str or Path
        encoder : Encoder or str, optional
            Encodes new texts; by default the encoder of the fit, loaded on demand.
        words : Segmenter, optional
            The custom segmenter of the fit; files do not hold functions.

        Examples
        --------
        >>> import tempfile
        >>> import embedtopics as et
        >>> corpus = et.Corpus("embedtopics:demo")
        >>> model = et.TopicModel("tfidf").fit(corpus)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     loaded = et.TopicModel.load(model.save(f"{folder}/study"))
        >>> (loaded.predict(corpus) == model.labels_).all()
        np.True_
        """
        result = TopicResult.load(folder)
        if words is not None:
            tokens = dataclasses.replace(result.tokens, rules=WordRules(function=words))
            result = dataclasses.replace(result, tokens=tokens)
        model = cls.from_result(result, encoder=encoder)
        model._result_was_given = False
        return model

    @classmethod
    def from_result(
        cls, result: FittedTopics, *, encoder: str | Encoder | None = None
    ) -> TopicModel:
        """Return a fitted model of a result, such as an edited one.

        Parameters
        ----------
        result : TopicResult or fitted TopicModel
            What the model predicts with, and saves. Stages given as objects are not restored.
        encoder : Encoder or str, optional
            Encodes new texts; by default the encoder of the fit, loaded on demand.

        Returns
        -------
        TopicModel

        Raises
        ------
        InputError
            If it is no result.

        Examples
        --------
        >>> import embedtopics as et
        >>> model = et.TopicModel("tfidf").fit(et.Corpus("embedtopics:demo"))
        >>> named = et.topics.rename(model, {0: "My name"})
        >>> et.TopicModel.from_result(named).get_feature_names_out()[0]
        'My name'
        """
        result = result_of(result)
        settings = result.settings
        parameters = {name: settings[name] for name in RESTORED if name in settings}
        for stage, names in NAMED.items():
            if settings.get(stage) in names:
                parameters[stage] = settings[stage]
        if callable(result.tokens.rules.function):
            parameters["words"] = result.tokens.rules.function
        if "ngram_range" in parameters:
            parameters["ngram_range"] = tuple(parameters["ngram_range"])

        model = cls(encoder=encoder, random_state=settings.get("seed", 0), **parameters)
        model.result_ = result
        model._result_was_given = True
        return model

    def _make_encoder(self, texts: Sequence[str]) -> BaseEncoder:
        """Load the encoder once, fit it if necessary, and store it for later texts."""
        spec = DEFAULT_ENCODER if self.encoder is None else self.encoder
        loaded = getattr(self, "_loaded", None)
        if loaded is None or loaded[0] is not spec:
            self._loaded = (spec, resolve_encoder(spec, cached=True))
        encoder: BaseEncoder = self._loaded[1].fitted_to(texts).reading_to_ends(texts)
        self._of_fit = (self.encoder, encoder)
        return encoder

    def _assign(self, X: Any, embeddings: npt.ArrayLike | None) -> Assignment:
        result = self._fitted()
        corpus = as_corpus(X)
        of_fit = getattr(self, "_of_fit", None)

        if embeddings is not None:
            encoder = None
            if of_fit is not None and of_fit[0] is self.encoder:
                encoder = of_fit[1]
            return assign(result, corpus, embeddings=embeddings, encoder=encoder)

        # If all texts are of the fit, no encoder is needed.
        if (known_documents(result, corpus) >= 0).all():
            return assign(result, corpus)
        if of_fit is None or of_fit[0] is not self.encoder:
            self._of_fit = of_fit = (self.encoder, encoder_of_fit(result, self.encoder))
        return assign(result, corpus, encoder=of_fit[1])

    def _fitted(self) -> TopicResult:
        if not hasattr(self, "result_"):
            raise NotFittedError("this TopicModel is not fitted yet; call fit(texts) first")
        return self.result_

    def _check_parameters(self) -> None:
        checked_count(self.n_neighbors, "n_neighbors")
        is_auto = self.n_topics == "auto" and self.min_cluster_size == "auto"
        if self.clusterer is not None and not isinstance(self.clusterer, str) and not is_auto:
            expected = '"auto", like min_cluster_size, with a custom clusterer'
            remedy = f"set the number of clusters in {type(self.clusterer).__name__}"
            raise InputError("n_topics", expected, (self.n_topics, self.min_cluster_size), remedy)
        checked_ngram_range(self.ngram_range)
        checked_stop_words(self.stop_words)
        checked_words(self.words)
        if self.languages != "auto":
            checked_languages(self.languages)

    def _settings(self) -> dict[str, Any]:
        """Return the parameters as JSON holds them."""
        settings = self.get_params(deep=False)
        for name in ("encoder", "random_state", "show_progress", "languages"):
            del settings[name]
        settings["weighting"] = describe_weighting(self.weighting)
        if callable(self.words):
            settings["words"] = WordRules(function=self.words).to_json()
        if self.constraints is not None:
            settings["constraints"] = dict(self.constraints.describe())
        settings["asked"] = {name: settings[name] for name in ASKED}
        for stage in NAMED:
            if not isinstance(settings[stage], str | None):
                settings[stage] = repr(settings[stage])
        recorded: dict[str, Any] = as_json(settings)
        return recorded


def _check_labels(y: Any, n_rows: int) -> None:
    """Raise InputError if `y` is not a label for each row: who passes it means something else."""
    if y is None:
        return
    if isinstance(y, str):
        remedy = f'name the column of texts: et.Corpus(df, text="{y}")'
        raise InputError("y", "one label per row or None", y, remedy)

    shape = _shape_of(y)
    if len(shape) == 2:
        remedy = "pass the vectors as embeddings="
        found = f"an array of shape {shape}"
        raise InputError("y", "one label per row or None", remedy=remedy, found=found)
    if shape != (n_rows,):
        remedy = "leave it out, or for topics that follow labels pass constraints=PartialLabels(y)"
        raise InputError("y", f"one label for each of the {n_rows:,} rows, or None", y, remedy)


def _shape_of(values: Any) -> tuple[int, ...]:
    """Return the shape of an array or of sequences, nested or not; () for other objects."""
    if hasattr(values, "shape"):
        return tuple(values.shape)
    if not hasattr(values, "__len__"):
        return ()
    first: Any = next(iter(values), None)
    if isinstance(first, str) or not hasattr(first, "__len__"):
        return (len(values),)
    return (len(values), len(first))


def _fresh(stage: Any) -> Any:
    """Return an unfitted copy: a fit does not change the caller's object."""
    return clone(stage) if hasattr(stage, "get_params") else stage
