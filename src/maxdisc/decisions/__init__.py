"""Bayes' rule: scores of classes, and how they add up."""

from __future__ import annotations

from maxdisc.decisions.explanation import Explanation
from maxdisc.decisions.joint import Joint

__all__ = ["Explanation", "Joint"]
