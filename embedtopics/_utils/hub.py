"""Uploads to the Hugging Face hub; only `upload` sends anything."""

import tempfile
import warnings
from pathlib import Path
from typing import Any

from embedtopics._utils.display import one_line
from embedtopics.errors import InputError

# Never uploaded: code, pickles and hidden files that happen to lie in the folder.
_NEVER = ("*.py", "*.pyc", "*.bin", "*.pt", "*.pkl", "*.pickle", ".*", "*/.*")


def upload(
    folder: Path,
    repo_id: str,
    *,
    private: bool,
    token: str | None,
    commit_message: str,
) -> str:
    """Upload a folder, into a private repository unless `private` is False; return its address."""
    from huggingface_hub import HfApi

    api = HfApi(token=token, library_name="embedtopics")
    try:
        api.create_repo(repo_id, private=private, exist_ok=True)
        if private and not api.model_info(repo_id).private:
            raise InputError(
                f"{repo_id} is public, so nothing was uploaded; choose another repository, make "
                "this one private, or pass private=False"
            )
        with warnings.catch_warnings():
            # The hub takes Arrow and parquet files for a misplaced data set.
            warnings.filterwarnings("ignore", "It seems that you are about to commit a data")
            commit = api.upload_folder(
                repo_id=repo_id, folder_path=folder, commit_message=commit_message,
                ignore_patterns=list(_NEVER),
            )  # fmt: skip
    except InputError:
        raise
    # The exceptions come from the HTTP library under the client.
    except Exception as error:
        raise InputError(
            f"could not upload to {repo_id}: {one_line(error)}; check the name and the network, "
            "and log in (hf auth login) with permission to write there"
        ) from error
    return str(commit.commit_url)


class PushToHub:
    """Adds `push_to_hub` to objects that write themselves to a folder."""

    _hub_content = "model"

    def push_to_hub(self, repo_id: str, *, private: bool = True, token: str | None = None) -> str:
        """Upload to the Hugging Face hub; Python files and pickled weights are left out.

        Parameters
        ----------
        repo_id : str
            "user/name"; created if it does not exist.
        private : bool
            Whether only you can see the repository. If True, an existing public repository is
            refused.
        token : str, optional
            By default the token that ``hf auth login`` stored.

        Returns
        -------
        str
            Address of the commit.

        Raises
        ------
        InputError
            If the name is invalid, nothing can be uploaded, the client is offline, or the hub
            refuses.
        """
        options: Any = {"private": private, "token": token}
        with tempfile.TemporaryDirectory() as parent:
            folder = self._hub_folder(Path(parent) / "content")
            return upload(folder, repo_id, commit_message=f"Upload {self._hub_content}", **options)

    def _hub_folder(self, fresh: Path) -> Path:
        """Return the folder to upload, which may be written at `fresh`."""
        raise NotImplementedError
