"""Results on the Hugging Face hub: uploaded where that is asked for, and downloaded with notice."""

from __future__ import annotations

import os
import re
import sys
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from embedtopics.encoders.hub import one_line
from embedtopics.errors import InputError
from embedtopics.results import TopicResult
from embedtopics.topics.sharing.card import model_card
from embedtopics.topics.sharing.privacy import without_texts
from embedtopics.topics.storage import load_result, write_result

__all__ = ["from_pretrained", "push_to_hub"]

NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")

FILES = (
    "manifest.json", "result.json", "words.json", "rows.parquet", "arrays.arrow", "arrays.npz",
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
    from huggingface_hub import HfApi, is_offline_mode

    _checked_name(repo_id)
    if not isinstance(result, TopicResult):
        result = load_result(result)
    if include_texts and columns:
        raise InputError("with include_texts all columns are uploaded; leave out columns")
    shared = result if include_texts else without_texts(result, columns=columns)
    if is_offline_mode():
        raise InputError(f"cannot upload to {repo_id}: HF_HUB_OFFLINE is set; unset it")
    api = HfApi(endpoint=endpoint, token=token, library_name="embedtopics")
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        write_result(shared, folder)
        # Beside what the manifest lists, so that it may be edited on the hub.
        (folder / "README.md").write_text(model_card(shared, repo_id, license), "utf-8")
        try:
            api.create_repo(repo_id, private=private, exist_ok=True)
            is_public = not api.model_info(repo_id).private
            if not (private and is_public):
                with warnings.catch_warnings():
                    # It takes Arrow and parquet files for a data set that went the wrong way.
                    warnings.filterwarnings(
                        "ignore", "It seems that you are about to commit a data"
                    )
                    commit = api.upload_folder(
                        repo_id=repo_id, folder_path=folder, commit_message=commit_message,
                        revision=revision, delete_patterns=["arrays.*"],
                    )  # fmt: skip
        # Its exceptions belong to the HTTP library that the hub's client was built on.
        except Exception as error:
            raise InputError(
                f"could not upload to {repo_id}: {one_line(error)}; check the name, the network, "
                "and that you are logged in (hf auth login) with the right to write there"
            ) from error
    if private and is_public:
        raise InputError(
            f"{repo_id} exists and is public, so nothing was uploaded; name another repository, "
            "make that one private, or give private=False"
        )
    return str(commit.commit_url)


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
        raise InputError(
            f"expected a folder or a name on the hub (user/name), got {os.fspath(name)!r}, which "
            "is neither; check the path"
        )
    return load_result(_snapshot(str(name), revision, token, cache_dir, endpoint))


def _snapshot(
    repo_id: str,
    revision: str | None,
    token: str | None,
    cache_dir: str | Path | None,
    endpoint: str | None,
) -> Path:
    """Return the folder of a repository in the cache, after fetching what is not there yet."""
    from huggingface_hub import HfApi, is_offline_mode, snapshot_download
    from huggingface_hub.errors import RepositoryNotFoundError

    offline = is_offline_mode()
    try:
        if not offline:
            api = HfApi(endpoint=endpoint, token=token, library_name="embedtopics")
            info = api.model_info(repo_id, revision=revision, files_metadata=True)
            sizes = {file.rfilename: file.size or 0 for file in info.siblings or ()}
            if "manifest.json" not in sizes:
                raise InputError(f"{repo_id} on the hub holds no saved topic result")
            _announce(repo_id, str(info.sha), sum(sizes.get(name, 0) for name in FILES))
        return Path(
            snapshot_download(
                repo_id, revision=revision, token=token, cache_dir=cache_dir, endpoint=endpoint,
                allow_patterns=list(FILES), local_files_only=offline,
            )
        )  # fmt: skip
    except InputError:
        raise
    except RepositoryNotFoundError as error:
        raise InputError(
            f"there is no folder {repo_id}, and no repository of that name on the hub that you may "
            "read; check the name, or log in (hf auth login) where it is private"
        ) from error
    # Its exceptions belong to the HTTP library that the hub's client was built on.
    except Exception as error:
        why = "it is not in the cache, and HF_HUB_OFFLINE is set" if offline else one_line(error)
        raise InputError(
            f"could not load {repo_id} from the hub: {why}; connect to the network once, or give "
            "the folder of a saved result"
        ) from error


def _announce(repo_id: str, revision: str, size: int) -> None:
    sys.stderr.write(
        f"embedtopics: loading {repo_id} at revision {revision} (about {size / 1e6:.1f} MB) from "
        "the Hugging Face hub or its cache\n"
    )


def _checked_name(repo_id: str) -> None:
    if not isinstance(repo_id, str) or not NAME.fullmatch(repo_id):
        raise InputError(f'expected a name on the hub such as "user/name"; got {repo_id!r}')
