"""Former names of edits and of their parameters, which saved histories hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from embedtopics.topics.results import Edit

NAMES: Mapping[str, str] = {
    "at_resolution": "recluster",
    "reassign": "reduce_outliers",
    "reduce": "merge",
}
"""The present name of an edit by its former one."""

PARAMETERS: Mapping[str, Mapping[str, str]] = {
    "reduce": {"by": "space"},
    "rename": {"labels": "names"},
}
"""The present names of the parameters of an edit by their former ones, by its recorded name."""


def current_edit(edit: Edit) -> Edit:
    """Return an edit by its present name, with parameters by their present names."""
    parameter_names = PARAMETERS.get(edit.name, {})
    return replace(
        edit,
        name=NAMES.get(edit.name, edit.name),
        parameters={
            parameter_names.get(name, name): value for name, value in edit.parameters.items()
        },
    )
