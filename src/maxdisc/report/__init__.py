"""A report of how a model does on labelled rows, as one HTML page, as Markdown or as JSON."""

from __future__ import annotations

from maxdisc.report.evaluation import evaluate
from maxdisc.report.record import Report

__all__ = ["Report", "evaluate"]
