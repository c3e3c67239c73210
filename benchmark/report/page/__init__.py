"""The report: one self-contained HTML page per study, made of the files of the steps before."""

from benchmark.report.page.page import write_report

__all__ = ["write_report"]
