"""A hierarchy of topics from a result."""

from __future__ import annotations

from typing import Any

import numpy as np

from embedtopics._checks import checked_count
from embedtopics.protocols import TermWeighting
from embedtopics.results import TopicHierarchy, TopicNode, TopicResult
from embedtopics.terms import make_labels
from embedtopics.topics.tree.linkage import link, topic_distances
from embedtopics.topics.tree.merging import merged_terms

__all__ = ["hierarchy"]


def hierarchy(
    result: TopicResult,
    *,
    by: Any = "terms",
    linkage: str = "ward",
    n_terms: int = 10,
    diverse: bool = True,
    weighting: TermWeighting | None = None,
) -> TopicHierarchy:
    """Merge topics by their likeness into a tree, and say what each merge is about.

    It shows how topics belong together, and at which number of them a result can be read. Nothing
    is tokenised or counted again: the counts of a merge are the sum of those of its parts.

    Parameters
    ----------
    result : TopicResult
    by : {"terms", "embeddings"} or array_like of shape (n_topics, n_topics)
        What makes topics alike: the cosine of their class-TF-IDF weights, or of their mean
        embeddings. A matrix holds distances of the caller's own.
    linkage : {"ward", "average", "complete", "single", "weighted"}
        How far merged topics are from others. "ward" makes groups of more even size: of 220
        topics of arXiv abstracts, the largest of ten groups held 17 % of the texts, with
        "average" 75 %. It takes the distances as if they were Euclidean, as BERTopic's
        `hierarchical_topics` does.
    n_terms : int
        Terms of each merge.
    diverse : bool
        Whether keywords are chosen: no stem comes twice, and terms make way that a few documents
        say over and over, or that other topics say as well. With False a merge has its terms of
        highest weight, as in BERTopic's tree.
    weighting : object with ``fit`` and ``transform``, optional
        By default the one of the fit. Its factors are those among the topics themselves, at every
        merge: a merge is shown as it would stand among them.

    Returns
    -------
    TopicHierarchy
        Without merges where there are fewer than two topics.

    Raises
    ------
    InputError
        If a parameter makes no sense.

    Notes
    -----
    The time grows with the square of the number of topics and, at each merge, with the different
    terms of the two topics; it does not grow with the length of the texts.
    """
    checked_count(n_terms, "n_terms")
    distances = topic_distances(result, by)
    merges, heights, order = link(distances, linkage)
    found = merged_terms(result, merges, n_terms, diverse=diverse, weighting=weighting)
    similarities = (1.0 - distances).astype(np.float32)
    nodes = [
        TopicNode(topic.label, topic.size, 1, topic.keywords, topic.weights)
        for topic in result.topics
    ]
    # No merge is named like a topic or another merge.
    names = make_labels(
        [[node.label] for node in nodes] + [[term for term, _ in terms] for terms in found]
    )[len(nodes) :]
    for (left, right), terms, name in zip(merges.tolist(), found, names, strict=True):
        nodes.append(
            TopicNode(
                name,
                nodes[left].size + nodes[right].size,
                nodes[left].n_topics + nodes[right].n_topics,
                tuple(term for term, _ in terms),
                tuple(weight for _, weight in terms),
            )
        )
    for array in (merges, heights, order, similarities):
        array.flags.writeable = False
    compared = by if isinstance(by, str) else "given"
    return TopicHierarchy(merges, heights, order, similarities, tuple(nodes), compared, linkage)
