"""Scales: an axis between seed words, seed texts or scored texts, and positions on it."""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from embedtopics._utils.checks import is_whole, resolve_seed
from embedtopics._utils.machine import one_blas_thread
from embedtopics.corpus._alignment import align_values
from embedtopics.corpus._corpus import Corpus, as_corpus, require_text
from embedtopics.encoders._base import unit_vectors
from embedtopics.encoders._contract import BaseEncoder
from embedtopics.encoders._foreign import can_encode
from embedtopics.encoders._registry import resolve_encoder
from embedtopics.encoders.sentence._loading import DEFAULT_MODEL
from embedtopics.errors import InputError
from embedtopics.probing._extract import hidden_states
from embedtopics.probing._layers import layer_numbers
from embedtopics.probing._plan import word_spans
from embedtopics.probing._positions import Positions, intervals
from embedtopics.probing.words._uses import similar_words, word_key
from embedtopics.protocols import Float64Array, Int64Array, RandomState
from embedtopics.results import Decision, counted

if TYPE_CHECKING:
    from embedtopics.topics.results import TopicResult

DEPTH = 2 / 3
"""Depth of the layer whose words are read: chosen on SST-2 (train) and tweets (validation)."""
TEXTS_AT_ONCE = 2_000
MIN_USES, MOST_WORDS = 5, 2_000
N_DRAWS, N_RANDOM_AXES = 200, 200
SIMILAR_RANKS = 25
"""Ranks of frequency, on either side, within which a random word replaces a seed."""
PENALTIES = np.logspace(-3, 3, 13)
LEAST_SCORED = 10
LEAST_RIGHT = 2 / 3
"""Share of held-out seeds on their own side up to which a fit warns."""


class _AxisReading:
    """The vectors of documents, which a fit with other seeds takes again, and of other texts.

    The columns of the first slice are the sentence vector. Those of the second, for transformers
    alone, are the mean vector of the words at `layer`, less `center`. Both have length one.
    """

    def __init__(
        self, key: Any, encoder: BaseEncoder, layer: Any, shown: bool | None, texts: list[str]
    ) -> None:
        self.key, self.encoder, self.shown = key, encoder, shown
        self.layer: Any = None
        if layer is not None and (is_whole(layer) or encoder.transformer is not None):
            layers = hidden_states(encoder, ["-"], show_progress=False).layers
            middle = round(DEPTH * layers[-1])
            self.layer = layer_numbers(middle if layer == "middle" else layer, layers)[0]
        spans = (text[begin:end] for text in texts for begin, end in word_spans(text))
        self.n_uses = Counter(map(word_key, spans))
        self.places = {word: place for place, word in enumerate(self.n_uses)}
        self.decisions: list[Decision] = []
        self.texts = self._sentences(texts, self.decisions)
        self.slices = [slice(0, self.texts.shape[1])]
        if self.layer is not None:
            means, sizes, self.sums = self._words(texts, self.places)
            self.center = sizes @ means / max(1, sizes.sum())
            self.slices.append(slice(self.slices[0].stop, None))
            self.texts = np.hstack([self.texts, self._centered(means, sizes)])
        uses = {w: n for w, n in self.n_uses.items() if n >= MIN_USES and w[0].isalpha()}
        self.frequent = sorted(uses, key=lambda word: (-uses[word], word))[:MOST_WORDS]

    def _sentences(self, texts: Sequence[str], notes: list[Decision] | None = None) -> Float64Array:
        encoding = self.encoder.encode_with_report(texts, show_progress=self.shown)
        if hasattr(encoding.embeddings, "toarray"):
            remedy = "use FastTextEncoder() for vectors from the corpus alone"
            raise InputError("encoder", "one of dense vectors", self.encoder.name, remedy)
        if notes is not None:
            n_cut = int((encoding.n_seen < encoding.n_tokens).sum())
            message = "texts are longer than the encoder reads; Corpus.passages(encoder) cuts them."
            notes += counted("probing", "truncated", n_cut, message)
        return np.asarray(unit_vectors(np.asarray(encoding.embeddings, dtype=np.float64)))

    def _words(
        self, texts: Sequence[str], places: Mapping[str, int]
    ) -> tuple[Float64Array, Int64Array, Float64Array]:
        """Return the mean of each text's words, their number, and the sums of uses by place."""
        means, sizes, sums = [], [], np.zeros(0)
        for begin in range(0, len(texts), TEXTS_AT_ONCE):
            some, layer = list(texts[begin : begin + TEXTS_AT_ONCE]), self.layer
            states = hidden_states(self.encoder, some, layers=layer, show_progress=self.shown)
            of_texts, vectors = states.pooled(), states.vectors[0]
            means.append(of_texts.vectors[0].astype(np.float64))
            sizes.append(of_texts.n_pieces)
            place = np.array([places.get(word_key(word), -1) for word in states.words])
            sums = sums if begin else np.zeros((len(places), states.width))
            np.add.at(sums, place[place >= 0], vectors[place >= 0])
        return np.concatenate(means), np.concatenate(sizes), sums

    def _centered(self, means: Float64Array, sizes: Int64Array) -> Float64Array:
        return np.asarray(unit_vectors((means - self.center) * (sizes > 0)[:, None]))

    def of_texts(self, texts: Sequence[str]) -> Float64Array:
        parts = [self._sentences(texts)]
        if self.layer is not None:
            parts.append(self._centered(*self._words(texts, {})[:2]))
        return np.hstack(parts)

    def of_words(self, words: Sequence[str]) -> Float64Array:
        """Return the vectors of words alone, and of the mean of their uses in the documents."""
        if not words:
            return np.zeros((0, self.texts.shape[1]))
        parts = [self._sentences(words)]
        if self.layer is not None:
            uses = np.array([self.n_uses[word] for word in words])
            sums = self.sums[[self.places[word] for word in words]]
            parts.append(self._centered(sums / uses[:, None], uses))
        return np.hstack(parts)

    def axes(self, weights: Float64Array, vectors: Float64Array) -> tuple[Any, Any]:
        """Return directions (n_axes, width) and intercepts on which texts have mean 0, spread 1."""
        directions = weights @ vectors
        for columns in self.slices:
            spread = (self.texts[:, columns] @ directions[:, columns].T).std(axis=0)
            directions[:, columns] /= np.where(spread > 0, spread, 1.0)[:, None]
        along = self.texts @ directions.T
        spread = along.std(axis=0)
        if not spread[0] > 1e-6:
            raise InputError("X", "texts that differ on the axis", found="one position for all")
        spread = np.where(spread > 0, spread, 1.0)
        return directions / spread[:, None], -along.mean(axis=0) / spread

    def explained(self, axes: Float64Array) -> Float64Array:
        """Return the share of variance along each axis, (n_axes,), the mean over the slices."""
        shares = []
        for columns in self.slices:
            part, axis = self.texts[:, columns], np.asarray(unit_vectors(axes[:, columns]))
            shares.append((part @ axis.T).var(axis=0) / max(part.var(axis=0).sum(), 1e-12))
        return np.asarray(np.mean(shares, axis=0))


def _weights(side: Int64Array, counts: Float64Array) -> Float64Array:
    """Return what each seed adds to an axis, (n_axes, n_seeds), by how often it counts."""
    above, below = (counts * (side == sign) for sign in (1, -1))
    sums = (np.maximum(one.sum(axis=1, keepdims=True), 1) for one in (above, below))
    return np.asarray(above / next(sums) - below / next(sums))


class Scale(BaseEstimator):  # type: ignore[misc]
    """An axis that seeds or scored texts define, and the positions of texts and words on it.

    A seed without a blank is a word of the texts; one with a blank is a text of its own. The axis
    leads from the mean of the negative seeds to that of the positive ones. It has two parts: one
    between sentence vectors of the seeds, one between the contextual vectors of all their uses in
    the texts, at two thirds of the depth of a transformer. A position is the mean of both, in
    standard deviations of the texts of the fit, where the mean is 0.

    Parameters
    ----------
    positive, negative : sequence of str
        Seeds of either end; left out if the fit has scores.
    encoder : str, path or encoder
        Any encoder of dense vectors; those without layers give the first part alone.
    layer : int, "middle" or None
        Layer whose words are read; None for sentence vectors alone.
    random_state : int, numpy.random.Generator or None
    show_progress : bool, optional

    Attributes
    ----------
    positions_ : Positions
        Of the rows of the fit.
    seeds_ : DataFrame
        Seed, side, n_uses; `held_out`, the position of the seed on the axis of the others, from the
        middle between the sides; `own_side`, whether it falls on its own side; and `correlation` of
        the positions with those without the seed. Empty for scores.
    words_ : DataFrame
        Words with at least five uses: word, n_uses, position, low, high, is_seed.
    explained_, random_explained_ : float
        Share of the variance of the texts' vectors along the axis; and the median share of axes
        between random words that are as frequent as the seeds.
    penalty_, cv_correlation_ : float
        For scores: the penalty, and the correlation of scores and predictions in five outer folds.
    decisions_ : list of Decision

    Notes
    -----
    Seeds as in latent semantic scaling (Watanabe 2021); scored texts as in Wordscores (Laver and
    others 2003), by ridge regression with generalized cross-validation. Intervals come from 200
    resamples of the seeds of each side, or of the scored texts.

    Examples
    --------
    >>> import embedtopics as et
    >>> good = [f"A good and great {word}." for word in ["film", "book", "song", "meal", "day"]]
    >>> bad = [f"A bad and awful {word}." for word in ["film", "book", "song", "meal", "day"]]
    >>> scale = et.probing.Scale(["good", "great"], ["bad", "awful"], show_progress=False)
    >>> positions = scale.fit(good + bad).positions_
    >>> positions
    Positions(10 texts, all-MiniLM-L6-v2)
    >>> bool(positions.values[:5].min() > positions.values[5:].max())
    True
    """

    def __init__(
        self,
        positive: Sequence[str] | None = None,
        negative: Sequence[str] | None = None,
        *,
        encoder: Any = DEFAULT_MODEL,
        layer: int | str | None = "middle",
        random_state: RandomState = 0,
        show_progress: bool | None = None,
    ) -> None:
        self.positive, self.negative = positive, negative
        self.encoder, self.layer = encoder, layer
        self.random_state, self.show_progress = random_state, show_progress

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the axis; warn if random axes explain more, or held-out seeds miss their sides.

        Parameters
        ----------
        X : Corpus, or what `Corpus` takes
            Texts; cut long ones first, with `Corpus.passages`. A second fit to the same texts with
            other seeds, after `set_params`, does not read them again.
        y : array_like of shape (n_rows,), optional
            Scores of the rows, NaN for rows without one.

        Raises
        ------
        InputError
            If there is no text, a side has no seed, or a seed is on both sides or in no text.
        """
        if isinstance(y, str | os.PathLike) or can_encode(y):
            expected = "one score for each row, or None for seeds"
            remedy = "name the encoder in the constructor: et.probing.Scale(..., encoder=encoder)"
            raise InputError("y", expected, remedy=remedy, found="an encoder or a name")

        corpus, rng = as_corpus(X), np.random.default_rng(resolve_seed(self.random_state))
        require_text(corpus)
        seeds, texts = self._checked_seeds(y), list(corpus.document_texts())
        opened = resolve_encoder(self.encoder).fitted_to(texts)
        key = (opened.fingerprint or id(opened), self.layer, corpus.distinct().hashes.tobytes())
        if getattr(self, "_reading", None) is None or self._reading.key != key:
            self._reading: _AxisReading = _AxisReading(
                key, opened, self.layer, self.show_progress, texts
            )
        reading, self.decisions_ = self._reading, list(self._reading.decisions)
        words = [*reading.frequent, *_rare_seeds(seeds, reading)]
        vectors = reading.of_words(words)
        with one_blas_thread():
            if y is None:
                self._fit_seeds(seeds, dict(zip(words, vectors, strict=True)), rng)
            else:
                self._fit_scores(y, corpus, rng)
            self.positions_ = self._positions(corpus, reading.texts)
            places = self._place(vectors)
            low, high = intervals(places[:, 0], places[:, 1:], self.df_)
        columns = {"word": words, "n_uses": [reading.n_uses[word] for word in words]}
        columns |= {"position": places[:, 0], "low": low, "high": high}
        frame = pd.DataFrame(columns).assign(is_seed=np.isin(words, self.seeds_["seed"]))
        self.words_ = frame.sort_values("position", kind="stable", ignore_index=True)
        return self

    def _checked_seeds(self, scores: Any) -> dict[str, int]:
        """Return the side of each seed, 1 or -1, in alphabetical order."""
        seeds: dict[str, int] = {}
        if scores is not None:
            if self.positive or self.negative:
                raise InputError("y", "left out for seeds, which define the axis", found="scores")
            return seeds
        sides = (("positive", self.positive, 1), ("negative", self.negative, -1))
        for name, several, side in sides:
            if isinstance(several, str) or not several or not all(map(str.strip, several)):
                raise InputError(name, "a list of one or more words or texts", several)
            keys = [" ".join(one.split()) for one in several]
            keys = [one if " " in one else word_key(one) for one in keys]
            if both := [repr(one) for one in keys if seeds.get(one, side) != side]:
                raise InputError(name, "without seeds of positive", found=f"both have {both[0]}")
            seeds |= dict.fromkeys(keys, side)
        return dict(sorted(seeds.items()))

    def _fit_seeds(
        self, sides: dict[str, int], words: dict[str, Float64Array], rng: np.random.Generator
    ) -> None:
        """Set the directions, and check the axis by held-out seeds and by random axes."""
        reading, names, n = self._reading, list(sides), len(sides)
        long = [one for one in names if " " in one]
        of_long = dict(zip(long, reading.of_texts(long), strict=True)) if long else {}
        vectors, side = np.array([(words | of_long)[one] for one in names]), [*sides.values()]
        signs = np.array(side)
        whole = _weights(signs, np.ones((1, n)))
        self._directions, self._intercepts = reading.axes(whole, vectors)
        columns = {"seed": names, "side": np.where(signs > 0, "positive", "negative")}
        columns["n_uses"] = [reading.n_uses.get(one, 1) for one in names]
        self.seeds_: pd.DataFrame = pd.DataFrame(columns)
        smaller = int(min((signs > 0).sum(), (signs < 0).sum()))
        self.df_: int = n - 2 if smaller > 1 else 0
        if smaller > 1:
            weights = _weights(signs, 1 - np.eye(n))
            directions, intercepts = reading.axes(weights, vectors)
            places = directions @ vectors.T  # of each seed on the axis without another
            held_out = np.diag(places) - (np.abs(weights) * places).sum(axis=1) / 2
            along = reading.texts @ directions.T + intercepts
            full = self._place(reading.texts)[:, 0]
            checks = {"held_out": held_out, "own_side": held_out * signs > 0}
            self.seeds_ = self.seeds_.assign(**checks, correlation=full @ along / len(full))
            counts = np.zeros((N_DRAWS, n))
            for sign in (side[0], -side[0]):  # sides that are swapped draw the same seeds
                rows = np.flatnonzero(signs == sign)
                shares = np.full(len(rows), 1 / len(rows))
                counts[:, rows] = rng.multinomial(len(rows), shares, N_DRAWS)
            self._add_draws(*reading.axes(_weights(signs, counts), vectors), smaller)
        self.explained_ = float(reading.explained(whole @ vectors)[0])
        self.random_explained_ = self._random_explained(names, whole[0], words, rng)
        self._judge()

    def _random_explained(
        self, names: list[str], weights: Float64Array, words: dict[str, Float64Array], rng: Any
    ) -> float:
        """Return the median share that axes explain between random words as frequent, or texts."""
        reading = self._reading
        others = [word for word in reading.frequent if word not in names]
        if len(others) < len(names):
            return float("nan")
        rank = [-reading.n_uses[word] for word in others]
        ranks = np.searchsorted(rank, [-reading.n_uses.get(one, 0) for one in names])
        steps = rng.integers(-SIMILAR_RANKS, SIMILAR_RANKS + 1, (N_RANDOM_AXES, len(names)))
        places = np.clip(ranks + steps, 0, len(others) - 1)
        is_text = np.array([" " in one for one in names])
        texts = rng.integers(0, len(reading.texts), places.shape)[:, is_text]
        drawn = np.array([words[word] for word in others])[places]
        drawn[:, is_text] = reading.texts[texts]
        return float(np.median(reading.explained(np.einsum("s,rsd->rd", weights, drawn))))

    def _add_draws(self, directions: Float64Array, intercepts: Float64Array, n_units: int) -> None:
        """Keep resampled axes, moved to the axis and spread as wide as samples of `n_units`."""
        wider = np.sqrt(n_units / (n_units - 1))
        for name, drawn in (("_directions", directions), ("_intercepts", intercepts)):
            first = getattr(self, name)
            setattr(self, name, np.concatenate([first, first + wider * (drawn - drawn.mean(0))]))

    def _judge(self) -> None:
        """Warn where the axis is no better than those between random words."""
        right, random = self.seeds_.get("own_side", pd.Series([True])), self.random_explained_
        checks = {
            f"The axis explains {self.explained_:.1%} of the variance of the texts, axes between "
            f"random words as frequent as the seeds {random:.1%}; positions may be noise.":
            self.explained_ < random,
            f"Only {right.sum()} of {len(right)} seeds fall on their own side when the others "
            "define the axis (see seeds_): do they share one meaning?": right.mean() <= LEAST_RIGHT,
            "A side has one seed, so positions have no intervals.": not self.df_,
        }  # fmt: skip
        for message in (message for message, is_bad in checks.items() if is_bad):
            self.decisions_.append(Decision("probing", "axis", self.explained_, message))
            warnings.warn(message, stacklevel=4)

    def _fit_scores(self, scores: Any, corpus: Corpus, rng: np.random.Generator) -> None:
        """Set the directions by ridge regression, and draw them by one-step bootstrap."""
        from sklearn.linear_model import RidgeCV
        from sklearn.model_selection import KFold, cross_val_predict

        scores = align_values(scores, corpus, "y", "one score for each row")
        y = np.asarray(scores, dtype=np.float64)
        document = corpus.distinct().of_row
        if y.shape != (len(corpus),):
            raise InputError("y", "one score for each row", found=f"an array of shape {y.shape}")

        rows = np.flatnonzero((document >= 0) & ~np.isnan(y))
        if len(rows) < LEAST_SCORED or np.ptp(y[rows]) == 0:
            expected = f"scores of at least {LEAST_SCORED} texts, not all equal"
            raise InputError("y", expected, found=f"{len(rows)}, {len(np.unique(y[rows]))} values")

        rows = rows[np.lexsort((y[rows], document[rows]))]
        x = self._reading.texts[document[rows]]
        y = y[rows]
        fit = RidgeCV(alphas=PENALTIES).fit(x, y)
        middle = x.mean(axis=0)

        folds = KFold(5, shuffle=True, random_state=int(rng.integers(2**31)))
        predicted = cross_val_predict(RidgeCV(alphas=PENALTIES), x, y, cv=folds)
        self.penalty_ = float(fit.alpha_)
        self.df_ = len(y) - 1
        self.cv_correlation_ = float(np.corrcoef(predicted, y)[0, 1])
        self.seeds_ = pd.DataFrame(columns=["seed", "side", "n_uses"])

        # The intercept is a column without penalty; residuals are those without their own row.
        errors = y - fit.predict(x)
        x = np.column_stack([x - middle, np.ones(len(x))])
        penalties = np.diag([*np.full(len(middle), fit.alpha_), 0.0])
        influence = np.linalg.solve(x.T @ x + penalties, x.T).T
        errors /= 1 - np.einsum("ij,ij->i", x, influence)

        times = rng.multinomial(len(y), np.full(len(y), 1 / len(y)), N_DRAWS)
        shifts = ((times - 1) * errors) @ influence
        self._directions = fit.coef_[None]
        self._intercepts = np.array([fit.intercept_])
        intercepts = fit.intercept_ + shifts[:, -1] - shifts[:, :-1] @ middle
        self._add_draws(fit.coef_ + shifts[:, :-1], intercepts, len(y))

    def _place(self, vectors: Float64Array) -> Float64Array:
        """Return positions on the axis and on those of the resamples, (n, 1 + n_draws)."""
        return np.asarray(vectors @ self._directions.T + self._intercepts)

    def _positions(self, corpus: Corpus, vectors: Float64Array) -> Positions:
        document = corpus.distinct().of_row
        places = np.vstack([self._place(vectors), np.full(len(self._intercepts), np.nan)])[document]
        about = (self._reading.encoder.name, tuple(self.decisions_))
        return Positions(corpus, places[:, 0], places[:, 1:], self.df_, *about)

    def positions(self, corpus: Any = None, *, within: TopicResult | None = None) -> Positions:
        """Return the positions of texts.

        Parameters
        ----------
        corpus : Corpus, or what `Corpus` takes, optional
            By default the texts of the fit. Rows without text have the position NaN.
        within : TopicResult, optional
            Topics of the same rows: positions are differences from the mean of the row's topic, so
            they do not show what the texts are about. The column "topic" is added.

        Returns
        -------
        Positions
        """
        check_is_fitted(self)
        positions = self.positions_
        if corpus is not None:
            corpus = as_corpus(corpus)
            require_text(corpus)
            vectors = self._reading.of_texts(list(corpus.document_texts()))
            positions = self._positions(corpus, vectors)
        return positions if within is None else positions.within(within.labels)

    def explain(self, text: str) -> pd.DataFrame:
        """Return the shift by each word of a text: its position, less that without the word."""
        check_is_fitted(self)
        spans = word_spans(text)
        texts = [text, *(text[:begin] + text[end:] for begin, end in spans)]
        places = self._place(self._reading.of_texts(texts))[:, 0]
        words = [text[begin:end] for begin, end in spans]
        return pd.DataFrame({"word": words, "shift": places[0] - places[1:]})


def _rare_seeds(seeds: dict[str, int], reading: _AxisReading) -> list[str]:
    """Return seed words that are not frequent; refuse those that do not occur."""
    words = [one for one in seeds if " " not in one]
    if unknown := [one for one in words if one not in reading.n_uses]:
        name = "positive" if seeds[unknown[0]] > 0 else "negative"
        remedy, listed = similar_words(reading.n_uses, unknown[0]), ", ".join(map(repr, unknown))
        raise InputError(name, "words of the texts", remedy=remedy, found=listed)
    return sorted(set(words).difference(reading.frequent))
