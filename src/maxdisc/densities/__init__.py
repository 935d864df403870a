"""From moments to one density for each class and feature."""

from __future__ import annotations

from maxdisc.densities.class_densities import ClassDensities, estimate

__all__ = ["ClassDensities", "estimate"]
