"""Training pairs from a corpus without labels, and hard negatives for pairs."""

from __future__ import annotations

import hashlib
import itertools
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from embedtopics._utils.checks import checked_count, is_number, resolve_seed
from embedtopics.corpus._columns import list_names, read_id
from embedtopics.corpus._corpus import Corpus
from embedtopics.corpus._texts import TEXT, normalize_text, read_texts
from embedtopics.corpus._windows import sentence_starts
from embedtopics.decisions import Decision, counted
from embedtopics.encoders._registry import resolve_exact
from embedtopics.errors import InputError, Remedy
from embedtopics.evaluation._pairs import row_dots
from embedtopics.neighbors._graph import nearest, unit_rows
from embedtopics.neighbors.results import NeighborGraph
from embedtopics.protocols import FloatArray, Int64Array
from embedtopics.training._examples import Examples, read_examples, text_key

Pair = tuple[str, str, int]
"""Anchor, positive, and the row of the anchor."""

Found = tuple[list[Pair], list[Decision], str]
"""Candidate pairs, decisions, and a name for the kind of pairs."""

_SEPARATORS = " \t\n:.,;|-\u2013\u2014!?"
_WORD = re.compile(r"\w+")
_counted = partial(counted, "training")

_GUARDS = {
    "too_near": "nearer than the limit that the positive sets",
    "duplicate": "nearly the same text as the anchor or a positive",
}


def make_pairs(
    corpus: Any, by: str = "sentences", column: str | None = None, **options: Any
) -> Examples:
    """Make training pairs from a corpus: titles with texts, neighboring sentences, and others.

    Parameters
    ----------
    corpus : Corpus, or what `Corpus.of` takes
    by : {"sentences", "title", "group", "citations", "duplicates"}
        - "sentences": sentences that follow one another in a document (Logeswaran and Lee 2018).
          Options: `most_per_document` (5), `least_words` (5) of each sentence, `random_state` (42).
        - "title": each title, of `column`, with its text. A title that begins the text is cut off
          there. Options: `body`, the column paired with titles (by default the texts);
          `most_bodies` (3): a title of more texts, such as "Letters", gives no pair.
        - "group": documents that share a value of `column` (by default the group column). The
          other pairs of a batch count as negatives, so give many small groups. Options:
          `most_per_group` (100), `random_state` (42).
        - "citations": documents with the documents whose ids are in `column`, separated by
          semicolons, commas or bars.
        - "duplicates": near-duplicates. Options: `graph`, a `NeighborGraph` of the distinct
          documents; `least` (0.9), the cosine similarity of a pair; `most_per_document` (5).
    column : str, optional
    **options
        See `by`.

    Returns
    -------
    made : Examples
        Examples of kind "pairs", each pair once; the order of the rows does not matter. Pairs that
        were left out are counted in `decisions`.

    Raises
    ------
    InputError
        If a column is missing, an option unknown, or there is no pair.
    """
    ways: dict[str, Callable[..., Found]] = {
        "sentences": _sentences,
        "title": _titles,
        "group": _groups,
        "citations": _citations,
        "duplicates": _duplicates,
    }
    if by not in ways:
        raise InputError("by", f"one of {', '.join(ways)}", by)
    corpus = Corpus.of(corpus)
    try:
        pairs, decisions, what = ways[by](corpus, column, **options)
    except TypeError as error:
        if "argument" not in str(error):
            raise
        raise InputError("options", f'those of by="{by}"', found=str(error)) from error
    return _distinct(corpus, pairs, decisions, what)


def _distinct(
    corpus: Corpus, pairs: Iterable[Pair], decisions: Sequence[Decision], what: str
) -> Examples:
    """Return pairs as examples, each once, ordered by their texts."""
    pair_of: dict[tuple[str, str], Pair] = {}
    n_same = n_repeated = 0
    # The least of equal pairs is kept: the first would depend on the order of the rows.
    for anchor, positive, row in sorted(
        ((normalize_text(a), normalize_text(p), r) for a, p, r in pairs)
    ):
        one, other = text_key(anchor), text_key(positive)
        both = (min(one, other), max(one, other))
        if one == other:
            n_same += 1
        elif both in pair_of:
            n_repeated += 1
        else:
            pair_of[both] = (anchor, positive, row)
    notes = [
        *decisions,
        *_counted("identical_sides", n_same, "pairs of equal texts were left out."),
        *_counted("repeated_pairs", n_repeated, "repeated pairs were left out."),
    ]
    if not pair_of:
        reasons = " ".join(decision.message for decision in notes)
        got = f"no {what} in {len(corpus):,} rows of {corpus.source}"
        raise InputError("corpus", "one that gives pairs", found=got, remedy=reasons)
    anchors, positives, rows = zip(*pair_of.values(), strict=True)
    message = f"{len(pair_of):,} pairs of {what} were made of {len(corpus):,} rows."
    return Examples(
        kind="pairs",
        columns=(anchors, positives),
        labels=None,
        rows=np.array(rows, dtype=np.int64),
        source=f"{corpus.source}: {what}",
        decisions=(*notes, Decision("training", "pairs_made", len(pair_of), message)),
    )


def _titles(
    corpus: Corpus, column: str | None, *, body: str | None = None, most_bodies: int = 3
) -> Found:
    checked_count(most_bodies, "most_bodies")
    titles, bodies = _texts_of(corpus, column), list(corpus.texts)
    has_body = (corpus.status == TEXT).tolist()
    if body is not None:
        bodies = _texts_of(corpus, body)
        has_body = [bool(text) for text in bodies]
    candidates: list[Pair] = []
    n_missing = n_whole = n_cut = n_inside = 0
    bodies_of: dict[str, set[str]] = defaultdict(set)
    for row, (heading, text) in enumerate(zip(titles, bodies, strict=True)):
        if not heading or not has_body[row]:
            n_missing += 1
            continue
        rest = _without_start(normalize_text(text), heading)
        n_cut += rest != normalize_text(text)
        if not _WORD.search(rest) or text_key(rest) in text_key(heading):
            n_whole += 1
            continue
        inside = rf"(?<!\w){re.escape(text_key(heading))}(?!\w)"
        n_inside += re.search(inside, text_key(rest)) is not None
        bodies_of[text_key(heading)].add(text_key(rest))
        candidates.append((heading, rest, row))
    with_title = [pair for pair in candidates if len(bodies_of[text_key(pair[0])]) <= most_bodies]
    common = f"rows have a title of more than {most_bodies} texts and give no pair."
    decisions = [
        *_counted("rows_without_pair", n_missing, "rows have no title or no text."),
        *_counted("titles_cut", n_cut, "texts begin with their title, which was cut off there."),
        *_counted("title_is_text", n_whole, "rows hold no text besides the title."),
        *_counted("titles_in_text", n_inside, "texts contain their title later; they are kept."),
        *_counted("common_titles", len(candidates) - len(with_title), common),
    ]
    return with_title, decisions, "titles with texts"


def _sentences(
    corpus: Corpus,
    column: str | None,
    *,
    most_per_document: int = 5,
    least_words: int = 5,
    random_state: Any = 42,
) -> Found:
    checked_count(most_per_document, "most_per_document")
    checked_count(least_words, "least_words")
    if column is not None:
        raise InputError("column", "left out: name the texts when the corpus is made", column)
    seed = resolve_seed(random_state)

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
        pairs = _neighbors(texts[document], least_words)
        n_without += not pairs
        n_more += max(0, len(pairs) - most_per_document)
        drawn = sorted(pairs, key=digest)[:most_per_document]
        candidates += [(first, second, row) for first, second in drawn]
    without = f"documents have no two consecutive sentences of {least_words} words."
    more = f"pairs exceeded the maximum of {most_per_document} per document and were left out."
    decisions = [
        *_counted("documents_without_pair", n_without, without),
        *_counted("pairs_beyond_limit", n_more, more),
    ]
    return candidates, decisions, "neighbouring sentences"


def _duplicates(
    corpus: Corpus,
    column: str | None,
    *,
    graph: NeighborGraph,
    least: float = 0.9,
    most_per_document: int = 5,
) -> Found:
    checked_count(most_per_document, "most_per_document")
    if not is_number(least) or not -1.0 <= least <= 1.0:
        raise InputError("least", "a number from -1 to 1", least)
    documents = corpus.distinct()
    if len(graph) != len(documents):
        expected = f"of the {len(documents):,} distinct documents of {corpus.source}"
        remedy = "build it from corpus.document_texts()"
        raise InputError("graph", expected, found=f"one of {len(graph):,}", remedy=remedy)
    near = (graph.similarities >= least) & (graph.indices >= 0)
    allowed = near & (np.cumsum(near, axis=1) <= most_per_document)
    texts, rows = corpus.document_texts(), documents.first_rows.tolist()
    ends = np.sort([np.nonzero(allowed)[0], graph.indices[allowed]], axis=0)
    edges = np.unique(ends, axis=1).T.tolist()
    n_without = len(documents) - len(np.unique(ends))
    n_more = int(near.sum() - allowed.sum())
    more = f"neighbors beyond the {most_per_document} nearest of a document were not paired."
    decisions = [
        Decision(
            "training",
            "least_similarity",
            float(least),
            f"Pairs have a cosine of at least {least:g}.",
        ),
        *_counted("documents_without_pair", n_without, "documents have no such pair."),
        *_counted("pairs_beyond_limit", n_more, more),
    ]
    candidates = [(texts[i], texts[j], rows[i]) for i, j in edges]
    return candidates, decisions, "near-duplicates"


def _groups(
    corpus: Corpus, column: str | None, *, most_per_group: int = 100, random_state: Any = 42
) -> Found:
    checked_count(most_per_group, "most_per_group")
    seed = resolve_seed(random_state)
    column = corpus.group_column if column is None else column
    documents = corpus.distinct()
    members: dict[str, set[int]] = defaultdict(set)
    n_missing = 0
    values = _metadata_column(corpus, column)
    for value, document in zip(values, documents.of_row.tolist(), strict=True):
        name = read_id(value)
        if not name or document < 0:
            n_missing += 1
        else:
            members[name].add(document)
    texts, rows = corpus.document_texts(), documents.first_rows.tolist()
    candidates: list[Pair] = []
    sizes: list[int] = []
    n_more = 0
    for name, of_group in sorted(members.items()):
        # Documents are numbered by content, so that the draw does not depend on the rows.
        ordered = np.array(sorted(of_group), dtype=np.int64)
        n_all = len(ordered) * (len(ordered) - 1) // 2
        n_more += max(0, n_all - most_per_group)
        firsts, seconds = _drawn(len(ordered), min(n_all, most_per_group), seed, name)
        for i, j in zip(ordered[firsts].tolist(), ordered[seconds].tolist(), strict=True):
            candidates.append((texts[i], texts[j], rows[i]))
        sizes.append(len(firsts))
    n_alone = sum(len(of_group) < 2 for of_group in members.values())
    more = f"pairs exceeded the maximum of {most_per_group} per group and were left out."
    decisions = [
        *_counted("rows_without_group", n_missing, "rows have no group or no text."),
        *_counted("groups_without_pair", n_alone, "groups have one document and give no pair."),
        *_counted("pairs_beyond_limit", n_more, more),
    ]
    n_pairs = sum(sizes)
    if n_pairs > 1:
        share = sum(size * (size - 1) for size in sizes) / (n_pairs * (n_pairs - 1))
        message = f"{share:.1%} of the other pairs, which are in-batch negatives, share the group."
        decisions.append(Decision("training", "other_pairs_of_own_group", share, message))
    return candidates, decisions, f"documents of one {column}"


def _citations(corpus: Corpus, column: str | None) -> Found:
    row_of = {name: row for row, name in enumerate(corpus.ids)}
    documents = corpus.distinct().of_row.tolist()
    texts = corpus.document_texts()
    candidates: list[Pair] = []
    unknown: Counter[str] = Counter()
    n_without = n_empty = n_itself = 0
    for row, value in enumerate(_metadata_column(corpus, column)):
        names = _ids_in(value, row_of)
        n_without += not names
        for name in names:
            cited = row_of.get(name)
            if cited is None:
                unknown[name] += 1
            elif cited == row:
                n_itself += 1
            elif documents[row] < 0 or documents[cited] < 0:
                n_empty += 1
            else:
                candidates.append((texts[documents[row]], texts[documents[cited]], row))
    shown = ", ".join(repr(name[:40]) for name in sorted(unknown)[:3])
    if unknown and not candidates:
        expected = f"one of ids of other rows, such as {corpus.ids[0]!r}"
        remedy = Remedy("id", alternative="read the corpus with its column of ids")
        raise InputError("column", expected, found=f"{shown} in {column!r}", remedy=remedy)
    decisions = [
        *_counted("rows_without_pair", n_without, "rows cite no other."),
        *_counted("unknown_ids", unknown.total(), f"ids are of no row, such as {shown}."),
        *_counted("self_citations", n_itself, "rows cite themselves, which gives no pair."),
        *_counted("pairs_without_text", n_empty, "pairs without a text were left out."),
    ]
    return candidates, decisions, "documents with those that they cite"


def _metadata_column(corpus: Corpus, name: str | None) -> list[object]:
    if name not in corpus.metadata.columns:
        exist = list_names(list(corpus.metadata.columns)) or "no columns"
        raise InputError("column", f"one of {exist} besides the texts of {corpus.source}", name)
    values: list[object] = corpus.metadata[name].tolist()
    return values


def _texts_of(corpus: Corpus, column: str | None) -> list[str]:
    values: list[object] = (
        list(corpus.texts) if column == corpus.text_column else _metadata_column(corpus, column)
    )
    rows = read_texts(values, f"{corpus.source}: column {column!r}")
    if not (rows.status == TEXT).any():
        raise InputError("column", f"one of texts in {corpus.source}", column)
    return [
        normalize_text(text) if status == TEXT else ""
        for text, status in zip(rows.texts, rows.status.tolist(), strict=True)
    ]


def _without_start(text: str, heading: str) -> str:
    """Return a text without a title at its beginning, as whole words."""
    start, rest = text[: len(heading)], text[len(heading) :]
    if start.casefold() != heading.casefold() or (rest and rest[0].isalnum()):
        return text
    return rest.lstrip(_SEPARATORS)


def _neighbors(text: str, least_words: int) -> list[tuple[str, str]]:
    ends = [*sentence_starts(text), len(text)]
    sentences = [normalize_text(text[a:b]) for a, b in itertools.pairwise(ends)]
    is_long = {each: len(_WORD.findall(each)) >= least_words for each in sentences}
    return [both for both in itertools.pairwise(sentences) if is_long[both[0]] and is_long[both[1]]]


def _drawn(n: int, n_wanted: int, seed: int, name: str) -> tuple[Int64Array, Int64Array]:
    """Draw distinct pairs of n things; return the positions of both sides."""
    digest = hashlib.blake2b(f"{seed}\n{name}".encode("utf-8", "replace"), digest_size=8).digest()
    rng = np.random.default_rng(int.from_bytes(digest, "little"))
    n_all = n * (n - 1) // 2
    # Drawn without making a list of all: a group of 100,000 has five thousand million pairs.
    numbers: Iterable[int] = rng.choice(n_all, n_wanted, replace=False) if n_all else []
    numbers_drawn = np.sort(np.asarray(numbers, dtype=np.int64))
    # The pair of number t has the larger place j with j (j - 1) / 2 <= t.
    second = np.floor((1.0 + np.sqrt(1.0 + 8.0 * numbers_drawn)) / 2.0).astype(np.int64)
    second -= second * (second - 1) // 2 > numbers_drawn
    second += (second + 1) * second // 2 <= numbers_drawn
    return numbers_drawn - second * (second - 1) // 2, second


def _ids_in(value: object, row_of: dict[str, int]) -> list[str]:
    if isinstance(value, (list, tuple, set, np.ndarray)):
        parts = [read_id(part) for part in value]
    else:
        cell = read_id(value)
        if cell in row_of:
            return [cell]
        # Lists in a csv file: ['a', 'b'].
        inner = cell[1:-1] if cell.startswith("[") and cell.endswith("]") else cell
        parts = [part.strip().strip("'\"") for part in re.split("[;,|]", inner)]
    return sorted({part for part in parts if part})


def mine_hard_negatives(
    examples: Examples,
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
    examples : Examples
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
    """
    read_examples(examples, "pairs")
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
        notes += _counted(f"negatives_left_out_{guard}", n, message)
    too_few = "pairs had too few negatives that pass and were left out."
    notes += _counted("pairs_without_negatives", len(examples) - len(rows), too_few)
    apart = f"Mean similarity to the anchor: {near:.3f} of negatives, "
    apart += f"{float(pair_similarity[rows].mean()):.3f} of positives."
    notes.append(Decision("training", "negative_similarity", near, apart))
    columns = (*pairs.columns, *negatives)
    return replace(pairs, kind="triplets", columns=columns).noting(*notes)


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
