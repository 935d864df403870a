"""Bayes' rule: scores of classes, and how they add up."""

from __future__ import annotations

from maxdisc.decisions.explanation import Explanation

__all__ = ["Explanation"]
