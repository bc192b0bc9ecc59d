"""Arguments of a search index: what is no corpus or path is refused by the call to make."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from embedtopics.encoders._foreign import can_encode
from embedtopics.errors import InputError
from embedtopics.retrieval._contents import IndexContents


def check_corpus(corpus: Any) -> None:
    """Refuse an encoder, a model or an index in place of a corpus."""
    if isinstance(corpus, IndexContents):
        remedy = "pass the corpus; an index is copied by index.save(folder)"
    elif hasattr(corpus, "fit") and hasattr(corpus, "predict"):
        remedy = "call et.SearchIndex.build(corpus).attach_topics(model)"
    elif can_encode(corpus):
        remedy = "call et.SearchIndex.build(corpus, encoder=encoder)"
    elif corpus is None or isinstance(corpus, bool | int | float):
        remedy = 'call et.SearchIndex.build(texts), or build("articles.csv")'
    else:
        return  # what a Corpus reads, or refuses
    raise InputError("corpus", "a Corpus, a list of texts, a table or a path", corpus, remedy)


def checked_path(value: Any, parameter: str = "folder") -> Path:
    """Return a path, or refuse another object."""
    if isinstance(value, str | os.PathLike):
        return Path(value)
    remedy = ""
    if isinstance(value, IndexContents):
        remedy = "pass index.folder"
    raise InputError(parameter, "a path", value, remedy)
