"""Results on the Hugging Face hub: upload, download, and the page of a repository."""

from __future__ import annotations

import dataclasses
import html
import json
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import csr_matrix

from embedtopics._utils.display import one_line
from embedtopics._utils.folders import MANIFEST
from embedtopics.clustering.results import NOISE
from embedtopics.corpus._corpus import Corpus
from embedtopics.corpus._texts import TEXT, content_ids, read_texts
from embedtopics.decisions import Decision
from embedtopics.encoders._base import upload
from embedtopics.errors import InputError
from embedtopics.terms.results import TokenStream
from embedtopics.topics._describe import LEFT_OUT, TEXTS
from embedtopics.topics._storage import FILES, load_result, recall_hashes, write_result
from embedtopics.topics.results import TopicResult

MOST_TOPICS = 500
"""Largest number of topics in the table of the page."""

NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")
MARKUP = re.compile(r"([\\`*_{}\[\]()#+\-.!|~$:@^=/])")


def model_card(result: TopicResult, name: str) -> str:
    """Return the README.md of a shared result; labels and keywords in it are escaped."""
    has_text = result.documents.of_row >= 0
    n_outside = int((result.labels[has_text] == NOISE).sum())
    counts = f"{result.n_topics:,} topics in {int(has_text.sum()):,} texts"
    texts = "The texts are part of it."
    if result.settings.get(TEXTS) == LEFT_OUT:
        texts = (
            "The texts are **not** part of it: every text is empty, and functions that need words "
            "raise an error. Embeddings and content hashes are part of it."
        )
    parts = [
        '---\nlibrary_name: embedtopics\ntags: ["embedtopics", "topic-modeling"]\n---',
        f"# {plain(name.rpartition('/')[2])}",
        f"A topic model by embedtopics: {counts}, {n_outside:,} of them in no topic. {texts}",
        "## How to use it",
        "```python\nfrom embedtopics import topics\n\n"
        f"result = topics.from_pretrained({json.dumps(name)})\n"
        'topics.table(result)\ntopics.assign(result, ["a new text"]).labels\n```',
        "## Topics",
        _table(result),
    ]
    return "\n\n".join(parts) + "\n"


def plain(value: Any, length: int = 200) -> str:
    """Return a value as one line of escaped Markdown, cut at a length."""
    line = "".join(c if c.isprintable() else " " for c in " ".join(str(value).split()))
    line = line if len(line) <= length else line[: length - 1] + "…"
    return html.escape(MARKUP.sub(r"\\\1", line), quote=False)


def _table(result: TopicResult) -> str:
    if not result.topics:
        return "There are none."
    rows = [
        f"| {topic.topic_id} | {topic.size:,} | {topic.share:.1%} | {plain(topic.label)} "
        f"| {plain(', '.join(topic.keywords))} |"
        for topic in result.topics[:MOST_TOPICS]
    ]
    head = "| Topic | Texts | Share | Name | Keywords |\n| ---: | ---: | ---: | --- | --- |\n"
    rest = result.n_topics - len(rows)
    return head + "\n".join(rows) + (f"\n\nAnd {rest:,} more." if rest > 0 else "")


def without_texts(result: TopicResult) -> TopicResult:
    """Return a result without its texts, to share it.

    Removed are the texts, their words, the term counts of each document, the constraints of the
    fit, and the ids, row labels, columns and notes of the input. Topics, names, history, term
    weights, labels, memberships, map, embeddings and hashes of the texts stay.

    Parameters
    ----------
    result : TopicResult

    Returns
    -------
    TopicResult
        The text of every row is "". Functions that describe topics again raise InputError.

    Notes
    -----
    This is not anonymization. A hash confirms that a known text was in the corpus. An embedding
    reveals much of its text (Morris et al. 2023, "Text embeddings reveal (almost) as much as
    text"). Terms, keywords, names, settings, edits and decisions come from the texts.
    """
    counts = result.term_counts.counts
    offsets = np.zeros(len(result.documents) + 1, dtype=np.int64)
    tokens = TokenStream(np.empty(0, dtype=np.int32), offsets, (), result.tokens.rules)
    message = "Shared without the texts, their words and the columns of the input."
    notes = {repr(note) for note in result.corpus.notes}
    decisions = [
        decision
        for decision in result.decisions
        if repr(decision) not in notes and decision.name != "boilerplate"  # which quotes texts
    ]
    return dataclasses.replace(
        result,
        corpus=_blank_corpus(recall_hashes(result.corpus, result.documents)),
        tokens=tokens,
        term_counts=dataclasses.replace(
            result.term_counts, counts=csr_matrix(counts.shape, dtype=counts.dtype)
        ),
        decisions=(*decisions, Decision("corpus", "texts_left_out", True, message)),
        settings={**result.settings, TEXTS: LEFT_OUT},
        constraints=None,
    )


def _blank_corpus(corpus: Corpus) -> Corpus:
    """Return a corpus of the same rows without texts, ids, labels, notes and columns."""
    is_text = corpus.status == TEXT
    nothing = read_texts([""], "texts").hashes
    hashes = np.where(is_text[:, None], corpus.hashes, nothing)
    hashes.flags.writeable = False
    return Corpus.of_fields(
        texts=("",) * len(corpus),
        ids=tuple(content_ids(hashes)),
        status=corpus.status,
        metadata=pd.DataFrame(index=range(len(corpus))),
        source="texts left out",
        hashes=hashes,
        _distinct=corpus.distinct(),
    )


def push_to_hub(
    result: TopicResult,
    repo_id: str,
    *,
    private: bool = True,
    include_texts: bool = False,
    token: str | None = None,
) -> str:
    """Upload a result to the Hugging Face hub, with a page that describes it.

    By default the repository is private and the texts are left out; see `without_texts`.

    Parameters
    ----------
    result : TopicResult
    repo_id : str
        "user/name"; created if it does not exist.
    private : bool
        Whether only you can see the repository. If True, an existing public repository is refused.
    include_texts : bool
        Whether to upload texts, ids and all columns of the input.
    token : str, optional
        By default the token that ``hf auth login`` stored.

    Returns
    -------
    str
        Address of the commit.

    Raises
    ------
    InputError
        If the name is invalid, the client is offline, or the hub refuses.
    """
    shared = result if include_texts else without_texts(result)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_result(shared, folder)
        # The manifest does not list the page, so that people may edit it on the hub.
        (folder / "README.md").write_text(model_card(shared, repo_id), "utf-8")
        return upload(folder, repo_id, "a topic model", private, token)


def from_pretrained(name: str | os.PathLike[str], *, token: str | None = None) -> TopicResult:
    """Load a result from the Hugging Face hub or a folder.

    Every file is checked against the checksums in the manifest. No file is code.

    Parameters
    ----------
    name : str or path
        "user/name" on the hub, or a folder.
    token : str, optional
        For a private repository; by default the token that ``hf auth login`` stored.

    Returns
    -------
    TopicResult

    Raises
    ------
    InputError
        If there is neither such a folder nor such a repository, or the hub cannot be reached.
    CorruptFileError
        If the files are not a saved result, are damaged, or have a newer format.
    """
    if os.path.isdir(name):
        return load_result(Path(name))
    if isinstance(name, os.PathLike) or not NAME.fullmatch(str(name)):
        raise InputError(
            "name", 'a folder, or a name on the hub such as "user/name"', os.fspath(name)
        )
    from huggingface_hub import is_offline_mode, snapshot_download

    sys.stderr.write(f"embedtopics: loading {name} from the Hugging Face hub or its cache\n")
    try:
        folder = snapshot_download(
            str(name),
            token=token,
            allow_patterns=[MANIFEST, *FILES],
            local_files_only=is_offline_mode(),
        )
    # The client raises exceptions of its HTTP library.
    except Exception as error:
        raise InputError(
            f"could not load {name} from the hub: {one_line(error)}; check the name, the network, "
            "and that you are logged in (hf auth login) for a private repository"
        ) from error
    if not os.path.exists(os.path.join(folder, "manifest.json")):
        raise InputError(f"{name} on the hub holds no saved topic result")
    return load_result(folder)
