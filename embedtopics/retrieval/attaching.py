"""Topics of a result as columns of a collection's metadata."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from embedtopics.errors import InputError
from embedtopics.results import TopicResult
from embedtopics.retrieval.collection import Collection

__all__ = ["TOPIC_COLUMNS", "attach_topics", "topic_of"]

OF_A_HIT = ("topic", "map_x", "map_y")
"""Of these columns, those that a hit has in fields of its own."""

TOPIC_COLUMNS = ("topic", "topic_name", "map_x", "map_y")


def attach_topics(collection: Collection, result: TopicResult) -> int:
    """Write each document's topic, its name and the place on the map; see `SearchIndex.topics`.

    Returns
    -------
    int
        Documents that the result knows.
    """
    import pandas as pd

    if not isinstance(result, TopicResult):
        raise InputError(f"expected a TopicResult, got {result!r:.80}")
    of_row = result.documents.of_row
    rows = np.flatnonzero(of_row >= 0)
    ids = [result.corpus.ids[row] for row in rows.tolist()]
    with collection.writing() as writer:
        attached = collection.settings().get("topics")
        own = [name for name in TOPIC_COLUMNS if name in collection.columns()]
        if own and not attached:
            raise InputError(
                f"the metadata of the index has a column {own[0]!r} of its own, which topics would "
                "overwrite; rename it, and build the index again"
            )
        numbers = collection.numbers(ids)
        known = [place for place, id in enumerate(ids) if id in numbers]
        if not known:
            raise InputError(
                f"none of the {len(ids):,} documents of the result is in the index, whose ids are "
                "others; build it from the result's corpus"
            )
        documents = of_row[rows[known]]
        topics = np.asarray(result.clustering.labels)[documents].astype(np.int64)
        names = {topic.topic_id: topic.label for topic in result.topics}
        places = np.asarray(result.map, dtype=np.float64)[documents]
        frame = pd.DataFrame({
            "topic": topics,
            "topic_name": [names.get(topic) for topic in topics.tolist()],
            "map_x": places[:, 0],
            "map_y": places[:, 1],
        })  # fmt: skip
        of_known = [numbers[ids[place]] for place in known]
        writer.annotate(of_known, frame, {"topics": {"columns": list(TOPIC_COLUMNS)}})
    return len(known)


def topic_of(
    metadata: Mapping[str, Any], attached: Mapping[str, Any]
) -> tuple[dict[str, Any], int | None, tuple[float, float] | None]:
    """Return metadata without what a hit has in other fields, the topic, and the place on the map.

    Parameters
    ----------
    metadata : mapping of str to object
    attached : mapping
        What the collection's settings say of attached topics; empty where there are none.
    """
    if not attached:
        return dict(metadata), None, None
    rest = {name: value for name, value in metadata.items() if name not in OF_A_HIT}
    x, y = metadata.get("map_x"), metadata.get("map_y")
    position = None if x is None or y is None else (float(x), float(y))
    return rest, metadata.get("topic"), position
