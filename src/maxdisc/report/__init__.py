"""Reports of an evaluation: HTML, Markdown, JSON."""

from __future__ import annotations

from maxdisc.report.evaluation import evaluate

__all__ = ["evaluate"]
