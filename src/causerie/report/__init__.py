"""Scores as one self-contained HTML page: figures per system and every conversation, coloured."""

from causerie.report.gather import ColumnInfo, Rows
from causerie.report.page import build_report, write_report
from causerie.report.run import check_reportable, write_run_report

__all__ = [
    "ColumnInfo",
    "Rows",
    "build_report",
    "check_reportable",
    "write_report",
    "write_run_report",
]
