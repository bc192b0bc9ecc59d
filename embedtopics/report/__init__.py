"""Results as self-contained HTML pages that open without a network."""

from __future__ import annotations

from typing import TYPE_CHECKING

from embedtopics._utils.lazy import attach

if TYPE_CHECKING:
    from embedtopics.report._explorer import explorer as explorer
    from embedtopics.report._explorer import write_explorer as write_explorer
    from embedtopics.report._report import write_report as write_report
    from embedtopics.report._search_page import serve_index as serve_index

__getattr__, __dir__, __all__ = attach(__name__, __file__)
