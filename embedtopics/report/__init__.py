"""Results as self-contained HTML pages that open without a network."""

from __future__ import annotations

from embedtopics.report.page import report_html, write_report

__all__ = ["report_html", "write_report"]
