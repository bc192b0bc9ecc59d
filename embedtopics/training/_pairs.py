"""Training pairs from a corpus without labels, and hard negatives for pairs."""

from __future__ import annotations

import hashlib
import itertools
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from embedtopics._utils.checks import checked_count, is_number, resolve_seed
from embedtopics.corpus._corpus import as_corpus
from embedtopics.corpus._texts import normalize_text
from embedtopics.corpus._windows import sentence_starts
from embedtopics.encoders._registry import resolve_exact
from embedtopics.errors import InputError
from embedtopics.evaluation._pairs import row_dots
from embedtopics.neighbors._graph import nearest, unit_rows
from embedtopics.protocols import FloatArray, Int64Array
from embedtopics.results import Decision, counted
from embedtopics.training._examples import Examples, text_key
from embedtopics.training._reading import read_examples

Pair = tuple[str, str, int]
"""Anchor, positive, and the row of the anchor."""

_WORD = re.compile(r"\w+")

_GUARDS = {
    "too_near": "nearer than the limit that the positive sets",
    "duplicate": "nearly the same text as the anchor or a positive",
}


def make_pairs(
    corpus: Any, *, max_per_document: int = 5, min_words: int = 5, random_state: Any = 0
) -> Examples:
    """Make training pairs of sentences that follow one another in a document.

    Two consecutive sentences usually have the same subject (Logeswaran and Lee 2018).

    Parameters
    ----------
    corpus : Corpus, or what `Corpus` takes
    max_per_document : int
        Maximum number of pairs of a document; of more, a random sample is taken.
    min_words : int
        Fewest words of each sentence.
    random_state : int, Generator or None

    Returns
    -------
    made : Examples
        Examples of kind "pairs", each pair once; the order of the rows does not matter. Pairs that
        were left out are counted in `decisions`.

    Raises
    ------
    InputError
        If there is no pair.

    Examples
    --------
    >>> import embedtopics as et
    >>> text = "The river rose in the night. The town was under water soon. It was late."
    >>> et.training.make_pairs([text]).to_frame()["positive"].tolist()
    ['The town was under water soon.']
    """
    checked_count(max_per_document, "max_per_document")
    checked_count(min_words, "min_words")
    corpus, seed = as_corpus(corpus), resolve_seed(random_state)

    def digest(pair: tuple[str, str]) -> bytes:
        content = "\n".join(pair).encode("utf-8", "surrogatepass")
        return hashlib.blake2b(content, digest_size=16, key=str(seed).encode()).digest()

    documents = corpus.distinct()
    texts: dict[int, str] = {}
    for row, document in enumerate(documents.of_row.tolist()):
        # Rows of one document may differ in their white space, which can end a sentence.
        if document >= 0:
            texts[document] = min(corpus.texts[row], texts.get(document, corpus.texts[row]))
    candidates: list[Pair] = []
    n_without = n_more = 0
    for document, row in enumerate(documents.first_rows.tolist()):
        pairs = _neighbors(texts[document], min_words)
        n_without += not pairs
        n_more += max(0, len(pairs) - max_per_document)
        drawn = sorted(pairs, key=digest)[:max_per_document]
        candidates += [(first, second, row) for first, second in drawn]
    pair_of: dict[tuple[str, str], Pair] = {}
    n_same = n_repeated = 0
    # The least of equal pairs is kept: the first would depend on the order of the rows.
    for anchor, positive, row in sorted(candidates):
        one, other = text_key(anchor), text_key(positive)
        both = (min(one, other), max(one, other))
        n_same += one == other
        n_repeated += one != other and both in pair_of
        if one != other:
            pair_of.setdefault(both, (anchor, positive, row))
    without = f"documents have no two consecutive sentences of {min_words} words."
    more = f"pairs exceeded the maximum of {max_per_document} per document and were left out."
    decisions = [
        decision
        for name, n, message in (
            ("documents_without_pair", n_without, without),
            ("pairs_beyond_limit", n_more, more),
            ("identical_sides", n_same, "pairs of equal texts were left out."),
            ("repeated_pairs", n_repeated, "repeated pairs were left out."),
        )
        for decision in counted("training", name, n, message)
    ]
    if not pair_of:
        reasons = " ".join(decision.message for decision in decisions)
        got = f"no neighbouring sentences in {len(corpus):,} rows of {corpus.source}"
        raise InputError("corpus", "one that gives pairs", found=got, remedy=reasons)
    anchors, positives, rows = zip(*pair_of.values(), strict=True)
    message = f"{len(rows):,} pairs of neighbouring sentences were made of {len(corpus):,} rows."
    return Examples(
        kind="pairs",
        columns=(anchors, positives),
        labels=None,
        rows=np.array(rows, dtype=np.int64),
        source=f"{corpus.source}: neighbouring sentences",
        decisions=(*decisions, Decision("training", "pairs_made", len(rows), message)),
    )


def _neighbors(text: str, min_words: int) -> list[tuple[str, str]]:
    ends = [*sentence_starts(text), len(text)]
    sentences = [normalize_text(text[a:b]) for a, b in itertools.pairwise(ends)]
    is_long = {each: len(_WORD.findall(each)) >= min_words for each in sentences}
    return [both for both in itertools.pairwise(sentences) if is_long[both[0]] and is_long[both[1]]]


def mine_hard_negatives(
    examples: Any,
    encoder: Any,
    *,
    num_negatives: int = 1,
    relative_margin: float | None = 0.05,
    absolute_margin: float | None = None,
    duplicate_similarity: float | None = 0.98,
    range_min: int = 0,
    range_max: int = 100,
    corpus: Sequence[str] | None = None,
) -> Examples:
    """Give each pair the nearest texts that are not its positive.

    A candidate is never the anchor, nor a text that is paired with it anywhere; white space and
    case do not count. If an anchor has several positives, the farthest sets the limit. Parameters
    have the names and meaning of the function of sentence-transformers of this name.

    Parameters
    ----------
    examples : Examples, or what `read_examples` takes
        Examples of kind "pairs".
    encoder : Encoder, str or path
        Encoder for the cosine similarities; a better encoder than the trained one makes fewer
        mistakes. An encoder that learns from texts is fitted to these.
    num_negatives : int
        Negatives of each pair.
    relative_margin : float or None
        Share of the positive's similarity s that a negative must be less similar by: candidates
        above ``s - abs(s) * relative_margin`` are left out.
    absolute_margin : float or None
        The same as a difference of similarities; both apply.
    duplicate_similarity : float or None
        Similarity to the anchor, or to one of its positives, above which a candidate is a
        near-duplicate.
    range_min : int
        Number of nearest valid texts to skip.
    range_max : int
        Nearest texts that are examined for each anchor, not counting its own pairs.
    corpus : sequence of str, optional
        Further texts that may be negatives, in addition to the positives of other pairs.

    Returns
    -------
    mined : Examples
        Examples of kind "triplets", with `num_negatives` columns of negatives, the nearest first.
        Pairs with fewer negatives are left out and counted in `decisions`.

    Raises
    ------
    InputError
        If the examples are not pairs, a parameter is out of range, or no pair is left.

    Notes
    -----
    The relative margin is TopK-PercPos of Moreira et al. (2024), "NV-Retriever: Improving text
    embedding models with effective hard-negative mining". No guard finds all unmarked positives. Of
    700 images with five captions each (Multi30k), two captions were paired and the other three left
    among the candidates; all-MiniLM-L6-v2 took one of the three for the hardest negative of 67 % of
    the pairs without a guard, of 29 % with ``relative_margin=0.05``, of 11 % with 0.2, and of 9 %
    and 4 % with ``range_min=5`` and 10 alone. Skip some where many positives may be unmarked.

    Examples
    --------
    >>> import embedtopics as et
    >>> rows = [("the red car", "a car in red"), ("a blue car", "the car in blue")]
    >>> pairs = et.training.read_examples(rows, "pairs")
    >>> mined = et.training.mine_hard_negatives(
    ...     pairs, "lsa", relative_margin=None, duplicate_similarity=None
    ... )
    >>> mined.to_frame()["negative"].tolist()
    ['the car in blue', 'a car in red']
    """
    examples = read_examples(examples, "pairs")
    checked_count(num_negatives, "num_negatives")
    checked_count(range_min, "range_min", 0)
    n_needed = range_min + num_negatives
    checked_count(range_max, "range_max", n_needed)
    checked = (
        ("relative_margin", relative_margin, 1.0),
        ("absolute_margin", absolute_margin, 2.0),
        ("duplicate_similarity", duplicate_similarity, 1.0),
    )
    for name, value, high in checked:
        if value is not None and (not is_number(value) or not 0.0 <= value <= high):
            raise InputError(name, f"a number from 0 to {high:g}, or None", value)
    links = _links(examples, corpus)
    maker = resolve_exact(encoder).fitted_to(links.texts)
    encoder_name = maker.name
    encoded = maker.encode(links.texts)
    if not isinstance(encoded, np.ndarray):
        raise InputError("encoder", 'one of dense vectors, such as "lsa"', encoder_name)
    vectors = unit_rows(encoded, keep_zeros=True)
    pair_similarity = row_dots(vectors[links.anchors], vectors[links.positives])
    farthest = np.full(len(links.texts), 2.0)  # above all cosines
    np.minimum.at(farthest, links.anchors, pair_similarity)
    limits = np.full(len(links.texts), np.inf)
    if relative_margin is not None:
        limits = farthest - np.abs(farthest) * relative_margin
    if absolute_margin is not None:
        limits = np.minimum(limits, farthest - absolute_margin)
    nearest_of, left_out = _search(
        links, vectors, limits, duplicate_similarity, n_needed, range_max
    )
    rows = np.flatnonzero(
        [len(nearest_of[anchor]) == n_needed for anchor in links.anchors.tolist()]
    )
    if not len(rows):
        counts = ", ".join(f"{n:,} {_GUARDS[guard]}" for guard, n in sorted(left_out.items()))
        raise InputError(
            "num_negatives",
            "at most the number that pass for some pair",
            found=f"fewer for all {len(examples):,} pairs ({counts or 'no candidates'})",
            remedy="give more pairs, ask for fewer negatives, or search a wider range of ranks",
        )
    mined_texts = [nearest_of[anchor][range_min:] for anchor in links.anchors[rows].tolist()]
    negatives = (
        tuple(links.texts[text] for text, _ in column) for column in zip(*mined_texts, strict=True)
    )
    pairs = examples.take(rows)
    near = float(np.mean([similarity for row in mined_texts for _, similarity in row]))
    mined = f"{num_negatives} hard negatives a pair were mined with {encoder_name}."
    notes = [Decision("training", "hard_negatives", encoder_name, mined)]
    for guard, n in sorted(left_out.items()):
        message = f"candidates were left out: {_GUARDS[guard]}."
        notes += counted("training", f"negatives_left_out_{guard}", n, message)
    too_few = "pairs had too few negatives that pass and were left out."
    notes += counted("training", "pairs_without_negatives", len(examples) - len(rows), too_few)
    apart = f"Mean similarity to the anchor: {near:.3f} of negatives, "
    apart += f"{float(pair_similarity[rows].mean()):.3f} of positives."
    notes.append(Decision("training", "negative_similarity", near, apart))
    columns = (*pairs.columns, *negatives)
    triplets: Examples = replace(pairs, kind="triplets", columns=columns)._noting(*notes)
    return triplets


@dataclass(frozen=True, eq=False)
class _Links:
    """Distinct texts in a sorted order, and their pairs."""

    texts: list[str]  # sorted, so that nothing depends on the order of the examples
    anchors: Int64Array  # (n_examples,), places in `texts`
    positives: Int64Array  # (n_examples,), places in `texts`
    pool: Int64Array  # (n_pool,), places of the texts that may be negatives, ascending
    partners: dict[int, set[int]]  # texts that stand in a pair with a text


def _links(examples: Examples, corpus: Sequence[str] | None) -> _Links:
    extra = () if corpus is None else read_examples(corpus, "texts").columns[0]
    shortest: dict[str, str] = {}
    for text in (*examples.columns[0], *examples.columns[1], *extra):
        key = text_key(text)
        shortest[key] = min(text, shortest.get(key, text))
    place = {key: number for number, key in enumerate(sorted(shortest))}
    anchors, positives, others = (
        np.array([place[text_key(text)] for text in column], dtype=np.int64)
        for column in (*examples.columns, extra)
    )
    partners: dict[int, set[int]] = defaultdict(set)
    for anchor, positive in zip(anchors.tolist(), positives.tolist(), strict=True):
        partners[anchor].add(positive)
        partners[positive].add(anchor)
    texts = [shortest[key] for key in sorted(shortest)]
    pool = np.unique(np.concatenate([positives, others]))
    return _Links(texts, anchors, positives, pool, partners)


def _search(
    links: _Links,
    vectors: FloatArray,
    limits: npt.NDArray[np.float64],
    duplicate_similarity: float | None,
    n_needed: int,
    range_max: int,
) -> tuple[dict[int, list[tuple[int, float]]], Counter[str]]:
    """Return the nearest valid texts of each anchor, and counts of the others by guard."""
    anchors = np.unique(links.anchors)
    # More by the paired texts, so that `range_max` means the same for every anchor.
    k = range_max + 1 + max(len(links.partners[anchor]) for anchor in anchors.tolist())
    indices, similarities = nearest(vectors[anchors], vectors[links.pool], k)
    positives_of: dict[int, list[int]] = defaultdict(list)
    for anchor, positive in zip(links.anchors.tolist(), links.positives.tolist(), strict=True):
        positives_of[anchor].append(positive)
    left_out: Counter[str] = Counter()
    nearest_of: dict[int, list[tuple[int, float]]] = {}
    for row, anchor in enumerate(anchors.tolist()):
        paired = links.partners[anchor] | {anchor}
        copied = vectors[[anchor, *positives_of[anchor]]]
        passed: list[tuple[int, float]] = []
        ranked = zip(links.pool[indices[row]].tolist(), similarities[row].tolist(), strict=True)
        candidates = [(text, near) for text, near in ranked if text not in paired]
        for text, similarity in candidates[:range_max]:
            if len(passed) == n_needed:
                break
            if similarity > limits[anchor]:
                left_out["too_near"] += 1
            elif (
                duplicate_similarity is not None
                and row_dots(copied, vectors[[text]]).max() >= duplicate_similarity
            ):
                left_out["duplicate"] += 1
            else:
                passed.append((text, similarity))
        nearest_of[anchor] = passed
    return nearest_of, left_out
