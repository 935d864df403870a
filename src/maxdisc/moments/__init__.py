"""Weighted sums of feature functions: all that a fit learns."""

from __future__ import annotations

from maxdisc.moments.class_moments import ClassMoments

__all__ = ["ClassMoments"]
