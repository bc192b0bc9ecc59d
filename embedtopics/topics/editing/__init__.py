"""Changes to a result by hand, each a new result with one more line in its history.

Nothing is undone, because nothing is changed: a result before an edit stays as it was. To go back,
keep it, or do the edits but the last again on the fit: ``replay(fit, edited.history[:-1])``.
"""

from __future__ import annotations

from embedtopics.topics.editing.logbook import history
from embedtopics.topics.editing.merging import merge
from embedtopics.topics.editing.reassigning import reassign
from embedtopics.topics.editing.recounting import update_terms
from embedtopics.topics.editing.reducing import reduce
from embedtopics.topics.editing.removing import remove
from embedtopics.topics.editing.renaming import rename
from embedtopics.topics.editing.replaying import replay
from embedtopics.topics.editing.splitting import split

__all__ = [
    "history", "merge", "reassign", "reduce", "remove", "rename", "replay", "split",
    "update_terms",
]  # fmt: skip
