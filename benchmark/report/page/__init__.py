"""The report: one self-contained HTML page per study."""

from benchmark.report.page.page import Built, build_page, load_analysis

__all__ = ["Built", "build_page", "load_analysis"]
