"""Weighted sums of feature functions, per class and feature: all that is learnt from data."""

from __future__ import annotations

from maxdisc.moments.class_moments import ClassMoments

__all__ = ["ClassMoments"]
