"""A benchmark run as one self-contained HTML page."""

from causerie.bench.page.build import build_page, write_page

__all__ = ["build_page", "write_page"]
