"""Results as self-contained HTML pages that open without a network."""

from __future__ import annotations

from embedtopics.report.comparison_page import comparison_html, write_comparison
from embedtopics.report.page import report_html, write_report

__all__ = ["comparison_html", "report_html", "write_comparison", "write_report"]
