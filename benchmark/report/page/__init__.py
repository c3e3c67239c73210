"""The report: one self-contained HTML page per study, made of its tables, figures, verdicts and provenance."""

from benchmark.report.page.page import write_report

__all__ = ["write_report"]
