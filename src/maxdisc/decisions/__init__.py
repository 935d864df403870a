"""Bayes' rule: class scores, and what each feature adds."""

from __future__ import annotations

from maxdisc.decisions.explanation import Explanation

__all__ = ["Explanation"]
