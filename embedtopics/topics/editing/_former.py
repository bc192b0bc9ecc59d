"""Former names of edits and of their parameters, which saved histories hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from embedtopics.topics.results import Edit

NAMES: Mapping[str, str] = {
    "at_resolution": "recluster",
    "reassign": "reduce_outliers",
}
"""The present name of an edit by its former one."""


def current_edit(edit: Edit) -> Edit:
    """Return an edit by its present name, with parameters by their present names."""
    return replace(edit, name=NAMES.get(edit.name, edit.name))
