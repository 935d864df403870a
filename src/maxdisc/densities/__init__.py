"""From moments to one density for each class and feature."""

from __future__ import annotations

from maxdisc.densities.class_densities import ClassDensities

__all__ = ["ClassDensities"]
