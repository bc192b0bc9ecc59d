"""Regression of the uses of words on covariates: how a word is used, by whom and when."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from embedtopics._utils.checks import checked_count, resolve_seed
from embedtopics._utils.machine import one_blas_thread
from embedtopics.corpus._classes import spell_class
from embedtopics.corpus._corpus import Corpus, as_corpus
from embedtopics.corpus._windows import sentence_starts
from embedtopics.encoders.sentence._loading import DEFAULT_MODEL
from embedtopics.errors import InputError
from embedtopics.evaluation._bootstrap import interval, resampled_counts
from embedtopics.inference._design import Design, make_design, parse_covariates
from embedtopics.probing._extract import hidden_states
from embedtopics.probing._layers import Layers, blocks, layer_numbers, lengths_of, open_space
from embedtopics.probing._plan import word_spans
from embedtopics.probing._tables import USE_EFFECTS, make_table
from embedtopics.probing.results import HiddenStates
from embedtopics.probing.words._uses import (
    by_text,
    checked_words,
    rows_of_word,
    similar_words,
    types_of,
    uses_at,
    word_key,
)
from embedtopics.probing.words.results import UseRegression, WordFit
from embedtopics.protocols import Float64Array, FloatArray, Int64Array, RandomState

LAYERS = "last 2"
"""Of the layers of all-MiniLM-L6-v2, their mean separates the senses of ten words of CoarseWSD-20
well: 86 % of the uses have the sense of the nearest use, and senses explain 13 % of the variance;
93 % and 16 % with ten other words (62 % and 1 % with static vectors)."""
MIN_USES = 5
"""Uses of a word whose mean vector describes a predicted vector."""
N_RESAMPLES = 1000
N_GRID, AT_ONCE, NONE = 10, 50, 1e-9
"""Quantiles of a number at which uses are predicted, permutations drawn together, and zero."""


class _Fit(NamedTuple):
    """A least-squares fit with its orthogonal basis, residuals and units, all in one order."""

    basis: Float64Array  # (n, n_columns)
    inverse: Float64Array  # (n_columns, n_columns) from the basis to the coefficients
    coefficients: Float64Array  # (n_columns, width)
    residuals: Float64Array  # (n, width)
    starts: Int64Array  # the first row of each unit
    adjusted: Float64Array  # (n, n_columns), the basis times the correction for few units (CR2)


def regress_uses(
    source: Any,
    words: str | Sequence[str] | Mapping[str, Sequence[str]],
    formula: str,
    *,
    data: Any = None,
    units: str | None = None,
    encoder: Any = DEFAULT_MODEL,
    layers: Layers = LAYERS,
    reference: Mapping[str, Any] | None = None,
    n_permutations: int = 1000,
    random_state: RandomState = 0,
    show_progress: bool | None = None,
) -> UseRegression:
    """Regress the vectors of the uses of words on covariates.

    The regression shows whether a word is used in another sense, or in other contexts, by other
    speakers or at other times. Every use is a row; its contextual vector is the outcome of a
    multivariate least-squares regression (embedding regression; Rodriguez, Spirling and Stewart
    2023). Each component is standardized over all words, and each vector has length one.

    Parameters
    ----------
    source : HiddenStates, Corpus or what `Corpus` takes
        Of a corpus, the sentences with the words are read by the encoder.
    words : str, sequence of str, or mapping of str to sequence of str
        Words, each with its own regression; case is ignored. A mapping names sets of forms:
        ``{"immigrant": ["immigrant", "immigrants"]}``.
    formula : str
        Such as "party * bs(year, df=3)" of columns of the metadata. Dates count in years.
        Formulas can call functions, so do not accept them from untrusted sources.
    data : DataFrame, optional
        For hidden states: the covariates of each text.
    units : str, optional
        Column of units that are independent of each other, such as speakers; by default documents.
    encoder : str, path or SentenceEncoder
        For a corpus.
    layers : int, sequence of int, "all" or "last N"
        The vectors of several layers are averaged. Layer 0 holds static vectors.
    reference : mapping of str to str, optional
        Level to which the others of a covariate are compared; by default the most frequent with the
        first word, or with a word that lacks it.
    n_permutations : int
    random_state : int, Generator or None
        Seed of permutations and resamples.
    show_progress : bool, optional

    Returns
    -------
    UseRegression

    Raises
    ------
    InputError
        If a word does not occur (the error names similar words), has too few uses or units for the
        columns of the formula, a column is missing, or columns depend linearly on others.

    Notes
    -----
    The norm of an estimated coefficient is too large, more so with few uses. The variance of the
    coefficient, with the correction CR2 for units, is subtracted from its square (Green, Hobbs,
    Avila, Rodriguez, Spirling and Stewart 2025, doi 10.1017/pan.2024.22). Intervals are by a
    bootstrap of units. p-values are by permutation of the residuals without the effect (Freedman
    and Lane 1983), divided by their estimated variance; whole units are permuted, and what a
    covariate explains within units has its sign flipped at random. q-values are those of Benjamini
    and Hochberg over all words, for each effect.

    Examples
    --------
    >>> import pandas as pd
    >>> import embedtopics as et
    >>> games = ["chess", "cards", "football", "tennis", "golf", "rugby"]
    >>> acts = ["a new", "an old", "a long", "a short", "a sad", "a funny"]
    >>> texts = [f"They play {game} together." for game in games]
    >>> texts += [f"We saw {act} play together." for act in acts]
    >>> table = pd.DataFrame({"text": texts, "sense": ["game"] * 6 + ["stage"] * 6})
    >>> uses = et.probing.regress_uses(
    ...     et.Corpus(table, "text"), "play", "sense", n_permutations=99, show_progress=False
    ... )
    >>> uses.to_frame()[["word", "term", "n"]].values.tolist()
    [['play', 'sense', 12]]
    """
    checked_count(n_permutations, "n_permutations")
    seed = resolve_seed(random_state)
    forms = words if isinstance(words, Mapping) else {word: [word] for word in checked_words(words)}
    every = [form for several in forms.values() for form in checked_words(several)]

    if isinstance(source, HiddenStates):
        states = source
        table = pd.DataFrame(data)
        if len(table) != len(states.texts):
            expected = f"a table with a row for each of the {len(states.texts):,} texts"
            raise InputError("data", expected, found=f"{len(table):,} rows")
        documents = np.arange(len(table))
    else:
        corpus = as_corpus(source)
        texts, documents = _sentences_with(corpus, every)
        states = hidden_states(encoder, texts, layers=layers, show_progress=show_progress)
        table = corpus.metadata.iloc[documents].reset_index(drop=True)

    numbers = layer_numbers(layers, states.layers)
    formula = formula.strip().removeprefix("~").strip()
    terms, variables = parse_covariates(f"~ {formula}", set(map(str, table.columns)))
    required = [*variables]
    if units is not None:
        required.append(units)
    for name in required:
        if name not in table:
            listed = ", ".join(map(str, table.columns)) or "none"
            parameter = "units" if name == units else "formula"
            raise InputError(parameter, f"among {listed}", name)

    labels = documents
    if units is not None:
        labels = _units_of(table[units], documents)

    vectors, vocabulary, word_vectors = _vectors(states, numbers, every)
    effects: list[dict[str, Any]] = []
    fits = []
    decisions = dict.fromkeys(states.decisions)
    bases: dict[str, str] = {}

    for name, several in forms.items():
        rows = rows_of_word(states, several)
        # Sums depend on the order; that of the texts must not show.
        rows = rows[by_text(states, rows)]
        of_text = states.of_text[rows]

        if len(rows) <= len(terms):
            found = f"{len(rows)} of {name!r}"
            raise InputError("words", f"with more uses than {len(terms)} terms", found=found)

        columns = {variable: in_years(table[variable].iloc[of_text]) for variable in variables}
        unit_of_use = pd.factorize(labels[of_text])[0].astype(np.int64)
        design = _design_of(terms, columns, unit_of_use, reference or {}, bases)
        decisions |= dict.fromkeys(design.decisions)

        rows = rows[design.rows]
        outcome = vectors(rows)
        fit = _least_squares(design.matrix, outcome, unit_of_use[design.rows], name)

        for term, level, contrasts in _effects(design):
            norm, low, high, p = _measure(fit, contrasts, n_permutations, seed)
            effect = {
                "word": name,
                "term": term,
                "level": level,
                "norm": norm,
                "low": low,
                "high": high,
                "p": p,
                "n": len(rows),
                "n_units": len(fit.starts),
            }
            effects.append(effect)

        fits.append(WordFit(name, uses_at(states, rows), outcome, fit.coefficients, design))
    return UseRegression(
        table=_with_q(effects),
        decisions=tuple(decisions),
        formula=formula,
        units=units or "document",
        encoder=states.encoder,
        layers=numbers,
        fits=tuple(fits),
        vocabulary=vocabulary,
        word_vectors=word_vectors,
    )


def _sentences_with(corpus: Corpus, words: Sequence[str]) -> tuple[list[str], Int64Array]:
    """Return the sentences of a corpus with one of some words, and the row of each."""
    keys = {word_key(word.strip()) for word in words}
    sentences: list[str] = []
    rows = []
    for row, text in enumerate(corpus.texts):
        folded = word_key(text)
        if not any(key in folded for key in keys):
            continue
        begins = [a for a, b in word_spans(text) if word_key(text[a:b]) in keys]
        if begins:
            starts = np.array([*sentence_starts(text), len(text)])
            numbers = np.unique(np.searchsorted(starts, begins, side="right")) - 1
            sentences += [text[starts[n] : starts[n + 1]].strip() for n in numbers]
            rows += [row] * len(numbers)
    if not sentences:
        every = {text[a:b] for text in corpus.texts for a, b in word_spans(text)}
        raise InputError("words", "in the corpus", words[0], similar_words(every, words[0]))
    return sentences, np.array(rows, dtype=np.int64)


def _units_of(values: pd.Series, documents: Any) -> Any:
    """Return the units of the texts, (n_texts,); a text without one has its document's."""
    names = [spell_class(value) for value in values.tolist()]
    labels = np.array([f"document {document}" for document in documents.tolist()], dtype=object)
    has_unit = np.array([name is not None for name in names])
    labels[has_unit] = np.array(names, dtype=object)[has_unit]
    return labels


def in_years(values: pd.Series) -> pd.Series:
    """Return dates as years with decimals, and other values as they are."""
    if not pd.api.types.is_datetime64_any_dtype(values):
        return values
    return pd.Series(values.dt.year + (values.dt.day_of_year - 1) / 365.25)


def _vectors(
    states: HiddenStates, layers: Sequence[int], targets: Sequence[str]
) -> tuple[Callable[[Int64Array], FloatArray], tuple[str, ...], FloatArray]:
    """Return a function that reads the vectors of rows, and words with their mean vectors."""
    spaces = [open_space(states, layer) for layer in layers]
    present = ~states.missing
    moments = []
    for space in spaces:
        total, squares = np.zeros((2, states.width))
        for part in blocks(len(states)):
            raw = space.raw(part)
            total += raw.sum(axis=0)
            squares += np.square(raw).sum(axis=0)
        mean = total / present.sum()
        deviation = np.sqrt(np.maximum(squares / present.sum() - np.square(mean), 0.0))
        # A component that hardly varies says nothing, and dividing by its deviation adds noise.
        moments.append((mean, np.where(deviation > 1e-3, 1 / np.maximum(deviation, 1e-3), 0.0)))

    def read(rows: Int64Array | slice) -> FloatArray:
        total = np.zeros((len(states.n_pieces[rows]), states.width))
        for space, (mean, scale) in zip(spaces, moments, strict=True):
            vectors = (space.raw(rows) - mean) * scale
            total += vectors / lengths_of(vectors)[:, None] / len(spaces)
        return total.astype(np.float32)

    names, types = types_of(states)
    counts = np.bincount(types[present], minlength=len(names))
    excluded = {word_key(word.strip()) for word in targets}
    is_word = [name.isalpha() and len(name) > 1 and name not in excluded for name in names]
    chosen = np.flatnonzero((counts >= MIN_USES) & np.array(is_word, dtype=bool))
    place = np.full(len(names), -1)
    place[chosen] = np.arange(len(chosen))
    rows = np.flatnonzero(present & (place[types] >= 0))
    sums = np.zeros((len(chosen), states.width))
    for part in blocks(len(rows)):
        np.add.at(sums, place[types[rows[part]]], read(rows[part]))
    sums /= lengths_of(sums)[:, None]
    return read, tuple(names[one] for one in chosen), sums.astype(np.float32)


def _design_of(
    terms: list[Any],
    columns: Mapping[str, pd.Series],
    unit_of_use: Int64Array,
    reference: Mapping[str, Any],
    bases: dict[str, str],
) -> Design:
    """Make the design of a word; `bases` are the reference levels of the words before."""
    levels = {name: set(values.astype(str)) for name, values in columns.items()}
    earlier = {name: level for name, level in bases.items() if level in levels[name]}
    is_used = np.ones(len(unit_of_use), dtype=np.bool_)
    design = make_design(terms, columns, is_used, unit_of_use, {**earlier, **reference})
    for name, column in design.variables.select_dtypes("category").items():
        bases.setdefault(str(name), column.cat.categories[0])
    return design


def _least_squares(x: Float64Array, y: FloatArray, unit_of_use: Int64Array, word: str) -> _Fit:
    """Fit vectors (n, width) on columns (n, n_columns), and order the rows by unit."""
    _, unit_of_use = np.unique(unit_of_use, return_inverse=True)
    n_units = int(unit_of_use.max()) + 1
    if n_units <= x.shape[1]:
        found = f"{len(x)} uses in {n_units} units of {word!r}"
        expected = f"with uses in more units than the formula has columns, {x.shape[1]}"
        raise InputError("words", expected, found=found)
    order = np.argsort(unit_of_use, kind="stable")
    starts = np.searchsorted(unit_of_use[order], np.arange(n_units))
    outcome = y[order].astype(np.float64)
    with one_blas_thread():
        basis, triangle = np.linalg.qr(x[order])
        inverse = np.linalg.inv(triangle)
        projected = basis.T @ outcome
        # (I - H)^(-1/2) of each unit, in the few dimensions of the basis.
        products = np.einsum("ni,nj->nij", basis, basis)
        values, axes = np.linalg.eigh(np.add.reduceat(products, starts))
        left = 1 - values
        factor = np.where(left > NONE, 1 / np.sqrt(np.maximum(left, NONE)), 0.0)
        adjust = np.einsum("gik,gk,gjk->gij", axes, factor, axes)
        adjusted = np.einsum("nij,nj->ni", adjust[unit_of_use[order]], basis)
        residuals = outcome - basis @ projected
    return _Fit(basis, inverse, inverse @ projected, residuals, starts, adjusted)


def _effects(design: Design) -> Iterator[tuple[str, str, Float64Array]]:
    """Yield what to report: levels beside the reference, whole variables, and interactions.

    Each has contrasts of the coefficients, (n_contrasts, n_columns), that are 0 without an effect.
    """
    for name in map(str, design.variables):
        if name in design.jumps:
            continue
        column = design.variables[name]
        if hasattr(column, "cat"):
            levels = list(column.cat.categories)
            shares = column.value_counts(normalize=True).loc[levels].to_numpy()
        else:
            levels = np.quantile(column, (np.arange(N_GRID) + 0.5) / N_GRID).tolist()
            shares = np.full(N_GRID, 1 / N_GRID)

        means = np.stack([design.matrix_with(**{name: level}).mean(axis=0) for level in levels])
        if hasattr(column, "cat"):
            for level, mean in zip(levels[1:], means[1:], strict=True):
                yield name, level, (mean - means[0])[None]
        if not hasattr(column, "cat") or len(levels) > 2:
            yield name, "", _reduced((means - shares @ means) * np.sqrt(shares)[:, None])

    is_of = np.array(design.covariates)
    for term in dict.fromkeys(term for term in design.covariates if ":" in term):
        inside = design.matrix[:, is_of == term]
        others = design.matrix[:, is_of != term]
        beyond = inside - others @ np.linalg.lstsq(others, inside, rcond=None)[0]
        moved = _reduced(beyond / np.sqrt(len(beyond)))
        contrasts = np.zeros((len(moved), len(is_of)))
        contrasts[:, is_of == term] = moved
        yield term, "", contrasts


def _reduced(rows: Float64Array) -> Float64Array:
    """Return as few rows as possible with the same squared length of rows @ coefficients."""
    _, sizes, axes = np.linalg.svd(rows, full_matrices=False)
    return np.asarray((sizes[:, None] * axes)[sizes > NONE * sizes[0]])


def _measure(
    fit: _Fit, contrasts: Float64Array, n_permutations: int, seed: int
) -> tuple[float, float, float, float]:
    """Return the norm of some contrasts of the coefficients, its interval, and its p-value."""
    to_contrasts = contrasts @ fit.inverse
    estimate = contrasts @ fit.coefficients
    raw = float(np.square(estimate).sum())
    with one_blas_thread():
        added = _by_unit(fit.adjusted @ to_contrasts.T, fit.residuals, fit.starts)
        of_unit = np.square(added).sum(axis=1)
        variance = float(of_unit.sum())
        size = raw - variance
        shrunk = (estimate * np.sqrt(max(size, 0.0) / raw)).ravel() if raw else estimate.ravel()
        products, squares = [], []
        for times in resampled_counts(len(added), N_RESAMPLES, seed):
            errors = (times - 1) @ added
            products.append(2 * errors @ shrunk)
            squares.append(np.square(errors).sum(axis=1))
        drawn = np.concatenate(products) + np.concatenate(squares) - np.mean(squares)
        n_effective = variance**2 / max(float(np.square(of_unit).sum()), np.finfo(float).tiny)
        below, above = map(float, interval(drawn, n_effective))
        null = fit.basis @ to_contrasts.T
        null = fit.residuals + null @ np.linalg.solve(null.T @ null, estimate)
        p = _permuted(fit.basis @ to_contrasts.T, null, fit.starts, n_permutations, seed)
    norm, low, high = (
        float(np.sqrt(max(one, 0.0))) if one == one else float("nan")
        for one in (size, size + below, size + above)
    )
    return norm, low, high, p


def _by_unit(weights: Float64Array, residuals: Float64Array, starts: Int64Array) -> Float64Array:
    """Return the weighted sums of the residuals of each unit, (n_units, n_contrasts * width)."""
    sums = [np.add.reduceat(one[:, None] * residuals, starts) for one in weights.T]
    return np.concatenate(sums, axis=1)


def _permuted(
    weights: Float64Array, null: Float64Array, starts: Int64Array, n_permutations: int, seed: int
) -> float:
    """Return the p-value of the squared norm of weights.T @ null, (n, n_contrasts), (n, width).

    The mean weight of each unit is permuted among them, and the rest has its sign flipped.
    """
    n_units = len(starts)
    sizes = np.diff(starts, append=len(null))
    means = np.add.reduceat(weights, starts) / sizes[:, None]
    within = weights - np.repeat(means, sizes, axis=0)
    sums = np.add.reduceat(null, starts)
    of_sums, of_means = np.square(sums).sum(axis=1), np.square(means).sum(axis=1)
    varies = np.abs(within).max() > NONE * np.abs(weights).max()
    flipped = _by_unit(within, null, starts) if varies else np.zeros((n_units, 0))
    of_flipped = float(np.square(flipped).sum())
    rng = np.random.default_rng([seed, 1])
    ratios = []
    for begin in range(0, n_permutations + 1, AT_ONCE):
        n = min(AT_ONCE, n_permutations + 1 - begin)
        places = np.array([rng.permutation(n_units) for _ in range(n)])
        signs = rng.choice([-1.0, 1.0], (n, n_units))
        if begin == 0:  # the observed ones
            places[0], signs[0] = np.arange(n_units), 1.0
        moved = means[places].transpose(0, 2, 1).reshape(-1, n_units) @ sums
        moved = moved.reshape(n, -1) + (signs @ flipped if varies else 0.0)
        variance = of_means[places] @ of_sums + of_flipped
        ratios.append(np.square(moved).sum(axis=1) / variance)
    observed, *drawn = np.concatenate(ratios).tolist()
    n_larger = sum(one >= observed * (1 - 1e-12) for one in drawn)
    return float((1 + n_larger) / (1 + n_permutations))


def _with_q(effects: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Add the false discovery rate (Benjamini and Hochberg 1995) over the words of each effect."""
    from scipy.stats import false_discovery_control

    table = make_table([{**effect, "q": np.nan} for effect in effects], USE_EFFECTS)
    table["q"] = table.groupby(["term", "level"])["p"].transform(false_discovery_control)
    return table
