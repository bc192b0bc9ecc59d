"""Results -> Markdown tables, and their place in a page."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["describe", "figure", "markdown_table", "replace_tables"]


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table, its first column on the left and all others on the right.

    >>> print(markdown_table(["n", "s"], [["5", "1.20"]]))
    | n | s |
    | :-- | --: |
    | 5 | 1.20 |
    """
    rule = [":--"] + ["--:"] * (len(header) - 1)
    return "\n".join("| " + " | ".join(row) + " |" for row in [header, rule, *rows])


def figure(value: float | None, digits: int = 0) -> str:
    """Return a number with thousands parted, or n/a where it is unknown.

    >>> figure(60000), figure(0.5, 3), figure(None)
    ('60,000', '0.500', 'n/a')
    """
    return "n/a" if value is None else f"{value:,.{digits}f}"


def describe(result: Mapping[str, Any]) -> str:
    """Return one paragraph: when, where and with which versions a result was measured."""
    machine = result["machine"]
    systems = "; ".join(
        f"{name} {environment['packages'][name]} (Python {environment['python']}, "
        f"NumPy {environment['packages'].get('numpy', 'n/a')}, "
        f"Numba {environment['packages'].get('numba', 'n/a')}, "
        f"scikit-learn {environment['packages'].get('scikit-learn', 'n/a')})"
        for name, environment in result["environments"].items()
    )
    return (
        f"Measured on {result['date']}: {machine['cpu']}, {machine['cores']} cores, "
        f"{machine['memory_gb']} GB, {machine['system']}. {systems}."
    )


def replace_tables(page: str, tables: Mapping[str, str]) -> str:
    """Put each table between its markers in a page.

    Parameters
    ----------
    page : str
        Holds ``<!-- name -->`` and ``<!-- /name -->`` for every table.
    tables : mapping of str to str
        By name.

    Raises
    ------
    SystemExit
        If the markers of a table are missing.
    """
    for name, table in tables.items():
        begin, end = f"<!-- {name} -->", f"<!-- /{name} -->"
        pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
        fresh = f"{begin}\n\n{table}\n\n{end}"
        page, found = pattern.subn(lambda _, fresh=fresh: fresh, page)
        if found != 1:
            raise SystemExit(f"expected {begin} and {end} once in the page, got {found} of them")
    return page
