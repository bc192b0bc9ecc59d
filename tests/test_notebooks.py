"""The notebooks run from the first cell to the last, on the public API alone."""

import json
import re
from pathlib import Path

import pytest

from tests.factories import PATIENCE

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # the kernel's own libraries warn as they please
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_notebook_runs(path, monkeypatch, request):
    import nbformat
    from nbclient import NotebookClient

    if "EMBEDTOPICS_DATA" in path.read_text("utf-8"):  # its texts do not come along
        monkeypatch.setenv("EMBEDTOPICS_DATA", str(request.getfixturevalue("data_folder")))

    notebook = nbformat.read(path, as_version=4)
    NotebookClient(
        notebook,
        timeout=PATIENCE,
        kernel_name="python3",
        resources={"metadata": {"path": path.parent}},
    ).execute()


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_notebook_uses_public_names_and_is_stored_with_small_outputs(path):
    notebook = json.loads(path.read_text("utf-8"))
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for cell in code:
        source = "".join(cell["source"])
        assert not re.search(r"\b_[a-z]\w*\b", source), source
        assert "from embedtopics." not in source

    outputs = [output for cell in code for output in cell["outputs"]]
    assert outputs, "run python docs/notebooks.py"
    assert path.stat().st_size < 1_500_000
    for output in outputs:
        assert output["output_type"] != "error"
        assert output.get("name") != "stderr"
        data = {kind: "".join(content) for kind, content in output.get("data", {}).items()}
        assert set(data) <= {"image/png", "text/html", "text/plain"}
        assert len(data.get("image/png", "")) < 150_000 * 4 / 3
        assert not re.search(r"https?://|<script|/work/|/tmp/", data.get("text/html", ""))
