"""Results on the Hugging Face hub: uploaded on request, and downloaded with notice."""

from __future__ import annotations

import dataclasses
import html
import json
import os
import re
import sys
import tempfile
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from embedtopics._utils.display import one_line
from embedtopics._utils.hub import NAME, check_upload, upload
from embedtopics.clustering.results import NOISE
from embedtopics.corpus._corpus import blank_corpus, recall_hashes
from embedtopics.decisions import Decision
from embedtopics.errors import InputError
from embedtopics.terms.results import TokenStream
from embedtopics.topics._describe import LEFT_OUT, TEXTS
from embedtopics.topics._relabel import without_clauses
from embedtopics.topics._storage import load_result, write_result
from embedtopics.topics.results import TopicResult

MOST_TOPICS = 500
"""Topics in the table; what is longer nobody reads."""

MARKUP = re.compile(r"([\\`*_{}\[\]()#+\-.!|~$:@^=/])")


def model_card(result: TopicResult, name: str, license: str | None = None) -> str:
    """Return the README.md of a shared result, in which labels and keywords are plain text."""
    has_text = result.documents.of_row >= 0
    n_outside = int((result.labels[has_text] == NOISE).sum())
    found = f"{result.n_topics:,} topics in {int(has_text.sum()):,} texts"
    texts = "The texts are part of it."
    if result.settings.get(TEXTS) == LEFT_OUT:
        texts = (
            "The texts are **not** part of it: every text reads as empty, and what needs the words "
            "of the texts is refused. Embeddings and content hashes are part of it."
        )
    # The head is YAML; quoted as JSON, which YAML reads as well.
    languages = result.settings.get("languages") or ()
    codes = [code for code in languages if re.fullmatch("[a-z]{2,3}", str(code))]
    head = ["---", "library_name: embedtopics", 'tags: ["embedtopics", "topic-modeling"]']
    head += [f"language: {json.dumps(codes)}"] if codes else []
    head += [] if license is None else [f"license: {json.dumps(license)}"]
    parts = [
        "\n".join([*head, "---"]),
        f"# {plain(name.rpartition('/')[2])}",
        f"A topic model made with embedtopics: {found}, {n_outside:,} of them in no topic. {texts}",
        "## How to use it",
        "```python\nfrom embedtopics import topics\n\n"
        f"result = topics.from_pretrained({json.dumps(name)})\n"
        'topics.table(result)\ntopics.assign(result, ["a new text"]).labels\n```',
        "## Topics",
        _table(result),
        "## Settings",
        _list(result.settings),
        "## Versions",
        _list(result.versions),
    ]
    return "\n\n".join(parts) + "\n"


def plain(value: Any, length: int = 200) -> str:
    """Return a value as one line of Markdown that shows it as it is, cut at a length."""
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


def _list(values: Mapping[str, Any]) -> str:
    return "\n".join(f"- {plain(name)}: {plain(value)}" for name, value in values.items())


def without_texts(result: TopicResult, *, columns: Sequence[Hashable] = ()) -> TopicResult:
    """Return a result without texts, to be shared where these cannot be.

    Left out are the texts, their words, the counts of terms in each document, the constraints of
    the fit, and of the input its ids, row labels, columns and notes. Topics, names, history, terms
    with their weights, labels, memberships, map, embeddings and hashes of the texts stay. A label
    that was chosen from a text gives way to keywords.

    Parameters
    ----------
    result : TopicResult
    columns : sequence
        Columns of the input that are kept, such as the dates.

    Returns
    -------
    TopicResult
        In which the text of every row is "". Whatever would describe topics anew is refused.

    Raises
    ------
    InputError
        Where there is no such column.

    Notes
    -----
    This is no anonymisation. Whoever has a text can check by its hash that it was among these;
    from an embedding much of a text can be guessed (Morris et al. 2023, "Text embeddings reveal
    (almost) as much as text"); terms, keywords, names, settings, edits and decisions come from the
    texts.
    """
    counts = result.term_counts.counts
    offsets = np.zeros(len(result.documents) + 1, dtype=np.int64)
    tokens = TokenStream(np.empty(0, dtype=np.int32), offsets, (), result.tokens.rules)
    what = "its texts, their words and the columns of the input"
    message = f"The result is shared without {what}, but for {list(columns)}."
    noted = {repr(note) for note in result.corpus.notes}
    decisions = [one for one in result.decisions if repr(one) not in noted]
    return dataclasses.replace(
        result,
        corpus=blank_corpus(recall_hashes(result.corpus, result.documents), columns),
        topics=without_clauses(result),
        tokens=tokens,
        term_counts=dataclasses.replace(
            result.term_counts, counts=csr_matrix(counts.shape, dtype=counts.dtype)
        ),
        decisions=(*decisions, Decision("corpus", "texts_left_out", True, message)),
        settings={**result.settings, TEXTS: LEFT_OUT},
        constraints=None,
    )


FILES = (
    "manifest.json", "result.json", "words.json", "rows.parquet", "arrays.arrow",
    "embeddings.npy",
)  # fmt: skip
"""What is fetched of a repository; nothing that runs."""


def push_to_hub(
    result: TopicResult | str | Path,
    repo_id: str,
    *,
    private: bool = True,
    include_texts: bool = False,
    columns: Sequence[Any] = (),
    license: str | None = None,
    token: str | None = None,
    revision: str | None = None,
    commit_message: str = "Upload a topic model",
    endpoint: str | None = None,
) -> str:
    """Upload a result to the Hugging Face hub, with a page that introduces it.

    The repository is private and the texts are left out, unless you say otherwise; see
    `without_texts` for what is then left out and what can still be guessed.

    Parameters
    ----------
    result : TopicResult, or the folder of a saved one
    repo_id : str
        "user/name"; made where it does not exist.
    private : bool
        Whether only you can see the repository. One that exists already, and is public, is refused
        where this is asked for.
    include_texts : bool
        Whether texts, ids and all columns of the input are uploaded.
    columns : sequence
        Columns of the input that are uploaded without the texts, such as the dates.
    license : str, optional
        Identifier of a licence, such as "cc-by-4.0".
    token : str, optional
        By default what ``hf auth login`` stored.
    revision : str, optional
        Branch to upload to; by default the main one.
    commit_message : str
    endpoint : str, optional
        Address of another hub.

    Returns
    -------
    str
        Address of the commit.

    Raises
    ------
    InputError
        Where the name is bad, the network is switched off, or the hub refuses.
    """
    check_upload(repo_id)
    if not isinstance(result, TopicResult):
        result = load_result(result)
    if include_texts and columns:
        raise InputError("columns", "left out with include_texts, which uploads all", columns)
    shared = result if include_texts else without_texts(result, columns=columns)
    with tempfile.TemporaryDirectory() as made:
        write_result(shared, Path(made))
        # Beside what the manifest lists, so that it may be edited on the hub.
        (Path(made) / "README.md").write_text(model_card(shared, repo_id, license), "utf-8")
        return upload(
            Path(made), repo_id, private=private, token=token, revision=revision,
            commit_message=commit_message, endpoint=endpoint, delete=["arrays.*"],
        )  # fmt: skip


def from_pretrained(
    name: str | os.PathLike[str],
    *,
    revision: str | None = None,
    token: str | None = None,
    cache_dir: str | Path | None = None,
    endpoint: str | None = None,
) -> TopicResult:
    """Load a result from the Hugging Face hub, or from a folder.

    Every file is checked against the checksums in the manifest, and none of them is code.

    Parameters
    ----------
    name : str or path
        "user/name" on the hub, or a folder.
    revision : str, optional
        Branch, tag or commit; a commit is what cannot change.
    token : str, optional
        For a private repository; by default what ``hf auth login`` stored.
    cache_dir : str or Path, optional
        Where downloads are kept; by default the cache of the hub's client.
    endpoint : str, optional
        Address of another hub.

    Returns
    -------
    TopicResult

    Raises
    ------
    InputError
        Where there is neither such a folder nor such a repository, or it cannot be reached.
    CorruptFileError
        Where what is there is not a saved result, is damaged, or of a newer version.
    """
    if os.path.isdir(name):
        return load_result(Path(name))
    if isinstance(name, os.PathLike) or not NAME.fullmatch(str(name)):
        raise InputError("name", "a folder, or a name on the hub (user/name)", os.fspath(name))
    from huggingface_hub import HfApi, is_offline_mode, snapshot_download
    from huggingface_hub.errors import RepositoryNotFoundError

    offline = is_offline_mode()
    try:
        if not offline:
            api = HfApi(endpoint=endpoint, token=token, library_name="embedtopics")
            info = api.model_info(name, revision=revision, files_metadata=True)
            sizes = {file.rfilename: file.size or 0 for file in info.siblings or ()}
            if "manifest.json" not in sizes:
                raise InputError(f"{name} on the hub holds no saved topic result")
            size = sum(sizes.get(file, 0) for file in FILES) / 1e6
            sys.stderr.write(
                f"embedtopics: loading {name} at revision {info.sha} (about {size:.1f} MB) from "
                "the Hugging Face hub or its cache\n"
            )
        folder = snapshot_download(
            name, revision=revision, token=token, cache_dir=cache_dir, endpoint=endpoint,
            allow_patterns=list(FILES), local_files_only=offline,
        )  # fmt: skip
    except InputError:
        raise
    except RepositoryNotFoundError as error:
        raise InputError(
            f"there is no folder {name}, and no repository of that name on the hub that you may "
            "read; check the name, or log in (hf auth login) where it is private"
        ) from error
    # Its exceptions belong to the HTTP library that the hub's client was built on.
    except Exception as error:
        why = "it is not in the cache, and HF_HUB_OFFLINE is set" if offline else one_line(error)
        raise InputError(
            f"could not load {name} from the hub: {why}; connect to the network once, or give "
            "the folder of a saved result"
        ) from error
    return load_result(folder)
