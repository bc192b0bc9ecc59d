"""Run the notebooks and store them with what they answered, figures as pictures.

``python docs/notebooks.py [NUMBERS]`` runs all, or those whose names begin with one of the numbers
(``01 07``). It needs the dependency groups dev and docs, and Chromium, by which kaleido draws.
"""

from __future__ import annotations

import base64
import io
import os
import sys
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from PIL import Image

FOLDER = Path(__file__).parents[1] / "notebooks"
KEPT = ("image/png", "text/html", "text/plain")
LONGEST = 20_000
"""Characters of a table or of what is printed; more is left out."""


def small(png: str) -> str:
    """Return a picture, in base64, with as many colours as a palette holds."""
    picture = Image.open(io.BytesIO(base64.b64decode(png))).convert("RGB")
    made = io.BytesIO()
    picture.quantize(128, dither=Image.Dither.NONE).save(made, "PNG", optimize=True)
    return base64.b64encode(made.getvalue()).decode()


def kept(output: Any) -> Any | None:
    """Return an output with one way to show it, or None for progress, warnings and widgets."""
    if output.output_type == "stream":
        output.text = output.text[:LONGEST]
        return output if output.name == "stdout" else None
    data = {kind: output.data[kind] for kind in KEPT if kind in output.data}
    if "application/vnd.jupyter.widget-view+json" in output.data or not data:
        return None
    if "image/png" in data:
        data = {"image/png": small(data["image/png"])}
    elif len(data.get("text/html", "")) > LONGEST:
        del data["text/html"]
    output.data, output.metadata = data, {}
    return output


def store(path: Path) -> None:
    """Run a notebook in its folder and write it with its outputs."""
    notebook = nbformat.read(path, as_version=4)
    place = {"metadata": {"path": str(path.parent)}}
    NotebookClient(notebook, timeout=1200, kernel_name="python3", resources=place).execute()
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = [one for one in map(kept, cell.outputs) if one is not None]
            cell.metadata = {}
    kernel = notebook.metadata["kernelspec"]
    notebook.metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    nbformat.write(notebook, path)


if __name__ == "__main__":
    os.environ["PLOTLY_RENDERER"] = "png"
    for path in sorted(FOLDER.glob("*.ipynb")):
        if not sys.argv[1:] or path.name.startswith(tuple(sys.argv[1:])):
            store(path)
            sys.stdout.write(f"{path.name}: {path.stat().st_size:,} bytes\n")
            sys.stdout.flush()
