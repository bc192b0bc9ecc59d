"""Results that grow: documents added, results merged, and topics followed from one to another.

`extend` adds documents without moving anything that is there; in a loop, over the batches of a
stream, it is the counterpart of a ``partial_fit``. What the topics do not hold, it reports, and
`adopt` makes topics of it. `combine` merges results of different corpora, and `lineage` tells which
topics of one result became which of another.
"""

from __future__ import annotations

from embedtopics.topics.growing.adopting import adopt
from embedtopics.topics.growing.combining import combine
from embedtopics.topics.growing.extending import extend
from embedtopics.topics.growing.lineage import lineage

__all__ = ["adopt", "combine", "extend", "lineage"]
