"""Words of a result: their concordance, and terms that distinguish sets of documents."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import erfc, xlogy

from embedtopics._utils.checks import optional_count, resolve_seed
from embedtopics._utils.fitted import FittedTopics, result_of
from embedtopics.corpus._texts import normalize_text
from embedtopics.errors import InputError
from embedtopics.protocols import BoolArray, Float64Array, Int64Array
from embedtopics.terms._spans import word_spans
from embedtopics.terms._tokens import find_phrase, words_of
from embedtopics.terms._weighting import log_odds
from embedtopics.topics.reading._find import (
    document_weights,
    random_keys,
    rows_of_topics,
    rows_where,
    similar_terms,
    string_column,
)
from embedtopics.topics.results import NO_TOPIC, TopicResult


def concordance(
    result: FittedTopics,
    term: str,
    *,
    topics: int | str | Sequence[int | str] | None = None,
    where: Any = None,
    window: int = 8,
    n_occurrences: int | None = 20,
    random_state: Any = 0,
) -> pd.DataFrame:
    """Show the occurrences of a term in the documents: key words in context.

    An occurrence is one that the fit counted: ``tax cut`` includes *Tax-cut*, and ``café`` includes
    ``caf&eacute;``.

    Parameters
    ----------
    result : TopicResult or fitted TopicModel
    term : str
        One word, or several consecutive words.
    topics : int, str, or sequence of these, optional
        Restricts the documents to these topics, by id or name; -1 stands for no topic.
    where : str, mapping or mask, optional
        Restricts the rows, as in `sample_documents`.
    window : int
        Words on each side.
    n_occurrences : int or None
        Maximum number of occurrences, which are a random sample; None for all.
    random_state : int, Generator or None
        Seed of the sample. It depends on the texts and not on the order of the rows.

    Returns
    -------
    DataFrame
        Table with the index labels of the rows, ordered by the words after the term. Columns id,
        left, keyword, right (as written, with single spaces), topic, topic_name, start, stop
        (position of the keyword in the text, in characters) and n (number of selected rows with
        this text, which occurs once in the table). Empty if no selected row holds the term.

    Raises
    ------
    InputError
        If no document holds the term (the error lists similar terms).

    Examples
    --------
    >>> import embedtopics as et
    >>> model = et.TopicModel("tfidf", n_topics=4).fit(et.Corpus("embedtopics:demo", limit=120))
    >>> lines = et.topics.concordance(model, "the harbour", window=2, n_occurrences=2)
    >>> lines["keyword"].str.lower().tolist()
    ['the harbour', 'the harbour']
    """
    result = result_of(result)
    if not isinstance(term, str):
        raise InputError("term", "a text of one or several words", term)
    tokens = result.tokens
    words = words_of(normalize_text(term), tokens.rules)
    positions, documents = find_phrase(tokens, words)
    if not len(positions):
        near = similar_terms(result, " ".join(words))
        remedy = f"similar terms are {', '.join(map(repr, near))}" if near else ""
        raise InputError("term", "a term of some document", term, remedy)

    rows = rows_where(result, where)
    rows = rows if topics is None else rows & rows_of_topics(result, topics)
    weights, first_rows = document_weights(result, rows)
    is_selected = weights[documents] > 0
    positions = positions[is_selected]
    documents = documents[is_selected]
    inside = positions - tokens.offsets[documents]

    keys = random_keys(result.distinct.hashes[documents], resolve_seed(random_state), inside)
    sample = np.sort(np.argsort(keys, kind="stable")[:n_occurrences])

    lines = []
    spans: list[tuple[str, int, int]] = []
    read = -1
    places = inside[sample].tolist()
    for document, place in zip(documents[sample].tolist(), places, strict=True):
        row = int(first_rows[document])
        if document != read:
            spans = word_spans(result.corpus.texts[row], tokens.rules)
            read = document
            counted = tokens.ids[tokens.offsets[document] : tokens.offsets[document + 1]]
            if [word for word, _, _ in spans] != [tokens.words[i] for i in counted.tolist()]:
                raise InputError(
                    f"the words of row {row} differ from those that the fit counted, because "
                    "another version of embedtopics made the result; fit again to see words in "
                    "context"
                )

        line = _line(result.corpus.texts[row], spans, place, place + len(words), window)
        lines.append(line | {"row": row, "n": weights[document], "id": result.corpus.ids[row]})

    lines.sort(key=lambda line: (line["after"], line["row"], line["start"]))
    row_numbers = np.array([line["row"] for line in lines], dtype=np.int64)
    index = result.corpus.index[row_numbers]
    columns: dict[str, Any] = {
        name: string_column([line[name] for line in lines], index)
        for name in ("id", "left", "keyword", "right")
    }
    topic_of_line = result.labels[row_numbers]
    names = np.array([*(known.name for known in result.topics), NO_TOPIC], dtype=object)
    columns["topic"] = topic_of_line
    columns["topic_name"] = string_column(names[topic_of_line].tolist(), index)
    for name in ("start", "stop", "n"):
        columns[name] = np.array([line[name] for line in lines], np.int64)

    return pd.DataFrame(columns, index=index)


def _line(
    text: str, spans: list[tuple[str, int, int]], first: int, last: int, window: int
) -> dict[str, Any]:
    """Return one occurrence, the words `first` to `last`, with its context."""
    start, stop = spans[first][1], spans[last - 1][2]
    begin = spans[first - window][1] if first > window else 0
    end = spans[last + window - 1][2] if last + window < len(spans) else len(text)
    after = [word for word, _, _ in spans[last : last + window]]
    left, keyword, right = (
        re.sub(r"\s+", " ", part) for part in (text[begin:start], text[start:stop], text[stop:end])
    )
    return dict(left=left, keyword=keyword, right=right, start=start, stop=stop, after=after)


MIN_COUNT = 5
FEW = 5
"""Occurrences on a side below which it avoids a term that as many of its rows should hold."""

Z_OF_95 = 1.959963984540054
"""Standard errors on each side that hold 95 % of a normal distribution."""


def false_discovery_rates(p: npt.ArrayLike) -> Float64Array:
    """Return false discovery rates of p-values (n_tests,) (Benjamini and Hochberg 1995)."""
    values = np.asarray(p, dtype=np.float64)
    order = np.argsort(values, kind="stable")[::-1]
    ranks = np.arange(len(values), 0, -1)
    rates = np.empty(len(values))
    rates[order] = np.minimum.accumulate(values[order] * len(values) / ranks)
    return np.minimum(rates, 1.0)


def keyness(
    result: FittedTopics, target: Any, reference: Any = None, *, n_terms: int | None = 50
) -> pd.DataFrame:
    """Find the terms that distinguish one set of rows from another.

    Repeated rows count repeatedly. The rate of a word is among all words, and the rate of a term of
    two words among all pairs of words.

    Parameters
    ----------
    result : TopicResult or fitted TopicModel
    target, reference
        Two disjoint sets of rows. Each is a topic id or a list of topic ids (-1 for no topic), or a
        filter, a mapping ``{"column": value}`` or a mask over the rows (see `where` of
        `sample_documents`). The default reference is all other rows with text.
    n_terms : int, optional
        Maximum number of terms of each side, among those that occur at least five times; None for
        all of them.

    Returns
    -------
    DataFrame
        Terms of the target, strongest first, then terms of the reference, strongest last. Columns
        term; count_target, count_reference; rate_target, rate_reference (in a million words);
        rows_target, rows_reference (rows with the term); effect, low, high (the difference of the
        log-odds, above 0 for terms of the target, with a 95 % interval); statistic (its z value); p
        and q (the false discovery rate over all terms), which assume that words are independent.

    Raises
    ------
    InputError
        If a set is unknown or has no text, or if both share rows.

    Notes
    -----
    Log-odds with an informative Dirichlet prior (Monroe, Colaresi and Quinn 2008, "Fightin' Words",
    equations 16 to 22), which has as many words as the smaller side. The prior hides that a small
    side avoids a word: for a term that occurs fewer than five times on a side, although five or
    more of its rows should hold it, the statistic is the signed root of the likelihood ratio of the
    rows with the term (Dunning 1993, "Accurate methods for the statistics of surprise and
    coincidence"), if that is larger. Its interval is still that of the log-odds.

    Examples
    --------
    >>> import embedtopics as et
    >>> model = et.TopicModel("tfidf", n_topics=4).fit(et.Corpus("embedtopics:demo", limit=120))
    >>> terms = et.topics.keyness(model, {"theme": "harbour_strike"}, n_terms=1)
    >>> terms[["term", "rows_target", "rows_reference"]]
         term  rows_target  rows_reference
    0  strike           10               0
    1    heat            0               6
    """
    result = result_of(result)
    n_terms = optional_count(n_terms, "n_terms", 0)
    sides = _weights(result, target, reference)
    counts = result.term_counts.counts
    lengths = result.term_counts.lengths.astype(np.int64)
    counted = [np.asarray(counts.T @ weights) for weights in sides]
    longest = int(lengths.max(initial=1))
    places = [places_for(result, weights, longest)[lengths] for weights in sides]
    is_held = (places[0] > 0) & (places[1] > 0)
    tested = np.flatnonzero((counted[0] + counted[1] >= MIN_COUNT) & is_held)

    everyone = result.distinct.weights
    places_everywhere = np.maximum(places_for(result, everyone, longest)[lengths], 1)
    shares = (counts.T @ everyone) / places_everywhere

    measures = _log_odds(
        [count[tested] for count in counted], [n_places[tested] for n_places in places],
        shares[tested],
        lengths[tested],
    )  # fmt: skip

    is_in = counts[:, tested] > 0
    rows_with = [np.asarray(is_in.T @ weights) for weights in sides]
    _test_avoided(measures, [count[tested] for count in counted], rows_with, sides)

    order = np.lexsort((-np.abs(measures["effect"]), -np.abs(measures["statistic"])))
    sign = np.sign(measures["statistic"][order])
    above = order[sign == 1][:n_terms]
    below = order[sign == -1][:n_terms]
    shown = np.concatenate([above, below[::-1]])
    columns_shown = tested[shown]
    columns: dict[str, Any] = {
        "count": [count[columns_shown].astype(np.int64) for count in counted],
        "rate": [1e6 * (counted[i] / np.maximum(places[i], 1))[columns_shown] for i in (0, 1)],
        "rows": [n_rows[shown].astype(np.int64) for n_rows in rows_with],
    }
    of_sides = {
        f"{name}_{side}": values
        for name, both in columns.items()
        for side, values in zip(("target", "reference"), both, strict=True)
    }

    terms = string_column([result.term_counts.terms[term] for term in columns_shown.tolist()])
    measures["q"] = false_discovery_rates(measures["p"])
    measured = {name: values[shown] for name, values in measures.items()}
    return pd.DataFrame({"term": terms, **of_sides, **measured})


def _log_odds(
    counts: list[Float64Array], places: list[Int64Array], shares: Float64Array, lengths: Int64Array
) -> dict[str, Float64Array]:
    """Compare the counts of terms on two sides, separately by length; all are (n_terms,)."""
    effect, error, z = np.zeros((3, len(lengths)))
    for length in np.unique(lengths):
        positions = np.flatnonzero(lengths == length)
        n = [int(side[positions[0]]) for side in places]
        prior = np.append(shares[positions], max(1.0 - shares[positions].sum(), 0.0))
        prior *= min(n) / prior.sum()
        with_rest = [
            np.append(side[positions], max(size - side[positions].sum(), 0.0))
            for side, size in zip(counts, n, strict=True)
        ]
        z[positions] = log_odds(with_rest[0], with_rest[1], prior)[:-1]
        with np.errstate(divide="ignore"):
            one, other = (1 / (side + prior)[:-1] for side in with_rest)
        error[positions] = np.sqrt(one + other)
        effect[positions] = np.where(z[positions] == 0, 0.0, z[positions] * error[positions])
    low, high = effect - Z_OF_95 * error, effect + Z_OF_95 * error
    p = np.asarray(erfc(np.abs(z) / np.sqrt(2)))
    return {"effect": effect, "low": low, "high": high, "statistic": z, "p": p}


def _test_avoided(
    measures: dict[str, Float64Array],
    counts: list[Float64Array],
    rows_with: list[Float64Array],
    sides: tuple[Int64Array, Int64Array],
) -> None:
    """Test terms that a side avoids by their rows, in place; all are (n_terms,)."""
    n = [float(side.sum()) for side in sides]
    share = (rows_with[0] + rows_with[1]) / (n[0] + n[1])
    ratio = np.zeros(len(share))
    for with_term, size in zip(rows_with, n, strict=True):
        ratio += xlogy(with_term, with_term) - xlogy(with_term, size * share)
        without = size - with_term
        ratio += xlogy(without, without) - xlogy(without, size * (1 - share))
    root = np.sqrt(np.maximum(2 * ratio, 0.0))

    # Above 0 for terms of the target, which the reference avoids.
    is_less = rows_with[0] / n[0] < rows_with[1] / n[1]
    is_rare = np.where(is_less, counts[0], counts[1]) < FEW
    is_rare &= share * np.where(is_less, n[0], n[1]) >= FEW
    sign = np.where(is_less, -1.0, 1.0)
    z = measures["statistic"]
    is_avoided = is_rare & (root > np.abs(z)) & (sign * z >= 0)
    measures["statistic"] = np.where(is_avoided, sign * root, z)
    measures["p"] = np.asarray(erfc(np.abs(measures["statistic"]) / np.sqrt(2)))


def _weights(result: TopicResult, target: Any, reference: Any) -> tuple[Int64Array, Int64Array]:
    """Return the number of rows of each document on each side."""

    def rows_of(side: Any, name: str) -> BoolArray:
        if isinstance(side, Mapping) or np.asarray(side).dtype.kind not in "iu":
            return rows_where(result, side, name)
        return rows_of_topics(result, side)

    first = rows_of(target, "target")
    has_text = result.distinct.of_row >= 0
    second = has_text & ~first if reference is None else rows_of(reference, "reference")
    if n_shared := int((first & second).sum()):
        expected = "a set without rows of the target"
        raise InputError("reference", expected, found=f"{n_shared:,} rows in both")
    for rows, name in ((first, "target"), (second, "reference")):
        if not rows.any():
            raise InputError(name, "a set with text", found="none")
    return document_weights(result, first)[0], document_weights(result, second)[0]


def places_for(result: TopicResult, weights: npt.NDArray[Any], longest: int) -> Int64Array:
    """Return the number of positions for a term of each length, (longest + 1,)."""
    n_words = np.diff(result.tokens.offsets)
    return np.array(
        [0, *(int(weights @ np.maximum(n_words - k, 0)) for k in range(longest))], dtype=np.int64
    )
