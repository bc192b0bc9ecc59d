"""Pairs of documents: near-duplicates, members of one group, and those that name one another."""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import numpy as np

from embedtopics._checks import checked_count, is_number
from embedtopics._randomness import resolve_seed
from embedtopics.corpus.hashing import is_missing
from embedtopics.errors import InputError
from embedtopics.results import Decision, NeighborGraph
from embedtopics.training.examples import Examples
from embedtopics.training.pairing.making import (
    Pair,
    checked_corpus,
    counted,
    make_pairs,
    metadata_column,
)

__all__ = ["citation_pairs", "duplicate_pairs", "group_pairs"]


def duplicate_pairs(
    corpus: Any, graph: NeighborGraph, *, least: float = 0.9, most_per_document: int = 5
) -> Examples:
    """Pair documents that say nearly the same, such as two reports of one agency message.

    Parameters
    ----------
    corpus : Corpus, frame, list or path
    graph : NeighborGraph
        Of the distinct documents of the corpus, in the order of `Corpus.distinct`, such as
        ``build_graph(unit_rows(encoder.encode(corpus.document_texts())))``.
    least : float
        Cosine similarity of a pair; from the same encoder that is to be trained, such pairs teach
        little that it does not know.
    most_per_document : int
        Nearest documents that one is paired with.

    Returns
    -------
    made : Examples
        Of the kind "pairs", each two documents once.

    Raises
    ------
    InputError
        The graph is of other documents, or no two are so near.
    """
    checked_count(most_per_document, "most_per_document")
    if not is_number(least) or not -1.0 <= least <= 1.0:
        raise InputError(f"least must be a number from -1 to 1; got {least!r}")
    corpus = checked_corpus(corpus)
    documents = corpus.distinct()
    if len(graph) != len(documents):
        raise InputError(
            f"{corpus.source}: expected a graph of its {len(documents):,} distinct documents, got "
            f"one of {len(graph):,}; build it from corpus.document_texts()"
        )
    near = (graph.similarities >= least) & (graph.indices >= 0)
    allowed = near & (np.cumsum(near, axis=1) <= most_per_document)
    texts, rows = corpus.document_texts(), documents.first_rows.tolist()
    edges = {
        (min(i, j), max(i, j))
        for i, place in np.argwhere(allowed).tolist()
        for j in [int(graph.indices[i, place])]
    }
    n_without = len(documents) - len({document for edge in edges for document in edge})
    decisions = [
        Decision("training", "least_similarity", float(least), f"Pairs are as near as {least:g}."),
        *counted("documents_without_pair", n_without, "documents have none so near."),
        *counted(
            "pairs_beyond_limit",
            int(near.sum() - allowed.sum()),
            f"neighbours beyond the {most_per_document} nearest of a document were not paired.",
        ),
    ]
    found = [(texts[i], texts[j], rows[i]) for i, j in sorted(edges)]
    return make_pairs(corpus, found, decisions, "near-duplicates")


def group_pairs(
    corpus: Any, group: str | None = None, *, most_per_group: int = 100, seed: int = 42
) -> Examples:
    """Pair documents of one group: of an author, a section, a party.

    What such pairs teach is what the groups have in common, style and formulas included. Give many
    small groups: learning compares a pair with the others of its batch, and takes those of the
    same group for wrong. How many these are is in `decisions`.

    Parameters
    ----------
    corpus : Corpus, frame or path
    group : str, optional
        Column; by default the corpus's group column.
    most_per_group : int
        Pairs of one group, drawn by the seed and the documents, whatever the order of the rows.
    seed : int

    Returns
    -------
    made : Examples
        Of the kind "pairs". A document that is in several groups by its copies is paired in each.

    Raises
    ------
    InputError
        The column is missing, or no group has two documents.
    """
    checked_count(most_per_group, "most_per_group")
    seed = resolve_seed(seed)
    corpus = checked_corpus(corpus)
    column = corpus.group_column if group is None else group
    if column is None:
        raise InputError(f"{corpus.source}: expected a group column; name one with group=")
    documents = corpus.distinct()
    members: dict[str, set[int]] = defaultdict(set)
    n_missing = 0
    for value, document in zip(
        metadata_column(corpus, column, "group"), documents.of_row.tolist(), strict=True
    ):
        if is_missing(value) or not str(value).strip() or document < 0:
            n_missing += 1
        else:
            members[_spelled(value)].add(document)
    texts, rows = corpus.document_texts(), documents.first_rows.tolist()
    found: list[Pair] = []
    sizes: list[int] = []
    n_more = 0
    for name, of_group in sorted(members.items()):
        # Documents are numbered by content, so that the draw does not depend on the rows.
        ordered = np.array(sorted(of_group), dtype=np.int64)
        n_all = len(ordered) * (len(ordered) - 1) // 2
        n_more += max(0, n_all - most_per_group)
        firsts, seconds = _drawn(len(ordered), min(n_all, most_per_group), seed, name)
        for i, j in zip(ordered[firsts].tolist(), ordered[seconds].tolist(), strict=True):
            found.append((texts[i], texts[j], rows[i]))
        sizes.append(len(firsts))
    n_alone = sum(len(of_group) < 2 for of_group in members.values())
    decisions = [
        *counted("rows_without_group", n_missing, "rows have no group or no text."),
        *counted("groups_without_pair", n_alone, "groups have one document and give no pair."),
        *counted(
            "pairs_beyond_limit",
            n_more,
            f"pairs were left out, so that no group gives more than {most_per_group}.",
        ),
        *_same_group(sizes),
    ]
    return make_pairs(corpus, found, decisions, f"documents of one {column}")


def citation_pairs(corpus: Any, cites: str, *, separators: str = ";,|") -> Examples:
    """Pair documents with those that they name: citations, answers, links, sequels.

    Parameters
    ----------
    corpus : Corpus, frame or path
        With identifiers, see `Corpus.from_frame`.
    cites : str
        Column of the ids of other rows: one, a list, or several in one cell.
    separators : str
        Characters that stand between ids. A cell that is an id as a whole is not divided.

    Returns
    -------
    made : Examples
        Of the kind "pairs"; the anchor is the document that names the other. Ids that no row has,
        and documents that name themselves, are counted in `decisions`.

    Raises
    ------
    InputError
        The column is missing, or no id in it is that of a row with text.
    """
    corpus = checked_corpus(corpus)
    if not isinstance(separators, str) or not separators:
        raise InputError(f"separators must be characters, such as ';,'; got {separators!r}")
    row_of = {name: row for row, name in enumerate(corpus.ids)}
    documents = corpus.distinct().of_row.tolist()
    texts = corpus.document_texts()
    found: list[Pair] = []
    unknown: dict[str, int] = {}
    n_without = n_empty = n_itself = 0
    for row, value in enumerate(metadata_column(corpus, cites, "citation")):
        names = _ids_in(value, row_of, separators)
        n_without += not names
        for name in names:
            cited = row_of.get(name)
            if cited is None:
                unknown[name] = unknown.get(name, 0) + 1
            elif cited == row:
                n_itself += 1
            elif documents[row] < 0 or documents[cited] < 0:
                n_empty += 1
            else:
                found.append((texts[documents[row]], texts[documents[cited]], row))
    shown = ", ".join(repr(name[:40]) for name in sorted(unknown)[:3])
    if unknown and not found:
        raise InputError(
            f"{corpus.source}: expected ids of other rows, such as {corpus.ids[0]!r}, in column "
            f"{cites!r}, got {shown}; name the column of identifiers when the corpus is made (id=)"
        )
    decisions = [
        *counted("rows_without_pair", n_without, "rows name no other."),
        *counted(
            "unknown_ids",
            sum(unknown.values()),
            f"ids are of no row and give no pair, such as {shown}.",
        ),
        *counted("self_citations", n_itself, "rows name themselves, which gives no pair."),
        *counted("pairs_without_text", n_empty, "pairs were left out for want of a text."),
    ]
    return make_pairs(corpus, found, decisions, "documents with those that they name")


def _same_group(sizes: list[int]) -> list[Decision]:
    """Say how many of the other pairs, which learning takes for wrong, are of a pair's group."""
    n_pairs = sum(sizes)
    if n_pairs < 2:
        return []
    share = sum(size * (size - 1) for size in sizes) / (n_pairs * (n_pairs - 1))
    message = (
        f"{share:.1%} of the other pairs are of a pair's own group on average; learning takes "
        "those in its batch for wrong all the same."
    )
    return [Decision("training", "other_pairs_of_own_group", share, message)]


def _drawn(
    n: int, n_wanted: int, seed: int, name: str
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Draw different pairs out of n things; return the places of both sides."""
    digest = hashlib.blake2b(f"{seed}\n{name}".encode("utf-8", "replace"), digest_size=8).digest()
    rng = np.random.default_rng(int.from_bytes(digest, "little"))
    n_all = n * (n - 1) // 2
    # Drawn without making a list of all: a group of 100,000 has five thousand million pairs.
    numbers: Iterable[int] = rng.choice(n_all, n_wanted, replace=False) if n_all else []
    chosen = np.sort(np.asarray(numbers, dtype=np.int64))
    # The pair of number t has the larger place j with j (j - 1) / 2 <= t.
    second = np.floor((1.0 + np.sqrt(1.0 + 8.0 * chosen)) / 2.0).astype(np.int64)
    second -= second * (second - 1) // 2 > chosen
    second += (second + 1) * second // 2 <= chosen
    return chosen - second * (second - 1) // 2, second


def _ids_in(value: object, known: dict[str, int], separators: str) -> list[str]:
    """Return the different ids in a cell."""
    if isinstance(value, (list, tuple, set, np.ndarray)):
        parts = [_spelled(part) for part in value if not is_missing(part)]
    elif is_missing(value):
        return []
    else:
        cell = _spelled(value)
        if cell in known:
            return [cell]
        # Lists in a csv file: ['a', 'b'].
        inner = cell[1:-1] if cell.startswith("[") and cell.endswith("]") else cell
        parts = [
            part.strip().strip("'\"") for part in re.split(f"[{re.escape(separators)}]", inner)
        ]
    return sorted({part for part in parts if part})


def _spelled(value: object) -> str:
    """Return a name as the ids of a corpus are written."""
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        value = int(value)
    return str(value).strip()
