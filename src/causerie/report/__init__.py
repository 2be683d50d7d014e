"""Summaries of scores per system, and a self-contained HTML report with the conversations."""

from causerie.report.figures import Figures, Group, Quote
from causerie.report.page import Page, Shown, build_report, conversation, quotable, write_report

__all__ = [
    "Figures",
    "Group",
    "Page",
    "Quote",
    "Shown",
    "build_report",
    "conversation",
    "quotable",
    "write_report",
]
