"""Reports of an evaluation: HTML, Markdown, JSON."""

from __future__ import annotations

from maxdisc.report.evaluation import evaluate
from maxdisc.report.record import Report

__all__ = ["Report", "evaluate"]
