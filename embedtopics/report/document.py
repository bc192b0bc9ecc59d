"""A page as one HTML file: what it may run, how data travels in it, how it is written."""

from __future__ import annotations

import base64
import hashlib
import os
import secrets
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

from embedtopics.errors import InputError

__all__ = ["asset", "checked_place", "data_script", "html_page", "write_page"]


def html_page(
    heading: str,
    style: str,
    sections: Sequence[str],
    data: Sequence[str],
    scripts: Sequence[str],
    *,
    compiles: bool = False,
) -> str:
    """Return a page that loads nothing and runs no script but those given.

    Parameters
    ----------
    heading : str
        Markup already, as are `sections` and `data`.
    style : str
    sections, data : sequence of str
        The body, and what `data_script` returned.
    scripts : sequence of str
        In the order in which they run.
    compiles : bool
        Whether a script makes code of strings, as Plotly does for its WebGL programs. It opens
        nothing to a text, which would need a script of its own first.
    """
    return "\n".join(
        [
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            '<meta http-equiv="Content-Security-Policy" content="'
            f'{_policy(scripts, compiles=compiles)}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{heading}</title>\n<style>\n{style}</style>\n</head>\n<body>",
            f"<header><h1>{heading}</h1></header>\n<main>",
            *sections,
            "</main>",
            *data,
            *(f"<script>{script}</script>" for script in scripts),
            "</body>\n</html>\n",
        ]
    )


def asset(name: str) -> str:
    """Return a file that lies beside this one."""
    return resources.files("embedtopics.report").joinpath(name).read_text(encoding="utf-8")


def data_script(name: str, json: str) -> str:
    r"""Return data that the page's script reads; no markup in it can end it early.

    Examples
    --------
    >>> data_script("x", '"</script>"')
    '<script type="application/json" id="x">"\\u003c/script\\u003e"</script>'
    """
    for character in "<>&":
        json = json.replace(character, f"\\u{ord(character):04x}")
    return f'<script type="application/json" id="{name}">{json}</script>'


def _policy(scripts: Sequence[str], *, compiles: bool) -> str:
    """Return a content security policy that lets these scripts run and no others."""
    digests = (hashlib.sha256(script.encode("utf-8")).digest() for script in scripts)
    allowed = " 'unsafe-eval'" if compiles else ""
    hashes = " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)
    return (
        f"default-src 'none'; script-src {hashes}{allowed}; "
        "style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'"
    )


def checked_place(path: str | os.PathLike[str]) -> Path:
    """Return the path of a page to write, or refuse one that cannot be.

    Raises
    ------
    InputError
        If the folder does not exist, or `path` is a folder.
    """
    path = Path(path)
    if path.is_dir():
        raise InputError(f"the report needs a file name; got the folder {path}; add report.html")
    if not path.parent.is_dir():
        raise InputError(f"the report's folder must exist; got {path.parent}; create it first")
    return path


def write_page(page: str, path: Path) -> Path:
    """Write a page beside its place and move it there, so that it is complete or not there."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        with temporary.open("x", encoding="utf-8", newline="\n") as file:
            file.write(page)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    return path
